"""The report as Markdown that GitHub renders as intended, whatever the names contain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from nsysmap.answer import words
from nsysmap.answer.model import Answer
from nsysmap.output.answers import AnswerRow, above_actions, below_actions, costs_section, do_first
from nsysmap.output.sections import sections_of
from nsysmap.text.page import Bullets, Grid, Pairs, Section, cut_rows
from nsysmap.text.page_markdown import block_markdown, section_parts
from nsysmap.text.terminal import code, pasted, plain

COMMENT = 65_536
"""Characters that GitHub takes in a comment."""

_BETWEEN = 2  # characters between two parts
_CUT_LINE = 200  # characters of the line that says what was cut


def report_markdown(report: Answer) -> str:
    """The report as GitHub-flavoured Markdown, as long as a comment may be: the longest tables lose
    their last rows, and say so.
    """
    summary = report
    head = [part for part in _answer(summary) if part]
    costs = costs_section(summary)
    sections = [*((costs,) if costs else ()), *sections_of(report)]
    while (beyond := _length(head, sections) - COMMENT) > 0:
        shorter = _shorter(sections, beyond, summary)
        if shorter == sections:
            break
        sections = shorter
    parts = [*head, *(part for section in sections for part in section_parts(section))]
    return "\n\n".join(parts) + "\n"


def _length(head: Sequence[str], sections: Sequence[Section]) -> int:
    parts = [*head, *(part for section in sections for part in section_parts(section))]
    return sum(len(part) + _BETWEEN for part in parts)


def _shorter(sections: Sequence[Section], beyond: int, summary: Answer) -> list[Section]:
    """The sections, the longest table or list of them without as many of its last rows as have
    about so many characters, but not below half of it.
    """
    sizes = {
        (at, place): len(block_markdown(block))
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
    room = max(size - beyond - _CUT_LINE, size // 2)
    most = min(max(_rows(block) * room // size, 1), _rows(block) - 1)
    files = " ".join(map(pasted, (*(engine.source for engine in summary.engines), summary.source)))
    kept = replace(
        cut_rows(block, most),
        where=f"a comment of GitHub has {COMMENT:,} characters",
        command=f"nsysmap analyze {files} --full",
    )
    blocks = (*sections[at].blocks[:place], kept, *sections[at].blocks[place + 1 :])
    return [
        *sections[:at],
        replace(sections[at], blocks=blocks),
        *sections[at + 1 :],
    ]


def _rows(block: Grid | Bullets) -> int:
    """How many rows of it are shown."""
    held = len(block.rows if isinstance(block, Grid) else block.items)
    return min(held, block.top) if block.top else held


def write_markdown(report: Answer, path: Path) -> None:
    """Write the report to ``path``."""
    path.write_bytes(report_markdown(report).encode("utf-8", "backslashreplace"))


def _answer(summary: Answer) -> Iterator[str]:
    yield f"# nsysmap: {code(summary.source)}"
    if summary.selected:
        yield plain(summary.selected)
    yield "\n".join(f"- **error:** {plain(text)}" for text in summary.blocked)
    ran = words.ran(summary)
    yield _said([AnswerRow("ran", "what ran", ((ran,),)), *above_actions(summary)])
    yield "## Do first"
    yield from map(block_markdown, do_first(summary))
    yield _said(below_actions(summary, " (all are listed below)"))


def _said(answers: Iterator[AnswerRow] | Sequence[AnswerRow]) -> str:
    rows = tuple((one.word, text) for one in answers for text in one.texts)
    return block_markdown(Pairs(rows))
