"""Facts about the trace itself: what it contains, what it hides, how CUDA graphs were traced."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nsysmap.core.groups import distinct, numbered
from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import CAPTURE
from nsysmap.names.decode import decode
from nsysmap.trace.gpu_work import gpu_column, gpu_work
from nsysmap.trace.inferences.recurrence import nothing_recurs
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.lacking import gpu_unrecorded
from nsysmap.trace.launches import gather
from nsysmap.trace.model import Trace
from nsysmap.trace.nvtx_ranges import MYELIN, TENSORRT

_PYTORCH = ("at::", "c10::", "torch")  # names that are worth decoding: there may be 10^5 of them


def capture_facts(trace: Trace, tensorrt: TensorRtRanges, tensorrt_version: str | None) -> Table:
    """The one row of schema.CAPTURE."""
    kernels, calls = trace.kernels, trace.api_calls
    graph_launches = np.flatnonzero(calls.text("kind").equals("graph-launch"))
    shown = np.isin(graph_launches, kernels.ints("launch"))
    graph_kernels = int(np.count_nonzero(kernels.ints("graph_node_id") != MISSING))
    if gpu_unrecorded(trace):
        mode = trace.recording.cuda_graph_trace or "none"
    elif len(trace.cuda_graph_traces) or (
        len(graph_launches) and not shown.any() and not graph_kernels
    ):
        mode = "graph"
    else:
        mode = "node" if graph_kernels or len(graph_launches) else "none"
    work = gpu_work(trace)
    starts = [int(table.ints("start_ns")[0]) for table in (*work, calls) if len(table)]
    ends = [int(table.ints("end_ns").max()) for table in (*work, calls) if len(table)]
    domain = trace.nvtx_ranges.text("domain")
    places = {
        (process, device)
        for table in work
        for process, device in _pairs(table, "process", "device")
    }
    streams = {
        (process, stream)
        for table in work
        for process, stream in _pairs(table, "process", "stream")
    }
    row = {
        "source": trace.source,
        "nsys_version": trace.nsys_version,
        "schema_version": trace.schema_version,
        "form": trace.recording.form,
        "duration_ns": max(ends) - min(starts) if starts else 0,
        "kernels": len(kernels),
        "memcpys": len(trace.memcpys),
        "memsets": len(trace.memsets),
        "graph_launches": len(graph_launches),
        "cuda_graph_traces": len(trace.cuda_graph_traces),
        "graph_kernels": graph_kernels,
        "cuda_graph_nodes": len(trace.cuda_graph_nodes),
        "cuda_graph_trace": mode,
        "has_tensorrt_ranges": bool(domain.equals(TENSORRT).any()) or len(tensorrt.calls) > 0,
        "has_layer_ranges": len(tensorrt.layers) > 0,
        "has_myelin_ranges": bool(domain.equals(MYELIN).any()),
        "has_pytorch": has_pytorch(trace),
        "has_api_calls": len(calls) > 0,
        "has_syncs": len(trace.syncs) > 0 or bool(calls.text("kind").equals("sync").any()),
        "has_osrt": len(trace.osrt_calls) > 0,
        "nothing_recurs": nothing_recurs(trace),
        "has_cpu_samples": trace.cpu_samples.tables is not None,
        "processes": len({process for process, _ in places}),
        "threads": len(distinct(calls.ints("thread"))),
        "streams": len(streams),
        "devices": len({device for _, device in places}),
        "dropped_rows": sum(dropped.rows for dropped in trace.dropped),
        "unmatched_launches": int(np.count_nonzero(kernels.ints("launch") == MISSING)),
        "overhead_ns": _overhead(trace),
        "tensorrt_version": tensorrt_version,
        "environment_tensorrt": (
            trace.recording.environment_tensorrt or trace.recording.output.trtexec_version
        ),
        "host": host_program(trace, {process for process, _ in places}),
    }
    return Table.of_rows(CAPTURE, [row])


def has_pytorch(trace: Trace) -> bool:
    """Whether a kernel is PyTorch's own, or a range is of one of its operators
    (torch.autograd.profiler.emit_nvtx).
    """
    kernels = any(
        decode(name).family == "pytorch"
        for name in trace.kernels.text("name").values
        if any(word in name for word in _PYTORCH)
    )
    return kernels or bool(
        trace.nvtx_ranges.text("name").where(lambda name: name.startswith("aten::")).any()
    )


def host_program(trace: Trace, processes: Collection[int]) -> str | None:
    """The kind of program that these processes run (see host_program.HOSTS); None unless all are
    known and of one kind.
    """
    hosts = {trace.hosts.get(process) for process in processes}
    return hosts.pop() if len(hosts) == 1 else None


def _pairs(table: Table, first: str, second: str) -> set[tuple[int, int]]:
    (left, right), _ = numbered(table.ints(first), table.ints(second))
    return set(zip(left.tolist(), right.tolist(), strict=True))


def _overhead(trace: Trace) -> int:
    """Time in which the profiler held a thread that launched GPU work, within the window of that
    work, in ns.
    """
    launched = gpu_column(trace, "launch")
    if not len(launched) or not len(trace.overheads):
        return 0
    threads = distinct(gather(trace.api_calls.ints("thread"), launched))
    begin, end = int(gpu_column(trace, "start_ns").min()), int(gpu_column(trace, "end_ns").max())
    rows = np.isin(trace.overheads.ints("thread"), threads[threads >= 0])
    start_ns = np.clip(trace.overheads.ints("start_ns")[rows], begin, end)
    end_ns = np.clip(trace.overheads.ints("end_ns")[rows], begin, end)
    return int((end_ns - start_ns).sum())
