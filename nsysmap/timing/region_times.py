"""The time of each Myelin region, by part: which node inside a ForeignNode takes the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np

from nsysmap.core.groups import distinct, in_first_order, sorted_order
from nsysmap.core.intervals import BlockBounds
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import REGION_PARTS
from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.names.decode import decode, summary
from nsysmap.names.fusion import part_words
from nsysmap.timing.kernel_time import combinations
from nsysmap.timing.precision import region_of
from nsysmap.timing.totals import counted_kernels

_AT_ONCE = 1 << 19  # kernels whose parts are totalled at a time
_TOLD_BY = {"pattern": "kernel", "onnx": "onnx"}  # of part_by; the others are ranges of the trace


def region_parts(kernels: Table, layers: Table, inferences: Table, steady: IntArray) -> Table:
    """The table `region_parts`, by engine and region, then in the order in which the parts run.

    A part of a region that the engine file opens is one of its layers.  In an opaque region it is
    the kernels' own `part`: a tag or range of the trace, otherwise the decoded kernel names,
    numbered in launch order within an inference ("layernorm #3"), or an ONNX node. `kernels` is
    schema.KERNELS, `steady` the numbers of the steady-state inferences; without any, the whole
    trace counts.
    """
    region = _region_of_layer(layers)
    found: dict[tuple[int, int, str], _Part] = {}
    before = 0
    for order in _in_launch_order(kernels, region, steady):
        _add(found, kernels, layers, region, order, before)
        before += len(order)
    whole: dict[tuple[int, int], int] = defaultdict(int)
    for (one, of_region, _), spent in found.items():
        whole[one, of_region] += spent.time_ns
    made: list[dict[str, object]] = []
    for (one, of_region, label), spent in sorted(
        found.items(), key=lambda item: (*item[0][:2], item[1].first)
    ):
        told_by, _, part = label.partition(":")
        run = _runs(inferences, steady, one)
        made.append(
            {
                "engine": None if one == MISSING else one,
                "region": region.values[of_region],
                "part": part,
                "told_by": told_by,
                "summary": spent.summary(kernels.held_text("name").values),
                "kernels": spent.kernels,
                "time_ns": spent.time_ns,
                "mean_ns": round(spent.time_ns / run) if run else None,
                "share_of_region_time": (
                    spent.time_ns / whole[one, of_region] if whole[one, of_region] else 0.0
                ),
            }
        )
    return Table.of_rows(REGION_PARTS, made)


def parts_of_kernels(
    kernels: Table, layers: Table
) -> tuple[IntArray, list[tuple[int | None, str, str, str]], IntArray]:
    """The part of a region that each kernel belongs to, named as in :func:`region_parts`.

    For each kernel the number of its part (MISSING outside regions; where there are inferences,
    also outside those), for each number engine, region, told_by and part, and the first of its
    kernels.  The parts are in the order in which they first ran.
    """
    region = _region_of_layer(layers)
    number = np.full(len(kernels), MISSING, np.int64)
    order = next(_in_launch_order(kernels, region, np.zeros(0, np.int64)))  # all at once
    inference = kernels.held_ints("inference").take(order)
    order = order[inference >= 0] if (inference >= 0).any() else order
    if not len(order):
        return number, [], order
    label = _labels(kernels, layers, order)
    place = region.codes[kernels.held_ints("layer_id").take(order)].astype(np.int64)
    columns = (kernels.held_ints("engine").take(order), place, label.codes.astype(np.int64))
    keys, codes = combinations(*columns)
    number[order], first = in_first_order(codes, len(keys[0]))
    labels = []
    for engine, of_region, text in zip(
        *(column[first].tolist() for column in columns), strict=True
    ):
        told_by, _, part = label.values[text].partition(":")
        labels.append(
            (None if engine == MISSING else engine, region.values[of_region], told_by, part)
        )
    return number, labels, order[first]


@dataclass
class _Part:
    """The time of one part of a region."""

    first: int  # position of its first kernel in launch order
    kernels: int = 0
    by_name: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # time in ns

    @property
    def time_ns(self) -> int:
        return sum(self.by_name.values())

    def summary(self, names: Sequence[str]) -> str:
        """The part's kernels in words, the costliest first."""
        told = sorted(
            (-spent, summary(decode(names[name]))) for name, spent in self.by_name.items()
        )
        return "; ".join(dict.fromkeys(text for _, text in told))


def _in_launch_order(kernels: Table, region: Text, steady: IntArray) -> Iterator[IntArray]:
    """The kernels in regions of the steady-state inferences, by inference and launch, in batches of
    inferences.
    """
    parts = [np.zeros(0, np.int64)]
    for rows, _, layer in counted_kernels(kernels, steady, "layer_id"):
        parts.append(rows[_in_region(layer, region)])
    rows = np.concatenate(parts)
    inference = kernels.held_ints("inference").take(rows)
    cuts = [int(inference.min(initial=0)), int(inference.max(initial=0)) + 1]
    if len(steady):
        cuts[1:1] = (
            np.flatnonzero(np.diff(np.cumsum(np.bincount(inference)) // _AT_ONCE)) + 1
        ).tolist()
    blocks = BlockBounds.of(inference, inference)
    for first, last in pairwise(sorted(set(cuts))):
        at = blocks.near(first, last - 1)
        at = at[(inference[at] >= first) & (inference[at] < last)]
        mine = rows[at]
        position = kernels.held_ints("position").take(mine)
        yield mine[np.lexsort((np.where(position >= 0, position, mine), inference[at]))]


def _add(
    found: dict[tuple[int, int, str], _Part],
    kernels: Table,
    layers: Table,
    region: Text,
    order: IntArray,
    before: int,
) -> None:
    """Adds kernels that follow that many others in launch order."""
    if not len(order):
        return
    label = _labels(kernels, layers, order)
    engine, layer, start, end = (
        kernels.held_ints(name).take(order) for name in ("engine", "layer_id", "start_ns", "end_ns")
    )
    name = kernels.held_text("name").codes[order].astype(np.int64)
    place = region.codes[layer].astype(np.int64)
    keys, number = combinations(engine, place, label.codes.astype(np.int64), name)
    time, count = np.zeros(len(keys[0]), np.int64), np.bincount(number, minlength=len(keys[0]))
    np.add.at(time, number, end - start)
    first = np.full(len(keys[0]), len(order), np.int64)
    np.minimum.at(first, number, np.arange(len(order)))
    columns = (*keys, time, count, first)
    for one, of_region, text, code, spent, size, at in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        part = found.setdefault((one, of_region, label.values[text]), _Part(before + at))
        part.first = min(part.first, before + at)
        part.kernels += size
        part.by_name[code] += spent


def _region_of_layer(layers: Table) -> Text:
    """The region of each layer, by its row."""
    return Text.of(
        region_of(row.text("name"), row.text("kind"), row.maybe_integer("region")) for row in layers
    )


def _in_region(layer: IntArray, region: Text) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if not len(region):
        return np.zeros(len(layer), np.bool_)
    known = layer >= 0
    result: np.ndarray[tuple[int], np.dtype[np.bool_]] = known & (
        region.codes[np.where(known, layer, 0)] >= 0
    )
    return result


def _labels(kernels: Table, layers: Table, order: IntArray) -> Text:
    """For each kernel the source of its part, a colon, and the part. Kernels of one inference are
    contiguous, in launch order.
    """
    layer = kernels.held_ints("layer_id").take(order)
    part = kernels.held_text("part").take(order)
    opaque = layers.text("kind").equals("foreign_node")[layer]
    name = kernels.held_text("name").take(order)
    codes = np.where(opaque, np.where(part.codes >= 0, 0, 2), 1)
    nameless = np.zeros(len(layers), np.bool_)
    nameless[layer[codes == 2]] = True
    counted, number = np.flatnonzero(nameless[layer]), np.zeros(len(order), np.int64)
    asked = set(distinct(name.codes[counted].astype(np.int64)).tolist())
    words = Text.of(
        [part_words(decode(one)) if code in asked else "" for code, one in enumerate(name.values)]
    )
    word = words.codes[name.codes].astype(np.int64)
    number[counted] = _occurrence(
        np.stack(
            [kernels.held_ints("inference").take(order[counted]), layer[counted], word[counted]]
        )
    )
    own = np.where(codes == 0, part.codes, np.where(codes == 1, layer, word)).astype(np.int64)
    by = kernels.held_text("part_by").take(order)
    told = np.array([*(_TOLD_BY.get(value, "trace") for value in by.values), "trace"])
    of_part = np.full(len(part.values) + 1, "trace", told.dtype)
    of_part[part.codes] = told[by.codes]
    number[codes != 2] = 0
    combined, inverse = combinations(codes.astype(np.int64), own, number)
    layer_name = layers.text("name")
    texts = []
    for code, one, occurrence in np.stack(combined).T.tolist():
        if code == 0:
            texts.append(f"{of_part[one]}:{part.values[one]}")
        elif code == 1:
            texts.append(f"engine:{layer_name[one]}")
        else:
            texts.append(f"kernel:{words.values[one]} #{occurrence}")
    values = tuple(dict.fromkeys(texts))  # two layers of one name are one part
    index = {value: code for code, value in enumerate(values)}
    return Text(np.array([index[text] for text in texts], np.int32)[inverse], values)


def _occurrence(keys: IntArray) -> IntArray:
    """For each column its number, from 1, among the equal columns up to it."""
    order = sorted_order(*keys)
    begins = np.concatenate([[True], (np.diff(keys[:, order], axis=1) != 0).any(axis=0)])[
        : len(order)
    ]
    place = np.arange(len(order))
    since = place - np.maximum.accumulate(np.where(begins, place, 0)) + 1
    result = np.empty(len(order), np.int64)
    result[order] = since
    return result


def _runs(inferences: Table, steady: IntArray, engine: int) -> int:
    measured = np.isin(inferences.ints("inference"), steady)
    return int(np.count_nonzero(measured & (inferences.ints("engine") == engine)))
