"""`nsysmap gate`: whether a capture stays within a budget, for CI; `nsysmap baseline` writes the
measurements to compare it with.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap import __version__
from nsysmap.cli.console import on_one_terminal, progress
from nsysmap.cli.inputs import (
    onnx_option,
    params_option,
    quiet_option,
    reader_option,
    report_and_engines,
    rules_option,
)

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


@click.command("gate", short_help="Check a capture against a budget, for CI.")
@report_and_engines
@click.option(
    "--budget",
    metavar="FILE",
    required=True,
    help="TOML file with the limits; docs/gate.md describes it.",
)
@click.option(
    "--baseline",
    "base",
    metavar="FILE",
    help="Measurements of earlier captures (nsysmap baseline), for limits on an increase.",
)
@click.option(
    "--ignore",
    "ignored",
    metavar="RULE[:LAYER]",
    multiple=True,
    help="Do not count these findings. Repeatable.",
)
@click.option(
    "--ignore-file",
    metavar="FILE",
    help="TOML file of findings not to count, each with a reason and an expiry date.",
)
@click.option(
    "-o", "--output", "outputs", metavar="FILE", multiple=True,
    help="Also write the verdict: .xml (JUnit), .sarif (SARIF 2.1.0), .md or .json. Repeatable.",
)  # fmt: skip
@onnx_option
@rules_option
@params_option
@quiet_option
@reader_option
def gate_command(  # one parameter an option
    *,
    files: tuple[str, ...],
    budget: str,
    base: str | None,
    ignored: tuple[str, ...],
    ignore_file: str | None,
    outputs: tuple[str, ...],
    onnx_file: str | None,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    quiet: bool,
    reader: Reader,
) -> int:
    """Check a capture against a budget: exit with status 1 and print what exceeds it, and by how
    much.

    A limit that cannot be checked counts as exceeded.

    \b
    Example:
      nsysmap gate report.nsys-rep engine.json --budget budget.toml --baseline base.json -o gate.xml
    """
    import datetime

    from nsysmap.api import analyze
    from nsysmap.comparison.gate.baseline import read_baseline
    from nsysmap.comparison.gate.budget import read_budget
    from nsysmap.comparison.gate.checks import held_to
    from nsysmap.comparison.gate.ignores import parsed, read_ignores
    from nsysmap.comparison.gate.write import SUFFIXES, broken_lines, verdict_text, write_verdict
    from nsysmap.comparison.side import side_of
    from nsysmap.core.output_file import check_output
    from nsysmap.mapping.given_files import given_files
    from nsysmap.rules.packs import chosen_rules
    from nsysmap.rules.parameters import parse_params

    given = given_files(files)
    written = [Path(path) for path in outputs]
    for path in written:
        check_output(
            path,
            SUFFIXES,
            [Path(one) for one in (*files, budget, base, ignore_file, onnx_file) if one],
        )
    limits = read_budget(budget)
    earlier = None if base is None else read_baseline(base)
    ignores = [*parsed(ignored), *(read_ignores(ignore_file) if ignore_file else ())]
    rules = chosen_rules(folders, params=parse_params(params))
    with progress(quiet=quiet) as tell:
        analysis = analyze(
            given.report, given.engines, onnx=onnx_file, rules=rules, reader=reader, progress=tell
        )
        verdict = held_to(
            side_of(analysis),
            limits,
            earlier,
            ignores,
            datetime.datetime.now(tz=datetime.UTC).date(),
        )
        for path in written:
            write_verdict(verdict, path, __version__)
    if not quiet:
        click.echo(verdict_text(verdict))
    if quiet or not on_one_terminal():
        for line in broken_lines(verdict):
            click.echo(f"nsysmap: {line}", err=True)
    return 0 if verdict.passed else 1


@click.command("baseline", short_help="Write the figures that gate compares against.")
@report_and_engines
@click.option(
    "-o", "--output", metavar="FILE", help="Write to this .json file instead of standard output."
)
@quiet_option
@reader_option
def baseline_command(
    *, files: tuple[str, ...], output: str | None, quiet: bool, reader: Reader
) -> None:
    """Write a capture's measurements: time per inference, idle time, layers, coverage, findings.

    \b
    Example:
      nsysmap baseline report.nsys-rep engine.json -o base.json
    """
    import json

    from nsysmap.api import analyze
    from nsysmap.comparison.gate.baseline import baseline_json, baseline_of
    from nsysmap.comparison.side import side_of
    from nsysmap.core.output_file import check_output, replacing
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
