"""The picture of an engine as one self-contained HTML page: move, zoom, search, and details of each
layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.names.decode import decode, summary
from nsysmap.output.picture.drawing import PADDING, STRIP_HEIGHT, box_subtitle, box_titles, strip
from nsysmap.output.picture.inline import HERE, inlined
from nsysmap.output.picture.layout import BOX_HEIGHT, BOX_WIDTH
from nsysmap.output.picture.model import MODES, Box, Picture, RanKernels, Trunk, View, tensor_words
from nsysmap.output.picture.svg import heads_of, path_of
from nsysmap.output.picture.swatches import Legend, ink_on
from nsysmap.text.terminal import escaped
from nsysmap.text.units import duration, percent
from nsysmap.timing.precision import region_of

_NAMES_SHOWN = 12  # of the layers in a box
CODE = tuple(HERE / name for name in ("theme.css", "graph.css", "elements.js", "graph.js"))
"""The script that draws `graph_data` on any page."""


def html(picture: Picture, *, links: Sequence[tuple[str, str]] = ()) -> str:
    """The page; names are escaped, whatever they contain.  The same picture gives the same page.

    ``links`` are titles and addresses of related pages.
    """
    import jinja2

    loader = jinja2.FileSystemLoader(HERE, encoding="utf-8")
    pages = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    return pages.get_template("graph.html.j2").render(
        title=escaped(picture.title),
        notes=[escaped(note) for note in picture.notes],
        links=links,
        data=graph_data(picture),
        code=inlined((*CODE, HERE / "graph_page.css", HERE / "graph_page.js")),
    )


def graph_data(picture: Picture) -> dict[str, object]:
    """The data that graph.js draws: the views with their boxes, ways and legends, and the layers
    with their details.
    """
    times = picture.times
    whole = sum(time or 0 for time in times.time_ns) if times else 0
    return {
        "modes": list(MODES),
        "mode": picture.mode,
        "box": {
            "width": BOX_WIDTH,
            "height": BOX_HEIGHT,
            "strip": STRIP_HEIGHT,
            "padding": PADDING,
        },
        "per": f"kernels that ran for it ({times.per})" if times else "kernels",
        "layers": [_layer(picture, layer, whole) for layer in picture.engine.layers],
        "views": [_view(picture, view) for view in picture.views],
    }


def _view(picture: Picture, view: View) -> dict[str, object]:
    return {
        "name": view.name,
        "width": round(view.layout.width, 1),
        "height": round(view.layout.height, 1),
        "legends": {mode: _legend(legend) for mode, legend in view.legends.items()},
        "trunks": [_trunk(trunk) for trunk in view.trunks],
        "boxes": [
            _box(picture, box, title, corner)
            for box, title, corner in zip(
                view.boxes, box_titles(view.boxes), view.layout.boxes, strict=True
            )
        ],
    }


def _legend(legend: Legend) -> dict[str, object]:
    return {
        "title": escaped(legend.title),
        "swatches": [[one.fill, escaped(one.words), one.untold] for one in legend.swatches],
    }


def _trunk(trunk: Trunk) -> dict[str, object]:
    return {
        "d": path_of(trunk.segments),
        "heads": heads_of(trunk.heads),
        "order": trunk.order,
        "words": f"{escaped(trunk.tensor)}: {trunk.words}" if trunk.tensor else trunk.words,
        "before": trunk.before,
        "ends": trunk.ends,
    }


def _box(picture: Picture, box: Box, title: str, corner: tuple[float, float]) -> dict[str, object]:
    names = [
        f"#{index} {escaped(picture.engine.layers[index].name)}"
        for index in box.layers[:_NAMES_SHOWN]
    ]
    names += (
        [f"and {len(box.layers) - _NAMES_SHOWN} more"] if len(box.layers) > _NAMES_SHOWN else []
    )
    strips = {
        mode: [[fill, round(left, 1), round(part, 1)] for fill, left, part in strip(box, mode)]
        for mode in MODES
    }
    return {
        "x": round(corner[0], 1),
        "y": round(corner[1], 1),
        "title": title,
        "subtitle": box_subtitle(box),
        "tip": "\n".join([*names, box.subtitle]),
        "layers": box.layers,
        "colours": {
            mode: [swatch.fill, ink_on(swatch.fill), swatch.untold]
            for mode, swatch in box.swatch.items()
        },
        "strips": {mode: parts for mode, parts in strips.items() if parts},
    }


def _layer(picture: Picture, layer: Layer, whole: int) -> dict[str, object]:
    engine, times = picture.engine, picture.times
    spent = times.time_ns[layer.index] if times else None
    profile = engine.trtexec_ns[layer.index] if engine.trtexec_ns else None
    region = region_of(layer.name, layer.kind, layer.region)
    decoded = _decoded(layer.tactic) if layer.tactic else None
    return {
        "index": layer.index,
        "name": escaped(layer.name),
        "title": escaped(picture.titles[layer.index]),
        "kind": layer.kind,
        "type": _text(layer.type),
        "precision": layer.precision,
        "tactic": _text(layer.tactic),
        "decoded": decoded,
        "region": _text(region),
        "origin": _text(layer.origin),
        "stream": layer.stream,
        "onnx": [escaped(node) for node in layer.onnx],
        "time": None if spent is None else f"{duration(spent)} {percent(spent, whole)}",
        "profile": (
            None
            if profile is None or (times and times.time_ns == engine.trtexec_ns)
            else duration(profile)
        ),
        "inputs": [_tensor(tensor) for tensor in layer.inputs],
        "outputs": [_tensor(tensor) for tensor in layer.outputs],
        "kernels": [_kernel(ran) for ran in (times.kernels.get(layer.index, ()) if times else ())],
    }


@lru_cache(maxsize=4096)
def _decoded(tactic: str) -> str | None:
    decoded = decode(tactic)
    return None if decoded.family == "unknown" else escaped(summary(decoded))


def _tensor(tensor: Tensor) -> dict[str, object]:
    return {
        "name": escaped(tensor.name),
        "words": tensor_words(tensor),
        "format": _text(tensor.format),
    }


def _kernel(ran: RanKernels) -> dict[str, object]:
    count = (
        f"{ran.executions:,.0f}"
        if ran.executions == round(ran.executions)
        else f"{ran.executions:,.2f}"
    )
    return {
        "name": escaped(ran.name),
        "summary": escaped(ran.summary),
        "count": f"{count} ×",
        "time": duration(ran.time_ns),
    }


def _text(text: str | None) -> str | None:
    return None if text is None else escaped(text)
