"""The one exception that a user's mistake or a bad file raises."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from pathlib import Path

_LOOKED_AT = 1000  # names in the folder of a file that is not there
_NEAR = 3  # of them that are told


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


def no_such_file(path: str | Path) -> NsysmapError:
    """The error about a file that is not there, with those beside it that its name is like, or that
    are of its kind.
    """
    wanted = Path(path)
    try:
        beside = [one.name for one in islice(wanted.parent.iterdir(), _LOOKED_AT)]
    except OSError:
        return NsysmapError(str(path), "there is no such file", f"nor a folder {wanted.parent}")
    like = get_close_matches(wanted.name, beside, n=_NEAR, cutoff=0.75)
    alike = sorted(name for name in beside if wanted.suffix and name.endswith(wanted.suffix))
    near = [str(wanted.with_name(name)) for name in like or alike[:_NEAR]]
    remedy = f"did you mean {' or '.join(near)}?" if like else "check the path"
    if near and not like:
        remedy += f"; beside it {'are' if len(near) > 1 else 'is'} {', '.join(near)}"
    return NsysmapError(str(path), "there is no such file", remedy)


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
