"""The drawing of an engine as PNG, by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.output.picture.drawing import EDGE, HEAD_LENGTH, HEAD_WIDTH, Drawing

if TYPE_CHECKING:
    from matplotlib.path import Path as MplPath

    from nsysmap.output.picture.layout import Point, Segment

_UNIT_INCH = 1 / 100  # a hundred units of the drawing are an inch
_SHARP, _MOST_PIXELS, _LONGEST_SIDE = 2.0, 60e6, 30_000.0


def write_png(drawn: Drawing, path: Path) -> None:
    """Write the drawing, with two pixels per unit unless that would be too large; the same drawing
    gives the same bytes.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path as MplPath

    scale = min(
        _SHARP,
        (_MOST_PIXELS / (drawn.width * drawn.height)) ** 0.5,
        _LONGEST_SIDE / max(drawn.width, drawn.height),
    )
    with rc_context(
        {"text.parse_math": False, "font.family": ["DejaVu Sans"], "path.simplify": False}
    ):
        figure = Figure(
            figsize=(drawn.width * _UNIT_INCH, drawn.height * _UNIT_INCH),
            dpi=scale / _UNIT_INCH,
            facecolor="white",
        )
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, drawn.width)
        axes.set_ylim(drawn.height, 0)
        point = 72 * _UNIT_INCH  # points per unit
        for dashed in (False, True):
            found = [
                _path(segment)
                for line in drawn.lines
                if line.dashed is dashed
                for segment in line.segments
            ]
            if found:
                style = (0, (4, 3)) if dashed else "solid"
                whole = PathPatch(
                    MplPath.make_compound_path(*found),
                    facecolor="none",
                    edgecolor=EDGE,
                    linewidth=1.1 * point,
                    linestyle=style,
                )
                axes.add_artist(whole)
        tips = [_head(tip, up=up) for line in drawn.lines for tip, up in line.heads]
        if tips:
            axes.add_artist(
                PathPatch(MplPath.make_compound_path(*tips), facecolor=EDGE, edgecolor="none")
            )
        for shape in drawn.shapes:
            corner, size = (shape.x, shape.y), (shape.width, shape.height)
            if shape.stroke:
                box = FancyBboxPatch(
                    corner,
                    *size,
                    boxstyle="round,pad=0,rounding_size=3",
                    facecolor=shape.fill,
                    edgecolor=shape.stroke,
                )
                box.set(linewidth=point, linestyle=(0, (4, 3)) if shape.dashed else "solid")
                axes.add_artist(box)
            else:
                axes.add_artist(Rectangle(corner, *size, facecolor=shape.fill, edgecolor="none"))
        known = _known_characters()
        for words in drawn.words:
            text = "".join(char if ord(char) in known else "□" for char in words.text)
            axes.text(
                words.x,
                words.y,
                text,
                fontsize=words.size * point,
                color=words.ink,
                fontweight="bold" if words.bold else "normal",
            )
        figure.savefig(
            path, format="png", metadata={"Software": None}, pil_kwargs={"compress_level": 3}
        )


def _path(segment: Segment) -> MplPath:
    from matplotlib.path import Path as MplPath

    (x, y), (last_x, last_y) = segment[0], segment[-1]
    if len(segment) == 2 and x != last_x:
        middle = (y + last_y) / 2
        return MplPath(
            [(x, y), (x, middle), (last_x, middle), (last_x, last_y)],
            [MplPath.MOVETO, *[MplPath.CURVE4] * 3],
        )
    return MplPath(list(segment))


def _head(tip: Point, *, up: bool) -> MplPath:
    from matplotlib.path import Path as MplPath

    (x, y), back = tip, HEAD_LENGTH if up else -HEAD_LENGTH
    return MplPath(
        [tip, (x - HEAD_WIDTH / 2, y + back), (x + HEAD_WIDTH / 2, y + back), tip], closed=True
    )


def _known_characters() -> frozenset[int]:
    """The characters that matplotlib's own font has."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=["DejaVu Sans"]))).get_charmap())
