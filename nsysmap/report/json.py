"""The report as one JSON object, as schema() describes it; the same analysis gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nsysmap.base import engine_schema, report_schema, result_schema, trace_schema
from nsysmap.base.json_schema import TEXTS, Schema, fields_of, list_of, object_of, or_null
from nsysmap.base.note import Note
from nsysmap.base.table import Spec
from nsysmap.report import model
from nsysmap.report.model import InferenceFigures, KernelRow, LayerRow, Report
from nsysmap.report.precision import precision_json
from nsysmap.rules.finding import Finding
from nsysmap.summary.model import Summary

SCHEMA = "nsysmap/report/1"


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON values; times in ns, sizes in bytes, shares from 0 to 1, null where there is no value."""
    engines = [asdict(engine) for engine in report.engines]
    coverage = report.coverage
    return {
        "schema": SCHEMA,
        "answer": asdict(report.summary),
        "trace": {**asdict(report.trace), "gpus": [asdict(gpu) for gpu in report.gpus]},
        "engine": engines[0] if engines else None,
        "engines": engines,
        "inferences": {
            **_inferences(report.inferences),
            "busy_share": report.busy_share,
            "busy_window": report.busy_window,
            "by_engine": [_inferences(figures) for figures in report.by_engine],
        },
        "graph_replays": None if report.replays is None else _spreads(asdict(report.replays)),
        "idle": [asdict(row) for row in report.idle],
        "coverage": {
            "kernels": sum(row.kernels for row in coverage),
            "mapped": sum(row.kernels for row in report.mapped),
            "time_ns": report.kernel_time_ns,
            "mapped_time_ns": sum(row.time_ns for row in report.mapped),
            "by_method": {
                row.method: {"kernels": row.kernels, "time_ns": row.time_ns, "share_of_kernel_time": row.share_of_kernel_time}
                for row in coverage
            },
            "unmapped": [asdict(row) for row in report.unmapped],
        },
        "layer_time": report.layer_time,
        "layers": [_layer(row) for row in report.layers],
        "kinds": [asdict(row) for row in report.kinds],
        "precision": precision_json([vars(row) for row in report.precision], _named(report)),
        "families": [asdict(row) for row in report.families],
        "kernels": [_kernel(row) for row in report.kernels],
        "whatif": [asdict(row) for row in report.whatif],
        "findings": [finding_json(finding) for finding in report.findings],
        "skipped": [asdict(one) for one in report.skipped],
        "clean": list(report.clean),
        "notes": [asdict(note) for note in report.notes],
    }


def _named(report: Report) -> dict[int, tuple[int | None, str]]:
    return {row.layer_id: (row.layer_index, row.name) for row in report.layers}


def write_json(report: Report, path: Path) -> None:
    """Write the report to ``path``."""
    text = json.dumps(report_json(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path.write_bytes(text.encode("utf-8", "backslashreplace"))  # a lone surrogate of somebody's name becomes its JSON escape


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON values, with those that it stands for."""
    share = None if finding.share_of_window is None else round(finding.share_of_window, 6)
    also = [finding_json(one) for one in finding.also]
    return {**vars(finding), "share_of_window": share, "evidence": dict(finding.evidence), "also": also}


def _inferences(figures: InferenceFigures) -> dict[str, Any]:
    return _spreads(asdict(figures))


def _spreads(values: dict[str, Any]) -> dict[str, Any]:
    """Spreads under keys that end in _ns need no unit of their own."""
    names = {f"{name}_ns": name for name in ("median", "p95")}
    return {
        key: {names[inner]: number for inner, number in value.items()} if isinstance(value, dict) and set(value) == set(names) else value
        for key, value in values.items()
    }


def _layer(row: LayerRow) -> dict[str, Any]:
    values = asdict(row)
    del values["layer_id"]
    return {"index": values.pop("layer_index"), **values, "onnx": _list(row.onnx)}


def _kernel(row: KernelRow) -> dict[str, Any]:
    return {**asdict(row), "ops": _list(row.ops), "patterns": _list(row.patterns)}


def _list(text: str | None) -> list[str]:
    """The tables hold lists as text, comma separated."""
    return text.split(",") if text else []


# --- schema ---------------------------------------------------------------------------------------------------------

_SPECS: Mapping[type, Spec] = {
    model.TraceFacts: trace_schema.CAPTURE,
    model.Gpu: trace_schema.DEVICES,
    model.EngineFacts: engine_schema.ENGINES,
    model.MethodRow: result_schema.COVERAGE,
    model.UnmappedRow: result_schema.UNMAPPED,
    model.LayerRow: engine_schema.LAYERS,
    model.KindRow: report_schema.LAYER_KINDS,
    model.PrecisionRow: result_schema.PRECISION,
    model.FamilyRow: report_schema.KERNEL_FAMILIES,
    model.KernelRow: result_schema.KERNEL_TOTALS,
    model.IdleRow: report_schema.IDLE_TOTALS,
    model.WhatIfRow: result_schema.WHATIF,
    Finding: report_schema.FINDINGS,
}
"""The table whose columns say what the fields of a value mean."""
_KNOWN: Mapping[object, Schema] = {
    model.Spread: object_of({"median": {"type": "integer"}, "p95": {"type": "integer"}}),
    Finding: {"$ref": "#/$defs/finding"},
}


def schema() -> Schema:
    """The JSON Schema of the report."""
    rows = {"totals": ("engine",), "regions": ("engine", "region")}
    precision = {name: list_of(_precision_totals(keys)) for name, keys in rows.items()}
    layer = _fields(model.PrecisionRow)
    named = {"engine": layer["engine"], "index": {"type": ["integer", "null"]}, "name": {"type": "string"}}
    precision_layer = {**named, **{key: value for key, value in layer.items() if key not in ("layer_id", "engine")}}
    layers = _fields(model.LayerRow)
    kernels = _fields(model.KernelRow)
    inferences = _fields(model.InferenceFigures)
    skipped = {name: {"type": "string"} for name in ("rule", "group", "reason")}
    properties: Schema = {
        "schema": {"const": SCHEMA},
        "answer": object_of(_fields(Summary)),
        "trace": object_of({**_fields(model.TraceFacts), "gpus": list_of(object_of(_fields(model.Gpu)))}),
        "engine": or_null(object_of(_fields(model.EngineFacts))),
        "engines": list_of(object_of(_fields(model.EngineFacts))),
        "inferences": object_of({
            **inferences,
            "busy_share": {"type": ["number", "null"]},
            "busy_window": {"enum": ["inferences", "trace"]},
            "by_engine": list_of(object_of(inferences)),
        }),
        "graph_replays": or_null(object_of(_fields(model.ReplayFigures))),
        "idle": list_of(object_of(_fields(model.IdleRow))),
        "coverage": object_of({
            **{name: {"type": "integer", "minimum": 0} for name in ("kernels", "mapped", "time_ns", "mapped_time_ns")},
            "by_method": {
                "type": "object",
                "additionalProperties": object_of({key: value for key, value in _fields(model.MethodRow).items() if key != "method"}),
            },
            "unmapped": list_of(object_of(_fields(model.UnmappedRow))),
        }),
        "layer_time": {"enum": ["median per inference", "total over the trace"]},
        "layers": list_of(object_of({"index": layers["layer_index"], **_without(layers, "layer_id", "layer_index"), "onnx": TEXTS})),
        "kinds": list_of(object_of(_fields(model.KindRow))),
        "precision": object_of({**precision, "layers": list_of(object_of(precision_layer))}),
        "families": list_of(object_of(_fields(model.FamilyRow))),
        "kernels": list_of(object_of({**kernels, "ops": TEXTS, "patterns": TEXTS})),
        "whatif": list_of(object_of(_fields(model.WhatIfRow))),
        "findings": list_of({"$ref": "#/$defs/finding"}),
        "skipped": list_of(object_of(skipped)),
        "clean": TEXTS,
        "notes": list_of(object_of(_fields(Note))),
    }  # fmt: skip
    finding = object_of({**_fields(Finding), "evidence": {"type": "object"}, "also": list_of({"$ref": "#/$defs/finding"})})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "report of nsysmap analyze",
        "description": "Times in ns, sizes in bytes, shares from 0 to 1; null where there is no value.",
        **object_of(properties),
        "$defs": {"finding": finding},
    }


def _precision_totals(keys: tuple[str, ...]) -> Schema:
    """Times of one kind of work added up, by engine or by region of one."""
    known = _fields(model.PrecisionRow)
    shown = {name: known[name] for name in (*keys, "work", "datatype", "to_type", "tensor_cores")}
    counts = {"layers": {"type": "integer"}, **{name: known[name] for name in ("kernels", "time_ns", "mean_ns", "share_of_kernel_time")}}
    return object_of({**shown, **counts})


def _without(properties: Schema, *names: str) -> Schema:
    return {key: value for key, value in properties.items() if key not in names}


def _fields(value: type) -> Schema:
    return fields_of(value, _SPECS.get(value), _KNOWN)
