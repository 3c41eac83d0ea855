"""The dataset of a fleet's results: one folder per table, with one Parquet file per report."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.marked_folder import is_abandoned
from nsysmap.core.table import Spec, Table
from nsysmap.fleet.schema import FLEET_REPORTS, FLEET_TABLES, OF_REPORT

if TYPE_CHECKING:
    import pyarrow

MARK = "nsysmap-fleet.json"
_MARK_TEXT = '{"schema": "nsysmap/fleet/2"}\n'
PLACE_BYTES, CONTENT_BYTES = 8, 12
"""A key is a digest of the report's location, followed by one of everything its rows depend on."""
UNFINISHED = ".unfinished."
"""How the folder is called in which the tasks of a run write, before the process's number."""
_PART = re.compile(r"[0-9a-f]{40}\.parquet")
_ABANDONED_S = 86_400.0  # a day: no run still writes what is older
_UNFINISHED = re.compile(r"\.[0-9a-f]{40}\.parquet\.\d+\.part")


def open_dataset(folder: Path) -> None:
    """Creates the folder, or checks that it is one of our datasets. Raises NsysmapError if it
    contains anything else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / MARK
        if not mark.exists() and any(folder.iterdir()):
            raise NsysmapError(
                str(folder),
                "is not empty, and is not a fleet's dataset",
                "give a new folder, or that of an earlier run",
            )
        if mark.exists() and mark.read_text("utf-8") != _MARK_TEXT:
            raise NsysmapError(
                str(folder), "is a dataset of another version of nsysmap", "give a new folder"
            )
        mark.write_text(_MARK_TEXT, encoding="utf-8")
        for spec in FLEET_TABLES:
            (folder / spec.name).mkdir(exist_ok=True)
    except OSError as error:
        raise NsysmapError(
            str(folder), f"cannot be written ({error.strerror or error})", "give a writable folder"
        ) from error


def part(folder: Path, spec: Spec, key: str) -> Path:
    """The file with one report's rows of a table."""
    return folder / spec.name / f"{key}.parquet"


def finished(folder: Path, key: str) -> bool:
    """Whether all tables of the report with this key are complete."""
    return part(folder, FLEET_REPORTS, key).is_file()


def write_parts(folder: Path, key: str, tables: Iterable[Table], unfinished: Path) -> None:
    """Write one report's rows, each file first into the folder ``unfinished``, that of `reports`
    last, which marks the others as complete. Concurrent writers of the same rows write equal files.
    """
    import pyarrow.parquet as pq

    held = {table.spec.name: table for table in tables}
    for spec in FLEET_TABLES:
        target = part(folder, spec, key)
        fresh = unfinished / f"{spec.name}.{target.name}.{os.getpid()}"
        try:
            pq.write_table(arrow(held[spec.name]), fresh)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)


def arrow(table: Table) -> pyarrow.Table:
    """The rows with the declared types and plain text, so that the files of all reports have one
    schema.
    """
    import pyarrow as pa

    kinds = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "text": pa.string()}
    schema = pa.schema([(column.name, kinds[column.kind]) for column in table.spec.columns])
    return table.arrow().cast(schema)


def superseded(folder: Path, kept: dict[str, str]) -> int:
    """Remove the parts of reports that have been analysed again (by name, with the current key);
    returns the number of reports.

    A report is identified by its name and its location, which stays the same when the dataset is
    moved.
    """
    import pyarrow.parquet as pq

    gone = 0
    places = {key[: 2 * PLACE_BYTES]: key for key in kept.values()}
    for path in sorted((folder / FLEET_REPORTS.name).iterdir()):
        if not _PART.fullmatch(path.name):
            continue
        row = pq.read_table(path, columns=["report"]).column(0)[0].as_py()
        key = path.name.removesuffix(".parquet")
        if {kept.get(str(row), key), places.get(key[: 2 * PLACE_BYTES], key)} != {key}:
            for spec in reversed(FLEET_TABLES):
                part(folder, spec, key).unlink(missing_ok=True)
            gone += 1
    return gone


def sweep(folder: Path) -> None:
    """Remove what killed runs and tasks left behind: the folders of unfinished files, and parts of
    reports that are not finished after a day.
    """
    for left in folder.glob(f"{UNFINISHED}*"):
        if is_abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    for spec in FLEET_TABLES:
        for path in list((folder / spec.name).iterdir()):
            whole = _PART.fullmatch(path.name) and finished(
                folder, path.name.removesuffix(".parquet")
            )
            ours = _PART.fullmatch(path.name) or _UNFINISHED.fullmatch(path.name)
            with suppress(FileNotFoundError):  # finished or removed by another run
                if ours and not whole and time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()


def rows_of(spec: Spec, columns: dict[str, object], rows: dict[str, Any]) -> Table:
    """The table with these rows: the columns about the report, then its own columns."""
    count = len(next(iter(rows.values())))
    report = Table.of_rows(Spec("report", "the columns about the report", OF_REPORT), [columns])
    return Table(spec, {**report.take(np.zeros(count, np.int64)).columns, **rows})
