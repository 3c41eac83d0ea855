"""What the phases of a run are called, and in which of them a change saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysmap.answer import gains, words
from nsysmap.answer.model import InferenceKind, WhereItRan
from nsysmap.answer.phases import phase_words, saved_in
from nsysmap.core.report_schema import INFERENCE_GROUPS, INFERENCE_TIMES
from nsysmap.core.result_schema import WHATIF_INFERENCES
from nsysmap.core.table import Table
from tests.figures import figures
from tests.reports import analysis

OF_KINDS = (
    "no copies (0 to 9): 1.00 µs (10x)",
    "pageable copies (10 to 19): 2.00 µs (10x)",
    "pinned copies (20 to 29): 3.00 µs (10x)",
)

GROUP = {"loop_id": 0, "warmup": 0, "cut": 0, "kernel_sequence": 0}


def tables(copies: tuple[str | None, ...], order: tuple[int, ...]) -> dict[str, Table]:
    """Phases with these copies; the inferences are of them in this order, each for ten."""
    groups = [
        {
            **GROUP,
            "group_id": at,
            "phase": at,
            "copies": one,
            "inferences": 10,
            "steady": 10,
            "median_ns": 1_000 * (at + 1),
        }
        for at, one in enumerate(copies)
    ]
    times = [
        {"inference": at, "group_id": group, "time_ns": 1}
        for at, group in enumerate(group for group in order for _ in range(10))
    ]
    return {
        "inference_groups": Table.of_rows(INFERENCE_GROUPS, groups),
        "inference_times": Table.of_rows(INFERENCE_TIMES, times),
    }


@pytest.mark.parametrize(
    ("copies", "told"),
    [
        (("none", "pageable"), ["no copies (0 to 9 and 20 to 29)", "pageable copies (10 to 19)"]),
        (("pinned", "pinned"), ["inferences 0 to 9 and 20 to 29", "inferences 10 to 19"]),
        ((None, "pinned"), ["inferences 0 to 9 and 20 to 29", "inferences 10 to 19"]),
        (
            ("HtoD pageable, DtoH pinned", "none"),
            ["HtoD pageable, DtoH pinned copies (0 to 9 and 20 to 29)", "no copies (10 to 19)"],
        ),
    ],
)
def test_a_phase_is_called_after_its_copies_and_its_inferences(
    copies: tuple[str | None, ...], told: list[str]
) -> None:
    made = tables(copies, (0, 1, 0))
    assert list(phase_words(made, list(made["inference_groups"])).values()) == told


def test_of_many_stretches_two_are_listed() -> None:
    made = tables(("none", "pinned"), (0, 1, 0, 1, 0, 1, 0))
    found = phase_words(made, list(made["inference_groups"]))
    assert found == {
        0: "no copies (0 to 9 and 20 to 29 and 2 more)",
        1: "pinned copies (10 to 19 and 30 to 39 and 1 more)",
    }


def kind(group: int, phase: str) -> InferenceKind:
    mean_ns, median_ns = 9_000 * (group + 1), 1_000 * (group + 1)
    return InferenceKind(
        12,
        2,
        0,
        1,
        mean_ns,
        median_ns,
        p95_ns=None,
        gpu_time_ns=None,
        enqueue_ns=None,
        steady=10,
        phase=phase,
        group=group,
    )


KINDS = (
    kind(0, "no copies (0 to 9)"),
    kind(1, "pageable copies (10 to 19)"),
    kind(2, "pinned copies (20 to 29)"),
)


def saves(*spans: tuple[int, int]) -> dict[str, Table]:
    """What pinned copies make of one inference of each phase."""
    rows = [
        {"change": "pinned-copies", "inference": 10 * at, "before_ns": now, "after_ns": then}
        for at, (now, then) in enumerate(spans)
    ]
    return {
        **tables(("none", "pageable", "pinned"), (0, 1, 2)),
        "whatif_inferences": Table.of_rows(WHATIF_INFERENCES, rows),
    }


def test_what_a_change_saves_in_one_phase_is_told_of_it_beside_the_phase_that_shows_it() -> None:
    found = saved_in(saves((1_000, 1_000), (2_000, 1_500), (3_000, 3_000)), KINDS, "pinned-copies")
    assert figures(found) == ["10", "19", "2.00", "1.50", "20", "29", "3.00"]
    assert found.index("pageable copies") < found.index("pinned copies")
    assert (
        saved_in(saves((1_000, 500), (2_000, 1_500), (3_000, 3_000)), KINDS, "pinned-copies") == ""
    )
    assert (
        saved_in(saves((1_000, 1_000), (2_000, 1_500), (3_000, 3_000)), KINDS, "cuda-graph") == ""
    )
    assert (
        saved_in(
            saves((1_000, 1_000), (2_000, 1_500), (3_000, 3_000)),
            (replace(KINDS[0], phase=""),),
            "pinned-copies",
        )
        == ""
    )


def test_phases_are_told_with_medians_and_actions_with_their_phase() -> None:
    summary = analysis("bert_trt10", "sync.sqlite").summary
    assert words.kinds(replace(summary, kinds=KINDS)) == "phases, median with waits: " + ", ".join(
        OF_KINDS
    )
    assert words.kinds(
        replace(
            summary, kinds=(replace(KINDS[0], phase="", place=WhereItRan(thread=1)), *KINDS[1:])
        )
    ).endswith(": " + ", ".join(("thread 1: 9.00 µs (10x)", *OF_KINDS[1:])))
    action = replace(summary.actions[0], in_phase="in the phase of x 2 ms becomes 1 ms")
    assert gains.gain(summary, action).endswith("x 2 ms becomes 1 ms")
    assert "phase" not in gains.gain(summary, action, brief=True)
    assert "phase" not in gains.gain(summary, summary.actions[0])


def test_a_kind_is_told_with_as_many_inferences_as_its_time_is_over() -> None:
    two = tuple(
        replace(one, phase="", place=WhereItRan(thread=one.group), inferences=40)
        for one in KINDS[:2]
    )
    assert (
        words.kinds(replace(analysis("bert_trt10", "sync.sqlite").summary, kinds=two))
        == "mean with waits: thread 0: 9.00 µs (10x), thread 1: 18.0 µs (10x)"
    )


def test_an_inference_within_which_others_end_does_not_take_the_time_since_the_last_of_them() -> (
    None
):
    within, others = (
        replace(one, phase="", place=WhereItRan(thread=one.group)) for one in KINDS[:2]
    )
    within = replace(within, gpu_time_ns=1_600_000, gpu_span_ns=3_000_000)  # 1 µs from end to end
    assert words.kinds(
        replace(analysis("bert_trt10", "sync.sqlite").summary, kinds=(others, within))
    ).endswith("others within (10x)")
    # short ones pull the mean below what most of them work
    waits = replace(within, mean_ns=1_500_000, median_ns=1_700_000)
    assert "1,500 µs (10x)" in words.kinds(
        replace(analysis("bert_trt10", "sync.sqlite").summary, kinds=(others, waits))
    )
