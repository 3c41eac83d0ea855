"""Maps each kernel to a layer: tries the strategies in a fixed order and records the evidence of
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmap.advice.program import is_tensorrt
from nsysmap.core.groups import distinct_rows, in_first_order, numbered
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import MAPPING
from nsysmap.core.table import (
    MISSING,
    BoolArray,
    FloatArray,
    IntArray,
    Table,
    Text,
    either,
    packed,
    slim,
)
from nsysmap.inputs.engine.model import Engine, Layer, numbered_engines
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.mapping.engine_match import engine_fits, fit_notes, whose_inferences
from nsysmap.mapping.order.by_order import AskedKernels, Placed, place_by_order
from nsysmap.mapping.order.twins import SEVERAL, settle_ranges
from nsysmap.mapping.parts.parts import Settled, find_parts
from nsysmap.mapping.ranges.launch_ranges import Evidence, gather_evidence
from nsysmap.mapping.ranges.range_layers import RangeLayers, payload_nodes, resolve_ranges
from nsysmap.mapping.streams.streams import IN_DOUBT, IN_DOUBT_BY_NAMES, Streams
from nsysmap.names.decode import decode, layer_kind, matches_tactic
from nsysmap.names.match import is_generated
from nsysmap.network.tables import layers_table
from nsysmap.network.titles import called_text, layer_titles
from nsysmap.text.units import counted
from nsysmap.trace.inferences.find import Inferences
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace
from nsysmap.trace.nvtx_ranges import MYELIN

METHODS = ("nvtx", "graph-node", "tactic", "order", "region", "none")
_NVTX, _GRAPH_NODE, _TACTIC, _ORDER, _REGION, _NONE = range(len(METHODS))
# kinds whose layers need no tactic to be known as such
_NO_KERNELS = (
    "constant",
    "noop",
    "shape",
    "signal",
)

OUTSIDE_TENSORRT = "launched outside any TensorRT range"
OUTSIDE_LAYERS = "launched inside ExecutionContext:: but outside any layer range"
NO_LAUNCH = "its launch call is not in the trace"
NO_CREATION = (
    "the creation of its graph node is not in the trace: the graph was captured before the trace"
    " began"
)
CREATED_OUTSIDE = "its graph node was created outside any layer range"
_AMBIGUOUS = "several layers of the engine have the name of the layer range, but not as many as ran"
_NEVER_ENDS = "it is not counted as an inference, and later ones are counted as if it had ended."
NO_RANGES = "the trace has no TensorRT layer ranges"
NOT_ITS = "its inference has the layers of a given engine file, and is not of that engine"


@dataclass(frozen=True)
class Mapped:
    """Every kernel's layer, or the reason why it has none."""

    table: Table  # MAPPING, one row per kernel
    layers: Table  # LAYERS: of the engines, then those known from ranges only
    engine_of_inference: IntArray  # MISSING if no engine file fits
    engine_doubt: Text  # per inference
    engine_fits: Table  # ENGINE_FITS
    notes: tuple[Note, ...]
    evidence: Evidence  # where each kernel was launched or captured
    placed: Placed  # what the order says


def map_kernels(
    trace: Trace,
    tensorrt: TensorRtRanges,
    found: Inferences,
    streams: Streams,
    engines: Sequence[Engine],
    model: OnnxModel | None = None,
) -> Mapped:
    """Maps every kernel. ``found`` and ``streams`` are as in by_order.inferences_of; ``model`` is
    the ONNX model that the engines were built from.

    Ranges first (`nvtx`, `graph-node`, and `region` where the engine file has one opaque row for a
    Myelin region), then kernel names that only one layer's tactic can have (`tactic`), then the
    order of the kernels within their inference (`order`, and `region` where that order leads into
    an opaque region).  A range around a whole Myelin region that the engine file has split into its
    nodes says less than the order does.
    """
    evidence = gather_evidence(trace, tensorrt)
    resolved = resolve_ranges(
        tensorrt, engines, distinct_rows(evidence.place, len(tensorrt.layers))
    )
    resolved = settle_ranges(trace, tensorrt, evidence, resolved, engines)
    place = evidence.place
    layer = gather(resolved.layer, place)
    method = np.full(len(layer), _NONE, np.int32)
    several = _at(resolved.several, place)
    named = (place >= 0) & ~_at(resolved.ambiguous, place) & ~several
    method[named] = np.where(evidence.replayed[named], _GRAPH_NODE, _NVTX)
    method[named & _at(resolved.inner, place)] = _REGION
    split = named & (layer == MISSING) & _in_split_region(tensorrt, engines, place)
    by_range = method[split]
    method[split] = _NONE
    sure = any(fit.accepted for fit in resolved.fits)
    placed, confidence = _by_order(
        trace, found, streams, engines, _Chosen(layer, method, several), sure=sure
    )
    still = method[split] == _NONE
    kept = np.flatnonzero(split)[still]
    method[kept], confidence[kept], placed.reason.codes[kept] = by_range[still], 1.0, -1
    whose = whose_inferences(
        trace.kernels.text("name"), found, engines, layer, named, resolved.fits
    )
    not_its = np.flatnonzero(whose.refused)
    layer[not_its] = MISSING
    method[not_its] = np.where(
        named[not_its], np.where(evidence.replayed[not_its], _GRAPH_NODE, _NVTX), _NONE
    )
    confidence[not_its[~named[not_its]]] = 0.0
    doubted = np.flatnonzero(
        _at(whose.doubt.codes >= 0, found.membership.ints("inference"))
        & np.isin(method, (_TACTIC, _ORDER))
    )
    if len(doubted):
        most = [IN_DOUBT if engine.detailed else IN_DOUBT_BY_NAMES for engine in engines]
        of = whose.engine[found.membership.ints("inference")[doubted]]
        confidence[doubted] = np.minimum(confidence[doubted], np.array(most)[of])
    table, layer = _with_range_layers(
        tensorrt, layers_table(engines, model), _Places(place, layer, named & (layer == MISSING))
    )
    opaque = _at(table.text("kind").equals("foreign_node"), layer)
    method[opaque & (method == _ORDER)] = _REGION
    inference = found.membership.ints("inference")
    settled = Settled(place, layer, inference, _at(found.table.bools("complete"), inference))
    placing = None
    if model is not None:
        from nsysmap.mapping.parts.parts_by_onnx import note_of, place_on_model

        placing = place_on_model(model, engines, table)
    parts = find_parts(
        trace.kernels, tensorrt, settled, table, placing.namer if placing is not None else None
    )
    reason = _reasons(trace, evidence, resolved, method, has_ranges=len(tensorrt.layers) > 0)
    if len(tensorrt.layers):  # where there are ranges, why they did not tell is the better reason
        placed.reason.codes[layer == MISSING] = -1
    reason = either(placed.reason, reason)
    if len(not_its):
        reason = either(_not_its(whose.refused & ~named), reason)
    mapping = Table(
        MAPPING,
        {
            "layer_id": layer,
            "engine": slim(gather(table.ints("engine"), layer)),
            "layer_index": slim(gather(table.ints("layer_index"), layer)),
            "layer": table.text("name").take(layer),
            "layer_title": called_text(table).take(layer),
            "part": parts.part,
            "method": Text(method, METHODS),
            "confidence": confidence,
            "reason": reason,
            "part_by": parts.by,
        },
    )
    fits = engine_fits(
        engines, resolved.fits, placed, whose, tensorrt=_shows_tensorrt(trace, tensorrt)
    )
    notes = fit_notes(fits, whose, found.table.ints("kernels") > 0)
    if tensorrt.never_closed:
        notes += (
            Note(
                "warning",
                f"{counted(tensorrt.never_closed, 'ExecutionContext:: range')} never ends:"
                f" {_NEVER_ENDS}",
                brief=f"{counted(tensorrt.never_closed, 'ExecutionContext:: range')} never ends",
            ),
        )
    if model is not None and placing is not None:
        notes += (*placing.notes, note_of(model, parts.by))
    placed = replace(placed, reason=Text(packed(placed.reason.codes), placed.reason.values))
    return Mapped(mapping, table, whose.engine, whose.doubt, fits, notes, evidence, placed)


@dataclass(frozen=True)
class _Places:
    place: IntArray  # per kernel
    layer: IntArray  # per kernel
    unknown: BoolArray  # per kernel: in a layer range that no engine has


def _shows_tensorrt(trace: Trace, tensorrt: TensorRtRanges) -> bool:
    names = trace.kernels.text("name").values
    return len(tensorrt.layers) + len(tensorrt.calls) > 0 or any(
        is_tensorrt(decode(name).family, name) for name in names
    )


@dataclass(frozen=True)
class _Chosen:
    """The layers settled so far, which each strategy adds to."""

    layer: IntArray
    method: np.ndarray[tuple[int], np.dtype[np.int32]]
    several: BoolArray  # in a range of a layer that several engines have: left open


def _at(flags: BoolArray, rows: IntArray) -> BoolArray:
    """Returns ``flags[rows]``, with False where a row is MISSING."""
    if not flags.any():
        return np.zeros(len(rows), np.bool_)
    result: BoolArray = flags.take(rows, mode="clip")  # of the first for those without
    result &= rows >= 0
    return result


def _with_range_layers(
    tensorrt: TensorRtRanges, layers: Table, places: _Places
) -> tuple[Table, IntArray]:
    """The layers of the engines plus those that only the trace's ranges name, and each kernel's
    layer number in that longer table.

    A TensorRT range's text is one layer however often it is opened; Myelin's unnumbered texts
    repeat, so there the k-th of a call is a layer of its own.
    """
    kernels = np.flatnonzero(places.unknown)
    if len(kernels) == 0:
        return layers, places.layer
    ranges = tensorrt.ranges
    place = places.place[kernels]
    shown = place.copy()
    name = ranges.text("name").take(tensorrt.layers)
    tagged = name.take(place).where(lambda text: text.startswith("$$myelin$$"))
    outer = tensorrt.outer(place[tagged])
    shown[tagged] = np.where(outer >= 0, outer, place[tagged])
    myelin = ranges.text("domain").take(tensorrt.layers).equals(MYELIN)
    occurrence = np.where(myelin, _occurrence(tensorrt, name.codes.astype(np.int64)), 0)
    (codes, _), number = numbered(name.codes[shown].astype(np.int64), occurrence[shown])
    number, first = in_first_order(number, len(codes))  # in the order in which the trace shows them
    texts = [name.values[code] for code in name.codes[shown[first]].tolist()]
    payload = ranges.text("payload").take(tensorrt.layers[shown[first]]).list()
    named = [
        Layer(at, text, layer_kind(text, None), onnx=payload_nodes(told or ""))
        for at, (text, told) in enumerate(zip(texts, payload, strict=True))
    ]
    added: list[dict[str, object]] = [
        {"layer_id": layer_id, "name": one.name, "title": title, "kind": one.kind}
        for layer_id, (one, title) in enumerate(
            zip(named, layer_titles(named), strict=True), start=len(layers)
        )
    ]
    layer = places.layer.copy()
    layer[kernels] = len(layers) + number
    return layers.with_rows(added), layer


def _occurrence(tensorrt: TensorRtRanges, code: IntArray) -> IntArray:
    """For each range: how many earlier ranges of the same call have the same text."""
    start = tensorrt.ranges.ints("start_ns")[tensorrt.layers]
    order = np.lexsort((start, code, tensorrt.call_of_layer))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (code[order[1:]] != code[order[:-1]]) | (
        tensorrt.call_of_layer[order[1:]] != tensorrt.call_of_layer[order[:-1]]
    )
    first = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    result = np.empty(len(order), np.int64)
    result[order] = np.arange(len(order)) - first
    return result


def _in_split_region(
    tensorrt: TensorRtRanges, engines: Sequence[Engine], place: IntArray
) -> BoolArray:
    """Marks kernels whose innermost range is a whole Myelin region's, where an engine file lists
    the nodes of its regions.
    """
    if not any(layer.region is not None for engine in engines for layer in engine.layers):
        return np.zeros(len(place), np.bool_)
    regions = tensorrt.ranges.text("name").where(lambda name: name.startswith("{ForeignNode["))
    return _at(regions.take(tensorrt.layers), place)


def _by_tactic(
    trace: Trace, inferences: Inferences, engines: Sequence[Engine], chosen: _Chosen
) -> None:
    """Maps kernels whose name only one layer's tactic can have, and that run once in each inference
    (or where every layer's tactic is known).
    """
    names = trace.kernels.text("name")
    inside = inferences.membership.ints("inference") >= 0
    open_rows = np.flatnonzero((chosen.method == _NONE) & inside & ~chosen.several)
    if len(open_rows) == 0:
        return
    tactics: dict[str, list[int]] = {}
    complete = True
    for _, offset, engine in numbered_engines(engines):
        for layer in engine.layers:
            if layer.tactic:
                tactics.setdefault(layer.tactic, []).append(offset + layer.index)
            elif layer.kind not in _NO_KERNELS:
                complete = False
    if not tactics:
        return
    runs = len(inferences.table)
    used = np.bincount(names.codes[inside], minlength=len(names.values))
    only = np.full(len(names.values), MISSING, np.int64)
    for code in np.flatnonzero(
        np.bincount(names.codes[open_rows], minlength=len(names.values))
    ).tolist():
        value = names.values[code]
        matching = (
            [value]
            if value in tactics
            else [
                tactic
                for tactic in tactics
                if tactic[:8] in value and matches_tactic(value, tactic)
            ]
        )
        if len(matching) != 1 or len(tactics[matching[0]]) != 1:
            continue
        if complete or used[code] <= runs:
            only[code] = tactics[matching[0]][0]
    rows = open_rows[only[names.codes[open_rows]] >= 0]
    chosen.layer[rows] = only[names.codes[rows]]
    chosen.method[rows] = _TACTIC


def _by_order(
    trace: Trace,
    inferences: Inferences,
    streams: Streams,
    engines: Sequence[Engine],
    chosen: _Chosen,
    *,
    sure: bool,
) -> tuple[Placed, FloatArray]:
    """Maps the kernels that ranges left open. A tactic that only one layer has counts as exact if
    the engine fits or is ``sure`` to have run.
    """
    exact = chosen.method != _NONE
    known = np.where(exact, chosen.layer, np.int64(MISSING))
    open_ones = ~exact & ~chosen.several & (inferences.membership.ints("inference") >= 0)
    _by_tactic(trace, inferences, engines, chosen)
    placed = place_by_order(trace, inferences, engines, AskedKernels(open_ones, known), streams)
    code = trace.kernels.text("name").where(is_generated)  # a symbol that stands for all equal code
    agreed = (placed.layer == chosen.layer) | ((placed.layer == MISSING) & ~placed.refused & ~code)
    by_tactic = (chosen.method == _TACTIC) & (agreed | (~code if sure else np.False_))
    ordered = open_ones & ~by_tactic
    chosen.layer[ordered] = placed.layer[ordered]
    chosen.method[ordered] = np.where(placed.layer[ordered] >= 0, _ORDER, _NONE)
    confidence = np.where(chosen.method == _NONE, 0.0, 1.0)
    if not sure:
        confidence[by_tactic] = placed.probability[by_tactic]
    in_order = chosen.method == _ORDER
    confidence[in_order] = placed.confidence[in_order]
    placed.reason.codes[by_tactic] = -1
    return placed, confidence


def _not_its(refused: BoolArray) -> Text:
    return Text(np.where(refused, 0, -1).astype(np.int32), (NOT_ITS,))


def _reasons(
    trace: Trace,
    evidence: Evidence,
    resolved: RangeLayers,
    method: np.ndarray[tuple[int], np.dtype[np.int32]],
    *,
    has_ranges: bool,
) -> Text:
    texts = (
        OUTSIDE_TENSORRT,
        OUTSIDE_LAYERS,
        NO_LAUNCH,
        NO_CREATION,
        CREATED_OUTSIDE,
        _AMBIGUOUS,
        NO_RANGES,
        SEVERAL,
    )
    reason = np.full(len(method), texts.index(OUTSIDE_TENSORRT), np.int32)
    if not has_ranges:
        reason[:] = texts.index(NO_RANGES)
    reason[evidence.in_call] = texts.index(OUTSIDE_LAYERS)
    reason[evidence.replayed & evidence.created] = texts.index(CREATED_OUTSIDE)
    reason[evidence.replayed & ~evidence.created] = texts.index(NO_CREATION)
    reason[~evidence.replayed & (trace.kernels.ints("launch") == MISSING)] = texts.index(NO_LAUNCH)
    place = evidence.place
    reason[_at(resolved.ambiguous, place)] = texts.index(_AMBIGUOUS)
    reason[_at(resolved.several, place)] = texts.index(SEVERAL)
    if not has_ranges:
        reason[evidence.created] = texts.index(NO_RANGES)
    reason[method != _NONE] = -1
    return Text(reason, texts)
