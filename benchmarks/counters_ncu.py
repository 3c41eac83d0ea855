"""Counters by kernel, estimated from samples, against Nsight Compute's of the same program.

    python benchmarks/counters_ncu.py [REPORT ENGINE NCU]

By default a BERT that TensorRT for RTX built (fixtures/real_trt: a CUDA graph of 42 kernels, 150
inferences, 50 kHz), profiled by ncu with its caches emptied and its clocks left alone. Per metric
that can be compared: over how many kernels, the median difference in points, the root mean square
of difference over stated error, and how many of the stated errors' 95 % intervals hold ncu's
figure. Metrics that ncu only bounds: how many estimates are inside, with their 95 % error. And
without ncu: how far kernels of one name, grid and block are from their mean, in errors of the
samples (1 if these are right, if such kernels do the same work).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.core.table import FloatArray, IntArray
from nsysmap.inputs.ncu.report_file import read_ncu

REAL = Path(__file__).parent.parent / "fixtures" / "real_trt"
DEFAULT = (
    REAL / "gm_bert-graph.nsys-rep",
    REAL / "bert_eager.engine.json",
    REAL / "bert_eager.ncu.csv",
)
WITHIN = 1.96
BOUND = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
"""The busiest of the SM's units, issue slots and tensor cores among them."""


def main() -> None:
    """Print the tables."""
    report, engine, ncu = [Path(each) for each in sys.argv[1:4]] or DEFAULT
    found = analyze(report, engine, ncu=ncu)
    table = found.tables.ncu_kernels
    position = table.ints("position")
    columns = ("dram_read_percent", "dram_percent", "duration_ns", "ncu_duration_ns")
    corrected, whole, took, theirs = (table.floats(name)[position >= 0] for name in columns)
    position = position[position >= 0]
    longer = (
        f"{np.median(theirs / took):.2f} times the trace's, {np.median(theirs - took):.0f} ns"
        " longer"
    )
    print(f"{len(position)} kernels; ncu's durations are {longer} (medians)")
    print(
        f"{'against ncu':46s}{'kernels':>8s}{'median apart':>14s}{'rms z':>8s}{'within 95 %':>13s}"
    )
    for label, metric, exact in (
        ("DRAM reads, without what the cache holds", "dram_read", corrected),
        ("DRAM traffic as ncu counts it, caches emptied", "dram_read", whole),
        (
            "tensor cores, as ncu prints it",
            "tensor_active",
            table.floats("tensor_active")[table.ints("position") >= 0] * theirs / took,
        ),
    ):
        value, error, _ = estimated(found, metric, position)
        some = np.isfinite(exact) & np.isfinite(value)
        if some.any():
            away = (value - exact)[some]
            ratio = away / error[some]
            print(
                f"{label:46s}{some.sum():8d}{np.median(np.abs(away)):14.2f}{rms(ratio):8.2f}{np.mean(np.abs(ratio) <= WITHIN):13.0%}"  # noqa: E501
            )
    bounds = [each.get(BOUND) for each in read_ncu(ncu)]
    most = (
        np.array([np.nan if each is None else each.value for each in bounds])[
            table.ints("position") >= 0
        ]
        * theirs
        / took
    )
    for metric in ("sm_issue", "tensor_active"):
        value, error, _ = estimated(found, metric, position)
        some = np.isfinite(most)
        if some.any():
            inside = np.mean((value - WITHIN * error <= most)[some])
            print(
                f"{metric + ', at most the busiest unit':46s}{some.sum():8d}{'':22s}{inside:13.0%}"
            )
    print(
        f"\n{'kernels of one name, grid and block':46s}{'kernels':>8s}{'median error':>14s}{'rms z':>8s}"  # noqa: E501
    )
    names = [(each.name, each.grid, each.block) for each in read_ncu(ncu)]
    number = np.array([names.index(each) for each in names])[table.ints("position") >= 0]
    for metric in (
        "sm_active",
        "sm_issue",
        "tensor_active",
        "compute_warps",
        "dram_read",
        "dram_write",
    ):
        value, _, measured = estimated(found, metric, position)
        squares, free = 0.0, 0
        for one in np.unique(number).tolist():
            mine = number == one
            weight = 1 / measured[mine] ** 2
            squares += float(
                (weight * (value[mine] - np.average(value[mine], weights=weight)) ** 2).sum()
            )
            free += int(mine.sum()) - 1
        print(
            f"{metric:46s}{len(value):8d}{np.median(measured):14.2f}{np.sqrt(squares / max(free, 1)):8.2f}"  # noqa: E501
        )


def estimated(
    found: Analysis, metric: str, position: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By position the value, its error, and its error from the samples alone."""
    table = found.tables.kernel_counters
    mine = np.array([row.text("metric") == metric for row in table])
    last = int(max(table.ints("position").max(initial=0), position.max(initial=0))) + 1
    columns = np.full((3, last), np.nan)
    context = np.nan_to_num(table.floats("context_error")[mine])
    error = table.floats("error")[mine]
    own = np.sqrt(np.maximum(error**2 - context**2, 1e-12))
    columns[:, table.ints("position")[mine]] = table.floats("value")[mine], error, own
    value, whole, measured = columns[:, position]
    return value, whole, measured


def rms(values: FloatArray) -> float:
    """Their root mean square."""
    return float(np.sqrt(np.mean(values**2)))


if __name__ == "__main__":
    main()
