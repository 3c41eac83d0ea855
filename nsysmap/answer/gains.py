"""The sentences of the actions: what to do first, and what it saves."""

from __future__ import annotations

from nsysmap.advice.program import TORCH_ENGINES, TORCH_TENSORRT
from nsysmap.answer import headroom_words
from nsysmap.answer.actions import LEAST_SHARE, PAUSES
from nsysmap.answer.model import REPETITION, Action, Answer, Figure
from nsysmap.answer.words import (
    each,
    figure,
    figure_range,
    filled_kernels,
    none_of,
    not_replayed,
    of_the_trace,
    rate_of,
    rate_unit,
)
from nsysmap.core.changes import CHANGES
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.table import Row
from nsysmap.text.units import (
    InUnit,
    counted,
    in_unit,
    percent,
    range_of,
    rate,
    rate_range,
    rounded,
)

ACTIONS = 2
"""How many actions the answer names."""
_INDEPENDENT = "if none needs another's result"
"""The condition of a change that only raises throughput, shown unless the trace shows that it
holds.
"""
_AFTER_RESULTS = "if it needs none of the results copied to it"
"""The condition of moving the host's work out of a loop if nothing shows that its steps are
independent.
"""
_IF_INDEPENDENT = " if independent"
# a graph that has less than all that is launched (by Python)
_ALONE = (
    "of each inference alone",
    "without Python's work",
)
_AS_LONG = "each takes as long as before"
_LONGER = "each takes longer"
_LEAST_SHARE = 0.03  # share of the time per inference for a second action
_LITTLE = 0.1  # of the saving of the first: a second one with less says little
_NAMED = 2  # actions that are left out are named, at most


def gain(summary: Answer, action: Action, per: str = "", *, brief: bool = False) -> str:
    """How much an action saves per inference (or pass); for throughput only, the new rate and its
    condition.

    A rule's price is what may be saved at most, and perhaps nothing is; ``per`` follows the
    figures; ``brief`` leaves out which idle time that is, and of a rate the one before it, the
    reason, and (of an upper bound) what each inference takes.
    """
    if action.throughput_only and action.share:
        return _more_per_second(summary, action, brief=brief)
    if summary.unlike_loops is not None:  # a time would be that of a mean over them
        return saving_of(summary, action)
    of = (
        f", {percent(action.share, 1, 0)} of {whole_words(summary, action)}" if action.share else ""
    )
    of += f", {told}" if (told := of_the_trace(summary, action.saving.ns)) and of else ""
    if action.basis == "rule":
        return f"{saving_words(action)}{of}{per}"
    made = _where(action) if brief else _made_of(action)
    phase = f"{';' if made else ':'} {action.in_phase}" if action.in_phase and not brief else ""
    only = f", {_AFTER_RESULTS}" if action.after_results and not brief else ""
    return f"{saving_words(action)}{of}{per}{made}{phase}{only}"


def saving_words(action: Action) -> str:
    """The saving of an action alone."""
    if action.basis == "rule":
        return f"may save up to {rounded(action.saving.ns)}"
    return f"{'saves' if action.sure else 'may save'} {figure(action.saving)}"


def saving_of(summary: Answer, action: Action) -> str:
    """The saving of an action and the time that it is part of, in their common unit or each in its
    own.
    """
    found, whole = figure_range(action.saving), _whole(summary, action)
    verb = "saves" if action.sure else "may save"
    if action.basis == "rule" or found is None:
        verb = "may save up to" if action.basis == "rule" else verb
        saved, ends = in_unit(action.saving.ns), ""
    else:
        saved, ends = InUnit(found.likely, found.unit), f" ({found.ends})"
    told = saved.number if saved.unit == whole.unit else str(saved)
    if summary.unlike_loops is not None:
        return f"{verb} {percent(action.share or 0.0, 1)} of {whole_words(summary, action)}"
    return f"{verb} {told}{ends} of {whole}{_pauses(summary, action)}"


def in_short(summary: Answer) -> str:
    """The answer in a line: the time per inference, with and without the profiler, how busy the GPU
    is, and what to do first.
    """
    time = (
        [f"{rounded(summary.traced.ns)} per {summary.unit} in the trace"] if summary.traced else []
    )
    if summary.unlike_loops is not None:
        longest = summary.unlike_loops.loops[0]
        time = [f"{rounded(longest.median_ns)} per {summary.unit} of {longest.what} in the trace"]
    time += [f"{figure(summary.unprofiled)} without the profiler"] if summary.unprofiled else []
    busy = [gpu for gpu in summary.gpus if gpu.busy_share is not None]
    parts = [", ".join(time) or f"{counted(summary.inferences, each(summary))}"]
    parts += [
        f"{'GPU' if len(busy) == 1 else f'GPU {gpu.device}'} {percent(gpu.busy_share or 0.0, 1, 0)}"
        " busy"
        for gpu in busy[:_NAMED]
    ]
    first = next(
        (
            action
            for action in first_actions(summary)
            if not action.throughput_only and not summary.blocked
        ),
        None,
    )
    parts = [*(one.brief for one in summary.errors[:1]), *parts]
    parts += [f"first {action_title(first)}: {saving_words(first)}"] if first else []
    return "; ".join(parts)


def ways(action: Action) -> tuple[str, ...]:
    """The lines to paste for an action: one, or two where either of two programs may run; none
    where a sentence says what to change.
    """
    return tuple(line for line in (action.paste, action.paste_pytorch) if line)


def whole_words(summary: Answer, action: Action) -> str:
    """The words for the time that a saving is a share of."""
    if summary.unlike_loops is not None:
        return "the time"
    return f"{_whole(summary, action)}{_pauses(summary, action)}"


def _whole(summary: Answer, action: Action) -> InUnit:
    """The time as a number with its unit."""
    base, value = _wholes(summary, action)
    if _pauses(summary, action):
        return in_unit(base.ns)
    found = figure_range(value)
    return in_unit(value.ns) if found is None else InUnit(found.likely, found.unit)


def _pauses(summary: Answer, action: Action) -> str:
    """A note that the time includes pauses, if they make it that much longer."""
    base, value = _wholes(summary, action)
    return " with pauses" if base.ns > PAUSES * value.ns else ""


def _wholes(summary: Answer, action: Action) -> tuple[Figure, Figure]:
    """The time that a saving is a share of, and the time that the screen shows, where the two are
    as long.
    """
    base = Figure(round(action.saving.ns / (action.share or 1.0)))
    return base, summary.unprofiled or summary.traced or base


def _made_of(action: Action) -> str:
    """The idle time without the profiler that a saving is part of, where that is known; and what
    the host did meanwhile.
    """
    causes = [one.cause for one in action.idle] or (
        ["host"] if action.host_evidence is not None else []
    )
    told = [f"{idle_words(cause)}{_where(action) if cause == 'host' else ''}" for cause in causes]
    return f": {', '.join(told)}" if told else ""


def _where(action: Action) -> str:
    """The place in the program where most of the host's own work was."""
    if action.host_evidence is None:
        return ""
    return f" (in {action.host_evidence.words})"


def _more_per_second(summary: Answer, action: Action, *, brief: bool) -> str:
    """The throughput after an action, with its range, the one before it and the condition; where it
    is not predicted, why it would rise.
    """
    if action.filled is not None and action.basis == "rule":
        return (
            f"{filled_kernels(summary)} leave {percent(1 - action.filled, 1, 0)} of SMs idle; gain"
            " unknown"
        )
    before_ns = action.saving.ns / (action.share or 1.0)
    now = rate_of(summary.unprofiled) if summary.unprofiled else rate(1e9 / max(before_ns, 1.0))
    saved = (action.saving.ns, action.saving.low_ns or 0, action.saving.high_ns or action.saving.ns)
    after, low, high = (1e9 / max(before_ns - one, 1.0) for one in saved)
    if action.after is not None:  # the range of a saving is that of both times together
        most, least = action.after.high_ns, action.after.low_ns
        low = min(1e9 / max(most or action.after.ns, 1), after)
        high = max(1e9 / max(least or action.after.ns, 1), after)
    if (
        action.name == "two-in-flight" and summary.unprofiled and summary.unprofiled.low_ns
    ):  # at most twice as many as one after another
        high = max(min(high, 2e9 / summary.unprofiled.low_ns), after)
    faster = (
        f"may reach up to {rate(after)}"
        if action.basis == "rule"
        else rate_range(after, low, high).up_to
        if action.beside
        else str(rate_range(after, low, high))
    )
    up = f", {'now' if action.beside else 'up from'} {now}"
    told = [f"{faster}{rate_unit(summary, brief=brief)}{'' if brief else up}"]
    told += [_INDEPENDENT] if not brief and _needs_independence(summary, action) else []
    told += (
        [f"kernels are on {percent(action.filled, 1, 0)} of the SMs"]
        if action.filled is not None and not brief
        else []
    )
    longer = _each_takes(action, before_ns, (after, low, high))
    if brief:
        short = told[0] + (_IF_INDEPENDENT if summary.unit == REPETITION else "")
        return f"{short}, each {longer}" if longer is not None and not action.beside else short
    takes = _AS_LONG if action.basis == "rule" else _LONGER
    if longer is not None:
        takes = f"each takes {longer}, up from {rounded(before_ns)}"
    elif _at_once(action) is not None:
        takes = _AS_LONG
    return "; ".join((*told, takes))


def conditions(summary: Answer, action: Action) -> str:
    """The conditions under which an action raises throughput, and what it costs each inference,
    unless its brief gain already says so; empty if there are none.
    """
    if not (action.throughput_only and action.share):
        return ""
    told = [_INDEPENDENT] if _if_independent(action) and summary.unit != REPETITION else []
    told += [_LONGER] if action.basis != "rule" and _at_once(action) is None else []
    return "; ".join(told)


def _needs_independence(summary: Answer, action: Action) -> bool:
    """Whether an action helps only where no inference needs another's result."""
    return summary.unit == REPETITION or _if_independent(action)


def _if_independent(action: Action) -> bool:
    """The condition that units are independent, unless the trace shows that they are inferences."""
    return action.name in CHANGES and CHANGES[action.name].if_independent


def _at_once(action: Action) -> int | None:
    """How many inferences run at the same time after a replayed change, if it says."""
    if action.basis == "rule" or action.name not in CHANGES:
        return None
    return CHANGES[action.name].at_once


def _each_takes(action: Action, before_ns: float, rates: tuple[float, float, float]) -> str | None:
    """The longer time that one inference takes after a change that only raises throughput, to one
    of these rates (with its range); None if it takes as long as before, or how long is unknown.
    """
    at_once = _at_once(action)
    if at_once is None:
        return None
    likely, low, high = (round(at_once * 1e9 / one) for one in (rates[0], rates[2], rates[1]))
    takes, now = (range_of(one, low, high).alone for one in (likely, round(before_ns)))
    return None if takes == now or likely <= before_ns else takes


def first_actions(summary: Answer) -> tuple[Action, ...]:
    """The action that shortens one inference most, and the one of the others that saves the largest
    share: it may raise throughput only, unless the first raises it as much.

    A second one saves a few percent, and not little beside the first.  Where a trace does not show
    what ran, another capture comes before upper bounds.
    """
    more = next(
        (
            one
            for one in summary.actions
            if one.throughput_only and not (one.basis == "rule" and summary.blocked)
        ),
        None,
    )
    more = more if more is not None and (more.share or 0.0) >= _LEAST_SHARE else None
    again = bool(summary.blocked and summary.next_steps)
    shorter = [
        one
        for one in summary.actions
        if not one.throughput_only and not (one.basis == "rule" and again)
    ]
    if more is not None and any(
        more.basis == one.basis == "replay" and more.saving.ns <= one.saving.ns for one in shorter
    ):
        more = None
    if not shorter:
        return (more,) if more else ()
    first, *others = sorted(shorter, key=lambda one: (one.after_results, -one.saving.ns))
    least_ns = _LITTLE * first.saving.ns
    large = [one for one in others if (one.share or 0.0) >= _LEAST_SHARE]
    large = [one for one in large if one.saving.ns >= least_ns]
    if more is not None and (more.basis == "replay" or more.filled is None):  # with a known gain
        large.append(more)
    second = max(large, key=lambda one: one.share or 0.0, default=None)
    return tuple(one for one in (*shorter, more) if one is not None and one in (first, second))


def action_title(action: Action) -> str:
    """What to do, and in how many places."""
    if action.name == "two-in-flight" and action.filled is not None:
        return f"{action.title} (or a larger batch)"
    return f"{action.title} ({action.places} places)" if action.places > 1 else action.title


def no_action(summary: Answer) -> str:
    """The sentence if nothing is predicted to save time."""
    if summary.blocked:
        return (
            "capture again, as said above"
            if summary.next_steps
            else "see above: the trace does not answer this"
        )
    if summary.unprofiled is None and summary.unlike_loops is None:
        if summary.traced:
            return "no saving can be predicted: the timeline cannot be replayed"
        return "no saving can be predicted: " + (
            not_replayed(summary) if summary.inferences else f"{none_of(summary)} was recognised"
        )
    shorter = (
        f" of one {each(summary)}"
        if any(action.throughput_only for action in summary.actions)
        else ""
    )
    if summary.headroom is not None and summary.headroom.gpu_bound:
        farthest = headroom_words.where(summary.headroom)
        told = f"the GPU is the limit: {headroom_words.distance(summary.headroom)}"
        return f"{told}; farthest from it: {farthest}" if farthest else told
    return f"no change that what-if can replay is sure to save more than 1%{shorter}"


def place(summary: Answer, row: Row) -> str:
    """Whether a change of what-if is among the first actions, or why it is not."""
    first = first_actions(summary)
    action = next((one for one in summary.actions if one.name == row.text("change")), None)
    others = {one.name for one in summary.actions}
    instead = next(
        (why for other, why in CHANGES[row.text("change")].instead.items() if other in others), None
    )
    if (
        action is None
        and instead is not None
        and row.integer("low_saving_ns") >= max(LEAST_SHARE * row.integer("before_ns"), 1)
    ):
        return f"no: {instead}"
    if action is None:
        nothing = row.integer("low_saving_ns") <= 0
        return (
            "no: it may save nothing"
            if nothing
            else f"no: it may save less than {percent(LEAST_SHARE, 1, 0)}"
        )
    if action in first:
        return "yes"
    if (action.share or 0.0) < _LEAST_SHARE:
        return f"no: it saves less than {percent(_LEAST_SHARE, 1, 0)}"
    return "no: others raise throughput more" if action.throughput_only else "no: others save more"


def cut_off(summary: Answer) -> str:
    """The limits of the first actions, and those that come next; empty where nothing can be
    predicted.
    """
    if summary.unprofiled is None:
        return ""
    first = first_actions(summary)
    left = [
        f"{action_title(one)}: {gain(summary, one)}"
        for one in summary.actions
        if one not in first and not one.throughput_only
    ]
    least, later = percent(LEAST_SHARE, 1, 0), percent(_LEAST_SHARE, 1, 0)
    told = (
        f"At most {ACTIONS} are listed; each saves at least {least} even at the low end of its"
        f" range, and from the second on {later}."
    )
    told += (
        " What a replay predicts (saves) comes before what a rule prices (may save up to), which"
        " may save nothing."
    )
    if any(one.basis == "rule" and not one.throughput_only for one in summary.actions):
        told += " A price is kernel time as recorded, as if all else took as long as now"
        told += "; where the GPU waits for launches, those that go save more."
    return f"{told}{' Next: ' if left else ''}{'; '.join(left)}"


def graph(summary: Answer, *, alone: bool = False) -> str:
    """Whether a CUDA graph is worth it: one for each enqueue, and where Python works between
    launches, one for all that it launches; only the former where the latter has been said
    (``alone``).
    """
    whole = next((one for one in summary.actions if one.graph_of_all), None)
    # where Python's work is why it cannot be told, one graph of all takes that away
    told = _graph(summary, python_goes=whole is not None)
    own = summary.program in (TORCH_TENSORRT, TORCH_ENGINES)
    if own:
        whose = "a whole repetition" if summary.unit == REPETITION else "each engine alone"
        told = f"of {whose}: {told}"
    if whole is None:
        return told
    sure = whole.basis == "replay"
    python = whole.graph_of_all == "python"
    enqueues = told if own else f"{_ALONE[python]}: {told}"
    if alone:
        return enqueues
    return (
        f"of all that {'Python launches' if python else 'is launched'}:"
        f" {'worth it: ' if sure else ''}{saving_words(whole)}; {enqueues}"
    )


def _graph(summary: Answer, *, python_goes: bool) -> str:
    """The same; without the reason why it is unknown, if that reason is work that goes."""
    verdict = summary.graph
    if (
        verdict.answer == "answered"
        and verdict.saving is not None
        and verdict.saving.low_ns is not None
    ):
        told = f"{figure(verdict.saving)} per {summary.unit}"
        least_ns = LEAST_SHARE * (summary.unprofiled or verdict.saving).ns
        if verdict.saving.low_ns >= max(least_ns, 1):
            return f"worth it: saves {told}"
        less = f"less than {percent(LEAST_SHARE, 1, 0)}"
        if verdict.saving.ns < max(least_ns, 1):
            return f"not worth it ({less}): saves {told}"
        return f"may not be worth it ({less} at the low end): saves {told}"
    if verdict.answer == "cannot-tell":
        if python_goes and verdict.perhaps is not None:
            saving = figure_range(verdict.perhaps)
            assert saving is not None
            return f"cannot tell: it may save {saving.ends} {saving.unit}"
        reason = verdict.reason or ""
        said = summary.unprofiled is None and reason  # among the reasons of all changes
        where = "time" if summary.traced and not summary.blocked else "above"
        return "cannot tell" + (f" (see {where})" if said else f": {reason}" if reason else "")
    return verdict.reason or "does not apply"
