"""`nsysmap layers`: the layers of an engine file, with times where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import onnx_model, reader_option

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command()
@click.argument("engine_file", metavar="ENGINE")
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file of the same engine: adds its times.")
@click.option("--trace", "report", metavar="REPORT", help="Report of a run: adds measured times and what each Myelin region spends.")
@click.option("--onnx", "onnx_file", metavar="MODEL", help="With --trace, the ONNX model behind the engine: names what opaque regions run.")
@click.option("--precision", is_flag=True, help="Show time by data type, tensor cores and conversions instead.")
@click.option("--findings", is_flag=True, help="Show what the rules find in the engine file alone instead, with the times of --profile.")
@click.option("--rules", "folders", metavar="DIR", multiple=True, help="With --findings, run the rules in this folder too. Repeatable.")
@click.option("--param", "params", metavar="RULE.NAME=VALUE", multiple=True, help="With --findings, set a rule's parameter. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
@reader_option
def layers(  # noqa: PLR0913  # one parameter an option
    *,
    engine_file: str,
    profile: str | None,
    report: str | None,
    onnx_file: str | None,
    precision: bool,
    findings: bool,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    as_json: bool,
    reader: Reader,
) -> None:
    """Show the layers of an engine file, and the time of each where a trace or a profile is given.

    ENGINE is a file of trtexec --exportLayerInfo, a trtexec log that lists the layers, or a serialized .engine or .plan
    where TensorRT is installed.  With --trace, opaque {ForeignNode[...]} regions are shown by part.

    \b
    Examples:
      nsysmap layers engine.json --profile profile.json
      nsysmap layers engine.json --trace report.nsys-rep
      nsysmap layers engine.json --trace report.nsys-rep --precision
    """
    from nsysmap.engine.reader import read_engine
    from nsysmap.report.layers import OfTrace, layers_json, layers_text, precision_text

    engine = read_engine(engine_file, profile=profile)
    if findings:
        if report is not None or precision or as_json:
            raise click.UsageError("--findings stands alone; with a trace, `nsysmap analyze` shows what the rules find.")
        from nsysmap.analysis import engine_outcomes
        from nsysmap.report.findings import findings_text
        from nsysmap.rules.packs import chosen_rules
        from nsysmap.rules.parameters import parse_params

        click.echo(findings_text(engine_outcomes(engine, rules=chosen_rules(folders, params=parse_params(params)))))
        return
    if folders or params:
        raise click.UsageError("--rules and --param are about what --findings shows.")
    if onnx_file is not None and report is None:
        raise click.UsageError("--onnx needs the report of a run too: --trace REPORT.")
    of_trace = None
    if report is not None:
        from nsysmap.analysis import measured, notes_of
        from nsysmap.mapping.mapped_trace import map_report

        with progress() as tell:
            mapped = map_report(report, [engine], model=onnx_model(onnx_file), reader=reader, progress=tell)
            notes = tuple(note for note in notes_of(mapped) if note not in engine.notes)
            of_trace = OfTrace(mapped.trace.source, measured(mapped), notes)
    if as_json:
        import json

        click.echo(json.dumps(layers_json(engine, of_trace, precision=precision), indent=1))
    else:
        click.echo(precision_text(engine, of_trace) if precision else layers_text(engine, of_trace))
