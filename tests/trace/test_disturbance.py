"""A host that was held up while it was recorded: seen by inferences that it took longer to enqueue, not by what else made them longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap import analyze
from nsysmap.base.table import Table
from nsysmap.base.trace_schema import INFERENCES, OVERHEADS
from nsysmap.summary.words import first_doubt
from nsysmap.trace.disturbance import HostDisturbance, host_disturbances

FIXTURES = Path(__file__).parents[2] / "fixtures"
LONG = 1000


def run(
    enqueue: list[int], *, busy: dict[int, int] | None = None, pause: dict[int, int] | None = None, nsys: tuple[int, ...] = ()
) -> HostDisturbance:
    """Inferences that take their enqueue time and 100 ns of GPU work after it, after a pause; nsys held the host up within these."""
    rows, overheads, at = [], [], 0
    for number, took in enumerate(enqueue):
        begin = at + (pause or {}).get(number, 0)
        end = begin + took + (busy or {}).get(number, 100)
        times = {"enqueue_start_ns": begin, "enqueue_end_ns": begin + took, "enqueue_ns": took, "start_ns": begin, "end_ns": end}
        work = {"gpu_start_ns": begin, "gpu_end_ns": end, "gpu_busy_ns": (busy or {}).get(number, 100)}
        rows.append({"inference": number, "complete": True, "kernel_sequence": 0, "thread": 7, "device": 0, **times, **work})
        overheads += [{"start_ns": begin, "end_ns": begin + took - LONG, "thread": 7, "name": "flush"}] if number in nsys else []
        at = end
    (found,) = host_disturbances(Table.of_rows(INFERENCES, rows), Table.of_rows(OVERHEADS, overheads))
    return found


STEADY = [LONG] * 20


def test_inferences_that_take_longer_to_enqueue_are_held_up() -> None:
    found = run([*STEADY, 3 * LONG, 2 * LONG, *STEADY])
    assert (found.slow.tolist(), found.excess_ns, found.disturbed) == ([20, 21], 3 * LONG, True)
    assert found.share == pytest.approx(3000 / (41 * 1100 + 3000))  # the first has no time
    assert found.longest == pytest.approx(3100 / 1100)


def test_one_slow_inference_of_many_changes_nothing() -> None:
    found = run([*STEADY, 3 * LONG, *STEADY, *STEADY])
    assert (found.slow.tolist(), found.disturbed) == ([20], False)


def test_what_nsys_did_is_no_disturbance() -> None:
    assert run([*STEADY, 3 * LONG, 3 * LONG, *STEADY], nsys=(20, 21)).slow.tolist() == []


def test_gpu_work_that_takes_longer_is_none_nor_are_callers_that_come_later() -> None:
    assert run([*STEADY, *STEADY], busy={20: 9000, 21: 9000}).slow.tolist() == []
    assert run([*STEADY, *STEADY], pause={20: 9000, 21: 9000}).slow.tolist() == []


@pytest.mark.parametrize(
    ("report", "slow"),
    [
        ("real_trt/resnet50_b1-sync", [20, 21, 22, 24]),  # recorded 1,683 us, 520 without nsys
        ("real_trt/bert_eager-sync", [1]),
        ("real_trt/bert_eager-graph", []),
        ("real_trt/resnet50_b1-graph", []),
        ("bert_trt10/hostgap", []),
    ],
)
def test_captures(report: str, slow: list[int]) -> None:
    analysis = analyze(FIXTURES / f"{report}.nsys-rep", rules=[])
    loop = analysis.tables.inference_loops.only()
    assert loop.integer("held_up") == len(slow)
    assert (loop.maybe_integer("first_held_up"), loop.maybe_integer("last_held_up")) == ((slow[0], slow[-1]) if slow else (None, None))
    disturbed = analysis.summary.disturbance
    assert (disturbed is not None) == (len(slow) > 1) == bool(first_doubt(analysis.summary))
    if disturbed:
        assert disturbed.share == pytest.approx(0.057, abs=0.001)
