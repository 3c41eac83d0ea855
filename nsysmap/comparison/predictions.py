"""Compares what BEFORE's what-if predicted for the change that AFTER made with what AFTER
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nsysmap.comparison.conditions import Condition
from nsysmap.comparison.side import Side
from nsysmap.core.fix_script import ScriptPrediction
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING
from nsysmap.trace.copies import hold_the_host

# share of the kernels that do not make up what a program does: a copy's, or one of the last result
_FEW_IN_GRAPHS = 0.05
_GONE = 0.2  # share of the idle time for the host that may remain


@dataclass(frozen=True)
class Prediction:
    """One change that was predicted and made; times in nanoseconds per inference or pass."""

    change: str
    predicted_ns: int
    low_ns: int
    high_ns: int
    measured_ns: int
    measured_low_ns: int  # of its interval
    measured_high_ns: int
    # whether the measured interval overlaps the predicted range; None if AFTER also does other work
    inside: bool | None
    told: str


def predictions(
    before: Side,
    after: Side,
    measured_ns: int | None,
    interval_ns: tuple[int, int],
    conditions: Sequence[Condition],
) -> tuple[Prediction, ...]:
    """The changes that AFTER made and that BEFORE's what-if answered; ``interval_ns`` has AFTER's
    measured time.
    """
    if measured_ns is None or not before.pace.known or not after.pace.known:
        return ()
    made = [name for name, test in MADE.items() if test(before, after)]
    low, high = interval_ns
    work = [one.what for one in conditions if one.other_work]
    found = []
    for row in before.tables["whatif"]:
        if row.text("change") not in made or row.text("answer") != "answered":
            continue
        least, most = row.integer("low_after_ns"), row.integer("high_after_ns")
        told = (
            ""
            if len(made) == 1
            else (
                "Other changes were made together with it"
                f" ({', '.join(one for one in made if one != row.text('change'))})."
            )
        )
        told = (
            f"Not comparable: {', '.join(work)} differ{'s' if len(work) == 1 else ''} too."
            if work
            else told
        )
        inside = None if work else low <= most and high >= least
        found.append(
            Prediction(
                row.text("change"),
                row.integer("after_ns"),
                least,
                most,
                measured_ns,
                low,
                high,
                inside,
                told,
            )
        )
    return tuple(found)


def prediction_of_edits(
    script: ScriptPrediction,
    before: Side,
    measured_ns: int | None,
    interval_ns: tuple[int, int],
    conditions: Sequence[Condition],
) -> tuple[Prediction, ...]:
    """The time that a script's edits were predicted to give, starting from BEFORE's time, which has
    its own interval, next to AFTER's.
    """
    if measured_ns is None or not before.pace.known or not before.pace.likely:
        return ()
    now = before.pace.likely
    least, most = (round(now - one) for one in (script.high_ns, script.low_ns))
    work = [one.what for one in conditions if one.other_work]
    return (
        Prediction(
            f"edits: {', '.join(script.edits)}",
            round(now - script.saves_ns),
            least,
            most,
            measured_ns,
            *interval_ns,
            None if work else interval_ns[0] <= most and interval_ns[1] >= least,
            f"Not comparable: {', '.join(work)} differ{'s' if len(work) == 1 else ''} too."
            if work
            else "",
        ),
    )


def _pageable(side: Side) -> tuple[int, int]:
    memcpys = side.tables["memcpys"]
    begin, end = side.pace.steady_span_ns
    inside = (memcpys.ints("start_ns") >= begin) & (memcpys.ints("end_ns") <= end)
    return int(np.count_nonzero(inside)), int(np.count_nonzero(inside & hold_the_host(memcpys)))


def _pinned(before: Side, after: Side) -> bool:
    ours, theirs = _pageable(before), _pageable(after)
    return ours[1] > 0 and theirs[1] == 0 and theirs[0] > 0


def _host_gone(before: Side, after: Side) -> bool:
    column = [side.pace.kinds.idle("host") for side in (before, after)]
    ours, theirs = before.pace.parts[column[0]], after.pace.parts[column[1]]
    return bool(ours > 0.05 * before.pace.likely and theirs < _GONE * ours)


def _one_graph(before: Side, after: Side) -> bool:
    """Whether graphs launch all that BEFORE launched one by one, what lies between inferences
    too.
    """
    answers = {row.text("change"): row.text("answer") for row in before.tables["whatif"]}
    return (
        answers.get("one-graph") == "answered"
        and _in_graphs(before) < _FEW_IN_GRAPHS
        and _in_graphs(after) > 1 - _FEW_IN_GRAPHS
    )


def _in_graphs(side: Side) -> float:
    """The share of the kernels of the steady-state part that CUDA graphs launched."""
    kernels = side.tables["kernels"]
    begin, end = side.pace.steady_span_ns
    inside = (kernels.ints("start_ns") >= begin) & (kernels.ints("end_ns") <= end)
    return float((kernels.ints("graph_node_id")[inside] != MISSING).mean()) if inside.any() else 0.0


def _streams(side: Side) -> int:
    """How many streams most inferences use, whichever these are; 0 where CUDA graphs launch their
    kernels.
    """
    kernels = side.tables["kernels"]
    rows = np.isin(kernels.ints("inference"), side.pace.inferences)
    if side.cuda_graphs or not rows.any():
        return 0
    used = np.unique(
        np.stack([kernels.ints(name)[rows] for name in ("inference", "stream")]), axis=1
    )
    return round(float(np.median(np.unique(used[0], return_counts=True)[1])))


def _reformats(side: Side) -> int:
    return sum(layer.kind == "reformat" for layer in side.layers)


MADE: dict[str, Callable[[Side, Side], bool]] = {
    "cuda-graph": lambda before, after: (
        not before.cuda_graphs and after.cuda_graphs and not _one_graph(before, after)
    ),
    "one-graph": _one_graph,
    "two-in-flight": lambda before, after: before.pace.threads == 1 and after.pace.threads == 2,
    "pinned-copies": _pinned,
    "no-host-gap": lambda before, after: (
        _host_gone(before, after) and not _one_graph(before, after)
    ),
    "one-stream": lambda before, after: _streams(before) > 1 and _streams(after) == 1,
    "aux-streams": lambda before, after: _streams(before) == 1 and _streams(after) > 1,
    "drop-layers": lambda before, after: (
        bool(after.layers) and 0 == _reformats(after) < _reformats(before)
    ),
    "join-kernels": lambda before, after: (
        0 < len(after.tables["chains"]) < len(before.tables["chains"])
    ),
}
"""Whether AFTER made a change, by its name."""
