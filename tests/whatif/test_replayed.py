"""The replay without the profiler, inference by inference and piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.core.schema import Tables
from tests.places import FIXTURES

CAPTURES = [
    "bert_trt10/sync",
    "bert_trt10/graph",
    "two_shapes/sync",
    "bert_split_trt10/threads",
    "aux_streams/graph",
]


def tables_of(name: str) -> Tables:
    folder = FIXTURES / name.split("/", maxsplit=1)[0]
    return analyze(FIXTURES / f"{name}.nsys-rep", folder / "engine.json", rules=[]).tables


def means_and_slope(tables: Tables) -> tuple[float, float, float]:
    """The mean time of the replayed inferences as recorded and as replayed, of all threads
    together, and the slope of their regression.
    """
    replayed, inferences = tables.replayed_inferences, tables.inferences
    rates, products, squares = np.zeros(2), 0.0, 0.0
    for thread in np.unique(replayed.ints("thread")).tolist():
        mine = replayed.take(replayed.ints("thread") == thread)
        weight = mine.floats("weight")
        ends = np.sort(inferences.ints("gpu_end_ns")[inferences.ints("thread") == thread])
        own = inferences.ints("gpu_end_ns")[
            np.searchsorted(inferences.ints("inference"), mine.ints("inference"))
        ]
        was, now = (
            own - ends[np.searchsorted(ends, own) - 1],
            mine.ints("end_ns") - mine.ints("begin_ns"),
        )
        rates += weight.sum() / np.array([(was * weight).sum(), (now * weight).sum()])
        for w, x, y in zip(
            weight,
            was - np.average(was, weights=weight),
            now - np.average(now, weights=weight),
            strict=True,
        ):
            products, squares = products + w * x * y, squares + w * x * x
    return 1 / rates[0], 1 / rates[1], min(max(products / squares, 0.0), 1.0)


@pytest.mark.parametrize("name", CAPTURES)
def test_what_every_change_is_compared_with_is_their_mean_moved_as_far_as_all_others_differ(
    name: str,
) -> None:
    tables = tables_of(name)
    was, now, slope = means_and_slope(tables)
    # of several, other inferences may end the replay than the trace
    alone = len(np.unique(tables.replayed_inferences.ints("thread"))) == 1
    for row in tables.whatif:  # what the replay misses of the trace is left out
        expected = now - row.real("replay_error") * was + slope * (row.integer("recorded_ns") - was)
        assert row.integer("before_ns") == pytest.approx(
            expected, abs=2 if alone else 0.025 * expected
        )


@pytest.mark.parametrize("name", CAPTURES)
def test_no_kernel_takes_longer_than_recorded_and_each_inference_holds_those_of_its_own(
    name: str,
) -> None:
    tables = tables_of(name)
    work, replayed = tables.replayed_work, tables.replayed_inferences
    kernel = work.ints("kernel_id") >= 0
    length = (work.ints("end_ns") - work.ints("start_ns"))[kernel]
    recorded = (work.ints("recorded_end_ns") - work.ints("recorded_start_ns"))[kernel]
    alone = len(np.unique(tables.kernels.ints("stream"))) == 1
    assert (length > 0).all()
    if alone:  # kernels beside others can take longer than where the profiler kept them apart
        assert (length <= recorded).all()
    of = tables.kernels.ints("inference")[work.ints("kernel_id")[kernel]]
    ends = work.ints("end_ns")[kernel]
    for row in replayed:
        mine = ends[of == row.integer("inference")]
        assert mine.max() == row.integer("end_ns")


def test_a_trace_that_cannot_be_replayed_has_no_rows() -> None:
    tables = analyze(FIXTURES / "bert_trt10/graph_whole.nsys-rep", rules=[]).tables
    assert not len(tables.replayed_inferences)
    assert not len(tables.replayed_work)


@pytest.mark.parametrize("name", CAPTURES)
def test_what_changes_make_of_single_inferences_is_on_average_what_they_save(name: str) -> None:
    tables = tables_of(name)
    weight = dict(
        zip(
            tables.replayed_inferences.ints("inference").tolist(),
            tables.replayed_inferences.floats("weight").tolist(),
            strict=True,
        )
    )
    of = {row.integer("inference"): row for row in tables.replayed_inferences}
    told = set()
    was, _, _ = means_and_slope(tables)
    # by which all differ from those replayed
    others = abs(tables.whatif.ints("recorded_ns")[0] / was - 1)
    for answer in tables.whatif:
        mine = [
            row for row in tables.whatif_inferences if row.text("change") == answer.text("change")
        ]
        if not mine:
            continue
        told.add(answer.text("change"))
        assert {row.integer("inference") for row in mine} <= set(of)
        for row in mine:
            replayed = of[row.integer("inference")]
            assert row.integer("before_ns") == replayed.integer("end_ns") - replayed.integer(
                "begin_ns"
            )
        before, after = (
            sum(row.integer(end) * weight[row.integer("inference")] for row in mine)
            for end in ("before_ns", "after_ns")
        )
        saved = answer.integer("saving_ns") / answer.integer("before_ns")
        assert 1 - after / before == pytest.approx(saved, abs=0.005 + others), answer.text("change")
    answered = {row.text("change") for row in tables.whatif if row.text("answer") == "answered"}
    assert told <= answered - {"two-in-flight", "aux-streams"}
    assert "async" in told


@pytest.mark.parametrize("name", CAPTURES)
def test_where_its_time_goes_adds_up_to_the_time_before_any_change(name: str) -> None:
    tables = tables_of(name)
    (before,) = {
        row.integer("before_ns") for row in tables.whatif if row.maybe_integer("before_ns")
    }
    parts = {row.text("part"): row.integer("time_ns") for row in tables.replayed_times}
    assert sum(parts.values()) == before
    assert "profiler" not in parts
    assert min(parts.values()) > 0
    work, replayed = tables.replayed_work, tables.replayed_inferences
    busy = np.zeros(int(work.ints("end_ns").max()) + 1, np.bool_)  # nanosecond by nanosecond
    for row in work:
        busy[row.integer("start_ns") : row.integer("end_ns")] = True
    shares = [
        (
            row.real("weight") * int(busy[row.integer("begin_ns") : row.integer("end_ns")].sum()),
            row.real("weight"),
            row,
        )
        for row in replayed
    ]
    whole = sum(
        weight * (row.integer("end_ns") - row.integer("begin_ns")) for _, weight, row in shares
    )
    assert parts["work"] == pytest.approx(
        sum(time for time, _, _ in shares) / whole * before, abs=len(parts) + 1
    )
