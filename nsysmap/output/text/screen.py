"""The answer on one terminal screen: the time, where it goes, what to do first, how sure that is;
then commands that show more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nsysmap.answer import gains, next_steps
from nsysmap.answer import words as answer
from nsysmap.answer.commands import commands
from nsysmap.answer.costs import Cost, cost_rows, costs_heading, inside, kernel_titles, other_costs
from nsysmap.answer.model import Action, Answer, Region
from nsysmap.answer.whose import engine_names
from nsysmap.names.layers import short_nodes
from nsysmap.output.answers import above_actions, below_actions
from nsysmap.text.lines import WHOLE, Line, prose_width, styled, table, wrapped
from nsysmap.text.terminal import columns, escaped, told_apart
from nsysmap.text.units import percent, rounded

_SCREEN = 24  # lines of the smallest terminal
_TOP_LAYERS = 5
_TOP_PARTS = 5
_NEEDED = ("", "layers", "regions", "names")
"""Purposes of the commands that the first lines name, above the table where it would push them
further down; that of a cd is empty.
"""
# an empty line and the table's heading, which are to be seen too where no command says what costs
# most
_HEAD = 2
_KIND_LINES = 3  # that the times of several kinds of inferences take
_LEAST_KINDS = 2
_SHELL = ("nsys", "nsysmap", "polygraphy", "python", "trtexec")
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")
_STATEMENT = re.compile(r"(?<=[,;]) +")
_COMMENT = re.compile(r"(.*?)(?:  ((?:#|//) .*))?")
_WORD = 11  # width of the words on the left
_WHAT = 13  # width of the comment after a command
_WIDE = 120  # width from which an action and its line to paste are side by side
_BESIDE = 140  # columns up to which they do
_LEAST_REGION = 0.2  # share of all kernel time from which a region's parts are listed
_FIGURES = 28  # width of the columns before a kernel's name in its table
_ENGINE = 14  # width of an engine's name in a table
_KINDS_FROM = 100  # width below which the layers' kinds give way to the names
_GAP = 2  # columns between those of a table
# share of the kernel time; if a region has the rest, its parts are listed instead
_LEAST_LAYER = 0.02


def screen(summary: Answer, width: int, given: Sequence[str] = ()) -> list[Line]:
    """The answer in lines of at most ``width`` columns; on a terminal with as many actions as leave
    room for what costs most.

    ``given`` are the paths of the report and of the engine files, as the commands that show more
    are to name them.
    """
    see = [
        (command, what)
        for what, command in commands(summary, given, None if width == WHOLE else width - _WORD)
    ]
    needed = [one for one in see if one[1] in _NEEDED]
    costs = _costliest(summary, width)
    below, layers = (
        len(list(_see(needed, width))),
        any(what in ("layers", "regions") for _, what in needed),
    )
    for shown, left_out in _choices(summary):
        lines = _answer(summary, shown, width, left_out)
        if (
            width == WHOLE
            or len(lines) + below + (0 if layers and not any(map(_unknown_gain, shown)) else _HEAD)
            <= _SCREEN
        ):
            break
    after = (
        width == WHOLE or len(lines) + 1 + len(costs) + len(list(_see(needed, width))) <= _SCREEN
    )
    lines += [] if after else _see(needed, width)
    lines += [styled(""), *costs]
    lines += _see(
        see if after else [one for one in see if one not in needed],
        width,
        "see" if after or not needed else "see also",
    )
    lines += _next_steps(summary, shown, width) if not summary.blocked else []
    if (
        summary.gpus or summary.next_steps or not summary.blocked
    ):  # without GPU work all is unknown, as said above
        lines += _said("unknown", [told] if (told := next_steps.doubts(summary)) else [], width)
    for text in summary.warnings:
        lines += wrapped(f"warning: {text}", width, indent=0, style="yellow")
    return lines


def _choices(summary: Answer) -> Iterator[tuple[Sequence[Action], Sequence[str]]]:
    """What the answer may hold, the most first: these actions, without these details.

    First go the note on their order and what held up the slowest inference, next an action of
    unknown gain, then why the slowest inference is (the command for it says both), then one action
    after the other; if nothing else helps, the names of those that are left out.
    """
    shown = gains.first_actions(summary)
    while True:
        yield from ((shown, ()), (shown, ("order",)), (shown, ("order", "held up")))
        fewer = gains.without_least(shown)
        if not any(map(_unknown_gain, shown[1:])):
            yield shown, ("order", "held up", "slowest")
        if len(fewer) == len(shown):
            yield shown, ("order", "held up", "slowest", "also")
            return
        shown = fewer


def _unknown_gain(action: Action) -> bool:
    return action.filled is not None and action.basis == "rule"


def _answer(
    summary: Answer, shown: Sequence[Action], width: int, left_out: Sequence[str] = ()
) -> list[Line]:
    """The sentences of the answer, with these actions and without these details."""
    lines = wrapped(answer.title(summary), width, indent=0, style="bold")
    if summary.selected:
        lines += wrapped(summary.selected, width, indent=0)
    for error in summary.errors:
        # the command follows as what to do first
        told = error.without_command if summary.next_steps else error.text
        lines += wrapped(f"error: {told}", width, indent=0, style="red")
    for one in above_actions(summary):
        if one.key == "kinds":
            lines += _kinds(summary, width)
        else:
            lines += _said(one.word, [_fitting(forms, width) for forms in one.sentences], width)
    lines += _actions(summary, shown, width, left_out)
    lines += _next_steps(summary, shown, width) if summary.blocked else []
    named = {action.name for action in shown}
    hidden = summary.blocked and summary.graph.answer == "cannot-tell"
    # the table of costs, and what the terminal shows below it, stand between this and the unknown
    elsewhere = {"unknown"}
    if hidden or named & {"cuda-graph", "launch-bound"}:
        elsewhere.add("graph")
    below = below_actions(
        summary,
        why="slowest" not in left_out,
        held_up="held up" not in left_out,
        alone=any(map(gains.of_all_launches, shown)),
    )
    for one in below:
        if one.key not in elsewhere:
            lines += _said(one.word, [_fitting(forms, width) for forms in one.sentences], width)
    return lines


def _fitting(forms: Sequence[str], width: int, indent: int = _WORD, hang: int = 0) -> str:
    """The first of these forms of a sentence, the longest first, that takes no more lines than the
    last one; in a pipe the first.
    """
    if width == WHOLE:
        return forms[0]
    taken = [len(wrapped(one, prose_width(width) - indent, indent=0, hang=hang)) for one in forms]
    return next(form for form, lines in zip(forms, taken, strict=True) if lines <= taken[-1])


def _kinds(summary: Answer, width: int) -> Iterator[Line]:
    """The times of several kinds of inferences, of as many as there are lines for."""
    for most in range(answer.MOST_KINDS, _LEAST_KINDS - 1, -1):
        told = answer.kinds(summary, most)
        lines = list(_said("", [told] if told else [], width))
        if len(lines) <= _KIND_LINES or most == _LEAST_KINDS or width == WHOLE:
            yield from lines
            return


def _said(word: str, texts: list[str], width: int) -> Iterator[Line]:
    """A word on the left, and the wrapped texts beside it."""
    for i, text in enumerate(texts):
        first, *others = wrapped(text, prose_width(width) - _WORD, indent=0, hang=0)
        yield ((f"{word if i == 0 else '':<{_WORD}}", "bold"), *first)
        for line in others:
            yield ((" " * _WORD, ""), *line)


def _actions(
    summary: Answer, shown: Sequence[Action], width: int, left_out: Sequence[str]
) -> Iterator[Line]:
    shorter = [action for action in shown if not action.throughput_only]
    if not shorter:
        yield from _said(
            "do first",
            [gains.no_action(summary)] if not (summary.blocked and summary.next_steps) else [],
            width,
        )
    for number, action in enumerate(shorter, 1):
        title = escaped(gains.action_title(action))
        forms = [
            f"{number}. {title}: {gains.gain(summary, action, brief=brief)}"
            for brief in (False, True)
        ]
        yield from _action(_fitting(forms, width, hang=3), action, number, width)
    if "also" not in left_out and (
        told := gains.order(summary, shown, why="order" not in left_out, room=width - _WORD)
    ):
        yield from _said("", [f"({told})"], width)
    for action in shown:
        if action.throughput_only:
            titles = (gains.action_title(action), action.title)
            forms = [
                f"{title}: {gains.gain(summary, action, brief=brief)}"
                for title in titles
                for brief in (False, True)
            ]
            yield from _said("throughput", [_fitting(forms, width)], width)
            yield from _how(action, width)


def _next_steps(summary: Answer, shown: Sequence[Action], width: int) -> Iterator[Line]:
    """The commands that answer what this analysis cannot: shown first if it is blocked, otherwise
    last.
    """
    shorter = any(not action.throughput_only for action in shown)
    for i, step in enumerate(summary.next_steps):
        head = (
            "do first" if i == 0 and not shorter and summary.blocked else "next" if i == 0 else ""
        )
        yield ((f"{head:<{_WORD}}", "bold"), (f"{step.why}:", ""))
        yield from _pasted(step.command, width)


def _action(told: str, action: Action, number: int, width: int) -> Iterator[Line]:
    head = "do first" if number == 1 else ""
    pastes = gains.ways(action)
    beside = (
        len(pastes) == 1
        and width >= _WIDE
        and _WORD + columns(told) + 4 + columns(pastes[0]) <= min(width, _BESIDE)
    )
    first, *others = (
        [((told, ""),)] if beside else wrapped(told, prose_width(width) - _WORD, indent=0, hang=3)
    )
    yield (
        (f"{head:<{_WORD}}", "bold"),
        *first,
        *((("    ", ""), (escaped(pastes[0]), "yellow")) if beside else ()),
    )
    for line in others:
        yield ((" " * _WORD, ""), *line)
    if not beside:
        yield from _how(action, width)


def _how(action: Action, width: int) -> Iterator[Line]:
    """The lines to paste for an action, or the sentence that says what to change."""
    for paste in gains.ways(action):
        yield from _pasted(paste, width)
    if action.change is not None:
        lead = " " * (_WORD + 3)
        for line in wrapped(action.change, prose_width(width) - len(lead), indent=0, hang=0):
            yield ((lead, ""), *line)


def _pasted(command: str, width: int) -> Iterator[Line]:
    """A line to paste; where it is too long, a shell's goes on after a backslash, code after a
    comma or a semicolon, and a comment stands on a line of its own.
    """
    lead = " " * (_WORD + 3)
    text, room = escaped(command), width - len(lead)
    if columns(text) <= room:
        yield ((lead, ""), (text, "yellow"))
        return
    shell = command.split(maxsplit=1)[0] in _SHELL
    code, comment = _COMMENT.fullmatch(text).groups()  # type: ignore[union-attr]  # it matches every text
    *first, last = _folded(code, room) if shell else _code(code, room)
    for line in first:
        yield ((lead, ""), (f"{line} \\" if shell else line, "yellow"))
    yield ((lead, ""), (last, "yellow"))
    if comment:
        yield ((lead, ""), (comment, "yellow"))


def _code(text: str, width: int) -> list[str]:
    """Code in lines that end after a comma or a semicolon, where it may be broken."""
    lines = [""]
    for part in _STATEMENT.split(text):
        if lines[-1] and columns(lines[-1]) + 1 + columns(part) > width:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] else part
    return lines


def _folded(command: str, width: int) -> list[str]:
    """A shell's command in lines, broken between its words, with room for a backslash after all but
    the last.
    """
    lines = [""]
    for word in _SHELL_WORD.findall(command):
        wider = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and columns(wider) > width - 2 and columns(command) > width:
            lines.append(word)
        else:
            lines[-1] = wider
    return lines


def _costliest(summary: Answer, width: int) -> list[Line]:
    if not summary.layers:
        return _kernels(summary, width)
    shown = [
        cost
        for cost in cost_rows(summary)[:_TOP_LAYERS]
        if cost.share >= _LEAST_LAYER or not summary.regions
    ]
    lines = costs_table(summary, shown, width)
    large = [cost.group for cost in shown if cost.group is not None and cost.share >= _LEAST_REGION]
    region = next(
        (
            one
            for one in summary.regions
            if any(
                group.opaque and (group.engine, group.name) == (one.engine, one.name)
                for group in large
            )
        ),
        None,
    )
    if region is not None:
        return [*lines, *_inside(region, width)]
    return [*lines, *_said("inside", [inside(summary)] if summary.regions else [], width)]


def costs_table(summary: Answer, shown: Sequence[Cost], width: int) -> list[Line]:
    """These rows of the table of kernel time, and all others as one."""
    several = len({group.engine for group in summary.layers}) > 1
    engines = told_apart([escaped(name) for name in engine_names(summary)], _ENGINE)
    kinds_too = width >= _KINDS_FROM
    cells = []
    for cost in shown:
        engine = () if not several else ("–" if cost.engine is None else engines[cost.engine],)
        cells.append(
            (
                percent(cost.share, 1, 0),
                rounded(cost.time_ns),
                "–" if cost.layers is None else f"{cost.layers}",
                *((cost.what,) if kinds_too else ()),
                *engine,
                escaped(cost.name if width == WHOLE else short_nodes(cost.name)),
            )
        )
    if rest := other_costs(summary, shown):
        share, time_ns, layers = rest
        cells.append(
            (
                percent(share, 1, 0),
                rounded(time_ns),
                f"{layers}" if layers else "–",
                *("",) * kinds_too,
                *("",) * several,
                "(all others)",
            )
        )
    head = (
        "share",
        "time",
        "layers",
        *(("kind",) if kinds_too else ()),
        *(("engine",) if several else ()),
    )
    taken = sum(
        _GAP + max(columns(one) for one in (name, *(cell[i] for cell in cells)))
        for i, name in enumerate(head)
    )
    header = (*head, costs_heading(summary, width - _GAP - taken))
    return table(header, cells, width, "rrr" + "l" * kinds_too + "l" * several + "n")


def _kernels(summary: Answer, width: int) -> list[Line]:
    named, shown = width >= _WIDE, summary.kernels[:_TOP_LAYERS]
    visible = "visible " if summary.hidden else ""
    cells = [
        (
            percent(row.share_of_kernel_time, 1, 0),
            rounded(row.time_ns),
            f"{row.kernels:,}",
            escaped(row.what) if named else told,
            *((escaped(row.name),) * named),
        )
        for row, told in zip(
            shown,
            kernel_titles([(row.what, row.name) for row in shown], width - _FIGURES),
            strict=True,
        )
    ]
    header = (
        "share",
        "total",
        "count",
        f"costliest {visible}kernels over the whole trace (all: --full)",
        *(("name",) * named),
    )
    return table(header, cells, width, "rrrn" + "n" * named) if cells else []


def _inside(region: Region, width: int) -> list[Line]:
    cells = [
        (
            percent(part.share_of_region_time, 1, 0),
            rounded(part.time_ns),
            str(part.parts),
            escaped(part.name.removeprefix("$$myelin$$")),
        )
        for part in region.parts[:_TOP_PARTS]
    ]
    if not cells:
        return []
    whole = f": {rounded(sum(part.time_ns for part in region.parts))}"
    (name,) = told_apart([escaped(region.name)], max(width - 12 - columns(whole), 30))
    return [
        styled(f"  inside {name}{whole}", "dim"),
        *table(("share", "time", "parts", "part"), cells, width, "rrrn"),
    ]


def _see(commands: Sequence[tuple[str, str]], width: int, word: str = "see") -> Iterator[Line]:
    """The commands that show more, each with its purpose as a comment, so that the line can be
    pasted.
    """
    longest = max(
        (columns(command) for command, _ in commands if columns(command) + _WORD + _WHAT <= width),
        default=0,
    )
    for i, (command, what) in enumerate(commands):
        lead = (f"{word if i == 0 else '':<{_WORD}}", "bold")
        *first, last = _folded(command, width - _WORD)
        for line in first:
            yield ((lead[0], "bold"), (f"{line} \\", "yellow"))
            lead = (" " * _WORD, "bold")
        pad = max(longest - columns(last), 0)
        comment = f"{' ' * pad}  # {what}"
        comment = comment if what and _WORD + columns(last) + columns(comment) <= width else ""
        yield ((lead[0], "bold"), (last, "yellow"), (comment, "dim"))
