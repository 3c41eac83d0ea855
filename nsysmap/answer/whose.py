"""Attributes inferences and their time to engine files, and names what runs outside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from nsysmap.advice.program import is_tensorrt
from nsysmap.answer.model import Answer, EngineRan, IdleCause, Outside, Slowest
from nsysmap.core.groups import rows_of_values
from nsysmap.core.intervals import covered
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table
from nsysmap.text.units import counted, percent, rounded
from nsysmap.trace.inferences.steady import steady_windows

_MUCH = 0.1
"""Share of the kernel time outside the inferences, from which the time from one to the next is not
called that of an inference: below it, as with the sampling kernels after each step of a language
model (7 %), the two are about the same.
"""
# share of the kernel time from which TensorRT's kernels outside the inferences are another engine's
_LEAST_MORE = 0.01
NO_GIVEN = "no given engine"
"""The owner of inferences and kernels that no given engine file explains."""


def without_engine(verdicts: Iterable[str | None]) -> str:
    """The owner of inferences without an engine, given the verdicts on the engine files: it may be
    undecided which of the files ran.
    """
    return "unknown engine" if "cannot-tell" in verdicts else NO_GIVEN


def outside_of(tables: Mapping[str, Table], a_pass: int) -> Outside | None:
    """What the inferences' processes run on their GPUs outside the inferences, in the steady-state
    part; ``a_pass`` is the number of inferences per unit.

    None where the trace hides kernels, and where no inference is known.
    """
    kernels, inferences = tables["kernels"], tables["inferences"]
    if tables["capture"].only().text("cuda_graph_trace") == "graph" or not len(
        tables["device_times"]
    ):
        return None
    rows, took, others = _in_steady_part(kernels, inferences, tables["steady_state"])
    codes = kernels.text("name").codes[rows]
    family = {row.text("name"): row.text("family") for row in tables["names"]}
    values = kernels.text("name").values
    tensorrt = np.array([is_tensorrt(family.get(name, ""), name) for name in values], np.bool_)
    pytorch = np.array([family.get(name) == "pytorch" for name in values], np.bool_)
    whole = max(int(took.sum()), 1)
    shares = [
        int(took[others & of[codes]].sum()) / whole if len(values) else 0.0
        for of in (tensorrt, pytorch)
    ]
    span = [
        row.maybe_integer("gpu_span_median_ns")
        for row in tables["inference_groups"]
        if row.integer("steady")
    ]
    # two inferences; a GPU that runs a part of another's has none
    between = sum(max(row.integer("inferences") - 1, 0) for row in tables["device_times"])
    return Outside(
        kernels=int(others.sum()) * a_pass / max(between, 1),
        share=int(took[others].sum()) / whole,
        tensorrt=shares[0],
        pytorch=shares[1],
        span_ns=span[0] if len(span) == 1 else None,
    )


def much_runs_outside(kernels: Table, inferences: Table) -> bool:
    """The result of is_much for the inferences of a trace (see schema.KERNELS,
    schema.INFERENCES).
    """
    _, took, others = _in_steady_part(kernels, inferences, steady_windows(inferences))
    return int(took[others].sum()) >= _MUCH * max(int(took.sum()), 1)


def _in_steady_part(
    kernels: Table, inferences: Table, windows: Table
) -> tuple[IntArray, IntArray, BoolArray]:
    """The kernels of the inferences' processes within these windows (STEADY_STATE), their times,
    and which are in no inference.
    """
    start, device = kernels.ints("start_ns"), kernels.ints("device")
    inside = np.zeros(len(kernels), np.bool_)
    for row in windows:
        begin, end = row.integer("start_ns"), row.integer("end_ns")
        inside |= (device == (row.maybe_integer("device") or 0)) & (start >= begin) & (start <= end)
    rows = np.flatnonzero(inside & np.isin(kernels.ints("process"), inferences.ints("process")))
    return (
        rows,
        (kernels.ints("end_ns") - kernels.ints("start_ns"))[rows],
        kernels.ints("inference")[rows] == MISSING,
    )


def idle_causes(tables: Mapping[str, Table], device: int, units: float) -> tuple[IdleCause, ...]:
    """The idle time of a device by cause, per unit, the most first; the profiler's is inferred
    where no row of the trace shows most.
    """
    gaps = tables["gaps"]
    mine = np.flatnonzero(gaps.text("cause").equals("profiler") & (gaps.ints("device") == device))
    took = gaps.ints("dur_ns")[mine]
    seen_ns = int(took[~gaps.text("evidence_kind").equals("inferred")[mine]].sum())
    outside = _launching_outside_calls(tables, device)
    return tuple(
        IdleCause(
            row.text("cause"),
            round(row.integer("time_ns") / units) if units else None,
            row.real("share_of_window"),
            outside_calls=outside if row.text("cause") == "launch" else 0.0,
            inferred=row.text("cause") == "profiler" and 2 * seen_ns < int(took.sum()),
        )
        for row in tables["idle_totals"]
        if row.integer("device") == device
    )


def _launching_outside_calls(tables: Mapping[str, Table], device: int) -> float:
    """The share of a device's window in which it waited for launches while the launching thread was
    in no CUDA call; 0 where ranges or graph launches enclose what the host does to launch: there it
    is the library's own work.
    """
    gaps, calls, found_by = (
        tables["gaps"],
        tables["api_calls"],
        tables["inferences"].text("found_by"),
    )
    window = next((row for row in tables["device_times"] if row.integer("device") == device), None)
    if (
        window is None
        or not len(found_by)
        or not found_by.equals("period").all()
        or not window.integer("window_ns")
    ):
        return 0.0
    mine = gaps.text("cause").equals("launch") & (gaps.ints("device") == device)
    mine &= (gaps.ints("start_ns") >= window.integer("start_ns")) & (
        gaps.ints("end_ns") <= window.integer("end_ns")
    )
    rows, lost = np.flatnonzero(mine), 0
    for thread, places in rows_of_values(gaps.ints_at("thread", rows), rows):
        begin, end = (gaps.ints_at(name, places) for name in ("start_ns", "end_ns"))
        own = np.flatnonzero(calls.ints("thread") == thread)
        in_calls = covered(
            calls.ints_at("start_ns", own), calls.ints_at("end_ns", own), (begin, end)
        )
        waited = end - begin
        waited -= in_calls
        lost += int(waited.sum())
    return lost / window.integer("window_ns")


def opaque_layers(tables: Mapping[str, Table]) -> int | None:
    """How many layers of the engines that ran are opaque regions of Myelin; None if no given engine
    is known to have run.
    """
    ran = {row.integer("engine") for row in tables["engine_fits"] if row.text("verdict") == "ran"}
    if not ran or any(row.maybe_integer("engine") is None for row in tables["inference_groups"]):
        return None
    return sum(
        row.text("kind") == "foreign_node"
        for row in tables["layers"]
        if row.maybe_integer("engine") in {*ran, None}
    )


def no_region(summary: Answer) -> str:
    """Says that no layer is an opaque region, whose insides would be shown; empty where one is, or
    where that is unknown.
    """
    return "no opaque region" if summary.opaque_layers == 0 else ""


def is_much(found: Outside | None) -> bool:
    """Whether so much runs outside the inferences that the time from one to the next is not that of
    an inference.
    """
    return found is not None and found.share >= _MUCH


def among(summary: Answer) -> str:
    """That inferences are not all that runs, for the title."""
    return " among other kernels" if _told(summary) is not None else ""


def outside(summary: Answer) -> str:
    """How long an inference alone takes, and what else runs; empty if that is little."""
    found = _told(summary)
    if found is None:
        return ""
    whose = (
        "another engine's" if any(engine.inferences for engine in summary.engines) else "TensorRT's"
    )
    classes = (("at least ", found.tensorrt, whose), ("", found.pytorch, "PyTorch's"))
    parts = "; ".join(
        f"{least}{percent(share, 1, 0)} {what}" for least, share, what in classes if share
    )
    kernels = (
        f"{counted(max(round(found.kernels), 1), 'kernel')} outside inferences,"
        f" {percent(found.share, 1, 0)} of kernel time"
    )
    span = (
        f"{rounded(found.span_ns)} from first to last kernel; " if found.span_ns is not None else ""
    )
    return f"{span}{kernels}{f' ({parts})' if parts else ''}"


def _told(summary: Answer) -> Outside | None:
    """What runs outside the inferences; left out for passes of several inferences unless it is
    another engine's work.
    """
    found = summary.outside
    return (
        found
        if found is not None and is_much(found) and (summary.one_a_unit or found.tensorrt)
        else None
    )


def whose_slowest(summary: Answer, found: Slowest) -> str:
    """The engine of the slowest inference, where inferences are not all of one."""
    own = sum(engine.inferences for engine in summary.engines)
    alone = len(summary.engines) == 1 and own == summary.inferences
    if not own or alone or (found.engine is None and summary.hidden):
        return ""
    none = without_engine(engine.verdict for engine in summary.engines)
    return f" ({none if found.engine is None else engine_names(summary)[found.engine]})"


def engines_ran(summary: Answer) -> list[str]:
    """Whether each engine file is what ran; one sentence if all are."""
    if not summary.engines and summary.mapped.with_layer:
        return ["no engine file was given"]
    told = [engine for engine in summary.engines if engine.verdict]
    others = other_engines(summary)
    if (
        len(told) > 1
        and all(engine.verdict == "ran" for engine in summary.engines)
        and not any(map(_but, told))
    ):
        alike = (
            ", or others of the same structure" if any(engine.by_order for engine in told) else ""
        )
        both = f"{'both' if len(told) == 2 else f'all {len(told)}'} engines"
        if not any(map(_by_names, told)):
            return [f"{both} ran{alike}", *others]
        if all(map(_by_names, told)):
            return [f"{both} fit by layer names ({_unchecked(summary, 'their')})", *others]
    open_ones = [engine.source for engine in told if engine.verdict == "cannot-tell"]
    if len(open_ones) > 1:
        among = [engine for engine in told if engine.verdict == "cannot-tell"]
        told = [engine for engine in told if engine.verdict != "cannot-tell"]
        one_of = [engine.source for engine in among if engine.one_of == len(among)]
        others = [
            f"one of {' and '.join(one_of)} ran, they cannot be told apart"
            if len(one_of) == len(among)
            else f"which of {' and '.join(open_ones)} ran, if any, cannot be told",
            *others,
        ]
    return [*(engine_ran(summary, engine) for engine in told), *others]


def other_engines(summary: Answer) -> list[str]:
    """That inferences, or TensorRT's kernels outside them, are of no given engine; that they are
    hidden.
    """
    told = [engine for engine in summary.engines if engine.verdict]
    own = sum(engine.inferences for engine in told)
    none = without_engine(engine.verdict for engine in told)
    why = "hide their kernels" if summary.hidden else f"are of {none}, as far as their kernels show"
    others = (
        [f"{counted(summary.inferences - own, 'inference')} {why}"]
        if 0 < own < summary.inferences
        else []
    )
    more = summary.outside is not None and summary.outside.tensorrt >= _LEAST_MORE
    others += ["give the file of the other TensorRT kernels' engine too"] if own and more else []
    return others


def engine_ran(summary: Answer, engine: EngineRan) -> str:
    """Whether an engine file is what ran the inferences, or how many of them; empty if nothing
    could be compared.
    """
    if engine.verdict == "did-not-run" and not summary.tensorrt:
        return f"{engine.source} did not run: the trace shows no TensorRT"
    other_build = engine.unknown_layers or engine.lacking or engine.other_tactics
    every = counted(summary.inferences, "inference")
    if (
        engine.verdict == "ran"
        and engine.other_kernels
        and engine.tactics
        and not (other_build or engine.in_doubt)
    ):
        own = (
            f"{engine.inferences - engine.other_kernels:,} of {every} ran the tactics of"
            f" {engine.source}"
        )
        return (
            f"{own}; {engine.other_kernels:,} ran the same layers with other kernels: another"
            " shape, profile or engine"
        )
    part = 0 < engine.inferences < summary.inferences
    some = f"{engine.inferences:,} of {every}"
    alike = "or one of the same structure " if engine.by_order and not other_build else ""
    ran = (
        f"{'may be another build of' if other_build else 'is'} the engine that ran"
        if not alike
        else "ran"
    )
    ran = f"{alike}{f'ran in {some}' if part else ran}"
    if _by_names(engine) and not other_build:
        ran = f"fits {f'{some} ' if part else ''}by layer names ({_unchecked(summary, 'its')})"
    words = {
        "ran": ran,
        "did-not-run": "is NOT the engine that ran",
        "cannot-tell": "may or may not be the engine that ran",
    }
    return f"{engine.source} {words[engine.verdict]}{_but(engine)}" if engine.verdict else ""


def _by_names(engine: EngineRan) -> bool:
    """Whether nothing but the names of its layers shows that an engine ran: no kernel could be
    compared with a tactic.
    """
    return engine.verdict == "ran" and not engine.by_order and not engine.tactics


def _unchecked(summary: Answer, whose: str) -> str:
    """Why no kernel could be compared with a tactic."""
    return f"{whose} kernels are hidden" if summary.hidden else "no tactics to check"


def _but(engine: EngineRan) -> str:
    """How many of its inferences may be of another engine or optimization profile, if any."""
    but = (
        [f"{engine.in_doubt:,} may be another engine's"]
        if 0 < engine.in_doubt < engine.inferences
        else []
    )
    but += (
        [f"{engine.other_kernels:,} of another shape, profile or engine"]
        if engine.other_kernels
        else []
    )
    but += (
        [f"{counted(engine.unknown_layers, 'layer')} in the trace not in the file"]
        if engine.unknown_layers
        else []
    )
    but += [f"{counted(engine.lacking, 'layer')} of the file ran nothing"] if engine.lacking else []
    but += (
        [f"{counted(engine.other_tactics, 'layer')} ran other tactics"]
        if engine.other_tactics
        else []
    )
    return f" ({', '.join(but)})" if but and engine.verdict == "ran" else ""


def engine_names(summary: Answer) -> list[str]:
    """The engine files, without a suffix that all of several share."""
    return short_engines([engine.source for engine in summary.engines])


def short_engines(names: Sequence[str]) -> list[str]:
    """Names of engine files without a suffix that all of several share."""
    endings = {"".join(PurePath(name).suffixes) for name in names}
    return (
        [name.removesuffix(next(iter(endings))) for name in names]
        if len(endings) == 1 and len(names) > 1
        else list(names)
    )
