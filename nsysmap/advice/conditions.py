"""A rule's advice: parts for everyone, and parts only for some programs or some versions of
TensorRT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from nsysmap.advice.program import (
    ONNX_RUNTIME,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_TENSORRT,
    Program,
    version_of,
)
from nsysmap.core.records import dataclass
from nsysmap.core.trace_schema import PYTHON
from nsysmap.core.trace_schema import TRTEXEC as HOST_TRTEXEC

RTX_ONNX_RUNTIME = "onnxruntime-rtx"
PYTORCH, CUDA, TRTEXEC, ONNX, NETWORK = "pytorch", "cuda", "trtexec", "onnx", "network"
BUILDER, API, API_PYTHON, API_CPP, RTX = (
    "builder",
    "tensorrt-api",
    "tensorrt-python",
    "tensorrt-cpp",
    "tensorrt-rtx",
)
_VERSIONED = "|".join(("tensorrt", API, API_PYTHON, API_CPP, BUILDER, TRTEXEC, ONNX))
_VERSION = re.compile(
    rf"(?:{_VERSIONED})(?: >= (?P<since>\d+(?:\.\d+)*))?(?: < (?P<before>\d+(?:\.\d+)*))?"
)

_HEADINGS = {
    PYTORCH: "In PyTorch: ",
    TORCH_TENSORRT: "In Torch-TensorRT: ",
    ONNX_RUNTIME: "In ONNX Runtime: ",
    RTX_ONNX_RUNTIME: "In ONNX Runtime with TensorRT for RTX: ",
    TENSORRT_LLM: "In TensorRT-LLM: ",
    TENSORRT: "With TensorRT: ",
    TRTEXEC: "With trtexec: ",
    BUILDER: "With an engine that TensorRT's builder makes: ",
    API: "In a program that calls TensorRT's API: ",
    API_PYTHON: "In Python: ",
    API_CPP: "In C++: ",
    RTX: "With TensorRT for RTX: ",
    ONNX: "With an engine built from an ONNX model: ",
    NETWORK: "With a neural network: ",
    CUDA: "In CUDA C++ without TensorRT and PyTorch: ",
}


@dataclass(frozen=True)
class AdviceParagraph:
    """One paragraph of advice, and who it is for; None means everybody.

    "pytorch", "torch-tensorrt", "onnxruntime" ("onnxruntime-rtx" where its TensorRT is that for
    RTX), "tensorrt-llm", "tensorrt" (all that run engines),
    "trtexec" (trtexec itself, and programs of which it is not known whether they are),
    "tensorrt-api" (those that call TensorRT's API themselves; "tensorrt-python" and "tensorrt-cpp"
    those in Python and in other languages), "builder" (engines that TensorRT's builder makes for
    one of all these), "tensorrt-rtx" (engines of TensorRT for RTX), "onnx" (those whose engines are
    built from ONNX models), "network" (engines or PyTorch) and "cuda" (CUDA C++, neither) are
    programs; "tensorrt < 11", "trtexec >= 8.4 < 11" and "onnx >= 8.6" are some versions of
    TensorRT. ``when`` says what a finding's evidence must be, by its column: one of these texts, or
    true (it has a value, and that is not false) or false (the opposite).
    """

    text: str
    to: str | None = None
    when: Mapping[str, tuple[str, ...] | bool] = field(default_factory=dict)

    def about(self, evidence: Mapping[str, object]) -> bool:
        """Whether it is about a finding with this evidence."""
        return all(
            (
                bool(evidence.get(name)) == value
                if isinstance(value, bool)
                else evidence.get(name) in value
            )
            for name, value in self.when.items()
        )

    def condition(self) -> str:
        """The findings that it is about, in words; empty if it is about all."""
        told = [
            (
                f"with {name}"
                if value is True
                else f"without {name}"
                if value is False
                else f"{name}: {' or '.join(value)}"
            )
            for name, value in self.when.items()
        ]
        return f"({', '.join(told)}) " if told else ""

    def heading(self) -> str:
        """The programs that it is given to, in words; empty for everybody."""
        if self.to is None:
            return ""
        if self.to in _HEADINGS:
            return _HEADINGS[self.to]
        since, before = _versions(self.to)
        if since is None:
            return f"Before TensorRT {before}: "
        return (
            f"From TensorRT {since} on: "
            if before is None
            else f"From TensorRT {since} to before {before}: "
        )


def is_condition(text: str) -> bool:
    """Whether the text says to whom a part of the advice is given."""
    return text in _HEADINGS or _VERSION.fullmatch(text) is not None


def advice_to(
    program: Program,
    parts: Sequence[AdviceParagraph],
    evidence: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """The advice that fits this program and a finding with this evidence, in the order of the
    rule's file. If its TensorRT is unknown: both ways, each with its version.
    """
    said = []
    for part in parts:
        if not part.about(evidence):
            continue
        text = " ".join(part.text.split())
        if part.to is not None and not _runs(program, part.to.partition(" ")[0]):
            continue
        if part.to is None or part.to in _HEADINGS:
            said.append(text)
        else:
            since, before = _versions(part.to)
            new = True if since is None else program.at_least(version_of(since) or ())
            old = False if before is None else program.at_least(version_of(before) or ())
            if new is not False and old is not True:
                said.append(text if new and old is False else part.heading() + text)
    return "\n".join(said)


def joined(several: Sequence[str]) -> str:
    """The advice of several findings of a rule as one: each of its lines once; one that only some
    have before the next that all share.
    """
    lines = list(dict.fromkeys(several[0].splitlines())) if several else []
    for advice in several[1:]:
        mine = advice.splitlines()
        for number, line in enumerate(mine):
            if line not in lines:
                after = next(
                    (lines.index(later) for later in mine[number + 1 :] if later in lines),
                    len(lines),
                )
                lines.insert(after, line)
    return "\n".join(lines)


def _runs(program: Program, what: str) -> bool:
    """Whether the program is one of these."""
    of = {
        ONNX_RUNTIME: program.kind == ONNX_RUNTIME and not program.rtx,
        RTX_ONNX_RUNTIME: program.kind == ONNX_RUNTIME and program.rtx,
        PYTORCH: program.pytorch,
        TENSORRT: program.engine,
        TRTEXEC: program.trtexec and program.host in (None, HOST_TRTEXEC),
        BUILDER: program.trtexec,
        API: program.own_calls,
        API_PYTHON: program.own_calls and program.host == PYTHON,
        API_CPP: program.own_calls and program.host != PYTHON,
        RTX: program.rtx and program.kind != ONNX_RUNTIME,
        ONNX: (program.calls_tensorrt and not program.collectives) or program.kind == ONNX_RUNTIME,
        NETWORK: program.engine or program.pytorch,
        CUDA: program.kind == CUDA,
    }
    return of.get(what, program.kind == what)


def _versions(condition: str) -> tuple[str | None, str | None]:
    """The first version that it is given for, and the first one that it is no longer given for, as
    texts.
    """
    found = _VERSION.fullmatch(condition)
    if found is None:
        raise ValueError(condition)
    return found["since"], found["before"]
