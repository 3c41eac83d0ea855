"""Narrow integers: what is held in few bytes is what was given."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core import table
from nsysmap.core.memory import Narrow, compact, narrowed, small_codes, whole
from nsysmap.core.table import MISSING, Column, Spec, Table, Text

SPEC = Spec(
    "events",
    "",
    (
        Column("start_ns", "int", ""),
        Column("end_ns", "int", "", nullable=True),
        Column("row", "int", "", nullable=True),
        Column("name", "text", "", nullable=True),
    ),
)
any_integer = st.integers(-(2**63), 2**63 - 1)
few = st.sampled_from(
    [
        MISSING,
        MISSING + 1,
        -1,
        0,
        1,
        *(2**bits + off for bits in (8, 16, 32) for off in (-2, -1, 0)),
        2**63 - 1,
    ]
)


@given(
    st.lists(st.tuples(any_integer | few, any_integer | few), max_size=12), st.integers(-3, 2**33)
)
def test_narrow_integers_are_what_they_were(pairs: list[tuple[int, int]], apart: int) -> None:
    values, near = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    held = narrowed(values, None)
    if held is not None:
        assert held.codes.itemsize <= 4
        assert held.wide().tolist() == values.tolist()
        rows = np.arange(len(values))[::-2]
        assert held.take(rows).tolist() == values[rows].tolist()
        assert held.part(slice(1, 3)).wide().tolist() == values[1:3].tolist()
    close = np.where(near > 2**62, near, near + apart)
    beside = narrowed(close, near)
    if beside is not None:
        assert beside.wide().tolist() == close.tolist()


@given(st.lists(st.none() | st.integers(0, 2**20), min_size=1, max_size=12), st.integers(0, 2**62))
def test_times_are_held_by_how_far_they_are_from_the_start(
    lengths: list[int | None], begin: int
) -> None:
    start = begin + np.arange(len(lengths), dtype=np.int64) * 2**40
    end = np.array(
        [
            MISSING if length is None else int(at) + length
            for at, length in zip(start, lengths, strict=True)
        ],
        np.int64,
    )
    held = narrowed(end, start)
    assert held is None if all(length is None for length in lengths) else held is not None
    assert held is None or held.wide().tolist() == end.tolist()


def test_a_large_table_answers_as_a_small_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {
        "start_ns": np.arange(6) * 2**40,
        "end_ns": np.arange(6) * 2**40 + np.array([7, 300, 2**31, 0, 5, 9]),
        "row": np.array([MISSING, 4, 2, 0, 2**20, 1]),
        "name": Text.of(["a", None, "b", "a", "c", "c"]),
    }
    small = Table(SPEC, columns)
    monkeypatch.setattr(table, "_LARGE", 1)
    large = Table(SPEC, columns)
    assert [isinstance(held, Narrow) for held in large.columns.values()] == [
        False,
        True,
        True,
        False,
    ]
    assert [held.codes.dtype for held in large.columns.values() if isinstance(held, Text)] == [
        np.int8
    ]
    assert large.text("name").codes.dtype == np.int32
    assert large.records() == small.records()
    assert large.arrow().to_pylist() == small.arrow().to_pylist()
    assert large.take(np.array([5, 0])).records() == small.take(np.array([5, 0])).records()
    assert large.part(2, 4).records() == small.part(2, 4).records()
    assert (
        large.with_columns(SPEC, {"row": np.zeros(6, np.int64)}).ints("end_ns").tolist()
        == columns["end_ns"].tolist()
    )
    assert large.pandas().equals(small.pandas())


@pytest.mark.parametrize("value", [0, 7, -(2**62), MISSING])
def test_one_value_throughout_takes_no_memory(value: int) -> None:
    values = np.full(1000, value)
    held = compact(values)
    assert isinstance(held, Narrow)
    assert held.codes.strides == (0,)
    assert whole(held).tolist() == values.tolist()
    assert held.take(np.array([3, 999])).tolist() == [value, value]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_what_is_compact_is_what_was_given(given_values: list[int]) -> None:
    assert whole(compact(np.array(given_values, np.int64))).tolist() == given_values


@pytest.mark.parametrize(
    ("values", "kind"),
    [(0, np.int8), (127, np.int8), (128, np.int16), (32767, np.int16), (32768, np.int32)],
)
def test_codes_of_texts_take_as_few_bytes_as_they_need(values: int, kind: type) -> None:
    codes = np.array([values - 1, -1, min(values - 1, 0)], np.int32)
    held = small_codes(codes, values)
    assert held.dtype == kind
    assert held.tolist() == codes.tolist()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc",
    reason="mallopt is glibc's",
)
@pytest.mark.parametrize("gives_back", [False, True])
def test_freed_memory_is_kept_but_for_large_arrays_of_a_large_report(gives_back: bool) -> None:
    program = f"""
import numpy as np
from nsysmap.core.memory import give_back_large_arrays, keep_freed_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
keep_freed_memory()
if {gives_back}:
    give_back_large_arrays()
large = np.ones(1 << 27, np.uint8)
held = resident()
del large
print(held - resident() > 1 << 26)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(gives_back)
