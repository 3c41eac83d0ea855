"""How right `nsysmap compare` is on captures whose truth is known: false calls, power, pairs that
were timed without the profiler.

python benchmarks/compare.py [halves] [slowdowns] [pairs] [joins]
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

from nsysmap.analysis import analyze_mapped
from nsysmap.comparison.compare import compare_sides
from nsysmap.comparison.side import Side, side_of
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.mapping.selection import Selection
from nsysmap.network.layer_network import network_of
from nsysmap.network.matched_groups import groups_of
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.joining.networks import mixed_up  # noqa: E402

PLACES = (
    ROOT / "fixtures",
    ROOT.parent / "shared" / "captures",
    ROOT.parents[1] / "shared" / "captures",
)
CAPTURES = {
    "aux_streams/graph": ("engine.json",), "aux_streams/sync": ("engine.json",),
    "bert_split_trt10/pageable": ("engine.json",),
    "bert_split_trt10/sync": ("engine.json",), "bert_trt10/graph": ("engine.json",),
    "bert_trt10/sync": ("engine.json",),
    "bert_trt103/graph": ("engine.json",), "bert_trt103/sync": ("engine.json",),
    "bert_trt85/sync": ("engine.json",),
    "bert_trt86/sync": ("engine.json",), "bert_trt10/hostgap": ("engine.json",),
    "bert_split_trt10/threads": ("engine.json",),
    "two_shapes/sync": ("engine.json",),
    "decode_loop/sync": ("context.engine.json", "generation.engine.json"),
    "torch_mixed/sync": ("backbone.engine.json", "head.engine.json"),
    "two_gpus/tp_sync": ("tp.engine.json",),
    "two_gpus/tp_graph": ("tp.engine.json",), "mobilenet_qat/sync": ("engine.json",),
    "mobilenet_qat/pinned": ("engine.json",),
    "newer/bert_sync": (), "newer/bert_graph": (), "newer/aux_graph": (),
}  # fmt: skip
"""Captures with a steady run, and their engine files."""


def found(name: str, suffix: str = ".nsys-rep") -> Path | None:
    return next((path for place in PLACES if (path := place / (name + suffix)).exists()), None)


@lru_cache(maxsize=4)
def trace_of(name: str) -> Trace:
    path = found(name)
    assert path is not None
    return open_trace(path)


def side(name: str, trace: Trace | None = None, selection: Selection | None = None) -> Side:
    path = found(name)
    assert path is not None
    engines = read_engines([path.parent / file for file in CAPTURES[name]])
    mapped = map_trace(trace or trace_of(name), engines, selection=selection)
    return side_of(analyze_mapped(mapped, rules=[]))


# --- one capture cut in half
# ------------------------------------------------------------------------------------------


def halves(pairs: int = 100) -> None:
    """Consecutive inferences of one capture, cut in the middle: nothing changed between the two."""
    dice = random.Random(13)
    names = [name for name in CAPTURES if found(name)]
    whole, by_layer, done, few, paced = 0, 0, 0, 0, 0
    cut: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    for at in range(pairs):
        cut[names[at % len(names)]].append((dice.randrange(1 << 30), dice.randrange(1 << 30)))
    for name, seeds in cut.items():
        whole_side = side(name)
        numbers = np.sort(whole_side.tables["inference_times"].ints("inference"))
        called, sure = 0, 0
        for one, two in seeds:
            most = (len(numbers) - 1) // 2
            size = most if most <= 16 else 16 + one % (most - 15)
            first = two % (len(numbers) - 2 * size + 1)
            chosen = (numbers[first : first + size], numbers[first + size : first + 2 * size])
            sides = [
                side(name, selection=Selection(inferences=(int(part[0]), int(part[-1]))))
                for part in chosen
            ]
            result = compare_sides(sides[0], sides[1])
            done += 1
            few += result.verdict in ("too few inferences", "cannot tell")
            called += result.significant
            sure += any(result.layers.bools("significant"))
            paced += any("pace" in one.what for one in result.conditions)
        whole, by_layer = whole + called, by_layer + sure
        print(
            f"  {name:28} {len(seeds):3} pairs: {called} called, {sure} with a layer called",
            flush=True,
        )
    print(
        f"{done} pairs: {whole} called different, {by_layer} with a layer called, {few} not tested,"
        f" {paced} said to run at another pace"
    )


# --- an injected slowdown
# ---------------------------------------------------------------------------------------------

SLOWED = (
    "bert_trt10/sync",
    "bert_trt10/graph",
    "bert_trt85/sync",
    "aux_streams/sync",
    "bert_split_trt10/pageable",
)


def slowed(trace: Trace, rows: IntArray, share: float) -> Trace:
    """The trace with these kernels that much longer, and all that begins after the end of one later
    by as much as was added before.
    """
    kernels = trace.kernels
    longer = np.zeros(len(kernels), np.int64)
    longer[rows] = np.rint(
        (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows] * share
    ).astype(np.int64)
    order = np.argsort(kernels.ints("end_ns"), kind="stable")
    ends, added = kernels.ints("end_ns")[order], np.concatenate([[0], np.cumsum(longer[order])])

    def moved(times: IntArray) -> IntArray:
        shift = added[np.searchsorted(ends, times, side="right")]
        return np.where(times == MISSING, times, times + shift)

    def table(one: Table) -> Table:
        columns = dict(one.columns)
        for column in one.spec.columns:
            if column.unit == "ns" and column.name.endswith(("start_ns", "end_ns")):
                columns[column.name] = moved(one.ints(column.name))
        return Table(one.spec, columns)

    changed = {key: table(value) for key, value in vars(trace).items() if isinstance(value, Table)}
    later = changed["kernels"]
    exact = later.ints("start_ns") + (kernels.ints("end_ns") - kernels.ints("start_ns")) + longer
    changed["kernels"] = Table(later.spec, {**later.columns, "end_ns": exact})
    return replace(trace, **changed)  # type: ignore[arg-type]


def slowdowns() -> None:
    """One layer of a real trace takes 1, 2 or 5 % longer: is it found, named, and of the right
    size?
    """
    print(
        "  capture                      share of kernel time  slower  whole called  layer called "
        " others  size (true)"
    )
    for name in SLOWED:
        before = side(name)
        layers = before.tables["layers"]
        order = np.argsort(-layers.floats("share_of_kernel_time"), kind="stable")
        ran = [int(at) for at in order if layers.floats("share_of_kernel_time")[at] > 0]
        for at in (ran[0], ran[len(ran) // 3]):
            for share in (0.01, 0.02, 0.05):
                rows = np.flatnonzero(before.tables["kernels"].ints("layer_id") == at)
                result = compare_sides(before, side(name, slowed(trace_of(name), rows, share)))
                told = result.layers.records()
                named = str(layers.text("name")[at])
                mine = next(row for row in told if named in str(row["after"]).split("; "))
                others = sum(bool(row["significant"]) for row in told) - bool(mine["significant"])
                true = share * float(layers.ints("time_ns")[at])
                part = float(layers.floats("share_of_kernel_time")[at])
                print(
                    f"  {name:28} {part:18.1%} {share:8.0%}"
                    f" {'yes' if result.significant else 'no':>12}"
                    f" {'yes' if mine['significant'] else 'no':>13} {others:7}"
                    f" {mine['difference_ns']:>8} ({true:.0f}) ns",
                    flush=True,
                )


# --- pairs that were timed without the profiler
# -----------------------------------------------------------------------

TIMED = (
    {
        "bert_trt10/sync": 332.78, "bert_trt10/graph": 280.14, "bert_trt10/hostgap": 1214.92,
        "bert_trt103/sync": 187.72,
        "bert_trt103/graph": 154.37, "bert_trt85/sync": 406.20, "bert_split_trt10/sync": 318.67,
        "bert_split_trt10/pageable": 515.11,
        "bert_split_trt10/threads": 193.03,
    },
    {"aux_streams/sync": 337.76, "aux_streams/graph": 163.97, "newer/aux_graph": 163.97},
    {"mobilenet_qat/sync": 575.38, "mobilenet_qat/pinned": 611.79},
)  # fmt: skip
"""Captures of the same network, with the µs that an inference took without the profiler, in a run
of its own.
"""


def pairs() -> None:
    """Direction and size against what was measured without the profiler: every two captures of the
    same network.
    """
    inside, direction, done = 0, 0, 0
    print(
        "  pair                                                  measured    told      interval    "
        "         inside  verdict       sum"
    )
    for timed in TIMED:
        sides = {name: side(name) for name in timed if found(name)}
        for before, after in combinations(sides, 2):
            result = compare_sides(sides[before], sides[after])
            true = (timed[after] - timed[before]) * 1000
            assert result.interval_ns is not None and result.difference_ns is not None
            low, high = result.interval_ns
            exact = sum(part.ns for part in result.contributions) == result.difference_ns
            done, inside = done + 1, inside + (low <= true <= high)
            direction += not result.significant or (result.verdict == "slower") == (true > 0)
            print(
                f"  {before + ' → ' + after:52} {true / 1e3:+8.1f}"
                f" {result.difference_ns / 1e3:+8.1f}  [{low / 1e3:+8.1f}, {high / 1e3:+8.1f}] µs "
                f" {'yes' if low <= true <= high else 'NO':>4}  {result.verdict[:13]:13}"
                f" {'exact' if exact else 'NOT EXACT'}",
                flush=True,
            )
    print(
        f"{done} pairs: the measured difference lies inside the interval of {inside};"
        f" {done - direction} called in the wrong direction"
    )


# --- joins
# --------------------------------------------------------------------------------------------------


def joins() -> None:
    """Engines against themselves, three shuffles each: how many layers with tensors are joined
    right.

    Without names (layers, tensors, metadata and tactics) in another order, then renamed in the same
    order, then in another order under their own names.  Without names and order nothing tells some
    layers apart, so that each pairing of them is as right as any other if it fits those of their
    neighbours: the first figure takes a layer joined with such a double for right where every layer
    that reads or writes one of its tensors is joined with one that reads or writes the double's.
    The second counts only layers joined with themselves.
    """
    print(
        "  engine                                            no names  with itself  (doubles)  "
        " renamed  shuffled"
    )
    for path in engine_files():
        engine = read_engine(path)
        shown = {one.index for one in engine.layers if one.inputs or one.outputs}
        if not shown:
            continue
        alike, beside = doubles(engine), neighbours(engine)
        figures = []
        for names, order in ((False, False), (False, True), (True, False)):
            each = [_joined(engine, seed, names=names, order=order) for seed in range(3)]
            figures.append(sum(one.get(at) == at for one in each for at in shown) / len(shown) / 3)
            if not (names or order):
                right = (
                    sum(_like_itself(beside, one, alike, at) for one in each for at in shown)
                    / len(shown)
                    / 3
                )
        many = sum(count for count in Counter(alike[at] for at in shown).values() if count > 1)
        name = f"{path.parent.name}/{path.name}"[-48:]
        print(
            f"  {name:48} {right:9.1%} {figures[0]:12.1%} {many:10} {figures[1]:9.1%}"
            f" {figures[2]:9.1%} of {len(shown)} layers"
        )


def _joined(engine: Engine, seed: int, *, names: bool, order: bool) -> dict[int, int]:
    """Layers joined one to one with those of the mixed engine, by what those were."""
    mixed, was = mixed_up(engine, seed, names=names, order=order)
    before, after = (
        network_of(engine.layers, range(len(engine.layers))),
        network_of(mixed, range(len(mixed))),
    )
    return {
        before.pieces[group.before[0]].layer_id: was[after.pieces[group.after[0]].layer_id]
        for group in groups_of(before, after)
        if len(group.before) == len(group.after) == 1
    }


def _like_itself(beside: Neighbours, joined: dict[int, int], alike: list[int], at: int) -> bool:
    """Whether a layer is joined with a double of it, and its neighbours with those of the
    double.
    """
    if at not in joined or alike[joined[at]] != alike[at]:
        return False
    return all(
        one not in joined or (joined[one], how) in beside[joined[at]] for one, how in beside[at]
    )


Neighbours = list[set[tuple[int, tuple[str, int, int]]]]


def neighbours(engine: Engine) -> Neighbours:
    """For each layer those that read what it writes and write what it reads, with the places of the
    tensor among both's.
    """
    writers = {
        tensor.name: (one.index, slot)
        for one in engine.layers
        for slot, tensor in enumerate(one.outputs)
    }
    result: Neighbours = [set() for _ in engine.layers]
    for one in engine.layers:
        for slot, tensor in enumerate(one.inputs):
            if tensor.name in writers:
                writer, of_writer = writers[tensor.name]
                result[one.index].add((writer, ("reads", slot, of_writer)))
                result[writer].add((one.index, ("writes", slot, of_writer)))
    return result


def doubles(engine: Engine) -> list[int]:
    """A number a layer, the same for layers that no kind, extent, parameter or neighbour tells
    apart, however far away.
    """
    held: list[Hashable] = [
        (
            one.kind,
            *(tensor.dimensions for tensor in (*one.inputs, *one.outputs)),
            str(sorted(one.parameters.items())),
        )
        for one in engine.layers
    ]
    for _ in engine.layers:
        ends: dict[str, list[Hashable]] = defaultdict(list)
        for one, own in zip(engine.layers, held, strict=True):
            for way, tensors in (("reads", one.inputs), ("writes", one.outputs)):
                for slot, tensor in enumerate(tensors):
                    ends[tensor.name].append((way, slot, own))
        seen = {name: hash(tuple(sorted(map(hash, found)))) for name, found in ends.items()}
        number: dict[Hashable, int] = {}
        held = [
            number.setdefault(
                (
                    own,
                    *(seen[tensor.name] for tensor in one.inputs),
                    0,
                    *(seen[tensor.name] for tensor in one.outputs),
                ),
                len(number),
            )
            for one, own in zip(engine.layers, held, strict=True)
        ]
    return [hash(one) for one in held]


def engine_files() -> Iterator[Path]:
    for place in (PLACES[0], *(place.parent / "engines" for place in PLACES[1:])):
        if place.is_dir():
            yield from sorted(
                path
                for path in place.rglob("*.json")
                if ("engine." in path.name and "profile" not in path.name)
                or path.name.endswith("graph.json")
            )


if __name__ == "__main__":
    for word in sys.argv[1:] or ["pairs", "joins", "halves", "slowdowns"]:
        print(word)
        {"halves": halves, "slowdowns": slowdowns, "pairs": pairs, "joins": joins}[word]()
