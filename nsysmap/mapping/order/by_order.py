"""Maps kernels that no range explains to the layers of the engine that fits, with one alignment for
all inferences that launch the same kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.core.groups import distinct, numbered, rows_by_value
from nsysmap.core.records import dataclass
from nsysmap.core.table import (
    MISSING,
    BoolArray,
    CodeArray,
    FloatArray,
    IntArray,
    Table,
    Text,
    packed,
    repeated,
)
from nsysmap.inputs.engine.model import Engine, first_layers
from nsysmap.mapping.order.twins import (
    EITHER,
    SEVERAL,
    Ran,
    do_the_same,
    same_layers,
    twins_in,
    which_ran,
)
from nsysmap.mapping.streams.streams import (
    UNPROVED,
    Streams,
    align_streams,
    no_streams,
    of_other_code,
)
from nsysmap.network.loops import has_open_loops
from nsysmap.trace.inferences.find import Inferences, find_inferences, sequence_hashes
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.model import Trace
from nsysmap.trace.raw_rows import NO_PROCESS

if TYPE_CHECKING:  # what aligns is imported where ranges leave kernels to it
    from nsysmap.mapping.order.kernel_alignment import Alignment, EngineMatch
    from nsysmap.mapping.order.open_ends import OpenEnds
    from nsysmap.mapping.order.scores import KernelFacts

_LEAST = 5  # kernels; a shorter inference is no evidence for or against an engine
_RECURS = 2  # inferences; what ran less often says nothing about which engines ran
# share of a shape that its home's engine must explain where it does not fit: a warm-up with other
# tactics
_NEAR = 0.7
_MOST = 64  # shapes of a home that are placed
_ALIKE = 0.5  # share of the kernels, of inferences of which the same engine ran most
_LONGEST = 2000  # kernels of an inference, where nothing but its kernels says that it is one

TOO_FEW = "too few kernels to decide which engine they belong to"
PERHAPS = "nothing in the trace proves or disproves that this engine ran"
TOO_MANY = "the inferences of this stream differ too often from each other"
NO_FIT = "no engine of the given files can have run these kernels"
FOREIGN = (
    "launched between inferences, with a name that is not TensorRT's: the application's own kernel"
)
NO_INFERENCE = "not part of an inference of the given engine files"


@dataclass(frozen=True)
class EngineVerdict:
    """How much an engine file explains of the inferences on one home (process, context, stream),
    judged by its most frequent complete shape.
    """

    process: int
    context: int
    stream: int
    inferences: int
    engine: int
    match: EngineMatch
    chosen: bool
    # the files that explain them alike, its own among them, where nothing tells which of them ran
    several: tuple[int, ...] = ()
    shown: bool = False  # … and the layers of the first of them are shown


@dataclass(frozen=True)
class Placed:
    """One row per kernel of the trace. Kernels that were not asked for have no layer and confidence
    0.
    """

    layer: IntArray  # layer number over all engines, MISSING for none
    confidence: FloatArray  # probability of that layer; of the likeliest one where it is left empty
    probability: FloatArray  # that its engine ran, 1 where no engine was found
    by_tactic: BoolArray  # the name is that layer's tactic, besides the order
    refused: BoolArray  # of an inference that none of the engines can have run
    reason: Text
    verdicts: tuple[EngineVerdict, ...]
    wanted: BoolArray  # which kernels were asked for
    known: IntArray  # the layer that another method settled, MISSING elsewhere
    streams: Streams


@dataclass(frozen=True)
class AskedKernels:
    """The kernels to be placed; one entry per kernel of the trace."""

    wanted: BoolArray  # its layer is asked for
    known: IntArray  # its layer over all engines where another method settled it, MISSING elsewhere


@dataclass(frozen=True)
class Considered:
    """How one kernel was placed by the order."""

    engine: int
    place: int  # of the kernel in the alignment
    alignment: Alignment  # of its inference, and of all that launch the same
    inferences: int  # that many


def inferences_of(
    trace: Trace, tensorrt: TensorRtRanges, engines: Sequence[Engine]
) -> tuple[Inferences, Streams]:
    """The inferences of a trace: found by ranges and graph launches or, in processes that have
    neither, by what repeats on their streams.  Graphs of several threads that take turns within
    the program's own ranges are one step together.

    So is what a graph replayed whose launch lies before the capture: the end of an inference.
    Where the engines do not explain all of what repeats, whole threads are aligned with them: what
    that found is the second result.
    """
    from nsysmap.trace.inferences.periods import marked_graphs

    found = find_inferences(trace, tensorrt)
    marked = np.full(len(trace.kernels), MISSING, np.int64)
    by_sizes = not engines and not _tensorrt_in(trace)
    if by_sizes:
        marked = marked_graphs(trace, found)
    if (marked != MISSING).any():
        found = find_inferences(trace, tensorrt, marked, by_sizes=True)
    nothing = no_streams(len(trace.kernels))
    process = trace.kernels.ints("process")
    inside = found.membership.ints("inference") != MISSING
    tried = _Tried(engines)
    mixed = _mixed_graphs(trace, found, tried)
    if inside.all() and not len(mixed):
        return found, nothing
    shown = distinct(process[inside])
    replayed = (trace.kernels.ints("graph_node_id") != MISSING) & (
        trace.kernels.ints("launch") == MISSING
    )
    # whatever ran on a process that the report does not tell may be of those that show theirs
    untold = (process == NO_PROCESS) & (process != NO_PROCESS).any()
    rows = np.flatnonzero(~inside & ~untold & (replayed | ~np.isin(process, shown)))
    if len(rows):
        periods, open_rows = _by_periods(trace, tensorrt, tried, rows, replayed)
        marked[marked != MISSING] += periods.max(initial=-1) + 1
        periods = np.where(marked == MISSING, periods, marked)
        found = find_inferences(trace, tensorrt, periods, by_sizes=by_sizes)
    else:
        periods, open_rows = marked, rows
    open_rows = np.sort(np.concatenate([open_rows, mixed]))
    streams = align_streams(trace, open_rows, engines) if len(open_rows) else nothing
    if not streams.asked.any():
        return found, nothing
    number = np.where(
        streams.asked,
        np.where(streams.run >= 0, streams.run + periods.max(initial=-1) + 1, np.int64(MISSING)),
        periods,
    )
    return find_inferences(trace, tensorrt, _renumbered(number)), streams


def _by_periods(
    trace: Trace, tensorrt: TensorRtRanges, tried: _Tried, mine: IntArray, replayed: BoolArray
) -> tuple[IntArray, IntArray]:
    """The repetitions among these kernels (a number per kernel of the trace), and the kernels in
    them that no engine explains.
    """
    from nsysmap.mapping.order.scores import expected_kernels
    from nsysmap.trace.inferences.long_loops import long_loops
    from nsysmap.trace.inferences.passing_streams import on_one_stream
    from nsysmap.trace.inferences.periods import find_periods, unit_of_work

    engines = tried.engines
    expected = expected_kernels(engines[0]) if len(engines) == 1 else None
    in_turn = on_one_stream(trace)
    periods = find_periods(in_turn, mine, expected=expected).inference
    by_period = find_inferences(trace, tensorrt, periods)
    cut = _cut_at_known(trace, by_period, tried, periods)
    if cut is not periods:
        periods = cut
        by_period = find_inferences(trace, tensorrt, periods)
    open_rows = (
        _unexplained(trace, by_period, tried, mine[~replayed[mine]]) if engines else mine[:0]
    )
    if engines:
        return _without_alone(trace, by_period, tried, periods), open_rows
    # beside ranges or launches of hidden graphs that show inferences, a loop is a part of these
    table = by_period.table
    shown = distinct(table.ints("process")[~table.text("found_by").equals("period")])
    if in_turn is not trace:
        by_period = find_inferences(in_turn, tensorrt, periods)
    del periods, cut
    kept = unit_of_work(in_turn, by_period, turns=not _tensorrt_in(trace))
    if not _mostly(trace, mine, kept) and not _tensorrt_in(trace):
        loops = long_loops(in_turn, mine[~np.isin(trace.kernels.ints_at("process", mine), shown)])
        kept = loops if (loops != MISSING).any() else kept
    return kept, open_rows


def _mostly(trace: Trace, rows: IntArray, repeated: IntArray) -> bool:
    """Whether repetitions take most of the time of these kernels."""
    kernels = trace.kernels
    took = kernels.ints_at("end_ns", rows) - kernels.ints_at("start_ns", rows)
    return 2 * int(took[repeated[rows] != MISSING].sum()) >= int(took.sum()) > 0


def _cut_at_known(
    trace: Trace, inferences: Inferences, tried: _Tried, periods: IntArray
) -> IntArray:
    """Renumbers inferences so that one which contains a whole inference of an engine with loops,
    and more, is cut there: what an engine also ran alone is not part of something larger.

    Loops whose trips the file does not tell take any number of kernels.
    """
    open_ones = [at for at, engine in enumerate(tried.engines) if has_open_loops(engine.layers)]
    if not open_ones:
        return periods
    periods = periods.copy()
    for shapes in _homes(trace, inferences, periods != MISSING):
        known = [
            shape
            for shape in shapes[:_MOST]
            if len(shape.rows) >= _RECURS
            and any(_match(shape, tried, at)[0].accepted for at in open_ones)
        ]
        for shape in shapes[:_MOST]:
            held = next((one for one in known if _begins_in(one.codes, shape.codes) >= 0), None)
            if held is None or not shape.by_period:
                continue
            begin = _begins_in(held.codes, shape.codes)
            end = begin + len(held.codes)
            for part in (shape.rows[:, begin:end], shape.rows[:, end:]):
                if part.shape[1]:
                    new = periods.max() + 1 + np.arange(len(part))
                    periods[part] = new[:, None]
    return _renumbered(periods)


def _begins_in(part: IntArray, whole: IntArray) -> int:
    """The position in a longer sequence at which another one begins; -1 if it does not."""
    longer = len(whole) - len(part)
    if longer <= 0:
        return -1
    return next(
        (
            at
            for at in np.flatnonzero(whole[: longer + 1] == part[0]).tolist()
            if np.array_equal(whole[at : at + len(part)], part)
        ),
        -1,
    )


def _mixed_graphs(trace: Trace, found: Inferences, tried: _Tried) -> IntArray:
    """The kernels of graph launches that no range explains and that no engine explains as a whole:
    an engine may have run a part of them.
    """
    number = found.membership.ints("inference")
    graphs = found.table.text("found_by").equals("graph-launch")
    if not tried.engines or not graphs.any():
        return np.zeros(0, np.int64)
    created = np.isin(
        trace.kernels.ints("graph_node_id"), trace.cuda_graph_nodes.ints("graph_node_id")
    )
    wanted = (number >= 0) & graphs[np.maximum(number, 0)] & ~created
    mixed: list[IntArray] = []
    for shapes in _homes(trace, found, wanted):
        recurring = [
            shape
            for shape in shapes[:_MOST]
            if len(shape.rows) >= _RECURS and len(shape.codes) <= _LONGEST
        ]
        fits = [
            _match(shape, tried, at)[0] for shape in recurring for at in range(len(tried.engines))
        ]
        if fits and not any(match.accepted or match.undecided for match in fits):
            mixed.extend(shape.rows.ravel() for shape in shapes)
    return np.concatenate(mixed) if mixed else np.zeros(0, np.int64)


def _renumbered(number: IntArray) -> IntArray:
    """Renumbers without gaps."""
    used = np.flatnonzero(number != MISSING)
    number[used] = np.unique(number[used], return_inverse=True)[1].reshape(-1)
    return number


def _tensorrt_in(trace: Trace) -> bool:
    """Whether any kernel has a name that only TensorRT uses."""
    from nsysmap.advice.program import is_tensorrt
    from nsysmap.names.decode import decode

    return any(is_tensorrt(decode(name).family, name) for name in trace.kernels.text("name").values)


def _without_alone(
    trace: Trace, inferences: Inferences, tried: _Tried, periods: IntArray
) -> IntArray:
    """The numbers without those of kernels that do not repeat and that no engine can have run:
    nothing indicates that these are an inference.
    """
    alone = np.zeros(len(periods), np.bool_)
    found = periods != MISSING
    for shapes in _homes(trace, inferences, found):
        if any(len(shape.rows) > 1 for shape in shapes):
            continue
        for shape in shapes:
            if found[shape.rows[0, 0]]:
                known = len(shape.codes) <= _LONGEST and any(
                    _match(shape, tried, number)[0].accepted for number in range(len(tried.engines))
                )
                alone[shape.rows[0]] = not known
    return _renumbered(np.where(alone, np.int64(MISSING), periods))


def _unexplained(trace: Trace, inferences: Inferences, tried: _Tried, rows: IntArray) -> IntArray:
    """Of these rows, those whose thread launched a kernel outside every inference that one of the
    engines explains completely.
    """
    from nsysmap.mapping.streams.recurring import is_but_for_a_block

    explained = np.zeros(len(trace.kernels), np.bool_)
    wanted = np.zeros(len(trace.kernels), np.bool_)
    wanted[rows] = True
    for shapes in _homes(trace, inferences, wanted):
        whole = [shape for shape in shapes[:_MOST] if _wholly(shape, shapes, tried)]
        for shape in whole:
            explained[shape.rows] = not any(
                len(other.rows) >= _RECURS and is_but_for_a_block(other.codes, shape.codes)
                for other in whole
            )
    thread = trace.kernels.ints("thread")
    return rows[np.isin(thread[rows], distinct(thread[rows[~explained[rows]]]))]


def _wholly(shape: _Shape, shapes: list[_Shape], tried: _Tried) -> bool:
    """Whether one engine explains every kernel of a shape and has no layer left over."""
    found = _part_of(shape, shapes)
    if found is not None:
        return _wholly(found[0], shapes, tried)
    if len(shape.codes) > _LONGEST or (len(shape.rows) < _RECURS and not _maybe_cut(shape)):
        return False
    matches = [_match(shape, tried, number)[0] for number in range(len(tried.engines))]
    return any(match.accepted and match.placed == 1 and match.used == 1 for match in matches)


def place_by_order(
    trace: Trace,
    inferences: Inferences,
    engines: Sequence[Engine],
    asked: AskedKernels,
    streams: Streams,
) -> Placed:
    """Places the wanted kernels by their order within their inference. Threads that were aligned as
    a whole keep the layers found there.

    ``known`` is each kernel's layer (over all engines) where another method settled it, MISSING
    elsewhere: the alignment holds to it. Inferences of one home (process, context, stream) ran one
    engine: the one of ``engines`` that fits best; where none fits, no kernel of it gets a layer.
    """
    count = len(trace.kernels)
    if not asked.wanted.any() and not streams.asked.any():
        return _nothing_placed(asked, streams)
    from nsysmap.mapping.order.kernel_alignment import SURE

    wanted, known = asked.wanted & ~streams.asked, asked.known
    layer = np.full(count, MISSING, np.int64)
    confidence = np.zeros(count)
    by_tactic = np.zeros(count, np.bool_)
    probability = np.ones(count)
    refused = np.zeros(count, np.bool_)
    reasons: dict[str, int] = {}
    reason = np.full(count, -1, np.int32)
    verdicts: list[EngineVerdict] = []
    offsets = np.array(first_layers(engines))
    tried = _Tried(engines)
    for shapes in _homes(trace, inferences, wanted) if engines and wanted.any() else []:
        home, judged = _choose(shapes, tried)
        chosen = [
            _engine_of(shape, shapes, tried, home) if place < _MOST else None
            for place, shape in enumerate(shapes)
        ]
        several = _tell_apart(shapes, chosen, tried)
        found = [_settled(verdict, chosen[place], several[place]) for place, verdict in judged]
        verdicts.extend(found)
        for place, shape in enumerate(shapes):
            rows = shape.rows
            engine = chosen[place]
            if engine is not None and engine < 0:
                reason[rows] = reasons.setdefault(SEVERAL, len(reasons))
                continue
            if engine is None:
                refused[rows] = bool(found) and not any(
                    verdict.match.undecided for verdict in found
                )
                text = (
                    TOO_FEW
                    if not found or any(verdict.match.undecided for verdict in found)
                    else NO_FIT
                )
                reason[rows] = reasons.setdefault(text if place < _MOST else TOO_MANY, len(reasons))
                continue
            aligned = _believed(
                shape, shapes, tried, engine, _pins(known, rows[0], engines, engine)
            )
            sure = (aligned.layer >= 0) & (aligned.confidence >= SURE)
            layer[rows] = np.where(sure, aligned.layer + offsets[engine], np.int64(MISSING))
            unproved = _match(shape, tried, engine)[0].undecided
            same = _same_in_all(tried, several[place], aligned.layer)
            confidence[rows] = aligned.confidence * same
            by_tactic[rows] = aligned.by_tactic & sure
            probability[rows] = _probability(shape, shapes, tried, engine)
            texts = [aligned.reason(place, engines[engine]) for place in range(len(aligned.layer))]
            likely = EITHER if several[place] else PERHAPS if unproved else None
            texts = [likely if text is None else text for text in texts]
            reason[rows] = [
                -1 if text is None else reasons.setdefault(text, len(reasons)) for text in texts
            ]
    layer[~wanted], confidence[~wanted], by_tactic[~wanted], reason[~wanted] = (
        MISSING,
        0.0,
        False,
        -1,
    )
    refused &= wanted
    if streams.asked.any():
        _place_streams(
            streams, engines, asked.wanted, layer, confidence, by_tactic, reason, reasons
        )
        probability[streams.asked] = streams.probability[streams.asked]
        refused |= streams.asked & (streams.layer < 0)
        for one in streams.verdicts:
            kind = one.kind
            verdicts.extend(
                EngineVerdict(
                    *one.home,
                    kind.runs,
                    engine,
                    kind.match,
                    chosen=kind.believed and not kind.several,
                    several=kind.several,
                    shown=kind.shown,
                )
                for engine in kind.several or (kind.engine,)
            )
    why = Text(reason, tuple(reasons))
    return Placed(
        layer,
        confidence,
        probability,
        by_tactic,
        refused,
        why,
        tuple(verdicts),
        asked.wanted,
        packed(known),
        streams,
    )


def _nothing_placed(asked: AskedKernels, streams: Streams) -> Placed:
    count = len(asked.wanted)
    none, no = repeated(np.int64(MISSING), count), repeated(np.bool_(False), count)
    nought, one = repeated(np.float64(0), count), repeated(np.float64(1), count)
    return Placed(
        none, nought, one, no, no, Text(np.full(count, -1, np.int32), ()), (), no, none, streams
    )


def _place_streams(
    streams: Streams,
    engines: Sequence[Engine],
    wanted: BoolArray,
    layer: IntArray,
    confidence: FloatArray,
    by_tactic: BoolArray,
    reason: CodeArray,
    reasons: dict[str, int],
) -> None:
    """Writes the result of aligning whole threads into the arrays of all kernels, for layers that
    are certain (SURE).
    """
    from nsysmap.mapping.order.kernel_alignment import SURE

    offsets = np.array(first_layers(engines))
    rows = np.flatnonzero(streams.asked & wanted)
    sure = (streams.layer[rows] >= 0) & (streams.confidence[rows] >= SURE)
    layer[rows] = np.where(
        sure, streams.layer[rows] + offsets[np.maximum(streams.engine[rows], 0)], np.int64(MISSING)
    )
    confidence[rows] = streams.same[rows] * np.minimum(
        streams.confidence[rows], np.where(streams.unproved[rows], UNPROVED, 1.0)
    )
    by_tactic[rows] = streams.by_tactic[rows] & sure
    doubtful = np.flatnonzero(~sure | (streams.confidence[rows] < 1.0))
    for row in rows[doubtful].tolist():
        text = streams.alignment(np.array([row])).reason(0, engines[int(streams.engine[row])])
        reason[row] = -1 if text is None else reasons.setdefault(text, len(reasons))
    reason[rows[streams.unproved[rows] & (reason[rows] < 0)]] = reasons.setdefault(
        PERHAPS, len(reasons)
    )
    either = rows[sure & streams.several[rows] & (reason[rows] < 0)]
    reason[either] = reasons.setdefault(EITHER, len(reasons))
    reason[streams.several & (streams.layer < 0)] = reasons.setdefault(SEVERAL, len(reasons))
    outside = streams.asked & (streams.run < 0)
    for text, which in (
        (FOREIGN, outside & streams.foreign),
        (NO_INFERENCE, outside & ~streams.foreign),
    ):
        reason[which] = reasons.setdefault(text, len(reasons))


def considered(
    trace: Trace, inferences: Inferences, engines: Sequence[Engine], placed: Placed, kernel: int
) -> Considered | None:
    """Works out again how `place_by_order` placed a kernel; None if the kernel was not asked for,
    or if no engine can have run it.
    """
    if not engines or not placed.wanted[kernel]:
        return None
    if placed.streams.asked[kernel]:
        return _considered_stream(trace, placed.streams, kernel)
    tried = _Tried(engines)
    (shapes,) = _homes(trace, inferences, np.arange(len(trace.kernels)) == kernel)
    home, _ = _choose(shapes, tried)
    place, shape = next(
        (place, shape) for place, shape in enumerate(shapes) if (shape.rows == kernel).any()
    )
    chosen = [
        _engine_of(one, shapes, tried, home) if at < _MOST else None
        for at, one in enumerate(shapes)
    ]
    several = _tell_apart(shapes, chosen, tried)[place]
    engine = chosen[place]
    if engine is None or engine < 0:
        return None
    aligned = _believed(
        shape, shapes, tried, engine, _pins(placed.known, shape.rows[0], engines, engine)
    )
    same = _same_in_all(tried, several, aligned.layer)
    aligned = replace(aligned, confidence=aligned.confidence * same)
    return Considered(
        engine, int(np.flatnonzero((shape.rows == kernel).any(axis=0))[0]), aligned, len(shape.rows)
    )


def _considered_stream(trace: Trace, streams: Streams, kernel: int) -> Considered | None:
    if streams.run[kernel] < 0:
        return None
    mine = np.flatnonzero(streams.run == streams.run[kernel])
    rows = launch_order(trace.kernels, mine)
    inferences = len(np.unique(streams.run[streams.lane == streams.lane[kernel]]))
    return Considered(
        int(streams.engine[kernel]),
        int(np.flatnonzero(rows == kernel)[0]),
        streams.alignment(rows),
        inferences,
    )


def _pins(known: IntArray, rows: IntArray, engines: Sequence[Engine], engine: int) -> IntArray:
    """The layers of these kernels that are already known, in that engine's numbering; -1 for the
    others.
    """
    pins = known[rows] - sum(len(other.layers) for other in engines[:engine])
    return np.where((pins >= 0) & (pins < len(engines[engine].layers)), pins, -1)


@dataclass(frozen=True)
class _Shape:
    """The inferences of one home that launch the same kernels."""

    home: tuple[int, int, int]
    rows: IntArray  # inferences x kernels, rows of the kernels table in launch order
    codes: IntArray  # kernel names
    facts: tuple[KernelFacts, ...]
    complete: bool
    first: bool  # it holds the first inference of its home
    last: bool
    by_period: bool = False  # nothing but its kernels says that it is one inference
    # … then before which of their kernels the host paused, as of open_ends.pauses, in all those
    # inferences of the home that launch mostly these kernels
    paused: tuple[BoolArray, BoolArray] | None = None


def _homes(trace: Trace, inferences: Inferences, wanted: BoolArray) -> list[list[_Shape]]:
    """The shapes of each home that has wanted kernels, the most frequent first."""
    from nsysmap.mapping.order.scores import kernel_facts

    kernels = trace.kernels
    number = inferences.membership.ints("inference")
    table = inferences.table
    inside = np.flatnonzero(number >= 0)
    if len(inside) == 0:
        return []
    order = launch_order(kernels, inside, number[inside])
    of = number[order]
    begin = np.flatnonzero(np.concatenate([[True], of[1:] != of[:-1]]))
    size = np.diff(np.append(begin, len(of)))
    which = of[begin]
    places, home = numbered(*(table.ints(name)[which] for name in ("process", "context", "stream")))
    open_one = np.logical_or.reduceat(wanted[order], begin)
    shape = _shapes(kernels, order, begin, size)
    complete = table.bools("complete")[which]
    repeats = table.text("found_by").equals("period")[which]
    result = []
    rows_of_home = dict(rows_by_value(home))
    for key in np.unique(home[open_one]).tolist():
        mine = rows_of_home[key]
        found = []
        for value in np.unique(shape[mine]).tolist():
            members = mine[shape[mine] == value]
            rows = order[begin[members][:, None] + np.arange(size[members[0]])]
            by_period = bool(repeats[members].all())
            found.append(
                _Shape(
                    (int(places[0][key]), int(places[1][key]), int(places[2][key])),
                    rows,
                    kernels.text("name").codes[rows[0]].astype(np.int64),
                    kernel_facts(kernels, rows),
                    bool(complete[members].any()),
                    bool(members[0] == mine[0]),
                    bool(members[-1] == mine[-1]),
                    by_period,
                )
            )
        found.sort(key=lambda one: (-len(one.rows), -len(one.codes)))
        result.append(_with_pauses(trace, found))
    return result


def _with_pauses(trace: Trace, shapes: list[_Shape]) -> list[_Shape]:
    """Adds the host's pauses to inferences that only their kernels identify: pauses that one shape
    of an engine shows also hold for its other shapes, which launch other code in some of the same
    places.
    """
    from nsysmap.mapping.order.open_ends import pauses

    told = list(shapes)
    left = [at for at, shape in enumerate(shapes) if shape.by_period]
    while left:
        first = shapes[left[0]].codes
        alike = [
            at
            for at in left
            if len(shapes[at].codes) == len(first) and (shapes[at].codes == first).mean() >= _ALIKE
        ]
        left = [at for at in left if at not in alike]
        paused = pauses(trace, np.concatenate([shapes[at].rows for at in alike]))
        for at in alike:
            told[at] = replace(shapes[at], paused=paused)
    return told


def _shapes(kernels: Table, order: IntArray, begin: IntArray, size: IntArray) -> IntArray:
    """Numbers the inferences so that those with the same kernel names in the same order have equal
    numbers.
    """
    _, inverse = np.unique(
        sequence_hashes(kernels.text("name").codes[order], begin, size), return_inverse=True
    )
    return inverse.reshape(-1).astype(np.int64)


@dataclass(frozen=True)
class _Tried:
    """Caches matches by kernels and engine: threads that share a context mostly run the same."""

    engines: Sequence[Engine]
    matches: dict[tuple[int, bytes, bool, bool], tuple[EngineMatch, tuple[bool, bool]]] = field(
        default_factory=dict
    )
    alignments: dict[tuple[int, bytes, tuple[bool, bool], bytes], Alignment] = field(
        default_factory=dict
    )


def _choose(
    shapes: list[_Shape], tried: _Tried
) -> tuple[int | None, list[tuple[int, EngineVerdict]]]:
    """The engine that best fits the home's most frequent complete inference; None if none fits.

    And what was found of the shapes, each with its place among them.
    """
    verdicts: list[tuple[int, EngineVerdict]] = []
    usual: int | None = None
    first = next((place for place, shape in enumerate(shapes) if shape.complete), 0)
    for place in [first, *(other for other in range(min(len(shapes), _MOST)) if other != first)]:
        shape = shapes[place]
        recurs = shape.complete and len(shape.rows) >= _RECURS
        if len(shape.codes) < _LEAST or (verdicts and not recurs and usual is not None):
            continue
        best = _best(shape, tried)
        usual = best if usual is None else usual
        for number in range(len(tried.engines)):
            match = _match(shape, tried, number)[0]
            verdicts.append(
                (place, EngineVerdict(*shape.home, len(shape.rows), number, match, number == best))
            )
    return usual, verdicts


def _settled(verdict: EngineVerdict, engine: int | None, several: tuple[int, ...]) -> EngineVerdict:
    """The choice after engines with the same layers were told apart: ``engine`` ran it. If they
    cannot be told apart, the one of ``several`` whose layers are shown, or a negative number for
    none.
    """
    if engine is None or not (verdict.match.accepted or verdict.engine in several):
        return verdict
    if not several:
        return replace(verdict, chosen=engine == verdict.engine)
    return replace(verdict, chosen=False, several=several, shown=engine >= 0)


def _best(shape: _Shape, tried: _Tried) -> int | None:
    """The engine that explains the shape best; None if none can have run it.

    An engine that nothing speaks against is taken for whole inferences if it is the only such one,
    or all such ones do the same.
    """
    matches = [_match(shape, tried, number) for number in range(len(tried.engines))]
    best = max(
        range(len(matches)),
        key=lambda at: (matches[at][0].accepted, matches[at][0].share, matches[at][0].evidence),
    )
    if matches[best][0].accepted:
        return best
    possible = [
        at for at, (match, cut) in enumerate(matches) if match.undecided and cut == (False, False)
    ]
    one = len(possible) == 1 or (
        len(possible) > 1 and do_the_same([tried.engines[at] for at in possible])
    )
    return possible[0] if one and len(shape.rows) >= _RECURS else None


def _engine_of(shape: _Shape, shapes: list[_Shape], tried: _Tried, home: int | None) -> int | None:
    """The engine that ran a shape: for a cut inference that of the complete one it is part of,
    otherwise the best, otherwise the home's engine if it is close.
    """
    found = _part_of(shape, shapes)
    if found is not None:
        return _engine_of(found[0], shapes, tried, home)
    best = _best(shape, tried) if len(shape.codes) >= _LEAST else None
    if best is not None or home is None:
        return best
    near = _match(shape, tried, home)[0]
    if near.share < _NEAR or near.evidence <= 0 or has_open_loops(tried.engines[home].layers):
        return None  # of loops whose trips are not told any number of kernels would do
    from nsysmap.mapping.order.kernel_alignment import may_run_this

    known = [int(one.rows.min()) for one in shapes[:_MOST] if _match(one, tried, home)[0].accepted]
    before = int(shape.rows.max()) < min(known, default=0)
    return home if may_run_this(near, tried.engines[home], before=before) else None


def _tell_apart(
    shapes: list[_Shape], chosen: list[int | None], tried: _Tried
) -> list[tuple[int, ...]]:
    """Writes which of several engines with the same layers ran each shape. If they cannot be told
    apart: the first if all do the same, otherwise -1.

    Returns for each shape which engines nothing tells apart.
    """
    several: list[tuple[int, ...]] = [()] * len(shapes)
    for twins in twins_in(
        [(engine, shape.facts) for shape, engine in zip(shapes, chosen, strict=True)], tried.engines
    ):
        mine = [at for at, engine in enumerate(chosen) if engine is not None and engine in twins]
        sequences = []
        for at in mine:
            shape = shapes[at]
            aligned = _aligned(
                shape, shapes, tried, chosen[at] or 0, np.full(len(shape.codes), -1, np.int64)
            )
            facts = zip(aligned.layer.tolist(), shape.facts, strict=True)
            sequences.append(
                [Ran(layer, fact.name, fact.duration_ns) for layer, fact in facts if layer >= 0]
            )
        for at, engine in zip(
            mine, which_ran(sequences, [tried.engines[number] for number in twins]), strict=True
        ):
            if engine is not None:
                chosen[at] = twins[engine]
                continue
            several[at] = tuple(twins)
            either = do_the_same([tried.engines[number] for number in twins])
            chosen[at] = twins[0] if either else -1
    return several


def _same_in_all(tried: _Tried, several: Sequence[int], layer: IntArray) -> FloatArray:
    """For each kernel's layer in the first of these engines: the share of the engines that have the
    same layer; 1 if only one engine may have run.
    """
    if not several:
        return np.ones(len(layer))
    same = same_layers([tried.engines[number] for number in several], 0)
    return np.where(layer >= 0, same[layer], 1.0)


def _ends(aligned: Alignment, engine: Engine) -> OpenEnds:
    from nsysmap.mapping.order.open_ends import open_ends

    layers = engine.layers
    return open_ends(
        [layers[at] if at >= 0 else None for at in aligned.layer.tolist()], aligned.explained
    )


def _part_of(shape: _Shape, shapes: list[_Shape]) -> tuple[_Shape, int] | None:
    """The complete inference that a possibly cut one is the end or the beginning of, and the kernel
    at which it starts.
    """
    size = len(shape.codes)
    if not _maybe_cut(shape):
        return None
    for full in shapes[:_MOST]:
        longer = len(full.codes) - size
        if (
            longer > 0
            and full.complete
            and shape.first
            and np.array_equal(full.codes[longer:], shape.codes)
        ):
            return full, longer
        if (
            longer > 0
            and full.complete
            and shape.last
            and np.array_equal(full.codes[:size], shape.codes)
        ):
            return full, 0
    return None


def _aligned(
    shape: _Shape, shapes: list[_Shape], tried: _Tried, number: int, pins: IntArray
) -> Alignment:
    """The alignment of a shape; for a cut inference that of the complete one it is part of."""
    found = _part_of(shape, shapes)
    if found is not None:
        full, begin = found
        whole = _align(full, tried, number, (False, False), np.full(len(full.codes), -1, np.int64))
        return whole.part(begin, begin + len(shape.codes))
    cut = _match(shape, tried, number)[1] if _maybe_cut(shape) else (False, False)
    return _align(shape, tried, number, cut, pins)


def _believed(
    shape: _Shape, shapes: list[_Shape], tried: _Tried, number: int, pins: IntArray
) -> Alignment:
    """The same alignment with each confidence limited to that of the engine having run and, if only
    its kernels mark the inference, to what the surroundings support.
    """
    from nsysmap.mapping.order.open_ends import (
        LEAST_ALIKE,
        border_chances,
        most_of_anything,
    )

    aligned = _aligned(shape, shapes, tried, number, pins)
    confidence = aligned.confidence
    if shape.by_period:
        ends = _ends(aligned, tried.engines[number])
        border = None
        if ends.open and shape.paused is not None and len(shape.paused[0]) >= LEAST_ALIKE:
            border = border_chances(shape.paused, ends.known)
        most = most_of_anything(ends, border)
        confidence = np.minimum(confidence, np.where(aligned.by_tactic, 1.0, most))
    return replace(aligned, confidence=confidence * _probability(shape, shapes, tried, number))


def _probability(shape: _Shape, shapes: list[_Shape], tried: _Tried, number: int) -> float:
    """The probability that this engine, or one known to be the shape's, ran the shape: a warm-up
    may use other tactics.
    """
    found = _part_of(shape, shapes)
    match = _match(found[0] if found is not None else shape, tried, number)[0]
    if match.accepted:
        return match.probability
    if match.undecided:
        return min(UNPROVED, match.probability)
    accepted = [
        known.probability
        for known in (_match(one, tried, number)[0] for one in shapes[:_MOST] if one.complete)
        if known.accepted
    ]
    return of_other_code(match, tried.engines[number], max(accepted, default=UNPROVED))


def _align(
    shape: _Shape, tried: _Tried, number: int, cut: tuple[bool, bool], pins: IntArray
) -> Alignment:
    from nsysmap.mapping.order.kernel_alignment import align_inference

    key = (number, shape.codes.tobytes(), cut, pins.tobytes())
    if key not in tried.alignments:
        tried.alignments[key] = align_inference(
            shape.facts, tried.engines[number], cut=cut, pins=pins
        )
    return tried.alignments[key]


def _maybe_cut(shape: _Shape) -> bool:
    """Marks shapes that may be cut: only the first and the last inference of a home can be, and
    each is cut at another place.
    """
    return len(shape.rows) == 1 and (shape.first or shape.last)


def _match(shape: _Shape, tried: _Tried, number: int) -> tuple[EngineMatch, tuple[bool, bool]]:
    """How an engine explains a shape, and at which ends the shape must be cut for that, as little
    as possible.
    """
    from nsysmap.mapping.order.kernel_alignment import engine_match

    maybe = _maybe_cut(shape)
    key = (number, shape.codes.tobytes(), maybe and shape.first, maybe and shape.last)
    if key not in tried.matches:
        found = engine_match(shape.facts, tried.engines[number]), (False, False)
        for cut in ((True, False), (False, True), (True, True)):
            if not found[0].accepted and cut[0] <= key[2] and cut[1] <= key[3]:
                match = engine_match(shape.facts, tried.engines[number], cut=cut)
                found = (
                    (match, cut)
                    if (match.accepted, match.share) > (found[0].accepted, found[0].share)
                    else found
                )
        tried.matches[key] = found
    return tried.matches[key]
