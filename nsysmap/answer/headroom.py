"""How far the layers are from the hardware, as values: where the distance lies, why, and what to
try there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nsysmap.advice.paste import TIMES_TACTICS, TRIALS
from nsysmap.advice.program import Program
from nsysmap.advice.ways import How, how
from nsysmap.answer.model import Figure, GpuTime, Headroom, HeadroomGroup, Trial
from nsysmap.core.headroom_reasons import TRIED_BY
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.core.table import Row, Table
from nsysmap.names.decode import decode
from nsysmap.timing.layer_sums import alike, titles_of

_GPU_BOUND = 0.8
"""Share of the time in which the GPU works, or has work queued, from which on the host is not what
limits the program.
"""
_QUEUED = frozenset(
    name
    for name, cause in IDLE_CAUSES.items()
    if cause.between_kernels and not cause.yields and name != "unknown"
)
"""Causes of idle time in which work was queued already."""
_QUANTIZED = "quantized-latency-bound"  # a rule, and what to try about what it finds
TRANSPOSED_NORM = "transposed-norm"
"""What to try on norms with a transpose in them."""
_NORMS = frozenset({"layernorm", "rmsnorm", "groupnorm", "softmax"})
# share of the limit that is nearest: kernels that read 32 bytes for each 2 or 4 that they use, as
# across a transpose, reach at most an eighth of it; norms alike without one reach half and more
_FAR = 0.125
_LEAST_TRIAL = 0.01
"""Share of the layers' time that something to try may save at least."""


def headroom_of(
    tables: Mapping[str, Table],
    program: Program,
    units: float,
    *,
    unprofiled: GpuTime | None,
    gpus: Sequence[GpuTime],
) -> Headroom | None:
    """How far the layers of the engines that ran are from the hardware's limits, per unit; None if
    nothing is known about any.

    ``units`` is of how many units the times of `repeated_layers` are, ``unprofiled`` the GPU's time
    without the profiler.
    """
    rows = {row.integer("layer_id"): row for row in tables["headroom"]}
    if not any(row["least_ns"] is not None for row in rows.values()):
        return None
    groups = tuple(_groups(tables, rows, units))
    known = [one for one in groups if one.least_ns is not None]
    counted = sum(row.maybe_text("least_from") == "counters" for row in rows.values())
    weights = sum(row.maybe_text("least_from") == "weights" for row in rows.values())
    found = Headroom(
        time_ns=sum(one.time_ns for one in groups),
        known_ns=sum(one.time_ns for one in known),
        least_ns=sum(one.least_ns or 0 for one in known),
        layers=len(rows),
        counted_layers=counted,
        weights_only_layers=weights,
        groups=tuple(sorted(groups, key=lambda one: -one.headroom_ns)),
        reasons=_by_reason(rows, known),
        gpu_bound=is_gpu_bound(unprofiled, gpus),
        trials=(),
        compared_ns=sum(one.time_ns for one in groups if one.reachable_ns is not None),
        reachable_ns=sum(one.reachable_ns or 0 for one in groups),
    )
    times = {layer: row.integer("time_ns") for layer, row in rows.items()}
    changes = tables["precision_changes"]
    trials = (
        *_trials(found, program),
        *_other_types(found, program, changes, times),
        *_without_quantizers(found, program, tables["findings"], times),
        *_transposed_norms(found, program, tables["layers"]),
    )
    return replace(
        found, trials=tuple(sorted(trials, key=lambda one: (one.throughput_only, -one.at_most_ns)))
    )


def _groups(
    tables: Mapping[str, Table], rows: Mapping[int, Row], units: float
) -> Sequence[HeadroomGroup]:
    """The groups of `repeated_layers` with their headroom; times are those of one unit."""
    spent = {
        row.integer("first_layer"): row.integer("total_ns") for row in tables["repeated_layers"]
    }
    members = alike(tables["layers"])
    found = []
    for mine, title in zip(members, titles_of(members), strict=True):
        ids = [row.integer("layer_id") for row in mine]
        whole = sum(rows[one].integer("time_ns") for one in ids if one in rows)
        total = spent.get(min(ids))
        if not whole or total is None:
            continue
        scale = total / (units or 1) / whole
        known = [rows[one] for one in ids if one in rows and rows[one]["least_ns"] is not None]
        known_ns = sum(row.integer("time_ns") for row in known)
        first = max(
            known or [rows[one] for one in ids if one in rows],
            key=lambda row: row.maybe_integer("headroom_ns") or 0,
        )
        complete = known_ns == whole
        least = sum(row.integer("least_ns") for row in known) * scale if complete else None
        found.append(
            HeadroomGroup(
                title=title,
                engine=mine[0].maybe_integer("engine"),
                layers=len(mine),
                layer_ids=tuple(ids),
                time_ns=round(total / (units or 1)),
                least_ns=None if least is None else round(least),
                reason=first.text("reason"),
                limit=first.maybe_text("limit"),
                reached=_mean_reached(known),
                waves=first.maybe_real("waves"),
                blocks=first.maybe_integer("blocks"),
                sms=first.maybe_integer("sms"),
                occupancy=first.maybe_real("occupancy"),
                tile=first.maybe_text("tile"),
                kernel_arch=first.maybe_text("kernel_arch"),
                kernels=sum(row.maybe_integer("kernels") or 0 for row in mine),
                counted=all(row.maybe_text("least_from") == "counters" for row in known),
                shape=first.maybe_text("shape"),
                reachable_ns=_reachable_ns([rows[one] for one in ids if one in rows], scale),
            )
        )
    return found


def _reachable_ns(rows: Sequence[Row], scale: float) -> int | None:
    known = [one for row in rows if (one := row.maybe_integer("reachable_ns")) is not None]
    if not known or len(known) < len(rows):
        return None
    taken = sum(min(row.integer("reachable_ns"), row.integer("time_ns")) for row in rows)
    return round(taken * scale)


def _mean_reached(rows: Sequence[Row]) -> float | None:
    whole = sum(row.integer("time_ns") for row in rows)
    told = [row for row in rows if row.maybe_real("reached") is not None]
    if not whole or not told:
        return None
    return sum(row.real("reached") * row.integer("time_ns") for row in told) / whole


def _by_reason(
    rows: Mapping[int, Row], known: Sequence[HeadroomGroup]
) -> tuple[tuple[str, int], ...]:
    """The headroom of the layers by reason, per unit, the most first."""
    found: dict[str, float] = {}
    for group in known:
        mine = [rows[one] for one in group.layer_ids if one in rows]
        whole = sum(row.maybe_integer("headroom_ns") or 0 for row in mine)
        for row in mine:
            part = (row.maybe_integer("headroom_ns") or 0) / (whole or 1) * group.headroom_ns
            found[row.text("reason")] = found.get(row.text("reason"), 0.0) + part
    return tuple(
        (reason, round(ns)) for reason, ns in sorted(found.items(), key=lambda one: -one[1]) if ns
    )


def is_gpu_bound(unprofiled: GpuTime | None, gpus: Sequence[GpuTime]) -> bool:
    """Whether the GPU, and not the host, takes most of the time."""
    gpu = unprofiled or next(iter(gpus), None)
    if gpu is None or gpu.busy_share is None:
        return False
    queued = sum(one.share_of_window for one in gpu.idle if one.cause in _QUEUED)
    return gpu.busy_share + queued >= _GPU_BOUND


def _trials(found: Headroom, program: Program) -> tuple[Trial, ...]:
    """What to try, with the headroom of the affected layers as the upper bound; the most first,
    those that only raise throughput last.
    """
    trials = []
    for name, reasons in TRIED_BY.items():
        if program.rtx and name in TIMES_TACTICS:
            continue
        made = how(TRIALS[name], program)
        mine = [one for one in found.groups if one.reason in reasons and one.headroom_ns]
        at_most = sum(one.headroom_ns for one in mine)
        if at_most < _LEAST_TRIAL * found.time_ns or not (made.paste or made.change):
            continue
        trials.append(
            _trial(
                name, made, at_most, [one.title for one in mine], throughput_only=name == "batch"
            )
        )
    return tuple(trials)


def _other_types(
    found: Headroom, program: Program, changes: Table, times: Mapping[int, int]
) -> Sequence[Trial]:
    """The narrower types that may pay, with what they save at most and, where pairs of engines were
    measured, likely; none that are likely to cost time.  ``times`` are those of the layers.
    """
    groups = {layer: group for group in found.groups for layer in group.layer_ids}
    scales = {
        layer: group.time_ns / whole
        for group in found.groups
        if (whole := sum(times.get(layer, 0) for layer in group.layer_ids))
        for layer in group.layer_ids
    }
    trials: list[Trial] = []
    for name, to_type in (("half", "FP16"), ("fp8", "FP8"), ("int8", "INT8")):
        mine = [
            row
            for row in changes
            if row.text("to_type") == to_type and row.integer("layer_id") in scales
        ]
        saved = {"best_ns": 0.0, "low_ns": 0.0, "likely_ns": 0.0, "high_ns": 0.0}
        by_group: dict[str, float] = {}
        for row in mine:
            layer, time_ns = row.integer("layer_id"), row.integer("time_ns")
            for end in saved:
                after = row.maybe_integer(end)
                saved[end] += 0 if after is None else (time_ns - after) * scales[layer]
            title = groups[layer].title
            most = (time_ns - row.integer("best_ns")) * scales[layer]
            by_group[title] = by_group.get(title, 0.0) + most
        measured = bool(mine) and all(row["likely_ns"] is not None for row in mine)
        made = how(TRIALS[name], program)
        if (
            saved["best_ns"] < _LEAST_TRIAL * found.time_ns
            or (measured and saved["likely_ns"] <= 0)
            or not (made.paste or made.change)
            or (program.rtx and name != "half")
            or (name == "int8" and any(one.name == "fp8" for one in trials))
        ):
            continue
        trials.append(
            _trial(
                name,
                made,
                round(saved["best_ns"]),
                sorted(by_group, key=lambda one: -by_group[one]),
                likely=(
                    Figure(
                        round(saved["likely_ns"]), round(saved["high_ns"]), round(saved["low_ns"])
                    )
                    if measured
                    else None
                ),
            )
        )
    return trials


def _without_quantizers(
    found: Headroom, program: Program, findings: Table, times: Mapping[int, int]
) -> Sequence[Trial]:
    """An engine without 8 bits where a rule found that they do not make its products faster: at
    most, what its products take beyond their least.
    """
    told = [row.maybe_text("about") or "" for row in findings if row.text("rule") == _QUANTIZED]
    products = {int(layer) for about in told for layer in about.split()}
    taken: dict[str, float] = {}
    for group in found.groups:
        whole = sum(times.get(layer, 0) for layer in group.layer_ids)
        mine = sum(times.get(layer, 0) for layer in group.layer_ids if layer in products)
        if mine and group.headroom_ns:
            taken[group.title] = group.headroom_ns * mine / whole
    at_most = sum(taken.values())
    if not taken or at_most < _LEAST_TRIAL * found.time_ns:
        return ()
    made = how(TRIALS[_QUANTIZED], program)
    layers = sorted(taken, key=lambda one: -taken[one])
    return (_trial(_QUANTIZED, made, round(at_most), layers),)


def _transposed_norms(found: Headroom, program: Program, layers: Table) -> Sequence[Trial]:
    """Norms and softmaxes without the transpose that is fused into them, where they are far from
    every limit: their reads or writes then lie far apart.
    """
    names = {
        row.integer("layer_id"): row.maybe_text("tactic") or row.text("name") for row in layers
    }
    mine = [
        group
        for group in found.groups
        if group.headroom_ns
        and group.reached is not None
        and group.reached < _FAR
        and all(_is_transposed_norm(names.get(one, "")) for one in group.layer_ids)
    ]
    at_most = sum(one.headroom_ns for one in mine)
    if at_most < _LEAST_TRIAL * found.time_ns:
        return ()
    made = how(TRIALS[TRANSPOSED_NORM], program)
    return (_trial(TRANSPOSED_NORM, made, at_most, [one.title for one in mine]),)


def _is_transposed_norm(kernel: str) -> bool:
    """Whether a kernel of this name both normalises and transposes."""
    told = decode(kernel)
    return any(one.name in _NORMS for one in told.patterns) and any(
        one.op == "Transpose" for one in told.ops
    )


def _trial(
    name: str,
    made: How,
    at_most_ns: int,
    layers: Sequence[str],
    *,
    throughput_only: bool = False,
    likely: Figure | None = None,
) -> Trial:
    return Trial(
        name=name,
        title=TRIALS[name].title,
        at_most_ns=at_most_ns,
        layers=tuple(layers),
        throughput_only=throughput_only,
        paste=made.paste,
        paste_pytorch=made.paste_pytorch,
        change=made.change,
        paste_brief=made.paste_brief,
        change_brief=made.change_brief,
        likely=likely,
    )
