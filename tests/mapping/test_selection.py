"""A selected part of a report has the rows that the whole report has there, with the same numbers,
and says what was selected.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.analysis import analyze_mapped
from nsysmap.core.errors import NsysmapError
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace, read_engines
from nsysmap.mapping.selection import Selection, inference_numbers, time_ns
from nsysmap.trace.open_report import open_trace
from tests.commands import run
from tests.nsys_file import THREAD, NsysFile, engine_call
from tests.places import FIXTURES
from tests.reports import read_trace

TWO = (("conv", "kernel_a"), ("gemm", "kernel_b"))
CASES = (
    ("bert_trt10", "sync.sqlite", ("engine.json",)),
    ("bert_trt10", "graph.sqlite", ("engine.json",)),
    ("two_gpus", "tp_sync.nsys-rep", ("tp.engine.json",)),
    ("torch_mixed", "nonvtx.nsys-rep", ("backbone.engine.json", "head.engine.json")),
    ("two_processes", "processes.nsys-rep", ()),
)


@cache
def mapped(
    folder: str, report: str, engines: tuple[str, ...], selection: Selection | None = None
) -> MappedTrace:
    trace = open_trace(
        FIXTURES / folder / report, reader="auto" if report.endswith(".sqlite") else "own"
    )
    return map_trace(
        trace, read_engines([FIXTURES / folder / engine for engine in engines]), selection=selection
    )


def rows(part: MappedTrace) -> list[dict[str, object]]:
    found = part.as_in_report(part.kernels).records()
    for row in found:
        del (
            row["launch"],
            row["confidence"],
        )  # a row of api_calls, of which the part has fewer; how sure depends on all inferences
        del row["layer_id"]  # without an engine file, layers are numbered as they appear
    return found


@pytest.mark.parametrize(("folder", "report", "engines"), CASES)
def test_selected_inferences_have_the_kernels_and_layers_that_they_have_in_the_whole(
    folder: str, report: str, engines: tuple[str, ...]
) -> None:
    whole = mapped(folder, report, engines)
    number = whole.inferences.ints("inference")
    first, last = int(number[len(number) // 3]), int(number[len(number) // 2])
    part = mapped(folder, report, engines, Selection(inferences=(first, last)))
    wanted = [
        row
        for row in rows(whole)
        if row["inference"] is not None and first <= int(str(row["inference"])) <= last
    ]
    assert wanted
    assert rows(part) == wanted


@pytest.mark.parametrize(("folder", "report", "engines"), CASES[:3])
def test_figures_of_selected_inferences_are_those_of_the_whole(
    folder: str, report: str, engines: tuple[str, ...]
) -> None:
    selection = Selection(inferences=(10, 19))
    tables = analyze_mapped(mapped(folder, report, engines, selection), rules=()).tables
    whole = analyze_mapped(mapped(folder, report, engines), rules=()).tables
    same = [row for row in whole.inferences.records() if 10 <= int(str(row["inference"])) <= 19]
    for row, other in zip(tables.inferences.records(), same, strict=True):
        assert {**row, "kernel_sequence": None} == {**other, "kernel_sequence": None}
    inner = [
        row
        for row in tables.gaps.records()
        if row["inference"] is not None and 11 <= int(str(row["inference"])) <= 18
    ]
    there = {(row["device"], row["start_ns"]): row for row in whole.gaps.records()}
    assert inner
    for row in inner:
        assert {**row, "gap_id": 0} == {**there[row["device"], row["start_ns"]], "gap_id": 0}


@pytest.mark.parametrize(("folder", "report", "engines"), CASES)
def test_two_halves_in_time_have_every_kernel_once(
    folder: str, report: str, engines: tuple[str, ...]
) -> None:
    kernels = mapped(folder, report, engines).trace.kernels
    middle = int(np.median(kernels.ints("start_ns")))
    halves = [
        mapped(folder, report, engines, chosen)
        for chosen in (Selection(until_ns=middle), Selection(since_ns=middle))
    ]
    numbers = np.concatenate([half.kernels.ints("kernel_id") for half in halves])
    assert sorted(numbers.tolist()) == list(range(len(kernels)))


@pytest.mark.parametrize(
    ("selection", "column"),
    [(Selection(devices=(1,)), "device"), (Selection(devices=(0,)), "device")],
)
def test_a_device_alone_has_its_kernels_as_in_the_whole(selection: Selection, column: str) -> None:
    whole, part = mapped(*CASES[2]), mapped(*CASES[2], selection)
    wanted = [row for row in rows(whole) if row[column] in selection.devices]
    for name in ("kernel_id", "start_ns", "inference", "layer", "method"):
        assert [row[name] for row in rows(part)] == [row[name] for row in wanted]
    assert set(part.trace.devices.ints("device").tolist()) == set(selection.devices)


def test_a_process_alone_has_its_kernels_and_calls_and_no_other_s() -> None:
    whole = mapped(*CASES[4])
    pids = sorted(set(whole.kernels.ints("pid").tolist()))
    assert len(pids) == 2
    for pid in pids:
        part = mapped(*CASES[4], Selection(pids=(pid,)))
        assert len(part.kernels) == np.count_nonzero(whole.kernels.ints("pid") == pid)
        assert set(part.trace.api_calls.ints("pid").tolist()) == {pid}
        assert len(part.trace.api_calls) == np.count_nonzero(
            whole.trace.api_calls.ints("pid") == pid
        )


def three_inferences(folder: Path) -> Path:
    file = NsysFile()
    file.domain("TensorRT", 1)
    for number in range(3):
        engine_call(file, 1000 + 200 * number, TWO, 10 * number + 1)
    return file.write(folder / "three.sqlite")


def test_a_moment_inside_an_inference_cuts_it_and_says_so(tmp_path: Path) -> None:
    trace = read_trace(three_inferences(tmp_path))
    # between the launches of the second
    part = map_trace(trace, [], selection=Selection(since_ns=1225))
    assert part.as_in_report(part.kernels).ints("kernel_id").tolist() == [3, 4, 5]
    assert part.as_in_report(part.kernels).ints("inference").tolist() == [1, 2, 2]
    assert part.inferences.bools("complete").tolist() == [False, True]
    assert any("cuts inference 1:" in note.text for note in part.trace.notes)
    whole = map_trace(trace, [], selection=Selection(since_ns=1200, until_ns=1400))
    assert not any("cuts" in note.text for note in whole.trace.notes)
    assert whole.inferences.bools("complete").tolist() == [True]


def test_a_kernel_is_selected_by_its_launch_not_by_when_it_ran(tmp_path: Path) -> None:
    file = NsysFile()
    file.call("cudaLaunchKernel_v7000", 100, 102, 1, thread=THREAD)
    file.kernel("late", 900, 1)
    file.call("cudaLaunchKernel_v7000", 500, 502, 2, thread=THREAD)
    file.kernel("later", 950, 2)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    part = map_trace(trace, [], selection=Selection(until_ns=500))
    assert part.kernels.text("name").list() == ["late"]
    assert part.kernels.text("name").values == ("late",)
    assert part.kernels.ints("launch").tolist() == [0]
    alone = map_trace(trace, [], selection=Selection(since_ns=500))
    assert alone.kernels.text("name").list() == ["later"]


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        (Selection(inferences=(3, 9)), "its inferences are 0 to 2"),
        (Selection(devices=(4,)), "it has GPU work of device 0"),
        (Selection(pids=(4,)), "it has GPU work of pid 42"),
        (Selection(streams=(4,)), "it has GPU work of stream 13"),
        (Selection(since_ns=10_000), "its GPU work is from"),
        (Selection(until_ns=10), "its GPU work is from"),
        (Selection(since_ns=1500, inferences=(0, 0)), "its GPU work is from"),
    ],
)
def test_what_is_not_in_the_report_is_an_error_that_says_what_is(
    tmp_path: Path, selection: Selection, told: str
) -> None:
    trace = read_trace(three_inferences(tmp_path))
    with pytest.raises(NsysmapError, match=told):
        map_trace(trace, [], selection=selection)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("5", 5),
        ("5ns", 5),
        ("1.25s", 1_250_000_000),
        ("1.5us", 1500),
        ("2.ms", 2_000_000),
        ("1.50 s".replace(" ", ""), 1_500_000_000),
    ],
)
def test_times_are_read_exactly(text: str, ns: int) -> None:
    assert time_ns(text) == ns


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "1.0001us", "1e3", "1 s 2", "9" * 30])
def test_what_is_no_whole_number_of_ns_is_refused(text: str) -> None:
    with pytest.raises(NsysmapError):
        time_ns(text)


def test_inferences_are_one_number_or_two() -> None:
    assert inference_numbers("7") == (7, 7)
    assert inference_numbers("7..9") == (7, 9)
    for wrong in ("", "9..7", "a", "1..", "1-3"):
        with pytest.raises(NsysmapError):
            inference_numbers(wrong)


def test_every_command_that_reads_a_report_says_what_was_selected(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here = FIXTURES / "bert_trt10"
    files: Sequence[str | Path] = (here / "sync.sqlite", here / "engine.json")
    chosen = ("--inference", "10..12")
    assert (
        "Selected: inferences 10 to 12; 168 of 2,800 kernels."
        in run(capfd, "map", *files, *chosen, "-o", tmp_path / "m.csv").err
    )
    with (tmp_path / "m.csv").open() as file:
        assert {row["inference"] for row in csv.DictReader(file)} == {"10", "11", "12"}
    assert "Selected: inferences 10 to 12" in run(capfd, "analyze", *files, *chosen).out
    assert "selected: inferences 10 to 12" in run(capfd, "what-if", *files, *chosen).out
    assert (
        '"selected": "inferences 10 to 12"' in run(capfd, "what-if", *files, *chosen, "--json").out
    )
    assert (
        "Selected: inferences 10 to 12"
        in run(capfd, "layers", files[1], "--trace", files[0], *chosen).out
    )


def test_selecting_where_there_is_nothing_to_select_from_is_an_error_of_use(
    capfd: pytest.CaptureFixture[str],
) -> None:
    here = FIXTURES / "bert_trt10"
    assert run(capfd, "layers", here / "engine.json", "--device", "0").status == 2
    assert run(capfd, "map", here / "sync.sqlite", "--explain", "3", "--device", "0").status == 2


def test_of_the_host_stays_what_the_chosen_process_did_in_the_chosen_time() -> None:
    whole = mapped("two_processes", "processes.nsys-rep", ())
    calls = whole.trace.api_calls
    pid = int(calls.ints("pid")[0])
    mine = np.flatnonzero(whole.trace.kernels.ints("pid") == pid)
    begin, end = (
        int(whole.trace.kernels.ints("start_ns")[mine[at]])
        for at in (len(mine) // 3, len(mine) // 2)
    )
    part = mapped(
        "two_processes",
        "processes.nsys-rep",
        (),
        Selection(pids=(pid,), since_ns=begin, until_ns=end),
    ).trace.api_calls
    assert 0 < len(part) < np.count_nonzero(calls.ints("pid") == pid) < len(calls)
    assert set(part.ints("pid").tolist()) == {pid}
    kept = set(zip(part.ints("start_ns").tolist(), part.ints("thread").tolist(), strict=True))
    inside = (
        (calls.ints("pid") == pid)
        & (calls.ints("start_ns") >= begin)
        & (calls.ints("end_ns") <= end)
    )
    assert kept >= set(
        zip(
            calls.ints("start_ns")[inside].tolist(),
            calls.ints("thread")[inside].tolist(),
            strict=True,
        )
    )
