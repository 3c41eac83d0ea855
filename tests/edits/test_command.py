"""`nsysmap fix` as it is called: the script, the edited model, and input that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.commands import run
from tests.edits.graphs import Graph
from tests.places import FIXTURES

onnx = pytest.importorskip("onnx")
ir = pytest.importorskip("onnx_ir")

from nsysmap.inputs.engine.reader import read_engines_in  # noqa: E402

CAPTURES = FIXTURES / "real_trt"
REPORT, ENGINE = CAPTURES / "p_softmax-graph.nsys-rep", CAPTURES / "p_softmax.engine.json"
BLOCK = ["MatMul", "Div", "Add_1", "ReduceMax", "Sub_1", "Exp", "ReduceSum", "Div_1", "MatMul_1"]


def model(
    folder: Path, *, opset: int = 17, less: str = "", output: str = "", heads: bool = False
) -> Path:
    """A model with the nodes that the engine file names: the first block of attention as it is
    written there, the others as a chain that stands for them.
    """
    (engine,) = read_engines_in(ENGINE)
    g = Graph(opset=opset, dtype="float16")
    ids, mask = g.given("input_ids", 1, 16, dtype="int64"), g.given("attention_mask", 1, 1, 1, 16)
    table = g.weight("table", 9, 32)
    x = g.node("Gather", table, ids, name="/emb/Gather")
    shape = (1, 1, 16, 32) if heads else (1, 16, 32)
    x = g.node("Reshape", x, g.ints(*shape))
    keys = g.node("Transpose", x, perm=[0, 1, 3, 2]) if heads else g.weight("keys", 32, 16)
    scores = g.node("MatMul", x, keys, name="/MatMul")
    scores = g.node("Div", scores, g.value(4.0), name="/Div")
    flat = g.node("Reshape", mask, g.ints(*shape[:-2], 1, 16))
    scores = g.node("Add", scores, flat, name="/Add_1")
    largest = g.node("ReduceMax", scores, name="/ReduceMax", axes=[-1])
    away = g.node("Exp", g.node("Sub", scores, largest, name="/Sub_1"), name="/Exp")
    total = g.node("ReduceSum", away, g.ints(-1), name="/ReduceSum")
    p = g.node("Div", away, total, name="/Div_1")
    y = g.node("MatMul", p, x, name="/MatMul_1")
    held = {node.name for node in g.nodes}
    for name in dict.fromkeys(name for layer in engine.layers for name in layer.onnx):
        if name not in held and not (less and name.startswith(less)):
            y = g.node("Neg", y, name=name)
    name = output or engine.bindings[-1]
    g.nodes.append(onnx.helper.make_node("Neg", [y], [name], name="/last"))
    path = folder / "model.onnx"
    onnx.save(g.ends(name, *shape).model(), path)
    return path


def test_the_script_says_what_each_edit_is_for_and_the_model_computes_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, script, edited = model(tmp_path), tmp_path / "fix.py", tmp_path / "edited.onnx"
    np.savez(tmp_path / "in.npz", input_ids=np.full((1, 16), 7),
             attention_mask=np.zeros((1, 1, 1, 16), np.float16))  # fmt: skip
    done = run(capfd, "fix", ENGINE, REPORT, "--onnx", path, "-o", script, "--apply", edited,
               "--inputs", tmp_path / "in.npz")  # fmt: skip
    assert done.status == 0, done.err
    assert "softmax: one Softmax instead of 5 nodes" in done.out
    assert "same results in 3 runs" in done.out
    text = script.read_text()
    assert "finding  attention-not-fused" in text
    assert "/ReduceMax, /Sub_1, /Exp, /ReduceSum, /Div_1" in text
    left = [node.op_type for node in ir.load(edited).graph]
    assert left.count("Softmax") == 1
    assert "Exp" not in left


@pytest.mark.parametrize("heads", [True, False])
def test_attention_that_another_edit_lets_tensorrt_fuse_is_no_operator(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], heads: bool
) -> None:
    script = tmp_path / "fix.py"
    path = model(tmp_path, heads=heads)
    done = run(capfd, "fix", ENGINE, REPORT, "--onnx", path, "-o", script)
    assert done.status == 0, done.err
    assert '"softmax"' in script.read_text()
    assert '"attention"' not in script.read_text()
    assert ("TensorRT fuse" in done.out) == heads


def test_a_finding_chooses_the_edits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = model(tmp_path)
    script = tmp_path / "fix.py"
    done = run(capfd, "fix", REPORT, ENGINE, "softmax-split", "--onnx", path, "-o", script)
    assert done.status == 0, done.err
    assert "softmax" in done.out
    done = run(capfd, "fix", REPORT, ENGINE, "channels", "--onnx", path, "-o", tmp_path / "no.py")
    assert done.status == 2
    assert "edited for channels" in done.err
    assert not (tmp_path / "no.py").exists()


def test_a_comparison_says_whether_the_prediction_of_the_edits_held(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "fix.py"
    after = CAPTURES / "bert_eager-graph.nsys-rep", CAPTURES / "bert_eager.engine.json"
    assert run(capfd, "fix", REPORT, ENGINE, "--onnx", model(tmp_path), "-o", script).status == 0
    done = run(capfd, "compare", REPORT, ENGINE, "--", *after, "--fix", script, "--json")
    assert done.status == 0, done.err
    (told,) = (
        one for one in json.loads(done.out)["predictions"] if one["change"].startswith("edits: ")
    )
    assert "softmax" in told["change"]
    assert told["low_ns"] < told["predicted_ns"] < told["high_ns"]
    done = run(capfd, "compare", REPORT, ENGINE, "--", *after, "--fix", ENGINE)
    assert done.status == 2
    assert "is no script" in done.err


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("names", "is not the engine's model: they do not both have /query"),
        ("output", "is not the engine's model: they do not both have 447"),
        ("opset", "is of opset 12; edits need 13 or later"),
        ("weights", "its weights are in away.bin, which is not there"),
        ("cut", "its weights are in away.bin, which is too short for"),
        ("finding", "is no edit, and no rule that an edit serves"),
        ("nothing", "Say where to write"),
    ],
)
def test_input_that_cannot_be_used_is_one_line_and_writes_nothing(
    case: str, why: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = model(
        tmp_path,
        opset=12 if case == "opset" else 17,
        less="/query" if case == "names" else "",
        output="y" if case == "output" else "",
    )
    if case in ("weights", "cut"):
        ir.save(ir.load(path), path, external_data="away.bin", size_threshold_bytes=1)
        (tmp_path / "away.bin").write_bytes(b"x")
    if case == "weights":
        (tmp_path / "away.bin").unlink()
    before = {one.name for one in tmp_path.iterdir()}
    arguments: list[str | Path] = ["fix", REPORT, ENGINE, "--onnx", path]
    arguments += [] if case == "nothing" else ["-o", tmp_path / "fix.py"]
    arguments += ["attention-fused"] if case == "finding" else []
    done = run(capfd, *arguments)
    assert done.status == 2
    assert why.casefold() in done.err.casefold()
    assert len(done.err.strip().splitlines()) == 1
    assert {one.name for one in tmp_path.iterdir()} == before
