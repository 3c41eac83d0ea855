"""Two captures or engines compared."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.comparison.compare import Comparison, compare
from nsysmap.comparison.conditions import conditions
from nsysmap.comparison.finding_changes import FindingChange, finding_changes
from nsysmap.comparison.joined import joined_table
from nsysmap.comparison.pages import comparison_text, verdict_words
from nsysmap.comparison.predictions import MADE, predictions
from nsysmap.comparison.side import Side, side_of
from nsysmap.comparison.waterfall import PROFILED, SIDE_BY_SIDE
from nsysmap.core.comparison_schema import JOINED_LAYERS
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, Table
from nsysmap.output.page.comparison import comparison_html
from nsysmap.rules.finding import Finding, Outcome
from tests.figures import figures
from tests.places import FIXTURES

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"
PAIRS = {
    "graph": ("bert_trt10/sync.sqlite", "bert_trt10/graph.sqlite"),
    "version": ("bert_trt85/sync.sqlite", "bert_trt10/sync.sqlite"),
    "whole graph": ("bert_trt10/sync.sqlite", "bert_trt10/graph_whole.sqlite"),
}


@cache
def compared(pair: str) -> Comparison:
    before, after = (FIXTURES / path for path in PAIRS[pair])
    return compare(
        before,
        after,
        engine_before=before.parent / "engine.json",
        engine_after=after.parent / "engine.json",
    )


def test_a_cuda_graph_is_found_faster_though_tracing_its_nodes_costs_what_it_saves() -> None:
    found = compared("graph")
    assert found.after.recorded_ns is not None and found.before.recorded_ns is not None
    assert found.after.recorded_ns > 0.99 * found.before.recorded_ns
    assert found.verdict == "faster"
    assert found.significant
    measured = 280_140 - 332_780  # fixtures/timings.tsv
    assert found.interval_ns is not None
    assert found.interval_ns[0] <= measured <= found.interval_ns[1] < 0


def test_what_was_predicted_of_it_is_checked() -> None:
    (told,) = compared("graph").predictions
    assert (told.change, told.inside) == ("cuda-graph", True)
    assert abs(told.predicted_ns - told.measured_ns) < 0.01 * told.measured_ns


def test_the_same_engine_in_a_graph_is_the_same_layer_by_layer() -> None:
    rows = compared("graph").layers.records()
    assert {row["relation"] for row in rows} == {"one-to-one"}
    assert not any(row["significant"] for row in rows)


@pytest.mark.parametrize("pair", ["graph", "version"])
def test_contributions_add_up_to_the_difference_to_the_nanosecond(pair: str) -> None:
    found = compared(pair)
    assert sum(one.ns for one in found.contributions) == found.difference_ns
    assert sum(one.before_ns for one in found.contributions) == found.before.time_ns
    assert sum(one.after_ns for one in found.contributions) == found.after.time_ns
    assert len({one.name for one in found.contributions}) == len(found.contributions)


def test_a_network_of_another_tensorrt_version_is_joined_out_of_its_region() -> None:
    found = compared("version")
    assert found.verdict == "faster"
    measured = 332_780 - 406_200
    assert found.difference_ns is not None
    assert found.difference_ns < 0 and measured < 0
    relations = [row["relation"] for row in found.layers.records()]
    assert relations.count("moved-out-of-region") == 1


def test_a_trace_of_whole_graphs_is_compared_with_what_its_profiling_may_cost() -> None:
    found = compared("whole graph")
    assert found.verdict == "faster"
    assert found.interval_ns is not None
    assert found.interval_ns[0] <= 280_140 - 332_780 <= found.interval_ns[1]
    assert "whole CUDA graphs" in " ".join(found.notes)


def test_no_page_has_a_time_without_the_profiler_that_analyze_cannot_tell() -> None:
    """Of whole CUDA graphs compare has the time as recorded, and analyze none without the
    profiler; of launches both have one and the same.
    """
    found = compared("whole graph")
    for side, told in zip(PAIRS["whole graph"], (found.before, found.after), strict=True):
        summary = analyze(FIXTURES / side, FIXTURES / "bert_trt10/engine.json").summary
        without = summary.unprofiled
        assert told.whole_graphs == (without is None)
        if without is None:
            assert told.time_ns == told.recorded_ns == told.high_ns
            assert summary.traced is not None and told.with_outliers_ns == summary.traced.ns
        else:
            assert (told.time_ns, told.low_ns, told.high_ns) == (
                without.ns,
                without.low_ns,
                without.high_ns,
            )
    assert verdict_words(found).startswith(
        "FASTER: 330.7 µs per inference without the profiler → 289.7 µs as recorded (tracing whole"
        " CUDA graphs is assumed to add 0 to 6 %): 41.01 µs less"
    )
    whole = FIXTURES / "bert_trt10/graph_whole.sqlite"
    assert "without the profiler" not in verdict_words(compare(whole, whole))
    assert "per inference, without the profiler (after: as recorded)" in comparison_html(found)


def test_profiles_alone_are_put_side_by_side_without_a_test() -> None:
    found = compare(
        FIXTURES / "bert_split_trt10/profile.json", FIXTURES / "bert_trt10/profile.json"
    )
    assert found.verdict == "cannot tell"
    assert found.interval_ns is None
    assert sum(one.ns for one in found.contributions) == found.difference_ns


def test_profiles_of_the_same_kernels_that_are_slower_throughout_are_told(tmp_path: Path) -> None:
    """Another clock or GPU shows in all layers: small ones, of which the launch is most, less than
    others.
    """
    folder = FIXTURES / "bert_trt10"
    rows = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
    for at, row in enumerate(rows[1:]):
        for key in ("timeMs", "averageMs", "medianMs"):
            row[key] *= (1.2, 1.4, 3.0)[at % 3]
    (tmp_path / "slow.json").write_text(json.dumps(rows), encoding="utf-8")
    found = compare(
        folder / "profile.json", tmp_path / "slow.json", engine_before=ENGINE, engine_after=ENGINE
    )
    assert [one.what for one in found.conditions] == ["times of the same kernels"]
    assert not compare(
        folder / "profile.json", folder / "profile.json", engine_before=ENGINE, engine_after=ENGINE
    ).conditions


@pytest.mark.parametrize(("factor", "constant_ns", "told"), [
    (1.0, 250, False), (1.0, -250, False), (1.0, 0, False), (1.05, 0, True), (1.05, -250, True), (0.95, 250, True),  # noqa: E501
])  # fmt: skip
def test_only_a_factor_is_a_clock_and_not_a_constant_for_each_kernel(
    factor: float, constant_ns: int, told: bool
) -> None:
    """The profiler adds to a graph's node another constant than to a kernel that is launched by
    itself.
    """
    before, graph = (
        side_of(analyze(FIXTURES / f"bert_trt10/{name}.sqlite", ENGINE, rules=[]))
        for name in ("sync", "graph")
    )
    kernels = graph.tables["kernels"]
    length = (
        np.rint((kernels.ints("end_ns") - kernels.ints("start_ns")) * factor).astype(np.int64)
        + constant_ns
    )
    changed = Table(kernels.spec, {**kernels.columns, "end_ns": kernels.ints("start_ns") + length})
    after = replace(graph, tables={**graph.tables, "kernels": changed})
    for sides, expected in (((before, after), factor), ((after, before), 1 / factor)):
        told_of = [
            one
            for one in conditions(*sides, joined_table(*sides)[1])
            if one.what == "times of the same kernels"
        ]
        assert len(told_of) == told
        assert all(
            one.other_work and float(one.after) == pytest.approx(expected, abs=0.01)
            for one in told_of
        )


@pytest.mark.parametrize(("names", "engine"), [
    (("newer/bert_sync", "newer/bert_graph"), ENGINE), (("two_gpus/tp_sync", "two_gpus/tp_graph"), FIXTURES / "two_gpus/tp.engine.json"),  # noqa: E501
])  # fmt: skip
def test_a_cuda_graph_of_the_same_kernels_is_no_other_clock_and_its_prediction_is_checked(
    names: tuple[str, str], engine: Path
) -> None:
    found = compare(
        *(FIXTURES / f"{name}.nsys-rep" for name in names),
        engine_before=engine,
        engine_after=engine,
    )
    assert not [one for one in found.conditions if one.other_work]
    assert not found.layers.bools("significant").any()
    (told,) = found.predictions
    assert (told.change, told.inside) == ("cuda-graph", True)


@pytest.mark.parametrize("constant_ns", [0, -300, 300])
def test_one_layer_that_is_slower_in_a_graph_is_told_whatever_the_profiler_adds_to_every_node(
    constant_ns: int,
) -> None:
    before, graph = (
        side_of(analyze(FIXTURES / f"bert_trt10/{name}.sqlite", ENGINE, rules=[]))
        for name in ("sync", "graph")
    )
    kernels = graph.tables["kernels"]
    later = (
        kernels.ints("end_ns")
        + constant_ns
        + np.where(kernels.ints("layer_id") == 7, 1_000 + abs(constant_ns), 0)
    )
    after = replace(
        graph,
        tables={
            **graph.tables,
            "kernels": Table(kernels.spec, {**kernels.columns, "end_ns": later}),
        },
    )
    for sides in ((before, after), (after, before)):
        assert [
            row.text("after_ids") for row in joined_table(*sides)[1] if row.flag("significant")
        ] == ["7"]


def test_what_outliers_would_add_is_of_the_recorded_times() -> None:
    one = compare(SYNC, SYNC, engine_before=ENGINE, engine_after=ENGINE).before
    times = analyze(SYNC, ENGINE).tables.inference_times.ints("time_ns")
    assert one.held_up
    assert one.recorded_ns is not None
    assert one.held_up_ns == pytest.approx(times[times >= 0].mean() - one.recorded_ns, abs=1)


def test_engine_files_alone_have_no_time() -> None:
    found = compare(FIXTURES / "bert_split_trt10/engine.json", FIXTURES / "bert_trt10/engine.json")
    assert found.difference_ns is None
    assert "merged" in found.layers.text("relation").list()


def test_logs_of_trtexec_are_compared_by_the_gpu_compute_time_of_a_query(tmp_path: Path) -> None:
    sides = []
    for name, median, first in (
        (
            "before.log",
            89.7188,
            ("&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --verbose",),
        ),
        (
            "after.log",
            86.4503,
            (),
        ),  # as copied from a terminal: it begins with a date in brackets, and is no JSON list
    ):
        lines = (
            *first,
            "[09/10/2023-12:59:44] [V] [TRT] Engine Layer Information:",
            (
                "Layer(CaskConvolution): Conv_27, Tactic: 0x27728c886a448c5a, img"
                " (Float[1,3,64,64]) -> 224 (Float[1,64,32,32])"
            ),
            "[09/10/2023-12:59:49] [I] === Performance summary ===",
            (
                "[09/10/2023-12:59:49] [I] GPU Compute Time: min = 80 ms, max = 99 ms, mean = 90"
                f" ms, median = {median} ms"
            ),
        )
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        sides.append(tmp_path / name)
    found = compare(*sides)
    assert (found.before.time_ns, found.after.time_ns) == (89_718_800, 86_450_300)
    assert (found.verdict, [one.ns for one in found.contributions]) == (
        "cannot tell",
        [86_450_300 - 89_718_800],
    )


def test_a_side_of_too_few_inferences_is_compared_as_recorded_layer_by_layer_too(
    tmp_path: Path,
) -> None:
    """Five inferences are not replayed: what the profiler adds to kernels is left in on both sides,
    or all would look slower.
    """
    few = tmp_path / "five.sqlite"
    shutil.copy(SYNC, few)
    with closing(sqlite3.connect(few)) as file:
        (begin, end), = file.execute("SELECT MIN(start), MAX(start) FROM (SELECT start FROM NVTX_EVENTS WHERE text LIKE 'ExecutionContext%'"  # noqa: E501
                                     " ORDER BY start LIMIT 6 OFFSET 20)")  # fmt: skip
        for name in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            kept = " AND eventType IN (59, 60)" if name == "NVTX_EVENTS" else ""
            file.execute(f"DELETE FROM {name} WHERE (start < ? OR start >= ?){kept}", (begin, end))
        file.commit()
    for files in ((few, SYNC), (SYNC, few)):
        found = compare(*files, engine_before=ENGINE, engine_after=ENGINE)
        assert found.verdict == "too few inferences"
        assert "times of the same kernels" not in [one.what for one in found.conditions]


def test_a_side_without_kernels_has_no_number_of_threads(tmp_path: Path) -> None:
    none = tmp_path / "none.sqlite"
    shutil.copy(SYNC, none)
    with closing(sqlite3.connect(none)) as file:
        file.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
        file.commit()
    assert not any("threads" in one.what for one in compare(none, SYNC).conditions)


def test_copies_of_one_run_are_not_several_runs(tmp_path: Path) -> None:
    shutil.copy(SYNC, copy := tmp_path / "copy.sqlite")
    with pytest.raises(NsysmapError, match="the same run"):
        compare([SYNC, copy], [SYNC, FIXTURES / "newer/bert_sync.sqlite"])


def test_of_several_runs_a_side_the_runs_are_the_noise(tmp_path: Path) -> None:
    engine = FIXTURES / "bert_trt10" / "engine.json"
    before = [FIXTURES / path for path in ("bert_trt10/sync.sqlite", "newer/bert_sync.sqlite")]
    after = tmp_path / "after"
    after.mkdir()
    for at, name in enumerate(("bert_trt10/graph.sqlite", "newer/bert_graph.sqlite")):
        shutil.copy(FIXTURES / name, after / f"run{at}.sqlite")
    found = compare(before, after, engine_before=engine, engine_after=engine)
    assert (found.before.runs, found.after.runs) == (2, 2)
    assert "2 and 2 runs" in found.test
    assert any(
        one.told.startswith("The runs of BEFORE used different GPUs") for one in found.conditions
    )
    assert sum(one.ns for one in found.contributions) == found.difference_ns
    once = compared("graph")
    assert found.interval_ns is not None and once.interval_ns is not None
    assert found.interval_ns[1] - found.interval_ns[0] > once.interval_ns[1] - once.interval_ns[0]
    with pytest.raises(NsysmapError, match="only run of"):
        compare(before[0], after)


def test_runs_of_other_engines_are_no_side() -> None:
    before = [FIXTURES / "bert_trt10/sync.sqlite", FIXTURES / "bert_trt85/sync.sqlite"]
    with pytest.raises(NsysmapError, match="has other layers"):
        compare(before, before)


def test_kernels_without_layers_are_joined_by_name() -> None:
    found = compare(
        FIXTURES / "torch_encoder/eager.nsys-rep", FIXTURES / "torch_encoder/graph.nsys-rep"
    )
    assert found.verdict == "faster"
    assert any("joined by name" in note for note in found.notes)
    relations = found.layers.text("relation").list()
    assert relations.count("one-to-one") > len(relations) / 2
    assert sum(one.ns for one in found.contributions) == found.difference_ns


def test_inferences_that_are_not_the_same_thing_are_not_compared() -> None:
    found = compare(
        FIXTURES / "torch_mixed/sync.nsys-rep", FIXTURES / "torch_mixed/nonvtx.nsys-rep"
    )
    assert found.verdict == "cannot tell"
    assert "found by period" in found.test


def test_of_a_program_on_two_gpus_the_inferences_of_one_are_compared() -> None:
    """By itself, the first is of GPU 0 and the second of GPU 1."""
    files = [FIXTURES / "two_gpus" / f"{name}.nsys-rep" for name in ("tp_sync", "tp_graph")]
    engine = FIXTURES / "two_gpus/tp.engine.json"
    found = compare(*files, engine_before=engine, engine_after=engine)
    assert found.verdict == "faster"
    assert not [one for one in found.conditions if "GPU" in one.what]
    assert any(row["low_ns"] is not None for row in found.layers)
    (note,) = (one for one in found.notes if "GPU" in one)
    assert note.startswith("tp_sync.nsys-rep: ")
    assert figures(note) == ["1"]
    mean = next(
        row.integer("mean_ns")
        for row in analyze(files[0], engine).tables.inference_loops
        if row.integer("device") == 1
    )
    assert found.before.with_outliers_ns == pytest.approx(mean, abs=1)


def test_what_a_whole_graph_trace_hides_is_not_compared() -> None:
    found = compared("whole graph")
    assert found.verdict == "faster"
    rows = found.layers.records()
    assert {row["relation"] for row in rows} == {"one-to-one"}
    assert {row["after_ns"] for row in rows} == {row["difference_ns"] for row in rows} == {None}
    assert not any(row["significant"] for row in rows)
    assert [one.name for one in found.contributions] == [
        "GPU work and idle time (the trace cannot separate them)"
    ]
    assert sum(one.ns for one in found.contributions) == found.difference_ns
    assert all(
        abs(int(part)) < 1 << 40
        for one in found.conditions
        for part in (one.before, one.after)
        if part.lstrip("-").isdigit()
    )


def test_without_an_engine_layers_inside_a_whole_graph_are_not_gone() -> None:
    found = compare(
        FIXTURES / "bert_trt10/graph.sqlite", FIXTURES / "bert_trt10/graph_whole.sqlite"
    )
    assert len(found.layers) == 0
    assert not any("gone" in one.name for one in found.contributions)
    assert sum(one.ns for one in found.contributions) == found.difference_ns


@pytest.mark.parametrize("pair", ["graph", "version", "whole graph"])
def test_no_time_is_negative(pair: str) -> None:
    """But what kernels take less of the wall time than they were recorded with."""
    for one in compared(pair).contributions:
        less = one.name in (SIDE_BY_SIDE, PROFILED)
        assert all(time <= 500 if less else time >= 0 for time in (one.before_ns, one.after_ns)), (
            one
        )


def test_layers_are_charged_with_what_their_recorded_kernels_differ_by() -> None:
    """The same engine in streams and as a graph: its kernels differ by 2.5 % as recorded, and one
    layer has one time.
    """
    found = compared("graph")
    layers = [one for one in found.contributions if one.kind == "layers"]
    recorded = [
        sum(row.maybe_integer(name) or 0 for row in found.layers)
        for name in ("before_ns", "after_ns")
    ]
    assert [
        sum(one.before_ns for one in layers),
        sum(one.after_ns for one in layers),
    ] == pytest.approx(recorded, abs=40)
    assert abs(sum(one.ns for one in layers)) < 0.03 * recorded[0]
    for side in (found.before, found.after):
        assert (
            side.gpu_ns is not None and side.enqueue_ns is not None and side.recorded_ns is not None
        )
        assert 0 < side.gpu_ns < side.recorded_ns


def test_two_captures_differ_by_what_two_runs_do_and_one_by_nothing() -> None:
    found = compared("graph")
    assert (
        found.interval_ns is not None
        and found.noise_ns is not None
        and found.run_to_run_ns is not None
    )
    assert found.interval_ns[0] <= found.noise_ns[0] - found.run_to_run_ns
    assert found.run_to_run_ns >= 0.007 * 280_000
    alone = compare(FIXTURES / "bert_trt10/sync.sqlite", FIXTURES / "bert_trt10/sync.sqlite")
    assert (alone.verdict, alone.difference_ns, alone.run_to_run_ns) == (
        "no difference beyond the noise",
        0,
        0,
    )


def test_what_the_kernels_of_a_region_do_is_compared_with_those_of_the_layers_that_it_became() -> (
    None
):
    found = compared("version")
    kernels = {
        row.text("kind"): (row.real("before_kernels"), row.real("after_kernels"))
        for row in found.regions
    }
    assert (kernels["attention"], kernels["gemm"]) == ((0.0, 4.0), (33.0, 29.0))
    (group,) = {row.integer("group") for row in found.regions}
    (row,) = [row for row in found.layers if row.integer("group") == group]
    for side in ("before_ns", "after_ns"):
        assert sum(one.integer(side) for one in found.regions) == row.integer(side)


def test_files_of_one_name_are_numbered_as_their_folders_are_nobody_else_s_business() -> None:
    found = compared("version")
    assert (found.before.source, found.after.source) == ("sync.sqlite (1)", "sync.sqlite (2)")


def test_findings_of_a_cause_are_compared_by_it_whatever_layer_is_its_longest() -> None:
    finding = Finding(
        "reformat-cost",
        "reformat",
        "warning",
        "told",
        0,
        1,
        5_000,
        None,
        0,
        "one",
        {"cause": "layout"},
        "",
    )
    side = side_of(analyze(SYNC, ENGINE, rules=[]))
    sides = [
        replace(
            side,
            outcomes=(
                Outcome(
                    "reformat-cost",
                    "reformat",
                    "warning",
                    (replace(finding, layer=layer, cost_ns=cost),),
                ),
            ),
        )
        for layer, cost in (("one", 5_000_000), ("another", 1_000_000))
    ]
    (found,) = finding_changes((sides[0], sides[1]), (), Table.empty(JOINED_LAYERS), 1)
    assert (found.change, found.before, found.after) == ("better", 1, 1)


def test_a_finding_is_not_simply_gone_where_its_layer_is_as_it_was(tmp_path: Path) -> None:
    """Where all other layers are slower, the share of one falls below a rule's threshold."""
    folder = FIXTURES / "bert_trt10"
    rows = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
    for row in rows[1:]:
        for key in ("timeMs", "averageMs", "medianMs"):
            row[key] *= 1.0 if row["name"].startswith("Reformatting") else 100.0
    (tmp_path / "slow.json").write_text(json.dumps(rows), encoding="utf-8")
    sides = (folder / "profile.json", tmp_path / "slow.json")
    for files, change, words in (
        (sides, "gone", "is still there"),
        (sides[::-1], "new", "was there before"),
    ):
        found = compare(*files, engine_before=ENGINE, engine_after=ENGINE)
        (one,) = [one for one in found.findings if one.rule == "reformat-at-output"]
        assert one.change == change and words in one.told and words in comparison_text(found)


def test_a_finding_that_another_rule_told_is_not_new_when_it_tells_it_itself() -> None:
    slow = Finding(
        "tensor-cores-missed",
        "precision",
        "warning",
        "told",
        0,
        1,
        5_000_000,
        None,
        0,
        "one",
        {},
        "",
    )
    hot = replace(slow, rule="hot-layer")
    side = side_of(analyze(SYNC, ENGINE, rules=[]))
    outcomes = (
        (
            Outcome(slow.rule, slow.group, "warning", (slow,)),
            Outcome(hot.rule, hot.group, "warning", (), folded=(hot,)),
        ),
        (
            Outcome(slow.rule, slow.group, "warning"),
            Outcome(hot.rule, hot.group, "warning", (replace(hot, cost_ns=1_000_000),)),
        ),
    )
    found = finding_changes(
        (replace(side, outcomes=outcomes[0]), replace(side, outcomes=outcomes[1])),
        (),
        Table.empty(JOINED_LAYERS),
        1,
    )
    assert {(one.rule, one.change) for one in found} == {
        ("tensor-cores-missed", "gone"),
        ("hot-layer", "better"),
    }


def test_findings_of_one_rule_are_one_row_of_the_text() -> None:
    changes = [
        FindingChange(
            "new", "unfused-quantize", "warning", f"layer {at}", 0, 1, None, 1_000 * at, "…"
        )
        for at in range(1, 6)
    ]
    page = comparison_text(replace(compared("version"), findings=tuple(changes)))
    assert page.count("unfused-quantize") == 1
    assert "15.00" in page and "5 places" in page


def test_captures_of_other_networks_are_told() -> None:
    found = compare(FIXTURES / "bert_trt10/sync.sqlite", FIXTURES / "aux_streams/graph.nsys-rep")
    assert [one.what for one in found.conditions].count(
        "kernel time of layers with a counterpart"
    ) == 1
    assert "different networks" in " ".join(comparison_text(found).split())
    assert "kernel time of layers with a counterpart" not in {
        one.what for one in compared("version").conditions
    }


def test_an_engine_file_beside_a_capture_has_its_layers_joined_and_no_times_compared() -> None:
    found = compare(FIXTURES / "bert_trt10/engine.json", FIXTURES / "bert_trt10/sync.sqlite")
    assert (found.before.time_ns, found.difference_ns, found.verdict) == (None, None, "cannot tell")
    assert found.after.time_ns is not None
    assert sum(row.text("relation") == "one-to-one" for row in found.layers) == 56


def test_what_only_a_trace_shows_is_neither_new_nor_gone_beside_an_engine_file_alone() -> None:
    engine, capture = FIXTURES / "bert_trt10/engine.json", FIXTURES / "bert_trt10/sync.sqlite"
    for sides in ((engine, capture), (capture, engine)):
        told = {one.rule: one for one in compare(*sides).findings}
        assert told["cuda-graph-would-help"].change == "cannot-tell"
        assert told["cuda-graph-would-help"].told.startswith("engine.json: ")


@pytest.mark.parametrize(("times", "told"), [(1.4, False), (2.0, True)])
def test_repetitions_of_other_lengths_without_ranges_may_be_other_units_of_work(
    times: float, told: bool
) -> None:
    before = side_of(analyze(FIXTURES / "torch_encoder/eager.nsys-rep", rules=[]))
    inferences = before.tables["inferences"]
    longer = (inferences.ints("kernels") * times).astype(np.int64)
    after = replace(
        before,
        tables={
            **before.tables,
            "inferences": Table(inferences.spec, {**inferences.columns, "kernels": longer}),
        },
    )
    found = conditions(before, after, Table.empty(JOINED_LAYERS))
    (one,) = (one for one in found if one.what == "kernels per inference")
    assert one.told.startswith("No ranges bound") == one.other_work == told


@pytest.mark.parametrize(("before", "after", "told"), [
    ([19, 31] * 20, [31, 19] * 20 + [31], None),
    ([19, 31] * 20, [19, 33] * 20, ("19 or 31", "19 or 33")),
    ([19] * 36 + [31] * 4, [31] * 36 + [19] * 4, ("20.2 on average", "29.8 on average")),
    ([19] * 40, [19] * 39 + [31], None),
    ([19] * 40, [31] * 40, ("19", "31")),
    (list(range(20, 60)), list(range(120, 160)), ("39.5 on average", "139.5 on average")),
])  # fmt: skip
def test_numbers_of_kernels_differ_if_one_is_not_on_the_other_side_or_far_more_often(
    before: list[int], after: list[int], told: tuple[str, str] | None
) -> None:
    side = side_of(analyze(SYNC, ENGINE, rules=[]))
    inferences, sides = side.tables["inferences"], []
    for counts in (before, after):
        chosen = inferences.take(np.resize(np.arange(len(inferences)), len(counts)))
        columns = {
            **chosen.columns,
            "inference": np.arange(len(counts)),
            "kernels": np.array(counts, np.int64),
        }
        pace = replace(side.pace, inferences=np.arange(len(counts)))
        sides.append(
            replace(
                side,
                tables={**side.tables, "inferences": Table(inferences.spec, columns)},
                merged=pace,
            )
        )
    found = conditions(sides[0], sides[1], Table.empty(JOINED_LAYERS))
    assert [(one.before, one.after) for one in found if one.what == "kernels per inference"] == (
        [told] if told else []
    )


def test_a_finding_is_not_worse_by_less_than_the_times_may_differ_by_chance() -> None:
    """Without a layer its cost is of the time per inference; about a layer it has that layer's
    noise, which is far less.
    """
    whole = Finding(
        "cuda-graph-would-help", "launch", "warning", "told", 0, 1, 40_000, None, 0, None, {}, ""
    )
    side = side_of(analyze(SYNC, ENGINE, rules=[]))
    inferences = int(side.tables["steady_state"].ints("inferences").sum())
    groups, joined = joined_table(side, side)
    layer = next(row for row in joined if row["low_ns"] is not None)
    one = replace(whole, rule="hot-layer", layer=layer.text("before"))
    half = (layer.integer("high_ns") - layer.integer("low_ns")) // 2

    def change(finding: Finding, more_ns: int, noise_ns: int) -> list[str]:
        costs = (10_000, 10_000 + more_ns)
        found = (replace(finding, cost_ns=cost * inferences) for cost in costs)
        sides = [
            replace(side, outcomes=(Outcome(mine.rule, mine.group, "warning", (mine,)),))
            for mine in found
        ]
        return [
            told.change
            for told in finding_changes((sides[0], sides[1]), groups, joined, 1, noise_ns)
        ]

    assert (change(whole, 9_000, 10_000), change(whole, 11_000, 10_000)) == ([], ["worse"])
    assert half < 10_000 and change(one, max(half, 1_000) + 500, 10_000) == ["worse"]


def test_a_measurement_has_its_own_range_and_not_that_of_what_it_is_compared_with() -> None:
    """The host's speed leaves 2,770 µs of single launches uncertain by a third, and 224 µs of the
    graph that replaced them by a tenth.
    """
    found = compare(
        FIXTURES / "torch_encoder/eager.nsys-rep", FIXTURES / "torch_encoder/graph.nsys-rep"
    )
    (told,) = (one for one in found.predictions if one.change == "cuda-graph")
    assert told.measured_high_ns - told.measured_low_ns < 0.2 * told.measured_ns
    assert (
        told.measured_low_ns
        < (found.after.low_ns or 0)
        <= told.measured_ns
        <= (found.after.high_ns or 0)
        < told.measured_high_ns
    )
    assert told.inside is False and told.measured_high_ns < told.low_ns


def test_one_graph_was_made_where_graphs_launch_all_that_was_launched_one_by_one_and_else_a_graph_of_each_inference() -> (  # noqa: E501
    None
):
    side = side_of(analyze(FIXTURES / "torch_mixed" / "sync.nsys-rep", rules=[]))
    kernels, inferences = side.tables["kernels"], side.tables["inferences"]
    nodes = all_nodes(side).ints("graph_node_id")
    outside = kernels.ints("inference") == MISSING
    assert 0.1 < outside.mean() < 0.5  # what PyTorch launches
    for name, of_graphs in (
        ("one-graph", nodes),
        ("cuda-graph", np.where(outside, MISSING, nodes)),
    ):
        tables = {
            "kernels": Table(kernels.spec, {**kernels.columns, "graph_node_id": of_graphs}),
            "inferences": Table(
                inferences.spec,
                {**inferences.columns, "cuda_graph": np.ones(len(inferences), np.bool_)},
            ),
        }
        after = replace(side, tables={**side.tables, **tables})
        made = [
            one
            for one, test in MADE.items()
            if one in ("one-graph", "cuda-graph") and test(side, after)
        ]
        assert made == [name]
    whole = replace(after, tables={**after.tables, "kernels": all_nodes(side)})
    (told,) = predictions(side, whole, 325_860, (320_100, 328_130), ())
    assert (told.change, told.inside) == ("one-graph", True)  # as measured: timings_h100.tsv


def all_nodes(side: Side) -> Table:
    kernels = side.tables["kernels"]
    return Table(
        kernels.spec, {**kernels.columns, "graph_node_id": np.arange(len(kernels), dtype=np.int64)}
    )


def test_regions_with_other_numbers_of_norms_may_be_networks_of_other_depth() -> None:
    """Four blocks have nine norms and six have thirteen, however they are fused."""
    (told,) = (one for one in compared("version").conditions if one.what == "norms in regions")
    assert (told.before, told.after, told.other_work) == ("9", "13", True)
    assert "depth" in told.told
    files = [FIXTURES / folder / "sync.nsys-rep" for folder in ("bert_trt85", "bert_trt86")]
    same = compare(
        *files,
        engine_before=files[0].parent / "engine.json",
        engine_after=files[1].parent / "engine.json",
    )
    assert not [one for one in same.conditions if one.what == "norms in regions"]


def test_an_engine_that_did_not_run_is_told_and_tells_nothing_of_the_run() -> None:
    other = FIXTURES / "bert_trt103" / "engine.json"
    found = compare(
        SYNC, FIXTURES / "bert_trt10" / "graph.sqlite", engine_before=other, engine_after=ENGINE
    )
    told = {one.what: one.told for one in found.conditions}
    assert told["engine file of BEFORE"].startswith("engine.json did not run")
    assert "shapes of inputs and outputs" not in told
    assert not any("did not run" in one.told for one in compared("graph").conditions)
