"""`nsysmap analyze`: the whole report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import colour, progress, width
from nsysmap.cli.inputs import onnx_model, reader_option

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("analyze")
@click.argument("report")
@click.argument("engine_files", metavar="[ENGINE]...", nargs=-1)
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file of the same engine: adds its times.")
@click.option("--times", metavar="FILE", help="trtexec --exportTimes file or log of a run without the profiler: says what profiling cost.")
@click.option("-o", "--output", "outputs", metavar="FILE", multiple=True, help="Also write the report: .json, .md or .db. Repeatable.")
@click.option("--onnx", "onnx_file", metavar="MODEL", help="The ONNX model behind the engine: names what runs inside opaque regions.")
@click.option("--rules", "folders", metavar="DIR", multiple=True, help="Run the rules in this folder too. Repeatable.")
@click.option("--param", "params", metavar="RULE.NAME=VALUE", multiple=True, help="Set a rule's parameter. Repeatable.")
@click.option("--fail-on", type=click.Choice(["info", "warning", "error"]), help="Exit status 1 if a rule this severe or more finds any.")
@reader_option
def analyze_command(  # noqa: PLR0913  # one parameter an option
    *,
    report: str,
    engine_files: tuple[str, ...],
    profile: str | None,
    times: str | None,
    outputs: tuple[str, ...],
    onnx_file: str | None,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    fail_on: str | None,
    reader: Reader,
) -> int:
    """Say what ran, which layer each kernel belongs to, where the time goes, and what the rules find.

    REPORT is an .nsys-rep or what `nsys export` made of one.  ENGINE is the file of trtexec --exportLayerInfo; without
    one, layers are those that the trace's NVTX ranges name.

    \b
    Example:
      nsysmap analyze report.nsys-rep engine.json -o report.md -o report.json
    """
    from nsysmap.analysis import analyze_mapped, unprofiled_times
    from nsysmap.base.output_file import check_output
    from nsysmap.mapping.mapped_trace import map_report, read_engines
    from nsysmap.report.build import report_of
    from nsysmap.report.text import report_text
    from nsysmap.report.write import SUFFIXES, write_report
    from nsysmap.rules.packs import chosen_rules
    from nsysmap.rules.parameters import parse_params

    files = [Path(path) for path in outputs]
    inputs = [Path(path) for path in (report, *engine_files, profile, times, onnx_file) if path]
    for path in files:
        check_output(path, SUFFIXES, inputs)
    rules = chosen_rules(folders, params=parse_params(params))
    with progress() as tell:
        engines = read_engines(engine_files, profile=profile)
        measured = unprofiled_times(times, engine_files)
        mapped = map_report(report, engines, model=onnx_model(onnx_file), reader=reader, progress=tell)
        content = report_of(analyze_mapped(mapped, rules=rules, times=measured, progress=tell))
        for path in files:
            tell(f"writing {path.name}")
            write_report(content, path)
    click.echo(report_text(content, width=width(), colour=colour()), nl=False)
    levels = ("info", "warning", "error")
    failing = levels[levels.index(fail_on) :] if fail_on else ()
    return 1 if any(finding.severity in failing for finding in content.findings) else 0
