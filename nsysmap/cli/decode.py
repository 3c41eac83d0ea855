"""`nsysmap decode`: what names mean, one by one or inside the lines of a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from os.path import isfile

import click

from nsysmap.cli.console import colour, progress, width
from nsysmap.core.errors import NsysmapError
from nsysmap.text.lines import WHOLE
from nsysmap.text.terminal import pasted

_ENGINES = (".json", ".engine", ".plan", ".trt")


@click.command(short_help="Explain kernel, tactic and layer names.")
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per name, one per line."
)
@click.option(
    "--filter",
    "as_filter",
    is_flag=True,
    help="Copy every line of standard input, with each name in it followed by its meaning.",
)
@click.option(
    "--explain",
    metavar="WORD",
    help="Print the reference entry of an op code, pattern, family or word, such as Sqr.",
)
def decode(*, names: tuple[str, ...], as_json: bool, as_filter: bool, explain: str | None) -> None:
    """Explain kernel, tactic and layer names.

    Names are taken from the command line, or from standard input.  The path of a report stands for
    the names of its kernels, those that take the most time first.  On standard input, a line that
    is a single known name is explained; any other line, such as a log's, is copied with each name
    in it followed by its meaning, as c++filt does (--filter: all lines).

    \b
    Examples:
      nsysmap decode __myl_AddCastMeanSubMulMeanAddSqrtDivMulCastMulAdd
      nsysmap decode report.nsys-rep
      nsysmap decode --json < names.txt
      nsys stats --report cuda_gpu_kern_sum report.sqlite | nsysmap decode
      nsysmap decode --explain Sqr
    """
    if explain is not None:
        from nsysmap.names.reference import explain as entries
        from nsysmap.output.names import entry_text

        click.echo(
            "\n\n".join(entry_text(entry, width=width() or WHOLE) for entry in entries(explain))
        )
        return
    if as_filter and (as_json or names):
        raise click.UsageError("--filter copies standard input: leave names and --json out.")
    if not names and sys.stdin.isatty():
        raise NsysmapError(
            "decode", "no name given", "give names as arguments, or one a line on standard input"
        )
    if names or as_json:
        told = [one for name in names for one in _named(name)]
        for name in told if names else _lines_in():
            _explain(name, as_json=as_json)
        return
    _copy(every_line=as_filter)


def _named(name: str) -> list[str]:
    """The name itself; of the path of a report its kernels' names.  Raises NsysmapError for the
    path of another file.
    """
    if not isfile(name):  # Path.is_file() raises OSError for a text that is too long to be a path  # noqa: PTH113
        return [name]
    from nsysmap.mapping.given_files import is_likely_report

    if is_likely_report(name):
        return _kernels_of(name)
    if name.lower().endswith(_ENGINES):
        remedy = f"show its layers: nsysmap layers {pasted(name)}"
    else:
        remedy = f"explain the names in it: nsysmap decode < {pasted(name)}"
    raise NsysmapError(name, "is a file, not a name", remedy)


def _kernels_of(report: str) -> list[str]:
    """The names of the kernels in a report, those that take the most time first."""
    import numpy as np

    from nsysmap.trace.open_report import open_trace

    with progress() as tell:
        kernels = open_trace(report, progress=tell).kernels
    if not len(kernels):
        raise NsysmapError(report, "shows no kernels", f"see why: nsysmap analyze {pasted(report)}")
    names, took = kernels.text("name"), kernels.ints("end_ns") - kernels.ints("start_ns")
    spent = np.bincount(names.codes, weights=took, minlength=len(names.values))
    return [names.values[code] for code in np.argsort(-spent, kind="stable") if spent[code] > 0]


def _explain(name: str, *, as_json: bool) -> None:
    from nsysmap.names.decode import decode as decode_name
    from nsysmap.output.names import names_json, names_text

    decoded = decode_name(name)
    if as_json:
        import json

        click.echo(json.dumps(names_json(decoded)))
    else:
        click.echo(names_text(decoded, colour=colour(), width=width() or WHOLE), color=colour())


def _copy(*, every_line: bool) -> None:
    """Copy standard input, with lines that are one name explained unless ``every_line`` is to be
    copied.
    """
    from nsysmap.names.in_lines import is_name
    from nsysmap.output.names import explained_line, printable

    on_terminal = sys.stdout.isatty()
    for raw in sys.stdin.buffer:
        # bytes that are no UTF-8 are kept as they are
        whole = raw.decode("utf-8", "surrogateescape")
        line = whole.rstrip("\r\n")
        if not every_line and line and is_name(line):
            _explain(line.strip(), as_json=False)
            continue
        told = explained_line(line)
        if on_terminal:
            click.echo("\t".join(printable(part) for part in told.split("\t")))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write((told + whole[len(line) :]).encode("utf-8", "surrogateescape"))
            sys.stdout.buffer.flush()  # so that a log can be followed


def _lines_in() -> Iterator[str]:
    """The lines of standard input that are not empty."""
    for line in sys.stdin.buffer:
        if text := line.decode("utf-8", "surrogateescape").rstrip("\r\n"):
            yield text
