"""The parts of a page, laid out as HTML without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from nsysmap.core.records import dataclass
from nsysmap.text.page import (
    Block,
    Bullets,
    Grid,
    Instructions,
    Meter,
    Pairs,
    Paragraph,
    Section,
    Subheading,
    cut_rows,
    more_words,
)
from nsysmap.text.terminal import escaped, quiet


@dataclass(frozen=True)
class HtmlLook:
    """The attributes that make the parts look as the page around them does."""

    table: str = ""
    left: str = ""  # of cells with text …
    right: str = ""  # … and with figures
    dim: str = ""
    scroll: str = ""  # of what lies around a wide table
    most: int = 0  # rows of a table, 0 for all
    elsewhere: str = ""  # where the rows are that are not shown, in HTML
    quiet: bool = False  # texts are those of a comment, which must call nobody and nothing

    def inert(self, text: str) -> str:
        """The text made inert for the page that it stands in."""
        if not self.quiet:
            return inert(text)
        return quiet(inert(text).replace("](", "]&#40;"))  # the middle of a link


@dataclass(frozen=True)
class HtmlColumn:
    """A further column of a table, already in HTML."""

    heading: str
    cells: Sequence[str]


def inert(text: str) -> str:
    """The text made inert for HTML: no elements, control characters or changes of the writing
    direction.
    """
    return escape(escaped(text))


def folded_html(section: Section, look: HtmlLook) -> str:
    """The section, closed until it is opened."""
    body = "".join(block_html(block, look) for block in section.blocks)
    return f"<details><summary>{look.inert(section.heading)}</summary>{body}</details>"


def section_html(section: Section, look: HtmlLook, *, level: int = 2) -> str:
    """The section, with its key as the id to link to; its heading is of that level."""
    body = "\n".join(block_html(block, look) for block in section.blocks)
    heading = f"<h{level}>{look.inert(section.heading)}</h{level}>"
    head = f'<section id="{look.inert(section.key)}">\n{heading}'
    return "\n".join((head, body, "</section>"))


def block_html(block: Block, look: HtmlLook) -> str:
    """A block as HTML."""
    if isinstance(block, Grid):
        lines = "\n".join(grid_html(block, look))
        return f"<div{look.scroll}>{lines}</div>" if look.scroll else lines
    if isinstance(block, Bullets):
        items = "".join(f"<li>{look.inert(item)}</li>" for item in block.items)
        more = f"<li{look.dim}>{look.inert(more_words(block))}</li>" if block.more else ""
        return f"<ul>{items}{more}</ul>"
    if isinstance(block, Pairs):
        rows = "".join(
            f"<tr><th{look.left}>{look.inert(word)}</th><td{look.left}>{look.inert(text)}</td></tr>"
            for word, text in block.rows
        )
        return f"<table{look.table}>{rows}</table>"
    if isinstance(block, Paragraph):
        return f"<p>{look.inert(block.text)}</p>"
    if isinstance(block, Subheading):
        return f"<h3>{look.inert(block.text)}</h3>"
    if isinstance(block, Instructions):
        return "<br>".join(_steps(block, look))
    if isinstance(block, Meter):
        full = f'<meter min="0" max="1" value="{block.share:.4f}"></meter>'
        return f"<p>{full} {look.inert(block.text)}</p>"
    lines = "<br>".join(look.inert(line) for line in block.text.splitlines())
    return f"<p{look.dim}>{lines}</p>"


def _steps(block: Instructions, look: HtmlLook) -> Iterator[str]:
    for number, step in enumerate(block.steps, 1):
        told = f"{step.text}: {step.gain}" if step.gain else step.text
        yield f"{number}. {look.inert(told)}" if block.numbered else f"{look.inert(told)}:"
        yield from (f"<code>{look.inert(line)}</code>" for line in step.lines)
        yield from (look.inert(text) for text in (step.change, step.why) if text)


def grid_html(grid: Grid, look: HtmlLook, further: Sequence[HtmlColumn] = ()) -> list[str]:
    """The table as lines of HTML, with further columns behind its own."""
    shown = cut_rows(grid, look.most) if look.most else grid
    assert isinstance(shown, Grid)
    kinds = [
        look.right if kind == "r" else look.left if kind == "l" else "" for kind in shown.align
    ]
    lines = [f"<table{look.table}>"]
    if any(shown.header):
        cells = "".join(
            f"<th{kind}>{look.inert(text)}</th>"
            for kind, text in zip(kinds, shown.header, strict=True)
        )
        lines.append(f"<thead><tr>{cells}{''.join(one.heading for one in further)}</tr></thead>")
    lines.append("<tbody>")
    for at, row in enumerate(shown.rows):
        cells = "".join(
            f"<td{kind}>{look.inert(text)}</td>" for kind, text in zip(kinds, row, strict=True)
        )
        tip = shown.tips[at] if shown.tips and not look.quiet else ""
        hover = f' title="{look.inert(tip)}"' if tip else ""
        lines.append(f"<tr{hover}>{cells}{''.join(one.cells[at] for one in further)}</tr>")
    lines.append("</tbody></table>")
    if shown.more:
        lines.append(f"<p{look.dim}>{look.inert(more_words(shown))}{look.elsewhere}</p>")
    return lines
