"""The Python API: `analyze`, and what it returns, which shows and writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap import analysis
from nsysmap.output.notebook import notebook_html

if TYPE_CHECKING:
    from nsysmap.mapping.mapped_trace import Progress
    from nsysmap.mapping.selection import Selection
    from nsysmap.rules.rule_file import Rule
    from nsysmap.trace.open_report import Reader


class Analysis(analysis.Analysis):
    """The result of analysing one report, with every form in which it is shown and written."""

    def to_html(self) -> str:
        """The interactive page that `nsysmap analyze -o report.html` writes, as HTML text."""
        from nsysmap.output.build import report_of
        from nsysmap.output.page.write import page

        return page(self, report_of(self))

    def write(self, path: str | Path) -> None:
        """Write the analysis as `nsysmap analyze -o` does: the suffix of ``path`` names the format;
        the file is whole or not there.

        Raises NsysmapError for a suffix that names none, and for a path that cannot be written.
        """
        from nsysmap.output.files import write_analysis

        write_analysis(self, Path(path))

    def _repr_html_(self) -> str:
        return notebook_html(self.summary)


def analyze(  # one parameter a file or an option
    report: str | Path,
    engine: str | Path | Sequence[str | Path] | None = None,
    *,
    profile: str | Path | None = None,
    times: str | Path | None = None,
    onnx: str | Path | None = None,
    ncu: str | Path | None = None,
    rules: Sequence[Rule] | None = None,
    reader: Reader = "auto",
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Analyse one report with the files of the engines that ran in it: see
    :func:`nsysmap.analysis.analyze`, which says what each is.
    """
    done = analysis.analyze(
        report,
        engine,
        profile=profile,
        times=times,
        onnx=onnx,
        ncu=ncu,
        rules=rules,
        reader=reader,
        selection=selection,
        progress=progress,
    )
    return shown(done)


def shown(done: analysis.Analysis) -> Analysis:
    """The same analysis, which shows and writes itself."""
    return Analysis(*(getattr(done, field.name) for field in fields(done)))
