"""The trex file set: what trex needs is there, what was measured comes back, and nothing is
overwritten unasked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsysmap.analysis import measured
from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import MappedTrace, map_report
from nsysmap.output.trex import graph_of, trex_files, trex_name, write_trex
from tests.commands import run
from tests.made_engines import made
from tests.places import FIXTURES, SHARED

BERT = FIXTURES / "bert_trt10"


def mapped(
    folder: str = "bert_trt10", report: str = "sync.sqlite", engine: Engine | None = None
) -> MappedTrace:
    return map_report(
        FIXTURES / folder / report, [engine or read_engine(FIXTURES / folder / "engine.json")]
    )


def exported(tmp_path: Path, of: MappedTrace) -> dict[str, Any]:
    files = trex_files(of.engines[0], measured(of), of.kernels, of.inferences)
    paths = write_trex(files, tmp_path / "trex", "engine", [])
    assert [path.name for path in paths] == [
        "engine.graph.json",
        "engine.profile.json",
        "engine.timing.json",
    ]
    return {path.name.split(".")[1]: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def same(one: Engine, other: Engine) -> bool:
    """Whether two engines are equal but for the file that they are from, its notes and profile."""
    return replace(one, source="", notes=(), trtexec_ns=()) == replace(
        other, source="", notes=(), trtexec_ns=()
    )


@pytest.mark.parametrize(
    ("folder", "report"),
    [("bert_trt10", "sync.sqlite"), ("bert_trt85", "sync.sqlite"), ("bert_trt103", "graph.sqlite")],
)
def test_what_is_written_reads_back_as_the_same_engine_with_the_measured_times(
    folder: str, report: str, tmp_path: Path
) -> None:
    of = mapped(folder, report)
    exported(tmp_path, of)
    again = read_engine(
        tmp_path / "trex" / "engine.graph.json", profile=tmp_path / "trex" / "engine.profile.json"
    )
    assert same(again, of.engines[0])
    times = [row["median_ns"] for row in measured(of).layers.records()]
    # a layer without kernels took 0, as trtexec says
    assert list(again.trtexec_ns) == [0 if time is None else time for time in times]


@pytest.mark.parametrize(
    "name",
    [
        "trt8_mobilenet_v2_residuals.graph",
        "trt8_resnet_qat.graph",
        "trt10.16_mnist.layers",
        "trt11.3_vitpose_excerpt.layers",
    ],
)
def test_public_engines_of_every_version_survive_the_way_there_and_back(
    name: str, tmp_path: Path
) -> None:
    path = SHARED / "engines" / f"{name}.json"
    if not path.exists():
        pytest.skip("public engine files are not here")
    engine = read_engine(path)
    (tmp_path / "again.json").write_text(json.dumps(graph_of(engine)), encoding="utf-8")
    again = read_engine(tmp_path / "again.json")
    assert same(replace(again, bindings=engine.bindings), engine)


def test_the_graph_has_what_trex_reads(tmp_path: Path) -> None:
    graph = exported(tmp_path, mapped())["graph"]
    assert graph["Bindings"]
    for layer in graph["Layers"]:
        assert layer["Name"]
        assert layer["LayerType"]
        for tensor in (*layer["Inputs"], *layer["Outputs"]):
            assert {"Name", "Dimensions", "Format/Datatype"} <= set(tensor)
            assert all(isinstance(extent, int) for extent in tensor["Dimensions"])


def test_types_and_layouts_apart_are_written_as_one_text_that_trex_knows() -> None:
    reads = {
        "Name": "a",
        "Dimensions": [1, 8],
        "Datatype": "Half",
        "Format": "Format not available due to dynamic shapes",
    }
    writes = {"Name": "b", "Dimensions": [1, 8], "Datatype": "FP8", "Format": "Row major linear"}
    graph = graph_of(
        made(
            {
                "Name": "node_linear_myl0_0",
                "LayerType": "gemm",
                "Inputs": [reads],
                "Outputs": [writes],
            }
        )
    )
    value: dict[str, Any] = json.loads(json.dumps(graph))
    (row,) = value["Layers"]
    assert row["Inputs"][0]["Format/Datatype"] == "Half"
    assert row["Outputs"][0]["Format/Datatype"] == "FP8"
    assert row["Outputs"][0]["Format"] == "Row major linear"
    assert value["Bindings"] == ["a", "b"]


def test_the_profile_has_a_row_a_layer_whose_times_are_those_of_the_kernels(tmp_path: Path) -> None:
    of = mapped()
    profile = exported(tmp_path, of)["profile"]
    assert profile[0] == {"count": 50}
    assert [row["name"] for row in profile[1:]] == [layer.name for layer in of.engines[0].layers]
    assert all(len(row) == 5 for row in profile[1:])
    kernels = of.kernels
    inside = np.isin(kernels.ints("inference"), of.steady) & (kernels.ints("layer_id") == 7)
    spent = (kernels.ints("end_ns") - kernels.ints("start_ns"))[inside]
    assert round(profile[8]["timeMs"] * 1e6) == spent.sum()
    assert profile[8]["averageMs"] == pytest.approx(spent.mean() / 1e6, abs=1e-6)
    assert round(profile[8]["medianMs"] * 1e6) == sorted(spent)[(len(spent) - 1) // 2]
    assert sum(row["percentage"] for row in profile[1:]) == pytest.approx(100, abs=0.01)


def test_the_timing_has_a_row_a_measured_inference_whose_parts_make_up_its_latency(
    tmp_path: Path,
) -> None:
    of = mapped("bert_trt103", "graph.sqlite")
    timing = exported(tmp_path, of)["timing"]
    assert len(timing) == len(of.steady)
    spans = of.inferences.ints("gpu_span_ns")[of.steady]
    assert [round(row["latencyMs"] * 1e6) for row in timing] == spans.tolist()
    for row in timing:
        assert row["h2dMs"] + row["computeMs"] + row["d2hMs"] == pytest.approx(
            row["latencyMs"], abs=3e-6
        )
        assert 0 <= row["startEnqMs"] <= row["endEnqMs"]
        assert row["startComputeMs"] <= row["endComputeMs"]


def test_names_only_engines_say_what_trex_cannot_do(tmp_path: Path) -> None:
    names = [layer.name for layer in read_engine(BERT / "engine.json").layers]
    (tmp_path / "names.json").write_text(json.dumps({"Layers": names}), encoding="utf-8")
    of = mapped(engine=read_engine(tmp_path / "names.json"))
    files = trex_files(of.engines[0], measured(of), of.kernels, of.inferences)
    assert any("trex cannot read" in note for note in files.notes)
    assert files.graph["Layers"] == names
    write_trex(files, tmp_path / "trex", "names", [])
    again = read_engine(
        tmp_path / "trex" / "names.graph.json", profile=tmp_path / "trex" / "names.profile.json"
    )
    assert [layer.name for layer in again.layers] == names
    assert again.trtexec_ns[7]


def test_a_trace_without_kernels_of_the_engine_is_refused() -> None:
    of = mapped(report="graph_whole.sqlite")
    with pytest.raises(NsysmapError, match="kernel of this"):
        trex_files(of.engines[0], measured(of), of.kernels, of.inferences)


def test_files_that_are_there_are_kept_unless_forced_and_inputs_always(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ("export", "--trex", tmp_path / "trex", BERT / "sync.sqlite", BERT / "engine.json")
    first = run(capfd, *arguments)
    assert (first.status, first.err) == (0, "")
    assert "engine.profile.json: 57 layers, 50 inferences" in first.out
    kept = {path.name: path.read_bytes() for path in (tmp_path / "trex").iterdir()}
    (tmp_path / "trex" / "engine.timing.json").write_text("mine", encoding="utf-8")
    again = run(capfd, *arguments)
    assert again.status == 2
    assert "exists already" in again.err
    assert (tmp_path / "trex" / "engine.timing.json").read_text(encoding="utf-8") == "mine"
    assert run(capfd, *arguments, "--force").status == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "trex").iterdir()} == kept
    (tmp_path / "elsewhere").write_text("mine", encoding="utf-8")
    for target in (tmp_path / "elsewhere", tmp_path / "nowhere"):
        (tmp_path / "trex" / "engine.timing.json").unlink()
        (tmp_path / "trex" / "engine.timing.json").symlink_to(target)
        linked = run(capfd, *arguments, "--force")
        assert (linked.status, "a symbolic link" in linked.err) == (2, True)
    assert (tmp_path / "elsewhere").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "trex" / "engine.timing.json").unlink()
    own = run(
        capfd,
        "export",
        "--trex",
        tmp_path / "trex",
        BERT / "sync.sqlite",
        tmp_path / "trex" / "engine.graph.json",
        "--force",
    )
    assert own.status == 2
    assert "of the inputs" in own.err


def test_a_folder_that_cannot_be_is_a_mistake_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path / "no" / "such"):
        done = run(capfd, "export", "--trex", folder, BERT / "sync.sqlite", BERT / "engine.json")
        assert done.status == 2
        assert done.err.count("\n") == 1


def test_the_files_are_named_after_the_engine() -> None:
    assert [trex_name(Path(name)) for name in ("engine.json", "a/resnet.onnx.engine.graph.json", "model.plan")] == [  # noqa: E501
        "engine", "resnet.onnx.engine", "model.plan",
    ]  # fmt: skip
