"""`nsysmap layers`: fits 100 columns, keeps names from driving the terminal, fails in one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nsysmap.answer.costs import cost_rows
from nsysmap.api import analyze
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.output.layers import layers_json, layers_text
from nsysmap.text.units import rounded
from tests.places import FIXTURES


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "from nsysmap.cli.main import main; main()",
        "layers",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_table_fits_and_sums_by_kind() -> None:
    folder = FIXTURES / "bert_trt10"
    text = layers_text(
        read_engine(folder / "engine.json", profile=folder / "profile.json"), width=100
    )
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 100
    assert "57 layers" in lines[0]
    assert "240.8 µs in the profile" in text
    assert "bert/Sub + Mul" in text


def test_layers_sort_by_time_and_names_are_whole_in_a_pipe() -> None:
    folder = FIXTURES / "bert_trt10"
    engine = read_engine(folder / "engine.json", profile=folder / "profile.json")
    text = layers_text(engine, sort="time")
    times = [float(found) for found in re.findall(r"^ +\d+ +([\d.]+)  [a-z]", text, re.MULTILINE)]
    assert len(times) == 57
    assert times == sorted(times, reverse=True)
    assert all(layer.name in text for layer in engine.layers)
    assert layers_text(engine, sort="name").index("/bert/encoder") < layers_text(
        engine, sort="name"
    ).index("__myl")


def test_long_wide_and_hostile_names_stay_in_the_columns(tmp_path: Path) -> None:
    file = tmp_path / "engine.json"
    names = ["層" * 200, "\x1b[2J\nboo", "a" * 300]
    file.write_text(
        json.dumps(
            {
                "Layers": [
                    {
                        "Name": name,
                        "LayerType": "kgen",
                        "Inputs": [],
                        "Outputs": [],
                        "TacticName": name,
                    }
                    for name in names
                ]
            }
        ),
        encoding="utf-8",
    )
    text = layers_text(read_engine(file), width=100)
    assert "\x1b" not in text
    assert "\\x1b[2J\\nboo" in text
    assert max(len(line) + line.count("層") for line in text.splitlines()) <= 100


def test_an_engine_file_by_itself_names_what_answers_the_rest() -> None:
    folder = FIXTURES / "bert_trt10"
    engine = replace(read_engine(folder / "engine.json"), source="engine.json")
    first = layers_text(engine, width=80).splitlines()[:4]
    assert any("layers engine.json --not-fused" in line for line in first)
    assert any("graph engine.json -o" in line for line in first)
    assert "--not-fused" not in layers_text(
        read_engine(folder / "engine.json", profile=folder / "profile.json"), width=80
    )


def test_a_names_only_file_is_said_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "engine.json"
    file.write_text('["conv1", "__myl_Add_myl0_1"]', encoding="utf-8")
    text = layers_text(read_engine(file))
    assert "names only" in text
    assert "conv1" in text


def test_the_json_has_every_layer_with_units_in_the_names() -> None:
    folder = FIXTURES / "bert_trt10"
    value = json.loads(
        json.dumps(
            layers_json(read_engine(folder / "engine.json", profile=folder / "profile.json"))
        )
    )
    assert len(value["layers"]) == 57
    assert sum(layer["trtexec_ns"] for layer in value["layers"]) == 240_800
    assert value["layers"][1]["outputs"][0]["bytes"] == 128 * 768 * 2


def test_the_command_prints_the_table_and_exits_0() -> None:
    done = run(str(FIXTURES / "bert_trt10" / "engine.json"))
    assert done.returncode == 0
    assert "57 layers" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("content", ["{", "[1]", "", '{"Layers": []}'])
def test_a_bad_file_is_one_line_and_exit_2(tmp_path: Path, content: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(content, encoding="utf-8")
    done = run(str(file))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "bad.json" in done.stderr
    assert "Traceback" not in done.stderr


DECODE = FIXTURES / "decode_loop"
ENGINES = (str(DECODE / "context.engine.json"), str(DECODE / "generation.engine.json"))


def test_of_several_engines_each_has_its_own_layers_inferences_and_sum() -> None:
    told = run(*ENGINES, str(DECODE / "sync.nsys-rep"), "--sort", "time")
    assert told.returncode == 0, told.stderr
    analysis = analyze(DECODE / "sync.nsys-rep", ENGINES, rules=[])
    tables, first = analysis.tables, cost_rows(analysis.summary)[0]
    assert first.name in told.stdout.splitlines()[1]  # what the first screen names
    assert f" {rounded(first.time_ns)} " in told.stdout.splitlines()[1]
    pages = re.split(r"^(?=\w+\.engine\.json: 44 layers)", told.stdout, flags=re.MULTILINE)[1:]
    # the more costly first
    assert [page.partition(".")[0] for page in pages] == [
        "generation",
        "context",
    ]
    for engine, page, count in zip((1, 0), pages, (96, 3), strict=True):
        assert f"times of sync.nsys-rep: mean of {count} inferences" in page
        rows = re.findall(r"^ +\d+ +<?([\d.]+)% +([\d.]+)  \w+ ", page, re.MULTILINE)[:44]
        shares, shown = ([float(row[column]) for row in rows] for column in (0, 1))
        assert shares == sorted(shares, reverse=True)
        of_all = sum(cost.share for cost in cost_rows(analysis.summary) if cost.engine == engine)
        assert sum(shares) / 100 == pytest.approx(of_all, abs=0.0006 * len(shares))
        whole = re.search(r"by kind, ([\d.]+) µs in the trace", page)
        spent = sum(
            row.integer("time_ns")
            for row in tables.kernel_time
            if row.maybe_integer("engine") == engine
        )
        assert whole
        assert float(whole[1]) == pytest.approx(spent / count / 1e3, abs=0.06)
        assert sum(shown) == pytest.approx(float(whole[1]), abs=0.05 * len(shown))
    assert (
        pages[1].count("kernels have no layer") == told.stdout.count("kernels have no layer") == 1
    )  # what holds for the trace is said once
    value = json.loads(run(*ENGINES, str(DECODE / "sync.nsys-rep"), "--json").stdout)
    assert [engine["inferences"] for engine in value["engines"]] == [3, 96]


def test_a_mean_over_two_shapes_has_the_mean_of_each_beside_it() -> None:
    report, file = (
        str(FIXTURES / "two_shapes" / name) for name in ("sync.nsys-rep", "engine.json")
    )
    found = json.loads(run(report, file, "--json").stdout)
    (long_ones, short_ones), both = (
        (one["inferences"] for one in found["kinds"]),
        found["inferences"],
    )
    assert [one["kernels"] for one in found["kinds"]] == [48, 45]
    assert long_ones + short_ones == both > 40
    for layer in found["layers"]:
        if layer["time_ns"] is not None:
            assert layer["time_ns"] * both == pytest.approx(
                long_ones * layer["by_kind"][0] + short_ones * layer["by_kind"][1], abs=both
            )
    text = run(report, file).stdout
    whole = (
        f"mean of {both} inferences of this engine: {long_ones} of 48 kernels and {short_ones} of"
        " 45 kernels"
    )
    assert whole in " ".join(text.split())
    rows = re.findall(r"^ *\d+ +[\d.]+% +([\d.]+) +([\d.]+) +([\d.]+)  ", text, re.MULTILINE)
    assert len(rows) == 45
    for mean, long, short in (map(float, row) for row in rows):
        assert mean == pytest.approx((long_ones * long + short_ones * short) / both, abs=0.11)
    costs = " ".join(run(report, file, "--sort", "time").stdout.split())
    assert (
        "No inference takes these times: they are means over those of 48 kernels (26x) and 45"
        " kernels (22x)." in costs
    )
    alone = run(
        str(FIXTURES / "bert_trt10" / "sync.nsys-rep"),
        str(FIXTURES / "bert_trt10" / "engine.json"),
        "--sort",
        "time",
    ).stdout
    assert "No inference takes" not in alone
    assert "mean µs" not in alone


def test_a_finding_in_an_engine_whose_file_was_not_given_says_so() -> None:
    mixed = FIXTURES / "torch_mixed"
    both = [str(mixed / f"{name}.engine.json") for name in ("backbone", "head")]
    one, two = (
        " ".join(run(*files, str(mixed / "sync.nsys-rep"), "--findings").stdout.split())
        for files in (both[:1], both)
    )
    assert "self/MatMul" in one
    assert one.count("This is in an engine whose file was not given.") == 1
    assert "whose file was not given" not in two
    assert "13.5 µs per pass of 2 inferences" in two  # the unit and the figure of the first screen


def test_of_two_engines_with_equal_names_one_file_shows_its_own_inferences_and_says_so() -> None:
    report = str(FIXTURES / "decode_loop/sync.nsys-rep")
    for name, steady, others in (("context", 3, 96), ("generation", 96, 3)):
        shown = run(report, str(FIXTURES / f"decode_loop/{name}.engine.json")).stdout
        assert f"times of sync.nsys-rep: mean of {steady} inferences" in shown
        assert (
            f"warning: {others} of 99 inferences have layers of the names in {name}.engine.json and"
            " are of another engine" in shown
        )
    both = [str(FIXTURES / f"decode_loop/{name}.engine.json") for name in ("context", "generation")]
    assert "another engine" not in run(report, *both).stdout


@pytest.mark.parametrize(("name", "steady"), [("context", 3), ("generation", 96)])
def test_the_graph_of_one_of_two_engines_with_equal_names_has_the_times_of_its_own_inferences(
    name: str, steady: int, tmp_path: Path
) -> None:
    engine, report, out = (
        FIXTURES / f"decode_loop/{name}.engine.json",
        FIXTURES / "decode_loop/sync.nsys-rep",
        tmp_path / "engine.svg",
    )
    command = [
        sys.executable,
        "-c",
        "from nsysmap.cli.main import main; main()",
        "graph",
        str(engine),
        str(report),
        "-o",
        str(out),
    ]
    subprocess.run(command, check=True)
    assert f"mean of {steady} inferences in sync.nsys-rep" in out.read_text(encoding="utf-8")
