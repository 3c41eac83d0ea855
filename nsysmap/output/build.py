"""The report of an analysis."""

from __future__ import annotations

from nsysmap.analysis import Analysis
from nsysmap.answer.report import Report, whole_answer


def report_of(analysis: Analysis) -> Report:
    """The report of an analysis: every figure that the report's writers show."""
    return whole_answer(analysis.summary, analysis.tables, analysis.outcomes, analysis.notes)
