"""A large difference is not called noise, and the time without the profiler is the one that analyze
tells.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.comparison.compare import compare, compare_sides
from nsysmap.comparison.pages import comparison_text
from nsysmap.comparison.side import Side, side_of
from tests.places import FIXTURES

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"


def without_ranges(source: Path, path: Path) -> Path:
    shutil.copy(source, path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM NVTX_EVENTS WHERE eventType IN (59, 60)")
        file.commit()
    return path


def with_shorter_kernels(source: Path, path: Path, factor: float) -> Path:
    """The capture of a program whose kernels are shorter: the host's calls take as long, and it
    waits for less.
    """
    shutil.copy(source, path)
    with closing(sqlite3.connect(path)) as file:
        kernels = {
            row[3]: row
            for row in file.execute(
                "SELECT rowid, start, end, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL"
            )
        }
        calls = file.execute(
            "SELECT r.rowid, r.start, r.end, r.correlationId, s.value FROM"
            " CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId ORDER BY r.start"
        ).fetchall()
        latency = min(
            kernels[number][1] - start for _, start, _, number, _ in calls if number in kernels
        )
        moved, free, last, new_kernels, new_calls, waits = 0, 0, 0, [], [], [(0, 0)]
        for row, start, end, number, name in calls:
            begin, stop = start + moved, end + moved
            if number in kernels:
                kernel, was_start, last, _ = kernels[number]
                first = max(begin + latency, free)
                free = first + round((last - was_start) * factor)
                new_kernels.append((first, free, kernel))
            elif "Synchronize" in name and 0 < last <= end:
                stop = max(begin + 1_000, free + end - last)
                moved = stop - end
                waits.append((end, moved))
            new_calls.append((begin, stop, row))
        file.executemany(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = ?, end = ? WHERE rowid = ?", new_kernels
        )
        file.executemany(
            "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = ?, end = ? WHERE rowid = ?", new_calls
        )
        since, by = np.array(waits).T
        ranges = file.execute(
            "SELECT rowid, start, end FROM NVTX_EVENTS WHERE eventType IN (59, 60)"
        ).fetchall()
        new_ranges = [
            (
                *(
                    (
                        None
                        if at is None
                        else int(at + by[np.searchsorted(since, at, side="right") - 1])
                    )
                    for at in ends
                ),
                row,
            )
            for row, *ends in ranges
        ]
        file.executemany("UPDATE NVTX_EVENTS SET start = ?, end = ? WHERE rowid = ?", new_ranges)
        file.commit()
    return path


@pytest.mark.parametrize("engines", [(), (ENGINE,)])
def test_an_engine_with_far_shorter_kernels_is_faster_though_only_one_side_has_ranges(
    tmp_path: Path, engines: tuple[Path, ...]
) -> None:
    """Measured: 332.8 µs, and 189.4 with kernels of 0.3 times the length (timings.tsv)."""
    sides = (
        without_ranges(SYNC, tmp_path / "nonvtx.sqlite"),
        with_shorter_kernels(SYNC, tmp_path / "small.sqlite", 0.3),
    )
    found = compare(*sides, engine_before=engines, engine_after=engines)
    assert found.verdict == "faster"
    assert found.interval_ns is not None
    assert found.interval_ns[0] <= 189_410 - 332_780 <= found.interval_ns[1] < 0
    back = compare(*sides[::-1], engine_before=engines, engine_after=engines)
    assert (back.verdict, back.difference_ns) == ("slower", -(found.difference_ns or 0))


def test_many_streams_that_became_a_graph_are_faster_beyond_the_range_of_the_profiler_s_part() -> (
    None
):
    """Measured: 337.8 → 164.0 µs (timings_h100.tsv); what single launches cost without the profiler
    is known to ±40 % only.
    """
    folder = FIXTURES / "aux_streams"
    found = compare(
        folder / "sync.nsys-rep",
        folder / "graph.nsys-rep",
        engine_before=folder / "engine.json",
        engine_after=folder / "engine.json",
    )
    assert found.verdict == "faster"
    assert found.interval_ns is not None
    assert found.interval_ns[0] <= 163_970 - 337_760 <= found.interval_ns[1] < 0


def side_with(side: Side, likely: float, quick: float, slow: float) -> Side:
    """The same side as another run, with this share of its time without the profiler, and that
    range.
    """
    pace = side.pace
    noise = replace(pace.noise, value=pace.likely * likely)
    times = replace(
        pace,
        likely=pace.likely * likely,
        quick=pace.likely * quick,
        slow=pace.likely * slow,
        noise=noise,
    )
    return replace(side, merged=times)


@pytest.mark.parametrize(("ends", "verdict"), [
    ((0.6, 0.55, 0.65), "faster"), ((0.6, 0.3, 1.3), "cannot tell"),
    ((1.0, 0.7, 1.3), "no difference beyond the noise"),
    ((1.6, 0.7, 1.9), "cannot tell"), ((1.6, 1.5, 1.9), "slower"),
])  # fmt: skip
def test_what_only_the_profiler_s_part_leaves_open_is_not_called_noise(
    ends: tuple[float, float, float], verdict: str
) -> None:
    before = side_of(analyze(SYNC, ENGINE, rules=[]))
    found = compare_sides(before, side_with(before, *ends))
    assert (found.verdict, found.significant) == (verdict, verdict in ("faster", "slower"))
    assert found.interval_ns is not None
    assert ("beyond their noise" in " ".join(comparison_text(found).split())) == (
        verdict == "cannot tell"
    )


@pytest.mark.parametrize(("folder", "before", "after", "engines"), [
    ("bert_trt10", "sync.sqlite", "graph.sqlite", ("engine.json", "engine.json")),
    ("aux_streams", "sync.nsys-rep", "graph.nsys-rep", ("engine.json", "engine.json")),
    ("real_trt", "bert_eager-graph.nsys-rep", "bert_fp8-graph.nsys-rep", ("bert_eager.engine.json", "bert_fp8.engine.json")),  # noqa: E501
    ("real_trt", "bert_eager-sync.nsys-rep", "bert_eager-graph.nsys-rep", ("bert_eager.engine.json", "bert_eager.engine.json")),  # noqa: E501
])  # fmt: skip
def test_times_are_those_that_analyze_tells(
    folder: str, before: str, after: str, engines: tuple[str, str]
) -> None:
    place = FIXTURES / folder
    found = compare(
        place / before,
        place / after,
        engine_before=place / engines[0],
        engine_after=place / engines[1],
    )
    for one, report, engine in zip(
        (found.before, found.after), (before, after), engines, strict=True
    ):
        told = analyze(place / report, place / engine).summary
        assert told.unprofiled is not None and told.traced is not None
        assert (one.time_ns, one.low_ns, one.high_ns) == (
            told.unprofiled.ns,
            told.unprofiled.low_ns,
            told.unprofiled.high_ns,
        )
        assert one.with_outliers_ns == told.traced.ns
