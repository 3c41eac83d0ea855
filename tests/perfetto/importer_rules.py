"""What Perfetto's importer asks of a trace, as its reference of synthetic track events and its
protos tell it, checked without nsysmap.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

_CLEARED, _NEEDED = 1, 2
_BEGIN, _END, _COUNTER = 1, 2, 4
_INT32, _INT64 = 2**31, 2**63
_INTERNED = (
    "event_categories",
    "event_names",
    "debug_annotation_names",
    "debug_annotation_string_values",
)


def broken_rules(trace: Any) -> list[str]:
    """What the importer would drop, count as an error or show wrongly; ``trace`` has no compressed
    packets any more.
    """
    return [*_tracks(trace), *_texts(trace), *_events(trace), *_flows(trace)]


def _tracks(trace: Any) -> Iterator[str]:
    """A track is declared once, after its parent, with an id that is not 0; siblings differ in
    name, or the UI merges them.
    """
    known: dict[int, Any] = {}
    threads: set[tuple[int, int]] = set()
    for packet in trace.packet:
        if not packet.trusted_packet_sequence_id:
            yield "a packet of no sequence"
        if packet.HasField("track_event") and packet.track_event.track_uuid not in known:
            yield f"an event on track {packet.track_event.track_uuid} before the track"
        if not packet.HasField("track_descriptor"):
            continue
        one = packet.track_descriptor
        if one.uuid in (0, *known):
            yield f"track {one.uuid} is 0 or declared twice"
        if one.parent_uuid and one.parent_uuid not in known:
            yield f"track {one.uuid} before its parent {one.parent_uuid}"
        if one.HasField("thread"):
            at = (one.thread.pid, one.thread.tid)
            if (
                at in threads
                or not 0 < one.thread.tid < _INT32
                or one.thread.pid != known[one.parent_uuid].process.pid
            ):
                yield (
                    f"thread {at} is declared twice, is no thread or has another process as its"
                    " parent"
                )
            threads.add(at)
        if one.HasField("process") and not 0 < one.process.pid < _INT32:
            yield f"process {one.process.pid}"
        if one.HasField("counter") and not one.counter.unit_name and not one.counter.unit:
            yield f"counter {one.name} has no unit"
        if not one.name or (
            (parent := known.get(one.parent_uuid))
            and parent.child_ordering == 3
            and not one.HasField("sibling_order_rank")
        ):
            yield f"track {one.uuid} has no name, or no rank among its siblings"
        known[one.uuid] = one
    names = Counter(
        (one.parent_uuid, one.name) for one in known.values() if one.name != "(at the same time)"
    )
    yield from (
        f"{count} tracks of {parent} are called {name}"
        for (parent, name), count in names.items()
        if count > 1
    )
    ranks = Counter((one.parent_uuid, one.sibling_order_rank) for one in known.values())
    yield from (
        f"{count} tracks of {parent} have rank {rank}"
        for (parent, rank), count in ranks.items()
        if count > 1
    )


def _texts(trace: Any) -> Iterator[str]:
    """An interned text has one number, is there before it is used and after the state was cleared;
    no text has control characters.
    """
    held: dict[int, dict[str, dict[int, str]]] = {}
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & _CLEARED:
            held[sequence] = {kind: {} for kind in _INTERNED}
        if packet.sequence_flags & _NEEDED and sequence not in held:
            yield "a packet needs interned texts that were never begun"
        texts = held.get(sequence, {kind: {} for kind in _INTERNED})
        for kind in _INTERNED:
            for one in getattr(packet.interned_data, kind):
                text = one.str.decode("utf-8") if kind.endswith("values") else one.name
                if not one.iid or texts[kind].setdefault(one.iid, text) != text:
                    yield f"{kind} {one.iid} is 0 or has two texts"
                yield from (
                    f"control character {char!r} in {kind}"
                    for char in text
                    if unicodedata.category(char) in ("Cc", "Cs")
                )
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        used = [("event_names", event.name_iid)] if event.type == _BEGIN else []
        used += [("event_categories", iid) for iid in event.category_iids]
        used += [("debug_annotation_names", one.name_iid) for one in event.debug_annotations]
        used += [
            ("debug_annotation_string_values", one.string_value_iid)
            for one in event.debug_annotations
            if one.string_value_iid
        ]
        if used and not packet.sequence_flags & _NEEDED:
            yield "an event uses interned texts and does not say so"
        yield from (
            f"{kind} {iid} is used and not there" for kind, iid in used if iid not in texts[kind]
        )
    for packet in trace.packet:
        name = packet.track_descriptor.name
        yield from (
            f"control character {char!r} in a track's name"
            for char in name
            if unicodedata.category(char) in ("Cc", "Cs")
        )


def _events(trace: Any) -> Iterator[str]:
    """Times are at most 2^63 ns, on the default clock; of a track they do not go back, and every
    slice that begins ends in it.
    """
    declared = {
        one.track_descriptor.uuid: one.track_descriptor
        for one in trace.packet
        if one.HasField("track_descriptor")
    }
    last: dict[int, int] = {}
    depth: Counter[int] = Counter()
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event, at = packet.track_event, packet.timestamp
        if not packet.HasField("timestamp") or at >= _INT64 or packet.timestamp_clock_id:
            yield f"an event at {at} of clock {packet.timestamp_clock_id}"
        if at < last.get(event.track_uuid, 0):
            yield f"an event at {at} on a track that had one at {last[event.track_uuid]}"
        last[event.track_uuid] = at
        counts = event.track_uuid in declared and declared[event.track_uuid].HasField("counter")
        if event.type not in (_BEGIN, _END, _COUNTER) or (event.type == _COUNTER) != counts:
            yield f"an event of type {event.type} on {'a counter' if counts else 'no counter'}"
        if event.type == _COUNTER and not event.HasField("counter_value"):
            yield "a counter without its value"
        depth[event.track_uuid] += {_BEGIN: 1, _END: -1}.get(event.type, 0)
        if depth[event.track_uuid] < 0:
            yield f"a slice of track {event.track_uuid} ends that never began"
    yield from (
        f"{left} slices of track {uuid} never end" for uuid, left in depth.items() if left > 0
    )


def _flows(trace: Any) -> Iterator[str]:
    """A flow begins once and ends once, and not before; at the same time, what begins it stands
    first in the file.
    """
    begun: dict[int, int] = {}
    ended: set[int] = set()
    events = [
        (packet.timestamp, packet.track_event)
        for packet in trace.packet
        if packet.HasField("track_event")
    ]
    for _, event in sorted(events, key=lambda one: one[0]):
        for flow in event.flow_ids:
            if flow in begun or not flow:
                yield f"flow {flow} is 0 or begins twice"
            begun[flow] = 1
        for flow in event.terminating_flow_ids:
            if flow not in begun or flow in ended:
                yield f"flow {flow} ends {'twice' if flow in ended else 'before it begins'}"
            ended.add(flow)
    yield from (f"flow {flow} never ends" for flow in begun.keys() - ended)
