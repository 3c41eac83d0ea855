"""Finds the engine layer of each TensorRT layer range."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from nsysmap.core.groups import distinct_rows, rows_by_value
from nsysmap.core.memory import in_pieces
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, CodeArray, IntArray, Text
from nsysmap.inputs.engine.layer_info import onnx_nodes
from nsysmap.inputs.engine.model import Engine, numbered_engines
from nsysmap.names.decode import normalized_range_text
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.launches import gather

ACCEPTED = 0.8
"""An engine must have at least this share of the distinct layer ranges with kernels to be taken as
the one that ran. Measured on the captures: the right engine has all of them, the best wrong one 73
%.
"""

_FOREIGN = "{ForeignNode["
_DEPTH = 4  # ranges between a launch and the range of its region


@dataclass(frozen=True)
class EngineFit:
    """How well one engine file explains the layer ranges that ran kernels."""

    engine: int
    # distinct range texts of the calls that this engine fits best, or of all calls where it fits
    # none
    ranges: int
    known: int  # of them known to the engine
    accepted: bool
    trace_layer: str | None  # one of the range texts that it does not know
    engine_layer: str | None  # one of its layers that no range names
    # of the known ones: names of parts inside a region of the engine, which are no layers of it
    parts: int = 0
    # the files with the same layers, its own among them, where it is not known to have run
    several: tuple[int, ...] = ()
    shown: bool = False  # … of which one did, and the layers of the first of them are shown
    named: frozenset[int] = frozenset()  # its layers that any range names, with kernels or without


@dataclass(frozen=True)
class RangeLayers:
    """One row per layer range (in the order of TensorRtRanges.layers)."""

    layer: IntArray  # layer number over all engines, MISSING if no engine has it
    # the engine knows only the range around it: the layer is an opaque region and this range a part
    # of it
    inner: BoolArray
    engine: IntArray  # the engine that ran the call around it, MISSING if none fits
    # the engine has several layers of this text and their number does not fit the call
    ambiguous: BoolArray
    several: BoolArray  # several engines have the layer, and nothing tells which of them ran
    fits: tuple[EngineFit, ...]


def resolve_ranges(
    tensorrt: TensorRtRanges, engines: Sequence[Engine], used: IntArray
) -> RangeLayers:
    """The layer of each range; ``used`` are the positions of the ranges in which kernels were
    launched.

    A range's text is the layer's name.  TensorRT 10.3's myelin-exec ranges leave out
    ``_myl<R>_<i>`` and write dots as underscores, so several layers share a text: then a JSON
    payload's ONNX layers decide, and after that the order within the call. Each call of the engine
    is matched to the engine file that knows most of its ranges.
    """
    ranges = tensorrt.ranges
    names = ranges.text("name").take(tensorrt.layers)
    count = len(tensorrt.layers)
    layer = np.full(count, MISSING, np.int64)
    inner = np.zeros(count, np.bool_)
    ambiguous = np.zeros(count, np.bool_)
    if not engines or count == 0:
        return RangeLayers(
            layer,
            inner,
            np.full(count, MISSING, np.int64),
            ambiguous,
            np.zeros(count, np.bool_),
            (),
        )
    lookups = [_Lookup.of(engine, names) for engine in engines]
    outer = _outer_of_unknown(tensorrt, lookups, names.codes)
    engine_of_range, fits = _choose(tensorrt, lookups, names.codes, outer, used)
    payloads = ranges.text("payload").take(tensorrt.layers)
    for (number, offset, engine), lookup in zip(numbered_engines(engines), lookups, strict=True):
        mine = engine_of_range == number
        one = np.array([found[0] if len(found) == 1 else -1 for found in lookup.found], np.int64)
        several = np.array([len(found) > 1 for found in lookup.found])
        local = np.where(mine & (one[names.codes] >= 0), one[names.codes], np.int64(MISSING))
        shared = np.flatnonzero(mine & several[names.codes])
        local[shared], ambiguous[shared] = _by_order(
            tensorrt, lookup, _Shared(shared, names, payloads), engine
        )
        around = gather(local, outer)
        within = mine & (local == MISSING) & (around >= 0) & ~ambiguous
        inner |= within
        local = np.where(within, around, local)
        layer = np.where(mine & (local >= 0), local + offset, layer)
    return RangeLayers(layer, inner, engine_of_range, ambiguous, np.zeros(count, np.bool_), fits)


@dataclass(frozen=True)
class _Lookup:
    # for each distinct range text the engine's layers that it can stand for
    found: tuple[tuple[int, ...], ...]
    split: bool  # Myelin regions are split into their nodes
    layers: int
    named: frozenset[int]  # its layers that ranges name
    unseen: str | None  # the first of its layers that no range names

    @staticmethod
    def of(engine: Engine, names: Text) -> _Lookup:
        exact: dict[str, list[int]] = {}
        loose: dict[str, list[int]] = {}
        for layer in engine.layers:
            exact.setdefault(layer.name, []).append(layer.index)
            loose.setdefault(normalized_range_text(layer.name), []).append(layer.index)
        found = tuple(tuple(exact.get(value) or loose.get(value) or ()) for value in names.values)
        seen = frozenset(index for indices in found for index in indices)
        unseen = next((layer.name for layer in engine.layers if layer.index not in seen), None)
        return _Lookup(
            found,
            any(layer.region is not None for layer in engine.layers),
            len(engine.layers),
            seen,
            unseen,
        )


def _outer_of_unknown(
    tensorrt: TensorRtRanges, lookups: Sequence[_Lookup], codes: CodeArray
) -> IntArray:
    """For ranges whose text some engine does not know: the position of the next enclosing range
    that an engine may know; otherwise MISSING.

    A region's own range is in none.
    """
    names = tensorrt.ranges.text("name").take(tensorrt.layers).values
    unknown = np.array(
        [
            not value.startswith(_FOREIGN) and not all(lookup.found[code] for lookup in lookups)
            for code, value in enumerate(names)
        ]
    )
    places = np.flatnonzero(unknown[codes])
    outer = np.full(len(codes), MISSING, np.int64)
    outer[places] = tensorrt.outer(places)
    by_none = unknown & np.array(
        [not any(lookup.found[code] for lookup in lookups) for code in range(len(names))], np.bool_
    )
    for _ in range(_DEPTH):  # a Myelin node may lie in a tag, and the tag in the region
        again = places[(outer[places] >= 0) & by_none[codes[np.maximum(outer[places], 0)]]]
        if not len(again):
            break
        outer[again] = tensorrt.outer(outer[again])
    return outer


def _innermost_of_all(tensorrt: TensorRtRanges) -> IntArray:
    every = np.arange(len(tensorrt.layers))
    return np.setdiff1d(every, tensorrt.outer(every))


def _pairs(group: IntArray, codes: CodeArray, probe: IntArray, distinct: int) -> IntArray:
    """The distinct pairs of group and code of these ranges, each as group * distinct + code,
    ascending.
    """
    found = [group[rows] * distinct + codes[rows] for _, rows in in_pieces(probe)]
    return distinct_rows(
        np.concatenate([np.zeros(0, np.int64), *found]), (int(group.max(initial=0)) + 1) * distinct
    )


def _choose(
    tensorrt: TensorRtRanges,
    lookups: Sequence[_Lookup],
    codes: CodeArray,
    outer: IntArray,
    used: IntArray,
) -> tuple[IntArray, tuple[EngineFit, ...]]:
    """For each range the engine that fits its call best (MISSING if none fits well enough), and how
    well each engine fits.
    """
    call = tensorrt.call_of_layer
    # ranges outside any call share one group
    group = np.where(call >= 0, call, len(tensorrt.calls))
    distinct = len(lookups[0].found)
    # no kernels in the trace: every innermost range
    probe = used if len(used) else _innermost_of_all(tensorrt)
    pairs = _pairs(group, codes, probe, distinct)
    # a part's region: `$$myelin$$…` tags are known by the range around them
    outer_of_code = np.full(distinct, -1, np.int64)
    has_outer = np.flatnonzero(outer >= 0)
    outer_of_code[codes[has_outer]] = codes[outer[has_outer]]
    names = tensorrt.ranges.text("name").take(tensorrt.layers).values
    total = np.zeros((len(lookups), len(tensorrt.calls) + 1), np.int64)
    known = np.zeros_like(total)
    knowing, saying = [], []
    for number, lookup in enumerate(lookups):
        knows = np.array([*(bool(found) for found in lookup.found), False])
        knows[:-1] |= knows[outer_of_code] & (outer_of_code >= 0)
        knowing.append(knows)
        # A split region's own range says nothing about the engine: the engine file has its nodes
        # instead.
        counts = np.array(
            [
                not (lookup.split and value.startswith(_FOREIGN)) or bool(found)
                for value, found in zip(names, lookup.found, strict=True)
            ]
        )
        saying.append(counts)
        for _, pair in in_pieces(pairs):
            probe_group, probe_code = pair // distinct, pair % distinct
            counted = counts[probe_code]
            total[number] += np.bincount(probe_group[counted], minlength=total.shape[1])
            known[number] += np.bincount(
                probe_group[counted & knows[probe_code]], minlength=total.shape[1]
            )
    share = np.divide(known, total, out=np.zeros(total.shape), where=total > 0)
    size = np.array([lookup.layers for lookup in lookups])
    # of two engines that know all, the one with fewer layers left over
    covered = known / size[:, None]
    best = (
        np.lexsort((covered.T, share.T), axis=-1)[:, -1]
        if len(lookups) > 1
        else np.zeros(total.shape[1], np.int64)
    )
    accepted = share[best, np.arange(total.shape[1])] >= ACCEPTED
    engine = np.where(accepted, best, np.int64(MISSING))
    fits = []
    for number in range(len(lookups)):
        of_engine = (engine == number) & (total[number] > 0)
        here, anywhere = (np.zeros(distinct, np.bool_) for _ in range(2))
        for _, pair in in_pieces(pairs):
            here[pair[of_engine[pair // distinct]] % distinct] = True
            anywhere[pair % distinct] = True
        texts = np.flatnonzero((here if here.any() else anywhere) & saying[number])
        known_texts = knowing[number][texts]
        strange = next((names[code] for code in texts[~known_texts].tolist()), None)
        known_ones, lookup = int(np.count_nonzero(known_texts)), lookups[number]
        parts = sum(not lookup.found[code] for code in texts[known_texts].tolist())
        fits.append(
            EngineFit(
                number,
                len(texts),
                known_ones,
                bool(here.any()),
                strange,
                lookup.unseen,
                named=lookup.named,
                parts=parts,
            )
        )
    return engine[group], tuple(fits)


@dataclass(frozen=True)
class _Shared:
    """Ranges whose text belongs to several layers."""

    at: IntArray  # positions among the layer ranges
    names: Text
    payloads: Text


def _by_order(
    tensorrt: TensorRtRanges, lookup: _Lookup, shared: _Shared, engine: Engine
) -> tuple[IntArray, BoolArray]:
    """The k-th range of a text within a call is the k-th layer of that text; ranges with a payload
    are matched only with layers of its ONNX nodes.
    """
    chosen = np.full(len(shared.at), MISSING, np.int64)
    doubtful = np.zeros(len(shared.at), np.bool_)
    if len(shared.at) == 0:
        return chosen, doubtful
    ranges = tensorrt.ranges
    onnx_of = [payload_nodes(value) for value in shared.payloads.values]
    call = tensorrt.call_of_layer[shared.at]
    last_call = _last_calls(tensorrt)
    key = np.stack(
        [
            call,
            shared.names.codes[shared.at].astype(np.int64),
            shared.payloads.codes[shared.at].astype(np.int64),
        ]
    )
    order = np.lexsort(
        (ranges.ints("start_ns")[tensorrt.layers[shared.at]], key[2], key[1], key[0])
    )
    change = np.flatnonzero((np.diff(key[:, order], axis=1) != 0).any(axis=0)) + 1
    candidates: dict[tuple[int, int], tuple[int, ...]] = {}
    for group in np.split(order, change):
        code, payload = int(key[1, group[0]]), int(key[2, group[0]])
        if (code, payload) not in candidates:
            found = lookup.found[code]
            narrowed = (
                tuple(index for index in found if engine.layers[index].onnx == onnx_of[payload])
                if payload >= 0
                else ()
            )
            candidates[code, payload] = narrowed or found
        layers = candidates[code, payload]
        # the trace ended within this call
        cut = len(group) < len(layers) and int(call[group[0]]) in last_call
        if len(group) == len(layers) or cut:
            chosen[group] = layers[: len(group)]
        elif len(layers) == 1:
            chosen[group] = layers[0]
        else:
            doubtful[group] = True
    return chosen, doubtful


def _last_calls(tensorrt: TensorRtRanges) -> set[int]:
    """The positions of the last ExecutionContext:: range of each thread."""
    thread = tensorrt.ranges.ints("thread")[tensorrt.calls]
    return {int(rows[-1]) for _, rows in rows_by_value(thread)}


def payload_nodes(payload: str) -> tuple[str, ...]:
    """The ONNX nodes of a myelin-exec range's JSON payload ({"Name": …, "Layers": …}); none for
    other payloads.
    """
    try:
        value: object = json.loads(payload)
    except (ValueError, RecursionError):
        return ()
    layers = value.get("Layers") if isinstance(value, dict) else None
    return onnx_nodes(layers) if isinstance(layers, str) else ()
