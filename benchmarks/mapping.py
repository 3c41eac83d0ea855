"""Measures the mapping on hard cases made from captures whose truth is known: accuracy,
calibration, what is left unmapped.

usage: python benchmarks/mapping.py CAPTURES [--exports FOLDER] [--only WORD] [--cuts N]

CAPTURES holds one folder an engine with engine.json, truth.tsv, maybe profile.json, and *.nsys-rep
reports that begin and end at an inference boundary.  --exports names a folder with their SQLite
exports as <folder>__<report>.sqlite; without it nsys exports them. Every case works on a copy in a
temporary folder.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, IntArray
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.inputs.nsys.export import export
from nsysmap.mapping.mapped_trace import map_trace
from nsysmap.mapping.order.kernel_alignment import KernelFacts, engine_match
from nsysmap.trace.inferences.periods import find_periods
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace

KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
AUXILIARY = 50  # added to a stream's number
BINS = (0.0, 0.5, 0.7, 0.9, 0.95, 0.99, 1.01)
Edit = Callable[[sqlite3.Connection], None]
Truth = dict[tuple[int, int], str]  # (stream, start) of a kernel -> layer name


@dataclass(frozen=True)
class Capture:
    """One report and what ran in it."""

    folder: str
    report: str
    sqlite: Path
    engine: Path
    profile: Path | None
    layers: tuple[str, ...]  # layer name of each kernel of one inference


@dataclass
class Tally:
    """What a case came to, and every confidence with whether it was right."""

    kernels: int = 0
    right: int = 0
    wrong: int = 0
    time_ns: int = 0
    right_ns: int = 0
    sure: int = 0
    sure_right: int = 0
    seconds: float = 0.0
    pairs: list[tuple[float, bool]] = field(default_factory=list)


def captures(folder: Path, exports: Path | None) -> Iterator[Capture]:
    for truth in sorted(folder.glob("*/truth.tsv")):
        with truth.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        profile = truth.with_name("profile.json")
        for report in sorted(truth.parent.glob("*.nsys-rep")):
            made = (
                exports / f"{truth.parent.name}__{report.stem}.sqlite"
                if exports
                else export(report)
            )
            yield Capture(
                truth.parent.name,
                report.stem,
                made,
                truth.with_name("engine.json"),
                profile if profile.exists() else None,
                tuple(row["layer"] for row in rows),
            )


def truth_of(capture: Capture, trace: Trace) -> Truth:
    kernels = trace.kernels
    stream, start = kernels.ints("stream"), kernels.ints("start_ns")
    found: Truth = {}
    for key in np.unique(stream).tolist():
        for place, row in enumerate(np.flatnonzero(stream == key).tolist()):
            found[key, int(start[row])] = found[key + AUXILIARY, int(start[row])] = capture.layers[
                place % len(capture.layers)
            ]
    return found


# --- ways to make it hard
# -------------------------------------------------------------------------------------------


def edited(source: Path, target: Path, *edits: Edit) -> Path:
    target.unlink(missing_ok=True)
    with sqlite3.connect(f"file:{source}?mode=ro", uri=True) as old, sqlite3.connect(target) as new:
        old.backup(new)
        for edit in edits:
            edit(new)
        new.commit()
    return target


def tables(base: sqlite3.Connection) -> set[str]:
    return {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='table'")}


def without(*names: str) -> Edit:
    def edit(base: sqlite3.Connection) -> None:
        for name in set(names) & tables(base):
            base.execute(f"DELETE FROM {name}")

    return edit


def cut(begin: float, end: float) -> Edit:
    """Keeps what lies between two moments, given as shares of the kernels."""

    def edit(base: sqlite3.Connection) -> None:
        starts = [start for (start,) in base.execute(f"SELECT start FROM {KERNELS} ORDER BY start")]
        first, last = starts[int(begin * (len(starts) - 1))], starts[int(end * (len(starts) - 1))]
        for name in tables(base):
            columns = {row[1] for row in base.execute(f"PRAGMA table_info('{name}')")}
            if {"start", "end"} <= columns and name.startswith(
                ("CUPTI_ACTIVITY", "NVTX", "PROFILER")
            ):
                lead = 200_000 if name != KERNELS else 0  # the host runs ahead of the GPU
                base.execute(
                    f"DELETE FROM {name} WHERE start < ? OR start > ?", (first - lead, last)
                )

    return edit


def merged_with(other: Path) -> Edit:
    """Puts another report's work on a second thread and stream of the same process."""

    def edit(base: sqlite3.Connection) -> None:
        base.execute("ATTACH ? AS more", (f"file:{other}?mode=ro",))
        (shift,) = base.execute("SELECT max(id) + 1 FROM StringIds").fetchone()
        (mine,) = base.execute(f"SELECT globalPid FROM {KERNELS} LIMIT 1").fetchone()
        base.execute("INSERT INTO StringIds SELECT id + ?, value FROM more.StringIds", (shift,))
        changed = {
            "globalPid": str(mine),
            "globalTid": f"{mine} + (globalTid & 0xFFFFFF) + 1000",
            "streamId": "streamId + 100",
            "correlationId": "correlationId + 100000000",
            "graphNodeId": "graphNodeId + (1 << 48)",
            **{
                name: f"{name} + {shift}"
                for name in (
                    "nameId",
                    "shortName",
                    "demangledName",
                    "mangledName",
                    "textId",
                    "jsonTextId",
                )
            },
        }
        theirs = {
            name
            for (name,) in base.execute("SELECT name FROM more.sqlite_master WHERE type='table'")
        }
        for name in tables(base) & theirs:
            if name.startswith(("CUPTI_ACTIVITY", "CUDA_GRAPH")):
                columns = [row[1] for row in base.execute(f"PRAGMA table_info('{name}')")]
                values = ", ".join(changed.get(column, column) for column in columns)
                base.execute(
                    f"INSERT INTO {name} ({', '.join(columns)}) SELECT {values} FROM more.{name}"
                )
        base.commit()
        base.execute("DETACH more")

    return edit


def again(base: sqlite3.Connection, table: str, rowid: int, values: dict[str, int]) -> None:
    """Puts a copy of a row in, with other values."""
    columns = [row[1] for row in base.execute(f"PRAGMA table_info('{table}')")]
    chosen = ", ".join(str(values.get(column, column)) for column in columns)
    base.execute(f"INSERT INTO {table} SELECT {chosen} FROM {table} WHERE rowid = ?", (rowid,))


def foreign(every: int) -> Edit:
    """Two kernels of the application's own before each inference, on the engine's stream."""

    def edit(base: sqlite3.Connection) -> None:
        (name,) = base.execute("SELECT max(id) + 1 FROM StringIds").fetchone()
        base.execute(
            "INSERT INTO StringIds VALUES (?, 'void preprocess::normalize_kernel<float, 3>(float"
            " const*, float*, int)')",
            (name,),
        )
        rows = base.execute(
            f"SELECT rowid, start, correlationId FROM {KERNELS} ORDER BY start"
        ).fetchall()
        (correlation,) = base.execute(f"SELECT max(correlationId) + 1 FROM {CALLS}").fetchone()
        for rowid, start, launched_by in rows[::every]:
            launch = base.execute(
                f"SELECT rowid, start FROM {CALLS} WHERE correlationId = ?", (launched_by,)
            ).fetchone()
            if launch is None:
                continue
            names = dict.fromkeys(("demangledName", "shortName", "mangledName"), name)
            for earlier in (1400, 700):
                begun = start - earlier
                again(
                    base,
                    KERNELS,
                    rowid,
                    {"start": begun, "end": begun + 400, "correlationId": correlation, **names},
                )
                begun = launch[1] - earlier
                again(
                    base,
                    CALLS,
                    launch[0],
                    {"start": begun, "end": begun + 500, "correlationId": correlation},
                )
                correlation += 1

    return edit


def ranges_like(pattern: str) -> Edit:
    """Leaves of the NVTX ranges only those whose text is like that."""

    def edit(base: sqlite3.Connection) -> None:
        text = "coalesce(text, (SELECT value FROM StringIds WHERE id = textId), '')"
        base.execute(
            f"DELETE FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71) AND {text} NOT LIKE ?",
            (pattern,),
        )

    return edit


def without_domain(name: str) -> Edit:
    def edit(base: sqlite3.Connection) -> None:
        numbers = "SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = ?"
        base.execute(f"DELETE FROM NVTX_EVENTS WHERE domainId IN ({numbers})", (name,))

    return edit


def auxiliary(every: int) -> Edit:
    """Every fifth kernel of each inference on a second stream, as TensorRT's auxiliary streams have
    it.
    """

    def edit(base: sqlite3.Connection) -> None:
        streams = [stream for (stream,) in base.execute(f"SELECT DISTINCT streamId FROM {KERNELS}")]
        for stream in streams:
            rows = [
                row
                for (row,) in base.execute(
                    f"SELECT rowid FROM {KERNELS} WHERE streamId = ? ORDER BY start", (stream,)
                )
            ]
            moved = [
                (stream + AUXILIARY, row)
                for place, row in enumerate(rows)
                if place % every % 5 == 3
            ]
            base.executemany(f"UPDATE {KERNELS} SET streamId = ? WHERE rowid = ?", moved)

    return edit


def engine_file(capture: Capture, folder: Path, change: Callable[[list[Any]], list[Any]]) -> Path:
    document = json.loads(capture.engine.read_text())
    target = folder / "engine.json"
    target.write_text(json.dumps({**document, "Layers": change(document["Layers"])}))
    return target


def less(*keys: str) -> Callable[[list[Any]], list[Any]]:
    return lambda layers: [
        {key: value for key, value in layer.items() if key not in keys} for layer in layers
    ]


def names_only(layers: list[Any]) -> list[Any]:
    return [layer["Name"] for layer in layers]


def shuffled(layers: list[Any]) -> list[Any]:
    return random.Random(20260106).sample(layers, len(layers))


# --- measuring
# --------------------------------------------------------------------------------------------------


def measure(tally: Tally, trace: Trace, engines: list[Engine], truth: Truth) -> None:
    began = time.perf_counter()
    found = map_trace(trace, engines).mapped.table
    tally.seconds += time.perf_counter() - began
    kernels = trace.kernels
    took = (kernels.ints("end_ns") - kernels.ints("start_ns")).tolist()
    keys = zip(kernels.ints("stream").tolist(), kernels.ints("start_ns").tolist(), strict=True)
    names, confidence = found.text("layer").list(), found.floats("confidence").tolist()
    for key, layer, sure, ns in zip(keys, names, confidence, took, strict=True):
        want = truth.get(key)
        right = layer == want
        tally.kernels += 1
        tally.time_ns += ns
        tally.right += right
        tally.right_ns += ns * right
        tally.wrong += layer is not None and not right
        if layer is not None:
            tally.pairs.append((sure, right))
            tally.sure += sure >= 0.9
            tally.sure_right += sure >= 0.9 and right


@dataclass(frozen=True)
class Case:
    name: str
    trace: tuple[Edit, ...]
    engine: Callable[[list[Any]], list[Any]] | None = None
    profile: bool = False


def cases(cuts: int) -> list[Case]:
    bare = without("NVTX_EVENTS")
    made = [
        Case("as captured", ()),
        Case("no graph creation events", (without("CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS"),)),
        Case("ranges around enqueue only", (ranges_like("ExecutionContext::%"),)),
        Case("the same, names only", (ranges_like("ExecutionContext::%"),), names_only),
        Case("ranges of TensorRT's domain only", (without_domain("myelin-exec"),)),
        Case("the same domain, names only", (without_domain("myelin-exec"),), names_only),
        Case("no ranges", (bare,)),
        Case(
            "no ranges, graph events",
            (bare, without("CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS")),
        ),
        Case("no ranges, with profile", (bare,), None, True),
        Case("no ranges, tactics", (bare,), less("TacticName")),
        Case("no ranges, tactics, metadata", (bare,), less("TacticName", "Metadata")),
        Case("no ranges, names only", (bare,), names_only),
        Case("no ranges, names and profile", (bare,), names_only, True),
        Case("no ranges, shuffled file", (bare,), shuffled),
        Case(
            "no ranges, shuffled, no tactics",
            (bare,),
            lambda layers: less("TacticName", "Metadata")(shuffled(layers)),
        ),
        Case(
            "no ranges, no host calls",
            (bare, without(CALLS, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")),
        ),
        Case("no ranges, auxiliary stream", (bare,)),
        Case("no ranges, auxiliary, names only", (bare,), names_only),
        Case("no ranges, foreign kernels", (bare,)),
        Case("no ranges, foreign, names only", (bare,), names_only),
    ]
    ends = random.Random(20260107)
    for number in range(cuts):
        begin, end = sorted((ends.random(), ends.random()))
        made.append(
            Case(
                f"no ranges, cut {number}: {begin:.2f} to {end:.2f}",
                (bare, cut(begin, end)),
                names_only if number % 2 else None,
            )
        )
    return made


def run_cases(found: list[Capture], folder: Path, only: str, cuts: int) -> dict[str, Tally]:
    tallies: dict[str, Tally] = defaultdict(Tally)
    for capture in found:
        whole = open_trace(capture.sqlite)
        if not len(whole.kernels):
            continue
        truth = truth_of(capture, whole)
        for case in cases(cuts):
            edits = case.trace
            if "foreign" in case.name:
                if "graph" in capture.report or "threads" in capture.report:
                    continue
                edits = (*edits, foreign(len(capture.layers)))
            if "auxiliary" in case.name:
                edits = (*edits, auxiliary(len(capture.layers)))
            if only in case.name or only in capture.folder:
                path = (
                    edited(capture.sqlite, folder / "case.sqlite", *edits)
                    if edits
                    else capture.sqlite
                )
                engine = (
                    engine_file(capture, folder, case.engine) if case.engine else capture.engine
                )
                read = read_engine(engine, profile=capture.profile if case.profile else None)
                measure(tallies[case.name], open_trace(path), [read], truth)
    return tallies


def run_merged(found: list[Capture], folder: Path) -> dict[str, Tally]:
    """Every two reports of different engines in one trace, with both engine files."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    syncs = [capture for capture in found if capture.report == "sync"]
    for first in syncs:
        for second in syncs:
            if (
                first.folder >= second.folder
                or first.engine.read_text() == second.engine.read_text()
            ):
                continue
            path = edited(
                first.sqlite,
                folder / "case.sqlite",
                without("NVTX_EVENTS"),
                merged_with(second.sqlite),
            )
            truth = truth_of(first, open_trace(first.sqlite))
            truth |= {
                (stream + 100, start): layer
                for (stream, start), layer in truth_of(second, open_trace(second.sqlite)).items()
            }
            trace = open_trace(path)
            for name, change in (
                ("two engines merged", None),
                ("two engines merged, names only", names_only),
            ):
                both = (first, second)
                engines = [
                    read_engine(engine_file(one, folder, change) if change else one.engine)
                    for one in both
                ]
                measure(tallies[name], trace, engines, truth)
    return tallies


def run_wrong_engines(found: list[Capture], folder: Path) -> list[str]:
    """Every capture with every engine: which are accepted, against which really ran; one line for
    each wrong verdict.
    """
    lines, pairs = [], 0
    for capture in found:
        trace = open_trace(capture.sqlite)
        size = len(capture.layers)
        if not len(trace.kernels) or capture.report not in ("sync", "graph"):
            continue
        facts = facts_of(trace, size)
        for other in {one.folder: one for one in found}.values():
            same = other.engine.read_text() == capture.engine.read_text()
            for name, change in (
                ("detailed", None),
                ("no tactics", less("TacticName")),
                ("names only", names_only),
            ):
                engine = read_engine(engine_file(other, folder, change) if change else other.engine)
                match = engine_match(facts, engine)
                pairs += 1
                if match.accepted != same:
                    lines.append(
                        f"  {capture.folder} {capture.report} with {other.folder} ({name}):"
                        f" accepted={match.accepted}, {match}"
                    )
    return [
        (
            f"wrong-engine check: {pairs - len(lines)} of {pairs} pairs right (equal engine files"
            " count as one engine)"
        ),
        *lines,
    ]


def facts_of(trace: Trace, size: int) -> list[KernelFacts]:
    kernels = trace.kernels
    rows = np.flatnonzero(kernels.ints("stream") == kernels.ints("stream")[0])[:size]
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    return [KernelFacts(kernels.text("name")[row] or "", float(took[row])) for row in rows.tolist()]


def run_periods(found: list[Capture], cuts: int) -> list[str]:
    """Inferences by period on every capture without ranges and on random cuts of it, against the
    known boundaries.
    """
    ends = random.Random(20260108)
    lines, tried = [], 0
    for capture in found:
        trace = open_trace(capture.sqlite)
        count = len(trace.kernels)
        if not count:
            continue
        stream = trace.kernels.ints("stream")
        place = np.empty(count, np.int64)
        for key in np.unique(stream).tolist():
            rows = np.flatnonzero(stream == key)
            place[rows] = np.arange(len(rows)) // len(capture.layers) * 1000 + key
        for number in range(cuts + 1):
            begin, end = sorted(ends.sample(range(count + 1), 2)) if number else (0, count)
            rows = np.arange(begin, end)
            tried += 1
            if not same_parts(find_periods(trace, rows).inference[rows], place[rows]):
                lines.append(
                    f"  {capture.folder} {capture.report}, kernels {begin} to {end}:"
                    f" {len(np.unique(place[rows]))} inferences"
                )
    return [
        (
            f"inferences by period: {tried - len(lines)} of {tried} exact (whole captures and"
            " random cuts)"
        ),
        *lines,
    ]


def same_parts(one: IntArray, other: IntArray) -> bool:
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return bool((one != MISSING).all()) and pairs == len(np.unique(one)) == len(np.unique(other))


def shown(tallies: dict[str, Tally]) -> list[str]:
    lines = [
        f"{'case':44}{'kernels':>9}{'right':>9}{'of time':>9}{'wrong':>8}{'unmapped':>9}{'at >=0.9':>9}{'of them right':>14}{'seconds':>9}"  # noqa: E501
    ]
    for name, tally in tallies.items():
        count = max(tally.kernels, 1)
        unmapped = tally.kernels - tally.wrong - sum(right for _, right in tally.pairs)
        lines.append(
            f"{name:44}{tally.kernels:9}{tally.right / count:9.2%}{tally.right_ns / max(tally.time_ns, 1):9.2%}{tally.wrong / count:8.2%}"  # noqa: E501
            f"{unmapped / count:9.2%}{tally.sure / count:9.2%}{tally.sure_right / max(tally.sure, 1):14.2%}{tally.seconds:9.2f}"  # noqa: E501
        )
    return lines


def calibration(tallies: dict[str, Tally]) -> list[str]:
    pairs = np.array([pair for tally in tallies.values() for pair in tally.pairs if pair[0] < 1.0])
    lines = ["calibration of all kernels placed by order (confidence below 1):"]
    for low, high in pairwise(BINS):
        inside = pairs[(pairs[:, 0] >= low) & (pairs[:, 0] < high)] if len(pairs) else pairs
        if len(inside):
            lines.append(
                f"  {low:.2f} to {min(high, 1):.2f}: {len(inside):8} kernels,"
                f" {inside[:, 1].mean():8.2%} right"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("captures", type=Path)
    parser.add_argument("--exports", type=Path)
    parser.add_argument("--only", default="", help="cases or folders with this in their name")
    parser.add_argument("--cuts", type=int, default=6)
    asked = parser.parse_args()
    found = list(captures(asked.captures, asked.exports))
    if not found:
        raise NsysmapError(
            str(asked.captures),
            "holds no folder with truth.tsv and reports",
            "give the captures folder",
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tallies = run_cases(found, folder, asked.only, asked.cuts)
        if asked.only in "two engines merged":
            tallies |= run_merged(found, folder)
        for line in (*shown(tallies), "", *calibration(tallies)):
            print(line)
        if not asked.only:
            for line in (
                "",
                *run_wrong_engines(found, folder),
                "",
                *run_periods(found, asked.cuts * 5),
            ):
                print(line)


if __name__ == "__main__":
    main()
