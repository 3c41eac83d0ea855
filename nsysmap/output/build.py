"""Computes the figures of a report from an analysis."""

from __future__ import annotations

from dataclasses import fields

from nsysmap.analysis import Analysis
from nsysmap.core.note import gravest_first
from nsysmap.core.schema import Tables
from nsysmap.core.table import Row
from nsysmap.output.model import (
    EngineFile,
    Gpu,
    IdleRow,
    InferenceFigures,
    ReplayFigures,
    Report,
    Spread,
    TraceFacts,
)
from nsysmap.text.units import rounded_share

_NO_INFERENCES = InferenceFigures(None, 0, 0, 0, 0, None, None, None, None, None)


def report_of(analysis: Analysis) -> Report:
    """The report of an analysis: every figure that the report's writers show."""
    tables = analysis.tables
    capture = tables.capture.records()[0]
    every, *by_engine = [_figures(row) for row in tables.engine_inferences] or [_NO_INFERENCES]
    gpus = _gpus(tables)
    worked = [
        (gpu.busy_ns, gpu.window_ns) for gpu in gpus if gpu.busy_ns is not None and gpu.window_ns
    ]
    return Report(
        summary=analysis.summary,
        trace=TraceFacts(
            copies=len(tables.memcpys),
            **{
                field.name: capture[field.name]
                for field in fields(TraceFacts)
                if field.name in capture
            },  # type: ignore[arg-type]
        ),
        gpus=gpus,
        engines=tuple(
            EngineFile(
                number,
                file.source,
                file.tensorrt_version,
                len(file.layers),
                file.detailed,
                sum(one.count for one in by_engine if one.engine == number),
            )
            for number, file in enumerate(analysis.engines)
        ),
        inferences=every,
        by_engine=tuple(by_engine) if len(by_engine) > 1 else (),
        busy_share=(
            _share(sum(busy for busy, _ in worked), sum(window for _, window in worked))
            if worked
            else None
        ),
        busy_window="inferences" if every.measured else "trace",
        replays=_replays(tables) if capture["cuda_graph_trace"] == "graph" else None,
        layer_time="mean per inference of the engine" if every.measured else "total over the trace",
        idle=_idle(tables),
        tables=tables,
        outcomes=analysis.outcomes,
        notes=tuple(gravest_first(analysis.notes)),
    )


def _share(part: float, whole: float) -> float:
    return rounded_share(part / whole) if whole > 0 else 0.0


def _spread(row: Row, name: str) -> Spread | None:
    median, p95 = (row.maybe_integer(f"{name}_{of}_ns") for of in ("median", "p95"))
    return None if median is None or p95 is None else Spread(median, p95)


def _gpus(tables: Tables) -> tuple[Gpu, ...]:
    """The GPUs that worked, with the windows of `device_times`; all GPUs of the machine where the
    trace shows no work.
    """
    times = {row.integer("device"): row for row in tables.device_times}
    known = {row.integer("device"): row for row in tables.devices}
    gpus = []
    for device in sorted(times or known):
        facts, time = known.get(device), times.get(device)
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
                window_ns=None if time is None else time.integer("window_ns"),
                busy_ns=None if time is None else time.maybe_integer("busy_ns"),
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


def _replays(tables: Tables) -> ReplayFigures:
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


def _idle(tables: Tables) -> tuple[IdleRow, ...]:
    """Idle time by cause of each GPU, within its window."""
    rows = [
        IdleRow(
            row.integer("device"),
            row.text("cause"),
            row.integer("gaps"),
            row.integer("time_ns"),
            row.real("share_of_window"),
        )
        for row in tables.idle_totals
    ]
    return tuple(sorted(rows, key=lambda row: (row.device, -row.time_ns, row.cause)))
