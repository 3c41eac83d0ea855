"""Recognises the form of nsys's tables at a path (SQLite, a folder of Parquet or Arrow files, JSON
lines), and lists the tables in it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError, no_such_file
from nsysmap.inputs.nsys.arrow_tables import (
    ARROW_MAGIC,
    PARQUET_MAGIC,
    folder_tables,
    stream_tables,
    table_files,
)
from nsysmap.inputs.nsys.json_lines import is_json_lines, json_tables
from nsysmap.inputs.nsys.sqlite_columns import SQLITE_MAGIC, sqlite_tables
from nsysmap.inputs.nsys.tables import NsysTables

if TYPE_CHECKING:
    from nsysmap.inputs.nsys.program import Progress

HEAD_BYTES = 256  # enough to tell every form


def head_of(path: Path) -> bytes:
    """The first bytes of a file.  Raises NsysmapError if it cannot be read, or could not be read a
    second time.
    """
    with _readable(path):
        if not stat.S_ISREG(path.stat().st_mode):
            raise NsysmapError(
                str(path), "is a pipe or a device, not a file", "save the report to a file first"
            )
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)


def exported_tables(path: Path, *, progress: Progress | None = None) -> NsysTables | None:
    """The tables that nsys exported to this path; None if it is a file of another kind, which may
    be a report.

    Raises NsysmapError if it is such an export and cannot be read, a folder without one, or no file
    at all.
    """
    with _readable(path):
        folder = stat.S_ISDIR(path.stat().st_mode)
        form, files = table_files(path) if folder else ("", {})
    if form:
        return folder_tables(path, form, files)
    if folder:
        raise NsysmapError(
            str(path),
            "is a folder without nsys tables (*.parquet or *.arrow)",
            "give the report itself, or the folder that `nsys export -t parquetdir` or `-t"
            " arrowdir` made",
        )
    head = head_of(path)
    if head.startswith(SQLITE_MAGIC):
        return sqlite_tables(path, progress=progress)
    if head.startswith((PARQUET_MAGIC, ARROW_MAGIC)) and path.suffix in (".parquet", ".arrow"):
        raise NsysmapError(
            str(path), "is one table of an exported report", "give the folder that contains it"
        )
    if head.startswith(ARROW_MAGIC):
        return stream_tables(path)
    return json_tables(path) if is_json_lines(head) else None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except OSError as error:
        raise NsysmapError(
            str(path),
            f"cannot be read ({error.strerror or error})",
            "check the path and its permissions",
        ) from error
