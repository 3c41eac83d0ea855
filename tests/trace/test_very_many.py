"""Very many streams, threads and processes: what is worked out for all at once is what each of them
has alone.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.groups import distinct, numbered, rows_by_value
from nsysmap.core.table import MISSING, IntArray
from nsysmap.trace.inferences import periods
from nsysmap.trace.inferences.launch_order import launch_time
from nsysmap.trace.inferences.periods import find_periods
from nsysmap.trace.inferences.repeats import ONE_KERNEL, LaunchedKernels, cut_inferences
from nsysmap.trace.model import Trace
from tests.nsys_file import PROCESS, THREAD, NsysFile
from tests.reports import read_trace

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


@given(
    st.integers(0, 5),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 10**9),
    st.booleans(),
    st.none() | st.integers(1, 9),
)
def test_one_kernel_is_one_inference_whatever_it_is(
    code: int, syncs: int, copies: int, gap: int, replayed: bool, expected: int | None
) -> None:
    codes, waits, copied, gaps = (np.array([one], np.int64) for one in (code, syncs, copies, gap))
    launches = LaunchedKernels(codes, waits, copied, gaps, replayed=replayed)
    found = cut_inferences(launches, expected=expected)
    for name, held in vars(found).items():
        assert np.array_equal(held, vars(ONE_KERNEL)[name]), name


def traced(seed: int, folder: Path) -> Trace:
    """Kernels of few names on some streams of some threads and processes, many of them alone."""
    chance, made = random.Random(seed), NsysFile()
    for one in range(chance.randint(1, 60)):
        process = PROCESS + (chance.randrange(4) << 24)
        thread = THREAD - PROCESS + process + chance.randrange(3)
        if chance.random() < 0.2:
            made.call("cudaStreamSynchronize_v3020", one * 20 - 6, one * 20 - 2, 0, thread=thread)
        made.launch(f"k{chance.randrange(3)}", one * 20, one + 1, thread=thread)
        made.rows[KERNEL][-1]["streamId"] = chance.choice((1, 1, 1, 2, 3 + one))
        made.rows[KERNEL][-1]["contextId"] = chance.choice((1, 1, 2))
    return read_trace(made.write(folder / f"{seed}.sqlite"))


def one_by_one(trace: Trace) -> tuple[IntArray, IntArray, list[int], list[bool]]:
    """Inference and slot of each kernel, shape and completeness of each inference: the streams cut,
    put together and numbered in turn.
    """
    kernels, time = trace.kernels, launch_time(trace.kernels)
    known = periods._OfAllStreams(
        trace,
        time,
        periods._by_thread(trace, periods.waits_of(trace)),
        periods._by_thread(trace, periods.copies_of(trace)),
        None,
    )
    columns = [kernels.ints(name) for name in ("process", "context", "stream")]
    alone = [periods._group(known, rows) for _, rows in rows_by_value(numbered(*columns)[1])]
    sets: list[list[int]] = []
    for at, group in enumerate(alone):
        feeder = {tuple(int(kernels.ints(name)[row]) for name in FED_BY) for row in group.rows}
        begin, end = time[group.rows].min(), time[group.rows].max()
        found = [
            place
            for place, members in enumerate(sets)
            for other in members
            if len(feeder) == 1
            and {
                tuple(int(kernels.ints(name)[row]) for name in FED_BY) for row in alone[other].rows
            }
            == feeder
            and time[alone[other].rows].min() <= end
            and time[alone[other].rows].max() >= begin
            and periods._overlap(time, group, alone[other])
        ]
        if found:
            sets[min(found)].append(at)
        else:
            sets.append([at])
    inference = np.full(len(kernels), MISSING, np.int64)
    slot = np.full(len(kernels), MISSING, np.int64)
    told: list[tuple[int, int, bool]] = []  # begin, shape, complete
    shapes = 0
    for members in sets:
        rows = np.concatenate([alone[member].rows for member in members])
        group = alone[members[0]] if len(members) == 1 else periods._group(known, rows)
        pieces = group.pieces
        for place, (row, of) in enumerate(zip(group.rows, pieces.inference.tolist(), strict=True)):
            if of >= 0:
                inference[row] = len(told) + of
                slot[row] = place - pieces.start[of] + pieces.offset[of]
        told += [
            (int(time[group.rows[start]]), int(shape) + shapes, bool(whole))
            for start, shape, whole in zip(pieces.start, pieces.shape, pieces.complete, strict=True)
        ]
        shapes += int(pieces.shape.max(initial=-1)) + 1
    order = sorted(range(len(told)), key=lambda one: told[one][0])
    number = {old: new for new, old in enumerate(order)} | {MISSING: MISSING}
    anew = np.array([number[one] for one in inference.tolist()], np.int64)
    return anew, slot, [told[one][1] for one in order], [told[one][2] for one in order]


FED_BY = ("process", "context", "thread")


@pytest.mark.parametrize("seed", range(12))
def test_streams_together_are_cut_as_each_alone(seed: int, tmp_path: Path) -> None:
    trace = traced(seed, tmp_path)
    found = find_periods(trace)
    inference, slot, shape, complete = one_by_one(trace)
    assert np.array_equal(found.inference, inference)
    assert np.array_equal(found.slot, slot)
    assert found.shape.tolist() == shape
    assert found.complete.tolist() == complete
    assert distinct(found.inference[found.inference != MISSING]).tolist() == list(range(len(shape)))
