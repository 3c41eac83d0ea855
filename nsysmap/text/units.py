"""Figures for people: times in a suitable unit, shares that are never rounded to 0 % or 100 %."""

from __future__ import annotations

import math
import re

from nsysmap.core.records import dataclass

_ONE_OF_THEM = re.compile(r"\{:(an |An )?([Ii])nference\}")
_DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_FROM = 10
"""How many of a unit a rounded time has at least, from milliseconds on: times of one inference are
of one unit, and can be subtracted.
"""
_MOVES = 0.025
"""Share of the largest figure of a range to which they are rounded at most: each moves by half of
it.
"""
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def percent(part: float, whole: float, digits: int = 1) -> str:
    """``part`` of ``whole`` in percent; "100%" only if it is all, "0%" only if it is nothing, "–"
    if the whole is 0.
    """
    return f"{percent_number(part, whole, digits)}%" if whole > 0 else "–"


def percent_number(part: float, whole: float, digits: int = 1) -> str:
    """The percentage without its sign, of a whole that is not 0."""
    if part in (0, whole):
        return "100" if part else "0"
    step: float = 10**-digits
    share = 100 * part / whole
    if part > 0 and share < step / 2:
        return f"<{step:.{digits}f}"
    if part < whole and share > 100 - step / 2:
        share = 100 - step
    return f"{share:.{digits}f}"


def rounded_share(share: float) -> float:
    """A share as JSON holds it: to a millionth."""
    return round(share, 6)


def duration(time_ns: float | None, beside_ns: float = 0) -> str:
    """A time in s, ms, µs or ns with three to four significant digits, in the unit of a longer one
    ``beside_ns`` unless it is less than a tenth of that unit; "–" for none.
    """
    if time_ns is None:
        return "–"
    size, unit = _unit_of(max(abs(time_ns), beside_ns))
    if abs(time_ns) < size / 10:
        size, unit = _unit_of(time_ns)
    value = time_ns / size
    digits = (
        0
        if (size == 1 and float(time_ns).is_integer()) or abs(value) >= 1_000
        else 1
        if abs(value) >= 100
        else 2
    )
    return f"{value:,.{digits}f} {unit}"


def microseconds(time_ns: float | None) -> str:
    """A time in µs with two decimals, for a column of times; "–" for none."""
    return "–" if time_ns is None else f"{time_ns / 1e3:,.2f}"


def size(size_bytes: int) -> str:
    """A size in GiB, MiB, KiB or B."""
    for unit_bytes, unit in _SIZES:
        if size_bytes >= unit_bytes or unit_bytes == 1:
            return f"{size_bytes / unit_bytes:,.{0 if unit_bytes == 1 else 1}f} {unit}"
    raise AssertionError(size_bytes)


def counted(number: int, noun: str) -> str:
    """The number and the noun, in the plural if needed."""
    if number == 1:
        return f"{number:,} {noun}"
    plural = (
        noun[:-1] + "ies"
        if noun.endswith("py")
        else noun + "es"
        if noun.endswith(("s", "ch", "x"))
        else noun + "s"
    )
    return f"{number:,} {plural}"


def a_or_an(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def unit_words(inferences: int, one: str = "inference") -> str:
    """The unit of a time: an inference (or a repetition), or a pass of several."""
    return one if inferences == 1 else f"pass of {inferences} {one}s"


def capitalised(text: str) -> str:
    """A text as a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"


def worded(template: str, *, repetitions: bool) -> str:
    """A sentence whose template does not say whether it is about inferences or about repetitions of
    what nothing shows to be inferences.

    The template has ``{:inference}``, ``{:an inference}``, or the same with a capital, where that
    word belongs; the plural is ``{:inference}s``.
    """

    def word(found: re.Match[str]) -> str:
        article, initial = found[1] or "", found[2]
        if not repetitions:
            return f"{article}{initial}nference"
        return f"{article.replace('n', '')}{'R' if initial == 'I' else 'r'}epetition"

    return _ONE_OF_THEM.sub(word, template)


@dataclass(frozen=True)
class InUnit:
    """A figure, and the unit that it is in."""

    number: str
    unit: str

    def __str__(self) -> str:
        """Both."""
        return f"{self.number} {self.unit}"


@dataclass(frozen=True)
class Range:
    """A predicted figure and the ends of its range, rounded alike."""

    likely: str
    low: str
    high: str
    unit: str = ""  # of times

    @property
    def alone(self) -> str:
        """The figure without its range."""
        return f"{self.likely} {self.unit}".rstrip()

    @property
    def ends(self) -> str:
        """The range without the figure, such as "41 to 74"."""
        return f"{self.low} to {self.high}"

    @property
    def up_to(self) -> str:
        """A figure that may be at most its upper end: "up to 6,300 (likely 5,700)"."""
        return f"up to {self.high} {self.unit}".rstrip() + f" (likely {self.likely})"

    def __str__(self) -> str:
        """The figure with its range, such as "48 µs (41 to 74)"."""
        return f"{self.alone} ({self.ends})"


def rounded(time_ns: float | None, beside_ns: float | None = None) -> str:
    """A measured time with three significant digits, in the unit of another one (``beside_ns``), if
    any, unless it is less than one of that; "–" for none.
    """
    return "–" if time_ns is None else str(in_unit(time_ns, beside_ns))


def in_unit(time_ns: float, beside_ns: float | None = None) -> InUnit:
    """The time as a number with its unit."""
    size, unit = _unit_of(time_ns if beside_ns is None else beside_ns)
    if abs(time_ns) < size:
        size, unit = _unit_of(time_ns)
    value = float(f"{time_ns / size:.3g}")
    digits = 0 if size == 1 or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return InUnit(f"{value:,.{digits}f}", unit)


def multiple(ratio: float) -> str:
    """A ratio with one decimal, from 100 on with three significant digits."""
    return f"{ratio:.1f}" if ratio < 100 else f"{float(f'{ratio:.3g}'):,.0f}"


def about(time_ns: float) -> str:
    """A predicted time with two significant digits, such as "280 µs"."""
    size, unit = _unit_of(time_ns)
    value = float(f"{time_ns / size:.1e}")
    return f"{value:,.{1 if abs(value) < 10 and size > 1 else 0}f} {unit}"


def ranged(time_ns: int, low_ns: int, high_ns: int) -> str:
    """A predicted time with its range, such as "48 µs (41 to 74)"."""
    return str(range_of(time_ns, low_ns, high_ns))


def range_of(time_ns: int, low_ns: int, high_ns: int) -> Range:
    """A predicted time with its range: rounded to about a tenth of the
    range, but no figure of it moves by more than an eightieth of the largest, so that a reader's
    sums and shares of what is shown agree with those of what is not.
    """
    size, unit = _unit_of(max(abs(time_ns), abs(low_ns), abs(high_ns)))
    tenth = max(high_ns - low_ns, 1) / 10 / size
    digits = max(0, min(2, math.floor(-math.log10(tenth / 2)))) if size > 1 else 0
    finest = _MOVES * max(abs(time_ns), abs(low_ns), abs(high_ns), 1) / size
    # whole tens and hundreds, where the range is as wide
    step = 10 ** max(0, math.floor(math.log10(min(tenth, finest))))
    shown = [
        _plain(round(value / size / step) * step if step > 1 else value / size, digits)
        for value in (time_ns, low_ns, high_ns)
    ]
    return Range(shown[0], shown[1], shown[2], unit)


def told_change(
    before_ns: int, saving_ns: int, low_ns: int, high_ns: int
) -> tuple[str, str, str, str, str]:
    """The time before a change and after it, what it saves, and the ends of the range of that, in
    microseconds without the unit: rounded to about a tenth of that range, and the time after it is
    the difference of the two as they are shown.
    """
    tenth = max(high_ns - low_ns, 1) / 1e4
    digits = max(0, min(2, math.floor(-math.log10(tenth / 2))))
    before, saving = (round(time_ns / 1e3, digits) for time_ns in (before_ns, saving_ns))
    shown = [
        _plain(value, digits)
        for value in (before, before - saving, saving, low_ns / 1e3, high_ns / 1e3)
    ]
    return shown[0], shown[1], shown[2], shown[3], shown[4]


def rate(per_second: float) -> str:
    """A rate per second with three significant digits."""
    digits = 0 if per_second >= 100 else 1 if per_second >= 10 else 2
    step = 10 ** max(0, math.floor(math.log10(per_second)) - 2) if per_second >= 100 else 1
    return (
        f"{round(per_second / step) * step:,.{digits}f}"
        if digits == 0
        else f"{per_second:,.{digits}f}"
    )


def rate_range(per_second: float, low: float, high: float) -> Range:
    """A predicted rate with its range, such as "5,700 (4,700 to 6,300)": rounded as times are, at
    most three digits.
    """
    coarsest = min(max(high - low, 1e-9) / 5, _MOVES * max(per_second, high, 1e-9))
    step = 10.0 ** max(
        math.floor(math.log10(coarsest)), math.floor(math.log10(max(per_second, 1e-9))) - 2
    )
    digits = max(0, -math.floor(math.log10(step)))
    shown = [_plain(round(value / step) * step, digits) for value in (per_second, low, high)]
    return Range(shown[0], shown[1], shown[2])


def _plain(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _unit_of(time_ns: float) -> tuple[int, str]:
    return next(
        (size, unit)
        for size, unit in _DURATIONS
        if abs(time_ns) >= size * (_FROM if size > 1_000 else 1) or size == 1
    )
