"""The least time that a GPU needs for the bytes and products of each layer.

Bytes come from device memory or from the L2 cache.  Weights of an engine that is larger than what
the cache holds come from memory at each inference; what a layer wrote is still in the cache when
the next one reads it, unless more than the cache holds was touched in between.  Of what hardware
counters measured, the smaller counts: a layer needs no more bytes than its tensors have, and no
more than were moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.timing.peak_rates import Capability
from nsysmap.timing.roofline import Device, Needed, least_ns

_CACHE_BYTES_PER_CLOCK = 64
"""Bytes per clock from the L2 cache to each SM, read or written, from Volta on ("Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking", 2018): no GPU since moves more.
"""
_TWO_PARTITIONS = frozenset({(8, 0), (9, 0), (10, 0), (10, 1), (10, 3)})
"""Architectures whose L2 cache has two partitions, each of which caches what its own SMs read (A100
whitepaper), so that data read by all SMs takes twice its size. Sampled counters of an H200 (60 MB)
agree: all of 54 MB of weights came from memory at each inference.
"""
_LARGEST_CACHE = 256 << 20
"""Assumed if the trace does not give the cache's size: more than any GPU has."""


@dataclass(frozen=True)
class LeastTime:
    """The least time for one execution of a layer, with its parts; None if unknown."""

    memory_bytes: int | None = None  # that come from or go to device memory
    memory_ns: int | None = None
    cache_ns: int | None = None  # all bytes, at the rate of the L2 cache
    compute_ns: int | None = None
    source: str | None = None  # counters, model or weights

    @property
    def least_ns(self) -> int | None:
        """The longest of the parts."""
        known = [one for one in (self.memory_ns, self.cache_ns, self.compute_ns) if one is not None]
        return max(known) if known and self.source else None

    @property
    def limit(self) -> str | None:
        """The part that is longest: device-memory, l2-cache or arithmetic."""
        if self.least_ns is None:
            return None
        if self.compute_ns == self.least_ns:
            return "arithmetic"
        return "device-memory" if self.memory_ns == self.least_ns else "l2-cache"


@dataclass(frozen=True)
class Measurement:
    """Hardware counters of a layer, per inference; None if there are none."""

    dram_bytes: int | None = None
    tensor_share: float | None = None  # of the cycles, tensor cores were active


def least_time(
    need: Needed,
    device: Device,
    *,
    time_ns: int | None,
    from_memory: int | None,
    weight_bytes: int | None,
    counted: Measurement,
) -> LeastTime:
    """The least time of a layer; ``from_memory`` is the number of its bytes that the cache cannot
    hold.
    """
    moved = need.bytes_moved
    known = moved if moved is not None else weight_bytes
    memory = from_memory
    source = None if known is None else "model" if moved is not None else "weights"
    if counted.dram_bytes is not None:
        memory = counted.dram_bytes if known is None else min(counted.dram_bytes, known)
        source = "counters"
    compute_ns = least_ns(need.flops, _peak(need, device))
    if counted.tensor_share is not None and time_ns and need.macs != 0:
        busy_ns = round(counted.tensor_share * time_ns)
        compute_ns = busy_ns if compute_ns is None else min(busy_ns, compute_ns)
        source = "counters"
    found = LeastTime(
        memory,
        least_ns(memory, device.bandwidth_bytes_per_s),
        least_ns(known, _cache_rate(device)),
        compute_ns,
        source or (None if compute_ns is None else "model"),
    )
    return _not_longer(found, time_ns)


def _not_longer(found: LeastTime, time_ns: int | None) -> LeastTime:
    """The least time limited to the measured time: data that the cache held after all does not
    count, and nothing is known of a layer that does less work than its file says.
    """
    if not time_ns or found.least_ns is None or found.least_ns <= time_ns:
        return found
    if max(found.cache_ns or 0, found.compute_ns or 0) <= time_ns:
        return LeastTime(None, None, found.cache_ns, found.compute_ns, found.source)
    return LeastTime()


def _peak(need: Needed, device: Device) -> float | None:
    """The highest rate for the layer's type: for products that of tensor cores, even if they were
    idle.
    """
    if not need.macs:
        return device.peak_flops_per_s(need.precision or "FP32", tensor_cores=False)
    cores = device.peak_flops_per_s(need.precision, tensor_cores=True)
    return cores or device.peak_flops_per_s(need.precision, tensor_cores=False)


def _cache_rate(device: Device) -> float | None:
    if device.sm_count is None or device.clock_hz is None:
        return None
    return float(_CACHE_BYTES_PER_CLOCK) * device.sm_count * device.clock_hz


def cache_holds(l2_bytes: int | None, capability: Capability | None) -> int:
    """How many bytes stay in the L2 cache if all SMs read them."""
    if l2_bytes is None:
        return _LARGEST_CACHE
    return l2_bytes // 2 if capability in _TWO_PARTITIONS else l2_bytes


class LayerBytes(NamedTuple):
    """The bytes that one execution of a layer moves; None if the file does not show them."""

    read: int | None
    written: int | None
    weights: int | None


class TensorUse(NamedTuple):
    """A tensor that a layer reads or writes."""

    name: str
    direction: str  # in, out
    bytes: int | None


def bytes_from_memory(
    layers: Sequence[int],
    work: Mapping[int, LayerBytes],
    tensors: Mapping[int, Sequence[TensorUse]],
    held: int,
    *,
    asked: frozenset[int] | None = None,
) -> dict[int, int | None]:
    """At least how many bytes of each of these layers of one engine, in execution order, come from
    or go to device memory; None if a size is unknown.

    Where only some are ``asked`` for, ``tensors`` need not have others than theirs, but all uses of
    these.

    ``held`` is what the cache holds.  A tensor of the size of the cache does not stay, nor one
    since whose last use so much was read; buffers that are used again count once, so of activations
    only the largest in between counts.
    """
    weights = [work[one].weights or 0 for one in layers]
    moved = np.array([(work[one].read or 0) + (work[one].written or 0) for one in layers], np.int64)
    before = list(accumulate(weights, initial=0))
    all_stay = before[-1] + int(moved.max(initial=0)) <= held
    touched: dict[str, int] = {}
    found: dict[int, int | None] = {}
    for at, layer in enumerate(layers):
        if asked is not None and layer not in asked:
            touched.update(
                (name, at) for name, _, size in tensors.get(layer, ()) if size is not None
            )
            continue
        total = 0 if all_stay else weights[at]
        reads, known = 0, True
        for tensor in tensors.get(layer, ()):
            name, direction, size = tensor
            if size is None:
                known = False
                continue
            since = touched.get(name)
            between = 0
            if since is not None and direction == "in":
                between = before[at] - before[since + 1]
                between += int(moved[since + 1 : at].max(initial=0))
            if size + between > held:
                if direction == "in":
                    reads += size
                else:
                    total += size
            touched[name] = at
        bytes_in = work[layer].read
        total += reads if bytes_in is None else min(reads, bytes_in)
        found[layer] = total if known or total else None
    return found
