"""`nsysmap layers`: the layers of an engine file, with their times, if known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress, width
from nsysmap.cli.inputs import chosen, engines_with_report, reader_option, selecting

if TYPE_CHECKING:
    from nsysmap.output.layers import Sort
    from nsysmap.trace.open_report import Reader


@click.command(short_help="Show an engine's layers, with measured times.")
@engines_with_report
@click.option(
    "--profile",
    metavar="FILE",
    help="trtexec --exportProfile file of the same engine: adds its times.",
)
@click.option("--trace", metavar="REPORT", help="The report, if it is not among the files.")
@click.option(
    "--onnx",
    "onnx_file",
    metavar="MODEL",
    help=(
        "The ONNX model that the engine was built from: names layers whose nodes the file does not"
        " tell, and what opaque regions run."
    ),
)
@click.option(
    "--precision",
    is_flag=True,
    help="Instead, show time by data type, tensor cores and conversions.",
)
@click.option(
    "--findings",
    is_flag=True,
    help=(
        "Instead, show what the rules find: in the engine, with the times of --profile, or with a"
        " report all that analyze finds."
    ),
)
@click.option(
    "--not-fused", is_flag=True, help="As --findings, but show only what could be fused and is not."
)
@click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="With --findings: also run the rules in this folder. Repeatable.",
)
@click.option(
    "--param",
    "params",
    metavar="RULE.NAME=VALUE",
    multiple=True,
    help="With --findings: set a rule's parameter. Repeatable.",
)
@click.option(
    "--sort",
    type=click.Choice(["index", "time", "name"]),
    default="index",
    help=(
        "The order of the layers; by time, what costs most of the report comes first, as analyze"
        " has it."
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@reader_option
@selecting
def layers(  # one parameter an option
    *,
    files: tuple[str, ...],
    profile: str | None,
    trace: str | None,
    onnx_file: str | None,
    precision: bool,
    findings: bool,
    not_fused: bool,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    sort: Sort,
    as_json: bool,
    reader: Reader,
) -> None:
    """Show the layers of engine files, with their times if a report or a profile is given.

    Give every engine that ran: inferences whose engine is missing may be taken for another's.

    ENGINE is a file of trtexec --exportLayerInfo, a trtexec log that lists the layers, or a
    serialized .engine or .plan if TensorRT is installed.  REPORT adds measured times, and opaque
    {ForeignNode[...]} regions are shown by part.

    \b
    Examples:
      nsysmap layers engine.json --profile profile.json
      nsysmap layers engine.json report.nsys-rep --sort time
      nsysmap layers context.json generation.json report.nsys-rep
      nsysmap layers engine.json report.nsys-rep --precision
      nsysmap layers engine.json report.nsys-rep --findings
      nsysmap layers engine.json report.nsys-rep --not-fused
    """
    from dataclasses import replace

    from nsysmap.analysis import engine_outcomes, engine_runs
    from nsysmap.api import analyze
    from nsysmap.mapping.given_files import engines_and_report
    from nsysmap.output.layers import OfTrace, costs_text, layers_json, layers_text, precision_text

    engine_files, report = engines_and_report(files if trace is None else (*files, trace))
    if findings or not_fused:
        if precision or as_json:
            both = (
                f"{'--not-fused' if not_fused else '--findings'} and"
                f" {'--precision' if precision else '--json'}"
            )
            raise click.UsageError(f"{both} are two pages; ask for one of them.")
        from nsysmap.output.findings import findings_text
        from nsysmap.rules.packs import chosen_rules
        from nsysmap.rules.parameters import parse_params

        rules = chosen_rules(folders, params=parse_params(params))
        if report is None:
            outcomes = engine_outcomes(
                engine_runs(engine_files, profile=profile)[0].engine, rules=rules
            )
            click.echo(findings_text(outcomes, fusion=not_fused))
            return
        with progress() as tell:
            analysis = analyze(
                report, engine_files, profile=profile, onnx=onnx_file, rules=rules, reader=reader,
                selection=chosen(), progress=tell
            )  # fmt: skip
        unknown = frozenset(
            row.text("name")
            for row in analysis.tables.layers
            if row.maybe_integer("engine") is None
        )
        click.echo(findings_text(analysis.outcomes, analysis.summary, unknown, fusion=not_fused))
        return
    if folders or params:
        raise click.UsageError(
            "--rules and --param are about what --findings and --not-fused show."
        )
    if chosen() is not None and report is None:
        raise click.UsageError("What selects a part of a report needs the report too.")
    first = sort == "time" and report is not None and not precision and not as_json
    with progress() as tell:
        runs = engine_runs(
            engine_files,
            report,
            profile=profile,
            onnx=onnx_file,
            reader=reader,
            selection=chosen(),
            progress=tell,
            summarised=first,
        )
    pages = [
        (
            run.engine,
            OfTrace(run.source, run.times, run.notes, run.number, run.kinds) if run.times else None,
            run.titles,
        )
        for run in runs
    ]
    if sort == "time":
        pages.sort(key=lambda page: -(page[1].share if page[1] else 0.0))
    if not as_json:  # what holds for the trace is said once, at the end
        pages[:-1] = [
            (engine, replace(of_trace, notes=()) if of_trace else None, titles)
            for engine, of_trace, titles in pages[:-1]
        ]
    if as_json:
        import json

        values = [
            layers_json(engine, of_trace, precision=precision, titles=titles)
            for engine, of_trace, titles in pages
        ]
        click.echo(json.dumps(values[0] if len(values) == 1 else {"engines": values}, indent=1))
        return
    answer = runs[0].summary
    texts = [costs_text(answer, width=width())] if answer is not None and answer.layers else []
    texts += [
        (
            precision_text(engine, of_trace, width=width(), titles=titles)
            if precision
            else layers_text(engine, of_trace, sort=sort, width=width(), titles=titles)
        )
        for engine, of_trace, titles in pages
    ]
    click.echo("\n\n".join(texts))
