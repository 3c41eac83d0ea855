"""Reports what is missing from a trace, the reason if known, and how to capture it with the version
of nsys that wrote the trace.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsysmap.core.groups import distinct
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, BoolArray, IntArray
from nsysmap.inputs.nsys.program import older
from nsysmap.inputs.nsys.record import PERMISSION
from nsysmap.text.units import counted, percent
from nsysmap.trace.gpu_work import gpu_work
from nsysmap.trace.lost_calls import LostCalls, lost_calls
from nsysmap.trace.model import Trace
from nsysmap.trace.recording import Recording

_PRECAPTURE_SINCE = "2026.4"
_HARDWARE_TRACE_SINCE = "2025.1"
_NO_REASON = (
    "this file does not say why (exports of nsys before 2024.4 do not; --reader own reads an"
    " .nsys-rep's own messages). Mostly the user may not read the GPU's performance counters"
    f" (ERR_NVGPUCTRPERM): {PERMISSION}"
)
_TID = 0xFFFFFF  # the bits of nsys's globalTid that number the thread
_UNDER_WSL = "it was captured under WSL2: capture on Linux itself, or on Windows"
_MANY = 0.05  # of the kernel launches without a kernel: from here on it is a warning


@dataclass(frozen=True)
class Unrecorded:
    """Kernel launches that were carried out and have no kernel in the trace."""

    launches: int  # all that were carried out
    last: int  # of them without a kernel: those after the last that has one
    between: int  # and the others
    since_ns: int  # begin of the first of the last


def lacking(trace: Trace, cuda_graph_trace: str) -> tuple[Note, ...]:
    """What the reader must know about missing data; ``cuda_graph_trace`` is as in `capture`."""
    return tuple(_lacking(trace, cuda_graph_trace))


def unrecorded(trace: Trace) -> Unrecorded:
    """The kernel launches whose kernels are not in the trace; those captured into a CUDA graph were
    not carried out, and do not count.
    """
    calls = trace.api_calls
    rows = np.flatnonzero(
        calls.text("kind").equals("launch") & (calls.ints("result") == 0) & ~_capturing(trace)
    )
    missing = _without_work(trace, rows)
    orphans = int(np.count_nonzero(trace.kernels.ints("launch") == MISSING))
    if orphans >= np.count_nonzero(
        missing
    ):  # kernels that cannot be joined to launches: these may be the ones
        missing = np.zeros(len(rows), np.bool_)
    recorded = np.flatnonzero(~missing)
    last = int(recorded[-1]) + 1 if len(recorded) else 0
    after = rows[last:]
    return Unrecorded(
        launches=len(rows),
        last=len(after),
        between=int(np.count_nonzero(missing[:last])),
        since_ns=int(calls.ints("start_ns")[after[0]]) if len(after) else 0,
    )


def gpu_unrecorded(trace: Trace) -> bool:
    """Whether the host launched work, and the trace has no row of any work on a GPU."""
    if any(len(table) for table in gpu_work(trace)):
        return False
    kind = trace.api_calls.text("kind")
    asked = (kind.equals("launch") | kind.equals("copy") | kind.equals("memset")) & (
        trace.api_calls.ints("result") == 0
    )
    return bool((asked & ~_capturing(trace)).any())


def graph_tracing(trace: Trace) -> str:
    """The option of `nsys profile` that shows what runs inside CUDA graphs, with the ranges of
    those built before the collection.
    """
    version = trace.recording.nsys_version
    newer = version is not None and not older(version, _PRECAPTURE_SINCE)
    return "--cuda-graph-trace=node:nvtx-precapture" if newer else "--cuda-graph-trace=node"


def _lacking(trace: Trace, cuda_graph_trace: str) -> Iterator[Note]:
    recording = trace.recording
    if gpu_unrecorded(trace):
        yield _no_gpu(trace)
    elif cuda_graph_trace == "graph":
        launches = int(np.count_nonzero(trace.api_calls.text("kind").equals("graph-launch")))
        brief = f"The trace hides the kernels of {counted(launches, 'CUDA graph launch')}"
        told = (
            f"{brief}: it was taken with whole-graph tracing, nsys's default. Nothing is known"
            " about their layers, kernels or idle time inside."
        )
        again = (
            f"Capture again with: nsys profile {graph_tracing(trace)} … (or run the program without"
            " CUDA graphs)."
        )
        yield Note("error", f"{told} {again}", brief=brief, without_command=told)
    elif not len(trace.kernels):
        yield _no_kernels(trace)
    else:
        yield from _unrecorded_notes(trace)
    nodes_unknown = (trace.kernels.ints("graph_node_id") != MISSING).any() and not len(
        trace.cuda_graph_nodes
    )
    if nodes_unknown:
        yield Note("info", _built_before(trace))
    if len(trace.kernels) and (
        warnings := [
            warning for warning in recording.warnings if not warning.startswith("no CUDA events")
        ]
    ):
        yield Note("info", f"nsys reported at the end of the capture: {'; '.join(warnings)}.")
    if (error := recording.output.error) is not None and any(len(one) for one in gpu_work(trace)):
        yield _ended(error)
    if trace.gpu_metrics.tables is None and (recording.counters_asked_for or recording.no_counters):
        why = recording.no_counters or _NO_REASON
        yield Note(
            "warning",
            f"Hardware counters were to be sampled, and the trace has none: {why}.",
            brief="hardware counters were to be sampled, and the trace has none",
        )


def _ended(error: str) -> Note:
    """The note on a program that ended with an error after it had given the GPU work."""
    brief = f"{error}: the trace has what it did before"
    told = (
        f"{error[0].upper()}{error[1:]}, as it wrote to stderr: the trace has what it did before."
    )
    return Note("warning", f"{told} Run it without nsys first.", brief=brief)


def _no_gpu(trace: Trace) -> Note:
    recording = trace.recording
    kind = trace.api_calls.text("kind")
    launches = int(np.count_nonzero(kind.equals("launch") | kind.equals("graph-launch")))
    asked = counted(launches, "launch") if launches else "copies and memsets"
    brief = f"The trace has no GPU work, only the host's {asked}"
    told = f"{brief}: nothing can be said about the GPU."
    warned = f" nsys reported: {'; '.join(recording.warnings)}." if recording.warnings else ""
    if recording.wsl:
        why = (
            "It was captured under WSL2, where many driver versions deliver no GPU records. Capture"
            " on Linux itself, or on Windows."
        )
        remedy = _UNDER_WSL
    else:
        why = (
            "This happens under WSL2, on virtual GPUs (vGPU), with MIG or MPS, with a driver newer"
            " than nsys, or if the program was killed before the records were written. Capture on a"
            " GPU that the program has to itself, with an nsys as new as the driver."
        )
        remedy = "capture on a GPU of its own, with an nsys as new as the driver"
    version = recording.nsys_version
    software = version is not None and not older(version, _HARDWARE_TRACE_SINCE)
    more = " Or try nsys's software tracing: -t cuda-sw,nvtx." if software else ""
    return Note("error", f"{told}{warned} {why}{more}", brief=brief, remedy=remedy)


def _no_kernels(trace: Trace) -> Note:
    recording = trace.recording
    again = f"Capture again with: nsys profile -t cuda,nvtx {graph_tracing(trace)} …"
    if any(len(table) for table in (trace.memcpys, trace.memsets)):
        brief = "The trace has copies or memsets on the GPU, but no kernels"
        why = "none ran while nsys collected, or none was recorded"
        return Note("error", f"{brief}: {why}.", brief=brief)
    if len(trace.api_calls):
        calls = f"The trace has {counted(len(trace.api_calls), 'CUDA call')}"
        told = (
            f"{calls}, but none of them launches a kernel or copies or sets memory. Nothing can be"
            " said about the GPU. Collect while the GPU has work (see --capture-range, --delay and"
            " --duration)."
        )
        return Note(
            "error",
            told,
            brief=f"{calls}, but none gives work to the GPU",
            remedy="collect while it has work (--capture-range, --delay, --duration)",
        )
    if recording.output.failure is not None:  # whatever was to be traced
        return _nothing_recorded(recording)
    if recording.traced and "Cuda" not in recording.traced:
        kinds = ", ".join(sorted(recording.traced))
        brief = f"CUDA was not traced (only {kinds})"
        told = f"{brief}: there are no CUDA calls and no GPU work."
        return Note("error", f"{told} {again}", brief=brief, without_command=told)
    if recording.traced:
        return _nothing_recorded(recording)
    ranges = (
        f"{counted(len(trace.nvtx_ranges), 'NVTX range')} and " if len(trace.nvtx_ranges) else ""
    )
    brief = f"The trace has {ranges}no CUDA calls and no GPU work"
    told = f"{brief}: CUDA was not traced, or could not be."
    return Note("error", f"{told} {again}", brief=brief, without_command=told)


def _nothing_recorded(recording: Recording) -> Note:
    """The note on a trace that was to have CUDA and has nothing of it: capturing it in the same way
    would give the same.
    """
    warned = f" ({'; '.join(recording.warnings)})" if recording.warnings else ""
    brief = "CUDA was traced, but no CUDA events were recorded"
    if recording.output.failure is not None:
        brief = f"No CUDA events were recorded: {recording.output.failure}"
        told = f"{brief}, as it wrote to stderr. Run it without nsys first."
        return Note(
            "error", told, brief=brief, remedy="run it without nsys first", about="nothing-recorded"
        )
    where = (
        " It was captured under WSL2, where this happens with many driver versions."
        if recording.wsl
        else ""
    )
    wrote = (
        " What the program wrote to stderr stands in the report (its files in the Nsight Systems"
        " GUI, or the table ProcessStreams of an export)."
        if recording.output.complained
        else ""
    )
    told = (
        f"{brief}{warned}: the program made no CUDA call while nsys collected, ran in a process"
        " that nsys does not follow (such as a service started earlier), or its driver is newer"
        f" than this nsys supports.{where}{wrote} Start the program with nsys itself, let it end"
        " by itself, and use an nsys as new as the driver."
    )
    return Note(
        "error",
        told,
        brief=brief,
        remedy="the program made no CUDA call, or nsys could not see it",
        about="nothing-recorded",
    )


def _unrecorded_notes(trace: Trace) -> Iterator[Note]:
    found = unrecorded(trace)
    if found.between:
        yield Note(
            "warning" if found.between > _MANY * found.launches else "info",
            f"{found.between:,} of {found.launches:,} kernel launches, scattered over the trace,"
            " have no kernel in it: records were lost, and the inferences around them look shorter"
            " than they were. Capture for a shorter time (--duration, --capture-range).",
            brief=(
                f"{percent(found.between, found.launches, 0)} of launches have no kernel:"
                " inferences look too short"
            ),
        )
    if found.last:
        yield Note(
            "warning" if found.last > _MANY * found.launches else "info",
            f"The last {found.last:,} of {found.launches:,} kernel launches, from"
            f" {found.since_ns / 1e9:.3f} s on, have no kernel in the trace: the capture ended, or"
            " the program was killed, before these were recorded. Inferences launched then are cut"
            " off.",
            brief=f"the last {percent(found.last, found.launches, 0)} of launches have no kernel",
        )
    yield from _lost_notes(lost_calls(trace))


def _lost_notes(lost: tuple[LostCalls, ...]) -> Iterator[Note]:
    """The notes on threads whose calls nsys lost from some moment on: what to do, and what shows
    it.
    """
    for one in lost:
        thread = f"thread {one.thread & _TID}"
        brief = f"nsys lost the CUDA calls of {thread} from {one.since_ns / 1e9:.1f} s on"
        yield Note(
            "warning",
            f"{brief}, and the kernels they launched: {one.before:,} NVTX ranges"
            f" `{one.range_name}` before hold such launches, none of {one.after:,} later ones does."
            " What ran then does not count. Let the program end by itself, or capture"
            " for a shorter time (--duration, --capture-range).",
            brief=brief,
        )


def _built_before(trace: Trace) -> str:
    told = (
        "The CUDA graphs were built before the collection began: no NVTX range shows which layer"
        " their nodes belong to, so the kernels inside are matched by name and order. "
    )
    if graph_tracing(trace).endswith("precapture"):
        return f"{told}{graph_tracing(trace)} records the ranges of such graphs."
    precapture = f"nsys {_PRECAPTURE_SINCE} with --cuda-graph-trace=node:nvtx-precapture"
    return f"{told}Start the collection before the graphs are built, or use {precapture}."


def _without_work(trace: Trace, rows: IntArray) -> BoolArray:
    """Marks the API calls without work on a GPU, by process and correlation id (two rows may share
    one).
    """
    calls = trace.api_calls
    work = gpu_work(trace)
    seen = np.zeros(len(calls) + 1, np.bool_)
    for table in work:
        seen[table.ints("launch")[table.ints("launch") >= 0]] = True
    missing = ~seen[rows]
    for process in distinct(calls.ints("process")[rows[missing]]).tolist():
        known = np.concatenate(
            [table.ints("correlation")[table.ints("process") == process] for table in work]
        )
        mine = np.flatnonzero(missing & (calls.ints("process")[rows] == process))
        missing[mine] = ~np.isin(calls.ints("correlation")[rows[mine]], known)
    return missing


def _capturing(trace: Trace) -> BoolArray:
    """Marks the API calls made while their thread captured a stream into a CUDA graph; launches
    among them are not executed.
    """
    calls = trace.api_calls
    inside = np.zeros(len(calls), np.bool_)
    api = calls.text("api")
    begins, ends = (
        np.flatnonzero(_ends_with(api.values, name)[api.codes])
        for name in ("StreamBeginCapture", "StreamEndCapture")
    )
    thread, start = calls.ints("thread"), calls.ints("start_ns")
    for one in distinct(thread[begins]).tolist():
        rows = np.flatnonzero(thread == one)
        began = np.searchsorted(start[begins[thread[begins] == one]], start[rows], "left")
        ended = np.searchsorted(start[ends[thread[ends] == one]], start[rows], "left")
        inside[rows] = began > ended
    return inside


def _ends_with(values: tuple[str, ...], name: str) -> BoolArray:
    return np.array([*(value.endswith(name) for value in values), False])
