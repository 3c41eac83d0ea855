"""The finest known name for the work of each kernel inside an opaque Myelin region, and the source
of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nsysmap.core.groups import distinct, distinct_rows, rows_by_value, sorted_order
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, CodeArray, IntArray, Table, Text, either
from nsysmap.mapping.parts.parts_by_name import PatternPart, pattern_parts, pattern_word
from nsysmap.mapping.ranges.range_layers import payload_nodes
from nsysmap.trace.inferences.find import sequence_hashes
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.nvtx_ranges import MYELIN

PART_BY = ("tag", "payload", "node", "pattern", "onnx")
_TAG, _PAYLOAD, _NODE, _PATTERN, _ONNX = range(len(PART_BY))
_TAGS = "$$myelin$$"
_DEPTH = 4  # ranges between a launch and the tag around it

Namer = Callable[[int, Sequence[PatternPart]], Sequence[str | None]]
"""Given a region's row in layers and its parts in launch order: the model's name for each part,
None if undecided.
"""


@dataclass(frozen=True)
class Settled:
    """What is known about the kernels before parts are assigned; one row per kernel."""

    # position in TensorRtRanges.layers of the innermost layer range, MISSING if none is
    place: IntArray
    layer: IntArray  # row in layers, MISSING for none
    inference: IntArray  # row in inferences, MISSING for none
    whole: BoolArray  # of an inference that the trace does not cut


@dataclass(frozen=True)
class Parts:
    """One row per kernel; empty outside opaque regions."""

    part: Text
    by: Text  # one of PART_BY


def find_parts(
    kernels: Table,
    tensorrt: TensorRtRanges,
    settled: Settled,
    layers: Table,
    namer: Namer | None = None,
) -> Parts:
    """Finds each kernel's part: from the tag of the trace around its launch, otherwise a JSON
    payload's ONNX layers, otherwise the range's text.

    Where the trace names none it is what the kernels' names say, numbered in launch order within
    the inference and the region ("layernorm #3"; without a number where the inference is cut and
    nothing tells how many came before), or what ``namer`` calls it.
    """
    kind = np.array([*layers.text("kind").equals("foreign_node"), False])
    opaque = kind[np.where(settled.layer >= 0, settled.layer, -1)]
    count = len(kernels)
    if not opaque.any():
        return Parts(Text.same(None, count), Text.same(None, count))
    part, by = _traced(tensorrt, settled, layers, opaque)
    if (by[opaque] < 0).any():
        patterns, named = _by_pattern(kernels, settled, opaque, namer)
        by = np.where((by < 0) & opaque, np.where(named, _ONNX, _PATTERN), by).astype(np.int32)
        part = either(part, patterns)
    return Parts(part, Text(by, PART_BY))


# --- from the trace
# --------------------------------------------------------------------------------------------------


def _traced(
    tensorrt: TensorRtRanges, settled: Settled, layers: Table, opaque: BoolArray
) -> tuple[Text, CodeArray]:
    """A range's text around the launch that is finer than the layer's name, and its PART_BY code
    (-1: none).
    """
    count = len(settled.layer)
    if len(tensorrt.layers) == 0:
        return Text.same(None, count), np.full(count, -1, np.int32)
    ranges = tensorrt.ranges
    names = ranges.text("name").take(tensorrt.layers)
    is_tag = names.where(lambda name: name.startswith(_TAGS))
    place = np.where(opaque, settled.place, -1)
    if is_tag.any():
        place = _up_to_tags(tensorrt, place, is_tag)
    range_name = names.take(place)
    layer_name = layers.text("name").take(settled.layer)
    index = {value: code for code, value in enumerate(layer_name.values)}
    as_layer = range_name.numbers(lambda name: index.get(name, -2), missing=-3)
    finer = opaque & (range_name.codes >= 0) & (as_layer != layer_name.codes)
    tagged = range_name.where(lambda name: name.startswith(_TAGS))
    by = np.where(finer, np.where(tagged, _TAG, _NODE), -1).astype(np.int32)
    part = Text(np.where(finer, range_name.codes, -1).astype(np.int32), range_name.values)
    payload = ranges.text("payload").take(tensorrt.layers)
    if not (payload.codes >= 0).any():
        return part, by
    of_myelin = ranges.text("domain").take(tensorrt.layers).equals(MYELIN)
    onnx = Text.of([", ".join(payload_nodes(value)) or None for value in payload.values])
    onnx_of_range = onnx.take(np.where(of_myelin, payload.codes, -1).astype(np.int64))
    nodes = onnx_of_range.take(np.where(by == _NODE, place, -1))
    return either(nodes, part), np.where(nodes.codes >= 0, _PAYLOAD, by).astype(np.int32)


def _up_to_tags(tensorrt: TensorRtRanges, place: IntArray, is_tag: BoolArray) -> IntArray:
    """The tag around the range if there is one, otherwise the range itself."""
    used = distinct_rows(place, len(tensorrt.layers))
    around = np.arange(len(tensorrt.layers))
    inner = used[~is_tag[used]]
    outer = inner
    for _ in range(_DEPTH):
        if len(inner) == 0:
            break
        outer = tensorrt.outer(outer)
        found = (outer >= 0) & is_tag[np.maximum(outer, 0)]
        around[inner[found]] = outer[found]
        inner, outer = inner[(outer >= 0) & ~found], outer[(outer >= 0) & ~found]
    return np.where(place >= 0, around[np.maximum(place, 0)], -1)


# --- from the kernels' names
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sequence:
    """The kernels of a region in one inference, and in all others with the same launches."""

    rows: IntArray  # inferences x kernels
    layer: int
    codes: IntArray  # kernel names
    whole: bool


def _by_pattern(
    kernels: Table, settled: Settled, opaque: BoolArray, namer: Namer | None
) -> tuple[Text, BoolArray]:
    """The kernels' parts from their names, and whether the namer named them."""
    name = kernels.text("name")
    labels: dict[str, int] = {}
    code = np.full(len(kernels), -1, np.int32)
    named = np.zeros(len(kernels), np.bool_)
    alone = np.flatnonzero(opaque & (settled.inference < 0))
    if len(alone):
        of_name = np.full(len(name.values), -1, np.int32)
        for one in np.unique(name.codes[alone]).tolist():
            of_name[one] = labels.setdefault(pattern_word(name.values[one]), len(labels))
        code[alone] = of_name[name.codes[alone]]
    done: list[tuple[_Sequence, list[str], list[bool]]] = []
    for sequence in sorted(
        _sequences(kernels, settled, np.flatnonzero(opaque & (settled.inference >= 0))),
        key=lambda one: not one.whole,
    ):
        texts, known = _part_of(sequence, done) or _labelled(sequence, kernels, namer)
        if sequence.whole:
            done.append((sequence, texts, known))
        code[sequence.rows] = np.array(
            [labels.setdefault(text, len(labels)) for text in texts], np.int32
        )
        named[sequence.rows] = np.array(known, np.bool_)
    return Text(code, tuple(labels)), named


def _labelled(
    sequence: _Sequence, kernels: Table, namer: Namer | None
) -> tuple[list[str], list[bool]]:
    """The part of each kernel of the sequence, and whether the namer named it."""
    rows = sequence.rows[0]
    names = [value or "" for value in kernels.text("name").take(rows).list()]
    parts = pattern_parts(names, kernels.ints("stream")[rows].tolist())
    given = (
        namer(sequence.layer, parts)
        if namer is not None and sequence.whole
        else [None] * len(parts)
    )
    texts, known = [""] * len(names), [False] * len(names)
    for part, node in zip(parts, given, strict=True):
        for place in part.places:
            texts[place] = node or (part.name if sequence.whole else part.word)
            known[place] = node is not None
    return texts, known


def _part_of(
    sequence: _Sequence, done: Sequence[tuple[_Sequence, list[str], list[bool]]]
) -> tuple[list[str], list[bool]] | None:
    """The whole inference that a cut one is the end or the beginning of, judged by the parts of the
    whole one.
    """
    if sequence.whole:
        return None
    size = len(sequence.codes)
    for other, texts, known in done:
        if other.layer != sequence.layer or len(other.codes) < size:
            continue
        for begin in (0, len(other.codes) - size):
            if np.array_equal(other.codes[begin : begin + size], sequence.codes):
                return texts[begin : begin + size], known[begin : begin + size]
    return None


def _sequences(kernels: Table, settled: Settled, rows: IntArray) -> list[_Sequence]:
    """The kernels of each inference and region, grouped by equal launches."""
    if len(rows) == 0:
        return []
    order = launch_order(kernels, rows, settled.inference[rows])
    order = order[sorted_order(settled.inference[order], settled.layer[order])]
    inference, layer = settled.inference[order], settled.layer[order]
    change = (inference[1:] != inference[:-1]) | (layer[1:] != layer[:-1])
    begin = np.flatnonzero(np.concatenate([[True], change]))
    size = np.diff(np.append(begin, len(order)))
    codes = kernels.text("name").codes[order].astype(np.int64)
    stream = kernels.ints("stream")[order]
    # auxiliary streams count, which stream is the main one does not
    beside = stream - np.repeat(stream[begin], size)
    combined = codes
    for column in (layer, beside):
        values = distinct(column)
        combined = combined * len(values) + np.searchsorted(values, column)
    if combined.max() > 8 * len(order) + 1_000_000:  # the hashes need a number for each
        combined = np.unique(combined, return_inverse=True)[1].reshape(-1)
    _, alike = np.unique(
        sequence_hashes(combined.astype(np.int32), begin, size), return_inverse=True
    )
    found = []
    for _, members in rows_by_value(alike.reshape(-1).astype(np.int64)):
        first = begin[members[0]]
        held = order[begin[members][:, None] + np.arange(size[members[0]])]
        whole = bool(settled.whole[held[:, 0]].any())
        found.append(
            _Sequence(held, int(layer[first]), codes[first : first + size[members[0]]], whole)
        )
    return found
