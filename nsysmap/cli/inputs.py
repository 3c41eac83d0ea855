"""Arguments that several commands read in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from nsysmap.inputs.engine.onnx_model import OnnxModel
    from nsysmap.inputs.torch.graph_annotations import NodeAnnotation
    from nsysmap.mapping.selection import Selection

Command = TypeVar("Command", bound=Callable[..., Any])

BETWEEN_SIDES = "\x1f--"
"""Stands for -- among the files of `nsysmap compare`, because click would drop it."""

# plain text to us, which shells complete as a path; our own errors say what is wrong with it
_PATH = click.Path(readable=False)
_PATHS = frozenset({"FILE", "MODEL", "REPORT", "ENGINE", "DIR", "LOG", "BEFORE", "AFTER"})

report_and_engines = click.argument("files", metavar="REPORT [ENGINE]...", nargs=-1, required=True)
"""The report and engine files of a command, in any order; given_files distinguishes them."""

report_and_engine = click.argument("files", metavar="REPORT ENGINE", nargs=-1, required=True)
engine_and_report = click.argument("files", metavar="ENGINE [REPORT]", nargs=-1, required=True)
engines_with_report = click.argument("files", metavar="ENGINE... [REPORT]", nargs=-1, required=True)
"""The engine and report files of commands about one engine; one_engine distinguishes them."""

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")

reader_option = click.option(
    "--reader",
    type=click.Choice(["auto", "nsys", "own"]),
    default="auto",
    help=(
        "Reader of .nsys-rep files: nsys (through an export), nsysmap itself (own), or nsys if it"
        " is recent enough, else nsysmap (auto)."
    ),
)

onnx_option = click.option(
    "--onnx",
    "onnx_file",
    metavar="MODEL",
    help="The ONNX model that the engine was built from: names what runs inside opaque regions.",
)

annotations_option = click.option(
    "--graph-annotations",
    "annotations_file",
    metavar="FILE",
    help="PyTorch's annotations of CUDA graph nodes (JSON): names the kernels that graphs run.",
)

rules_option = click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="Also run the rules in this folder. Repeatable.",
)

params_option = click.option(
    "--param",
    "params",
    metavar="RULE.NAME=VALUE",
    multiple=True,
    help="Set a rule's parameter. Repeatable.",
)


def completing(
    names: Callable[[], Iterable[str]], *, paths: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What shells complete for a parameter: those of the names that begin so, and paths if asked
    for.
    """

    def complete(_context: click.Context, _of: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        fit = [CompletionItem(name) for name in sorted(names()) if name.startswith(begun)]
        return [*fit, CompletionItem(begun, type="file")] if paths else fit

    return complete


def complete_paths(command: click.Command) -> None:
    """Let shells complete paths for every parameter of the command that its metavar says is one."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            complete_paths(inner)
    for parameter in command.params:
        words = (
            (parameter.metavar or "")
            .replace("[", " ")
            .replace("]", " ")
            .replace(".", " ")
            .replace("|", " ")
            .split()
        )
        if parameter.type is click.STRING and _PATHS & set(words):
            parameter.type = _PATH


def selecting(command: Command) -> Command:
    """The command with the options that choose a part of the report, which :func:`chosen` reads."""
    for option in reversed(_SELECTION):
        command = option(command)
    return command


def chosen() -> Selection | None:
    """The part of the report that the running command's options choose; None for all of it."""
    given = click.get_current_context().meta
    if not any(
        given.get(f"nsysmap.{name}") not in (None, ())
        for name in ("since", "until", "inference", "device", "pid", "stream")
    ):
        return None
    from nsysmap.mapping.selection import Selection, inference_numbers, time_ns

    since, until, numbers = (
        given.get(f"nsysmap.{name}") for name in ("since", "until", "inference")
    )
    return Selection(
        since_ns=None if since is None else time_ns(since),
        until_ns=None if until is None else time_ns(until),
        inferences=None if numbers is None else inference_numbers(numbers),
        devices=given.get("nsysmap.device", ()),
        pids=given.get("nsysmap.pid", ()),
        streams=given.get("nsysmap.stream", ()),
    )


def _kept(context: click.Context, option: click.Parameter, value: object) -> None:
    context.meta[f"nsysmap.{option.name}"] = value


def _option(
    name: str, metavar: str, words: str, *, numbers: bool = False
) -> Callable[[Command], Command]:
    kind = int if numbers else str
    return click.option(
        name,
        metavar=metavar,
        type=kind,
        multiple=numbers,
        callback=_kept,
        expose_value=False,
        help=words,
    )


_SELECTION = (
    _option(
        "--since",
        "TIME",
        "Only GPU work launched at or after this time of the report: a number with ns (the"
        " default), us, ms or s.",
    ),
    _option("--until", "TIME", "Only GPU work launched before this time."),
    _option(
        "--inference",
        "N..M",
        "Only inferences N to M, or only inference N; numbered from 0 as in the report.",
    ),
    _option("--device", "N", "Only work on this CUDA device. Repeatable.", numbers=True),
    _option("--pid", "N", "Only work of the process with this id. Repeatable.", numbers=True),
    _option("--stream", "N", "Only work on streams with this id. Repeatable.", numbers=True),
)


def graph_annotations(path: str | None) -> tuple[NodeAnnotation, ...]:
    """PyTorch's annotations of graph nodes, where a file of them is given."""
    if path is None:
        return ()
    from nsysmap.inputs.torch.graph_annotations import read_annotations

    return read_annotations(Path(path))


def onnx_model(path: str | None) -> OnnxModel | None:
    """The ONNX model, where one is given."""
    if path is None:
        return None
    from nsysmap.inputs.engine.onnx_model import read_model

    return read_model(path)
