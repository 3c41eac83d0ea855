"""Writes an analysis as a Perfetto trace."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from nsysmap.analysis import Analysis
from nsysmap.answer.words import each
from nsysmap.core.groups import numbered, rows_by_value, runs
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.memory import give_back_freed_memory
from nsysmap.core.output_file import replacing
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray
from nsysmap.names.decode import decode, summary
from nsysmap.network.titles import called
from nsysmap.output.page.events import Events, events_of
from nsysmap.output.page.samples import Sampled, sampled_of
from nsysmap.output.page.windows import windows_of
from nsysmap.output.perfetto.slices import changes, steps
from nsysmap.output.perfetto.wire import (
    Interned,
    TrackPackets,
    compressed,
    counter,
    process,
    ranked,
    thread,
    track,
)
from nsysmap.output.words import CAUSES, ENGINES_NAME
from nsysmap.text.terminal import escaped

SUFFIXES = (".perfetto-trace", ".pftrace")
_GPU_WORK = ("kernels", "copies", "fills", "graphs")
_ON_HOST = {"ranges": "NVTX", "calls": "CUDA", "osrt": "OS runtime", "overheads": "profiler"}
_ALL = 1 << 62  # kernels up to which all events are written
_ROWS_AT_ONCE = 65536  # that become Python's integers together
_SORTED_AT_ONCE = 1 << 19  # slices of a track, and changes of a counter
# of processes and threads in Perfetto, to which 0 is the idle thread of any process
_MOST_ID = 2**31 - 1


@dataclass(frozen=True)
class _Slices:
    """The slices of one track, sorted by begin, outer before inner ones; arrays of the same
    length.
    """

    start: IntArray
    end: IntArray
    said: IntArray  # index of its texts in `_Trace.texts`
    call: IntArray  # the call whose flows begin at it; -1 for none
    flow: IntArray  # the flow that ends at it; 0 for none


Counted = Callable[[], Iterable[tuple[IntArray, IntArray]]]
"""The moments at which a counter changes, and what to, piece by piece."""


@dataclass(frozen=True)
class _SliceTrack:
    """A track of slices, which are put together when they are written, one piece of its time after
    the other: all together take more memory than the trace.
    """

    uuid: int
    first_ns: int | None  # when the first of them begins; None if there are none
    made: Callable[[], Iterable[_Slices]]


@dataclass
class _Trace:
    """The contents of the trace: its tracks, the texts of slices, and the slices and values of each
    track.
    """

    tracks: list[bytes] = field(default_factory=list)
    interned: Interned = field(default_factory=Interned)
    texts: list[bytes] = field(default_factory=list)
    slices: list[_SliceTrack] = field(default_factory=list)
    counters: list[tuple[int, int | None, Counted]] = field(default_factory=list)

    def add(self, name: str, parent: int | None = None, more: bytes = b"") -> int:
        """A new track; returns its id."""
        number = len(self.tracks) + 1
        self.tracks.append(track(number, name, parent, more=ranked(number) + more))
        return number

    def put_on(self, uuid: int, starts: IntArray, slices: Callable[[], Iterable[_Slices]]) -> None:
        """Give a track its slices, which begin at these times, in any order."""
        first_ns = int(starts.min()) if len(starts) else None
        self.slices.append(_SliceTrack(uuid, first_ns, slices))

    def say(self, name: str, category: str, annotations: Mapping[str, object]) -> int:
        """Add the texts that some slices share; returns their index in `texts`."""
        self.texts.append(self.interned.slice(name, category, annotations))
        return len(self.texts) - 1

    def put(self, file: BinaryIO, flows: _Flows) -> None:
        """Write everything, with times since the first event."""
        file.writelines(compressed(self._all(flows)))

    def _all(self, flows: _Flows) -> Iterator[bytes]:
        begun = [one.first_ns for one in self.slices if one.first_ns is not None]
        origin = min(
            begun + [first for _, first, _ in self.counters if first is not None], default=0
        )
        yield from self.tracks
        yield self.interned.packet()
        for one in self.slices:
            yield from self._packets(one.uuid, one.made(), flows, origin)
        for uuid, _, counted in self.counters:
            on = TrackPackets(uuid)
            for at, value in counted():
                for moments, values in _in_pieces(at, value):
                    yield from map(on.value, (moments - origin).tolist(), values.tolist())

    def _packets(
        self, uuid: int, slices: Iterable[_Slices], flows: _Flows, origin: int
    ) -> Iterator[bytes]:
        on = [TrackPackets(uuid)]
        # of each slice whose times are read, what else is known of it
        behind_times = deque[tuple[list[int], list[int], list[int]]]()
        first = behind = 0
        said: list[int] = []
        call: list[int] = []
        flow: list[int] = []
        for place, at, number in steps(_pairs(slices, behind_times)):
            if place == len(on):
                on.append(TrackPackets(self.add("(at the same time)", uuid)))
                yield self.tracks[-1]
            if number < 0:
                yield on[place].end(at - origin)
                continue
            if number == behind:
                said, call, flow = behind_times.popleft()
                first, behind = behind, behind + len(said)
            row = number - first
            ends = (flow[row],) if flow[row] else ()
            yield on[place].begin(at - origin, self.texts[said[row]], flows.of(call[row]), ends)


def _pairs(
    slices: Iterable[_Slices], more: deque[tuple[list[int], list[int], list[int]]]
) -> Iterator[tuple[int, int]]:
    """The times of the slices; before the first of as many as become Python's integers together,
    the rest of these is put into ``more``.
    """
    for piece in slices:
        for start, end, said, call, flow in _in_pieces(
            piece.start, piece.end, piece.said, piece.call, piece.flow
        ):
            more.append((said.tolist(), call.tolist(), flow.tolist()))
            yield from zip(start.tolist(), end.tolist(), strict=True)


def _in_pieces(*columns: IntArray) -> Iterator[tuple[IntArray, ...]]:
    for first in range(0, len(columns[0]), _ROWS_AT_ONCE):
        yield tuple(column[first : first + _ROWS_AT_ONCE] for column in columns)


@dataclass(frozen=True)
class _Flows:
    """The flows that begin at each call; a flow has the number of the GPU work to which it
    leads.
    """

    flow: IntArray  # sorted by call
    first: IntArray  # for each call the index of its first flow

    def of(self, call: int) -> list[int]:
        """The flows that begin at this call; -1 stands for no call."""
        return [] if call < 0 else self.flow[self.first[call] : self.first[call + 1]].tolist()


def write_trace(analysis: Analysis, path: Path) -> None:
    """Write the trace to ``path``, whole or not at all; times are nanoseconds since the first event
    of the capture.
    """
    windows = windows_of(analysis.tables, _ALL)
    events = events_of(analysis.tables, windows)
    give_back_freed_memory()
    made = _Trace()
    # tracks are shown in the order in which they are declared: layers above all
    _gpus(
        made, analysis, events, {one.device: one for one in sampled_of(analysis, windows, events)}
    )
    _inferences(made, analysis, events)
    of_gpus = len(made.slices)
    _threads(made, events)
    # at the same time, the call that begins a flow must be read first
    made.slices = made.slices[of_gpus:] + made.slices[:of_gpus]
    with replacing(path) as fresh, fresh.open("wb") as file:
        made.put(file, _flows(events))


def _flows(events: Events) -> _Flows:
    call = np.concatenate([events.tables[name]["launch"] for name in _GPU_WORK])
    flow = np.concatenate(
        [_numbers(events, name, np.arange(len(events.tables[name]["start"]))) for name in _GPU_WORK]
    )
    known = np.flatnonzero(flow)
    order = known[np.argsort(call[known], kind="stable")]
    return _Flows(
        flow[order],
        np.searchsorted(call[order], np.arange(len(events.tables["calls"]["start"]) + 1)),
    )


def _numbers(events: Events, name: str, rows: IntArray) -> IntArray:
    """The numbers of the flows that lead to these rows of GPU work; 0 where its call is not in the
    trace, or begins only after it.
    """
    table, calls = events.tables[name], events.tables["calls"]["start"]
    first = (_GPU_WORK.index(name) << 56) + 1
    launch = table["launch"][rows]
    known = (launch >= 0) & (np.append(calls, 0)[launch] <= table["start"][rows])
    return np.where(known, rows + first, 0)


def _inferences(made: _Trace, analysis: Analysis, events: Events) -> None:
    table, one = events.tables["inferences"], each(analysis.summary)
    several = len({lane["device"] for lane in events.lanes}) > 1
    said = []
    for number, engine in enumerate(table["engine"].tolist()):
        name = (
            escaped(analysis.engines[engine].source)
            if 0 <= engine < len(analysis.engines)
            else None
        )
        state = (
            "warm-up"
            if table["warmup"][number]
            else None
            if table["complete"][number]
            else "cut by the capture"
        )
        said.append(made.say(f"{one} {number}", one, {"engine": name, "excluded": state}))
    mine_on = {
        on: np.flatnonzero(table["thread"] == on) for on in np.unique(table["thread"]).tolist()
    }
    devices = {on: np.unique(table["device"][mine]).tolist() for on, mine in mine_on.items()}
    for on, mine in sorted(mine_on.items(), key=lambda item: (devices[item[0]], item[0])):
        gpu = (
            f" on GPU {devices[on][0]}"
            if several and len(devices[on]) == 1 and devices[on][0] >= 0
            else ""
        )
        name = f"{one}s{gpu}" + (f" of thread {events.threads[on]['tid']}" if on >= 0 else "")
        made.put_on(
            made.add(name),
            table["start"][mine],
            partial(
                _in_order, table["start"][mine], table["end"][mine], np.array(said, np.int64)[mine]
            ),
        )


def _in_order(start: IntArray, end: IntArray, said: IntArray) -> Iterator[_Slices]:
    """Slices without flows, one piece of their time after the other."""
    for begin, stop in pairwise((None, *_edges((start,)), None)):
        inside = _between(start, begin, stop)
        yield _slices(start[inside], end[inside], said[inside])


def _slices(
    start: IntArray,
    end: IntArray,
    said: IntArray,
    *,
    call: IntArray | None = None,
    flow: IntArray | None = None,
) -> _Slices:
    """The slices in order; of those with the same times, the first given is the outer one."""
    order = np.lexsort((-end, start))
    none, no_flow = np.full(len(start), -1, np.int64), np.zeros(len(start), np.int64)
    return _Slices(
        start[order],
        end[order],
        said[order],
        (none if call is None else call)[order],
        (no_flow if flow is None else flow)[order],
    )


def _gpus(made: _Trace, analysis: Analysis, events: Events, sampled: Mapping[int, Sampled]) -> None:
    names = {row.integer("device"): row.text("name") for row in analysis.tables.devices}
    layers = {
        row.integer("layer_id"): (escaped(called(row)), escaped(row.text("name")))
        for row in analysis.tables.layers
    }
    said = {name: _classes(made, name, events, layers) for name in _GPU_WORK}
    of_layer = {
        layer: made.say(title, "layer", {ENGINES_NAME: name})
        for layer, (title, name) in layers.items()
    }
    of_lane = {name: _rows_by_class(events, name, "lane") for name in _GPU_WORK}
    none = np.empty(0, np.int64)
    several = len({lane["pid"] for lane in events.lanes}) > 1
    for device in sorted({lane["device"] for lane in events.lanes}):
        parent = made.add(
            f"GPU {device}" + (f" ({escaped(names[device])})" if device in names else "")
        )
        streams = Counter(
            (lane["pid"], lane["stream"]) for lane in events.lanes if lane["device"] == device
        )
        for number, lane in enumerate(events.lanes):
            if lane["device"] == device:
                name = f"stream {lane['stream']}" + (
                    f" of process {lane['pid']}" if several else ""
                )
                name += (
                    f", context {lane['context']}"
                    if streams[lane["pid"], lane["stream"]] > 1
                    else ""
                )
                rows = {kind: held.get(number, none) for kind, held in of_lane.items()}
                starts = [events.tables[kind]["start"][mine] for kind, mine in rows.items()]
                made.put_on(
                    made.add(name, parent),
                    np.concatenate(starts),
                    partial(_work, events, rows, said, of_layer),
                )
        _gaps(made, events, device, parent)
        for name, unit, counted in _counters(analysis, device, events.origin_ns):
            # begins with a kernel or a call, which is a slice
            made.counters.append((made.add(name, parent, counter(unit)), None, counted))
        if device in sampled:
            for name, unit, at, value in _measured(sampled[device], events.origin_ns):
                first = int(at[0]) if len(at) else None
                sampled_values = partial(_sampled_at, at, value)
                uuid = made.add(name, parent, counter(unit))
                made.counters.append((uuid, first, sampled_values))


def _rows_by_class(events: Events, name: str, column: str) -> dict[int, IntArray]:
    """The rows of a table of events by what their classes say in a column: a stream, a thread."""
    table, classes = events.tables[name], events.tables[f"{name}_classes"]
    return dict(rows_by_value(classes[column][table["class"]]))


def _work(
    events: Events,
    rows_of: Mapping[str, IntArray],
    said: Mapping[str, IntArray],
    of_layer: Mapping[int, int],
) -> Iterator[_Slices]:
    """The slices of a stream: layers with their kernels inside; copies, memsets and whole
    graphs.
    """
    if sum(map(len, rows_of.values())) <= _SORTED_AT_ONCE:
        yield _work_of(events, rows_of, said, of_layer)
        return
    start, end = _times(events, rows_of)
    order = np.lexsort((end, start))
    start = start[order]
    del end
    # where something else begins, and later than all before it
    apart = np.zeros(len(order), np.bool_)
    for of in (_layers_of, _inferences_of):
        values = np.maximum(
            np.concatenate([of(events, name, rows) for name, rows in rows_of.items()]), -1
        )[order]
        apart[1:] |= values[1:] != values[:-1]
        del values
    apart[1:] &= start[1:] > start[:-1]
    cuts = np.flatnonzero(apart)
    del start, apart
    begin = 0
    while begin < len(order):
        later = cuts[np.searchsorted(cuts, begin + _SORTED_AT_ONCE) :]
        stop = int(later[0]) if len(later) else len(order)
        yield _work_of(events, _rows_at(rows_of, np.sort(order[begin:stop])), said, of_layer)
        begin = stop


def _times(events: Events, rows_of: Mapping[str, IntArray]) -> tuple[IntArray, IntArray]:
    """When these rows begin and end, table after table."""
    tables = [(events.tables[name], rows) for name, rows in rows_of.items()]
    start = np.concatenate([table["start"][rows] for table, rows in tables])
    return start, start + np.concatenate([table["dur"][rows] for table, rows in tables])


def _rows_at(rows_of: Mapping[str, IntArray], at: IntArray) -> dict[str, IntArray]:
    """The rows at these ascending positions in the concatenation of all tables."""
    found, first = {}, 0
    for name, rows in rows_of.items():
        mine = slice(*np.searchsorted(at, (first, first + len(rows))))
        found[name] = rows[at[mine] - first]
        first += len(rows)
    return found


def _layers_of(events: Events, name: str, rows: IntArray) -> IntArray:
    """The layers of rows of GPU work; only kernels have one."""
    if name != "kernels":
        return np.full(len(rows), -1, np.int64)
    return events.tables["kernels_classes"]["layer_id"][events.tables[name]["class"][rows]]


def _inferences_of(events: Events, name: str, rows: IntArray) -> IntArray:
    """The inferences of rows of GPU work; only kernels have one."""
    if name != "kernels":
        return np.full(len(rows), -1, np.int64)
    return events.tables[name]["inference"][rows]


def _work_of(
    events: Events,
    rows_of: Mapping[str, IntArray],
    said: Mapping[str, IntArray],
    of_layer: Mapping[int, int],
) -> _Slices:
    """The slices for a part of a stream that no layer extends beyond."""
    parts = []
    for name in _GPU_WORK:
        table, rows = events.tables[name], rows_of[name]
        start, flow = table["start"][rows], _numbers(events, name, rows)
        what = said[name][table["class"][rows]]
        layer, inference = _layers_of(events, name, rows), _inferences_of(events, name, rows)
        parts.append((start, start + table["dur"][rows], what, flow, layer, inference))
    start, end, what, flow, layer, inference = (
        np.concatenate(data) for data in zip(*parts, strict=True)
    )
    order = np.lexsort((end, start))
    (of_number, _), number = numbered(
        np.where(layer < 0, -1, layer)[order], np.where(inference < 0, -1, inference)[order]
    )
    numbers, first, _ = runs(number)
    known = of_number[numbers] >= 0 if len(numbers) else np.zeros(0, np.bool_)
    ends = np.maximum.reduceat(end[order], first) if len(first) else first
    titles = np.array([of_layer[one] for one in of_number[numbers][known].tolist()], np.int64)
    return _slices(
        np.concatenate([start[order][first][known], start]),
        np.concatenate([ends[known], end]),
        np.concatenate([titles, what]),
        flow=np.concatenate([np.zeros(len(titles), np.int64), flow]),
    )


def _classes(
    made: _Trace, name: str, events: Events, layers: Mapping[int, tuple[str, str]]
) -> IntArray:
    """For each class of GPU work the indices of its slices' texts in the trace's texts."""
    classes, texts = events.tables[f"{name}_classes"], events.texts[f"{name}_classes"]
    found = []
    for row in range(len(classes["lane"])):
        values: dict[str, object] = {
            key: texts[key][data[row]] if data[row] >= 0 else None
            for key, data in classes.items()
            if key in texts
        }
        values |= {
            key: int(data[row]) if data[row] >= 0 else None
            for key, data in classes.items()
            if key not in (*texts, "lane")
        }
        title = {
            "copies": f"memcpy {values.get('kind')}",
            "fills": "memset",
            "graphs": "CUDA graph (kernels not traced)",
        }.get(name, "")
        if name == "kernels":
            title = str(values.pop("name"))
            values["what it is"] = escaped(summary(decode(title)))
            layer, sure = values.pop("layer_id"), values.pop("confidence")
            assert isinstance(sure, int)
            title_of, name_of = (
                layers.get(layer, (None, None)) if isinstance(layer, int) else (None, None)
            )
            values |= {"layer": title_of, ENGINES_NAME: name_of, "confidence": f"{sure / 1000:g}"}
            for three in ("grid", "block"):
                values[three] = " x ".join(str(values.pop(f"{three}_{axis}")) for axis in "xyz")
        found.append(made.say(title, name, values))
    return np.array(found, np.int64)


def _gaps(made: _Trace, events: Events, device: int, parent: int) -> None:
    table, classes, texts = (
        events.tables["gaps"],
        events.tables["gaps_classes"],
        events.texts["gaps_classes"],
    )
    mine = np.flatnonzero(classes["device"][table["class"]] == device)
    if not len(mine):
        return
    kernels = events.tables["kernels"]
    ends, starts = np.append(kernels["start"] + kernels["dur"], 0), np.append(kernels["start"], 0)
    start, end = table["from"] + ends[table["before"]], starts[table["after"]] - table["to"]
    said = []
    for row in range(len(classes["device"])):
        cause = texts["cause"][classes["cause"][row]]
        evidence = (
            texts["evidence"][classes["evidence"][row]] if classes["evidence"][row] >= 0 else None
        )
        said.append(
            made.say(
                idle_words(cause), "idle", {"what it means": CAUSES[cause], "evidence": evidence}
            )
        )
    of = np.array(said, np.int64)[table["class"][mine]]
    starts, ends = start[mine], end[mine]
    made.put_on(made.add("idle, by cause", parent), starts, partial(_in_order, starts, ends, of))


def _threads(made: _Trace, events: Events) -> None:
    """CUDA calls, NVTX ranges, OS runtime calls and the profiler's own work, by thread; flows start
    at the calls and lead to what they launched.
    """
    said = {name: _host_classes(made, name, events) for name in _ON_HOST}
    pids = sorted({one["pid"] for one in events.threads})
    parents = {
        pid: made.add(f"process {pid}", more=process(pid) if 0 < pid <= _MOST_ID else b"")
        for pid in pids
    }
    of_thread = {name: _rows_by_class(events, name, "thread") for name in _ON_HOST}
    none = np.empty(0, np.int64)
    running = {*events.tables["inferences"]["thread"].tolist()}
    for on, told in sorted(
        enumerate(events.threads), key=lambda one: one[0] not in running
    ):  # who runs inferences stands next to the GPU
        rows = {name: held.get(on, none) for name, held in of_thread.items()}
        starts = np.concatenate([events.tables[name]["start"][mine] for name, mine in rows.items()])
        if len(starts):
            name = f"thread {told['tid']}"
            known = 0 < told["pid"] <= _MOST_ID and 0 < told["tid"] <= _MOST_ID
            uuid = made.add(
                name, parents[told["pid"]], thread(told["pid"], told["tid"], name) if known else b""
            )
            made.put_on(uuid, starts, partial(_on_host, events, rows, said))


def _on_host(
    events: Events, rows_of: Mapping[str, IntArray], said: Mapping[str, IntArray]
) -> Iterator[_Slices]:
    """The slices of a thread, one piece of its time after the other: a thread has nearly all of a
    trace.
    """
    starts = {name: events.tables[name]["start"][rows] for name, rows in rows_of.items()}
    edges = _edges(starts.values())
    for begin, stop in pairwise((None, *edges, None)):
        inside = {name: _between(start, begin, stop) for name, start in starts.items()}
        yield _on_host_of(
            events, {name: rows[inside[name]] for name, rows in rows_of.items()}, said
        )


def _edges(starts: Iterable[IntArray]) -> list[int]:
    """Times that part all these into pieces of about as many as are sorted at once."""
    every = 1 << 6
    sample = np.sort(np.concatenate([start[::every] for start in starts]))
    step = max(_SORTED_AT_ONCE // every, 1)
    edges: list[int] = np.unique(sample[step::step]).tolist()
    return edges


def _between(start: IntArray, begin: int | None, stop: int | None) -> BoolArray:
    """Which of these times lie in a span; None for an open end."""
    inside = np.ones(len(start), np.bool_)
    if begin is not None:
        inside &= start >= begin
    if stop is not None:
        inside &= start < stop
    return inside


def _on_host_of(
    events: Events, rows_of: Mapping[str, IntArray], said: Mapping[str, IntArray]
) -> _Slices:
    """The slices of these rows."""
    start, end = _times(events, rows_of)
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    of = np.concatenate(
        [said[name][events.tables[name]["class"][rows]] for name, rows in rows_of.items()]
    )[order]
    call = np.concatenate(
        [
            rows if name == "calls" else np.full(len(rows), -1, np.int64)
            for name, rows in rows_of.items()
        ]
    )[order]
    return _Slices(start, end, of, call, np.broadcast_to(np.int64(0), len(start)))


def _host_classes(made: _Trace, name: str, events: Events) -> IntArray:
    classes, texts = events.tables[f"{name}_classes"], events.texts[f"{name}_classes"]
    column = "api" if name == "calls" else "name"
    found = []
    for row, code in enumerate(classes[column].tolist()):
        domain = classes["domain"][row] if name == "ranges" else -1
        more = {"domain": (texts["domain"][domain] or None) if domain >= 0 else None}
        found.append(made.say(texts[column][code] if code >= 0 else "", _ON_HOST[name], more))
    return np.array(found, np.int64)


def _sampled_at(at: IntArray, value: IntArray) -> tuple[tuple[IntArray, IntArray]]:
    return ((at, value),)


def _counters(
    analysis: Analysis, device: int, origin_ns: int
) -> Iterator[tuple[str, str, Counted]]:
    """Counters: the share of SMs with a block, from the grids of running kernels; and the number of
    kernels launched but not begun.
    """
    if not (analysis.tables.kernels.ints("device") == device).any():
        return
    sm_count = next(
        (
            row.maybe_integer("sm_count")
            for row in analysis.tables.devices
            if row.integer("device") == device
        ),
        None,
    )
    if sm_count:
        yield (
            "SMs with a block, from grid sizes (at most 100 % per kernel)",
            "%",
            partial(_sm_shares, analysis, device, origin_ns, sm_count),
        )
    yield (
        "kernels launched but not begun",
        "kernels",
        partial(_waiting, analysis, device, origin_ns),
    )


def _sm_shares(
    analysis: Analysis, device: int, origin_ns: int, sm_count: int
) -> Iterator[tuple[IntArray, IntArray]]:
    kernels = analysis.tables.kernels
    rows = np.flatnonzero(kernels.ints("device") == device)
    blocks = kernels.ints_at("grid_x", rows)
    for axis in ("grid_y", "grid_z"):
        blocks = blocks * kernels.ints_at(axis, rows)
    share = (np.minimum(blocks, sm_count) * 100 // sm_count).astype(np.int16)
    del blocks
    start, end = (kernels.ints_at(name, rows) - origin_ns for name in ("start_ns", "end_ns"))
    return _values(start, end, share)


def _waiting(
    analysis: Analysis, device: int, origin_ns: int
) -> Iterator[tuple[IntArray, IntArray]]:
    kernels = analysis.tables.kernels
    rows = np.flatnonzero(kernels.ints("device") == device)
    launched = kernels.ints_at("launch_end_ns", rows)
    known = launched != MISSING
    start = kernels.ints_at("start_ns", rows[known]) - origin_ns
    return _values(
        np.minimum(launched[known] - origin_ns, start), start, np.ones(len(start), np.int16)
    )


def _measured(one: Sampled, origin_ns: int) -> Iterator[tuple[str, str, IntArray, IntArray]]:
    """The sampled hardware counters, one track per metric; a value is written where it changes."""
    means = f", means of {one.each} samples" if one.each > 1 else ""
    for metric, title, values in zip(one.metrics, one.titles, one.values, strict=True):
        known = np.flatnonzero(values != MISSING)
        at, value = one.start_ns[known] - origin_ns, values[known]
        steps = np.flatnonzero(np.diff(value, prepend=-1))
        unit = "MHz" if metric.unit == "hertz" else "%"
        yield f"{title}, {unit}, sampled{means}", unit, at[steps], value[steps]


def _values(
    start: IntArray, end: IntArray, height: NDArray[np.int16]
) -> Iterator[tuple[IntArray, IntArray]]:
    """The sum of the heights of everything that has begun and not ended."""
    value = 0
    for begin, stop in pairwise((None, *_edges((start, end)), None)):
        begins, ends = _between(start, begin, stop), _between(end, begin, stop)
        at = np.concatenate([start[begins], end[ends]])
        step = np.concatenate([height[begins], -height[ends]]).astype(np.int64)
        order = np.argsort(at, kind="stable")
        yield changes(at[order], step[order], before=value)
        value += int(step.sum())
