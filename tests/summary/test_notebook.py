"""What a notebook shows of an analysis: the answer, whole, with nothing of a name that HTML would
obey.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from nsysmap.answer import gains, words
from nsysmap.answer.model import Trouble
from nsysmap.api import analyze
from nsysmap.output.notebook import notebook_html
from nsysmap.output.text.report import report_text
from tests.places import FIXTURES
from tests.reports import analysis

HOSTILE = '<script>alert(1)</script>&"\x1b[31m'


def plain(html: str) -> str:
    parts: list[str] = []

    class Text(HTMLParser):
        def handle_data(self, data: str) -> None:
            parts.append(data)

    Text().feed(html)
    return " ".join(" ".join(parts).split())


def test_it_says_what_the_first_screen_says() -> None:
    told = analysis("bert_trt10", "sync.sqlite")
    text = plain(told._repr_html_())
    summary = told.summary
    for sentence in (
        words.title(summary),
        *words.times(summary),
        *words.where(summary),
        words.certainty(summary),
        words.slowest(summary),
    ):
        assert " ".join(sentence.split()) in text
    for action in gains.first_actions(summary):
        told_of_it = (
            f"{gains.action_title(action)}:"
            f" {gains.gain(summary, action, ' per inference')}{' '.join(['', *gains.ways(action)])}"
        )
        assert " ".join(told_of_it.split()) in text
    assert "layer.*/intermediate/dense/MatMul + bias + GELU" in text
    assert "not fused" not in text  # no rule ran


def test_it_says_what_was_not_fused_where_rules_ran() -> None:
    told = analyze(
        FIXTURES / "bert_split_trt10" / "sync.nsys-rep",
        FIXTURES / "bert_split_trt10" / "engine.json",
    )
    assert f"not fused {words.not_fused(told.summary)}" in plain(told._repr_html_())


def test_layers_of_several_engines_say_of_which() -> None:
    folder = FIXTURES / "decode_loop"
    told = analyze(
        folder / "sync.nsys-rep",
        [folder / "context.engine.json", folder / "generation.engine.json"],
        rules=(),
    )
    assert "generation layers/* … proj/Gemm_0 4 layers" in plain(notebook_html(told.summary))


def test_without_layers_the_costliest_kernels_are_listed() -> None:
    told = analyze(FIXTURES / "torch_encoder" / "eager.nsys-rep", rules=())
    first = told.summary.kernels[0]
    assert f"{first.what} {first.kernels:,}x" in plain(notebook_html(told.summary))


def test_the_words_of_its_first_column_are_not_broken() -> None:
    html = notebook_html(analysis("bert_trt10", "sync.sqlite").summary)
    heads = re.findall(r"<th([^>]*)>", html.split("</table>")[0])
    assert len(heads) > 4
    assert all("white-space:nowrap" in style for style in heads)


def test_in_python_the_answer_prints_as_the_first_screen_does() -> None:
    told = analysis("bert_trt10", "sync.sqlite")
    screen = report_text(told.summary, width=80).rstrip("\n")
    assert str(told.summary) == repr(told.summary) == screen


@pytest.mark.parametrize("report", ["graph_whole.sqlite"])
def test_a_trace_that_hides_its_kernels_says_so_first_and_how_to_capture_it(report: str) -> None:
    summary = analysis("bert_trt10", report).summary
    text = plain(notebook_html(summary))
    assert summary.blocked[0].split(":")[0] in text
    assert "--cuda-graph-trace=node" in text
    assert "None" not in text


def test_names_are_text_whatever_they_hold() -> None:
    summary = analysis("bert_trt10", "sync.sqlite").summary
    layers = tuple(replace(layer, name=HOSTILE) for layer in summary.layers)
    html = notebook_html(
        replace(summary, source=HOSTILE, layers=layers, errors=(Trouble(HOSTILE),))
    )
    assert "<script" not in html
    assert "\x1b" not in html
    assert set(re.findall(r"<(\w+)", html)) <= {
        "p",
        "b",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "br",
        "code",
        "meter",
    }
