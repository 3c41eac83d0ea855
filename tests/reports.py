"""Analyses of the fixtures, made once for all tests of the report."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from nsysmap.answer.model import Answer
from nsysmap.api import Analysis, analyze
from nsysmap.core.note import Note
from nsysmap.core.table import Table
from nsysmap.inputs.nsys.forms import exported_tables
from nsysmap.output.build import report_of
from nsysmap.rules.finding import Finding, Outcome, Skip
from nsysmap.trace.model import Trace
from nsysmap.trace.reader import trace_of
from tests.places import FIXTURES


@cache
def analysis(folder: str, report: str, *, engine: bool = True, rules: bool = False) -> Analysis:
    """The analysis of fixtures/FOLDER/REPORT, with its engine file, and with no rules unless
    wanted.
    """
    path = FIXTURES / folder / report
    return analyze(
        path, FIXTURES / folder / "engine.json" if engine else None, rules=None if rules else ()
    )


@cache
def report(folder: str, report: str, *, engine: bool = True, rules: bool = False) -> Answer:
    """The report of the same."""
    return report_of(analysis(folder, report, engine=engine, rules=rules))


def read_trace(path: Path) -> Trace:
    """The trace that nsys exported to this path, without the programs and caches of
    `open_report`.
    """
    tables = exported_tables(path)
    assert tables is not None, f"{path} is not an nsys export"
    return trace_of(tables, source=path.name)


NASTY = (
    "<script>alert(1)</script>|`a``b`\\|*_x_*[l](http://e.vil)\x1b[31m\x07\nnew line\r\t\u202e&amp;"
    + "long/" * 60
)


def with_tables(report: Answer, **tables: Table) -> Answer:
    """The report of an analysis that has these tables in place of its own."""
    return replace(report, tables=report.tables.with_tables(**tables))


def numbered(table: Table, name: str, **columns: str) -> Table:
    """The same rows, each named that with its number after it, and with these texts in other
    columns.
    """
    return Table.of_rows(
        table.spec,
        [{**row, **columns, "name": f"{name}{i}"} for i, row in enumerate(table.records())],
    )


def hostile() -> Answer:
    """A report whose every name and message is meant to break something."""
    real = report("bert_trt10", "graph.sqlite", engine=False)
    tables = real.tables
    finding = Finding(
        rule="some-rule", group="launch", severity="warning", message=NASTY, start_ns=0, end_ns=1,
        cost_ns=5, share_of_window=float(1 / 3),
        layer_index=0, layer=NASTY, evidence={"layer": NASTY, "n": 1}, advice=NASTY,
    )  # fmt: skip
    outcomes = (
        Outcome("some-rule", "launch", "warning", (finding,)),
        Outcome("other-rule", "host", "info", (), Skip(NASTY)),
    )
    return replace(
        real,
        trace=replace(real.trace, source=NASTY, nsys_version=NASTY),
        gpus=tuple(replace(gpu, name=NASTY) for gpu in real.gpus),
        tables=tables.with_tables(
            layers=numbered(tables.layers, NASTY, tactic=NASTY, type=NASTY),
            kernel_totals=numbered(tables.kernel_totals, NASTY, summary=NASTY, rest=NASTY),
            unmapped=Table.of_rows(
                tables.unmapped.spec, [{"reason": NASTY, "kernels": 1, "time_ns": 1}]
            ),
            coverage=Table.of_rows(
                tables.coverage.spec,
                [
                    *tables.coverage.records(),
                    {"method": "none", "kernels": 1, "time_ns": 1, "share_of_kernel_time": 0.0},
                ],
            ),
        ),
        outcomes=outcomes,
        notes=(Note("error", NASTY), Note("info", NASTY)),
    )
