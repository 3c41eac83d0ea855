"""`nsysmap graph`: the engine as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import engine_and_report, quiet_option, reader_option
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("graph", short_help="Draw an engine with the time of each layer.")
@engine_and_report
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    required=True,
    multiple=True,
    help="The picture: .svg, .png, .dot or .html. Repeatable, once per format.",
)
@click.option(
    "--color",
    type=click.Choice(["time", "kind", "precision"]),
    help="What the colours show; by default time if it is known, else kind.",
)
@click.option(
    "--collapse",
    type=click.Choice(["auto", "block", "region", "none"]),
    default="auto",
    help=(
        "Draw each repeated block or Myelin region as one box; auto: if there are more than 150"
        " layers."
    ),
)
@click.option(
    "--profile", metavar="FILE", help="trtexec --exportProfile file: times if there is no REPORT."
)
@quiet_option
@reader_option
def graph_command(  # one parameter an option
    *,
    files: tuple[str, ...],
    outputs: tuple[str, ...],
    color: str | None,
    collapse: str,
    profile: str | None,
    quiet: bool,
    reader: Reader,
) -> None:
    """Draw an engine: its layers, the tensors between them, and where the time goes.

    ENGINE is the file of trtexec --exportLayerInfo.  REPORT, an .nsys-rep or what `nsys export`
    made of one, gives the
    times.  The files can be given in either order.
    An .html file is one page that works offline: drag to move, scroll to zoom, search by name,
    click a layer for its details.

    \b
    Examples:
      nsysmap graph engine.json report.nsys-rep -o engine.html
      nsysmap graph engine.json -o engine.svg --color precision
      nsysmap graph engine.json report.nsys-rep -o engine.png --collapse block
    """
    from nsysmap.analysis import engine_runs
    from nsysmap.core.output_file import check_output
    from nsysmap.mapping.given_files import one_engine
    from nsysmap.output.picture.model import picture, times_of
    from nsysmap.output.picture.write import SUFFIXES, write_graph

    engine_file, report = one_engine(
        files, lambda given, name: f"nsysmap graph {given} -o {name}{Path(outputs[0]).suffix}"
    )
    written = [Path(path) for path in outputs]
    for path in written:
        check_output(
            path, SUFFIXES, [Path(given) for given in (engine_file, report, profile) if given]
        )
    with progress(quiet=quiet) as tell:
        (run,) = engine_runs([engine_file], report, profile=profile, reader=reader, progress=tell)
        times = times_of(run.engine, run.times, run.source)
        for path in written:
            tell(f"drawing {path.name}")
            drawn = picture(
                run.engine,
                times,
                mode=color,
                collapse=collapse,
                all_views=path.suffix.lower() == ".html",
            )
            write_graph(drawn, path)
            if not quiet:
                click.echo(f"{escaped(drawn.title)} → {escaped(str(path))}")
    for note in (note for note in run.notes if note.level == "error"):
        click.echo(f"{note.level}: {escaped(note.text)}", err=True)
    if report is not None and (times is None or not times.kernels):
        click.echo(
            f"warning: {escaped(run.source)} shows no kernel of this engine: the picture has none"
            " of its times",
            err=True,
        )
