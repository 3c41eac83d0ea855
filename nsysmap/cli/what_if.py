"""`nsysmap what-if`: what a change to the program would save."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import (
    chosen,
    completing,
    reader_option,
    report_and_engines,
    selecting,
)
from nsysmap.core.changes import CHANGES, change_list

if TYPE_CHECKING:
    from nsysmap.mapping.mapped_trace import MappedTrace, Progress
    from nsysmap.trace.open_report import Reader


@click.command("what-if", short_help="Predict what a change would save, by replay.")
@report_and_engines
@click.option(
    "--change",
    "names",
    metavar="NAME",
    multiple=True,
    shell_complete=completing(lambda: CHANGES),
    help=(f"{change_list(scopes=True, last=' or ')}. Repeatable; by default all of them."),
)
@click.option(
    "--layer",
    "layers_named",
    metavar="NAME",
    multiple=True,
    help=(
        "For drop-layers: a layer to remove (by default the reformats); for join-kernels: the"
        " layers of one run, in order. A NAME that ends in * stands for every layer with that"
        " prefix. Repeatable."
    ),
)
@click.option(
    "--precision",
    "to_type",
    type=click.Choice(["FP16", "BF16", "FP8", "INT8"], case_sensitive=False),
    help=(
        "Tell what layers would take in this data type instead: those named with --layer (also by"
        " an ONNX node), or all that can."
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@reader_option
@selecting
def what_if_command(
    *,
    files: tuple[str, ...],
    names: tuple[str, ...],
    layers_named: tuple[str, ...],
    to_type: str | None,
    as_json: bool,
    reader: Reader,
) -> None:
    """Predict what a change to the program would save, by replaying the timeline with and without
    it.

    \b
    REPORT is an .nsys-rep or what `nsys export` made of one, taken with the kernels visible
    (--cuda-graph-trace=node).  ENGINE is the file of trtexec --exportLayerInfo; aux-streams and
    join-kernels need it; the files can be given in any order.  docs/what-if.md explains each change
    and how to read the figures.

    \b
    Example:
      nsysmap what-if report.nsys-rep engine.json --change cuda-graph
      nsysmap what-if report.nsys-rep engine.json --precision FP8 --layer '/bert/encoder/*'
    """
    if to_type is not None:
        _other_precision(files, to_type, names, layers_named, as_json=as_json, reader=reader)
        return
    from nsysmap.analysis import predict_changes, shows_engine
    from nsysmap.answer.model import INFERENCE, PASS_OF_ONE, REPETITION
    from nsysmap.answer.whose import much_runs_outside
    from nsysmap.core.table import MISSING
    from nsysmap.output.whatif import whatif_json, whatif_text
    from nsysmap.trace.inferences.steady import only_repeats
    from nsysmap.whatif.change import check_change

    check_change(names, layers_named)
    with progress() as tell:
        mapped = _mapped(files, reader, tell)
        tell("replaying the timeline")
        answers = predict_changes(mapped, names, layers_named)
    if as_json:
        import json

        selected = (
            {} if mapped.selected is None else {"selected": mapped.selected.selection.words()}
        )
        click.echo(json.dumps({**whatif_json(answers), **selected}, indent=1))
    else:
        if mapped.selected is not None:
            click.echo(f"selected: {mapped.selected.selection.words()}")
        one = (
            REPETITION
            if only_repeats(mapped.inferences, tensorrt=shows_engine(mapped))
            else INFERENCE
        )
        if (
            one == INFERENCE
            and set(answers.ints("inferences").tolist()) <= {1, MISSING}
            and much_runs_outside(mapped.kernels, mapped.inferences)
        ):
            one = PASS_OF_ONE
        click.echo(whatif_text(answers, mapped.trace.source, one))


def _mapped(files: tuple[str, ...], reader: Reader, tell: Progress) -> MappedTrace:
    """The part of the report that was asked for, with the engine files among the given ones."""
    from nsysmap.mapping.given_files import given_files
    from nsysmap.mapping.mapped_trace import map_report, read_engines

    given = given_files(files)
    engines = read_engines(given.engines)
    return map_report(given.report, engines, reader=reader, selection=chosen(), progress=tell)


def _other_precision(  # one parameter an option
    files: tuple[str, ...],
    to_type: str,
    names: tuple[str, ...],
    layers_named: tuple[str, ...],
    *,
    as_json: bool,
    reader: Reader,
) -> None:
    """Show what layers would take in another data type."""
    import json

    from nsysmap.analysis import analyze_mapped
    from nsysmap.output.other_precision import chosen_rows, precision_json, precision_text

    if names:
        raise click.UsageError("--precision is a change of its own: leave out --change.")
    with progress() as tell:
        mapped = _mapped(files, reader, tell)
        tables = analyze_mapped(mapped, rules=[], progress=tell).tables
        layers = tables.layers
        rows = chosen_rows(tables.precision_changes, layers, to_type.upper(), layers_named)
    shown = (rows, layers, to_type.upper(), mapped.trace.source)
    click.echo(json.dumps(precision_json(*shown), indent=1) if as_json else precision_text(*shown))
