"""`nsysmap analyze`: the whole report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import colour, progress, width
from nsysmap.cli.inputs import (
    annotations_option,
    chosen,
    onnx_option,
    params_option,
    quiet_option,
    reader_option,
    report_and_engines,
    rules_option,
    selecting,
)
from nsysmap.output.files import output_suffixes, write_output
from nsysmap.output.write import SUFFIXES
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.analysis import Analysis
    from nsysmap.answer.model import Answer
    from nsysmap.core.note import Level
    from nsysmap.mapping.mapped_trace import Progress
    from nsysmap.output.result_cache import Question
    from nsysmap.trace.open_report import Reader


@click.command("analyze", short_help="Where the time goes, why, and what to do first.")
@report_and_engines
@click.option(
    "--profile",
    metavar="FILE",
    help="trtexec --exportProfile file of the same engine: adds its times.",
)
@click.option(
    "--ncu",
    metavar="FILE",
    help=(
        "Nsight Compute's counters of the same program: output of ncu --csv, or a report"
        " (.ncu-rep)."
    ),
)
@annotations_option
@click.option(
    "--times",
    metavar="FILE",
    help=(
        "trtexec log or --exportTimes file of a run without the profiler: shows what profiling"
        " cost."
    ),
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help=(
        "Also write the report: .html (an interactive page), .perfetto-trace,"
        f" {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}. Repeatable, once per format."
    ),
)
@onnx_option
@rules_option
@params_option
@click.option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error"]),
    help="Exit with status 1 if there are findings of this severity or higher.",
)
@click.option(
    "--full",
    is_flag=True,
    help=(
        "Show everything: all layers, kernels, what-if answers and findings, and everything that is"
        " not known."
    ),
)
@click.option("--no-cache", is_flag=True, help="Neither use nor store cached results.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--json-brief",
    "as_brief",
    is_flag=True,
    help="Print the answer alone as JSON of at most 4 kB. Also written --json=brief.",
)
@quiet_option
@reader_option
@selecting
def analyze_command(  # one parameter an option
    *,
    files: tuple[str, ...],
    profile: str | None,
    times: str | None,
    ncu: str | None,
    annotations_file: str | None,
    outputs: tuple[str, ...],
    onnx_file: str | None,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    fail_on: Level | None,
    full: bool,
    no_cache: bool,
    as_json: bool,
    as_brief: bool,
    quiet: bool,
    reader: Reader,
) -> int:
    """Show the time per inference, the layers it goes to, why the GPU is idle, and what to do
    first.

    REPORT is an .nsys-rep or what `nsys export` made of one.  ENGINE is the file of trtexec
    --exportLayerInfo; without one, layers are those named by the trace's NVTX ranges.  The files
    can be given in any order.  Without a command, `nsysmap REPORT [ENGINE]...` is the same.

    The exit status is 2 if an engine that is given did not run, or if the report has no GPU work.

    \b
    Examples:
      nsysmap analyze report.nsys-rep engine.json -o report.html -o report.md
      nsysmap analyze report.nsys-rep engine.json --json | jq .answer
    """
    from nsysmap.core.output_file import check_output
    from nsysmap.mapping.given_files import given_files
    from nsysmap.output.kept_report import report_bytes, report_in
    from nsysmap.output.result_cache import REPORT, Question, files_of, place_of, write_files

    given = given_files(files)
    files_given = (given.report, *given.engines)
    written = [Path(path) for path in outputs]
    for path in written:
        check_output(
            path,
            output_suffixes(),
            [
                Path(one)
                for one in (*files, profile, times, onnx_file, ncu, annotations_file)
                if one
            ],
        )
    beside = {
        "profile": profile,
        "times": times,
        "onnx": onnx_file,
        "ncu": ncu,
        "graph-annotations": annotations_file,
    }
    with progress(quiet=quiet) as tell:
        question = Question(
            given.report, given.engines, beside, folders, f"{reader} {params} {chosen()}"
        )
        place = None if no_cache else place_of(question)
        kept = {} if place is None else place.read()
        analysis = cache(lambda: _analysis(question, params, reader, tell))
        report = report_in(kept.get(REPORT, b""), lambda: analysis().tables)
        fresh: dict[str, bytes] = {}
        if report is None:  # else the modules of an analysis are not even imported
            from nsysmap.output.build import report_of

            report = report_of(analysis())
            fresh[REPORT] = report_bytes(report) if place is not None else b""
        known = [path for path in written if path.suffix.lower() in kept]
        write_files(kept, known)
        for path in written:
            if path not in known:
                tell(f"writing {path.name}")
                write_output(analysis, report, path)
        fresh |= files_of(path for path in written if path not in known)
        if place is not None and fresh:
            place.keep(fresh)
        if as_json or as_brief or not quiet:
            text = (
                _brief(report, [_short(one) for one in files_given])
                if as_brief
                else _json(report)
                if as_json
                else _text(report, [_short(one) for one in files_given], full=full)
            )
        else:
            text = ""
    click.echo(text, nl=False)
    if report.nothing_ran:
        click.echo(f"nsysmap: {escaped(report.nothing_ran)}", err=True)
        return 2
    if fail_on:
        from nsysmap.output.findings import failed_text
        from nsysmap.rules.finding import at_least

        if found := at_least(report.findings, fail_on):
            click.echo("nsysmap: " + failed_text(found, fail_on), err=True)
            return 1
    return 0


def _analysis(
    question: Question, params: Sequence[str], reader: Reader, tell: Progress
) -> Analysis:
    from nsysmap.api import analyze
    from nsysmap.rules.packs import chosen_rules
    from nsysmap.rules.parameters import parse_params

    rules = chosen_rules(question.rules, params=parse_params(params))
    beside = question.beside
    return analyze(
        question.report, question.engines, profile=beside["profile"], times=beside["times"],
        onnx=beside["onnx"], ncu=beside["ncu"], graph_annotations=beside["graph-annotations"],
        rules=rules, reader=reader, selection=chosen(), progress=tell,
    )  # fmt: skip


def _short(path: str) -> str:
    """The path as a person types it: relative, where that is shorter."""
    try:
        return min(path, os.path.relpath(path), key=len)
    except (OSError, ValueError):  # no current folder; another drive
        return path


def _text(content: Answer, given: Sequence[str], *, full: bool) -> str:
    from nsysmap.output.text.report import report_text

    return report_text(content, width=width(), full=full, colour=colour(), given=given)


def _json(content: Answer) -> str:
    from nsysmap.output.json import json_pieces, report_json

    return "".join(json_pieces(report_json(content)))


def _brief(content: Answer, given: Sequence[str]) -> str:
    from nsysmap.output.brief import brief_text

    return brief_text(content, given) + "\n"
