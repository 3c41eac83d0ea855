"""`nsysmap export`: what a trace measured, in the form of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.base.terminal import escaped
from nsysmap.cli.console import progress
from nsysmap.cli.inputs import reader_option

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("export")
@click.argument("report")
@click.argument("engine_file", metavar="ENGINE")
@click.option(
    "--trex", "folder", metavar="DIR", required=True, help="Write graph.json, profile.json and timing.json for NVIDIA's trex into DIR."
)
@click.option("--force", is_flag=True, help="Overwrite files that are there already.")
@reader_option
def export_command(report: str, engine_file: str, folder: str, force: bool, reader: Reader) -> None:
    """Write what a trace measured of an engine in the form of another tool.

    REPORT is an .nsys-rep or what `nsys export` made of one, ENGINE the file of trtexec --exportLayerInfo.  With --trex the
    times of profile.json are measured kernel times: per layer and inference, as trtexec --exportProfile would give them.

    \b
    Example:
      nsysmap export --trex trex/ report.nsys-rep engine.json
    """
    from nsysmap.analysis import measured
    from nsysmap.mapping.mapped_trace import map_report, read_engines
    from nsysmap.report.trex import trex_files, trex_name, trex_words, write_trex

    with progress() as tell:
        engines = read_engines([engine_file])
        mapped = map_report(report, engines, reader=reader, progress=tell)
        tell("writing")
        files = trex_files(engines[0], measured(mapped), mapped.kernels, mapped.inferences)
        written = write_trex(files, Path(folder), trex_name(Path(engine_file)), [Path(report), Path(engine_file)], force=force)
    for line in trex_words(files, written):
        click.echo(escaped(line))
