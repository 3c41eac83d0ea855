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


# --- fixed sizes, and the edges of each rule
# ----------------------------------------------------------------------------------------

FIXED_SIZES: dict[int, tuple[report_wire.Form, int]] = {1: ("double", 8), 5: ("float", 4)}


def with_fixed(field: int, wire: int, bits: int) -> bytes:
    """A field of 8 or 4 bytes, which `message` does not write."""
    return varint(field << 3 | wire) + bits.to_bytes(FIXED_SIZES[wire][1], "little")


@pytest.mark.parametrize("together", [64, 0])
@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(1, 3),
                st.sampled_from([1, 5]),
                st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**63, 2**31, 2**32 - 1])),
            ),
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_fields_of_fixed_size_are_read_as_their_bits(
    together: int, rows: list[list[tuple[int, int, int]]]
) -> None:
    rows = [
        [(field + (8 if wire == 5 else 0), wire, bits) for field, wire, bits in row] for row in rows
    ]
    parts = [
        b"".join(
            with_fixed(field, wire, bits % 2 ** (8 * FIXED_SIZES[wire][1]))
            for field, wire, bits in row
        )
        for row in rows
    ]
    ends = np.cumsum([len(part) for part in parts])
    forms: dict[int, report_wire.Form] = {
        field: FIXED_SIZES[wire][0] for row in rows for field, wire, _ in row
    }
    spans = BufferParts(ends - [len(part) for part in parts], ends)
    with patch.object(report_wire, "_STEPS_TOGETHER", together):
        read = walk(padded(b"".join(parts)), spans, forms)
    for field, form in forms.items():
        bits_of = 64 if form == "double" else 32
        want = [
            next((bits % 2**bits_of for other, _, bits in reversed(row) if other == field), None)
            for row in rows
        ]
        got = read.numbers[field].tolist()
        assert [
            None if value == MISSING and held != 2**63 else value % 2**64
            for value, held in zip(got, want, strict=True)
        ] == want
    for row, part in zip(rows, parts, strict=True):
        assert [
            (field, value) for field, value in report_wire.fields(part) if isinstance(value, bytes)
        ] == [
            (field, (bits % 2 ** (8 * size)).to_bytes(size, "little"))
            for field, wire, bits in row
            for size in (FIXED_SIZES[wire][1],)
        ]


@pytest.mark.parametrize("together", [64, 0])
@pytest.mark.parametrize(("wire", "size"), [(1, 8), (5, 4)])
def test_a_field_of_fixed_size_that_is_cut_off_is_an_error(
    together: int, wire: int, size: int
) -> None:
    whole = with_fixed(2, wire, 7)
    for data, right in ((whole, True), (whole[:-1], False), (whole[: -size + 1], False)):
        span = BufferParts(np.array([0]), np.array([len(data)]))
        with patch.object(report_wire, "_STEPS_TOGETHER", together):
            if right:
                form = FIXED_SIZES[wire][0]
                assert walk(padded(data), span, {2: form}).numbers[2].tolist() == [7]
                continue
            with pytest.raises(WireError):
                walk(padded(data), span, {})
        with pytest.raises(WireError, match=f"of {size} bytes where {len(data) - 1} are left"):
            list(report_wire.fields(data))


@pytest.mark.parametrize(
    ("data", "value", "behind"),
    [
        (b"\x7f", 127, 1),
        (b"\x80\x01", 128, 2),
        (b"\xff" * 9 + b"\x01", 2**64 - 1, 10),
        (b"\x80" * 9 + b"\x02", 0, 10),  # bits above the 64th are dropped
    ],
)
def test_a_number_takes_up_to_ten_bytes(data: bytes, value: int, behind: int) -> None:
    assert report_wire.varint(data, 0) == (value, behind)
    read = walk(
        padded(b"\x08" + data), BufferParts(np.array([0]), np.array([1 + behind])), {1: "number"}
    )
    assert read.numbers[1].tolist() == [report_wire.signed(value)]


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 10, b"\x80" * 10 + b"\x01"])
def test_a_number_that_does_not_end_within_ten_bytes_is_an_error(data: bytes) -> None:
    with pytest.raises(WireError, match="at byte 0"):
        report_wire.varint(data, 0)
    span = BufferParts(np.array([0]), np.array([1 + len(data)]))
    with pytest.raises(WireError):
        walk(padded(b"\x08" + data), span, {1: "number"})


def test_a_number_has_a_sign_from_the_highest_of_64_bits_on() -> None:
    assert [report_wire.signed(value) for value in (0, 2**63 - 1, 2**63, 2**64 - 1)] == [
        0,
        2**63 - 1,
        -(2**63),
        -1,
    ]


@pytest.mark.parametrize("number", [1, 2**29 - 1])
def test_field_numbers_have_29_bits(number: int) -> None:
    data = varint(number << 3) + b"\x05"
    assert list(report_wire.fields(data)) == [(number, 5)]
    span = BufferParts(np.array([0]), np.array([len(data)]))
    assert walk(padded(data), span, {number: "number"}).numbers[number].tolist() == [5]
    for wrong in (0, 2**29):
        data = varint(wrong << 3) + b"\x05"
        with pytest.raises(WireError, match=f"number {wrong} at byte"):
            list(report_wire.fields(data))
        with pytest.raises(WireError):
            walk(padded(data), BufferParts(np.array([0]), np.array([len(data)])), {})


def test_of_a_message_the_last_value_counts_and_its_kind_is_asked_for() -> None:
    held = Message.of(message((1, 4), (1, 5), (2, b"a"), (2, b"b\xff")))
    assert (held.number(1), held.bytes(2), held.text(2)) == (5, b"b\xff", "b\ufffd")
    assert (held.number(3), held.bytes(3), held.text(3)) == (None, None, None)
    assert (held.numbers(3), held.messages(3)) == ([], [])
    with pytest.raises(WireError, match="holds bytes"):
        held.number(2)
    with pytest.raises(WireError, match="where bytes"):
        held.bytes(1)
    with pytest.raises(WireError, match="where a message"):
        held.messages(1)
    inner = message((7, 8))
    assert [one.number(7) for one in Message.of(message((1, inner), (1, inner))).messages(1)] == [
        8,
        8,
    ]


def test_a_message_has_at_most_so_many_fields() -> None:
    data = message(*((1, 1) for _ in range(6)))
    with patch.object(report_wire, "_MOST_FIELDS", 5):
        assert Message.of(data).numbers(1) == [1] * 6
    with (
        patch.object(report_wire, "_MOST_FIELDS", 4),
        pytest.raises(WireError, match="more than 4 fields"),
    ):
        Message.of(data)


@pytest.mark.parametrize("rows", [1, 40])  # of few the rest is read by itself
@pytest.mark.parametrize(("fields", "right"), [(9, True), (10, True), (11, False)])
def test_messages_that_are_walked_have_at_most_so_many_fields(
    rows: int, fields: int, right: bool
) -> None:
    data = message(*((1, number) for number in range(fields)))
    spans = BufferParts(np.arange(rows) * len(data), np.arange(1, rows + 1) * len(data))
    with (
        patch.object(report_wire, "_MOST_STEPS", 10 if rows == 1 else 11),
        patch.object(report_wire, "_STEPS_TOGETHER", 3),
    ):
        if right:
            assert (
                walk(padded(data * rows), spans, {1: "number"}).numbers[1].tolist()
                == [fields - 1] * rows
            )
        else:
            with pytest.raises(WireError, match="more than"):
                walk(padded(data * rows), spans, {1: "number"})


def test_the_lengths_before_messages_have_40_bits() -> None:
    sizes = [0, 127, 128, 2**40 - 1]
    data = [varint(size) for size in sizes]
    at = np.cumsum([0, *(len(one) for one in data[:-1])])
    begin, length = report_wire.lengths(padded(*data), at)
    assert length.tolist() == sizes
    assert begin.tolist() == [where + len(one) for where, one in zip(at, data, strict=True)]
    with pytest.raises(WireError, match="any file"):
        report_wire.lengths(padded(varint(2**40)), np.array([0]))


def test_of_no_messages_nothing_is_read() -> None:
    nothing = np.zeros(0, np.int64)
    read = walk(padded(b""), BufferParts(nothing, nothing), {1: "number", 2: "bytes"})
    assert (len(read.numbers[1]), len(read.spans[2].begin)) == (0, 0)
    empty = walk(padded(b""), BufferParts(np.array([0]), np.array([0])), {1: "number", 2: "bytes"})
    assert empty.numbers[1].tolist() == [MISSING]
    assert (empty.spans[2].begin.tolist(), empty.spans[2].end.tolist()) == ([-1], [-1])
    tags, parts = split(padded(b""), 0, 0, (0x0A,), 0)
    assert (len(tags), len(parts.begin)) == (0, 0)


def test_as_many_messages_as_the_file_says_are_found() -> None:
    data = message(*((1, b"") for _ in range(20)))
    assert len(split(padded(data), 0, len(data), (0x0A,), 20)[0]) == 20


@given(st.binary(min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_what_the_fast_decoder_reads_the_plain_one_reads(data: bytes) -> None:
    """But for field numbers of 29 bits, of which the fast one takes three more."""
    whole = BufferParts(np.array([0]), np.array([len(data)]))
    for together in (64, 0):
        with patch.object(report_wire, "_STEPS_TOGETHER", together):
            try:
                walk(padded(data), whole, {})
            except WireError:
                continue
        try:
            list(report_wire.fields(data))
        except WireError as error:
            assert "with number" in str(error)
