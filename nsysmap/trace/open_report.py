"""Opens a trace in whatever form it is given: a report, which nsys exports or nsysmap reads itself,
or an export in any form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.note import Note
from nsysmap.core.table import MISSING
from nsysmap.inputs.nsys.forms import exported_tables, head_of
from nsysmap.inputs.nsys.looks import looks_like
from nsysmap.inputs.nsys.sqlite_columns import sqlite_tables
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.text.progress import percent_done
from nsysmap.trace.model import Trace
from nsysmap.trace.reader import trace_of

Reader = Literal["auto", "nsys", "own"]
"""Which reader opens a .nsys-rep: nsys by an export, nsysmap itself, or (auto) nsys if an installed
one is recent enough, otherwise nsysmap.
"""

Progress = Callable[[str], None]


def open_trace(
    report: str | Path, *, reader: Reader = "auto", progress: Progress | None = None
) -> Trace:
    """Opens the trace in a .nsys-rep or in an export of one; ``progress`` receives each step.

    Raises NsysmapError if it is neither, is damaged, or the reader that was asked for cannot read
    it.
    """
    if reader not in get_args(Reader):
        raise NsysmapError(
            f"reader {reader}", "is none", f"use one of: {', '.join(get_args(Reader))}"
        )
    path = named_path(report)
    tables = exported_tables(path, progress=_reading(progress))
    if tables is not None:
        return trace_of(tables, source=path.name)
    if reader == "own":
        return _own(path, progress)
    from nsysmap.inputs.nsys.export import nsys_for

    if reader == "auto" and nsys_for(path) is None:
        return _own(path, progress)
    if reader == "nsys":
        return _by_export(path, progress)
    try:
        return _with_graph_traces(_by_export(path, progress), path)
    except NsysmapError as refused:
        return _own_instead(path, refused, progress)


def _reading(progress: Progress | None) -> Callable[[int], None] | None:
    if progress is None:
        return None
    return lambda percent: progress(percent_done("reading the report", percent))


def _own(path: Path, progress: Progress | None) -> Trace:
    other = looks_like(path, head_of(path))
    if other is not None:
        raise NsysmapError(str(path), *other)
    if progress is not None:
        progress("reading the report")
    from nsysmap.inputs.nsys.own_reader import own_tables

    return trace_of(own_tables(path), source=path.name)


def _own_instead(path: Path, refused: NsysmapError, progress: Progress | None) -> Trace:
    """Reads a report that nsys refused with our own reader; raises nsys's error if that
    fails too.
    """
    try:
        trace = _own(path, progress)
    except NsysmapError:
        raise refused from None
    told = f"nsys could not export the report ({refused.what}); nsysmap read it itself."
    return replace(trace, notes=(*trace.notes, Note("info", told)))


def _with_graph_traces(trace: Trace, path: Path) -> Trace:
    """The trace with the executions of whole CUDA graphs that the report holds and nsys 2023.4's
    export leaves out.
    """
    replayed = (
        trace.api_calls.text("kind").equals("graph-launch").any()
        and (trace.kernels.ints("graph_node_id") == MISSING).all()
    )
    if not replayed or len(trace.cuda_graph_traces):
        return trace
    try:
        own = _own(path, None)
    except NsysmapError:
        return trace
    if not len(own.cuda_graph_traces) or len(own.api_calls) != len(trace.api_calls):
        return trace
    told = (
        "The executions of whole CUDA graphs were read from the report itself, because nsys's"
        " export leaves them out."
    )
    return replace(
        trace, cuda_graph_traces=own.cuda_graph_traces, notes=(*trace.notes, Note("info", told))
    )


def _by_export(path: Path, progress: Progress | None) -> Trace:
    from nsysmap.inputs.nsys import export_cache

    made = _exported(path, progress)
    try:
        return trace_of(_tables(path, made, progress), source=path.name)
    except NsysmapError:  # a cached export that was damaged since: make it anew, once
        export_cache.forget(made)
        return trace_of(_tables(path, _exported(path, progress), progress), source=path.name)


def _exported(path: Path, progress: Progress | None) -> Path:
    from nsysmap.inputs.nsys.export import export

    return export(
        path,
        progress=(
            None
            if progress is None
            else lambda percent: progress(percent_done("exporting with nsys", percent))
        ),
    )


def _tables(report: Path, made: Path, progress: Progress | None) -> NsysTables:
    from nsysmap.inputs.nsys.export import report_version
    from nsysmap.inputs.nsys.own_reader import version_in_report

    tables = sqlite_tables(made, progress=_reading(progress))
    return replace(
        tables, form="nsys-rep", written_by=report_version(report) or version_in_report(report)
    )
