"""Reports that an agent opened: where it may open files, and what it can ask of each."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.records import dataclass
from nsysmap.core.schema import ALL_TABLES
from nsysmap.core.table import Row
from nsysmap.output.brief import NAMES_ARE_DATA, brief

if TYPE_CHECKING:
    from nsysmap.api import Analysis

ANSWER_BYTES = 48_000
"""The largest size of one answer as sent: a model reads every byte of it."""

MOST_ROWS = 200  # of an answer to a program: more would fill the context that it reads with
_FORMS = (
    *(".nsys-rep", ".sqlite", ".json", ".plan", ".engine", ".onnx"),
    *(".log", ".ncu-rep", ".csv"),
)
_MOST_FILES = 20_000  # so many are looked at
_NEAR = 3  # names that a misspelt one may have meant
_KEPT = 8  # opened reports; the one that was opened first is forgotten

_TOLD = {"found": "found", "clean": "clean", "skipped": "could not tell"}
"""The text for each outcome of a rule."""

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
        """The file, with links followed; a relative path is one in any of the folders.

        Raises NsysmapError if it lies in none of the folders, is no file, or is one in several.
        """
        real = [named_path(folder / name).resolve() for folder in self.folders]
        allowed = [one for one in real if any(map(one.is_relative_to, self.folders))]
        if not allowed:
            raise NsysmapError(
                name,
                "lies outside the folders that this server may read",
                f"use a file in {' or '.join(map(str, self.folders))}",
            )
        there = [*dict.fromkeys(one for one in allowed if one.exists())]
        if not there:
            raise NsysmapError(name, "there is no such file", "call list_files")
        if len(there) > 1:
            raise NsysmapError(
                name, "is a file in several folders", f"give one of {', '.join(map(str, there))}"
            )
        return there[0]

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

    def open_report(
        self,
        report: str,
        engines: Sequence[str] = (),
        *,
        onnx: str | None = None,
        profile: str | None = None,
        times: str | None = None,
        ncu: str | None = None,
        graph_annotations: str | None = None,
    ) -> Answer:
        """Analyse a report; the answer is the brief, with the id by which the others ask.  The
        other files are those of api.analyze.
        """
        from nsysmap.api import analyze

        path = self.path(report)
        beside = tuple(self.path(engine) for engine in engines)
        done = analyze(
            path,
            beside,
            onnx=self._path_if(onnx),
            profile=self._path_if(profile),
            times=self._path_if(times),
            ncu=self._path_if(ncu),
            graph_annotations=self._path_if(graph_annotations),
        )
        self.count += 1
        name = f"r{self.count}"
        self.opened[name] = Opened(path, beside, done)
        for oldest in list(self.opened)[:-_KEPT]:
            del self.opened[oldest]
        return self.answer(name)

    def _path_if(self, name: str | None) -> Path | None:
        return self.path(name) if name else None

    def of(self, report_id: str) -> Opened:
        """The opened report. Raises NsysmapError if no report has that id."""
        if report_id not in self.opened:
            known = ", ".join(self.opened) or "none yet"
            raise NsysmapError(
                report_id, f"is no open report (open: {known})", "call open_report first"
            )
        return self.opened[report_id]

    def answer(self, report_id: str) -> Answer:
        """The brief of an opened report."""
        opened = self.of(report_id)
        given = [str(one) for one in (opened.report, *opened.engines)]
        return {"id": report_id, **brief(opened.analysis.summary, given)}

    def query(self, report_id: str, sql: str, rows: int = 50, **more: object) -> Answer:
        """The first rows of one SELECT over the tables of an opened report, and what ``more`` there
        is to say.
        """
        from nsysmap.rules.select import select

        if rows < 1:
            raise NsysmapError("rows", f"is {rows}", f"ask for 1 to {MOST_ROWS} rows")
        tables = self.of(report_id).analysis.tables.by_name()
        found = select(sql, tables, lists_tables="the tool tables")
        shown = found.slice(0, min(rows, MOST_ROWS)).to_pylist()
        return _rows("rows", [_plain(row) for row in shown], of=found.num_rows, more=more)

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
        """What the rules found, the most costly first, with evidence and advice; and of the rule,
        or of all rules, whether it could tell.

        The findings of one rule may be told within another's: ``told_within`` is that rule.  Raises
        NsysmapError if there is no such rule.
        """
        outcomes = [*self.of(report_id).analysis.tables.rule_outcomes]
        if rule is None:
            chosen, more = "one.inside IS NULL", _outcomes(outcomes)
        else:
            more = _outcome(outcomes, rule)
            chosen = "one.rule = '{}'".format(rule.replace("'", "''"))
        return self.query(
            report_id,
            "SELECT one.rule, one.severity, one.message, one.cost_ns, one.share_of_window,"
            " one.layer_title, one.evidence, one.advice, one.command, whole.rule AS told_within"
            " FROM findings one LEFT JOIN findings whole ON one.inside = whole.finding_id"
            f" WHERE {chosen} ORDER BY one.cost_ns DESC NULLS LAST, one.finding_id",
            rows,
            **more,
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
        near = get_close_matches(table.lower(), [spec.name for spec in ALL_TABLES], n=_NEAR)
        remedy = f"did you mean {' or '.join(near)}?" if near else "call tables without a name"
        raise NsysmapError(table, "is no table", remedy)
    return {
        "table": found.name,
        "a_row_is": found.comment,
        "columns": [
            {"name": one.name, "kind": one.kind, "unit": one.unit or None, "meaning": one.comment}
            for one in found.columns
        ],
    }


def sent(answer: Answer) -> str:
    """The answer as it is sent: without indents, which a model would read too."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _size(answer: Answer) -> int:
    return len(sent(answer).encode())


def _outcomes(outcomes: Sequence[Row]) -> Answer:
    """How many rules found something, found nothing, or could not decide, and which those are, by
    reason.
    """
    why: dict[str, list[object]] = {}
    for one in outcomes:
        if one.text("outcome") == "skipped":
            why.setdefault(one.maybe_text("reason") or "", []).append(one.text("rule"))
    count = Counter(one.text("outcome") for one in outcomes)
    return {
        "rules": {_TOLD[told]: count[told] for told in _TOLD},
        "could_not_tell": [{"reason": reason, "rules": names} for reason, names in why.items()],
    }


def _outcome(outcomes: Sequence[Row], rule: str) -> Answer:
    """The rule's outcome. Raises NsysmapError if no rule has that name."""
    found = next((one for one in outcomes if one.text("rule") == rule), None)
    if found is None:
        near = get_close_matches(rule, [one.text("rule") for one in outcomes], n=_NEAR)
        raise NsysmapError(
            rule,
            "is no rule",
            f"did you mean {' or '.join(near)}?"
            if near
            else "query SELECT rule, outcome, reason FROM rule_outcomes for all of them",
        )
    return {
        "rule": rule,
        "outcome": _TOLD[found.text("outcome")],
        "reason": found.maybe_text("reason"),
        "left_out": found.integer("left_out"),
    }


def _rows(
    what: str, rows: Sequence[object], *, of: int | None = None, more: Answer | None = None
) -> Answer:
    """The rows that fit into one answer with what ``more`` it says, and how many there are in
    all.
    """
    count = len(rows) if of is None else of
    whole: Answer = {"about_names": NAMES_ARE_DATA, **(more or {})}
    size = _size({**whole, what: [], "shown": count, "of": count})
    taken = 0
    for row in rows:
        size += len(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()) + 1
        if size > ANSWER_BYTES:
            break
        taken += 1
    found: Answer = {**whole, what: rows[:taken], "shown": taken, "of": count}
    if rows and not taken:
        found["shown_none_because"] = "one row is longer than an answer; ask for fewer columns"
    return found


def _marked(found: Answer) -> Answer:
    """The answer with what its names are; lists lose their ends where it is too long."""
    whole: Answer = {"about_names": NAMES_ARE_DATA, **found}
    left_out: dict[str, int] = {}
    while _size({**whole, "left_out": left_out}) > ANSWER_BYTES:
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
