"""Counters by kernel against the truth: samples made of known rates on the timelines of real
captures.

    python benchmarks/counter_rates.py [REPORT...] [--inferences N] [--hertz F...] [--runs N]
    [--seed N] [--noise POINTS] [--offset NS]
                                       [--most PERCENT] [--idle-end NS] [--as-recorded]

Each report's steady-state inferences are laid end to end, over and over, with other pauses each
time (as they ran, with --as-recorded); every kernel gets a rate, constant or rising or falling
within it, and with --idle-end none in its last ns, as on a GPU (the report's timestamps end some µs
after the last block did); samples are means over unequal intervals of a clock that is ahead and
drifts, with noise, some of them wild, and printed as nsys prints them.

Per frequency, of kernels that run alone: how many of the stated 90 % intervals hold the true rate,
and for what share of the values one is stated; the same of known values, and of layers of three
kernels; the mean difference (bias) of known values and of the others, root mean square of
difference over stated error of known values; and how many inferences it takes for kernels of a
length to be known.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.counters.clock_shift import clock_shift
from nsysmap.counters.estimate import Estimates, Values, estimate
from nsysmap.counters.model import GpuRan, Samples
from nsysmap.counters.sampled_work import repeated_work
from nsysmap.counters.well_known import WELL_KNOWN, bounded, may_be_bounded, well_known
from nsysmap.mapping.mapped_trace import map_report

FIXTURES = Path(__file__).parent.parent / "fixtures"
TIMELINES = (
    "bert_trt10/sync.nsys-rep",
    "bert_trt10/graph.nsys-rep",
    "aux_streams/graph.nsys-rep",
    "torch_encoder/graph.nsys-rep",
    "decode_loop/sync.nsys-rep",
)
HERTZ = (10_000, 20_000, 100_000, 200_000)
# of a kernel: the errors of others, in rare inferences, do not tell how many would do
FEWEST_RUNS = 5
MOST = 95.0  # the highest rate
MOST_IDLE = 0.4  # of a kernel's time, at its end
FEWEST = 30  # values: the mean of fewer is not printed
# share of a kernel's time in which other work runs: with more, rates are of both, and no interval
# is stated
ALONE = 0.05
LAYER = 3  # kernels, one after another
LENGTHS_US = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 1e9)
# an H100's noise is 0.03 to 2 points: the lower, the less it blurs rounding
OFFSET_NS, DRIFT, NOISE, WILD = (
    900.0,
    3e-6,
    0.4,
    0.002,
)


@dataclass(frozen=True)
class Found:
    """One timeline at one frequency."""

    estimates: Estimates
    true: FloatArray
    stated: BoolArray
    known: BoolArray
    layers: tuple[FloatArray, BoolArray]  # true rates, and which have an interval
    offset_off_ns: float
    offset_error_ns: float


@dataclass(frozen=True)
class Sampling:
    """How samples are made."""

    noise: float = NOISE
    offset_ns: float = OFFSET_NS
    idle_end_ns: float = 0.0
    most: float = MOST


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", nargs="*")
    parser.add_argument("--inferences", type=int, default=200)
    parser.add_argument("--hertz", type=int, nargs="*", default=HERTZ)
    parser.add_argument(
        "--runs", type=int, default=16, help="with other rates and other noise each"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first run's rates and noise")
    parser.add_argument(
        "--noise", type=float, default=NOISE, help="standard deviation of a sample, in points"
    )
    parser.add_argument(
        "--offset", type=float, default=OFFSET_NS, help="of the sampler's clock, in ns"
    )
    parser.add_argument(
        "--idle-end",
        type=float,
        default=0.0,
        help="ns without activity at the end of each kernel, at most 0.4 of it",
    )
    parser.add_argument(
        "--most",
        type=float,
        default=MOST,
        help="the highest rate: hardly used units scatter less than they are rounded",
    )
    parser.add_argument(
        "--as-recorded",
        action="store_true",
        help="the report's own times, whose period may keep step with the samples",
    )
    told_args = parser.parse_args()
    reports = told_args.reports or [str(FIXTURES / each) for each in TIMELINES]
    needed: dict[tuple[int, float], list[float]] = {}
    print(
        f"{'timeline':34s}{'kHz':>5s}{'held, of stated':>20s}{'held, of known':>20s}{'held, of layers':>20s}"  # noqa: E501
        f"{'bias':>7s}{'others bias':>13s}{'rms z':>7s}{'rms offset off ÷ error':>24s}"
    )
    for report in reports:
        timeline = (
            recorded(Path(report))
            if told_args.as_recorded
            else repeated(Path(report), told_args.inferences)
        )
        for hertz in told_args.hertz:
            cells: list[FloatArray] = []
            layers: list[FloatArray] = []
            for run in range(told_args.runs):
                made_as = Sampling(
                    told_args.noise, told_args.offset, told_args.idle_end, told_args.most
                )
                found = one(timeline, hertz, seed=told_args.seed + hertz + run, sampling=made_as)
                if found is None:
                    print(f"{name(report):34s}{hertz // 1000:5d}  the clocks cannot be joined")
                    continue
                estimate = found.estimates.by_metric[0]
                values = estimate.groups
                ran = np.isfinite(values.value) & (found.estimates.concurrent <= ALONE)
                away = values.value - found.true
                off = np.full(len(away), found.offset_off_ns / found.offset_error_ns)
                cells.append(
                    np.stack(
                        [
                            held(values, found.true),
                            found.stated,
                            found.known,
                            away,
                            away / values.error,
                            off,
                        ]
                    )[:, ran]
                )
                layers.append(np.stack([held(estimate.sets, found.layers[0]), found.layers[1]]))
                for length, count in inferences_needed(found, ran):
                    needed.setdefault((hertz, length), []).append(count)
            if cells:
                right, stated, known, away, over, off = np.concatenate(cells, axis=1)
                of_layers, stated_layers = np.concatenate(layers, axis=1)
                columns = [
                    share(right, stated),
                    share(right, known),
                    share(of_layers, stated_layers),
                ]
                print(
                    f"{name(report):34s}{hertz // 1000:5d}" + "".join(f"{each:>20s}" for each in columns)  # noqa: E501
                    + f"{mean(away[known > 0], '.2f'):>7s}{mean(away[known == 0], '.2f'):>13s}{rms(over[known > 0]):>7s}{rms(off):>24s}",  # noqa: E501
                    flush=True,
                )  # fmt: skip
    print("\ninferences for a kernel of this length to be known (median, and nine of ten):")
    print(f"{'kHz':>5s}" + "".join(f"{label(at):>16s}" for at in range(len(LENGTHS_US) - 1)))
    for hertz in told_args.hertz:
        counts = [needed.get((hertz, length), []) for length in LENGTHS_US[:-1]]
        shown = [
            f"{np.median(cell):.0f}, {np.quantile(cell, 0.9):.0f}" if len(cell) >= 5 else "–"
            for cell in counts
        ]
        print(f"{hertz // 1000:5d}" + "".join(f"{text:>16s}" for text in shown))


def name(report: str) -> str:
    """The last two parts of its path."""
    return "/".join(Path(report).parts[-2:])


def held(values: Values, true: FloatArray) -> BoolArray:
    """Whose intervals hold the true rate."""
    inside: BoolArray = (values.low <= true) & (true <= values.high)
    return inside


def share(right: FloatArray, some: FloatArray) -> str:
    """How many of some hold the truth, and how many these are."""
    return f"{mean(right[some > 0])} of {some.mean():.0%}"


def rms(values: FloatArray) -> str:
    """Their root mean square, if they are not too few."""
    return f"{np.sqrt(np.mean(values**2)):.2f}" if len(values) >= FEWEST else "–"


def mean(values: FloatArray, shape: str = ".1%") -> str:
    """Their mean, if they are not too few."""
    return format(values.mean(), shape) if len(values) >= FEWEST else "–"


def label(at: int) -> str:
    """The lengths of one column."""
    return (
        f"{LENGTHS_US[at]:.0f}+ µs"
        if LENGTHS_US[at + 1] > 1e6
        else f"{LENGTHS_US[at]:.0f}-{LENGTHS_US[at + 1]:.0f} µs"
    )


def recorded(report: Path) -> GpuRan:
    """The repeated work of a report."""
    mapped = map_report(report, [])
    return repeated_work(
        mapped.trace, mapped.kernels, mapped.inferences, mapped.found.of_call, 0
    ).work


def repeated(report: Path, inferences: int) -> GpuRan:
    """The repeated work of a report, its inferences one after another until there are that many."""
    work = recorded(report)
    random = np.random.default_rng(1)
    numbers = np.unique(work.repeat[(work.group >= 0) & (work.repeat >= 0)])
    parts: list[tuple[IntArray, IntArray, IntArray, int]] = []
    now = 1_000_000
    for repeat in range(inferences):
        rows = np.flatnonzero((work.repeat == numbers[repeat % len(numbers)]) & (work.group >= 0))
        start, end = work.start_ns[rows], work.end_ns[rows]
        now += int(random.integers(1_000, 20_000))
        parts.append((start - start.min() + now, end - start.min() + now, work.group[rows], repeat))
        now += int(end.max() - start.min())
    start, end, group = (np.concatenate([part[at] for part in parts]) for at in range(3))
    again = np.concatenate([np.full(len(part[0]), part[3]) for part in parts])
    order = np.argsort(start, kind="stable")
    return GpuRan(start[order], end[order], group[order], again[order], work.groups)


def one(work: GpuRan, hertz: int, *, seed: int, sampling: Sampling = Sampling()) -> Found | None:
    """Samples of that frequency, and what is made of them."""
    random = np.random.default_rng(seed)
    most = sampling.most / int(beside(work)) * (1 - MOST_IDLE if sampling.idle_end_ns else 1.0)
    true = np.where(
        random.random(work.groups) < 0.2, 0.0, random.uniform(min(2.0, most / 2), most, work.groups)
    )
    slope = (
        np.where(random.random(work.groups) < 0.5, 0.0, random.uniform(-0.4, 0.4, work.groups))
        * np.minimum(true, 100 - true)
        / 50
    )
    samples = made(work, true, slope, hertz, random, sampling)
    shift = clock_shift(samples, work, (0,))
    if shift is None:
        return None
    layer = np.arange(work.groups) // LAYER
    estimates = estimate(samples, work, shift, member_of=layer)
    middle = float(samples.start_ns.mean())
    off = float(shift.moved(np.array([int(middle)]))[0]) - (
        middle + sampling.offset_ns + DRIFT * middle
    )
    metric, layout = estimates.by_metric[0], estimates.layout
    spent = np.where(layout.executions > 0, layout.duration_ns * layout.executions, 0.0)
    time = np.maximum(np.bincount(layer, spent), 1e-9)
    few = np.full(len(time), 10**9)
    np.minimum.at(few, layer, layout.executions)
    concurrent = np.bincount(layer, spent * np.nan_to_num(estimates.concurrent)) / time
    layers = (
        np.bincount(layer, spent * true) / time,
        may_be_bounded(metric.sets.measured, concurrent) & (few >= FEWEST_RUNS),
    )
    return Found(
        estimates,
        true,
        bounded(estimates, metric),
        well_known(estimates, metric),
        layers,
        off,
        shift.error_ns,
    )


def beside(work: GpuRan) -> int:
    """How many kernels run at once at most: their rates add up to no more than 100 %."""
    moments = np.concatenate([work.start_ns, work.end_ns])
    change = np.repeat(np.array([1, -1]), len(work.start_ns))
    return int(np.cumsum(change[np.lexsort((change, moments))]).max())


def made(
    work: GpuRan,
    true: FloatArray,
    slope: FloatArray,
    hertz: int,
    random: np.random.Generator,
    sampling: Sampling,
) -> Samples:
    """Means over the samples of the sum over kernels of their rates, which change evenly from begin
    to end of each's activity.
    """
    period = 1e9 / hertz
    edges = np.arange(work.start_ns.min() - 50 * period, work.end_ns.max() + 50 * period, period)
    edges = edges + random.normal(0, 0.01 * period, len(edges))
    pieces = 8
    took = (work.end_ns - work.start_ns).astype(np.float64)
    active = np.maximum(took - sampling.idle_end_ns, (1 - MOST_IDLE) * took)
    length = active / pieces
    at = np.arange(pieces)
    begin = (work.start_ns[:, None] + length[:, None] * at).ravel()
    mean_rate = true[work.group] * took / np.maximum(active, 1.0)
    rate = (
        mean_rate[:, None] * (1 + slope[work.group][:, None] * ((at + 0.5) / pieces * 2 - 1))
    ).ravel()
    moments = np.concatenate([begin, begin + np.repeat(length, pieces)])
    order = np.argsort(moments, kind="stable")
    running = np.cumsum(np.concatenate([rate, -rate])[order])[:-1]
    total = np.concatenate([[0.0], np.cumsum(running * np.diff(moments[order]))])
    through = np.interp(edges, moments[order], total)
    values = np.diff(through) / np.diff(edges)
    values = np.where(
        values > 1e-9,
        np.clip(values + random.normal(0, sampling.noise, len(values)), 0.01, 100),
        0.0,
    )
    wild = random.random(len(values)) < WILD
    values[wild] = random.uniform(0, 100, int(wild.sum()))
    printed = np.where((values > 0) & (values < 1), 1.0, np.round(values))
    clock = np.round((edges - sampling.offset_ns) / (1 + DRIFT)).astype(np.int64)
    return Samples(clock[:-1], clock[1:], printed[None, :], ("sm_issue",), (True,), (None,))


def inferences_needed(found: Found, ran: BoolArray) -> Iterator[tuple[float, float]]:
    """For each kernel its class of length, and how many inferences make its value known."""
    values, layout = found.estimates.by_metric[0].groups, found.estimates.layout
    floor, falls = (
        values.rounding**2 + values.edges**2,
        values.sampling**2 + values.shape**2 + values.timing**2,
    )
    for group in np.flatnonzero(ran & (layout.executions >= FEWEST_RUNS)).tolist():
        if floor[group] < WELL_KNOWN**2:
            count = layout.executions[group] * falls[group] / (WELL_KNOWN**2 - floor[group])
            at = int(np.searchsorted(LENGTHS_US, layout.duration_ns[group] / 1e3, "right")) - 1
            yield LENGTHS_US[max(at, 0)], max(float(count), 10.0)


if __name__ == "__main__":
    main()
