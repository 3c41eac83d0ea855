"""What is not known well enough is said to be so, with what would tell it."""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.counters.estimate import Estimates, estimate
from nsysmap.counters.kernel_ends import kernel_ends
from nsysmap.counters.model import GpuRan, Shift
from nsysmap.counters.run_facts import clock_run, during_inferences, joined, others_work
from nsysmap.counters.well_known import (
    BOUNDED,
    FASTEST_HZ,
    Capture,
    bounded,
    frequency_for,
    remedies_for,
    well_known,
    why_not,
)
from tests.counters.made import sampled, sequence
from tests.figures import figures


def said(found: Estimates, group: int) -> str:
    unknown = why_not(found, found.by_metric[0], group, Capture())
    assert unknown is not None
    return unknown.text


def test_short_kernels_between_long_samples_are_not_told() -> None:
    work = sequence([2000, 90_000], [500, 0], 40)
    found = estimate(sampled(work, [80.0, 30.0], 100_000, noise=0.7), work, Shift())
    metric = found.by_metric[0]
    assert well_known(found, metric).tolist() == [False, True]
    unknown = why_not(found, metric, 0, Capture())
    assert unknown is not None
    reason = unknown.text
    assert (
        "2.0 µs" in reason
        and "100 µs" in reason
        and "40 executions" in reason
        and "200 kHz would be enough" in reason
    )
    assert Capture().command(remedies_for(found, metric, 0)[0].frequency_hz) in reason
    assert why_not(found, metric, 1, Capture()) is None


def test_what_is_asked_for_does_tell() -> None:
    work = sequence([4000, 30_000], [500, 0], 40)
    found = estimate(sampled(work, [80.0, 30.0], 100_000, noise=0.7), work, Shift())
    remedy = remedies_for(found, found.by_metric[0], 0)[0]
    assert remedy.frequency_hz == 10_000
    more = sequence([4000, 30_000], [500, 0], remedy.executions)
    again = estimate(sampled(more, [80.0, 30.0], 100_000, noise=0.7), more, Shift())
    assert again.by_metric[0].groups.error[0] < 7


def test_more_samples_tell_the_offset_of_the_clocks_too() -> None:
    work = sequence([4000, 30_000], [9000, 9000], 40)
    samples = sampled(work, [80.0, 30.0], 20_000, noise=0.7)
    known = estimate(samples, work, Shift())
    found = estimate(samples, work, Shift(0.0, 0.0, 0.0, 5000.0, 5000.0))
    values = found.by_metric[0].groups
    assert values.timing[0] > 5 > known.by_metric[0].groups.timing[0]
    (here, _), before = (
        remedies_for(found, found.by_metric[0], 0),
        remedies_for(known, known.by_metric[0], 0),
    )
    assert here.executions > max(40, before[0].executions)
    assert "would be enough: nsys profile" in said(found, 0)


def test_few_executions_of_a_short_kernel_tell_nothing() -> None:
    work = sequence([3000, 90_000], [500, 0], 2)
    found = estimate(sampled(work, [80.0, 30.0], 5000, noise=0.3), work, Shift())
    assert figures(said(found, 0))[:2] == ["2", "10"]  # times that it ran, and that are enough


def test_kernels_that_always_run_together_are_for_nsight_compute() -> None:
    start = np.arange(0, 4_000_000, 40_000)
    both = GpuRan(
        np.repeat(start, 2),
        np.repeat(start + 9000, 2),
        np.tile([0, 1], len(start)),
        np.repeat(np.arange(len(start)), 2),
        2,
    )
    found = estimate(sampled(both, [20.0, 30.0], 5000, noise=0.3), both, Shift())
    assert "always runs together: use Nsight Compute" in said(found, 0)


def test_intervals_are_of_values_that_the_samples_bound() -> None:
    work = sequence([2000, 3000, 9000, 90_000], [500, 0, 300, 0], 40)
    found = estimate(sampled(work, [80.0, 30.0, 50.0, 60.0], 50_000, noise=0.7), work, Shift())
    metric = found.by_metric[0]
    some = bounded(found, metric)
    assert (some == (metric.groups.measured <= BOUNDED)).all()
    assert 0 < some.sum() < 4
    assert (well_known(found, metric) <= some).all()
    few = sequence([9000, 9000], [500, 0], 4)
    found = estimate(sampled(few, [80.0, 30.0], 3000, noise=0.3), few, Shift())
    assert not bounded(found, found.by_metric[0]).any()


def test_work_that_another_slows_down_has_no_interval() -> None:
    start = np.arange(0, 8_000_000, 40_000)
    both = GpuRan(np.repeat(start, 2) + np.tile([0, 6000], len(start)), np.repeat(start + 9000, 2) + np.tile([0, 6000], len(start)),  # noqa: E501
                np.tile([0, 1], len(start)), np.repeat(np.arange(len(start)), 2), 2)  # fmt: skip
    found = estimate(sampled(both, [20.0, 30.0], 2000, noise=0.3), both, Shift())
    assert well_known(found, found.by_metric[0]).all()
    assert not bounded(found, found.by_metric[0]).any()


def test_one_execution_as_long_as_many_samples_is_told() -> None:
    work = GpuRan(np.array([100_000]), np.array([900_000]), np.array([0]), np.array([0]), 1)
    found = estimate(sampled(work, [42.0], 5000, noise=0.5), work, Shift())
    assert well_known(found, found.by_metric[0]).all()
    assert found.by_metric[0].groups.value[0] == pytest.approx(42, abs=0.5)


def test_what_never_ran_says_so() -> None:
    work = sequence([3000], [500], 30)
    more = GpuRan(work.start_ns, work.end_ns, work.group, work.repeat, 2)
    found = estimate(sampled(work, [80.0], 5000), more, Shift())
    assert "did not run" in said(found, 1)


def test_the_command_is_that_of_the_version_and_names_the_gpu_as_nsys_does() -> None:
    assert "--gpu-metrics-device=3 " in Capture("2023.4.4", 3).command(100_000)
    for version in (None, "2024.2.1", "2025.3"):
        assert "--gpu-metrics-devices=0 --gpu-metrics-frequency=200000" in Capture(version).command(
            200_000
        )


def test_idle_ends_of_a_kernel_are_found() -> None:
    parts = sequence([2000, 6000, 4000], [200, 0, 0], 200)
    begins = parts.start_ns[parts.group == 0]
    whole = GpuRan(
        begins, begins + 12_000, np.zeros(len(begins), np.int64), np.arange(len(begins)), 1
    )
    tight = GpuRan(
        np.concatenate([begins, begins + 2000, begins + 8000]),
        np.concatenate([begins + 2000, begins + 8000, begins + 12_000]),
        np.repeat([0, 1, 2], len(begins)),
        np.tile(np.arange(len(begins)), 3),
        3,
    )
    order = np.argsort(tight.start_ns, kind="stable")
    ordered = GpuRan(
        tight.start_ns[order], tight.end_ns[order], tight.group[order], tight.repeat[order], 3
    )
    found = estimate(sampled(ordered, [0.0, 100.0, 25.0], 3000), whole, Shift())
    ends = kernel_ends(found, found.by_metric[0])
    assert ends.begin_ns[0] == pytest.approx(2000, abs=500)
    assert ends.end_ns[0] == pytest.approx(3000, abs=500)


def test_a_falling_clock_is_seen() -> None:
    work = sequence([20_000, 20_000], [0, 0], 100)
    samples = sampled(work, [1.0, 1.0], 5000, percent=False)
    hertz = np.linspace(1.9e9, 1.5e9, len(samples.values[0]))
    found = clock_run(hertz, joined(samples.start_ns, samples.end_ns, work, Shift()), work)
    assert found is not None
    assert found.last_hz / found.first_hz == pytest.approx(0.81, abs=0.02)
    steady = clock_run(
        hertz * 0 + 1.7e9, joined(samples.start_ns, samples.end_ns, work, Shift()), work
    )
    assert steady is not None
    assert steady.first_hz == steady.last_hz


def test_a_falling_clock_is_seen_where_no_sample_is_all_work() -> None:
    work = sequence([2000, 2000], [400, 400], 100)
    shape = sampled(work, [90.0, 90.0], 10_000)
    falling = np.linspace(2e9, 1.8e9, len(shape.values[0]))
    found = clock_run(falling, joined(shape.start_ns, shape.end_ns, work, Shift()), work)
    assert found is not None
    assert found.last_hz / found.first_hz == pytest.approx(0.92, abs=0.01)


def test_a_metric_during_inferences_is_the_mean_of_the_samples_with_their_middle_there() -> None:
    work = sequence([4000, 3000], [300, 0], 40)
    samples = sampled(work, [1.0, 1.0], 2000)
    values = np.random.default_rng(0).uniform(0, 9, (1, len(samples.start_ns)))[0]
    values[40:60] = np.nan
    means = []
    for repeat in range(40):
        rows = np.flatnonzero(work.repeat == repeat)
        begin, end = work.start_ns[rows].min(), work.end_ns[rows].max()
        inside = [
            value
            for low, high, value in zip(
                samples.start_ns.tolist(), samples.end_ns.tolist(), values.tolist(), strict=True
            )
            if begin <= (low + high) / 2 < end and np.isfinite(value)
        ]
        means += [np.mean(inside)] if inside else []
    found = during_inferences(values, joined(samples.start_ns, samples.end_ns, work, Shift()))
    assert found is not None
    assert 30 < found.inferences == len(means) < 40
    assert (found.mean, found.low, found.high) == pytest.approx(
        (np.mean(means), *np.quantile(means, (0.05, 0.95)))
    )
    nothing = during_inferences(
        values, joined(samples.start_ns + 10**9, samples.end_ns + 10**9, work, Shift())
    )
    assert nothing is None


def test_inferences_without_some_of_their_samples_do_not_count_where_others_have_all() -> None:
    work = sequence([40_000], [300], 30)
    samples = sampled(work, [1.0], 2000)
    middle = (samples.start_ns + samples.end_ns) // 2
    row = np.searchsorted(work.start_ns, middle, "right") - 1
    late = middle > work.start_ns[row] + 20_000
    values = np.where(late, 9.0, 1.0)
    for lost, inferences, mean in ((late & (row == 5), 29, 5.0), (late, 30, 1.0)):
        found = during_inferences(
            values[~lost], joined(samples.start_ns[~lost], samples.end_ns[~lost], work, Shift())
        )
        assert found is not None
        assert found.inferences == inferences
        assert found.mean == pytest.approx(mean, abs=0.3)


def test_activity_between_the_traces_work_is_someone_elses() -> None:
    work = sequence([20_000], [400_000], 30)
    samples = sampled(work, [90.0], 5000)
    quiet = others_work(
        samples.values[0], joined(samples.start_ns, samples.end_ns, work, Shift()), work
    )
    assert quiet is not None and quiet.active_share == 0
    busy = others_work(
        np.maximum(samples.values[0], 30.0),
        joined(samples.start_ns, samples.end_ns, work, Shift()),
        work,
    )
    assert busy is not None and (busy.active_share, busy.mean_percent) == (1.0, 30.0)


def test_the_frequency_is_the_lowest_that_tells_kernels_of_that_length_repeated_so_often() -> None:
    def chosen(length_ns: int, repeats: int) -> int:
        return frequency_for(sequence([length_ns] * 5, [1_000] * 5, repeats))

    assert chosen(40_000, 1000) == 10_000
    assert chosen(5_000, 500) == 20_000
    assert chosen(5_000, 50) == 50_000
    assert chosen(1_000, 50) == 200_000
    assert chosen(40_000, 3) == FASTEST_HZ  # too few repeats for any
    frequencies = [chosen(3_000, repeats) for repeats in (10, 50, 200, 1000, 10_000)]
    assert frequencies == sorted(frequencies, reverse=True)
    long = sequence([100_000, 500], [1_000, 1_000], 100)  # the short one hardly counts
    assert frequency_for(long) == 10_000
