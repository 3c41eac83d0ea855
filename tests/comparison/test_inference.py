"""One inference beside the median one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.comparison.inference import OneInference, one_inference
from nsysmap.comparison.inference_page import inference_text
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import Table
from nsysmap.text.lines import rendered
from nsysmap.text.page import Grid
from nsysmap.text.page_lines import grid_lines
from tests.commands import run
from tests.places import FIXTURES

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"


@cache
def captured() -> Analysis:
    return analyze(SYNC, ENGINE, rules=[])


def told(which: str) -> OneInference:
    return one_inference(captured().tables.by_name(), "sync.sqlite", which)


@pytest.mark.parametrize("which", ["slowest", "p99", "0", "7"])
def test_what_its_time_went_to_adds_up(which: str) -> None:
    found = told(which)
    assert sum(one.ns for one in found.contributions) == found.time_ns - found.usual_ns
    assert sum(one.after_ns for one in found.contributions) == found.time_ns


def test_the_slowest_is_the_slowest_and_the_median_one_is_in_the_middle() -> None:
    assert told("slowest").rank == 1
    middle = told(str(told("slowest").usual))
    assert middle.time_ns == middle.usual_ns
    # beside the medians at each place, not beside itself
    assert {row["extra_ns"] for row in middle.kernels.records()} != {0}


def test_the_first_of_a_thread_has_no_rank_among_those_that_follow_another() -> None:
    tables = captured().tables
    warm = Table(
        tables.inferences.spec,
        {**tables.inferences.columns, "warmup": np.zeros(len(tables.inferences), np.bool_)},
    )
    first = one_inference({**tables.by_name(), "inferences": warm}, "sync.sqlite", "0")
    assert (first.rank, first.first) == (None, True)
    assert "none of them" in " ".join(inference_text(first).split())
    assert "from the slowest" in inference_text(told("7"))


def test_the_gap_that_made_it_slow_is_named_with_its_cause() -> None:
    found = told("slowest")
    worst = max(found.kernels.records(), key=lambda row: int(str(row["extra_ns"])))
    assert (worst["position"], worst["cause"], worst["evidence"]) == (
        21,
        "launch",
        "cudaLaunchKernel",
    )
    assert found.contributions[0].name == "idle: waiting for launches"
    assert worst["call_ns"] == 274_586  # the longest launch call of the capture
    assert "; waiting for launches: cudaLaunchKernel took 274.6 µs." in " ".join(
        inference_text(found).split()
    )


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (
            "decode_loop/sync.nsys-rep",
            (
                "waiting for launches: the host began cudaLaunchKernel 466.0 µs after the GPU went"
                " idle."
            ),
        ),
        ("bert_trt10/hostgap.nsys-rep", "nsys's own work: Chunk Allocation."),
    ],
)
def test_what_the_host_was_late_with_is_told(file: str, why: str) -> None:
    found = one_inference(analyze(FIXTURES / file, rules=[]).tables.by_name(), file, "slowest")
    assert f"; {why}" in " ".join(inference_text(found).split())


def test_of_a_run_in_phases_it_is_beside_the_median_one_of_its_phase() -> None:
    tables = analyze(FIXTURES / "two_processes" / "processes.nsys-rep", rules=[]).tables.by_name()
    groups = {
        row.integer("group_id"): row
        for row in tables["inference_groups"]
        if row.maybe_integer("phase") is not None
    }
    assert len(groups) == 2  # alone on the GPU, and beside the other process
    for row in tables["inference_times"]:
        group = groups.get(row.integer("group_id"))
        if group is not None and row.maybe_integer("time_ns") is not None:
            found = one_inference(tables, "processes.nsys-rep", str(row.integer("inference")))
            assert (found.like, found.usual) == (group.integer("steady"), row.integer("usual"))
            assert "in its phase" in " ".join(inference_text(found).split())
    assert not told("7").phases


def test_a_gap_that_is_little_of_the_difference_is_not_named_beside_what_passed_before_it_began() -> (  # noqa: E501
    None
):
    tables = analyze(FIXTURES / "torch_mixed" / "sync.nsys-rep", rules=[]).tables.by_name()
    text = " ".join(inference_text(one_inference(tables, "sync.nsys-rep", "1")).split())
    assert "657.8 µs" in text
    assert "345.4 µs" in text
    assert "differs most" not in text


def test_one_that_took_many_times_the_median_is_told_as_such_and_most_is_more_than_half() -> None:
    slow = told("slowest")
    text = " ".join(inference_text(replace(slow, time_ns=1_324 * slow.usual_ns)).split())
    assert "1,320 times" in text
    assert "%) more than" not in text
    extra = slow.time_ns - slow.usual_ns
    parts = [replace(slow.contributions[0], ns=round(share * extra)) for share in (0.42, 0.3, 0.28)]
    assert "(42%) is " in " ".join(
        inference_text(replace(slow, contributions=tuple(parts))).split()
    )


def test_an_inference_that_is_not_there_is_refused() -> None:
    for which in ("5000", "fastest", "-1", "9" * 30):
        with pytest.raises(NsysmapError):
            told(which)


def test_the_command_shows_it_as_text_and_json(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "inference", SYNC, ENGINE, "slowest")
    assert (done.status, done.err) == (0, "")
    assert "Most of the difference" in done.out
    assert "…" not in done.out.replace("… and", "").replace(" … ", "")
    value = json.loads(run(capfd, "inference", SYNC, ENGINE, "p99", "--json").out)
    assert value["difference_ns"] == sum(one["ns"] for one in value["contributions"])
    assert len(value["kernels"]) == 56


def test_a_report_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "inference", "slowest")
    assert done.status == 2
    assert done.err.count("\n") == 1


def test_names_that_differ_are_cut_so_that_they_still_differ() -> None:
    names = [
        f"/layer.{number}/attention/self/a_long_name_of_a_convolution/LeakyRelu)"
        for number in range(12)
    ]
    grid = Grid(("µs", "layer"), tuple(("1.00", name) for name in names), "rn")
    _, *lines = rendered(grid_lines(grid, 40), colour=False).splitlines()
    assert len(set(lines)) == len(names)
    assert all(len(line) <= 40 for line in lines)


def test_it_is_written_as_a_page_markdown_and_json(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"one{suffix}" for suffix in (".html", ".md", ".json")]
    options = [word for file in files for word in ("-o", str(file))]
    result = run(capfd, "inference", str(FIXTURES / "bert_trt10/sync.sqlite"), "slowest", *options)
    assert result.status == 0
    page, markdown, values = (file.read_text(encoding="utf-8") for file in files)
    assert "<svg" in page and "http:" not in page and "| total |" in markdown
    assert json.loads(values)["schema"] == "nsysmap/inference/1"
