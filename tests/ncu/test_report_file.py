"""Nsight Compute's reports are read through its program, where it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.ncu import report_file
from nsysmap.inputs.ncu.printed import read_ncu_csv
from nsysmap.inputs.ncu.report_file import read_ncu

CSV = Path(__file__).parent / "data" / "ncu_raw.csv"


def program(folder: Path, script: str) -> Path:
    """A stand-in for ncu."""
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"NVR\0" + bytes(60))
    return path


def test_a_report_is_what_ncu_prints_of_it(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    monkeypatch.setenv("NCU", str(program(tmp_path, f'echo "$@" >> {asked}; cat {CSV}')))
    assert read_ncu(report) == read_ncu_csv(CSV)
    pages = [line.split() for line in asked.read_text().splitlines()]
    assert pages == [
        ["--import", str(report), "--csv", "--page", page] for page in ("raw", "session")
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--set basic --cache-control none --clock-control=none", ("left alone", "left alone")),
        ("--clock-control none -o report", ("emptied", "left alone")),
        ("--set full", ("emptied", "locked")),
        (None, (None, None)),
    ],
)
def test_the_command_line_of_a_report_tells_the_conditions(
    options: str | None,
    told: tuple[str | None, str | None],
    report: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page ``session`` as ncu 2025.3 prints it; older versions have no such page."""
    session = (
        'Launch Settings\n"Launch Attribute","Value"\n"Profiler Command Line","/opt/ncu -f'
        f' {options} app"\n'
    )
    (tmp_path / "session").write_text(session)
    shown = "exit 1" if options is None else f"cat {tmp_path / 'session'}"
    monkeypatch.setenv(
        "NCU", str(program(tmp_path, f'case "$*" in *session) {shown};; *) cat {CSV};; esac'))
    )
    assert {(each.conditions.caches, each.conditions.clocks) for each in read_ncu(report)} == {told}


def test_a_csv_needs_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCU", str(tmp_path / "none"))
    assert read_ncu(CSV) == read_ncu_csv(CSV)


def test_without_the_program_what_to_do_is_said(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NCU", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(report_file, "INSTALL_FOLDERS", ())
    with pytest.raises(NsysmapError, match=r"not found.*--csv --page raw"):
        read_ncu(report)


def test_what_ncu_says_of_a_report_that_it_cannot_read_is_passed_on(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "NCU", str(program(tmp_path, 'echo "==ERROR== The report is too new" >&2; exit 9'))
    )
    with pytest.raises(NsysmapError, match=r"status 9\): ==ERROR== The report is too new"):
        read_ncu(report)


def test_a_program_that_prints_no_table_is_an_error_of_one_line(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCU", str(program(tmp_path, "echo hello")))
    with pytest.raises(NsysmapError, match="Nsight Compute table"):
        read_ncu(report)


def test_an_ncu_that_is_not_there_is_named(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCU", "/nowhere/ncu")
    with pytest.raises(NsysmapError, match="NCU=/nowhere/ncu"):
        read_ncu(report)


def test_a_missing_file_is_the_user_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(NsysmapError, match="cannot be read"):
        read_ncu(tmp_path / "none.ncu-rep")
