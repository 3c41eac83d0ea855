"""A page, laid out as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsysmap.text.lines import WHOLE, Line, heading, pairs, rendered, styled, table, wrapped
from nsysmap.text.page import (
    Block,
    Bullets,
    Grid,
    Instructions,
    Page,
    Pairs,
    Paragraph,
    Section,
    Subheading,
    more_words,
)
from nsysmap.text.terminal import escaped, shortened


def page_text(page: Page, width: int | None, *, colour: bool = False) -> str:
    """A page for a terminal of ``width`` columns; names are not cut if it is None."""
    room = WHOLE if width is None else width
    lines = heading(f"nsysmap: {page.title}", room)
    for number, text in enumerate(page.answer):
        lines += [
            *([styled("")] if number == 0 else []),
            *wrapped(text, room, indent=0, style=page.style if number == 0 else ""),
        ]
    for section in page.sections:
        lines += [styled(""), *section_lines(section, room)]
    return rendered(lines, colour=colour).rstrip("\n")


def section_lines(section: Section, width: int) -> list[Line]:
    """The section in lines of at most that width."""
    lines = heading(section.heading, width)
    for block in section.blocks:
        lines += block_lines(block, width)
    return lines


def block_lines(block: Block, width: int) -> Iterator[Line]:
    """A block in lines of at most that width; none if another command shows it on a terminal."""
    if isinstance(block, Grid):
        yield from grid_lines(block, width)
    elif isinstance(block, Pairs):
        yield from pairs(block.rows, width)
    elif isinstance(block, Subheading):
        yield styled(shortened(f"  {escaped(block.text)}", width), block.style)
    elif isinstance(block, Paragraph):
        if block.terminal:
            yield from wrapped(block.text, width, indent=block.indent, style=block.style)
    elif isinstance(block, Bullets):
        if block.terminal:
            yield from _bullets(block, width)
    elif isinstance(block, Instructions):
        yield from _steps(block, width)
    else:
        text = " ".join(block.text.split())
        yield from wrapped(f"→ {text}", width, indent=4, style="dim")


def grid_lines(grid: Grid, width: int) -> list[Line]:
    """The table in lines of at most that width."""
    rows = [_escaped(row) for row in grid.rows]
    lines = table(grid.header, rows, width, grid.align) if rows else []
    return [*lines, styled(f"  {more_words(grid)}", "dim")] if grid.more else lines


def _steps(block: Instructions, width: int) -> Iterator[Line]:
    for number, step in enumerate(block.steps, 1):
        yield from wrapped(f"{number}. {step.text}" if block.numbered else f"{step.text}:", width)
        for line in step.lines:
            yield styled(f"     {escaped(line)}", "yellow")
        yield from wrapped(step.change, width, indent=5, hang=0)


def _escaped(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(escaped, row))


def _bullets(block: Bullets, width: int) -> Iterator[Line]:
    for item in block.items:
        yield from wrapped(f"{block.mark}{item}", width, indent=block.indent, style=block.style)
    if block.more:
        yield from wrapped(more_words(block), width, indent=block.indent, style="dim")
