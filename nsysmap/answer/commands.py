"""The commands that show more than the first screen, to be pasted as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from nsysmap.answer.model import Answer
from nsysmap.answer.words import of_fusion
from nsysmap.names.decode import decode, tells_no_more
from nsysmap.names.model import KernelName
from nsysmap.text.terminal import columns, pasted

_NAME = 69  # columns of a kernel's name in a command: it fits a line of the narrowest terminal
_SLOW = 1.1  # ratio to the median from which the slowest inference is worth a look


def commands(summary: Answer, given: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The commands that show more, each with its purpose, to be pasted where the report and the
    engine files were ``given`` by their paths.
    """
    return _commands(summary, *_paths(summary, given))


def _paths(summary: Answer, given: Sequence[str]) -> tuple[str, list[str]]:
    """The paths of the report and of the engine files that may have run, as they were given; their
    names where nothing was.
    """
    names = dict.fromkeys(one.in_file for one in summary.engines if one.verdict != "did-not-run")
    ends = {name: tuple(name.split("/")) for name in names}
    of_name = {
        name: path
        for path in given[1:]
        for name, end in ends.items()
        if PurePath(path).parts[-len(end) :] == end
    }
    return (given[0] if given else summary.source), [of_name.get(name, name) for name in names]


def _commands(summary: Answer, report: str, engines: Sequence[str]) -> list[tuple[str, str]]:
    files = " ".join(map(pasted, (report, *engines)))
    found = []
    if engines and summary.layers:
        found.append(
            ("regions" if summary.regions else "layers", f"nsysmap layers {files} --sort time")
        )
    if summary.kernels:
        name = _name(summary)
        found.append(("names", f"nsysmap decode {name or pasted(report)}"))
    if engines and any(
        of_fusion(one.group, one.rule) and one.outcome != "clean" for one in summary.rules
    ):
        found.append(("not fused", f"nsysmap layers {files} --not-fused"))
    if summary.slowest and summary.slowest.times_median >= _SLOW:
        found.append(("slowest", f"nsysmap inference {files} {summary.slowest.inference}"))
    if not summary.blocked:
        found.append(("timeline", f"nsysmap {files} -o report.html"))
    return found


def _tells(decoded: KernelName) -> bool:
    return decoded.family != "unknown" and not tells_no_more(decoded)


def _name(summary: Answer) -> str:
    """The name of the costliest kernel that has a known function and is short enough for a command;
    empty if there is none.
    """
    telling = (one for one in summary.kernels if _tells(decode(one.name)))
    names = (pasted(one.name) for one in telling)
    return next((name for name in names if columns(name) <= _NAME), "")
