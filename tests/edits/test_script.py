"""The script stands alone, and says what each edit is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.edits.graphs import Graph, edited

onnx = pytest.importorskip("onnx")
ir = pytest.importorskip("onnx_ir")

from nsysmap.core.errors import NsysmapError  # noqa: E402
from nsysmap.core.fix_script import read_prediction  # noqa: E402
from nsysmap.edits.check import check_interface, compare  # noqa: E402
from nsysmap.edits.model import call  # noqa: E402
from nsysmap.edits.predict import NOTHING, PredictedEdit, SavedTime  # noqa: E402
from nsysmap.edits.script import script  # noqa: E402
from nsysmap.edits.steps import written  # noqa: E402


def network() -> Graph:
    g = Graph(opset=13, dtype="float16")
    x = g.given("x", 1, 8, 16)
    wide = g.node("Cast", x, to=1)
    away = g.node("Sub", wide, g.node("ReduceMean", wide, axes=[-1]))
    square = g.node("Pow", away, g.value(2.0, "float32"))
    mean = g.node("ReduceMean", square, axes=[-1])
    root = g.node("Sqrt", g.node("Add", mean, g.value(1e-5, "float32")))
    y = g.node("Cast", g.node("Div", away, root), to=10)
    parts = [g.node("MatMul", y, g.weight(name, 16, 14)) for name in "qk"]
    y = g.node("Identity", g.node("Add", *parts), name="/quote \"' \\ and end")
    return g.ends(g.node("Relu", g.node("Mul", y, g.value(0.5))), 1, 8, 14)


def test_the_script_alone_makes_the_same_model(tmp_path: Path) -> None:
    made = edited(tmp_path, network())
    assert {"norms", "noops", "products"} <= set(made.kinds)
    nothing = PredictedEdit(NOTHING, (), None, "a test")
    text = script(
        [(edit, nothing) for edit in made.plan.made],
        model="m.onnx",
        report="r.nsys-rep",
        inference_ns=100_000,
        together=SavedTime(3_000, 1_000, 5_000),
        external=False,
    )
    program, out = tmp_path / "fix.py", tmp_path / "out.onnx"
    program.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, program, tmp_path / "before.onnx", out], check=True, cwd="/")
    told = read_prediction(program)
    assert (told.saves_ns, told.low_ns, told.high_ns) == (3_000, 1_000, 5_000)
    assert set(told.edits) == set(made.kinds)
    assert "nsysmap" not in text.partition('"""\n')[2]
    assert [node.op_type for node in ir.load(out).graph] == made.ops
    assert check_interface(ir.load(tmp_path / "before.onnx"), ir.load(out)) is None
    assert compare(tmp_path / "before.onnx", out, [], {}).worst < 1
    assert all(len(line) <= 100 for line in text.splitlines())
    for edit in made.plan.made:
        assert edit.does in text
        assert edit.nodes[0] in text


def test_calls_are_written_as_python_on_as_many_lines_as_they_need() -> None:
    short = call("edit.add", "Relu", ["x"], ["y"], alpha=0.5)
    assert written(short) == 'edit.add("Relu", ["x"], ["y"], alpha=0.5)'
    long = call("edit.weight", "w" * 60, call("np.concatenate", [call("edit.array", "a" * 60)]))
    assert written(long).count("\n") == 3
    compile(written(long), "script", "exec")


@pytest.mark.parametrize(
    "text",
    ["", "x = 1", "PREDICTED = open('x')", "PREDICTED = {'edits': 3}", "def", "PREDICTED = 5"],
)
def test_what_is_no_script_of_ours_is_refused_and_not_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.py").write_text(text)
    with pytest.raises(NsysmapError, match="is no script"):
        read_prediction(tmp_path / "x.py")
