"""What a rule's message shows of its values."""

from __future__ import annotations

import pytest

from nsysmap.rules.message import LONGEST, Each, check_template, fill

LAYERS = ", ".join(f"/encoder/layer.{number}/attention/MatMul" for number in range(8))


def test_a_list_is_shown_whole_where_a_name_would_lose_its_middle() -> None:
    assert fill("of {layers:list}", {"layers": LAYERS}) == f"of {LAYERS}"
    cut = fill("{layers}", {"layers": LAYERS})
    assert 0.9 * LONGEST < len(cut) <= LONGEST  # between two words
    head, tail = cut.split("…")
    assert LAYERS.startswith(head)
    assert LAYERS.endswith(tail)
    many = ", ".join([LAYERS] * 3)
    assert fill("{layers:list}", {"layers": many}).endswith(
        "/encoder/layer.2/attention/MatMul and 13 more"
    )


def test_a_list_has_a_longest_length_too_and_cannot_drive_the_terminal() -> None:
    shown = fill("{layers:list}", {"layers": "\x1b[2J" + "x" * 5000})
    assert len(shown) == 400
    assert shown.startswith("\\x1b[2J")


def test_a_list_is_a_text() -> None:
    check_template("{a:list}", {"a": "text"})
    with pytest.raises(ValueError, match="a is int"):
        check_template("{a:list}", {"a": "int"})


def test_a_list_without_a_value_takes_its_part_of_the_message_along() -> None:
    assert (
        fill(
            "Split.[[ Failing: {fails:list}.]][[ Holding: {holds:list}.]]",
            {"fails": None, "holds": "a, b"},
        )
        == "Split. Holding: a, b."
    )


def test_a_predicted_time_is_rounded_as_its_range_allows() -> None:
    values = {"t_ns": 384_540, "low_t_ns": 371_000, "high_t_ns": 433_000}
    assert fill("{t_ns:about}; {t_ns:ranged}", values) == "385 µs; 385 µs (371 to 433)"
    # no range is known
    assert (
        fill("{t_ns:about}; {t_ns:ranged}", {"t_ns": 384_540, "low_t_ns": None}) == "380 µs; 380 µs"
    )
    assert fill("{t_ns:about}", {"t_ns": None}) == "unknown"
    check_template("{t_ns:ranged}", {"t_ns": "int"})
    with pytest.raises(ValueError, match="formats a number"):
        check_template("{t_ns:ranged}", {"t_ns": "text"})


def test_what_is_of_each_inference_is_told_in_the_unit_of_the_answer() -> None:
    template = (
        "{wait_ns:each} and {copies:each.1f} copies of {size:each bytes} per {unit} (median"
        " {median_ns:ns})"
    )
    check_template(
        template, {"wait_ns": "float", "copies": "float", "size": "int", "median_ns": "int"}
    )
    values = {"wait_ns": 2_000.0, "copies": 0.5, "size": 1024, "median_ns": 900}
    assert (
        fill(template, values) == "2.00 µs and 0.5 copies of 1.0 KiB per inference (median 0.90 µs)"
    )
    assert (
        fill(template, values, each=Each(2))
        == "4.00 µs and 1.0 copies of 2.0 KiB per pass of 2 inferences (median 0.90 µs)"
    )
    assert (
        fill("{wait_ns:each} per {unit}", values, each=Each(1, repeats=True))
        == "2.00 µs per repetition"
    )
    assert fill("[[{wait_ns:each} per {unit}]]", {"wait_ns": None}, each=Each(2)) == ""
    with pytest.raises(ValueError, match="formats a number"):
        check_template("{name:each}", {"name": "text"})


def test_a_time_of_an_engine_s_layer_is_of_its_own_inferences() -> None:
    template = "{took_ns:ns}\n{:per inference}, {saved_ns:ns} less {:per inference}"
    values = {"took_ns": 2_000, "saved_ns": 1_000}
    once = Each(2, ran={0: 40, 1: 40}, steady=80, names={0: "a.json", 1: "b.json"})
    per_pass = "2.00 µs per pass of 2 inferences, 1.00 µs less per pass of 2 inferences"
    assert fill(template, values, each=once, engine=1) == per_pass
    often = Each(1, ran={0: 2, 1: 96}, steady=98, names={0: "a{.json", 1: "b.json"})
    assert (
        fill(template, values, each=often, engine=0)
        == "2.00 µs per inference of a{.json, 1.00 µs less per inference"
    )
    alone = Each(1, ran={0: 40}, steady=40, names={0: "a.json"})
    assert (
        fill(template, values, each=alone, engine=0)
        == fill(template, values)
        == "2.00 µs per inference, 1.00 µs less per inference"
    )


def test_the_word_for_what_runs_is_filled_in_and_other_words_are_left_alone() -> None:
    repeats = Each(repeats=True)
    template = "{:An inference} of {runs:inferences}, {:per inference}; inference {name}"
    check_template(template, {"runs": "int", "name": "text"})
    assert (
        fill(template, {"runs": 2, "name": "{:inference}"}, each=repeats)
        == "A repetition of 2 repetitions, per repetition; inference {:inference}"
    )
    assert repeats.words_in('f"{:inference}s" {:>8} inference') == 'f"repetitions" {:>8} inference'
    for wrong in ("{:inferense}", "{}", "{:per inferences}"):
        with pytest.raises(ValueError, match="plain column name"):
            check_template(wrong, {})
