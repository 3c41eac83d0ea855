"""The data of the page's script beside the events: layers, regions, findings, inferences by group,
colours, and the engines' graphs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from nsysmap.analysis import Analysis
from nsysmap.answer.costs import others_name
from nsysmap.answer.model import REPETITION, Answer
from nsysmap.answer.whose import engine_names
from nsysmap.core.changes import ABOUT_LAYERS
from nsysmap.core.idle_causes import IDLE_CAUSES, idle_words
from nsysmap.core.note import LEVELS
from nsysmap.core.records import dataclass
from nsysmap.core.schema import Tables
from nsysmap.core.table import MISSING, IntArray, Row
from nsysmap.mapping.ranges.launch_ranges import root_nodes
from nsysmap.names.decode import decode, summary
from nsysmap.names.reference import field_words
from nsysmap.network.titles import called, modules_of
from nsysmap.output.explain import PART_BY
from nsysmap.output.page.events import TID, Events
from nsysmap.output.page.regions import Regions
from nsysmap.output.page.samples import MEASURED, Sampled, of_layers, of_positions
from nsysmap.output.page.unit import Unit
from nsysmap.output.page.windows import Windows
from nsysmap.output.picture.blocks import block_groups
from nsysmap.output.picture.html import graph_data
from nsysmap.output.picture.model import picture, times_of
from nsysmap.output.picture.swatches import CAUSES, KIND_WORDS, Swatch, kernel_swatch, kind_swatch
from nsysmap.output.words import CAUSES as CAUSE_WORDS
from nsysmap.output.words import window_words
from nsysmap.text.terminal import escaped
from nsysmap.text.units import counted
from nsysmap.timing.layer_sums import alike, names_of, titles_of
from nsysmap.timing.measured import Measured
from nsysmap.trace.inferences.steady import OUTLIER
from nsysmap.whatif.change import chosen_changes
from nsysmap.whatif.engine_facts import EngineFacts

METHODS = {
    "nvtx": "the NVTX range around its launch names the layer",
    "graph-node": "the range around the capture of its graph node names the layer",
    "tactic": "the layer's tactic is this kernel's name",
    "order": "its position in the sequence of kernels, aligned to the engine's layers",
    "region": "it belongs to an opaque region, which is the layer",
    "none": "no layer is known",
}
"""The evidence of each mapping method."""


@dataclass(frozen=True)
class Shown:
    """The part of the trace that the page shows, and its unit."""

    events: Events
    windows: Windows
    unit: Unit
    regions: Regions
    sampled: Sequence[Sampled] = ()


def one_of(summary: Answer) -> str:
    """Returns the word for one of what runs, also where none was recognised."""
    return summary.unit_of_time.one if summary.inferences or summary.tensorrt else REPETITION


def content_of(analysis: Analysis, report: Answer, shown: Shown) -> dict[str, object]:
    """The document that the page's script reads, as JSON values; its texts contain no control
    characters.
    """
    tables, events, unit = analysis.tables, shown.events, shown.unit
    kinds, kernel_kinds = _kernel_kinds(events, tables)
    swatch_of = {swatch: number for number, swatch in enumerate(kinds)}
    return {
        "duration": events.duration_ns,
        "origin": events.origin_ns,
        "hidden": analysis.summary.hidden,
        "devices": len({lane["device"] for lane in events.lanes}),
        "capabilities": {row.integer("device"): _capability(row) for row in tables.devices},
        "threads": events.threads,
        "lanes": events.lanes,
        "texts": events.texts,
        "reduced": reduced_words(tables, shown.windows),
        "causes": {
            cause: {"fill": fill, "name": idle_words(cause), "words": CAUSE_WORDS[cause]}
            for cause, fill in CAUSES.items()
        },
        "kinds": [{"fill": one.fill, "words": one.words} for one in kinds],
        "kernel_kinds": kernel_kinds,
        "kernels": [_kernel(name) for name in events.texts["kernels_classes"]["name"]],
        "methods": METHODS,
        "part_by": PART_BY,
        "engines": [escaped(engine.source) for engine in analysis.engines],
        "short_engines": [escaped(name) for name in engine_names(analysis.summary)],
        "unit": unit.words,
        "mean": f"mean {unit.words}" if _inferences(tables) else f"total {unit.words}",
        "one": one_of(analysis.summary),
        "runs": {
            -1 if engine is None else engine: unit.runs.get(engine, 1)
            for engine in (None, *range(len(analysis.engines)))
        },
        "ran": {
            number: engine.inferences for number, engine in enumerate(analysis.summary.engines)
        },
        "layers": _layers(analysis, unit, swatch_of),
        "others": [
            {
                "name": escaped(others_name((one,))),
                "kernels": round(one.kernels, 1) if unit.others else None,
                "time": one.time_ns if unit.others else None,
                "share": one.share_of_all_kernel_time,
            }
            for one in analysis.summary.other_kernels
        ],
        "outlier": OUTLIER,
        "repeats": [escaped(name) for name in names_of(alike(tables.layers))],
        "repeat_titles": [escaped(title) for title in repeat_titles(analysis)],
        "kernel_time": _kernel_time(tables, unit),
        "regions": shown.regions.found,
        "whatif": _whatif(tables),
        "groups": [
            {
                "id": row.integer("group_id"),
                "median": row.maybe_integer("median_ns"),
                "time": row.integer("steady") * (row.maybe_integer("mean_ns") or 0),
            }
            for row in tables.inference_groups
        ],
        "idle": _idle(tables, analysis.summary),
        "idle_of": (
            "of the time from the first to the last"
            f" {window_words(report)}"
            f"{', all GPUs added up' if len(report.machine_gpus) > 1 else ''}"
        ),
        "findings": [
            _finding(number, row, events.origin_ns, tables)
            for number, row in enumerate(findings(tables))
        ],
        "nodes": _captured(tables, events),
        "graphs": _graphs(analysis),
        "samples": [_samples(one, number) for number, one in enumerate(shown.sampled)],
        "measured": of_positions(tables.kernel_counters),
        "metrics": MEASURED,
    }


def findings(tables: Tables) -> list[Row]:
    """The findings that are not inside others: the most severe first, then those of the rule that
    costs most, then the most costly.
    """
    own = [row for row in tables.findings if row.maybe_integer("inside") is None]
    costs = {row.text("rule"): row.maybe_integer("cost_ns") or 0 for row in tables.rule_outcomes}

    def place(row: Row) -> tuple[int, int, str, int]:
        rule = row.text("rule")
        return (
            LEVELS.index(row.text("severity")),
            -costs.get(rule, 0),
            rule,
            -(row.maybe_integer("cost_ns") or 0),
        )

    return sorted(own, key=place)


def reduced_words(tables: Tables, windows: Windows) -> str | None:
    """What the page omits from a long trace; None if it shows all of it."""
    if windows.all:
        return None
    starts, ends = tables.kernels.ints("start_ns"), tables.kernels.ints("end_ns")
    shown = int(np.count_nonzero(windows.holds(starts, ends)))
    inferences = int(np.count_nonzero(windows.inferences))
    some = (
        f"of {inferences:,} of {counted(len(tables.inferences), 'inference')}"
        if len(tables.inferences)
        else "at the trace's beginning"
    )
    return (
        f"The trace is long: the timeline shows {shown:,} of {counted(len(starts), 'kernel')} event"
        f" by event, those {some} (the slowest, the most typical, those where findings begin, and"
        " others spread evenly); elsewhere it shows only how much GPU work there was. Host calls,"
        " NVTX ranges and idle time are shown in the same parts only. All figures outside the"
        " timeline cover the whole trace, except the sums over a selection."
    )


def _samples(one: Sampled, number: int) -> dict[str, object]:
    """The data about a GPU's counters beside their values, which are a separate table."""
    return {
        "table": f"samples{number}",
        "device": one.device,
        "each": one.each,
        "frequency": one.frequency_hz,
        "aligned": one.aligned,
        "metrics": [
            {
                "column": f"m{row}",
                "title": title,
                "name": escaped(metric.name),
                "unit": "MHz" if metric.unit == "hertz" else "%",
            }
            for row, (metric, title) in enumerate(zip(one.metrics, one.titles, strict=True))
        ],
    }


def sample_columns(sampled: Sequence[Sampled], origin_ns: int) -> dict[str, dict[str, IntArray]]:
    """The values of the counters, under the names of the script's tables."""
    return {
        f"samples{number}": {
            "start": one.start_ns - origin_ns,
            "dur": one.end_ns - one.start_ns,
            **{f"m{row}": values for row, values in enumerate(one.values)},
        }
        for number, one in enumerate(sampled)
    }


def _inferences(tables: Tables) -> int:
    return int(tables.steady_state.ints("inferences").sum())


def _kernel_kinds(events: Events, tables: Tables) -> tuple[list[Swatch], list[int]]:
    """The swatches of kinds, in the order of the legend, and for each class of kernels the index of
    its swatch.
    """
    kinds = {row.integer("layer_id"): row.text("kind") for row in tables.layers}
    names = events.texts["kernels_classes"]["name"]
    classes = events.tables["kernels_classes"]
    by_class = [
        kernel_swatch(kinds.get(layer), names[name])
        for layer, name in zip(classes["layer_id"].tolist(), classes["name"].tolist(), strict=True)
    ]
    known = {
        swatch.words: swatch
        for swatch in [*by_class, *(kind_swatch(kind, "") for kind in {*kinds.values(), "unknown"})]
    }
    ordered = [known[words] for words in KIND_WORDS if words in known]
    number = {swatch: at for at, swatch in enumerate(ordered)}
    return ordered, [number[swatch] for swatch in by_class]


def _kernel(name: str) -> dict[str, object]:
    decoded = decode(name)
    told = summary(decoded, noun=False)
    patterns = ", ".join(pattern.name for pattern in decoded.patterns)
    said = [[label, escaped(value), means] for label, value, means in field_words(decoded)]
    written_for = re.fullmatch(r"sm(\d+)(\d)[af]?", str(decoded.fields.get("arch", "")))
    types = {
        str(value)
        for field, value in decoded.fields.items()
        if field.endswith("_type") and field != "accumulate_type"
    }
    return {
        "summary": escaped(told),
        "patterns": patterns,
        "said": said,
        "rest": escaped(decoded.rest),
        "arch": [int(part) for part in written_for.groups()] if written_for else None,
        "types": sorted(types - {"unknown"}),
    }


def _capability(device: Row) -> list[int] | None:
    """The compute capability of a GPU, major and minor; None if unknown."""
    parts = [device.maybe_integer("compute_major"), device.maybe_integer("compute_minor")]
    return None if None in parts else [part for part in parts if part is not None]


def repeat_titles(analysis: Analysis) -> list[str]:
    """The title of the layers in each row of `alike`."""
    return titles_of(alike(analysis.tables.layers))


def _layers(
    analysis: Analysis, unit: Unit, swatch_of: Mapping[Swatch, int]
) -> list[dict[str, object]]:
    tables = analysis.tables
    limits = {row.integer("layer_id"): row for row in tables.roofline}
    measured = of_layers(tables.layer_counters)
    repeat_of = {
        row.integer("layer_id"): number
        for number, mine in enumerate(alike(tables.layers))
        for row in mine
    }
    blocks: dict[tuple[int | None, int | None], str] = {
        (engine, index): escaped(group.name)
        for engine, file in enumerate(analysis.engines)
        for group in block_groups(file)
        for index in group.layers
    }
    found: list[dict[str, object]] = []
    for row in tables.layers:
        number, name = row.integer("layer_id"), row.text("name")
        engine, index = row.maybe_integer("engine"), row.maybe_integer("layer_index")
        time, runs = row.maybe_integer("time_ns"), unit.runs.get(engine, 1)
        told = row.maybe_text("onnx")
        nodes = told.split(",") if told else []  # as the table holds lists
        limit = limits.get(number)
        swatch = kind_swatch(row.text("kind"), name)
        found.append(
            {
                "id": number,
                "engine": engine,
                "index": index,
                "name": escaped(name),
                "title": escaped(called(row)),
                "kind": row.text("kind"),
                "swatch": swatch_of.get(swatch, len(swatch_of) - 1),
                "type": _text(row, "type"),
                "tactic": _text(row, "tactic"),
                "precision": _text(row, "precision"),
                "onnx": _text(row, "onnx"),
                "nodes": [escaped(node) for node in nodes],
                "module": [escaped(part) for part in modules_of(name, nodes)],
                "origin": _text(row, "origin"),
                "trtexec": row.maybe_integer("trtexec_ns"),
                "time": None if time is None else unit.of(time, engine),
                "share": row.maybe_real("share_of_all_kernel_time"),
                "kernels": (
                    None if (kernels := row.maybe_integer("kernels")) is None else kernels * runs
                ),
                "repeat": repeat_of.get(number),
                "block": blocks.get((engine, index)),
                "bound": (
                    unit.of(bound, engine)
                    if limit and (bound := limit.maybe_integer("bound_ns")) is not None
                    else None
                ),
                "fraction": (
                    limit.maybe_real("roofline_fraction")
                    if limit and limit.text("verdict") != "unknown"
                    else None
                ),
                "verdict": limit.text("verdict") if limit else None,
                "reason": escaped(limit.text("reason")) if limit else None,
                **({"measured": measured[number]} if number in measured else {}),
                **({"counted": True} if limit and limit.text("verdict_from") == "counters" else {}),
                **(
                    {"differs": escaped(limit.text("disagreement"))}
                    if limit and limit["disagreement"] is not None
                    else {}
                ),
            }
        )
    return found


def _idle(tables: Tables, summary: Answer) -> list[dict[str, object]]:
    """Idle time by cause, of all devices together; ``each`` is that of one of the answer's units,
    where they are all of one device.
    """
    each_ns = {one.cause: one.ns for one in summary.gpus[0].idle} if len(summary.gpus) == 1 else {}
    window = sum(row.integer("window_ns") for row in tables.device_times)
    found: dict[str, tuple[int, int]] = {}
    for row in tables.idle_totals:
        time, gaps = found.get(row.text("cause"), (0, 0))
        found[row.text("cause")] = time + row.integer("time_ns"), gaps + row.integer("gaps")
    return [
        {
            "cause": cause,
            "time": time,
            "gaps": gaps,
            "share": time / max(window, 1),
            "each": each_ns.get(cause),
        }
        for cause, (time, gaps) in found.items()
    ]


def _kernel_time(tables: Tables, unit: Unit) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for row in tables.kernel_time:
        if (layer := row.maybe_integer("layer_id")) is None:
            continue
        name, engine = row.text("name"), row.maybe_integer("engine")
        runs = (row.maybe_integer("inferences") or 1) / unit.runs.get(engine, 1)
        each = row.integer("kernels") / runs
        rows.append(
            {
                "layer": layer,
                "name": escaped(name),
                "summary": escaped(summary(decode(name))),
                "kernels": round(each, 2),
                "time": round(row.integer("time_ns") / runs),
            }
        )
    return rows


def _whatif(tables: Tables) -> dict[str, object]:
    """For each answered change the layers concerned (None: all of them) and its effect on each
    replayed inference.
    """
    about = _about_layers(tables)
    changes: dict[str, dict[str, object]] = {}
    for row in tables.whatif:
        if row.text("answer") == "answered":
            changes[row.text("change")] = {"layers": about.get(row.text("change")), "after": {}}
    for row in tables.whatif_inferences:
        cast(dict[int, int], changes[row.text("change")]["after"])[row.integer("inference")] = (
            row.integer("after_ns")
        )
    before = {
        row.integer("inference"): row.integer("end_ns") - row.integer("begin_ns")
        for row in tables.replayed_inferences
    }
    return {"changes": changes, "before": before}


def _about_layers(tables: Tables) -> dict[str, list[int]]:
    """The layers of the changes that are about some layers only."""
    facts = EngineFacts(
        tables.layers,
        tables.tensors,
        tables.edges,
        tables.chains,
        tables.chain_layers,
        tables.roofline,
        (),
    )
    named: dict[str, set[str]] = {
        change.name: {*change.layers, *(name for run in change.runs for name in run)}
        for change in chosen_changes((), (), facts)
    }
    names = list(
        zip(tables.layers.ints("layer_id").tolist(), tables.layers.text("name").list(), strict=True)
    )
    return {
        change: [layer for layer, name in names if name in mine]
        for change, mine in named.items()
        if change in ABOUT_LAYERS
    }


def _captured(tables: Tables, events: Events) -> dict[str, tuple[int, int]]:
    """When, and by which thread (a row of `Events.threads`; -1 for another), each node of a CUDA
    graph was captured, by process and id.
    """
    kernels, nodes = tables.kernels, tables.cuda_graph_nodes
    rows = np.flatnonzero(kernels.ints("graph_node_id") != MISSING)
    process, node = (kernels.ints(name)[rows] for name in ("process", "graph_node_id"))
    first = np.unique(np.stack([process, node]), axis=1, return_index=True)[1]
    roots = root_nodes(nodes, process[first], node[first])
    first, roots = first[roots != MISSING], roots[roots != MISSING]
    threads = {(one["pid"], one["tid"]): at for at, one in enumerate(events.threads)}
    found = zip(
        kernels.ints("pid")[rows[first]].tolist(),
        node[first].tolist(),
        nodes.ints("start_ns")[roots].tolist(),
        nodes.ints("thread")[roots].tolist(),
        strict=True,
    )
    return {
        f"{pid} {one}": (start_ns - events.origin_ns, threads.get((pid, thread & TID), -1))
        for pid, one, start_ns, thread in found
    }


def _matches(row: Row, tables: Tables) -> dict[str, list[str]]:
    """The subject of a finding without layers: idle time by its causes, copies by their kinds;
    otherwise kernels.
    """
    told, kinds = (row.maybe_text("about") or "").split(), list(tables.memcpys.text("kind").values)
    causes, copies, group = (
        [one for one in told if one in CAUSES],
        [one for one in told if one in kinds],
        row.text("rule_group"),
    )
    if not causes and not copies:
        causes = [one.name for one in IDLE_CAUSES.values() if one.rule_group == group]
        copies = kinds if group == "copy" else []
    return {"causes": causes, "copies": copies}


def _finding(number: int, row: Row, origin_ns: int, tables: Tables) -> dict[str, object]:
    layers = len(tables.layers)
    about = [
        int(word)
        for word in (row.maybe_text("about") or "").split()
        if word.isdecimal() and int(word) < layers
    ]
    layer = row.maybe_integer("layer_id")
    return {
        "number": number,
        "rule": row.text("rule"),
        "severity": row.text("severity"),
        "start": row.integer("start_ns") - origin_ns,
        "end": row.integer("end_ns") - origin_ns,
        "layer": layer,
        "layers": list(dict.fromkeys(([] if layer is None or about else [layer]) + about)),
        **_matches(row, tables),
    }


def _graphs(analysis: Analysis) -> list[dict[str, object] | None]:
    """For each engine the data that picture/graph.js draws; None for an engine without layers."""
    tables = analysis.tables
    measured = Measured(
        tables.layers,
        tables.layer_times,
        tables.kernel_time,
        tables.precision,
        tables.region_parts,
        tables.steady_state,
    )
    drawn: list[dict[str, object] | None] = []
    for number, engine in enumerate(analysis.engines):
        times = times_of(engine, measured, analysis.source, number=number)
        drawn.append(graph_data(picture(engine, times, all_views=True)) if engine.layers else None)
    return drawn


def _text(row: Row, name: str) -> str | None:
    text = row.maybe_text(name)
    return None if text is None else escaped(text)
