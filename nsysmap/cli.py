"""The command line: reads arguments, prints, and sets the exit status; nothing else does."""

from __future__ import annotations

import errno
import gc
import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from nsysmap import __version__
from nsysmap.errors import NsysmapError
from nsysmap.terminal import escaped

if TYPE_CHECKING:
    from nsysmap.mapped_trace import MappedTrace
    from nsysmap.onnx_file import OnnxModel


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)  # paths stay plain text: our own errors name them
@click.version_option(__version__, prog_name="nsysmap")
def cli() -> None:
    """The post-mortem of a TensorRT profile: which layer each kernel ran for, and where the time goes.

    \b
    Example:
      nsysmap --version
    """


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _stop)
    gc.set_threshold(100_000)  # hundreds of thousands of small values are made, hardly one of them in a cycle
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's import starts a thread a core; nothing here multiplies matrices
    _open_streams()
    try:
        _run()
    finally:
        if _stopped_by:  # whatever it became on the way: DuckDB makes an error of its own of it
            sys.exit(128 + _stopped_by[0])


def _run() -> None:
    try:
        status = cli(prog_name="nsysmap", standalone_mode=False)
        sys.stdout.flush()
    except NsysmapError as error:
        _fail(str(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)  # as click does, where it meets the closed pipe first
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _drop_output()
        _fail(f"standard output: cannot be written ({error.strerror}); free disk space, or write elsewhere")
    if isinstance(status, int):  # what a command gave to Context.exit
        sys.exit(status)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _open_streams() -> None:
    """Put /dev/null where the caller closed a stream, and have characters that a stream cannot hold escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Nobody can read it: what is still buffered must not fail again when Python shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(line: str) -> NoReturn:
    if not _stopped_by:
        with suppress(OSError):  # standard error may be full or closed too
            click.echo("nsysmap: " + escaped(" ".join(line.split())), err=True)
    sys.exit(2)


_stopped_by: list[int] = []


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    _stopped_by.append(number)
    raise KeyboardInterrupt  # so that everything on the way out tidies up after itself


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Something to tell each step to: shown on a terminal's standard error once a step has taken a second, and wiped at the end."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    import threading

    step: list[str] = ["reading"]
    done = threading.Event()

    def show() -> None:
        shown = ""
        while not done.wait(1.0 if not shown else 0.2):
            if step[-1] != shown:
                shown = step[-1]
                sys.stderr.write(f"\r\x1b[2K{escaped(shown)} …")
                sys.stderr.flush()
        if shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    watcher = threading.Thread(target=show, daemon=True)
    watcher.start()
    try:
        yield step.append
    finally:
        done.set()
        watcher.join()


@cli.command()
@click.argument("engine_file", metavar="ENGINE")
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file of the same engine: adds its times.")
@click.option("--trace", "report", metavar="REPORT", help="Report of a run: adds measured times and what each Myelin region spends.")
@click.option("--onnx", "onnx_file", metavar="MODEL", help="With --trace, the ONNX model behind the engine: names what opaque regions run.")
@click.option("--precision", is_flag=True, help="Show time by data type, tensor cores and conversions instead.")
@click.option("--findings", is_flag=True, help="Show what the rules find in the engine file alone instead, with the times of --profile.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
def layers(  # noqa: PLR0913, PLR0917  # one parameter an option
    engine_file: str, profile: str | None, report: str | None, onnx_file: str | None, precision: bool, findings: bool, as_json: bool
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
    from nsysmap.engine import read_engine
    from nsysmap.report_layers import Measured, layers_json, layers_text, precision_text

    engine = read_engine(engine_file, profile=profile)
    if findings:
        if report is not None or precision or as_json:
            raise click.UsageError("--findings stands alone; with a trace, `nsysmap analyze` shows what the rules find.")
        from nsysmap.engine_findings import engine_outcomes
        from nsysmap.report_findings import findings_text

        click.echo(findings_text(engine_outcomes(engine)))
        return
    if onnx_file is not None and report is None:
        raise click.UsageError("--onnx needs the report of a run too: --trace REPORT.")
    of_trace = None
    if report is not None:
        from nsysmap.analysis import measured, notes_of
        from nsysmap.mapped_trace import map_report

        with _progress() as tell:
            mapped = map_report(report, [engine], model=_model(onnx_file), progress=tell)
            tables = measured(mapped)
            notes = tuple(note for note in notes_of(mapped, tables) if note not in engine.notes)
            of_trace = Measured(mapped.trace.source, tables, notes)
    if as_json:
        import json

        click.echo(json.dumps(layers_json(engine, of_trace, precision=precision), indent=1))
    else:
        click.echo(precision_text(engine, of_trace) if precision else layers_text(engine, of_trace))


def _model(path: str | None) -> OnnxModel | None:
    """The ONNX model, where one is given."""
    if path is None:
        return None
    from nsysmap.onnx_file import read_model

    return read_model(path)


@cli.command("analyze")
@click.argument("report")
@click.argument("engine_files", metavar="[ENGINE]...", nargs=-1)
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file of the same engine: adds its times.")
@click.option("-o", "--output", "outputs", metavar="FILE", multiple=True, help="Also write the report: .json, .md or .db. Repeatable.")
@click.option("--onnx", "onnx_file", metavar="MODEL", help="The ONNX model behind the engine: names what runs inside opaque regions.")
@click.option("--rules", "folders", metavar="DIR", multiple=True, help="Run the rules in this folder too. Repeatable.")
@click.option("--param", "params", metavar="RULE.NAME=VALUE", multiple=True, help="Set a rule's parameter. Repeatable.")
@click.option("--fail-on", type=click.Choice(["info", "warning", "error"]), help="Exit status 1 if a rule this severe or more finds any.")
def analyze_command(  # noqa: PLR0913  # one parameter an option
    *,
    report: str,
    engine_files: tuple[str, ...],
    profile: str | None,
    outputs: tuple[str, ...],
    onnx_file: str | None,
    folders: tuple[str, ...],
    params: tuple[str, ...],
    fail_on: str | None,
) -> int:
    """Say what ran, which layer each kernel belongs to, where the time goes, and what the rules find.

    REPORT is an .nsys-rep or what `nsys export -t sqlite` made of one.  ENGINE is the file of trtexec --exportLayerInfo; without
    one, layers are those that the trace's NVTX ranges name.

    \b
    Example:
      nsysmap analyze report.nsys-rep engine.json -o report.md -o report.json
    """
    from nsysmap.analysis import analyze_mapped
    from nsysmap.mapped_trace import map_report, read_engines
    from nsysmap.output_file import check_output
    from nsysmap.report_figures import report_of
    from nsysmap.report_text import report_text
    from nsysmap.report_writers import SUFFIXES, write_report
    from nsysmap.rules import builtin_rules_dir, load_params, load_rules, parse_params, with_params

    files = [Path(path) for path in outputs]
    inputs = [Path(path) for path in (report, *engine_files, profile, onnx_file) if path]
    for path in files:
        check_output(path, SUFFIXES, inputs)
    rules = load_rules([builtin_rules_dir(), *map(Path, folders)], check_own=False)
    rules = with_params(with_params(rules, load_params(Path())), parse_params(params))
    with _progress() as tell:
        engines = read_engines(engine_files, profile=profile)
        mapped = map_report(report, engines, model=_model(onnx_file), progress=tell)
        content = report_of(analyze_mapped(mapped, rules=rules, progress=tell))
        for path in files:
            tell(f"writing {path.name}")
            write_report(content, path)
    click.echo(report_text(content, width=_width(), colour=_colour()), nl=False)
    levels = ("info", "warning", "error")
    failing = levels[levels.index(fail_on) :] if fail_on else ()
    return 1 if any(finding.severity in failing for finding in content.findings) else 0


def _width() -> int:
    """Columns of the terminal; 100 where the output goes elsewhere."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@cli.command("map")
@click.argument("report")
@click.argument("engine_files", metavar="[ENGINE]...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", help="Write the map to FILE: .csv, .parquet or .json; - writes CSV to standard output.")
@click.option("--onnx", "onnx_file", metavar="MODEL", help="The ONNX model behind the engine: names what runs inside opaque regions.")
@click.option("--explain", "kernel_id", metavar="KERNEL_ID", type=int, help="Show every piece of evidence for one kernel instead.")
@click.option("--json", "as_json", is_flag=True, help="With --explain: one JSON object.")
def map_command(  # noqa: PLR0913  # one parameter an option
    *, report: str, engine_files: tuple[str, ...], output: str | None, onnx_file: str | None, kernel_id: int | None, as_json: bool
) -> None:
    """Write which layer each kernel belongs to, one row a kernel, and how that is known.

    REPORT is an .nsys-rep or what `nsys export -t sqlite` made of one.  ENGINE is the file of trtexec --exportLayerInfo; without
    one, layers are those that the trace's NVTX ranges name.  Without -o only the coverage is shown.

    \b
    Examples:
      nsysmap map report.nsys-rep engine.json -o map.csv
      nsysmap map report.nsys-rep engine.json --explain 1234
    """
    from nsysmap.map_file import SUFFIXES, coverage_line, write_map, write_rows
    from nsysmap.mapped_trace import map_report, read_engines
    from nsysmap.output_file import check_output
    from nsysmap.totals import coverage

    if kernel_id is not None and output is not None:
        raise click.UsageError("--explain shows one kernel and writes no map: leave -o out.")
    if as_json and kernel_id is None:
        raise click.UsageError("--json goes with --explain; for the whole map write -o FILE.json.")
    if output not in (None, "-"):
        check_output(Path(output), SUFFIXES, [Path(path) for path in (report, *engine_files, onnx_file) if path])
    with _progress() as tell:
        mapped = map_report(report, read_engines(engine_files), model=_model(onnx_file), progress=tell)
        if not len(mapped.kernels):
            raise NsysmapError(
                report,
                "has no GPU kernels to map",
                "capture it again with `nsys profile -t cuda,nvtx --cuda-graph-trace=node`; `nsysmap analyze` says what it has",
            )
        if output == "-":
            write_rows(mapped.kernels, sys.stdout.buffer)
        elif output is not None:
            tell("writing the map")
            write_map(mapped.kernels, Path(output))
    if kernel_id is not None:
        _explain(mapped, kernel_id, as_json=as_json)
        return
    for note in mapped.mapped.notes:
        click.echo(f"nsysmap: {note.level}: {escaped(note.text)}", err=True)
    line = coverage_line(coverage(mapped.kernels))
    click.echo(line, err=output is not None)
    if output is None:
        click.echo("one row a kernel: add -o FILE.csv, .parquet or .json")


def _explain(mapped: MappedTrace, kernel_id: int, *, as_json: bool) -> None:
    """Show what one kernel's layer rests on."""
    from nsysmap.explain import explain
    from nsysmap.report_explain import explain_json, explain_text

    held = explain(mapped, kernel_id)
    if as_json:
        import json

        click.echo(json.dumps(explain_json(held), indent=1))
    else:
        click.echo(explain_text(held))


@cli.command("what-if")
@click.argument("report")
@click.argument("engine_files", metavar="[ENGINE]...", nargs=-1)
@click.option(
    "--change",
    "names",
    metavar="NAME",
    multiple=True,
    help="cuda-graph, two-in-flight, pinned-copies, no-host-gap, drop-layers or join-kernels. Repeatable; all without it.",
)
@click.option(
    "--layer",
    "layers_named",
    metavar="NAME",
    multiple=True,
    help="For drop-layers: a layer to leave out (else the reformats); for join-kernels: the layers of one run, in order. "
    "A NAME that ends in * is every layer that begins so. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
def what_if_command(
    report: str, engine_files: tuple[str, ...], names: tuple[str, ...], layers_named: tuple[str, ...], as_json: bool
) -> None:
    """Say what a change to the program would save, by replaying the timeline with and without it.

    \b
    REPORT is an .nsys-rep or what `nsys export -t sqlite` made of one, taken with the kernels visible
    (--cuda-graph-trace=node).  ENGINE is the file of trtexec --exportLayerInfo; join-kernels needs it.

    \b
    Example:
      nsysmap what-if report.nsys-rep engine.json --change cuda-graph
    """
    from nsysmap.chains import chain_tables
    from nsysmap.mapped_trace import map_report, read_engines
    from nsysmap.report_whatif import whatif_json, whatif_text
    from nsysmap.whatif import chosen_changes, what_if

    with _progress() as tell:
        engines = read_engines(engine_files)
        mapped = map_report(report, engines, progress=tell)
        chains, chain_layers = chain_tables(engines)
        tables = {"layers": mapped.mapped.layers, "chains": chains, "chain_layers": chain_layers}
        changes = chosen_changes(names, layers_named, tables)
        tell("replaying the timeline")
        answers = what_if(mapped.trace, mapped.inferences, mapped.found.membership, mapped.mapped.table, changes=changes)
    if as_json:
        import json

        click.echo(json.dumps(whatif_json(answers), indent=1))
    else:
        click.echo(whatif_text(answers, mapped.trace.source))


@cli.command("graph")
@click.argument("engine_file", metavar="ENGINE")
@click.argument("report", required=False)
@click.option("-o", "--output", metavar="FILE", required=True, help="The picture: .svg, .png, .dot or .html.")
@click.option("--color", type=click.Choice(["time", "kind", "precision"]), help="Colour by; time where it is known, else kind.")
@click.option(
    "--collapse",
    type=click.Choice(["auto", "block", "region", "none"]),
    default="auto",
    help="One box for each repeated block or Myelin region; auto: where there are more than 150 layers.",
)
@click.option("--profile", metavar="FILE", help="trtexec --exportProfile file: times where there is no REPORT.")
def graph_command(  # noqa: PLR0913  # one parameter an option
    *, engine_file: str, report: str | None, output: str, color: str | None, collapse: str, profile: str | None
) -> None:
    """Draw an engine: its layers, the tensors between them, and where the time goes.

    ENGINE is the file of trtexec --exportLayerInfo.  REPORT, an .nsys-rep or an SQLite export of one, gives the times.
    An .html file is one page that works offline: drag to move, scroll to zoom, search by name, click a layer for its details.

    \b
    Examples:
      nsysmap graph engine.json report.nsys-rep -o engine.html
      nsysmap graph engine.json -o engine.svg --color precision
      nsysmap graph engine.json report.nsys-rep -o engine.png --collapse block
    """
    from dataclasses import replace

    from nsysmap.engine import read_engine
    from nsysmap.graph_picture import picture, times_of
    from nsysmap.output_file import check_output
    from nsysmap.report_graph import SUFFIXES, write_graph

    path = Path(output)
    check_output(path, SUFFIXES, [Path(given) for given in (engine_file, report, profile) if given])
    with _progress() as tell:
        if Path(engine_file).suffix in (".nsys-rep", ".qdrep", ".sqlite"):  # the order of the other commands
            if report is None:
                raise NsysmapError(engine_file, "is a report, not an engine", "give the engine file first: nsysmap graph ENGINE [REPORT]")
            engine_file, report = report, engine_file
        engine = replace(read_engine(engine_file, profile=profile), source=Path(engine_file).name)
        notes: tuple[str, ...] = ()
        tables = None
        source = ""
        if report is not None:
            from nsysmap.analysis import measured
            from nsysmap.mapped_trace import map_report

            mapped = map_report(report, [engine], progress=tell)
            tables, source = measured(mapped), mapped.trace.source
            notes = tuple(note.text for note in mapped.mapped.notes if note.level == "error")
        tell("drawing")
        times = times_of(engine, tables, source)
        drawn = picture(engine, times, mode=color, collapse=collapse, all_views=path.suffix.lower() == ".html")
        write_graph(drawn, path)
    for note in notes:
        click.echo(f"error: {escaped(note)}", err=True)
    click.echo(f"{escaped(drawn.title)} → {escaped(output)}")
    if report is not None and tables is not None and (times is None or not times.kernels):
        click.echo(f"warning: {escaped(source)} shows no kernel of this engine: the picture has none of its times", err=True)


@cli.command("export")
@click.argument("report")
@click.argument("engine_file", metavar="ENGINE")
@click.option(
    "--trex", "folder", metavar="DIR", required=True, help="Write graph.json, profile.json and timing.json for NVIDIA's trex into DIR."
)
@click.option("--force", is_flag=True, help="Overwrite files that are there already.")
def export_command(report: str, engine_file: str, folder: str, force: bool) -> None:
    """Write what a trace measured of an engine in the form of another tool.

    REPORT is an .nsys-rep or what `nsys export -t sqlite` made of one, ENGINE the file of trtexec --exportLayerInfo.  With --trex the
    times of profile.json are measured kernel times: per layer and inference, as trtexec --exportProfile would give them.

    \b
    Example:
      nsysmap export --trex trex/ report.nsys-rep engine.json
    """
    from nsysmap.analysis import measured
    from nsysmap.mapped_trace import map_report, read_engines
    from nsysmap.report_trex import trex_files, trex_name, trex_words, write_trex

    with _progress() as tell:
        engines = read_engines([engine_file])
        mapped = map_report(report, engines, progress=tell)
        tell("writing")
        files = trex_files(engines[0], measured(mapped), mapped.kernels, mapped.inferences)
        written = write_trex(files, Path(folder), trex_name(Path(engine_file)), [Path(report), Path(engine_file)], force=force)
    for line in trex_words(files, written):
        click.echo(escaped(line))


@cli.group()
def cache() -> None:
    """The exports that nsysmap keeps, so that each report is exported once.

    \b
    Example:
      nsysmap cache clear
    """


@cache.command("clear")
def cache_clear() -> None:
    """Remove every export from the cache.

    \b
    Example:
      nsysmap cache clear
    """
    from nsysmap.nsys import clear_cache

    cleared = clear_cache()
    click.echo(f"removed {cleared.files} file{'' if cleared.files == 1 else 's'}, {cleared.size_bytes:,} bytes")


@cache.command("path")
def cache_path() -> None:
    """Print the folder that exports are kept in.

    \b
    Example:
      du -sh "$(nsysmap cache path)"
    """
    from nsysmap.nsys import cache_folder

    click.echo(cache_folder())


@cache.command("list")
def cache_list() -> None:
    """List the exports in the cache: size, when it was made, the nsys that made it, file.

    \b
    Example:
      nsysmap cache list
    """
    import datetime

    from nsysmap.nsys import cached

    for entry in cached():
        made_at = datetime.datetime.fromtimestamp(entry.made_at_s).isoformat(" ", "minutes")
        click.echo(f"{entry.size_bytes:>15,}  {made_at}  nsys {entry.nsys_version:<14}  {entry.path.name}")


@cli.command()
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a name and line.")
@click.option("--explain", metavar="WORD", help="Print the reference entry of an op code, pattern, family or word, such as Sqr.")
def decode(names: tuple[str, ...], as_json: bool, explain: str | None) -> None:
    """Say what kernel, tactic and layer names mean.

    Names are taken from the command line, or from standard input, one a line.

    \b
    Examples:
      nsysmap decode __myl_AddCastMeanSubMulMeanAddSqrtDivMulCastMulAdd
      nsysmap decode --json < names.txt
      nsysmap decode --explain Sqr
    """
    if explain is not None:
        from nsysmap.names_reference import explain as entries
        from nsysmap.report_names import entry_text

        click.echo("\n\n".join(entry_text(entry) for entry in entries(explain)))
        return
    from nsysmap.names import decode as decode_name
    from nsysmap.report_names import names_json, names_text

    if not names and sys.stdin.isatty():
        raise NsysmapError("decode", "no name given", "give names as arguments, or one a line on standard input")
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for name in names or _lines_in():
        decoded = decode_name(name)
        if as_json:
            import json

            click.echo(json.dumps(names_json(decoded)))
        else:
            click.echo(names_text(decoded, colour=colour), color=colour)


@cli.group("rules")
def rules_group() -> None:
    """The rules that look for what costs time, those that come with nsysmap and your own.

    \b
    Example:
      nsysmap rules list
    """


_FOLDERS = click.option("--rules", "folders", metavar="DIR", multiple=True, help="The rules in this folder too. Repeatable.")


@rules_group.command("list")
@_FOLDERS
def rules_list(folders: tuple[str, ...]) -> None:
    """List the rules by group, with their severity and what they find.

    \b
    Example:
      nsysmap rules list --rules our-rules
    """
    from nsysmap.report_rules import rules_list as listing
    from nsysmap.rules import builtin_rules_dir, load_rules

    click.echo(listing(load_rules([builtin_rules_dir(), *map(Path, folders)], check_own=False)))


@rules_group.command("show")
@click.argument("name")
@_FOLDERS
def rules_show(name: str, folders: tuple[str, ...]) -> None:
    """Show all of one rule: why, what to do, its parameters, its SQL and its cases.

    \b
    Example:
      nsysmap rules show launch-bound
    """
    from nsysmap.report_rules import rule_text
    from nsysmap.rules import builtin_rules_dir, load_rules

    rules = {rule.name: rule for rule in load_rules([builtin_rules_dir(), *map(Path, folders)])}
    if name not in rules:
        import difflib

        close = difflib.get_close_matches(name, rules, n=3)
        remedy = f"did you mean {', '.join(close)}?" if close else "see `nsysmap rules list`"
        raise NsysmapError(f"rules show {name}", "there is no such rule", remedy)
    click.echo(rule_text(rules[name]))


@rules_group.command("check")
@click.argument("folder", metavar="DIR")
def rules_check(folder: str) -> None:
    """Check that the rule files of a folder are sound, without running them.

    \b
    Example:
      nsysmap rules check our-rules
    """
    from nsysmap.rules import load_rules
    from nsysmap.units import counted

    click.echo(f"{counted(len(load_rules([Path(folder)])), 'rule')} read and checked: sound")


@rules_group.command("test")
@click.argument("folder", metavar="DIR")
def rules_test(folder: str) -> int:
    """Run the cases in the rule files of a folder; exit with status 1 if a rule does not answer as its cases say.

    \b
    Example:
      nsysmap rules test our-rules
    """
    from nsysmap.report_rules import cases_text
    from nsysmap.rule_cases import run_cases
    from nsysmap.rules import load_rules

    results = run_cases(load_rules([Path(folder)]))
    click.echo(cases_text(results))
    return 1 if any(result.wrong is not None for result in results) else 0


def _lines_in() -> Iterator[str]:
    """The lines of standard input that are not empty; bytes that are no UTF-8 are kept as they are."""
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if text:
            yield text
