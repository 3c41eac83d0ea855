"""The JSON report keeps to its schema, holds no NaN, and comes out the same each time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.answer.model import Answer
from nsysmap.core.engine_schema import LAYERS
from nsysmap.output.json import json_pieces, report_json, schema, write_json
from nsysmap.output.write import write_report
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from tests.places import ROOT
from tests.reports import hostile, numbered, report, with_tables

REPORTS = [
    ("bert_trt10", "sync.sqlite", True), ("bert_trt10", "graph.sqlite", False),
    ("bert_trt10", "graph_whole.sqlite", True),
    ("bert_trt103", "graph.sqlite", True), ("bert_trt85", "sync.sqlite", True),
]  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    return loaded


def test_the_schema_is_a_schema_and_describes_every_figure() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())

    def check(node: object, path: str) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object" and "properties" in node:
                assert node.get("additionalProperties") is False, path
                assert node.get("required") == list(node["properties"]), path
            for key, inner in node.items():
                check(inner, f"{path}/{key}")
        elif isinstance(node, list):
            for inner in node:
                check(inner, path)

    check(schema(), "")


def test_the_schema_in_docs_is_the_one_that_is_made() -> None:
    assert (
        json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8")) == schema()
    ), "run python docs/make_rules.py"


def test_a_column_s_meaning_is_told_where_a_table_declares_it() -> None:
    layers = schema()["properties"]["layers"]["items"]["properties"]
    assert layers["time_ns"] == {
        "type": ["integer", "null"],
        "description": LAYERS.column("time_ns").comment,
    }


@pytest.mark.parametrize(("folder", "file", "engine"), REPORTS)
def test_a_report_keeps_to_the_schema(
    folder: str, file: str, tmp_path: Path, *, engine: bool
) -> None:
    write_json(report(folder, file, engine=engine, rules=True), tmp_path / "r.json")
    jsonschema.Draft202012Validator(schema()).validate(read(tmp_path / "r.json"))


def test_a_hostile_report_keeps_to_the_schema_and_its_names_are_exact(tmp_path: Path) -> None:
    held = hostile()
    lone = with_tables(held, layers=numbered(held.tables.layers, "lone \ud800 surrogate"))
    write_json(lone, tmp_path / "r.json")
    told = read(tmp_path / "r.json")
    jsonschema.Draft202012Validator(schema()).validate(told)
    assert [row["name"] for row in told["layers"]] == [row.text("name") for row in lone.layer_rows]
    assert [row["name"] for row in told["kernels"]] == lone.tables.kernel_totals.text("name").list()


def test_the_figures_are_those_of_the_report() -> None:
    held: Answer = report("bert_trt10", "sync.sqlite")
    told = report_json(held)
    assert told["schema"] == "nsysmap/report/1"
    assert told["engine"] == told["engines"][0]
    assert told["engine"]["source"] == "engine.json"
    assert told["inferences"]["gpu_time_ns"] == {"median": 274720, "p95": 276706}
    assert told["inferences"]["busy_share"] == held.busy_share
    assert told["coverage"] == {
        "kernels": 2800, "mapped": 2800, "time_ns": 13711522, "mapped_time_ns": 13711522,
        "by_method": {"nvtx": {"kernels": 2800, "time_ns": 13711522, "share_of_kernel_time": 1.0}},
        "unmapped": [],
    }  # fmt: skip
    assert [row["index"] for row in told["layers"]] == [
        row.integer("layer_index") for row in held.layer_rows
    ]
    assert told["graph_replays"] is None
    assert (told["findings"], told["skipped"], told["clean"]) == ([], [], [])  # no rules ran
    graph = {row["change"]: row for row in told["whatif"]}["cuda-graph"]
    assert graph["saving_ns"] == graph["before_ns"] - graph["after_ns"]
    assert graph["low_saving_ns"] <= graph["saving_ns"] <= graph["high_saving_ns"]


def test_every_rule_is_found_skipped_or_clean() -> None:
    told = report_json(report("bert_trt10", "graph_whole.sqlite", rules=True))
    found = {finding["rule"] for finding in told["findings"]}
    skipped = {one["rule"] for one in told["skipped"]}
    assert "whole-graph-trace" in found
    rules = {rule.name for rule in load_rules([builtin_rules_dir()])}
    assert found | skipped | set(told["clean"]) == rules
    assert len(found) + len(skipped) + len(told["clean"]) == len(rules)


def test_units_are_in_the_names() -> None:
    def names(node: object) -> set[str]:
        if isinstance(node, dict):
            return set(node) | {name for inner in node.values() for name in names(inner)}
        return (
            {name for inner in node for name in names(inner)} if isinstance(node, list) else set()
        )

    timed = re.compile(r"time|gap|span|enqueue|bytes|memory")  # a share of a time has no unit
    held = {
        name
        for name in names(report_json(report("bert_trt10", "sync.sqlite")))
        if timed.search(name)
    }
    # what the layers' figures are; a number of gaps; a ratio
    plain = {
        "layer_time",
        "gaps",
        "times_median",
    }
    assert {
        name
        for name in held - plain
        if not name.startswith("share_of_") and not name.endswith(("_ns", "_bytes", "_bytes_per_s"))
    } == set()


@pytest.mark.parametrize("suffix", [".json", ".md", ".db"])
def test_the_same_report_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    held = report("bert_trt85", "sync.sqlite", rules=True)
    write_report(held, tmp_path / f"a{suffix}")
    write_report(held, tmp_path / f"b{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
_values = st.recursive(
    _scalars,
    lambda part: st.lists(part) | st.dictionaries(st.text(), part) | st.tuples(part, part),
    max_leaves=20,
)


@given(_values, st.booleans())
def test_json_is_written_as_python_writes_it(value: object, ascii_only: bool) -> None:
    assert (
        "".join(json_pieces(value, ascii_only=ascii_only))
        == json.dumps(value, indent=1, ensure_ascii=ascii_only) + "\n"
    )


@pytest.mark.parametrize("value", [float("nan"), [1.0, float("inf")], {"a": [{"b": float("nan")}]}])
def test_no_json_is_written_of_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        list(json_pieces(value))
