"""Findings that a flag of TensorRT answers, where no edit of the model is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from nsysmap.core.records import dataclass
from nsysmap.rules.finding import Finding

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class Flag:
    """A flag of trtexec, and what it is for."""

    flag: str
    why: str


_OF_RULES: Mapping[str, tuple[Flag, ...]] = {
    "reformat-at-input": (
        Flag("--inputIOFormats=TYPE:FORMAT", "the inputs come in the layout that the engine reads"),
    ),
    "reformat-at-output": (
        Flag("--outputIOFormats=TYPE:FORMAT", "the outputs leave in the layout that it writes"),
    ),
    "parallel-small-kernels": (
        Flag("--maxAuxStreams=4", "branches that do not fill the GPU run beside each other"),
    ),
    "fp32-without-tf32": (Flag("remove --noTF32", "products in FP32 use tensor cores"),),
    "names-only-engine": (
        Flag("--profilingVerbosity=detailed", "the engine file tells what each layer is"),
    ),
}


def flags(findings: Iterable[Finding], rules: Sequence[str]) -> tuple[Flag, ...]:
    """The flags for these findings; of the rules that are asked about, if any are."""
    found = (
        flag
        for finding in findings
        if not rules or finding.rule in rules
        for flag in _OF_RULES.get(finding.rule, ())
    )
    return tuple(dict.fromkeys(found))


def pinned(model: ir.Model) -> tuple[Flag, ...]:
    """The flags that fix the dimensions that a model leaves open."""
    held = [
        f"{one.name}:{'x'.join(_size(size) for size in one.shape)}"
        for one in model.graph.inputs
        if one.shape is not None and any(not isinstance(size, int) for size in one.shape)
    ]
    if not held:
        return ()
    told = ",".join(held)
    return (
        Flag(
            f"--minShapes={told} --optShapes={told} --maxShapes={told}",
            "with the sizes that run in place of the names, if always the same ones do: the engine"
            " is built for these alone",
        ),
    )


def _size(size: int | ir.SymbolicDim) -> str:
    return str(size) if isinstance(size, int) else str(size.value or "SIZE")
