"""JSON from strangers: no number in it is more than a column or a float can hold."""

from __future__ import annotations

import json
import math
from typing import Any

_DIGITS = 18  # 64 bits hold every whole number of so many


def plain_json(text: str, *, strict: bool = True) -> Any:
    """The value; NaN and infinities are text, whole numbers of more than 64 bits floats.

    ValueError where it is no JSON or a whole number has hundreds of digits, RecursionError where it is nested too deeply.
    """
    return json.loads(text, parse_constant=str, parse_int=_whole, parse_float=_real, strict=strict)


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
