"""The vectorised decoder gives what a plain one gives, for every message; what is no message is an
error.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core.table import MISSING
from nsysmap.inputs.nsys import report_wire
from nsysmap.inputs.nsys.report_wire import BufferParts, Message, WireError, padded, split, walk
from tests.made_report import message, varint

NUMBERS = st.one_of(
    st.integers(0, 300),
    st.integers(0, 2**64 - 1),
    st.sampled_from([2**7, 2**14 - 1, 2**56 - 1, 2**56, 2**63, 2**63 - 1]),
)
FIELD = st.tuples(st.integers(1, 40), st.one_of(NUMBERS, st.binary(max_size=20)))
MESSAGES = st.lists(st.lists(FIELD, max_size=8), min_size=1, max_size=12)


@given(NUMBERS)
def test_a_number_comes_back(value: int) -> None:
    assert report_wire.varint(b"x" + varint(value), 1) == (value, 1 + len(varint(value)))


def test_a_number_without_an_end_is_an_error() -> None:
    with pytest.raises(WireError, match="does not end"):
        report_wire.varint(b"\xff" * 20, 0)


@pytest.mark.parametrize("together", [64, 0, 3])  # then field by field
@given(MESSAGES)
@settings(max_examples=100, deadline=None)
def test_many_at_once_are_read_as_one_by_one(
    together: int, rows: list[list[tuple[int, int | bytes]]]
) -> None:
    kinds = {number: type(value) for row in reversed(rows) for number, value in reversed(row)}
    rows = [
        [(number, value) for number, value in row if kinds[number] is type(value)] for row in rows
    ]
    parts = [message(*row) for row in rows]
    ends = np.cumsum([len(part) for part in parts])
    spans = BufferParts(ends - [len(part) for part in parts], ends)
    data = b"".join(parts)
    forms: dict[int, report_wire.Form] = {
        number: "bytes" if kind is bytes else "number" for number, kind in kinds.items()
    }
    with patch.object(report_wire, "_STEPS_TOGETHER", together):
        read = walk(padded(data), spans, forms)
    for number, kind in kinds.items():
        expected = [
            next((value for field, value in reversed(row) if field == number), None) for row in rows
        ]
        if kind is bytes:
            begins, behind = read.spans[number].begin.tolist(), read.spans[number].end.tolist()
            assert [
                None if first < 0 else data[first:last]
                for first, last in zip(begins, behind, strict=True)
            ] == expected
        else:
            got = [
                None if value == MISSING and held != 2**63 else value % 2**64
                for value, held in zip(read.numbers[number].tolist(), expected, strict=True)
            ]
            assert got == expected


@given(st.binary(min_size=1, max_size=60), MESSAGES)
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_message_or_an_error(
    noise: bytes, rows: list[list[tuple[int, int | bytes]]]
) -> None:
    data = message(*rows[0]) + noise
    whole = BufferParts(np.array([0]), np.array([len(data)]))
    try:
        expected = Message.of(data)
    except WireError:
        expected = None
    try:
        read = walk(padded(data), whole, {})
    except WireError:
        read = None
    assert expected is None or read is not None, "the plain decoder reads it, the fast one does not"


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=30))
@pytest.mark.parametrize("window", [1 << 20, 1, 100])
@settings(deadline=None)
def test_messages_in_a_message_are_found(window: int, held: list[tuple[int, bytes]]) -> None:
    data = message(*held)
    buffer = padded(b"before" + data)
    with patch.object(report_wire, "_WINDOW_BYTES", window):
        tags, spans = split(buffer, 6, 6 + len(data), (0x0A, 0x12), 1000)
    found = [
        (tag >> 3, bytes(buffer[begin:end]))
        for tag, begin, end in zip(
            tags.tolist(), spans.begin.tolist(), spans.end.tolist(), strict=True
        )
    ]
    assert found == held


split_up = st.lists(
    st.tuples(st.sampled_from((0x0A, 0x12)), st.binary(max_size=5)), min_size=1, max_size=6
).map(lambda parts: b"".join(bytes((tag, len(part))) + part for tag, part in parts))


@given(
    st.one_of(
        st.binary(min_size=1, max_size=80),
        split_up,
        st.tuples(split_up, st.binary(max_size=2)).map(b"".join),
    )
)
def test_what_does_not_split_is_an_error(data: bytes) -> None:
    try:
        expected = [(number, value) for number, value in report_wire.fields(data)]
    except WireError:
        expected = None
    if expected is not None and any(
        not isinstance(value, bytes) or number not in (1, 2) or data[0] & 7 != 2
        for number, value in expected
    ):
        expected = None
    try:
        tags, _ = split(padded(data), 0, len(data), (0x0A, 0x12), 1000)
        with patch.object(report_wire, "_WINDOW_BYTES", 3):
            again, _ = split(padded(data), 0, len(data), (0x0A, 0x12), 1000)
    except WireError:
        return
    assert tags.tolist() == again.tolist()
    assert expected is not None and len(tags) == len(expected)


def test_a_message_of_very_many_fields_is_an_error_soon() -> None:
    data = message(*((number % 15 + 1, 1) for number in range(200_000)))
    with pytest.raises(WireError, match="more than"):
        walk(padded(data), BufferParts(np.array([0]), np.array([len(data)])), {})


def test_a_field_of_another_type_is_an_error() -> None:
    data = message((3, b"text"))
    with pytest.raises(WireError, match="field 3 of wire type 2 where 0 is expected"):
        walk(padded(data), BufferParts(np.array([0]), np.array([len(data)])), {3: "number"})


def test_packed_numbers_are_read_as_repeated_ones() -> None:
    assert Message.of(message((1, 12), (1, 123))).numbers(1) == [12, 123]
    assert Message.of(message((1, varint(12) + varint(123)))).numbers(1) == [12, 123]


@pytest.mark.parametrize("data", [message((1, 5), (3, b"text")), message((1, 5), (2, 1))[:-1],
                                  message((1, 5)) + b"\x12\xff\x01", message((1, 5)) + b"\x00",
                                  message((1, 5)) + b"\x13", b"\x08\x05" * 6000])  # fmt: skip
def test_what_is_wrong_with_a_message_is_the_same_field_by_field(data: bytes) -> None:
    told = []
    for together in (64, 1):
        with (
            patch.object(report_wire, "_STEPS_TOGETHER", together),
            pytest.raises(WireError) as raised,
        ):
            walk(padded(data), BufferParts(np.array([0]), np.array([len(data)])), {3: "number"})
        told.append(str(raised.value))
    assert told[0].split(" at byte")[0] == told[1].split(" at byte")[0] or "end" in told[1]


def test_more_messages_than_the_file_says_are_an_error() -> None:
    data = message(*((1, b"") for _ in range(20)))
    with pytest.raises(WireError, match="more than 19 messages"):
        split(padded(data), 0, len(data), (0x0A,), 19)
