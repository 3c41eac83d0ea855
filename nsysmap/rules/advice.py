"""A rule's advice: parts for everyone, and parts only for some programs or some versions of TensorRT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nsysmap.engine.program import ONNX_RUNTIME, TENSORRT, TENSORRT_LLM, TORCH_TENSORRT, Program, version_of

PYTORCH, CUDA, TRTEXEC = "pytorch", "cuda", "trtexec"
_VERSION = re.compile(r"(?:tensorrt|trtexec)(?: >= (?P<since>\d+(?:\.\d+)*))?(?: < (?P<before>\d+(?:\.\d+)*))?")

_HEADINGS = {
    PYTORCH: "In PyTorch: ",
    TORCH_TENSORRT: "In Torch-TensorRT: ",
    ONNX_RUNTIME: "In ONNX Runtime: ",
    TENSORRT_LLM: "In TensorRT-LLM: ",
    TENSORRT: "With TensorRT: ",
    TRTEXEC: "With TensorRT's API or trtexec: ",
    CUDA: "Without TensorRT and PyTorch: ",
}


@dataclass(frozen=True)
class Part:
    """One paragraph of advice, and to whom it is given: None is everybody.

    "pytorch", "torch-tensorrt", "onnxruntime", "tensorrt-llm", "tensorrt" (all that run engines), "trtexec" (those whose engines trtexec
    can run) and "cuda" (neither engines nor PyTorch) are programs; "tensorrt < 11" and "trtexec >= 8.4 < 11" are some versions.
    """

    text: str
    to: str | None = None

    def heading(self) -> str:
        """To whom it is given, in words; empty for everybody."""
        if self.to is None:
            return ""
        if self.to in _HEADINGS:
            return _HEADINGS[self.to]
        since, before = _versions(self.to)
        if since is None:
            return f"Before TensorRT {before}: "
        return f"From TensorRT {since} on: " if before is None else f"From TensorRT {since} to before {before}: "


def is_condition(text: str) -> bool:
    """Whether the text says to whom a part of the advice is given."""
    return text in _HEADINGS or _VERSION.fullmatch(text) is not None


def advice_to(program: Program, parts: Sequence[Part]) -> str:
    """What fits this program, in the order of the rule's file; where its TensorRT is not known, both ways, each with its version."""
    said = []
    for part in parts:
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


def _runs(program: Program, what: str) -> bool:
    """Whether the program is one of these."""
    of = {PYTORCH: program.pytorch, TENSORRT: program.engine, TRTEXEC: program.trtexec, CUDA: not program.engine and not program.pytorch}
    return of.get(what, program.kind == what)


def _versions(condition: str) -> tuple[str | None, str | None]:
    """From which version on, and before which, as texts."""
    found = _VERSION.fullmatch(condition)
    if found is None:
        raise ValueError(condition)
    return found["since"], found["before"]
