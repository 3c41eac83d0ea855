"""Shares of samples are what the obvious loops count."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.counters.model import GpuRan
from nsysmap.counters.ring import gram_of_dense, trimmed
from nsysmap.counters.shares import (
    Shares,
    _band_by_blocks,
    _band_by_pairs,
    blurred,
    busy_time,
    by_company,
    change_in,
    concurrent_share,
    gram,
    layout_of,
    overlapping,
    parts_of,
    shares_in,
    touched,
)
from tests.counters.made import dense, sequence

kernels = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 60), st.integers(-1, 3), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


def made_work(rows: list[tuple[int, int, int, int]]) -> GpuRan:
    rows = sorted(rows)
    start = np.array([row[0] for row in rows])
    return GpuRan(
        start,
        start + np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
        np.array([row[3] for row in rows]),
        4,
    )


def rows_of(work: GpuRan) -> list[tuple[int, int, int, int]]:
    """Begin, end, group and repetition of each."""
    return list(
        zip(
            *(each.tolist() for each in (work.start_ns, work.end_ns, work.group, work.repeat)),
            strict=True,
        )
    )


@given(rows=kernels, period=st.integers(3, 90), parts=st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_shares_are_what_loops_count(
    rows: list[tuple[int, int, int, int]], period: int, parts: int
) -> None:
    work = made_work(rows)
    edges = np.arange(0, 600, period).astype(np.float64)
    layout = layout_of(work, 0.0, fewest=parts)
    shares = shares_in(parts_of(work, layout), edges[:-1], edges[1:])
    found = np.zeros((shares.samples, shares.columns))
    np.add.at(found, (shares.sample, shares.column), shares.share)
    by_group = np.add.reduceat(found[:, :-1], layout.first[:-1], axis=1)
    expected = dense(work, edges[:-1].astype(np.int64), edges[1:].astype(np.int64))
    assert np.allclose(by_group, expected[:, :-1], atol=1e-9)
    assert np.allclose(found[:, -1], expected[:, -1], atol=1e-9)
    assert np.allclose(gram(shares).full, found.T @ found, atol=1e-9)
    assert np.allclose(gram_of_dense(found.T @ found).full, found.T @ found, atol=1e-9)
    rates = np.arange(shares.columns, dtype=np.float64)
    assert np.allclose(shares.applied(rates), found @ rates)
    values = np.arange(shares.samples, dtype=np.float64)
    assert np.allclose(shares.gathered(values), found.T @ values)


@given(rows=kernels, period=st.integers(3, 90))
@settings(max_examples=40, deadline=None)
def test_touched_samples_are_those_that_overlap(
    rows: list[tuple[int, int, int, int]], period: int
) -> None:
    work = made_work(rows)
    edges = np.arange(0, 600, period).astype(np.float64)
    found = touched(work, work.group < 0, edges[:-1], edges[1:])
    for at, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        overlaps = [
            max(begin, low) < min(finish, high)
            for begin, finish, group in zip(
                work.start_ns.tolist(), work.end_ns.tolist(), work.group.tolist(), strict=True
            )
            if group < 0 and finish > begin
        ]
        assert bool(found[at]) >= any(overlaps)


@given(rows=kernels, period=st.integers(3, 90), lost=st.lists(st.integers(0, 200), max_size=20))
@settings(max_examples=60, deadline=None)
def test_overlapping_work_is_what_loops_find(
    rows: list[tuple[int, int, int, int]], period: int, lost: list[int]
) -> None:
    """Also where samples were lost."""
    work = made_work(rows)
    edges = np.arange(100, 500, period)
    kept = np.delete(np.arange(len(edges) - 1), [each for each in lost if each < len(edges) - 1])
    start, end = edges[:-1][kept], edges[1:][kept]
    expected = [
        any(
            begin < high and finish > low
            for low, high in zip(start.tolist(), end.tolist(), strict=True)
        )
        for begin, finish in zip(work.start_ns.tolist(), work.end_ns.tolist(), strict=True)
    ]
    found = overlapping(work, start, end)
    instant = work.start_ns == work.end_ns  # nothing of it is in a sample
    assert (found | instant).tolist() == (np.array(expected, np.bool_) | instant).tolist()


def test_work_beside_other_work_is_counted() -> None:
    work = GpuRan(
        np.array([0, 50, 200]),
        np.array([100, 150, 300]),
        np.array([0, 1, 2]),
        np.zeros(3, np.int64),
        3,
    )
    assert concurrent_share(work).tolist() == [0.5, 0.5, 0.0]
    assert busy_time(work).share(np.array([0.0, 100.0]), np.array([100.0, 200.0])).tolist() == [
        1.0,
        0.5,
    ]


@given(rows=kernels)
@settings(max_examples=200, deadline=None)
def test_pieces_of_what_runs_are_those_of_the_obvious_loop(
    rows: list[tuple[int, int, int, int]],
) -> None:
    work = made_work(rows)
    own = [row for row in rows_of(work) if row[2] >= 0]
    moments = sorted({moment for row in own for moment in row[:2]})
    executions = [sum(row[2] == group for row in own) for group in range(4)]
    pieces = []
    for begin, end in pairwise(moments):
        running = [row for row in own if row[0] <= begin < row[1]]
        latest = [row for row in own if row[0] <= begin][-1]
        if running:
            of_set = (tuple(sorted(row[2] for row in running)), any(row[0] == begin for row in own))
            pieces.append((begin, end, running, latest, of_set))
    often = Counter(piece[-1] for piece in pieces)
    # by the first one
    usual = {
        each[-1]: len(each[2]) == 1 or 2 * often[each[-1]] >= executions[each[3][2]]
        for each in reversed(pieces)
    }
    expected: list[tuple[int, int, object, int]] = []
    for begin, end, running, latest, of_set in pieces:
        rest = [(begin, end, row[2], row[3]) for row in running]
        expected += [(begin, end, of_set, latest[3])] if usual[of_set] else rest
    expected += [(row[0], row[0] + row[1], -1, row[3]) for row in sorted(rows) if row[2] < 0]
    found = by_company(work)
    assert (np.diff(found.start_ns) >= 0).all()
    names: dict[int, set[object]] = {}
    for begin, end, group, repeat in rows_of(found):
        names[group] = names.get(group, {each[2] for each in expected}) & {
            each[2] for each in expected if each[:2] + each[3:] == (begin, end, repeat)
        }
    assert all(names.values())
    assert len(found.start_ns) == len(expected)
    assert found.groups == len({each[2] for each in expected} - {-1})


def test_kernels_that_run_alone_are_left_as_they_are() -> None:
    work = sequence([3000, 2000, 5000], [100, 0, 50], 5)
    found = by_company(work)
    assert all(
        np.array_equal(getattr(found, each), getattr(work, each))
        for each in ("start_ns", "end_ns", "group", "repeat")
    )


def test_change_is_the_difference_that_a_later_clock_makes() -> None:
    work = GpuRan(
        np.array([100, 300]), np.array([200, 450]), np.array([0, 1]), np.zeros(2, np.int64), 2
    )
    layout = layout_of(work, 0.0, fewest=2)
    start, end = np.array([50.0, 150.0, 250.0, 350.0]), np.array([150.0, 250.0, 350.0, 450.0])
    rates = np.array([10.0, 20.0, 30.0, 40.0, 1.0])
    before = shares_in(parts_of(work, layout), start, end).applied(rates)
    after = shares_in(parts_of(work, layout), start + 0.001, end + 0.001).applied(rates)
    assert np.allclose(
        change_in(parts_of(work, layout), start, end).applied(rates),
        (after - before) / 0.001,
        atol=1e-6,
    )


@given(seed=st.integers(0, 1000), count=st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_busy_time_is_the_union_by_the_obvious_loop(seed: int, count: int) -> None:
    """Also with work inside other work, touching work, and samples that some were lost between."""
    random = np.random.default_rng(seed)
    start = np.sort(random.integers(0, 60, count))
    end = start + random.integers(0, 12, count)
    none = np.full(count, -1)
    busy = np.zeros(100, np.bool_)
    for first, last in zip(start.tolist(), end.tolist(), strict=True):
        busy[first:last] = True
    edges = np.sort(random.choice(np.arange(90), 8, replace=False)).astype(np.float64)
    begin, finish = np.delete(edges[:-1], 3), np.delete(edges[1:], 3)
    expected = [busy[int(low) : int(high)].mean() for low, high in zip(begin, finish, strict=True)]
    if count:
        assert np.allclose(
            busy_time(GpuRan(start, end, none, none, 0)).share(begin, finish), expected
        )


@pytest.mark.parametrize("gap", [0, 900])
@pytest.mark.parametrize("period", [700, 4000, 13_000])
def test_products_of_small_matrices_are_those_of_pairs(period: int, gap: int) -> None:
    work = sequence([3000, 9000, 1500, 6000] * 10, [gap] * 40, 12)
    edges = np.arange(-20_000.0, float(work.end_ns[-1]) + 20_000, period)
    layout = layout_of(work, 400.0, fewest=2)
    shares = shares_in(parts_of(work, layout), edges[:-1], edges[1:])
    busy = shares.column < shares.columns - 1
    inner = Shares(
        shares.sample[busy],
        shares.column[busy],
        shares.share[busy],
        shares.samples,
        shares.columns - 1,
    )
    blocks, pairs = _band_by_blocks(inner), _band_by_pairs(inner)
    assert blocks is not None
    assert len(trimmed(blocks)) == len(trimmed(pairs))
    assert np.allclose(trimmed(blocks), trimmed(pairs), atol=1e-12)


def test_columns_far_apart_are_left_to_pairs() -> None:
    shares = Shares(np.array([0, 0]), np.array([2, 50]), np.ones(2), 2, 100)
    assert _band_by_blocks(shares) is None
    assert _band_by_blocks(shares.kept(np.array([False, True]))) is None  # idle time alone


def test_merged_parts_of_a_kernel_have_its_time() -> None:
    work = sequence([3000, 9000, 500], [0] * 3, 4)
    fine = layout_of(work, 1000.0, fewest=2)
    assert fine.parts.tolist() == [3, 9, 2]
    coarse, into = fine.halved()
    assert coarse.parts.tolist() == [2, 5, 1]
    assert into.tolist() == [0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7]


def test_kernels_that_begin_near_one_another_are_taken_together() -> None:
    """Two sequences, one after another, and work of no sequence between them."""
    start = np.array([0, 3000, 6000, 12_000, 20_000, 21_000, 30_000, 34_000])
    end = np.array([2000, 5000, 11_000, 13_000, 20_500, 22_000, 33_000, 35_000])
    work = GpuRan(
        start, end, np.array([0, 1, 2, 3, -1, -1, 4, 5]), np.array([0, 0, 0, 0, -1, -1, 1, 1]), 6
    )
    found = blurred(work, 5000.0)
    assert found.start_ns.tolist() == [0, 6000, 12_000, 20_000, 21_000, 30_000]
    assert found.end_ns.tolist() == [5000, 11_000, 13_000, 20_500, 22_000, 35_000]
    assert found.repeat.tolist() == [0, 0, 0, -1, -1, 1]
    assert found.group.tolist() == [0, 1, 2, -1, -1, 3]
    assert found.groups == 4
