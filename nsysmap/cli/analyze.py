"""`nsysmap analyze`: the whole report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import colour, progress, width
from nsysmap.cli.inputs import chosen, quiet_option, reader_option, report_and_engines, selecting
from nsysmap.cli.outputs import output_suffixes, write_output

if TYPE_CHECKING:
    from nsysmap.base.note import Level
    from nsysmap.trace.open_report import Reader


@click.command("analyze", short_help="Where the time goes, why, and what to do first.")
@report_and_engines
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file of the same engine: adds its times.")
@click.option("--ncu", metavar="FILE", help="Nsight Compute's counters of the same program: what ncu --csv printed.")
@click.option("--times", metavar="FILE", help="trtexec --exportTimes file or log of a run without the profiler: says what profiling cost.")
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help="Also write the report: .html (an interactive page), .perfetto-trace, .json, .md or .db. Repeatable, one a format.",
)
@click.option("--onnx", "onnx_file", metavar="MODEL", help="The ONNX model behind the engine: names what runs inside opaque regions.")
@click.option("--rules", "folders", metavar="DIR", multiple=True, help="Run the rules in this folder too. Repeatable.")
@click.option("--param", "params", metavar="RULE.NAME=VALUE", multiple=True, help="Set a rule's parameter. Repeatable.")
@click.option("--fail-on", type=click.Choice(["info", "warning", "error"]), help="Exit status 1 if a rule this severe or more finds any.")
@click.option("--full", is_flag=True, help="Show everything: all layers, kernels, what-if answers, findings and what could not be told.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the text.")
@quiet_option
@reader_option
@selecting
def analyze_command(  # noqa: PLR0913  # one parameter an option
    *,
    files: tuple[str, ...],
    profile: str | None,
    times: str | None,
    ncu: str | None,
    outputs: tuple[str, ...],
    onnx_file: str | None,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    fail_on: Level | None,
    full: bool,
    as_json: bool,
    quiet: bool,
    reader: Reader,
) -> int:
    """Say what an inference takes, which layers cost it, why the GPU is idle, and what to do first.

    REPORT is an .nsys-rep or what `nsys export` made of one.  ENGINE is the file of trtexec --exportLayerInfo; without
    one, layers are those that the trace's NVTX ranges name.  The files may stand in any order.

    \b
    Examples:
      nsysmap analyze report.nsys-rep engine.json -o report.html -o report.md
      nsysmap analyze report.nsys-rep engine.json --json | jq .answer
    """
    from nsysmap.analysis import analyze
    from nsysmap.base.output_file import check_output
    from nsysmap.mapping.given_files import given_files
    from nsysmap.report.build import report_of
    from nsysmap.report.findings import failed_text
    from nsysmap.report.text import report_text
    from nsysmap.rules.finding import at_least
    from nsysmap.rules.packs import chosen_rules
    from nsysmap.rules.parameters import parse_params

    given = given_files(files)
    written = [Path(path) for path in outputs]
    for path in written:
        check_output(path, output_suffixes(), [Path(one) for one in (*files, profile, times, onnx_file, ncu) if one])
    rules = chosen_rules(folders, params=parse_params(params))
    with progress(quiet=quiet) as tell:
        analysis = analyze(
            given.report, given.engines, profile=profile, times=times, onnx=onnx_file, ncu=ncu, rules=rules, reader=reader,
            selection=chosen(), progress=tell,
        )  # fmt: skip
        content = report_of(analysis)
        for path in written:
            tell(f"writing {path.name}")
            write_output(analysis, content, path)
    if as_json:
        import json

        from nsysmap.report.json import report_json

        click.echo(json.dumps(report_json(content), indent=1, allow_nan=False))
    elif not quiet:
        click.echo(report_text(content, width=width(), full=full, colour=colour()), nl=False)
    failing = at_least(analysis.findings, fail_on) if fail_on else ()
    if fail_on and failing:
        click.echo("nsysmap: " + failed_text(failing, fail_on), err=True)
    return 1 if failing else 0
