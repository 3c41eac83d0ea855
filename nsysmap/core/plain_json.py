"""Untrusted JSON: none of its numbers is larger than a column or a float can hold."""

from __future__ import annotations

import json
import math
from typing import Any

MOST_VALUES = 20_000_000
"""Values in one text at most: an empty list takes 3 characters in a file and 70 bytes of memory.

Engines with 300,000 layers have about 6 million."""

_DIGITS = 18  # digits of an integer that always fits into 64 bits


def plain_json(text: str, *, strict: bool = True) -> Any:
    """The value; NaN and infinities become text, integers of more than 64 bits become floats.

    Raises ValueError if it is not JSON, has more than MOST_VALUES values or an integer of hundreds
    of digits, and RecursionError if it is nested too deeply.
    """
    if values_in(text) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values")  # each caller words it differently
    return json.loads(text, parse_constant=str, parse_int=_whole, parse_float=_real, strict=strict)


def values_in(text: str) -> int:
    """An upper bound of the number of values in a JSON text, counted before they are made."""
    return text.count(",") + text.count("[") + text.count("{") + 1


def _whole(digits: str) -> int | float:
    if len(digits) <= _DIGITS:
        return int(digits)
    value = float(digits)
    if math.isinf(value):
        raise ValueError("an integer of hundreds of digits")  # each caller words it differently
    return int(digits) if -(2**63) <= int(digits) < 2**63 else value


def _real(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text
