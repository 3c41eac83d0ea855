"""The bars on top of the page that show where the time of each GPU goes."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.base.units import duration, percent
from nsysmap.picture.swatches import CAUSES
from nsysmap.report.words import CAUSES as CAUSE_WORDS
from nsysmap.summary.model import GpuTime, Summary

_BUSY = "#566bcb"


@dataclass(frozen=True)
class Part:
    """One part of a bar: from where, and how wide, in percent of the bar."""

    words: str
    said: str
    fill: str
    left: float
    wide: float


@dataclass(frozen=True)
class Bar:
    """Where the time of one GPU goes."""

    title: str
    parts: tuple[Part, ...]


def bars_of(summary: Summary) -> tuple[Bar, ...]:
    """A bar for each GPU of which the trace tells how busy it was."""
    return tuple(_bar(summary, gpu) for gpu in summary.gpus if gpu.busy_share is not None)


def _bar(summary: Summary, gpu: GpuTime) -> Bar:
    parts: list[Part] = []
    left = 0.0

    def add(words: str, share: float, fill: str, said: str) -> None:
        nonlocal left
        parts.append(Part(words, f"{percent(share, 1)}{said}", fill, round(left * 100, 3), round(share * 100, 3)))
        left += share

    add("GPU work", gpu.busy_share or 0.0, _BUSY, _of(summary, gpu.busy_ns))
    for one in gpu.idle:
        add(f"idle, {one.cause}: {CAUSE_WORDS[one.cause]}", one.share_of_window, CAUSES[one.cause], _of(summary, one.ns))
    between = "from the first to the last measured inference" if gpu.window == "inferences" else "from the first to the last GPU work"
    name = f"GPU {gpu.device}: " if len(summary.gpus) > 1 else ""
    return Bar(f"{name}{duration(gpu.window_ns)} {between}", tuple(parts))


def _of(summary: Summary, time_ns: int | None) -> str:
    return "" if time_ns is None else f" ({duration(time_ns)} per {summary.unit})"
