"""The command `nsysmap`: its subcommands, signals, closed streams, and errors as one line with exit
status 2.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from nsysmap.cli.inputs import BETWEEN_SIDES, complete_paths
from nsysmap.core.ending import end_at_signals, hold_where_stopped
from nsysmap.core.errors import NsysmapError, current_folder
from nsysmap.text.terminal import escaped

COMMAND_GROUPS = {
    "Why is it slow": ("analyze", "inference", "what-if", "fix", "plot"),
    "Did it help": ("compare",),
    "Guard it": ("gate", "baseline", "fleet"),
    "Look closer": ("layers", "graph", "map", "decode", "sql", "rules"),
    "Record and pass on": ("record", "open", "export", "nsys-plugin", "mcp"),
    "nsysmap itself": ("doctor", "cache", "man", "completion"),
}
"""The commands by what they are for, as --help lists them."""

COMMANDS = {
    "record": "record:record_command",
    "analyze": "analyze:analyze_command",
    "compare": "compare:compare_command",
    "inference": "compare:inference_command",
    "gate": "gate:gate_command",
    "baseline": "gate:baseline_command",
    "map": "map:map_command",
    "layers": "layers:layers",
    "graph": "graph:graph_command",
    "what-if": "what_if:what_if_command",
    "fix": "fix:fix_command",
    "plot": "plot:plot_command",
    "export": "export:export_command",
    "open": "open:open_command",
    "sql": "sql:sql_command",
    "decode": "decode:decode",
    "rules": "rules:rules_group",
    "cache": "cache:cache",
    "doctor": "doctor:doctor_command",
    "completion": "man:completion_command",
    "man": "man:man_command",
    "fleet": "fleet:fleet_command",
    "mcp": "mcp:mcp_command",
    "nsys-plugin": "nsys_plugin:nsys_plugin",
}
"""Each command: its module in `nsysmap.cli`, and what it is called there."""


class _Commands(MutableMapping[str, click.Command]):
    """The commands by name; the module of one is imported when that command is asked for, since
    nobody runs more than one.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._held: dict[str, click.Command | str] = dict(places)

    def __getitem__(self, name: str) -> click.Command:
        held = self._held[name]
        if isinstance(held, str):
            module, _, attribute = held.partition(":")
            loaded: click.Command = getattr(import_module(f"nsysmap.cli.{module}"), attribute)
            complete_paths(loaded)
            held = self._held[name] = loaded
        return held

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._held[name] = command

    def __delitem__(self, name: str) -> None:
        del self._held[name]

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


def _show_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    from nsysmap import __version__
    from nsysmap.output.doctor import version_text

    click.echo(version_text(__version__), nl=False)
    context.exit()


class _Grouped(click.Group):
    """The group of all commands; its help lists them by what they are for."""

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a section of help for each purpose."""
        width = max(map(len, COMMANDS))
        for purpose, names in COMMAND_GROUPS.items():
            with formatter.section(purpose):
                room = formatter.width - width - formatter.current_indent - 4
                rows = [
                    (name.ljust(width), self.commands[name].get_short_help_str(room))
                    for name in names
                ]
                formatter.write_dl(rows)


# Paths stay plain text in every command: our own errors name them.
@click.group(
    cls=_Grouped,
    commands=_Commands(COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and what nsysmap found installed, for a bug report.",
)
def cli() -> None:
    """The post-mortem of a TensorRT profile: which layer each kernel ran for, and where the time
    goes.

    \b
    Examples:
      nsysmap report.nsys-rep engine.json     # the same as: nsysmap analyze …
      nsysmap COMMAND --help
    """


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    end_at_signals()
    # millions of small values are made, hardly one of them in a cycle: to look for those takes a
    # tenth of the time, and finds nothing
    gc.disable()
    # numpy's import starts a thread a core; nothing here multiplies matrices
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _open_streams()
    try:
        _run()
    finally:
        hold_where_stopped()  # whatever became of it on the way


def _run() -> None:
    try:
        status = cli(
            args=_with_sides(with_command(sys.argv[1:])),
            prog_name="nsysmap",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except NsysmapError as error:
        _fail(str(error))
    except click.UsageError as error:
        if error.ctx is None or isinstance(error, _HELP_ASKED):
            error.show()
            sys.exit(error.exit_code)
        path = error.ctx.command_path
        where = f"{path.removeprefix('nsysmap ')}: " if path != "nsysmap" else ""
        what = error.format_message().rstrip(".")
        _fail(
            f"{where}{what[:1].lower()}{what[1:]}{'' if what.endswith('?') else ';'} see {path}"
            " --help"
        )
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        if isinstance(
            error.__cause__, EOFError
        ):  # click takes it for the end of what a user types; nothing here asks for that
            raise error.__cause__ from None
        sys.exit(130)
    except MemoryError:
        _fail(_NO_MEMORY, status=1)
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)  # as click does, where it meets the closed pipe first
    except OSError as error:
        if isinstance(
            error.filename, str
        ):  # a path that a user gave, in a way that no command foresaw
            _fail(
                f"{error.filename}: cannot be used ({error.strerror}); check the path and its"
                " permissions"
            )
        if error.errno == errno.ENOMEM:
            _fail(_NO_MEMORY, status=1)
        if error.errno == errno.ENOENT:
            current_folder()  # says so where that is what is gone
        if error.errno not in _FULL:
            raise
        _drop_output()
        _fail(
            f"standard output: cannot be written ({error.strerror}); free disk space, or write"
            " elsewhere"
        )
    if isinstance(status, int):  # what a command gave to Context.exit
        sys.exit(status)


def with_command(arguments: list[str]) -> list[str]:
    """The arguments, those of analyze where they begin with a file instead of a command."""
    named = next((one for one in arguments if not one.startswith("-")), "")
    own = not arguments or arguments[0] in ("-h", "--help", "--version")
    if own or not named or named in COMMANDS:
        return arguments
    is_file = "." in named or "/" in named or Path(named).exists()
    return ["analyze", *arguments] if is_file else arguments


def _with_sides(arguments: list[str]) -> list[str]:
    """The arguments, with what parts the two sides of compare kept for it, and --json=brief as the
    flag that it stands for: click has no option whose value may be left out.
    """
    return [
        BETWEEN_SIDES
        if one == "--" and arguments[0] == "compare"
        else "--json-brief"
        if one == "--json=brief"
        else one
        for one in arguments
    ]


_HELP_ASKED = getattr(click.exceptions, "NoArgsIsHelpError", ())  # click 8.2 and later
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _open_streams() -> None:
    """Put /dev/null if the caller closed a stream, and have characters that a stream cannot hold
    escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # it stays open until the process ends
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nothing)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Nobody can read it: what is still buffered must not fail again when Python shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_NO_MEMORY = (
    "out of memory: this takes more than the process may have; raise the limit, select a part of"
    " the report (--since, --until, --inference), or write fewer outputs; files that were complete"
    " are kept"
)


def _fail(line: str, *, status: int = 2) -> NoReturn:
    hold_where_stopped()
    with suppress(OSError):  # standard error may be full or closed too
        click.echo("nsysmap: " + escaped(" ".join(line.split())), err=True)
    sys.exit(status)
