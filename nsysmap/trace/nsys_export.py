"""The nsys program: finding it, and exporting a report to SQLite into a cache that is keyed by content."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import selectors
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nsysmap.base.errors import NsysmapError

INSTALL_FOLDERS = (
    "/opt/nvidia/nsight-systems/*/bin",
    "/opt/nvidia/nsight-systems/*/target-linux-*",
    "/opt/nvidia/nsight-systems-cli/*/bin",
    "/opt/nvidia/nsight-systems-cli/*/target-linux-*",
    "/usr/local/cuda*/bin",
    "/usr/local/cuda*/nsight-systems-*/bin",
    "/usr/local/bin",
    "/opt/nsight-systems*/bin",
    "/opt/nsys/bin",
    "/usr/lib/nsight-systems/bin",
)
"""Where installers put nsys; a later folder counts only when no earlier one holds it, and within one the newest comes first."""

QUIET_LIMIT_S = 900.0
"""How long nsys may neither print nor write before it counts as hung; the environment's NSYSMAP_NSYS_TIMEOUT overrides it."""

Progress = Callable[[int], None]
"""Called with the percentage that nsys has done."""

_CACHE_FORMAT = 1  # part of every cache name: raise it when an export of the same bytes must be made anew
_CACHED = re.compile(r"[0-9a-f]{32}-[0-9.]+-f\d+\.sqlite")
_WORKING = "export-"
_HEADER = re.compile(rb"NVIDIA (?:Tegra Profiler|Nsight Systems)[^\n\d]{0,40}(\d{4}(?:[@.]\d+)+)")
_PERCENT = re.compile(r"(\d{1,3})%")
_BAR = re.compile(r"[^\r\n\]]*\[[=\s]*\d{1,3}%[=\s]*\]?")  # Processing 11834 events: [===12%      ]
_EXPORT_THERE = "run `nsys export -t sqlite FILE` where the report was captured and give nsysmap the .sqlite"
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Nsys:
    """One nsys program that answered with its version."""

    path: Path
    version: str  # 2023.4.4.54


@dataclass(frozen=True)
class Cached:
    """One export in the cache."""

    path: Path
    nsys_version: str
    size_bytes: int
    made_at_s: float  # seconds since the epoch


@dataclass(frozen=True)
class Cleared:
    """What :func:`clear_cache` took away."""

    files: int
    size_bytes: int


def report_version(path: Path) -> str:
    """The version of the nsys that wrote a ``.nsys-rep`` (``2023.4.4.54``), read off the file's first line."""
    head = _head(path)
    found = _HEADER.match(head)
    if found is None:
        raise _not_a_report(path, head)
    return found.group(1).decode().replace("@", ".")


def find_nsys(*, at_least: str = "") -> Nsys:
    """The first nsys that runs, from ``NSYS``, PATH and the usual folders; one of that version or newer is preferred."""
    named = os.environ.get("NSYS")
    if named:
        told = shutil.which(named)
        version = _version_of(Path(told)) if told else None
        if told is None or version is None:
            raise NsysmapError(f"NSYS={named}", "is not an nsys that runs", "point NSYS at the nsys program, or unset it to search PATH")
        return Nsys(Path(told).absolute(), version)
    first: Nsys | None = None
    broken: Path | None = None
    for path in _candidates():
        version = _version_of(path)
        if version is None:
            broken = broken or path
            continue
        if not _older(version, at_least):
            return Nsys(path, version)
        first = first or Nsys(path, version)
    if first is not None:
        return first
    if broken is not None:
        raise NsysmapError(
            str(broken), "does not answer --version", "repair that installation of Nsight Systems, or point NSYS at another nsys"
        )
    raise NsysmapError(
        "nsys",
        "not found in NSYS, on PATH or in the usual install folders",
        f"install Nsight Systems, or {_EXPORT_THERE}",
    )


def export(path: Path, *, progress: Progress | None = None) -> Path:
    """The SQLite export of a report, from the cache or made now; the report's own folder is never written to.

    Errors: not a report, no nsys, nsys too old, a failed, hung or incomplete export, a cache that cannot be written.
    """
    written_by = report_version(path)
    digest = _digest(path)
    try:
        nsys = find_nsys(at_least=written_by)
    except NsysmapError:
        kept = sorted(entry.path for entry in cached() if entry.path.name.startswith(digest))
        if kept:  # an earlier export of the same bytes serves as well
            return kept[-1]
        raise
    target = cache_folder() / f"{digest}-{nsys.version}-f{_CACHE_FORMAT}.sqlite"
    if target.is_file():
        return target
    with _working_folder() as folder:
        made = folder / "report.sqlite"
        _run_export(nsys, path, made, progress)
        if not _whole(made):
            raise _failed(path, nsys, written_by, "nsys ended without an error but its export is not whole")
        try:
            made.chmod(0o600)  # an export holds the environment of the profiled program
            made.replace(target)
        except OSError as error:
            raise _unwritable(target.parent, error) from error
    return target


def cache_folder() -> Path:
    """Where exports are kept: ``NSYSMAP_CACHE``, else ``nsysmap`` under ``XDG_CACHE_HOME`` or ``~/.cache``; it may not exist yet."""
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
            "cache", "there is no home folder to keep exports in", "set NSYSMAP_CACHE to a folder that you can write"
        ) from error


def cached() -> list[Cached]:
    """The exports in the cache, by name."""
    found = []
    for path in _entries(cache_folder()):
        if _CACHED.fullmatch(path.name):
            with suppress(FileNotFoundError):  # another process cleared it meanwhile
                status = path.stat()
                found.append(Cached(path, path.name.split("-")[1], status.st_size, status.st_mtime))
    return found


def clear_cache() -> Cleared:
    """Remove every export from the cache, and what a killed run left behind; files that nsysmap did not put there stay."""
    folder = cache_folder()
    files = size = 0
    try:
        for entry in cached():
            entry.path.unlink(missing_ok=True)
            files += 1
            size += entry.size_bytes
        for left in _abandoned(folder):
            held = [path for path in left.rglob("*") if path.is_file() and path.name != "lock"]
            files += len(held)
            size += sum(path.stat().st_size for path in held)
            shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return Cleared(files, size)


def _head(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise NsysmapError(str(path), "is a folder, not a report", "give the .nsys-rep or .sqlite file inside it")
        if not stat.S_ISREG(mode):
            raise NsysmapError(str(path), "is a pipe or a device, not a file", "save the report to a file first")
        with path.open("rb") as file:
            return file.read(256)
    except FileNotFoundError as error:
        raise NsysmapError(str(path), "there is no such file", "check the path") from error
    except OSError as error:
        raise NsysmapError(str(path), f"cannot be read ({_reason(error)})", "check the path and its permissions") from error


def _not_a_report(path: Path, head: bytes) -> NsysmapError:
    again = "copy it again from where it was captured, or capture it again"
    if not head:
        return NsysmapError(str(path), "is empty", again)
    if head.startswith(_SQLITE):
        return NsysmapError(str(path), "is an SQLite export, not a .nsys-rep", "rename it to end in .sqlite and give that")
    if path.suffix.lower() == ".qdstrm":
        remedy = "turn it into a .nsys-rep with `QdstrmImporter -i FILE`, which comes with the nsys that captured it, and give that"
        return NsysmapError(str(path), "is a raw QDSTRM stream of an unfinished capture", remedy)
    if path.suffix.lower() in (".engine", ".plan", ".trt") or head.startswith(b"ftrt"):
        return NsysmapError(str(path), "is a TensorRT engine, not a report", "give the .nsys-rep or .sqlite first and the engine second")
    if head.lstrip()[:1] in (b"{", b"["):
        return NsysmapError(str(path), "is JSON, not a report", "give the .nsys-rep or .sqlite first and the engine file second")
    if b"NVIDIA Tegra Profiler Report".startswith(head) or head.startswith(b"NVIDIA "):
        return NsysmapError(str(path), "is cut off in its first line", again)
    return NsysmapError(str(path), "is not an nsys report", "give a .nsys-rep, or a .sqlite made by `nsys export -t sqlite`")


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("nsys")
    seen: set[Path] = set()
    if on_path:
        seen.add(Path(on_path).resolve())
        yield Path(on_path).absolute()
    for pattern in INSTALL_FOLDERS:
        found = Path("/").glob(pattern.lstrip("/") + "/nsys")
        for path in sorted(found, key=lambda path: (_numbers(str(path)), str(path)), reverse=True):
            if path.resolve() not in seen and path.is_file() and os.access(path, os.X_OK):
                seen.add(path.resolve())
                yield path


def _version_of(path: Path) -> str | None:
    try:
        told = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(rb"\b(\d{4}(?:\.\d+)+)", told.stdout + told.stderr)
    return found.group(1).decode() if found and told.returncode == 0 else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _older(version: str, other: str) -> bool:
    return _numbers(version) < _numbers(other)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise NsysmapError(str(path), f"cannot be read ({_reason(error)})", "check the disk, or copy the file again") from error


@contextmanager
def _working_folder() -> Iterator[Path]:
    """A folder of our own inside the cache, removed at the end however that comes; a lock in it tells others that it is in use."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in _abandoned(cache):
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_WORKING, dir=cache))
    except OSError as error:
        raise _unwritable(cache, error) from error
    try:
        with (folder / "lock.new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "lock.new").rename(folder / "lock")  # nobody sees it before it is locked
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _abandoned(cache: Path) -> list[Path]:
    """The working folders that no living process holds: those of runs that were killed."""
    found = []
    for folder in _entries(cache):
        if not folder.name.startswith(_WORKING) or not folder.is_dir():
            continue
        try:
            with (folder / "lock").open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(folder)
        except FileNotFoundError:  # just made, or just being removed
            if time.time() - folder.stat().st_mtime > 60:
                found.append(folder)
        except BlockingIOError:
            continue
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unwritable(folder, error) from error


def _run_export(nsys: Nsys, report: Path, made: Path, progress: Progress | None) -> None:
    """Run nsys until it ends; its process group never outlives this call."""
    command: list[str | Path] = [nsys.path, "export", "--type=sqlite", "--force-overwrite=true", f"--output={made}", report.absolute()]
    limit = _quiet_limit()
    try:
        process = subprocess.Popen(
            command,
            cwd=made.parent,  # whatever else nsys writes lands in our own folder
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches us, and we end nsys with all that it started
        )
    except OSError as error:
        raise NsysmapError(str(nsys.path), f"cannot be started ({_reason(error)})", "repair it, or point NSYS at another nsys") from error
    with process:
        try:
            said = _follow(process, made, limit, progress)
            code = process.wait(timeout=limit)
        except BaseException as error:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                remedy = "try again, or set NSYSMAP_NSYS_TIMEOUT to more seconds if the machine is slow"
                raise NsysmapError(
                    str(report), f"export ended by nsysmap: nsys printed and wrote nothing for {limit:g} s", remedy
                ) from error
            raise
    if code < 0:
        how = f"nsys was ended by signal {-code} ({signal.Signals(-code).name})"
        remedy = f"check free memory and disk space (the export goes to {cache_folder()}), then run it again"
        raise NsysmapError(str(report), f"export interrupted: {how}", remedy)
    if code != 0 or not made.exists():
        raise _failed(report, nsys, report_version(report), _error_line(said) or f"nsys ended with exit status {code} and no message")


def _follow(process: subprocess.Popen[bytes], made: Path, limit: float, progress: Progress | None) -> str:
    """The last of what nsys printed, its percentages passed on as they come; TimeoutExpired when it is quiet for too long."""
    assert process.stdout is not None
    said = ""
    shown = -1
    alive_at, size = time.monotonic(), -1
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=min(1.0, limit)):
                read = os.read(process.stdout.fileno(), 65536)
                if not read:
                    return said
                said = (said + read.decode(errors="replace"))[-20000:]
                alive_at = time.monotonic()
                percents = _PERCENT.findall(said)
                if progress is not None and percents and shown < int(percents[-1]) <= 100:
                    shown = int(percents[-1])
                    progress(shown)
            elif process.poll() is not None:  # it ended, though a child of its own still holds the pipe
                return said
            now = made.stat().st_size if made.exists() else -1
            if now != size:
                alive_at, size = time.monotonic(), now
            if time.monotonic() - alive_at > limit:
                raise subprocess.TimeoutExpired(process.args, limit)


def _quiet_limit() -> float:
    told = os.environ.get("NSYSMAP_NSYS_TIMEOUT")
    if not told:
        return QUIET_LIMIT_S
    try:
        limit = float(told)
    except ValueError:
        limit = 0.0
    if not 0 < limit < float("inf"):
        raise NsysmapError(
            f"NSYSMAP_NSYS_TIMEOUT={told}", "is not a number of seconds above 0", "set it to seconds such as 1800, or unset it"
        )
    return limit


def _failed(report: Path, nsys: Nsys, written_by: str, line: str) -> NsysmapError:
    if _older(nsys.version, written_by):
        what = f"was written by nsys {written_by}, newer than the nsys {nsys.version} found at {nsys.path}"
        return NsysmapError(str(report), what, f"install nsys {written_by} or newer, or {_EXPORT_THERE}")
    if re.search(r"\bfull\b|no space", line, re.IGNORECASE):
        remedy = f"free disk space under {cache_folder()}, or set NSYSMAP_CACHE to a folder with more"
    else:
        remedy = "if the file is cut off or damaged, copy it again from where it was captured; an nsys of its own version may read more"
    return NsysmapError(str(report), f"export failed with nsys {nsys.version} (report by {written_by}): {line}", remedy)


def _error_line(said: str) -> str:
    """The last line in which nsys names an error, else its last line; one line, short, without the home folder's name."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", _BAR.sub("\n", said))]
    errors = [line for line in lines if re.search(r"error|fail|cannot|unable", line, re.IGNORECASE)]
    line = (errors or [line for line in lines if line] or [""])[-1]
    line = "".join(char for char in line if char.isprintable())
    home = os.environ.get("HOME", "")
    if len(home) > 1:
        line = line.replace(home, "~")
    return line if len(line) <= 200 else line[:199] + "…"


def _whole(made: Path) -> bool:
    """True when the file is an SQLite database with the one table that every export has and no unfinished transaction."""
    import sqlite3

    if not made.is_file() or Path(f"{made}-journal").exists():
        return False
    connection = sqlite3.connect(f"{made.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'StringIds'").fetchone() is not None
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


def _unwritable(folder: Path, error: OSError) -> NsysmapError:
    return NsysmapError(str(folder), f"the cache cannot be written ({_reason(error)})", "set NSYSMAP_CACHE to a folder that you can write")


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
