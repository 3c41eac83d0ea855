"""`nsysmap map`: which layer each kernel belongs to, one row per kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import (
    chosen,
    onnx_model,
    onnx_option,
    quiet_option,
    reader_option,
    report_and_engines,
    selecting,
)
from nsysmap.core.errors import NsysmapError
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.mapping.mapped_trace import MappedTrace
    from nsysmap.trace.open_report import Reader


@click.command("map", short_help="Write the layer of each kernel, one row per kernel.")
@report_and_engines
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help=(
        "Write the map to FILE: .csv, .parquet or .json; - writes CSV to standard output."
        " Repeatable, once per format."
    ),
)
@onnx_option
@click.option(
    "--explain",
    "kernel_id",
    metavar="KERNEL_ID",
    type=int,
    help="Instead, show all evidence for one kernel.",
)
@click.option("--json", "as_json", is_flag=True, help="With --explain: one JSON object.")
@quiet_option
@reader_option
@selecting
def map_command(  # one parameter an option
    *,
    files: tuple[str, ...],
    outputs: tuple[str, ...],
    onnx_file: str | None,
    kernel_id: int | None,
    as_json: bool,
    quiet: bool,
    reader: Reader,
) -> None:
    """Write the layer of each kernel and how it is known, one row per kernel.

    REPORT is an .nsys-rep or what `nsys export` made of one.  ENGINE is the file of trtexec
    --exportLayerInfo; without one, layers are those named by the trace's NVTX ranges.  The files
    can be given in any order.  Without -o only the coverage is shown.

    \b
    Examples:
      nsysmap map report.nsys-rep engine.json -o map.csv
      nsysmap map report.nsys-rep engine.json --explain 1234
    """
    from nsysmap.core.output_file import check_output
    from nsysmap.mapping.given_files import given_files
    from nsysmap.mapping.mapped_trace import map_report, read_engines
    from nsysmap.output.kernel_map import SUFFIXES, coverage_line, write_map, write_rows
    from nsysmap.timing.totals import coverage

    if kernel_id is not None and outputs:
        raise click.UsageError("--explain shows one kernel and writes no map: leave -o out.")
    if as_json and kernel_id is None:
        raise click.UsageError("--json goes with --explain; for the whole map write -o FILE.json.")
    if kernel_id is not None and chosen() is not None:
        raise click.UsageError(
            "--explain shows one kernel of the whole report: leave the options out that select a"
            " part of it."
        )
    if quiet and not outputs:
        raise click.UsageError("--quiet without -o FILE would show nothing.")
    given = given_files(files)
    written = [Path(path) for path in outputs if path != "-"]
    for path in written:
        check_output(path, SUFFIXES, [Path(one) for one in (*files, onnx_file) if one])
    with progress(quiet=quiet) as tell:
        engines = read_engines(given.engines)
        mapped = map_report(
            given.report,
            engines,
            model=onnx_model(onnx_file),
            reader=reader,
            selection=chosen(),
            progress=tell,
        )
        if not len(mapped.kernels) and mapped.selected is None:
            raise NsysmapError(
                given.report,
                "has no GPU kernels to map",
                "run `nsysmap analyze` on it: it says what the trace has, what it lacks, and how to"
                " capture that",
            )
        kernels = mapped.as_in_report(mapped.kernels)
        for path in written:
            tell(f"writing {path.name}")
            write_map(kernels, path)
        if "-" in outputs:
            write_rows(kernels, sys.stdout.buffer)
    if kernel_id is not None:
        _explain(mapped, kernel_id, as_json=as_json)
        return
    if quiet:
        return
    of_engines = [
        note for engine in mapped.engines for note in engine.notes if note.level != "info"
    ]
    for note in (*mapped.trace.notes, *of_engines, *mapped.mapped.notes):
        click.echo(f"nsysmap: {note.level}: {escaped(note.text)}", err=True)
    line = coverage_line(coverage(mapped.kernels), hidden=len(mapped.trace.cuda_graph_traces) > 0)
    click.echo(line, err=bool(outputs))
    if not outputs:
        click.echo("write the map with -o FILE.csv, .parquet or .json")


def _explain(mapped: MappedTrace, kernel_id: int, *, as_json: bool) -> None:
    """Show what one kernel's layer rests on."""
    from nsysmap.mapping.explain import explain
    from nsysmap.output.explain import explain_json, explain_text

    held = explain(mapped, kernel_id)
    if as_json:
        import json

        click.echo(json.dumps(explain_json(held), indent=1))
    else:
        click.echo(explain_text(held))
