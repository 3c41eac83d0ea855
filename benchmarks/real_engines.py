"""Holds the mapping to captures of engines that TensorRT itself built and ran: which engine file
ran, and each kernel's layer.

usage: python benchmarks/real_engines.py CAPTURES ... [--only WORD ...] [--modes MODE ...] [--pairs]
[--brief] [--most N] [--seconds S]

Each of CAPTURES holds reports MODEL-MODE.nsys-rep with MODEL-MODE.kernels.tsv (start_ns, device,
stream, pid, engine, layer_index, position) and engine files MODEL.engine.json.  A report without
such a table is held to its own layer ranges, or else to the kernel sequence of MODEL-sync.nsys-rep,
kernel by kernel in launch order (in a graph the order of its nodes).  Three tables are printed: the
kernels of each report with its own file, as recorded, without its ranges, and of one inference
alone; each report with each engine file of the folder alone, and with all that are not refused
together; and how many kernels were right by confidence, over all of it.  --pairs prints the second
in full, otherwise files that are refused are counted only; --brief prints sums, and rows that are
not as they should be or have files of other engines that are not refused.  --modes are those of the
reports that are held against files of others (all of them): of graphs and threads as they are, of
others with N inferences (12).  What is not begun after S seconds is left out, and counted.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace, read_engines
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace

BINS = (0.0, 0.5, 0.7, 0.9, 0.95, 0.99, 1.01)
ONE_SHAPE = ("graph", "sync_nonvtx")
"""Modes in which every inference runs what those of the mode sync do."""
OTHER_NAMES, OTHER_HOST = {"gm_bert": "bert_eager"}, "cpp_"
WORDS = {"ran": "accepted", "did-not-run": "refused", "cannot-tell": "cannot be told"}
# start, stream and device of a kernel -> layer index in its engine, -1 for none
Truth = dict[tuple[int, int, int], int]


@dataclass
class Tally:
    """How many kernels were right, and at which confidence."""

    right: int = 0
    wrong: int = 0
    unmapped: int = 0
    sure: list[tuple[float, bool]] = field(default_factory=list)

    def __str__(self) -> str:
        every = self.right + self.wrong + self.unmapped
        return (
            f"{every:7,} {100 * self.right / max(every, 1):8.2f} % {self.wrong:6} {self.unmapped:8}"
        )


@dataclass
class Sums:
    """What came of all reports."""

    cases: dict[str, Tally] = field(default_factory=dict)
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)
    reports: int = 0
    own: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    together: int = 0
    left: int = 0  # reports that time did not suffice for

    @property
    def failed(self) -> bool:
        """Whether any kernel is wrong, or any own engine refused."""
        refused = self.own["did-not-run"] + sum(
            each["did-not-run"] for each in self.verdicts.values()
        )
        return bool(refused or sum(tally.wrong for tally in self.cases.values()))

    def text(self, *, brief: bool) -> str:
        """The sums in words; of the reports with their own files too where no table has them."""
        lines = [""]
        if brief:
            lines += [f"{'all reports, own engine file':34} {_COLUMNS}"]
            lines += [
                f"{'':34} {case:18} {tally}  {_counted(self.verdicts[case])}"
                for case, tally in self.cases.items()
            ]
        lines.append(
            f"{self.reports} reports without their layer ranges: own file"
            f" {_counted(self.own)}; {self.others.total()} files of others"
            f" {_counted(self.others)}; {self.together} reports are of one of several files"
        )
        if self.left:
            lines.append(f"{self.left} further reports were left out for time")
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """One capture, with its truth and its engine's name."""

    name: str
    model: str
    trace: Trace
    truth: Truth


def main() -> int:
    """Prints the tables; 1 if any kernel is wrong or an own engine is refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("captures", type=Path, nargs="+")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--modes", nargs="*", default=[])
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    whole, sums, begin = Tally(), Sums(), time.monotonic()
    for folder in options.captures:
        files = {
            path.name.removesuffix(".engine.json"): path
            for path in sorted(folder.glob("*.engine.json"))
        }
        engines = {name: read_engines([path])[0] for name, path in files.items()}
        if not options.brief:
            _own_heading()
        told: list[str] = []
        for path in sorted(folder.glob("*.nsys-rep")):
            if options.only and not any(word in path.name for word in options.only):
                continue
            if time.monotonic() - begin > options.seconds:
                sums.left += 1
                continue
            report = _report(path, files)
            if report is None:
                continue
            membership = _own(report, engines, whole, sums, brief=options.brief)
            mode = report.name.rpartition("-")[2]
            if not options.modes or mode in options.modes:
                told += _pairs(report, engines, whole, sums, membership, options)
        if not options.brief:
            print(_PAIRS_HEADING)
        if told:
            print("\n".join(told), flush=True)
    print(sums.text(brief=options.brief))
    _calibration(whole)
    return int(sums.failed)


def _report(path: Path, engines: dict[str, Path]) -> Report | None:
    table = path.with_name(path.name.removesuffix(".nsys-rep") + ".kernels.tsv")
    name = path.name.removesuffix(".nsys-rep")
    model = name.rpartition("-")[0]
    model = OTHER_NAMES.get(model, model).removeprefix(OTHER_HOST)
    if model not in engines:
        return None
    try:
        trace = open_trace(path)
    except NsysmapError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None
    if table.exists():
        with table.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        truth = {
            (int(row["start_ns"]), int(row["stream"]), int(row["device"])): int(row["layer_index"])
            for row in rows
        }
    else:
        truth = _by_ranges(trace, engines[model])
        ranges = path.with_name(f"{model}-sync.nsys-rep")
        if not truth and ranges.exists() and name.rpartition("-")[2] in ONE_SHAPE:
            truth = _by_sequence(trace, open_trace(ranges), engines[model])
    return Report(name, model, trace, truth)


def _by_ranges(trace: Trace, engine: Path) -> Truth:
    """What the layer ranges of the report say, where it has no truth of its own."""
    kernels = map_trace(trace, read_engines([engine])).kernels
    exact = kernels.text("method").where(lambda method: method in ("nvtx", "graph-node"))
    layers = np.where(exact, kernels.ints("layer_index"), np.int64(MISSING))
    return {
        key: layer for key, layer in zip(_keys(kernels), layers.tolist(), strict=True) if layer >= 0
    }


def _by_sequence(trace: Trace, sync: Trace, engine: Path) -> Truth:
    """What each kernel's place in its inference says, where the report has as many kernels an
    inference as the one with ranges.
    """
    told = map_trace(sync, read_engines([engine]))
    kernels, position = told.kernels, told.found.membership.ints("position")
    inference = told.found.membership.ints("inference")
    layers = kernels.ints("layer_index")
    one = np.flatnonzero(inference == len(told.found.table) // 2)
    sequence = layers[one[np.argsort(position[one])]]
    thread, launch = trace.kernels.ints("thread"), trace.kernels.ints("launch")
    graph = trace.kernels.ints("graph_node_id") != MISSING
    group = np.where(graph, launch, -1 - thread % (1 << 24))
    order = launch_order(trace.kernels, np.arange(len(group)), group)
    truth: Truth = {}
    keys = _keys(trace.kernels)
    for which in np.unique(group).tolist():
        mine = order[group[order] == which]
        if len(mine) % len(sequence) == 0:
            wanted = np.tile(sequence, len(mine) // len(sequence)).tolist()
            truth.update(
                {
                    keys[row]: layer
                    for row, layer in zip(mine.tolist(), wanted, strict=True)
                    if layer >= 0
                }
            )
    return truth


def _keys(kernels: Table) -> list[tuple[int, int, int]]:
    columns = (kernels.ints(name).tolist() for name in ("start_ns", "stream", "device"))
    return list(zip(*columns, strict=True))


def _without_ranges(trace: Trace) -> Trace:
    return replace(trace, nvtx_ranges=trace.nvtx_ranges.take(np.zeros(0, np.int64)))


def _alone(trace: Trace, inference: IntArray) -> Trace:
    """The trace as if the capture had one inference only, with all its calls but the launches of
    the others.
    """
    number = int(inference.max(initial=0)) // 2
    return _only(_without_ranges(trace), inference == number)


def _only(trace: Trace, kept: BoolArray) -> Trace:
    """The trace with these kernels only, and all calls but the launches of the others."""
    rows = np.flatnonzero(kept)
    others = np.setdiff1d(trace.kernels.ints("launch"), trace.kernels.ints("launch")[rows])
    kinds = trace.api_calls.text("kind").list()
    for row in others[others >= 0].tolist():
        kinds[row] = "other"
    calls = trace.api_calls.with_columns(trace.api_calls.spec, {"kind": Text.of(kinds)})
    return replace(trace, kernels=trace.kernels.take(rows), api_calls=calls)


def _score(result: MappedTrace, truth: Truth, tally: Tally) -> None:
    kernels = result.kernels
    found, sure = (
        np.maximum(kernels.ints("layer_index"), -1).tolist(),
        kernels.floats("confidence").tolist(),
    )
    for key, layer, chance in zip(_keys(kernels), found, sure, strict=True):
        if key not in truth:
            continue
        right = layer == truth[key]
        tally.right += right
        tally.wrong += layer >= 0 and not right
        tally.unmapped += layer < 0 and not right
        if layer >= 0:
            tally.sure.append((chance, right))


def _counted(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {WORDS[verdict]}" for verdict, count in verdicts.items())


_COLUMNS = f"{'':18} {'kernels':>7} {'right':>10} {'wrong':>6} {'unmapped':>8}  verdict"
_PAIRS_HEADING = (
    "\nevery report, without its layer ranges, with every engine file alone; in brackets the most"
    " that a kernel's layer is believed, and of other files the share of the kernels whose layer is"
    " the same in both"
)


def _own_heading() -> None:
    print(f"{'report with its own engine file':34} {_COLUMNS}")


def _own(
    report: Report, engines: dict[str, Engine], whole: Tally, sums: Sums, *, brief: bool
) -> IntArray:
    """The report with its own file; returns the inference of each kernel."""
    given = [engines[report.model]]
    recorded = map_trace(report.trace, given)
    cases = {"as recorded": report.trace}
    if len(report.trace.nvtx_ranges):
        cases["without ranges"] = _without_ranges(report.trace)
    inference = recorded.found.membership.ints("inference")
    if "threads" not in report.name:
        cases["one inference"] = _alone(report.trace, inference)
    for case, trace in cases.items():
        result = recorded if trace is report.trace else map_trace(trace, given)
        tally = Tally()
        _score(result, report.truth, tally)
        verdict = result.mapped.engine_fits.text("verdict")[0] or ""
        if not brief or tally.wrong or tally.unmapped or verdict != "ran":
            print(f"{report.name:34} {case:18} {tally}  {WORDS[verdict]}", flush=True)
        every = sums.cases.setdefault(case, Tally())
        every.right += tally.right
        every.wrong += tally.wrong
        every.unmapped += tally.unmapped
        sums.verdicts.setdefault(case, Counter())[verdict] += 1
        whole.sure += tally.sure
    return inference


def _few(trace: Trace, inference: IntArray, most: int) -> Trace:
    """The trace with that many inferences only, those in the middle of it."""
    count = int(inference.max(initial=-1)) + 1
    begin = max((count - most) // 2, 0)
    return _only(trace, (inference >= begin) & (inference < begin + most))


def _pairs(
    report: Report,
    engines: dict[str, Engine],
    whole: Tally,
    sums: Sums,
    inference: IntArray,
    options: argparse.Namespace,
) -> list[str]:
    """The report without ranges against each file."""
    bare = _without_ranges(report.trace)
    if "threads" not in report.name and not _by_graph(report.trace):
        bare = _few(bare, inference, options.most)
    own_engine = engines[report.model]
    answers: dict[str, tuple[str, float, float]] = {}
    for name, engine in engines.items():
        result = map_trace(bare, [engine])
        kernels = result.kernels
        sure = float(
            kernels.floats("confidence")[kernels.ints("layer_index") >= 0].max(initial=0.0)
        )
        alike = _by_likeness(kernels, report.truth, engine, own_engine)
        same = sum(right for _, right in alike) / max(len(alike), 1)
        answers[name] = result.mapped.engine_fits.text("verdict")[0] or "", sure, same
        if name != report.model:
            whole.sure += alike
    own = answers.pop(report.model)
    others = Counter(verdict for verdict, *_ in answers.values())
    sums.reports += 1
    sums.own[own[0]] += 1
    sums.others += others
    left = {
        name: answer
        for name, answer in answers.items()
        if answer[0] != "did-not-run" or options.pairs
    }
    words = [
        f"{name} {WORDS[verdict]}" + (f" ({sure:.2f}, {same:.0%} the same)" if sure else "")
        for name, (verdict, sure, same) in left.items()
    ]
    lines = [
        f"{report.name:26} own: {WORDS[own[0]]} ({own[1]:.2f}); {others['did-not-run']} of"
        f" {len(answers)} others refused; {', '.join(words)}"
    ]
    together = [
        report.model,
        *(name for name, answer in answers.items() if answer[0] != "did-not-run"),
    ]
    if len(together) > 1:
        given = [engines[name] for name in together]
        sums.together += 1
        lines.append(f"{'':26} together: {_together(map_trace(bare, given), given)}")
    return lines if len(together) > 1 or own[0] != "ran" or not options.brief else []


def _by_graph(trace: Trace) -> bool:
    """Whether all kernels were replayed by graphs, in which each launch is an inference."""
    return bool((trace.kernels.ints("graph_node_id") != MISSING).all())


def _by_likeness(
    kernels: Table, truth: Truth, given: Engine, own: Engine
) -> list[tuple[float, bool]]:
    """The confidence of each kernel in a layer of another file, and whether the layer that it ran
    in is the same in both: its name, tactic and tensors.
    """

    def told(layer: Layer) -> tuple[object, ...]:
        shapes = [tensor.dimensions for tensor in (*layer.inputs, *layer.outputs)]
        return layer.name, layer.tactic, shapes

    layers = kernels.ints("layer_index").tolist()
    chances = kernels.floats("confidence").tolist()
    return [
        (chance, told(given.layers[layer]) == told(own.layers[truth[key]]))
        for key, layer, chance in zip(_keys(kernels), layers, chances, strict=True)
        if layer >= 0 and truth.get(key, -1) >= 0
    ]


def _together(result: MappedTrace, engines: list[Engine]) -> str:
    verdicts = result.mapped.engine_fits.text("verdict").list()
    if any(verdict == "ran" for verdict in verdicts):
        return ", ".join(
            f"{engine.source} {WORDS[verdict or '']}"
            for engine, verdict in zip(engines, verdicts, strict=True)
        )
    return (
        "one of " + ", ".join(engine.source for engine in engines) + ", they cannot be told apart"
    )


def _calibration(whole: Tally) -> None:
    print(
        "\nkernels with a layer, of all these runs, by confidence (of another file's layers those"
        " are right which are the same in both)"
    )
    for low, high in pairwise(BINS):
        mine = [right for chance, right in whole.sure if low <= chance < high]
        if mine:
            print(
                f"  {low:.2f} to {min(high, 1.0):.2f}: {len(mine):8,} kernels,"
                f" {100 * sum(mine) / len(mine):6.2f} % right"
            )


if __name__ == "__main__":
    sys.exit(main())
