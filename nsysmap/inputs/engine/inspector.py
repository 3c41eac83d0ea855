"""Asks TensorRT itself what a serialized engine (.engine, .plan) holds, in a separate process with
a time limit.

Deserializing needs the TensorRT that built the engine and a GPU that it was built for, and may
crash: hence the process. Host code embedded in an engine is never allowed to run
(`engine_host_code_allowed` stays off).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from nsysmap.core.ending import finished, process_noted
from nsysmap.core.errors import NsysmapError
from nsysmap.core.marked_folder import marked_folder
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.plan_header import PlanHeader, plan_header, without_wrapper

TIME_LIMIT_S = 300.0  # for TensorRT to load an engine and to list its layers
_SAID_BYTES = 1 << 20  # of what TensorRT logs


@dataclass(frozen=True)
class _Library:
    """One of the two libraries that read serialized engines."""

    name: str  # in sentences
    modules: tuple[str, ...]  # of Python, the first that imports is used
    package: str  # for pip
    tool: str  # the program that comes with it


_TENSORRT = _Library("TensorRT", ("tensorrt",), "tensorrt", "trtexec")
_RTX = _Library(
    "TensorRT for RTX", ("tensorrt_rtx", "tensorrt_rtx_bindings"), "tensorrt-rtx", "tensorrt_rtx"
)
"""`tensorrt_rtx_bindings` is what `tensorrt_rtx` imports; it is there alone where only the wheels
of the bindings and the library are.
"""


def _export(library: _Library) -> str:
    return (
        f"run {library.tool} --loadEngine=FILE --profilingVerbosity=detailed"
        " --exportLayerInfo=FILE.json where the engine runs, and give that file"
    )


_OTHER_VERSION = "was built by another version of TensorRT"
_EXPORT = "{export}"
_REASONS = (
    (
        r"expecting library version (\S+) got (\S+?),?\s",
        "was built by TensorRT {1}, but {0} is installed",
        "install tensorrt=={1}, or " + _EXPORT,
    ),
    (
        r"Current Version: (\d+), Serialized Engine Version: (\d+)",
        _OTHER_VERSION + " (its plan version is {1}, not {0})",
        _EXPORT,
    ),
    (
        r"not compatible with this version of TensorRT|magicTag|[Vv]ersion tag does not match",
        _OTHER_VERSION,
        _EXPORT,
    ),
    (
        r"expecting compute (\S+) got compute (\S+?),?\s",
        "was built for a GPU of compute capability {1}, but this machine's is {0}",
        _EXPORT,
    ),
    (
        (
            r"The engine (?:does not support the current compute capability|cannot run on this GPU,"
            r" which has compute capability) (\d+\.?\d*)"
        ),
        "was not built for this machine's GPU, of compute capability {0}",
        _EXPORT,
    ),
    (
        r"incompatible device|Target GPU SM \d+|not supported by this TensorRT",
        "was built for another GPU than this machine's",
        _EXPORT,
    ),
    (
        r"CUDA initialization failure|no CUDA-capable device|CUDA driver version is"
        r" insufficient|libcuda\.so|cudaErrorNoDevice"
        r"|Error reading CUDA GPU properties|Error Code 1: Cuda Runtime \(In ScopedCudaStream",
        "cannot be opened: no usable NVIDIA GPU on this machine",
        _EXPORT,
    ),
    (
        r"(?:[Cc]ould not find plugin:? ?|Cannot find creator for )(\S+)",
        "needs a plugin that is not loaded ({0})",
        _EXPORT,
    ),
    (r"[Oo]ut of memory|OutOfMemory", "does not fit into this machine's memory", _EXPORT),
)
"""Messages of TensorRT 8 to 11 and TensorRT for RTX 1.4 to 1.7 when they cannot open an engine:
pattern, cause, remedy.

`expecting A got B`: A is the machine's, B the engine's (so in the reports of users who name their
  GPU or their version beside the message).
"""


@dataclass(frozen=True)
class Inspection:
    """TensorRT's description of an engine."""

    text: str  # JSON of the engine inspector
    version: str | None  # of the TensorRT that read it


@dataclass(frozen=True)
class _Attempt:
    """The outcome of the process that opened a plan."""

    path: Path
    header: PlanHeader
    # what it wrote: `missing`, or `version` and, where all went well, `engine`
    answer: dict[str, Any]
    log: str
    status: int

    @property
    def library(self) -> _Library:
        return _RTX if self.header.for_rtx else _TENSORRT


def inspect_plan(path: Path, *, seconds: float = TIME_LIMIT_S) -> Inspection:
    """TensorRT's own layer information of a serialized engine.

    Raises NsysmapError if the library that wrote it (TensorRT, or TensorRT for RTX) cannot be
    imported, the version or the GPU is another one, there is no GPU, the file is cut short,
    TensorRT crashes, or it takes too long.
    """
    with path.open("rb") as file:
        plan = without_wrapper(file.read())
    header = plan_header(plan)
    if header.length is not None and len(plan) < header.length:
        told = f"is cut short: {len(plan):,} of {header.length:,} bytes are there"
        raise NsysmapError(str(path), told, "copy it again, or build it again")
    attempt = _opened(path, header, seconds=seconds)
    if attempt.answer.get("missing"):
        raise _not_installed(attempt)
    if "engine" not in attempt.answer:
        raise _failure(attempt)
    return Inspection(str(attempt.answer["engine"]), attempt.answer.get("version"))


def _opened(path: Path, header: PlanHeader, *, seconds: float) -> _Attempt:
    with (
        marked_folder(Path(tempfile.gettempdir()) / f"nsysmap-{os.getpid()}") as folder,
        (folder / "printed").open("w+b") as printed,
    ):
        answer = folder / "answer.json"
        command = [
            sys.executable,
            "-P",
            "-m",
            "nsysmap.inputs.engine.inspector",
            str(path.resolve()),
            str(answer),
            *_modules(header),
        ]
        paths = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[3])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(item for item in paths if item)}
        try:
            with process_noted(command, env=environment, stdout=printed, stderr=printed) as process:
                status = finished(process, seconds)
        except subprocess.TimeoutExpired:
            export = _export(_RTX if header.for_rtx else _TENSORRT)
            raise NsysmapError(
                str(path), f"TensorRT took more than {seconds:g} s to open it", export
            ) from None
        held = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}
        printed.seek(0)
        said = printed.read(_SAID_BYTES).decode(errors="replace")
    return _Attempt(path, header, held, said, status)


def _modules(header: PlanHeader) -> tuple[str, ...]:
    """The modules that may read the plan; a plan without a known header is given to both libraries'
    modules, the first that imports.
    """
    if header.for_rtx is None:
        return (*_TENSORRT.modules, *_RTX.modules)
    return _RTX.modules if header.for_rtx else _TENSORRT.modules


def _not_installed(attempt: _Attempt) -> NsysmapError:
    path, library, version = str(attempt.path), attempt.library, attempt.header.version
    export = _export(library)
    if detail := attempt.answer.get("detail"):
        return NsysmapError(
            path,
            f"the installed {attempt.answer['missing']} package does not load ({_line(detail)})",
            f"repair it, or {export}",
        )
    if not attempt.header.for_rtx:
        what = "is a serialized engine, and the tensorrt package is not installed"
        return NsysmapError(path, what, f"pip install tensorrt, or {export}")
    what = (
        f"is an engine of TensorRT for RTX{f' {version}' if version else ''}, and the tensorrt_rtx"
        " package is not installed"
    )
    return NsysmapError(path, what, f"pip install {_pinned(library, version)}, or {export}")


def _pinned(library: _Library, version: str | None) -> str:
    return f"{library.package}=={version}" if version else library.package


def _failure(attempt: _Attempt) -> NsysmapError:
    path, library, built = str(attempt.path), attempt.library, attempt.header.version
    export = _export(library)
    installed = attempt.answer.get("version")
    if built and installed and built != installed:
        what = f"was built by {library.name} {built}, but {installed} is installed"
        return NsysmapError(path, what, f"pip install {_pinned(library, built)}, or {export}")
    for pattern, what, remedy in _REASONS:
        if found := re.search(pattern, attempt.log):
            return NsysmapError(
                path, what.format(*found.groups()), remedy.format(*found.groups(), export=export)
            )
    if attempt.status < 0:
        return NsysmapError(path, f"TensorRT crashed on it (signal {-attempt.status})", export)
    said = [line for line in attempt.log.splitlines() if line.strip()]
    errors = [line for line in said if "[E]" in line or "[F]" in line]
    last = (errors or said)[-1:]
    return NsysmapError(
        path,
        f"TensorRT could not open it ({_line(last[0]) if last else 'it gave no reason'})",
        export,
    )


def _line(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text).strip()
    return plain if len(plain) <= 160 else plain[:159] + "…"


def _import_tensorrt(modules: list[str]) -> tuple[Any, dict[str, str]]:
    """The first of the modules that imports, or what went wrong."""
    import importlib
    import importlib.util

    problem = {"missing": modules[0]}
    for module in modules:
        try:
            return importlib.import_module(module), {}
        except ImportError as error:
            if importlib.util.find_spec(module) is not None:
                problem = {"missing": module, "detail": str(error)}
    return None, problem


def _main(path: Path, answer: Path, modules: list[str]) -> int:
    """Runs in a process of its own: writes the inspector's JSON to `answer`; what goes wrong stays
    in TensorRT's log on standard error.

    The version of the library is written first: it explains a refusal, also one that ends the
    process.
    """
    tensorrt, problem = _import_tensorrt(modules)
    if tensorrt is None:
        answer.write_text(json.dumps(problem), encoding="utf-8")
        return 0
    version = getattr(tensorrt, "__version__", None)
    answer.write_text(json.dumps({"version": version}), encoding="utf-8")
    logger = tensorrt.Logger(tensorrt.Logger.INFO)
    plugins = getattr(tensorrt, "init_libnvinfer_plugins", None)
    if plugins is not None:
        plugins(logger, "")
    runtime = tensorrt.Runtime(logger)
    plan = without_wrapper(path.read_bytes())
    validity = getattr(runtime, "get_engine_validity", None)
    if validity is not None:
        # TensorRT for RTX says there why an engine is for another GPU, and only there
        validity(plan)
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        return 1
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(tensorrt.LayerInformationFormat.JSON)
    written = answer.with_suffix(".part")
    written.write_text(json.dumps({"engine": text, "version": version}), encoding="utf-8")
    written.rename(answer)
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
