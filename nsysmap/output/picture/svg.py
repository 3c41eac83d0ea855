"""The drawing of an engine as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nsysmap.output.picture.drawing import EDGE, HEAD_LENGTH, HEAD_WIDTH, Drawing
from nsysmap.output.picture.layout import Point, Segment

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"


def svg(drawn: Drawing) -> str:
    """The drawing as one SVG document; the same drawing gives the same text."""
    width, height = number(drawn.width), number(drawn.height)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0'
            f' 0 {width} {height}" font-family="{FONT}">'
        ),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<g fill="none" stroke="{EDGE}" stroke-width="1.1">',
        *(
            f'<path d="{path_of(line.segments)}"{_DASHED * line.dashed}/>'
            for line in drawn.lines
            if line.segments
        ),
        "</g>",
        f'<g fill="{EDGE}">',
        *(f'<path d="{heads_of(line.heads)}"/>' for line in drawn.lines if line.heads),
        "</g>",
    ]
    for shape in drawn.shapes:
        stroke = f' stroke="{shape.stroke}" rx="3"' if shape.stroke else ""
        place = (
            f'x="{number(shape.x)}" y="{number(shape.y)}" width="{number(shape.width)}"'
            f' height="{number(shape.height)}"'
        )
        parts.append(f'<rect {place} fill="{shape.fill}"{stroke}{_DASHED * shape.dashed}/>')
    for words in drawn.words:
        weight = ' font-weight="bold"' if words.bold else ""
        place = f'x="{number(words.x)}" y="{number(words.y)}"'
        parts.append(
            f'<text {place} font-size="{number(words.size)}"'
            f' fill="{words.ink}"{weight}>{escape(words.text)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


_DASHED = ' stroke-dasharray="4 3"'


def path_of(segments: Sequence[Segment]) -> str:
    """Line segments as the data of an SVG path."""
    pieces: list[str] = []
    for segment in segments:
        (x, y), (last_x, last_y) = segment[0], segment[-1]
        if len(segment) == 2 and x != last_x:
            middle = number((y + last_y) / 2)
            pieces.append(
                f"M{number(x)} {number(y)}C{number(x)} {middle} {number(last_x)} {middle}"
                f" {number(last_x)} {number(last_y)}"
            )
        else:
            pieces.append("M" + "L".join(f"{number(at)} {number(down)}" for at, down in segment))
    return "".join(pieces)


def heads_of(heads: Sequence[tuple[Point, bool]]) -> str:
    """Arrowheads as the data of an SVG path."""
    half, long = number(HEAD_WIDTH / 2), number(HEAD_LENGTH)
    return "".join(
        f"M{number(x)} {number(y)}l-{half} {'' if up else '-'}{long}h{number(HEAD_WIDTH)}z"
        for (x, y), up in heads
    )


def number(value: float) -> str:
    """The number with at most one decimal."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"
