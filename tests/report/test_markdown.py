"""The Markdown report stays in its tables whatever the names hold, and says what the terminal
report says.
"""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.api import analyze
from nsysmap.output import markdown
from nsysmap.output.build import report_of
from nsysmap.output.markdown import report_markdown
from nsysmap.output.sections import sections_of
from nsysmap.output.text.report import report_text
from nsysmap.text.terminal import code, escaped, plain
from tests.places import FIXTURES
from tests.reports import hostile, numbered, report, with_tables


def cells(row: str) -> list[str]:
    """The cells of a table row as GitHub parts them: a bar after an odd number of backslashes parts
    nothing.
    """
    assert row.startswith("| ")
    assert row.endswith(" |")
    return re.split(r"(?<!\\)(?:\\\\)*\|", row[1:-1])


def folded(text: str) -> list[tuple[str, str]]:
    """The folded sections: heading and body, in HTML."""
    return re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", text)


@pytest.mark.parametrize("engine", [True, False])
def test_every_row_of_a_table_has_as_many_cells_as_its_heading(*, engine: bool) -> None:
    for text in (
        report_markdown(hostile()),
        report_markdown(report("bert_trt10", "graph.sqlite", engine=engine)),
    ):
        tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
        assert tables
        for table in tables:
            assert {len(cells(row)) for row in table} == {len(cells(table[1]))}, table[0]


@pytest.mark.parametrize("rules", [True, False])
def test_a_comment_has_at_most_forty_lines_and_folds_the_rest(*, rules: bool) -> None:
    for held in (
        report("bert_trt10", "sync.sqlite", rules=rules),
        report("bert_trt85", "sync.sqlite", rules=rules),
        report("bert_trt10", "graph_whole.sqlite", rules=rules),
        hostile(),
    ):
        text = report_markdown(held)
        assert len(text.splitlines()) <= markdown.LINES == 40
        headings = [heading for heading, _ in folded(text)]
        for section in sections_of(held):
            assert any(html.unescape(one).startswith(section.heading[:20]) for one in headings)


def test_no_name_becomes_html_a_link_or_a_control_character() -> None:
    text = report_markdown(hostile())
    assert "<script" not in text
    # in HTML, brackets make no link
    assert "](http" not in re.sub(r"\\.", "", text.partition("<details>")[0])
    assert "http://" not in text
    assert text.replace("\n", "").isprintable()
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert set(re.findall(r"</?([A-Za-z]\w*)", outside)) <= {
        *("code", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "p", "br"),
        *("h3", "ul", "li"),
    }


def test_no_name_calls_anybody_in_a_folded_section_either() -> None:
    held = report("bert_trt10", "sync.sqlite")
    layers = numbered(held.tables.layers, "@someone#12 https://www.example.org GH-7 ")
    told = "".join(body for _, body in folded(report_markdown(with_tables(held, layers=layers))))
    assert "someone" in told
    for piece in told.split("<!-- -->"):
        shown = html.unescape(re.sub(r"<[^>]*>", " ", piece))
        assert not re.search(r"@\w|[#!]\d|\bGH-\d", shown, re.IGNORECASE)
    assert not re.search(r"www\.|://", told, re.IGNORECASE)


@pytest.mark.parametrize("most", [20_000, 30_000])
def test_a_report_too_long_for_a_comment_loses_rows_and_says_so(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = report_markdown(report("bert_trt10", "graph.sqlite"))
    assert len(whole) < markdown.COMMENT == 65_536  # it loses none as it is
    assert "a comment of GitHub" not in whole
    assert len(whole) > most
    monkeypatch.setattr(markdown, "COMMENT", most)
    cut = report_markdown(report("bert_trt10", "graph.sqlite"))
    assert 0.5 * most < len(cut) <= most
    assert "more: a comment of GitHub has" in cut
    counted = [re.findall(r"… and ([\d,]+) more", one) for one in (whole, cut)]
    not_shown = [sum(int(number.replace(",", "")) for number in one) for one in counted]
    rows = [one.count("<tr>") + one.count("<li>") for one in (whole, cut)]
    lists = [len(re.findall(r"<li>… and", one)) for one in (whole, cut)]
    assert not_shown[1] - not_shown[0] == rows[0] - lists[0] - (rows[1] - lists[1])
    assert [heading for heading, _ in folded(cut)] == [heading for heading, _ in folded(whole)]
    assert cut.partition("<details>")[0] == whole.partition("<details>")[0]


@given(st.text())
def test_code_shows_the_text_and_nothing_else(name: str) -> None:
    shown = code(name)
    if shown.startswith("`"):
        assert shown == f"`{escaped(name)}`"
        assert "`" not in shown[1:-1]
    else:
        inner = shown.removeprefix("<code>").removesuffix("</code>")
        assert html.unescape(inner) == escaped(name)
        assert re.fullmatch(r"(?:[^\W_]|[ ,-]|&#\d+;)*", inner)
    assert not re.search(r"(?<!\\)\|", shown)


@given(st.text())
def test_plain_text_holds_no_mark_that_is_not_escaped(text: str) -> None:
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", plain(text))
    assert not re.search(r"[`*_\[\]|~<>$\\]", bare.replace("<!-- -->", ""))


@given(st.text("@#!ghGH-wW.:/1aé\\_&<>", max_size=12))
def test_plain_text_calls_nobody_and_nothing(text: str) -> None:
    """What GitHub and GitLab look for in the text that is shown: entities are decoded there, and a
    comment parts the text.
    """
    unescaped = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", plain(text))
    pieces = [html.unescape(piece) for piece in unescaped.split("<!-- -->")]
    assert "".join(pieces) == " ".join(escaped(" ".join(text.split())).split())
    for piece in pieces:
        assert not re.search(r"@\w|[#!]\d|\bGH-\d", piece, re.IGNORECASE)
    assert not re.search(r"www\.|://", plain(text), re.IGNORECASE)


def test_markdown_says_the_same_figures_as_the_terminal() -> None:
    for held in (report("bert_trt10", "sync.sqlite"), report("bert_trt10", "graph_whole.sqlite")):
        marked, text = report_markdown(held), report_text(held)
        for figure in re.findall(r"\d[\d,]*\.\d+ [mµ]?s\b", text):
            assert figure in marked, figure


def test_regions_that_differ_in_numbers_are_one() -> None:
    folder = FIXTURES / "decode_loop"
    text = report_markdown(
        report_of(
            analyze(
                folder / "sync.nsys-rep",
                [folder / "context.engine.json", folder / "generation.engine.json"],
                rules=(),
            )
        )
    )
    heads = re.findall("<h3>Inside (.*?)</h3>", text)
    assert len(heads) == 6  # of 18 regions
    assert heads[0].startswith("4 × {ForeignNode[LLaMAForCausalLM/transformer/layers/*/")
    assert heads[0].endswith("of generation")


def test_a_whole_graph_trace_opens_with_the_error() -> None:
    text = report_markdown(report("bert_trt10", "graph_whole.sqlite"))
    first_row = next(line for line in text.splitlines() if line.startswith("| **"))
    assert first_row.startswith(
        "| **Doubt** | The trace hides the kernels of 50 CUDA graph launches"
    )
    assert not any(heading.startswith("Layers (") for heading, _ in folded(text))
    assert "measured from outside" in text


def test_the_answer_comes_first_and_each_assumption_once() -> None:
    text = report_markdown(report("bert_trt10", "sync.sqlite"))
    assert (
        text.index("while profiled")
        < text.index("**Do first**")
        < text.index("Where GPU time goes")
        < text.index("<summary>Captured")
    )
    assert "`cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);" in text
    assert text.count("Corrected for the profiler") == 1
