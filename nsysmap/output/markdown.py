"""Writes the report as Markdown for a comment on GitHub: a short first page with everything else
folded below it, and nothing that mentions a person or an issue, whatever the names contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nsysmap.answer import first
from nsysmap.answer.model import Answer
from nsysmap.output.answers import whole_answer
from nsysmap.output.first import first_sections
from nsysmap.output.sections import sections_of
from nsysmap.text.page import Bullets, Grid, Section, cut_rows
from nsysmap.text.page_html import HtmlLook, folded_html
from nsysmap.text.page_markdown import beside_row, block_markdown
from nsysmap.text.terminal import plain

COMMENT = 65_536
"""Characters that GitHub takes in a comment."""

LINES = 40
"""Lines of the report at most; a section that is folded is one."""

_LOOK = HtmlLook(right=' align="right"', quiet=True)


def report_markdown(report: Answer) -> str:
    """The report as GitHub-flavoured Markdown within the length of a comment: the longest tables
    lose their last rows, and say so.
    """
    head = list(_first(report))
    sections = [_cut(one) for one in (*whole_answer(report), *sections_of(report))]
    while (beyond := _length(head, sections) - COMMENT) > 0:
        shorter = _shorter(sections, beyond)
        if shorter == sections:
            break
        sections = shorter
    folded = _folded(sections)
    room = LINES - len(head)
    # what has no line of its own stands behind the last that has
    return "\n".join([*head, *folded[: room - 1], "".join(folded[room - 1 :])]).rstrip() + "\n"


def _cut(section: Section) -> Section:
    """The section with the first rows of its longest tables and lists."""
    blocks = tuple(
        cut_rows(one, one.top) if isinstance(one, Grid | Bullets) and one.top else one
        for one in section.blocks
    )
    return replace(section, blocks=blocks)


def _first(report: Answer) -> Iterator[str]:
    """The lines of the first page."""
    yield f"**{plain(first.headline(report))}**"
    yield ""
    if report.selected:
        yield from (plain(report.selected), "")
    sections = list(first_sections(report))
    yield from ("| | |", "| --- | --- |")
    yield from (beside_row(one) for one in sections if one.beside)
    for section in (one for one in sections if not one.beside):
        yield from ("", f"**{plain(section.heading)}**", "")
        for block in section.blocks:
            yield from block_markdown(block).splitlines()
    yield ""


def _folded(sections: Sequence[Section]) -> list[str]:
    return [" ".join(folded_html(one, _LOOK).split("\n")) for one in sections]


def _length(head: Sequence[str], sections: Sequence[Section]) -> int:
    return sum(len(part) + 1 for part in (*head, *_folded(sections)))


def _shorter(sections: Sequence[Section], beyond: int) -> list[Section]:
    """The sections, with the longest table or list shortened by about that many characters, but not
    below half of it.
    """
    sizes = {
        (at, place): len(folded_html(replace(section, blocks=(block,)), _LOOK))
        for at, section in enumerate(sections)
        for place, block in enumerate(section.blocks)
        if isinstance(block, Grid | Bullets) and _rows(block) > 1
    }
    if not sizes:
        return list(sections)
    at, place = max(sizes, key=lambda where: sizes[where])
    block = sections[at].blocks[place]
    assert isinstance(block, Grid | Bullets)
    size = sizes[at, place]
    most = min(max(_rows(block) * max(size - beyond, size // 2) // size, 1), _rows(block) - 1)
    kept = replace(
        cut_rows(block, most),
        where=f"a comment of GitHub has {COMMENT:,} characters; all: nsysmap REPORT ENGINE --full",
    )
    blocks = (*sections[at].blocks[:place], kept, *sections[at].blocks[place + 1 :])
    return [
        *sections[:at],
        replace(sections[at], blocks=blocks),
        *sections[at + 1 :],
    ]


def _rows(block: Grid | Bullets) -> int:
    return len(block.rows if isinstance(block, Grid) else block.items)


def write_markdown(report: Answer, path: Path) -> None:
    """Write the report to ``path``."""
    path.write_bytes(report_markdown(report).encode("utf-8", "backslashreplace"))
