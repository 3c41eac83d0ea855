"""The time of each Myelin region, by part: which node inside a ForeignNode takes the time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from nsysmap.base.groups import distinct, sorted_order
from nsysmap.base.result_schema import REGION_PARTS
from nsysmap.base.table import MISSING, IntArray, Table, Text
from nsysmap.names.decode import decode, summary
from nsysmap.names.fusion import part_words
from nsysmap.timing.kernel_time import combinations
from nsysmap.timing.precision import region_of

_TOLD_BY = {"pattern": "kernel", "onnx": "onnx"}  # of part_by; the others are ranges of the trace


def region_parts(kernels: Table, layers: Table, inferences: Table, steady: IntArray) -> Table:
    """The table `region_parts`, by engine and region, then in the order in which the parts run.

    A part of a region that the engine file opens is one of its layers.  In an opaque region it is the kernels' own `part`: a tag or range
    of the trace, else what the kernels' names say, numbered in launch order within an inference ("layernorm #3"), or an ONNX node.
    `kernels` is schema.KERNELS, `steady` the numbers of the steady-state inferences; without any the whole trace counts.
    """
    inference = kernels.ints("inference")
    wanted = np.isin(inference, steady) if len(steady) else np.ones(len(kernels), np.bool_)
    region = _region_of_layer(layers)
    rows = np.flatnonzero(wanted & _in_region(kernels.ints("layer_id"), region))
    if not len(rows):
        return Table.empty(REGION_PARTS)
    order = rows[np.lexsort((_launch_order(kernels)[rows], inference[rows]))]
    label = _labels(kernels, layers, order)
    engine, place = kernels.ints("engine")[order], region.codes[kernels.ints("layer_id")[order]].astype(np.int64)
    (engines, places, labels), number = combinations(engine, place, label.codes.astype(np.int64))
    time, count = np.zeros(len(engines), np.int64), np.bincount(number, minlength=len(engines))
    np.add.at(time, number, (kernels.ints("end_ns") - kernels.ints("start_ns"))[order])
    first = np.full(len(engines), len(order), np.int64)
    np.minimum.at(first, number, np.arange(len(order)))
    summaries = _summaries(kernels, order, number)
    whole: dict[tuple[int, int], int] = defaultdict(int)
    for one, of_region, spent in zip(engines.tolist(), places.tolist(), time.tolist(), strict=True):
        whole[one, of_region] += spent
    made: list[dict[str, object]] = []
    for row in np.lexsort((first, places, engines)).tolist():
        one, of_region, spent = int(engines[row]), int(places[row]), int(time[row])
        told_by, _, part = label.values[labels[row]].partition(":")
        run = _runs(inferences, steady, one)
        made.append(
            {
                "engine": None if one == MISSING else one,
                "region": region.values[of_region],
                "part": part,
                "told_by": told_by,
                "summary": summaries[row],
                "kernels": int(count[row]),
                "time_ns": spent,
                "mean_ns": round(spent / run) if run else None,
                "share_of_region_time": spent / whole[one, of_region] if whole[one, of_region] else 0.0,
            }
        )
    return Table.of_rows(REGION_PARTS, made)


def _region_of_layer(layers: Table) -> Text:
    """The region of each layer, by its row."""
    return Text.of(region_of(row.text("name"), row.text("kind"), row.maybe_integer("region")) for row in layers)


def _in_region(layer: IntArray, region: Text) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if not len(region):
        return np.zeros(len(layer), np.bool_)
    known = layer >= 0
    result: np.ndarray[tuple[int], np.dtype[np.bool_]] = known & (region.codes[np.where(known, layer, 0)] >= 0)
    return result


def _summaries(kernels: Table, order: IntArray, number: IntArray) -> list[str]:
    """For each number what its kernels are, the costliest first."""
    name = kernels.text("name").take(order)
    (numbers, names), pair = combinations(number, name.codes.astype(np.int64))
    time = np.zeros(len(numbers), np.int64)
    np.add.at(time, pair, (kernels.ints("end_ns") - kernels.ints("start_ns"))[order])
    told: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for one, code, spent in zip(numbers.tolist(), names.tolist(), time.tolist(), strict=True):
        told[one].append((-spent, summary(decode(name.values[code]))))
    return ["; ".join(dict.fromkeys(text for _, text in sorted(told[one]))) for one in range(len(told))]


def _launch_order(kernels: Table) -> IntArray:
    position = kernels.ints("position")
    return np.where(position >= 0, position, np.arange(len(position)))


def _labels(kernels: Table, layers: Table, order: IntArray) -> Text:
    """What tells each kernel's part, a colon, and the part; kernels of one inference lie together, in launch order."""
    layer = kernels.ints("layer_id")[order]
    part = kernels.text("part").take(order)
    opaque = layers.text("kind").equals("foreign_node")[layer]
    name = kernels.text("name").take(order)
    codes = np.where(opaque, np.where(part.codes >= 0, 0, 2), 1)
    nameless = np.zeros(len(layers), np.bool_)
    nameless[layer[codes == 2]] = True
    counted, number = np.flatnonzero(nameless[layer]), np.zeros(len(order), np.int64)
    asked = set(distinct(name.codes[counted].astype(np.int64)).tolist())
    words = Text.of([part_words(decode(one)) if code in asked else "" for code, one in enumerate(name.values)])
    word = words.codes[name.codes].astype(np.int64)
    number[counted] = _occurrence(np.stack([kernels.ints("inference")[order[counted]], layer[counted], word[counted]]))
    own = np.where(codes == 0, part.codes, np.where(codes == 1, layer, word)).astype(np.int64)
    by = kernels.text("part_by").take(order)
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
    """For each column its number, from 1, among the equal columns before it."""
    order = sorted_order(*keys)
    begins = np.concatenate([[True], (np.diff(keys[:, order], axis=1) != 0).any(axis=0)])[: len(order)]
    place = np.arange(len(order))
    since = place - np.maximum.accumulate(np.where(begins, place, 0)) + 1
    result = np.empty(len(order), np.int64)
    result[order] = since
    return result


def _runs(inferences: Table, steady: IntArray, engine: int) -> int:
    measured = np.isin(inferences.ints("inference"), steady)
    return int(np.count_nonzero(measured & (inferences.ints("engine") == engine)))
