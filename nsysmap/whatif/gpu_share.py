"""Estimates the share of a GPU that a kernel uses while it runs, which decides whether two kernels
can run concurrently.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, IntArray, Table

# resident threads, compute capability 7.0, 8.0, 9.0, 10.0; 1024 to 1536 on smaller chips
_THREADS_OF_SM = 2048
_REGISTERS_OF_SM = 65536  # of every GPU from Kepler on
_SHARED_BYTES_OF_SM = 233_472  # 228 KiB, compute capability 9.0 and 10.0; 164 KiB on 8.0, 96 on 7.0
_MEMORY_LATENCY_S = 0.6e-6  # from a load to its data, DRAM of 7.0 to 10.0: 0.5 to 0.8


@dataclass(frozen=True)
class Needs:
    """The share of a GPU that each kernel uses while it runs; 1 if nothing is known about
    the GPU.
    """

    least: FloatArray
    """The largest of two shares: the threads, registers or shared memory that its blocks occupy at
    once, and the peak bandwidth or rate that its layer's work needs. Another kernel on the same SMs
    must leave that much.
    """
    sms: FloatArray
    """The share of the SMs that hold one of its blocks, which is what it needs if a second block on
    an SM only slows both. It is limited to the share of the bandwidth that its registers and shared
    memory can keep in flight: a kernel with few of them leaves room on its SMs. Other kernels use
    half of the room that the last wave of its blocks leaves.
    """
    most: FloatArray  # all registers and shared memory of its blocks receive data from memory


def kernel_needs(
    kernels: Table, rows: IntArray, devices: Table, device: int, roofline: FloatArray
) -> Needs:
    """What these kernels (rows) need of the device; ``roofline`` is the share of its peak that a
    kernel's layer needs, NaN if unknown.
    """
    facts = {
        name: int(devices.ints(name)[at])
        for at in np.flatnonzero(devices.ints("device") == device)[:1]
        for name in ("sm_count", "bandwidth_bytes_per_s")
    }
    sms, bandwidth = facts.get("sm_count", MISSING), facts.get("bandwidth_bytes_per_s", MISSING)
    if sms <= 0:
        return Needs(*(np.ones(len(rows)) for _ in range(3)))
    blocks, threads = np.ones(len(rows)), np.ones(len(rows))
    for axis in ("x", "y", "z"):
        blocks = blocks * np.maximum(kernels.ints(f"grid_{axis}")[rows], 1)
        threads = threads * np.maximum(kernels.ints(f"block_{axis}")[rows], 1)
    registers = threads * np.maximum(kernels.ints("registers")[rows], 1)
    shared = kernels.ints("static_shared_bytes")[rows] + kernels.ints("dynamic_shared_bytes")[rows]
    of_sm = np.max(
        [threads / _THREADS_OF_SM, registers / _REGISTERS_OF_SM, shared / _SHARED_BYTES_OF_SM],
        axis=0,
    )
    resident = np.minimum(blocks, sms / np.maximum(of_sm, 1e-9))
    on_the_way = resident * (4 * registers + shared)
    by_memory = (
        on_the_way / (bandwidth * _MEMORY_LATENCY_S) if bandwidth > 0 else np.ones(len(rows))
    )
    waves = blocks * of_sm / sms
    filled = np.where(waves > 1, waves / np.ceil(waves), 1.0)  # the last wave of blocks leaves room
    likely = np.fmax(np.minimum(waves, filled), roofline)
    return Needs(
        least=np.minimum(likely, 1.0),
        sms=np.minimum(np.minimum(blocks / sms, by_memory), (1 + filled) / 2),
        most=np.minimum(np.max([likely, blocks / sms, by_memory], axis=0), 1.0),
    )
