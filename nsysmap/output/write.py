"""Chooses the writer by a report file's suffix, and writes files completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nsysmap.core.errors import NsysmapError
from nsysmap.core.output_file import replacing

if TYPE_CHECKING:
    from nsysmap.answer.model import Answer

WRITERS: Mapping[str, tuple[str, str]] = {
    ".json": ("nsysmap.output.json", "write_json"),
    ".md": ("nsysmap.output.markdown", "write_markdown"),
    ".db": ("nsysmap.output.db", "write_db"),
}
"""For each suffix the module of the writer, imported only when it writes, and its function."""

SUFFIXES = tuple(WRITERS)


def write_report(report: Answer, path: Path) -> None:
    """Write the report in the format that the suffix of ``path`` names; whole or not at all."""
    module, function = WRITERS.get(path.suffix.lower(), ("", ""))
    if not module:
        raise NsysmapError(
            str(path), "has no suffix that names a format", f"use {', '.join(SUFFIXES)}"
        )
    write = cast("Callable[[Answer, Path], None]", getattr(import_module(module), function))
    with replacing(path) as fresh:
        write(report, fresh)
