"""What is packed for the page is read back as it was, and small where rows are alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import MISSING
from nsysmap.output.page.packing import packed
from tests.page.reading import read

NUMBERS = st.integers(-(2**52), 2**52)


@given(st.lists(NUMBERS), st.lists(NUMBERS).map(sorted))
def test_columns_are_read_back_as_they_were(any_order: list[int], ascending: list[int]) -> None:
    given_columns = {
        "one": {"x": np.array(any_order, np.int64)},
        "other": {"y": np.array(ascending, np.int64)},
    }
    found = read(packed(given_columns))
    assert found["one"]["x"].tolist() == any_order
    assert found["other"]["y"].tolist() == ascending


def test_no_value_is_read_as_minus_one() -> None:
    assert read(packed({"t": {"x": np.array([3, MISSING, 0], np.int64)}}))["t"]["x"].tolist() == [
        3,
        -1,
        0,
    ]


def test_a_column_of_steps_takes_next_to_nothing() -> None:
    assert len(packed({"t": {"id": np.arange(100_000)}})) < 500
