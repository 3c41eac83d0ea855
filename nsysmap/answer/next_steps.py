"""What the trace, or a missing engine file, leaves undecided, and what to capture or
export next.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.advice.paste import ENGINE_FILE
from nsysmap.advice.program import Program
from nsysmap.advice.ways import how
from nsysmap.answer.model import Answer, Doubt, NextStep
from nsysmap.answer.words import NOT_ABOUT_THIS
from nsysmap.core.changes import CHANGES
from nsysmap.core.groups import numbered
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.text.units import counted

_PROFILE, _TRACED = "nsys profile", "-t cuda,nvtx,osrt -o report"
_LEAST = 3  # launches: what comes so often may repeat
_UNLIKE = 0.9  # of the launches of a kernel have a grid of their own: nearly all
_GRID = ("grid_x", "grid_y", "grid_z")


def _nothing_recorded(tables: Mapping[str, Table]) -> bool:
    """Whether CUDA was traced, and the program did nothing of it."""
    return any(row.maybe_text("about") == "nothing-recorded" for row in tables["notes"])


@dataclass(frozen=True)
class LongKernel:
    """A kernel of a few launches, or of unlike ones, that take most of all kernel time."""

    name: str
    launches: int
    time_ns: int
    share: float  # of all kernel time


def long_kernel(tables: Mapping[str, Table]) -> LongKernel | None:
    """The kernel that takes most of all kernel time, where nothing repeats and its launches are
    fewer than repetitions would be, or hardly two are alike, as of images that each have a size of
    their own: it is what the program does, and no part of a loop that another capture would show.
    """
    kernels = tables["kernels"]
    if len(tables["inferences"]) or not len(kernels):
        return None
    names = kernels.text("name")
    took = kernels.ints("end_ns") - kernels.ints("start_ns")
    known = names.codes >= 0
    spent = np.bincount(names.codes[known], weights=took[known], minlength=1)
    most = int(spent.argmax())
    mine = np.flatnonzero(names.codes == most)
    launches = len(mine)
    sizes = len(numbered(*(kernels.ints(name)[mine] for name in _GRID))[0][0])
    unlike = sizes > _UNLIKE * launches
    if (launches >= _LEAST and not unlike) or 2 * spent[most] <= took.sum():
        return None
    return LongKernel(
        names.values[most], launches, int(spent[most]), float(spent[most] / took.sum())
    )


@dataclass(frozen=True)
class PageableCopies:
    """Copies to and from pageable memory of the host, which CUDA copies once more."""

    time_ns: int
    size: int  # bytes

    @property
    def gigabytes_per_s(self) -> float:
        """How fast they were."""
        return self.size / self.time_ns


def pageable_copies(tables: Mapping[str, Table]) -> PageableCopies | None:
    """The copies to and from pageable memory; None if there are none."""
    copies = tables["memcpys"]
    pageable = copies.text("source").equals("pageable") | copies.text("target").equals("pageable")
    time_ns = int((copies.ints("end_ns") - copies.ints("start_ns"))[pageable].sum())
    return PageableCopies(time_ns, int(copies.ints("bytes")[pageable].sum())) if time_ns else None


def next_steps(tables: Mapping[str, Table], program: Program) -> tuple[NextStep, ...]:
    """What to capture or export to decide what the trace, or a missing engine file, leaves
    undecided.
    """
    capture, steps = tables["capture"].only(), []
    gpu_work = any(
        capture.integer(name)
        for name in ("kernels", "memcpys", "memsets", "cuda_graph_traces", "graph_launches")
    )
    if capture.text("cuda_graph_trace") == "graph" and gpu_work:
        steps.append(
            NextStep(
                "capture again, because the kernels inside CUDA graphs are hidden",
                f"{_PROFILE} --cuda-graph-trace=node {_TRACED} {program.command}",
            )
        )
    elif not gpu_work and (capture.flag("has_api_calls") or _nothing_recorded(tables)):
        pass  # a note says why, and another capture like this would not help
    elif not gpu_work:
        steps.append(
            NextStep(
                "capture again, because the trace has no GPU work",
                f"{_PROFILE} {_TRACED} {program.command}",
            )
        )
    elif not capture.integer("kernels") and not capture.integer("cuda_graph_traces"):
        pass  # a note says so: a loop of copies is none of kernels
    elif not program.shows_engine and (
        capture.flag("nothing_recurs") or long_kernel(tables) is not None
    ):
        pass  # the program does that once: another capture would show the same
    elif not len(tables["inferences"]):
        found = "capture a loop of the same inference, because none was recognised"
        why = (
            found
            if program.shows_engine
            else "capture a loop, because no repetition was recognised"
        )
        steps.append(NextStep(why, f"nsysmap record -- {program.command}"))
    if (
        program.shows_engine
        and not len(tables["engines"])
        and (export := how(ENGINE_FILE, program)).paste is not None
    ):
        steps.append(NextStep(ENGINE_FILE.title, export.paste, export.paste_brief))
    return tuple(steps)


def _about_a_graph(doubt: Doubt) -> bool:
    """Whether it is about what a CUDA graph would save, which has a row of its own."""
    change = CHANGES["cuda-graph"]
    return change.name in doubt.changes or not set(doubt.rules).isdisjoint(change.judged_by)


def doubts(summary: Answer, where: str = " (--full lists all)") -> str:
    """What could not be determined, in a sentence or two. Rules on hardware counters are counted
    separately, because few captures have any.

    ``where`` says where everything is listed.
    """
    skipped = [one for one in summary.rules if one.outcome == "skipped"]
    sampled = bool(summary.counters)
    optional = set() if sampled else {one.rule for one in skipped if one.group == "counters"}
    rules = len(skipped) - len(optional)
    changes = sum(len(doubt.changes) for doubt in summary.doubts)
    parts = [f"{rules} of {counted(len(summary.rules), 'rule')}"] if rules else []
    parts += [counted(changes, "what-if change")] if changes else []
    counters = (
        f"{counted(len(optional), 'rule')} would need hardware counters (nsys profile"
        " --gpu-metrics-devices=all)"
        if optional
        else ""
    )
    if not parts:
        return counters and f"{counters}{where}"
    of_doubt = {doubt: sum(name not in optional for name in doubt.what) for doubt in summary.doubts}
    # reasons shown in a row of their own, or that name a table's column, say least
    largest = max(
        of_doubt,
        key=lambda doubt: (
            not (summary.graph.reason and _about_a_graph(doubt)),
            not doubt.of_a_column,
            of_doubt[doubt],
        ),
    )
    share = of_doubt[largest] / (rules + changes)
    several = "" if share == 1 else "mostly because " if share > 0.5 else "for example because "
    about_this = summary.tensorrt or not largest.about_engines
    because = (largest.because or largest.reason) if about_this else NOT_ABOUT_THIS
    told = f"{' and '.join(parts)} could not tell: {several}{because}"
    return f"{told}; {counters}{where}" if counters else f"{told}{where}"
