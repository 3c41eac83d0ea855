"""The picture of an engine as one page of HTML that needs nothing else: move, zoom, search, and details of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from nsysmap.base.terminal import escaped
from nsysmap.base.units import duration, percent
from nsysmap.engine.model import Layer, Tensor
from nsysmap.names.decode import decode, summary
from nsysmap.picture.drawing import PADDING, STRIP_HEIGHT, box_words, strip
from nsysmap.picture.layout import BOX_HEIGHT, BOX_WIDTH
from nsysmap.picture.model import MODES, Box, Picture, Ran, Trunk, View, ink_on, layer_title, tensor_words
from nsysmap.picture.svg import FONT, number, path_of
from nsysmap.timing.precision import region_of

_NAMES_SHOWN = 12


def html(picture: Picture) -> str:
    """The page; every name in it is text, whatever it holds.  The same picture gives the same page."""
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent, encoding="utf-8")
    pages = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return pages.get_template("graph.html.j2").render(
        title=escaped(picture.title),
        notes=[escaped(note) for note in picture.notes],
        mode=picture.mode,
        modes=MODES,
        font=FONT,
        legends=list(_legends(picture.views)),
        views=[_view(picture, view) for view in picture.views],
        box_width=number(BOX_WIDTH),
        box_height=number(BOX_HEIGHT),
        strip_height=number(STRIP_HEIGHT),
        data=_data(picture),
    )


def _legends(views: Sequence[View]) -> Iterator[dict[str, object]]:
    for place, view in enumerate(views):
        for mode, legend in view.legends.items():
            swatches = [{"fill": one.fill, "words": escaped(one.words), "untold": one.untold} for one in legend.swatches]
            yield {"view": place, "mode": mode, "title": escaped(legend.title), "swatches": swatches}


def _view(picture: Picture, view: View) -> dict[str, object]:
    return {
        "name": view.name,
        "width": number(view.layout.width),
        "height": number(view.layout.height),
        "trunks": [{"d": path_of(trunk.segments), "order": trunk.order, "words": _trunk_words(trunk)} for trunk in view.trunks],
        "boxes": [_box(picture, box, corner) for box, corner in zip(view.boxes, view.layout.boxes, strict=True)],
    }


def _trunk_words(trunk: Trunk) -> str:
    return f"{escaped(trunk.tensor)}: {trunk.words}" if trunk.tensor else trunk.words


def _box(picture: Picture, box: Box, corner: tuple[float, float]) -> dict[str, object]:
    x, y = corner
    title, subtitle = box_words(box)
    names = [f"#{index} {escaped(picture.engine.layers[index].name)}" for index in box.layers[:_NAMES_SHOWN]]
    names += [f"and {len(box.layers) - _NAMES_SHOWN} more"] if len(box.layers) > _NAMES_SHOWN else []
    untold = "".join(f" untold-{mode}" for mode, swatch in box.swatch.items() if swatch.untold)
    return {
        "x": number(x),
        "y": number(y),
        "text_x": number(x + PADDING),
        "title_y": number(y + 16),
        "subtitle_y": number(y + 30),
        "classes": (" many" if len(box.layers) > 1 else "") + untold,
        "colours": ";".join(f"--{mode}:{swatch.fill};--{mode}-ink:{ink_on(swatch.fill)}" for mode, swatch in sorted(box.swatch.items())),
        "tip": "\n".join([*names, box.subtitle]),
        "title": title,
        "subtitle": subtitle,
        "strips": [
            {"mode": mode, "fill": fill, "x": number(x + left), "y": number(y + BOX_HEIGHT - STRIP_HEIGHT), "width": number(part)}
            for mode in MODES
            for fill, left, part in strip(box, mode)
        ],
    }


def _data(picture: Picture) -> dict[str, object]:
    """What the page's script needs: the layers with their details, and which boxes and edges each view has."""
    times = picture.times
    whole = sum(time or 0 for time in times.time_ns) if times else 0
    return {
        "modes": list(MODES),
        "layers": [_layer(picture, layer, whole) for layer in picture.engine.layers],
        "views": [
            {
                "boxes": [{"title": escaped(box.title), "layers": list(box.layers)} for box in view.boxes],
                "trunks": [{"before": trunk.before, "ends": trunk.ends} for trunk in view.trunks],
            }
            for view in picture.views
        ],
    }


def _layer(picture: Picture, layer: Layer, whole: int) -> dict[str, object]:
    engine, times = picture.engine, picture.times
    spent = times.time_ns[layer.index] if times else None
    profile = engine.trtexec_ns[layer.index] if engine.trtexec_ns else None
    region = region_of({"region": layer.region, "name": layer.name, "kind": layer.kind})
    decoded = _decoded(layer.tactic) if layer.tactic else None
    return {
        "index": layer.index,
        "name": escaped(layer.name),
        "title": escaped(layer_title(layer)),
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
        "profile": None if profile is None or (times and times.time_ns == engine.trtexec_ns) else duration(profile),
        "inputs": [_tensor(tensor) for tensor in layer.inputs],
        "outputs": [_tensor(tensor) for tensor in layer.outputs],
        "kernels": [_kernel(ran) for ran in (times.kernels.get(layer.index, ()) if times else ())],
    }


@lru_cache(maxsize=4096)
def _decoded(tactic: str) -> str | None:
    decoded = decode(tactic)
    return None if decoded.family == "unknown" else escaped(summary(decoded))


def _tensor(tensor: Tensor) -> dict[str, object]:
    return {"name": escaped(tensor.name), "words": tensor_words(tensor), "format": _text(tensor.format)}


def _kernel(ran: Ran) -> dict[str, object]:
    count = f"{ran.executions:,.0f}" if ran.executions == round(ran.executions) else f"{ran.executions:,.2f}"
    return {"name": escaped(ran.name), "summary": escaped(ran.summary), "count": f"{count} ×", "time": duration(ran.time_ns)}


def _text(text: str | None) -> str | None:
    return None if text is None else escaped(text)
