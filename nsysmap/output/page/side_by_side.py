"""One typical inference of each side of a comparison as two timelines to one scale, and the
difference as a waterfall: plain SVG, without scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote

import numpy as np

from nsysmap.analysis import Analysis
from nsysmap.comparison.compare import Comparison
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING
from nsysmap.names.decode import decode, summary
from nsysmap.network.titles import called
from nsysmap.output.picture.swatches import CAUSES, kernel_swatch
from nsysmap.text.page_html import inert
from nsysmap.text.units import counted, rounded

_MOST = 1500  # kernels, or calls, of a timeline
_LEAST = 0.0002  # of the width: what is narrower is not drawn
_STEPS = 8  # of the waterfall; smaller ones are one
_CALL = "#9db7d5"
_WAIT = "#2144e9"
_TALL = 38  # units of the picture


@dataclass(frozen=True)
class Strip:
    """The events of a typical inference (or pass) of one side: parts in time, by lane."""

    inference: int
    begin_ns: int
    end_ns: int
    gpu: tuple[Part, ...]
    idle: tuple[Part, ...]
    host: tuple[Part, ...]

    @property
    def time_ns(self) -> int:
        """How long it takes."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Part:
    """One part of a lane."""

    start_ns: int
    end_ns: int
    fill: str
    words: str
    layer: int | None = None


@dataclass(frozen=True)
class SideStrip:
    """The timeline of one side: the word for the side, and the file of its own page."""

    word: str
    strip: Strip | None
    file: str | None


@dataclass(frozen=True)
class _Lane:
    top: int
    tall: int


_LANES = (_Lane(0, 8), _Lane(9, 16), _Lane(27, 10))  # idle time, GPU, host


def strip_of(analysis: Analysis, inferences: int = 1) -> Strip | None:
    """A typical inference, or that many one after the other from it on: that of the kind with the
    most of them whose time is nearest to their median; None where none has a time.
    """
    tables = analysis.tables
    times, every = tables.inference_times, tables.inferences
    known = times.ints("time_ns") != MISSING
    groups = [
        row
        for row in tables.inference_groups
        if row.maybe_integer("median_ns") is not None and row.integer("steady")
    ]
    if not groups or not known.any():
        return None
    group = max(groups, key=lambda row: row.integer("steady"))
    mine = np.flatnonzero(known & (times.ints("group_id") == group.integer("group_id")))
    if not len(mine):
        return None
    away = np.abs(times.ints("time_ns")[mine] - (group.maybe_integer("median_ns") or 0))
    number = int(times.ints("inference")[mine[int(np.argmin(away))]])
    ended, gpu_ended = every.ints("end_ns"), every.ints("gpu_end_ns")
    thread, time_of = (
        every.ints("thread"),
        dict(zip(times.ints("inference").tolist(), times.ints("time_ns").tolist(), strict=True)),
    )
    same = np.flatnonzero(thread == thread[number]).tolist()
    at = same.index(number)
    last = same[min(at + inferences - 1, len(same) - 1)]
    end_ns = int(gpu_ended[last] if gpu_ended[last] != MISSING else ended[last])
    first_end = int(gpu_ended[number] if gpu_ended[number] != MISSING else ended[number])
    begin_ns = first_end - time_of[number]
    device = int(every.ints("device")[number])
    return Strip(
        number,
        begin_ns,
        max(end_ns, begin_ns + 1),
        tuple(_kernels(analysis, begin_ns, end_ns, device)),
        tuple(_idle(analysis, begin_ns, end_ns, device)),
        tuple(_calls(analysis, begin_ns, end_ns, int(thread[number]))),
    )


def _kernels(analysis: Analysis, begin: int, end: int, device: int) -> Iterator[Part]:
    tables = analysis.tables
    kernels, copies = tables.kernels, tables.memcpys
    kinds = {row.integer("layer_id"): row.text("kind") for row in tables.layers}
    titles = {row.integer("layer_id"): called(row) for row in tables.layers}
    starts, ends = kernels.ints("start_ns"), kernels.ints("end_ns")
    inside = (ends > begin) & (starts < end) & (kernels.ints("device") == device)
    for row in kernels.take(np.flatnonzero(inside)[:_MOST]):
        layer, name = row.maybe_integer("layer_id"), row.text("name")
        what = titles.get(layer, "") if layer is not None else ""
        yield Part(
            row.integer("start_ns"),
            row.integer("end_ns"),
            kernel_swatch(kinds.get(-1 if layer is None else layer), name).fill,
            f"{what or 'no layer'}: {summary(decode(name), noun=False)}",
            layer,
        )
    starts, ends = copies.ints("start_ns"), copies.ints("end_ns")
    inside = (ends > begin) & (starts < end) & (copies.ints("device") == device)
    for row in copies.take(np.flatnonzero(inside)[:_MOST]):
        words = f"copy {row.text('kind')}"
        yield Part(row.integer("start_ns"), row.integer("end_ns"), CAUSES["copy"], words)


def _idle(analysis: Analysis, begin: int, end: int, device: int) -> Iterator[Part]:
    gaps = analysis.tables.gaps
    starts, ends = gaps.ints("start_ns"), gaps.ints("end_ns")
    inside = (ends > begin) & (starts < end) & (gaps.ints("device") == device)
    for row in gaps.take(np.flatnonzero(inside)[:_MOST]):
        cause = row.text("cause")
        words = f"idle, {idle_words(cause)}"
        yield Part(row.integer("start_ns"), row.integer("end_ns"), CAUSES[cause], words)


def _calls(analysis: Analysis, begin: int, end: int, thread: int) -> Iterator[Part]:
    calls = analysis.tables.api_calls
    starts, ends = calls.ints("start_ns"), calls.ints("end_ns")
    inside = (ends > begin) & (starts < end) & (calls.ints("thread") == thread)
    for row in calls.take(np.flatnonzero(inside)[:_MOST]):
        fill = _WAIT if row.text("kind") == "sync" else _CALL
        yield Part(row.integer("start_ns"), row.integer("end_ns"), fill, row.text("api"))


def strips_html(sides: Sequence[SideStrip], one: str) -> Iterator[str]:
    """Both timelines below each other: each with the word for its side, what happened, and the
    file of its own page; nothing if neither side has one.
    """
    known = [side.strip for side in sides if side.strip is not None]
    if not known:
        return
    longest = max(strip.time_ns for strip in known)
    yield '<div class="strips">'
    for side in sides:
        word, strip, file = side.word, side.strip, side.file
        if strip is None:
            yield f'<p class="note"><b>{word}</b>: no {one} whose time is known</p>'
            continue
        told = f"a typical {one} (number {strip.inference}), as recorded: {rounded(strip.time_ns)}"
        link = (
            f' <a class="use" href="{inert(quote(file))}#inference={strip.inference}">open it</a>'
            if file
            else ""
        )
        yield f'<p class="strip-name"><b>{word}</b> {inert(told)}{link}</p>'
        yield (
            f'<svg class="strip" role="group" aria-label="{word}: {inert(told)}"'
            f' viewBox="0 0 1000 {_TALL}" preserveAspectRatio="none">'
        )
        yield (
            f'<rect class="ground" x="0" y="0" height="{_TALL}"'
            f' width="{1000 * strip.time_ns / longest:.2f}"/>'
        )
        for parts, lane in zip((strip.idle, strip.gpu, strip.host), _LANES, strict=True):
            for part in parts:
                yield from _drawn(part, strip, longest, lane, file)
        yield "</svg>"
    yield "</div>"
    rows = "above: idle time by cause; middle: kernels and copies by kind; below: calls of the host"
    yield f'<p class="note">{rows}. Both to one scale.</p>'


def _drawn(part: Part, strip: Strip, longest: int, lane: _Lane, file: str | None) -> Iterator[str]:
    left = max(part.start_ns - strip.begin_ns, 0) / longest
    wide = (min(part.end_ns, strip.end_ns) - max(part.start_ns, strip.begin_ns)) / longest
    if wide < _LEAST:
        return
    top, tall = lane.top, lane.tall
    box = (
        f'<rect x="{1000 * left:.2f}" y="{top}" width="{1000 * wide:.2f}" height="{tall}"'
        f' fill="{part.fill}"><title>{inert(part.words)}, {rounded(part.end_ns - part.start_ns)}'
        "</title></rect>"
    )
    if file and part.layer is not None:
        address = f"{quote(file)}#inference={strip.inference}&layer={part.layer}"
        yield f'<a href="{escape(address)}" tabindex="-1">{box}</a>'
    else:
        yield box


@dataclass(frozen=True)
class _Step:
    """One bar of the waterfall."""

    name: str
    said: str
    kind: str  # side, more or less
    begin: float
    end: float


def waterfall_html(found: Comparison) -> Iterator[str]:
    """From the time before to the time after, with a bar for each contribution, the largest first;
    nothing if a time is unknown.
    """
    before, after = found.before.time_ns, found.after.time_ns
    if before is None or after is None or not found.contributions:
        return
    ordered = sorted(found.contributions, key=lambda one: -abs(one.ns))
    steps = [(one.name, one.ns) for one in ordered[:_STEPS] if one.ns]
    rest = sum(one.ns for one in ordered) - sum(ns for _, ns in steps)
    others = len(ordered) - len(steps)
    if others and rounded(abs(rest)) != rounded(0):
        steps.append((counted(others, "other"), rest))
    sums = np.cumsum([before, *(ns for _, ns in steps)]).tolist()
    low, high = min(*sums, after), max(*sums, after)
    begin = 0 if low < 2 * (high - low) else low - (high - low) // 2
    scale = 100 / max(high - begin, 1)

    def row(step: _Step) -> str:
        left, wide = (step.begin - begin) * scale, (step.end - step.begin) * scale
        return (
            f'<tr><th scope="row" title="{inert(step.name)}">{inert(step.name)}</th>'
            f'<td class="right">{inert(step.said)}</td><td class="fall"><svg viewBox="0 0 100 10"'
            ' preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="{step.kind}" x="{left:.3f}" y="1" width="{max(wide, 0.2):.3f}"'
            ' height="8"/></svg></td></tr>'
        )

    yield '<table class="waterfall">'
    yield row(_Step("before", rounded(before), "side", begin, before))
    for (name, ns), reached in zip(steps, sums, strict=False):
        ends = sorted((reached, reached + ns))
        sign, kind = ("+", "more") if ns > 0 else ("−", "less")
        yield row(_Step(name, f"{sign}{rounded(abs(ns))}", kind, *ends))
    yield row(_Step("after", rounded(after), "side", begin, after))
    yield "</table>"
    if begin:
        yield f'<p class="note">The bars begin at {inert(rounded(begin))}.</p>'
