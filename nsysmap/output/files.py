"""The files that an analysis is written to: the suffix names the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysmap.analysis import Analysis
    from nsysmap.answer.model import Answer


def output_suffixes() -> tuple[str, ...]:
    """Every suffix that names a format."""
    from nsysmap.output.page.write import SUFFIX as PAGE
    from nsysmap.output.perfetto.write import SUFFIXES as PERFETTO
    from nsysmap.output.write import SUFFIXES

    return (PAGE, *SUFFIXES, *PERFETTO)


def write_analysis(analysis: Analysis, path: Path) -> None:
    """Writes an analysis that has no report yet. Raises NsysmapError for a path that cannot be
    written or names no format.
    """
    from nsysmap.core.output_file import check_output
    from nsysmap.output.build import report_of

    check_output(path, output_suffixes(), ())
    write_output(lambda: analysis, report_of(analysis), path)


def write_output(analysis: Callable[[], Analysis], report: Answer, path: Path) -> None:
    """Write an analysis in the format that the suffix of ``path`` names; whole or not at all.

    ``analysis`` is called for a format that shows more than its report holds.
    """
    from nsysmap.output.page.write import SUFFIX as PAGE
    from nsysmap.output.page.write import write_page
    from nsysmap.output.perfetto.write import SUFFIXES as PERFETTO
    from nsysmap.output.perfetto.write import write_trace
    from nsysmap.output.write import write_report

    suffix = path.suffix.lower()
    if suffix == PAGE:
        write_page(analysis(), report, path)
    elif suffix in PERFETTO:
        write_trace(analysis(), path)
    else:
        write_report(report, path)
