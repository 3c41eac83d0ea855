"""The kind of program that ran, as far as its trace and engine files show it: advice and lines to
paste depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nsysmap.core.groups import distinct
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Table
from nsysmap.core.trace_schema import PYTHON, TENSORRT_RTX, TRTEXEC

Version = tuple[int, ...]

TENSORRT = "tensorrt"
"""A program that runs engines by TensorRT's API, and whose engines trtexec can run: trtexec itself,
or one's own.
"""
TENSORRT_LLM, ONNX_RUNTIME, TORCH_TENSORRT = "tensorrt-llm", "onnxruntime", "torch-tensorrt"
"""Programs that build and run their engines themselves."""
TORCH_ENGINES = "pytorch-with-engines"
"""PyTorch and engines in one process, not recognised as Torch-TensorRT: engines may run by
TensorRT's API.
"""
PYTORCH, CUDA, OTHER = "pytorch", "cuda", "cuda-by-compiler"
"""Programs without engines; the last is not known to be CUDA C++: its kernels were made by a
compiler of another language (Python's, Julia's, OpenACC's), Python launches them, or their names
tell of none.
"""
KINDS = (TENSORRT, TENSORRT_LLM, ONNX_RUNTIME, TORCH_TENSORRT, TORCH_ENGINES, PYTORCH, CUDA, OTHER)

_LLM_KERNEL, _LLM_LAYER = "tensorrt_llm::", re.compile(r"PLUGIN_V[23]_(GPT|Bert)Attention_")
# the latter begins the names of the engines that it caches
_ORT_KERNEL, _ORT_ENGINE = (
    "onnxruntime::",
    ("TensorrtExecutionProvider_", "NvTensorRTRTXExecutionProvider_"),
)
# Torch-TensorRT names layers after PyTorch's operators
_TORCH_LAYER = re.compile(r"\[(aten_ops|acc_ops)\.|\[aten::")
_TENSORRT_FAMILIES = frozenset(
    {"myelin", "trt", "native-pointwise", "reformat", "tensorrt", "plugin"}
)
"""Families of kernels that only TensorRT runs."""
_MYELIN_9, _MYELIN_10 = (
    re.compile(r"__myl_bb\d+_\d+_"),
    re.compile(r"_myl\d+_\d+$|^__myl_\w+_0x[0-9a-f]{32}"),
)
"""Names that Myelin gave to kernels before TensorRT 10, and to layers and kernels from then on
(docs/names.md).
"""
_HASHED, _GENERATED, _STUB = (
    re.compile(r"^__myl_\w+_0x[0-9a-f]{32}"),
    "cudnn_generated_",
    "__myelin_CASK_STUB",
)
_COMPILED = frozenset({"offload", "xla", "triton"})
"""Families of kernels that nobody launches with <<<…>>>."""
_COMPILED_BEGINS = (
    "julia_",
    "ptxcall_",
    "cupy_",
    "cupyx_",
    "nvkernel_",
)  # the last of nvfortran and nvc++
# CUDA.jl and KernelAbstractions; Numba; OpenMP of Clang and GCC
_COMPILED_WORDS = (
    "CuKernelContext", "CuDeviceArray", "CompilerMetadata",
    "cudapy", "__main__",
    "__omp_offloading_",
)  # fmt: skip
_JULIA = ("julia_", "ptxcall_", "CuKernelContext", "CuDeviceArray", "CompilerMetadata")
_COLLECTIVE = ("ncclDevKernel", "ncclKernel")  # the latter before NCCL 2.19
_TRT_NAME = re.compile(r"(^|_)trt(_|$)")  # in names of kernels of any family


@dataclass(frozen=True)
class Program:
    """The program that ran."""

    kind: str = TENSORRT
    tensorrt: Version | None = None  # None if unknown, or if engine files tell of several
    # where it is unknown: the first version that it can be, as names of Myelin's layers tell
    since: Version | None = None
    before: Version | None = None  # and the first later than it
    assumed: bool = False  # nothing shows what ran
    # its TensorRT is TensorRT for RTX, whose versions (1.x), tool and flags are its own
    rtx: bool = False
    # what called it, as processes are named: trtexec, tensorrt_rtx, python or other; None if that
    # is unknown
    host: str | None = None
    collectives: bool = False  # its inferences exchange data with other GPUs, by NCCL
    julia: bool = False  # kernels of Julia's compiler ran

    @property
    def command(self) -> str:
        """What stands for the program in a line to paste: what starts it, as far as that is known,
        and never its own name.
        """
        if self.julia:
            return "julia PROGRAM.jl"
        return "python PROGRAM.py" if self.host == PYTHON else "./PROGRAM"

    def at_least(self, version: Version) -> bool | None:
        """Whether its TensorRT is of this version or newer; None if unknown.

        TensorRT for RTX has what TensorRT 10 has, and as in TensorRT 11 the types of tensors are
        those of the model.
        """
        if self.rtx:
            return True
        if self.tensorrt is not None:
            return self.tensorrt >= version
        if self.since is not None and self.since >= version:
            return True
        return False if self.before is not None and self.before <= version else None

    @property
    def bound(self) -> str | None:
        """What is known about the program's TensorRT if its version is unknown; None if
        nothing is.
        """
        if self.rtx:
            return "for RTX"
        if self.tensorrt is not None:
            return None
        if self.before is not None:
            return f"before {'.'.join(map(str, self.before))}"
        return None if self.oldest is None else f"{self.oldest} or later"

    @property
    def oldest(self) -> str | None:
        """The oldest version of TensorRT that it may be, where no bound says which is too new."""
        known = self.since is not None and self.before is None and not self.rtx
        return ".".join(map(str, self.since or ())) if known else None

    @property
    def pytorch(self) -> bool:
        """Whether PyTorch runs in it."""
        return self.kind in (TORCH_TENSORRT, TORCH_ENGINES, PYTORCH)

    @property
    def engine(self) -> bool:
        """Whether TensorRT runs in it."""
        return self.kind not in (PYTORCH, CUDA, OTHER)

    @property
    def shows_engine(self) -> bool:
        """Whether something shows that TensorRT runs in it."""
        return self.engine and not self.assumed

    @property
    def calls_tensorrt(self) -> bool:
        """Whether its engines are run by TensorRT's API, and by no framework that has options of
        its own for that.
        """
        return self.kind in (TENSORRT, TORCH_ENGINES)

    @property
    def trtexec(self) -> bool:
        """Whether trtexec can run its engines: one at a time, on one GPU, of TensorRT itself."""
        return self.calls_tensorrt and not self.collectives and not self.rtx

    @property
    def own_calls(self) -> bool:
        """Whether TensorRT's API is, or may be, called by a program of one's own rather than by
        NVIDIA's tool.
        """
        return self.calls_tensorrt and self.host not in (TRTEXEC, TENSORRT_RTX)


def is_collective(kernel: str) -> bool:
    """Whether a kernel of this name is NCCL's, by which GPUs exchange data."""
    return kernel.startswith(_COLLECTIVE)


def is_tensorrt(family: str, kernel: str) -> bool:
    """Whether only TensorRT has a kernel of this name, of this family (see names.decode)."""
    return family in _TENSORRT_FAMILIES or (
        "trt" in kernel and _TRT_NAME.search(kernel) is not None
    )


def program_of(tables: Mapping[str, Table]) -> Program:
    """The program of an analysis, or of an engine file alone, from its tables by name.

    Without kernels and without any sign of TensorRT it is taken to be one of TensorRT: nothing says
    otherwise.
    """
    found, host = _alone(tables), next(iter(tables["capture"].text("host").list()), None)
    if host is None and found.pytorch:
        host = PYTHON
    if host == PYTHON and found.kind == CUDA:  # kernels of its own in CUDA C++, launched by Python
        found = replace(found, kind=OTHER)
    rtx = found.engine and not found.assumed and _for_rtx(tables, host)
    if rtx:
        found = replace(found, tensorrt=None, since=None, before=None)
    elif found.shows_engine and found.tensorrt is None:
        found = _of_environment(found, tables)
    julia = found.kind == OTHER and any(
        one in name for name in _texts(tables, "kernels", "name") for one in _JULIA
    )
    return replace(found, collectives=_collectives(tables), host=host, rtx=rtx, julia=julia)


def _of_environment(program: Program, tables: Mapping[str, Table]) -> Program:
    """The program with the version that its environment names, where nothing contradicts it."""
    version = version_of(next(iter(tables["capture"].text("environment_tensorrt").list()), None))
    fits = (
        version is not None
        and (program.since or ()) <= version
        and (program.before is None or version < program.before)
    )
    return replace(program, tensorrt=version, since=None, before=None) if fits else program


def _for_rtx(tables: Mapping[str, Table], host: str | None) -> bool:
    """Whether its engines are of TensorRT for RTX.

    That chooses products and convolutions when an engine is loaded, so their tactic in the engine
    file is a stub; TensorRT's names a kernel there.  They run as kernels that cuDNN generates,
    which no TensorRT with such names of Myelin's kernels has.
    """
    if host == TENSORRT_RTX or _STUB in _texts(tables, "layers", "tactic"):
        return True
    kernels = _texts(tables, "kernels", "name")
    pytorch = bool(tables["capture"].bools("has_pytorch").any())  # its products may be cuDNN's
    return (
        not pytorch
        and any(_HASHED.search(name) for name in kernels)
        and any(name.startswith(_GENERATED) for name in kernels)
    )


def _alone(tables: Mapping[str, Table]) -> Program:
    """The program without the GPUs that it exchanges data with."""
    capture, kernels, layers = (
        tables["capture"],
        _texts(tables, "kernels", "name"),
        _texts(tables, "layers", "name"),
    )
    told = [
        *_texts(tables, "engines_with_tensors", "tensorrt_version"),
        *capture.text("tensorrt_version").list(),
    ]
    versions = {version_of(text) for text in told if text} - {None}
    version = next(iter(versions)) if len(versions) == 1 else None
    pytorch = bool(capture.bools("has_pytorch").any())
    ranges = capture.bools("has_tensorrt_ranges").any() or capture.bools("has_layer_ranges").any()
    of_files = "layers" in tables and bool(
        (tables["layers"].ints("engine")[_of_engines_that_ran(tables, "layers")] != MISSING).any()
    )
    signs = (
        version is not None or versions or ranges or of_files or _tensorrt_kernels(tables, kernels)
    )
    if kernels and not signs:
        return Program(PYTORCH if pytorch else CUDA if _cpp(tables, kernels) else OTHER)
    files = _texts(tables, "engines", "source")
    if any(_LLM_KERNEL in name for name in kernels) or any(
        _LLM_LAYER.search(layer) for layer in layers
    ):
        kind = TENSORRT_LLM
    elif any(_ORT_KERNEL in name for name in kernels) or any(
        file.startswith(_ORT_ENGINE) for file in files
    ):
        kind = ONNX_RUNTIME
    elif any(_TORCH_LAYER.search(layer) for layer in layers):
        kind = TORCH_TENSORRT
    else:
        kind = TORCH_ENGINES if pytorch else TENSORRT
    if version is not None or len(versions) > 1:
        return Program(kind, version)
    new = any(_MYELIN_10.search(name) for name in (*kernels, *layers))
    old = any(_MYELIN_9.search(name) for name in (*kernels, *layers))
    since, before = (10,) if new and not old else None, (10,) if old and not new else None
    return Program(kind, since=since, before=before, assumed=not signs)


def version_of(text: str | None) -> Version | None:
    """The numbers of a version such as 10.14.1; None if it has none."""
    found = re.match(r"\d+(?:\.\d+)*", text or "")
    return None if found is None else tuple(int(number) for number in found.group().split("."))


def _of_engines_that_ran(tables: Mapping[str, Table], table: str) -> IntArray:
    """The rows of a table without those of engine files that did not run."""
    rows = tables[table]
    if "engine" not in rows.columns or "engine_fits" not in tables:
        return np.arange(len(rows))
    gone = [
        row.integer("engine")
        for row in tables["engine_fits"]
        if row.text("verdict") == "did-not-run"
    ]
    return np.flatnonzero(~np.isin(rows.ints("engine"), gone))


def _texts(tables: Mapping[str, Table], table: str, column: str) -> list[str]:
    """The distinct texts of a column, without those of engine files that did not run; none if there
    is no such table.
    """
    if table not in tables or column not in tables[table].columns:
        return []
    told = tables[table].text(column)
    codes = told.codes[_of_engines_that_ran(tables, table)].astype(np.int64)
    return [told.values[code] for code in distinct(codes).tolist() if code >= 0]


def _tensorrt_kernels(tables: Mapping[str, Table], kernels: Iterable[str]) -> bool:
    """Whether kernels ran that only TensorRT has; needed if its ranges were not traced."""
    return any(is_tensorrt(family, "") for family in _texts(tables, "names", "family")) or any(
        is_tensorrt("", name) for name in kernels
    )


def _collectives(tables: Mapping[str, Table]) -> bool:
    """Whether NCCL's kernels ran, inside inferences where these are known."""
    kernels = tables.get("kernels")
    if kernels is None or not any(map(is_collective, kernels.text("name").values)):
        return False
    inside = (
        kernels.take(kernels.ints("inference") != MISSING)
        if "inference" in kernels.columns
        else kernels
    )
    return any(map(is_collective, _texts({"kernels": inside}, "kernels", "name")))


def _cpp(tables: Mapping[str, Table], kernels: Sequence[str]) -> bool:
    """Whether kernels ran whose names have parameters, as C++ mangles them, and none that a
    compiler of another language made: names alone are those of C, Fortran, OpenCL and others too.
    """
    mangled = any("(" in name or name.startswith("_Z") for name in kernels)
    return mangled and not _compiled(tables, kernels)


def _compiled(tables: Mapping[str, Table], kernels: Iterable[str]) -> bool:
    """Whether kernels ran that a compiler of another language than CUDA C++ made."""
    return not _COMPILED.isdisjoint(_texts(tables, "names", "family")) or any(
        name.startswith(_COMPILED_BEGINS) or any(word in name for word in _COMPILED_WORDS)
        for name in kernels
    )
