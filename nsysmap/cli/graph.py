"""`nsysmap graph`: the engine as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.base.errors import NsysmapError
from nsysmap.base.terminal import escaped
from nsysmap.cli.console import progress
from nsysmap.cli.inputs import reader_option

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("graph")
@click.argument("engine_file", metavar="ENGINE")
@click.argument("report", required=False)
@click.option("-o", "--output", metavar="FILE", required=True, help="The picture: .svg, .png, .dot or .html.")
@click.option("--color", type=click.Choice(["time", "kind", "precision"]), help="Colour by; time where it is known, else kind.")
@click.option(
    "--collapse",
    type=click.Choice(["auto", "block", "region", "none"]),
    default="auto",
    help="One box for each repeated block or Myelin region; auto: where there are more than 150 layers.",
)
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file: times where there is no REPORT.")
@reader_option
def graph_command(  # noqa: PLR0913  # one parameter an option
    *,
    engine_file: str,
    report: str | None,
    output: str,
    color: str | None,
    collapse: str,
    profile: str | None,
    reader: Reader,
) -> None:
    """Draw an engine: its layers, the tensors between them, and where the time goes.

    ENGINE is the file of trtexec --exportLayerInfo.  REPORT, an .nsys-rep or an SQLite export of one, gives the times.
    An .html file is one page that works offline: drag to move, scroll to zoom, search by name, click a layer for its details.

    \b
    Examples:
      nsysmap graph engine.json report.nsys-rep -o engine.html
      nsysmap graph engine.json -o engine.svg --color precision
      nsysmap graph engine.json report.nsys-rep -o engine.png --collapse block
    """
    from dataclasses import replace

    from nsysmap.base.output_file import check_output
    from nsysmap.engine.reader import read_engine
    from nsysmap.picture.model import picture, times_of
    from nsysmap.picture.write import SUFFIXES, write_graph

    path = Path(output)
    check_output(path, SUFFIXES, [Path(given) for given in (engine_file, report, profile) if given])
    with progress() as tell:
        if Path(engine_file).suffix in (".nsys-rep", ".qdrep", ".sqlite"):  # the order of the other commands
            if report is None:
                raise NsysmapError(engine_file, "is a report, not an engine", "give the engine file first: nsysmap graph ENGINE [REPORT]")
            engine_file, report = report, engine_file
        engine = replace(read_engine(engine_file, profile=profile), source=Path(engine_file).name)
        notes: tuple[str, ...] = ()
        held = None
        source = ""
        if report is not None:
            from nsysmap.analysis import measured
            from nsysmap.mapping.mapped_trace import map_report

            mapped = map_report(report, [engine], reader=reader, progress=tell)
            held, source = measured(mapped), mapped.trace.source
            notes = tuple(note.text for note in mapped.mapped.notes if note.level == "error")
        tell("drawing")
        times = times_of(engine, held, source)
        drawn = picture(engine, times, mode=color, collapse=collapse, all_views=path.suffix.lower() == ".html")
        write_graph(drawn, path)
    for note in notes:
        click.echo(f"error: {escaped(note)}", err=True)
    click.echo(f"{escaped(drawn.title)} → {escaped(output)}")
    if report is not None and held is not None and (times is None or not times.kernels):
        click.echo(f"warning: {escaped(source)} shows no kernel of this engine: the picture has none of its times", err=True)
