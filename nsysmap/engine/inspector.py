"""Asks TensorRT itself what a serialized engine (.engine, .plan) holds, in a separate process with a time limit.

Deserializing needs the TensorRT that built the engine and a GPU like the one it was built for, and may crash: hence the process.
Host code embedded in an engine is never allowed to run (`engine_host_code_allowed` stays off).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsysmap.base.errors import NsysmapError

TIME_LIMIT_S = 300.0
_PACKAGES = ("tensorrt", "tensorrt_rtx")
_EXPORT = (
    "run trtexec --loadEngine=FILE --profilingVerbosity=detailed --exportLayerInfo=FILE.json where the engine runs, and give that file"
)
_OTHER_VERSION = "was built by another version of TensorRT"
_REASONS = (
    (
        r"expecting library version (\S+) got (\S+?),?\s",
        "was built by TensorRT {0}, but {1} is installed",
        "install tensorrt=={0}, or " + _EXPORT,
    ),
    (r"Current Version: (\d+), Serialized Engine Version: (\d+)", _OTHER_VERSION + " (its plan version is {1}, not {0})", _EXPORT),
    (r"not compatible with this version of TensorRT|magicTag|[Vv]ersion tag does not match", _OTHER_VERSION, _EXPORT),
    (
        r"expecting compute (\S+) got compute (\S+?),?\s",
        "was built for a GPU of compute capability {0}, but this machine's is {1}",
        _EXPORT,
    ),
    (r"incompatible device|Target GPU SM \d+|not supported by this TensorRT", "was built for another GPU than this machine's", _EXPORT),
    (
        r"CUDA initialization failure|no CUDA-capable device|CUDA driver version is insufficient|libcuda\.so|cudaErrorNoDevice",
        "cannot be opened: no usable NVIDIA GPU on this machine",
        _EXPORT,
    ),
    (r"(?:[Cc]ould not find plugin:? ?|Cannot find creator for )(\S+)", "needs a plugin that is not loaded ({0})", _EXPORT),
    (r"[Oo]ut of memory|OutOfMemory", "does not fit into this machine's memory", _EXPORT),
)
"""What TensorRT 8 to 11 writes to its log when it cannot open an engine: pattern, what is wrong, remedy."""


@dataclass(frozen=True)
class Inspection:
    """What TensorRT said about an engine."""

    text: str  # JSON of the engine inspector
    version: str | None  # of the TensorRT that read it


def inspect_plan(path: Path, *, seconds: float = TIME_LIMIT_S) -> Inspection:
    """TensorRT's own layer information of a serialized engine.

    Raises NsysmapError if neither tensorrt nor tensorrt_rtx can be imported, the version or the GPU is another one, there is no GPU,
    TensorRT crashes, or it takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="nsysmap-") as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-P", "-m", "nsysmap.engine.inspector", str(path.resolve()), str(answer)]
        paths = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[2])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(item for item in paths if item)}
        try:
            done = subprocess.run(command, capture_output=True, env=environment, timeout=seconds, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise NsysmapError(str(path), f"TensorRT took more than {seconds:g} s to open it", _EXPORT) from None
        log = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
        if not answer.exists():
            raise _failure(path, log, done.returncode)
        held: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if held.get("missing"):
        detail = held.get("detail")
        if detail:
            raise NsysmapError(
                str(path), f"the installed {held['missing']} package does not load ({_line(detail)})", "repair it, or " + _EXPORT
            )
        raise NsysmapError(
            str(path), "is a serialized engine, and the tensorrt package is not installed", "pip install nsysmap[tensorrt], or " + _EXPORT
        )
    return Inspection(str(held["engine"]), held.get("version"))


def _failure(path: Path, log: str, status: int) -> NsysmapError:
    for pattern, what, remedy in _REASONS:
        found = re.search(pattern, log)
        if found:
            return NsysmapError(str(path), what.format(*found.groups()), remedy.format(*found.groups()))
    if status < 0:
        return NsysmapError(str(path), f"TensorRT crashed on it (signal {-status})", _EXPORT)
    said = [line for line in log.splitlines() if line.strip()]
    return NsysmapError(str(path), f"TensorRT could not open it ({_line(said[-1]) if said else 'it gave no reason'})", _EXPORT)


def _line(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text).strip()
    return plain if len(plain) <= 160 else plain[:159] + "…"


def _plan_bytes(path: Path) -> bytes:
    """The plan; ultralytics puts a length and a JSON header before it."""
    data = path.read_bytes()
    length = int.from_bytes(data[:4], "little")
    if 2 <= length < min(len(data) - 4, 1 << 20) and data[4:5] == b"{" and data[3 + length : 4 + length] == b"}":
        return data[4 + length :]
    return data


def _import_tensorrt() -> tuple[Any, dict[str, str]]:
    """The first TensorRT package that imports, or what went wrong."""
    import importlib
    import importlib.util

    problem = {"missing": "tensorrt"}
    for package in _PACKAGES:
        try:
            return importlib.import_module(package), {}
        except ImportError as error:
            if importlib.util.find_spec(package) is not None:
                problem = {"missing": package, "detail": str(error)}
    return None, problem


def _main(path: Path, answer: Path) -> int:
    """In the process of its own: write the inspector's JSON to `answer`; what goes wrong stays in TensorRT's log on standard error."""
    tensorrt, problem = _import_tensorrt()
    if tensorrt is None:
        answer.write_text(json.dumps(problem), encoding="utf-8")
        return 0
    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    plugins = getattr(tensorrt, "init_libnvinfer_plugins", None)
    if plugins is not None:
        plugins(logger, "")
    engine = tensorrt.Runtime(logger).deserialize_cuda_engine(_plan_bytes(path))
    if engine is None:
        return 1
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(tensorrt.LayerInformationFormat.JSON)
    written = answer.with_suffix(".part")
    written.write_text(json.dumps({"engine": text, "version": getattr(tensorrt, "__version__", None)}), encoding="utf-8")
    written.rename(answer)
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(Path(sys.argv[1]), Path(sys.argv[2])))
