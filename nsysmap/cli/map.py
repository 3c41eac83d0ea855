"""`nsysmap map`: which layer each kernel belongs to, one row a kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.base.errors import NsysmapError
from nsysmap.base.terminal import escaped
from nsysmap.cli.console import progress
from nsysmap.cli.inputs import onnx_model, reader_option

if TYPE_CHECKING:
    from nsysmap.mapping.mapped_trace import MappedTrace
    from nsysmap.trace.open_report import Reader


@click.command("map")
@click.argument("report")
@click.argument("engine_files", metavar="[ENGINE]...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", help="Write the map to FILE: .csv, .parquet or .json; - writes CSV to standard output.")
@click.option("--onnx", "onnx_file", metavar="MODEL", help="The ONNX model behind the engine: names what runs inside opaque regions.")
@click.option("--explain", "kernel_id", metavar="KERNEL_ID", type=int, help="Show every piece of evidence for one kernel instead.")
@click.option("--json", "as_json", is_flag=True, help="With --explain: one JSON object.")
@reader_option
def map_command(  # noqa: PLR0913  # one parameter an option
    *,
    report: str,
    engine_files: tuple[str, ...],
    output: str | None,
    onnx_file: str | None,
    kernel_id: int | None,
    as_json: bool,
    reader: Reader,
) -> None:
    """Write which layer each kernel belongs to, one row a kernel, and how that is known.

    REPORT is an .nsys-rep or what `nsys export` made of one.  ENGINE is the file of trtexec --exportLayerInfo; without
    one, layers are those that the trace's NVTX ranges name.  Without -o only the coverage is shown.

    \b
    Examples:
      nsysmap map report.nsys-rep engine.json -o map.csv
      nsysmap map report.nsys-rep engine.json --explain 1234
    """
    from nsysmap.base.output_file import check_output
    from nsysmap.mapping.mapped_trace import map_report, read_engines
    from nsysmap.report.kernel_map import SUFFIXES, coverage_line, write_map, write_rows
    from nsysmap.timing.totals import coverage

    if kernel_id is not None and output is not None:
        raise click.UsageError("--explain shows one kernel and writes no map: leave -o out.")
    if as_json and kernel_id is None:
        raise click.UsageError("--json goes with --explain; for the whole map write -o FILE.json.")
    if output not in (None, "-"):
        check_output(Path(output), SUFFIXES, [Path(path) for path in (report, *engine_files, onnx_file) if path])
    with progress() as tell:
        mapped = map_report(report, read_engines(engine_files), model=onnx_model(onnx_file), reader=reader, progress=tell)
        if not len(mapped.kernels):
            raise NsysmapError(
                report,
                "has no GPU kernels to map",
                "run `nsysmap analyze` on it: it says what the trace has, what it lacks, and how to capture that",
            )
        if output == "-":
            write_rows(mapped.kernels, sys.stdout.buffer)
        elif output is not None:
            tell("writing the map")
            write_map(mapped.kernels, Path(output))
    if kernel_id is not None:
        _explain(mapped, kernel_id, as_json=as_json)
        return
    for note in (*mapped.trace.notes, *mapped.mapped.notes):
        click.echo(f"nsysmap: {note.level}: {escaped(note.text)}", err=True)
    line = coverage_line(coverage(mapped.kernels))
    click.echo(line, err=output is not None)
    if output is None:
        click.echo("one row a kernel: add -o FILE.csv, .parquet or .json")


def _explain(mapped: MappedTrace, kernel_id: int, *, as_json: bool) -> None:
    """Show what one kernel's layer rests on."""
    from nsysmap.mapping.explain import explain
    from nsysmap.report.explain import explain_json, explain_text

    held = explain(mapped, kernel_id)
    if as_json:
        import json

        click.echo(json.dumps(explain_json(held), indent=1))
    else:
        click.echo(explain_text(held))
