"""Sums over all kernels of a trace."""

from __future__ import annotations

import pytest

from nsysmap.core.result_schema import KERNEL_TOTALS
from nsysmap.core.table import MISSING, Table
from nsysmap.timing.totals import by_family, in_steady_part
from nsysmap.trace.inferences.steady import steady_inferences
from tests.reports import analysis


def test_families_come_by_their_time_most_first_and_by_name_where_that_is_the_same() -> None:
    rows = [("a", "xmma", 2, 30), ("b", "cudnn", 1, 50), ("c", "xmma", 4, 30), ("d", "cub", 1, 50)]
    totals = Table.of_rows(
        KERNEL_TOTALS,
        [
            {"name": name, "family": family, "count": count, "time_ns": time_ns}
            for name, family, count, time_ns in rows
        ],
    )
    found = [tuple(row.values()) for row in by_family(totals).records()]
    assert found == [
        ("xmma", 2, 6, 60, 60 / 160),
        ("cub", 1, 1, 50, 50 / 160),
        ("cudnn", 1, 1, 50, 50 / 160),
    ]


@pytest.mark.parametrize(
    ("capture", "report"),
    [
        ("torch_mixed", "sync.nsys-rep"),
        ("decode_loop", "sync.nsys-rep"),
        ("bert_trt10", "sync.sqlite"),
    ],
)
def test_the_shares_of_layers_of_all_engines_and_of_other_kernels_add_up_to_one(
    capture: str, report: str
) -> None:
    tables = analysis(capture, report, engine=capture == "bert_trt10").tables
    steady = tables.kernels.take(
        in_steady_part(tables.kernels, steady_inferences(tables.inferences))
    )
    other = steady.take(steady.ints("layer_id") == MISSING)
    shares = (
        tables.repeated_layers.floats("share_of_all_kernel_time").sum()
        + tables.other_kernels.floats("share_of_all_kernel_time").sum()
    )
    assert shares == pytest.approx(1)
    assert tables.other_kernels.ints("kernels").sum() == len(other)
    assert (
        tables.other_kernels.ints("time_ns").sum()
        == (other.ints("end_ns") - other.ints("start_ns")).sum()
    )
