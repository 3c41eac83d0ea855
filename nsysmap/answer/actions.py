"""What to do first: the changes and findings that are predicted to save most."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nsysmap.advice.paste import (
    ALLOCATE_ONCE,
    CHANGES,
    COMPILE_THE_REST,
    COPY_AHEAD,
    DATA_LOADER_WORKERS,
    EACH_ENGINE,
    KEEP_ON_GPU,
    PYTHON_BETWEEN,
    RULES,
    TWO_GRAPHS,
    WAIT_FOR_RANKS,
    WITH_DATA_LOADER,
    code_of_the_host,
    nothing_to_prepare,
    python_alone,
)
from nsysmap.advice.program import TENSORRT_LLM, Program
from nsysmap.advice.ways import AdvisedChange, ByEvidence, How, how
from nsysmap.answer.model import (
    IN_A_REGION,
    MOST,
    Action,
    Figure,
    GraphOfAll,
    HostEvidence,
    IdleCause,
    SampledCode,
    in_pieces,
)
from nsysmap.core.changes import CHANGES as DECLARED
from nsysmap.core.intervals import covered
from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, IntArray, Row, Table
from nsysmap.text.units import worded
from nsysmap.trace.cpu_samples import LIBRARY, UNKNOWN
from nsysmap.trace.cuda_api import kind as kind_of_call
from nsysmap.trace.inferences.steady import only_repeats

LEAST_SHARE = 0.01
"""Share of the time per unit that an action must save at least; less is within the difference
between two runs of one program.
"""
RULE_GROUPS = ("fusion", "reformat", "precision")
"""Groups of rules whose cost is GPU time that would be saved; the cost of host and launches is
predicted by what-if.
"""
_UNDER_FILLED = "under-filled-gpu"
_TIME_SLICED = "time-sliced-processes"  # its cost is idle time that no change of what-if is about
_PARALLEL = "parallel-small-kernels"
_MANY_PLACES = frozenset({_PARALLEL, "channel-alignment"})
"""Rules with one finding per engine, whose evidence gives the number of places."""
_REFORMATS = "reformat-cost"
_SAME = {rule: change.name for change in DECLARED.values() for rule in change.prices}
_SAME_GROUP = {
    change.prices_group: change.name for change in DECLARED.values() if change.prices_group
}
"""The change of what-if that prices what a rule, or a group of them, finds."""
_WHOLE_ENGINE = "fp32-engine"
"""The rule whose advice changes every layer, and with them what others find and what a replay
predicts: it leads where it prices most.
"""
_OVERLAP = "copy-not-overlapped"
_OVERLAPPED_BY = frozenset(change.name for change in DECLARED.values() if change.overlaps_copies)
"""Changes whose replay has copies beside kernels."""
_OVERLAPPED_IN_LOOPS = frozenset(
    change.name
    for change in DECLARED.values()
    if change.overlaps_copies and not change.throughput_only
)
"""Those that shorten a turn of a loop whose turns may need each other."""
# times as long as copies to the GPU, from which on copies from it say that the host works on the
# same data between two turns
_BACK = 0.5
# how PyTorch's compiler names the kernels that it makes
_INDUCTOR = ("triton_poi_", "triton_red_", "triton_per_", "triton_tem_")
_UNREPLAYED = {rule: change.name for change in DECLARED.values() for rule in change.stands_in_for}
"""Rules that price idle time, and the change that is against it: where nothing can be replayed,
they say what may be saved.
"""
_WHOLE_REPETITION = replace(PYTHON_BETWEEN, title="run a whole repetition as one CUDA graph")
"""Instead of EACH_ENGINE where only repetitions are known, not where in them an engine begins and
ends.
"""
_MUCH = 0.1
"""If no saving is sure, an uncertain one of at least this share of an inference is shown, as one
that may be: the largest cause of idle time must be mentioned.
"""
_LEAST_PART = 0.02  # of the idle time that a saving is part of; smaller causes are not named
# share of the SMs from which on a larger batch is not advised, as what-if takes such kernels to
# leave no room
_FULL = 0.75
PAUSES = 1.25
"""Times the time per unit, from which on the window is said to have pauses besides."""
# share of the time that one graph of everything must save beyond a graph of each inference, which
# is easier to make
_WORTH_MORE = 0.03
_HOST = "no-host-gap"
_ALLOCATING = ("alloc", "free")  # kinds of calls
_WORK = ("kernels", "memcpys", "memsets")
_PLACE = ("process", "device", "stream")  # of one stream
# calls that make memory which host and GPU both read and write
_SHARED = (
    "cudaMallocManaged",
    "cuMemAllocManaged",
    "cudaHostGetDevicePointer",
    "cuMemHostGetDevicePointer",
)
# of the window, idle while the host is busy elsewhere: of less no CPU samples are read
_MUCH_IDLE = 0.05
# of which the standard error of a share is at most 10 points
_LEAST_SAMPLES = 25
# of the idle time that samples stand for: they are taken of threads that run, and what one that
# mostly sleeps waits for is in none of them
_LEAST_SAMPLED = 0.25
# in an inference, in which the GPU waits for the host's own work: it lies between launches, not
# between inferences
_MANY_GAPS = 3
_NAMED_CALLS = 2  # that allocate, at most


@dataclass(frozen=True)
class RunFacts:
    """The facts about the running program that decide what to do and which line to paste."""

    program: Program
    # per inference: how often the GPU is idle while the host is busy elsewhere
    host_gaps: float = 0.0
    host_evidence: HostEvidence | None = None  # where most of that time was
    uploads: bool = False  # data is copied to a GPU while inferences run
    downloads: bool = False  # and from it
    # inferences are known by their repetition only: one may hold several engines, and Python's work
    # between them
    repeats: bool = False
    graphs: bool = False  # most inferences are replayed from CUDA graphs
    data_loader: bool = False  # NVTX ranges show PyTorch's DataLoader
    # the most kernel sequences that inferences of one engine have, as of several shapes
    kinds: int = 1
    # of that time, in the whole steady-state part: in calls that allocate and free device memory
    allocating_ns: int = 0
    # of repetitions: one stream keeps all GPU work in order, and none of it reaches the host
    in_order: bool = False
    has_osrt: bool = False  # calls of the operating system were traced
    has_samples: bool = False  # CPU samples were taken
    # PyTorch's compiler made kernels, and CUDA graphs are launched: of what it takes in
    compiled: bool = False


def run_facts(tables: Mapping[str, Table], program: Program) -> RunFacts:
    """The facts about the program in the steady-state part of a trace."""
    gaps, copies = tables["gaps"], tables["memcpys"]
    rows = np.flatnonzero(_steady(tables, gaps) & gaps.text("cause").equals("host"))
    inferences = sum(row.integer("inferences") for row in tables["device_times"])
    uploads = bool((_steady(tables, copies) & copies.text("kind").equals("HtoD")).any())
    downloads = bool((_steady(tables, copies) & copies.text("kind").equals("DtoH")).any())
    repeats = only_repeats(tables["inferences"], tensorrt=program.shows_engine)
    gaps_each = _intervals(gaps, rows) / inferences if inferences else 0.0
    replayed = tables["inferences"].bools("cuda_graph")
    graphs = 2 * int(replayed.sum()) > len(replayed)
    loader = (
        bool(tables["nvtx_ranges"].text("name").where(lambda name: "DataLoader" in name).any())
        if program.pytorch
        else False
    )
    return RunFacts(
        program,
        gaps_each,
        _sampled(_host_evidence(gaps.take(rows)), tables, gaps.take(rows)),
        uploads,
        downloads,
        repeats,
        graphs,
        loader,
        _kinds(tables["inference_groups"]),
        allocating_ns=_allocating_ns(tables["api_calls"], gaps.take(rows)),
        in_order=repeats and not downloads and _in_order(tables),
        has_osrt=tables["capture"].only().flag("has_osrt"),
        has_samples=tables["capture"].only().flag("has_cpu_samples"),
        compiled=program.pytorch and _compiled(tables),
    )


def _compiled(tables: Mapping[str, Table]) -> bool:
    """Whether PyTorch's compiler made kernels, and CUDA graphs are launched."""
    calls, kernels = tables["api_calls"].text("api"), tables["kernels"].text("name")
    return any(name.startswith(_INDUCTOR) for name in kernels.values) and any(
        kind_of_call(name) == "graph-launch" for name in calls.values
    )


def _in_order(tables: Mapping[str, Table]) -> bool:
    """Whether one stream keeps all GPU work of the steady-state part in order, and no memory that
    the host reads without a copy can hold results of it.
    """
    own = [work.take(_steady(tables, work)) for work in map(tables.__getitem__, _WORK)]
    places = [np.concatenate([work.ints(key) for work in own]) for key in _PLACE]
    api = tables["api_calls"].text("api")
    shared = any(name.startswith(_SHARED) for name in api.values)
    return not shared and all((place == place[:1]).all() for place in places)


def _allocating_ns(calls: Table, gaps: Table) -> int:
    """How long in these gaps the host was in calls that allocate and free device memory."""
    api = calls.text("api")
    named = np.array([kind_of_call(name) in _ALLOCATING for name in api.values], np.bool_)
    rows = np.flatnonzero(named[api.codes]) if len(named) else np.zeros(0, np.int64)
    mine, within = calls.take(rows), (gaps.ints("start_ns"), gaps.ints("end_ns"))
    return int(covered(mine.ints("start_ns"), mine.ints("end_ns"), within).sum())


def _kinds(groups: Table) -> int:
    """The most kernel sequences that the steady-state inferences of one engine have; one that ran
    once does not count.
    """
    often = {
        (row.maybe_integer("engine"), row.maybe_integer("kernel_sequence"))
        for row in groups
        if row.integer("steady") > 1
    }
    return max(
        Counter(engine for engine, sequence in often if None not in (engine, sequence)).values(),
        default=1,
    )


def _steady(tables: Mapping[str, Table], rows: Table) -> BoolArray:
    """Marks the rows in a steady-state part."""
    start_ns, end_ns = rows.ints("start_ns"), rows.ints("end_ns")
    found = np.zeros(len(rows), np.bool_)
    for part in tables["steady_state"]:
        found |= (start_ns >= part.integer("start_ns")) & (end_ns <= part.integer("end_ns"))
    return found


def _intervals(gaps: Table, rows: IntArray) -> int:
    """The number of idle intervals that these rows are in: the table has a row for each cause of
    one.
    """
    start_ns, end_ns, device = (gaps.ints(name) for name in ("start_ns", "end_ns", "device"))
    begins = np.ones(len(gaps), np.bool_)
    begins[1:] = (start_ns[1:] != end_ns[:-1]) | (device[1:] != device[:-1])
    return len(np.unique(np.cumsum(begins)[rows]))


def _host_evidence(gaps: Table) -> HostEvidence | None:
    """The NVTX range or the call that most of the time of these gaps was in; or, where it was in
    several calls that allocate and free device memory, those.
    """
    told = gaps.text("evidence")
    rows = np.flatnonzero(told.codes >= 0)
    spent = np.bincount(told.codes[rows], weights=gaps.ints("dur_ns")[rows], minlength=1)
    _, first = np.unique(told.codes[rows], return_index=True)
    kinds, names = (gaps.text(f"evidence_{one}") for one in ("kind", "name"))
    found = {
        int(told.codes[row]): HostEvidence(kinds[row] or "", names[row] or "", told[row] or "")
        for row in rows[first].tolist()
    }
    ranked = sorted(found, key=lambda code: -spent[code])
    if not ranked or not spent[ranked[0]]:
        return None
    if spent[ranked[0]] >= MOST * spent.sum():
        return found[ranked[0]]
    allocating = [code for code in ranked if _is_allocating(found[code])]
    if spent[allocating].sum() < MOST * spent.sum():
        return None
    named = [found[code] for code in allocating[:_NAMED_CALLS]]
    return replace(named[0], text=", ".join(one.text for one in named))


def _is_allocating(found: HostEvidence) -> bool:
    """Whether it is a call that allocates or frees device memory."""
    return found.kind == "call" and kind_of_call(found.name) in _ALLOCATING


def _sampled(
    evidence: HostEvidence | None, tables: Mapping[str, Table], gaps: Table
) -> HostEvidence | None:
    """The same with what CPU samples show, where these gaps are much of the time and so many
    samples are in them that they tell.
    """
    window_ns = sum(one.integer("window_ns") for one in tables["device_times"])
    idle_ns = int(gaps.ints("dur_ns").sum())
    if not tables["capture"].only().flag("has_cpu_samples") or idle_ns < _MUCH_IDLE * window_ns:
        return evidence
    found = sampled_code(tables["host_samples"], idle_ns)
    if not found:
        return evidence
    if evidence is None:
        return HostEvidence("none", "", "several calls and ranges", found)
    return replace(evidence, sampled=found)


def sampled_code(samples: Table, idle_ns: int) -> tuple[SampledCode, ...]:
    """What a host thread was in during idle time, by whose code it is, the most first; nothing
    where few samples are in that time.
    """
    taken = int(samples.ints("samples").sum())
    if taken < _LEAST_SAMPLES or samples.ints("time_ns").sum() < _LEAST_SAMPLED * idle_ns:
        return ()
    within: dict[_Owner, Counter[str | None]] = {}
    for row in samples:
        owner, library = row.text("owner"), row.maybe_text("library")
        whose = _Owner(owner, library if owner == LIBRARY else None)
        within.setdefault(whose, Counter())[row.maybe_text("function")] += row.integer("samples")
    found = []
    for whose, functions in within.items():
        ((function, most),) = functions.most_common(1)
        of_one = function if most >= MOST * functions.total() else None
        share = functions.total() / taken
        found.append(SampledCode(whose.owner, whose.library, share, of_one))
    return tuple(sorted(found, key=lambda one: -one.share))


@dataclass(frozen=True)
class _Owner:
    """Whose code samples are in; of a library its name."""

    owner: str
    library: str | None


@dataclass(frozen=True)
class UnitTime:
    """The time of one unit, ns. With pauses: the whole window divided by its units, as idle time is
    counted.
    """

    ns: int
    with_pauses_ns: int


def actions(
    tables: Mapping[str, Table],
    runs: RunFacts,
    *,
    units: float,
    unit_time: UnitTime | None,
    idle: Sequence[IdleCause] = (),
) -> tuple[Action, ...]:
    """The actions predicted to save more than noise: first those that shorten one inference, by
    replay, then by rule; then those for throughput only.

    ``units`` is how many inferences (or passes) the rules' costs are of, ``unit_time`` what one
    takes; ``idle`` is the idle time of one without the profiler.
    """
    findings = [one for one in tables["findings"] if one.maybe_integer("inside") is None]
    # also of those that are told inside another finding
    reformats = _evidence(tables["findings"], _REFORMATS)
    changes = [
        _change(row, runs, findings, idle, reformats) for row in tables["whatif"] if _pays(row)
    ]
    changes.sort(key=lambda one: (one.throughput_only, -one.saving.ns))
    told = {one.name for one in changes}
    if all(one.throughput_only for one in changes):
        rows = [row for row in tables["whatif"] if _may_pay(row) and row.text("change") not in told]
        unsure = [_change(row, runs, findings, idle, reformats) for row in rows]
        changes += sorted(unsure, key=lambda one: -one.saving.ns)[:1]
    changes = [one for one in changes if one.name not in _the_same(changes, runs)]
    if _allocates(runs) and units:
        most = round(runs.allocating_ns / units)
        changes = [_saving_at_most(most, one) if one.name == _HOST else one for one in changes]
    if ahead := _prepared_ahead(runs):
        changes = [_while_it_runs(ahead, one) if one.name == _HOST else one for one in changes]
        changes = [one for one in changes if one.name != _HOST or (one.share or 0.0) >= LEAST_SHARE]
    if _waits_for_ranks(runs):  # steps of ranks that wait for each other go one after the other
        changes = [one for one in changes if one.name != "two-in-flight"]
    if _waits_for_ranks(runs) and (mostly := runs.host_evidence) is not None:
        share = mostly.sampled[0].share
        changes = [
            _saving_at_most(round(share * one.saving.ns), one) if one.name == _HOST else one
            for one in changes
        ]
    replayed = any(row.text("answer") == "answered" for row in tables["whatif"])
    # also those whose cost another finding has, of the same copies
    copies = [one for one in tables["findings"] if one.text("rule") == _OVERLAP]
    rules = [
        found
        for row in tables["rule_outcomes"]
        if _prices(row, told, replayed=replayed, repeats=runs.repeats)
        and (
            found := _rule(
                row,
                runs,
                copies if row.text("rule") == _OVERLAP else findings,
                _at_most_ns(row, tables, units, repeats=runs.repeats),
                unit_time,
            )
        )
        is not None
    ]
    rules.sort(key=lambda one: -one.saving.ns)
    # of two rules that ask for the same, the one that prices more
    titles = [one.title for one in rules]
    priced = [one for place, one in enumerate(rules) if one.title not in titles[:place]]
    largest = max((one.saving.ns for one in changes if not one.throughput_only), default=0)
    priced = [  # one line of PyTorch's is against several causes of idle time
        one
        for place, one in enumerate(priced)
        if one.name not in _UNREPLAYED
        or one.paste not in [other.paste for other in priced[:place] if other.name in _UNREPLAYED]
    ]
    first = [
        one
        for one in priced
        if one.name in (_WHOLE_ENGINE, _OVERLAP)
        and not one.throughput_only
        and one.saving.ns > largest
    ]
    everything = [*first, *changes, *(one for one in priced if one not in first)]
    return tuple(sorted(everything, key=lambda one: one.throughput_only))


def _saving_at_most(most_ns: int, action: Action) -> Action:
    """The saving limited to that amount: calls that are no longer made, or that do not wait, save
    their own time, not all the time in which the host was busy elsewhere.
    """
    saving, after = action.saving, action.after
    if saving.ns <= most_ns or after is None:
        return action
    before = after.ns + saving.ns
    least = before - most_ns

    return replace(
        action,
        saving=Figure(most_ns, 0, most_ns),  # how long they take without the profiler is unknown
        share=most_ns / before if before else None,
        after=Figure(least, least, before),
    )


def _prepared_ahead(runs: RunFacts) -> int:
    """How many steps other threads prepare while one runs, as the host's work is advised to be
    moved; 0 if it is advised otherwise, or not how many.
    """
    change = _what(_HOST, runs)
    if change is WITH_DATA_LOADER:
        return DATA_LOADER_WORKERS
    return 1 if change is CHANGES[_HOST] and runs.program.kind != TENSORRT_LLM else 0


def _hidden_ns(work_ns: int, whole_ns: int, ahead: int = 1) -> int:
    """How much of a step's work other threads hide behind its rest: so many prepare a step each
    meanwhile, and what follows waits for the longer of the two.
    """
    return min(work_ns, whole_ns - round(work_ns / ahead))


def _while_it_runs(ahead: int, action: Action) -> Action:
    """The action with the saving that remains if the host's work is not gone, but done by so many
    other threads.
    """
    saving, after = action.saving, action.after
    if after is None:
        return action
    whole = after.ns + saving.ns
    told = (saving.ns, saving.low_ns or 0, saving.high_ns or saving.ns)
    likely, *ends = (_hidden_ns(one, whole, ahead) for one in told)
    if likely == saving.ns:
        return action
    # the most is saved where the threads take as long as the rest
    even = round(whole * ahead / (ahead + 1))
    low, high = min(likely, *ends), even if told[1] <= even <= told[2] else max(likely, *ends)
    return replace(
        action,
        saving=Figure(likely, low, high),
        share=likely / whole if whole else None,
        after=Figure(whole - likely, whole - high, whole - low),
    )


def _the_same(changes: Sequence[Action], runs: RunFacts) -> set[str]:
    """The changes that another change already includes: one graph of all that is launched takes
    away what they would.
    """
    by_name = {one.name: one for one in reversed(changes)}
    each, whole = by_name.get("cuda-graph"), by_name.get("one-graph")
    if whole is None:
        return set()
    found = {"no-host-gap"} if runs.program.pytorch and runs.host_gaps >= _MANY_GAPS else set()
    if each is None or (runs.program.pytorch and runs.program.engine):
        return found
    more = (whole.share or 0.0) - (each.share or 0.0) >= _WORTH_MORE
    return found | {"cuda-graph" if more or runs.program.pytorch else "one-graph"}


def _prices(row: Row, told: set[str], *, replayed: bool, repeats: bool) -> bool:
    """Whether a rule is an action of its own: it prices what none of these changes does."""
    rule, group = row.text("rule"), row.text("rule_group")
    if rule == _OVERLAP:
        return not told & (_OVERLAPPED_IN_LOOPS if repeats else _OVERLAPPED_BY)
    if rule in _UNREPLAYED:
        return not replayed
    return (group in RULE_GROUPS or rule in (_UNDER_FILLED, _TIME_SLICED)) and not {
        _SAME.get(rule),
        _SAME_GROUP.get(group),
    } & told


def _pays(row: Row) -> bool:
    if row.text("answer") != "answered":
        return False
    return row.integer("low_saving_ns") > 0 and row.integer(
        "low_saving_ns"
    ) >= LEAST_SHARE * row.integer("before_ns")


def _may_pay(row: Row) -> bool:
    """Whether a change likely saves much of an inference, more than it costs at worst, and its
    range does not rule out that it saves nothing.
    """
    if row.text("answer") != "answered" or DECLARED[row.text("change")].throughput_only:
        return False
    saving, low = row.integer("saving_ns"), row.integer("low_saving_ns")
    return not _pays(row) and saving > -low and saving >= _MUCH * row.integer("before_ns") > 0


def _change(
    row: Row,
    runs: RunFacts,
    findings: Sequence[Row],
    idle: Sequence[IdleCause],
    reformats: Sequence[Mapping[str, object]],
) -> Action:
    name = row.text("change")
    declared, change = DECLARED[name], _what(name, runs)
    made = (
        how(RULES[_REFORMATS], runs.program, reformats)
        if name == "drop-layers"
        else how(change, runs.program)
    )
    saving, before = row.integer("saving_ns"), row.integer("before_ns")
    between = name == "one-graph" and runs.program.pytorch
    return Action(
        name=name,
        title=worded(change.title, repetitions=runs.repeats) + _on_condition(name, runs),
        saving=Figure(saving, row.integer("low_saving_ns"), row.integer("high_saving_ns")),
        share=saving / before if before else None,
        basis="replay",
        # with no result for the host to wait for, all steps end sooner in the same order
        throughput_only=declared.throughput_only and not (name == "async" and runs.in_order),
        places=0,
        paste=made.paste,
        paste_pytorch=made.paste_pytorch,
        change=made.change,
        paste_brief=made.paste_brief,
        change_brief=made.change_brief,
        rules=tuple(
            dict.fromkeys(
                one.text("rule")
                for one in findings
                if one.maybe_text("what_if") in {name, *((_HOST,) if between else ())}
            )
        ),
        idle=_idle_behind(name, saving, idle),
        filled=_filled(findings) if _SAME.get(_UNDER_FILLED) == name else None,
        host_evidence=runs.host_evidence if declared.takes_host_work else None,
        after_results=name == _HOST and _made_of_results(runs),
        graph_of_all=_graph_of_all(change),
        after=Figure(
            row.integer("after_ns"),
            row.maybe_integer("low_after_ns"),
            row.maybe_integer("high_after_ns"),
        ),
        beside=row.flag("kernels_beside"),
    )


def _evidence(findings: Iterable[Row], rule: str) -> list[Mapping[str, object]]:
    """That of a rule's findings, the costliest first."""
    mine = [one for one in findings if one.text("rule") == rule]
    return [
        json.loads(one.text("evidence"))
        for one in sorted(mine, key=lambda one: -(one.maybe_integer("cost_ns") or 0))
    ]


_WITHOUT_RESULTS = ", if it needs no results"
"""The condition of what is done for the next turn while this one runs."""


def _made_of_results(runs: RunFacts) -> bool:
    """Whether the host's work may be made of results that were copied to it: of inferences that
    is what comes after them, of repetitions of any program it may be what the next one needs.
    """
    known = _allocates(runs) or _waits_for_ranks(runs)
    return runs.repeats and runs.downloads and not known


def _on_condition(change: str, runs: RunFacts) -> str:
    """What follows the title of a change that helps only what is not made of results."""
    return _WITHOUT_RESULTS if change == _HOST and _made_of_results(runs) else ""


def _allocates(runs: RunFacts) -> bool:
    """Whether the host's work is mostly the allocation of device memory."""
    return runs.host_evidence is not None and _is_allocating(runs.host_evidence)


def _what(change: str, runs: RunFacts) -> AdvisedChange:
    """What to do for a change of what-if. Python's own work between launches needs another advice
    than work between inferences.
    """
    if runs.program.pytorch and change == "one-graph":
        return COMPILE_THE_REST if runs.compiled else PYTHON_BETWEEN
    if runs.compiled and change == "cuda-graph":
        return COMPILE_THE_REST
    if change == _HOST and _allocates(runs):
        return ALLOCATE_ONCE
    if change == _HOST and _waits_for_ranks(runs):
        return WAIT_FOR_RANKS
    if runs.program.pytorch and change == "no-host-gap":
        if runs.uploads and runs.host_gaps < _MANY_GAPS:
            return WITH_DATA_LOADER if runs.data_loader else CHANGES[change]
        return python_alone(osrt=runs.has_osrt)
    if change == "no-host-gap" and not (runs.uploads or runs.downloads):
        return _shorten(runs)
    if runs.program.pytorch and runs.program.engine and change == "cuda-graph":
        return _WHOLE_REPETITION if runs.repeats else EACH_ENGINE
    if change == "cuda-graph" and runs.kinds > 1:
        return replace(CHANGES[change], title="make a CUDA graph of each kind")
    if runs.graphs and change == "two-in-flight":
        return TWO_GRAPHS
    return CHANGES[change]


def _waits_for_ranks(runs: RunFacts) -> bool:
    """Whether the host waits for other processes, in MPI."""
    return runs.host_evidence is not None and runs.host_evidence.waits_for_ranks


def _shorten(runs: RunFacts) -> AdvisedChange:
    """How to find what the host's own work is: by a profiler of its functions where samples show
    whose code it is, else by a capture with more samples.
    """
    sampled = runs.host_evidence.sampled if runs.host_evidence is not None else ()
    command = runs.program.command
    if any(one.owner != UNKNOWN for one in sampled):
        return code_of_the_host(command)
    return nothing_to_prepare(command, osrt=runs.has_osrt, sampled=runs.has_samples)


def _unreplayed(rule: str, runs: RunFacts) -> AdvisedChange:
    """What to do about costs that rules found where nothing can be replayed."""
    between = (
        runs.program.pytorch and runs.host_gaps >= _MANY_GAPS and _UNREPLAYED[rule] == "no-host-gap"
    )
    return _what("one-graph" if between else _UNREPLAYED[rule], runs)


def _graph_of_all(change: AdvisedChange | ByEvidence | None) -> GraphOfAll | None:
    """The owner of the launches that a change puts into one CUDA graph; None if it does not put all
    of them into one.
    """
    if change is PYTHON_BETWEEN or change is COMPILE_THE_REST:
        return "python"
    return "program" if change is CHANGES["one-graph"] else None


def _idle_behind(change: str, saving_ns: int, idle: Sequence[IdleCause]) -> tuple[IdleCause, ...]:
    """The idle time that a saving is part of, where that of the change's own causes is less, or
    mostly between queued kernels; none where all idle time is less, because the GPU's work gets
    shorter too.
    """
    own, others = DECLARED[change].removes, DECLARED[change].also_shortens
    found = [one for one in idle if one.cause in own]
    total = sum(one.ns or 0 for one in found)
    if not own or not idle:
        return ()
    if total >= saving_ns:
        by_cause = {one.cause: one.ns or 0 for one in found}
        # nobody expects a graph to shorten these
        queued = by_cause.get("dispatch", 0) > by_cause.get("launch", 0)
        return tuple(sorted(found, key=lambda one: -(one.ns or 0))) if queued else ()
    for one in sorted((one for one in idle if one.cause in others), key=lambda one: -(one.ns or 0)):
        if total >= saving_ns:
            break
        found.append(one)
        total += one.ns or 0
    return (
        tuple(one for one in found if (one.ns or 0) >= _LEAST_PART * total)
        if total >= saving_ns
        else ()
    )


def _filled(findings: Sequence[Row]) -> float | None:
    """The share of the SMs that have a block while kernels run, where kernels were found to be
    small.
    """
    found = next((one for one in findings if one.text("rule") == _UNDER_FILLED), None)
    share = None if found is None else json.loads(found.text("evidence")).get("busy_sms")
    return float(share) if isinstance(share, int | float) else None


def _groups(finding: Row) -> int:
    """How many places a finding is about: one, or of a rule that has one finding an engine, its
    layers or groups of them.
    """
    number = (
        json.loads(finding.text("evidence")).get("number")
        if finding.text("rule") in _MANY_PLACES
        else None
    )
    return number if isinstance(number, int) else 1


def _at_most_ns(row: Row, tables: Mapping[str, Table], units: float, *, repeats: bool) -> int:
    """The most that a rule's findings may save per unit: their cost, limited for copies to the
    other work that can hide them; in a loop that is all the rest of the time.
    """
    cost = row.maybe_integer("cost_ns") or 0
    if row.text("rule") == _OVERLAP and repeats:
        mine = (one for one in tables["findings"] if one.text("rule") == _OVERLAP)
        cost = cost or sum(one.maybe_integer("cost_ns") or 0 for one in mine)
        cost = _hidden_ns(cost, sum(one.integer("window_ns") for one in tables["device_times"]))
    elif row.text("rule") == _OVERLAP:
        cost = min(
            cost,
            sum(
                (one.maybe_integer("busy_ns") or 0) - (one.maybe_integer("copies_ns") or 0)
                for one in tables["device_times"]
            ),
        )
    return round(cost / units) if units else 0


def _title(rule: str, title: str, evidence: Sequence[Mapping[str, object]]) -> str:
    """What to do. For findings inside a region, only about the kinds of blocks that were found
    split there.
    """
    named = in_pieces(evidence) if rule == IN_A_REGION else ""
    return f"fuse {named} inside the region" if named else title


def _comes_back(evidence: Sequence[Mapping[str, object]]) -> bool:
    """Whether copies from the GPU take about as long as those to it, or longer, by the costliest
    finding.
    """
    told = [evidence[0].get(name) for name in ("download_ns", "upload_ns")] if evidence else []
    known = [float(one) for one in told if isinstance(one, int | float)]
    return len(known) > 1 and known[0] >= _BACK * known[1]


def _rule(
    row: Row, runs: RunFacts, findings: Sequence[Row], at_most: int, unit_time: UnitTime | None
) -> Action | None:
    rule = row.text("rule")
    if (
        row.text("outcome") != "found"
        or not at_most
        or unit_time is None
        or at_most < LEAST_SHARE * unit_time.ns
    ):
        return None
    unit_ns = unit_time.ns
    in_loop = rule == _OVERLAP and runs.repeats
    if (rule in _UNREPLAYED or in_loop) and unit_time.with_pauses_ns > PAUSES * unit_ns:
        unit_ns = unit_time.with_pauses_ns
    if _UNREPLAYED.get(rule) == _HOST and (ahead := _prepared_ahead(runs)):
        at_most = _hidden_ns(at_most, unit_ns, ahead)
    mine = [one for one in findings if one.text("rule") == rule]
    filled = _filled(findings) if rule == _UNDER_FILLED else None
    if at_most < LEAST_SHARE * unit_ns or not mine or (filled is not None and filled >= _FULL):
        return None
    places = sum(_groups(one) for one in mine) + row.integer("left_out")
    change = _unreplayed(rule, runs) if rule in _UNREPLAYED else RULES.get(rule)
    condition = _on_condition(_UNREPLAYED.get(rule, ""), runs)
    if in_loop and (_waits_for_ranks(runs) or _comes_back(_evidence(mine, rule))):
        change = KEEP_ON_GPU  # what goes up may be what came down, by way of another rank
    elif in_loop:
        change, condition = COPY_AHEAD, _WITHOUT_RESULTS if runs.downloads else ""
    made = (
        How(f"nsysmap rules show {rule}")
        if change is None
        else how(change, runs.program, _evidence(mine, rule))
    )
    return Action(
        name=rule,
        title=(
            rule
            if change is None
            else worded(_title(rule, change.title, _evidence(mine, rule)), repetitions=runs.repeats)
            + condition
        ),
        saving=Figure(at_most, 0, at_most),
        share=at_most / unit_ns,
        basis="rule",
        throughput_only=rule in (_UNDER_FILLED, _OVERLAP) and not in_loop,
        places=places,
        paste=made.paste,
        paste_pytorch=made.paste_pytorch,
        change=made.change,
        paste_brief=made.paste_brief,
        change_brief=made.change_brief,
        rules=(rule,),
        filled=filled,
        host_evidence=(runs.host_evidence if _UNREPLAYED.get(rule) == "no-host-gap" else None),
        after_results=_UNREPLAYED.get(rule) == _HOST and _made_of_results(runs),
        graph_of_all=_graph_of_all(change),
    )
