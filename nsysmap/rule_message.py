"""A rule's message: a template checked once, filled in for each finding, harmless whatever the names in the trace hold."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping

from nsysmap.tables import Kind

Shown = int | float | str | bool | None

_NUMBER = re.compile(r",?(\.\d)?[f%]|,?d|,")
_LONGEST = 120  # characters of one value: kernel names run to thousands


def check_template(template: str, columns: Mapping[str, Kind]) -> None:
    """ValueError, saying what is wrong, unless every field of the template is one of these columns, shown in a way that fits its kind."""
    for name, spec in _fields(template):
        if name not in columns:
            raise ValueError(f"{{{name}}} is no column of the SQL; it returns {', '.join(sorted(columns))}")
        if not spec:
            continue
        if spec not in ("ns", "bytes") and not _NUMBER.fullmatch(spec):
            raise ValueError(f"{{{name}:{spec}}} is no format; there are :ns, :bytes and number formats such as :.1f :, and :.0%")
        if columns[name] not in ("int", "float"):
            raise ValueError(f"{{{name}:{spec}}} formats a number, and {name} is {columns[name]}")


def fill(template: str, values: Mapping[str, Shown]) -> str:
    """The message for these values; a value that is not there reads "unknown", control characters are escaped."""
    parts = []
    for literal, name, spec, _ in string.Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(_shown(values[name], spec or ""))
    return " ".join("".join(parts).split())


def escaped(text: str) -> str:
    """The text with control and bidirectional characters and line breaks written out, as \\x1b or \\u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def duration(nanoseconds: float) -> str:
    """A time as people write it: 850 ns, 330.1 µs, 14.64 ms, 2.10 s."""
    for limit, divisor, digits, unit in ((1e3, 1.0, 0, "ns"), (1e6, 1e3, 1, "µs"), (1e9, 1e6, 2, "ms")):
        if abs(nanoseconds) < limit * (1 - 0.5 / (limit / divisor * 10**digits)):
            return f"{nanoseconds / divisor:.{digits}f} {unit}"
    return f"{nanoseconds / 1e9:.2f} s"


def size(count: float) -> str:
    """A size as people write it: 512 B, 1.5 KiB, 2.0 MiB, 1.2 GiB."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if abs(count) < 1023.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} GiB"


def _fields(template: str) -> list[tuple[str, str]]:
    found = []
    for _, name, spec, conversion in string.Formatter().parse(template):  # ValueError of its own on a lone brace
        if name is None:
            continue
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"{{{name}}} is not a plain column name")
        if conversion:
            raise ValueError(f"{{{name}!{conversion}}}: conversions are not allowed")
        found.append((name, spec or ""))
    return found


def _shown(value: Shown, spec: str) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "unknown"
    if isinstance(value, str):
        text = escaped(value)
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if spec == "ns":
        return duration(value)
    if spec == "bytes":
        return size(value)
    if spec in (",d", "d"):
        return format(round(value), spec)
    return format(value, spec) if spec or isinstance(value, int) else f"{value:g}"
