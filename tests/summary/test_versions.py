"""No sentence names a version or an option of another product than the program runs: each thing to
do and each rule's advice, for programs of every kind and version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest

from nsysmap.advice.conditions import advice_to
from nsysmap.advice.program import (
    KINDS,
    ONNX_RUNTIME,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
    Program,
    Version,
)
from nsysmap.advice.ways import how
from nsysmap.core.trace_schema import HOSTS, TENSORRT_RTX
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from nsysmap.rules.rule_file import Rule
from tests.summary.test_paste import EVERYTHING
from tests.trtexec_options import lacking

RULES = {rule.name: rule for rule in load_rules([builtin_rules_dir()])}
VERSIONS: tuple[Version | None, ...] = ((7, 2), (8, 2), (8, 6), (10, 3), (10, 14), (11, 1), None)
RTX_HOSTS = (None, *HOSTS)
# of TensorRT: with its name, or bare (RTX's own versions begin with 1.)
_TENSORRT_VERSION = re.compile(r"TensorRT (?:v|version )?\d|(?<![\d.])(?:8|9|10|11)\.\d+\b")
_TRTEXEC = re.compile(r"\btrtexec\b")
# options of trtexec, and of TensorRT for RTX's tool, that only one of both has
_ONLY_TRTEXEC = re.compile(
    r"--(?:fp16|best|int8|bf16|fp8|builderOptimizationLevel|tuneBuildRoutes|useCudaGraph"
    r"|maxAuxStreams|sparsity|precisionConstraints|hardwareCompatibilityLevel)\b"
)
_BUILDER = re.compile(r"BuilderFlag\S*(?:FP16|kFP16|INT8|kINT8)\b|trt_fp16_enable|trt_int8_enable")


def evidences(rule: Rule) -> Iterator[dict[str, object]]:
    """What a finding's evidence may be, by the columns that the parts of the advice ask for."""
    asked: dict[str, set[object]] = {}
    for part in rule.advice:
        for name, value in part.when.items():
            asked.setdefault(name, {None}).update(
                {True, False} if isinstance(value, bool) else value
            )
    names = list(asked)
    for values in product(*(sorted(asked[name], key=repr) for name in names)):
        yield dict(zip(names, values, strict=True))


def told(program: Program) -> Iterator[tuple[str, str]]:
    """All that may be said to who runs this program, with what says it."""
    for name, change in EVERYTHING.items():
        made = how(change, program)
        for text in (made.paste, made.paste_pytorch, made.change, made.paste_brief):
            if text:
                yield name, text
    for name, rule in RULES.items():
        for text in dict.fromkeys(
            advice_to(program, rule.advice, evidence) for evidence in evidences(rule)
        ):
            for line in text.splitlines():
                yield name, line


@pytest.mark.parametrize("host", RTX_HOSTS)
@pytest.mark.parametrize("kind", [TENSORRT, ONNX_RUNTIME, TORCH_ENGINES])
def test_who_runs_tensorrt_for_rtx_reads_no_version_and_no_tool_of_tensorrt(
    kind: str, host: str | None
) -> None:
    """Its version 1.x is not older than 10.14: it is another product."""
    wrong = [
        (name, text)
        for name, text in told(Program(kind, rtx=True, host=host))
        if _TENSORRT_VERSION.search(text)
        or _TRTEXEC.search(text)
        or _ONLY_TRTEXEC.search(text)
        or _BUILDER.search(text)
    ]
    assert not wrong


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [TENSORRT, ONNX_RUNTIME, TORCH_ENGINES])
def test_who_runs_tensorrt_reads_nothing_of_tensorrt_for_rtx(
    kind: str, version: Version | None
) -> None:
    wrong = [
        (name, text)
        for name, text in told(Program(kind, version))
        if re.search(r"tensorrt_rtx|TensorRT for RTX|rtxCudaGraph|NvTensorRTRTX", text)
    ]
    assert not wrong


@pytest.mark.parametrize("version", [one for one in VERSIONS if one])
def test_who_runs_a_known_tensorrt_reads_of_no_later_version_but_to_upgrade(
    version: Version,
) -> None:
    for kind in (TENSORRT, ONNX_RUNTIME, TORCH_ENGINES):
        for name, text in told(Program(kind, version)):
            assert not text.startswith("From TensorRT"), (name, text)
            assert not re.search(r"# from TensorRT", text), (name, text)
            assert not lacking(text, version), (kind, name, text)


@pytest.mark.parametrize("kind", [PYTORCH, TENSORRT_LLM, TORCH_TENSORRT])
def test_who_calls_no_tool_of_tensorrt_reads_of_none(kind: str) -> None:
    wrong = [
        (name, text)
        for host in RTX_HOSTS
        for name, text in told(Program(kind, host=host))
        if re.search(r"\btrtexec --|\btensorrt_rtx --", text)
    ]
    assert not wrong
    assert kind in KINDS
    assert TENSORRT_RTX in HOSTS
