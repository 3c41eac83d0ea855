"""Writes one figure of an analysis as PNG or SVG."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.analysis import Analysis
from nsysmap.answer.words import title as report_title
from nsysmap.core.output_file import replacing
from nsysmap.output.plots.changes import draw_changes
from nsysmap.output.plots.points import draw_inferences, draw_roofline
from nsysmap.output.plots.shares import draw_idle, draw_layers
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = 12  # of the title, to an inch of the figure
_LINES = 3  # of what the figure is of
SUFFIXES = (".png", ".svg")
_DRAW: Mapping[str, tuple[Callable[[Axes, Analysis], str], tuple[float, float]]] = {
    "layers": (draw_layers, (11, 7)),
    "idle": (draw_idle, (10, 4.6)),
    "inferences": (draw_inferences, (10, 4.5)),
    "roofline": (draw_roofline, (9, 7)),
    "what-if": (draw_changes, (10, 4)),
}
KINDS = tuple(_DRAW)
"""The kinds of plots."""


def write_plot(analysis: Analysis, kind: str, path: Path) -> None:
    """Write the figure of that kind (one of KINDS) to ``path``, whole or not at all; the same
    analysis gives the same bytes.

    Raises NsysmapError if the analysis lacks what the figure shows.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    draw, inches = _DRAW[kind]
    with (
        rc_context(
            {
                "text.parse_math": False,
                "font.family": ["DejaVu Sans"],
                "svg.fonttype": "none",
                "svg.hashsalt": "nsysmap",
            }
        ),
        warnings.catch_warnings(),
    ):
        # a name in letters that the font lacks: .png has boxes, .svg the letters
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = Figure(figsize=inches, dpi=150, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        title = draw(axes, analysis)
        of = textwrap.fill(
            escaped(report_title(analysis.summary)),
            int(inches[0] * _LETTERS),
            max_lines=_LINES,
            placeholder=" …",
        )
        figure.suptitle(f"{title}\n{of}", x=0.008, horizontalalignment="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        suffix = path.suffix.lower().removeprefix(".")
        with replacing(path) as fresh:
            figure.savefig(
                fresh,
                format=suffix,
                metadata={"Date": None} if suffix == "svg" else {"Software": None},
            )
