"""`nsysmap compare`: what changed between two captures, engines or builds; `nsysmap inference`:
what made one inference slow.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import colour, progress, width
from nsysmap.cli.inputs import BETWEEN_SIDES, onnx_model, quiet_option, reader_option
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.trace.open_report import Reader


def _show_schema(context: click.Context, _option: click.Parameter, value: object) -> None:
    if value:
        import json

        from nsysmap.comparison.pages import json_schema

        click.echo(json.dumps(json_schema(), indent=1))
        context.exit()


@click.command("compare", short_help="What changed between two captures, and whether it is noise.")
@click.argument("files", metavar="BEFORE... [--] AFTER...", nargs=-1, required=True)
@click.option(
    "--engine-before",
    "engines_before",
    metavar="ENGINE",
    multiple=True,
    help="Engine file that ran in BEFORE. Repeatable.",
)
@click.option(
    "--engine-after",
    "engines_after",
    metavar="ENGINE",
    multiple=True,
    help="Engine file that ran in AFTER. Repeatable.",
)
@click.option(
    "--onnx",
    "onnx_file",
    metavar="MODEL",
    help="The ONNX model that the engines were built from: names what runs inside opaque regions.",
)
@click.option(
    "--fix",
    "fix_file",
    metavar="FIX.py",
    help="The script of `nsysmap fix` that made AFTER's model: says whether its prediction held.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--json-schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_schema,
    help="Show the JSON Schema of --json.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help=(
        "Also write the comparison: .html (a page, linked with one of each side beside it), .md or"
        " .json. Repeatable."
    ),
)
@click.option(
    "--fail-on",
    type=click.Choice(["worse"]),
    help="Exit status 1 if AFTER is slower beyond the noise.",
)
@quiet_option
@reader_option
def compare_command(  # one parameter an option
    *,
    files: tuple[str, ...],
    engines_before: tuple[str, ...],
    engines_after: tuple[str, ...],
    onnx_file: str | None,
    fix_file: str | None,
    as_json: bool,
    outputs: tuple[str, ...],
    fail_on: str | None,
    quiet: bool,
    reader: Reader,
) -> int:
    """Show what changed from BEFORE to AFTER, where, and whether it is more than noise.

    Give several runs per side, with -- between the sides, or a folder of reports per side, to
    measure the noise between runs.  Engine files may stand beside the reports of their side.

    \b
    Three builds or more (files, folders, or groups of files with -- between
    them), or one folder that holds several, are shown side by side: the time of
    each group of ONNX nodes in each build, the best build of each group, what
    the best of all would take, and the memory of each.

    \b
    BEFORE and AFTER are reports (.nsys-rep or what `nsys export` made of one), or engine files
    or trtexec --exportProfile files alone.  Times exclude the profiler's overhead.
    docs/compare.md says how to read the answer.

    \b
    Examples:
      nsysmap compare old.nsys-rep new.nsys-rep --engine-before old.json --engine-after new.json
      nsysmap compare old1.nsys-rep old2.nsys-rep -- new1.nsys-rep new2.nsys-rep
      nsysmap compare old.nsys-rep old.json -- new.nsys-rep new.json
      nsysmap compare old.engine.json new.engine.json
      nsysmap compare old.engine.json old.profile.json -- new.engine.json new.profile.json
      nsysmap compare fp32.engine.json fp16.engine.json fp8.engine.json
      nsysmap compare a.nsys-rep a.json -- b.nsys-rep b.json -- c.nsys-rep c.json
      nsysmap compare builds/     # one build in each of its folders, or files named alike
    """
    if is_of_builds(files):
        _compare_builds(files, onnx_file, outputs, as_json=as_json, quiet=quiet, reader=reader)
        return 0
    import json

    from nsysmap.comparison.compare import compare_read, read_sides
    from nsysmap.comparison.pages import comparison_json, comparison_text, verdict_words
    from nsysmap.comparison.runs import runs_in
    from nsysmap.comparison.side import Given
    from nsysmap.core.fix_script import read_prediction
    from nsysmap.core.output_file import check_output
    from nsysmap.output.page.comparison import SUFFIXES, check_pages, write_comparison

    sides = two_sides(files)
    given = []
    for side, named in zip(sides, (engines_before, engines_after), strict=True):
        runs, engines = runs_and_engines(side)
        given.append(
            [Given(run, (*named, *engines), reader) for path in runs for run in runs_in(path)]
        )
    written = [Path(path) for path in outputs]
    inputs = [
        *(one for side in given for run in side for one in (run.path, *run.engines)),
        onnx_file,
        fix_file,
    ]
    for path in written:
        check_output(path, SUFFIXES, [Path(one) for one in inputs if one])
        check_pages(path, [Path(one) for one in inputs if one])
    script = None if fix_file is None else read_prediction(fix_file)
    model = onnx_model(onnx_file)
    with progress(quiet=quiet) as tell:
        both = read_sides((given[0], given[1]), model=model, progress=tell)
        found = compare_read(both, model=model, script=script)
        for path in written:
            tell(f"writing {path.name}")
            write_comparison(found, path, both)
    if not quiet:
        click.echo(
            (
                json.dumps(comparison_json(found), indent=1)
                if as_json
                else comparison_text(found, width(), colour=colour())
            ),
            color=colour(),
        )
    if fail_on != "worse" or found.verdict != "slower":
        return 0
    click.echo(
        f"nsysmap: failed: {escaped(verdict_words(found))} (--fail-on worse)",
        err=True,
    )
    return 1


def is_of_builds(files: tuple[str, ...]) -> bool:
    """Whether these are more than two sides, or one folder of them."""
    if files.count(BETWEEN_SIDES) > 1:
        return True
    if BETWEEN_SIDES in files:
        return False
    if len(files) == 1:
        return Path(files[0]).is_dir()
    from nsysmap.mapping.given_files import is_likely_report

    # a report beside its engine file is one side of two
    alone = {is_likely_report(one) for one in files if not Path(one).is_dir()}
    return len(files) > 2 and len(alone) < 2


def _compare_builds(  # one parameter an option
    files: tuple[str, ...],
    onnx_file: str | None,
    outputs: tuple[str, ...],
    *,
    as_json: bool,
    quiet: bool,
    reader: Reader,
) -> None:
    """Show, and write, several builds side by side."""
    import json

    from nsysmap.comparison.builds import build_of, builds_in, compare_builds
    from nsysmap.comparison.builds_page import builds_json, builds_text
    from nsysmap.core.output_file import check_output
    from nsysmap.output.page.comparison import SUFFIXES, write_builds

    given = [one for one in files if one != BETWEEN_SIDES]
    for path in outputs:
        check_output(Path(path), SUFFIXES, [Path(one) for one in given])
    if BETWEEN_SIDES in files:
        sides: list[list[str]] = [[]]
        for one in files:
            if one == BETWEEN_SIDES:
                sides.append([])
            else:
                sides[-1].append(one)
        if not all(sides):
            raise click.UsageError("Give the files of each build, with -- between the builds.")
        builds = tuple(build_of(Path(side[0]).name, side) for side in sides)
    else:
        builds = builds_in(files)
    model = onnx_model(onnx_file)
    with progress(quiet=quiet) as tell:
        found = compare_builds(builds, model=model, reader=reader, progress=tell)
        for path in outputs:
            write_builds(found, Path(path))
    if not quiet:
        click.echo(
            (
                json.dumps(builds_json(found), indent=1)
                if as_json
                else builds_text(found, width(), colour=colour())
            ),
            color=colour(),
        )


def two_sides(files: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of BEFORE and of AFTER."""
    if BETWEEN_SIDES in files:
        at = files.index(BETWEEN_SIDES)
        sides = files[:at], files[at + 1 :]
    else:
        sides = files[:1], files[1:]
    if (
        not all(sides)
        or BETWEEN_SIDES in sides[1]
        or (BETWEEN_SIDES not in files and len(files) != 2)
    ):
        raise click.UsageError(
            "Give two files or folders, or several per side with -- between the sides."
        )
    return sides


def runs_and_engines(side: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runs of a side and the engine files beside them.

    Several files without a report are runs, except for an engine file and its profile, in any
    order: the profile is the run.
    """
    from nsysmap.comparison.builds import is_profile
    from nsysmap.mapping.given_files import is_likely_report

    reports = tuple(path for path in side if is_likely_report(path))
    if len(side) == 2 and not reports:
        profiles = tuple(path for path in side if is_profile(path))
        if len(profiles) == 1:
            return profiles, tuple(path for path in side if path not in profiles)
    if len(side) == 1 or not reports:
        return side, ()
    return reports, tuple(path for path in side if path not in reports)


@click.command("inference", short_help="What made one inference slower than the others.")
@click.argument("files", metavar="REPORT [ENGINE]... N|slowest|p99", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    help="Also write the result: .html (a page), .md or .json. Repeatable.",
)
@quiet_option
@reader_option
def inference_command(
    *, files: tuple[str, ...], as_json: bool, outputs: tuple[str, ...], quiet: bool, reader: Reader
) -> None:
    """Compare one inference with the median one: what made it slow, kernel by kernel and gap by
    gap.

    N is the inference's number in the report, from 0.  Times are as recorded, profiler included.

    \b
    Example:
      nsysmap inference report.nsys-rep engine.json slowest
    """
    import json

    from nsysmap.api import analyze
    from nsysmap.comparison.inference import one_inference
    from nsysmap.comparison.inference_page import inference_json, inference_text
    from nsysmap.core.errors import NsysmapError
    from nsysmap.core.output_file import check_output
    from nsysmap.mapping.given_files import given_files
    from nsysmap.output.page.comparison import SUFFIXES, write_inference

    *paths, which = files
    if not paths:
        raise NsysmapError(
            which,
            "is the only argument",
            "give a report, its engine files, and which inference: a number, slowest or p99",
        )
    given = given_files(paths)
    for path in outputs:
        check_output(Path(path), SUFFIXES, [Path(one) for one in paths])
    with progress(quiet=quiet) as tell:
        analysis = analyze(given.report, given.engines, rules=[], reader=reader, progress=tell)
        found = one_inference(analysis.tables.by_name(), analysis.source, which)
        for path in outputs:
            write_inference(found, Path(path))
    if quiet:
        return
    click.echo(
        (
            json.dumps(inference_json(found), indent=1)
            if as_json
            else inference_text(found, width(), colour=colour())
        ),
        color=colour(),
    )
