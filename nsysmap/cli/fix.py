"""`nsysmap fix`: edits of the ONNX model that a capture calls for, as a script."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmap.cli.console import progress
from nsysmap.cli.inputs import completing, quiet_option, reader_option
from nsysmap.core.extras import missing_extras
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.edits.fix import Fix
    from nsysmap.edits.model import Refusal
    from nsysmap.trace.open_report import Reader

_REFUSALS = 12  # reasons that are shown


def _names_of_edits() -> Iterable[str]:
    from nsysmap.edits.fix import NEEDED, names_of_edits

    return () if missing_extras(NEEDED) else names_of_edits()


@click.command("fix", short_help="Write a script that edits the ONNX model.")
@click.argument("report", metavar="REPORT")
@click.argument("engine", metavar="ENGINE")
@click.argument(
    "asked", metavar="[FINDING]...", nargs=-1, shell_complete=completing(_names_of_edits)
)
@click.option(
    "--onnx",
    "onnx_file",
    metavar="MODEL",
    required=True,
    help="The ONNX model that the engine was built from.",
)
@click.option("-o", "--output", metavar="FIX.py", help="The script.")
@click.option(
    "--apply",
    "applied",
    metavar="OUT.onnx",
    help="Also run the script, and write the edited model if it computes the same.",
)
@click.option(
    "--inputs",
    "given",
    metavar="FILE.npz",
    multiple=True,
    help="Compare results on these inputs too: arrays by input name. Repeatable.",
)
@quiet_option
@reader_option
def fix_command(
    *,
    report: str,
    engine: str,
    asked: tuple[str, ...],
    onnx_file: str,
    output: str | None,
    applied: str | None,
    given: tuple[str, ...],
    quiet: bool,
    reader: Reader,
) -> None:
    """Write a script that edits the ONNX model where the capture shows that it costs time.

    REPORT and ENGINE are those of analyze.  FINDING is the name of a rule or of an edit; without
    any, all edits are tried.  Each edit stands in the script with its finding, its nodes, what it
    is predicted to save, and why the results stay the same; one that cannot be proved safe is not
    made.  docs/fix.md lists the edits.

    \b
    Examples:
      nsysmap fix report.nsys-rep engine.json --onnx model.onnx -o fix.py
      nsysmap fix report.nsys-rep engine.json attention-not-fused --onnx model.onnx -o fix.py
      nsysmap fix report.nsys-rep engine.json --onnx model.onnx --apply edited.onnx
    """
    from nsysmap.api import analyze
    from nsysmap.core.extras import need_extras
    from nsysmap.core.output_file import check_output, replacing
    from nsysmap.edits.fix import NEEDED, NEEDED_TO_APPLY, apply_script, fix
    from nsysmap.edits.given_inputs import read_inputs
    from nsysmap.mapping.given_files import given_files

    if output is None and applied is None:
        raise click.UsageError("Say where to write the script (-o) or the edited model (--apply).")
    need_extras("nsysmap fix", *NEEDED, *(NEEDED_TO_APPLY if applied is not None else ()))
    files = given_files((report, engine))
    sources = [Path(one) for one in (report, engine, onnx_file, *given)]
    if output is not None:
        check_output(Path(output), (".py",), sources)
    if applied is not None:
        check_output(Path(applied), (".onnx",), sources)
    inputs = [read_inputs(one) for one in given]
    with progress(quiet=quiet) as tell:
        analysis = analyze(
            files.report, files.engines, onnx=onnx_file, reader=reader, progress=tell
        )
        tell("looking for edits")
        found = fix(analysis, onnx_file, asked=asked)
        if applied is not None and found.made:
            tell("applying and comparing")
            compared = apply_script(found.script, onnx_file, Path(applied), inputs)
    if output is not None and found.made:
        with replacing(Path(output)) as path:
            path.write_text(found.script, encoding="utf-8")
    if quiet:
        return
    for line in _told(found):
        click.echo(escaped(line))
    if output is not None and found.made:
        click.echo(f"→ {escaped(output)}")
    if applied is not None and found.made:
        click.echo(
            f"→ {escaped(applied)}: same results in {compared.runs} runs of onnxruntime (largest"
            f" difference: {compared.worst:.2g} of what the type allows)"
        )


def _told(found: Fix) -> list[str]:
    from nsysmap.text.units import ranged, rounded

    lines: list[str] = []
    if found.made:
        saved = found.together
        slower = f"; it may be slower by up to {saved.lost}" if saved.lost else ""
        lines.append(
            f"Predicted: {ranged(saved.ns, saved.low_ns, saved.high_ns)} less of"
            f" {rounded(found.inference_ns)} per inference{slower}"
        )
    else:
        lines.append("No edit of the model would save time: no script is written")
    groups: dict[tuple[str, str], list[int]] = {}
    for at, (edit, _) in enumerate(found.made):
        groups.setdefault((edit.kind, edit.does), []).append(at)
    for (kind, does), places in groups.items():
        saving = found.made[places[0]][1].saving
        for at in places[1:]:
            saving = saving + found.made[at][1].saving
        times = f" ({len(places)} places)" if len(places) > 1 else ""
        lines.append(f"  {kind}: {does}{times}: {ranged(saving.ns, saving.low_ns, saving.high_ns)}")
    lines += [f"  flag: {one.flag}: {one.why}" for one in found.flags]
    if found.refused:
        lines.append("Not edited:")
        reasons: dict[tuple[str, str], list[Refusal]] = {}
        for one in found.refused:
            reasons.setdefault((one.kind, one.reason), []).append(one)
        for (kind, reason), refused in [*reasons.items()][:_REFUSALS]:
            more = f" and {len(refused) - 1} more places" if len(refused) > 1 else ""
            layer = f" ({refused[0].layer})" if refused[0].layer else ""
            lines.append(f"  {kind} at {refused[0].nodes[0]}{more}: {reason}{layer}")
        if len(reasons) > _REFUSALS:
            lines.append(f"  and for {len(reasons) - _REFUSALS} more reasons")
    return lines
