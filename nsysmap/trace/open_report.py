"""Opens whatever a person has of a trace: a report, which nsys exports first, or an export in any form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nsysmap.base.errors import NsysmapError
from nsysmap.nsys import export_cache
from nsysmap.nsys.export import export, report_version
from nsysmap.nsys.forms import exported_tables
from nsysmap.nsys.sqlite_columns import sqlite_tables
from nsysmap.nsys.tables import NsysTables
from nsysmap.trace.model import Trace
from nsysmap.trace.reader import trace_of


def open_trace(report: str | Path, *, progress: Callable[[str], None] | None = None) -> Trace:
    """The trace in a .nsys-rep (exported through nsys into the cache) or in an export of one; ``progress`` is told what is being done."""
    path = Path(report)
    tables = exported_tables(path)
    if tables is not None:
        return trace_of(tables, source=path.name)
    made = _exported(path, progress)
    try:
        return trace_of(_tables(path, made), source=path.name)
    except NsysmapError:  # a cached export that was damaged since: make it anew, once
        export_cache.forget(made)
        return trace_of(_tables(path, _exported(path, progress)), source=path.name)


def _exported(path: Path, progress: Callable[[str], None] | None) -> Path:
    return export(path, progress=None if progress is None else lambda percent: progress(f"exporting with nsys: {percent} %"))


def _tables(report: Path, made: Path) -> NsysTables:
    return replace(sqlite_tables(made), form="nsys-rep", written_by=report_version(report))
