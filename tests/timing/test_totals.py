"""Sums over all kernels of a trace."""

from __future__ import annotations

from nsysmap.base.result_schema import KERNEL_TOTALS
from nsysmap.base.table import Table
from nsysmap.timing.totals import by_family


def test_families_come_by_their_time_most_first_and_by_name_where_that_is_the_same() -> None:
    rows = [("a", "xmma", 2, 30), ("b", "cudnn", 1, 50), ("c", "xmma", 4, 30), ("d", "cub", 1, 50)]
    totals = Table.of_rows(
        KERNEL_TOTALS, [{"name": name, "family": family, "count": count, "time_ns": time_ns} for name, family, count, time_ns in rows]
    )
    found = [tuple(row.values()) for row in by_family(totals).records()]
    assert found == [("xmma", 2, 6, 60, 60 / 160), ("cub", 1, 1, 50, 50 / 160), ("cudnn", 1, 1, 50, 50 / 160)]
