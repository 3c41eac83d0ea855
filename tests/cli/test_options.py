"""What several commands share: files in any order, outputs in several formats, quiet runs, what
--fail-on says.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import run
from tests.places import FIXTURES

CAPTURE = FIXTURES / "bert_trt10"
REPORT, ENGINE = CAPTURE / "sync.sqlite", CAPTURE / "engine.json"
COMMANDS: dict[str, tuple[str, ...]] = {
    "analyze": (),
    "map": ("-o", "-"),
    "what-if": ("--change", "cuda-graph", "--json"),
    "layers": ("--json",),
    "graph": ("-o", "out.svg"),
    "export": ("--trex", ".", "--force"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_report_and_engine_may_stand_in_either_order(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = []
    for files in ((REPORT, ENGINE), (ENGINE, REPORT)):
        done = run(capfd, command, *files, *COMMANDS[command])
        assert done.status == 0, done.err
        told.append((done, {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}))
    assert told[0] == told[1]


def test_outputs_of_several_formats_are_written_by_one_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for command, suffixes in (
        ("map", ("csv", "parquet", "json")),
        ("graph", ("svg", "dot", "html")),
    ):
        outputs = [part for suffix in suffixes for part in ("-o", tmp_path / f"{command}.{suffix}")]
        assert run(capfd, command, ENGINE, REPORT, *outputs).status == 0
        assert sorted(path.name for path in tmp_path.glob(f"{command}.*")) == sorted(
            f"{command}.{suffix}" for suffix in suffixes
        )


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("analyze", ("-o", "a.json")),
        ("map", ("-o", "a.csv")),
        ("graph", ("-o", "a.svg")),
        ("export", ("--trex", ".")),
    ],
)
def test_a_quiet_run_writes_its_files_and_prints_nothing(
    command: str,
    output: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(capfd, command, "-q", REPORT, ENGINE, *output)
    assert (done.status, done.out, done.err) == (0, "", "")
    assert list(tmp_path.iterdir())


def test_a_quiet_run_still_says_what_is_wrong(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "analyze", "-q", "none.nsys-rep")
    assert (done.status, done.out) == (2, "")
    assert "no such file" in done.err


def test_fail_on_says_on_standard_error_what_failed_and_why(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(
        capfd,
        "analyze",
        "-q",
        CAPTURE / "graph_whole.sqlite",
        ENGINE,
        "--fail-on",
        "error",
        "-o",
        tmp_path / "a.json",
    )
    found = [
        row
        for row in json.loads((tmp_path / "a.json").read_text())["findings"]
        if row["severity"] == "error"
    ]
    assert (done.status, done.out) == (1, "")
    lines = done.err.splitlines()
    assert (
        lines[0]
        == f"nsysmap: failed: {len(found)} finding of severity error or higher (--fail-on error)"
    )
    assert lines[1:] == [f"  error {row['rule']}: {row['message']}" for row in found]


def test_a_run_that_does_not_fail_says_nothing_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "analyze", "-q", REPORT, ENGINE, "--fail-on", "error")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_no_output_names_the_folders_of_the_files(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("--json",), ("--findings",), ("--precision",)):
        done = run(capfd, "layers", ENGINE, *arguments)
        assert (done.status, str(CAPTURE) in done.out) == (0, False)
    assert json.loads(run(capfd, "layers", ENGINE, "--json").out)["source"] == "engine.json"


def test_the_settings_of_the_current_folder_count_for_every_way_to_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from nsysmap import analyze

    monkeypatch.chdir(tmp_path)
    (tmp_path / "nsysmap.toml").write_text("[rules.no-such-rule]\nx = 1\n")
    told = [run(capfd, "analyze", REPORT, ENGINE), run(capfd, "layers", ENGINE, "--findings")]
    assert [(done.status, "no-such-rule" in done.err) for done in told] == [(2, True), (2, True)]
    with pytest.raises(Exception, match="no-such-rule"):
        analyze(REPORT, ENGINE)


def test_findings_and_precision_of_an_engine_file_alone(capfd: pytest.CaptureFixture[str]) -> None:
    split = FIXTURES / "bert_split_trt10"
    findings = run(
        capfd, "layers", split / "engine.json", "--profile", split / "profile.json", "--findings"
    ).out
    assert "norm-split" in findings
    assert "could not tell: " in findings
    precision = run(capfd, "layers", ENGINE, REPORT, "--precision").out
    assert "by layer" in precision
    assert "FP16" in precision
    assert run(capfd, "layers", ENGINE, REPORT, "--findings", "--precision").status == 2


def test_findings_on_an_engine_have_the_times_of_a_report(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = run(capfd, "layers", ENGINE, REPORT, "--findings")
    assert told.status == 0
    assert re.search(r"attention-not-fused, 1\d\.\d+ µs per inference", told.out)
    found = {
        row["rule"]
        for row in json.loads(run(capfd, "analyze", REPORT, ENGINE, "--json").out)["findings"]
    }
    assert {rule for rule in found if rule not in told.out} == set()


def test_what_was_not_fused_can_be_asked_for_alone(capfd: pytest.CaptureFixture[str]) -> None:
    told = run(capfd, "layers", ENGINE, REPORT, "--not-fused").out
    every = run(capfd, "layers", ENGINE, REPORT, "--findings").out
    (row,) = (
        line.strip()
        for line in run(capfd, "analyze", REPORT, ENGINE, "--full").out.splitlines()
        if line.startswith("  not fused   ")
    )
    assert (
        told.splitlines()[0].removeprefix("not fused: ")[:25]
        == row.removeprefix("not fused").strip()[:25]
    )
    for text, rules in (
        (told, {"attention-not-fused", "epilogue-missed", "pointwise-chain"}),
        (every, {"under-filled-gpu"}),
    ):
        shown = set(re.findall(r"^(?:error|warning|info) +([a-z-]+)", text, re.MULTILINE))
        assert rules <= shown, shown
    assert not {"under-filled-gpu", "launch-bound", "cuda-graph-would-help"} & set(
        re.findall(r"[a-z-]+", told)
    )
    alone = run(capfd, "layers", ENGINE, "--not-fused").out
    assert (
        alone.startswith("warning  attention-not-fused\n")
        and "rules about fusion that could tell" in alone
    )
    assert run(capfd, "layers", ENGINE, REPORT, "--not-fused", "--precision").status == 2


@pytest.mark.parametrize("color", ["time", "kind", "precision"])
def test_the_picture_is_coloured_as_asked(
    color: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pictures = []
    for chosen in (color, "kind" if color != "kind" else "time"):
        path = tmp_path / f"{chosen}.svg"
        assert run(capfd, "graph", ENGINE, REPORT, "--color", chosen, "-o", path).status == 0
        pictures.append(path.read_text())
    assert pictures[0] != pictures[1]


def test_repeated_blocks_become_one_box(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sizes = {}
    for collapse in ("none", "block"):
        path = tmp_path / f"{collapse}.dot"
        assert run(capfd, "graph", ENGINE, "--collapse", collapse, "-o", path).status == 0
        sizes[collapse] = path.read_text().count("\n")
    assert sizes["block"] < sizes["none"] / 2


def test_what_if_leaves_out_the_layers_that_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    name = "/bert/encoder/layer.0/attention/output/dense/MatMul_myl0_5"
    told = run(
        capfd, "what-if", REPORT, ENGINE, "--change", "drop-layers", "--layer", name, "--json"
    )
    answer = json.loads(told.out)["whatif"][0]
    assert answer["change"] == "drop-layers"
    assert answer["saving_ns"] > 0
    unknown = run(
        capfd, "what-if", REPORT, ENGINE, "--change", "drop-layers", "--layer", "no such layer"
    )
    assert unknown.status == 2
    assert "has this name" in unknown.err
