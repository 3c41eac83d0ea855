"""Limits the confidence of kernels in layers that may run nearly anything, such as opaque regions:
by the kernels around them and by where the host paused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray
from nsysmap.inputs.engine.model import Layer
from nsysmap.trace.inferences.launch_order import launch_time
from nsysmap.trace.inferences.periods import calls_between, copies_of, waits_of
from nsysmap.trace.model import Trace

_ANYTHING = ("foreign_node", "plugin")
"""Kinds of layers that may run nearly any kernel."""
BETWEEN, AT_AN_END, ALONE = 0.99, 0.75, 0.6
"""The most that is believed of a kernel in such a layer by its order among others': between
kernels that other layers explain (99.9 % right in benchmarks/mixtures.py); before the first or
behind the last of these, where another engine may have run that nothing tells from this one; and
where no other layer explains any.

Two engines that a program enqueues one behind the other leave no more time between their kernels
than lies between two of one engine (in 26 models 0.8 to 5 times the median, within them up to 3.7
times), so that only what varies from inference to inference shows the border: `border_chances`.
"""
_ANOTHER = 1 / 3
"""Prior probability that another engine's kernels follow in every inference: one of the three ways
in which an engine runs (alone, sometimes followed by another, in turn with another).
"""
SHOWN = 0.8
"""Share of the borders between two engines at which the host pauses as it does between inferences;
other programs enqueue one right behind the other.
"""
_VARIES, _LONG = 2.0, 4.0
"""Times the usual time before that kernel, or a part of it, and times that before any: from that on
the host did something else there than it does from launch to launch.
"""
SHARPLY = 5.0
"""The same factor where launches themselves take unequally long: a difference this large is rarer
within an engine.
"""
_SHORTEST_PAUSE_NS = 1000  # below it clocks and dispatch make differences
LEAST_ALIKE = 3
"""At least so many inferences with the same launches are needed for their pauses to be evidence."""


@dataclass(frozen=True)
class OpenEnds:
    """The kernels of an inference, in launch order, that may belong to another engine."""

    anything: BoolArray  # per kernel: its layer may run nearly any
    # the first and the last kernel of other layers whose name speaks for its layer; None: there is
    # none
    known: tuple[int, int] | None

    @property
    def open(self) -> bool:
        """Whether such kernels stand before the first or behind the last known kernel."""
        at = np.flatnonzero(self.anything)
        return len(at) > 0 and (
            self.known is None or at[0] < self.known[0] or at[-1] > self.known[1]
        )


def open_ends(layers: Sequence[Layer | None], explained: BoolArray) -> OpenEnds:
    """The open ends of an inference, from the layer of each kernel and whether its name supports
    that layer.
    """
    anything = np.array(
        [layer is not None and layer.kind in _ANYTHING for layer in layers], np.bool_
    )
    told = np.array([layer is not None for layer in layers], np.bool_) & ~anything & explained
    known = np.flatnonzero(told)
    return OpenEnds(anything, (int(known[0]), int(known[-1])) if len(known) else None)


def most_of_anything(ends: OpenEnds, border: FloatArray | None = None) -> FloatArray:
    """The highest confidence allowed for each kernel of an inference; ``border`` is as returned by
    `border_chances`.
    """
    anything = ends.anything
    most = np.ones(len(anything))
    most[anything] = ALONE
    if ends.known is None:
        if border is not None:
            most[anything] = np.minimum(ALONE, 1 - border)[anything]
    else:
        at = np.arange(len(anything))
        inside = (at > ends.known[0]) & (at < ends.known[1])
        end = AT_AN_END if border is None else np.minimum(1 - border, BETWEEN)
        most[anything] = np.where(inside, BETWEEN, end)[anything]
    return most


def border_chances(paused: Sequence[BoolArray], known: tuple[int, int] | None) -> FloatArray:
    """For each kernel of an inference: the probability that another engine's kernels begin or end
    between it and the nearest ``known`` kernel. From the first to the last known kernel all are the
    engine's own; if none is known, the border may be anywhere.

    ``paused``: inferences x kernels, whether the host paused before it, by each of several measures
    of that.  A border is anywhere in an open end as likely as elsewhere.  The host pauses there in
    as many inferences as before their first kernels, or in no more than before any kernel; by which
    of the measures it is seen best is not known.
    """
    kernels = paused[0].shape[1]
    odds = np.mean([_border_odds(each) for each in paused], axis=0)
    chances = np.zeros(kernels)
    if known is None:
        return chances + (_up_to(odds[1:])[-1] if len(odds) > 1 else 0.0)
    first, last = known
    # a border behind the last own kernel lies before one of those that follow it, one before the
    # first own kernel before one of those that precede it or before that kernel itself
    behind = np.arange(last + 1, kernels)
    chances[behind] = _up_to(odds[behind])
    ahead = np.arange(first)
    chances[ahead] = _up_to(odds[1 : first + 1][::-1])[::-1]
    return chances


def _border_odds(paused: BoolArray) -> FloatArray:
    """The odds that a border lies before each kernel."""
    count = len(paused)
    begins = (paused[:, 0].sum() + 0.5) / (count + 1)
    often = paused.sum(axis=0)
    within = (often[1:].sum() + 0.5) / (count * (len(often) - 1) + 1)
    tells = often * np.log(begins / within)
    tells += (count - often) * np.log((1 - begins) / (1 - within))
    odds: FloatArray = 1 - SHOWN + SHOWN * np.exp(np.minimum(tells, 50.0))
    return odds


def _up_to(odds: FloatArray) -> FloatArray:
    """The probability that a border lies at or before each place, from the odds at each place."""
    if not len(odds):
        return odds
    worth = _ANOTHER * odds / len(odds)
    total: FloatArray = np.cumsum(worth) / (1 - _ANOTHER + worth.sum())
    return total


def pauses(trace: Trace, rows: IntArray) -> tuple[BoolArray, BoolArray]:
    """Marks the kernels before which the host paused unusually long or short compared with the
    other inferences of the same launches, or waited for the GPU, or copied. ``rows`` are inferences
    x kernels in launch order.
    """
    kernels = trace.kernels
    thread = np.where(kernels.ints("launch") >= 0, kernels.ints("thread"), -1)
    launched = launch_time(kernels)
    order = np.lexsort((launched, thread))
    gap = np.zeros(len(order), np.int64)
    gap[order[1:]] = np.diff(launched[order]) * (thread[order[1:]] == thread[order[:-1]])
    asked = np.zeros(len(order), np.bool_)
    asked[order] = calls_between(trace, order, waits_of(trace) | copies_of(trace)) > 0
    return unlike_others(gap[rows]) | asked[rows], unlike_others(gap[rows], SHARPLY) | asked[rows]


def unlike_others(gap_ns: IntArray, times: float = _VARIES) -> BoolArray:
    """Marks the times between launches (inferences x kernels) that exceed, or fall below, the usual
    time at that place by that factor, or exceed those at most places.
    """
    if not len(gap_ns):
        return np.zeros(gap_ns.shape, np.bool_)
    usual = np.quantile(gap_ns, 0.5, axis=0, method="lower")  # a value, of two sorts one of them
    long = gap_ns > np.maximum(
        np.minimum(times * usual, times / _VARIES * _LONG * np.median(gap_ns)), _SHORTEST_PAUSE_NS
    )
    short = gap_ns + _SHORTEST_PAUSE_NS < usual / times
    unlike: BoolArray = long | short
    return unlike
