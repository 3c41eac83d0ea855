"""Unlike loops one after the other, as of a benchmark of several operations or sizes: a mean over
all of their repetitions is the time of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmap.answer.costs import functions
from nsysmap.answer.model import Answer, GpuTime, LoopAlone, NamedWarmUp, UnlikeLoops
from nsysmap.answer.words import main_kind
from nsysmap.core.groups import runs
from nsysmap.core.schema import Tables
from nsysmap.core.table import MISSING
from nsysmap.text.units import counted
from nsysmap.trace.inferences.steady import SHORTEST_PHASE, in_loops

# times the usual time of a loop's repetitions: what is beyond the usual is a pause before one
_PAUSE = 5.0


def _unlike_loops(answer: Answer) -> UnlikeLoops | None:
    """The loops of a program whose repetitions are of kinds with unlike times, if each kind comes
    many times before the next; None if the kinds alternate or there is only one.
    """
    if main_kind(answer) is None or answer.traced is None:
        return None
    times = answer.tables["inference_times"]
    rows = np.flatnonzero(times.ints("time_ns") != MISSING)
    rows = rows[np.argsort(times.ints("inference")[rows], kind="stable")]
    group, took = times.ints("group_id")[rows], times.ints("time_ns")[rows]
    _, _, stretch = runs(group)
    kinds, often = np.unique(group, return_counts=True)
    # what comes a few times is no loop: its time may be a pause
    many = kinds[often >= SHORTEST_PHASE]
    if len(many) < 2 or len(group) < SHORTEST_PHASE * len(stretch):
        return None
    usual = {int(one): float(np.median(took[group == one])) for one in many}
    group, took = (values[np.isin(group, many)] for values in (group, took))
    total = {one: ns * np.count_nonzero(group == one) for one, ns in usual.items()}
    each = np.array([usual[one] for one in group.tolist()])
    beyond = took - each
    called = _called(answer, list(total))
    return UnlikeLoops(
        tuple(
            LoopAlone(called[one], round(usual[one]), total[one] / max(sum(total.values()), 1.0))
            for one in sorted(total, key=lambda one: -total[one])
        ),
        int(beyond[beyond > _PAUSE * each].sum()),
    )


def _called(answer: Answer, groups: Sequence[int]) -> dict[int, str]:
    """The names of these groups' loops: the kernel if there is only one, otherwise the number of
    kernels; or that it is a CUDA graph, whose kernels the trace hides.
    """
    tables = answer.tables
    times, kernels = tables["inference_times"], tables["kernels"]
    group_of = dict(
        zip(times.ints("inference").tolist(), times.ints("group_id").tolist(), strict=True)
    )
    names = kernels.text("name")
    member, first = np.unique(kernels.ints("inference"), return_index=True)
    kernel = {
        group_of[one]: names.values[names.codes[at]]
        for one, at in zip(member.tolist(), first.tolist(), strict=True)
        if one in group_of
    }
    sizes = {kind.group: kind.kernels or 0 for kind in answer.kinds}
    alone = [one for one in groups if sizes.get(one) == 1 and one in kernel]
    named = dict(zip(alone, functions([kernel[one] for one in alone]), strict=True))
    return {
        one: named.get(one) or (counted(sizes[one], "kernel") if sizes.get(one) else "a CUDA graph")
        for one in groups
    }


def named_warm_up(tables: Tables) -> NamedWarmUp | None:
    """The repetitions of other kernels than those that count, the longest kind, where a range of
    the program's own calls them a warm-up; None if there are none, or nothing else counts.
    """
    rows = tables.inferences
    named = rows.text("warmup_range")
    counts = rows.bools("complete") & ~rows.bools("warmup")
    sequence, time = rows.ints("kernel_sequence"), in_loops(rows).time_ns
    asked = (named.codes >= 0) & rows.bools("complete") & (time != MISSING)
    asked &= ~np.isin(sequence, sequence[counts])
    if not asked.any() or not counts.any():
        return None
    of = np.unique(sequence[asked], return_inverse=True)[1]
    mine = np.flatnonzero(asked)[of == np.bincount(of, weights=time[asked]).argmax()]
    return NamedWarmUp(
        named[int(mine[0])] or "",
        int(rows.ints("kernels")[mine[0]]),
        len(mine),
        round(float(np.median(time[mine]))),
    )


def without_means(answer: Answer) -> Answer:
    """The answer without what would be a mean over unlike loops: times, the busy share of their
    repetitions alone, and what raises only their rate.  The same answer where there are no such
    loops.
    """
    loops = _unlike_loops(answer)
    if loops is None:
        return answer
    gpus = (gpu if gpu.busy_share is None else _from_first_to_last(gpu) for gpu in answer.gpus)
    return replace(
        answer,
        unlike_loops=loops,
        traced=None,
        unprofiled=None,
        gpu_unprofiled=None,
        replayed_ns=None,
        gpus=tuple(gpus),
        actions=tuple(one for one in answer.actions if not one.throughput_only),
    )


def _from_first_to_last(gpu: GpuTime) -> GpuTime:
    """How busy a GPU was from the first of its loops to the last, with what lies between them."""
    whole_ns = gpu.window_ns + gpu.left_out_ns
    share = None if gpu.whole_busy_ns is None else gpu.whole_busy_ns / max(whole_ns, 1)
    return replace(gpu, window="trace", busy_share=share, busy_ns=None, idle=())
