"""The picture of an engine as plain shapes on a page, for every writer that draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nsysmap.core.records import dataclass
from nsysmap.output.picture.layout import BOX_HEIGHT, BOX_WIDTH, Point, Segment
from nsysmap.output.picture.model import Box, Picture
from nsysmap.output.picture.swatches import Legend, ink_on
from nsysmap.text.terminal import columns, escaped, told_apart, without_middle

TITLE_SIZE, SUBTITLE_SIZE = 10.5, 9.5
BORDER, EDGE, INK, FAINT = "#495057", "#868e96", "#1a1d21", "#5c636a"
STRIP_HEIGHT = 4.0  # at the bottom of a box, with the kinds of layers in it
HEAD_WIDTH, HEAD_LENGTH = 6.0, 6.0
"""Size of the arrowheads at the ends of lines."""
PADDING = 7.0  # between the edge of a box and its words
_ROOM = BOX_WIDTH - 2 * PADDING
_PAGE_MARGIN, _HEADING_SIZE, _LEGEND_SIZE, _LINE = 16.0, 15.0, 11.0, 18.0
_NARROWEST_PAGE = 640.0  # so that the heading and the legend have room
_NARROW_LETTER, _WIDE_LETTER = 0.42, 0.7  # of the size
_HEAD = re.compile(r"#\d+ (\w*[A-Za-z][./]\d+(?=\W))?")
_CUTS = re.compile(r"…( ?…)+")
_STEP = 3  # letters; finer takes longer, and saves two letters at most
_NARROW, _WIDE = frozenset("ijltfrI.,:;'|!()[]{}/ "), frozenset("mwMW@%")


@dataclass(frozen=True)
class Shape:
    """A rectangle: corner, size and colours."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Line:
    """Line segments that belong together, and the tips of their arrowheads (True: it points up)."""

    segments: tuple[Segment, ...]
    dashed: bool = False
    heads: tuple[tuple[Point, bool], ...] = ()


@dataclass(frozen=True)
class Words:
    """Text that begins at a point on its baseline."""

    x: float
    y: float
    text: str
    size: float
    ink: str = INK
    bold: bool = False


@dataclass(frozen=True)
class Drawing:
    """A page of shapes, in units of a CSS pixel; later ones lie on top."""

    width: float
    height: float
    lines: tuple[Line, ...]
    shapes: tuple[Shape, ...]
    words: tuple[Words, ...]


def drawing(picture: Picture) -> Drawing:
    """The first view of the picture in its colours, with title, notes and legend above it."""
    view = picture.views[0]
    width = max(view.layout.width, _NARROWEST_PAGE) + 2 * _PAGE_MARGIN
    shapes: list[Shape] = []
    words = [
        Words(
            _PAGE_MARGIN,
            _PAGE_MARGIN + _HEADING_SIZE,
            fitted(picture.title, width - 2 * _PAGE_MARGIN, _HEADING_SIZE),
            _HEADING_SIZE,
            bold=True,
        )
    ]
    y = _PAGE_MARGIN + _HEADING_SIZE + _LINE
    for note in picture.notes:
        words.append(
            Words(
                _PAGE_MARGIN,
                y,
                fitted(note, width - 2 * _PAGE_MARGIN, _LEGEND_SIZE),
                _LEGEND_SIZE,
                FAINT,
            )
        )
        y += _LINE
    y = _draw_legend(view.legends[picture.mode], (width, y), shapes, words)
    lines = [
        Line(
            shifted(trunk.segments, _PAGE_MARGIN, y),
            trunk.order,
            tuple(((at + _PAGE_MARGIN, down + y), up) for (at, down), up in trunk.heads),
        )
        for trunk in view.trunks
    ]
    titles = box_titles(view.boxes)
    for box, title, (left, top) in zip(view.boxes, titles, view.layout.boxes, strict=True):
        swatch = box.swatch[picture.mode]
        x0, y0 = left + _PAGE_MARGIN, top + y
        shapes.append(Shape(x0, y0, BOX_WIDTH, BOX_HEIGHT, swatch.fill, BORDER, swatch.untold))
        shapes.extend(
            Shape(x0 + x, y0 + BOX_HEIGHT - STRIP_HEIGHT, part, STRIP_HEIGHT, fill)
            for fill, x, part in strip(box, picture.mode)
        )
        ink = ink_on(swatch.fill)
        words.append(Words(x0 + PADDING, y0 + 16, title, TITLE_SIZE, ink, bold=len(box.layers) > 1))
        words.append(Words(x0 + PADDING, y0 + 30, box_subtitle(box), SUBTITLE_SIZE, ink))
    return Drawing(
        width, y + view.layout.height + _PAGE_MARGIN, tuple(lines), tuple(shapes), tuple(words)
    )


def box_titles(boxes: Sequence[Box]) -> tuple[str, ...]:
    """The titles of the boxes of one view, shortened to fit into them: a long one loses first the
    words that most long ones have.

    It keeps its number, and that of the block that it begins with (`#2 layers/0`).
    """
    whole = [escaped(box.title) for box in boxes]
    long = {title: _head(title) for title in whole if text_width(title, TITLE_SIZE) > _ROOM}
    short: dict[str, str] = {}
    most, least = (int(_ROOM / (letter * TITLE_SIZE)) for letter in (_NARROW_LETTER, _WIDE_LETTER))
    for width in range(most, least // 2, -_STEP):
        left = [title for title in long if title not in short]
        tails = told_apart([title.removeprefix(long[title]) for title in left], width)
        told = {
            title: _CUTS.sub("…", long[title] + tail)
            for title, tail in zip(left, tails, strict=True)
        }
        short |= {
            title: words for title, words in told.items() if text_width(words, TITLE_SIZE) <= _ROOM
        }
    return tuple(fitted(short.get(title, title), _ROOM, TITLE_SIZE) for title in whole)


def _head(title: str) -> str:
    found = _HEAD.match(title)
    return (
        found.group()
        if found is not None and text_width(found.group(), TITLE_SIZE) < _ROOM / 2
        else ""
    )


def box_subtitle(box: Box) -> str:
    """The subtitle, shortened to fit into the box."""
    return fitted(box.subtitle, _ROOM, SUBTITLE_SIZE)


def strip(box: Box, mode: str) -> Iterator[tuple[str, float, float]]:
    """Colour, left edge and width of each part of the strip at the bottom of a box with layers of
    several colours.
    """
    parts = box.parts.get(mode, ())
    if len(parts) < 2:
        return
    left = 0.0
    for fill, share in parts:
        yield fill, left, share * BOX_WIDTH
        left += share * BOX_WIDTH


def shifted(segments: Sequence[Segment], x: float, y: float) -> tuple[Segment, ...]:
    """The line segments, moved."""
    return tuple(tuple((at + x, down + y) for at, down in segment) for segment in segments)


def fitted(text: str, room: float, size: float) -> str:
    """The text with control characters escaped, its middle cut out if it would be wider than the
    box in a common font.
    """
    text = escaped(text)
    if text_width(text, size) <= room:
        return text
    return without_middle(text, lambda cut: text_width(cut, size) <= room)


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in a wide sans-serif font; never much too small."""
    return size * sum(
        (
            _NARROW_LETTER
            if char in _NARROW
            else 0.98
            if char in _WIDE
            else _WIDE_LETTER
            if char.isupper()
            else 0.63 * columns(char)
        )
        for char in text
    )


def _draw_legend(
    legend: Legend, at: tuple[float, float], shapes: list[Shape], words: list[Words]
) -> float:
    """Draws the legend below that height, wrapped to the page's width; returns the height at which
    it ends.
    """
    width, y = at
    words.append(Words(_PAGE_MARGIN, y, legend.title, _LEGEND_SIZE, FAINT))
    x = _PAGE_MARGIN + text_width(legend.title, _LEGEND_SIZE) + 16
    for swatch in legend.swatches:
        taken = 20 + text_width(swatch.words, _LEGEND_SIZE) + 12
        if x + taken > width - _PAGE_MARGIN:
            x, y = _PAGE_MARGIN, y + _LINE
        shapes.append(Shape(x, y - 10, 14, 12, swatch.fill, BORDER, swatch.untold))
        words.append(Words(x + 20, y, swatch.words, _LEGEND_SIZE))
        x += taken
    return y + _LINE
