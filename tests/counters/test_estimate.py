"""Rates by kernel are what made the samples, and the stated errors hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nsysmap.counters.edges import cached
from nsysmap.counters.estimate import (
    _coherence,
    _common,
    _leverage,
    _linear,
    _scattered,
    _scores_by_phase,
    _sums,
    estimate,
)
from nsysmap.counters.limits import freedom_of
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.part_rates import fit_rates
from nsysmap.counters.problem import problem_of
from nsysmap.counters.series import series_of
from tests.counters.made import dense, non_negative_least_squares, sampled, sequence

DURATIONS = [4000, 9000, 2500, 14_000, 6000]
GAPS = [0, 500, 0, 2000, 0]
RATES = [80.0, 0.0, 35.0, 100.0, 12.5]


def test_rates_without_noise_are_found() -> None:
    work = sequence(DURATIONS, GAPS, 60)
    found = estimate(sampled(work, RATES, 5000), work, Shift()).by_metric[0]
    assert np.allclose(found.groups.value, RATES, atol=0.5)
    assert found.idle == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("period", [3000, 10_000, 30_000])
def test_rates_are_those_of_non_negative_least_squares_within_their_errors(period: int) -> None:
    work = sequence(DURATIONS, GAPS, 80, seed=period)
    samples = sampled(work, RATES, period, noise=0.5, seed=1)
    found = estimate(samples, work, Shift()).by_metric[0]
    matrix = dense(work, samples.start_ns, samples.end_ns)
    plain = non_negative_least_squares(matrix, samples.values[0], 100.0)[:-1]
    assert (np.abs(found.groups.value - plain) < 4 * found.groups.error + 0.3).all()


def test_nine_of_ten_intervals_hold_the_truth() -> None:
    held = []
    for seed in range(40):
        work = sequence(DURATIONS, GAPS, 40, seed=seed)
        rates = np.random.default_rng(seed).uniform(5, 95, 5).tolist()
        found = (
            estimate(sampled(work, rates, 10_000, noise=0.7, seed=seed), work, Shift())
            .by_metric[0]
            .groups
        )
        held.append((found.low <= rates) & (rates <= found.high))
    assert 0.85 <= np.mean(held) <= 0.95


@pytest.mark.parametrize("period", [10_000, 40_000])
def test_rounding_that_no_noise_blurs_is_in_the_errors(period: int) -> None:
    """Samples of kernels that are hardly active are all 1, 2 or 3, in every repetition alike."""
    apart = []
    for seed in range(8):
        work = sequence(DURATIONS, GAPS, 100, seed=seed)
        rates = np.random.default_rng(seed).uniform(0, 8, 5).tolist()
        samples = sampled(work, rates, period, noise=0.02, seed=seed)
        exact = np.array(samples.values)
        printed = np.where((exact > 0) & (exact < 1), 1.0, np.round(exact))
        found = estimate(replace(samples, values=printed), work, Shift()).by_metric[0].groups
        apart.append((found.value - rates) / found.error)
    assert np.sqrt(np.mean(np.square(apart))) < 1.4


def test_intervals_of_hardly_used_units_hold_although_nothing_blurs_the_rounding() -> None:
    """Kernels of a small batch: samples of 5 ± 2 %, whose rounding errors are alike wherever the
    samples are; without these errors in the intervals they hold 60 % of the truths.
    """
    held = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        work = sequence(
            random.choice([1400, 2200, 4300, 8600], 24).tolist(), [700] * 24, 120, seed=seed
        )
        rates = np.where(random.random(24) < 0.3, 0.0, random.uniform(2, 12, 24))
        samples = sampled(work, rates.tolist(), 20_000, noise=0.05, seed=seed)
        exact = np.maximum(np.array(samples.values), 0.0)
        printed = np.where((exact > 0) & (exact < 1), 1.0, np.round(exact))
        found = (
            estimate(replace(samples, values=printed), work, Shift(error_ns=1, likely_ns=1))
            .by_metric[0]
            .groups
        )
        held.append((found.low <= rates) & (rates <= found.high))
    assert np.mean(held) > 0.78


def test_residuals_by_place_add_up_to_those_of_the_places() -> None:
    """Rows that places share with random signs: their squares do in the mean."""
    work = sequence(DURATIONS, GAPS, 60)
    problem = problem_of(sampled(work, RATES, 5000), work, Shift(), np.full(5, -1), 0)
    residual = np.where(problem.used, np.random.default_rng(0).normal(size=len(problem.used)), 0.0)
    every = np.zeros((int(problem.phase.max()) + 2, problem.shares.columns))
    for sample, column, share in zip(
        problem.shares.sample, problem.shares.column, problem.shares.share, strict=True
    ):
        every[problem.phase[sample], column] += share * residual[sample]
    along = np.random.default_rng(1).normal(size=(problem.shares.columns, 400))
    found, expected = (
        (rows @ along) ** 2
        for rows in (_scores_by_phase(problem, _common(problem), residual), every)
    )
    assert found.sum(axis=0).mean() == pytest.approx(expected.sum(axis=0).mean(), rel=0.25)
    assert len(np.unique(problem.phase)) > 50


@pytest.mark.parametrize(("same", "low", "high"), [(False, 1.0, 1.4), (True, 2.0, np.inf)])
def test_residuals_that_are_the_same_in_every_repetition_are_told_from_noise(
    same: bool, low: float, high: float
) -> None:
    work = sequence(DURATIONS * 3, GAPS * 3, 200)
    samples = sampled(work, RATES * 3, 20_000, noise=0.2)
    begin = work.start_ns[work.group == 0]
    into = (
        samples.start_ns
        - begin[np.clip(np.searchsorted(begin, samples.start_ns, "right") - 1, 0, None)]
    )
    random = np.random.default_rng(2)
    off = (
        random.normal(0, 1.5, 1000)[np.clip(into // 2000, 0, 999)]
        if same
        else random.normal(0, 1.5, len(into))
    )
    samples = replace(samples, values=samples.values + off)
    problem = problem_of(samples, work, Shift(), np.full(15, -1), 0)
    series = series_of(samples, problem.values)
    fit = fit_rates(_sums(problem, series), problem.layout)
    (found,) = _linear(problem, _common(problem), series, fit, np.zeros_like(fit.rates))
    assert low <= _coherence(found, problem) < high


def test_values_stay_between_0_and_100() -> None:
    work = sequence(DURATIONS, GAPS, 6)
    found = estimate(sampled(work, RATES, 40_000, noise=5.0), work, Shift()).by_metric[0].groups
    assert found.value.min() >= 0 and found.value.max() <= 100
    assert found.low.min() >= 0 and found.high.max() <= 100


def test_wild_samples_are_set_aside_and_counted() -> None:
    work = sequence(DURATIONS, GAPS, 60)
    samples = sampled(work, RATES, 5000, noise=0.3)
    values = np.array(samples.values)
    wild = np.arange(40, values.shape[1], 97)
    values[0, wild] = 100 - values[0, wild]
    spoilt = Samples(
        samples.start_ns,
        samples.end_ns,
        values,
        samples.metrics,
        samples.percent,
        samples.per_cycle,
    )
    found = estimate(spoilt, work, Shift())
    assert found.outliers >= 0.5 * len(wild)
    assert np.abs(found.by_metric[0].groups.value - RATES).max() < 4


@pytest.mark.parametrize("seed", range(6))
def test_a_wild_sample_among_few_is_set_aside_although_it_pulls_the_fit_to_itself(
    seed: int,
) -> None:
    """Two streams: with 16 repetitions each sample weighs as much as a kernel, and what it spoils
    around it looks usual.
    """
    one, other = (
        sequence([7000, 4000, 9000, 5000] * 4, [0] * 16, 16, seed=each)
        for each in (seed, seed + 100)
    )
    both = [np.concatenate(pair) for pair in ((one.start_ns, other.start_ns + 2500), (one.end_ns, other.end_ns + 2500),  # noqa: E501
            (one.group, other.group + 16), (one.repeat, other.repeat))]  # fmt: skip
    order = np.argsort(both[0], kind="stable")
    start, end, group, repeat = (each[order] for each in both)
    work = GpuRan(start, end, group, repeat, 32)
    rates = np.random.default_rng(seed).uniform(2, 45, 32).tolist()
    samples = sampled(work, rates, 10_000, noise=0.4, seed=seed)
    good = estimate(samples, work, Shift())
    values = np.array(samples.values)
    values[0, values.shape[1] // 2] += 45.0
    found = estimate(replace(samples, values=values), work, Shift())
    assert (good.outliers, found.outliers) == (0, 1)
    assert found.by_metric[0].noise < 1.3 * good.by_metric[0].noise


def test_samples_of_work_that_is_no_part_of_the_sequence_are_left_out() -> None:
    work = sequence(DURATIONS, GAPS, 40)
    odd = GpuRan(
        np.append(work.start_ns, work.end_ns[99] + 50),
        np.append(work.end_ns, work.end_ns[99] + 9000),
        np.append(work.group, -1), np.append(work.repeat, -1), work.groups,
    )  # fmt: skip
    order = np.argsort(odd.start_ns, kind="stable")
    mixed = GpuRan(
        odd.start_ns[order], odd.end_ns[order], odd.group[order], odd.repeat[order], odd.groups
    )
    found = estimate(sampled(mixed, RATES, 5000), mixed, Shift())
    assert found.left_out > 0
    assert np.allclose(found.by_metric[0].groups.value, RATES, atol=1.0)


def test_kernels_that_always_run_together_are_not_told_apart() -> None:
    start = np.arange(0, 4_000_000, 40_000)
    both = GpuRan(
        np.repeat(start, 2), np.repeat(start + 9000, 2), np.tile([0, 1], len(start)),
        np.repeat(np.arange(len(start)), 2), 2,
    )  # fmt: skip
    found = estimate(
        sampled(both, [20.0, 30.0], 5000, noise=0.3), both, Shift(), member_of=np.zeros(2, np.int64)
    )
    assert (found.by_metric[0].groups.error > 10).all()
    assert (found.concurrent > 0.99).all()
    together = found.by_metric[0].sets
    assert together.value[0] == pytest.approx(25.0, abs=0.5)
    assert together.error[0] < 1


def test_a_part_of_cycles_is_weighted_by_the_clock() -> None:
    work = sequence([20_000, 20_000], [0, 0], 50)
    share = sampled(work, [60.0, 20.0], 5000)
    clock = sampled(work, [1.0, 2.0], 5000, percent=False)
    cycles = np.maximum(clock.values[0], 1e-9)
    busy = sampled(work, [60.0 * 1.0, 20.0 * 2.0], 5000).values[0]
    both = Samples(
        share.start_ns,
        share.end_ns,
        np.stack([busy / cycles, clock.values[0]]),
        ("t", "clock"),
        (True, False),
        (1, None),
    )
    found = estimate(both, work, Shift())
    assert np.allclose(found.by_metric[0].groups.value, [60, 20], atol=0.5)
    assert np.allclose(found.by_metric[1].groups.value, [1, 2], atol=0.02)


def test_a_set_is_the_mean_over_the_time_of_its_kernels() -> None:
    work = sequence(DURATIONS, GAPS, 60)
    found = estimate(
        sampled(work, RATES, 5000, noise=0.3), work, Shift(), member_of=np.array([0, 0, 1, -1, 1])
    ).by_metric[0]
    assert found.sets.value[0] == pytest.approx((80 * 4000 + 0 * 9000) / 13_000, abs=0.5)
    assert found.sets.value[1] == pytest.approx((35 * 2500 + 12.5 * 6000) / 8500, abs=0.5)
    assert (found.sets.error < 1).all()


def test_groups_in_any_order_give_the_same() -> None:
    work = sequence(DURATIONS, GAPS, 50)
    mixed = np.array([3, 0, 4, 1, 2])
    other = GpuRan(work.start_ns, work.end_ns, mixed[work.group], work.repeat, 5)
    samples = sampled(work, RATES, 5000, noise=0.3)
    first, second = (estimate(samples, each, Shift()).by_metric[0].groups for each in (work, other))
    assert np.allclose(first.value, second.value[mixed])
    assert np.allclose(first.error, second.error[mixed])


def test_a_group_that_never_ran_has_no_value() -> None:
    work = sequence(DURATIONS, GAPS, 20)
    more = GpuRan(work.start_ns, work.end_ns, work.group, work.repeat, 6)
    found = estimate(sampled(work, RATES, 5000), more, Shift()).by_metric[0].groups
    assert np.isnan(found.value[5]) and np.isnan(found.error[5])
    assert np.isfinite(found.value[:5]).all()


def test_more_repeats_make_narrower_intervals() -> None:
    widths = []
    for repeats in (20, 80, 320):
        work = sequence(DURATIONS, GAPS, repeats)
        found = estimate(sampled(work, RATES, 20_000, noise=0.5), work, Shift()).by_metric[0].groups
        widths.append(float(np.median(found.high - found.low)))
    assert widths[0] > 1.4 * widths[1] > 1.4 * 1.4 * widths[2]


def test_samples_printed_as_1_are_not_taken_for_1() -> None:
    """Where a kernel is hardly active, nsys prints 1 for what is far less."""
    work = sequence([9000, 1500, 1500, 6000], [3000, 4000, 12_000, 8000], 200)
    rates = [60.0, 2.0, 0.5, 0.2]
    samples = sampled(work, rates, 10_000, noise=0.0)
    exact = np.array(samples.values)
    printed = np.where((exact > 0) & (exact < 1), 1.0, np.round(exact))
    found = estimate(replace(samples, values=printed), work, Shift()).by_metric[0].groups
    assert (np.abs(found.value - rates) < 2.5 * found.error).all()
    # not whole: taken as they are
    plain = estimate(replace(samples, values=printed + 1e-9), work, Shift()).by_metric[0].groups
    assert (np.abs(found.value - rates)[1:] < np.abs(plain.value - rates)[1:]).all()


def test_where_kernels_begin_and_end_leaves_short_ones_open() -> None:
    """Activity that changes within kernels: the stamps are not when it begins, and no repeats
    tell.
    """
    work = sequence(DURATIONS, GAPS, 100)
    late = GpuRan(work.start_ns + 700, work.end_ns, work.group, work.repeat, work.groups)
    found = estimate(sampled(late, RATES, 5000, noise=0.3), work, Shift()).by_metric[0].groups
    assert found.edges[2] > found.edges[3] > 0.5
    clock = estimate(sampled(work, [50.0] * 5, 5000, noise=0.3), work, Shift()).by_metric[0].groups
    assert clock.edges.max() < found.edges.min() + 0.5


@pytest.mark.parametrize("few", [6, 40])
def test_leverage_is_that_of_the_whole_hat_matrix(few: int) -> None:
    work = sequence(DURATIONS, GAPS, few)
    samples = sampled(work, RATES, 5000, noise=0.3)
    problem = problem_of(samples, work, Shift(), np.full(work.groups, -1), 0)
    fit = fit_rates(_sums(problem, series_of(samples, problem.values)), problem.layout)
    matrix = np.zeros((problem.shares.samples, problem.shares.columns))
    matrix[problem.shares.sample, problem.shares.column] = problem.shares.share
    whole = fit.systems.gram.full + np.diag(fit.systems.own[0])
    at = np.arange(len(whole) - 2)
    whole[at, at + 1] += fit.systems.beside[0]
    whole[at + 1, at] += fit.systems.beside[0]
    expected = np.einsum("ij,jk,ik->i", matrix, np.linalg.inv(whole), matrix)
    found = _leverage(problem, fit.systems.factor())[0]
    assert np.allclose(found, expected, atol=1e-6)
    assert found.max() > 0.05


def test_freedom_is_the_number_of_clusters_that_tell() -> None:
    random = np.random.default_rng(0)
    alike, few = (
        random.normal(size=(64, 2000)),
        random.normal(size=(64, 2000)) * (np.arange(64) < 8)[:, None],
    )
    spread = np.full(2000, 64.0)
    assert np.median(freedom_of(alike, spread)) > 45
    assert 4 < np.median(freedom_of(few, spread)) < 10


@pytest.mark.parametrize(("unlike", "least", "most"), [(0.0, 0.0, 0.25), (2.0, 0.6, 1.0)])
def test_the_scatter_of_few_clusters_is_drawn_to_the_noise_only_as_far_as_kernels_are_alike(
    unlike: float, least: float, most: float
) -> None:
    random = np.random.default_rng(0)
    work = sequence(DURATIONS * 60, GAPS * 60, 10)
    problem = problem_of(
        sampled(work, [50.0] * 300, 20_000, noise=0.4), work, Shift(), np.full(300, -1), 0
    )
    own = np.exp(random.normal(0, unlike, 300))  # variance of each kernel, relative to the noise's
    influence = random.normal(size=(problem.clusters, 300)) * np.sqrt(own / problem.clusters)
    between = (influence**2).sum(axis=0)
    drawn, freedom = _scattered(influence, np.ones(300), 1.0, problem)
    left = np.polyfit(np.log(between), np.log(drawn), 1)[0]
    assert least <= left <= most
    assert unlike or np.abs(np.log(drawn / own)).max() < 0.5 * np.abs(np.log(between / own)).max()
    assert (freedom > freedom_of(influence, problem.spread)).all()


def test_traffic_of_the_cache_is_added_up_as_by_the_obvious_loop() -> None:
    work = sequence(DURATIONS, GAPS, 20)
    values, reach = np.array(RATES), 30_000.0
    error = cached(work, values, reach, written=True)
    means: list[list[float]] = [[] for _ in RATES]
    for begin, finish, group in zip(
        work.start_ns.tolist(), work.end_ns.tolist(), work.group.tolist(), strict=True
    ):
        middle = (begin + finish) / 2
        low, high = max(middle - reach, work.start_ns.min()), min(middle + reach, work.end_ns.max())
        moved = sum(
            max(min(high, end) - max(low, start), 0) * values[other]
            for start, end, other in zip(
                work.start_ns.tolist(), work.end_ns.tolist(), work.group.tolist(), strict=True
            )
        )
        means[group].append(moved / (high - low))
    mean = np.array([np.mean(each) for each in means])
    assert np.allclose(error, np.sqrt(mean**2 / 12 + (values - mean) ** 2 / 3))
    assert np.allclose(cached(work, values, reach, written=False), mean / np.sqrt(12))


@pytest.mark.parametrize(
    ("period", "repeats", "beside", "parts"),
    [(10_000, 200, False, 8), (10_000, 200, True, 4), (10_000, 20, False, 4)],
)
def test_parts_are_finer_where_samples_are_many_and_kernels_run_alone(
    period: int, repeats: int, beside: bool, parts: int
) -> None:
    work = sequence([3000] * 6, [100] * 6, repeats)
    start = work.start_ns - np.where(beside & (work.group > 0), 1000, 0)
    both = GpuRan(start, work.end_ns, work.group, work.repeat, work.groups)
    found = estimate(sampled(both, [50.0] * 6, period, noise=0.3), both, Shift()).layout
    assert set(found.parts.tolist()) == {parts}
