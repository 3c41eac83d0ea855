"""Opens an engine file in any form that TensorRT's tools write, and turns engines into the declared tables."""

from __future__ import annotations

import math
import stat
from collections import defaultdict, deque
from dataclasses import replace
from pathlib import Path
from typing import Any

from nsysmap.base.errors import NsysmapError
from nsysmap.base.note import Note
from nsysmap.engine.inspector import inspect_plan
from nsysmap.engine.layer_info import REBUILD, Document, document_of, engine_of, is_profile, parse_json
from nsysmap.engine.log import parse_log
from nsysmap.engine.model import Engine

_PLAN_SUFFIXES = {".engine", ".plan", ".trt", ".rtx"}
_PLAN_MAGIC = (b"ftrt", b"ptrt")
_HEAD_BYTES = 4096
_NAMES_SHOWN = 3
_MEASURE = "measure again with trtexec --exportProfile=FILE"


def read_engine(path: str | Path, *, profile: str | Path | None = None) -> Engine:
    """The engine in a file.

    Read are: `--exportLayerInfo` JSON in any form (trex's graph.json is one), a log with one-line layers, a serialized .engine or .plan.
    `profile` is a `--exportProfile` file of the same engine; its median times fill `Engine.trtexec_ns`.
    Raises NsysmapError where a file is missing, is something else, is cut short or makes no sense.
    """
    file = Path(path)
    head = _head(file)
    _refuse_other_files(file, head, "an engine")
    if _is_binary(head):
        if file.suffix.lower() not in _PLAN_SUFFIXES and not head.startswith(_PLAN_MAGIC):
            raise NsysmapError(str(file), "is a binary file, not an engine that TensorRT wrote", REBUILD)
        inspection = inspect_plan(file)
        document = document_of(parse_json(inspection.text, str(file)), str(file))
        engine = engine_of(replace(document, tensorrt_version=inspection.version), str(file))
    else:
        engine = engine_of(_document(_decoded(file), str(file)), str(file))
    return with_profile(engine, profile) if profile is not None else engine


def with_profile(engine: Engine, path: str | Path) -> Engine:
    """The engine with `trtexec_ns` filled from a `--exportProfile` file, matched by name; names that repeat are matched in order.

    Rows whose name the engine does not have are counted in a note; where none matches, the profile is of another engine: NsysmapError.
    """
    file = Path(path)
    rows = _profile_rows(file)
    times: dict[str, deque[int]] = defaultdict(deque)
    for name, time_ns in rows:
        times[name].append(time_ns)
    filled: list[int | None] = [times[layer.name].popleft() if times.get(layer.name) else None for layer in engine.layers]
    left = [name for name, rest in times.items() for _ in rest]
    if rows and len(left) == len(rows):
        raise NsysmapError(str(file), f"none of its {len(rows)} layers is in {engine.source}", "give the profile of the same engine")
    notes = engine.notes
    if left:
        shown = ", ".join(left[:_NAMES_SHOWN]) + (", …" if len(left) > _NAMES_SHOWN else "")
        notes = (
            *notes,
            Note("warning", f"{len(left)} of {len(rows)} rows of the profile {file.name} match no layer of the engine: {shown}"),
        )
    return replace(engine, trtexec_ns=tuple(filled), notes=notes)


def _document(text: str, source: str) -> Document:
    """The layers in a text: JSON where it is JSON, else a log."""
    stripped = text.strip()
    if not stripped:
        raise NsysmapError(source, "is empty", REBUILD)
    try:
        value = parse_json(stripped, source)
    except NsysmapError as not_json:
        found = parse_log(text)
        if found is not None:
            return found
        if stripped[0] in '{"' or (stripped[0] == "[" and stripped[1:].lstrip()[:1] in '{"]'):
            raise
        raise NsysmapError(source, "is neither TensorRT's layer information nor a log that lists layers", REBUILD) from not_json
    return document_of(value, source)


def _profile_rows(file: Path) -> list[tuple[str, int]]:
    head = _head(file)
    _refuse_other_files(file, head, "a profile")
    remedy = "give the file that trtexec --exportProfile=FILE wrote"
    if _is_binary(head):
        raise NsysmapError(str(file), "is a binary file, not a profile", remedy)
    value = parse_json(_decoded(file).strip(), str(file))
    if isinstance(value, dict) and any(str(key).lower() == "layers" for key in value):
        raise NsysmapError(str(file), "is an engine's layers, not a profile", remedy)
    if not is_profile(value):
        raise NsysmapError(str(file), "is not a trtexec --exportProfile file", remedy)
    runs = next((row["count"] for row in value if isinstance(row, dict) and isinstance(row.get("count"), int)), None)
    return [_profile_row(row, runs, file) for row in value if isinstance(row, dict) and "name" in row]


def _profile_row(row: dict[str, Any], runs: int | None, file: Path) -> tuple[str, int]:
    """Name and nanoseconds per inference; files older than TensorRT 8.4 have no median."""
    for key, divisor in (("medianMs", 1), ("averageMs", 1), ("timeMs", runs or 1)):
        if key in row:
            time = row[key]
            if isinstance(time, bool) or not isinstance(time, (int, float)) or not math.isfinite(time) or not 0 <= time < 1e9:
                raise NsysmapError(str(file), f"the {key} of a layer is no time", _MEASURE)
            return str(row["name"]), round(time / divisor * 1e6)
    raise NsysmapError(str(file), "a layer has no time", _MEASURE)


def _head(file: Path) -> bytes:
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise NsysmapError(str(file), "is a pipe or a device, not a file", "save it to a file first")
        with file.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except FileNotFoundError:
        raise NsysmapError(str(file), "there is no such file", "check the path") from None
    except IsADirectoryError:
        raise NsysmapError(str(file), "is a folder", "give the file in it") from None
    except OSError as error:
        raise NsysmapError(str(file), f"cannot be read ({error.strerror})", "check the path and its permissions") from None


def _refuse_other_files(file: Path, head: bytes, wanted: str) -> None:
    """NsysmapError where the first bytes or the suffix say that it is another kind of file."""
    if head.startswith((b"NVIDIA Tegra Profiler", b"NVIDIA Nsight Systems")) or file.suffix in (".nsys-rep", ".qdrep"):
        raise NsysmapError(str(file), f"is an nsys report, not {wanted}", "give the report first and the engine file second")
    if head.startswith(b"SQLite format 3"):
        raise NsysmapError(
            str(file), f"is a SQLite file (an exported nsys report?), not {wanted}", "give the report first and the engine file second"
        )
    if file.suffix == ".onnx":
        raise NsysmapError(
            str(file),
            f"is an ONNX model, not {wanted}",
            "build it with trtexec --onnx=… --profilingVerbosity=detailed --exportLayerInfo=FILE.json",
        )
    if head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")):
        raise NsysmapError(str(file), "is compressed", "unpack it first")
    if not head:
        raise NsysmapError(str(file), "is empty", REBUILD if wanted == "an engine" else _MEASURE)


def _is_binary(head: bytes) -> bool:
    return not head.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in head


def _decoded(file: Path) -> str:
    """The text, in UTF-8 or (PowerShell) UTF-16; bytes that are neither become U+FFFD."""
    data = file.read_bytes()
    return data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", errors="replace")
