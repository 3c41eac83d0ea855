"""The Python API: `analyze`, and what it returns, which shows and writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap import analysis
from nsysmap.answer.model import Answer
from nsysmap.mapping.mapped_trace import map_report, read_engines

if TYPE_CHECKING:
    from nsysmap.inputs.engine.onnx_model import OnnxModel
    from nsysmap.inputs.ncu.printed import NcuKernel
    from nsysmap.inputs.torch.graph_annotations import NodeAnnotation
    from nsysmap.mapping.mapped_trace import Progress
    from nsysmap.mapping.selection import Selection
    from nsysmap.output.notebook import FramedPage
    from nsysmap.rules.rule_file import Rule
    from nsysmap.trace.open_report import Reader


class Summary(Answer):
    """The answer of one analysis; printed, it is the first screen of `nsysmap analyze`."""

    def __str__(self) -> str:
        from nsysmap.output.text.report import NARROWEST, report_text

        return report_text(self, width=NARROWEST).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from nsysmap.output.answers import whole_answer
        from nsysmap.output.notebook import notebook_html
        from nsysmap.output.sections import sections_of

        return notebook_html(self, [*whole_answer(self), *sections_of(self)])


class Analysis(analysis.Analysis):
    """The result of analysing one report, with every form in which it is shown and written."""

    def to_html(self) -> str:
        """The interactive page that `nsysmap analyze -o report.html` writes, as HTML text."""
        from nsysmap.output.build import report_of
        from nsysmap.output.page.write import page

        return page(self, report_of(self))

    def page(self, height: int = 720) -> FramedPage:
        """The same page for a notebook: as the value of a cell it is shown in a frame of this many
        pixels, with its timeline, and stays in the saved notebook.
        """
        from nsysmap.output.notebook import FramedPage

        return FramedPage(self.to_html(), height)

    def write(self, path: str | Path) -> None:
        """Write the analysis as `nsysmap analyze -o` does: the suffix of ``path`` names the format;
        the file is whole or not there.

        Raises NsysmapError for a suffix that names none, and for a path that cannot be written.
        """
        from nsysmap.output.files import write_analysis

        write_analysis(self, Path(path))

    @cached_property
    def summary(self) -> Summary:
        """The answer, which prints as the first screen does."""
        found = super().summary
        return Summary(**{one.name: getattr(found, one.name) for one in fields(found) if one.init})

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


def analyze(
    report: str | Path,
    engine: str | Path | Sequence[str | Path] | None = None,
    *,
    profile: str | Path | None = None,
    times: str | Path | None = None,
    onnx: str | Path | None = None,
    ncu: str | Path | None = None,
    graph_annotations: str | Path | None = None,
    rules: Sequence[Rule] | None = None,
    reader: Reader = "auto",
    selection: Selection | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Analyse one report with the files of the engines that ran in it (without any, layers come
    from the trace's ranges).

    ``profile`` is trtexec's --exportProfile file.  ``times`` is a file of trtexec's times without
    the profiler (see :func:`nsysmap.analysis.unprofiled_times`).  ``onnx`` is the model that the
    engine was built from: its nodes name the kernels inside opaque regions. ``ncu`` is Nsight
    Compute's printed output (--csv) or its report.  ``graph_annotations`` is a JSON file of
    PyTorch's annotations of CUDA graph nodes.  ``rules`` defaults to rules.packs.chosen_rules():
    the built-in rules, with the parameters set in nsysmap.toml or pyproject.toml of the current
    folder; an empty list runs none. ``selection`` restricts all figures to a part of the report.

    The files are read and kernels mapped at once; everything else is worked out when it is first
    asked for.  ``progress`` is called with the name of each step, then too.

    Raises NsysmapError for input that cannot be used.
    """
    paths = [] if engine is None else [engine] if isinstance(engine, (str, Path)) else list(engine)
    engines = read_engines(paths, profile=profile)
    measured_times = analysis.unprofiled_times(times, paths)
    model: OnnxModel | None = None
    profiled: tuple[NcuKernel, ...] = ()
    annotations: tuple[NodeAnnotation, ...] = ()
    if onnx is not None:
        from nsysmap.inputs.engine.onnx_model import read_model

        model = read_model(onnx)
    if ncu is not None:
        from nsysmap.inputs.ncu.report_file import read_ncu

        profiled = read_ncu(Path(ncu))
    if graph_annotations is not None:
        from nsysmap.inputs.torch.graph_annotations import read_annotations

        annotations = read_annotations(Path(graph_annotations))
    mapped = map_report(
        report, engines, model=model, reader=reader, selection=selection, progress=progress
    )
    done = analysis.analyze_mapped(
        mapped,
        rules=rules,
        times=measured_times,
        ncu=profiled,
        annotations=annotations,
        progress=progress,
    )
    return Analysis(*(getattr(done, field.name) for field in fields(done)))
