"""Holds confidences to what is right where engines that TensorRT built ran among others, or not at
all, and only one file is given.

usage: python benchmarks/interleaved.py CAPTURES [CAPTURES ...] [--pairs N] [--only WORD ...]

CAPTURES hold reports MODEL-sync.nsys-rep with MODEL-sync.kernels.tsv and MODEL.engine.json, as for
real_engines.py. Their inferences are launched anew on one thread and stream, without ranges: A
alone; A and B in turn; A and sometimes B; and B alone, A's file being given all the same.  N other
models are B to each A.  A's file is given as it is, with the names of its layers only, with its
later layers as one opaque region, as TensorRT 8 told them, and with all of them in one.

A kernel of B, and any where A did not run, is right if it gets no layer.  Printed are what came of
each mixture and form of the file, and for each range of confidences how many kernels with a layer
were right.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.inputs.engine.model import Engine
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace

TURNS = 12
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01)
BETWEEN_NS = (3000, 12_000, 40_000)  # from the last launch of an inference to the next one's first
LISTED = 0.15  # share of the layers that the file lists before its opaque region
KEPT = ("grid_", "block_", "static_", "dynamic_", "registers", "stream")


@dataclass(frozen=True)
class Model:
    """One engine, and inferences of it as they were captured."""

    name: str
    trace: Trace
    file: Path
    inferences: tuple[IntArray, ...]  # rows of its kernels, in launch order
    layer: IntArray  # per kernel: layer index


def models(folders: Sequence[Path]) -> list[Model]:
    """The models that have a report with truth."""
    found: dict[str, Model] = {}
    for folder in folders:
        for report in sorted(folder.glob("*-sync.nsys-rep")):
            name = report.name.removesuffix("-sync.nsys-rep")
            file = folder / f"{name}.engine.json"
            table = report.with_name(f"{name}-sync.kernels.tsv")
            if not file.exists() or not table.exists() or name in found:
                continue
            trace = open_trace(report)
            with table.open(newline="") as text:
                told = {
                    (int(row["start_ns"]), int(row["stream"])): (
                        int(row["layer_index"]),
                        int(row["position"]),
                    )
                    for row in csv.DictReader(text, delimiter="\t")
                }
            kernels = trace.kernels
            keys = zip(
                kernels.ints("start_ns").tolist(), kernels.ints("stream").tolist(), strict=True
            )
            truth = np.array([told.get(key, (-1, -1)) for key in keys], np.int64).reshape(-1, 2)
            order = np.argsort(kernels.ints("launch_start_ns"), kind="stable")
            order = order[truth[order, 0] >= 0]
            starts = np.flatnonzero(truth[order, 1] == 0)
            pieces = tuple(np.split(order, starts)[1:])
            usual = Counter(map(len, pieces)).most_common(1)[0][0]
            whole = [piece for piece in pieces if len(piece) == usual]
            found[name] = Model(name, trace, file, tuple(whole[-TURNS:]), truth[:, 0])
    return list(found.values())


Mixture = Callable[[random.Random], list[str]]
MIXTURES: dict[str, Mixture] = {
    "A alone": lambda _: ["A"] * TURNS,
    "A, B in turn": lambda _: ["A", "B"] * TURNS,
    "A, sometimes B": lambda chance: [
        which for _ in range(TURNS) for which in ("A", *(("B",) if chance.random() < 0.5 else ()))
    ],
    "B alone": lambda _: ["B"] * TURNS,
}


def mixed(turns: Sequence[tuple[Model, bool]], chance: random.Random) -> tuple[Trace, IntArray]:
    """A trace of these inferences, and the layer that each kernel is right in: -1 for none, and for
    all of a model that is not ours (False).
    """
    base = turns[0][0].trace
    columns: dict[str, list[IntArray]] = defaultdict(list)
    names: list[str | None] = []
    truth: list[IntArray] = []
    now, busy = 1_000_000, 0
    used: Counter[str] = Counter()
    for model, ours in turns:
        rows = model.inferences[used[model.name] % len(model.inferences)]
        used[model.name] += 1
        kernels = model.trace.kernels.take(rows)
        launched = kernels.ints("launch_start_ns")
        launched = launched - launched[0] + now
        took = kernels.ints("end_ns") - kernels.ints("start_ns")
        start = np.zeros(len(rows), np.int64)
        for at, (launch, length) in enumerate(zip(launched.tolist(), took.tolist(), strict=True)):
            start[at] = max(launch + 4000, busy + 700)
            busy = int(start[at]) + length
        columns["start_ns"].append(start)
        columns["end_ns"].append(start + took)
        columns["launch_start_ns"].append(launched)
        columns["launch_end_ns"].append(launched + 1500)
        for name in kernels.columns:
            if name.startswith(KEPT):
                columns[name].append(kernels.ints(name))
        names += kernels.text("name").list()
        truth.append(model.layer[rows] if ours else np.full(len(rows), -1, np.int64))
        now = int(launched[-1]) + chance.choice(BETWEEN_NS)
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    count = len(names)
    first = base.kernels.take(np.zeros(count, np.int64))
    number = np.arange(count)
    kernels = first.with_columns(
        first.spec, {**whole, "name": Text.of(names), "kernel_id": number, "launch": number}
    )
    launches = np.flatnonzero(base.api_calls.text("kind").equals("launch"))[:1]
    calls = base.api_calls.take(np.repeat(launches, count))
    moments = {"start_ns": whole["launch_start_ns"], "end_ns": whole["launch_end_ns"]}
    calls = calls.with_columns(calls.spec, {**moments, "correlation": number + 1})
    empty = {
        name: getattr(base, name).take(np.zeros(0, np.int64))
        for name in (
            *("nvtx_ranges", "memcpys", "memsets", "syncs", "event_records"),
            *("cuda_graph_nodes", "cuda_graph_traces", "overheads", "osrt_calls"),
        )
    }
    return replace(base, kernels=kernels, api_calls=calls, **empty), np.concatenate(truth)


def forms(model: Model, work: Path) -> dict[str, tuple[Engine, IntArray]]:
    """The engine as files of several details tell it, each with the layer in it of each layer of
    the whole file.
    """
    told = json.loads(model.file.read_text())
    count = len(told["Layers"])
    same = np.arange(count)
    whole = read_engines([model.file])[0]
    files: dict[str, tuple[Engine, IntArray]] = {"detailed": (whole, same)}
    rows = told["Layers"]
    names = [row["Name"] for row in rows]
    listed = max(round(LISTED * count), 2)
    region = {"LayerType": "Myelin", "Inputs": [], "Outputs": [], "TacticName": ""}
    for form, layers, number in (
        ("names only", names, same),
        (
            "later layers opaque",
            [
                *rows[:listed],
                {**region, "Name": f"{{ForeignNode[{names[listed]}...{names[-1]}]}}"},
            ],
            np.minimum(same, listed),
        ),
        (
            "all layers opaque",
            [{**region, "Name": f"{{ForeignNode[{names[0]}...{names[-1]}]}}"}],
            np.minimum(same, 0),
        ),
    ):
        path = work / f"{model.name}.{form.replace(' ', '_')}.json"
        path.write_text(json.dumps({"Layers": layers, "Bindings": []}))
        files[form] = (read_engines([path])[0], number)
    return files


@dataclass
class Record:
    """What came of each mixture: kernels, and of each with a layer its confidence and whether it is
    right.
    """

    kernels: int = 0
    right: int = 0
    wrong: int = 0
    verdicts: Counter[str] = None  # type: ignore[assignment]
    sure: list[tuple[float, bool]] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """An empty one."""
        self.verdicts, self.sure = Counter(), []


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("captures", type=Path, nargs="+")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--forms", nargs="*", default=[])
    parser.add_argument("--mixtures", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    every = models(options.captures)
    records: dict[tuple[str, str], Record] = defaultdict(Record)
    with tempfile.TemporaryDirectory() as name:
        for at, ours in enumerate(every):
            if options.only and ours.name not in options.only:
                continue
            files = forms(ours, Path(name))
            chance = random.Random(f"{options.seed} {ours.name}")
            others = chance.sample(every[:at] + every[at + 1 :], options.pairs)
            for what, make in MIXTURES.items():
                if options.mixtures and what not in options.mixtures:
                    continue
                for theirs in others[:1] if what == "A alone" else others:
                    turns = [
                        (ours, True) if which == "A" else (theirs, False) for which in make(chance)
                    ]
                    trace, truth = mixed(turns, chance)
                    for form, (engine, number) in files.items():
                        if options.forms and form not in options.forms:
                            continue
                        measure(
                            trace,
                            engine,
                            np.where(truth >= 0, number[truth], -1),
                            records[what, form],
                            f"{what}; {form}; {ours.name}, {theirs.name}",
                        )
    show(records)
    return 0


def measure(trace: Trace, engine: Engine, truth: IntArray, record: Record, what: str) -> None:
    """Maps the trace, and counts what is right."""
    result = map_trace(trace, [engine])
    kernels: Table = result.kernels
    layer = np.where(
        kernels.ints("layer_index") == MISSING, np.int64(-1), kernels.ints("layer_index")
    )
    sure = kernels.floats("confidence")
    right = layer == truth
    placed = layer >= 0
    verdict = result.mapped.engine_fits.text("verdict")[0] or ""
    record.kernels += len(layer)
    record.right += int(right.sum())
    record.wrong += int((placed & ~right).sum())
    record.verdicts[verdict] += 1
    record.sure += list(zip(sure[placed].tolist(), right[placed].tolist(), strict=True))
    if (placed & ~right).any():
        told = sure[placed & ~right]
        print(
            f"  {what}: {verdict}, {int((placed & ~right).sum())} of {len(layer)} wrong at"
            f" {told.min():.2f} to {told.max():.2f}",
            flush=True,
        )


def show(records: dict[tuple[str, str], Record]) -> None:
    """The tables."""
    print(f"\n{'mixture':18}{'file':22}{'kernels':>9}{'right':>9}{'wrong':>9}{'no layer':>10}")
    for (what, form), one in records.items():
        none = one.kernels - one.right - one.wrong
        shares = "".join(
            f"{part / max(one.kernels, 1):{width}.2%}"
            for part, width in ((one.right, 9), (one.wrong, 9), (none, 10))
        )
        print(f"{what:18}{form:22}{one.kernels:9,}{shares}  {dict(one.verdicts)}")
    every = sorted({form for _, form in records})
    for title, mine in [
        *((f"{what} ({form})", [records[what, form]]) for what, form in records),
        *((form, [one for (_, f), one in records.items() if f == form]) for form in every),
        ("all together", list(records.values())),
    ]:
        pairs = [pair for one in mine for pair in one.sure]
        print(f"\n{title}: confidence, kernels, share right")
        for low, high in pairwise(BINS):
            some = [right for sure, right in pairs if low <= sure < high]
            if some:
                print(f"  {low:.2f} to {min(high, 1.0):.2f} {len(some):9,} {np.mean(some):8.2%}")


if __name__ == "__main__":
    sys.exit(main())
