"""The offset of the clocks, and its drift, are found from the samples."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nsysmap.counters import clock_shift as searching
from nsysmap.counters.clock_shift import clock_shift
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.part_rates import quick_misfit
from nsysmap.counters.shares import layout_of
from tests.counters.made import sampled, sequence

DURATIONS = [4000, 9000, 2500, 14_000, 6000]
GAPS = [1500, 500, 0, 2000, 0]
RATES = [80.0, 95.0, 70.0, 100.0, 90.0]


@pytest.mark.parametrize("offset", [0, 1200, -7000, 33_000])
def test_an_offset_is_found(offset: int) -> None:
    work = sequence(DURATIONS, GAPS, 60)
    found = clock_shift(sampled(work, RATES, 5000, noise=0.4, offset=offset), work, (0,))
    assert found is not None
    assert found.offset_ns == pytest.approx(offset, abs=60)
    assert abs(found.offset_ns - offset) < 4 * found.error_ns


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_first_guess_that_is_half_a_sample_off_does_not_mislead(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guesses are half samples apart, and from the wrong one the nearest dip of the misfit can be
    another kernel's.
    """
    random = np.random.default_rng(seed)
    work = sequence(random.integers(1500, 7000, 9).tolist() * 8, [500] * 72, 40, seed=seed)
    rates = random.uniform(0, 95, 72).tolist()
    monkeypatch.setattr(
        searching,
        "_by_kernel",
        lambda _work, _stretches, period_ns, none: [Shift(-period_ns / 2, 0.0, none.origin_ns)],
    )
    found = clock_shift(sampled(work, rates, 20_000, noise=0.4, offset=900), work, (0,))
    assert found is not None
    assert abs(found.offset_ns - 900) < 4 * found.error_ns < 400


@pytest.mark.parametrize(("seed", "offset"), [(1, 30_000), (5, 12_000), (11, -20_000)])
def test_offsets_of_many_samples_are_found_where_activity_hardly_follows_busy_time(
    seed: int, offset: int
) -> None:
    """Three kernels in ten show no activity: busy time agrees better at wrong offsets."""
    random = np.random.default_rng(seed)
    work = sequence(random.integers(1500, 9000, 30).tolist(), [700] * 30, 30, seed=seed)
    rates = np.where(random.random(30) < 0.3, 0.0, random.uniform(2, 95, 30)).tolist()
    found = clock_shift(sampled(work, rates, 5000, noise=0.4, offset=offset), work, (0,))
    assert found is not None
    assert abs(found.offset_ns - offset) < 4 * found.error_ns < 80


@pytest.mark.parametrize(("seed", "offset"), [(0, 12_000), (1, 30_000), (2, -20_000), (3, 55_000)])
def test_offsets_of_less_than_a_long_sample_are_found(seed: int, offset: int) -> None:
    """At 10 kHz they lie between steps of a tenth of a sample, where the likelihood changes within
    half a µs.
    """
    random = np.random.default_rng(seed)
    work = sequence(random.integers(2500, 9000, 40).tolist(), [700] * 40, 200, seed=seed)
    found = clock_shift(
        sampled(work, random.uniform(5, 95, 40).tolist(), 100_000, noise=0.3, offset=offset),
        work,
        (0,),
    )
    assert found is not None
    assert abs(found.offset_ns - offset) < 200


@pytest.mark.parametrize("seed", range(2))
def test_quick_looks_leave_the_offset_that_the_closest_one_prefers(seed: int) -> None:
    """Against the closest look at each offset."""
    random = np.random.default_rng(seed)
    work = sequence(random.integers(1500, 7000, 40).tolist(), [500] * 40, 150, seed=seed)
    samples = sampled(
        work,
        random.uniform(0, 95, 40).tolist(),
        50_000,
        noise=0.4,
        offset=int(random.integers(-40_000, 40_000)),
    )
    looks = searching._looks(
        work, layout_of(work, 1500.0, fewest=3), searching._stretches(samples, work, (0,)), 50_000.0
    )
    assert [look.steps for look in looks] == [4, 1, 1]
    quick, every = (
        searching._searched(some, 50_000.0, Shift(0.0, 0.0, 0.0))[0] for some in (looks, looks[-1:])
    )
    assert quick.offset_ns == every.offset_ns


@pytest.mark.parametrize("seed", range(2))
def test_the_offset_has_the_least_misfit_of_all_nearby(seed: int) -> None:
    random = np.random.default_rng(seed)
    work = sequence(random.integers(2500, 9000, 20).tolist(), [700] * 20, 100, seed=seed)
    samples = sampled(work, random.uniform(5, 95, 20).tolist(), 20_000, noise=0.4, offset=300)
    look = searching._Look(
        work, layout_of(work, 1500.0, fewest=3), searching._stretches(samples, work, (0,)), 1
    )
    scene = searching._scene(look)
    left_out, _, like = searching._without_wild(scene, Shift(0.0, 0.0, 0.0))
    found, _ = searching._closed_in(scene, Shift(0.0, 0.0, 0.0), left_out, like, 20_000.0)
    offsets = np.arange(0.0, 600.0, 20.0)
    misfit = [
        quick_misfit(scene.at(Shift(each), left_out).sums(), like).sum() + searching._unusual(each)
        for each in offsets.tolist()
    ]
    assert abs(found.offset_ns - offsets[int(np.argmin(misfit))]) < 30 + found.error_ns


def test_a_drift_is_found() -> None:
    work = sequence(DURATIONS, GAPS, 300)
    samples = sampled(work, RATES, 5000, noise=0.4)
    drifted = [
        np.round(each * (1 - 40e-6)).astype(np.int64) for each in (samples.start_ns, samples.end_ns)
    ]
    found = clock_shift(
        Samples(
            drifted[0],
            drifted[1],
            samples.values,
            samples.metrics,
            samples.percent,
            samples.per_cycle,
        ),
        work,
        (0,),
    )
    assert found is not None
    assert found.drift == pytest.approx(40e-6, rel=0.05)
    assert np.abs(found.moved(drifted[0]) - samples.start_ns).max() < 200


@pytest.mark.parametrize("offset", [0, 900])
def test_the_clocks_of_a_gpu_that_is_never_idle_are_joined(offset: int) -> None:
    work = sequence(DURATIONS * 4, [0] * 20, 60)
    gapless = GpuRan(
        work.start_ns,
        np.append(work.start_ns[1:], work.end_ns[-1]),
        work.group,
        work.repeat,
        work.groups,
    )
    rates = np.random.default_rng(3).uniform(0, 95, 20).tolist()
    found = clock_shift(sampled(gapless, rates, 5000, noise=0.4, offset=offset), gapless, (0,))
    assert found is not None
    assert abs(found.offset_ns - offset) < 4 * found.error_ns


def test_samples_without_a_value_are_left_out() -> None:
    work = sequence(DURATIONS, GAPS, 60)
    samples = sampled(work, RATES, 5000, noise=0.4, offset=1200)
    values = np.array(samples.values)
    values[0, ::50] = np.nan
    found = clock_shift(replace(samples, values=values), work, (0,))
    assert found is not None
    assert found.offset_ns == pytest.approx(1200, abs=60)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kernels_that_slow_one_another_down_do_not_mislead(seed: int) -> None:
    """Two streams: while both run, activity is not the sum of what their kernels do alone."""
    random = np.random.default_rng(seed)
    alone = sequence(random.integers(3000, 9000, 12).tolist(), [600] * 12, 150)
    beside = np.isin(alone.group % 4, (1, 2))
    start = alone.start_ns[beside] + random.integers(300, 3300, int(beside.sum()))
    begin, end = np.append(alone.start_ns, start), np.append(alone.end_ns, start + 4400)
    order = np.argsort(begin, kind="stable")
    group, repeat = (
        np.append(alone.group, 12 + alone.group[beside]),
        np.append(alone.repeat, alone.repeat[beside]),
    )
    work = GpuRan(begin[order], end[order], group[order], repeat[order], 24)
    moments = np.unique(np.append(begin, end))
    running = np.searchsorted(np.sort(begin), moments[:-1], "right") - np.searchsorted(
        np.sort(end), moments[:-1], "right"
    )
    rates = random.uniform(20, 95, (2, 24))[
        np.minimum(running, 2) - 1,
        work.group[np.searchsorted(work.start_ns, moments[:-1], "right") - 1],
    ]
    pieces = GpuRan(
        moments[:-1], moments[1:], np.arange(len(rates)), np.zeros(len(rates), np.int64), len(rates)
    )
    samples = sampled(
        pieces, np.where(running > 0, rates, 0.0).tolist(), 20_000, noise=0.4, offset=-100
    )
    found = clock_shift(samples, work, (0,))
    assert found is not None
    assert abs(found.offset_ns + 100) < 3 * found.error_ns < 180


def test_samples_that_follow_nothing_have_no_offset() -> None:
    work = sequence(DURATIONS, GAPS, 60)
    samples = sampled(work, RATES, 5000)
    values = np.random.default_rng(0).uniform(0, 100, np.shape(samples.values))
    assert (
        clock_shift(
            Samples(samples.start_ns, samples.end_ns, values, ("a",), (True,), (None,)), work, (0,)
        )
        is None
    )


def test_without_activity_there_is_no_offset() -> None:
    work = sequence(DURATIONS, GAPS, 60)
    assert clock_shift(sampled(work, RATES, 5000), work, ()) is None


@pytest.mark.parametrize("seed", range(6))
def test_kernels_that_begin_late_and_end_early_leave_the_offset_as_uncertain_as_it_is(
    seed: int,
) -> None:
    """As on a GPU: then no offset explains the samples, and one at which kernels are taken for
    others is likelier with each repetition.
    """
    random = np.random.default_rng(seed)
    work = sequence(random.integers(2500, 9000, 40).tolist(), [1000] * 40, 200, seed=seed)
    late, early = random.integers(200, 1200, (2, 40))
    active = GpuRan(
        work.start_ns + late[work.group],
        work.end_ns - early[work.group],
        work.group,
        work.repeat,
        40,
    )
    found = clock_shift(
        sampled(active, random.uniform(20, 95, 40).tolist(), 100_000, noise=0.3, offset=-100),
        work,
        (0,),
    )
    assert found is not None
    assert abs(found.offset_ns + 100) < 3 * found.error_ns < 3000


def test_an_offset_is_no_more_uncertain_than_the_range_in_which_it_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = sequence(DURATIONS, GAPS, 60)
    pulled = searching._Scene.pulled
    monkeypatch.setattr(
        searching._Scene,
        "pulled",
        lambda *given: replace(found := pulled(*given), certainty=0.0 * found.certainty),
    )
    found = clock_shift(sampled(work, RATES, 5000, noise=0.4), work, (0,))
    assert found is not None
    assert found.error_ns == pytest.approx(64 * 5000)


def test_kernels_that_run_only_where_no_samples_are_change_nothing() -> None:
    """Those of a second kernel sequence, say, of which nsys lost all samples."""
    work = sequence(DURATIONS, GAPS, 60)
    samples = sampled(work, RATES, 5000, noise=0.4, offset=1200)
    later = int(work.end_ns.max()) + 1_000_000_000 + 10_000 * np.arange(30)
    both = GpuRan(
        np.append(work.start_ns, later), np.append(work.end_ns, later + 4000),
        np.append(work.group, 5 + np.arange(30) % 3),
        np.append(work.repeat, 60 + np.arange(30) // 3), 8,
    )  # fmt: skip
    found = clock_shift(samples, both, (0,))
    assert found is not None
    assert found.offset_ns == pytest.approx(1200, abs=60)
    assert found.error_ns < 60


def test_the_stretches_that_are_looked_at_have_no_hole_and_do_not_overlap() -> None:
    work = sequence(DURATIONS, GAPS, 400)
    whole = sampled(work, RATES, 1000)
    kept = np.ones(len(whole.start_ns), np.bool_)
    kept[[*range(3000, 3100), *range(12_000, 12_500)]] = False
    some = replace(
        whole,
        start_ns=whole.start_ns[kept],
        end_ns=whole.end_ns[kept],
        values=np.asarray(whole.values)[:, kept],
    )
    found = searching._stretches(some, work, (0,))
    assert {len(each.start_ns) for each in found} == {1250}
    for each in found:
        assert (each.start_ns[1:] == each.end_ns[:-1]).all()
    assert all(one.end_ns[-1] <= other.start_ns[0] for one, other in pairwise(found))
