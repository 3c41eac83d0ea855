"""Figures as people read them never claim more than they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.text.terminal import columns, escaped, shortened
from nsysmap.text.units import about, counted, duration, percent, ranged, rate, rounded, size


@given(st.integers(0, 10**15), st.integers(1, 10**15), st.integers(0, 3))
def test_a_share_is_all_or_nothing_only_if_it_is(part: int, whole: int, digits: int) -> None:
    part = min(part, whole)
    text = percent(part, whole, digits)
    assert (text == "100%") == (part == whole)
    assert (text == "0%") == (part == 0)
    if 0 < part < whole:
        assert float(text.lstrip("<").rstrip("%")) == pytest.approx(
            100 * part / whole, abs=10**-digits
        )


def test_a_share_of_nothing_is_no_share() -> None:
    assert percent(0, 0) == "–"
    assert percent(0.0, float("nan")) == "–"


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (274_720, "274.7 µs"),
        (1_500_000, "1,500 µs"),
        (12_345_678, "12.35 ms"),
        (61_000_000_000, "61.00 s"),
        (None, "–"),
    ],
)
def test_a_duration_has_the_unit_that_fits(time_ns: int | None, text: str) -> None:
    assert duration(time_ns) == text


@pytest.mark.parametrize(
    ("time_ns", "beside_ns", "text"),
    [
        (682, 11_020, "0.68 µs"),
        (82, 11_020, "82 ns"),
        (6_970_000, 29_000_000, "6.97 ms"),
        (29_000_000, 6_970_000, "29.00 ms"),
        (43_000, 29_000_000, "43.00 µs"),
        (0, 5_000, "0 ns"),
    ],
)
def test_times_beside_one_another_have_one_unit_where_the_shorter_keeps_its_digits(
    time_ns: int, beside_ns: int, text: str
) -> None:
    assert duration(time_ns, beside_ns) == text


def test_sizes_and_counts_have_their_units() -> None:
    assert [size(value) for value in (0, 1023, 2048, 150_109_880_320)] == [
        "0 B",
        "1,023 B",
        "2.0 KiB",
        "139.8 GiB",
    ]
    words = [
        counted(2, noun)
        for noun in ("kernel", "process", "copy", "replay", "launch", "memory copy")
    ]
    assert words == [
        "2 kernels",
        "2 processes",
        "2 copies",
        "2 replays",
        "2 launches",
        "2 memory copies",
    ]
    assert counted(1, "copy") == "1 copy"
    assert counted(12_345, "kernel") == "12,345 kernels"


@given(st.text(), st.integers(1, 60))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, width: int) -> None:
    text = escaped(text)
    short = shortened(text, width)
    assert columns(short) <= max(width, 1)
    if columns(text) <= width:
        assert short == text
    else:
        # the text may hold one of its own
        cuts = [at for at, char in enumerate(short) if char == "…"]
        assert any(text.startswith(short[:at]) and text.endswith(short[at + 1 :]) for at in cuts)


@given(st.text())
def test_an_escaped_text_holds_nothing_that_drives_a_terminal(text: str) -> None:
    assert escaped(text).isprintable()


def test_measured_times_have_three_significant_digits() -> None:
    assert [rounded(ns) for ns in (3, 357_796, 51_711, 2_070, 13_711_522)] == [
        "3 ns",
        "358 µs",
        "51.7 µs",
        "2.07 µs",
        "13.7 ms",
    ]
    assert rounded(None) == "–"
    assert [rounded(ns, 11_400_000) for ns in (8_850_000, 1_430_000, 999_000)] == [
        "8.85 ms",
        "1.43 ms",
        "999 µs",
    ]
    assert rounded(10_300_000, 9_780_000) == "10,300 µs"


def test_a_range_tells_how_precise_a_prediction_is() -> None:
    assert ranged(47_897, 40_694, 74_399) == "48 µs (41 to 74)"
    assert ranged(2_766_496, 2_187_036, 3_691_766) == "2,770 µs (2,190 to 3,690)"
    assert ranged(3_201, -7_536, 14_339) == "3 µs (-8 to 14)"
    assert ranged(100, -20, 300) == "100 ns (-20 to 300)"
    assert ranged(515_187, 139_381, 777_948) == "520 µs (140 to 780)"


@given(st.integers(1_000, 10**8), st.integers(0, 10**8), st.integers(0, 10**8))
def test_no_figure_of_a_range_moves_by_more_than_an_eightieth_of_the_largest(
    middle: int, less: int, more: int
) -> None:
    told = ranged(middle, middle - less, middle + more)
    size = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[told.split()[1]]
    shown = [
        size * float(number.replace(",", ""))
        for number in (told.split()[0], *told.partition("(")[2].removesuffix(")").split(" to "))
    ]
    for value, said in zip((middle, middle - less, middle + more), shown, strict=True):
        assert (
            abs(value - said) <= max(max(middle + more, abs(middle - less)) / 80, size / 2) + 1e-6
        )


def test_a_predicted_time_has_two_digits() -> None:
    assert [about(time_ns) for time_ns in (281_200, 40_390, 1_186_972, 9_960_000, 57.0)] == [
        "280 µs",
        "40 µs",
        "1,200 µs",
        "10,000 µs",
        "57 ns",
    ]


def test_rates_have_three_significant_digits() -> None:
    assert [rate(per_second) for per_second in (2794.9, 816.9, 33.25, 0.5)] == [
        "2,790",
        "817",
        "33.2",
        "0.50",
    ]
