"""TensorRT's words for types and layouts, and the bytes that they take."""

from __future__ import annotations

import pytest

from nsysmap.inputs.engine.model import Tensor
from nsysmap.inputs.engine.tensor_formats import channel_multiple, data_type, layout, tensor_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Row major linear FP32", "FP32"),
        ("Row major linear FP16 format", "FP16"),
        ("Thirty-two wide channel vectorized row major Int8 format", "INT8"),
        ("Thirty-two wide channel vectorized row major Int8 format.", "INT8"),
        ("Channel major FP16 format where channel % 8 == 0", "FP16"),
        ("Channel major INT8 format where channel == 4 and column stride % 32 == 0", "INT8"),
        ("Row major linear BFloat16 format", "BF16"),
        ("Row major linear BOOL", "BOOL"),
        ("Row major linear UInt8 format", "UINT8"),
        ("Row major linear FP8 format", "FP8"),
        ("Half", "FP16"),
        ("Float", "FP32"),
        ("Int8", "INT8"),
        ("Int64", "INT64"),
        ("FP4", "FP4"),
        ("FP8", "FP8"),
        ("N/A due to dynamic shapes", None),
        ("Format not available due to dynamic shapes", None),
        ("Unknown format", None),
        ("", None),
        (None, None),
    ],
)
def test_the_data_type_is_read_off_the_words(text: str | None, expected: str | None) -> None:
    assert data_type(text) == expected


def test_a_type_alone_is_no_layout() -> None:
    assert layout("Half") is None
    assert layout("N/A due to dynamic shapes") is None
    assert layout("Row major linear FP16 format") == "Row major linear FP16 format"


@pytest.mark.parametrize(
    ("text", "multiple"),
    [
        ("Thirty-two wide channel vectorized row major FP16 format", 32),
        ("Two wide channel vectorized row major FP16 format", 2),
        ("Sixteen wide channel vectorized row major FP16 format", 16),
        ("Channel major FP16 format where channel % 8 == 0", 8),
        ("Channel major FP16 format where C % 8 == 0 and H Stride % 32 == 0", 8),
        ("Channel major FP16 format where channel == 4 and column stride % 32 == 0", 4),
        ("Channel major FP16 format", 1),
        ("Row major linear FP32", 1),
        (None, 1),
    ],
)
def test_the_channel_padding_is_read_off_the_words(text: str | None, multiple: int) -> None:
    assert channel_multiple(text) == multiple


@pytest.mark.parametrize(
    ("dimensions", "datatype", "text", "expected"),
    [
        ((1, 3, 224, 224), "FP32", "Row major linear FP32", 1 * 3 * 224 * 224 * 4),
        (
            (1, 3, 224, 224),
            "INT8",
            "Four wide channel vectorized row major Int8 format",
            4 * 224 * 224,
        ),
        (
            (2, 33, 7, 7),
            "INT8",
            "Thirty-two wide channel vectorized row major Int8 format",
            2 * 64 * 7 * 7,
        ),
        ((1, 3, 8, 8), "FP16", "Channel major FP16 format where channel % 8 == 0", 8 * 8 * 8 * 2),
        (
            (1, 3, 4, 8, 8),
            "FP16",
            "Channel major FP16 format where channel % 8 == 0 with 3 spatial dimensions",
            8 * 4 * 8 * 8 * 2,
        ),
        ((1, 3, 8, 10), "INT8", "Row major INT8 format where column stride % 64 == 0", 3 * 8 * 64),
        (
            (1, 3, 8, 10),
            "INT8",
            "Channel major INT8 format where channel == 4 and column stride % 32 == 0",
            8 * 64,
        ),
        ((1, 1000), "FP16", "Thirty-two wide channel vectorized row major FP16 format", 1024 * 2),
        ((5,), "FP4", None, 3),
        ((), "FP32", None, 4),
        ((0, 4), "FP32", None, 0),
        ((-1, 4), "FP32", None, None),
        (None, "FP32", None, None),
        ((1, 4), None, None, None),
        ((2**40, 2**40), "FP32", None, None),
    ],
)
def test_sizes_equal_those_worked_out_by_hand(
    dimensions: tuple[int, ...] | None, datatype: str | None, text: str | None, expected: int | None
) -> None:
    assert tensor_bytes(Tensor("t", dimensions, datatype, text)) == expected


def test_a_broadcast_axis_is_counted_once() -> None:
    assert tensor_bytes(Tensor("t", (16, 192, 64), "FP16", None, (0, 64, 1))) == 192 * 64 * 2


@pytest.mark.parametrize(
    "text",
    [
        f"{'9' * 5000} wide channel",
        f"channel % {'9' * 5000} == 0",
        f"column stride % {'9' * 5000} == 0",
    ],
)
def test_a_number_of_thousands_of_digits_pads_nothing(text: str) -> None:
    assert channel_multiple(text) == 1
    assert tensor_bytes(Tensor("t", (1, 3, 4, 4), "FP32", text)) == 192
