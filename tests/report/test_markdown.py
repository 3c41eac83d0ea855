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
from nsysmap.output.text.report import report_text
from nsysmap.text.terminal import code, escaped, plain
from tests.places import FIXTURES
from tests.reports import hostile, report


def cells(row: str) -> list[str]:
    """The cells of a table row as GitHub parts them: a bar after an odd number of backslashes parts
    nothing.
    """
    assert row.startswith("| ")
    assert row.endswith(" |")
    return re.split(r"(?<!\\)(?:\\\\)*\|", row[1:-1])


@pytest.mark.parametrize("engine", [True, False])
def test_every_row_of_a_table_has_as_many_cells_as_its_heading(*, engine: bool) -> None:
    for text in (
        report_markdown(hostile()),
        report_markdown(report("bert_trt10", "graph.sqlite", engine=engine)),
    ):
        tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
        assert len(tables) > 5
        for table in tables:
            assert {len(cells(row)) for row in table} == {len(cells(table[1]))}, table[0]


def test_no_name_becomes_html_a_link_or_a_control_character() -> None:
    text = report_markdown(hostile())
    assert "<script" not in text
    assert "](http" not in re.sub(r"\\.", "", text)
    assert "http://" not in text
    assert text.replace("\n", "").isprintable()
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert set(re.findall(r"</?([A-Za-z]\w*)", outside)) <= {"code", "details", "summary"}


@pytest.mark.parametrize("most", [12_000, 16_000])
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
    assert re.search(r"^(?:- )?… and [\d,]+ more: a comment of GitHub has", cut, re.MULTILINE)
    hidden = [
        sum(
            int(number.replace(",", ""))
            for number in re.findall(r"^(?:- )?… and ([\d,]+) more", one, re.MULTILINE)
        )
        for one in (whole, cut)
    ]
    rows = [sum(line.startswith(("| ", "- ")) for line in one.splitlines()) for one in (whole, cut)]
    told = sum(line.startswith("- … and") for line in cut.splitlines())
    assert hidden[1] - hidden[0] == rows[0] - rows[1] + told
    assert "all: `nsysmap analyze" in cut
    assert cut.count("<details>") == cut.count("</details>") == whole.count("<details>")
    assert cut.partition("## Costliest")[0] == whole.partition("## Costliest")[0]
    assert re.findall("^#.*", cut, re.MULTILINE) == re.findall("^#.*", whole, re.MULTILINE)


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
        # after fewer rows
        told = "\n".join(
            line for line in text.split("Findings")[0].splitlines() if "(all others)" not in line
        )
        for figure in re.findall(r"\d[\d,]*\.\d+ [mµ]?s\b", told):
            assert figure in marked, figure


def test_a_table_has_a_column_of_engines_only_where_there_are_several() -> None:
    assert "| share | time | layers | kind | layer |" in report_markdown(
        report("bert_trt10", "sync.sqlite")
    )


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
    heads = re.findall("^### Inside (.*)", text, re.MULTILINE)
    assert len(heads) == 6  # of 18 regions
    assert heads[0].startswith(
        plain("4 × {ForeignNode[LLaMAForCausalLM/transformer/layers/*/ELEMENTWISE_SUM_0...")
    )
    assert heads[0].endswith("of generation")
    costliest = next(part for part in text.split("\n## ") if part.startswith("Costliest layers"))
    assert (
        "| share | time | layers | engine | kind | layer |" in costliest
        and "| 4 | `generation` | plugin |" in costliest
    )
    times = [
        float(time)
        for time in re.findall(
            r"^### Inside [^\n]*\n\n[^\n]*\n[^\n]*\n\| [^|]* \| ([\d.]+) µs", text, re.MULTILINE
        )
    ]
    assert times == sorted(times, reverse=True) and len(times) == 3


def test_a_whole_graph_trace_opens_with_the_error() -> None:
    text = report_markdown(report("bert_trt10", "graph_whole.sqlite"))
    assert text.split("\n\n")[1].startswith(
        "- **error:** The trace hides the kernels of 50 CUDA graph launches"
    )
    assert "## Layers" not in text
    assert "measured from outside" in text


def test_the_answer_comes_first_and_each_assumption_once() -> None:
    text = report_markdown(report("bert_trt10", "sync.sqlite"))
    assert (
        text.index("per inference in the trace")
        < text.index("## Do first")
        < text.index("## Costliest layers")
        < text.index("## Captured")
    )
    assert "`cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);" in text
    assert text.count("Corrected for the profiler") == 1
    assert "All 56 layers" in text
