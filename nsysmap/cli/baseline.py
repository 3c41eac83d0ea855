"""`nsysmap baseline`: what a capture measured, in a small file that later captures are held against."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import quiet_option, reader_option, report_and_engines

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("baseline")
@report_and_engines
@click.option("-o", "--output", metavar="FILE", help="Write it to this .json file in place of standard output.")
@quiet_option
@reader_option
def baseline_command(*, files: tuple[str, ...], output: str | None, quiet: bool, reader: Reader) -> None:
    """Write what a capture measured: time per inference, idle time, layers, coverage, findings.

    \b
    Example:
      nsysmap baseline report.nsys-rep engine.json -o base.json
    """
    import json

    from nsysmap.analysis import analyze
    from nsysmap.base.output_file import check_output, replacing
    from nsysmap.comparison.side import side_of
    from nsysmap.gate.baseline import baseline_json, baseline_of
    from nsysmap.mapping.given_files import given_files

    given = given_files(files)
    if output is not None:
        check_output(Path(output), (".json",), [Path(one) for one in files])
    with progress(quiet=quiet) as tell:
        analysis = analyze(given.report, given.engines, reader=reader, progress=tell)
        text = json.dumps(baseline_json(baseline_of(side_of(analysis))), indent=1)
    if output is None:
        click.echo(text)
        return
    with replacing(Path(output)) as fresh:
        fresh.write_text(text + "\n", encoding="utf-8")
