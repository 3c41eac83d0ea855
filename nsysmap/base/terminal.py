"""Text for a terminal: control characters escaped, widths counted in columns."""

from __future__ import annotations

import unicodedata


def escaped(text: str) -> str:
    """The text with control characters (and what else has no glyph) escaped, so that a name cannot drive the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def columns(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def shortened(text: str, width: int) -> str:
    """The text in at most that many columns: what is longer loses its middle."""
    if columns(text) <= width:
        return text
    left, right = "", ""
    for head, tail in zip(text, reversed(text), strict=True):
        if columns(left + head + right) > width - 1:
            break
        left += head
        if columns(left + tail + right) > width - 1:
            break
        right = tail + right
    return f"{left}…{right}"
