"""Predicted beside measured: what-if answers from profiled captures, and the same programs timed without the profiler before and after.

    python benchmarks/whatif.py CAPTURES [TIMINGS]

CAPTURES holds a folder an engine with engine.json and *.nsys-rep or *.sqlite reports, named after the mode that they were taken in; TIMINGS
(else CAPTURES/timings.tsv) has the columns engine, mode, scale and us_per_inference.  A report may say its scale: sync-0.3.sqlite.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nsysmap.base.errors import NsysmapError
from nsysmap.engine.chains import chain_tables
from nsysmap.mapping.mapped_trace import map_report, read_engines
from nsysmap.whatif.engine_runs import EngineRuns
from nsysmap.whatif.predict import default_changes, what_if

Timings = dict[tuple[str, str, str], float]

# change, mode of the capture, mode that the program then runs in, what replaces the engine's name (None: the same engine)
PAIRS = (
    ("cuda-graph", "sync", "graph", None),
    ("pinned-copies", "pageable", "pinned", None),
    ("pinned-copies", "pageable_async", "pinned", None),
    ("no-host-gap", "hostgap", "sync", None),
    ("drop-layers", "sync", "sync", "{}_noreformat"),
    ("join-kernels", "sync", "sync", "split→joined"),
)
"""two-in-flight is shown apart: the timings of two threads are per thread, so that half of them is the time per inference."""


@dataclass(frozen=True)
class Row:
    capture: str
    change: str
    before_us: float | None
    before_measured_us: float | None
    after_us: float | None
    after_measured_us: float | None
    saving_us: tuple[float, float, float] | None  # likeliest, least, most

    def line(self) -> str:
        measured = _saved(self.before_measured_us, self.after_measured_us)
        saving, low, high = self.saving_us or (None, None, None)
        holds = "–" if measured is None or low is None or high is None else "yes" if low <= measured <= high else "no"
        return (
            f"{self.capture:<28}{self.change:<15}"
            f"{_us(self.before_us)}{_us(self.before_measured_us)}{_off(self.before_us, self.before_measured_us)}"
            f"{_us(self.after_us)}{_us(self.after_measured_us)}{_off(self.after_us, self.after_measured_us)}"
            f"{_us(saving)}{_us(low)}{_us(high)}{_us(measured)}  {holds}"
        )


HEADER = (
    f"{'capture':<28}{'change':<15}{'before':>9}{'measured':>9}{'off':>8}{'after':>9}{'measured':>9}{'off':>8}{'saving':>9}{'low':>9}{'high':>9}{'measured':>9}"
    "  in range"
)


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print(__doc__)
        return 2
    captures = Path(arguments[0])
    timings = read_timings(Path(arguments[1]) if len(arguments) == 2 else captures / "timings.tsv")
    print("wall time per inference without the profiler, us")
    print(HEADER)
    rows = []
    for folder in sorted(path for path in captures.iterdir() if path.is_dir()):
        for report in reports(folder):
            try:
                found = list(rows_of(folder, report, timings))
            except NsysmapError as error:
                print(f"{folder.name}/{report.stem}: {error}", file=sys.stderr)
                continue
            for row in found:
                print(row.line())
            rows += found
    print()
    for change in dict.fromkeys(row.change for row in rows):
        off = [
            abs(row.after_us / row.after_measured_us - 1)
            for row in rows
            if row.change == change and row.after_us is not None and row.after_measured_us is not None
        ]
        if off:
            print(f"{change}: after is off by {statistics.median(off):.1%} in the median, {max(off):.1%} at most, over {len(off)}")
    return 0


def read_timings(path: Path) -> Timings:
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["engine"], row["mode"], row["scale"]): float(row["us_per_inference"]) for row in csv.DictReader(file, delimiter="\t")}


def reports(folder: Path) -> list[Path]:
    """One file a report: its export where there is one."""
    found = {path.stem: path for suffix in ("*.nsys-rep", "*.sqlite") for path in sorted(folder.glob(suffix))}
    return [found[stem] for stem in sorted(found)]


def rows_of(folder: Path, report: Path, timings: Timings) -> Iterator[Row]:
    mode, _, scale = report.stem.partition("-")
    engine_file = folder / "engine.json"
    engines = read_engines([engine_file] if engine_file.exists() else [])
    mapped = map_report(report, engines)
    chains, chain_layers = chain_tables(engines)
    runs = EngineRuns(mapped.mapped.layers, chains, chain_layers)
    answers = what_if(
        mapped.trace, mapped.inferences, mapped.found.membership, mapped.mapped.table, changes=default_changes(runs)
    ).records()
    for answer in answers:
        change = str(answer["change"])
        measured = _measured(folder.name, mode, scale or "1", (change, timings))
        if answer["after_ns"] is None and measured[1] is None:
            continue
        figures = [answer[name] for name in ("saving_ns", "low_saving_ns", "high_saving_ns")]
        saving = tuple(figure / 1000 for figure in figures if isinstance(figure, int))
        yield Row(
            capture=f"{folder.name}/{report.stem}",
            change=change,
            before_us=_micro(answer["before_ns"]),
            before_measured_us=measured[0],
            after_us=_micro(answer["after_ns"]),
            after_measured_us=measured[1],
            saving_us=(saving[0], saving[1], saving[2]) if len(saving) == 3 else None,
        )


def _measured(engine: str, mode: str, scale: str, of: tuple[str, Timings]) -> tuple[float | None, float | None]:
    """Un-profiled time per inference of the captured program, and with the change, where it was timed."""
    change, timings = of
    before = timings.get((engine, mode, scale))
    if mode == "threads" and before is not None:
        before /= 2
    if change == "two-in-flight" and mode == "sync":
        two = timings.get((engine, "threads", scale))
        return before, two / 2 if two is not None else None
    for name, captured, then, renamed in PAIRS:
        if name == change and captured == mode:
            other = engine if renamed is None else engine.replace("split", "joined") if "→" in renamed else renamed.format(engine)
            if (other, then, scale) in timings and (renamed is None or other != engine):
                return before, timings[other, then, scale]
    return before, None


def _micro(value: object) -> float | None:
    return value / 1000 if isinstance(value, int) else None


def _saved(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after


def _us(value: float | None) -> str:
    return f"{'–':>9}" if value is None else f"{value:>9.2f}"


def _off(value: float | None, measured: float | None) -> str:
    return f"{'–':>8}" if value is None or measured is None else f"{value / measured - 1:>+8.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
