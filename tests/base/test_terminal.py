"""Names fit a terminal, stay different, and cannot drive it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.text.terminal import (
    between_words,
    columns,
    escaped,
    in_one,
    inert_json,
    list_of,
    pasted,
    shortened,
    told_apart,
)

names = st.lists(
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=60),
    min_size=1,
    max_size=8,
)


@given(st.text())
def test_json_says_the_same_with_nothing_in_it_that_a_terminal_obeys(text: str) -> None:
    shown = inert_json(json.dumps({text: "\x7f" + text}, ensure_ascii=False))
    assert shown.isprintable()
    assert json.loads(shown) == {text: "\x7f" + text}
    assert inert_json('"\ud800"') == '"\\ud800"'


@given(names, st.integers(16, 40))
def test_shortened_names_fit_and_names_that_differ_stay_different(
    given_names: list[str], width: int
) -> None:
    shown = told_apart(given_names, width)
    assert all(columns(name) <= width for name in shown)
    assert len(set(shown)) == len(set(given_names))


def test_words_that_all_names_share_go_first() -> None:
    shown = told_apart(
        [
            "/bert/encoder/layer.3/intermediate/dense/MatMul_myl0_32",
            "/bert/encoder/layer.3/output/dense/MatMul_myl0_33",
            "/bert/encoder/layer.3/attention/output/dense/MatMul_myl0_30",
        ],
        32,
    )
    assert "intermediate" in shown[0]
    assert "_32" in shown[0]
    assert "attention" in shown[2]
    assert all("…" in name for name in shown)


def test_names_that_fit_are_as_they_are() -> None:
    assert told_apart(["a" * 20, "b"], 20) == ["a" * 20, "b"]


def test_control_characters_are_escaped_and_nothing_else() -> None:
    assert escaped("a\x1b[31mb\u202e") == "a\\x1b[31mb\\u202e"
    assert escaped("Größe 層") == "Größe 層"


@given(st.text(max_size=80), st.integers(2, 30))
def test_a_shortened_text_is_never_wider_than_asked_for(text: str, width: int) -> None:
    assert columns(shortened(text, width)) <= width


def test_a_name_of_a_megabyte_is_cut_without_walking_through_it() -> None:
    shown = told_apart(["x" * 1_000_000 + "a", "x" * 1_000_000 + "b"], 40)
    assert len(set(shown)) == 2


def test_what_names_share_comes_back_where_there_is_room() -> None:
    names = [f"__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_myl0_{number}" for number in (6, 9, 13)]
    assert told_apart(names, 49)[:2] == names[:2]
    assert told_apart(names, 36) == [
        "__myl_AddMeanSubMulMeanAddSq…_myl0_6",
        "__myl_AddMeanSubMulMeanAddSq…_myl0_9",
        "__myl_AddMeanSubMulMeanAddS…_myl0_13",
    ]


def test_words_in_which_names_differ_stay_before_those_that_are_rare_elsewhere() -> None:
    names = [
        f"/inception{block}/branch{branch}/conv{layer}/Conv +"
        f" /inception{block}/branch{branch}/relu{layer}/Relu"
        for block in range(8)
        for branch in (2, 3)
        for layer in (1, 2)
    ]
    short = told_apart(names, 42)
    assert len(set(short)) == len(names)
    assert [name for name in short if "~" in name or columns(name) > 42] == []


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["/layer.5/self", "/layer.2/self"], "/layer.{2,5}/self"),
        (["q_1", "q_30", "q_4", "q_2"], "q_{1,2,4,…}"),
        (["/layer.2/conv1", "/layer.5/conv2"], "/layer.2/conv1 and 1 more"),
        (["a", "b", "a"], "a and 1 more"),
        (["a", "a"], "a"),
        (["v1.2"], "v1.2"),
    ],
)
def test_names_that_differ_in_one_number_are_one_text(names: list[str], told: str) -> None:
    assert in_one(names) == told


@pytest.mark.parametrize(
    "path",
    [
        "a b/it's.json",
        "-o.json",
        "a\nb\x1b[31m",
        "\u202ebidi\\'",
        "caf\udce9",
        "plain/name-1.json",
        "$HOME `x` !",
    ],
)
def test_a_pasted_word_is_what_a_shell_passes_on_and_inert_until_then(path: str) -> None:
    word = pasted(path)
    assert word.isprintable()
    passed = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True
    ).stdout
    assert os.fsdecode(passed) == (f"./{path}" if path.startswith("-") else path)


@pytest.mark.parametrize(
    ("text", "width", "told"),
    [
        (
            "{ForeignNode[bert.embeddings.position_embeddings.weight.../pooler/activation/Tanh]}",
            56,
            "{ForeignNode[bert.embeddings…/pooler/activation/Tanh]}",
        ),
        (
            "features.2.conv.2.weight + QuantizeLinear_90 + Conv_94",
            40,
            "features.2.conv.2.…_90 + Conv_94",
        ),
        ("a" * 50, 20, "aaaaaaaaaa…aaaaaaaaa"),
        ("short", 20, "short"),
    ],
)
def test_a_name_is_cut_between_its_words(text: str, width: int, told: str) -> None:
    short = between_words(text, width)
    assert columns(short) <= width
    assert short == told


@given(st.text(), st.integers(2, 60))
def test_what_is_cut_between_words_fits_and_has_the_ends_of_the_text(text: str, width: int) -> None:
    short = between_words(text, width)
    assert columns(short) <= max(width, 0) or columns(text) <= width
    if short != text and "…" not in text:
        head, _, tail = short.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail)


def test_a_list_loses_whole_items() -> None:
    parts = ", ".join(f"layer.{number}/intermediate/MatMul {number}%" for number in range(20))
    short = list_of(parts, 100)
    assert (
        short == "layer.0/intermediate/MatMul 0%, layer.1/intermediate/MatMul 1%,"
        " layer.2/intermediate/MatMul 2% and 17 more"
    )
    assert list_of("a, b", 100) == "a, b"
    assert list_of("a" * 200, 100) == between_words("a" * 200, 100)
