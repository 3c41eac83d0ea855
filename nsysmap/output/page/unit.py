"""The unit of the page's layer times, one for all of them, and whether each figure is a mean or a
median.
"""

from __future__ import annotations

from collections.abc import Mapping

from nsysmap.answer.model import Answer
from nsysmap.core.records import dataclass
from nsysmap.core.schema import Tables
from nsysmap.text.units import counted, rounded
from nsysmap.trace.inferences.steady import OUTLIER

_UNEQUAL = 0.1  # of a run: a pass more or less at the ends of a trace


@dataclass(frozen=True)
class Unit:
    """The unit of layers' times."""

    # per inference, per pass of 2 inferences, per inference of its engine, over the whole trace
    words: str
    runs: Mapping[int | None, int]  # how often each engine runs in it; 1 where it is not said
    others: bool  # times of kernels without a layer are in that unit too
    of_passes: bool = False

    def of(self, time_ns: int, engine: int | None) -> int:
        """A time per inference of that engine in this unit."""
        return time_ns * self.runs.get(engine, 1)


def unit_of(summary: Answer, tables: Tables) -> Unit:
    """A pass if engines run in turn; otherwise an inference, with several engines that of the
    layer's own.
    """
    if not summary.steady:
        return Unit("over the whole trace", {}, others=True)
    steady: dict[int | None, int] = {}
    for row in tables.inference_groups:
        engine = row.maybe_integer("engine")
        steady[engine] = steady.get(engine, 0) + row.integer("steady")
    if summary.unit_of_time.is_pass:
        passes = summary.steady / summary.unit_of_time.inferences
        runs = {engine: count / max(passes, 1) for engine, count in steady.items()}
        if all(round(one) >= 1 and abs(one - round(one)) <= _UNEQUAL for one in runs.values()):
            return Unit(
                f"per {summary.unit}",
                {engine: round(one) for engine, one in runs.items()},
                others=True,
                of_passes=True,
            )
    if len([one for one in steady.values() if one]) > 1:
        return Unit("per inference of its engine", {}, others=False)
    one = summary.unit_of_time.one
    return Unit(
        f"per {one}{' whose kernels the trace shows' if summary.hidden else ''}",
        {},
        others=not summary.hidden,
    )


def run_words(summary: Answer, tables: Tables) -> str:
    """The inferences that the times at the top are of, with their median if all are of one loop."""
    if not summary.steady or summary.traced is None:
        return ""
    one = summary.unit_of_time.one
    loops = [row for row in tables.inference_loops if row.integer("steady")]
    median = loops[0].maybe_integer("median_ns") if len(loops) == 1 else None
    spread = f" (median {rounded(median)})" if median is not None else ""
    each, count, whose = f"steady-state {one}", summary.steady, ""
    if not summary.one_a_unit:
        passes = summary.steady / summary.unit_of_time.inferences
        each, count = "steady-state pass", round(passes)
    own = [kind for kind in summary.kinds if kind.mean_ns == summary.traced.ns]
    if len(summary.gpus) > 1 and not summary.in_step and len(own) == 1 < len(summary.kinds):
        count, whose = own[0].inferences - own[0].warmup - own[0].cut, f"{own[0].what}: "
    told = f"{whose}{'m' if whose else 'M'}ean of {counted(count, each)}{spread}"
    prediction = (
        f"the prediction for GPU {summary.gpu_unprofiled.device}"
        if whose and summary.gpu_unprofiled
        else "the prediction"
    )
    if summary.replayed_ns is None:
        return f"{told}."
    left_out = f"outliers (from {OUTLIER} × the median) and long pauses"
    if rounded(summary.replayed_ns) == rounded(summary.traced.ns):
        return f"{told}; {prediction} leaves out {left_out}."
    return f"{told}; {prediction} starts from {rounded(summary.replayed_ns)}, without {left_out}."
