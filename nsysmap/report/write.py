"""Which writer a report file's suffix names, and writing whole files only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nsysmap.base.errors import NsysmapError
from nsysmap.base.output_file import replacing
from nsysmap.report.model import Report

SUFFIXES = (".json", ".md", ".db")


def write_report(report: Report, path: Path) -> None:
    """Write the report in the format that the suffix of ``path`` names; whole or not at all."""
    write = _writer(path)
    with replacing(path) as fresh:
        write(report, fresh)


def _writer(path: Path) -> Callable[[Report, Path], None]:
    suffix = path.suffix.lower()
    if suffix == ".json":
        from nsysmap.report.json import write_json

        return write_json
    if suffix == ".md":
        from nsysmap.report.markdown import write_markdown

        return write_markdown
    if suffix == ".db":
        from nsysmap.report.db import write_db

        return write_db
    raise NsysmapError(str(path), "has no suffix that names a format", f"use {', '.join(SUFFIXES)}")
