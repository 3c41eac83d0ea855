"""The report as one JSON object, as schema() describes it; the same analysis gives the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from nsysmap.answer import model
from nsysmap.answer.model import Answer, EngineRan
from nsysmap.core import engine_schema, report_schema, result_schema, trace_schema
from nsysmap.core.json_record import record, record_schema
from nsysmap.core.json_schema import (
    TEXTS,
    Schema,
    columns_of,
    list_of,
    object_of,
    or_null,
)
from nsysmap.core.note import Note
from nsysmap.core.table import Row, Spec
from nsysmap.network.titles import called
from nsysmap.output.json_keys import ENGINE_FILES, REPORT
from nsysmap.output.precision import precision_json
from nsysmap.rules.finding import Finding
from nsysmap.text.terminal import inert_json
from nsysmap.text.units import rounded_share

SCHEMA = "nsysmap/report/1"


def report_json(report: Answer) -> dict[str, Any]:
    """The report as JSON values; times in ns, sizes in bytes, shares from 0 to 1, null if there is
    no value.
    """
    engines = [
        {"number": number, **record(engine, ENGINE_FILES)}
        for number, engine in enumerate(report.engines)
    ]
    tables = report.tables
    return {
        "schema": SCHEMA,
        "answer": _record(report),
        "trace": {
            **_record(report.trace),
            "gpus": [_gpu(report, gpu) for gpu in report.machine_gpus],
        },
        "engine": engines[0] if engines else None,
        "engines": engines,
        "inferences": {
            **_record(report.figures),
            "busy_share": report.busy_share,
            "busy_window": report.busy_window,
            "by_engine": _record(report.figures_by_engine),
        },
        "graph_replays": _record(report.replays),
        "idle": [{key: row[key] for key in _IDLE} for row in report.idle_rows],
        "coverage": {
            "kernels": int(tables.coverage.ints("kernels").sum()),
            "mapped": int(report.mapped_rows.ints("kernels").sum()),
            "time_ns": report.kernel_time_ns,
            "mapped_time_ns": int(report.mapped_rows.ints("time_ns").sum()),
            "by_method": {
                row.text("method"): _without(_shown(row), "method") for row in tables.coverage
            },
            "unmapped": [_shown(row) for row in tables.unmapped],
        },
        "layer_time": report.layer_time,
        "layers": [_layer(row) for row in report.layer_rows],
        "kinds": [_shown(row) for row in tables.layer_kinds],
        "precision": precision_json(list(tables.precision), _named(report)),
        "families": [_family(_shown(row)) for row in tables.kernel_families],
        "kernels": [_kernel(row) for row in tables.kernel_totals],
        "whatif": [_shown(row) for row in tables.whatif],
        "findings": [finding_json(finding) for finding in report.findings],
        "skipped": _record(report.skipped),
        "clean": list(report.clean),
        "notes": _record(report.notes),
    }


def _named(report: Answer) -> dict[int, tuple[int | None, str, str]]:
    return {
        row.integer("layer_id"): (row.maybe_integer("layer_index"), row.text("name"), called(row))
        for row in report.layer_rows
    }


def write_json(report: Answer, path: Path) -> None:
    """Write the report to ``path``."""
    with path.open("wb") as file:
        for piece in json_pieces(report_json(report), ascii_only=False):
            file.write(inert_json(piece).encode())


def json_pieces(value: object, *, ascii_only: bool = True) -> Iterator[str]:
    """The output of json.dumps with indent=1, and a line break, in pieces and about five times
    faster.
    """
    yield from _indented(value, 0, ascii_only)
    yield "\n"


def _indented(value: object, level: int, ascii_only: bool) -> Iterator[str]:  # passed on
    """A value whose parts stand one level deeper; what has no further parts in it is written in one
    go, by C.
    """
    if not _has_parts(value):
        yield _encoder(0, ascii_only)(value)
        return
    named = isinstance(value, dict)
    opening, closing = "{}" if named else "[]"
    line = "\n" + " " * (level + 1)
    before = opening + line
    for deep, parts in groupby(
        value.items() if isinstance(value, dict) else value,
        key=_is_deep_pair if named else _has_parts,
    ):  # type: ignore[call-overload]
        held = list(parts)
        if not deep:
            yield before + _encoder(level + 1, ascii_only)(dict(held) if named else held)[1:-1]
            before = "," + line
            continue
        for part in held:
            yield before + (f"{_encoder(0, ascii_only)(part[0])}: " if named else "")
            yield from _indented(part[1] if named else part, level + 1, ascii_only)
            before = "," + line
    yield "\n" + " " * level + closing


@lru_cache
def _encoder(level: int, ascii_only: bool) -> Callable[[object], str]:
    separators = (",\n" + " " * level, ": ")
    return json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, separators=separators).encode


def _is_deep_pair(pair: tuple[str, object]) -> bool:
    return _has_parts(pair[1])


def _has_parts(value: object) -> bool:
    return isinstance(value, (dict, list, tuple)) and len(value) > 0


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as JSON values, with those that it stands for."""
    share = None if finding.share_of_window is None else rounded_share(finding.share_of_window)
    also = [finding_json(one) for one in finding.also]
    return {
        **{key: getattr(finding, attribute) for key, attribute in REPORT[Finding].items()},
        "share_of_window": share,
        "evidence": dict(finding.evidence),
        "also": also,
    }


def _gpu(report: Answer, gpu: model.Gpu) -> dict[str, Any]:
    """A GPU, and how busy it was in all."""
    time = report.time_of(gpu)
    return {
        **_record(gpu),
        "window_ns": None if time is None else time.window_ns,
        "busy_ns": None if time is None else time.whole_busy_ns,
    }


def _record(value: object) -> Any:
    return record(value, REPORT)


def _shown(row: Row) -> dict[str, Any]:
    """A row of a declared table, its shares rounded."""
    return {
        name: rounded_share(value) if isinstance(value, float) else value
        for name, value in row.values().items()
    }


def _layer(row: Row) -> dict[str, Any]:
    return {
        "index": row["layer_index"],
        **_without(_shown(row), *_NOT_OF_A_LAYER),
        "onnx": _list(row.maybe_text("onnx")),
    }


def _kernel(row: Row) -> dict[str, Any]:
    return {
        **_shown(row),
        "ops": _list(row.maybe_text("ops")),
        "patterns": _list(row.maybe_text("patterns")),
    }


def _family(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns of kernel_families; their executions are a count, as those of a kernel."""
    return {"count" if name == "kernels" else name: value for name, value in columns.items()}


def _list(text: str | None) -> list[str]:
    """The tables hold lists as text, comma separated."""
    return text.split(",") if text else []


# --- schema
# --------------------------------------------------------------------------------------------------

_SPECS: Mapping[type, Spec] = {
    model.TraceFacts: trace_schema.CAPTURE,
    model.Gpu: trace_schema.DEVICES,
    Finding: report_schema.FINDINGS,
}
"""The table whose columns say what the fields of a value mean."""
_KNOWN: Mapping[object, Schema] = {
    Finding: {"$ref": "#/$defs/finding"},
}
_IDLE = ("device", "cause", "gaps", "time_ns", "share_of_window")
"""Columns of `idle_totals` that the JSON report has."""

_NOT_OF_A_LAYER = (
    "layer_id",
    "layer_index",
    "stream",
    "region",
    "region_index",
    "optimization_profile",
)
"""Columns of `layers` that the JSON report does not have, or has under another name."""


def schema() -> Schema:
    """The JSON Schema of the report."""
    rows = {"totals": ("engine",), "regions": ("engine", "region")}
    precision = {name: list_of(_precision_totals(keys)) for name, keys in rows.items()}
    layer = columns_of(result_schema.PRECISION)
    named = {
        "engine": layer["engine"],
        "index": {"type": ["integer", "null"]},
        "name": {"type": "string"},
        "title": {"type": "string"},
    }
    precision_layer = {**named, **_without(layer, "layer_id", "engine")}
    layers = columns_of(engine_schema.LAYERS)
    inferences = _fields(model.InferenceFigures)
    skipped = _fields(model.Skipped)
    times: Schema = {name: {"type": ["integer", "null"]} for name in ("window_ns", "busy_ns")}
    gpus = list_of(object_of({**_fields(model.Gpu), **times}))
    engine = {
        "number": {"type": "integer"},
        **record_schema(EngineRan, ENGINE_FILES, spec=engine_schema.ENGINES),
    }
    idle = {key: columns_of(report_schema.IDLE_TOTALS)[key] for key in _IDLE}
    count: Schema = {"type": "integer", "minimum": 0}
    coverage = _without(columns_of(result_schema.COVERAGE), "method")
    kernels = columns_of(result_schema.KERNEL_TOTALS)
    properties: Schema = {
        "schema": {"const": SCHEMA},
        "answer": object_of(_fields(Answer)),
        "trace": object_of({**_fields(model.TraceFacts), "gpus": gpus}),
        "engine": or_null(object_of(engine)),
        "engines": list_of(object_of(engine)),
        "inferences": object_of({
            **inferences,
            "busy_share": {"type": ["number", "null"]},
            "busy_window": {"enum": ["inferences", "trace"]},
            "by_engine": list_of(object_of(inferences)),
        }),
        "graph_replays": or_null(object_of(_fields(model.ReplayFigures))),
        "idle": list_of(object_of(idle)),
        "coverage": object_of({
            **dict.fromkeys(("kernels", "mapped", "time_ns", "mapped_time_ns"), count),
            "by_method": {
                "type": "object",
                "additionalProperties": object_of(coverage),
            },
            "unmapped": _rows_of(result_schema.UNMAPPED),
        }),
        "layer_time": {"enum": ["mean per inference of the engine", "total over the trace"]},
        "layers": list_of(object_of({
            "index": layers["layer_index"],
            **_without(layers, *_NOT_OF_A_LAYER),
            "onnx": TEXTS,
        })),
        "kinds": _rows_of(report_schema.LAYER_KINDS),
        "precision": object_of({**precision, "layers": list_of(object_of(precision_layer))}),
        "families": list_of(object_of(_family(columns_of(report_schema.KERNEL_FAMILIES)))),
        "kernels": list_of(object_of({**kernels, "ops": TEXTS, "patterns": TEXTS})),
        "whatif": _rows_of(result_schema.WHATIF),
        "findings": list_of({"$ref": "#/$defs/finding"}),
        "skipped": list_of(object_of(skipped)),
        "clean": TEXTS,
        "notes": list_of(object_of(_fields(Note))),
    }  # fmt: skip
    finding = object_of(
        {
            **_fields(Finding),
            "evidence": {"type": "object"},
            "also": list_of({"$ref": "#/$defs/finding"}),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "report of nsysmap analyze",
        "description": (
            "Times in ns, sizes in bytes, shares from 0 to 1; null if there is no value."
        ),
        **object_of(properties),
        "$defs": {"finding": finding},
    }


def _rows_of(spec: Spec) -> Schema:
    return list_of(object_of(columns_of(spec)))


def _precision_totals(keys: tuple[str, ...]) -> Schema:
    """Times of one kind of work added up, by engine or by region of one."""
    known = columns_of(result_schema.PRECISION)
    shown = {name: known[name] for name in (*keys, "work", "datatype", "to_type", "tensor_cores")}
    counts = {
        "layers": {"type": "integer"},
        **{name: known[name] for name in ("kernels", "time_ns", "mean_ns", "share_of_kernel_time")},
    }
    return object_of({**shown, **counts})


def _without(columns: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name not in names}


def _fields(value: type) -> Schema:
    return record_schema(value, REPORT, spec=_SPECS.get(value), known=_KNOWN)
