"""What `nsysmap layers` shows: the layers of an engine as a table of at most 100 columns, or as JSON."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from nsysmap.formats import tensor_bytes
from nsysmap.model import Engine, Layer, Tensor
from nsysmap.names import decode, summary

WIDTH = 100
_TACTIC_WIDTH = 34
_SHORTEST_NAME = 20


def layers_text(engine: Engine) -> str:
    """The report as text: a heading, one line a layer, one line a kind, and what the reader must know."""
    timed = bool(engine.profile_ns)
    heading = [
        f"{_plain(engine.source)}: {_counted(len(engine.layers), 'layer')}"
        + (f", TensorRT {engine.tensorrt_version}" if engine.tensorrt_version else "")
    ]
    body = _layer_lines(engine, timed=timed) if engine.detailed or timed else [_name_line(layer) for layer in engine.layers]
    notes = [line for note in engine.notes for line in _wrapped(f"{note.level}: {_plain(note.text)}")]
    return "\n".join(
        [*(_cut(line, WIDTH) for line in heading), "", *body, "", *_kind_lines(engine, timed=timed), *([""] if notes else []), *notes]
    )


def layers_json(engine: Engine) -> dict[str, object]:
    """The same as one JSON object; times in nanoseconds, sizes in bytes."""
    return {
        "source": engine.source,
        "tensorrt_version": engine.tensorrt_version,
        "detailed": engine.detailed,
        "bindings": list(engine.bindings),
        "layers": [
            {
                "index": layer.index,
                "name": layer.name,
                "kind": layer.kind,
                "type": layer.type,
                "precision": layer.precision,
                "tactic": layer.tactic,
                "stream": layer.stream,
                "region": layer.region,
                "region_index": layer.region_index,
                "profile": layer.profile,
                "onnx": list(layer.onnx),
                "origin": layer.origin,
                "profile_ns": engine.profile_ns[layer.index] if engine.profile_ns else None,
                "inputs": [_tensor_json(tensor) for tensor in layer.inputs],
                "outputs": [_tensor_json(tensor) for tensor in layer.outputs],
            }
            for layer in engine.layers
        ],
        "notes": [{"level": note.level, "text": note.text} for note in engine.notes],
    }


def _tensor_json(tensor: Tensor) -> dict[str, object]:
    return {
        "name": tensor.name,
        "dimensions": None if tensor.dimensions is None else list(tensor.dimensions),
        "datatype": tensor.datatype,
        "format": tensor.format,
        "bytes": tensor_bytes(tensor),
    }


def _layer_lines(engine: Engine, *, timed: bool) -> list[str]:
    """One line a layer under a heading; the name column takes the width that the others leave."""
    rows = [("#", "layer", "kind", "type", "tactic", *(["µs"] if timed else []))]
    for layer in engine.layers:
        time_ns = engine.profile_ns[layer.index] if timed else None
        shown = "" if time_ns is None else f"{time_ns / 1e3:,.1f}"
        cells = (str(layer.index), _plain(layer.name), layer.kind, layer.precision or "", _tactic(layer))
        rows.append((*cells, *([shown] if timed else [])))
    widths = [max(_columns(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths[4] = min(widths[4], _TACTIC_WIDTH)
    left = WIDTH - sum(widths) + widths[1] - 2 * (len(widths) - 1)
    widths[1] = min(widths[1], max(left, _SHORTEST_NAME))
    return [
        "  ".join(_cell(text, width, right=column in (0, 5)) for column, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def _cell(text: str, width: int, *, right: bool) -> str:
    return text.rjust(width) if right else _fitted(text, width)


def _name_line(layer: Layer) -> str:
    return f"{layer.index:>4}  {_fitted(_plain(layer.name), WIDTH - 6).rstrip()}"


def _kind_lines(engine: Engine, *, timed: bool) -> list[str]:
    counts = Counter(layer.kind for layer in engine.layers)
    times: Counter[str] = Counter()
    for layer, time_ns in zip(engine.layers, engine.profile_ns, strict=bool(engine.profile_ns)) if timed else []:
        times[layer.kind] += time_ns or 0
    total = sum(times.values())
    rows = sorted(counts, key=lambda kind: (-times[kind], -counts[kind], kind))
    width = max(len(kind) for kind in rows)
    if not timed:
        return ["by kind", *(f"  {kind.ljust(width)}  {counts[kind]:>5}" for kind in rows)]
    return [
        f"by kind, {total / 1e3:,.1f} µs in the profile",
        *(
            f"  {kind.ljust(width)}  {counts[kind]:>5}  {times[kind] / 1e3:>10,.1f} µs  {times[kind] / total if total else 0:>6.1%}"
            for kind in rows
        ),
    ]


def _tactic(layer: Layer) -> str:
    """What the tactic's name says, without what the layer's own name says already."""
    if not layer.tactic:
        return ""
    decoded = decode(layer.tactic)
    return _plain(layer.tactic if decoded.family == "unknown" else "generated" if layer.kind == "fused" else summary(decoded))


def _plain(text: str) -> str:
    """The text with control characters escaped, so that a name cannot drive the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _columns(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _fitted(text: str, width: int) -> str:
    """The text in exactly that many columns, shortened in the middle where it is longer."""
    if _columns(text) > width:
        left, right = "", ""
        for head, tail in zip(text, reversed(text), strict=True):
            if _columns(left + head + right) > width - 1:
                break
            left += head
            if _columns(left + tail + right) > width - 1:
                break
            right = tail + right
        text = f"{left}…{right}"
    return text + " " * (width - _columns(text))


def _cut(text: str, width: int) -> str:
    return _fitted(text, width).rstrip()


def _wrapped(text: str) -> Sequence[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
