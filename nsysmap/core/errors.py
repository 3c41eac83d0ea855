"""The one exception that a user's mistake or a bad file raises."""

from __future__ import annotations

from pathlib import Path


class NsysmapError(Exception):
    """An error that the user can correct: where it is, what is wrong, what to do."""

    def __init__(self, where: str, what: str, remedy: str, *, or_else: str = "") -> None:
        super().__init__(where, what, remedy)
        self.where = where
        self.what = what
        self.remedy = remedy
        self.or_else = or_else  # another remedy

    def __str__(self) -> str:
        more = f", or {self.or_else}" if self.or_else else ""
        return f"{self.where}: {self.what}; {self.remedy}{more}"


def named_path(path: str | Path) -> Path:
    """The path; NsysmapError if it has a NUL, with which no file can be named."""
    if "\0" in str(path):
        raise NsysmapError(
            str(path).replace("\0", "\\0"),
            "has a NUL character, which no path has",
            "check the path",
        )
    return Path(path)


def current_folder() -> Path:
    """The folder that nsysmap was started in; NsysmapError if it has been removed since: DuckDB,
    for one, then ends the process.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise NsysmapError(
            "the current folder",
            f"cannot be used ({error.strerror})",
            "change into a folder that exists: cd",
        ) from error
