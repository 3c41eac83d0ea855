"""`nsysmap man` and `nsysmap completion`: manual pages, and what shells need, made from the
commands.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from nsysmap import __version__
from nsysmap.text.terminal import escaped

_STATUS = (
    ("0", "The command did what was asked."),
    (
        "1",
        (
            "A finding of --fail-on's severity, a rule that fails its cases, or a reader of the"
            " output that went away."
        ),
    ),
    ("2", "Wrong input or usage: one line on standard error says where, what, and what to do."),
    ("130, 143", "Ended by an interrupt or a signal."),
)
_ENVIRONMENT = (
    ("NSYS", "The nsys program to use, instead of the one on PATH."),
    ("NSYSMAP_CACHE", "The folder in which exports of reports are kept."),
    (
        "NSYSMAP_NSYS_TIMEOUT",
        "Seconds after which an nsys that neither prints nor writes is ended.",
    ),
    ("NO_COLOR", "No colours, if it is set to any value."),
)


@click.command("man", short_help="Print or write the manual pages.")
@click.argument("name", metavar="[COMMAND]", required=False)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    help="Write all pages into this folder, which is created: nsysmap.1, nsysmap-analyze.1, …",
)
@click.pass_context
def man_command(context: click.Context, *, name: str | None, folder: str | None) -> None:
    """Print the manual page of nsysmap or of one command, or write all of them.

    \b
    Examples:
      nsysmap man analyze | man -l -
      nsysmap man -o ~/.local/share/man/man1
    """
    from nsysmap.core.errors import NsysmapError

    pages = dict(manual_pages(context.find_root().command))
    if folder is None:
        wanted = "nsysmap" if name is None else f"nsysmap-{name.replace(' ', '-')}"
        if wanted not in pages:
            raise NsysmapError(f"man {name}", "there is no such command", "see nsysmap --help")
        click.echo(pages[wanted], nl=False)
        return
    if name is not None:
        raise click.UsageError("-o writes every page: leave the command out.")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for page, text in pages.items():
            (Path(folder) / f"{page}.1").write_text(text, encoding="utf-8")
    except OSError as error:
        raise NsysmapError(
            str(error.filename), f"cannot be written ({error.strerror})", "give another folder"
        ) from error
    click.echo(f"{escaped(folder)}: {len(pages)} pages")


def manual_pages(root: click.Command) -> Iterator[tuple[str, str]]:
    """Name and text of the page of each command, in the form that man reads."""
    yield from _pages(
        root, click.Context(root, info_name="nsysmap", **root.context_settings), "nsysmap"
    )


def _pages(command: click.Command, context: click.Context, name: str) -> Iterator[tuple[str, str]]:
    inner = command.commands if isinstance(command, click.Group) else {}
    yield name, _page(command, context, name, inner)
    for word, one in sorted(inner.items()):
        yield from _pages(one, click.Context(one, info_name=word, parent=context), f"{name}-{word}")


def _page(
    command: click.Command, context: click.Context, name: str, inner: Mapping[str, click.Command]
) -> str:
    title = command.get_short_help_str(limit=200).rstrip(".")
    lines = [
        f'.TH "{name.upper()}" "1" "" "nsysmap {__version__}" "nsysmap"',
        ".SH NAME",
        _roff(f"{name} - {title}"),
    ]
    lines += [
        ".SH SYNOPSIS",
        f".B {_roff(context.command_path)}",
        _roff(" ".join(command.collect_usage_pieces(context))),
    ]
    described, examples = _described(command.help or "")
    lines += [".SH DESCRIPTION", *described]
    if inner:
        lines += [
            ".SH COMMANDS",
            *_items(
                (word, one.get_short_help_str(limit=200)) for word, one in sorted(inner.items())
            ),
        ]
    options = [
        parameter
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
    ]
    records = [
        record for option in options if (record := option.get_help_record(context)) is not None
    ]
    lines += [".SH OPTIONS", *_items(records)]
    if examples:
        lines += [".SH EXAMPLES", ".nf", *map(_roff, examples), ".fi"]
    lines += [".SH EXIT STATUS", *_items(_STATUS), ".SH ENVIRONMENT", *_items(_ENVIRONMENT)]
    others = [f"{name}-{word}" for word in sorted(inner)] or ["nsysmap"]
    return (
        "\n".join(
            [
                *lines,
                ".SH SEE ALSO",
                _roff(", ".join(f"{other}(1)" for other in others if other != name) or "nsys(1)"),
            ]
        )
        + "\n"
    )


def _described(text: str) -> tuple[list[str], list[str]]:
    """The paragraphs of a help text, and the lines of its example."""
    described: list[str] = []
    examples: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        verbatim = paragraph.startswith("\b")
        lines = [line for line in paragraph.removeprefix("\b").split("\n") if line.strip()]
        if lines and lines[0].strip() in ("Example:", "Examples:"):
            examples = [line.strip() for line in lines[1:]]
        elif verbatim:
            described += [".PP", ".nf", *map(_roff, lines), ".fi"]
        elif lines:
            described += [".PP", *(_roff(line.strip()) for line in lines)]
    return described[1:], examples


def _items(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for head, text in rows for line in (".TP", f".B {_roff(head)}", _roff(text))]


def _roff(text: str) -> str:
    """One line of plain text in roff: nothing in it is a request or an escape."""
    plain = " ".join(text.split("\n")).replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + plain if plain.startswith((".", "'")) else plain


@click.command("completion", short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete nsysmap's commands, options and paths.

    \b
    Examples:
      echo 'eval "$(nsysmap completion bash)"' >> ~/.bashrc
      echo 'eval "$(nsysmap completion zsh)"' >> ~/.zshrc
      nsysmap completion fish > ~/.config/fish/completions/nsysmap.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click knows all three
    click.echo(made(context.find_root().command, {}, "nsysmap", "_NSYSMAP_COMPLETE").source())
