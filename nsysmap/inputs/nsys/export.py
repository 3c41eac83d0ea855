"""Has nsys export a report to SQLite, into the cache; if nsys refuses, the error says what the file
looks like.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.nsys import export_cache
from nsysmap.inputs.nsys.forms import head_of
from nsysmap.inputs.nsys.looks import looks_like
from nsysmap.inputs.nsys.program import (
    EXPORT_THERE,
    Ended,
    Nsys,
    Progress,
    installed_nsys,
    older,
    run,
)
from nsysmap.inputs.nsys.sqlite_columns import Database

_HEADER = re.compile(rb"NVIDIA (?:Tegra Profiler|Nsight Systems)[^\n\d]{0,40}(\d{4}(?:[@.]\d+)+)")
_TOLD_VERSION = re.compile(r"created in Nsight Systems version \((\d{4}(?:\.\d+)+)")
_BAR = re.compile(r"[^\r\n\]]*\[[=\s]*\d{1,3}%[=\s]*\]?")  # Processing 11834 events: [===12%      ]
_UNPARSED = re.compile(r"Parse ?Exception|can't parse message", re.IGNORECASE)


def report_version(path: Path) -> str | None:
    """The version of the nsys that wrote a report (``2023.4.4.54``), if its first line gives it.

    That of nsys until 2023.2 is `NVIDIA Tegra Profiler Report 1.`, that of the nsys inside Nsight
    Compute has another number for a version.
    """
    found = _HEADER.match(head_of(path))
    return found.group(1).decode().replace("@", ".") if found else None


def nsys_for(path: Path) -> Nsys | None:
    """The nsys that would export this report; None if none is installed, or each is older than the
    report.

    Raises NsysmapError if the environment's ``NSYS`` names something else.
    """
    written_by = report_version(path) or ""
    try:
        return next(
            (nsys for nsys in installed_nsys() if not older(nsys.version, written_by)), None
        )
    except NsysmapError:
        if os.environ.get("NSYS"):
            raise
        return None


def export(path: Path, *, progress: Progress | None = None) -> Path:
    """The SQLite export of a report, from the cache or made now; the report's own folder is never
    written to.

    Errors: no report, no nsys, nsys too old, a failed, hung or incomplete export, a cache that
      cannot be written.
    """
    written_by = report_version(path)
    digest = export_cache.digest_of(path)
    try:
        return _first_that_reads(path, digest, written_by, progress)
    except _NoNsysError as error:
        kept = export_cache.exports_of(digest)
        if kept:  # an earlier export of the same bytes serves as well
            return kept[0].path
        other = looks_like(path, head_of(path))
        raise NsysmapError(str(path), *other) if other is not None else error.told from error


def _first_that_reads(
    path: Path, digest: str, written_by: str | None, progress: Progress | None
) -> Path:
    """The export by an nsys that is not older than the report, otherwise by the first one; newer
    ones follow if the report names no version.
    """
    refused: NsysmapError | None = None
    for nsys in _in_turn(written_by):
        target = export_cache.kept(digest, nsys.version)
        if export_cache.is_own(target) and _whole(target):
            return target
        export_cache.forget(target)
        try:
            _export(nsys, path, target, written_by, progress)
        except _RefusedError as error:
            refused = error.told
        else:
            return target
    assert refused is not None  # _in_turn yields one, or raises
    raise refused


class _ToldError(Exception):
    """An error that is shown unless the export succeeds in another way."""

    def __init__(self, told: NsysmapError) -> None:
        super().__init__(told)
        self.told = told


class _NoNsysError(_ToldError):
    """No nsys can be run."""


class _RefusedError(_ToldError):
    """One nsys could not read the report; a newer one may."""


def _in_turn(written_by: str | None) -> Iterator[Nsys]:
    older_ones: list[Nsys] = []
    try:
        for nsys in installed_nsys():
            if written_by is not None and not older(nsys.version, written_by):
                yield nsys
                return
            older_ones.append(nsys)
    except NsysmapError as error:
        raise _NoNsysError(error) from error
    newest = older_ones[0]
    yield newest
    for nsys in older_ones if written_by is None else ():
        if older(newest.version, nsys.version):
            newest = nsys
            yield nsys


def _export(
    nsys: Nsys, path: Path, target: Path, written_by: str | None, progress: Progress | None
) -> None:
    with export_cache.working_folder() as folder:
        made = folder / "report.sqlite"
        command: list[str | Path] = [
            nsys.path,
            "export",
            "--type=sqlite",
            "--force-overwrite=true",
            f"--output={made}",
            path.absolute(),
        ]
        try:
            ended = run(command, folder, made, progress=progress)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise NsysmapError(
                str(nsys.path),
                f"cannot be started ({reason})",
                "repair it, or point NSYS at another nsys",
            ) from error
        whole = ended.status == 0 and _whole(made)
        if not whole and export_cache.lacks_room(folder, path.stat().st_size):
            raise NsysmapError(
                str(export_cache.cache_folder()),
                f"has no room for the export of {path.name}: its disk is full",
                "free disk space there, or set NSYSMAP_CACHE to a folder with more",
            )
        _check(nsys, path, written_by, ended)
        if not whole:
            raise _RefusedError(
                _failed(
                    path,
                    nsys,
                    written_by,
                    "nsys ended without an error but its export is incomplete",
                )
            )
        export_cache.keep(made, target)


def _check(nsys: Nsys, report: Path, written_by: str | None, ended: Ended) -> None:
    """An error where nsys did not end well."""
    if ended.quiet_s is not None:
        remedy = "try again, or set NSYSMAP_NSYS_TIMEOUT to more seconds if the machine is slow"
        raise NsysmapError(
            str(report),
            f"nsysmap stopped the export: nsys printed and wrote nothing for {ended.quiet_s:g} s",
            remedy,
        )
    if ended.status < 0:
        how = f"nsys was ended by signal {-ended.status} ({signal.Signals(-ended.status).name})"
        remedy = (
            f"check free memory and disk space (the export goes to {export_cache.cache_folder()}),"
            " then run it again"
        )
        raise NsysmapError(str(report), f"export interrupted: {how}", remedy)
    if ended.status != 0:
        line = (
            _error_line(ended.said) or f"nsys ended with exit status {ended.status} and no message"
        )
        told = _TOLD_VERSION.search(ended.said)
        raise _RefusedError(_failed(report, nsys, told.group(1) if told else written_by, line))


def _failed(report: Path, nsys: Nsys, written_by: str | None, line: str) -> NsysmapError:
    """Why this nsys gave no export: the file's own content, an older nsys, a full disk, otherwise
    nsys's message.
    """
    other = looks_like(report, head_of(report))
    if other is not None:
        return NsysmapError(str(report), *other)
    if written_by is not None and older(nsys.version, written_by):
        what = (
            f"was written by nsys {written_by}, newer than the nsys {nsys.version} found at"
            f" {nsys.path}"
        )
        return NsysmapError(
            str(report), what, f"install nsys {written_by} or newer, or {EXPORT_THERE}"
        )
    if re.search(r"\bfull\b|no space", line, re.IGNORECASE):
        remedy = (
            f"free disk space under {export_cache.cache_folder()}, or set NSYSMAP_CACHE to a folder"
            " with more"
        )
    elif written_by is None and _UNPARSED.search(line):
        what = f"cannot be read by nsys {nsys.version}, found at {nsys.path}"
        remedy = (
            "its first line does not say which nsys wrote it: install the newest Nsight Systems,"
            f" or {EXPORT_THERE}"
        )
        return NsysmapError(str(report), what, f"{remedy}; if the file is cut off, copy it again")
    else:
        remedy = (
            "if the file is cut off or damaged, copy it again from where it was captured; an nsys"
            " of the same version may read more"
        )
    by = f" (report by {written_by})" if written_by else ""
    return NsysmapError(str(report), f"export failed with nsys {nsys.version}{by}: {line}", remedy)


def _error_line(said: str) -> str:
    """The last line in which nsys names an error, otherwise its last line; one short line, without
    the home folder's name.
    """
    lines = [line.strip() for line in re.split(r"[\r\n]+", _BAR.sub("\n", said))]
    errors = [
        line
        for line in lines
        if re.search(r"error|fail|cannot|unable|exception", line, re.IGNORECASE)
    ]
    line = (errors or [line for line in lines if line] or [""])[-1]
    line = "".join(char for char in line if char.isprintable())
    home = os.environ.get("HOME", "")
    if len(home) > 1:
        line = line.replace(home, "~")
    return line if len(line) <= 200 else line[:199] + "…"


def _whole(made: Path) -> bool:
    """Whether the file is an SQLite database of the length that it says, with the one table that
    every export has, and finished.
    """
    try:
        return not Path(f"{made}-journal").exists() and "StringIds" in Database.open(made).columns
    except (NsysmapError, OSError):
        return False
