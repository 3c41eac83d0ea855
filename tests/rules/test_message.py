"""What a rule's message shows of its values."""

from __future__ import annotations

import pytest

from nsysmap.rules.message import LONGEST, check_template, fill

LAYERS = ", ".join(f"/encoder/layer.{number}/attention/MatMul" for number in range(8))


def test_a_list_is_shown_whole_where_a_name_would_lose_its_middle() -> None:
    assert fill("of {layers:list}", {"layers": LAYERS}) == f"of {LAYERS}"
    cut = fill("{layers}", {"layers": LAYERS})
    assert 0.9 * LONGEST < len(cut) <= LONGEST  # between two words
    head, tail = cut.split("…")
    assert LAYERS.startswith(head)
    assert LAYERS.endswith(tail)
    many = ", ".join([LAYERS] * 3)
    assert fill("{layers:list}", {"layers": many}).endswith("/encoder/layer.2/attention/MatMul and 13 more")


def test_a_list_has_a_longest_length_too_and_cannot_drive_the_terminal() -> None:
    shown = fill("{layers:list}", {"layers": "\x1b[2J" + "x" * 5000})
    assert len(shown) == 400
    assert shown.startswith("\\x1b[2J")


def test_a_list_is_a_text() -> None:
    check_template("{a:list}", {"a": "text"})
    with pytest.raises(ValueError, match="a is int"):
        check_template("{a:list}", {"a": "int"})


def test_a_list_without_a_value_takes_its_part_of_the_message_along() -> None:
    assert fill("Split.[[ Failing: {fails:list}.]][[ Holding: {holds:list}.]]", {"fails": None, "holds": "a, b"}) == "Split. Holding: a, b."


def test_a_predicted_time_is_rounded_as_its_range_allows() -> None:
    values = {"t_ns": 384_540, "low_t_ns": 371_000, "high_t_ns": 433_000}
    assert fill("{t_ns:about}; {t_ns:ranged}", values) == "385 µs; 385 µs (371 to 433)"
    assert fill("{t_ns:about}; {t_ns:ranged}", {"t_ns": 384_540, "low_t_ns": None}) == "380 µs; 380 µs"  # no range is known
    assert fill("{t_ns:about}", {"t_ns": None}) == "unknown"
    check_template("{t_ns:ranged}", {"t_ns": "int"})
    with pytest.raises(ValueError, match="formats a number"):
        check_template("{t_ns:ranged}", {"t_ns": "text"})
