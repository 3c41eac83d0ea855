"""`nsysmap sql`: SQL over the tables of an analysis."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress, width
from nsysmap.cli.inputs import (
    annotations_option,
    completing,
    graph_annotations,
    onnx_model,
    onnx_option,
    reader_option,
)
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    import pyarrow

    from nsysmap.core.table import Spec, Table
    from nsysmap.mapping.mapped_trace import Progress
    from nsysmap.trace.open_report import Reader


def _names_of_tables() -> Iterable[str]:
    from nsysmap.core.schema import ALL_TABLES

    return (table.name for table in ALL_TABLES)


@click.command("sql", short_help="Query the tables of an analysis with SQL.")
@click.argument(
    "arguments",
    metavar="[REPORT [ENGINE]...] [SELECT|TABLE]",
    nargs=-1,
    shell_complete=completing(_names_of_tables, paths=True),
)
@click.option("--csv", "form", flag_value="csv", help="Print the rows as CSV.")
@click.option(
    "--json", "form", flag_value="json", help="Print the rows as a JSON array of objects."
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help="Write the rows to FILE: .csv, .json or .parquet. Repeatable.",
)
@onnx_option
@annotations_option
@reader_option
def sql_command(
    *,
    arguments: tuple[str, ...],
    form: str | None,
    outputs: tuple[str, ...],
    onnx_file: str | None,
    annotations_file: str | None,
    reader: Reader,
) -> None:
    """Run a SELECT over the tables of an analysis: kernels, layers, inferences, idle time, what-if,
    findings, …

    REPORT and ENGINE are as for `nsysmap analyze`, in any order; then one SELECT in DuckDB's
    dialect (- reads it from standard input), or the name of a table to describe.  Without either,
    all tables are listed with their columns.  The statement can read these tables and nothing else,
    within limits of time and memory.

    \b
    Examples:
      nsysmap sql report.nsys-rep engine.json
      nsysmap sql kernels
      nsysmap sql report.nsys-rep engine.json "SELECT name, time_ns FROM layers ORDER BY time_ns"
      nsysmap sql report.nsys-rep "FROM inferences" -o inferences.parquet
    """
    from nsysmap.core.output_file import check_output
    from nsysmap.output.query import SUFFIXES
    from nsysmap.rules.select import asked_among, checked_select

    asked = asked_among(arguments)
    sql = sys.stdin.read() if asked.sql == "-" else asked.sql
    written = [Path(path) for path in outputs]
    for path in written:
        check_output(
            path,
            SUFFIXES,
            [Path(one) for one in (*asked.files, onnx_file, annotations_file) if one],
        )
    if sql is None and (written or form):
        raise click.UsageError("--csv, --json and -o need a SELECT.")
    if sql is None:
        with progress() as tell:
            tables = (
                _tables(asked.files, onnx_file, annotations_file, reader, tell)
                if asked.files
                else None
            )
            text = _described(asked.table, tables)
        click.echo(text, nl=False)
        return
    with checked_select(sql) as statement:  # before a large report is read
        if not asked.files:
            raise click.UsageError("a SELECT needs a REPORT to read.")
        with progress() as tell:
            answer = statement.over(_tables(asked.files, onnx_file, annotations_file, reader, tell))
    _show(answer, form, written)


def _tables(
    files: Sequence[str],
    onnx_file: str | None,
    annotations_file: str | None,
    reader: Reader,
    tell: Progress,
) -> Mapping[str, Table]:
    """The tables of the analysis of these files, by name; each is worked out when it is asked
    for.
    """
    from nsysmap.analysis import analyze_mapped, unprofiled_times
    from nsysmap.mapping.given_files import given_files
    from nsysmap.mapping.mapped_trace import map_report, read_engines
    from nsysmap.timing.annotated_nodes import annotation_notes

    given = given_files(files)
    engines, times = read_engines(given.engines), unprofiled_times(None, given.engines)
    mapped = map_report(
        given.report, engines, model=onnx_model(onnx_file), reader=reader, progress=tell
    )
    annotations = graph_annotations(annotations_file)
    found = analyze_mapped(mapped, times=times, annotations=annotations, progress=tell)
    if annotations:
        for note in annotation_notes(found.tables.graph_annotations, mapped.kernels):
            if note.level == "warning":
                click.echo(f"nsysmap: warning: {escaped(note.text)}", err=True)
    return found.tables.by_name()


def _described(table: Spec | None, tables: Mapping[str, Table] | None) -> str:
    """One table and its columns, or all of them; with the numbers of their rows if there
    are any.
    """
    from nsysmap.output.query import table_text, tables_text

    columns = width() or 100
    if table is not None:
        return table_text(table, None if tables is None else len(tables[table.name]), width=columns)
    rows = None if tables is None else {name: len(held) for name, held in tables.items()}
    return tables_text(rows, width=columns)


def _show(answer: pyarrow.Table, form: str | None, written: Sequence[Path]) -> None:
    """Writes the rows to the requested file, or prints them if no file was requested."""
    from nsysmap.output.query import answer_text, rest_words, write_answer, write_csv, write_json
    from nsysmap.text.units import counted

    for path in written:
        write_answer(answer, path)
    if form is not None:
        printed = io.StringIO() if sys.stdout.isatty() else sys.stdout
        (write_csv if form == "csv" else write_json)(answer, printed)
        if isinstance(printed, io.StringIO):
            click.echo("\n".join(map(escaped, printed.getvalue().splitlines())))
    elif written:
        for path in written:
            click.echo(f"{escaped(str(path))}: {counted(answer.num_rows, 'row')}", err=True)
    else:
        on_terminal = sys.stdout.isatty()
        click.echo(answer_text(answer, width=width() if on_terminal else None), nl=False)
        if on_terminal and (rest := rest_words(answer)):
            click.echo(rest, err=True)
