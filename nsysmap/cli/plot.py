"""`nsysmap plot`: one figure of a report as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import chosen, completing, quiet_option, reader_option, selecting
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader

_KINDS = ("layers", "idle", "inferences", "roofline", "what-if")


@click.command("plot", short_help="Draw one figure of a report.")
@click.argument(
    "files",
    metavar="REPORT [ENGINE]...",
    nargs=-1,
    shell_complete=completing(lambda: _KINDS, paths=True),  # which is the kind shows at the end
)
@click.argument("kind", metavar="KIND", type=click.Choice(_KINDS))
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    required=True,
    multiple=True,
    help="The picture: .png or .svg. Repeatable.",
)
@click.option(
    "--profile",
    metavar="FILE",
    help="trtexec --exportProfile file of the same engine: adds its times.",
)
@quiet_option
@reader_option
@selecting
def plot_command(  # one parameter an option
    *,
    files: tuple[str, ...],
    kind: str,
    outputs: tuple[str, ...],
    profile: str | None,
    quiet: bool,
    reader: Reader,
) -> None:
    """Draw one figure of a report.

    \b
    layers      time by layer, repeated layers together
    idle        each GPU's time: work, and idle time by cause
    inferences  the time of each inference over the run
    roofline    each layer's rate and the GPU's limits; needs the engine file
    what-if     the time per inference before and after each change

    \b
    Example:
      nsysmap plot report.nsys-rep engine.json idle -o idle.png
    """
    from nsysmap.api import analyze
    from nsysmap.core.output_file import check_output
    from nsysmap.mapping.given_files import given_files
    from nsysmap.output.plots.write import SUFFIXES, write_plot

    if not files:
        raise click.UsageError("Missing argument 'REPORT [ENGINE]...'.")
    given = given_files(files)
    for path in outputs:
        check_output(Path(path), SUFFIXES, [Path(one) for one in (*files, profile) if one])
    with progress(quiet=quiet) as tell:
        analysis = analyze(
            given.report,
            given.engines,
            profile=profile,
            rules=(),
            reader=reader,
            selection=chosen(),
            progress=tell,
        )
        tell("drawing")
        for path in outputs:
            write_plot(analysis, kind, Path(path))
    for path in () if quiet else outputs:
        click.echo(f"{kind} of {escaped(analysis.source)} → {escaped(path)}")
