"""A section is written once: every form of output shows it."""

from __future__ import annotations

import pytest

from nsysmap.answer.model import Answer
from nsysmap.output import sections
from nsysmap.output.answers import above_actions, below_actions
from nsysmap.output.markdown import report_markdown
from nsysmap.output.notebook import notebook_html
from nsysmap.output.page.answer import OWN_ANSWERS
from nsysmap.output.page.write import OWN_SECTIONS, page
from nsysmap.output.sections import SECTIONS, sections_of
from nsysmap.output.text.report import report_text
from nsysmap.text.page import Grid, Paragraph
from tests.reports import analysis, report

NAME = "<b>made up</b> | of a stranger"


def _made_up(_report: Answer, _width: int) -> sections.Made:
    table = Grid(("share", "name"), (("12.3%", NAME),), "rl", names=(1,))
    return "A section of a test", [Paragraph("It says something new."), table]


@pytest.fixture
def with_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "SECTIONS", {**SECTIONS, "made-up": _made_up})


@pytest.mark.usefixtures("with_one_more")
def test_a_section_that_is_written_once_is_in_every_form() -> None:
    held = report("bert_trt10", "sync.sqlite")
    forms = {
        "terminal": report_text(held, width=80, full=True),
        "Markdown": report_markdown(held),
        "page": page(analysis("bert_trt10", "sync.sqlite"), held),
        "notebook": notebook_html(held, sections_of(held)),
    }
    for form, text in forms.items():
        assert "A section of a test" in text, form
        assert "It says something new." in text.replace("\\", ""), form
        assert "12.3%" in text, form
        assert "made up" in text, form
    for form in ("Markdown", "page", "notebook"):
        assert "<b>made" not in forms[form].replace(f"`{NAME}`", ""), form


def test_what_a_form_shows_in_its_own_way_is_a_section_or_an_answer() -> None:
    assert SECTIONS.keys() >= OWN_SECTIONS
    summary = report("bert_trt10", "sync.sqlite")
    keys = {one.key for one in (*above_actions(summary), *below_actions(summary))}
    assert keys >= OWN_ANSWERS - {"kinds"}  # this capture has one kind of inference
