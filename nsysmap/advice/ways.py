"""How a program of a kind, with its version of TensorRT, makes a change: the ways that there are,
and which of them is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nsysmap.advice.program import (
    CUDA,
    ONNX_RUNTIME,
    OTHER,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
    Program,
    Version,
)
from nsysmap.core.records import dataclass
from nsysmap.core.trace_schema import OTHER_HOST, PYTHON

UNKNOWN: Version = (10, 14)
"""The version assumed if none was detected: version 11 accepts what it accepts, except the flags
for precision.
"""

_NEWEST: Version = (11,)  # what TensorRT for RTX is like
_OLD: Version = (8, 6)  # the same where names of Myelin's kernels are of a version before 10
_RECENT: Version = (10,)  # what every version before it has too needs no mention
ONNX, ANY = "onnx", "any"
"""Ways of engines built from an ONNX model, and of all programs."""
API_PYTHON, API_CPP, RTX, RTX_PYTHON, RTX_CPP = (
    "tensorrt-python",
    "tensorrt-cpp",
    "rtx",
    "rtx-python",
    "rtx-cpp",
)
"""Ways of programs that call TensorRT's API themselves, and of TensorRT for RTX: its tool, and the
same two.
"""
RTX_ONNX_RUNTIME = "rtx-onnxruntime"
"""Ways of ONNX Runtime's provider of TensorRT for RTX, whose name and options are its own."""
JULIA = "julia"
"""Ways of programs with kernels of CUDA.jl."""
LLM_CPP = "tensorrt-llm-cpp"
"""Ways of servers in other languages than Python that run TensorRT-LLM's executor."""
_WAYS: Mapping[str, tuple[str, ...]] = {
    TENSORRT: (TENSORRT, ONNX, ANY),
    ONNX_RUNTIME: (ONNX_RUNTIME, ONNX, ANY),
    TENSORRT_LLM: (TENSORRT_LLM, ANY),
    TORCH_TENSORRT: (TORCH_TENSORRT, PYTORCH, ANY),
    TORCH_ENGINES: (TORCH_ENGINES, TENSORRT, ONNX, ANY),
    PYTORCH: (PYTORCH, ANY),
    CUDA: (CUDA, ANY),
    OTHER: (OTHER, ANY),
}
"""The groups of advice that fit a program of each kind; the first that has an entry is shown.
`onnx` is advice for engines built from an ONNX model.
"""
_SENTENCES = 2  # about findings of different evidence
# kinds whose ways follow TensorRT's version
_VERSIONED = frozenset({TENSORRT, ONNX_RUNTIME, TORCH_ENGINES})


def _ways(kind: str, program: Program) -> tuple[str, ...]:
    """The groups of advice that fit this program, the most specific first: calls of TensorRT's API
    before options of its tools.
    """
    if kind == TENSORRT_LLM and program.host == OTHER_HOST:
        return (LLM_CPP, *_WAYS[kind])
    if kind == OTHER and program.julia:
        return (JULIA, *_WAYS[kind])
    if kind == ONNX_RUNTIME and program.rtx:
        return (RTX_ONNX_RUNTIME, *_WAYS[kind])
    if kind not in (TENSORRT, TORCH_ENGINES):
        return _WAYS[kind]
    api: tuple[str, ...] = ()
    if program.host == PYTHON:
        api = (RTX_PYTHON, API_PYTHON) if program.rtx else (API_PYTHON,)
    elif program.host == OTHER_HOST:
        api = (RTX_CPP, API_CPP) if program.rtx else (API_CPP,)
    elif program.rtx:
        api = (RTX,)
    first, *rest = _WAYS[kind]
    return (first, *api, *rest) if kind == TORCH_ENGINES else (*api, first, *rest)


@dataclass(frozen=True)
class Way:
    """A line to paste from some version of TensorRT on, or a sentence that says what to change."""

    text: str
    since: Version = ()
    paste: bool = True
    # the release of what makes the change, if not TensorRT's, that goes with that version
    release: str = ""
    # of a text that takes several lines of a terminal, what matters most; empty if all of it does
    brief: str = ""

    def fits(self, program: Program) -> bool:
        """Whether the program can go this way where trtexec makes the change.

        It runs neither engines that exchange data with other GPUs nor those of TensorRT for RTX,
        and who runs engines by a program of their own has no line of trtexec's to change.
        """
        if not self.text.startswith("trtexec"):
            return True
        runs = "--loadEngine" in self.text and program.calls_tensorrt
        return not (
            program.collectives or program.rtx or (runs and program.host in (PYTHON, OTHER_HOST))
        )


@dataclass(frozen=True)
class AdvisedChange:
    """Something to do: what, and how in each kind of program; the ways of one kind begin with that
    of the newest version.
    """

    title: str
    ways: Mapping[str, tuple[Way, ...]]
    # it changes the program around the engine: where that is PyTorch, only PyTorch's way applies
    around: bool = False
    # the sentence for engines of an unknown version, where no way fits all
    unsure: str | None = None

    def way(self, kind: str, program: Program) -> Way | None:
        """How a program of this kind, with its TensorRT, makes the change; None if there
        is no way.
        """
        ways = (way for one in _ways(kind, program) for way in self.ways.get(one, ()))
        assumed = program.tensorrt or (
            _OLD if program.before is not None else _NEWEST if program.rtx else UNKNOWN
        )
        found = next((way for way in ways if assumed >= way.since and way.fits(program)), None)
        if found is None or program.at_least(found.since or (0,)):
            return found
        if self.unsure is not None and kind in _VERSIONED and program.before is None:
            return Way(self.unsure, paste=False)
        old = program.before is not None
        if not found.paste or found.since < (_OLD if old else _RECENT):
            return found
        since = ".".join(map(str, found.since))
        return replace(
            found,
            text=f"{found.text}  # {found.release or f'from TensorRT {since} on'}",
            brief=found.brief or found.text,
        )


@dataclass(frozen=True)
class ByEvidence:
    """What to do about the findings of a rule if that depends on a column of their evidence."""

    column: str
    changes: Mapping[str, AdvisedChange]
    otherwise: AdvisedChange  # what to do about others; all have its title
    most: int = _SENTENCES  # sentences that are told

    @property
    def title(self) -> str:
        """What to do, in words."""
        return self.otherwise.title


@dataclass(frozen=True)
class How:
    """How to make a change: one or two lines to paste, or a sentence."""

    paste: str | None
    paste_pytorch: str | None = None
    change: str | None = None
    # what matters most of the first line, or of the sentence, where that is long
    paste_brief: str | None = None
    change_brief: str | None = None


def how(
    action: AdvisedChange | ByEvidence,
    program: Program,
    evidence: Sequence[Mapping[str, object]] = (),
) -> How:
    """How this program makes a change; with PyTorch's line beside TensorRT's where either may be
    what runs the engine.

    ``evidence`` is that of the findings that ask for it, the costliest first: where it decides, the
    line is that of the first one, or the sentence has what they ask for.
    """
    if isinstance(action, ByEvidence):
        asked = dict.fromkeys(str(one.get(action.column)) for one in evidence)
        made = [how(action.changes.get(name, action.otherwise), program) for name in asked] or [
            how(action.otherwise, program)
        ]
        if made[0].paste:
            return made[0]
        sentences = {one.change: one.change_brief or one.change for one in made if one.change}
        told = list(sentences.items())[: action.most]
        whole, brief = ("; ".join(one[at] for one in told) for at in range(2))
        return How(None, change=whole or None, change_brief=brief if brief != whole else None)
    kind = (
        PYTORCH
        if action.around and program.kind == TORCH_ENGINES and PYTORCH in action.ways
        else program.kind
    )
    way = action.way(kind, program)
    if way is None or not way.paste:
        return How(None) if way is None else How(None, None, way.text, None, way.brief or None)
    beside = (
        action.way(TENSORRT, program)
        if kind == TORCH_ENGINES and TORCH_ENGINES in action.ways
        else None
    )
    if beside is not None and beside.paste and beside.text != way.text:
        return How(beside.text, way.text, paste_brief=beside.brief or None)
    return How(way.text, paste_brief=way.brief or None)
