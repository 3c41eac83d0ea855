"""What limits a layer according to hardware counters: memory, tensor cores, issue slots and SMs,
each relative to its peak.

The rule is Nsight Compute's ("GPU Speed Of Light Throughput"): a resource that reaches 60 % of its
peak is the limit; if none does, latency is.
"""

from __future__ import annotations

from nsysmap.core.records import dataclass
from nsysmap.core.table import Table

LIMITS = 60.0
"""A resource is the limit from this percentage of its peak on."""
_FEWER = 0.7
"""Ratio to the bytes or operations of the engine file below which the level-2 cache held data, or
operations were not performed.
"""
_EXCESS = 1.5
"""Ratio to the same above which the excess does not come from the tensors or operations."""
_LEAST_ACTIVE = 2 * 5.0
"""Percent of the cycles: twice the largest error of a known value, below which a ratio says
nothing.
"""


@dataclass(frozen=True)
class Counted:
    """Measurements of one layer, in percent of the peak; None if the samples do not determine them
    well enough.
    """

    duration_ns: float
    dram: float | None
    tensor: float | None
    issue: float | None
    sm: float | None
    clock_hz: float | None = None  # of the SMs of that GPU while kernels ran

    def verdict(self) -> tuple[str, str] | None:
        """What limits the layer, with the figures that show it; None if they do not."""
        compute = max(
            (value for value in (self.tensor, self.issue) if value is not None), default=None
        )
        if self.dram is None or compute is None:
            return None
        figures = [f"memory at {self.dram:.0f} %"]
        figures += [
            f"{name} at {value:.0f} %"
            for name, value in (("tensor cores", self.tensor), ("issue slots", self.issue))
            if value is not None
        ]
        if self.sm is not None:
            figures.append(f"SMs active {self.sm:.0f} % of the time")
        told = ", ".join(figures)
        if max(self.dram, compute) < LIMITS:
            return "latency-bound", f"{told}: nothing is close to its peak"
        return ("memory-bound" if self.dram >= compute else "compute-bound"), told

    def dram_bytes(self, bandwidth_bytes_per_s: int | None) -> int | None:
        """Traffic to device memory while its kernels ran, per inference."""
        if self.dram is None or not bandwidth_bytes_per_s:
            return None
        return round(self.dram / 100 * bandwidth_bytes_per_s * self.duration_ns / 1e9)


def counted_layers(layer_counters: Table, gpu_sampling: Table) -> dict[int, Counted]:
    """The measurements by layer; for a layer that several GPUs ran, those of the first."""
    clocks = {row.integer("device"): row.maybe_real("first_clock_hz") for row in gpu_sampling}
    found: dict[int, dict[str, float]] = {}
    duration: dict[int, float] = {}
    device: dict[int, int] = {}
    for row in layer_counters:
        layer = row.integer("layer_id")
        if device.setdefault(layer, row.integer("device")) != row.integer("device"):
            continue
        duration[layer] = row.real("duration_ns")
        value = row.maybe_real("value")
        if row.flag("known") and value is not None:
            found.setdefault(layer, {})[row.text("metric")] = value
    return {
        layer: Counted(
            duration[layer],
            _dram(values),
            values.get("tensor_active", values.get("tensor_or_fp16_active")),
            values.get("sm_issue"),
            values.get("sm_active"),
            clocks.get(device[layer]),
        )
        for layer, values in found.items()
    }


def disagreement(
    counted: Counted,
    model_bytes: int | None,
    bandwidth_bytes_per_s: int | None,
    expected_tensor: float | None,
) -> str | None:
    """What it means that counters differ from the engine file's figures; None if they agree.

    ``expected_tensor`` is for how many percent of the cycles the tensor cores need to be active for
    the layer's operations.
    """
    told = [
        _traffic(counted, model_bytes, bandwidth_bytes_per_s),
        _activity(counted, expected_tensor),
    ]
    return "; ".join(one for one in told if one) or None


def _traffic(
    counted: Counted, model_bytes: int | None, bandwidth_bytes_per_s: int | None
) -> str | None:
    moved = counted.dram_bytes(bandwidth_bytes_per_s)
    if moved is None or not model_bytes:
        return None
    if moved < _FEWER * model_bytes:
        return (
            f"only {moved / model_bytes:.0%} of the bytes of its tensors moved to or from device"
            " memory: the L2 cache held the rest"
        )
    if moved > _EXCESS * model_bytes:
        return (
            f"{moved / model_bytes:.1f} times the bytes of its tensors moved to or from device"
            " memory: spilled registers, tiles that are read again, or the write-back of what"
            " earlier kernels left in the L2 cache"
        )
    return None


def _activity(counted: Counted, expected: float | None) -> str | None:
    if counted.tensor is None or expected is None or max(counted.tensor, expected) < _LEAST_ACTIVE:
        return None
    if counted.tensor < _FEWER * expected:
        return (
            f"the tensor cores were active for {counted.tensor:.0f} % of the cycles, and its"
            f" operations would take {expected:.0f} %: the kernel does fewer (a mask, sparsity,"
            " Winograd, or CUDA cores), or in a data type with a higher rate than the engine"
            " file's"
        )
    if counted.tensor > _EXCESS * expected:
        return (
            f"the tensor cores were active for {counted.tensor:.0f} % of the cycles, and its"
            f" operations would take {expected:.0f} %: dimensions are padded to whole tiles, or the"
            " data type has a lower rate than the engine file's"
        )
    return None


def _dram(values: dict[str, float]) -> float | None:
    if "dram_read" in values and "dram_write" in values:
        return values["dram_read"] + values["dram_write"]
    return values.get("dram")
