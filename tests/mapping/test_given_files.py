"""Which of the given files is the report: told by content, in whichever order they are given."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.mapping.given_files import GivenFiles, given_files, is_likely_report, one_engine
from tests.places import FIXTURES

CAPTURE = FIXTURES / "bert_trt10"
ENGINE = str(CAPTURE / "engine.json")


@pytest.mark.parametrize("report", ["sync.nsys-rep", "sync.sqlite"])
def test_the_report_is_found_wherever_it_stands(report: str) -> None:
    files = [str(CAPTURE / report), ENGINE, str(CAPTURE / "profile.json")]
    for order in itertools.permutations(files):
        assert given_files(order) == GivenFiles(
            files[0], tuple(path for path in order if path != files[0])
        )


def test_the_name_counts_only_where_the_content_says_nothing(tmp_path: Path) -> None:
    named_engine = tmp_path / "engine.json"
    named_engine.write_bytes((CAPTURE / "sync.sqlite").read_bytes()[:4096])
    named_report = tmp_path / "run.sqlite"
    named_report.write_text('["conv1"]')
    assert given_files([str(named_report), str(named_engine)]).report == str(named_engine)


def test_an_export_in_a_folder_and_one_as_json_lines_are_reports(tmp_path: Path) -> None:
    lines = tmp_path / "export.json"
    lines.write_text('{"data":["a"]}\n')
    assert given_files([ENGINE, str(lines)]).report == str(lines)
    assert given_files([ENGINE, str(tmp_path)]).report == str(tmp_path)


def test_what_is_packed_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    report, engine = tmp_path / "a.gz", tmp_path / "b.gz"
    report.write_bytes(gzip.compress((CAPTURE / "sync.nsys-rep").read_bytes()[:100]))
    engine.write_bytes(gzip.compress(b'{"Layers": []}'))
    assert given_files([str(engine), str(report)]).report == str(report)


def test_a_missing_file_is_the_report_by_its_suffix_and_the_engine_otherwise() -> None:
    assert given_files([ENGINE, "none.nsys-rep"]).report == "none.nsys-rep"
    assert given_files(["none.json", str(CAPTURE / "sync.sqlite")]).engines == ("none.json",)
    assert given_files(["none", "neither"]).report == "none"


def test_two_reports_are_one_too_many() -> None:
    with pytest.raises(NsysmapError, match="second report"):
        given_files([str(CAPTURE / "sync.nsys-rep"), ENGINE, str(CAPTURE / "sync.sqlite")])


def test_an_empty_path_is_named_for_what_it_is() -> None:
    with pytest.raises(NsysmapError, match="an empty text"):
        given_files([str(CAPTURE / "sync.sqlite"), ""])


def test_of_a_command_about_one_engine_the_report_may_be_missing_and_the_engine_may_not() -> None:
    report = str(CAPTURE / "sync.sqlite")
    assert one_engine([ENGINE], str.__add__) == (ENGINE, None)
    assert (
        one_engine([report, ENGINE], str.__add__)
        == one_engine([ENGINE, report], str.__add__)
        == (ENGINE, report)
    )
    with pytest.raises(NsysmapError, match="not an engine"):
        one_engine([report], str.__add__)
    with pytest.raises(NsysmapError, match="second engine file") as told:
        one_engine(
            ["a b.engine.json", report, "b.json"],
            lambda files, name: f"nsysmap graph {files} -o {name}.svg",
        )
    pair = (
        f"nsysmap graph 'a b.engine.json' {report} -o 'a b'.svg; nsysmap graph b.json {report} -o"
        " b.svg"
    )
    assert str(told.value).endswith(f"run it once for each: {pair}")
    with pytest.raises(NsysmapError, match=r"-o engine1; .* -o engine2$"):
        one_engine(
            ["a/engine.json", report, "b/engine.json"], lambda files, name: f"{files} -o {name}"
        )


@pytest.mark.parametrize(
    ("name", "data", "likely"),
    [
        ("a.nsys-rep", b"", True),
        ("a.qdrep", b"", True),
        ("a.qdstrm", b"", True),
        ("a.SQLITE", b"", True),
        ("a.engine", b"", False),
        ("a.plan", b"", False),
        ("a.trt", b"", False),
        ("a.rtx", b"", False),
        ("a.json", b"", False),
        ("a.onnx", b"\0\1\2", False),
        ("a.bin", b"", True),  # undecided
        ("a.bin", b"\0\1\2", True),
        ("a.txt", b"some text", False),
        ("a.sqlite", b"ftrt....", False),  # a plan by its first bytes
    ],
)
def test_what_a_file_is_by_its_bytes_and_else_by_its_suffix(
    name: str, data: bytes, likely: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    assert is_likely_report(str(tmp_path / name)) == likely


def test_a_name_says_more_than_nothing_and_less_than_the_bytes(tmp_path: Path) -> None:
    named, unknown, sure = tmp_path / "a.qdrep", tmp_path / "b.bin", tmp_path / "c.bin"
    named.write_bytes(b"")
    unknown.write_bytes(b"\0\1")
    sure.write_bytes(b"SQLite format 3\0")
    assert given_files([str(unknown), str(named)]).report == str(named)
    assert given_files([str(named), str(sure), ENGINE]).report == str(sure)
    folder = tmp_path / "folder.json"
    folder.mkdir()
    assert is_likely_report(str(folder))
