"""Every piece of evidence for one kernel's layer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.explain import _candidate, _layer_at, _tactics, explain
from nsysmap.mapping.map_kernels import NO_LAUNCH, NOT_ITS
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, map_trace, read_engines
from nsysmap.mapping.order.kernel_alignment import Alignment
from nsysmap.names.decode import affinity, decode
from nsysmap.output.explain import explain_json, explain_text
from nsysmap.trace.model import Trace
from nsysmap.trace.open_report import open_trace
from tests.commands import run
from tests.nsys_file import NsysFile
from tests.places import FIXTURES

TRT10, TRT85, TRT103 = (FIXTURES / name for name in ("bert_trt10", "bert_trt85", "bert_trt103"))


def mapped(trace: Trace, *folders: Path) -> MappedTrace:
    return map_trace(trace, read_engines([folder / "engine.json" for folder in folders]))


def bare(trace: Trace) -> Trace:
    nothing = np.arange(0)
    return replace(
        trace,
        nvtx_ranges=trace.nvtx_ranges.take(nothing),
        cuda_graph_nodes=trace.cuda_graph_nodes.take(nothing),
    )


def test_a_kernel_launched_in_a_layer_s_range_is_explained_by_the_ranges_around_its_launch() -> (
    None
):
    held = explain(mapped(open_trace(TRT10 / "sync.sqlite"), TRT10), 20)
    assert held.launch is not None
    assert held.launch.api.startswith("cudaLaunchKernel")
    assert [(one.domain, one.names) for one in held.ranges] == [
        ("", "nothing"), ("TensorRT", "call"), ("TensorRT", "layer"), ("myelin-exec", "nothing"),
        ("myelin-exec", "layer"),
    ]  # fmt: skip
    assert all(
        one.start_ns <= held.launch.start_ns and one.end_ns >= held.launch.end_ns
        for one in held.ranges
    )
    assert [one.decides for one in held.ranges] == [False] * 4 + [True]
    assert held.ranges[-1].name == held.answer.layer
    assert held.inference is not None
    assert (
        held.inference.inference,
        held.inference.position,
        held.inference.kernels,
        held.inference.same,
    ) == (0, 20, 56, 50)
    assert (held.inference.found_by, held.inference.same_name) == ("range", 4)
    assert [one.layer_index for one in held.tactics] == [19, 21, 44, 46]
    assert held.order is None


def test_a_replayed_kernel_is_explained_by_the_capture_of_its_node() -> None:
    held = explain(mapped(open_trace(TRT103 / "graph.sqlite"), TRT103), 60)
    assert held.graph is not None
    assert held.graph.complete
    clone, captured = held.graph.created
    assert clone.graph_node == held.graph.graph_node
    assert captured.start_ns < clone.start_ns < held.start_ns
    assert all(one.start_ns <= captured.start_ns <= one.end_ns for one in held.ranges)
    assert (held.ranges[-1].decides, held.answer.method, held.answer.layer_index) == (
        True,
        "graph-node",
        23,
    )
    assert str(captured.graph_node) in explain_text(held)


def test_a_kernel_placed_by_order_is_explained_by_the_alignment_and_its_rival() -> None:
    result = mapped(bare(open_trace(TRT103 / "graph.sqlite")), TRT103, TRT85)
    table = result.mapped.table
    for kernel in range(0, 76, 5):
        held = explain(result, kernel)
        assert held.order is not None
        chosen = held.order.chosen
        assert chosen is not None
        assert (chosen.layer_index, chosen.layer) == (
            table.ints("layer_index")[kernel],
            table.text("layer")[kernel],
        )
        assert held.order.chance == pytest.approx(table.floats("confidence")[kernel], abs=1e-6)
        assert held.order.rival != chosen
        assert held.order.chance + held.order.rival_chance <= 1 + 1e-9
        assert (held.order.kernels, held.order.inferences) == (38, 50)
    held = explain(result, 22)
    assert held.graph is not None
    assert not held.graph.complete
    assert held.ranges == ()
    right, wrong = held.engines
    assert (right.ran_this, right.verdict, wrong.ran_this, wrong.verdict) == (
        True,
        "ran",
        False,
        "did-not-run",
    )
    assert right.placed == right.used == 1
    assert wrong.used is not None
    assert wrong.used < 0.9
    text = explain_text(held)
    assert "best: layer 23" in text
    assert "next: " in text


def test_a_kernel_of_another_engine_with_the_same_layer_names_says_why_it_is_not_the_file_s() -> (
    None
):
    result = map_report(
        FIXTURES / "decode_loop/nonvtx.nsys-rep", FIXTURES / "decode_loop/context.engine.json"
    )
    doubted, its_own = explain(result, 300), explain(result, 3)
    assert doubted.answer.reason == NOT_ITS
    assert doubted.inference is not None and doubted.inference.engine_doubt
    assert its_own.inference is not None and not its_own.inference.engine_doubt


def test_a_kernel_that_nothing_can_be_said_of_says_why(tmp_path: Path) -> None:
    file = NsysFile()
    file.kernel("orphan", 5000, 999)
    result = mapped(open_trace(file.write(tmp_path / "x.sqlite")))
    held = explain(result, 0)
    assert (held.launch, held.answer.reason, held.engines) == (None, NO_LAUNCH, ())
    assert explain_text(held)


@pytest.mark.parametrize("kernel", [0, 8, 70])
def test_the_text_fits_and_says_the_part(kernel: int) -> None:
    held = explain(mapped(open_trace(TRT85 / "sync.sqlite"), TRT85), kernel)
    text = explain_text(held)
    assert max(map(len, text.splitlines())) <= 80
    assert (held.answer.part == "softmax #1") == (kernel == 8)
    assert held.answer.part is None or held.answer.part in text


def test_names_that_would_drive_the_terminal_are_escaped_and_long_ones_kept_whole(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    file.domain("TensorRT", 1)
    file.range("ExecutionContext::enqueueV3", 90, 200, domain=1)
    file.range("\x1b[31mlayer" * 40, 95, 150, domain=1)
    file.launch("kernel_" * 60 + "\x07", 100, 1)
    text = explain_text(explain(mapped(open_trace(file.write(tmp_path / "x.sqlite"))), 0))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "kernel_" * 60 in "".join(
        line.strip().removeprefix("name").strip() for line in text.splitlines()[1:8]
    )


def test_the_command_prints_text_or_json_and_refuses_what_it_cannot_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = (TRT10 / "sync.sqlite", TRT10 / "engine.json")
    done = run(capfd, "map", *files, "--explain", "20")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("sync.sqlite: kernel 20\n")
    value = json.loads(run(capfd, "map", *files, "--explain", "20", "--json").out)
    assert value == json.loads(
        json.dumps(explain_json(explain(mapped(open_trace(files[0]), TRT10), 20)))
    )
    assert value["answer"]["layer_index"] == 21
    for number in ("2800", "-1"):
        done = run(capfd, "map", *files, "--explain", number)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert f"has no kernel {number}; kernel ids go from 0 to 2799" in done.err
    assert run(capfd, "map", *files, "--explain", "20", "-o", tmp_path / "map.csv").status == 2
    assert run(capfd, "map", *files, "--json").status == 2
    assert list(tmp_path.iterdir()) == []


# --- candidates and neighbours
# ------------------------------------------------------------------------------


def test_a_candidate_matches_by_its_tactic_or_else_by_what_its_name_says() -> None:
    tactic = "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x32_stage5"
    engine = Engine(
        "e.json",
        (
            Layer(0, "a", "gemm", tactic=tactic),
            Layer(1, "b", "gemm"),
            Layer(2, "c", "gemm", tactic=tactic.replace("64x64x32", "128x64x32")),
        ),
        detailed=True,
    )
    named, untold, other = (_candidate(engine, 3, at, tactic, 0.5) for at in range(3))
    assert (named.engine, named.layer, named.match, named.chance) == (3, "a", 1.0, 0.5)
    like = affinity(decode(tactic), "gemm", "b", ())
    assert untold.match == like < 1.0
    assert other.match == affinity(decode(tactic), "gemm", "c", ())
    assert [one.layer for one in _tactics([engine, engine], tactic)] == ["a", "a"]
    assert [one.engine for one in _tactics([engine, engine], tactic)] == [0, 1]
    assert _tactics([engine], "other") == ()


def test_the_layer_beside_a_kernel_is_that_of_its_neighbour_within_the_inference() -> None:
    layers = tuple(Layer(at, name, "gemm") for at, name in enumerate("ab"))
    engine = Engine("e.json", layers, detailed=True)
    aligned = Alignment(
        np.array([0, -1, 1]),
        *(np.ones(3), np.full(3, -1), np.zeros(3)),
        *(np.ones(3, np.bool_), np.ones(3, np.bool_), np.zeros(3, np.bool_)),
        (0, 1),
        0.0,
    )
    found = [_layer_at(engine, aligned, at) for at in range(-1, 4)]
    assert found == [None, "a", None, "b", None]
