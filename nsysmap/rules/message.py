"""A rule's message: a template checked once, filled in for each finding, harmless whatever the
names in the trace hold.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping
from dataclasses import field

from nsysmap.core.records import dataclass
from nsysmap.core.table import Kind
from nsysmap.names.layers import short_nodes
from nsysmap.text.terminal import between_words, escaped, list_of
from nsysmap.text.units import about, counted, duration, range_of, size, unit_words, worded

Shown = int | float | str | bool | None

_NUMBER = re.compile(r",?(\.\d)?[f%]|,?d|,")
_OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)

_UNIT, _OF_EACH, _COUNTED = "unit", "each", "inferences"
_PER_INFERENCE = "per inference"
_WORDS = ("inference", "an inference", "Inference", "An inference", _PER_INFERENCE)
_PLACEHOLDER = re.compile(rf"\{{:({'|'.join(_WORDS)})\}}")
"""Words for what runs, as a template writes them."""

LONGEST = 120
"""Columns for one value of a message: kernel names run to thousands."""

_LONGEST_LIST = 400  # columns


@dataclass(frozen=True)
class Each:
    """What the answer's unit is made of, and what `{:per inference}` of a rule refers to."""

    a_pass: int = 1  # inferences of a unit
    repeats: bool = False  # they are repetitions, of what nothing shows to be inferences
    steady: int = 0  # inferences of all engines
    ran: Mapping[int, int] = field(default_factory=dict)  # engine to its inferences
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The unit in words."""
        return unit_words(self.a_pass, self.one)

    @property
    def one(self) -> str:
        """The word for one of what runs."""
        return "repetition" if self.repeats else "inference"

    def word(self, placeholder: str, engine: int | None = None, *, again: bool = False) -> str:
        """The text for a placeholder. Times per inference are those of the ``engine``, if any: per
        pass if it runs once per pass, and with the engine's name if there are several, but not
        ``again``.
        """
        if placeholder != _PER_INFERENCE:
            return worded(f"{{:{placeholder}}}", repetitions=self.repeats)
        if engine is None or len(self.ran) < 2 or engine not in self.names:
            return f"per {self.one}"
        if self.a_pass > 1 and self.ran[engine] * self.a_pass == self.steady:
            return f"per {self.unit}"
        return f"per {self.one}" if again else f"per {self.one} of {self.names[engine]}"

    def words_in(self, text: str) -> str:
        """A text without values, such as advice, with the word for what runs."""
        return _PLACEHOLDER.sub(lambda found: self.word(found[1]), text)


_EACH = Each()


def check_template(template: str, columns: Mapping[str, Kind | None]) -> None:
    """ValueError, saying what is wrong, unless every field of the template is one of these columns,
    shown in a way that fits its kind.

    A column whose kind is not known is shown in any way.
    """
    for text, _ in _parts(template):
        for name, spec in _fields(text):
            if (name == _UNIT and not spec) or not name:
                continue
            if name not in columns:
                raise ValueError(
                    f"{{{name}}} is not a column of the SQL; it returns"
                    f" {', '.join(sorted(columns))}"
                )
            if not spec or columns[name] is None:
                continue
            if spec == "list":
                if columns[name] != "text":
                    raise ValueError(
                        f"{{{name}:list}} shows a text that lists things, but {name} is"
                        f" {columns[name]}"
                    )
                continue
            known = ("ns", "about", "ranged", "bytes", _COUNTED)
            if _plain(spec) not in known and not _NUMBER.fullmatch(_plain(spec)):
                there = (
                    ":ns, :about, :ranged, :bytes, :list, :inferences, numbers such as :.1f :, and"
                    " :.0%, and :each, :each.1f and :each bytes"
                )
                raise ValueError(f"{{{name}:{spec}}} is not a format; there are {there}")
            if columns[name] not in ("int", "float"):
                raise ValueError(
                    f"{{{name}:{spec}}} formats a number, but {name} is {columns[name]}"
                )


def fill(
    template: str,
    values: Mapping[str, Shown],
    *,
    longest: int = LONGEST,
    each: Each = _EACH,
    engine: int | None = None,
) -> str:
    """The message for these values, control characters escaped, each value in at most ``longest``
    columns (a ``:list`` in 400).

    Times are of one unit, unless one is less than a tenth of it; names that Torch-TensorRT gave are
    shortened to those of their nodes. ``:ranged`` shows a predicted time with the range in the
    columns low_NAME and high_NAME, ``:about`` without it; both are rounded as that range allows.
    ``{unit}`` is the unit of the answer, and ``:each`` a time per inference, told per unit;
    ``:each.1f`` a number and ``:each bytes`` a size. ``{:inference}`` is the word for what runs, as
    are ``{:an inference}`` and the same with a capital; ``{:per inference}`` says it of the
    ``engine`` whose layers the message is about; ``:inferences`` counts them.

    A part in double square brackets is left out where one of its values is not there; elsewhere
    such a value reads "unknown".
    """
    values = {_UNIT: each.unit, **values}
    shown, most_ns = [], _longest_ns(template, values, each.a_pass)
    again = False
    for text, optional in _parts(template):
        if optional and any(_absent(values[name]) for name, _ in _fields(text) if name):
            continue
        for literal, name, spec, _ in string.Formatter().parse(text):
            shown.append(literal)
            if name == "":
                shown.append(each.word(spec or "", engine, again=again))
                again = again or spec == _PER_INFERENCE
            elif name is not None and spec == _COUNTED:
                shown.append(_counted(values[name], each.one))
            elif name is not None and spec in ("about", "ranged"):
                shown.append(_about(name, values, ranged=spec == "ranged"))
            elif name is not None:
                shown.append(
                    _shown(
                        _told(values[name], spec, each.a_pass), _plain(spec or ""), longest, most_ns
                    )
                )
    return " ".join("".join(shown).split())


def _parts(template: str) -> list[tuple[str, bool]]:
    """The template in pieces, each with whether it is optional."""
    return [(text, bool(place % 2)) for place, text in enumerate(_OPTIONAL.split(template))]


def _fields(text: str) -> list[tuple[str, str]]:
    found = []
    for _, name, spec, conversion in string.Formatter().parse(
        text
    ):  # ValueError of its own on a lone brace
        if name is None:
            continue
        if not re.fullmatch(r"[A-Za-z_]\w*", name) and (name or spec not in _WORDS):
            raise ValueError(f"{{{name}}} is not a plain column name")
        if conversion:
            raise ValueError(f"{{{name}!{conversion}}}: conversions are not allowed")
        found.append((name, spec or ""))
    return found


def _counted(value: Shown, one: str) -> str:
    return "unknown" if value is None or _absent(value) else counted(round(float(value)), one)


def _absent(value: Shown) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _about(name: str, values: Mapping[str, Shown], *, ranged: bool) -> str:
    """A predicted time: with columns low_NAME and high_NAME rounded as their range allows, as the
    answer shows it, and with that range (``ranged``).
    """
    ends = [values.get(f"{end}{name}") for end in ("", "low_", "high_")]
    known = [round(one) for one in ends if isinstance(one, int | float) and not _absent(one)]
    if len(known) < len(ends):
        return about(known[0]) if known else "unknown"
    found = range_of(known[0], known[1], known[2])
    return str(found) if ranged else found.alone


def _plain(spec: str) -> str:
    """How a value is shown that may be one of each inference."""
    return (spec.removeprefix(_OF_EACH).strip() or "ns") if spec.startswith(_OF_EACH) else spec


def _told(value: Shown, spec: str | None, a_pass: int) -> Shown:
    """A value per inference converted to one per pass of that many; other values unchanged."""
    of_each = (
        spec is not None
        and spec.startswith(_OF_EACH)
        and isinstance(value, int | float)
        and not _absent(value)
    )
    return value * a_pass if of_each and isinstance(value, int | float) else value


def _longest_ns(template: str, values: Mapping[str, Shown], a_pass: int) -> float:
    """The longest time in a message, whose unit the others take."""
    times = (
        _told(values[name], spec, a_pass)
        for text, _ in _parts(template)
        for name, spec in _fields(text)
        if name and _plain(spec) == "ns"
    )
    return max(
        (abs(one) for one in times if isinstance(one, int | float) and not _absent(one)), default=0
    )


def _shown(value: Shown, spec: str, longest: int, most_ns: float) -> str:
    if value is None or _absent(value):
        return "unknown"
    if isinstance(value, str):
        text = escaped(short_nodes(value))
        return list_of(text, _LONGEST_LIST) if spec == "list" else between_words(text, longest)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if spec == "ns":
        return duration(value, most_ns)
    if spec == "bytes":
        return size(round(value))
    if spec in (",d", "d"):
        return format(round(value), spec)
    return format(value, spec) if spec or isinstance(value, int) else f"{value:g}"
