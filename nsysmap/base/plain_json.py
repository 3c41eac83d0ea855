"""Untrusted JSON: none of its numbers is larger than a column or a float can hold."""

from __future__ import annotations

import json
import math
from typing import Any

MOST_VALUES = 20_000_000
"""Of one text: an empty list takes 3 characters of a file and 70 bytes of memory.  Engines of 300,000 layers have some 6 million."""

_DIGITS = 18  # 64 bits hold every whole number of so many


def plain_json(text: str, *, strict: bool = True) -> Any:
    """The value; NaN and infinities are text, whole numbers of more than 64 bits floats.

    ValueError where it is no JSON, has more than MOST_VALUES values or a whole number of hundreds of digits, RecursionError where it is
    nested too deeply.
    """
    if values_in(text) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values")  # each caller says it in its own words
    return json.loads(text, parse_constant=str, parse_int=_whole, parse_float=_real, strict=strict)


def values_in(text: str) -> int:
    """How many values a text of JSON may have at most, counted before they are made."""
    return text.count(",") + text.count("[") + text.count("{") + 1


def _whole(digits: str) -> int | float:
    if len(digits) <= _DIGITS:
        return int(digits)
    value = float(digits)
    if math.isinf(value):
        raise ValueError("a whole number of hundreds of digits")  # each caller says it in its own words
    return int(digits) if -(2**63) <= int(digits) < 2**63 else value


def _real(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text
