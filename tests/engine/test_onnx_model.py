"""Reading an ONNX model: its nodes, what is constant, and what is refused."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.onnx_model import read_model
from tests.commands import run
from tests.onnx_models import Builder, bert
from tests.places import FIXTURES

TRT85 = (FIXTURES / "bert_trt85" / "sync.sqlite", FIXTURES / "bert_trt85" / "engine.json")


def test_the_nodes_are_those_of_the_graph_in_order_and_what_is_made_of_weights_alone_is_constant(
    tmp_path: Path,
) -> None:
    model = read_model(bert(tmp_path / "bert.onnx", layers=1))
    names = [node.name for node in model.nodes]
    assert (names[0], names[-1], len(names)) == (
        "/embeddings/Gather",
        "/classifier/Mul",
        len(set(names)),
    )
    assert "/embeddings/Gather_1_output_0" in model.constants  # positions of a table of weights
    assert "/embeddings/Gather_output_0" not in model.constants
    assert model.source == "bert.onnx"


def test_nodes_without_a_name_are_called_as_tensorrt_calls_them(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    made = Builder()
    made.nodes.append(onnx.helper.make_node("Relu", ["ids"], ["y"]))
    assert [node.name for node in read_model(made.save(tmp_path / "m.onnx", "y")).nodes] == [
        "node_of_y"
    ]


def test_nodes_in_any_order_are_sorted(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    path = bert(tmp_path / "bert.onnx", layers=2)
    model = onnx.load(path)
    nodes = list(model.graph.node)
    random.Random(7).shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    path.write_bytes(model.SerializeToString())
    read = read_model(path)
    made: set[str] = {"ids", "mask", *read.constants}
    for node in read.nodes:
        assert made.issuperset(node.inputs)
        made.update(node.outputs)


def test_weights_in_a_file_of_their_own_need_not_be_there(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(bert(tmp_path / "bert.onnx", layers=1))
    onnx.save(
        model,
        tmp_path / "split.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    (tmp_path / "weights.bin").unlink()
    assert len(read_model(tmp_path / "split.onnx").nodes) == len(model.graph.node)


def test_what_is_no_model_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnx")
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "noise.onnx").write_bytes(random.Random(3).randbytes(4096))
    (tmp_path / "text.onnx").write_text(json.dumps({"Layers": []}))
    for name in ("empty.onnx", "noise.onnx", "text.onnx", "missing.onnx", "."):
        done = run(capfd, "map", *TRT85, "--onnx", tmp_path / name)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert "give the .onnx" in done.err


def test_a_pipe_a_device_and_a_path_that_cannot_be_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    os.mkfifo(tmp_path / "pipe.onnx")
    for path in (tmp_path / "pipe.onnx", Path("/dev/zero")):
        with pytest.raises(NsysmapError, match="pipe or"):
            read_model(path)
    with pytest.raises(NsysmapError, match="cannot be read"):
        read_model("x" * 5000)


def test_functions_that_call_themselves_or_grow_beyond_all_bounds_are_refused(
    tmp_path: Path,
) -> None:
    helper = pytest.importorskip("onnx").helper
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    doubled = (
        [("F0", ["F1", "F1"])]
        + [(f"F{i}", [f"F{i + 1}"] * 2) for i in range(1, 40)]
        + [("F40", ["Relu"])]
    )
    for functions in ([("F0", ["F0"])], [("F0", ["F1"]), ("F1", ["F0"])], doubled):
        made = [
            helper.make_function(
                "own",
                name,
                ["x"],
                ["y"],
                [
                    helper.make_node(
                        call,
                        ["x" if i == 0 else f"t{i - 1}"],
                        ["y" if i + 1 == len(calls) else f"t{i}"],
                        domain="own" if call[0] == "F" else "",
                    )
                    for i, call in enumerate(calls)
                ],
                opsets,
            )
            for name, calls in functions
        ]
        values = [helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
        graph = helper.make_graph(
            [helper.make_node("F0", ["x"], ["y"], domain="own")], "g", values[:1], values[1:]
        )
        path = tmp_path / "m.onnx"
        path.write_bytes(
            helper.make_model(graph, functions=made, opset_imports=opsets).SerializeToString()
        )
        with pytest.raises(NsysmapError, match="expand without limit"):
            read_model(path)


def test_without_the_onnx_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # what import finds where a package is not installed
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(NsysmapError, match="pip install onnx"):
        read_model("model.onnx")
