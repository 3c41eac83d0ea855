"""The answer's sentences for programs that are not one TensorRT engine in a loop: words that fit,
and figures that agree.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nsysmap.answer import gains, next_steps, words
from nsysmap.answer.actions import LEAST_SHARE, UnitTime, actions
from nsysmap.answer.costs import kernel_titles
from nsysmap.answer.model import Answer, Doubt, Figure, NextStep, Trouble, UnitOfTime
from nsysmap.answer.summarize import summarize
from nsysmap.api import analyze
from nsysmap.comparison.inference import one_inference
from nsysmap.comparison.inference_page import inference_text
from nsysmap.core.report_schema import INFERENCE_LOOPS, INFERENCE_TIMES
from nsysmap.core.result_schema import WHATIF
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.output.build import report_of
from nsysmap.output.first import first_sections
from nsysmap.output.text.report import report_text
from nsysmap.output.whatif import whatif_text
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from nsysmap.trace.inferences.steady import only_repeats
from nsysmap.whatif.change import Change
from nsysmap.whatif.model import NoModel
from nsysmap.whatif.predict import predicted
from tests.figures import figures
from tests.places import FIXTURES
from tests.reports import analysis
from tests.summary.test_summarize import TENSORRT, answered, finding, outcome, tables


def eager() -> Answer:
    return analysis("torch_encoder", "eager.nsys-rep", engine=False, rules=True).summary


def test_a_program_without_tensorrt_is_told_nothing_about_engine_files() -> None:
    summary = eager()
    assert not summary.tensorrt
    told = [
        words.title(summary),
        words.not_fused(summary),
        words.certainty(summary),
        next_steps.doubts(summary),
        gains.no_action(summary),
    ]
    assert not [text for text in told if "engine" in text]
    alone = replace(summary, inferences=0, unprofiled=None, traced=None)
    assert "no repeating work recognised on " in words.title(alone)
    assert gains.no_action(alone).endswith("no repeating work was recognised")
    assert (
        words.in_its_words(alone, "no complete {:inference} was found")
        == "no complete repetition was found"
    )
    with_it = replace(alone, tensorrt=True)
    assert "engine file" in words.not_fused(with_it)
    assert "no engine file" in words.certainty(with_it)
    assert "no inference recognised on " in words.title(with_it)


def test_nothing_that_repeats_is_no_missing_inference_where_no_tensorrt_runs() -> None:
    held = analysis("torch_encoder", "eager.nsys-rep", engine=False).tables.by_name()
    none = {
        **held,
        "inferences": Table.empty(INFERENCES),
        "inference_times": Table.empty(INFERENCE_TIMES),
    }
    [step] = summarize(none).next_steps
    assert step.why.startswith("capture a loop")


def test_what_repeats_unmarked_is_called_so_in_every_sentence() -> None:
    model = NoModel("two of the {:inference}s are {:an inference} apart", repetitions=True)
    (row,) = predicted(model, [Change("async")]).whatif
    reason = row.text("reason")
    assert reason == "two of the repetitions are a repetition apart"
    summary = replace(
        eager(),
        unit_of_time=UnitOfTime(repetitions=True),
        unprofiled=None,
        doubts=(Doubt(reason, changes=("async",)),),
        slowest=None,
    )
    assert reason in words.times(summary)[-1]
    assert "steady-state repetitions" in words.slowest(summary)
    held = analysis("torch_encoder", "eager.nsys-rep", engine=False).tables.by_name()
    made = {
        **answered("two-in-flight", 400, 300, 500),
        "inferences": 1,
        "recorded_ns": 1_000,
        "low_before_ns": 990,
        "high_before_ns": 1_010,
    }
    (action,) = summarize({**held, "whatif": Table.of_rows(WHATIF, [made])}).actions
    assert gains.action_title(action) == "keep two repetitions in flight"


def test_launches_of_cuda_graphs_among_repetitions_are_repetitions_too_unless_an_engine_is_known() -> (  # noqa: E501
    None
):
    def table(*found: tuple[str, int | None]) -> Table:
        rows = [
            {"inference": number, "found_by": by, "engine": engine}
            for number, (by, engine) in enumerate(found)
        ]
        return Table.of_rows(INFERENCES, rows)

    for launched in (
        table(("period", None), ("graph-launch", None)),
        table(("graph-launch", None)),
    ):
        assert only_repeats(launched, tensorrt=False)
        assert not only_repeats(launched, tensorrt=True)
    for tensorrt in (False, True):
        assert only_repeats(table(("period", None)), tensorrt=tensorrt)
        assert not only_repeats(table(("period", None), ("graph-launch", 0)), tensorrt=tensorrt)
        assert not only_repeats(table(("period", None), ("nvtx", None)), tensorrt=tensorrt)
        assert not only_repeats(table(), tensorrt=tensorrt)


def test_a_cause_told_above_is_not_said_to_stand_beside_a_time_that_is_not_there() -> None:
    summary = replace(
        eager(),
        unprofiled=None,
        doubts=(Doubt("too few", changes=("async", "cuda-graph")),),
    )
    summary = replace(summary, graph=replace(summary.graph, answer="cannot-tell", reason="too few"))
    assert gains.graph(summary) == "cannot tell (see time)"
    assert gains.graph(replace(summary, traced=None)) == "cannot tell (see above)"


def test_idle_time_between_inferences_is_a_share_of_the_time_with_its_pauses() -> None:
    given = tables(
        [],
        [outcome("idle-between-inferences", "host", 9_000)],
        [finding("idle-between-inferences")],
    )
    (action,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(300, 1_200))
    assert action.share == pytest.approx(0.75)
    summary = replace(eager(), traced=Figure(300), unprofiled=None)
    assert figures(gains.gain(summary, action)) == ["900", "75", "1.20"]
    (steady,) = actions(given, TENSORRT, units=10, unit_time=UnitTime(1_000, 1_200))
    assert figures(gains.gain(replace(summary, traced=Figure(1_000)), steady)) == [
        "900",
        "90",
        "1.00",
    ]


@pytest.mark.parametrize(
    ("rates", "rate", "told"),
    [
        ((100.0, 99.0), 99, " on each GPU"),
        ((100.0, 50.0), 50, " on GPU 1"),
        ((50.0, 100.0), 50, " on GPU 0"),
    ],
)
def test_the_time_is_of_each_gpu_only_where_all_take_it(
    rates: tuple[float, float], rate: int, told: str
) -> None:
    held = analysis("two_gpus", "tp_sync.nsys-rep", engine=False).tables.by_name()
    loops = held["inference_loops"].records()
    rows = [{**row, "per_second": rates[int(str(row["device"]))]} for row in loops]
    summary = summarize({**held, "inference_loops": Table.of_rows(INFERENCE_LOOPS, rows)})
    assert re.search(rf", {rate}(\.0)? per second{told}$", words.times(summary)[0])


def test_a_busy_share_of_few_inferences_that_their_mean_time_contradicts_says_what_it_is_of() -> (
    None
):
    summary = eager()
    (gpu,) = summary.gpus
    gpu = replace(gpu, busy_share=0.98, busy_ns=790, copies_share=0.0, idle=())
    few = replace(
        summary, steady=4, traced=Figure(1_000), gpus=(gpu,), gpu_unprofiled=None, actions=()
    )
    assert words.where(few) == ["98% busy from the first repetition to the last; idle 2%"]
    assert words.where(replace(few, traced=Figure(800))) == [
        "98% busy in the trace (790 ns); idle 2%"
    ]
    assert words.where(replace(few, steady=100))[0].startswith("98% busy in the trace (790 ns")


@pytest.mark.parametrize(
    ("ratio", "told"),
    [(27_919.1, "27,900 x"), (853.8, "854 x"), (99.94, "99.9 x"), (1.47, "1.4 x")],
)
def test_a_slow_one_is_so_many_times_the_median_in_three_digits(ratio: float, told: str) -> None:
    summary = eager()
    assert summary.slowest is not None
    summary = replace(summary, slowest=replace(summary.slowest, times_median=ratio))
    assert f", {told} median" in words.slowest(summary)


def test_a_kernel_of_which_nothing_is_known_is_shown_with_its_name() -> None:
    assert kernel_titles([("unknown", "my_kernel"), ("cuda kernel: a", "a")], 60) == [
        "cuda kernel: my_kernel",
        "cuda kernel: a",
    ]
    assert kernel_titles([("unknown", "(no name)")], 60) == ["unknown (no name)"]


@pytest.mark.parametrize(
    ("saving", "told"),
    [
        (Figure(30, 20, 90), "worth it"),
        (Figure(30, 10, 90), "worth it"),
        (Figure(30, 5, 90), "may not be worth it (less than 1% at the low end)"),
        (Figure(30, -5, 90), "may not be worth it (less than 1% at the low end)"),
        (Figure(9, 1, 90), "not worth it (less than 1%)"),
    ],
)
def test_a_graph_is_worth_it_where_it_is_sure_to_save_a_percent(saving: Figure, told: str) -> None:
    summary = replace(eager(), unprofiled=Figure(1_000, 900, 1_100))
    verdict = replace(summary.graph, answer="answered", saving=saving)
    assert gains.graph(replace(summary, graph=verdict)).partition(":")[0] == told


def test_the_screen_and_the_rules_call_a_graph_worth_it_from_the_same_saving_on() -> None:
    rules = {rule.name: rule for rule in load_rules([builtin_rules_dir()], check_own=False)}
    assert rules["cuda-graph-would-help"].params == {"min_saving": LEAST_SHARE}
    assert rules["cuda-graph-would-not-help"].params == {"max_saving": LEAST_SHARE}


def test_where_no_kernel_ran_nothing_is_said_of_tensorrt() -> None:
    held = analysis("torch_encoder", "eager.nsys-rep", engine=False).tables.by_name()
    gone = {
        name: Table.empty(held[name].spec)
        for name in ("kernels", "kernel_families", "kernel_totals", "inferences", "inference_times")
    }
    summary = summarize({**held, **gone})
    assert not summary.tensorrt
    assert not [step for step in summary.next_steps if "trtexec" in step.command]


def test_the_time_of_launches_on_an_unknown_gpu_is_not_of_the_other_gpu() -> None:
    held = analysis("two_gpus", "tp_sync.nsys-rep", engine=False).tables.by_name()
    rows = [
        {**row, "device": row["device"] or None, "per_second": 7.0 + int(str(row["device"]))}
        for row in held["inference_loops"].records()
    ]
    assert (
        summarize({**held, "inference_loops": Table.of_rows(INFERENCE_LOOPS, rows)}).traced_gpu
        is None
    )


def test_a_trace_that_hides_what_ran_is_captured_again_before_a_rule_s_upper_bound_is_tried() -> (
    None
):
    given = tables(
        [],
        [outcome("idle-between-inferences", "host", 9_000)],
        [finding("idle-between-inferences")],
    )
    summary = replace(
        eager(), actions=actions(given, TENSORRT, units=10, unit_time=UnitTime(1_000, 1_200))
    )
    assert [one.name for one in gains.first_actions(summary)] == ["idle-between-inferences"]
    hidden = replace(
        summary,
        errors=(Trouble("The trace hides the kernels."),),
        next_steps=(NextStep("capture again", "nsys profile"),),
    )
    assert gains.first_actions(hidden) == ()
    sections = {one.key: one for one in first_sections(hidden)}
    assert (sections["next"].heading, "do-first" in sections) == ("Do first", False)
    assert gains.first_actions(replace(hidden, next_steps=())) == gains.first_actions(summary)


@pytest.mark.parametrize("name", ["eager", "graph"])
def test_what_nothing_shows_to_be_inferences_is_called_repetitions_in_every_sentence(
    name: str,
) -> None:
    found = analyze(FIXTURES / "torch_encoder" / f"{name}.nsys-rep")
    text = report_text(report_of(found), full=True)
    told = re.sub(
        r"no range marks an inference|nsysmap inference|idle-between-inferences", "", text
    )
    assert [
        line for line in told.splitlines() if re.search(r"\binferences?\b", line, re.IGNORECASE)
    ] == []
    assert "repetitions" in whatif_text(found.tables.whatif, "x", "repetition")
    assert "inference" not in whatif_text(found.tables.whatif, "x", "repetition")
    assert "inference" not in inference_text(one_inference(found.tables.by_name(), "x", "slowest"))


def test_the_first_line_says_which_tensorrt_ran_where_names_or_the_environment_tell() -> None:
    held = analysis("bert_trt85", "sync.nsys-rep").tables.by_name()
    (capture,) = held["capture"].records()
    told = Table.of_rows(held["capture"].spec, [{**capture, "environment_tensorrt": "8.2.1"}])
    assert summarize({**held, "capture": told}).tensorrt_version == "8.2.1"
    rtx = words.title(
        summarize(analysis("real_trt", "llama-sync.nsys-rep", engine=False).tables.by_name())
    )
    assert rtx.endswith(", TensorRT for RTX")


def test_the_time_of_an_inference_alone_is_that_of_its_gpu_work() -> None:
    """As in a trace of one inference: nothing comes before it, from whose end its time would
    count.
    """
    summary = replace(
        analysis("bert_trt10", "sync.sqlite").summary, traced=None, unprofiled=None, trtexec_ns=None
    )
    alone = replace(
        summary.kinds[0],
        inferences=1,
        steady=1,
        mean_ns=None,
        median_ns=None,
        gpu_span_ns=6_460_000,
    )
    (told,) = words.times(replace(summary, inferences=1, kinds=(alone,)))
    assert figures(told)[0] == "6,460"
    assert words.times(replace(summary, inferences=1, kinds=(replace(alone, steady=0),))) == []
    assert (
        " of a repetition to its last; "
        in words.times(replace(eager(), traced=None, unprofiled=None, kinds=(alone,)))[0]
    )
