"""The trace as read: its tables, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.trace.cpu_samples import CpuSamples
from nsysmap.trace.gpu_metrics import GpuMetrics
from nsysmap.trace.recording import Recording


@dataclass(frozen=True)
class Dropped:
    """Rows that made no sense and were left out, and why."""

    table: str
    reason: str
    rows: int


@dataclass(frozen=True)
class Trace:
    """A profiler's file, read."""

    source: str  # file name, for messages
    nsys_version: str | None  # of the nsys that captured it, as far as it says
    schema_version: str | None
    kernels: Table  # GPU_KERNELS
    api_calls: Table
    nvtx_ranges: Table
    memcpys: Table
    memsets: Table
    syncs: Table
    event_records: Table
    cuda_graph_nodes: Table
    cuda_graph_traces: Table
    overheads: Table
    osrt_calls: Table
    devices: Table
    dropped: tuple[Dropped, ...]
    absent: tuple[str, ...]  # which of these tables the report does not have at all
    gpu_metrics: GpuMetrics = field(default_factory=GpuMetrics)
    cpu_samples: CpuSamples = field(default_factory=CpuSamples)
    # what the report says of how it was captured
    recording: Recording = field(default_factory=Recording)
    hosts: Mapping[int, str] = field(default_factory=dict)  # what each process is, see host_program
    notes: tuple[Note, ...] = ()  # what the reader must know of how it was read
