"""What trtexec measured without the profiler beside the trace's own figures."""

from __future__ import annotations

import pytest

from nsysmap.core.report_schema import INFERENCE_GROUPS
from nsysmap.core.table import Table
from nsysmap.inputs.engine.trtexec_times import Measure, TrtexecTimes
from nsysmap.timing.unprofiled import trtexec_notes, trtexec_table
from tests.figures import figures

GROUPS = Table.of_rows(
    INFERENCE_GROUPS,
    [
        {"group_id": 0, "loop_id": 0, "inferences": 3, "steady": 2, "kernels": 9, "enqueue_median_ns": 7, "gpu_span_median_ns": 7},  # noqa: E501
        {"group_id": 1, "loop_id": 0, "inferences": 50, "steady": 49, "kernels": 56,
         "enqueue_median_ns": 300_000, "gpu_span_median_ns": 280_000},
    ],
)  # fmt: skip


def times(**measures: Measure) -> TrtexecTimes:
    return TrtexecTimes("run.log", measures, queries=500)


def told(**measures: Measure) -> dict[str, str | None]:
    return {
        row.text("measure"): row.maybe_text("told")
        for row in trtexec_table(times(**measures), GROUPS)
    }


def test_every_measure_is_a_row_beside_the_group_with_the_most_inferences() -> None:
    given = times(
        enqueue=Measure(240_000, 241_000, 230_000, 400_000, 390_000), latency=Measure(500_000)
    )
    enqueue, latency = trtexec_table(given, GROUPS).records()
    assert (enqueue["trtexec_ns"], enqueue["trtexec_mean_ns"], enqueue["trtexec_min_ns"], enqueue["trtexec_max_ns"]) == (  # noqa: E501
        240_000, 241_000, 230_000, 400_000,
    )  # fmt: skip
    assert (enqueue["trtexec_p99_ns"], enqueue["queries"]) == (390_000, 500)
    assert (enqueue["group_id"], enqueue["traced_ns"], enqueue["profiling_ns"]) == (
        1,
        300_000,
        60_000,
    )
    assert (
        latency["group_id"],
        latency["traced_ns"],
        latency["profiling_ns"],
        latency["told"],
    ) == (None, None, None, None)


def test_nothing_given_is_no_row_and_no_note() -> None:
    assert len(trtexec_table(None, GROUPS)) == 0
    assert trtexec_notes(None, trtexec_table(None, GROUPS)) == []


@pytest.mark.parametrize(
    ("enqueue_ns", "words"),
    [
        (240_000, "Tracing makes an enqueue 60.00 µs longer, 1.07 µs for each of its 56 kernels."),
        (299_000, "An enqueue takes as long under the profiler as without it."),
        (350_000, "An enqueue takes 50.00 µs less here than with trtexec: the conditions differ (clock, shape, transfers or streams)."),  # noqa: E501
        (90_000, "An enqueue takes 300.0 µs here and 90.00 µs with trtexec: too different to be the cost of profiling. "  # noqa: E501
                 "Engine, shape, GPU or clock differ, or only one of the two uses a CUDA graph."),
    ],
)  # fmt: skip
def test_a_difference_is_called_the_cost_of_profiling_only_where_it_can_be(
    enqueue_ns: int, words: str
) -> None:
    assert told(enqueue=Measure(enqueue_ns)) == {"enqueue": words}


def test_copies_and_latency_have_no_counterpart_in_a_trace() -> None:
    assert told(h2d=Measure(10_000), latency=Measure(10_000), d2h=Measure(10_000)) == {
        "h2d": None,
        "d2h": None,
        "latency": None,
    }


def test_the_notes_say_the_times_and_what_tracing_cost() -> None:
    given = times(enqueue=Measure(240_000), gpu_compute=Measure(279_500), h2d=Measure(5_000))
    notes = [note.text for note in trtexec_notes(given, trtexec_table(given, GROUPS))]
    assert "run.log" in notes[0]
    assert [figures(note) for note in notes] == [
        ["500", "240.0", "300.0", "279.5", "280.0"],
        ["60.00", "1.07", "56"],
        [],  # it takes as long
    ]


def test_times_taken_while_layers_were_timed_come_with_a_warning() -> None:
    given = TrtexecTimes("run.log", {"enqueue": Measure(240_000)}, by_layer=True)
    assert [note.level for note in trtexec_notes(given, trtexec_table(given, GROUPS))] == [
        "info",
        "info",
        "warning",
    ]
