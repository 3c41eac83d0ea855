"""The report of an analysis."""

from __future__ import annotations

from nsysmap.analysis import Analysis
from nsysmap.answer.model import Answer


def report_of(analysis: Analysis) -> Answer:
    """The report of an analysis: every figure that the report's writers show."""
    return analysis.summary
