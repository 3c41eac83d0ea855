"""The hardware counters of a trace: by kernel of its repeated sequences, by layer, and of the whole
run, as declared tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from nsysmap.core.counter_schema import (
    COPY_COUNTERS,
    DEVICE_COUNTERS,
    GPU_SAMPLING,
    KERNEL_COUNTERS,
    KERNEL_ENDS,
    LAYER_COUNTERS,
)
from nsysmap.core.groups import distinct
from nsysmap.core.note import WhyUnknown
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.counters.alike import alike_kernels
from nsysmap.counters.both import both
from nsysmap.counters.clock_shift import clock_shift
from nsysmap.counters.copies import copy_rows
from nsysmap.counters.estimate import Estimate, Estimates, Values, estimate
from nsysmap.counters.kernel_ends import kernel_ends
from nsysmap.counters.model import GpuRan, Samples, Shift
from nsysmap.counters.problem import enough_of
from nsysmap.counters.run_facts import (
    Joined,
    clock_run,
    during_inferences,
    filled,
    joined,
    others_work,
)
from nsysmap.counters.sampled_work import Repeated, repeated_work
from nsysmap.counters.sampling import UNLOST_HZ, Counters, times
from nsysmap.counters.shares import overlapping
from nsysmap.counters.well_known import (
    WELL_KNOWN,
    Capture,
    bounded,
    may_be_bounded,
    well_known,
    why_not,
)
from nsysmap.names.metric_names import ACTIVITY, PREFERRED
from nsysmap.trace.gpu_metrics import GpuSamples
from nsysmap.trace.model import Trace

_FEWEST_SAMPLES = 100  # of fewer neither the clocks' offset nor any kernel is known
_FEWEST_INFERENCES = 3  # repetitions, whose differences show the noise
_FEWEST_EXECUTIONS = 5  # of a kernel for an interval of its value


def counters_of(trace: Trace, kernels: Table, inferences: Table, of_call: IntArray) -> Counters:
    """The counters of the trace by kernel and layer; ``of_call`` is the inference of each API
    call.
    """
    sampling: list[dict[str, object]] = []
    by_kernel: list[dict[str, object]] = []
    by_layer: list[dict[str, object]] = []
    ends: list[dict[str, object]] = []
    whole: list[dict[str, object]] = []
    copies: list[dict[str, object]] = []
    works: dict[int, Repeated] = {}

    def of(device: int) -> Repeated:
        if device not in works:
            works[device] = repeated_work(trace, kernels, inferences, of_call, device)
        return works[device]

    for gpu in trace.gpu_metrics.enough(
        lambda device, period_ns: enough_of(of(device).work, period_ns)
    ):
        found = of(gpu.device)
        samples = samples_of(gpu)
        capture = Capture(trace.recording.nsys_version, gpu.number)
        with threadpool_limits(
            1, "blas"
        ):  # matrices are small: BLAS's own threads would only wait for each other
            shift, facts, estimates, rows = _gpu(gpu, samples, found, trace, kernels)
        sampling.append(facts)
        if estimates is not None:
            by_kernel += _kernel_rows(gpu, found, kernels, estimates, capture)
            by_layer += _layer_rows(gpu, found, kernels, estimates)
            ends += _ends(gpu, found, kernels, estimates)
        whole += rows
        copies += copy_rows(samples, trace, gpu.device, shift, capture)
    return Counters(
        Table.of_rows(GPU_SAMPLING, sampling),
        Table.of_rows(KERNEL_COUNTERS, by_kernel),
        Table.of_rows(KERNEL_ENDS, ends),
        Table.of_rows(LAYER_COUNTERS, by_layer),
        Table.of_rows(DEVICE_COUNTERS, whole),
        Table.of_rows(COPY_COUNTERS, copies),
    )


def samples_of(gpu: GpuSamples) -> Samples:
    """The metrics with a known meaning that add up over time, in the form for the estimate."""
    rows = [
        row
        for row, each in enumerate(gpu.metrics)
        if each.meaning in PREFERRED and each.unit in ("percent", "hertz")
    ]
    names = tuple(gpu.metrics[row].meaning for row in rows)
    clocks = {
        clock: names.index(f"{clock}_clock")
        for clock in ("gpc", "sys")
        if f"{clock}_clock" in names
    }
    return Samples(
        gpu.start_ns,
        gpu.end_ns,
        tuple(gpu.values[row] for row in rows),
        names,
        tuple(gpu.metrics[row].unit == "percent" for row in rows),
        tuple(clocks.get(gpu.metrics[row].clock) for row in rows),
    )


def _of_kernels(samples: Samples) -> Samples:
    """The metrics that are estimated by kernel: without those of the links, which also carry other
    traffic. Clocks stay, because cycles are counted in them.
    """
    rows = [row for row, name in enumerate(samples.metrics) if not name.startswith("pcie")]
    clocks = (samples.per_cycle[row] for row in rows)
    return Samples(
        samples.start_ns, samples.end_ns, tuple(samples.values[row] for row in rows),
        tuple(samples.metrics[row] for row in rows),
        tuple(samples.percent[row] for row in rows),
        tuple(None if clock is None else rows.index(clock) for clock in clocks),
    )  # fmt: skip


def _turns_over_ns(devices: Table, device: int, samples: Samples) -> float:
    """The time in which the sampled traffic to memory amounts to the size of the level-2 cache;
    infinite if the trace lacks those facts.
    """
    row = next((each for each in devices if each.integer("device") == device), None)
    held, bandwidth = (
        (None, None)
        if row is None
        else (row.maybe_integer("l2_bytes"), row.maybe_integer("bandwidth_bytes_per_s"))
    )
    traffic = [
        samples.values[at]
        for at, name in enumerate(samples.metrics)
        if name in ("dram_read", "dram_write")
    ]
    share = (
        float(np.nansum([np.nanmean(each) for each in traffic])) / 100
        if len(samples.start_ns)
        else 0.0
    )
    return held / (bandwidth * share) * 1e9 if held and bandwidth and share > 0 else np.inf


def _gpu(
    gpu: GpuSamples, samples: Samples, found: Repeated, trace: Trace, kernels: Table
) -> tuple[Shift | None, dict[str, object], Estimates | None, list[dict[str, object]]]:
    """The clocks' offset, the row of `gpu_sampling`, the estimates, and rows of
    `device_counters`.
    """
    activity = _activity(samples)
    sampled = _sampled(gpu, found)
    unknown = _cannot(gpu, found, activity, sampled, trace)
    shift = clock_shift(samples, found.work, activity) if unknown is None else None
    if unknown is None and shift is None:
        unknown = WhyUnknown(
            "the samples do not follow the kernels: their clock could not be aligned with the"
            " kernels' clock"
        )

    def estimated() -> Estimates | None:
        if shift is None:
            return None
        cache_ns = _turns_over_ns(trace.devices, gpu.device, samples)
        return estimate(
            _of_kernels(samples),
            found.work,
            shift,
            member_of=_layer_numbers(found, kernels)[1],
            alike=alike_kernels(trace.kernels, found.kernel),
            cache_ns=cache_ns,
        )

    def of_run() -> tuple[dict[str, object], list[dict[str, object]]]:
        moved = joined(gpu.start_ns, gpu.end_ns, found.work, shift or Shift())
        return {} if shift is None else _run(samples, moved, found.work), list(
            _device_rows(gpu, moved)
        )

    estimates, (run, rows) = both(estimated, of_run)
    facts: dict[str, object] = {
        "device": gpu.device,
        "frequency_hz": gpu.frequency_hz,
        "metrics": len(gpu.metrics),
        "samples": gpu.count,
        "used": 0 if estimates is None else estimates.samples,
        "outliers": 0 if estimates is None else estimates.outliers,
        "left_out": 0 if estimates is None else estimates.left_out,
        "holes": gpu.holes,
        "lost_share": gpu.lost_share,
        "mistrusted": gpu.mistrusted,
        "thinned": gpu.part_of is not None or (estimates is not None and estimates.thinned),
        "inferences": sampled,
        "clock_offset_ns": None if shift is None else shift.offset_ns,
        "clock_offset_error_ns": None if shift is None else shift.error_ns,
        "clock_drift": None if shift is None else shift.drift,
        "unknown_metrics": _unknown(gpu),
        **why_columns(unknown),
        **(_filled(gpu, samples, trace) if estimates is None else {}),
    }
    return shift, facts | run, estimates, rows


def _activity(samples: Samples) -> tuple[int, ...]:
    """The rows of the metrics of SM activity."""
    return tuple(samples.metrics.index(name) for name in ACTIVITY if name in samples.metrics)


def _sampled(gpu: GpuSamples, found: Repeated) -> int:
    """The number of inferences with samples."""
    covered = found.work.repeat[overlapping(found.work, *gpu.stretches_ns)]
    return int(np.count_nonzero(np.bincount(covered[covered >= 0])))


def _cannot(
    gpu: GpuSamples, found: Repeated, activity: tuple[int, ...], sampled: int, trace: Trace
) -> WhyUnknown | None:
    """Why nothing can be estimated by kernel."""
    if gpu.count < _FEWEST_SAMPLES:
        return WhyUnknown(f"{gpu.count} samples are too few")
    capture = Capture(trace.recording.nsys_version, gpu.number)
    elsewhere = trace.kernels.ints("device")
    if not (elsewhere == gpu.device).any():
        if not len(elsewhere):
            return WhyUnknown("the trace shows no kernels")
        device = int(np.bincount(elsewhere).argmax())
        right = replace(capture, gpu=trace.gpu_metrics.number_of(device))
        why = (
            f"the trace shows no kernel on GPU {gpu.device}, which was sampled, but on GPU {device}"
        )
        return WhyUnknown(why, command=right.command(UNLOST_HZ))
    if not activity:
        unknown = _unknown(gpu)
        named = f" by a name that is known (not known: {unknown})" if unknown else ""
        return WhyUnknown(
            f"no metric of SM activity was sampled{named}, which is needed to align samples with"
            " kernels"
        )
    if sampled >= _FEWEST_INFERENCES:
        return None
    if found.inferences >= _FEWEST_INFERENCES and gpu.holes:
        return WhyUnknown(
            f"nsys lost samples in {times(gpu.holes)}, which leaves {sampled} of"
            f" {found.inferences} repetitions in the steady state: sample less often"
            " (--gpu-metrics-frequency=20000), run them for some seconds, or capture nothing but"
            " them (--capture-range=cudaProfilerApi)"
        )
    if not found.inferences:
        return WhyUnknown(
            "only repeated work shows what each kernel does, and the trace has none on this GPU"
        )
    told = (
        f"{sampled} of {found.inferences} repetitions in the steady state were sampled; samples are"
        " longer than most kernels"
    )
    return WhyUnknown(
        f"{told}, and only repetitions can separate them",
        "100 inferences",
        capture.command(10_000),
    )


def _unknown(gpu: GpuSamples) -> str | None:
    """The names of the metrics whose meaning is unknown."""
    return ", ".join(each.name for each in gpu.unknown) or None


def _run(samples: Samples, moved: Joined, work: GpuRan) -> dict[str, object]:
    """The facts about the whole run from the samples."""
    facts: dict[str, object] = {}
    if "gpc_clock" in samples.metrics:
        clock = clock_run(samples.values[samples.metrics.index("gpc_clock")], moved, work)
        if clock is not None:
            facts |= {
                "first_clock_hz": clock.first_hz,
                "last_clock_hz": clock.last_hz,
                "lowest_clock_hz": clock.lowest_hz,
            }
    others = others_work(samples.values[_activity(samples)[0]], moved, work)
    if others is not None:
        facts |= {
            "idle_share": others.idle_share,
            "others_share": others.active_share,
            "others_percent": others.mean_percent,
        }
    return facts


def _filled(gpu: GpuSamples, samples: Samples, trace: Trace) -> dict[str, float | None]:
    """The GPU's figures as a whole in samples that kernels fill."""
    mine = np.flatnonzero(trace.kernels.ints("device") == gpu.device)
    none = np.full(len(mine), -1)
    work = GpuRan(
        trace.kernels.ints("start_ns")[mine], trace.kernels.ints("end_ns")[mine], none, none, 0
    )
    moments = joined(samples.start_ns, samples.end_ns, work, Shift())
    activity = next(
        (
            samples.values[samples.metrics.index(name)]
            for name in ACTIVITY
            if name in samples.metrics
        ),
        None,
    )
    chosen = (
        np.zeros(0, np.int64) if activity is None else np.flatnonzero(filled(moments, activity))
    )
    if not len(chosen):
        return {}
    means = {
        name: float(np.nanmean(values[chosen]))
        for name, values in zip(samples.metrics, samples.values, strict=True)
    }
    read, write = means.get("dram_read"), means.get("dram_write")
    return {
        "sm_percent": means.get("sm_active"),
        "tensor_percent": means.get("tensor_active", means.get("tensor_or_fp16_active")),
        "memory_percent": means.get("dram") if read is None or write is None else read + write,
    }


def _layer_numbers(found: Repeated, kernels: Table) -> tuple[IntArray, IntArray]:
    """The layers of the groups, each once, and for each group the index of its layer; -1 for
    none.
    """
    layer = np.full(len(found.kernel), MISSING, np.int64)
    known = found.kernel >= 0
    layer[known] = kernels.ints("layer_id")[found.kernel[known]]
    layers = distinct(layer[layer >= 0])
    return layers, np.where(layer >= 0, np.searchsorted(layers, layer), -1)


def _device_rows(gpu: GpuSamples, moved: Joined) -> Iterator[dict[str, object]]:
    for row, each in enumerate(gpu.metrics):
        if not each.meaning or each.of_kernels or each.unit not in ("percent", "hertz"):
            continue
        found = during_inferences(gpu.values[row], moved)
        if found is not None:
            yield {
                "device": gpu.device,
                "metric": each.meaning,
                "unit": each.unit,
                "inferences": found.inferences,
                "value": found.mean,
                "low": found.low,
                "high": found.high,
                "idle_value": found.idle,
            }


def why_columns(unknown: WhyUnknown | None) -> dict[str, str | None]:
    """The columns that say why a value is unknown."""
    if unknown is None:
        return {"reason": None}
    return {
        "reason": unknown.text,
        "why": unknown.why,
        "enough": unknown.enough or None,
        "capture": unknown.command or None,
    }


def _kernel_rows(
    gpu: GpuSamples, found: Repeated, kernels: Table, estimates: Estimates, capture: Capture
) -> Iterator[dict[str, object]]:
    layout, named = estimates.layout, _kernels(gpu, found, kernels)
    for metric, each in _percents(estimates):
        known, within = well_known(estimates, each), bounded(estimates, each)
        for group, kernel in named.items():
            yield {
                **kernel,
                "duration_ns": float(layout.duration_ns[group]),
                "executions": int(layout.executions[group]),
                "concurrent_share": _number(float(estimates.concurrent[group])) or 0.0,
                **_value(metric, each.groups, group, bounds=bool(within[group])),
                "known": bool(known[group]),
                **why_columns(None if known[group] else why_not(estimates, each, group, capture)),
            }


def _ends(
    gpu: GpuSamples, found: Repeated, kernels: Table, estimates: Estimates
) -> Iterator[dict[str, object]]:
    active = estimates.of("sm_active")
    if active is None:
        return
    ends = kernel_ends(estimates, active)
    for group, kernel in _kernels(gpu, found, kernels).items():
        yield {
            **kernel,
            "duration_ns": float(estimates.layout.duration_ns[group]),
            "begin_idle_ns": _number(float(ends.begin_ns[group])),
            "end_idle_ns": _number(float(ends.end_ns[group])),
        }


def _kernels(gpu: GpuSamples, found: Repeated, kernels: Table) -> dict[int, dict[str, object]]:
    """The kernels of the groups; copies and memsets are left out."""
    groups = np.flatnonzero(found.kernel >= 0)
    rows = kernels.take(found.kernel[groups]).records() if len(groups) else []
    return {
        group: {
            "device": gpu.device,
            "kernel_sequence": int(found.sequence[group]),
            "position": int(found.position[group]),
            "layer_id": row["layer_id"],
            "kernel": row["name"],
        }
        for group, row in zip(groups.tolist(), rows, strict=True)
    }


def _layer_rows(
    gpu: GpuSamples, found: Repeated, kernels: Table, estimates: Estimates
) -> Iterator[dict[str, object]]:
    layers, number = _layer_numbers(found, kernels)
    layout = estimates.layout
    executions = np.full(len(layers), np.iinfo(np.int64).max)
    inside = number >= 0
    np.minimum.at(executions, number[inside], layout.executions[inside])
    spent = np.bincount(
        number[inside], (layout.duration_ns * layout.executions)[inside], len(layers)
    )
    most = np.zeros(len(layers), np.int64)
    np.maximum.at(most, number[inside], layout.executions[inside])
    beside = np.nan_to_num(estimates.concurrent) * layout.duration_ns * layout.executions
    concurrent = np.bincount(number[inside], beside[inside], len(layers)) / np.maximum(spent, 1.0)
    for metric, each in _percents(estimates):
        measured = each.sets.measured
        within = may_be_bounded(measured, concurrent) & (executions >= _FEWEST_EXECUTIONS)
        for at, layer_id in enumerate(layers.tolist()):
            yield {
                "layer_id": layer_id,
                "device": gpu.device,
                "duration_ns": float(spent[at]) / max(int(most[at]), 1),
                "executions": int(executions[at]),
                **_value(metric, each.sets, at, bounds=bool(within[at])),
                "known": bool(measured[at] <= WELL_KNOWN and executions[at] >= _FEWEST_EXECUTIONS),
            }


def _percents(estimates: Estimates) -> Iterator[tuple[str, Estimate]]:
    """The metrics of kernels, without the clocks."""
    return (
        (metric, each)
        for metric, each in zip(estimates.metrics, estimates.by_metric, strict=True)
        if each.percent
    )


def _value(metric: str, values: Values, row: int, *, bounds: bool) -> Mapping[str, object]:
    return {
        "metric": metric,
        "unit": "percent",
        "value": _number(float(values.value[row])),
        "error": _number(float(values.error[row])),
        "context_error": _number(float(values.context[row])),
        "low": _number(float(values.low[row])) if bounds else None,
        "high": _number(float(values.high[row])) if bounds else None,
    }


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
