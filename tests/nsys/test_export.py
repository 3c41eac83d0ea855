"""What holds for finding nsys and for the cache of exports.

``stand_in`` scripts play an nsys that this machine does not have (older, newer, hanging, dying);
the tests with "real" in their name run the nsys that is installed, and are skipped where there is
none.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.marked_folder import MARK_TEXT
from nsysmap.inputs.nsys import program
from nsysmap.inputs.nsys.export import export, report_version
from nsysmap.inputs.nsys.export_cache import (
    Cleared,
    cache_folder,
    cached,
    clear_cache,
    is_own,
    own_bytes,
)
from nsysmap.inputs.nsys.program import Nsys, find_nsys
from nsysmap.trace.open_report import open_trace
from tests.places import FIXTURES

FIXTURE = FIXTURES / "bert_trt10" / "sync.nsys-rep"
HEADER = b"NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0.\n\x0bLocal (CLI)"
REAL = shutil.which("nsys")
needs_nsys = pytest.mark.skipif(REAL is None, reason="nsys is not installed on this machine")

StandIn = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.delenv("NSYSMAP_NSYS_TIMEOUT", raising=False)
    monkeypatch.setenv("NSYSMAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(program, "INSTALL_FOLDERS", ())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "reports" / "a.nsys-rep"
    path.parent.mkdir()
    path.write_bytes(HEADER + b"body")
    return path


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Makes a script that answers --version, runs `body` (Python; `out` is the -o path) for export,
    and is put on PATH.
    """

    def make(
        body: str = "export()", *, version: str = "2023.4.4.54-1v0", folder: str = "bin"
    ) -> Path:
        script = tmp_path / folder / "nsys"
        script.parent.mkdir(exist_ok=True, parents=True)
        script.write_text(
            f"#!{sys.executable}\nimport os, signal, sqlite3, sys, time\nif sys.argv[1] =="
            f" '--version':\n    print('NVIDIA Nsight Systems version {version}'); sys.exit()\nout"
            " = next(a.split('=', 1)[1] for a in sys.argv if a.startswith('--output='))\ndef"
            " export():\n    c = sqlite3.connect(out); c.execute('CREATE TABLE StringIds (id"
            f" INTEGER PRIMARY KEY, value TEXT)')\n    c.commit(); c.close()\n{body}\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(script.parent))
        return script

    return make


def error_of(path: Path) -> NsysmapError:
    """What is told of a report that nsys cannot export, where it is nsys that shall."""
    with pytest.raises(NsysmapError) as caught:
        open_trace(path, reader="nsys")
    assert "\n" not in str(caught.value)
    return caught.value


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    finally:
        connection.close()


# --- the version in the report
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (b"NVIDIA Tegra Profiler Report 2023@4@4@54-234433681190v0.\n", "2023.4.4.54"),
        (b"NVIDIA Tegra Profiler Report 2026@2@1@210-1v0.\n\x0b", "2026.2.1.210"),
        (b"NVIDIA Nsight Systems Report 2025.6.3.541-1\n", "2025.6.3.541"),
    ],
)
def test_the_version_is_read_off_the_first_line(tmp_path: Path, line: bytes, version: str) -> None:
    path = tmp_path / "a.nsys-rep"
    path.write_bytes(line + b"\x00\xff")
    assert report_version(path) == version


@pytest.mark.parametrize(
    "line",
    [
        b"NVIDIA Tegra Profiler Report 1.\n\x0bLocal",
        b"NVIDIA Tegra Profiler Report 36398880.\n\x0bLocal",
    ],
)
def test_a_report_whose_first_line_names_no_version_is_handed_to_nsys(
    stand_in: StandIn, report: Path, line: bytes
) -> None:
    report.write_bytes(line)
    assert report_version(report) is None
    stand_in()
    assert tables(export(report)) == {"StringIds"}


def test_where_a_report_names_no_version_a_newer_nsys_is_tried_after_the_first(
    stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report.write_bytes(b"NVIDIA Tegra Profiler Report 36398880.\n\x0bLocal")
    stand_in("export()", version="2025.3.2.1", folder="nsight/2025.3.2/bin")
    stand_in("sys.exit('must not be run')", version="2021.3.2.1", folder="nsight/2021.3.2/bin")
    stand_in("sys.exit('std::exception::what: ProtobufParseException')", version="2023.4.4.54")
    error = error_of(report)
    assert "by nsys 2023.4.4.54" in error.what
    assert "the newest Nsight" in error.remedy
    monkeypatch.setattr(program, "INSTALL_FOLDERS", (f"{tmp_path}/nsight/*/bin",))
    assert "2025.3.2.1" in export(report).name


def test_a_newer_version_that_nsys_itself_names_is_told(stand_in: StandIn, report: Path) -> None:
    report.write_bytes(b"NVIDIA Tegra Profiler Report 36398880.\n\x0bLocal")
    stand_in(
        "sys.exit('Exportation error: Report was created in Nsight Systems version"
        " (2026.1.1.204-1v0), newer than yours')"
    )
    assert "newer than the nsys 2023.4.4.54" in error_of(report).what


@pytest.mark.parametrize(
    ("name", "content", "what", "remedy"),
    [
        ("a.nsys-rep", b"", "is empty", "copy it again"),
        ("a.nsys-rep", b"NVIDIA Tegra Pro", "cut off", "copy it again"),
        ("a.nsys-rep", b"NVIDIA Tegra Profiler Report ", "cut off", "copy it again"),
        ("a.nsys-rep", b"SQLite format 3\0....", "SQLite file cut short", "copy it again"),
        ("a.nsys-rep", b"\x7fELF....", "program or a library", "nsys export"),
        ("a.nsys-rep", b"\x00\x01\x02.....", "begins with bytes 00 01 02", "nsys export"),
        (
            "a.nsys-rep",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:46",
            "Git LFS pointer",
            "git lfs pull",
        ),
        ("a.nsys-rep", b"\x1f\x8b\x08....", "gzip", "gunzip"),
        ("a.ncu-rep", b"NVR\0....", "Nsight Compute", "nsys profile"),
        ("a.json", b'{"schemaVersion": 1, "traceEvents": []}', "Chrome trace", "nsys export"),
        ("a.nsys-rep", b' {"Layers": []}', "JSON", "give the report"),
        ("model.plan", b"ftrt....", "TensorRT engine", "give the report"),
        ("a.qdstrm", b"\x00\x01", "QDSTRM", "QdstrmImporter"),
    ],
)
def test_a_file_that_is_no_report_is_named_with_the_remedy(
    tmp_path: Path, name: str, content: bytes, what: str, remedy: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    error = error_of(path)
    assert error.where == str(path)
    assert what in error.what
    assert remedy in error.remedy


def test_a_missing_file_a_folder_and_a_pipe_are_told_apart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no such file" in error_of(tmp_path / "none.nsys-rep").what
    assert "is a folder" in error_of(tmp_path).what
    assert "is a pipe" in error_of(tmp_path / "pipe").what
    assert "cannot be read" in error_of(tmp_path / ("x" * 300)).what


# --- finding nsys
# --------------------------------------------------------------------------------------------------


def test_without_any_nsys_the_remedy_names_the_export_that_needs_none(
    report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = error_of(report)
    assert "install Nsight Systems" in error.remedy
    assert "nsys export -t sqlite" in str(error)


def test_NSYS_goes_before_path_and_a_wrong_one_is_an_error(  # noqa: N802
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = stand_in(version="2025.1.1.1", folder="other")
    on_path = stand_in(version="2024.1.1.1")
    assert find_nsys() == Nsys(on_path, "2024.1.1.1")
    monkeypatch.setenv("NSYS", str(other))
    assert find_nsys() == Nsys(other, "2025.1.1.1")
    monkeypatch.setenv("NSYS", str(other) + "-gone")
    with pytest.raises(NsysmapError, match="NSYS="):
        find_nsys()


def test_the_newest_of_an_install_folder_is_taken(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("2023.9.1", "2023.10.1", "2022.5.1"):
        stand_in(version=f"{version}.7", folder=f"nsight/{version}/bin")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(program, "INSTALL_FOLDERS", (f"{tmp_path}/nsight/*/bin",))
    assert find_nsys().version == "2023.10.1.7"


def test_a_newer_nsys_elsewhere_is_taken_where_the_one_on_path_is_older_than_the_report(
    stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(version="2026.1.1.1", folder="nsight/2026.1.1/bin")
    stand_in("sys.exit('must not be run')", version="2022.1.1.1")
    monkeypatch.setattr(program, "INSTALL_FOLDERS", (f"{tmp_path}/nsight/*/bin",))
    assert "2026.1.1.1" in export(report).name


def test_a_broken_nsys_on_path_is_passed_over(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(version="2026.1.1.1", folder="nsight/2026.1.1/bin")
    stand_in(version="unknown")
    with pytest.raises(NsysmapError, match="not answer --version"):
        find_nsys()
    monkeypatch.setattr(program, "INSTALL_FOLDERS", (f"{tmp_path}/nsight/*/bin",))
    assert find_nsys().version == "2026.1.1.1"


# --- the cache
# --------------------------------------------------------------------------------------------------


def test_an_export_is_made_once_and_found_by_content_whatever_the_name(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    stand_in("open(sys.argv[0] + '.runs', 'a').write('x'); export()")
    first = export(report)
    copy = report.with_name("renamed.nsys-rep")
    copy.write_bytes(report.read_bytes())
    assert export(copy) == first
    assert Path(os.environ["PATH"], "nsys.runs").read_text() == "x"
    assert tables(first) == {"StringIds"}
    assert [path.name for path in cache.iterdir()] == [first.name]


def test_other_content_or_another_nsys_is_another_export(stand_in: StandIn, report: Path) -> None:
    stand_in()
    first = export(report)
    stand_in(version="2024.1.1.1")
    second = export(report)
    report.write_bytes(report.read_bytes() + b"more")
    assert len({first, second, export(report)}) == 3


def test_an_export_made_earlier_serves_when_nsys_is_gone(
    stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in()
    first = export(report)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert export(report) == first


def test_nothing_is_written_beside_the_report_and_others_cannot_read_the_export(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    stand_in("open('stray.txt', 'w').write('x'); export()")
    made = export(report)
    assert [path.name for path in report.parent.iterdir()] == ["a.nsys-rep"]
    assert [path.name for path in cache.iterdir()] == [made.name]
    assert made.stat().st_mode & 0o077 == 0


def test_percentages_are_passed_on_rising(stand_in: StandIn, report: Path) -> None:
    stand_in(
        "for n in (1, 50, 50, 100): print(f'Processing 7 events: [==={n}%   ]', end='\\r',"
        " flush=True)\nexport()"
    )
    seen: list[int] = []
    export(report, progress=seen.append)
    assert seen
    assert seen == sorted(set(seen))
    assert seen[-1] == 100


def test_the_cache_is_under_xdg_cache_home_and_else_under_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NSYSMAP_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "nsysmap"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / "home" / ".cache" / "nsysmap"


def test_clearing_removes_exports_and_leftovers_of_killed_runs_and_nothing_else(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    stand_in()
    made = export(report)
    size = made.stat().st_size
    (cache / "notes.sqlite").write_text("mine")
    killed = cache / "export-killed"
    killed.mkdir()
    (killed / "made-by-nsysmap").write_bytes(MARK_TEXT)
    (killed / "report.sqlite").write_bytes(b"12345")
    assert [entry.path for entry in cached()] == [made]
    assert clear_cache() == Cleared(files=2, size_bytes=size + 5)
    assert [path.name for path in cache.iterdir()] == ["notes.sqlite"]
    assert clear_cache() == Cleared(files=0, size_bytes=0)


def test_folders_of_others_that_are_named_like_ours_are_never_removed(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    stand_in()
    theirs = [
        cache / name for name in ("export-thesis", "export-empty", "export-pipe", "export-link")
    ]
    for folder in theirs[:3]:
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    (theirs[0] / "data.txt").write_text("precious")
    os.mkfifo(theirs[2] / "made-by-nsysmap")
    theirs[3].symlink_to(theirs[0])
    (theirs[0] / "made-by-nsysmap").write_text("no, by me")
    made = export(report)
    assert clear_cache().files == 1
    assert sorted(cache.iterdir()) == sorted(theirs)
    assert (theirs[0] / "data.txt").read_text() == "precious"
    assert not made.exists()


def test_a_cached_export_that_was_cut_short_is_made_anew(stand_in: StandIn, report: Path) -> None:
    stand_in()
    made = export(report)
    whole = made.read_bytes()
    made.write_bytes(whole[:4096])
    assert export(report) == made
    assert made.read_bytes() == whole


def test_clearing_a_cache_that_does_not_exist_makes_nothing(cache: Path) -> None:
    assert clear_cache() == Cleared(files=0, size_bytes=0)
    assert not cache.exists()


def test_two_processes_exporting_the_same_report_both_get_the_whole_export(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    stand_in("print('1%', flush=True); time.sleep(0.5); export()")
    code = (
        "import sys; from pathlib import Path; from nsysmap.inputs.nsys.export import export;"
        " print(export(Path(sys.argv[1])))"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, report], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    made = {run.communicate(timeout=60)[0].strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert [str(path) for path in cache.iterdir()] == sorted(made)
    assert tables(Path(made.pop())) == {"StringIds"}


# --- what goes wrong
# -------------------------------------------------------------------------------------------------


def test_an_nsys_older_than_the_report_is_told_with_both_versions(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    script = stand_in("sys.exit('Exportation error: Report is newer')", version="2022.1.3.3")
    error = error_of(report)
    assert "2023.4.4.54" in error.what
    assert f"2022.1.3.3 found at {script}" in error.what
    assert "install nsys 2023.4.4.54 or newer" in error.remedy
    assert list(cache.iterdir()) == []


def test_of_a_failed_export_only_the_last_error_line_is_told(
    stand_in: StandIn, report: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    stand_in(
        "print('ENV SECRET=1')\n"
        "print('Processing 9 events: [==12%   ]Exportation error: '\n"
        "      '\\x1b[31mbad section in /home/somebody/a.nsys-rep')\n"
        "print('SECRET=2'); open(out, 'w').write('half'); sys.exit(1)"
    )
    error = error_of(report)
    assert error.what.endswith("Exportation error: [31mbad section in ~/a.nsys-rep")
    assert "SECRET" not in str(error)
    assert list(cache.iterdir()) == []


def test_a_full_disk_gets_its_own_remedy(stand_in: StandIn, report: Path) -> None:
    stand_in("sys.exit('Exportation error: database or disk is full')")
    assert "free disk space" in error_of(report).remedy


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "open(out, 'w').write('half')",
        "open(out, 'w')",
        "export(); open(out + '-journal', 'w').write('x')",
    ],
)
def test_an_export_that_is_not_whole_is_refused_though_nsys_said_nothing(
    stand_in: StandIn, report: Path, cache: Path, body: str
) -> None:
    stand_in(body)
    assert "export failed" in error_of(report).what
    assert list(cache.iterdir()) == []


def test_an_nsys_that_is_killed_is_told_as_interrupted(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    stand_in("open(out, 'w').write('half'); os.kill(os.getpid(), signal.SIGKILL)")
    error = error_of(report)
    assert "export interrupted" in error.what
    assert "SIGKILL" in error.what
    assert list(cache.iterdir()) == []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("quiet", ["time.sleep(600)", "os.close(1); os.close(2); time.sleep(600)"])
def test_an_nsys_that_hangs_is_ended_after_the_limit(
    stand_in: StandIn, report: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, quiet: str
) -> None:
    script = stand_in(f"open(sys.argv[0] + '.pid', 'w').write(str(os.getpid())); {quiet}")
    monkeypatch.setenv("NSYSMAP_NSYS_TIMEOUT", "0.5")
    error = error_of(report)
    assert "nothing for 0.5 s" in error.what
    assert "NSYSMAP_NSYS_TIMEOUT" in error.remedy
    assert list(cache.iterdir()) == []
    assert not alive(int(Path(f"{script}.pid").read_text()))


def test_children_that_nsys_leaves_are_ended_with_it(stand_in: StandIn, report: Path) -> None:
    script = stand_in(
        "if os.fork() == 0:\n    open(sys.argv[0] + '.pid', 'w').write(str(os.getpid()));"
        " time.sleep(600)\nwhile not os.path.exists(sys.argv[0] + '.pid'):"
        " time.sleep(0.01)\nexport()"
    )
    assert export(report).is_file()
    child = int(Path(f"{script}.pid").read_text())
    for _ in range(100):  # it is killed, and dies when the kernel comes to it
        if not alive(child):
            return
        time.sleep(0.05)
    pytest.fail("the child goes on")


def test_an_export_ends_with_nsys_though_its_child_prints_for_ever(
    stand_in: StandIn, report: Path
) -> None:
    stand_in("if os.fork() == 0:\n    while True: print('x', flush=True)\nexport()")
    started = time.monotonic()
    assert export(report).is_file()
    assert time.monotonic() - started < 60


def test_a_flood_for_a_version_is_read_to_an_end_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "nsys"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nwhile True: print('y' * 1000)\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    started = time.monotonic()
    with pytest.raises(NsysmapError, match="not answer --version"):
        find_nsys()
    assert time.monotonic() - started < program._VERSION_LIMIT_S


def test_an_nsys_that_goes_on_printing_is_not_hung(
    stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("for n in range(8): print(f'[={n}%  ]', flush=True); time.sleep(0.2)\nexport()")
    monkeypatch.setenv("NSYSMAP_NSYS_TIMEOUT", "1")
    assert export(report).is_file()


@pytest.mark.parametrize("told", ["soon", "0", "-3", "nan", "inf"])
def test_a_limit_that_is_no_number_of_seconds_is_an_error(
    stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    stand_in()
    monkeypatch.setenv("NSYSMAP_NSYS_TIMEOUT", told)
    assert "not a positive number" in error_of(report).what


def test_ctrl_c_ends_nsys_and_leaves_nothing_behind(
    stand_in: StandIn, report: Path, cache: Path
) -> None:
    script = stand_in(
        "open(out, 'w').write('half'); open(sys.argv[0] + '.pid', 'w').write(str(os.getpid()));"
        " print('1%', flush=True); time.sleep(600)"
    )
    code = (
        "import sys; from pathlib import Path; from nsysmap.inputs.nsys.export import export;"
        " export(Path(sys.argv[1]))"
    )
    run = subprocess.Popen([sys.executable, "-c", code, report], stderr=subprocess.PIPE, text=True)
    pid_file = Path(f"{script}.pid")
    for _ in range(600):
        if pid_file.exists() and pid_file.read_text():
            break
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in run.communicate(timeout=60)[1]
    assert list(cache.iterdir()) == []
    assert not alive(int(pid_file.read_text()))


@pytest.mark.parametrize("place", ["file", "under a file", "too long"])
def test_a_cache_that_cannot_be_written_is_named(
    stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    stand_in()
    (tmp_path / "taken").write_text("x")
    folder = {
        "file": tmp_path / "taken",
        "under a file": tmp_path / "taken" / "cache",
        "too long": tmp_path / ("a" * 300),
    }[place]
    monkeypatch.setenv("NSYSMAP_CACHE", str(folder))
    error = error_of(report)
    assert error.where == str(folder)
    assert "NSYSMAP_CACHE" in error.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_cache_is_named(stand_in: StandIn, report: Path, cache: Path) -> None:
    stand_in()
    cache.mkdir(mode=0o500)
    assert "cannot be written" in error_of(report).what


# --- with the nsys of this machine
# -----------------------------------------------------------------------------------


@needs_nsys
def test_the_real_nsys_exports_a_fixture(cache: Path) -> None:
    before = sorted(FIXTURE.parent.iterdir())
    seen: list[int] = []
    made = export(FIXTURE, progress=seen.append)
    assert {"CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "META_DATA_EXPORT"} <= tables(made)
    assert seen[-1] == 100
    assert sorted(FIXTURE.parent.iterdir()) == before
    assert list(cache.iterdir()) == [made]


@needs_nsys
@pytest.mark.parametrize("kept", [100, 20_000, 200_000, -1])
def test_a_truncated_report_is_told_by_the_real_nsys_and_leaves_nothing(
    tmp_path: Path, cache: Path, kept: int
) -> None:
    path = tmp_path / "cut.nsys-rep"
    path.write_bytes(FIXTURE.read_bytes()[:kept])
    error = error_of(path)
    assert error.what.startswith("export failed with nsys")
    assert "copy it again" in error.remedy
    assert list(cache.iterdir()) == []


@needs_nsys
def test_a_report_of_a_newer_nsys_is_told_by_the_real_nsys(tmp_path: Path) -> None:
    path = tmp_path / "newer.nsys-rep"
    path.write_bytes(FIXTURE.read_bytes().replace(b"2023@4@4@54-", b"2093@4@4@54-", 1))
    error = error_of(path)
    assert "nsys 2093.4.4.54, newer" in error.what


@pytest.mark.parametrize("how", ["another user", "others can write", "a link", "a pipe"])
def test_an_export_that_may_be_somebody_elses_is_made_anew(
    how: str,
    stand_in: StandIn,
    report: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in()
    kept = export(report)
    theirs = tmp_path / "theirs.sqlite"
    shutil.copy(FIXTURES / "bert_trt10" / "sync.sqlite", theirs)
    kept.unlink()
    if how == "a link":
        kept.symlink_to(theirs)
    elif how == "a pipe":
        os.mkfifo(kept)
    else:
        shutil.copy(theirs, kept)
        kept.chmod(0o666 if how == "others can write" else 0o600)
    if how == "another user":
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        assert not is_own(kept)
        monkeypatch.undo()
        return
    assert "NVTX_EVENTS" not in tables(export(report))
    assert is_own(kept)
    assert [path.name for path in cache.iterdir()] == [kept.name]


@pytest.mark.parametrize("body", ["sys.exit(1)", "open(out, 'w').write('half')"])
def test_a_full_disk_is_told_as_that(
    body: str, stand_in: StandIn, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(body)
    free = shutil.disk_usage(report)._replace(free=3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    assert "disk is full" in error_of(report).what


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed here")
def test_a_link_in_the_cache_is_not_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"0123456789")
    path.chmod(0o600)
    link.symlink_to(path)
    assert own_bytes(path) == b"0123456789"
    assert own_bytes(path, 4) == b"0123"
    with pytest.raises(OSError, match="b"):
        own_bytes(link)
