"""Analyses one report of a fleet in its own process: python -m nsysmap.fleet.task, which reads its
task from standard input.

It ends when that input ends, so it never outlives the worker that started it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from nsysmap import __version__
from nsysmap.analysis import Analysis, analyze_mapped
from nsysmap.core.errors import NsysmapError
from nsysmap.core.marked_folder import marked_folder
from nsysmap.core.memory import keep_freed_memory
from nsysmap.core.system import end_own_group
from nsysmap.core.table import MISSING, Spec, Table, Text
from nsysmap.fleet.dataset import CONTENT_BYTES, PLACE_BYTES, finished, rows_of, write_parts
from nsysmap.fleet.schema import (
    FLEET_FINDINGS,
    FLEET_IDLE,
    FLEET_INFERENCES,
    FLEET_LAYERS,
    FLEET_REPORTS,
    FLEET_TABLES,
)
from nsysmap.fleet.sources import Source, file_system, without_secrets
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, read_engines
from nsysmap.network.titles import called_text
from nsysmap.rules.packs import builtin_rules_dir, chosen_rules

_COPIED_AT_ONCE = 1 << 22  # bytes


def main() -> None:
    """Do the job that the first line of standard input describes, as JSON, and print what came of
    it, as JSON.
    """
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    keep_freed_memory()
    try:
        answer = work(job)
    except NsysmapError as error:
        own = error.where == job["url"]
        answer = {"failed": without_secrets(f"{error.what}; {error.remedy}" if own else str(error))}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    end_own_group()  # with the nsys that it may have started


def work(job: Mapping[str, Any]) -> dict[str, object]:
    """Analyse a report and write its rows into the dataset, unless they are there; the key that
    they are under.
    """
    source, folder = Source(job["url"], job["labels"]), Path(job["folder"])
    with _local(source.url) as report:
        if report.exists() and not report.is_file():  # a pipe would be waited for
            raise NsysmapError(str(report), "is not a file", "give a report")
        key = _key(report, job)
        if finished(folder, key):
            return {"key": key, "kept": True}
        mapped = map_report(report, read_engines(job["engines"]))
        analysis = analyze_mapped(mapped, rules=chosen_rules(job["rules"]))
        tables = tables_of(analysis, mapped, source.columns(key, job["name"]))
        write_parts(folder, key, tables, Path(job["unfinished"]))
    return {"key": key, "kept": False}


@contextmanager
def _local(url: str) -> Iterator[Path]:
    """The report as a file of this machine: where it lies elsewhere, a copy that is removed in the
    end.
    """
    if "://" not in url and "::" not in url:
        yield Path(url)
        return
    system, path = file_system(url)
    with marked_folder(Path(tempfile.gettempdir()) / f"nsysmap-fleet.{os.getpid()}") as folder:
        copy = folder / Path(path.partition("?")[0]).name
        try:
            with system.open(path, "rb") as there, copy.open("wb") as here:
                while piece := there.read(_COPIED_AT_ONCE):
                    here.write(piece)
        except (OSError, ValueError) as error:
            raise NsysmapError(
                url,
                f"cannot be copied ({error})",
                "check the address, your access, and the free space here",
            ) from error
        yield copy


def _key(report: Path, job: Mapping[str, Any]) -> str:
    """The path of the report, then what the rows follow from; the report's own bytes are among it,
    so that a changed one is analysed anew.
    """
    digest = blake2b(digest_size=CONTENT_BYTES)
    digest.update(
        json.dumps([__version__, job["labels"]], sort_keys=True).encode("utf-8", "surrogateescape")
    )
    rules = [
        path
        for pack in (builtin_rules_dir(), *map(Path, job["rules"]))
        for path in sorted(pack.rglob("*.yaml"))
    ]
    for path in (*map(Path, job["engines"]), *rules, report):
        digest.update(b"\0" + path.name.encode("utf-8", "surrogateescape") + b"\0")
        try:
            with path.open("rb") as file:
                while piece := file.read(_COPIED_AT_ONCE):
                    digest.update(piece)
        except OSError as error:
            raise NsysmapError(
                str(path), f"cannot be read ({error.strerror})", "check the path"
            ) from error
    return (
        blake2b(os.fsencode(without_secrets(job["url"])), digest_size=PLACE_BYTES).hexdigest()
        + digest.hexdigest()
    )


def tables_of(
    analysis: Analysis, mapped: MappedTrace, columns: dict[str, object]
) -> tuple[Table, ...]:
    """A report's rows of FLEET_TABLES."""
    tables = analysis.tables
    sources = tuple(engine.source for engine in analysis.engines)
    inferences, layers = tables.inferences, tables.layers
    ran = layers.take(layers.ints("time_ns") != MISSING)
    steady = inferences.bools("complete") & ~inferences.bools("warmup")
    rows: dict[Spec, dict[str, object]] = {
        FLEET_INFERENCES: (
            _same(FLEET_INFERENCES, inferences)
            | {
                "engine": _named(sources, inferences),
                "gpu_time_ns": inferences.ints("gpu_busy_ns"),
                "steady": steady,
            }
        ),
        FLEET_LAYERS: (
            _same(FLEET_LAYERS, ran)
            | {
                "engine": _named(sources, ran),
                "layer": ran.text("name"),
                "layer_title": called_text(ran),
            }
        ),
        FLEET_FINDINGS: _same(FLEET_FINDINGS, tables.findings),
        FLEET_IDLE: _same(FLEET_IDLE, tables.idle_totals),
    }
    reports = Table.of_rows(FLEET_REPORTS, [{**columns, **_summary(analysis, mapped, steady)}])
    return tuple(
        reports if spec is FLEET_REPORTS else rows_of(spec, columns, rows[spec])
        for spec in FLEET_TABLES
    )


def _same(spec: Spec, table: Table) -> dict[str, object]:
    """The columns that the table has under the same names."""
    return {
        column.name: table.columns[column.name]
        for column in spec.columns
        if column.name in table.columns
    }


def _named(sources: tuple[str, ...], table: Table) -> Text:
    """The engine's file name for its number."""
    number = table.ints("engine")
    return Text(np.where(number >= 0, number, -1).astype(np.int32), sources)


def _summary(
    analysis: Analysis, mapped: MappedTrace, steady: np.ndarray[Any, np.dtype[np.bool_]]
) -> dict[str, object]:
    """The row of `reports`."""
    tables = analysis.tables
    errors = [note.text for note in analysis.notes if note.level == "error"]
    used = np.isin(tables.devices.ints("device"), tables.device_times.ints("device"))
    names = tables.devices.take(used).text("name").list()
    mapped_ns = sum(
        row.integer("time_ns") for row in tables.coverage if row.text("method") != "none"
    )
    all_ns = sum(row.integer("time_ns") for row in tables.coverage)
    busy = [(row.maybe_integer("busy_ns"), row.integer("window_ns")) for row in tables.device_times]
    known = [(part, whole) for part, whole in busy if part is not None]
    capture = tables.capture.only()
    began = mapped.trace.recording.began_at_ns
    return {
        "captured_at_ns": began,
        "nsys_version": capture.maybe_text("nsys_version"),
        "tensorrt_version": capture.maybe_text("tensorrt_version"),
        "gpu": ", ".join(sorted({name for name in names if name})) or None,
        "kernels": len(tables.kernels),
        "mapped_share": mapped_ns / all_ns if all_ns else None,
        "inferences": int(np.count_nonzero(steady)),
        "gpu_time_ns": _median(tables.inferences.ints("gpu_busy_ns")[steady]),
        "enqueue_ns": _median(tables.inferences.ints("enqueue_ns")[steady]),
        "busy_share": (
            sum(part for part, _ in known) / sum(whole for _, whole in known)
            if any(whole for _, whole in known)
            else None
        ),
        "findings": len(tables.findings),
        "skipped_rules": len(analysis.skipped),
        "errors": len(errors),
        "first_error": errors[0] if errors else None,
    }


def _median(values: np.ndarray[Any, np.dtype[np.int64]]) -> int | None:
    held = values[values != MISSING]
    return int(np.median(held)) if len(held) else None


if __name__ == "__main__":
    main()
