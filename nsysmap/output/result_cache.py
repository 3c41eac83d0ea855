"""Caches what `nsysmap analyze` made of a report, so that the same question is answered again
without the work.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.output_file import replacing
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.tool_file import head_of, is_binary
from nsysmap.inputs.nsys import export_cache
from nsysmap.inputs.nsys.export import nsys_for
from nsysmap.inputs.nsys.sqlite_columns import SQLITE_MAGIC
from nsysmap.rules.packs import builtin_rules_dir
from nsysmap.rules.settings_files import SETTINGS

REPORT = "report"
"""The form of an answer from which all others are laid out but the files that show single
events.
"""

_MOST_FILES = 100_000  # of a folder of tables, or of rules
_PACKAGES = ("nsysmap", "numpy", "pyarrow", "duckdb", "onnx", "tensorrt")
_MAGIC = export_cache.RESULT_MAGIC


@dataclass(frozen=True)
class Question:
    """One question to nsysmap: the files that it reads, and everything else that its answer depends
    on.
    """

    report: str
    engines: Sequence[str]
    beside: Mapping[str, str | None]  # by option: files that belong to the report or to the engine
    rules: Sequence[str]  # folders
    options: str  # everything else that was given, in one form


@dataclass(frozen=True)
class Place:
    """The place where the answer to a question is kept."""

    path: Path

    def read(self) -> dict[str, bytes]:
        """The kept answer, by form; nothing if there is none, it is incomplete, or another user
        made it.
        """
        try:
            held = export_cache.own_bytes(self.path)
        except OSError:
            return {}
        body = held[len(_MAGIC) : -_CHECK_BYTES]
        if not held.startswith(_MAGIC) or _check(body) != held[-_CHECK_BYTES:]:
            return {}
        forms = _forms(body)
        with suppress(OSError):
            self.path.touch()  # what was used last is dropped last
        return forms

    def keep(self, forms: Mapping[str, bytes]) -> None:
        """Keep these forms of the answer too; nothing is kept where they are too large, or where
        the cache cannot be written.
        """
        held = {**self.read(), **forms}
        head = json.dumps([(name, len(data)) for name, data in held.items()]).encode() + b"\n"
        body = b"".join((head, *held.values()))
        if len(body) > export_cache.MOST_RESULT_BYTES:
            return
        with suppress(NsysmapError, OSError), export_cache.working_folder() as folder:
            made = folder / "results"
            made.write_bytes(b"".join((_MAGIC, body, _check(body))))
            export_cache.keep(made, self.path)
            export_cache.drop_oldest_results()


def place_of(question: Question) -> Place | None:
    """Where the answer is kept; None if it is not kept: if an input cannot be read or is neither a
    plain file nor a folder of them. A pipe or a device is not even opened: nobody might write to
    it, or it might have no end.
    """
    beside = [path for path in question.beside.values() if path]
    given = [Path(one) for one in (question.report, *question.engines, *beside)]
    try:
        if not all(one.is_file() or one.is_dir() for one in given):
            return None
        key = _key(question)
    except (OSError, NsysmapError):  # whoever reads it says what is wrong
        return None
    return None if key is None else Place(export_cache.kept_result(key))


_LAID_OUT = (".json", ".md")  # made of the report in less time than they are read


def files_of(paths: Iterable[Path]) -> dict[str, bytes]:
    """The files just written there, by suffix, that take more than the report; files that are too
    large to keep, and non-files, are left out.
    """
    plain = [
        path
        for path in paths
        if path.suffix.lower() not in _LAID_OUT
        and path.is_file()
        and path.stat().st_size <= export_cache.MOST_RESULT_BYTES
    ]
    return {path.suffix.lower(): path.read_bytes() for path in plain}


def write_files(answer: Mapping[str, bytes], paths: Iterable[Path]) -> None:
    """Write each file as it was kept, whole or not at all."""
    for path in paths:
        with replacing(path) as fresh:
            fresh.write_bytes(answer[path.suffix.lower()])


def _forms(body: bytes) -> dict[str, bytes]:
    """The forms behind a head that lists them with their sizes; nothing without such a head."""
    head, _, rest = body.partition(b"\n")
    try:
        named = json.loads(head)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(named, list) or not all(map(_is_named_size, named)):
        return {}
    forms, at = {}, 0
    for name, size in named:
        forms[name] = rest[at : at + size]
        at += size
    return forms if at == len(rest) else {}


def _is_named_size(one: object) -> bool:
    match one:
        case [str(), int(size)]:
            return 0 <= size <= export_cache.MOST_RESULT_BYTES
    return False


_CHECK_BYTES = 32  # of the checksum behind a kept result


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK_BYTES).digest()


def _key(question: Question) -> str | None:
    report = Path(question.report)
    files = _files(report)
    if any(Path(f"{path}{end}").exists() for path in files for end in ("-wal", "-journal")):
        return None
    if any(
        is_binary(head_of(Path(engine))) for engine in question.engines
    ):  # a program of another package opens it
        return None
    facts = {
        "versions": [sys.version, *(_version(package) for package in _PACKAGES)],
        "code": [
            *(
                _stamps(Path(__file__).parents[1], f"*.{suffix}")
                for suffix in ("py", "j2", "html", "js", "css")
            ),
            _stamps(builtin_rules_dir(), "*.yaml"),
        ],
        "report": [
            report.name,
            *((str(path.relative_to(report)), export_cache.digest_of(path)) for path in files),
        ],
        "nsys": _nsys(report),
        "engines": [(engine, export_cache.digest_of(Path(engine))) for engine in question.engines],
        "beside": [
            (name, path, export_cache.digest_of(Path(path)))
            for name, path in question.beside.items()
            if path
        ],
        "rules": [
            [(str(path), export_cache.digest_of(path)) for path in _files(Path(folder))]
            for folder in question.rules
        ],
        "settings": [
            (name, export_cache.digest_of(Path(name))) for name in SETTINGS if Path(name).is_file()
        ],
        "options": question.options,
    }
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _files(path: Path) -> list[Path]:
    """The file itself, or all files in the folder."""
    if not path.is_dir():
        return [path]
    found = []
    for inside in path.rglob("*"):
        if inside.is_file():
            found.append(inside)
        if len(found) > _MOST_FILES:
            raise NsysmapError(str(path), "holds too many files", "give the folder of one report")
    return sorted(found)


def _nsys(report: Path) -> str:
    """The nsys that would read the report; nothing if it is read without one."""
    if report.is_dir() or head_of(report).startswith(SQLITE_MAGIC):
        return ""
    nsys = nsys_for(report)
    return "" if nsys is None else f"{nsys.version} {nsys.path}"


def _stamps(folder: Path, pattern: str) -> list[tuple[str, int, int]]:
    """Name, size and time of nsysmap's own files: during development its version does not identify
    its behaviour.
    """
    status = [
        (str(path.relative_to(folder)), path.stat()) for path in sorted(folder.rglob(pattern))
    ]
    return [(name, one.st_size, one.st_mtime_ns) for name, one in status]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
