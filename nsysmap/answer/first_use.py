"""Kernels that were compiled or loaded while inferences ran: what it took, and what avoids it in
the program that ran.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmap.advice.program import CUDA, ONNX_RUNTIME, OTHER, Program
from nsysmap.answer.model import FirstUse
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.text.units import counted, rounded
from nsysmap.trace.inferences.compilation import TRIED_OUT, first_use_ns

_NAMED = 3  # inferences whose numbers are told
_PTX_NS = 100_000_000
"""A load of a module takes 0.06 to 20 ms for code that exists (twelve programs); 480 and 510 ms
where the driver compiled PTX.
"""


@dataclass(frozen=True)
class _Remedy:
    """How to avoid it: a full sentence, and a short form for one line."""

    text: str
    brief: str


_REMEDIES = (
    (
        "xla",
        _Remedy(
            "set JAX_COMPILATION_CACHE_DIR, and run every shape once before measuring",
            "set JAX_COMPILATION_CACHE_DIR, and run every shape once first",
        ),
    ),
    (
        "triton",
        _Remedy(
            "keep TRITON_CACHE_DIR (of torch.compile: TORCHINDUCTOR_CACHE_DIR) between runs, and"
            " run every shape once before measuring",
            "keep TRITON_CACHE_DIR, and run every shape once first",
        ),
    ),
)
"""Remedies by family of kernels that a compiler made while the program ran."""
_RTX = _Remedy(
    "keep a runtime cache between runs (IRuntimeConfig::setRuntimeCache, TensorRT for RTX), and run"
    " every shape once before serving",
    "keep a runtime cache (setRuntimeCache), run every shape once first",
)
_RTX_PROVIDER = _Remedy(
    "keep a runtime cache between runs (option nv_runtime_cache_path of"
    " NvTensorRTRTXExecutionProvider), and run every shape once before serving",
    "set nv_runtime_cache_path, and run every shape once first",
)
_TORCH = _Remedy(
    "keep TORCHINDUCTOR_CACHE_DIR between runs, and run every shape once before measuring",
    "keep TORCHINDUCTOR_CACHE_DIR, and run every shape once first",
)
_PTX = _Remedy(
    "build for this GPU's architecture (nvcc -gencode) rather than PTX, or keep the driver's cache"
    " (CUDA_CACHE_PATH) between runs",
    "build for this GPU (nvcc -gencode), or keep CUDA_CACHE_PATH",
)
_RUNTIME = _Remedy(
    "keep what it compiles between runs, and run every shape once before measuring",
    "keep what it compiles, and run every shape once first",
)
_LAZY = {
    one: _Remedy(
        f"run every shape once before {one}, or set CUDA_MODULE_LOADING=EAGER",
        "run every shape once first, or set CUDA_MODULE_LOADING=EAGER",
    )
    for one in ("serving", "measuring")
}


def first_use(tables: Mapping[str, Table], program: Program) -> FirstUse | None:
    """The inferences that were excluded because kernels were compiled or loaded in them; None if
    there are none.
    """
    inferences = tables["inferences"]
    evidence = inferences.text("compile_evidence_kind")
    rows = np.flatnonzero(evidence.codes >= 0)
    if not len(rows):
        return None
    took, told = first_use_ns(inferences)[rows], evidence.take(rows).list()
    by_compiler = np.array(
        [
            one in ("compiler", "range") or _from_ptx(one, int(ns))
            for one, ns in zip(told, took, strict=True)
        ]
    )
    compiled = 2 * int(took[by_compiler].sum()) > int(took.sum())
    longest = int(took.argmax())
    remedy = _remedy(
        tables, program, compiled=compiled, ptx=_from_ptx(told[longest], int(took[longest]))
    )
    numbers, tried_out = tuple(inferences.ints("inference")[rows].tolist()), TRIED_OUT.kind in told
    return FirstUse(
        numbers,
        int(took.sum()),
        int(took[longest]),
        compiled,
        tried_out,
        remedy.text,
        remedy.brief,
    )


def _from_ptx(evidence_kind: str | None, ns: int) -> bool:
    return ns >= _PTX_NS and evidence_kind == "load"


def _remedy(tables: Mapping[str, Table], program: Program, *, compiled: bool, ptx: bool) -> _Remedy:
    serving = "serving" if program.engine else "measuring"
    if program.rtx:  # it compiles in the background too, and then loads what it made
        return _RTX_PROVIDER if program.kind == ONNX_RUNTIME else _RTX
    if not compiled:
        return _LAZY[serving]
    if ptx:
        return _PTX
    families = {row.text("family") for row in tables["names"]}
    for family, remedy in _REMEDIES:
        if family in families and not program.engine:
            return remedy
    if program.engine:
        return _RTX
    return _RUNTIME if program.kind in (CUDA, OTHER) else _TORCH


def sentence(found: FirstUse | None, one: str, unit_ns: int) -> str:
    """That, in a sentence; ``one`` is the word for an inference.  Empty if it took less than one
    unit does, in all.
    """
    if found is None or found.compile_ns < unit_ns:
        return ""
    numbers = [str(number) for number in found.inferences]
    many = len(numbers) > _NAMED
    where = (
        counted(len(numbers), one)
        if many
        else f"{one}{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"
    )
    most = f" ({rounded(found.longest_ns, found.compile_ns)} in one)" if len(numbers) > 1 else ""
    what = "compiling kernels" if found.compiled else "loading kernels at their first launch"
    what += " and trying them out" if found.tried_out else ""
    return (
        f"not in these times: {rounded(found.compile_ns)} of {what} in {where}{most};"
        f" {found.remedy}"
    )
