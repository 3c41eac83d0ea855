"""The report as one JSON object, as report.schema.json describes it; the same analysis gives the same bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nsysmap.report.model import InferenceFigures, KernelRow, LayerRow, Report
from nsysmap.report.precision import precision_json
from nsysmap.rules.finding import Finding

SCHEMA = "nsysmap/report/1"


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    text = Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON values; times in ns, sizes in bytes, shares from 0 to 1, null where there is no value."""
    engines = [asdict(engine) for engine in report.engines]
    coverage = report.coverage
    return {
        "schema": SCHEMA,
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
