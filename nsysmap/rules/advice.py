"""A rule's advice: parts for everyone, and parts only for users of PyTorch or of some versions of TensorRT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PYTORCH, TENSORRT, CUDA = "pytorch", "tensorrt", "cuda"
_VERSION = re.compile(r"tensorrt (<|>=) (\d+(?:\.\d+)*)")

_HEADINGS = {PYTORCH: "In PyTorch: ", TENSORRT: "With TensorRT: ", CUDA: "Without TensorRT and PyTorch: "}

Version = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """One paragraph of advice, and to whom it is given: None is everybody.

    "pytorch", "tensorrt" and "cuda" (neither of the two) are programs, "tensorrt < 11" and "tensorrt >= 10.14" some of TensorRT's versions.
    """

    text: str
    to: str | None = None

    def heading(self) -> str:
        """To whom it is given, in words; empty for everybody."""
        if self.to is None:
            return ""
        if self.to in _HEADINGS:
            return _HEADINGS[self.to]
        comparison, version = _told(self.to)
        return f"Before TensorRT {version}: " if comparison == "<" else f"From TensorRT {version} on: "


@dataclass(frozen=True)
class Reader:
    """What is known of the program that the advice is for."""

    tensorrt: Version | None = None
    pytorch: bool = False
    engine: bool = True  # TensorRT runs

    def runs(self, what: str) -> bool:
        """Whether the program is one of these: of PyTorch, of TensorRT (any version), or of CUDA alone."""
        if what == PYTORCH:
            return self.pytorch
        return self.engine if what.startswith(TENSORRT) else not self.engine and not self.pytorch


def is_condition(text: str) -> bool:
    """Whether the text says to whom a part of the advice is given."""
    return text in _HEADINGS or _VERSION.fullmatch(text) is not None


def version_of(text: str | None) -> Version | None:
    """The numbers of a version such as 10.14.1; None if it has none."""
    found = re.match(r"\d+(?:\.\d+)*", text or "")
    return None if found is None else tuple(int(number) for number in found.group().split("."))


def advice_to(reader: Reader, parts: Sequence[Part]) -> str:
    """What fits this program, in the order of the rule's file; where its TensorRT is not known, both ways, each with its version."""
    said = []
    for part in parts:
        text = " ".join(part.text.split())
        if part.to is not None and not reader.runs(part.to):
            continue
        if part.to is None or part.to in _HEADINGS:
            said.append(text)
        else:
            comparison, version = _told(part.to)
            if reader.tensorrt is None:
                said.append(part.heading() + text)
            elif (reader.tensorrt < (version_of(version) or ())) == (comparison == "<"):
                said.append(text)
    return "\n".join(said)


def _told(condition: str) -> tuple[str, str]:
    found = _VERSION.fullmatch(condition)
    if found is None:
        raise ValueError(condition)
    return found.group(1), found.group(2)
