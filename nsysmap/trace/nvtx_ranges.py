"""Reads NVTX ranges, with their domains, registered strings and payloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from nsysmap.core.groups import numbered
from nsysmap.core.table import MISSING, IntArray, Table, Text, mapped, taken
from nsysmap.core.trace_schema import NVTX_RANGES
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.trace.model import Dropped
from nsysmap.trace.raw_rows import (
    Strings,
    compact,
    kept,
    pid_of,
    process_of,
    recoded,
    zero_for_missing,
)

TENSORRT = "TensorRT"
MYELIN = "myelin-exec"
_OWN_TEXTS = {MYELIN: re.compile(r"myelinGraph[A-Z]"), TENSORRT: re.compile(r"ExecutionContext::")}
"""Texts that only the ranges of these domains have."""
_MPI_TABLES = (
    "MPI_P2P_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
)
_MPI_DOMAIN = -2  # beside the numbers that nsys gives
_PUSH_POP, _START_END, _NVTXT_PUSH_POP, _NVTXT_START_END, _DOMAIN_CREATE = 59, 60, 70, 71, 75


def ranges_table(tables: NsysTables, strings: Strings, dropped: list[Dropped]) -> Table:
    """The table `ranges`; what makes no sense is left out and counted in `dropped`."""
    raw = tables.read(
        "NVTX_EVENTS",
        (
            "start",
            "end",
            "eventType",
            "globalTid",
            "endGlobalTid",
            "textId",
            "domainId",
            "jsonTextId",
        ),
        ("text", "jsonText"),
    )
    event = raw["eventType"]
    domains = _domain_names(raw, strings)
    is_range = (
        (event == _PUSH_POP)
        | (event == _START_END)
        | (event == _NVTXT_PUSH_POP)
        | (event == _NVTXT_START_END)
    )
    rows = np.flatnonzero(is_range)
    held: dict[str, Any] = raw
    if len(rows) < len(event):
        # each is let go of before the next is made
        held = {key: taken(raw.pop(key), rows) for key in list(raw)}
    held = _with_mpi(tables, held)
    # never closed: lasts as long as the trace; 0 until 2021
    open_ended = (held["end"] == MISSING) | ((held["end"] == 0) & (held["start"] > 0))
    if open_ended.any():
        held["end"] = np.where(
            open_ended, max(int(held["end"].max()), int(held["start"].max())), held["end"]
        )
    held = kept("nvtx_ranges", held, dropped, gpu=False)
    thread = zero_for_missing(held["globalTid"])
    process = process_of(thread)
    domain_id = zero_for_missing(held["domainId"])
    name = _text_or_string(strings, held["textId"], held["text"], nullable=False)
    return Table(
        NVTX_RANGES,
        {
            "start_ns": held["start"],
            "end_ns": held["end"],
            "process": process,
            "pid": pid_of(process),
            "thread": thread,
            "domain": _domain_column(process, domain_id, domains, name),
            "name": name,
            "payload": _text_or_string(
                strings, held["jsonTextId"], held["jsonText"], nullable=True
            ),
            "push_pop": mapped(
                held["eventType"], lambda kinds: (kinds == _PUSH_POP) | (kinds == _NVTXT_PUSH_POP)
            ),
            "one_thread": (held["endGlobalTid"] <= 0) | (held["endGlobalTid"] == held["globalTid"]),
        },
    )


def _with_mpi(tables: NsysTables, held: dict[str, Any]) -> dict[str, Any]:
    """The ranges, and the calls of MPI, which nsys records as ranges of a domain of that name and
    exports to tables of their own.
    """
    for name in _MPI_TABLES:
        calls: dict[str, Any] = tables.read(name, ("start", "end", "globalTid", "textId"))
        count = len(calls["start"])
        if not count:
            continue
        alike = {"eventType": _PUSH_POP, "domainId": _MPI_DOMAIN}
        for key, column in held.items():
            if isinstance(column, Text):
                held[key] = Text(
                    np.concatenate([column.codes, np.full(count, -1, np.int32)]), column.values
                )
            else:
                held[key] = np.concatenate(
                    [column, calls.get(key, np.full(count, alike.get(key, MISSING), np.int64))]
                )
    return held


def _domain_names(raw: Mapping[str, Any], strings: Strings) -> dict[tuple[int, int], str]:
    rows = np.flatnonzero(raw["eventType"] == _DOMAIN_CREATE)
    texts = _text_or_string(strings, raw["textId"][rows], raw["text"].take(rows), nullable=True)
    processes = process_of(zero_for_missing(raw["globalTid"][rows])).tolist()
    numbers = raw["domainId"][rows].tolist()
    return {
        (process, number): text
        for process, number, text in zip(processes, numbers, texts.list(), strict=True)
        if text is not None
    }


def _domain_column(
    process: IntArray, domain_id: IntArray, names: Mapping[tuple[int, int], str], ranges: Text
) -> Text:
    """Domain ids are per process, and per report: only the name says which domain it is.

    nsys can lose the event that names a domain. TensorRT's two are then known by what their ranges
    say.
    """
    (processes, domains), codes = numbered(process, domain_id)
    texts = []
    for code, (owner, domain) in enumerate(zip(processes.tolist(), domains.tolist(), strict=True)):
        if domain == 0:
            texts.append("")
        elif domain == _MPI_DOMAIN:
            texts.append("MPI")
        else:
            name = names.get((owner, domain)) or _known_by(
                ranges.take(np.flatnonzero(codes == code))
            )
            texts.append(name or f"domain {domain}")
    return recoded(
        Text(codes.astype(np.int32), tuple(str(i) for i in range(len(texts)))), texts, ""
    )


def _known_by(ranges: Text) -> str | None:
    """The domain of TensorRT whose own ranges are among these."""
    used = [ranges.values[code] for code in np.unique(ranges.codes[ranges.codes >= 0]).tolist()]
    for domain, own in _OWN_TEXTS.items():
        if any(own.match(text) for text in used):
            return domain
    return None


def _text_or_string(strings: Strings, ids: IntArray, inline: Text, *, nullable: bool) -> Text:
    """The registered string if the row has its id, otherwise the inline text."""
    registered = strings.text(ids)
    inline = compact(inline)
    if not inline.values:
        return (
            registered
            if nullable or not (registered.codes < 0).any()
            else recoded(registered, list(registered.values), "")
        )
    index = {value: code for code, value in enumerate(registered.values)}
    if not len(registered.values) and not nullable:
        return recoded(inline, list(inline.values), "")
    lookup = np.array(
        [*(index.setdefault(value, len(index)) for value in inline.values), -1], np.int32
    )
    merged = np.where(registered.codes >= 0, registered.codes, lookup[inline.codes])
    if not nullable and (merged < 0).any():
        merged = np.where(merged < 0, index.setdefault("", len(index)), merged)
    return Text(merged.astype(np.int32), tuple(index))
