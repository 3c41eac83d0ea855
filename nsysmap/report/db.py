"""The report as an SQLite database: layers, kernels by name, inferences, coverage and findings, tied by foreign keys."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nsysmap.report.json import SCHEMA
from nsysmap.report.model import Report

_VALUES = {"int": int, "float": float, "bool": int, "text": str}


@dataclass(frozen=True)
class _Content:
    """One table of the database."""

    name: str
    columns: Mapping[str, type]
    key: str | tuple[str, ...]
    rows: Iterable[Mapping[str, Any]]
    ties: Sequence[tuple[str, str, str]] = ()  # column, other table, its column
    needed: frozenset[str] = frozenset()


def write_db(report: Report, path: Path) -> None:
    """Write the report as a new database to ``path``; the same report gives the same bytes."""
    import sqlite3

    import sqlite_utils

    database = sqlite_utils.Database(path)
    try:
        for content in _contents(report):
            table = database[content.name].create(  # type: ignore[union-attr]
                dict(content.columns), pk=content.key, foreign_keys=list(content.ties), not_null=content.needed
            )
            table.insert_all((_storable(row) for row in content.rows), batch_size=500)
        _views(database)
        database.conn.commit()
        database.vacuum()
    except sqlite3.OperationalError as error:
        raise OSError(
            errno.ENOSPC if "full" in str(error) else errno.EIO, f"{error}"
        ) from error  # as any file says that it cannot be written
    finally:
        database.conn.close()


def _storable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Lone surrogates, which SQLite cannot hold, are written as escapes."""
    return {key: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value for key, value in row.items()}


def _contents(report: Report) -> Iterable[_Content]:
    kernel_id = {row.name: number for number, row in enumerate(report.kernels)}
    layer_id = {(row.engine, row.layer_index, row.name): row.layer_id for row in report.layers}
    yield _Content("report", {"name": str, "value": str}, "name", _facts(report))
    yield _Content(
        "engines",
        {"engine": int, "source": str, "tensorrt_version": str, "layers": int, "detailed": int, "inferences": int},
        "engine",
        ({"engine": row.number, **{key: value for key, value in asdict(row).items() if key != "number"}} for row in report.engines),
    )
    yield _Content(
        "layers",
        {
            "layer_id": int, "engine": int, "layer_index": int, "name": str, "kind": str, "type": str, "tactic": str, "precision": str,
            "onnx": str, "origin": str, "trtexec_ns": int, "time_ns": int, "share_of_kernel_time": float, "kernels": int,
        },
        "layer_id",
        (asdict(row) for row in sorted(report.layers, key=lambda row: row.layer_id)),
        [("engine", "engines", "engine")],
        frozenset(("name", "kind")),
    )  # fmt: skip
    yield _Content(
        "kernels",
        {
            "kernel": int, "name": str, "family": str, "summary": str, "ops": str, "patterns": str, "arch": str, "input_type": str,
            "accumulate_type": str, "output_type": str, "tensor_cores": str, "rest": str, "count": int, "time_ns": int, "median_ns": int,
            "share_of_kernel_time": float,
        },
        "kernel",
        ({"kernel": number, **asdict(row)} for number, row in enumerate(report.kernels)),
        needed=frozenset(("name", "count", "time_ns")),
    )  # fmt: skip
    yield _Content(
        "layer_kernels",
        {"layer_id": int, "kernel": int, "count": int, "time_ns": int},
        ("layer_id", "kernel"),
        (
            {"layer_id": row.layer_id, "kernel": kernel_id[row.name], "count": row.count, "time_ns": row.time_ns}
            for row in report.layer_kernels
        ),
        [("layer_id", "layers", "layer_id"), ("kernel", "kernels", "kernel")],
    )
    yield _Content(
        "precision",
        {
            "precision": int, "layer_id": int, "engine": int, "region": str, "work": str, "datatype": str, "told_by": str, "to_type": str,
            "tensor_cores": str, "kernels": int, "time_ns": int, "mean_ns": int, "share_of_kernel_time": float,
        },
        "precision",
        ({"precision": number, **asdict(row)} for number, row in enumerate(report.precision)),
        [("layer_id", "layers", "layer_id"), ("engine", "engines", "engine")],
        frozenset(("work", "tensor_cores")),
    )  # fmt: skip
    executions = report.executions
    yield _Content(
        "inferences",
        {column.name: _VALUES[column.kind] for column in executions.spec.columns},
        "inference",
        executions.records(),
        [("engine", "engines", "engine")],
    )
    yield _Content(
        "coverage",
        {"method": str, "kernels": int, "time_ns": int, "share_of_kernel_time": float},
        "method",
        (asdict(row) for row in report.coverage),
    )
    yield _Content("unmapped", {"reason": str, "kernels": int, "time_ns": int}, "reason", (asdict(row) for row in report.unmapped))
    yield _Content(
        "idle", {"cause": str, "gaps": int, "time_ns": int, "share_of_window": float}, "cause", (asdict(row) for row in report.idle)
    )
    yield _Content(
        "whatif",
        {
            "whatif": int, "change": str, "answer": str, "inferences": int,
            "before_ns": int, "low_before_ns": int, "high_before_ns": int, "after_ns": int, "low_after_ns": int, "high_after_ns": int,
            "saving_ns": int, "low_saving_ns": int, "high_saving_ns": int,
            "assumptions": str, "reason": str, "recorded_ns": int, "replay_error": float,
        },
        "whatif",
        ({"whatif": number, **asdict(row)} for number, row in enumerate(report.whatif)),
    )  # fmt: skip
    yield _Content(
        "rules",
        {"rule": str, "rule_group": str, "severity": str, "outcome": str, "skipped": str, "more": int},
        "rule",
        (
            {
                "rule": one.rule,
                "rule_group": one.group,
                "severity": one.severity,
                "outcome": "skipped" if one.skipped is not None else "clean" if one.clean else "found",
                "skipped": one.skipped,
                "more": one.more,
            }
            for one in report.outcomes
        ),
    )
    yield _Content(
        "findings",
        {
            "finding": int, "rule": str, "severity": str, "message": str, "start_ns": int, "end_ns": int, "cost_ns": int,
            "share_of_window": float,             "layer_id": int, "layer": str, "evidence": str, "advice": str,
        },
        "finding",
        (
            {
                "finding": number,
                "rule": one.rule,
                "severity": one.severity,
                "message": one.message,
                "start_ns": one.start_ns,
                "end_ns": one.end_ns,
                "cost_ns": one.cost_ns,
                "share_of_window": one.share_of_window,
                "layer_id": _layer_of(layer_id, one.evidence.get("engine"), one.layer_index, one.layer),
                "layer": one.layer,
                "evidence": json.dumps(dict(one.evidence), sort_keys=True),
                "advice": one.advice,
            }
            for number, one in enumerate(report.findings)
        ),
        [("rule", "rules", "rule"), ("layer_id", "layers", "layer_id")],
    )  # fmt: skip
    yield _Content(
        "notes",
        {"note": int, "level": str, "text": str},
        "note",
        ({"note": number, **asdict(note)} for number, note in enumerate(report.notes)),
    )


def _layer_of(
    layer_id: Mapping[tuple[int | None, int | None, str], int], engine: object, index: int | None, name: str | None
) -> int | None:
    """The row in layers that a finding is about; none where its engine is not told and several have such a layer."""
    found = [
        row
        for (of_engine, of_index, of_name), row in layer_id.items()
        if name in (None, of_name) and index in (None, of_index) and (engine is None or engine == of_engine)
    ]
    return found[0] if len(found) == 1 else None


def _facts(report: Report) -> Iterable[dict[str, str | None]]:
    yield {"name": "schema", "value": SCHEMA}
    facts = {**asdict(report.trace), "layer_time": report.layer_time, "busy_share": report.busy_share, "busy_window": report.busy_window}
    for name, value in facts.items():
        yield {"name": name, "value": None if value is None else str(value)}


def _views(database: Any) -> None:
    database.create_view(
        "layer_kernel_names",
        "SELECT layers.layer_id, layers.name AS layer, layers.kind, kernels.name AS kernel, kernels.summary, "
        "layer_kernels.count, layer_kernels.time_ns "
        "FROM layer_kernels JOIN layers USING (layer_id) JOIN kernels USING (kernel) ORDER BY layer_kernels.time_ns DESC",
    )
