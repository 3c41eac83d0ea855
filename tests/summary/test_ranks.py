"""GPUs that exchange data: joint inferences are told from independent ones, and the sentences say which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.analysis import analyze
from nsysmap.base.columns import integer, text
from nsysmap.base.table import Spec, Table
from nsysmap.summary import words
from nsysmap.summary.ranks import in_step
from tests.places import FIXTURES
from tests.reports import analysis

NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)"
KERNELS = Spec("kernels", "", (text("name", ""), *(integer(name, "") for name in ("inference", "device", "start_ns", "end_ns"))))


def tables(*late_ns: np.ndarray, name: str = NCCL) -> dict[str, Table]:
    """Of inferences with one collective of 7 µs each 300 µs; on the second GPU and those after it ends come later by so many ns."""
    kernels: list[dict[str, object]] = []
    inferences: list[dict[str, object]] = []
    for device, late in enumerate((np.zeros(len(late_ns[0])), *late_ns)):
        for place, ns in enumerate(late.astype(int).tolist()):
            end = 10_000_000 + 300_000 * place + ns
            kernels.append({"name": name, "inference": len(inferences), "device": device, "start_ns": end - 7_000, "end_ns": end})
            inferences.append({"device": device})
    return {
        "kernels": Table.of_rows(KERNELS, kernels),
        "inferences": Table.of_rows(Spec("inferences", "", (integer("device", "", null=True),)), inferences),
    }


def test_inferences_whose_collectives_end_together_are_joint_however_far_the_clocks_are_apart() -> None:
    jitter = np.random.default_rng(1).integers(-1_500, 1_500, 40)
    assert in_step(tables(jitter))
    assert in_step(tables(jitter + 600_000))
    assert in_step(tables(jitter + 50 * np.arange(40), jitter - 600_000))  # 170 ppm apart


def test_inferences_at_a_pace_of_their_own_are_not_joint() -> None:
    walk = np.cumsum(np.random.default_rng(2).integers(-60_000, 60_000, 40))
    assert in_step(tables(walk)) is False
    assert in_step(tables(np.zeros(40), walk)) is False  # one of three
    assert in_step(tables(9_000 * np.arange(40))) is False


def test_of_as_many_inferences_no_more_is_known_where_nothing_is_exchanged_or_some_are_missing() -> None:
    assert in_step(tables(np.zeros(40), name="gemm")) is None
    held = tables(np.zeros(40))
    assert in_step({**held, "kernels": held["kernels"].take(np.arange(79))}) is None
    assert in_step(tables(np.zeros(2))) is None


def test_the_first_lines_of_joint_inferences_are_of_all_gpus_together() -> None:
    summary = analysis("two_gpus", "tp_sync.nsys-rep", engine=False).summary
    assert summary.collectives
    assert summary.in_step is False  # the fixture's GPUs are up to 0.6 ms apart from one inference to the next
    assert "H100 80GB HBM3 that exchange data (NCCL), though not in step" in words.title(summary)
    joint = replace(summary, in_step=True, traced_gpu=1)
    assert "H100 80GB HBM3 that exchange data (NCCL): 40 joint inferences" in words.title(joint)
    assert words.times(joint)[0].endswith(" per second on all 2 GPUs together; GPU 1 is the slowest")
    assert " on GPU 0" in words.times(joint)[1]


@pytest.mark.parametrize("report", ["tp_sync.nsys-rep", "tp_graph.nsys-rep"])
def test_nothing_asks_to_run_an_engine_of_several_gpus_with_trtexec_or_prices_two_in_flight(report: str) -> None:
    found = analyze(FIXTURES / "two_gpus" / report, FIXTURES / "two_gpus" / "tp.engine.json")
    told = [text for action in found.summary.actions for text in (action.paste, action.paste_pytorch, action.change) if text]
    assert told
    assert not [text for text in told if "trtexec" in text]
    assert "two-in-flight" not in [action.name for action in found.summary.actions]
    (row,) = [row for row in found.tables.whatif if row.text("change") == "two-in-flight"]
    assert row.text("answer") == "cannot-tell"
    assert "launched in the same order on every GPU" in row.text("reason")
    assert " on GPU 0: " in words.slowest(found.summary)


def test_of_one_gpu_none_is_named() -> None:
    summary = analysis("bert_trt10", "sync.nsys-rep", engine=False).summary
    assert "GPU" not in words.slowest(summary)
    assert "exchange" not in words.title(summary)
