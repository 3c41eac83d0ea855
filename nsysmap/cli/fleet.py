"""`nsysmap fleet`: many reports at once."""

from __future__ import annotations

from pathlib import Path

import click

from nsysmap.cli.console import progress, width
from nsysmap.text.lines import WHOLE
from nsysmap.text.terminal import escaped


@click.command("fleet", short_help="Analyse many reports and show how they differ.")
@click.argument("reports", metavar="GLOB|DIR|LIST...", nargs=-1, required=True)
@click.option(
    "--engine",
    "engines",
    metavar="ENGINE",
    multiple=True,
    help="Engine file that may have run in the reports. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    help="Folder of the dataset: a new one, or that of an earlier run.",
)
@click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="Also run the rules in this folder. Repeatable.",
)
@click.option(
    "--label",
    "labels",
    metavar="REGEX",
    multiple=True,
    help="Its named groups, matched in each path, become labels. Repeatable.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help=(
        "Address of a Dask scheduler, such as tcp://host:8786; without it, this machine does the"
        " work."
    ),
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=2,
    show_default=True,
    help="Worker processes on this machine.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Time limit for one report, in seconds.",
)
@click.option(
    "--memory",
    "memory_gib",
    type=click.FloatRange(min=0.25),
    default=4.0,
    show_default=True,
    help="Memory limit for one report, in GiB.",
)
def fleet_command(  # one parameter an option
    *,
    reports: tuple[str, ...],
    engines: tuple[str, ...],
    output: str,
    folders: tuple[str, ...],
    labels: tuple[str, ...],
    scheduler: str | None,
    workers: int,
    timeout_s: float,
    memory_gib: float,
) -> int:
    """Analyse many reports and show how they differ: by group, by rank and over time.

    Reports are files, folders, globs in quotes, or text files that list these, one per line; on any
    file system that fsspec supports (s3://…).  A report that is broken, too slow or killed fails
    alone; reports that are done already are not repeated.  The exit status is 1 if any report
    failed.

    \b
    Example:
      nsysmap fleet 'runs/**/rank*.nsys-rep' --engine engine.json -o fleet/
    """
    from nsysmap.core.extras import need_extras

    need_extras("nsysmap fleet", "distributed", "fsspec")
    from nsysmap.fleet.page import fleet_text, write_page
    from nsysmap.fleet.run import Settings, run_fleet
    from nsysmap.fleet.sources import sources
    from nsysmap.fleet.summary import sections
    from nsysmap.mapping.mapped_trace import read_engines
    from nsysmap.rules.packs import chosen_rules

    found = sources(reports, labels)
    read_engines(engines)  # what is wrong with them is wrong for all
    chosen_rules(folders)
    settings = Settings(
        Path(output), engines, folders, scheduler, workers, timeout_s, int(memory_gib * 2**30)
    )
    with progress() as tell:
        tell("starting the workers")
        done = run_fleet(found, settings, tell)
        tell("comparing the reports")
        said = sections(settings.folder)
        path = write_page(done, said, settings.folder)
    click.echo(fleet_text(done, said, width() or WHOLE), nl=False)
    click.echo(f"page: {escaped(str(path))}")
    return 1 if done.failed else 0
