"""A page, laid out as Markdown that GitHub renders as intended, whatever the names contain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsysmap.text.page import (
    Advice,
    Block,
    Bullets,
    Grid,
    Instructions,
    Meter,
    Page,
    Pairs,
    Paragraph,
    Section,
    Subheading,
    cut_rows,
    more_words,
)
from nsysmap.text.terminal import code, plain


def page_markdown(page: Page) -> str:
    """A page as Markdown."""
    parts = [f"# {plain(page.title)}", f"**{plain(page.answer[0])}**"]
    parts += [plain(text) for text in page.answer[1:]]
    for section in page.sections:
        parts += section_parts(section)
    return "\n\n".join(parts) + "\n"


def section_parts(section: Section) -> list[str]:
    """The section in parts between which empty lines stand."""
    return [
        f"## {plain(section.heading)}",
        *(part for block in section.blocks if (part := block_markdown(block))),
    ]


def block_markdown(block: Block) -> str:
    """A block as Markdown; of a long table or list the first rows."""
    if isinstance(block, Grid):
        return _grid(block)
    if isinstance(block, Bullets):
        return _bullets(block)
    if isinstance(block, Pairs):
        return _table(("", ""), "ll", [(plain(word), plain(text)) for word, text in block.rows])
    if isinstance(block, Paragraph):
        return plain(block.text)
    if isinstance(block, Subheading):
        return f"### {plain(block.text)}"
    if isinstance(block, Instructions):
        return "\n".join(line for one in _steps(block) for line in one)
    if isinstance(block, Meter):
        return plain(block.text)
    assert isinstance(block, Advice)
    return ">\n".join(f"> {plain(line)}\n" for line in block.text.splitlines()).rstrip("\n")


def beside_row(section: Section) -> str:
    """A section whose heading is a word, as a row of a table of two columns."""
    told = [part for block in section.blocks for part in _in_a_cell(block)]
    return f"| **{plain(section.heading)}** | {'<br>'.join(told)} |"


def _in_a_cell(block: Block) -> Iterator[str]:
    """The lines of a block within a cell of a table."""
    if isinstance(block, Instructions):
        for step in block.steps:
            yield f"**{plain(step.text)}**{f': {plain(step.gain)}' if step.gain else ''}"
            yield from map(code, step.lines)
            yield from (plain(text) for text in (step.change, step.why) if text)
    else:
        yield " ".join(block_markdown(block).splitlines())


def _grid(grid: Grid) -> str:
    shown = cut_rows(grid, grid.top) if grid.top else grid
    assert isinstance(shown, Grid)
    rows = [
        [code(cell) if at in grid.names else plain(cell) for at, cell in enumerate(row)]
        for row in shown.rows
    ]
    parts = [_table(shown.header, shown.align, rows)] if rows else []
    parts += [_more(shown)] if shown.more else []
    if grid.fold:
        parts = [f"<details><summary>{plain(grid.fold)}</summary>", *parts, "</details>"]
    return "\n\n".join(parts)


def _steps(block: Instructions) -> Iterator[list[str]]:
    for number, step in enumerate(block.steps, 1):
        if block.numbered:
            below = [code(line) for line in step.lines] + (
                [plain(step.change)] if step.change else []
            )
            told = f"{step.text}: {step.gain}" if step.gain else step.text
            below += [plain(step.why)] if step.why else []
            yield [f"{number}. {plain(told)}", *(f"   - {one}" for one in below)]
        else:
            how = [*map(code, step.lines), *([plain(step.change)] if step.change else [])]
            yield [f"- {plain(step.text)}{': ' if how else ''}{' '.join(how)}"]


def _bullets(block: Bullets) -> str:
    shown = cut_rows(block, block.top) if block.top else block
    assert isinstance(shown, Bullets)
    lines = [f"- {plain(item)}" for item in shown.items]
    return "\n".join([*lines, *([f"- {_more(shown)}"] if shown.more else [])])


def _more(block: Grid | Bullets) -> str:
    """How many rows or items are not shown, and the command that shows them, if there is one."""
    command = f"; all: {code(block.command)}" if block.command else ""
    return plain(more_words(block)) + command


def _table(header: Sequence[str], align: str, rows: Sequence[Sequence[str]]) -> str:
    marks = ["---:" if kind == "r" else "---" for kind in align]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, marks, *rows))
