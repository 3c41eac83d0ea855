"""Writes an output file completely or not at all, and never over one of the inputs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.marked_folder import is_abandoned, marked_folder

_HEAD_BYTES = 65536  # enough to tell what a file is
_NAME_BYTES = 100  # of the name of the unfinished file, below the 255 that file systems take
_UNFINISHED = ".part"
_WRITABLE = 0o222  # the mode bits of everybody who may write


def check_output(path: Path, suffixes: Sequence[str], inputs: Sequence[Path]) -> None:
    """Check that ``path`` can be written, before any work is done. Raises NsysmapError if it
    cannot.
    """
    if named_path(path).suffix.lower() not in suffixes:
        known = ", ".join(suffixes)
        raise NsysmapError(
            str(path),
            f"the suffix {path.suffix!r} names no known format" if path.suffix else "has no suffix",
            f"use {known}",
        )
    with _named(path):
        target = _followed(path)
        if path.is_dir():
            raise NsysmapError(str(path), "is a directory", "give a file name")
        for given in inputs:
            if path.exists() and given.exists() and path.samefile(given):
                raise NsysmapError(
                    str(path),
                    "is one of the inputs and would be overwritten",
                    "give another output file",
                )
        folder = target.parent
        if not folder.is_dir():
            raise NsysmapError(
                str(path), f"there is no folder {folder}", "make it first, or give another path"
            )
        plain = path.is_file() or not path.exists()
        if not os.access(folder if plain else path, os.W_OK):
            raise NsysmapError(
                str(path),
                "cannot be written: permission denied",
                "give another path, or permission to write there",
            )
        if path.is_file() and not (
            os.access(path, os.W_OK) and path.stat().st_mode & _WRITABLE
        ):  # root may write despite the mode
            raise NsysmapError(
                str(path),
                "is read-only and would be overwritten",
                "give another output file, or chmod u+w it first",
            )
        if path.is_file() and (kept := _precious(path)):
            raise NsysmapError(
                str(path),
                f"is {kept} and would be overwritten",
                "give another output file, or remove it first",
            )


def _precious(path: Path) -> str | None:
    """Inputs that nsysmap could not write again: they are never overwritten."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if path.suffix.lower() == ".json" and b'"Layers"' in head:
        return "an engine's layers"
    if path.suffix.lower() == ".json" and b'"averageMs"' in head:
        return "a trtexec profile"
    if head.startswith(b"SQLite format 3\0") and b"CREATE TABLE StringIds" in head:
        return "an nsys export"
    return None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, in a folder of our own beside ``path``: it replaces ``path`` at the end
    of the block, and is removed after an error.

    Symbolic links are followed; a path that is not a regular file (a pipe, /dev/stdout) is written
    directly.  Raises NsysmapError for a full disk, a missing folder and similar errors.
    """
    if named_path(path).exists() and not path.is_file():
        with _named(path):
            yield path
        return
    with _named(path):
        target = _followed(path)
        name = os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])
        for left in target.parent.glob(f".*{_UNFINISHED}"):  # left over from a killed run
            if is_abandoned(left):
                shutil.rmtree(left, ignore_errors=True)
        with marked_folder(target.with_name(f".{name}.{os.getpid()}{_UNFINISHED}")) as folder:
            fresh = folder / target.name
            yield fresh
            if target.exists():
                fresh.chmod(target.stat().st_mode & 0o7777)
            fresh.replace(target)


def _followed(path: Path) -> Path:
    """The target of the path through symbolic links. Raises OSError if they form a loop."""
    with suppress(FileNotFoundError):
        path.stat()
    return Path(os.path.realpath(path))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NsysmapError(
            str(path),
            f"cannot be written ({error.strerror or error})",
            "check the folder, its free space and permissions",
        ) from error
