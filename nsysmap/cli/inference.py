"""`nsysmap inference`: what made one inference slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress, width
from nsysmap.cli.inputs import reader_option

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("inference")
@click.argument("files", metavar="REPORT [ENGINE]... N|slowest|p99", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the text.")
@reader_option
def inference_command(*, files: tuple[str, ...], as_json: bool, reader: Reader) -> None:
    """Put one inference beside the median one: what made it slow, kernel by kernel and gap by gap.

    N is its number, from 0, as the report has it.  Times are as recorded, profiler included.

    \b
    Example:
      nsysmap inference report.nsys-rep engine.json slowest
    """
    import json

    from nsysmap.analysis import analyze
    from nsysmap.base.errors import NsysmapError
    from nsysmap.comparison.inference import one_inference
    from nsysmap.comparison.inference_page import inference_json, inference_text
    from nsysmap.mapping.given_files import given_files

    *paths, which = files
    if not paths:
        raise NsysmapError(which, "stands alone", "give a report, its engine files, and which inference: a number, slowest or p99")
    given = given_files(paths)
    with progress() as tell:
        analysis = analyze(given.report, given.engines, rules=[], reader=reader, progress=tell)
        found = one_inference(analysis.tables.by_name(), analysis.source, which)
    click.echo(json.dumps(inference_json(found), indent=1) if as_json else inference_text(found, width() or 100))
