"""Kernel time by layer, part and name: it adds up, whoever the kernel belongs to."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.groups import numbered
from nsysmap.core.result_schema import KERNEL_TIME, KERNELS
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.timing.kernel_time import combinations, kernel_time

IDS = st.one_of(st.just(MISSING), st.integers(0, 5))


@given(st.lists(st.tuples(IDS, IDS, st.integers(-1, 3)), min_size=1, max_size=60))
def test_combinations_are_those_of_the_general_way(rows: list[tuple[int, int, int]]) -> None:
    columns = tuple(np.array(column, np.int64) for column in zip(*rows, strict=True))
    keys, number = combinations(*columns)
    wanted, other = numbered(*columns)
    assert [tuple(int(key[place]) for key in keys) for place in number] == rows
    assert sorted(zip(*(key.tolist() for key in keys), strict=True)) == sorted(
        zip(*(key.tolist() for key in wanted), strict=True)
    )
    assert len(set(number.tolist())) == len(set(other.tolist()))


@given(
    st.lists(
        st.tuples(IDS, st.sampled_from(["a", "b"]), st.integers(0, 100), IDS),
        min_size=1,
        max_size=40,
    ),
    st.booleans(),
)
def test_time_is_that_of_the_kernels_of_the_measured_inferences(
    rows: list[tuple[int, str, int, int]], some: bool
) -> None:
    kernels = Table.of_rows(
        KERNELS,
        [
            {
                "start_ns": 10, "end_ns": 10 + spent, "name": name,
                "layer_id": None if layer == MISSING else layer,
                "engine": None if layer == MISSING else 0,
                "inference": None if inference == MISSING else inference,
            }
            for layer, name, spent, inference in rows
        ],
    )  # fmt: skip
    inferences = Table.of_rows(
        INFERENCES, [{"inference": number, "engine": 0} for number in range(6)]
    )
    steady = np.array([1, 3] if some else [], np.int64)
    found = kernel_time(kernels, inferences, steady)
    counted = [spent for _, _, spent, inference in rows if inference in (1, 3) or not some]
    assert found.ints("time_ns").sum() == sum(counted)
    assert found.ints("kernels").sum() == len(counted)
    if sum(counted):
        engines = {row["engine"] for row in found.records() if row["time_ns"]}
        assert round(found.floats("share_of_kernel_time").sum(), 9) == len(engines)


def test_a_kernel_without_a_layer_counts_for_the_engine_of_its_inference() -> None:
    kernels = Table.of_rows(KERNELS, [{"start_ns": 0, "end_ns": 5, "name": "k", "inference": 0}])
    inferences = Table.of_rows(INFERENCES, [{"inference": 0, "engine": 1}])
    (row,) = kernel_time(kernels, inferences, np.array([0])).records()
    assert (row["engine"], row["layer_id"], row["inferences"], row["share_of_kernel_time"]) == (
        1,
        None,
        1,
        1.0,
    )


def test_no_kernels_give_no_rows() -> None:
    assert len(
        kernel_time(Table.empty(KERNELS), Table.empty(INFERENCES), np.array([], np.int64))
    ) == len(Table.empty(KERNEL_TIME))
