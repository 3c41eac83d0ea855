"""Finds unfused attention, norms and softmaxes in layers that the engine file does not open, from
decoded kernel names and their order.

What this does not show: dimensions, data that other kernels read too, and whether the run really is
one block (a product, a softmax and a product that follow one another nearly always are).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import KERNEL_RUNS
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.names.fusion import NORM_PATTERNS, Told, told_by_name

_STEPS = 4  # most kernels between a product and the softmax
_HALVES = frozenset({"layernorm-statistics", "rmsnorm-statistics"})
_ENDS = frozenset({"layernorm-affine", "norm-scale"})
_WHOLE_NORMS = NORM_PATTERNS - _HALVES - {"layernorm-affine"}


@dataclass(frozen=True)
class _Run:
    kind: str
    fused: bool
    first: int  # places in the sequence
    last: int
    kept: tuple[int, ...]  # time that a single kernel would still take


def kernel_runs(kernels: Table, inferences: Table, steady: IntArray, hidden: IntArray) -> Table:
    """The table `kernel_runs`, over the layers whose engine file does not show their inside
    (`hidden`: see hidden_layers).
    """
    rows: list[dict[str, object]] = []
    layer = kernels.ints("layer_id")
    if not len(hidden) or not len(steady):
        return Table.empty(KERNEL_RUNS)
    shapes = inferences.ints("kernel_sequence")
    for shape in np.unique(shapes[steady]):
        if shape == MISSING:
            continue
        numbers = steady[shapes[steady] == shape]
        mine = np.flatnonzero(np.isin(kernels.ints("inference"), numbers))
        one = mine[kernels.ints("inference")[mine] == numbers[0]]
        one = one[np.argsort(kernels.ints("position")[one], kind="stable")]
        if not np.isin(layer[one], hidden).any():
            continue
        time = np.zeros(len(one), np.int64)
        position = kernels.ints("position")[mine]
        inside = position < len(one)
        np.add.at(
            time,
            position[inside],
            (kernels.ints("end_ns") - kernels.ints("start_ns"))[mine][inside],
        )
        devices = np.unique(kernels.ints("device")[mine])
        for places in _sequences(one, kernels, hidden):
            told = [told_by_name(kernels.text("name")[int(one[place])] or "") for place in places]
            for run in _runs(told):
                members = places[run.first : run.last + 1]
                touched = mine[np.isin(position, members)]
                rows.append(
                    {
                        "run_id": len(rows),
                        "kind": run.kind,
                        "fused": run.fused,
                        "layer_id": int(layer[one[members[0]]]),
                        "part": kernels.text("part")[int(one[members[0]])],
                        "kernel_sequence": int(shape),
                        "first_position": members[0],
                        "last_position": members[-1],
                        "kernels": len(members),
                        "names": "; ".join(item.text for item in told[run.first : run.last + 1]),
                        "device": int(devices[0]) if len(devices) == 1 else None,
                        "start_ns": int(kernels.ints("start_ns")[touched].min()),
                        "end_ns": int(kernels.ints("end_ns")[touched].max()),
                        "time_ns": int(time[members].sum()),
                        "kept_ns": _kept_ns(run, time[members]),
                        "inferences": len(numbers),
                    }
                )
    return Table.of_rows(KERNEL_RUNS, rows)


def hidden_layers(layers: Table, engines_with_tensors: Table) -> IntArray:
    """Ids of opaque regions, of the layers of engines that do not show their inside, and of those
    that only ranges name.
    """
    opaque = layers.text("kind").equals("foreign_node")
    shown = np.isin(layers.ints("engine"), engines_with_tensors.ints("engine")) & ~opaque
    ids: IntArray = layers.ints("layer_id")[~shown]
    return ids


def _sequences(rows: IntArray, kernels: Table, hidden: IntArray) -> Iterator[list[int]]:
    """Positions of the kernels that follow one another on a stream inside hidden layers of one
    engine.
    """
    stream, engine = kernels.ints("stream")[rows], kernels.ints("engine")[rows]
    inside = np.isin(kernels.ints("layer_id")[rows], hidden)
    for one in np.unique(stream):
        run: list[int] = []
        for place in np.flatnonzero(stream == one).tolist():
            if run and (not inside[place] or engine[place] != engine[run[-1]]):
                yield run
                run = []
            if inside[place]:
                run.append(place)
        if run:
            yield run


def _runs(told: Sequence[Told]) -> Iterator[_Run]:
    for place, item in enumerate(told):
        if item.attention:
            yield _Run("attention", True, place, place, (place,))
        elif item.memory and item.patterns & {"softmax", "softmax-statistics"}:
            yield from _around_softmax(told, place)
        elif item.memory and item.patterns & _HALVES and not item.patterns & _WHOLE_NORMS:
            end = _first(
                told,
                place + 1,
                lambda other: bool(other.patterns & _ENDS) and not other.patterns & _WHOLE_NORMS,
            )
            if end is not None:
                yield _Run("norm", False, place, end, ())


def _around_softmax(told: Sequence[Told], place: int) -> Iterator[_Run]:
    whole = "softmax" in told[place].patterns
    end = place if whole else _first(told, place + 1, lambda other: other.divides)
    if end is not None and not whole:
        yield _Run("softmax", False, place, end, ())
    if end is not None and not told[end].memory:  # a router's top k, not attention
        return
    before = next(
        (at for at in range(place - 1, max(place - _STEPS, 0) - 1, -1) if not told[at].memory), None
    )
    after = _first(told, (place if end is None else end) + 1, lambda other: other.product)
    if before is not None and told[before].product and after is not None:
        yield _Run("attention", False, before, after, (before, after))


def _first(told: Sequence[Told], start: int, wanted: Callable[[Told], bool]) -> int | None:
    """The first wanted position from `start` on, skipping a few kernels that only move data."""
    for at in range(start, min(start + _STEPS, len(told))):
        if wanted(told[at]):
            return at
        if not told[at].memory:
            return None
    return None


def _kept_ns(run: _Run, time: IntArray) -> int:
    """For attention its products and the longest other kernel; for a split norm or softmax the two
    longest; for a fused block everything.
    """
    if run.fused:
        return int(time.sum())
    if run.kind == "attention":
        products = [place - run.first for place in run.kept]
        return int(time[products].sum() + np.delete(time, products).max(initial=0))
    return int(np.sort(time)[-2:].sum())
