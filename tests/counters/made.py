"""Small repeated sequences of kernels and counter samples of them, made by the obvious loop."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsysmap.counters.model import GpuRan, Samples

Array = NDArray[np.float64]


def sequence(durations: list[int], gaps: list[int], repeats: int, *, seed: int = 0) -> GpuRan:
    """Kernels of these lengths with these pauses before them, repeated with a little jitter in the
    pauses.
    """
    random = np.random.default_rng(seed)
    start, end, group, repeat = [], [], [], []
    now = 50_000
    for number in range(repeats):
        for at, (duration, gap) in enumerate(zip(durations, gaps, strict=True)):
            now += gap + int(random.integers(0, 300))
            start.append(now)
            now += duration
            end.append(now)
            group.append(at)
            repeat.append(number)
        now += int(random.integers(200, 9000))
    return GpuRan(np.array(start), np.array(end), np.array(group), np.array(repeat), len(durations))


def sampled(
    work: GpuRan,
    rates: list[float],
    period: int,
    *,
    noise: float = 0.0,
    seed: int = 0,
    offset: int = 0,
    percent: bool = True,
) -> Samples:
    """Means over samples of that length, sample by sample and kernel by kernel."""
    random = np.random.default_rng(seed)
    edges = np.arange(0, int(work.end_ns.max()) + 20 * period, period)
    values = np.zeros(len(edges) - 1)
    for begin, finish, group in zip(
        work.start_ns.tolist(), work.end_ns.tolist(), work.group.tolist(), strict=True
    ):
        rate = rates[group] if group >= 0 else 77.0
        for at in range(begin // period, finish // period + 1):
            overlap = min(finish, (at + 1) * period) - max(begin, at * period)
            values[at] += rate * max(overlap, 0) / period
    values += random.normal(0, noise, len(values)) if noise else 0.0
    return Samples(
        edges[:-1] - offset, edges[1:] - offset, values[None, :], ("sm_issue",), (percent,), (None,)
    )


def dense(work: GpuRan, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Array:
    """The share of each sample that each group's kernels take, and of time without work: by the
    obvious loops.
    """
    matrix = np.zeros((len(starts), work.groups + 1))
    for row, (low, high) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        busy = np.zeros(high - low, np.bool_)
        for begin, finish, group in zip(
            work.start_ns.tolist(), work.end_ns.tolist(), work.group.tolist(), strict=True
        ):
            left, right = max(begin, low), min(finish, high)
            if right > left:
                busy[left - low : right - low] = True
                if group >= 0:
                    matrix[row, group] += (right - left) / (high - low)
        matrix[row, -1] = 1 - busy.mean()
    return matrix


def non_negative_least_squares(matrix: Array, target: Array, upper: float) -> Array:
    """By projected gradients: slow and plain."""
    gram, right = matrix.T @ matrix, matrix.T @ target
    step = 1.0 / max(float(np.linalg.eigvalsh(gram).max()), 1e-12)
    answer = np.zeros(matrix.shape[1])
    for _ in range(20_000):
        answer = np.clip(answer - step * (gram @ answer - right), 0, upper)
    return answer
