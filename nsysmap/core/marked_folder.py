"""A folder of nsysmap's own for unfinished files, next to the user's files: it contains a mark,
without which it is never removed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nsysmap.core.ending import folder_noted
from nsysmap.core.system import NO_FOLLOW, lock

MARK = "made-by-nsysmap"
MARK_TEXT = b"nsysmap works in this folder, and removes it: keep nothing here.\n"


@contextmanager
def marked_folder(folder: Path) -> Iterator[Path]:
    """A new folder at this path, or at a similar one if it is taken; it is removed at the end, even
    after an error.

    The mark in it says that nsysmap made it, and is locked for as long as it is in use.  Raises
    OSError if it cannot be made.
    """
    if is_abandoned(folder):
        shutil.rmtree(folder, ignore_errors=True)
    with folder_noted(lambda: _new(folder)) as made, _marked(made):
        yield made


def _new(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return Path(
            tempfile.mkdtemp(prefix=f"{folder.stem}.", suffix=folder.suffix, dir=folder.parent)
        )
    return folder


def _marked(folder: Path) -> IO[bytes]:
    unseen = folder / f"{MARK}.new"
    mark = unseen.open("wb")
    with suppress(
        OSError
    ):  # a file system without locks: then nothing proves that it is not in use
        lock(mark, wait=True)
    mark.write(MARK_TEXT)
    mark.flush()
    unseen.rename(folder / MARK)  # nobody sees it before it is locked
    return mark


def is_abandoned(folder: Path) -> bool:
    """Whether nsysmap marked the folder and no living process holds its lock: it is left over from
    a killed run.
    """
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return False
        number = os.open(folder / MARK, os.O_RDONLY | NO_FOLLOW)
    except OSError:  # no mark: not ours, or just made, or just being removed
        return False
    with os.fdopen(number, "rb") as mark:
        try:
            if (
                not stat.S_ISREG(os.fstat(number).st_mode)
                or mark.read(len(MARK_TEXT) + 1) != MARK_TEXT
            ):
                return False
            lock(mark, wait=False)
        except OSError:  # it is in use
            return False
    return True
