"""Lines for a terminal: tables, headings, wrapped sentences; in colour if wanted."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from nsysmap.text.terminal import between_words, columns, escaped, shortened, told_apart

Style = Literal["", "bold", "dim", "yellow", "red"]
Line = tuple[tuple[str, Style], ...]
"""Pieces of one line, each with its style."""

_CODES = {"bold": "1", "dim": "2", "yellow": "33", "red": "1;31"}
_LONGEST_WORD = 56  # columns: a longer word leaves no room for another column
_NARROWEST_COLUMN = 10  # columns in which a name can still be told from others
_GAP = 2  # columns between those of a table
_FAIR = 0.5  # share of the width that the last column keeps before others are cut
_PROSE = 110  # widest lines of prose; longer ones are hard to read
WHOLE = 1 << 20
"""A width that cuts nothing, for pipes and files."""


def rendered(lines: Iterable[Line], *, colour: bool) -> str:
    """The lines as text, with ANSI colours if ``colour``; without trailing spaces and without empty
    lines at the end.
    """
    return "\n".join(_rendered(line, colour=colour) for line in lines).rstrip("\n") + "\n"


def _rendered(line: Line, *, colour: bool) -> str:
    pieces = [piece for piece in line if piece[0]]
    while pieces and not pieces[-1][0].rstrip():
        pieces.pop()
    if pieces:
        pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
    return "".join(
        f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and style else text
        for text, style in pieces
    )


def folded(
    text: str, width: int, *, first: str = "", later: str = "", whole: bool = False
) -> list[str]:
    """The text in lines of that width, the first and the later ones after their leads; long words
    are broken unless ``whole``.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=not whole,
    ) or [first.rstrip()]


def styled(text: str, style: Style = "") -> Line:
    """One line in one style."""
    return ((text, style),)


def prose_width(width: int) -> int:
    """The width to which sentences are wrapped."""
    return min(width, _PROSE)


def heading(text: str, width: int) -> list[Line]:
    """A heading, wrapped."""
    return [
        styled(line, "bold")
        for line in textwrap.wrap(escaped(text), prose_width(width), subsequent_indent="  ")
    ]


def wrapped(
    text: str, width: int, *, indent: int = 2, hang: int = 2, style: Style = ""
) -> list[Line]:
    """A sentence in lines, the second and later ones indented by ``hang`` more; the middle of very
    long words is cut out.
    """
    lead = " " * indent
    words = " ".join(
        word if width >= WHOLE else between_words(word, _LONGEST_WORD)
        for word in escaped(text).split()
    )
    lines = textwrap.wrap(
        words,
        prose_width(width),
        initial_indent=lead,
        subsequent_indent=lead + " " * hang,
        break_on_hyphens=False,
        break_long_words=width < WHOLE,
    )
    return [styled(line, style) for line in lines]


def pairs(rows: Sequence[tuple[str, str]], width: int, *, indent: int = 2) -> list[Line]:
    """One word and one text per line, the texts aligned and wrapped."""
    words = max((columns(word) for word, _ in rows), default=0)
    lines: list[Line] = []
    for word, text in rows:
        first, *others = textwrap.wrap(
            escaped(text),
            max(prose_width(width) - words - indent - 2, 20),
            break_on_hyphens=False,
            break_long_words=width < WHOLE,
        ) or [""]
        lines.append(styled(f"{' ' * indent}{word.ljust(words)}  {first}"))
        lines.extend(styled(" " * (words + indent + 2) + line) for line in others)
    return lines


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    columns_are: str,
    *,
    indent: int = 2,
) -> list[Line]:
    """Columns side by side: l left, k left and never cut, r right, n names that stay distinct when
    cut, d left and dim.

    The last one may be wrapped: w, or h as a dim hint.

    Where all of them are too wide, two columns of names at the end share what is left; else the
    last one gives way down to half of the width, then the widest other text columns.
    """
    widths = _widths(header, rows, columns_are, width, indent)
    cells = [list(row) for row in rows]
    for i, kind in enumerate(columns_are):
        if kind in "wh":
            continue
        fitted = (
            told_apart([row[i] for row in cells], widths[i])
            if kind == "n"
            else [shortened(row[i], widths[i]) for row in cells]
        )
        for row, cell in zip(cells, fitted, strict=True):
            row[i] = cell
    lines: list[Line] = []
    for row, is_header in [
        *([(list(header), True)] if any(header) else []),
        *((row, False) for row in cells),
    ]:
        lines.extend(_row(row, widths, columns_are, indent, is_header=is_header))
    return lines


def fits(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    columns_are: str,
    *,
    indent: int = 2,
) -> bool:
    """Whether a `table` of these rows fits the width with its text columns as narrow as
    possible.
    """
    return (
        indent + sum(_widths(header, rows, columns_are, width, indent)) + _GAP * (len(header) - 1)
        <= width
    )


def _widths(
    header: Sequence[str], rows: Sequence[Sequence[str]], columns_are: str, width: int, indent: int
) -> list[int]:
    widths = [max(columns(row[i]) for row in (header, *rows)) for i in range(len(header))]
    if columns_are.endswith("nn"):
        names = [len(widths) - 2, len(widths) - 1]
        left = (
            width - indent - _GAP * (len(widths) - 1) - sum(widths) + sum(widths[i] for i in names)
        )
        for done, i in enumerate(sorted(names, key=lambda i: widths[i])):
            widths[i] = min(widths[i], max(left // (len(names) - done), _NARROWEST_COLUMN))
            left -= widths[i]
    last, others = len(widths) - 1, sorted(range(len(widths) - 1), key=lambda i: -widths[i])
    for i, least in [
        (last, int(_FAIR * width)),
        *((i, _NARROWEST_COLUMN) for i in others),
        (last, _NARROWEST_COLUMN),
    ]:
        too_wide = indent + sum(widths) + _GAP * (len(widths) - 1) - width
        if too_wide > 0 and columns_are[i] not in "kr":
            widths[i] = max(min(least, widths[i]), widths[i] - too_wide)
    return widths


def _row(
    row: Sequence[str], widths: Sequence[int], columns_are: str, indent: int, *, is_header: bool
) -> Iterator[Line]:
    last = (
        [row[-1]]
        if columns_are[-1] not in "wh"
        else folded(row[-1], max(min(widths[-1], _PROSE), 1))
    )
    pieces: list[tuple[str, Style]] = []
    for i, whole in enumerate((*row[:-1], last[0])):
        cell = shortened(whole, widths[i])
        padding = " " * max(0, widths[i] - columns(cell))
        style: Style = "dim" if is_header or columns_are[i] in "dh" else ""
        pieces.append(
            (
                " " * (_GAP if i else indent)
                + (padding + cell if columns_are[i] == "r" else cell + padding),
                style,
            )
        )
    yield tuple(pieces)
    for line in last[1:]:
        yield (
            (
                " " * (indent + sum(widths[:-1]) + _GAP * (len(widths) - 1)) + line,
                "dim" if columns_are[-1] == "h" else "",
            ),
        )
