"""How close each layer comes to the device's limits: a roofline with a third case, layers too small
to fill the GPU.

Floors are lower bounds: bytes over the memory bandwidth and operations over the peak rate
(`peak_rates`), both at the clock that the trace names.  Each tensor is counted once; what stays in
the L2 cache can be faster than the bytes' floor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import ROOFLINE
from nsysmap.core.table import MISSING, IntArray, Row, Table, maybe
from nsysmap.timing.counted_limits import Counted, counted_layers, disagreement
from nsysmap.timing.peak_rates import Capability, blocks_per_sm, operations_per_clock

FAR = 0.1
"""A short layer below this share of its limit is bound by latency and not by the limit."""
SHORT_NS = 10_000
"""The longest time of a short layer: a few times what a kernel takes to start and end."""
HALF = 0.5
"""A layer with fewer blocks than SMs is latency-bound unless it reaches this share of its limit."""
_OVER = 1.02  # a layer may be that much faster than its limit: peak rates are rounded


@dataclass(frozen=True)
class Device:
    """The limits of one device; None if the trace does not have them."""

    name: str
    capability: Capability | None
    sm_count: int | None
    clock_hz: int | None
    bandwidth_bytes_per_s: int | None

    def peak_flops_per_s(self, precision: str | None, *, tensor_cores: bool) -> float | None:
        """Dense peak in that data type."""
        if (
            self.capability is None
            or self.sm_count is None
            or self.clock_hz is None
            or precision is None
        ):
            return None
        rate = operations_per_clock(self.capability, precision, tensor_cores=tensor_cores)
        return None if rate is None else float(rate) * self.sm_count * self.clock_hz


@dataclass(frozen=True)
class LayerSeen:
    """What the trace shows about a layer."""

    time_ns: int | None
    blocks: int | None = None
    waves: float | None = None


@dataclass(frozen=True)
class Needed:
    """What the engine file shows about a layer."""

    bytes_moved: int | None
    flops: int | None
    macs: int | None
    precision: str | None
    tensor_cores: str  # yes, no, unknown
    reason: str | None


@dataclass(frozen=True)
class LayerBound:
    """The bounds and the verdict for one layer."""

    bytes_bound_ns: int | None
    flops_bound_ns: int | None
    bound_ns: int | None
    roofline_fraction: float | None
    peak_flops_per_s: float | None
    verdict: str
    reason: str


_UNDESCRIBED = Needed(None, None, None, None, "unknown", "no engine file describes it")


def roofline_table(
    layers: Table,
    work: Table,
    devices: Table,
    kernels: Table,
    *,
    counters: tuple[Table, Table] | None = None,
) -> Table:
    """The table `roofline`, one row per layer in the order of `layers`; layers that no engine file
    describes are unknown.

    ``counters`` are the tables `layer_counters` and `gpu_sampling`: what they measured decides the
    verdict, and the engine file's figures are shown beside it.
    """
    machines = {row.integer("device"): device_of(row) for row in devices}
    needed = _needed(work)
    longest = longest_kernels(kernels)
    counted = {} if counters is None else counted_layers(*counters)
    first = next(iter(machines.values()), None)
    # of a large engine file most layers did not run in the trace, and many need the same
    not_run: dict[Needed, LayerBound] = {}
    not_seen = LayerSeen(None)
    rows: list[tuple[int, Needed, LayerSeen, LayerBound]] = []
    told: dict[int, dict[str, object]] = {}
    for at, (layer_id, time_ns) in enumerate(
        zip(layers.ints("layer_id").tolist(), layers.ints("time_ns").tolist(), strict=True)
    ):
        row = longest.get(layer_id)
        need = needed.get(layer_id, _UNDESCRIBED)
        device = first if row is None else machines.get(int(kernels.ints("device")[row]))
        if row is None and time_ns == MISSING:
            measured = not_seen
            limit = not_run.get(need) or not_run.setdefault(need, limit_of(need, measured, device))
        else:
            measured = _measured(None if time_ns == MISSING else time_ns, kernels, row, device)
            limit = limit_of(need, measured, device)
        if (counters_of := counted.get(layer_id)) is not None:
            told[at] = _counted(counters_of, need, device)
        rows.append((layer_id, need, measured, limit))
    columns: dict[str, list[object]] = {
        "layer_id": [layer_id for layer_id, _, _, _ in rows],
        "time_ns": [measured.time_ns for _, _, measured, _ in rows],
        "bytes": [need.bytes_moved for _, need, _, _ in rows],
        "flops": [need.flops for _, need, _, _ in rows],
        "bytes_bound_ns": [limit.bytes_bound_ns for _, _, _, limit in rows],
        "flops_bound_ns": [limit.flops_bound_ns for _, _, _, limit in rows],
        "bound_ns": [limit.bound_ns for _, _, _, limit in rows],
        "roofline_fraction": [limit.roofline_fraction for _, _, _, limit in rows],
        "peak_flops_per_s": [limit.peak_flops_per_s for _, _, _, limit in rows],
        "blocks": [measured.blocks for _, _, measured, _ in rows],
        "waves": [measured.waves for _, _, measured, _ in rows],
        "verdict": [limit.verdict for _, _, _, limit in rows],
        "reason": [limit.reason for _, _, _, limit in rows],
        "verdict_from": ["model"] * len(rows),
    }
    columns |= {
        column.name: [None] * len(rows) for column in ROOFLINE.columns if column.name not in columns
    }
    for at, values in told.items():
        for name, value in values.items():
            columns[name][at] = value
    return Table.of_lists(ROOFLINE, columns)


def _counted(counted: Counted, need: Needed, device: Device | None) -> dict[str, object]:
    """The columns that hardware counters fill in."""
    bandwidth = None if device is None else device.bandwidth_bytes_per_s
    verdict = counted.verdict()
    told = (
        {}
        if verdict is None
        else {"verdict": verdict[0], "reason": verdict[1], "verdict_from": "counters"}
    )
    return {
        "dram_percent": counted.dram,
        "tensor_percent": counted.tensor,
        "issue_percent": counted.issue,
        "sm_percent": counted.sm,
        "dram_bytes": counted.dram_bytes(bandwidth),
        "disagreement": disagreement(
            counted, need.bytes_moved, bandwidth, expected_tensor(counted, need, device)
        ),
        **told,
    }


def expected_tensor(counted: Counted, need: Needed, device: Device | None) -> float | None:
    """The percentage of cycles in which the tensor cores must be active for the layer's
    multiply-adds; None if unknown.

    GeForce boards run most types with FP32 accumulation at half the rate of the table: which one a
    kernel used is not known there.
    """
    if (
        device is None
        or not need.macs
        or need.tensor_cores == "no"
        or not counted.duration_ns
        or "GeForce" in device.name
    ):
        return None
    clock_hz = counted.clock_hz or device.clock_hz
    peak = replace(device, clock_hz=round(clock_hz) if clock_hz else None).peak_flops_per_s(
        need.precision, tensor_cores=True
    )
    return None if not peak else 2 * need.macs / (peak * counted.duration_ns / 1e9) * 100


def limit_of(need: Needed, measured: LayerSeen, device: Device | None) -> LayerBound:
    """The bounds of one layer and what limits it."""
    if device is None:
        return LayerBound(
            None, None, None, None, None, "unknown", "the trace does not describe the device"
        )
    precision, cores = peak_of(need)
    peak = device.peak_flops_per_s(precision, tensor_cores=cores)
    bytes_ns = least_ns(need.bytes_moved, device.bandwidth_bytes_per_s)
    flops_ns = least_ns(need.flops, peak)
    known = [floor for floor in (bytes_ns, flops_ns) if floor is not None]
    floor = max(known) if known else None
    reached = floor / measured.time_ns if floor is not None and measured.time_ns else None
    verdict, reason = _verdict(need, measured, device, bytes_ns, flops_ns)
    return LayerBound(bytes_ns, flops_ns, floor, reached, peak, verdict, reason)


def peak_of(need: Needed) -> tuple[str | None, bool]:
    """The data type whose peak rate limits the layer, and whether it is that of tensor cores."""
    if not need.macs:
        return need.precision or "FP32", False
    # unknown: the higher rate, so that the bound remains a lower one
    return (
        need.precision,
        need.tensor_cores != "no",
    )


def _verdict(
    need: Needed,
    measured: LayerSeen,
    device: Device,
    bytes_ns: int | None,
    flops_ns: int | None,
) -> tuple[str, str]:
    time_ns = measured.time_ns
    if not time_ns:
        return "unknown", "none of its kernels was measured"
    sms = device.sm_count
    if bytes_ns is None and flops_ns is None:
        return "unknown", need.reason or "the device's rates are unknown from the trace"
    if flops_ns is None and ((need.flops is None and need.macs is None) or need.macs):
        return "unknown", need.reason or "the peak rate for its data type is unknown"
    floor = max(bytes_ns or 0, flops_ns or 0)
    if floor > time_ns * _OVER:
        if (flops_ns or 0) > time_ns * _OVER:
            return "unknown", "faster than the peak rate: it does less work than the file says"
        return "unknown", "faster than memory: its data stayed in the L2 cache"
    reached = floor / time_ns
    if measured.blocks is not None and sms and measured.blocks < sms and reached < HALF:
        return (
            "latency-bound",
            f"{measured.blocks} blocks on {sms} SMs, at {reached:.0%} of its limit",
        )
    if reached < FAR and time_ns < SHORT_NS:
        return "latency-bound", f"short, and at {reached:.0%} of its limit"
    if bytes_ns is None:
        return "unknown", need.reason or "its bytes are unknown"
    if flops_ns is not None and flops_ns > bytes_ns:
        return "compute-bound", f"at {reached:.0%} of the peak rate"
    return "memory-bound", f"at {reached:.0%} of the memory bandwidth"


def device_of(row: Row) -> Device:
    """Reads a row of the table `devices`."""
    major, minor = row.maybe_integer("compute_major"), row.maybe_integer("compute_minor")
    return Device(
        name=row.maybe_text("name") or "",
        capability=None if major is None or minor is None else (major, minor),
        sm_count=row.maybe_integer("sm_count"),
        clock_hz=row.maybe_integer("clock_hz"),
        bandwidth_bytes_per_s=row.maybe_integer("bandwidth_bytes_per_s"),
    )


def least_ns(amount: int | None, per_second: float | None) -> int | None:
    """The time for that many bytes or operations at that rate; None if either is unknown."""
    return None if amount is None or not per_second else round(amount / per_second * 1e9)


def _needed(work: Table) -> dict[int, Needed]:
    """The rows of the table `work` by layer; layers with equal needs share one object."""
    told = zip(
        *(maybe(work.ints(name)) for name in ("bytes", "flops", "macs")),
        work.text("precision").list(),
        map(str, work.text("tensor_cores").list()),
        work.text("reason").list(),
        strict=True,
    )
    known: dict[object, Needed] = {}
    found = {}
    for layer_id, needs in zip(work.ints("layer_id").tolist(), told, strict=True):
        found[layer_id] = known.get(needs) or known.setdefault(needs, Needed(*needs))
    return found


def needed_of(row: Row) -> Needed:
    """Reads a row of the table `work`."""
    return Needed(
        bytes_moved=row.maybe_integer("bytes"),
        flops=row.maybe_integer("flops"),
        macs=row.maybe_integer("macs"),
        precision=row.maybe_text("precision"),
        tensor_cores=row.text("tensor_cores"),
        reason=row.maybe_text("reason"),
    )


def _measured(
    time_ns: int | None, kernels: Table, row: int | None, device: Device | None
) -> LayerSeen:
    """Time of the layer, and the launch of its longest kernel."""
    if row is None:
        return LayerSeen(time_ns)

    def at(name: str) -> int:
        return int(kernels.ints(name)[row])

    blocks = at("grid_x") * at("grid_y") * at("grid_z")
    waves = None
    if device is not None and device.capability is not None and device.sm_count:
        threads = at("block_x") * at("block_y") * at("block_z")
        held = blocks_per_sm(
            device.capability,
            threads,
            at("registers"),
            at("static_shared_bytes") + at("dynamic_shared_bytes"),
        )
        waves = blocks / (held * device.sm_count) if held else None
    return LayerSeen(time_ns, blocks if blocks > 0 else None, waves)


def longest_kernels(kernels: Table) -> dict[int, int]:
    """Row of the longest kernel of each layer."""
    if not len(kernels):
        return {}
    rows: IntArray = np.flatnonzero(kernels.ints("layer_id") != MISSING)
    layer = kernels.ints("layer_id")[rows]
    duration = (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows]
    longest = np.full(int(layer.max(initial=-1)) + 1, MISSING)
    np.maximum.at(longest, layer, duration)
    found = np.flatnonzero(duration == longest[layer])[::-1]  # the first of equals is written last
    return dict(zip(layer[found].tolist(), rows[found].tolist(), strict=True))
