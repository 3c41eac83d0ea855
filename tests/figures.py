"""The figures of a sentence: what it says, whatever its words."""

from __future__ import annotations

import re


def figures(text: str) -> list[str]:
    """The numbers in a text in their order, without those that are part of a name."""
    return re.findall(r"(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])", text)
