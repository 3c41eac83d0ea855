"""Reports that an agent opened: where it may open files, and what it can ask of each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.schema import ALL_TABLES
from nsysmap.output.brief import NAMES_ARE_DATA, brief

if TYPE_CHECKING:
    from nsysmap.api import Analysis

ANSWER_BYTES = 48_000
"""The rows of one answer take at most so many bytes of JSON: a model reads every one of them."""

MOST_ROWS = 200  # of an answer to a program: more would fill the context that it reads with
_FORMS = (".nsys-rep", ".sqlite", ".json", ".plan", ".engine", ".onnx")
_MOST_FILES = 20_000  # so many are looked at
_KEPT = 8  # opened reports; the one that was opened first is forgotten

Answer = dict[str, object]


@dataclass(frozen=True)
class Opened:
    """One report with its engine files, and its analysis."""

    report: Path
    engines: tuple[Path, ...]
    analysis: Analysis


@dataclass
class Desk:
    """The folders whose files may be opened, and the reports that are open, by id."""

    folders: tuple[Path, ...]
    opened: dict[str, Opened] = field(default_factory=dict)
    count: int = 0

    def path(self, name: str) -> Path:
        """The file, with links followed.  Raises NsysmapError if it lies in none of the folders or
        is no file.
        """
        found = Path(name) if Path(name).is_absolute() else self.folders[0] / name
        real = found.resolve()
        if not any(real.is_relative_to(folder) for folder in self.folders):
            raise NsysmapError(
                name,
                "lies outside the folders that this server may read",
                f"use a file in {' or '.join(map(str, self.folders))}",
            )
        if not real.exists():
            raise NsysmapError(name, "there is no such file", "call list_files")
        return real

    def list_files(self) -> Answer:
        """Reports and files that may be engines in the folders, each as a path to open."""
        found: list[object] = []
        looked_at = 0
        for folder in self.folders:
            for place, inside, names in os.walk(folder):
                inside[:] = sorted(name for name in inside if not name.startswith("."))
                looked_at += len(names)
                found += [str(Path(place, name)) for name in sorted(names) if name.endswith(_FORMS)]
                if looked_at > _MOST_FILES:
                    break
        return {**_rows("files", found), "all_folders_searched": looked_at <= _MOST_FILES}

    def open_report(self, report: str, engines: Sequence[str], onnx: str | None) -> Answer:
        """Analyse a report; the answer is the brief, with the id by which the others ask."""
        from nsysmap.api import analyze

        path = self.path(report)
        beside = tuple(self.path(engine) for engine in engines)
        done = analyze(path, beside, onnx=self.path(onnx) if onnx else None)
        self.count += 1
        name = f"r{self.count}"
        self.opened[name] = Opened(path, beside, done)
        for oldest in list(self.opened)[:-_KEPT]:
            del self.opened[oldest]
        return {"id": name, **brief(done.summary)}

    def of(self, report_id: str) -> Opened:
        """The opened report.  Raises NsysmapError if there is none of that id."""
        if report_id not in self.opened:
            known = ", ".join(self.opened) or "none yet"
            raise NsysmapError(
                report_id, f"is no open report (open: {known})", "call open_report first"
            )
        return self.opened[report_id]

    def answer(self, report_id: str) -> Answer:
        """The brief of an opened report."""
        return {"id": report_id, **brief(self.of(report_id).analysis.summary)}

    def query(self, report_id: str, sql: str, rows: int = 50) -> Answer:
        """The first rows of one SELECT over the tables of an opened report."""
        from nsysmap.rules.select import select

        found = select(sql, self.of(report_id).analysis.tables.by_name())
        shown = found.slice(0, min(max(rows, 1), MOST_ROWS)).to_pylist()
        return _rows("rows", [_plain(row) for row in shown], of=found.num_rows)

    def layers(self, report_id: str, rows: int = 20) -> Answer:
        """The costliest layers: title, kind, precision, kernels, and time per inference in ns."""
        return self.query(
            report_id,
            "SELECT layer_index, title, name, kind, precision, kernels, time_ns,"
            " share_of_all_kernel_time, onnx FROM layers WHERE time_ns IS NOT NULL"
            " ORDER BY time_ns DESC",
            rows,
        )

    def inference(self, report_id: str, which: str = "slowest") -> Answer:
        """What made one inference (its number, slowest, p99) slower than the others."""
        from nsysmap.comparison.inference import one_inference
        from nsysmap.comparison.inference_page import inference_json

        opened = self.of(report_id)
        tables = opened.analysis.tables.by_name()
        return _marked(inference_json(one_inference(tables, opened.report.name, which)))

    def what_if(self, report_id: str) -> Answer:
        """What each change would save, by replay; times in ns per inference or pass."""
        return self.query(
            report_id,
            "SELECT change, answer, before_ns, after_ns, saving_ns, low_saving_ns, high_saving_ns,"
            " assumptions, reason FROM whatif ORDER BY saving_ns DESC NULLS LAST",
            MOST_ROWS,
        )

    def findings(self, report_id: str, rule: str | None = None, rows: int = 10) -> Answer:
        """What the rules found, the most costly first, with evidence and advice."""
        quoted = "" if rule is None else "'{}'".format(rule.replace("'", "''"))
        chosen = f"AND rule = {quoted}" if quoted else ""
        return self.query(
            report_id,
            "SELECT rule, severity, message, cost_ns, share_of_window, layer_title, evidence,"
            f" advice, command FROM findings WHERE inside IS NULL {chosen}"
            " ORDER BY cost_ns DESC NULLS LAST",
            rows,
        )

    def compare(self, before_id: str, after_id: str) -> Answer:
        """What changed from one opened report to another, where, and whether it is noise."""
        from nsysmap.comparison.compare import compare
        from nsysmap.comparison.pages import comparison_json

        before, after = self.of(before_id), self.of(after_id)
        found = compare(
            before.report,
            after.report,
            engine_before=before.engines,
            engine_after=after.engines,
        )
        return _marked(comparison_json(found))


def tables(table: str | None = None) -> Answer:
    """The tables that `query` reads; of one table its columns with kind, unit and meaning."""
    if table is None:
        return {"tables": {spec.name: spec.comment for spec in ALL_TABLES}}
    found = next((spec for spec in ALL_TABLES if spec.name == table.strip().lower()), None)
    if found is None:
        raise NsysmapError(table, "is no table", "call tables without a name to list them")
    return {
        "table": found.name,
        "a_row_is": found.comment,
        "columns": [
            {"name": one.name, "kind": one.kind, "unit": one.unit or None, "meaning": one.comment}
            for one in found.columns
        ],
    }


def _rows(what: str, rows: Sequence[object], *, of: int | None = None) -> Answer:
    """The rows that fit into one answer, and how many there are in all."""
    taken, size = 0, 0
    for row in rows:
        size += len(json.dumps(row, ensure_ascii=False).encode())
        if size > ANSWER_BYTES:
            break
        taken += 1
    count = len(rows) if of is None else of
    return {"about_names": NAMES_ARE_DATA, what: rows[:taken], "shown": taken, "of": count}


def _marked(found: Answer) -> Answer:
    """The answer with what its names are; lists lose their ends where it is too long."""
    whole: Answer = {"about_names": NAMES_ARE_DATA, **found}
    left_out: dict[str, int] = {}
    while len(json.dumps(whole, ensure_ascii=False).encode()) > ANSWER_BYTES:
        lists = {key: held for key, held in whole.items() if isinstance(held, list) and held}
        if not lists:
            break
        key = max(lists, key=lambda one: len(json.dumps(lists[one])))
        kept = len(lists[key]) // 2
        left_out[key] = left_out.get(key, 0) + len(lists[key]) - kept
        whole[key] = lists[key][:kept]
    return {**whole, "left_out": left_out} if left_out else whole


def _plain(row: dict[str, object]) -> Answer:
    from nsysmap.output.query import json_value

    return {name: json_value(value) for name, value in row.items()}
