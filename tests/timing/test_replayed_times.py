"""What takes the time that what-if starts from, on a replay that is made up."""

from __future__ import annotations

from nsysmap.core.result_schema import GAPS, REPLAYED_INFERENCES, REPLAYED_WORK
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.timing.idle.replayed import replayed_times

Span = tuple[int, int]


def times(
    work: list[Span], inferences: list[tuple[Span, float]], *, before_ns: int | None = 1_000
) -> dict[str, tuple[int, float]]:
    replayed = [
        {"inference": at, "thread": 7, "begin_ns": begin, "end_ns": end, "weight": weight}
        for at, ((begin, end), weight) in enumerate(inferences)
    ]
    spans = [
        {"kind": "kernel", "start_ns": start, "end_ns": end, "recorded_start_ns": start}
        | {"recorded_end_ns": end}
        for start, end in work
    ]
    known = [{"inference": at, "device": 3} for at in range(len(inferences))]
    found = replayed_times(
        Table.of_rows(REPLAYED_WORK, spans),
        Table.of_rows(REPLAYED_INFERENCES, replayed),
        Table.of_rows(INFERENCES, known),
        Table.of_rows(GAPS, []),
        before_ns,
    )
    assert set(found.ints("device").tolist()) <= {3}
    return {
        row.text("part"): (row.integer("time_ns"), round(row.real("share"), 6)) for row in found
    }


def test_without_a_replay_or_a_time_to_start_from_nothing_is_told() -> None:
    assert times([], []) == {}
    assert times([(0, 50)], [((0, 100), 1.0)], before_ns=None) == {}


def test_the_gpu_s_work_and_all_that_is_not_add_up_to_the_whole() -> None:
    found = times([(0, 40), (50, 60)], [((0, 100), 1.0)])
    assert found["work"] == (500, 0.5)
    assert sum(time for time, _ in found.values()) == 1_000
    assert next(iter(found)) == "work"
    assert times([(0, 100)], [((0, 100), 1.0)]) == {"work": (1_000, 1.0)}


def test_each_inference_has_the_weight_of_those_that_it_stands_for() -> None:
    found = times([(0, 100), (100, 120)], [((0, 100), 1.0), ((100, 200), 3.0)])
    assert found["work"] == (400, 0.4)
    assert sum(time for time, _ in found.values()) == 1_000
    assert MISSING not in [time for time, _ in found.values()]
