"""The cache of exports and results: one folder of nsysmap's own, in which it deletes only what it
can prove to have written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from nsysmap.core import system
from nsysmap.core.errors import NsysmapError
from nsysmap.core.marked_folder import MARK, is_abandoned, marked_folder
from nsysmap.core.records import dataclass

_FORMAT = 1  # part of every name: raise it when an export of the same bytes must be made anew
_EXPORT = re.compile(r"[0-9a-f]{32}-[0-9.]+-f\d+\.sqlite")
_RESULT = re.compile(r"[0-9a-f]{32}\.results")
_WORKING = "export-"
_PROBE_BYTES = 1 << 16  # written to see whether there is room at all
RESULT_MAGIC = b"nsysmap results 1\n"
"""How a file of results begins: raise the number when the form changes."""
MOST_RESULT_BYTES = 64 << 20  # of one question; all results together may take _ALL_RESULTS_BYTES
_ALL_RESULTS_BYTES = 512 << 20  # then the oldest are removed


@dataclass(frozen=True)
class Cached:
    """One export in the cache, or the results of one question."""

    path: Path
    nsys_version: str  # empty for results
    size_bytes: int
    made_at_s: float  # seconds since the epoch


@dataclass(frozen=True)
class Cleared:
    """What :func:`clear_cache` removed."""

    files: int
    size_bytes: int


def cache_folder() -> Path:
    """The folder for exports: ``NSYSMAP_CACHE``, otherwise ``nsysmap`` under ``XDG_CACHE_HOME`` or
    ``~/.cache``; it may not exist yet.
    """
    own = os.environ.get("NSYSMAP_CACHE")
    if own:
        return Path(own).absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if Path(shared).is_absolute():  # the XDG rule: a relative one counts as unset
        return Path(shared) / "nsysmap"
    try:
        return Path.home() / ".cache" / "nsysmap"
    except RuntimeError as error:
        raise NsysmapError(
            "cache",
            "there is no home folder to keep exports in",
            "set NSYSMAP_CACHE to a writable folder",
        ) from error


def cached() -> list[Cached]:
    """The exports and results in the cache, by name."""
    found = []
    for path in _entries(cache_folder()):
        export = _EXPORT.fullmatch(path.name) is not None
        if export or _RESULT.fullmatch(path.name):
            with suppress(OSError):  # another process cleared it meanwhile
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and (
                    export or own_bytes(path, len(RESULT_MAGIC)) == RESULT_MAGIC
                ):
                    found.append(
                        Cached(
                            path,
                            path.name.split("-")[1] if export else "",
                            status.st_size,
                            status.st_mtime,
                        )
                    )
    return found


def kept_result(key: str) -> Path:
    """The folder where the results of the question with that key are kept."""
    return cache_folder() / f"{key}.results"


def drop_oldest_results() -> None:
    """Remove the results that were used longest ago, until the rest is within its bound."""
    room = _ALL_RESULTS_BYTES
    for entry in sorted(
        (entry for entry in cached() if not entry.nsys_version), key=lambda entry: -entry.made_at_s
    ):
        room -= entry.size_bytes
        if room < 0:
            with suppress(OSError):
                entry.path.unlink(missing_ok=True)


def own_bytes(path: Path, most: int = 2 * MOST_RESULT_BYTES) -> bytes:
    """The beginning of a file in the cache; nothing of one that is not :func:`is_own`.

    It is opened without waiting: a pipe in its place would wait for a writer.
    """
    number = os.open(path, os.O_RDONLY | system.NO_FOLLOW | getattr(os, "O_BINARY", 0))
    with os.fdopen(number, "rb") as file:
        return file.read(most) if system.is_own(os.fstat(number)) else b""


def is_own(path: Path) -> bool:
    """Whether this user made the file in the cache and nobody else can write it: in a folder that
    others can write to, files may be theirs.
    """
    try:
        return system.is_own(path.lstat())
    except OSError:
        return False


def exports_of(digest: str) -> list[Cached]:
    """The exports of the report with that digest, that of the newest nsys first."""
    found = [
        entry
        for entry in cached()
        if entry.path.name.startswith(digest)
        and entry.path.name.endswith(f"-f{_FORMAT}.sqlite")
        and is_own(entry.path)
    ]
    return sorted(
        found,
        key=lambda entry: [int(part) for part in entry.nsys_version.split(".") if part],
        reverse=True,
    )


def kept(digest: str, nsys_version: str) -> Path:
    """The path where the export of the report with that digest by that nsys is kept."""
    return cache_folder() / f"{digest}-{nsys_version}-f{_FORMAT}.sqlite"


def digest_of(path: Path) -> str:
    """The digest that identifies the file's content in the cache."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise NsysmapError(
            str(path),
            f"cannot be read ({_reason(error)})",
            "check the disk, or copy the file again",
        ) from error


def keep(made: Path, target: Path) -> None:
    """Move a finished file to its place in the cache, for its owner only: an export holds the
    environment of the profiled program.
    """
    try:
        made.chmod(0o600)
        made.replace(target)
    except OSError as error:
        raise unwritable(target.parent, error) from error


def forget(export: Path) -> None:
    """Remove one export of the cache, which turned out to be damaged."""
    if export.parent == cache_folder() and _EXPORT.fullmatch(export.name):
        try:
            export.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(export.parent, error) from error


def clear_cache() -> Cleared:
    """Remove all exports and results from the cache, and what a killed run left behind; files that
    nsysmap did not put there stay.
    """
    folder = cache_folder()
    files = size = 0
    try:
        for entry in cached():
            entry.path.unlink(missing_ok=True)
            files += 1
            size += entry.size_bytes
        for left in _abandoned(folder):
            held = [
                path
                for path in left.rglob("*")
                if path.is_file() and not path.is_symlink() and path.name != MARK
            ]
            files += len(held)
            size += sum(path.stat().st_size for path in held)
            shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    return Cleared(files, size)


def lacks_room(folder: Path, report_bytes: int) -> bool:
    """Whether the disk of a working folder cannot hold a report's export, with what of it is there:
    an export takes some four times the bytes of its report.
    """
    probe = folder / "probe"
    try:
        there = sum(path.stat().st_size for path in folder.iterdir())
        if shutil.disk_usage(folder).free + there < report_bytes:
            return True
        probe.write_bytes(bytes(_PROBE_BYTES))  # a quota does not show in what is free
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    return False


@contextmanager
def working_folder() -> Iterator[Path]:
    """A folder of our own inside the cache, removed at the end however that comes."""
    cache = cache_folder()
    with ExitStack() as stack:
        try:
            cache.mkdir(parents=True, exist_ok=True, mode=0o700)
            for left in _abandoned(cache):
                shutil.rmtree(left, ignore_errors=True)
            folder = stack.enter_context(marked_folder(cache / f"{_WORKING}{os.getpid()}"))
        except OSError as error:
            raise unwritable(cache, error) from error
        yield folder


def unwritable(folder: Path, error: OSError) -> NsysmapError:
    """The error of a cache that cannot be read or written."""
    return NsysmapError(
        str(folder),
        f"the cache cannot be written ({_reason(error)})",
        "set NSYSMAP_CACHE to a folder that you can write",
    )


def _abandoned(cache: Path) -> list[Path]:
    """The working folders that nsysmap marked and no living process holds: those of runs that were
    killed.
    """
    return [
        path for path in _entries(cache) if path.name.startswith(_WORKING) and is_abandoned(path)
    ]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unwritable(folder, error) from error


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
