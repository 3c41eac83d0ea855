"""`nsysmap decode`: what names mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from nsysmap.base.errors import NsysmapError


@click.command()
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
        from nsysmap.names.reference import explain as entries
        from nsysmap.report.names import entry_text

        click.echo("\n\n".join(entry_text(entry) for entry in entries(explain)))
        return
    from nsysmap.names.decode import decode as decode_name
    from nsysmap.report.names import names_json, names_text

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


def _lines_in() -> Iterator[str]:
    """The lines of standard input that are not empty; bytes that are no UTF-8 are kept as they are."""
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if text:
            yield text
