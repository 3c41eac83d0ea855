"""The changes that what-if predicts, each declared once: what it is called, what it takes away, and
which rules are about the same.

A new change is one entry here and its plan in `nsysmap.whatif.plans`, which makes it; lines to
paste may follow in `nsysmap.advice.paste`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from nsysmap.core.records import dataclass


@dataclass(frozen=True)
class DeclaredChange:
    """One change to a program that what-if can predict.

    ``removes``: the causes of idle time that it is about; ``also_shortens``: those that it
    shortens besides, because what follows begins earlier. ``at_once``: how many inferences run at
    the same time after it, if it says. ``prices`` and ``prices_group``: the rules whose findings
    its replay prices; ``stands_in_for``: rules that price idle time, and say what this change may
    save where nothing can be replayed. ``judged_by``: rules that say
    whether it is worth it. ``instead``: the change that is listed in its place, with
    the reason.
    """

    name: str
    title: str  # what to do; a template of nsysmap.text.units.worded
    scope: str = ""  # what it is made of, beside its name
    how: str = ""  # how, in a sentence, where no line to paste makes it
    removes: tuple[str, ...] = ()
    also_shortens: tuple[str, ...] = ()
    throughput_only: bool = False  # no single inference gets faster
    more_kernels_at_once: bool = False  # than in the trace
    overlaps_copies: bool = False  # its replay has copies beside kernels
    takes_host_work: bool = False  # it takes away the host's own work
    around_engine: bool = False  # made in the program around the engine: PyTorch's way alone there
    about_layers: bool = False  # it names the layers that it is about
    needs_engine: bool = False
    if_independent: bool = False  # it helps only if no inference needs another's result
    at_once: int | None = None
    prices: tuple[str, ...] = ()
    prices_group: str | None = None
    stands_in_for: tuple[str, ...] = ()
    judged_by: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)


_DECLARED = (
    DeclaredChange(
        "cuda-graph",
        "run it as a CUDA graph",
        scope="of each inference",
        removes=("launch", "dispatch"),
        also_shortens=("host", "sync", "graph", "profiler"),
        stands_in_for=("launch-bound",),
        judged_by=("cuda-graph-would-help", "cuda-graph-would-not-help"),
        instead={"one-graph": "one-graph saves more"},
    ),
    DeclaredChange(
        "one-graph",
        "make one CUDA graph of all that is launched",
        scope="of all that is launched",
        removes=("host",),
        also_shortens=("launch", "dispatch", "sync", "graph", "profiler"),
        takes_host_work=True,
        instead={"cuda-graph": "cuda-graph saves nearly as much"},
    ),
    DeclaredChange(
        "two-in-flight",
        "keep two {:inference}s in flight",
        throughput_only=True,
        more_kernels_at_once=True,
        overlaps_copies=True,
        at_once=2,
        prices=("under-filled-gpu",),
    ),
    DeclaredChange(
        "async",
        "synchronise once, at the end",
        throughput_only=True,
        if_independent=True,
        around_engine=True,
    ),
    DeclaredChange(
        "pinned-copies",
        "copy to and from pinned memory",
        removes=("copy",),
        also_shortens=("host", "launch", "sync"),
        overlaps_copies=True,
        stands_in_for=("pageable-copy", "blocking-copy"),
        around_engine=True,
    ),
    DeclaredChange(
        "no-host-gap",
        "move host work out of the loop",
        removes=("host",),
        also_shortens=("launch", "sync", "copy", "profiler"),
        takes_host_work=True,
        stands_in_for=("idle-between-inferences",),
        instead={"one-graph": "one-graph takes that work away too"},
        around_engine=True,
    ),
    DeclaredChange("one-stream", "run all kernels on one stream"),
    DeclaredChange(
        "aux-streams",
        "run independent layers concurrently",
        more_kernels_at_once=True,
        needs_engine=True,
        prices=("parallel-small-kernels",),
    ),
    DeclaredChange(
        "drop-layers",
        "avoid TensorRT's reformats",
        about_layers=True,
        prices_group="reformat",
    ),
    DeclaredChange(
        "join-kernels",
        "fuse each norm or softmax into one kernel",
        about_layers=True,
        needs_engine=True,
        prices=("norm-split", "softmax-split"),
    ),
)

CHANGES: Mapping[str, DeclaredChange] = {change.name: change for change in _DECLARED}
"""The changes by name, in the order of the table `whatif`."""

ABOUT_LAYERS = frozenset(change.name for change in _DECLARED if change.about_layers)
"""The changes that are about layers: the ones that a finding's `about` lists."""


def change_list(*, scopes: bool = False, last: str = ", ") -> str:
    """The names of all changes, with what each is made of (``scopes``), and so before the last."""
    names = [
        f"{change.name} ({change.scope})" if scopes and change.scope else change.name
        for change in CHANGES.values()
    ]
    return f"{', '.join(names[:-1])}{last}{names[-1]}"
