"""Lays out the output of `nsysmap inference`: one inference next to the median, as text
and JSON.
"""

from __future__ import annotations

from nsysmap.comparison.inference import OneInference
from nsysmap.comparison.json_keys import COMPARISON
from nsysmap.comparison.pages import contribution_rows, signed_microseconds
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.json_record import record
from nsysmap.core.table import Row
from nsysmap.text.page import Page, Section, tabled
from nsysmap.text.page_lines import page_text
from nsysmap.text.terminal import escaped
from nsysmap.text.units import counted, duration, microseconds, multiple, percent

SCHEMA = "nsysmap/inference/1"
WENT_TO = "Where its time went, µs"
_TIMES = 3  # times the median from which that ratio is told instead of a percentage
_LEAST_PART = 0.1  # of the difference, from which what had passed before an inference began is told
TOP = 12
"""Rows of a table shown at most."""


def inference_json(found: OneInference) -> dict[str, object]:
    """One JSON object; times in nanoseconds as recorded, profiler included."""
    return {
        "schema": SCHEMA,
        **record(found, COMPARISON),
        "difference_ns": found.time_ns - found.usual_ns,
        "contributions": record(found.contributions, COMPARISON),
        "waits": record(found.waits, COMPARISON),
        "kernels": found.kernels.records(),
    }


def inference_text(found: OneInference, width: int | None = None, *, colour: bool = False) -> str:
    """The inference for a terminal of ``width`` columns; names are not cut if it is None."""
    return page_text(page_of_inference(found), width, colour=colour)


def page_of_inference(found: OneInference) -> Page:
    """The answer, the contributions to the difference, and the kernels and gaps that differ most
    from the median.
    """
    extra = found.time_ns - found.usual_ns
    shown = [one for one in found.contributions if one.ns][:TOP]
    rows = contribution_rows(shown)
    rest = extra - sum(one.ns for one in shown)
    if rest:
        rows.append((signed_microseconds(rest), "", "", "all others"))
    rows.append(
        (
            signed_microseconds(extra),
            microseconds(found.usual_ns),
            microseconds(found.time_ns),
            "total",
        )
    )
    header = ("difference", "median", "this one", "")
    sections = [tabled("went-to", WENT_TO, header, rows, "rrrn")]
    if _began_late(found):
        sections.append(_waits(found))
    kernels = sorted(found.kernels, key=lambda row: -abs(row.integer("extra_ns")))
    cells = tuple(
        (
            signed_microseconds(row.integer("extra_ns")),
            str(row["position"]),
            f"{microseconds(row.integer('gap_ns'))} ({microseconds(row.integer('usual_gap_ns'))})",
            f"{microseconds(row.integer('time_ns'))} ({microseconds(row.integer('usual_ns'))})",
            (
                ""
                if row["cause"] is None
                else escaped(f"{idle_words(str(row['cause']))}: {_evidence(row)}")
            ),
            escaped(row.maybe_text("layer_title") or row.text("kernel")),
        )
        for row in kernels[:TOP]
    )
    if cells:
        header2 = (
            "extra",
            "#",
            "gap before (median)",
            "kernel (median)",
            "cause of the gap",
            "layer",
        )
        heading = "Kernels and the gaps before them, the largest differences first, µs"
        sections.append(
            tabled("kernels", heading, header2, cells, "rrrrnn", more=len(kernels) - len(cells))
        )
    return Page(
        f"{found.source}, {found.one} {found.inference}",
        tuple(_answer(found, extra)),
        tuple(sections),
    )


def _answer(found: OneInference, extra: int) -> list[str]:
    more = "more" if extra >= 0 else "less"
    beside = f"{duration(abs(extra))} ({percent(abs(extra), found.usual_ns)}) {more} than"
    if found.usual_ns and found.time_ns >= _TIMES * found.usual_ns:
        beside = f"{multiple(found.time_ns / found.usual_ns)} times as long as"
    lines = [
        f"{duration(found.time_ns)} as recorded, {beside} {found.one} {found.usual}, the median of"
        f" {counted(found.like, f'steady-state {found.one}')} with the same"
        f" kernels{' in its phase' if found.phases else ''}."
    ]
    if found.warmup:
        lines.append("It belongs to the warm-up.")
    elif found.rank is None:
        lines.append(
            "It is none of them: it is "
            + (
                "the first on its thread, so its time begins with it."
                if found.first
                else "not complete."
            )
        )
    else:
        lines.append(
            "It is the slowest of them."
            if found.rank == 1
            else f"It is number {found.rank} of them, counted from the slowest."
        )
    longer = sorted(
        (one for one in found.contributions if one.ns * extra > 0), key=lambda one: -abs(one.ns)
    )
    if extra and longer:
        most = longer[0]
        share = percent(min(abs(most.ns), abs(extra)), abs(extra), 0)
        part = "Most" if 2 * abs(most.ns) > abs(extra) else "The largest part"
        lines.append(
            f"{part} of the difference ({share}) is {most.name}: {duration(most.after_ns)} instead"
            f" of {duration(most.before_ns)}."
        )
        if _began_late(found):
            passed = (duration(one) for one in (found.before_ns, found.usual_before_ns))
            lines.append(f"Before it began, {next(passed)} had passed instead of {next(passed)}.")
        worst = max(
            found.kernels,
            key=lambda row: row.integer("extra_ns") * (1 if extra > 0 else -1),
            default=None,
        )
        if (
            worst is not None
            and most.kind == "idle"
            and worst["cause"] is not None
            and worst.integer("extra_ns") > _LEAST_PART * extra > 0
        ):
            own, usual = (duration(worst.integer(name)) for name in ("gap_ns", "usual_gap_ns"))
            lines.append(
                f"Of the gaps before its kernels, that before kernel {worst['position']}"
                f" ({worst['layer'] or worst['kernel']}) differs most: {own} instead of {usual};"
                f" {idle_words(worst.text('cause'))}: {_why(worst)}."
            )
    return lines


def _why(kernel: Row) -> str:
    """What delayed the host before a kernel, if its launch call shows it; otherwise the row that
    proves the cause.
    """
    late, call, gap = (
        kernel.maybe_integer("late_ns"),
        kernel.maybe_integer("call_ns"),
        kernel.integer("gap_ns"),
    )
    if kernel["cause"] != "launch" or late is None or call is None:
        return _evidence(kernel)
    if 2 * late > gap:
        return f"the host began {_evidence(kernel)} {duration(late)} after the GPU went idle"
    return f"{_evidence(kernel)} took {duration(call)}" if 2 * call > gap else _evidence(kernel)


def _began_late(found: OneInference) -> bool:
    """Whether much of the difference is in what had passed before it began."""
    return abs(found.before_ns - found.usual_before_ns) > _LEAST_PART * abs(
        found.time_ns - found.usual_ns
    )


def _waits(found: OneInference) -> Section:
    """The idle intervals before it began."""
    cells = tuple(
        (
            microseconds(one.ns),
            escaped(_proven(one.cause, one.evidence_kind, one.evidence, one.evidence_name)),
            escaped(one.ended_by or ""),
        )
        for one in found.waits[:TOP]
    )
    return tabled(
        "waits",
        "Idle before it began, the longest first, µs",
        ("idle", "cause", "ended by"),
        cells,
        "rnn",
        more=len(found.waits) - len(cells),
    )


def _proven(cause: str, kind: str, evidence: str, name: str) -> str:
    """A cause of idle time in words, and what proves it: of the profiler's own rows, which the
    words for the cause say already, the name alone.
    """
    return f"{idle_words(cause)}: {name if kind == cause else evidence}"


def _evidence(kernel: Row) -> str:
    """The evidence for the cause; for the profiler's own rows only the name, as above."""
    named = kernel["evidence_kind"] == kernel["cause"]
    return str(kernel["evidence_name" if named else "evidence"])
