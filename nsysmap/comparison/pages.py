"""Lays out the output of `nsysmap compare`: the answer, where the difference comes from, layers,
findings and conditions, as text, JSON or Markdown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nsysmap.answer import eight_bits_words
from nsysmap.answer.model import EightBits
from nsysmap.comparison.compare import (
    CANNOT_TELL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    TOO_FEW,
    Comparison,
    SideTime,
)
from nsysmap.comparison.conditions import Condition
from nsysmap.comparison.finding_changes import FindingChange
from nsysmap.comparison.joined import RUNS_NOTHING, blocks_of, group_name
from nsysmap.comparison.json_keys import COMPARISON
from nsysmap.comparison.pace import HIDDEN_COST_WORDS
from nsysmap.comparison.precision import OUTSIDE, SAME_TYPE, PrecisionReason
from nsysmap.comparison.predictions import Prediction
from nsysmap.comparison.waterfall import Contribution
from nsysmap.core.comparison_schema import JOINED_LAYERS, REGION_KINDS, REGION_PARTS
from nsysmap.core.json_record import record, record_schema
from nsysmap.core.json_schema import TEXTS, Schema, columns_of, list_of, object_of
from nsysmap.core.table import Row, sum_of
from nsysmap.text.page import Page, Section, grid_of, notes_section, tabled
from nsysmap.text.page_lines import page_text
from nsysmap.text.page_markdown import page_markdown
from nsysmap.text.terminal import escaped, shortened, told_apart
from nsysmap.text.units import capitalised, counted, duration, microseconds, percent, unit_words

_LONGEST_NAME = 30  # of a file
_LONGEST_REGION = 50  # columns
_TOLD_PLACE = 24  # leading characters of a layer's name that show that a sentence names it
SCHEMA = "nsysmap/comparison/1"
WATERFALL = "Where the difference comes from, µs"
TOP_CONTRIBUTIONS, _TOP_LAYERS, _TOP_FINDINGS, _TOP_CHANGES = 30, 25, 20, 20
_PRECISION_ROWS = 3  # the largest reasons; the rest adds up to a line
_FOLDED = 3  # findings of one rule with the same change, from which on they share one row
_CHANGES = (
    ("precision", "Precision"),
    ("fusion", "Fused or split differently"),
    ("reformat", "Reformats"),
    ("tactic", "Different kernels"),
    ("new", "New layers"),
    ("gone", "Layers that are gone"),
)


def comparison_json(found: Comparison) -> dict[str, object]:
    """The comparison as one JSON object; times in nanoseconds per inference, or per pass of
    ``inferences_a_pass``.
    """
    layers = found.layers.records()
    return {
        "schema": SCHEMA,
        "before": record(found.before, COMPARISON),
        "after": record(found.after, COMPARISON),
        "before_ns": found.before.time_ns,
        "after_ns": found.after.time_ns,
        "difference_ns": found.difference_ns,
        "interval_ns": None if found.interval_ns is None else list(found.interval_ns),
        "noise_interval_ns": None if found.noise_ns is None else list(found.noise_ns),
        "significant": found.significant,
        "verdict": found.verdict,
        "p": found.p,
        "test": found.test,
        "run_to_run_ns": found.run_to_run_ns,
        "inferences_a_pass": found.inferences_a_pass,
        "contributions": record(found.contributions, COMPARISON),
        "layers": layers,
        "region_kinds": found.regions.records(),
        "region_parts": found.region_parts.records(),
        "findings": record(found.findings, COMPARISON),
        "conditions": record(found.conditions, COMPARISON),
        "predictions": record(found.predictions, COMPARISON),
        "precision": record(found.precision, COMPARISON),
        "eight_bits": record(found.eight_bits, COMPARISON),
        "notes": list(found.notes),
    }


def json_schema() -> Schema:
    """The JSON Schema of what `comparison_json` returns, from the declarations."""
    time, text = {"type": ["integer", "null"]}, {"type": "string"}
    interval = {
        "type": ["array", "null"],
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
    }
    verdicts = [FASTER, SLOWER, NO_DIFFERENCE, TOO_FEW, CANNOT_TELL]
    properties: Schema = {
        "schema": {"const": SCHEMA},
        "before": object_of(record_schema(SideTime, COMPARISON)),
        "after": object_of(record_schema(SideTime, COMPARISON)),
        **dict.fromkeys(("before_ns", "after_ns", "difference_ns", "run_to_run_ns"), time),
        "interval_ns": interval,
        "noise_interval_ns": interval,
        "significant": {"type": "boolean"},
        "verdict": {"enum": verdicts},
        "p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "test": text,
        "inferences_a_pass": {"type": "integer", "minimum": 1},
        "contributions": _items(record_schema(Contribution, COMPARISON)),
        "layers": _items(columns_of(JOINED_LAYERS)),
        "region_kinds": _items(columns_of(REGION_KINDS)),
        "region_parts": _items(columns_of(REGION_PARTS)),
        "findings": _items(record_schema(FindingChange, COMPARISON)),
        "conditions": _items(record_schema(Condition, COMPARISON)),
        "predictions": _items(record_schema(Prediction, COMPARISON)),
        "precision": _items(record_schema(PrecisionReason, COMPARISON)),
        "eight_bits": _items(record_schema(EightBits, COMPARISON)),
        "notes": TEXTS,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **object_of(properties)}


def _items(properties: Schema) -> Schema:
    return list_of(object_of(properties))


def page_of(found: Comparison) -> Page:
    """The comparison in words and tables."""
    return Page(
        f"{found.before.source} → {found.after.source}",
        tuple(_answer(found)),
        (*(one for one in _sections(found) if grid_of(one)), *notes_section(list(_notes(found)))),
        "red" if found.verdict == SLOWER else "bold",
    )


def _sections(found: Comparison) -> Iterator[Section]:
    yield from (
        _times(found),
        _conditions(found),
        _precision(found),
        _eight_bits(found),
        _waterfall(found),
        _predictions(found),
    )
    yield from (_layers(found), *_regions(found), *_changed(found), _findings(found))


# --- the answer
# --------------------------------------------------------------------------------------------------


def verdict_words(found: Comparison) -> str:
    """The verdict, with the times and their difference; of a comparison with both times."""
    verdict = {"faster": "FASTER: ", "slower": "SLOWER: "}.get(
        found.verdict, f"{capitalised(found.verdict)}: "
    )
    if other := [one.what for one in found.conditions if one.other_work]:
        verdict = f"Not like for like ({', '.join(other)}). {verdict}"
    return f"{verdict}{_change(found)}"


_WHOLE_GRAPHS = f"as recorded (tracing whole CUDA graphs is assumed to add {HIDDEN_COST_WORDS})"


def _change(found: Comparison) -> str:
    """The times of both sides, and by how much they differ."""
    before, after = found.before, found.after
    difference_ns = found.difference_ns or 0
    unit = unit_words(found.inferences_a_pass)
    share = percent(abs(difference_ns), before.time_ns or 0)
    way = "less" if difference_ns < 0 else "more"
    times = [duration(side.time_ns) for side in (before, after)]
    if before.profiled or not before.inferences:
        recorded = (
            " as recorded, profiler"
            f" included{', without outliers' if before.held_up or after.held_up else ''}"
        )
        words = f"{times[0]} → {times[1]} per {unit}{recorded if before.profiled else ''}"
    elif before.whole_graphs == after.whole_graphs:
        how = _WHOLE_GRAPHS if before.whole_graphs else "without the profiler"
        words = f"{times[0]} → {times[1]} per {unit} {how}"
    else:
        hows = [
            _WHOLE_GRAPHS if side.whole_graphs else "without the profiler"
            for side in (before, after)
        ]
        words = f"{times[0]} per {unit} {hows[0]} → {times[1]} {hows[1]}"
    return f"{words}: {duration(abs(difference_ns))} {way}" + (
        f" ({share})" if before.time_ns else ""
    )


def _answer(found: Comparison) -> Iterator[str]:
    before, after = found.before, found.after
    layers = _layers_told(found)
    if before.time_ns is None or after.time_ns is None or found.difference_ns is None:
        missing = [side.source for side in (before, after) if side.time_ns is None]
        told = (
            found.no_test
            if before.profiled or after.profiled
            else (
                f"{' and '.join(missing)} {'has' if len(missing) == 1 else 'have'} none; give"
                " captures or trtexec profiles"
            )
        )
        yield (
            f"No time to compare: {told}."
            if missing
            else "A capture and a profile measure times differently: they are not compared."
        )
        yield from (*_conditions_told(found), *layers)
        return
    if not before.inferences and not after.inferences:
        yield f"{_change(found)}; with one time per side, nothing says whether this is noise."
        yield from (*_conditions_told(found), *layers)
        return
    yield f"{verdict_words(found)}."
    yield from _conditions_told(found)
    if found.interval_ns is not None:
        low, high = found.interval_ns
        alone = "of the inferences" if found.before.runs == 1 else "between the runs"
        yield f"95 % interval of the difference: {_signed(low)} to {_signed(high)}" + (
            f" (from the noise {alone} alone, {_signed(found.noise_ns[0])} to"
            f" {_signed(found.noise_ns[1])}; Test says what widens it)."
            if found.noise_ns is not None and found.noise_ns != found.interval_ns
            else "."
        )
    yield from layers
    if found.verdict == NO_DIFFERENCE and (
        beyond := sum(row.flag("significant") for row in found.layers)
    ):
        yield (
            f"{counted(beyond, 'row')} of layers {'differs' if beyond == 1 else 'differ'} beyond"
            " the noise (*); the whole does not."
        )
    if found.verdict == CANNOT_TELL and found.interval_ns is not None:
        yield (
            "The inferences differ beyond their noise, but how fast the host launches without the"
            " profiler is not known well enough to say that the difference remains: time both"
            " without the profiler, or capture both with less tracing (CUDA graphs, no ranges)."
        )
    if _only_runs_tell(found):
        yield (
            "These two captures differ by more than the noise of their inferences, but two runs of"
            f" one program may differ by about {duration(found.run_to_run_ns)} here. Only several"
            " runs of each can decide (nsysmap compare A1 A2 A3 -- B1 B2 B3)."
        )
    if found.interval_ns is None:
        yield f"{capitalised(found.test)}."


_COUNTED = {
    "precision": "in a different precision", "fusion": "fused or split differently",
    "reformat": "reformats added or removed",
    "tactic": "with different kernels", "new": "new", "gone": "gone",
}  # fmt: skip
_REGIONS = {
    "moved-into-region": "moved into regions",
    "moved-out-of-region": "moved out of regions",
}


def _layers_told(found: Comparison) -> Iterator[str]:
    """How many layers changed, and how; layers that run nothing are not counted."""
    counted_ = [
        row
        for row in found.layers
        if row.text("change") != "no-op" and row.text("kind") not in RUNS_NOTHING
    ]
    moved = {
        relation: [row for row in counted_ if row.text("relation") == relation]
        for relation in _REGIONS
    }
    held = Counter(row.text("change") for row in counted_ if row.text("relation") not in _REGIONS)
    parts = [f"{held[change]} {words}" for change, words in _COUNTED.items() if held[change]]
    for relation, words in _REGIONS.items():
        if moved[relation]:
            numbers = [
                sum(row.integer(f"{side}_layers") for row in moved[relation])
                for side in ("before", "after")
            ]
            parts.append(f"{numbers[0]} that became {numbers[1]}, {words}")
    same = sum(row.text("relation") == "one-to-one" for row in counted_)
    if parts:
        numbers = [
            sum(row.integer(f"{side}_layers") for row in counted_) for side in ("before", "after")
        ]
        yield (
            f"{same} of {numbers[0]} layers before and {numbers[1]} after are joined one to one."
            f" What changed: {', '.join(parts)}."
        )


def _conditions_told(found: Comparison) -> Iterator[str]:
    """The other differences that affect the times."""
    for one in found.conditions:
        if one.told:
            pair = (
                f"Also different: {one.what} ({one.before} → {one.after}). "
                if one.before and one.after
                else ""
            )
            yield pair + one.told


def _only_runs_tell(found: Comparison) -> bool:
    """Whether only the run-to-run differences make the interval contain zero."""
    if found.verdict != NO_DIFFERENCE or found.interval_ns is None or not found.run_to_run_ns:
        return False
    low, high = found.interval_ns
    return low + found.run_to_run_ns > 0 or high - found.run_to_run_ns < 0


def _signed(time_ns: int) -> str:
    return ("+" if time_ns > 0 else "−" if time_ns < 0 else "") + duration(abs(time_ns))


def _notes(found: Comparison) -> Iterator[str]:
    yield from found.notes
    sides = (found.before, found.after)
    told = [
        f"{duration(side.gpu_ns)} and {duration(side.enqueue_ns)}"
        for side in sides
        if side.gpu_ns and side.enqueue_ns
    ]
    if len(told) == 2:
        yield (
            f"GPU work and enqueue per {unit_words(found.inferences_a_pass)}, as recorded:"
            f" {told[0]} before, {told[1]} after."
        )
    yield from (f"Prediction of {one.change}: {one.told}" for one in found.predictions if one.told)
    if found.interval_ns is not None:
        yield f"Test: {found.test}."
    for name, side in (("before", found.before), ("after", found.after)):
        if side.held_up:
            yield (
                f"{name}: {counted(side.held_up, 'inference')} took far longer than the median and"
                f" {'does' if side.held_up == 1 else 'do'} not count; counting them would change"
                f" the recorded mean by {_signed(side.held_up_ns or 0)}. `nsysmap inference` shows"
                " what held one up."
            )


# --- the tables
# --------------------------------------------------------------------------------------------------


def _times(found: Comparison) -> Section:
    sides = (found.before, found.after)
    rows: list[tuple[str, ...]] = []

    def row(name: str, cells: Sequence[str]) -> None:
        if any(cell not in ("–", "") for cell in cells):
            rows.append((name, *cells))

    row("file", told_apart([escaped(side.source) for side in sides], _LONGEST_NAME))
    if any(side.engines != (side.source,) for side in sides):
        row(
            "engine",
            told_apart([escaped(", ".join(side.engines)) for side in sides], _LONGEST_NAME),
        )
    row(
        f"time per {unit_words(found.inferences_a_pass)}",
        [duration(side.time_ns) for side in sides],
    )
    row(
        "  on a faster to a slower host",
        ["–" if side.whole_graphs else _range(side) for side in sides],
    )
    row(
        f"  less {HIDDEN_COST_WORDS} of tracing (assumed)",
        [_range(side) if side.whole_graphs else "–" for side in sides],
    )
    row("  as recorded, profiler included", [duration(side.with_outliers_ns) for side in sides])
    if any(side.held_up for side in sides):
        row("  as recorded, without outliers", [duration(side.recorded_ns) for side in sides])
    row(
        "per second",
        ["–" if side.per_second is None else f"{side.per_second:,.1f}" for side in sides],
    )
    row(
        "runs" if found.before.runs > 1 else "inferences counted",
        [f"{side.inferences:,}" if side.inferences else "–" for side in sides],
    )
    return tabled("times", "Before and after", ("", "before", "after"), tuple(rows), "lrr")


def _range(side: SideTime) -> str:
    if side.low_ns is None or side.high_ns is None or side.low_ns == side.high_ns:
        return "–"
    return f"{duration(side.low_ns)} to {duration(side.high_ns)}"


def _waterfall(found: Comparison) -> Section:
    shown, rest = found.contributions[:TOP_CONTRIBUTIONS], found.contributions[TOP_CONTRIBUTIONS:]
    rows = contribution_rows(shown)
    if rest:
        sums = [
            sum(values)
            for values in zip(*((one.ns, one.before_ns, one.after_ns) for one in rest), strict=True)
        ]
        rows.append(
            (
                signed_microseconds(sums[0]),
                microseconds(sums[1]),
                microseconds(sums[2]),
                f"{len(rest):,} others",
            )
        )
    if rows and found.difference_ns is not None:
        rows.append(
            (
                signed_microseconds(found.difference_ns),
                microseconds(found.before.time_ns),
                microseconds(found.after.time_ns),
                "total",
            )
        )
    return tabled(
        "waterfall", WATERFALL, ("difference", "before", "after", ""), tuple(rows), "rrrn"
    )


def _precision(found: Comparison) -> Section:
    """How much layers that compute in another type add to the difference, and the rest: at most
    four rows, which add up to it.
    """
    named = [one for one in found.precision if one.reason not in (SAME_TYPE, OUTSIDE)]
    shown = named[:_PRECISION_ROWS]
    rest = [one for one in found.precision if one not in shown]
    cells = [(signed_microseconds(one.ns), one.types, escaped(one.told)) for one in shown]
    if rest:
        words = (
            [f"{counted(len(named) - len(shown), 'smaller change')} of type"]
            if len(named) > len(shown)
            else []
        )
        words += [f"{one.told} {signed_microseconds(one.ns)}" for one in rest if one not in named]
        cells.append(
            (
                signed_microseconds(sum(one.ns for one in rest)),
                "",
                escaped(f"the rest: {', '.join(words)}"),
            )
        )
    return tabled(
        "precision",
        "What the other precision does to the time, µs",
        ("difference", "computes in", "why"),
        tuple(cells),
        "rlw",
    )


def _eight_bits(found: Comparison) -> Section:
    """How 8 bits are used, on the side that has them."""
    rows = [row for one in found.eight_bits for row in eight_bits_words.cells(one)]
    return tabled(
        "eight-bits",
        eight_bits_words.heading([one.type for one in found.eight_bits]),
        eight_bits_words.HEADER,
        tuple((*cells, escaped(told)) for *cells, told in rows),
        eight_bits_words.ALIGN,
    )


def contribution_rows(shown: Iterable[Contribution]) -> list[tuple[str, ...]]:
    """The difference, both times and the name of each contribution."""
    return [
        (
            signed_microseconds(one.ns),
            microseconds(one.before_ns),
            microseconds(one.after_ns),
            escaped(one.name),
        )
        for one in shown
    ]


def signed_microseconds(time_ns: int | None) -> str:
    """A difference in µs with its sign and two decimals; "–" for none."""
    return "–" if time_ns is None else f"{time_ns / 1e3:+,.2f}"


def _layers(found: Comparison) -> Section:
    blocks = blocks_of(
        row
        for row in found.layers
        if row["difference_ns"] is not None or row["before"] is None or row["after"] is None
    )
    blocks.sort(key=lambda rows: (not rows[0].flag("significant"), -_moved(rows)))
    shown = [
        rows for rows in blocks if rows[0].flag("significant") or _moved(rows) >= 100 * len(rows)
    ][:_TOP_LAYERS]
    cells = tuple(
        (
            signed_microseconds(sum_of(rows, "difference_ns")),
            "*" if rows[0].flag("significant") else "",
            microseconds(sum_of(rows, "before_ns")),
            microseconds(sum_of(rows, "after_ns")),
            str(len(rows)),
            _joined(rows[0]),
            escaped(_pair(rows)),
        )
        for rows in shown
    )
    header = ("difference", "", "before", "after", "layers", "joined by", "layer")
    left = sum(map(len, blocks)) - sum(map(len, shown))
    return tabled(
        "layers",
        "Layers, kernel time in µs as recorded (* beyond the noise)",
        header,
        cells,
        "rlrrrln",
        more=left,
        places=_places(shown),
    )


def _joined(row: Row) -> str:
    """How the layers were matched, and what became of those that have no single counterpart."""
    relation, by = row.text("relation"), row.maybe_text("joined_by")
    return relation if not by else by if relation == "one-to-one" else f"{relation} {by}"


def _places(blocks: Sequence[Sequence[Row]]) -> tuple[tuple[str, str], ...]:
    """The layer ids of each block on both sides."""
    sides = (
        [".".join(filter(None, (row.maybe_text(f"{side}_ids") for row in rows))) for rows in blocks]
        for side in ("before", "after")
    )
    return tuple(zip(*sides, strict=True))


def _moved(rows: Sequence[Row]) -> int:
    """The summed difference of the layers' times."""
    return abs(sum_of(rows, "difference_ns") or 0)


def _pair(rows: list[Row]) -> str:
    before, after = group_name(rows, "before"), group_name(rows, "after")
    return (
        after or before or ""
        if before == after or not before or not after
        else f"{before} → {after}"
    )


def _regions(found: Comparison) -> Iterator[Section]:
    layers = found.layers.records()
    for group in dict.fromkeys(row.integer("group") for row in found.regions):
        name = shortened(
            escaped(str(layers[group]["before_titles"] or layers[group]["after_titles"])),
            _LONGEST_REGION,
        )
        kinds = [
            (
                *_times_of(row),
                f"{row.real('before_kernels'):g}",
                f"{row.real('after_kernels'):g}",
                escaped(row.text("kind")),
            )
            for row in found.regions
            if row["group"] == group
        ]
        header = (
            "difference",
            "before",
            "after",
            "kernels before",
            "kernels after",
            "what they do",
        )
        yield tabled(
            "region-kinds",
            f"Inside {name}, by what its kernels do, µs",
            header,
            tuple(kinds[:_TOP_CHANGES]),
            "rrrrrn",
            more=_more(kinds),
        )
        parts = [
            (
                *_times_of(row),
                str(row["places"]),
                escaped(row.maybe_text("before") or "–"),
                escaped(row.maybe_text("after") or "–"),
            )
            for row in sorted(
                found.region_parts, key=lambda row: -abs(row.integer("difference_ns"))
            )
            if row["group"] == group
        ]
        header = ("difference", "before", "after", "places", "before", "after")
        yield tabled(
            "region-parts",
            f"Inside {name}, what became what, µs",
            header,
            tuple(parts[:_TOP_CHANGES]),
            "rrrrnn",
            more=_more(parts),
        )


def _times_of(row: Row) -> tuple[str, str, str]:
    before, after = (microseconds(row.integer(key)) for key in ("before_ns", "after_ns"))
    return signed_microseconds(row.integer("difference_ns")), before, after


def _more(rows: Sequence[object]) -> int:
    return max(len(rows) - _TOP_CHANGES, 0)


def _changed(found: Comparison) -> Iterator[Section]:
    layers = list(found.layers)
    for change, heading_ in _CHANGES:
        changed = [row for row in layers if row.text("change") == change]
        blocks = sorted(blocks_of(changed), key=lambda rows: -_moved(rows))
        shown = blocks[:_TOP_CHANGES]
        how = change in ("precision", "fusion", "tactic")
        cells = tuple(
            (
                signed_microseconds(sum_of(rows, "difference_ns")),
                str(len(rows)),
                *([rows[0].maybe_text("joined_by") or ""] if how else []),
                *_what(change, rows),
            )
            for rows in shown
        )
        header = ("µs", "layers", *(["joined by"] if how else []), "before", "after")
        left = sum(map(len, blocks)) - sum(map(len, shown))
        yield tabled(
            change,
            f"{heading_}: {len(changed)}",
            header,
            cells,
            "rrlnn" if how else "rrnn",
            more=left,
            places=_places(shown),
        )


def _what(change: str, rows: list[Row]) -> tuple[str, str]:
    row = rows[0]
    before, after = (escaped(group_name(rows, side) or "–") for side in ("before", "after"))
    if change == "precision":
        return f"{row['before_precision']} {before}", f"{row['after_precision']} {after}"
    if change == "tactic":
        return escaped(str(row["before_kernels"])), escaped(str(row["after_kernels"]))
    return before, after


def _findings(found: Comparison) -> Section:
    alike: dict[tuple[str, str], list[FindingChange]] = {}
    for one in found.findings:
        alike.setdefault((one.change, one.rule), []).append(one)
    rows = [
        row
        for held in alike.values()
        for row in (map(_finding, held) if len(held) < _FOLDED else [_folded(held)])
    ]
    header = ("", "rule", "before", "after", "")
    return tabled(
        "findings",
        "Findings, µs per inference",
        header,
        tuple(rows[:_TOP_FINDINGS]),
        "llrrw",
        more=max(len(rows) - _TOP_FINDINGS, 0),
    )


def _finding(one: FindingChange) -> tuple[str, ...]:
    return (
        one.change,
        one.rule,
        microseconds(one.before_ns),
        microseconds(one.after_ns),
        _sentence(one),
    )


def _folded(held: Sequence[FindingChange]) -> tuple[str, ...]:
    """Findings of one rule as one row, with the message of the costliest."""
    sums = [
        (
            microseconds(sum(cost for cost in costs if cost is not None))
            if any(cost is not None for cost in costs)
            else "–"
        )
        for costs in zip(*((one.before_ns, one.after_ns) for one in held), strict=True)
    ]
    return (
        held[0].change,
        held[0].rule,
        *sums,
        f"{len(held)} places; the first: {_sentence(held[0])}",
    )


def _sentence(one: FindingChange) -> str:
    """The message of a finding, preceded by its layer if the message does not name it."""
    text, place = one.told or one.message, one.title or one.place
    return escaped(text if not place or place[:_TOLD_PLACE] in text else f"{place}: {text}")


def _conditions(found: Comparison) -> Section:
    cells = tuple(
        (one.what, escaped(one.before), escaped(one.after))
        for one in found.conditions
        if one.before and one.after
    )
    return tabled("conditions", "What else is different", ("", "before", "after"), cells, "lnn")


def _predictions(found: Comparison) -> Section:
    cells = tuple(
        (
            one.change,
            duration(one.predicted_ns),
            f"{duration(one.low_ns)} to {duration(one.high_ns)}",
            duration(one.measured_ns),
            f"{duration(one.measured_low_ns)} to {duration(one.measured_high_ns)}",
            _held(one),
        )
        for one in found.predictions
    )
    return tabled(
        "predictions",
        "What was predicted for BEFORE",
        ("change", "predicted", "range", "measured", "its range", "result"),
        cells,
        "lrrrrl",
    )


def _held(one: Prediction) -> str:
    if one.inside is None or not one.inside:
        return "–" if one.inside is None else "outside"
    return "inside" if one.low_ns <= one.measured_ns <= one.high_ns else "the ranges overlap"


# --- forms
# --------------------------------------------------------------------------------------------------


def comparison_text(found: Comparison, width: int | None = None, *, colour: bool = False) -> str:
    """The comparison for a terminal of ``width`` columns; names are not cut if it is None."""
    return page_text(page_of(found), width, colour=colour)


def comparison_markdown(found: Comparison) -> str:
    """The comparison as Markdown."""
    return page_markdown(page_of(found))
