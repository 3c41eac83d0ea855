"""Predicted beside measured: what-if answers from profiled captures, and the same programs timed
without the profiler before and after.

    python benchmarks/whatif.py [CAPTURES...] [--held-out FILE] [--leave-one-out] [--only CHANGE]

CAPTURES (fixtures/ and fixtures/real_trt unless given) are folders of one of two forms.  Programs
that imitate engines: each folder in it holds engine files and *.nsys-rep or *.sqlite reports; the
timings are in timings*.tsv beside them (engine, mode, scale, us_per_inference). A report may say
its scale: sync-0.3.sqlite.  Engines that TensorRT built and ran: MODEL-MODE.nsys-rep,
MODEL.engine.json and timings.tsv (engine, mode, us_median, us_min, us_max) in the folder itself.
cpp_times.tsv beside them (plan, mode, us; a line a run) has those of programs in C++, whose reports
are cpp_MODEL-MODE.nsys-rep.  Figures are summed up for each form.

--held-out FILE names models, one a line, that are summed up by themselves.

--leave-one-out chooses the constants that were fitted to these programs (GRIDS), each by itself, on
all engines but one, and shows that one's figures.

--only CHANGE answers no other change.

Last comes how wide the ranges should be, for each kind of prediction of TensorRT's own engines: the
conformal factor by which the stated ranges would hold for nine of ten engines, how often those hold
whose factor is that of all engines but one, how often those whose factor is that of all other
folders (machines and sessions) and the factor that each folder needs (see
nsysmap/whatif/spread.py).
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from nsysmap.analysis import observed_of
from nsysmap.core.errors import NsysmapError
from nsysmap.mapping.mapped_trace import map_report, read_engines
from nsysmap.whatif.change import default_changes
from nsysmap.whatif.changes import as_cuda_graph
from nsysmap.whatif.engine_facts import EngineFacts
from nsysmap.whatif.model import Model, Observed, read_model
from nsysmap.whatif.predict import what_if
from nsysmap.whatif.profiler import MACHINES, Machine
from nsysmap.whatif.timeline import Timeline, all_works

ROOT = Path(__file__).parents[1]
PROGRAMS = {
    "aux_streams": ("inception_aux_trt10", "timings_h100.tsv"),
    "newer/aux": ("inception_aux_trt10", "timings_h100.tsv"),
    "newer/torch": ("torch_mixed", "timings_h100.tsv"),
    "torch_mixed": ("torch_mixed", "timings_h100.tsv"),
    "two_shapes": ("bert_dyn", "timings_h100.tsv"),
}
"""Folder, or folder and begin of the report's name, to the engine's name in the timings; the others
go by their folder's name.
"""

ENGINES = {"newer/aux": "aux_streams", "newer/torch": "torch_mixed", "newer/bert": "bert_trt10"}
"""Reports whose engine files are in another folder."""

MODES = {
    "nonvtx": "sync",
    "aux_graph": "graph",
    "torch_sync": "sync",
    "sync_nonvtx": "sync",
    "graph_nonvtx": "graph",
    "captured": "graph",
}
"""Reports that are not named after the mode in which the program ran."""

OTHER_NAMES = {"gm_bert": "bert_eager"}
"""Models of TensorRT's own captures that stand under another name in the timings."""

AFTER = {
    ("cuda-graph", "sync"): ("engine_graphs", "graphs", "graph"),
    ("cuda-graph", "nonvtx"): ("engine_graphs", "graphs", "graph"),
    ("one-graph", "sync"): ("graph",),
    ("one-graph", "nonvtx"): ("graph",),
    ("async", "sync"): ("async",),
    ("pinned-copies", "pageable"): ("pinned",),
    ("no-host-gap", "hostgap"): ("sync",),
    ("one-stream", "sync"): ("one_sync",),
    ("one-stream", "graph"): ("one_graph",),
    ("two-in-flight", "sync"): ("threads",),
    ("two-in-flight", "graph"): ("graph_threads",),
}
"""Change and mode of the capture to the mode that the program then runs in (the first that was
timed).
"""

AFTER_REAL = {
    ("cuda-graph", "threads"): ("graph_threads",),
    ("pinned-copies", "pageable"): ("pinned",),
    ("no-host-gap", "hostgap"): ("sync",),
}
"""The same for what only TensorRT's own captures have."""

RENAMED = {"drop-layers": "{}_noreformat", "join-kernels": "split→joined"}
"""Changes to the engine: what it is called then; the mode stays."""

GRIDS: Mapping[str, tuple[float, ...]] = {
    "launch": (0.9, 1.0, 1.1),
    "queued_saved_ns": (-100, 0, 100),
    "node_saved_ns": (-80, 0, 80),
    "node_ns": (-100, 0, 100),
    "memset_saved_ns": (-700, 0, 700),
    "branches_ns": (-1_000, 0, 3_000),
}
"""Constants fitted to the times of one thread's launches and graphs, as multiples of (launch) or
differences to those that nsysmap has; chosen by `before` and `cuda-graph`.
"""

ONLY_WITH = {"memset_saved_ns": "memset", "branches_ns": "branches"}
"""Constants that only matter to graphs with memsets or with branches."""


@dataclass(frozen=True)
class Measured:
    """The time of a program, and that of its quickest and slowest run where it ran several times,
    in microseconds.
    """

    us: float
    least_us: float
    most_us: float

    def per_inference(self, mode: str) -> Measured:
        """The timings of two threads are for an inference of each."""
        by = 2 if mode.endswith("threads") else 1
        return Measured(self.us / by, self.least_us / by, self.most_us / by)


Timings = Mapping[tuple[str, str, str, str], Measured]

_FIELDS = 2  # tabs of a line with a run

REAL = "TensorRT itself"
IMITATIONS = "imitations"
HELD_OUT = "TensorRT itself, held out"


@dataclass(frozen=True)
class Row:
    capture: str
    folder: str  # of its captures, which are of one machine
    engine: str
    group: str
    change: str
    times_us: tuple[float, float, float]  # after (of "before": before): likely, least, most
    measured: Measured
    savings_us: tuple[float, float, float] | None
    measured_saving_us: float | None

    @property
    def measured_us(self) -> float:
        return self.measured.us

    @property
    def off(self) -> float:
        return self.times_us[0] / self.measured_us - 1

    @property
    def model(self) -> str:
        """Its engine, whatever program runs it."""
        return self.engine.removeprefix("cpp_")

    @property
    def score(self) -> float:
        """How far the measured time is from the likely one, in times of that side of its range."""
        likely, low, high = self.times_us
        apart = self.measured_us - likely
        side = high - likely if apart > 0 else likely - low
        return abs(apart) / side if side > 0 else math.inf if apart else 0.0

    @property
    def holds(self) -> bool:
        (_, low, high), value = self.savings_us or self.times_us, self.measured_saving_us
        return low <= (self.measured_us if value is None else value) <= high

    @property
    def time_holds(self) -> bool:
        """Whether the measured time itself is in its range."""
        _, low, high = self.times_us
        return low <= self.measured_us <= high

    @property
    def time_overlaps(self) -> bool:
        """Whether a run's time is in the range of the time."""
        _, low, high = self.times_us
        return low <= self.measured.most_us and high >= self.measured.least_us

    @property
    def time_width(self) -> float:
        likely, low, high = self.times_us
        return (high - low) / likely

    @property
    def width(self) -> float:
        """Of the range of the saving (of "before": of the time), as a share of the time before."""
        before = self.times_us[0] + (self.savings_us[0] if self.savings_us else 0)
        _, low, high = self.savings_us or self.times_us
        return (high - low) / before

    def line(self) -> str:
        likely, low, high = self.times_us
        shown = f"{self.capture:<30}{self.change:<20}{likely:>9.2f}{self.measured_us:>9.2f}{self.off:>+8.1%}{low:>9.2f}{high:>9.2f}"  # noqa: E501
        if self.savings_us is not None and self.measured_saving_us is not None:
            saving, least, most = self.savings_us
            shown += f"{saving:>9.2f}{self.measured_saving_us:>9.2f}{least:>9.2f}{most:>9.2f}"
        else:
            shown += " " * 36
        return (
            f"{shown} "
            f" {'yes' if self.time_holds else 'runs do' if self.time_overlaps else 'NO':<9}{'' if self.savings_us is None else 'yes' if self.holds else 'NO'}"  # noqa: E501
        )


HEADER = (
    f"{'capture':<30}{'change':<20}{'time':>9}{'measured':>9}{'off':>8}{'low':>9}{'high':>9}"
    f"{'saving':>9}{'measured':>9}{'low':>9}{'high':>9}  {'in range':<9}saving in range"
)


def main(arguments: Sequence[str]) -> int:
    arguments = list(arguments)
    held_out: set[str] = set()
    if "--held-out" in arguments:
        at = arguments.index("--held-out")
        held_out = set(Path(arguments[at + 1]).read_text(encoding="utf-8").split())
        del arguments[at : at + 2]
    only = ""
    if "--only" in arguments:
        at = arguments.index("--only")
        only = arguments[at + 1]
        del arguments[at : at + 2]
    folders = [Path(one) for one in arguments if not one.startswith("--")] or [
        ROOT / "fixtures",
        ROOT / "fixtures" / "real_trt",
    ]
    real = [folder for folder in folders if is_real(folder)]
    imitated = [folder for folder in folders if folder not in real]
    reports = {
        f"{path.parent.name}/{path.stem}": path
        for folder in reversed(imitated)
        for path in find_reports(folder)
    }
    reports |= {
        f"{folder}/{path.stem}": path
        for folder in real
        for path in sorted(folder.glob("*-*.nsys-rep"))
    }
    timings: dict[tuple[str, str, str, str], Measured] = {}
    for folder in reversed(folders):
        for path in sorted(folder.glob("timings.tsv" if is_real(folder) else "timings*.tsv")):
            timings |= read_timings(path)
        if (folder / "cpp_times.tsv").is_file():
            timings |= read_runs(folder / "cpp_times.tsv")
    chosen = [
        path for _, path in sorted(reports.items()) if measured_before(path, timings) is not None
    ]
    print("wall time per inference (or pass) without the profiler, us")
    print(HEADER)
    rows: list[Row] = []
    for engine in dict.fromkeys(program(path)[0] for path in chosen):
        mine = [path for path in chosen if program(path)[0] == engine]
        others = [path for path in chosen if program(path)[0] != engine]
        machines = fitted(tuple(others), timings) if "--leave-one-out" in arguments else MACHINES
        for path in mine:
            group = (
                (HELD_OUT if engine in held_out else REAL) if is_real(path.parent) else IMITATIONS
            )
            found = list(rows_of(path, timings, machines, group, only=only))
            rows += found
            for row in found:
                print(row.line())
    for group in dict.fromkeys(row.group for row in rows):
        mine_too = [row for row in rows if row.group == group]
        print(f"\n{group}")
        for change in dict.fromkeys(row.change for row in mine_too):
            print(f"{change}: {summary([row for row in mine_too if row.change == change])}")
        if savings := [row for row in mine_too if row.savings_us is not None]:
            print(f"all savings: {summary(savings)}")
    print()
    for line in calibration(rows):
        print(line)
    return 0


# --- how wide ranges should be
# --------------------------------------------------------------------------------------------------

SHARE = 0.9
"""Of the engines, the part whose measured times should be in the stated ranges."""


_FEWEST = 10
"""Captures of a machine, of fewer of which nine tenths say little."""


def conformal(scores: Mapping[str, Sequence[float]], share: float = SHARE) -> float:
    """The factor by which ranges hold for that share of the models, and of the next one: the
    quantile of the scores, each model counted once however many scores it has, and one more model
    that no range holds for (Dunn, Wasserman and Ramdas, Distribution-free prediction sets for
    two-layer hierarchical models, 2018).
    """
    weighed = sorted((score, 1 / len(mine)) for mine in scores.values() for score in mine)
    wanted, held = share * (len(scores) + 1), 0.0
    for score, weight in weighed:
        held += weight
        if held >= wanted - 1e-9:
            return score
    return math.inf


def calibration(rows: Sequence[Row]) -> Iterator[str]:
    """For each kind of prediction of TensorRT's engines the conformal factor of its ranges, and
    what they hold for with the factor of all other models.
    """
    real = [row for row in rows if row.group in (REAL, HELD_OUT)]
    yield (
        f"{'factors of the ranges':<24}{'models':>7}{'captures':>9}{'off':>7}{'in range':>9}"
        f"{'width':>7}{'factor':>8}{'left out':>9}{'folders':>9}  factors of folders"
    )
    for change in dict.fromkeys(row.change for row in real):
        mine = [row for row in real if row.change == change]
        scores: dict[str, list[float]] = defaultdict(list)
        by_folder: dict[str, list[float]] = defaultdict(list)
        for row in mine:
            scores[row.model].append(row.score)
            by_folder[row.folder].append(row.score)
        held = [
            statistics.mean(score <= factor for score in scores[model])
            for model in scores
            for factor in [conformal({one: of for one, of in scores.items() if one != model})]
        ]
        machines = [
            sorted(each)[math.ceil(SHARE * len(each)) - 1]
            for each in by_folder.values()
            if len(each) >= _FEWEST
        ]
        apart = list(folders_left_out(mine))
        needed = ", ".join(f"{one:.2f}" for one in machines)
        off = statistics.median(abs(row.off) for row in mine)
        within = f"{sum(row.time_holds for row in mine)}/{len(mine)}"
        yield (
            f"{change:<24}{len(scores):>7}{len(mine):>9}{off:>7.1%}{within:>9}"
            f"{statistics.median(row.time_width for row in mine):>7.1%}{conformal(scores):>8.2f}"
            f"{statistics.mean(held):>9.0%}{statistics.mean(apart):>9.0%}  {needed}"
        )


def folders_left_out(rows: Sequence[Row]) -> Iterator[bool]:
    """For each row whether its range holds with the factor of the models that other folders have
    and its own has not.
    """
    for folder in {row.folder for row in rows}:
        mine = [row for row in rows if row.folder == folder]
        models = {row.model for row in mine}
        scores: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            if row.folder != folder and row.model not in models:
                scores[row.model].append(row.score)
        factor = conformal(scores)
        yield from (row.score <= factor for row in mine)


def summary(rows: Sequence[Row]) -> str:
    off, width = [abs(row.off) for row in rows], statistics.median(row.time_width for row in rows)
    told = (
        f"off by {statistics.median(off):.1%} in the median, {max(off):.1%} at most;"
        f" {sum(row.time_holds for row in rows)} of {len(rows)} in range (of"
        f" {sum(row.time_overlaps for row in rows)} a run is), whose median width is {width:.1%}"
    )
    savings = [row for row in rows if row.savings_us is not None]
    if not savings:
        return told
    of_before = statistics.median(row.width for row in savings)
    return (
        f"{told}; the saving {sum(row.holds for row in savings)} of {len(savings)}, {of_before:.1%}"
        " of the time before"
    )


def find_reports(folder: Path) -> list[Path]:
    """One file a report: its export where there is one."""
    found = {
        path.with_suffix("").as_posix(): path
        for suffix in ("*.nsys-rep", "*.sqlite")
        for path in sorted(folder.glob(f"*/{suffix}"))
    }
    return [path for path in found.values() if not is_real(path.parent)]


@cache
def is_real(folder: Path) -> bool:
    """Whether a folder holds captures of TensorRT itself: its timings have no scale."""
    timings = folder / "timings.tsv"
    return (
        timings.is_file() and "us_median" in timings.read_text(encoding="utf-8").partition("\n")[0]
    )


def read_timings(path: Path) -> Iterator[tuple[tuple[str, str, str, str], Measured]]:
    """The file of the timings is the folder's where TensorRT itself ran."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if "us_median" in row:
                runs = [float(row[f"us_{which}"]) for which in ("median", "min", "max")]
                yield (str(path.parent), row["engine"], row["mode"], "1"), Measured(*runs)
            else:
                us = float(row["us_per_inference"])
                key = (path.name, row["engine"], row["mode"], row["scale"])
                yield key, Measured(us, us, us)


def read_runs(path: Path) -> Iterator[tuple[tuple[str, str, str, str], Measured]]:
    """The same of a file with a line a run: the plan that ran, the mode, microseconds."""
    runs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#") and line.count("\t") >= _FIELDS:
            plan, mode, us, *_ = line.split("\t")
            runs[Path(plan).name.removesuffix(".plan"), mode].append(float(us))
    for (model, mode), times in runs.items():
        yield (
            (str(path.parent), f"cpp_{model}", mode, "1"),
            Measured(statistics.median(times), min(times), max(times)),
        )


def program(report: Path) -> tuple[str, str, str, str]:
    """Engine, file of timings, mode and scale of a report."""
    if is_real(report.parent):
        model, _, mode = report.stem.rpartition("-")
        return OTHER_NAMES.get(model, model), str(report.parent), MODES.get(mode, mode), "1"
    mode, _, scale = report.stem.partition("-")
    name = f"{report.parent.name}/{mode}"
    engine, file = next(
        (found for begin, found in PROGRAMS.items() if name.startswith(begin)),
        (report.parent.name, "timings.tsv"),
    )
    return engine, file, MODES.get(mode, mode), scale or "1"


def measured_before(report: Path, timings: Timings) -> Measured | None:
    engine, file, mode, scale = program(report)
    return per_inference(timings.get((file, engine, mode, scale)), mode)


def measured_after(report: Path, change: str, timings: Timings) -> Measured | None:
    engine, file, mode, scale = program(report)
    renamed = RENAMED.get(change)
    if renamed is not None:
        other = engine.replace("split", "joined") if "→" in renamed else renamed.format(engine)
        return (
            per_inference(timings.get((file, other, mode, scale)), mode)
            if other != engine
            else None
        )
    if (
        change == "one-graph" and (file, engine, "engine_graphs", scale) not in timings
    ):  # nothing is launched between its inferences
        return None
    real = AFTER_REAL.get((change, mode), ()) if is_real(report.parent) else ()
    for then in (*AFTER.get((change, report.stem), AFTER.get((change, mode), ())), *real):
        if (file, engine, then, scale) in timings:
            return per_inference(timings[file, engine, then, scale], then)
    return None


def per_inference(measured: Measured | None, mode: str) -> Measured | None:
    return None if measured is None else measured.per_inference(mode)


@cache
def observed(report: Path) -> tuple[Observed, EngineFacts]:
    """What the replay builds on; the engine files are those of the report's folder, or of the one
    that it says in ENGINES.
    """
    if is_real(report.parent):
        engine = report.parent / f"{program(report)[0]}.engine.json"
        return observed_of(map_report(report, read_engines([engine] if engine.exists() else [])))
    name = f"{report.parent.name}/{report.stem}"
    folder = next(
        (report.parents[1] / found for begin, found in ENGINES.items() if name.startswith(begin)),
        report.parent,
    )
    return observed_of(map_report(report, read_engines(sorted(folder.glob("*engine.json")))))


def rows_of(
    report: Path,
    timings: Timings,
    machines: tuple[Machine, ...],
    group: str = "",
    *,
    only: str = "",
) -> Iterator[Row]:
    before = measured_before(report, timings)
    name, engine = f"{report.parent.name}/{report.stem}", program(report)[0]
    try:
        of, facts = observed(report)
    except NsysmapError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return
    changes = [one for one in default_changes(facts) if only in ("", one.name)]
    answers = what_if(of, facts, changes, machines=machines).records()
    first = answers[0]
    if first["before_ns"] is None:
        print(f"{name}: no replay: {first['reason']}", file=sys.stderr)
    if before is not None and first["before_ns"] is not None:
        yield Row(
            name,
            str(report.parent),
            engine,
            group,
            f"before, {paced_by(report)}",
            micro(first, "before_ns", "low_before_ns", "high_before_ns"),
            before,
            None,
            None,
        )
    for answer in answers:
        after = measured_after(report, str(answer["change"]), timings)
        if after is None or before is None:
            continue
        if answer["answer"] != "answered":
            print(
                f"{name}: {answer['change']} {answer['answer']}: {answer['reason']}",
                file=sys.stderr,
            )
            continue
        times = micro(answer, "after_ns", "low_after_ns", "high_after_ns")
        savings = micro(answer, "saving_ns", "low_saving_ns", "high_saving_ns")
        change = str(answer["change"])
        kind = (
            f"{change}, threads"
            if change == "cuda-graph" and paced_by(report) == "threads"
            else change
        )
        yield Row(
            name,
            str(report.parent),
            engine,
            group,
            kind,
            times,
            after,
            savings,
            before.us - after.us,
        )


def paced_by(report: Path) -> str:
    """What kind of program a report is of: graph launches, two threads, or one thread's single
    launches.
    """
    mode = program(report)[2]
    return "threads" if mode.endswith("threads") else "graph" if "graph" in mode else "streams"


def micro(answer: Mapping[str, object], *names: str) -> tuple[float, float, float]:
    one, two, three = (float(str(answer[name])) / 1000 for name in names)
    return one, two, three


# --- leave one out
# --------------------------------------------------------------------------------------------------


def fitted(reports: tuple[Path, ...], timings: Timings) -> tuple[Machine, ...]:
    """The machines with the constants that are best for these reports, each by itself."""
    machines: tuple[Machine, ...] = MACHINES
    for name, grid in GRIDS.items():
        best = min(grid, key=lambda by: statistics.median(errors(reports, timings, name, by)))
        machines = changed(machines, name, best)
    return machines


def errors(reports: tuple[Path, ...], timings: Timings, name: str, by: float) -> list[float]:
    """How far the times of these reports are off with one constant changed; each report counts as
    often as it has times.
    """
    found: list[float] = []
    for report in reports:
        if (report, name, by) not in _OFF:
            lacks_it = name in ONLY_WITH and ONLY_WITH[name] not in shown(report)
            if lacks_it or (name != "launch" and by == 0):
                _OFF[report, name, by] = errors((report,), timings, "launch", 1.0)
            else:
                (tried, *_) = changed(MACHINES[:1], name, by)
                _OFF[report, name, by] = list(likely_errors(report, timings, tried))
        found += _OFF[report, name, by]
    return found or [0.0]


def likely_errors(report: Path, timings: Timings, machine: Machine) -> Iterator[float]:
    """How far the likely times of a program of one thread are off, as it is and as a graph."""
    before = measured_before(report, timings)
    if before is None or paced_by(report) == "threads":
        return
    try:
        model = read_model(*observed(report), (machine,))
    except NsysmapError:
        return
    if not isinstance(model, Model):
        return
    yield abs(model.before[model.machines[0]] / 1_000 / before.us - 1)
    graph = as_cuda_graph(model.likely, branches_ns=machine.branches_ns)
    after = measured_after(report, "cuda-graph", timings)
    if isinstance(graph, Timeline) and after is not None:
        yield abs(model.period(graph) / 1_000 / after.us - 1)


@cache
def shown(report: Path) -> frozenset[str]:
    """What a report's inferences have that some constants are about: memsets, branches."""
    model = read_model(*observed(report), MACHINES[:1])
    if not isinstance(model, Model):
        return frozenset()
    works = list(all_works(model.likely))
    memsets = {"memset"} if any(work.kind == "memset" for work in works) else set[str]()
    branches = {"branches"} if len({work.queue for work in works}) > 1 else set[str]()
    return frozenset(memsets | branches)


_OFF: dict[tuple[Path, str, float], list[float]] = {}


def changed(machines: tuple[Machine, ...], name: str, by: float) -> tuple[Machine, ...]:
    if name == "launch":
        return tuple(replace(machine, launch=machine.launch * by) for machine in machines)
    return tuple(
        replace(machine, **{name: getattr(machine, name) + round(by)}) for machine in machines
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
