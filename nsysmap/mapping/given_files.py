"""Decides from their content which of the given files is the report, and which are engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.plan_header import PLAN_MAGIC
from nsysmap.inputs.engine.tool_file import head_of, is_binary
from nsysmap.inputs.nsys.arrow_tables import ARROW_MAGIC, PARQUET_MAGIC
from nsysmap.inputs.nsys.json_lines import is_json_lines
from nsysmap.inputs.nsys.sqlite_columns import SQLITE_MAGIC
from nsysmap.text.terminal import pasted

_REPORT_MAGICS = (
    b"NVIDIA Tegra Profiler",
    b"NVIDIA Nsight Systems",
    SQLITE_MAGIC,
    ARROW_MAGIC,
    PARQUET_MAGIC,
    b"NVR\0",
    b"\x89HDF\r\n",
)
_REPORT_SUFFIXES = {".nsys-rep", ".qdrep", ".qdstrm", ".sqlite"}
_ENGINE_SUFFIXES = {".engine", ".plan", ".trt", ".rtx", ".json", ".onnx"}
_REPORT, _NAMED_SO, _UNKNOWN, _ENGINE = 3, 2, 1, 0


@dataclass(frozen=True)
class GivenFiles:
    """The report, and the engine files in the order in which they were given."""

    report: str
    engines: tuple[str, ...]


def given_files(paths: Sequence[str]) -> GivenFiles:
    """The report and the engine files among ``paths``, in any order. If the content does not tell,
    the first path is the report.

    A file that cannot be read is left to its reader, which says what is wrong with it.
    """
    if "" in paths:
        raise NsysmapError(
            "an empty text",
            "is given where a file is expected",
            "give the path of a report or an engine file",
        )
    likely = [_likeness(path) for path in paths]
    if likely.count(_REPORT) > 1:
        second = [path for path, like in zip(paths, likely, strict=True) if like == _REPORT][1]
        raise NsysmapError(
            second,
            "is a second report, not an engine",
            "give one report, with the engine files that ran in it",
        )
    at = likely.index(max(likely))
    return GivenFiles(paths[at], tuple(paths[:at]) + tuple(paths[at + 1 :]))


def engines_and_report(paths: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """The engine files (at least one) and the report, if any, of a command about engines; in any
    order.
    """
    if len(paths) == 1:
        if _likeness(paths[0]) == _REPORT:
            raise NsysmapError(
                paths[0], "is a report, not an engine", "give the engine file that ran in it too"
            )
        return tuple(paths), None
    given = given_files(paths)
    return given.engines, given.report


def one_engine(paths: Sequence[str], command: Callable[[str, str], str]) -> tuple[str, str | None]:
    """The engine file and the report of a command about one engine. The error about a second engine
    spells out the ``command`` for each file.
    """
    engines, report = engines_and_report(paths)
    if len(engines) > 1:
        names = [PurePath(engine).name.partition(".")[0] for engine in engines]
        names = (
            names
            if len(set(names)) == len(names)
            else [f"{name}{number}" for number, name in enumerate(names, 1)]
        )
        files = [
            " ".join(map(pasted, (engine, *([] if report is None else [report]))))
            for engine in engines
        ]
        each = [command(mine, pasted(name)) for mine, name in zip(files, names, strict=True)]
        raise NsysmapError(
            engines[1],
            "is a second engine file, and this takes one",
            f"run it once for each: {'; '.join(each)}",
        )
    return engines[0], report


def is_likely_report(path: str) -> bool:
    """Whether the path is a report rather than an engine file or a profile. If undecided, it is
    treated as a report, whose reader then says what is wrong.
    """
    return _likeness(path) != _ENGINE


def _likeness(path: str) -> int:
    """How likely the file is a report, judged by its first bytes, otherwise by its name."""
    file = Path(path)
    try:
        if file.is_dir():
            return _REPORT
        head = head_of(file)
    except (NsysmapError, OSError, ValueError):  # its reader says so
        head = b""
    if head.startswith(_REPORT_MAGICS) or is_json_lines(head):
        return _REPORT
    suffix = file.suffix.lower()
    if head.startswith(PLAN_MAGIC) or suffix in _ENGINE_SUFFIXES:
        return _ENGINE
    if suffix in _REPORT_SUFFIXES:
        return _NAMED_SO
    return _UNKNOWN if not head or is_binary(head) else _ENGINE
