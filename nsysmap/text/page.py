"""The content to be shown, as values: a page of sections, made once and laid out by every form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nsysmap.core.records import dataclass
from nsysmap.text.lines import Style


@dataclass(frozen=True)
class Grid:
    """A table as it is shown; ``align`` has one letter per column, as in `lines.table`.

    Cells hold names as they stand in the files: every form makes them inert.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    more: int = 0  # rows that are not shown
    # of each row its layers on both sides of a comparison: layer ids separated by dots, or empty
    places: tuple[tuple[str, str], ...] = ()
    names: tuple[int, ...] = ()  # columns of names out of a file: code, in a form that has code
    tips: tuple[str, ...] = ()  # of each row what a form with a pointer shows under it, or empty
    fold: str = ""  # what stands in its place until it is opened, in a form that folds
    top: int = 0  # rows in a form with little room, 0 for all
    where: str = ""  # where those that are not shown are, or why they are not
    command: str = ""  # that shows all


@dataclass(frozen=True)
class Paragraph:
    """Sentences; the style and the indentation are for terminals."""

    text: str
    style: Style = ""
    indent: int = 2
    terminal: bool = True  # False where a command of its own shows it on a terminal


@dataclass(frozen=True)
class Bullets:
    """A list; on a terminal each item begins with the mark."""

    items: tuple[str, ...]
    mark: str = ""
    style: Style = ""
    indent: int = 2
    terminal: bool = True
    top: int = 0  # items in a form with little room, 0 for all
    more: int = 0  # items that are not shown
    where: str = ""  # where those that are not shown are, or why they are not
    command: str = ""  # that shows all


@dataclass(frozen=True)
class Pairs:
    """A word and a text per line."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Subheading:
    """A heading within a section; on a terminal one line of that style."""

    text: str
    style: Style = ""


@dataclass(frozen=True)
class Meter:
    """A bar that is full to a share, and what that is the share of."""

    share: float
    text: str


@dataclass(frozen=True)
class Instruction:
    """Something to do: in a sentence, what it brings, in lines to paste, in what to change where no
    line does it, and why; ``name`` is that of the change or rule, to link to.
    """

    text: str
    lines: tuple[str, ...] = ()
    change: str = ""
    gain: str = ""
    why: str = ""
    name: str = ""


@dataclass(frozen=True)
class Instructions:
    """What to do; numbered if the order matters."""

    steps: tuple[Instruction, ...]
    numbered: bool = True


@dataclass(frozen=True)
class Advice:
    """What to do, in the lines that its author wrote."""

    text: str


Block = Grid | Paragraph | Bullets | Pairs | Subheading | Instructions | Advice | Meter


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; ``key`` names the section whatever its heading says.

    ``beside``: the heading is a word, which stands at the left of the blocks in a form that has
    little room.
    """

    key: str
    heading: str
    blocks: tuple[Block, ...]
    beside: bool = False


@dataclass(frozen=True)
class Page:
    """The answer in sentences, and the sections with the details."""

    title: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]
    style: Style = "bold"  # of the first line of the answer


def paragraphs(texts: Sequence[str]) -> tuple[Paragraph, ...]:
    """One paragraph per text; none for an empty one."""
    return tuple(Paragraph(text) for text in texts if text)


def notes_section(texts: Sequence[str]) -> tuple[Section, ...]:
    """The section of notes; none without any."""
    return (Section("notes", "Notes", (Bullets(tuple(texts), "· "),)),) if texts else ()


def cut_rows(block: Grid | Bullets, most: int) -> Grid | Bullets:
    """The table or list limited to that many rows or items, with the number of those left out."""
    if isinstance(block, Grid):
        left_out = max(len(block.rows) - most, 0)
        return replace(
            block,
            rows=block.rows[:most],
            places=block.places[:most],
            tips=block.tips[:most],
            more=block.more + left_out,
        )
    left_out = max(len(block.items) - most, 0)
    return replace(block, items=block.items[:most], more=block.more + left_out)


def more_words(block: Grid | Bullets) -> str:
    """How many rows or items are not shown, and where they are; empty if all are."""
    where = f": {block.where}" if block.where else ""
    return f"… and {block.more:,} more{where}" if block.more else ""


def tabled(
    key: str,
    heading: str,
    header: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    align: str,
    *,
    more: int = 0,
    places: tuple[tuple[str, str], ...] = (),
) -> Section:
    """A section with one table, which leaves out ``more`` rows."""
    return Section(key, heading, (Grid(header, tuple(rows), align, more, places),))


def grid_of(section: Section) -> Grid | None:
    """The first table of a section that has rows; None if there is none."""
    return next((one for one in section.blocks if isinstance(one, Grid) and one.rows), None)
