"""GPUs that exchange data: joint inferences are told from independent ones, and the sentences say
which.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.answer import words
from nsysmap.answer.model import UnitOfTime
from nsysmap.answer.ranks import collective_times, in_step
from nsysmap.api import analyze
from nsysmap.core.columns import integer, text
from nsysmap.core.table import Spec, Table
from tests.places import FIXTURES
from tests.reports import analysis

NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)"
KERNELS = Spec(
    "kernels",
    "",
    (
        text("name", ""),
        *(integer(name, "") for name in ("inference", "device", "start_ns", "end_ns")),
    ),
)


def tables(*late_ns: np.ndarray, name: str = NCCL) -> dict[str, Table]:
    """Of inferences with one collective of 7 µs each 300 µs; on the second GPU and those after it
    ends come later by so many ns.
    """
    kernels: list[dict[str, object]] = []
    inferences: list[dict[str, object]] = []
    for device, late in enumerate((np.zeros(len(late_ns[0])), *late_ns)):
        for place, ns in enumerate(late.astype(int).tolist()):
            end = 10_000_000 + 300_000 * place + ns
            kernels.append(
                {
                    "name": name,
                    "inference": len(inferences),
                    "device": device,
                    "start_ns": end - 7_000,
                    "end_ns": end,
                }
            )
            inferences.append({"inference": len(inferences), "device": device})
    return {
        "kernels": Table.of_rows(KERNELS, kernels),
        "inferences": Table.of_rows(
            Spec("inferences", "", (integer("inference", ""), integer("device", "", null=True))),
            inferences,
        ),
    }


def test_inferences_whose_collectives_end_together_are_joint_however_far_the_clocks_are_apart() -> (
    None
):
    jitter = np.random.default_rng(1).integers(-1_500, 1_500, 40)
    assert in_step(tables(jitter))
    assert in_step(tables(jitter + 600_000))
    assert in_step(tables(jitter + 50 * np.arange(40), jitter - 600_000))  # 170 ppm apart


def test_time_in_collectives_is_the_mean_of_each_gpu_over_steady_state_inferences() -> None:
    held = tables(np.zeros(6))
    kernels = held["kernels"].records()
    for row in kernels:
        row["start_ns"] = int(str(row["start_ns"])) - 20_000 * (row["device"] == 1)
    times = Table.of_rows(
        Spec("inference_times", "", (integer("inference", ""),)),
        [{"inference": at} for at in range(1, 12)],
    )
    # of no collective, of no steady-state inference
    kernels += [
        {**kernels[-1], "name": "gemm"},
        {**kernels[-1], "inference": 0},
    ]
    found = collective_times(
        {**held, "kernels": Table.of_rows(KERNELS, kernels), "inference_times": times}
    )
    assert found == {0: 7_000, 1: 27_000}
    assert collective_times({**tables(np.zeros(6), name="gemm"), "inference_times": times}) == {}


def test_inferences_at_a_pace_of_their_own_are_not_joint() -> None:
    walk = np.cumsum(np.random.default_rng(2).integers(-60_000, 60_000, 40))
    assert in_step(tables(walk)) is False
    assert in_step(tables(np.zeros(40), walk)) is False  # one of three
    assert in_step(tables(9_000 * np.arange(40))) is False


def test_of_as_many_inferences_no_more_is_known_where_nothing_is_exchanged_or_some_are_missing() -> (  # noqa: E501
    None
):
    assert in_step(tables(np.zeros(40), name="gemm")) is None
    held = tables(np.zeros(40))
    assert in_step({**held, "kernels": held["kernels"].take(np.arange(79))}) is None
    assert in_step(tables(np.zeros(2))) is None


def test_the_first_lines_of_joint_inferences_are_of_all_gpus_together() -> None:
    summary = analysis("two_gpus", "tp_sync.nsys-rep", engine=False).summary
    assert summary.collectives
    # the fixture's GPUs are up to 0.6 ms apart from one inference to the next
    assert summary.in_step is False
    assert "H100 80GB HBM3 that exchange data (NCCL), though not in step" in words.title(summary)
    joint = replace(summary, in_step=True, traced_gpu=1)
    assert "H100 80GB HBM3 that exchange data (NCCL): 40 joint inferences" in words.title(joint)
    assert "H100 80GB HBM3 that exchange data (NCCL): 40 joint repetitions" in words.title(
        replace(joint, unit_of_time=UnitOfTime(repetitions=True))
    )
    # their collectives take as long
    assert words.times(joint)[0].endswith(" per second on all 2 GPUs together")
    first, last = summary.gpus
    late = replace(
        joint, gpus=(replace(first, collectives_ns=90_000), replace(last, collectives_ns=50_000))
    )
    assert words.times(late)[0].endswith(
        "; GPU 1 comes last to the collectives: others wait up to 40.0 µs for it"
    )
    assert "90.0 µs in collectives" in words.where(late)[0]
    assert " on GPU 0" in words.times(joint)[1]


@pytest.mark.parametrize("report", ["tp_sync.nsys-rep", "tp_graph.nsys-rep"])
def test_nothing_asks_to_run_an_engine_of_several_gpus_with_trtexec_or_prices_two_in_flight(
    report: str,
) -> None:
    found = analyze(FIXTURES / "two_gpus" / report, FIXTURES / "two_gpus" / "tp.engine.json")
    told = [
        text
        for action in found.summary.actions
        for text in (action.paste, action.paste_pytorch, action.change)
        if text
    ]
    assert told
    assert not [text for text in told if "trtexec" in text]
    assert "two-in-flight" not in [action.name for action in found.summary.actions]
    (row,) = [row for row in found.tables.whatif if row.text("change") == "two-in-flight"]
    assert row.text("answer") == "cannot-tell"
    assert "launched in the same order on every GPU" in row.text("reason")
    assert " on GPU 0: " in words.slowest(found.summary)


def test_of_gpus_that_exchange_data_the_slower_leads() -> None:
    graph = analysis("two_gpus", "tp_graph.nsys-rep", engine=False).summary
    told = words.times(graph)
    assert told[0].endswith(" per second on GPU 0") and graph.traced is not None
    assert graph.traced.ns == max(kind.mean_ns or 0 for kind in graph.kinds)
    # of which more inferences are steady-state
    assert "outliers" not in told[1] and told[1].endswith(" per second on GPU 1")
    sync = analysis("two_gpus", "tp_sync.nsys-rep", engine=False).summary
    assert sync.traced is not None and sync.traced.ns == max(
        kind.mean_ns or 0 for kind in sync.kinds
    )


def test_of_one_gpu_none_is_named() -> None:
    summary = analysis("bert_trt10", "sync.nsys-rep", engine=False).summary
    assert "GPU" not in words.slowest(summary)
    assert "exchange" not in words.title(summary)


def test_inferences_selected_from_the_middle_of_a_capture_keep_their_numbers() -> None:
    whole = tables(np.random.default_rng(5).normal(0, 500, 40))
    late = whole["inferences"].ints("inference") % 40 >= 20
    part = {**whole, "inferences": whole["inferences"].take(late)}
    assert in_step(part) is in_step(whole) is True
