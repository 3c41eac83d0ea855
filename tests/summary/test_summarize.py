"""The answer: times of a stated unit, throughput beside them, and only actions that are predicted
to pay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

import pytest

from nsysmap.advice.paste import TWO_GRAPHS
from nsysmap.advice.program import Program
from nsysmap.advice.ways import how
from nsysmap.answer import gains, words
from nsysmap.answer.actions import RunFacts, UnitTime, actions
from nsysmap.answer.costs import functions, inside, kernel_titles
from nsysmap.answer.model import (
    Answer,
    Distinction,
    Figure,
    IdleCause,
    Region,
    RegionPart,
    RuleAnswer,
    Slowest,
    UnitOfTime,
    Wait,
    WhereItRan,
)
from nsysmap.answer.slowest import slowest
from nsysmap.answer.summarize import no_longer, summarize
from nsysmap.api import analyze
from nsysmap.core.changes import CHANGES
from nsysmap.core.report_schema import (
    DEVICE_TIMES,
    FINDINGS,
    INFERENCE_LOOPS,
    INFERENCE_TIMES,
    REPEATED_LAYERS,
    RULE_OUTCOMES,
)
from nsysmap.core.result_schema import GAPS, WHATIF
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import API_CALLS, CAPTURE, INFERENCES
from tests.figures import figures
from tests.places import FIXTURES
from tests.reports import analysis

TENSORRT = RunFacts(Program())


def answered(change: str, saving: int, low: int, high: int) -> dict[str, object]:
    return {
        "change": change, "answer": "answered", "before_ns": 1000, "saving_ns": saving,
        "low_saving_ns": low, "high_saving_ns": high,
        "after_ns": 1000 - saving, "low_after_ns": 1000 - saving - 10,
        "high_after_ns": 1000 - saving + 10, "assumptions": "",
    }  # fmt: skip


def tables(
    whatif: list[dict[str, object]],
    outcomes: list[dict[str, object]],
    findings: list[dict[str, object]],
) -> Mapping[str, Table]:
    return {
        "whatif": Table.of_rows(WHATIF, whatif),
        "rule_outcomes": Table.of_rows(RULE_OUTCOMES, outcomes),
        "findings": Table.of_rows(FINDINGS, findings),
    }


def outcome(rule: str, group: str, cost_ns: int) -> dict[str, object]:
    return {
        "rule": rule,
        "rule_group": group,
        "severity": "info",
        "outcome": "found",
        "findings": 1,
        "left_out": 0,
        "cost_ns": cost_ns,
    }


def finding(rule: str, message: str = "A. B.", inside: int | None = None) -> dict[str, object]:
    return {
        "finding_id": 0, "rule": rule, "rule_group": "fusion", "severity": "info",
        "message": message, "start_ns": 0, "end_ns": 1,
        "evidence": "{}", "advice": "", "inside": inside,
    }  # fmt: skip


def test_what_shortens_one_inference_comes_before_throughput_and_what_may_save_nothing_is_left_out() -> (  # noqa: E501
    None
):
    given = tables(
        [
            answered("async", 20, -5, 60),
            answered("cuda-graph", 100, 80, 120),
            answered("two-in-flight", 400, 300, 500),
        ],
        [outcome("norm-split", "fusion", 5000)],
        [finding("norm-split")],
    )
    assert [
        one.name for one in actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    ] == [
        "cuda-graph",
        "norm-split",
        "two-in-flight",
    ]


def test_a_change_for_throughput_says_how_many_a_second_and_what_that_takes() -> None:
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    *shorter, more = gains.first_actions(summary)
    assert summary.unprofiled is not None
    assert [action.name for action in shorter] == ["cuda-graph"]
    assert more.name == "two-in-flight"
    told = re.fullmatch(
        r"up to 6,\d00 \(likely (5,\d00)\) per second, now 3,020; kernels are on"
        r" 53% of the SMs;"
        r" each takes (\d+) µs, up from 331 µs",
        gains.gain(summary, more),
    )
    assert told is not None
    rate, each_us = (float(one.replace(",", "")) for one in told.groups())
    # Little's law: that many are in flight
    assert rate * each_us / 1e6 == pytest.approx(2, rel=0.02)
    assert re.fullmatch(
        rf"up to 6,\d00 \(likely {told[1]}\)/s",
        gains.gain(summary, more, brief=True),
    )
    half = replace(
        more, share=0.5, saving=Figure(summary.unprofiled.ns // 2, 0, summary.unprofiled.ns // 2)
    )
    assert "as before" in gains.gain(summary, half)
    waits = replace(more, name="async", beside=False)
    conditions = gains.conditions(summary, waits)
    assert "none needs another's" in conditions
    assert all(one in gains.gain(summary, waits) for one in conditions.split("; "))
    assert conditions not in gains.gain(summary, waits, brief=True)
    assert gains.gain(summary, shorter[0]).startswith("saves 50 µs")
    # whose saving is more on a slow host, where there is more to save
    slow = replace(waits, saving=Figure(100_000, 90_000, 300_000), share=0.3)
    now_ns = slow.saving.ns / 0.3
    after = Figure(round(now_ns) - 100_000, 220_000, 250_000)
    gained = gains.gain(summary, replace(slow, after=after))
    assert gained.startswith("4,300 (4,000 to 4,500) per second"), gained


def test_one_line_that_is_against_two_causes_of_idle_time_is_one_action() -> None:
    found = [
        outcome("launch-bound", "launch", 6_000),
        outcome("idle-between-inferences", "host", 30_000),
    ]
    given = tables([], found, [finding("launch-bound"), finding("idle-between-inferences")])
    runs = RunFacts(Program("pytorch"), 12, uploads=True)
    (only,) = actions(given, runs, units=10, unit_time=UnitTime(10_000, 10_000))
    assert (only.name, only.saving.ns) == ("idle-between-inferences", 3_000)


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((1.0, 1.0, 1.4), "inference 2: 1.40 µs, 1.4 x median: not an outlier (below 1.5 x)"),
        ((1.0, 1.0, 1.4963), "inference 2: 1.50 µs, 1.4 x median: not an outlier (below 1.5 x)"),
        ((1.0, 2.0, 1.0), "inference 1: 2.00 µs, 2.0 x median (1.00 µs)"),
        (
            (2.0, 1.0, 1.0),
            "inference 0: 2.00 µs, 2.0 x median (1.00 µs); one of the first, may be warm-up",
        ),
        (
            (1.6, 3.0, 1.0, 1.0, 1.0),
            "inference 1: 3.00 µs, 3.0 x median (1.00 µs); one of the first, may be warm-up",
        ),
        (
            (1.0, 2.0, 9.0, 1.0),
            "inference 2: 9.00 µs, 6.0 x median (1.50 µs)",
        ),  # and not that of one of the two in the middle
        (
            (1.0, 9.0),
            "cannot tell: no three steady-state inferences are of one kind",
        ),  # either may be the usual one
    ],
)
def test_the_slowest_is_an_outlier_from_1_5_times_the_median_and_an_early_one_may_be_warm_up(
    times: tuple[float, ...], told: str
) -> None:
    found = analysis("bert_trt10", "sync.sqlite").tables.by_name()
    usual, middle = (
        sorted(range(len(times)), key=lambda at: times[at])[(len(times) - 1) // 2],
        median(times),
    )
    rows = [
        {
            "inference": at,
            "group_id": 0,
            "time_ns": round(one * 1000),
            "times_median": one / middle,
            "usual": usual,
        }
        for at, one in enumerate(times)
    ]
    said = words.slowest(
        summarize({**found, "inference_times": Table.of_rows(INFERENCE_TIMES, rows)})
    )
    # what it waited for is that of the capture
    assert re.sub(r": \+[^;]*|; mostly before it began", "", said) == told


INFERENCE_ROW = {
    "process": 0, "pid": 1, "thread": 7, "device": 0, "found_by": "range", "cuda_graph": False,
    "warmup": False,
    "complete": True, "kernels": 1, "launches": 1,
}  # fmt: skip
GAP_ROW = {
    "gap_id": 0,
    "device": 0,
    "cause": "launch",
    "evidence": "cudaLaunchKernel",
    "thread": 7,
    "inference": 2,
}
CALL_ROW = {
    "process": 0,
    "pid": 1,
    "thread": 7,
    "api": "cudaLaunchKernel",
    "kind": "launch",
    "result": 0,
}


def slow_third(
    gap: tuple[int, int],
    calls: tuple[tuple[int, int], ...] = (),
    start_ns: int = 2000,
    cause: str = "launch",
) -> Slowest:
    """The slowest of three inferences, of 1, 1 and 4 µs, the third with this idle interval and its
    thread in these calls.
    """
    times = [(0, 0, 1000), (1, 1000, 2000), (2, start_ns, 6000)]
    found = slowest(
        {
            "inferences": Table.of_rows(
                INFERENCES,
                [
                    {
                        **INFERENCE_ROW,
                        "inference": at,
                        "start_ns": begin,
                        "end_ns": end,
                        "gpu_end_ns": end,
                    }
                    for at, begin, end in times
                ],
            ),
            "inference_times": Table.of_rows(
                INFERENCE_TIMES,
                [
                    {
                        "inference": 0,
                        "group_id": 0,
                        "time_ns": 1000,
                        "times_median": 1.0,
                        "usual": 0,
                    },
                    {
                        "inference": 1,
                        "group_id": 0,
                        "time_ns": 1000,
                        "times_median": 1.0,
                        "usual": 0,
                    },
                    {
                        "inference": 2,
                        "group_id": 0,
                        "time_ns": 4000,
                        "times_median": 4.0,
                        "usual": 0,
                    },
                ],
            ),
            "gaps": Table.of_rows(
                GAPS,
                [
                    {
                        **GAP_ROW,
                        "start_ns": gap[0],
                        "end_ns": gap[1],
                        "dur_ns": gap[1] - gap[0],
                        "cause": cause,
                    }
                ],
            ),
            "api_calls": Table.of_rows(
                API_CALLS, [{**CALL_ROW, "start_ns": begin, "end_ns": end} for begin, end in calls]
            ),
        }
    )
    assert found is not None
    return found


def test_of_a_wait_for_launches_that_is_one_interval_it_is_told_how_long_the_host_was_in_cuda_calls() -> (  # noqa: E501
    None
):
    one = (3000, 5000)
    assert slow_third(one, ((2900, 3100), (3050, 3200), (4900, 5100))).longest == Wait(2000, 300)
    assert slow_third(one).longest == Wait(2000, None)
    assert slow_third((3000, 4400), ((2900, 3100),)).longest is None  # not most of the excess
    told = (
        "inference 2: 4.00 µs, 4.0 x median (1.00 µs): +2.00 µs waiting for launches, +1.00 µs GPU"
        " work"
    )
    summary = analysis("bert_trt10", "sync.sqlite").summary
    late, launching = slow_third(one, ((2900, 3100),)), slow_third(one, ((2900, 4100),))
    why = "(2.00 µs at once, 1.90 µs of it in no CUDA call: preempted or blocked?)"
    assert words.slowest(replace(summary, slowest=late)) == f"{told} {why}"
    assert words.slowest(replace(summary, slowest=late), held_up=False) == told
    assert (
        words.slowest(replace(summary, slowest=launching))
        == f"{told} (2.00 µs at once, mostly in one cudaLaunchKernel of 1.20 µs: preempted or"
        " blocked?)"
    )
    within = slow_third(one, ((2900, 5100),))
    assert within.longest == Wait(2000, 2000, "cudaLaunchKernel", 2000, 2200)
    why = "(2.00 µs at once, in one cudaLaunchKernel of 2.20 µs: preempted or blocked?)"
    assert words.slowest(replace(summary, slowest=within)) == f"{told} {why}"
    # it launches
    assert (
        words.slowest(
            replace(summary, slowest=slow_third(one, ((2900, 3700), (3700, 4300), (4300, 5100))))
        )
        == told
    )
    assert "at once" not in words.slowest(
        replace(summary, slowest=slow_third(one, ((2900, 3100),), cause="sync"))
    )


def test_an_inference_that_is_slow_because_it_began_late_says_so() -> None:
    one = (3000, 5000)
    assert not slow_third(one, cause="sync").later
    assert not slow_third(one, start_ns=3500, cause="sync").later  # half of the excess
    late = slow_third(one, start_ns=4000, cause="sync")
    assert late.later
    assert words.slowest(
        replace(analysis("bert_trt10", "sync.sqlite").summary, slowest=late)
    ).endswith("before it began")


def test_a_saving_below_one_percent_of_the_time_is_noise() -> None:
    assert (
        actions(
            tables([answered("cuda-graph", 9, 5, 12)], [], []),
            TENSORRT,
            units=10,
            unit_time=UnitTime(1000, 1000),
        )
        == ()
    )


def test_what_a_rule_prices_is_at_most_its_cost_over_the_inferences_and_comes_after_what_a_replay_is_sure_of() -> (  # noqa: E501
    None
):
    given = tables(
        [answered("cuda-graph", 20, 15, 25)],
        [outcome("norm-split", "fusion", 5000)],
        [finding("norm-split", "Norm x is split: y.")],
    )
    first, second = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert (first.name, second.name) == ("cuda-graph", "norm-split")
    assert (second.saving.low_ns, second.saving.ns, second.saving.high_ns) == (0, 500, 500)
    assert "each norm" in second.title


@pytest.mark.parametrize(("group", "inside"), [("launch", None), ("hotspot", None), ("fusion", 0)])
def test_costs_that_a_replay_prices_or_that_another_finding_stands_for_are_no_action_of_their_own(
    group: str, inside: int | None
) -> None:
    given = tables([], [outcome("some-rule", group, 5000)], [finding("some-rule", inside=inside)])
    assert actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000)) == ()


def test_threads_of_one_gpu_are_counted_once_however_many_shapes_each_runs() -> None:
    summary = analysis("bert_split_trt10", "threads.nsys-rep").summary
    one, other = summary.kinds
    shapes = tuple(
        replace(kind, distinction=Distinction(kernels=n))
        for kind in (one, other)
        for n in (110, 112)
    )
    assert words.times(replace(summary, kinds=shapes))[0].endswith("(2 threads together)")
    apart = (
        replace(one, place=WhereItRan(process=7, gpu=0)),
        replace(other, place=WhereItRan(process=8, gpu=1)),
    )
    assert words.times(replace(summary, kinds=apart))[0].endswith(" per second on each GPU")


def test_loops_of_hidden_cuda_graphs_are_on_no_other_gpu() -> None:
    tables = analysis("bert_split_trt10", "threads.nsys-rep").tables.by_name()
    loops = tables["inference_loops"].records()
    loops[1].update(device=None, thread=loops[0]["thread"])
    found = summarize({**tables, "inference_loops": Table.of_rows(INFERENCE_LOOPS, loops)})
    assert [one.what for one in found.kinds] == ["", "CUDA graphs"]
    assert "each GPU" not in words.times(found)[0]


def test_what_alike_layers_do_is_what_one_of_them_does_and_not_what_their_names_share() -> None:
    """Norms before and after a slice share the beginning of their names, which moves data only."""
    tables = analysis("bert_trt103", "graph.nsys-rep").tables.by_name()
    rows = tables["repeated_layers"].records()
    norms = [row for row in rows if "output/LayerNorm" in str(row["title"])]
    for row in norms:
        row["name"] = "__myl_ResTra*"
    found = summarize({**tables, "repeated_layers": Table.of_rows(REPEATED_LAYERS, rows)})
    does = [one.does for one in found.layers if one.name == "__myl_ResTra*"]
    assert does == ["residual-add, layernorm"] * len(norms)
    assert norms


def test_repetitions_of_several_sequences_of_kernels_are_not_of_the_same() -> None:
    summary = replace(
        analysis("torch_mixed", "sync.nsys-rep", engine=False).summary,
        unit_of_time=UnitOfTime(repetitions=True),
    )
    assert " of 2 sequences of kernels (" in words.title(summary)
    assert "same kernels" in words.title(replace(summary, kinds=summary.kinds[:1]))


def test_a_prediction_that_leaves_outliers_or_pauses_out_says_so() -> None:
    summary = analysis("bert_trt10", "sync.sqlite").summary
    assert summary.traced is not None
    assert "and outliers" in words.times(summary)[1]
    longer = replace(summary, traced=replace(summary.traced, ns=2 * summary.traced.ns))
    assert (
        "predicted without the profiler, pauses and outliers (52% of the trace), "
        in words.times(longer)[1]
    )
    assert words.certainty(summary).endswith("by 0.4%")
    assert figures(words.certainty(longer))[-2:] == ["0.4", "52"]
    assert words.certainty(longer).endswith("pauses and outliers")
    assert figures(words.where(longer)[0])[-2:] == ["79", "261"]
    assert "and pauses" in words.where(longer)[0]
    (action,) = (one for one in summary.actions if one.name == "cuda-graph")
    assert "saves 50 µs (39 to 71), 15% of 331 µs, 7% of the trace" in gains.gain(longer, action)
    assert "of the trace" not in gains.gain(summary, action)
    hours = replace(summary, traced=replace(summary.traced, ns=4000 * summary.traced.ns))
    assert "pauses and outliers (99.9% of the trace)" in words.times(hours)[1]
    assert ", <0.01% of the trace" in gains.gain(hours, action)
    assert (
        "predicted without the profiler, "
        in words.times(replace(summary, replayed_ns=summary.traced.ns))[1]
    )


def test_where_one_inference_ran_no_saving_is_predicted_for_want_of_more_and_not_of_any() -> None:
    summary = replace(
        analysis("bert_trt10", "graph_whole.sqlite").summary,
        traced=None,
        unprofiled=None,
        errors=(),
    )
    assert "recognised" not in gains.no_action(summary)
    assert gains.no_action(replace(summary, inferences=0)).endswith("recognised")


def test_a_trace_without_any_gpu_work_is_not_to_be_captured_again_for_its_graphs() -> None:
    found = analysis("bert_trt10", "graph_whole.sqlite")
    tables = found.tables.by_name()
    (facts,) = tables["capture"].records()
    none = dict.fromkeys(
        ("kernels", "memcpys", "memsets", "cuda_graph_traces", "graph_launches"), 0
    )
    without = summarize({**tables, "capture": Table.of_rows(CAPTURE, [{**facts, **none}])})
    assert not any("graph" in step.command for step in without.next_steps)


def test_what_did_not_fuse_cannot_be_told_by_an_engine_file_that_did_not_run() -> None:
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    clean = tuple(replace(rule, outcome="clean", places=0) for rule in summary.rules)
    assert words.not_fused(replace(summary, rules=clean)).startswith("nothing found by ")
    other = tuple(replace(engine, verdict="did-not-run") for engine in summary.engines)
    assert (
        "engine file"
        in words.not_fused(replace(summary, rules=clean, engines=other)).partition("cannot tell")[2]
    )


def test_the_answer_s_parts_add_up_to_its_window() -> None:
    summary = analysis("bert_trt10", "sync.sqlite").summary
    (gpu,) = summary.gpus
    assert gpu.busy_share is not None
    assert gpu.busy_share + sum(one.share_of_window for one in gpu.idle) == pytest.approx(
        1, abs=0.01
    )
    assert summary.unit == "inference"
    assert summary.traced is not None
    assert summary.per_second == pytest.approx(1e9 / summary.traced.ns)
    assert summary.unprofiled is not None
    assert summary.unprofiled.ns < summary.traced.ns


def test_passes_of_two_engines_are_the_unit_where_they_take_turns() -> None:
    found = analysis("torch_mixed", "sync.nsys-rep", engine=False).summary
    assert found.unit == "pass of 2 inferences"
    assert found.gpus[0].busy_ns == pytest.approx(2 * 11_490_298 / 80, rel=0.01)


def test_two_threads_on_one_gpu_finish_an_inference_twice_as_often_as_each_does() -> None:
    found = analysis("bert_split_trt10", "threads.nsys-rep").summary
    assert found.traced is not None
    assert [one.what for one in found.kinds] == ["thread 1", "thread 2"]
    assert all(
        one.median_ns is not None and 1.7 < one.median_ns / found.traced.ns < 2.3
        for one in found.kinds
    )


def test_a_whole_graph_trace_has_no_action_and_names_the_command_that_shows_more() -> None:
    found = analysis("bert_trt10", "graph_whole.sqlite").summary
    assert found.actions == ()
    assert found.mapped.share_of_time is None
    assert found.blocked
    assert "--cuda-graph-trace=node" in found.next_steps[0].command


def test_kernels_of_which_their_names_say_the_same_are_told_apart_by_them() -> None:
    same = "cudnn convolution kernel: FP32"
    kernels = [
        (same, "cudnn_implicit_gemm_128x64"),
        (same, "cudnn_winograd_4x4"),
        ("pytorch copy kernel", "copy_kernel"),
    ]
    told = kernel_titles(kernels, 200)
    assert told == [
        f"{same} (cudnn_implicit_gemm_128x64)",
        f"{same} (cudnn_winograd_4x4)",
        "pytorch copy kernel",
    ]
    assert len(set(kernel_titles(kernels, 40))) == 3
    assert kernel_titles([(same, "a"), (same, "a")], 80) == [same, same]


def test_kernels_of_one_template_are_told_apart_by_the_words_of_its_arguments() -> None:
    nested = (
        "void at::native::elementwise_kernel<(int)128, (int)2, void"
        " at::native::gpu_kernel_impl<at::native::{}>::[lambda(int)]>(int, T3)"
    )
    add, mul = (
        nested.format(one)
        for one in (
            "CUDAFunctor_add<float>",
            "BinaryFunctor<float, float, at::native::detail::MulFunctor<float>>",
        )
    )
    assert functions([add, mul]) == [
        "elementwise_kernel … CUDAFunctor_add",
        "elementwise_kernel … BinaryFunctor MulFunctor",
    ]
    assert functions([add, add, "gemm"]) == ["elementwise_kernel", "elementwise_kernel", "gemm"]
    # no word of the first two is theirs alone
    more = nested.format("CUDAFunctor_add<at::native::detail::MulFunctor<BinaryFunctor>>")
    told = functions([add, mul, more])
    assert len({*told}) == 3
    same = "pytorch pointwise kernel: FP32"
    assert kernel_titles([(same, add), (same, mul)], 90) == [
        f"{same} ({one})" for one in functions([add, mul])
    ]


def test_layers_that_could_run_at_the_same_time_are_not_unfused() -> None:
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    beside = RuleAnswer("parallel-small-kernels", "fusion", "info", "found", 2, 8130, "A. B.")
    assert words.not_fused(replace(summary, rules=(*summary.rules, beside))) == words.not_fused(
        summary
    )
    clean = tuple(
        replace(one, outcome="clean", places=0)
        for one in summary.rules
        if one.rule != "parallel-small-kernels"
    )
    assert words.not_fused(replace(summary, rules=(*clean, beside))).startswith("nothing found by ")


def test_regions_of_several_engines_are_told_apart_and_their_parts_add_up() -> None:
    summary = analysis("bert_trt10", "sync.sqlite").summary
    norm, swiglu = (
        RegionPart(name, ", ".join(does), 1, 1.0, 10, share, does)
        for name, does, share in (
            ("__myl_a", ("residual-add", "rmsnorm"), 0.75),
            ("b", (), 0.25),
        )
    )
    one = Region("{ForeignNode[a...b]}", 0, 0.2, (norm, swiglu))
    assert inside(replace(summary, regions=(one,))) == "75% __myl_a, 25% b"
    both = (
        one,
        replace(
            one,
            engine=1,
            share_of_all_kernel_time=0.4,
            parts=(replace(norm, share_of_region_time=1.0),),
        ),
    )
    assert figures(inside(replace(summary, regions=both))) == ["2", "60.0", "55.0", "2", "5.0"]


def test_what_quantisations_cost_beside_their_products_counts_as_not_fused() -> None:
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    alone = replace(
        summary.rules[0],
        rule="unfused-quantize",
        group="precision",
        outcome="found",
        places=17,
        at_most_ns=88_600,
    )
    clean = tuple(replace(rule, outcome="clean", places=0) for rule in summary.rules)
    assert (
        words.not_fused(replace(summary, rules=(alone, *clean)), places=False)
        == "Q/DQ 88.6 µs (17 places); at most"
    )


def test_what_was_not_fused_says_in_which_layers() -> None:
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    assert words.not_fused(summary).startswith(
        "attention 31.2 µs (2 places: /bert/encoder/layer.{2,5}/attention/self), "
    )
    assert words.not_fused(summary, places=False).startswith("attention 31.2 µs (2 places), ")
    assert words.not_fused(summary, places=False, counts=False).startswith("attention 31.2 µs, ")


def test_a_graph_that_mostly_shortens_the_time_between_queued_kernels_says_so() -> None:
    given = tables([answered("cuda-graph", 100, 80, 120)], [], [])
    summary = replace(analysis("bert_trt10", "sync.sqlite").summary, gpu_unprofiled=None)
    for launch, dispatch, told in (
        (50, 70, ": between queued kernels, waiting for launches"),
        (70, 50, ""),
    ):
        idle = [
            IdleCause("launch", launch, 0.1),
            IdleCause("dispatch", dispatch, 0.1),
            IdleCause("host", 300, 0.3),
        ]
        (action,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000), idle=idle)
        assert gains.gain(summary, action) == f"saves 100 ns (80 to 120), 10% of 331 µs{told}"
        assert "queued" not in gains.gain(summary, action, brief=True)


def test_inferences_of_several_shapes_need_a_graph_for_each() -> None:
    def title(name: str, *engines: str) -> str | None:
        given = analyze(
            FIXTURES / name / "sync.nsys-rep", [FIXTURES / name / engine for engine in engines]
        )
        return next((one.title for one in given.summary.actions if one.name == "cuda-graph"), None)

    assert str(title("two_shapes", "engine.json")).endswith("each kind")
    assert (
        title("decode_loop", "context.engine.json", "generation.engine.json")
        == CHANGES["cuda-graph"].title
    )


def test_avoiding_reformats_is_advised_by_why_they_are_there() -> None:
    whatif = [answered("drop-layers", 100, 80, 120)]
    why = [
        {
            **finding("reformat-cost", inside=inside),
            "finding_id": cost,
            "cost_ns": cost,
            "evidence": json.dumps({"cause": cause}),
        }
        for cost, cause, inside in ((1, "output", 0), (2, "input", 0), (3, "placement", None))
    ]
    [action] = actions(tables(whatif, [], why), TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert action.change is not None
    assert [part.split()[0] for part in action.change.split("; ")] == ["try", "give", "take"]
    [action] = actions(tables(whatif, [], []), TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert action.change is not None and "neighbouring layers" in action.change


def test_two_in_flight_of_a_program_that_runs_cuda_graphs_are_two_graphs() -> None:
    def line(given: Answer) -> str | None:
        return next(one.paste for one in given.actions if one.name == "two-in-flight")

    streams = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    assert (line(streams) or "").startswith("std::thread ")
    graphs = analysis("bert_trt103", "graph.sqlite", rules=True).summary
    assert (line(graphs) or "").startswith("cudaGraphLaunch(exec[i % 2], streams[i % 2]);")
    given = how(TWO_GRAPHS, Program(tensorrt=(11,)))
    # whose default are graphs
    assert given.paste == "trtexec --loadEngine=MODEL.plan --infStreams=2 --threads"


def test_where_lines_are_few_the_actions_that_save_most_stay() -> None:
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    graph, attention, two, *_ = summary.actions
    assert two.throughput_only
    large = replace(
        attention,
        saving=Figure(2 * graph.saving.ns, 0, 2 * graph.saving.ns),
        share=2 * (graph.share or 0),
    )
    shown = gains.first_actions(replace(summary, actions=(graph, large, two)))
    assert large in shown
    assert len(shown) == gains.ACTIONS
    small = [replace(graph, name=f"other {number}") for number in range(3)]
    assert large in gains.first_actions(replace(summary, actions=(*small, large, two)))


def test_what_raises_throughput_only_is_not_shown_where_a_shorter_inference_raises_it_as_much() -> (
    None
):
    summary = analysis("bert_trt10", "sync.sqlite", rules=True).summary
    graph, _, two, *_ = summary.actions
    assert gains.first_actions(replace(summary, actions=(graph, two))) == (graph, two)
    less = replace(two, saving=graph.saving)
    assert gains.first_actions(replace(summary, actions=(graph, less))) == (graph,)


def test_an_outlier_that_is_mostly_the_profilers_work_is_called_its_artefact() -> None:
    summary = analysis("bert_split_trt10", "sync.nsys-rep").summary
    assert summary.slowest is not None
    assert summary.slowest.more[0][0] == "profiler"
    assert words.slowest(summary).endswith("artefact of profiling")
    assert "artefact" not in words.slowest(analysis("bert_trt10", "sync.sqlite").summary)


@pytest.mark.parametrize(
    ("saving", "told"),
    [
        (400, "saves 400 ns (360 to 440), 40% of 1,220 µs"),
        (
            600,
            "saves 600 ns (560 to 640), 60% of 1,220 µs: host busy elsewhere, waiting for launches",
        ),
        (950, "saves 950 ns (910 to 990), 95% of 1,220 µs"),  # more than all of that
    ],
)
def test_a_saving_beyond_the_idle_time_of_its_cause_says_what_else_it_is_made_of(
    saving: int, told: str
) -> None:
    given = tables([answered("no-host-gap", saving, saving - 40, saving + 40)], [], [])
    idle = [
        IdleCause("host", 488, 0.4),
        IdleCause("copy", 22, 0.02),
        IdleCause("launch", 388, 0.3),
        IdleCause("dispatch", 300, 0.3),
    ]
    (action,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000), idle=idle)
    summary = replace(
        analysis("torch_mixed", "sync.nsys-rep", engine=False).summary,
        unprofiled=None,
        gpu_unprofiled=None,
    )
    assert gains.gain(summary, action) == told


def test_what_a_rule_prices_is_said_to_be_no_sure_saving() -> None:
    given = tables([], [outcome("norm-split", "fusion", 5000)], [finding("norm-split")])
    (action,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    told = gains.gain(analysis("bert_trt10", "sync.sqlite").summary, action, " per inference")
    assert told.startswith("may save up")
    assert figures(told) == ["500", "50", "331"]


def test_a_change_and_a_rule_that_price_the_same_are_one_action() -> None:
    both = [outcome("norm-split", "fusion", 5000), outcome("under-filled-gpu", "hotspot", 5000)]
    found = [
        finding("norm-split"),
        finding("under-filled-gpu") | {"finding_id": 1, "evidence": '{"busy_sms": 0.53}'},
    ]
    alone = actions(tables([], both, found), TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert [one.name for one in alone] == ["norm-split", "under-filled-gpu"]
    told = gains.gain(analysis("bert_trt10", "sync.sqlite").summary, alone[1])
    assert (figures(told), told.endswith("gain unknown")) == (["47"], True)
    changes = [answered("join-kernels", 100, 80, 120), answered("two-in-flight", 400, 300, 500)]
    replayed = actions(
        tables(changes, both, found), TENSORRT, units=10, unit_time=UnitTime(1000, 1000)
    )
    assert [one.name for one in replayed] == ["join-kernels", "two-in-flight"]
    assert gains.action_title(replayed[1]).startswith("keep two inferences")


@pytest.mark.parametrize(("cost_ns", "first"), [(4000, "fp32-engine"), (1000, "cuda-graph")])
def test_an_engine_in_fp32_is_the_first_thing_to_say_where_half_precision_may_save_most(
    cost_ns: int, first: str
) -> None:
    given = tables(
        [answered("cuda-graph", 150, 120, 180)],
        [outcome("fp32-engine", "precision", cost_ns)],
        [finding("fp32-engine")],
    )
    told = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert told[0].name == first
    assert {one.name for one in told} == {"fp32-engine", "cuda-graph"}
    precise = next(one for one in told if one.name == "fp32-engine")
    assert (
        precise.title,
        "AutoCast" in str(precise.change) or "autocast" in str(precise.change),
    ) == (precise.title, True)
    assert "half precision" in precise.title


@pytest.mark.parametrize(
    ("kinds", "title"),
    [
        (["norm"], "fuse norms inside the region"),
        (["attention", "norm", "norm"], "fuse attention and norms inside the region"),
    ],
)
def test_only_what_is_in_pieces_inside_a_region_is_to_be_fused_there(
    kinds: list[str], title: str
) -> None:
    found = [
        finding("split-inside-region") | {"finding_id": n, "evidence": f'{{"kind": "{kind}"}}'}
        for n, kind in enumerate(kinds)
    ]
    given = tables([], [outcome("split-inside-region", "fusion", 5000)], found)
    (action,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert action.title == title


@pytest.mark.parametrize(
    ("kinds", "told"),
    [(["norm", "norm"], "norms"), (["softmax", "attention"], "attention and softmaxes")],
)
def test_what_runs_in_several_kernels_is_told_by_what_was_found(
    kinds: list[str], told: str
) -> None:
    found = [
        finding("split-inside-region") | {"finding_id": n, "evidence": f'{{"kind": "{kind}"}}'}
        for n, kind in enumerate(kinds)
    ]
    held = analysis("bert_trt10", "sync.sqlite").tables.by_name()
    given = {**held, **tables([], [outcome("split-inside-region", "fusion", 5000)], found)}
    assert words.not_fused(summarize(given), places=False).startswith(f"{told} in several kernels ")


def test_two_in_flight_are_at_most_twice_as_many_per_second_as_one_after_another() -> None:
    runs = RunFacts(Program("tensorrt"), 0.0, None)
    (action,) = actions(
        tables([answered("two-in-flight", 450, 300, 800)], [], []),
        runs,
        units=10,
        unit_time=UnitTime(1000, 1000),
    )
    summary = replace(
        analysis("bert_trt10", "sync.sqlite").summary, unprofiled=Figure(1000, 800, 1300)
    )
    told = gains.gain(summary, replace(action, after=Figure(550, 200, 700)))
    # 2 / 800 ns, and not 1 / 200 ns
    assert "1,820,000" in told and "2,500,000) per second" in told, told


def test_an_action_without_a_line_to_paste_says_what_to_change() -> None:
    priced = outcome("unfused-quantize", "precision", 5000)
    (action,) = actions(
        tables([], [priced], [finding("unfused-quantize")]),
        TENSORRT,
        units=10,
        unit_time=UnitTime(1000, 1000),
    )
    assert action.paste is None
    assert "read the tensor" in (action.change or "")


def test_the_time_in_the_trace_is_the_mean_of_all_and_the_busy_share_is_of_it() -> None:
    found = analysis("decode_loop", "sync.nsys-rep", engine=False)
    summary, (loop,) = found.summary, list(found.tables.inference_loops)
    assert summary.traced is not None
    assert summary.traced.ns == pytest.approx(
        loop.integer("window_ns") / loop.integer("steady"), rel=0.005
    )
    (gpu,) = summary.gpus
    assert gpu.busy_ns == pytest.approx((gpu.busy_share or 0) * summary.traced.ns, rel=0.01)
    assert words.times(summary)[1].endswith("and outliers, 3,200 per second")


def test_where_nothing_can_be_replayed_the_rules_say_what_may_be_saved_each_thing_once() -> None:
    outcomes = [
        outcome("pageable-copy", "copy", 3000),
        outcome("blocking-copy", "copy", 2000),
        outcome("launch-bound", "launch", 4000),
    ]
    found = [finding(one) for one in ("pageable-copy", "blocking-copy", "launch-bound")]
    cannot: dict[str, object] = {
        "change": "cuda-graph",
        "answer": "cannot-tell",
        "assumptions": "",
        "reason": "the inferences are not evenly spaced",
    }
    told = actions(
        tables([cannot], outcomes, found), TENSORRT, units=10, unit_time=UnitTime(1000, 1000)
    )
    assert [(one.name, one.title) for one in told] == [
        ("launch-bound", CHANGES["cuda-graph"].title),
        ("pageable-copy", CHANGES["pinned-copies"].title),
    ]  # fmt: skip
    assert (told[0].paste or "").startswith("trtexec ")
    assert (
        actions(
            tables([answered("cuda-graph", 2, -5, 9)], outcomes, found),
            TENSORRT,
            units=10,
            unit_time=UnitTime(1000, 1000),
        )
        == ()
    )


@pytest.mark.parametrize(("copies_ns", "saved"), [(6000, 400), (9000, 100)])
def test_copies_can_hide_behind_no_more_than_the_other_work(copies_ns: int, saved: int) -> None:
    device = {
        "device": 0, "window": "inferences", "start_ns": 0, "end_ns": 10_000, "window_ns": 10_000,
        "inferences": 10, "busy_ns": 10_000,
        "copies_ns": copies_ns, "idle_ns": 0, "busy_share": 1.0,
    }  # fmt: skip
    given = {
        **tables(
            [],
            [outcome("copy-not-overlapped", "copy", copies_ns)],
            [finding("copy-not-overlapped")],
        ),
        "device_times": Table.of_rows(DEVICE_TIMES, [device]),
    }
    (action,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(1000, 1000))
    assert action.saving.ns == saved
    assert action.throughput_only


def test_a_gpu_that_copies_says_how_much_of_its_time_that_is() -> None:
    summary = analysis("bert_trt10", "sync.sqlite").summary
    (gpu,) = summary.gpus
    assert gpu.copies_share == 0
    copying = replace(summary, gpus=(replace(gpu, copies_share=0.71),))
    assert "73% busy in the trace (274 µs, 71% of it copies)" in words.where(copying)[0]


def test_hidden_replays_between_ranges_take_turns_with_them() -> None:
    """A context engine runs with ranges, then steps as CUDA graphs: the times of all add up to the
    run's, and each kind is named.
    """
    analysed = analysis("decode_loop", "graph_whole.nsys-rep", engine=False)
    (loop,) = analysed.tables.inference_loops
    times, first = (
        analysed.tables.inference_times.ints("time_ns"),
        next(iter(analysed.tables.inferences)),
    )
    # its time is unknown: it follows none
    own_ns = first.integer("end_ns") - first.integer("start_ns")
    assert loop.integer("window_ns") - own_ns == pytest.approx(
        times[times != MISSING].sum(), rel=0.001
    )
    assert {kind.what for kind in analysed.summary.kinds} >= {"CUDA graphs"}


@pytest.mark.parametrize(
    ("told", "traced_ns", "counted", "shown"),
    [
        (Figure(1_002, 1_000, 1_002), 1_001, 500, Figure(1_001, 999, 1_001)),
        (Figure(990, 950, 1_040), 1_001, 500, Figure(990, 950, 1_040)),
        (Figure(1_002), 1_001, 500, Figure(1_001)),
        (Figure(1_300, 1_200, 1_400), 1_001, 500, Figure(1_300, 1_200, 1_400)),  # something else
        # of four repetitions the first and the last are half of the mean
        (Figure(1_300, 1_200, 1_400), 1_001, 4, Figure(1_001, 924, 1_001)),
    ],
)
def test_the_time_without_the_profiler_is_no_longer_than_the_traced_one(
    told: Figure, traced_ns: int, counted: float, shown: Figure
) -> None:
    assert no_longer(told, traced_ns, counted) == shown
