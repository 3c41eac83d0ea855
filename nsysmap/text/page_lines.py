"""A page, laid out as lines for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from nsysmap.text.lines import (
    WHOLE,
    Line,
    heading,
    pairs,
    rendered,
    styled,
    table,
    wrapped,
)
from nsysmap.text.page import (
    Block,
    Bullets,
    Grid,
    Instruction,
    Instructions,
    Meter,
    Page,
    Pairs,
    Paragraph,
    Section,
    Subheading,
    more_words,
)
from nsysmap.text.terminal import columns, escaped, shortened

BESIDE = 12
"""The width of the words on the left, where headings stand beside what they say."""
_BAR = 20  # characters
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
METER = 22
"""The columns of a meter before what it says."""
GAIN = 2
"""The columns before what a step brings, at least."""
STEP = 2
"""The columns before what a step changes, and why."""
LEAD = 8
"""The columns before a line to paste that needs no more room than most."""
_LEADS = (14, 12, LEAD, 4, 2)  # as far as it needs them
_GAIN_AT = 88  # where it ends on a wide terminal
_SHELL = ("nsys", "nsysmap", "polygraphy", "python", "trtexec", "tensorrt_rtx", "trtllm-build")
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")
_BETWEEN = re.compile(r"(?<=;) +")
_SHORT = 72  # columns of code and its comment that stand in one line
_STATEMENT = re.compile(r"(?<=[,;]) +")
_BRACKET = re.compile(r"(?<=\()(?=.{20})")  # an opening one that much stands behind
_COMMENT = re.compile(r"(.*?)(?:  ((?:#|//) .*))?")


def page_text(page: Page, width: int | None, *, colour: bool = False) -> str:
    """A page for a terminal of ``width`` columns; names are not cut if it is None."""
    room = WHOLE if width is None else width
    lines = heading(f"nsysmap: {page.title}", room)
    for number, text in enumerate(page.answer):
        lines += [
            *([styled("")] if number == 0 else []),
            *wrapped(text, room, indent=0, style=page.style if number == 0 else ""),
        ]
    for section in page.sections:
        lines += [styled(""), *section_lines(section, room)]
    return rendered(lines, colour=colour).rstrip("\n")


def section_lines(section: Section, width: int) -> list[Line]:
    """The section in lines of at most that width."""
    lines = heading(section.heading, width)
    for block in section.blocks:
        lines += block_lines(block, width)
    return lines


def block_lines(block: Block, width: int) -> Iterator[Line]:
    """A block in lines of at most that width; none if another command shows it on a terminal."""
    if isinstance(block, Grid):
        yield from grid_lines(block, width)
    elif isinstance(block, Pairs):
        yield from pairs(block.rows, width)
    elif isinstance(block, Subheading):
        yield styled(shortened(f"  {escaped(block.text)}", width), block.style)
    elif isinstance(block, Paragraph):
        if block.terminal:
            yield from wrapped(block.text, width, indent=block.indent, style=block.style)
    elif isinstance(block, Bullets):
        if block.terminal:
            yield from _bullets(block, width)
    elif isinstance(block, Instructions):
        yield from _steps(block, width)
    elif isinstance(block, Meter):
        yield styled(shortened(f"  {escaped(meter_text(block))}", width))
    else:
        text = " ".join(block.text.split())
        yield from wrapped(f"→ {text}", width, indent=4, style="dim")


def grid_lines(grid: Grid, width: int) -> list[Line]:
    """The table in lines of at most that width."""
    rows = [_escaped(row) for row in grid.rows]
    lines = table(grid.header, rows, width, grid.align) if rows else []
    return [*lines, styled(f"  {more_words(grid)}", "dim")] if grid.more else lines


def _steps(block: Instructions, width: int) -> Iterator[Line]:
    for number, step in enumerate(block.steps, 1):
        told = f"{step.text}: {step.gain}" if step.gain else step.text
        yield from wrapped(f"{number}. {told}" if block.numbered else f"{told}:", width)
        for line in step.lines:
            yield from pasted_lines(line, width, "     ")
        yield from wrapped(step.change, width, indent=5, hang=0)
        yield from wrapped(step.why, width, indent=5, hang=0)


def meter_text(block: Meter) -> str:
    """The bar in characters, and what it says."""
    full = min(max(round(block.share * _BAR), int(block.share > 0)), _BAR)
    return f"{'█' * full}{'░' * (_BAR - full)}{' ' * (METER - _BAR)}{block.text}"


def bar(share: float) -> str:
    """A bar of that share on the scale of a meter, to an eighth of a character."""
    eighths = max(round(share * _BAR * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


def close_lines(section: Section, width: int) -> list[Line]:
    """The section in as few lines as it can: a heading that is a word stands at the left."""
    if not section.beside:
        lines = heading(section.heading, width)
        for block in section.blocks:
            lines += block_lines(block, width)
        return lines
    lines = [line for block in section.blocks for line in _close(block, width)]
    (_, *first), *others = lines or [styled("")]
    return [((f"{section.heading:<{BESIDE}}", "bold"), *first), *others]


def _close(block: Block, width: int) -> Iterator[Line]:
    """The block in lines of at most that width, which leave room for a word on the left."""
    room = width - BESIDE
    if isinstance(block, Paragraph):
        yield from _right(wrapped(block.text, room, indent=0, hang=0, style=block.style))
    elif isinstance(block, Meter):
        yield from _right([styled(shortened(escaped(meter_text(block)), room))])
    elif isinstance(block, Instructions):
        for step in block.steps:
            yield from _close_step(step, width)
    else:
        yield from _right(block_lines(block, room))


def _right(lines: Iterable[Line]) -> Iterator[Line]:
    for line in lines:
        yield ((" " * BESIDE, ""), *line)


def _close_step(step: Instruction, width: int) -> Iterator[Line]:
    """A step; what it brings stands at its right where there is room, and lines to paste begin
    further left where they need it.
    """
    text, gain, room = escaped(step.text), escaped(step.gain), width - BESIDE
    if not gain:
        yield from _right(wrapped(step.text, room, indent=0, hang=0))
    elif columns(text) + GAIN + columns(gain) <= room:
        gap = max(min(room, _GAIN_AT) - columns(text) - columns(gain), GAIN)
        yield from _right([((text, "bold"), (" " * gap, ""), (gain, ""))])
    else:
        both = f"{step.gain}; {step.why}"
        joined = bool(step.why) and columns(escaped(both)) <= room - 2
        yield from _right(wrapped(f"{step.text}:", room, indent=0, hang=2))
        yield from _right(wrapped(both if joined else step.gain, room, indent=2, hang=0))
        step = replace(step, why="") if joined else step
    for line in step.lines:
        if step.why and (noted := _noted(line, step.why, width)):
            yield from noted
            step = replace(step, why="")
            continue
        ways = [list(pasted_lines(line, width, " " * lead)) for lead in _LEADS]
        fit = [way for way in ways if not _beyond(way, width)] or ways[-1:]
        yield from min(fit, key=len)
    for told in (step.change, step.why):
        yield from _right(wrapped(told, room, indent=STEP, hang=0))


def _noted(line: str, why: str, width: int) -> list[Line]:
    """A line to paste with the reason for it in its comment, where that does not take more lines
    than the line alone; empty otherwise.
    """
    code, comment = _COMMENT.fullmatch(line).groups()  # type: ignore[union-attr]  # it matches every text
    if not comment:
        return []
    for lead in (" " * one for one in _LEADS):
        alone = list(pasted_lines(line, width, lead))
        noted = list(pasted_lines(f"{code}  {comment}; {why}", width, lead))
        if len(noted) == len(alone) and not _beyond(noted, width):
            return noted
    return []


def _beyond(lines: Sequence[Line], width: int) -> int:
    """How many of these lines are wider than that."""
    return sum(sum(columns(text) for text, _ in line) > width for line in lines)


def code_lines(command: str) -> list[str]:
    """Returns a line to paste as lines: each statement of code on its own, and a long comment."""
    code, comment = _COMMENT.fullmatch(command).groups()  # type: ignore[union-attr]  # it matches every text
    shell = command.split(maxsplit=1)[0] in _SHELL
    *first, last = [code] if shell else _BETWEEN.split(code)
    if not comment:
        return [*first, last]
    told = f"{last}  {comment}"
    return [*first, told] if columns(told) <= _SHORT else [*first, last, comment]


def pasted_lines(command: str, width: int, lead: str) -> Iterator[Line]:
    """A line to paste; where it is too long, a shell's goes on after a backslash, code after a
    comma or a semicolon, and a comment stands behind the last or on a line of its own.
    """
    text, room = escaped(command), width - len(lead)
    if columns(text) <= room:
        yield (lead, ""), (text, "yellow")
        return
    shell = command.split(maxsplit=1)[0] in _SHELL
    code, comment = _COMMENT.fullmatch(text).groups()  # type: ignore[union-attr]  # it matches every text
    *first, last = _folded(code, room) if shell else _statements(code, room)
    for line in first:
        yield (lead, ""), (f"{line} \\" if shell else line, "yellow")
    if comment and columns(f"{last}  {comment}") <= room:
        yield (lead, ""), (f"{last}  {comment}", "yellow")
        return
    yield (lead, ""), (last, "yellow")
    if comment:
        yield (lead, ""), (comment, "yellow")


def _statements(text: str, width: int) -> list[str]:
    """Code in lines that end after a comma or a semicolon, where it may be broken."""
    lines = [""]
    parts = _STATEMENT.split(text)
    if any(columns(one) > width for one in parts):
        parts = [piece for one in parts for piece in _BRACKET.split(one)]
    for part in parts:
        if lines[-1] and columns(lines[-1]) + 1 + columns(part) > width:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] and lines[-1][-1] != "(" else part
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


def _escaped(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(escaped, row))


def _bullets(block: Bullets, width: int) -> Iterator[Line]:
    for item in block.items:
        yield from wrapped(f"{block.mark}{item}", width, indent=block.indent, style=block.style)
    if block.more:
        yield from wrapped(more_words(block), width, indent=block.indent, style="dim")
