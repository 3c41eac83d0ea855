"""Shows an analysis in a notebook: the answer as an HTML fragment, or the page in a frame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from nsysmap.answer import first
from nsysmap.answer.model import Answer
from nsysmap.output.first import first_sections
from nsysmap.text.page import Section
from nsysmap.text.page_html import HtmlLook, block_html, folded_html, inert

_HEAD = ' style="text-align:left;vertical-align:top;white-space:nowrap"'
_CELL = ' style="text-align:left;vertical-align:top;overflow-wrap:anywhere"'

_MOST_ROWS = 20  # of a table in a section
_LOOK = HtmlLook(
    left=' style="text-align:left"', right=' style="text-align:right"', most=_MOST_ROWS
)


def notebook_html(answer: Answer, sections: Iterable[Section] = ()) -> str:
    """The first page as a table, and the sections below it, closed until they are opened; without
    style sheets and scripts.
    """
    head = f"<p><b>{inert(first.headline(answer))}</b></p>"
    rows = [("part", inert(answer.selected))] if answer.selected else []
    rows += [(one.heading, _told(one)) for one in first_sections(answer) if one.beside]
    table = "".join(
        f"<tr><th{_HEAD}>{inert(word)}</th><td{_CELL}>{body}</td></tr>" for word, body in rows
    )
    costs = "".join(
        f"<p><b>{inert(one.heading)}</b></p>{_told(one)}"
        for one in first_sections(answer)
        if not one.beside
    )
    below = "".join(folded_html(section, _LOOK) for section in sections)
    return f"{head}<table>{table}</table>{costs}{below}"


def _told(section: Section) -> str:
    return "".join(block_html(block, _LOOK) for block in section.blocks)


@dataclass(frozen=True)
class FramedPage:
    """An interactive page, as a notebook shows it: in a frame of its own, which loads nothing, and
    whose scripts cannot reach the notebook.
    """

    html: str
    height: int  # pixels

    def __repr__(self) -> str:
        return f"<interactive page of {len(self.html):,} characters, which notebooks show>"

    def _repr_html_(self) -> str:
        return (
            '<iframe title="nsysmap" sandbox="allow-scripts allow-downloads"'
            f' style="width:100%;height:{self.height}px;border:1px solid #8888"'
            f' srcdoc="{escape(self.html)}"></iframe>'
        )
