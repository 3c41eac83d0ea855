"""The figures of an answer below what is said first: of the inferences, the machine and the replays
of hidden CUDA graphs.
"""

from __future__ import annotations

from dataclasses import fields

from nsysmap.answer.model import (
    Gpu,
    GpuTime,
    InferenceFigures,
    ReplayFigures,
    Spread,
    TraceFacts,
)
from nsysmap.core.schema import Tables
from nsysmap.core.table import Row
from nsysmap.text.units import rounded_share

_NO_INFERENCES = InferenceFigures(None, 0, 0, 0, 0, None, None, None, None, None)


def trace_facts(tables: Tables) -> TraceFacts:
    """What the trace captured."""
    capture = tables.capture.records()[0]
    known = {one.name: capture[one.name] for one in fields(TraceFacts) if one.name in capture}
    return TraceFacts(copies=len(tables.memcpys), **known)  # type: ignore[arg-type]


def inference_figures(tables: Tables) -> tuple[InferenceFigures, tuple[InferenceFigures, ...]]:
    """The inferences of all engines, and those of each where several ran."""
    every, *by_engine = [_figures(row) for row in tables.engine_inferences] or [_NO_INFERENCES]
    return every, tuple(by_engine) if len(by_engine) > 1 else ()


def busy_share(gpus: tuple[GpuTime, ...]) -> float | None:
    """How busy the GPUs that worked were, of the time of all of them; None if that is unknown."""
    worked = [
        (gpu.whole_busy_ns, gpu.window_ns)
        for gpu in gpus
        if gpu.whole_busy_ns is not None and gpu.window_ns
    ]
    if not worked:
        return None
    whole = sum(window for _, window in worked)
    return rounded_share(sum(busy for busy, _ in worked) / whole) if whole > 0 else 0.0


def _spread(row: Row, name: str) -> Spread | None:
    median, p95 = (row.maybe_integer(f"{name}_{of}_ns") for of in ("median", "p95"))
    return None if median is None or p95 is None else Spread(median, p95)


def machine_gpus(tables: Tables) -> tuple[Gpu, ...]:
    """The GPUs that worked; all GPUs of the machine where the trace shows no work."""
    worked = tables.device_times.ints("device").tolist()
    known = {row.integer("device"): row for row in tables.devices}
    gpus = []
    for device in sorted(worked or known):
        facts = known.get(device)
        major = None if facts is None else facts.maybe_integer("compute_major")
        gpus.append(
            Gpu(
                device=device,
                name=(None if facts is None else facts.maybe_text("name")) or "unknown GPU",
                chip=None if facts is None else facts.maybe_text("chip"),
                compute=(
                    None
                    if facts is None or major is None
                    else f"{major}.{facts.maybe_integer('compute_minor') or 0}"
                ),
                sm_count=None if facts is None else facts.maybe_integer("sm_count"),
                memory_bytes=None if facts is None else facts.maybe_integer("memory_bytes"),
                bandwidth_bytes_per_s=(
                    None if facts is None else facts.maybe_integer("bandwidth_bytes_per_s")
                ),
            )
        )
    return tuple(gpus)


def _figures(row: Row) -> InferenceFigures:
    """The inferences of one engine, or of all: a row of `engine_inferences`."""
    return InferenceFigures(
        engine=row.maybe_integer("engine"),
        count=row.integer("inferences"),
        warmup=row.integer("warmup"),
        cut=row.integer("cut"),
        measured=row.integer("steady"),
        found_by=row.maybe_text("found_by"),
        launch_api=row.maybe_text("launch_api"),
        gpu_time_ns=_spread(row, "gpu_time"),
        gpu_span_ns=_spread(row, "gpu_span"),
        enqueue_ns=_spread(row, "enqueue"),
    )


def replay_figures(tables: Tables) -> ReplayFigures | None:
    """The known figures of CUDA graph replays; None if the trace does not hide their kernels."""
    if tables.capture.only().text("cuda_graph_trace") != "graph":
        return None
    first = next(iter(tables.hidden_replays), None)

    def spread(name: str) -> Spread | None:
        return None if first is None else _spread(first, name)

    return ReplayFigures(
        launches=int(tables.hidden_replays.ints("launches").sum()),
        runs=int(tables.hidden_replays.ints("runs").sum()),
        gpu_time_ns=spread("gpu_time"),
        launch_ns=spread("launch"),
        round_trip_ns=spread("round_trip"),
        gap_ns=spread("between"),
        gaps_of_gpu=len(tables.cuda_graph_traces) > 0,
    )
