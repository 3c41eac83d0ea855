"""How many inferences of each kind there are, what one takes from one end to the next, and what
slow ones waited for.
"""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.result_schema import GAPS
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.core.trace_schema import API_CALLS, INFERENCES, MEMCPYS, OVERHEADS
from nsysmap.timing.inference_groups import InferenceTables, inference_figures

Made = dict[str, object]


def inference(
    end: int, sequence: int = 0, *, thread: int = 1, device: int = 0, **more: object
) -> Made:
    """One that takes the GPU for 10 ns up to ``end``."""
    times = {
        "start_ns": end - 30,
        "end_ns": end + 1,
        "gpu_start_ns": end - 20,
        "gpu_end_ns": end,
        "gpu_busy_ns": 10,
        "gpu_span_ns": 20,
    }
    return {
        "thread": thread,
        "device": device,
        "engine": 0,
        "kernel_sequence": sequence,
        "complete": True,
        "enqueue_ns": 5,
        **times,
        **more,
    }


def figures(
    rows: list[Made], gaps: list[Made] | None = None, copies: list[Made] | None = None
) -> InferenceTables:
    ordered = sorted(rows, key=lambda row: int(str(row["start_ns"])))
    inferences = Table.of_rows(
        INFERENCES, [{"inference": number, **row} for number, row in enumerate(ordered)]
    )
    return inference_figures(
        inferences,
        Table.of_rows(GAPS, gaps or []),
        Table.of_rows(MEMCPYS, copies or []),
        Table.empty(API_CALLS),
        Table.empty(OVERHEADS),
    )


def only(table: Table) -> Row:
    return table.only()


def test_time_per_inference_goes_from_one_end_to_the_next() -> None:
    found = figures([inference(end) for end in (100, 200, 320, 400)])
    loop, group = only(found.inference_loops), only(found.inference_groups)
    for row in (loop, group):
        assert (
            row.integer("inferences"),
            row.integer("steady"),
            row.integer("median_ns"),
            row.integer("mean_ns"),
        ) == (4, 4, 100, 100)
    assert loop.real("per_second") == 1e7
    assert found.inference_times.ints("time_ns").tolist()[1:] == [100, 120, 80]
    assert group.integer("gpu_time_median_ns") == 10


def test_warm_up_and_cut_ones_are_counted_and_have_no_time() -> None:
    rows = [
        inference(100, warmup=True),
        inference(200),
        inference(300),
        inference(450, complete=False),
    ]
    group = only(figures(rows).inference_groups)
    assert [group.integer(name) for name in ("inferences", "warmup", "cut", "steady")] == [
        4,
        1,
        1,
        2,
    ]
    # the first steady one's time begins with the warm-up's end
    assert group.integer("median_ns") == 100


def test_each_thread_device_and_kernel_sequence_has_a_row_of_its_own() -> None:
    rows = [
        inference(100),
        inference(200, 1),
        inference(300),
        inference(150, thread=2),
        inference(250, thread=2),
        inference(260, device=1),
    ]
    found = figures(rows)
    assert found.inference_loops.ints("inferences").tolist() == [3, 2, 1]
    assert found.inference_loops.ints("groups").tolist() == [2, 1, 1]
    places = zip(
        found.inference_groups.ints("loop_id"),
        found.inference_groups.ints("kernel_sequence"),
        strict=True,
    )
    assert sorted(places) == [(0, 0), (0, 1), (1, 0), (2, 0)]


def test_engines_have_a_row_each_behind_that_of_all() -> None:
    rows = [
        inference(100, warmup=True),
        inference(200, gpu_busy_ns=30),
        inference(300, 1, engine=1, found_by="range"),
        inference(400, gpu_busy_ns=50),
    ]
    every, *engines = figures(rows).engine_inferences
    assert [
        (row.flag("all_engines"), row.maybe_integer("engine")) for row in (every, *engines)
    ] == [(True, None), (False, 0), (False, 1)]
    assert [row.integer("steady") for row in (every, *engines)] == [3, 2, 1]
    assert [row.integer("gpu_time_median_ns") for row in (every, *engines)] == [30, 40, 10]
    assert engines[1].text("found_by") == "range"
    assert [row.integer("engine") for row in figures([inference(100)]).engine_inferences] == [0, 0]
    assert not len(figures([]).engine_inferences)


def test_kinds_that_take_turns_make_a_pass_and_a_mixture_makes_none() -> None:
    turns = figures(
        [inference(100 * number + (40 if number % 2 else 0), number % 2) for number in range(8)]
    )
    loop = only(turns.inference_loops)
    assert (
        loop.integer("inferences_a_pass"),
        loop.integer("median_ns"),
        loop.integer("mean_ns"),
    ) == (2, 200, 200)
    assert turns.inference_groups.ints("median_ns").tolist() == [60, 140]
    mixture = figures([inference(100 * number, int(number in (2, 3, 6))) for number in range(1, 9)])
    assert only(mixture.inference_loops).integer("inferences_a_pass") == 1


def test_a_slow_inference_says_what_idle_time_it_has_more_of_than_its_like() -> None:
    ends = [100, 200, 300, 480, 580]
    gaps = [
        {"start_ns": end - 90, "end_ns": end - 80, "device": 0, "cause": "dispatch"} for end in ends
    ]
    gaps.append({"start_ns": 330, "end_ns": 390, "device": 0, "cause": "host"})
    gaps.sort(key=lambda gap: int(str(gap["start_ns"])))
    slow = list(figures([inference(end) for end in ends], gaps).inference_times)[3]
    assert (slow.integer("time_ns"), slow.real("times_median"), slow.integer("idle_ns")) == (
        180,
        1.8,
        70,
    )
    assert (slow.text("extra_cause"), slow.integer("extra_ns")) == ("host", 60)


def test_without_inferences_there_are_no_rows() -> None:
    found = figures([])
    assert [len(table) for table in vars(found).values()] == [0, 0, 0, 0]


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 2), st.booleans(), st.integers(0, 1)),
        max_size=25,
    )
)
def test_the_figures_are_those_of_a_plain_loop(made: list[tuple[int, int, bool, int]]) -> None:
    end, rows = {0: 0, 1: 0}, []
    for step, sequence, warmup, thread in made:
        end[thread] += step
        rows.append(inference(end[thread], sequence, thread=thread, warmup=warmup))
    expected: dict[tuple[int, int], list[int]] = {}
    last: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: (int(str(row["thread"])), int(str(row["gpu_end_ns"])))):
        thread, sequence, ends = (
            int(str(row[name])) for name in ("thread", "kernel_sequence", "gpu_end_ns")
        )
        times = expected.setdefault((thread, sequence), [])
        if thread in last and not row["warmup"]:
            times.append(ends - last[thread])
        last[thread] = ends
    found = figures(rows)
    loops = {row.integer("loop_id"): row.integer("thread") for row in found.inference_loops}
    told = {
        (loops[row.integer("loop_id")], row.integer("kernel_sequence")): row
        for row in found.inference_groups
    }
    assert set(told) == set(expected)
    for key, times in expected.items():
        assert told[key].maybe_integer("median_ns") == (
            round(statistics.median(times)) if times else None
        )


def in_two_phases(*, marked: bool = True, between: int = 0) -> InferenceTables:
    """20 inferences of 100 ns without copies, then 10 of 300 ns with pageable ones; some others
    ``between``.
    """
    ends = [100 * (at + 1) for at in range(20)] + [2_000 + 300 * (at + 1) for at in range(10)]
    how: Made = {} if marked else {"engine": None, "found_by": "period"}
    rows = [{**inference(end, enqueue_end_ns=end - 25), **how} for end in ends]
    rows += [
        {**inference(100 * at + 50, 1, enqueue_end_ns=100 * at + 25), **how}
        for at in range(between)
    ]
    copy = {"kind": "HtoD", "source": "pageable", "target": "device", "thread": 1}
    copies = [
        {**copy, "start_ns": end - 200, "end_ns": end - 190, "launch_start_ns": end - 200}
        for end in ends[20:]
    ]
    return figures(rows, copies=copies)


def test_phases_are_kinds_with_a_median_and_outliers_of_their_own() -> None:
    found = in_two_phases()
    told = [
        (
            row.maybe_integer("phase"),
            row.maybe_text("copies"),
            row.integer("inferences"),
            row.integer("median_ns"),
        )
        for row in found.inference_groups
    ]
    assert told == [(0, "none", 20, 100), (1, "pageable", 10, 300)]
    assert only(found.inference_loops).integer("groups") == 2
    assert only(found.inference_loops).integer("inferences_a_pass") == 1
    assert {row.maybe_real("times_median") for row in found.inference_times} == {None, 1.0}


def test_repetitions_that_nothing_marks_have_phases_only_where_nothing_takes_turns_with_them() -> (
    None
):
    assert in_two_phases(marked=False).inference_groups.ints("phase").tolist() == [0, 1]
    assert set(in_two_phases(marked=False, between=10).inference_groups.ints("phase").tolist()) == {
        MISSING
    }
    assert in_two_phases(between=10).inference_groups.ints("phase").max() > 0


def test_without_phases_no_phase_is_told() -> None:
    found = figures([inference(end) for end in range(100, 2100, 100)])
    assert only(found.inference_groups)["phase"] is None
