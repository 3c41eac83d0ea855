"""Reads the numbers and units that Nsight Compute prints, in any locale."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"[-+]?[0-9][0-9.,'’_   ]*(?:[eE][-+]?[0-9]+)?")
_SPACES = str.maketrans("", "", "'’_   ")

_LARGEST = 1e30  # of a counter; scaled to its base unit such a number is finite
_SCALES = {
    "": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "ki": 1024.0, "mi": 1024.0**2,
    "gi": 1024.0**3, "ti": 1024.0**4,
}  # fmt: skip
_TIMES = {
    "nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "µs": 1e3, "μs": 1e3, "msecond": 1e6,
    "ms": 1e6, "second": 1e9, "s": 1e9,
    "sec": 1e9, "minute": 60e9, "hour": 3600e9,
}  # fmt: skip
_COUNTED = re.compile(
    r"(ki|mi|gi|ti|k|m|g|t|p)?(bytes?|b|hz|inst|cycles?|sectors?|warps?|blocks?|requests?|threads?|registers?)\Z",
    re.IGNORECASE,
)


def decimal_mark(values: Iterable[str]) -> str:
    """The decimal mark in these numbers, "." or ",": from those that can be read in only one way;
    "." if there are none.
    """
    votes = {".": 0, ",": 0}
    for value in values:
        points, commas = value.count("."), value.count(",")
        if points and commas:
            votes["." if value.rfind(".") > value.rfind(",") else ","] += 2
        elif points > 1:
            votes[","] += 2
        elif commas > 1:
            votes["."] += 2
        elif points or commas:
            mark = "." if points else ","
            whole, _, rest = value.partition(mark)
            digits = len(re.sub(r"[^0-9].*", "", rest))
            if digits != 3 or whole.lstrip("+-") in ("0", ""):
                votes[mark] += 1
    return "," if votes[","] > votes["."] else "."


def number(text: str, mark: str) -> float | None:
    """The number in a text, or the first of a list of instances; None for none, n/a and values that
    are not finite.
    """
    found = _NUMBER.match(text.strip().removeprefix("(!) "))
    if found is None:
        return None
    digits = found.group().translate(_SPACES)
    digits = digits.replace("," if mark == "." else ".", "").replace(mark, ".")
    try:
        value = float(digits)
    except ValueError:
        return None
    return value if abs(value) < _LARGEST else None


def in_base_unit(value: float, unit: str) -> tuple[float, str]:
    """The value in ns, bytes, Hz, percent or counts, and which of these; an unknown unit is
    kept.
    """
    amount, _, per = unit.strip().partition("/")
    scaled, base = _scaled(value, amount)
    if not per:
        return scaled, base
    if base == "cycle" and per.casefold() in _TIMES:
        return scaled / _TIMES[per.casefold()] * 1e9, "hz"
    if per.casefold() in _TIMES:
        return scaled / _TIMES[per.casefold()] * 1e9, f"{base}/s"
    return scaled, f"{base}/{per}"


def _scaled(value: float, unit: str) -> tuple[float, str]:
    if unit.casefold() in _TIMES:
        return value * _TIMES[unit.casefold()], "ns"
    if unit == "%":
        return value, "%"
    found = _COUNTED.match(unit)
    if found is None:
        return value, unit
    base = found.group(2).casefold()
    base = "byte" if base in ("b", "byte", "bytes") else base.rstrip("s") if base != "hz" else base
    return value * _SCALES[(found.group(1) or "").casefold()], base
