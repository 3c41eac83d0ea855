"""`nsysmap export`: what a trace measured, in the form of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import quiet_option, reader_option, report_and_engine
from nsysmap.core.errors import NsysmapError
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("export", short_help="Write measured layer times as trex files.")
@report_and_engine
@click.option(
    "--trex",
    "folder",
    metavar="DIR",
    required=True,
    help="Write graph.json, profile.json and timing.json for NVIDIA's trex into DIR.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@quiet_option
@reader_option
def export_command(
    *, files: tuple[str, ...], folder: str, force: bool, quiet: bool, reader: Reader
) -> None:
    """Write an engine's measured times in another tool's format.

    REPORT is an .nsys-rep or what `nsys export` made of one, ENGINE the file of trtexec
    --exportLayerInfo, in either order. With --trex the times of profile.json are measured kernel
    times: per layer and inference, as trtexec --exportProfile would give them.

    \b
    Example:
      nsysmap export --trex trex/ report.nsys-rep engine.json
    """
    from nsysmap.analysis import measured
    from nsysmap.mapping.given_files import one_engine
    from nsysmap.mapping.mapped_trace import map_report, read_engines
    from nsysmap.output.trex import trex_files, trex_name, trex_words, write_trex

    engine_file, report = one_engine(
        files, lambda given, name: f"nsysmap export --trex {name}/ {given}"
    )
    if report is None:
        raise NsysmapError(engine_file, "is an engine without a run of it", "give the report too")
    with progress(quiet=quiet) as tell:
        engines = read_engines([engine_file])
        mapped = map_report(report, engines, reader=reader, progress=tell)
        tell("writing")
        contents = trex_files(engines[0], measured(mapped), mapped.kernels, mapped.inferences)
        written = write_trex(
            contents,
            Path(folder),
            trex_name(Path(engine_file)),
            [Path(report), Path(engine_file)],
            force=force,
        )
    for line in () if quiet else trex_words(contents, written):
        click.echo(escaped(line))
