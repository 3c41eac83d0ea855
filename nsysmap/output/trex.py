"""The file set of NVIDIA's trex (TensorRT engine explorer), with measured times: graph.json,
profile.json and timing.json.

What trex reads, by its own source (NVIDIA/TensorRT, tools/experimental/trt-engine-explorer,
release/10.0): of the graph, `Layers` as objects with `Name`, `LayerType`, `Inputs` and `Outputs`,
whose tensors need `Name`, `Dimensions` and `Format/Datatype`, and a `Bindings` that is not empty;
of the profile, rows of four or five values, joined to the layers by place where there are as many,
else by name; of the timing, `latencyMs`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.output_file import replacing
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.tensor_formats import data_type, layout
from nsysmap.text.terminal import inert_json
from nsysmap.text.units import counted, percent
from nsysmap.timing.measured import Measured

Rows = list[dict[str, object]]
_WORDS = {
    "FP64": "Double", "FP32": "Float", "TF32": "Float", "FP16": "Half", "BF16": "BFloat16",
    "FP8": "FP8", "FP4": "FP4", "INT8": "Int8",
    "INT16": "Int16", "INT32": "Int32", "INT64": "Int64", "INT4": "Int4", "UINT8": "UInt8",
    "BOOL": "Bool",
}  # fmt: skip
_DIGITS = 6  # of milliseconds: nanoseconds


@dataclass(frozen=True)
class TrexFiles:
    """The content of the three files, and notes on it."""

    graph: dict[str, object]
    profile: Rows
    inferences: int  # covered by the times of profile.json
    timing: Rows
    notes: tuple[str, ...]


def trex_files(engine: Engine, times: Measured, kernels: Table, inferences: Table) -> TrexFiles:
    """The files of an engine that ran in a trace.

    `times` are what the trace measured, `kernels` and `inferences` schema.KERNELS and INFERENCES;
    the engine is the first of the trace.  Raises NsysmapError if the trace shows no kernel of it.
    """
    spent = [row for row in times.kernel_time if row.maybe_integer("engine") == 0]
    if all(row.maybe_integer("layer_id") is None for row in spent):
        raise NsysmapError(
            engine.source,
            "the trace shows no kernel of this engine, so there are no times to export",
            "give the engine file of this run, and a trace taken with --cuda-graph-trace=node",
        )
    notes = []
    if not engine.detailed:
        notes.append(
            "The engine file has layer names only: trex cannot read this graph.json, which has no"
            " tensors, types or shapes. Only the times are usable; export the layers again with"
            " --profilingVerbosity=detailed."
        )
    elif not engine.bindings:
        notes.append(
            "The engine file lists no bindings, which trex requires: graph.json has the tensors"
            " that no layer writes or none reads."
        )
    unmapped = sum(row.integer("time_ns") for row in spent if row.maybe_integer("layer_id") is None)
    if unmapped:
        share = percent(unmapped, sum(row.integer("time_ns") for row in spent))
        notes.append(
            f"{share} of the kernel time belongs to no known layer and is missing from"
            " profile.json."
        )
    timing = _timing(kernels, inferences, times.steady_state)
    if not timing:
        notes.append(
            "No inference was recognised: times are totals over the trace, and timing.json is"
            " empty."
        )
    inferences_of_engine = max((row.maybe_integer("inferences") or 1 for row in spent), default=1)
    profile = _profile(engine, times.layers, spent, inferences_of_engine)
    return TrexFiles(graph_of(engine), profile, inferences_of_engine, timing, tuple(notes))


def trex_name(engine_file: Path) -> str:
    """The base name of the files: the engine file's, without `.json` or trex's own
    `.graph.json`.
    """
    return engine_file.name.removesuffix(".json").removesuffix(".graph")


def write_trex(
    files: TrexFiles, folder: Path, name: str, inputs: Sequence[Path], *, force: bool = False
) -> list[Path]:
    """Write the three files into the folder, all of them or none, and return their paths.

    An existing file is not overwritten unless forced; one of the inputs never is.  The folder is
    made where its parent is.
    """
    contents = {"graph": files.graph, "profile": files.profile, "timing": files.timing}
    paths = {folder / f"{name}.{part}.json": content for part, content in contents.items()}
    try:
        if folder.exists() and not folder.is_dir():
            raise NsysmapError(
                str(folder), "is a file, not a folder", "give the folder that the files go into"
            )
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise NsysmapError(
            str(folder), f"cannot be made ({error.strerror})", "check the path and its permissions"
        ) from error
    for path in paths:
        if path.is_symlink():
            raise NsysmapError(
                str(path),
                "is a symbolic link, and its target would be overwritten",
                "remove it, or give another folder",
            )
        if not path.exists():
            continue
        if any(given.exists() and path.samefile(given) for given in inputs):
            raise NsysmapError(
                str(path), "is one of the inputs and would be overwritten", "give another folder"
            )
        if not force:
            raise NsysmapError(
                str(path), "exists already", "give another folder, or --force to overwrite it"
            )
    with ExitStack() as stack:
        for path, content in paths.items():
            fresh = stack.enter_context(replacing(path))
            text = (
                json.dumps(_finite(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            )
            fresh.write_bytes(inert_json(text).encode())
    return list(paths)


def _finite(value: object) -> object:
    """The value with null in place of numbers that JSON lacks (an engine file may contain
    1e999).
    """
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- graph.json
# --------------------------------------------------------------------------------------------------


def graph_of(engine: Engine) -> dict[str, object]:
    """The engine in the form of `--exportLayerInfo`, as trex reads it; only names if the file has
    nothing else.
    """
    if not engine.detailed:
        return {
            "Layers": [layer.name for layer in engine.layers],
            "Bindings": list(engine.bindings),
        }
    return {
        "Layers": [_layer(layer) for layer in engine.layers],
        "Bindings": list(engine.bindings) or _edge_tensors(engine),
    }


def _layer(layer: Layer) -> dict[str, object]:
    row: dict[str, object] = {
        "Name": layer.name,
        "LayerType": layer.type or layer.kind,
        "Inputs": [_tensor(tensor) for tensor in layer.inputs],
        "Outputs": [_tensor(tensor) for tensor in layer.outputs],
    }
    if layer.constants:
        row["Constants"] = [_tensor(tensor) for tensor in layer.constants]
    row |= layer.parameters
    if layer.origin is not None:
        row["Origin"] = layer.origin
    row["TacticName"] = layer.tactic or ""
    if layer.stream is not None:
        row["StreamId"] = layer.stream
    return {**row, "Metadata": "\x1f".join(f"[ONNX Layer: {node}]" for node in layer.onnx)}


def _tensor(tensor: Tensor) -> dict[str, object]:
    """The tensor with type and layout in one text, as TensorRT wrote them before 11.3; also
    separately if one text cannot say both.
    """
    word = _WORDS.get(tensor.datatype or "", tensor.datatype or "None")
    both = tensor.format if tensor.format and data_type(tensor.format) == tensor.datatype else word
    row: dict[str, object] = {"Name": tensor.name}
    if tensor.location is not None:
        row["Location"] = tensor.location
    # trex computes with them: -1 is not known
    row["Dimensions"] = [-1] if tensor.dimensions is None else list(tensor.dimensions)
    row["Format/Datatype"] = both
    if (data_type(both), layout(both)) != (tensor.datatype, tensor.format):
        row |= {"Datatype": tensor.datatype or "", "Format": tensor.format or ""}
    if tensor.strides is not None:
        row["Strides"] = list(tensor.strides)
    return row


def _edge_tensors(engine: Engine) -> list[str]:
    """The tensors that are read but written by no layer, and those that are written but read by
    none.
    """
    read = dict.fromkeys(tensor.name for layer in engine.layers for tensor in layer.inputs)
    written = dict.fromkeys(tensor.name for layer in engine.layers for tensor in layer.outputs)
    return [
        *(name for name in read if name not in written),
        *(name for name in written if name not in read),
    ]


# --- profile.json and timing.json
# -------------------------------------------------------------------------------------


def _profile(engine: Engine, layers: Table, spent: Sequence[Row], runs: int) -> Rows:
    """One row per layer in the engine's order, because trex joins by position; a layer without
    kernels took 0, as trtexec reports it.
    """
    medians = {
        row.maybe_integer("layer_index"): row.maybe_integer("median_ns")
        for row in layers
        if row.maybe_integer("engine") == 0
    }
    total: dict[int, int] = {}
    for row in spent:
        if (layer_id := row.maybe_integer("layer_id")) is not None:
            total[layer_id] = total.get(layer_id, 0) + row.integer("time_ns")
    whole = sum(total.values())
    rows: Rows = [{"count": runs}]
    for layer in engine.layers:
        time = total.get(layer.index, 0)  # the first engine's layer ids are its indices
        rows.append(
            {
                "name": layer.name,
                "timeMs": _ms(time),
                "averageMs": _ms(time / runs),
                "medianMs": _ms(medians.get(layer.index) or 0),
                "percentage": round(100 * time / whole, 4) if whole else 0.0,
            }
        )
    return rows


def _timing(kernels: Table, inferences: Table, steady: Table) -> Rows:
    """One row per steady-state inference, in milliseconds from the begin of the first: enqueue,
    input copies, compute, output copies.

    Compute goes from the first to the last kernel; what the GPU did before and after it counts as
    copies, as in trtexec.
    """
    rows: Rows = []
    if not len(steady):
        return rows
    number, start, end = kernels.ints("inference"), kernels.ints("start_ns"), kernels.ints("end_ns")
    inside = np.flatnonzero(number >= 0)
    size = int(inferences.ints("inference").max(initial=-1)) + 1
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, MISSING)
    np.minimum.at(first, number[inside], start[inside])
    np.maximum.at(last, number[inside], end[inside])
    wanted = [
        row
        for row in inferences
        if row.maybe_integer("engine") == 0 and row.flag("complete") and not row.flag("warmup")
    ]
    origin = min((row.integer("start_ns") for row in wanted), default=0)
    for row in wanted:
        at = row.integer("inference")
        begin, stop = row.maybe_integer("gpu_start_ns"), row.maybe_integer("gpu_end_ns")
        if last[at] == MISSING or begin is None or stop is None:
            continue
        compute, done = int(first[at]), int(last[at])
        enqueue, enqueued = (
            row.maybe_integer("enqueue_start_ns"),
            row.maybe_integer("enqueue_end_ns"),
        )
        places = {
            "startEnqMs": enqueue,
            "endEnqMs": enqueued,
            "startH2dMs": begin,
            "endH2dMs": compute,
            "startComputeMs": compute,
            "endComputeMs": done,
            "startD2hMs": done,
            "endD2hMs": stop,
        }
        times: dict[str, object] = {
            key: _ms(place - origin) for key, place in places.items() if place is not None
        }
        spans = {
            "h2dMs": compute - begin,
            "computeMs": done - compute,
            "d2hMs": stop - done,
            "latencyMs": stop - begin,
        }
        rows.append({**times, **{key: _ms(span) for key, span in spans.items()}})
    return rows


def trex_words(files: TrexFiles, paths: Sequence[Path]) -> list[str]:
    """The written files, one per line, and the notes."""
    layers = files.graph["Layers"]
    assert isinstance(layers, list)
    counts = (
        counted(len(layers), "layer"),
        f"{counted(len(files.profile) - 1, 'layer')}, {counted(files.inferences, 'inference')}",
        counted(len(files.timing), "inference"),
    )
    return [
        *(f"{path}: {words}" for path, words in zip(paths, counts, strict=True)),
        *(f"note: {note}" for note in files.notes),
    ]


def _ms(time_ns: float) -> float:
    return round(time_ns / 1e6, _DIGITS)
