"""The causes of idle time, each declared once: every room that finds, counts, shows or explains
them reads this list.

A new cause is one entry: where rows of a trace's tables show it (`shown_by`), nothing else
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from nsysmap.core.records import dataclass
from nsysmap.core.table import IntArray, Table, Text


class TraceTables(Protocol):
    """The tables of a trace that can show a cause: rows with a thread, a begin and an end."""

    @property
    def api_calls(self) -> Table:
        """Calls of CUDA's API."""

    @property
    def nvtx_ranges(self) -> Table:
        """NVTX ranges."""

    @property
    def osrt_calls(self) -> Table:
        """Calls of the operating system."""

    @property
    def overheads(self) -> Table:
        """The profiler's own work."""


@dataclass(frozen=True)
class HostSpans:
    """When threads did something that the GPU waited for, and what that was in words."""

    thread: IntArray
    start_ns: IntArray
    end_ns: IntArray
    evidence: Text


@dataclass(frozen=True)
class Cause:
    """One cause of idle time.

    ``depends_on_host``: its time varies with the speed of the host. ``between_kernels``: it lies
    between kernels of one inference, so that a trace of whole CUDA graphs does not show it apart.
    ``rule_group``: the group of rules that is about it, where a rule names no cause. ``yields``:
    the host was found at something general, which spans of a narrower cause take the place of.
    ``shown_by``: the spans of the host's time that show it, for a cause that only they define;
    the other causes follow from the order of calls and work in `nsysmap.timing.idle`.
    """

    name: str
    words: str  # wherever people read it
    meaning: str
    fill: str  # its colour
    short: str = ""  # its words where a line has little room; without any, the same
    depends_on_host: bool = False
    between_kernels: bool = False
    rule_group: Literal["launch", "host"] | None = None
    yields: bool = False
    shown_by: Callable[[TraceTables], HostSpans] | None = None


_DECLARED = (
    Cause(
        "launch",
        "waiting for launches",
        "the host was enqueuing: it had not launched the next work yet",
        "#bb255e",
        short="slow launches",
        depends_on_host=True,
        between_kernels=True,
        rule_group="launch",
        yields=True,
    ),
    Cause(
        "host",
        "host busy elsewhere",
        "the host was doing something else",
        "#ffa400",
        short="host elsewhere",
        depends_on_host=True,
        rule_group="host",
        yields=True,
    ),
    Cause(
        "sync",
        "in blocking waits",
        "the host waited in a blocking call",
        "#2144e9",
        short="blocking waits",
        depends_on_host=True,
        rule_group="host",
        yields=True,
    ),
    Cause(
        "copy",
        "in blocking copies",
        "the host waited in a blocking or pageable copy",
        "#793114",
        short="blocking copies",
        depends_on_host=True,
        yields=True,
    ),
    Cause(
        "dispatch",
        "between queued kernels",
        "queued in time: the hardware's own dispatch latency",
        "#aeb6bf",
        short="between kernels",
        depends_on_host=True,
        between_kernels=True,
        rule_group="launch",
    ),
    Cause(
        "switch",
        "while switching processes",
        "queued in time: the GPU switched from one process to another (time slices, no MPS)",
        "#787800",
        short="process switches",
        between_kernels=True,
        rule_group="host",
    ),
    Cause(
        "graph",
        "before CUDA graphs",
        "before a CUDA graph began",
        "#6c2687",
        short="before graphs",
        rule_group="launch",
        yields=True,
    ),
    Cause(
        "compile",
        "compiling or loading kernels",
        "the host compiled kernels, or loaded their code: their first use",
        "#bb77dd",
        short="compiling kernels",
        rule_group="host",
    ),
    Cause(
        "profiler",
        "nsys's own work",
        "the profiler itself held up the host",
        "#55ac6d",
        short="nsys itself",
    ),
    Cause(
        "no-work",
        "waiting outside CUDA",
        "the host waited in the operating system: for a request, for data, for another thread",
        "#e6e9ec",
        short="waits outside CUDA",
        rule_group="host",
        yields=True,
    ),
    Cause(
        "unknown",
        "for unknown reasons",
        "the trace does not show why",
        "#ffd399",
        short="unknown reasons",
        depends_on_host=True,
        between_kernels=True,
    ),
)

IDLE_CAUSES: Mapping[str, Cause] = {cause.name: cause for cause in _DECLARED}
"""The causes by their name in the tables, in the order of their codes."""


def idle_words(cause: str, *, inferred: bool = False, short: bool = False) -> str:
    """A cause of idle time in a few words; one that this version does not know, by its name."""
    known = IDLE_CAUSES.get(cause)
    words = cause if known is None else (short and known.short) or known.words
    return f"{'likely ' if inferred else ''}{words}"
