"""The figures of a report are those that plain SQL and plain Python get from the same file."""

from __future__ import annotations

import sqlite3
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nsysmap
from nsysmap.core.errors import NsysmapError
from tests.exports import exported
from tests.places import FIXTURES
from tests.reports import report

SYNC = FIXTURES / "bert_trt10" / "sync.sqlite"
Row = tuple[int, int, str]  # start, end, kernel name


def rows(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        return [tuple(row) for row in connection.execute(query)]
    finally:
        connection.close()


ENQUEUES = """
    SELECT start, end, coalesce(text, (SELECT value FROM StringIds WHERE id = textId)) AS name FROM NVTX_EVENTS
    WHERE eventType = 59 AND name LIKE 'ExecutionContext::%' ORDER BY start
"""  # noqa: E501
KERNELS = """
    SELECT k.start, k.end, s.value, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
    JOIN StringIds s ON s.id = k.demangledName ORDER BY k.start
"""  # noqa: E501


def inferences_by_sql() -> list[tuple[int, int, list[Row]]]:
    """Enqueue begin and end, and the kernels launched between; nothing of nsysmap is used."""
    kernels = rows(SYNC, KERNELS)
    return [
        (start, end, [row[:3] for row in kernels if start <= row[3] <= end])
        for start, end, _ in rows(SYNC, ENQUEUES)
    ]


def test_the_figures_of_an_inference_are_those_of_plain_sql() -> None:
    found = inferences_by_sql()
    figures = report("bert_trt10", "sync.sqlite").figures
    # one stream: kernels never overlap
    busy = [sum(end - start for start, end, _ in kernels) for _, _, kernels in found]
    span = [kernels[-1][1] - kernels[0][0] for _, _, kernels in found]
    enqueue = [end - start for start, end, _ in found]
    assert figures.count == len(found) == 50
    assert (figures.warmup, figures.cut, figures.measured, figures.found_by) == (0, 0, 50, "range")
    for spread, values in (
        (figures.gpu_time_ns, busy),
        (figures.gpu_span_ns, span),
        (figures.enqueue_ns, enqueue),
    ):
        assert spread is not None
        assert spread.median_ns == round(statistics.median(values))
        assert spread.p95_ns == round(float(np.percentile(values, 95)))


def test_busy_share_is_the_gpu_s_work_within_the_window_of_the_measured_inferences() -> None:
    found = inferences_by_sql()
    begin = min(min(start, kernels[0][0]) for start, _, kernels in found)
    last = max(max(end, kernels[-1][1]) for _, end, kernels in found)
    work = sum(end - start for _, _, kernels in found for start, end, _ in kernels)
    held = report("bert_trt10", "sync.sqlite")
    assert held.busy_window == "inferences"
    assert [(gpu.device, gpu.whole_busy_ns, gpu.window_ns) for gpu in held.gpus] == [
        (0, work, last - begin)
    ]
    assert held.busy_share == round(work / (last - begin), 6)


def test_busy_and_idle_time_make_up_the_window_but_for_its_edges() -> None:
    held = report("bert_trt10", "sync.sqlite")
    (gpu,) = held.gpus
    assert gpu.window_ns is not None
    assert gpu.whole_busy_ns is not None
    edges = (
        gpu.window_ns - gpu.whole_busy_ns - sum(row.integer("time_ns") for row in held.idle_rows)
    )
    found = inferences_by_sql()
    assert edges == found[0][2][0][0] - found[0][0] + max(0, found[-1][1] - found[-1][2][-1][1])


def test_a_layer_s_times_are_the_mean_and_the_median_over_inferences_of_its_kernels() -> None:
    truth = [
        line.split("\t")
        for line in (FIXTURES / "bert_trt10" / "truth.tsv").read_text().splitlines()[1:]
    ]
    times = defaultdict(list)
    for _, _, kernels in inferences_by_sql():
        spent: dict[int, int] = defaultdict(int)
        for position, (start, end, _) in enumerate(kernels):
            spent[int(truth[position][1])] += end - start
        for layer, time in spent.items():
            times[layer].append(time)
    held = report("bert_trt10", "sync.sqlite")
    for column, of in (("time_ns", statistics.fmean), ("median_ns", statistics.median)):
        told = {
            row.integer("layer_index"): row.integer(column)
            for row in held.layer_rows
            if row.maybe_integer(column)
        }
        assert told == {layer: round(of(values)) for layer, values in times.items()}
    total = sum(sum(values) for values in times.values())
    shares = {
        row.integer("layer_index"): row.real("share_of_kernel_time")
        for row in held.layer_rows
        if row.maybe_integer("time_ns")
    }
    assert shares == pytest.approx({layer: sum(values) / total for layer, values in times.items()})


def test_kernels_by_name_are_those_of_plain_sql() -> None:
    grouped = defaultdict(list)
    for start, end, name in (row[:3] for row in rows(SYNC, KERNELS)):
        grouped[name].append(end - start)
    held = report("bert_trt10", "sync.sqlite")
    kernels = held.tables.kernel_totals
    assert {
        row.text("name"): (row.integer("count"), row.integer("time_ns"), row.integer("median_ns"))
        for row in kernels
    } == {
        name: (len(times), sum(times), round(statistics.median(times)))
        for name, times in grouped.items()
    }
    assert kernels.ints("time_ns").tolist() == sorted(
        kernels.ints("time_ns").tolist(), reverse=True
    )
    assert held.tables.kernel_families.ints("time_ns").sum() == held.kernel_time_ns


@pytest.mark.parametrize(
    ("folder", "file", "engine"),
    [
        ("bert_trt10", "sync.sqlite", True),
        ("bert_trt10", "graph.sqlite", False),
        ("bert_trt85", "sync.sqlite", True),
        ("bert_trt103", "graph.sqlite", True),
    ],
)
def test_every_kernel_is_accounted_for(folder: str, file: str, *, engine: bool) -> None:
    held = report(folder, file, engine=engine)
    kernels, time = rows(
        FIXTURES / folder / file,
        "SELECT count(*), sum(end - start), '' FROM CUPTI_ACTIVITY_KIND_KERNEL",
    )[0][:2]
    coverage, unmapped = held.tables.coverage, held.tables.unmapped
    assert (coverage.ints("kernels").sum(), held.kernel_time_ns) == (kernels, time)
    assert coverage.floats("share_of_kernel_time").sum() == pytest.approx(1)
    without = coverage.take(coverage.text("method").equals("none"))
    for figure in ("kernels", "time_ns"):
        assert unmapped.ints(figure).sum() == without.ints(figure).sum()
    kernels_table = held.tables.kernels
    took = kernels_table.ints("end_ns") - kernels_table.ints("start_ns")
    assert (
        int(took[kernels_table.ints("layer_id") >= 0].sum())
        == held.mapped_rows.ints("time_ns").sum()
    )
    assert held.tables.layer_kinds.floats("share_of_kernel_time").sum() == pytest.approx(
        1, abs=1e-4
    )


def test_several_engines_have_figures_of_their_own() -> None:
    engines = [FIXTURES / name / "engine.json" for name in ("bert_trt10", "bert_split_trt10")]
    found = nsysmap.analyze(exported("two_processes/processes"), engines, rules=())
    from nsysmap.output.build import report_of

    held = report_of(found)
    assert [engine.source for engine in held.engines] == [
        "bert_trt10/engine.json",
        "bert_split_trt10/engine.json",
    ]
    assert [(one.engine, one.count) for one in held.figures_by_engine] == [(0, 43), (1, 43)]
    assert held.figures.count == 86
    for engine in (0, 1):
        assert sum(
            row.real("share_of_kernel_time")
            for row in held.tables.layer_kinds
            if row.integer("engine") == engine
        ) == pytest.approx(1, abs=1e-4)


def test_one_engine_file_given_twice_is_refused() -> None:
    engine = FIXTURES / "bert_trt10" / "engine.json"
    with pytest.raises(NsysmapError, match="given twice"):
        nsysmap.analyze(SYNC, [engine, engine])


def test_hidden_replays_are_measured_from_the_host_s_side() -> None:
    path = FIXTURES / "bert_trt10" / "graph_whole.sqlite"
    calls = rows(
        path,
        "SELECT r.start, r.end, s.value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id"
        " = r.nameId ORDER BY r.start",
    )
    # the first is the warm-up
    launches = [(start, end) for start, end, name in calls if name.startswith("cudaGraphLaunch")][
        1:
    ]
    syncs = [
        (start, end) for start, end, name in calls if name.startswith("cudaStreamSynchronize")
    ][1:]
    found = report("bert_trt10", "graph_whole.sqlite").replays
    assert found is not None
    assert (found.launches, found.runs, found.gpu_time_ns, found.gaps_of_gpu) == (
        49,
        0,
        None,
        False,
    )
    round_trip = [sync[1] - launch[0] for launch, sync in zip(launches, syncs, strict=True)]
    between = [launch[0] - sync[1] for launch, sync in zip(launches[1:], syncs, strict=False)]
    for spread, values in ((found.round_trip_ns, round_trip), (found.gap_ns, between)):
        assert spread is not None
        assert spread.median_ns == round(statistics.median(values))
        assert spread.p95_ns == round(float(np.percentile(values, 95)))


def test_the_api_gives_the_parts_of_the_report_and_frames() -> None:
    found = nsysmap.analyze(SYNC, FIXTURES / "bert_trt10" / "engine.json")
    assert isinstance(found, nsysmap.Analysis)
    assert len(found.kernels) == 2800
    assert found.layers.loc[found.layers["layer_index"] == 1, "kernels"].tolist() == [1]
    assert found.coverage[["method", "kernels"]].to_numpy().tolist() == [["nvtx", 2800]]
    spread = nsysmap.report_of(found).figures.gpu_time_ns
    assert spread is not None
    assert spread.median_ns == round(found.inferences["gpu_busy_ns"].median())
    assert found.findings == nsysmap.report_of(found).findings
    assert [outcome.rule for outcome in found.skipped] == [
        one.rule for one in nsysmap.report_of(found).skipped
    ]


def test_every_name_of_the_api_is_there_and_no_other_is() -> None:
    assert all(getattr(nsysmap, name) is not None for name in nsysmap.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        nsysmap.nothing_like_it  # noqa: B018
