"""PyTorch's annotations of CUDA graph nodes, and the kernels that they are joined to."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nsysmap.api import analyze
from nsysmap.cli.sql import sql_command
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING
from nsysmap.inputs.torch.graph_annotations import NodeAnnotation, read_annotations
from tests.places import FIXTURES

GRAPH = FIXTURES / "real_trt" / "bert_eager-graph.nsys-rep"
STREAM = FIXTURES / "real_trt" / "bert_eager-sync.nsys-rep"


def _written(folder: Path, held: object) -> Path:
    path = folder / "annotations.json"
    path.write_text(json.dumps(held), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("value", "name", "rest"),
    [
        ([{"name": "mlp"}], "mlp", ""),
        ([{"name": "inner", "stream": 61}, {"name": "outer"}], "outer", '{"stream": 61}'),
        (["attention"], "attention", ""),
        ("attention", "attention", ""),
        ([{"str": "attention"}], "attention", ""),
        ([{"op": "all_reduce"}], '{"op": "all_reduce"}', '{"op": "all_reduce"}'),
        ([{"name": ["a", 1]}], '["a", 1]', ""),
        ([], "", ""),
    ],
)
def test_an_annotation_has_a_name(tmp_path: Path, value: object, name: str, rest: str) -> None:
    path = _written(tmp_path, {str((2 << 32) | 7): value})
    assert read_annotations(path) == (NodeAnnotation((2 << 32) | 7, name, rest),)


@pytest.mark.parametrize("text", ["", "[]", "3", '{"layer": []}', '{"-1": []}', "{", "[" * 9999])
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NsysmapError, match=r"annotations\.json"):
        read_annotations(path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Ran:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "annotations.pkl"
    path.write_bytes(pickle.dumps({1: Ran()}))
    with pytest.raises(NsysmapError, match="pickle"):
        read_annotations(path)
    assert not (tmp_path / "ran").exists()


def test_kernels_are_joined_by_the_id_of_their_node(tmp_path: Path) -> None:
    kernels = analyze(GRAPH, rules=[]).tables.kernels
    ids, took = kernels.ints("graph_node_id"), kernels.ints("duration_ns")
    nodes = sorted(set(ids[ids != MISSING].tolist()))
    halves = {"first": nodes[: len(nodes) // 2], "second": nodes[len(nodes) // 2 :]}
    held = {str(node): [{"name": name}] for name, of in halves.items() for node in of}
    found = analyze(
        GRAPH, graph_annotations=_written(tmp_path, held | {"1": ["not in the trace"]}), rules=[]
    )
    told = found.tables.graph_annotations.pandas()
    assert len(told) == len(nodes) + 1
    for name, of in halves.items():
        mine = told[told["name"] == name]
        of_these = np.isin(ids, of)
        assert mine["kernels"].sum() == of_these.sum()
        assert mine["time_ns"].sum() == took[of_these].sum()
    assert told.loc[told["name"] == "not in the trace", "kernels"].sum() == 0
    page = found.summary._repr_html_()
    assert "first" in page
    assert "not in the trace" not in page


@pytest.mark.parametrize(("report", "nodes"), [(GRAPH, {"1": ["a"]}), (STREAM, {"1": ["a"]})])
def test_annotations_of_another_program_are_said_to_be(
    tmp_path: Path, report: Path, nodes: dict[str, object]
) -> None:
    found = analyze(report, graph_annotations=_written(tmp_path, nodes), rules=[])
    (note,) = [note for note in found.notes if "graph annotations" in note.text]
    assert note.level == "warning"


def test_sql_reads_them(tmp_path: Path) -> None:
    kernels = analyze(GRAPH, rules=[]).tables.kernels.ints("graph_node_id")
    node = int(kernels[kernels != MISSING][0])
    done = CliRunner().invoke(
        sql_command,
        [
            *(str(GRAPH), "--graph-annotations", str(_written(tmp_path, {str(node): ["head"]}))),
            "SELECT name, kernels FROM graph_annotations",
            "--json",
        ],
    )
    assert json.loads(done.output) == [{"name": "head", "kernels": int((kernels == node).sum())}]
    assert done.stderr == ""


def test_sql_says_that_annotations_are_of_another_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        sql_command,
        [
            *(str(GRAPH), "--graph-annotations", str(_written(tmp_path, {"1": ["a"]}))),
            "SELECT kernels FROM graph_annotations",
            "--json",
        ],
    )
    assert json.loads(done.stdout) == [{"kernels": 0}]
    assert done.stderr.startswith("nsysmap: warning: the graph annotations are of other graphs")
