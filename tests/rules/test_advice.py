"""Advice fits the program: PyTorch's way to who runs PyTorch, and the flags of the TensorRT that
ran.
"""

from __future__ import annotations

import pytest

from nsysmap.advice.conditions import AdviceParagraph, advice_to, is_condition, joined
from nsysmap.advice.program import (
    CUDA,
    KINDS,
    ONNX_RUNTIME,
    OTHER,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
    Program,
)
from nsysmap.rules.packs import builtin_rules_dir, load_rules

ABOUT_ENGINES = (  # rules that find something only where an engine ran
    "weights-streamed",
    "graph-blockers",
    "default-stream",
    "one-thread-many-contexts",
    "memory-traffic-above-tensors",
    "tensor-cores-idle",
)

PARTS = (
    AdviceParagraph("torch.cuda.graph()", "pytorch"),
    AdviceParagraph("--useCudaGraph", "tensorrt < 11"),
    AdviceParagraph("nothing: it is the default", "tensorrt >= 11"),
    AdviceParagraph("capture\n  enqueueV3()"),
)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (Program(TENSORRT, (10, 3)), ["--useCudaGraph", "capture enqueueV3()"]),
        (Program(TENSORRT, (11, 0, 1)), ["nothing: it is the default", "capture enqueueV3()"]),
        (
            Program(TORCH_ENGINES, (10, 14)),
            ["torch.cuda.graph()", "--useCudaGraph", "capture enqueueV3()"],
        ),
        (
            Program(TENSORRT),
            [
                "Before TensorRT 11: --useCudaGraph",
                "From TensorRT 11 on: nothing: it is the default",
                "capture enqueueV3()",
            ],
        ),
    ],
)
def test_advice_is_for_the_program_at_hand(program: Program, said: list[str]) -> None:
    assert advice_to(program, PARTS).splitlines() == said


def test_versions_are_compared_as_numbers() -> None:
    part = (AdviceParagraph("new", "tensorrt >= 10.14"),)
    assert advice_to(Program(TENSORRT, (10, 9)), part) == ""
    assert advice_to(Program(TENSORRT, (10, 14, 1)), part) == "new"


def test_who_cannot_run_trtexec_is_not_sent_to_it() -> None:
    parts = (
        AdviceParagraph("trtexec --useCudaGraph", "trtexec < 11"),
        AdviceParagraph("cuda_graph_mode", "tensorrt-llm"),
        AdviceParagraph("enqueueV3()", "tensorrt"),
    )
    assert advice_to(Program(TENSORRT, (10, 3)), parts).splitlines() == [
        "trtexec --useCudaGraph",
        "enqueueV3()",
    ]
    assert advice_to(Program(TENSORRT_LLM, (10, 3)), parts).splitlines() == [
        "cuda_graph_mode",
        "enqueueV3()",
    ]
    for kind in (ONNX_RUNTIME, TORCH_TENSORRT):
        assert advice_to(Program(kind, (10, 3)), parts) == "enqueueV3()"


def test_what_names_of_kernels_tell_of_a_version_decides_where_that_is_enough() -> None:
    parts = (AdviceParagraph("old", "tensorrt < 10"), AdviceParagraph("new", "tensorrt >= 10.14"))
    assert advice_to(Program(TENSORRT, before=(10,)), parts) == "old"
    assert advice_to(Program(TENSORRT, since=(10,)), parts) == "From TensorRT 10.14 on: new"


def test_a_part_may_be_for_the_versions_between_two() -> None:
    part = (AdviceParagraph("--layerPrecisions", "trtexec >= 8.4 < 11"),)
    assert [advice_to(Program(TENSORRT, version), part) for version in ((8, 2), (8, 4, 1), (10, 16), (11,))] == [  # noqa: E501
        "", "--layerPrecisions", "--layerPrecisions", "",
    ]  # fmt: skip
    assert advice_to(Program(TENSORRT), part) == "From TensorRT 8.4 to before 11: --layerPrecisions"
    assert (
        advice_to(Program(TENSORRT, since=(10,)), part)
        == "From TensorRT 8.4 to before 11: --layerPrecisions"
    )
    assert advice_to(Program(TENSORRT_LLM, (10,)), part) == ""


@pytest.mark.parametrize(
    "text", ["tensorrt < 11 ", "trtexec > 8", "tensorrt >= 8.4<11", "ONNX", "tensorrt >= x", ""]
)
def test_what_is_no_condition_is_not_taken_for_one(text: str) -> None:
    assert not is_condition(text)


def test_a_part_may_be_for_findings_with_some_evidence_only() -> None:
    parts = (
        AdviceParagraph("both branches", when={"cause": ("residual",)}),
        AdviceParagraph("its type", when={"cause": ("input", "output"), "quantised": False}),
        AdviceParagraph("its scale", when={"quantised": True}),
        AdviceParagraph("check"),
    )
    program = Program(TENSORRT, (10, 3))
    assert advice_to(program, parts, {"cause": "residual"}).splitlines() == [
        "both branches",
        "check",
    ]
    assert advice_to(program, parts, {"cause": "input", "quantised": None}).splitlines() == [
        "its type",
        "check",
    ]
    assert advice_to(program, parts, {"cause": "input", "quantised": True}).splitlines() == [
        "its scale",
        "check",
    ]
    assert parts[1].condition() == "(cause: input or output, without quantised) "


def test_advice_about_onnx_models_is_for_those_whose_engines_come_from_them() -> None:
    part = (AdviceParagraph("polygraphy surgeon", "onnx"),)
    told = {kind for kind in KINDS if advice_to(Program(kind), part)}
    assert told == {TENSORRT, ONNX_RUNTIME, TORCH_ENGINES}


def test_advice_of_several_findings_has_each_line_once_and_the_common_end_last() -> None:
    assert joined(["a\nend", "b\nend", "a\nend"]).splitlines() == ["a", "b", "end"]
    assert joined(["start\na\nend", "start\nb\nend"]).splitlines() == ["start", "a", "b", "end"]
    assert joined(["end", "a\nend", "end\nmore"]).splitlines() == ["a", "end", "more"]


def test_advice_on_onnx_models_and_networks_is_for_who_has_one() -> None:
    parts = (
        AdviceParagraph("AutoCast", "onnx >= 10.12"),
        AdviceParagraph("uint8 input", "network"),
    )
    assert advice_to(Program(TENSORRT, (10, 14)), parts).splitlines() == ["AutoCast", "uint8 input"]
    assert advice_to(Program(ONNX_RUNTIME, (10, 3)), parts) == "uint8 input"
    for kind in (TENSORRT_LLM, TORCH_TENSORRT, PYTORCH):
        assert advice_to(Program(kind, (10, 14)), parts) == "uint8 input"
    for kind in (CUDA, OTHER):
        assert advice_to(Program(kind), parts) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_no_builtin_advice_is_about_what_a_program_of_that_kind_has_not(kind: str) -> None:
    no_engine, no_onnx = (
        (CUDA, OTHER, PYTORCH),
        (CUDA, OTHER, PYTORCH, TENSORRT_LLM, TORCH_TENSORRT),
    )
    foreign = {
        **dict.fromkeys(("network", "NMS"), (CUDA, OTHER)),
        **dict.fromkeys(("engine", "CV-CUDA"), no_engine),
        **dict.fromkeys(("polygraphy", "AutoCast", "ONNX", "opset"), no_onnx),
        "torch": (CUDA, OTHER, TENSORRT, ONNX_RUNTIME, TENSORRT_LLM),
    }
    for rule in load_rules([builtin_rules_dir()]):
        if kind in no_engine and (
            rule.group not in ("copy", "host", "launch", "counters") or rule.name in ABOUT_ENGINES
        ):
            continue  # which finds nothing in such a program
        told = advice_to(Program(kind), rule.advice, {})
        assert not [word for word, kinds in foreign.items() if kind in kinds and word in told], (
            rule.name,
            told,
        )
