"""On a real encoder's counters: against Nsight Compute's, against arithmetic, and of two captures
against one another.
"""

from __future__ import annotations

import lzma
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nsysmap.counters.clock_shift import clock_shift
from nsysmap.counters.estimate import Estimates, estimate
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.ncu_match import SequenceKernel, match_kernels
from nsysmap.counters.well_known import well_known
from nsysmap.inputs.ncu.printed import read_ncu_csv
from nsysmap.inputs.nsys.sqlite_columns import sqlite_tables
from nsysmap.names.metric_names import ACTIVITY, PREFERRED
from nsysmap.trace.gpu_metrics import read_gpu_metrics
from tests.counters.amounts import tensor_cycles, tensor_operations
from tests.counters.from_ncu import FromTrace, from_ncu
from tests.places import CAPTURES

SHARED = CAPTURES / "gpu_metrics"
KERNELS = 60
BANDWIDTH = 3_352_320_000_000
L2_BYTES = 52_428_800
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="without ../shared")


@dataclass(frozen=True)
class Capture:
    estimates: Estimates
    shift: Shift
    sequence: list[SequenceKernel]


def work_of(path: Path, skip: int) -> tuple[GpuRan, list[SequenceKernel]]:
    """Kernels and memsets of every inference, by their place in it."""
    with closing(sqlite3.connect(path)) as connection:
        kernels = np.array(
            connection.execute(
                "SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start"
            ).fetchall()
        )[skip:]
        memsets = np.array(
            connection.execute(
                "SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMSET ORDER BY start"
            ).fetchall()
        )
        named = connection.execute(
            "SELECT value, gridX, gridY, gridZ, blockX, blockY, blockZ FROM CUPTI_ACTIVITY_KIND_KERNEL k "  # noqa: E501
            "JOIN StringIds s ON s.id = k.demangledName ORDER BY k.start LIMIT ? OFFSET ?",
            (KERNELS, skip),
        ).fetchall()  # fmt: skip
    inferences = len(kernels) // KERNELS
    each = len(memsets) // inferences
    group = np.concatenate(
        [np.tile(np.arange(KERNELS), inferences), KERNELS + np.tile(np.arange(each), inferences)]
    )
    repeat = np.concatenate(
        [np.repeat(np.arange(inferences), KERNELS), np.repeat(np.arange(inferences), each)]
    )
    both = np.concatenate([kernels, memsets])
    order = np.argsort(both[:, 0], kind="stable")
    work = GpuRan(both[order, 0], both[order, 1], group[order], repeat[order], KERNELS + each)
    return work, [SequenceKernel(row[0], row[1:4], row[4:7]) for row in named]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Capture]:
    found = {}
    for mode, skip in (("eager", 0), ("graph", 2)):
        path = tmp_path_factory.mktemp("gpu_metrics") / f"{mode}.sqlite"
        with lzma.open(SHARED / f"{mode}.sqlite.xz") as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file)
        (gpu,) = read_gpu_metrics(sqlite_tables(path))
        rows = [
            row
            for row, each in enumerate(gpu.metrics)
            if each.meaning in PREFERRED and each.unit in ("percent", "hertz")
        ]
        names = tuple(gpu.metrics[row].meaning for row in rows)
        clock = names.index("gpc_clock")
        samples = Samples(
            gpu.start_ns, gpu.end_ns, gpu.values[rows], names,
            tuple(gpu.metrics[row].unit == "percent" for row in rows),
            tuple(clock if gpu.metrics[row].clock == "gpc" else None for row in rows),
        )  # fmt: skip
        work, sequence = work_of(path, skip)
        shift = clock_shift(samples, work, tuple(names.index(each) for each in ACTIVITY))
        assert shift is not None
        found[mode] = Capture(estimate(samples, work, shift), shift, sequence)
    return found


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_every_kernel_is_told_and_the_clocks_agree(captures: dict[str, Capture], mode: str) -> None:
    capture = captures[mode]
    assert abs(capture.shift.offset_ns) < 300
    assert capture.shift.drift == 0
    for metric in ("sm_active", "tensor_active", "dram_read", "dram_write"):
        each = capture.estimates.of(metric)
        assert each is not None
        assert well_known(capture.estimates, each)[:KERNELS].all()


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_counters_are_those_of_nsight_compute(captures: dict[str, Capture], mode: str) -> None:
    capture = captures[mode]
    held = {
        each: capture.estimates.of(each)
        for each in ("gpc_clock", "tensor_active", "dram_read", "dram_write")
    }
    clock, tensor, read, write = (each.groups for each in held.values() if each is not None)
    profiled = read_ncu_csv(SHARED / "ncu.csv")
    matched = match_kernels(profiled, capture.sequence)
    assert matched.group.tolist() == list(range(KERNELS))
    assert matched.turns == 6  # the encoder has six like blocks
    duration_ns = capture.estimates.layout.duration_ns[:KERNELS]
    found = from_ncu(
        profiled,
        matched,
        FromTrace(duration_ns, clock.value[:KERNELS], tensor.value[:KERNELS], float(BANDWIDTH)),
    )
    from_samples, dram = tensor.value[:KERNELS], (read.value + write.value)[:KERNELS]
    assert np.median(np.abs(from_samples - found.tensor_as_printed)) < 1.0
    assert np.median(np.abs(from_samples - found.tensor)) < 0.6
    assert np.sqrt(np.mean(((from_samples - found.tensor) / tensor.error[:KERNELS]) ** 2)) < 1.5
    # of peak, each over its own duration
    assert np.median(np.abs(dram - found.dram_as_printed)) < 8.0
    in_ncus_time = dram * duration_ns / found.ncu_duration_ns
    assert np.median(np.abs(in_ncus_time - found.dram_as_printed)) < 8.0  # ncu's caches are cold


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_traffic_to_memory_is_nsight_computes_over_runs_of_kernels_that_fill_the_cache(
    captures: dict[str, Capture], mode: str
) -> None:
    """Within less, the cache decides which kernel's data goes to memory; and ncu emptied it before
    each kernel.
    """
    capture = captures[mode]
    clock, tensor, read, write = (
        capture.estimates.of(each)
        for each in ("gpc_clock", "tensor_active", "dram_read", "dram_write")
    )
    assert clock is not None and tensor is not None and read is not None and write is not None
    profiled = read_ncu_csv(SHARED / "ncu.csv")
    matched = match_kernels(profiled, capture.sequence)
    duration_ns = capture.estimates.layout.duration_ns[:KERNELS]
    trace = FromTrace(
        duration_ns, clock.groups.value[:KERNELS], tensor.groups.value[:KERNELS], float(BANDWIDTH)
    )
    found = from_ncu(profiled, matched, trace)
    dram = (read.groups.value + write.groups.value)[:KERNELS]
    moved = dram / 100 * duration_ns / 1e9 * BANDWIDTH
    apart = []
    for first in range(KERNELS):
        last = first + int(np.searchsorted(np.cumsum(moved[first:]), L2_BYTES)) + 1
        if last <= KERNELS:
            run = slice(first, last)
            ncus = (found.dram_as_printed[run] * found.ncu_duration_ns[run]).sum() / duration_ns[
                run
            ].sum()  # the same bytes in the trace's time
            apart.append(np.average(dram[run], weights=duration_ns[run]) - ncus)
    assert len(apart) > 50
    assert np.median(np.abs(apart)) < 3.0


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_tensor_cores_do_the_operations_of_the_matrix_products(
    captures: dict[str, Capture], mode: str
) -> None:
    """8 x 384 tokens of 768 features, four products a block, at 4096 operations a cycle and SM."""
    capture = captures[mode]
    tensor, clock = capture.estimates.of("tensor_active"), capture.estimates.of("gpc_clock")
    assert tensor is not None and clock is not None
    done = tensor_operations(
        tensor_cycles(capture.estimates, tensor.groups, clock.groups), 132, 4096
    ).value
    for place, features in ((0, 768 * 2304), (2, 768 * 768), (5, 768 * 3072), (7, 3072 * 768)):
        assert np.allclose(done[place:KERNELS:10], 2 * 8 * 384 * features, rtol=0.01)


def test_both_captures_give_the_same_amounts(captures: dict[str, Capture]) -> None:
    """Two runs, two frequencies, launched one by one and as a graph: the same cycles within the
    stated errors.
    """
    for metric, agrees in (("sm_issue", 1.5), ("tensor_active", 2.0), ("compute_warps", 2.5)):
        amounts = []
        for capture in captures.values():
            each, clock = capture.estimates.of(metric), capture.estimates.of("gpc_clock")
            assert each is not None and clock is not None
            amounts.append(tensor_cycles(capture.estimates, each.groups, clock.groups))
        apart = (amounts[0].value - amounts[1].value)[:KERNELS] / np.hypot(
            amounts[0].error, amounts[1].error
        )[:KERNELS]
        assert np.sqrt(np.mean(apart**2)) < agrees


def test_both_captures_give_the_same_percentages(captures: dict[str, Capture]) -> None:
    """What hangs on how kernels are launched, and on where memory was allocated, is in the errors,
    too.
    """
    for metric in (
        "sm_active",
        "sm_issue",
        "tensor_active",
        "compute_warps",
        "dram_read",
        "dram_write",
    ):
        one, other = (capture.estimates.of(metric) for capture in captures.values())
        assert one is not None and other is not None
        apart = (one.groups.value - other.groups.value)[:KERNELS] / np.hypot(
            one.groups.error, other.groups.error
        )[:KERNELS]
        assert np.sqrt(np.mean(apart**2)) < 1.5
