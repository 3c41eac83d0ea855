"""Reports sampled hardware counters: how busy the units of each GPU are while kernels run, and what
limits the layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.answer.model import Answer, HardwareUse, NextStep, UnitUse
from nsysmap.core.note import WhyUnknown
from nsysmap.core.table import FloatArray, Row, Table
from nsysmap.text.units import percent

_ALL = 0.95  # share of the kernel time from which on known values stand for all kernels
_LEAST = 0.005  # share of the layers' time below which a verdict is left out
_TOGETHER = 0.05  # share of the kernel time from which on concurrent work is worth a word
_VERDICTS = ("compute-bound", "memory-bound", "latency-bound")
_UNITS = {
    "SMs active": (("sm_active",),),
    "tensor cores active": (("tensor_active",), ("tensor_or_fp16_active",)),
    "device memory": (("dram_read", "dram_write"), ("dram",)),
}
"""The metrics that say it: the first ones that were sampled, added up."""


def hardware_use(tables: Mapping[str, Table]) -> tuple[HardwareUse, ...]:
    """How busy each sampled GPU was while kernels ran, from the tables of an analysis by name."""
    counters, found = tables["kernel_counters"], []
    for row in tables["gpu_sampling"]:
        mine = counters.take(counters.ints("device") == row.integer("device"))
        units = tuple(
            use for unit, ways in _UNITS.items() if (use := _use(mine, unit, ways)) is not None
        )
        units = units or _filled(row)
        spent = _spent(mine)
        together = (
            float(np.average(mine.floats("concurrent_share"), weights=spent))
            if spent.any()
            else 0.0
        )
        unknown = _unknown(row) or _longest_unknown(mine)
        reason = None if unknown is None else unknown.text
        device, frequency_hz = row.integer("device"), row.real("frequency_hz")
        found.append(HardwareUse(device, frequency_hz, units, together, reason, unknown))
    return tuple(found)


def counted_limits(tables: Mapping[str, Table]) -> tuple[tuple[str, float], ...]:
    """The verdicts that rest on counters, with their share of the time of all layers."""
    verdicts = {
        row.integer("layer_id"): row.text("verdict")
        for row in tables["roofline"]
        if row.text("verdict_from") == "counters"
    }
    times = [
        (verdicts.get(row.integer("layer_id")), row.integer("total_ns"))
        for row in tables["layer_times"]
    ]
    whole = sum(time for _, time in times)
    shares = (
        [
            (verdict, sum(time for one, time in times if one == verdict) / whole)
            for verdict in _VERDICTS
        ]
        if whole
        else []
    )
    return tuple((verdict, share) for verdict, share in shares if share >= _LEAST)


def better_capture(use: Sequence[HardwareUse]) -> NextStep | None:
    """The capture that would show more; None if this one covers nearly all kernels, or no capture
    would.
    """
    for one in use:
        known = min((each.known_share or 0.0 for each in one.units), default=0.0)
        unknown = one.unknown if known < _ALL else None
        if unknown is not None and unknown.command:
            enough = f" ({unknown.enough})" if unknown.enough else ""
            why = f"For the hardware counters of all kernels{enough}"
            return NextStep(why, unknown.command)
    return None


def counter_sentences(summary: Answer) -> list[str]:
    """A sentence for each sampled GPU with known figures, or why there are none; then what limits
    the layers.
    """
    known = [one for one in summary.counters if one.units]
    if not known:
        return [
            f"cannot tell: {one.unknown.why}"
            for one in summary.counters[:1]
            if one.unknown is not None
        ]
    lines = [(f"GPU {one.device}: " if len(known) > 1 else "") + _sentence(one) for one in known]
    limits = [f"{percent(share, 1, 0)} {verdict}" for verdict, share in summary.counted_limits]
    return (
        [*lines[:-1], f"{lines[-1]}; of the layers' time, {', '.join(limits)}"] if limits else lines
    )


def _sentence(one: HardwareUse) -> str:
    figures = ", ".join(f"{each.unit} {each.percent:.0f}%" for each in one.units)
    if any(use.known_share is None for use in one.units):
        why = "" if one.unknown is None else f"by kernel: cannot tell: {one.unknown.why}"
        return (
            f"{figures} of the peak in samples that kernels fill (hardware counters at"
            f" {one.frequency_hz / 1e3:.0f} kHz); {why}"
        )
    how = [f"hardware counters at {one.frequency_hz / 1e3:.0f} kHz"]
    shares = [use.known_share or 0.0 for use in one.units]
    least, most = (percent(each(shares), 1, 0) for each in (min, max))
    if min(shares) < _ALL:
        how.append(
            f"known for {least if least == most else f'{least} to {most}'} of the kernel time"
        )
    if one.concurrent_share >= _TOGETHER:
        how.append(
            f"{percent(one.concurrent_share, 1, 0)} of kernel time beside other work, which shares"
            " the samples"
        )
    return f"{figures} of the peak while kernels run ({', '.join(how)})"


def _filled(sampling: Row) -> tuple[UnitUse, ...]:
    """The figures of the GPU as a whole, where none are known by kernel."""
    columns = zip(_UNITS, ("sm_percent", "tensor_percent", "memory_percent"), strict=True)
    return tuple(
        UnitUse(unit, value, None)
        for unit, name in columns
        if (value := sampling.maybe_real(name)) is not None
    )


def _use(counters: Table, unit: str, ways: Sequence[Sequence[str]]) -> UnitUse | None:
    """The mean of known values over the time of their kernels; None if nothing is known."""
    metric = counters.text("metric")
    for names in ways:
        rows = [np.flatnonzero(metric.equals(name)) for name in names]
        if not all(len(each) for each in rows):
            continue
        known = np.all([counters.bools("known")[each] for each in rows], axis=0)
        value = np.sum([counters.floats("value")[each] for each in rows], axis=0)
        spent = _spent(counters)[rows[0]]
        if not spent[known].sum() > 0:
            return None
        return UnitUse(
            unit,
            float(np.average(value[known], weights=spent[known])),
            float(spent[known].sum() / spent.sum()),
        )
    return None


def _spent(counters: Table) -> FloatArray:
    """The sampled time of each row's kernel."""
    spent: FloatArray = counters.floats("duration_ns") * counters.ints("executions")
    return spent


def _unknown(row: Row) -> WhyUnknown | None:
    """Why a value is unknown, from the columns that say it."""
    why = row.maybe_text("why") or row.maybe_text("reason")
    if why is None:
        return None
    return WhyUnknown(why, row.maybe_text("enough") or "", row.maybe_text("capture") or "")


def _longest_unknown(counters: Table) -> WhyUnknown | None:
    """Why the value of the longest kernel is unknown."""
    reasons = [
        (row.real("duration_ns"), row.maybe_text("reason") or "", number)
        for number, row in enumerate(counters)
        if not row.flag("known")
    ]
    if not reasons:
        return None
    longest = max(reasons)[2]
    return next(_unknown(row) for number, row in enumerate(counters) if number == longest)
