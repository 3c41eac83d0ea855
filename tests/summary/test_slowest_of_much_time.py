"""The slowest repetition is one of a kind that takes time."""

from __future__ import annotations

import pytest

from nsysmap.answer.slowest import _of_much_time
from nsysmap.core.report_schema import INFERENCE_TIMES
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES


@pytest.mark.parametrize(
    ("found_by", "piece_ns", "kept"),
    [
        ("period", 40, [0, 1, 2, 3]),  # 120 of 40,120 ns, one of them 200 times as long
        ("period", 400, [0, 1, 2, 3, 4, 5, 6]),
        ("range", 40, [0, 1, 2, 3, 4, 5, 6]),  # what the program marks is never a piece
    ],
)
def test_a_kind_that_takes_next_to_nothing_has_no_slowest(
    found_by: str, piece_ns: int, kept: list[int]
) -> None:
    inferences = Table.of_rows(
        INFERENCES, [{"inference": number, "found_by": found_by} for number in range(7)]
    )
    rows = [(0, 10_000, 1.0)] * 4 + [(1, piece_ns, 1.0), (1, piece_ns, 1.0)]
    rows.append((1, 200 * piece_ns, 200.0))
    times = Table.of_rows(
        INFERENCE_TIMES,
        [
            {"inference": number, "group_id": group, "time_ns": ns, "times_median": longer}
            for number, (group, ns, longer) in enumerate(rows)
        ],
    )
    left = _of_much_time({"inferences": inferences}, times)
    assert left.ints("inference").tolist() == kept
