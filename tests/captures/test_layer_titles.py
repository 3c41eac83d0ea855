"""Every output calls the layers of an engine that TensorRT itself built by the model's words, and
has TensorRT's names one step away.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from nsysmap.api import Analysis, analyze
from nsysmap.output.files import write_analysis
from tests.commands import run
from tests.places import FIXTURES

REAL = FIXTURES / "real_trt"
FILES = (REAL / "bert_eager-sync.nsys-rep", REAL / "bert_eager.engine.json")
TITLE, NAME = "up_1/MatMul + bias + GELU", "__myl_FcAddDivCastErfCastAddMulMul_myl0_19"
ROW, ROW_NAME = "up*/MatMul + bias + GELU", "__myl_FcAddDivCastErfCastAddMulMul_myl0_*"


@pytest.fixture(scope="module")
def told() -> Analysis:
    return analyze(*FILES)


@pytest.mark.parametrize(
    ("suffix", "title", "name"),
    [
        (".md", TITLE, NAME),
        (".json", TITLE, NAME),
        (".html", ROW, ROW_NAME),
    ],  # what is of a single layer, the page holds packed
)
def test_files_have_both(
    told: Analysis, tmp_path: Path, suffix: str, title: str, name: str
) -> None:
    path = tmp_path / f"report{suffix}"
    write_analysis(told, path)
    text = path.read_text(encoding="utf-8")
    assert title in text
    assert name in text


def test_a_database_has_both(told: Analysis, tmp_path: Path) -> None:
    path = tmp_path / "report.db"
    write_analysis(told, path)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT name FROM layers WHERE title = ?", (TITLE,)).fetchall() == [
            (NAME,)
        ]
        assert database.execute(
            "SELECT name, layers FROM repeated_layers WHERE title = ?", (ROW,)
        ).fetchall() == [(ROW_NAME, 4)]


def test_repeated_blocks_are_one_row_the_first_one_too(told: Analysis) -> None:
    found = {row.text("title"): row.integer("layers") for row in told.tables.repeated_layers}
    assert found["down*/MatMul"] == found[ROW] == found["attention (Softmax*)"] == 4
    assert found["ln*/LayerNormalization + bias + residual"] == 8
    assert not any("__my" in title for title in found)


def test_the_screens_have_the_model_s_words_and_whole_lists_both(
    capfd: pytest.CaptureFixture[str],
) -> None:
    screen = run(capfd, "analyze", *FILES).out
    assert ROW in screen
    assert "__myl_Fc" not in screen
    for more in (
        ("analyze", *FILES, "--full"),
        ("layers", *FILES),
        ("layers", FILES[1]),
        ("layers", FILES[1], "--precision"),
    ):
        text = run(capfd, *more).out
        assert any(TITLE in line and NAME in line for line in text.splitlines()), more
    (layer,) = [
        one
        for one in json.loads(run(capfd, "layers", FILES[1], "--json").out)["layers"]
        if one["name"] == NAME
    ]
    assert layer["title"] == TITLE


def test_a_map_has_both_and_an_explanation_too(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "map.csv"
    assert run(capfd, "map", *FILES, "-o", path).status == 0
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    assert "layer" in head.split(",")
    assert head.endswith(",layer_title")
    line = next(line for line in lines if NAME in line)
    assert line.endswith(TITLE)
    text = run(capfd, "map", *FILES, "--explain", line.split(",")[0]).out
    assert TITLE in text
    assert f"named {NAME}" in text


def test_one_inference_and_a_comparison_have_them(capfd: pytest.CaptureFixture[str]) -> None:
    assert TITLE in run(capfd, "inference", *FILES, "37").out
    text = run(capfd, "compare", FILES[1], REAL / "bert_op13.engine.json").out
    assert (
        "ln1*/LayerNormalization + bias + residual" in text
        or "ln*/LayerNormalization + bias + residual" in text
    ), text


def test_a_layer_is_addressed_by_either(capfd: pytest.CaptureFixture[str]) -> None:
    by = [
        run(capfd, "what-if", *FILES, "--change", "drop-layers", "--layer", name)
        for name in (TITLE, NAME)
    ]
    assert by[0].status == by[1].status == 0
    assert by[0].out == by[1].out
    assert TITLE in by[0].out


def test_a_notebook_has_both(told: Analysis) -> None:
    text = told._repr_html_()
    assert ROW in text
    assert f'title="{ROW_NAME}"' in text


def test_findings_say_where_in_the_model_s_words(told: Analysis) -> None:
    about = [one for one in told.findings if one.layer is not None]
    assert all(one.layer_title and "__my" not in one.layer_title for one in about)
    assert not any(
        "__myl" in one.message
        for one in about
        if one.layer is not None and one.rule != "under-filled-gpu"
    )
