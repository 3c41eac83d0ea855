"""Writes an analysis as a Perfetto trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nsysmap.analysis import Analysis
from nsysmap.base.output_file import replacing
from nsysmap.base.table import MISSING, IntArray
from nsysmap.base.terminal import escaped
from nsysmap.names.decode import decode, summary
from nsysmap.page.events import Events, events_of
from nsysmap.page.windows import windows_of
from nsysmap.perfetto.slices import changes, rows
from nsysmap.perfetto.wire import Interned, Track, counter, process, ranked, thread, track
from nsysmap.report.words import CAUSES

SUFFIXES = (".perfetto-trace", ".pftrace")
_GPU_WORK = ("kernels", "copies", "fills", "graphs")
_LEFT_OUT = 1 << 62  # kernels beyond which a trace would not be shown whole


@dataclass(frozen=True)
class Said:
    """One slice: when, what it says, and the flows that start and end at its begin."""

    start: int
    end: int
    said: bytes
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


@dataclass
class _Trace:
    """The packets, written as they are made; first the tracks, then what is interned, then the events."""

    tracks: list[bytes] = field(default_factory=list)
    interned: Interned = field(default_factory=Interned)
    slices: list[tuple[int, list[Said]]] = field(default_factory=list)
    counters: list[tuple[int, list[tuple[int, int]]]] = field(default_factory=list)
    last: int = 0

    def add(self, name: str, parent: int | None = None, more: bytes = b"") -> int:
        """A new track; returns its id."""
        self.last += 1
        self.tracks.append(track(self.last, name, parent, more=ranked(self.last) + more))
        return self.last

    def put(self, file: BinaryIO) -> None:
        """Write all of it."""
        parts = [(uuid, said, rows((one.start, one.end, number) for number, one in enumerate(said))) for uuid, said in self.slices]
        further = {uuid: [uuid, *(self._beside(uuid) for _ in found[1:])] for uuid, _, found in parts}
        file.write(b"".join(self.tracks))
        file.write(self.interned.packet())
        for uuid, said, found in parts:
            for on, steps in zip(further[uuid], found, strict=False):
                file.writelines(_packets(Track(on), said, steps))
        for uuid, values in self.counters:
            on_track = Track(uuid)
            file.writelines(on_track.value(at, value) for at, value in values)

    def _beside(self, uuid: int) -> int:
        return self.add("(at the same time)", uuid)


def _packets(on: Track, said: list[Said], steps: list[tuple[int, int]]) -> Iterator[bytes]:
    for at, number in steps:
        if number < 0:
            yield on.end(at)
        else:
            one = said[number]
            yield on.begin(at, one.said, one.starts, one.ends)


def write_trace(analysis: Analysis, path: Path) -> None:
    """Write the trace to ``path``, whole or not at all; times are ns since the first event of the capture."""
    events = events_of(analysis.tables, windows_of(analysis.tables, _LEFT_OUT))
    made = _Trace()
    _inferences(made, analysis, events)
    _gpus(made, analysis, events)
    _threads(made, events)
    with replacing(path) as fresh, fresh.open("wb") as file:
        made.put(file)


def _inferences(made: _Trace, analysis: Analysis, events: Events) -> None:
    table = events.tables["inferences"]
    by_thread: dict[int, list[Said]] = {}
    rows_of = zip(table["start"].tolist(), table["end"].tolist(), table["thread"].tolist(), table["engine"].tolist(), strict=True)
    for number, (start, end, on, engine) in enumerate(rows_of):
        names = {"engine": escaped(analysis.engines[engine].source) if 0 <= engine < len(analysis.engines) else None}
        state = "warm-up" if table["warmup"][number] else None if table["complete"][number] else "cut by the capture"
        said = made.interned.slice(f"inference {number}", "inference", {**names, "set apart": state})
        by_thread.setdefault(on, []).append(Said(start, end, said))
    for on, said_of in by_thread.items():
        name = f"inferences of thread {events.threads[on]['tid']}" if on >= 0 else "inferences"
        made.slices.append((made.add(name), said_of))


def _gpus(made: _Trace, analysis: Analysis, events: Events) -> None:
    names = {row.integer("device"): row.text("name") for row in analysis.tables.devices}
    work = _work(made, analysis, events)
    for device in sorted({lane["device"] for lane in events.lanes}):
        parent = made.add(f"GPU {device}" + (f" ({escaped(names[device])})" if device in names else ""))
        if gaps := _gaps(made, events, device):
            made.slices.append((made.add("idle, by cause", parent), gaps))
        several = len({lane["pid"] for lane in events.lanes}) > 1
        for number, lane in enumerate(events.lanes):
            if lane["device"] == device and (said := work.get(number)):
                name = f"stream {lane['stream']}" + (f" of process {lane['pid']}" if several else "")
                made.slices.append((made.add(name, parent), said))
        for name, unit, values in _counters(analysis, device, events.origin_ns):
            made.counters.append((made.add(name, parent, counter(unit)), values))


def _work(made: _Trace, analysis: Analysis, events: Events) -> dict[int, list[Said]]:
    """The slices of each stream: layers, and in them their kernels; copies, memsets and whole graphs."""
    layers = {row.integer("layer_id"): escaped(row.text("name")) for row in analysis.tables.layers}
    said = {name: _classes(made, name, events, layers) for name in _GPU_WORK}
    by_lane: dict[int, list[tuple[int, int, str, int]]] = {}
    for name in _GPU_WORK:
        table, lane = events.tables[name], events.tables[f"{name}_classes"]["lane"]
        ends = (table["start"] + table["dur"]).tolist()
        for number, (start, end, on) in enumerate(zip(table["start"].tolist(), ends, lane[table["class"]].tolist(), strict=True)):
            by_lane.setdefault(on, []).append((start, -end, name, number))
    kernels = events.tables["kernels"]
    layer_of = events.tables["kernels_classes"]["layer_id"][kernels["class"]]
    found: dict[int, list[Said]] = {}
    for on, work in by_lane.items():
        work.sort()
        made_of: list[Said] = []
        layer_at, last = -1, (-1, -1)  # the layer's slice that grows, and of which layer and inference it is
        for start, minus_end, name, number in work:
            key = (-1, -1)
            if name == "kernels" and layer_of[number] >= 0:
                key = (int(layer_of[number]), int(kernels["inference"][number]))
            if key == (-1, -1) or key != last:
                layer_at = -1
            if key != (-1, -1) and layer_at < 0:
                layer_at = len(made_of)
                made_of.append(
                    Said(start, -minus_end, made.interned.slice(layers[key[0]], "layer", {"inference": key[1] if key[1] >= 0 else None}))
                )
            if layer_at >= 0 and -minus_end > made_of[layer_at].end:
                made_of[layer_at] = Said(made_of[layer_at].start, -minus_end, made_of[layer_at].said)
            last = key
            flow = _flow(name, number) if events.tables[name]["launch"][number] >= 0 else None
            made_of.append(
                Said(start, -minus_end, said[name][int(events.tables[name]["class"][number])], ends=() if flow is None else (flow,))
            )
        found[on] = made_of
    return found


def _flow(name: str, number: int) -> int:
    return (_GPU_WORK.index(name) << 56) + number + 1


def _classes(made: _Trace, name: str, events: Events, layers: dict[int, str]) -> list[bytes]:
    """What the slices of each class of GPU work say."""
    classes, texts = events.tables[f"{name}_classes"], events.texts[f"{name}_classes"]
    found = []
    for row in range(len(classes["lane"])):
        values: dict[str, object] = {
            key: (texts[key][data[row]] if data[row] >= 0 else None) for key, data in classes.items() if key in texts
        }
        values |= {key: (int(data[row]) if data[row] >= 0 else None) for key, data in classes.items() if key not in (*texts, "lane")}
        title = {"copies": f"memcpy {values.get('kind')}", "fills": "memset", "graphs": "CUDA graph, its kernels hidden"}.get(name, "")
        if name == "kernels":
            title = str(values.pop("name"))
            values["what it is"] = escaped(summary(decode(title)))
            layer, sure = values.pop("layer_id"), values.pop("confidence")
            values |= {"layer": layers.get(layer) if isinstance(layer, int) else None, "confidence": f"{int(str(sure)) / 1000:g}"}
            for three in ("grid", "block"):
                values[three] = " x ".join(str(values.pop(f"{three}_{axis}")) for axis in "xyz")
        found.append(made.interned.slice(title, name, values))
    return found


def _gaps(made: _Trace, events: Events, device: int) -> list[Said]:
    table, classes, texts = events.tables["gaps"], events.tables["gaps_classes"], events.texts["gaps_classes"]
    kernels = events.tables["kernels"]
    ends, starts = np.append(kernels["start"] + kernels["dur"], 0), np.append(kernels["start"], 0)
    start, end = table["from"] + ends[table["before"]], starts[table["after"]] - table["to"]
    said = []
    for row in range(len(classes["device"])):
        cause = texts["cause"][classes["cause"][row]]
        evidence = texts["evidence"][classes["evidence"][row]] if classes["evidence"][row] >= 0 else None
        said.append(made.interned.slice(cause, "idle", {"what it means": CAUSES[cause], "evidence": evidence}))
    mine = classes["device"][table["class"]] == device
    return [
        Said(begin, stop, said[of])
        for begin, stop, of in sorted(zip(start[mine].tolist(), end[mine].tolist(), table["class"][mine].tolist(), strict=True))
    ]


def _threads(made: _Trace, events: Events) -> None:
    """CUDA calls, NVTX ranges, OS runtime calls and the profiler's own work, by thread; flows to what was launched start at the calls."""
    flows: dict[int, list[int]] = {}
    for name in _GPU_WORK:
        for number, call in enumerate(events.tables[name]["launch"].tolist()):
            if call >= 0:
                flows.setdefault(call, []).append(_flow(name, number))
    parents = {pid: made.add(f"process {pid}", more=process(pid)) for pid in sorted({one["pid"] for one in events.threads})}
    parts: dict[int, list[tuple[int, int, int, Said]]] = {}
    for order, name in enumerate(("ranges", "calls", "osrt", "overheads")):
        table, classes, texts = events.tables[name], events.tables[f"{name}_classes"], events.texts[f"{name}_classes"]
        titles = texts["api" if name == "calls" else "name"]
        code = classes["api" if name == "calls" else "name"]
        domains = [texts["domain"][at] if at >= 0 else "" for at in classes["domain"].tolist()] if name == "ranges" else []
        category = {"ranges": "NVTX", "calls": "CUDA", "osrt": "OS runtime", "overheads": "profiler"}[name]
        said = [
            made.interned.slice(titles[at] if at >= 0 else "", category, {"domain": domains[row] or None} if domains else {})
            for row, at in enumerate(code.tolist())
        ]
        end = (table["start"] + table["dur"]).tolist()
        for number, (start, stop, of) in enumerate(zip(table["start"].tolist(), end, table["class"].tolist(), strict=True)):
            on = int(classes["thread"][of])
            starts = tuple(flows.get(number, ())) if name == "calls" else ()
            parts.setdefault(on, []).append((start, -stop, order, Said(start, stop, said[of], starts)))
    for on, told in enumerate(events.threads):
        if on in parts:
            more = thread(told["pid"], told["tid"], f"thread {told['tid']}")
            ordered = sorted(parts[on], key=lambda one: one[:3])
            made.slices.append((made.add(f"thread {told['tid']}", parents[told["pid"]], more), [one[3] for one in ordered]))


def _counters(analysis: Analysis, device: int, origin_ns: int) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """How many of the SMs have a block, by the grids of what runs; and how many pieces of work were launched that have not begun."""
    tables = analysis.tables
    kernels = tables.kernels.take(tables.kernels.ints("device") == device)
    if not len(kernels):
        return
    start, end = kernels.ints("start_ns") - origin_ns, kernels.ints("end_ns") - origin_ns
    sm_count = next((row.maybe_integer("sm_count") for row in tables.devices if row.integer("device") == device), None)
    if sm_count:
        blocks = kernels.ints("grid_x") * kernels.ints("grid_y") * kernels.ints("grid_z")
        share = np.minimum(blocks, sm_count) * 100 // sm_count
        yield "SMs with a block, by the grid (at most 100 % a kernel)", "%", _values(start, end, share)
    launched = kernels.ints("launch_end_ns")
    known = launched != MISSING
    begun = np.minimum(launched[known] - origin_ns, start[known])
    yield "kernels launched and not begun", "kernels", _values(begun, start[known], np.ones(int(known.sum()), np.int64))


def _values(start: IntArray, end: IntArray, height: IntArray) -> list[tuple[int, int]]:
    """The sum of the heights of what has begun and not ended."""
    at, step = np.concatenate([start, end]), np.concatenate([height, -height])
    order = np.argsort(at, kind="stable")
    return list(changes(zip(at[order].tolist(), step[order].tolist(), strict=True)))
