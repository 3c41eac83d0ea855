"""Loops one after the other, each of its own kernels, are found; a loop inside a step is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nsysmap.answer import first
from nsysmap.answer.model import Figure
from nsysmap.answer.summarize import summarize
from nsysmap.answer.unlike_loops import without_means
from nsysmap.api import analyze
from nsysmap.core.report_schema import INFERENCE_TIMES
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.output.brief import brief
from nsysmap.output.build import report_of
from nsysmap.output.page.answer import bars_of, page_sentences
from nsysmap.output.text.report import report_text
from nsysmap.trace.inferences.long_loops import LoopOnStream, long_loops, loops_on_stream
from nsysmap.trace.inferences.repeats import LaunchedKernels
from tests.nsys_file import THREAD, NsysFile
from tests.reports import read_trace, with_tables


def launched(*names: str) -> NsysFile:
    """Kernels one after the other, without any wait."""
    file = NsysFile()
    for number, name in enumerate(names, 1):
        file.launch(name, 1_000 + 10_000 * number, number, took=4_000)
    return file


def program(*loops: tuple[int, int]) -> NsysFile:
    """Loops of so many kernels, so many times, without any wait."""
    return launched(
        *(
            f"k{which}_{place}"
            for which, (size, times) in enumerate(loops)
            for place in [*range(size)] * times
        )
    )


def turns(file: NsysFile, folder: Path) -> list[int]:
    """For each kernel of a program the number of the turn that it is in, -1 for none."""
    trace = read_trace(file.write(folder / "x.sqlite"))
    found: list[int] = np.maximum(long_loops(trace, np.arange(len(trace.kernels))), -1).tolist()
    return found


def test_a_benchmark_of_several_operations_has_a_loop_of_each(tmp_path: Path) -> None:
    file = program((3, 150), (1, 40), (4, 110))
    inferences = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.inferences
    assert np.unique(inferences.ints("kernels"), return_counts=True)[1].tolist() == [150, 110]


@pytest.mark.parametrize(
    "loops",
    [
        [(1, 400)],  # may be the inside of anything
        [(3, 110), *[(2, 1)] * 300],  # no more than a part of the work
    ],
)
def test_what_may_be_a_loop_inside_a_piece_of_work_is_none(
    tmp_path: Path, loops: list[tuple[int, int]]
) -> None:
    trace = read_trace(program(*loops).write(tmp_path / "x.sqlite"))
    assert (long_loops(trace, np.arange(len(trace.kernels))) < 0).all()


LAYER = ("sgemm_qkv", "softmax", "sgemm_out", "layernorm")


@pytest.mark.parametrize(
    ("names", "times"),
    [
        (["embedding", *LAYER * 24, "sgemm_head"], 0),  # layers of a model, and its head
        (["conv_stem", *LAYER * 24], 0),
        (["random", *LAYER * 24, "sum"], 24),  # nothing that a model begins or ends with
        (["conv_stem", *LAYER * 120], 120),  # no model has as many
        (["embedding", *("abs", "max", "mul") * 10, "sgemm_head"], 10),  # no layer without products
        (["fill", *("abs", "max", "mul") * 3], 3),
        (["fill", *("abs", "max", "mul") * 2, "abs", "sum"], 0),
    ],
)
def test_few_turns_are_a_loop_unless_they_may_be_the_layers_of_a_model(
    tmp_path: Path, names: list[str], times: int
) -> None:
    assert len({turn for turn in turns(launched(*names), tmp_path) if turn >= 0}) == times


def test_a_loop_goes_on_in_the_same_turns_after_an_odd_kernel_within_one(tmp_path: Path) -> None:
    names = [*("a", "b", "c") * 20, "a", "log", "b", "c", *("a", "b", "c") * 19, "sum"]
    found = turns(launched(*names), tmp_path)
    assert [names[at] for at in range(1, len(names)) if found[at] > found[at - 1] >= 0] == [
        "a"
    ] * 37
    assert max(found) == 38  # the turn with the odd kernel is none


def test_few_turns_of_unlike_sizes_are_no_loop_and_many_are(tmp_path: Path) -> None:
    """As a forward and a backward of other shapes; and an elimination, whose work shrinks."""
    for times, expected in ((4, 0), (40, 40)):
        folder, file, number = tmp_path / str(times), NsysFile(), 0
        folder.mkdir()
        for turn in range(times):
            for name in ("_Z6columnPf", "_Z4restPf"):
                number += 1
                file.call("cudaLaunchKernel_v7000", 10_000 * number, 10_000 * number + 2, number)
                file.kernel(name, 10_000 * number + 10, number, grid=100 - turn, took=4_000)
        assert len(set(turns(file, folder)) - {-1}) == expected


@given(
    lead=st.lists(st.integers(10, 13), max_size=30),
    word=st.lists(st.integers(0, 4), min_size=2, max_size=8),
    times=st.integers(3, 40),
    tail=st.lists(st.integers(20, 23), max_size=12),
)
def test_whatever_leads_a_loop_in_and_follows_it_all_its_turns_are_found(
    lead: list[int], word: list[int], times: int, tail: list[int]
) -> None:
    assume(len(set(word)) > 1 and len(lead) < times * len(word))
    size = next(n for n in range(1, len(word) + 1) if word == (word[:n] * len(word))[: len(word)])
    size = size if len(word) % size == 0 else len(word)  # the naive search for its own period
    codes = np.array([*lead, *word * times, *tail], np.int64)
    nothing = np.zeros(len(codes), np.int64)
    found = loops_on_stream(LaunchedKernels(codes, nothing, nothing, nothing), codes)
    assert LoopOnStream(len(lead), size, times * len(word) // size) in found


@pytest.mark.parametrize("size", [65, 1000])
def test_a_loop_of_long_turns_is_found_between_others(size: int) -> None:
    codes = np.array([size, *[*range(size)] * 4, size + 1, size + 2], np.int64)
    nothing = np.zeros(len(codes), np.int64)
    found = loops_on_stream(LaunchedKernels(codes, nothing, nothing, nothing), codes)
    assert found == [LoopOnStream(1, size, 4)]


@pytest.mark.parametrize("at", [0, 2])
def test_a_turn_begins_after_the_hosts_wait(at: int) -> None:
    codes = np.array([9, *[0, 1, 2] * 12, 9], np.int64)
    waits = np.array([0, *np.roll([1, 0, 0], at).tolist() * 12, 0], np.int64)
    nothing = np.zeros(len(codes), np.int64)
    found = loops_on_stream(LaunchedKernels(codes, waits, nothing, nothing), codes)
    assert found == [LoopOnStream(1 + at, 3, 12 - (at > 0))]


def test_a_stream_that_hardly_works_has_no_repetitions_of_its_own(tmp_path: Path) -> None:
    """Two threads, each with its loop, and a small kernel now and then on a third stream."""
    file, number = NsysFile(), 0
    for step in range(30):
        for thread in range(2):
            for place in range(6):
                number += 1
                at = 10_000_000 * step + 500_000 * place + 1_000 + thread
                file.call("cudaLaunchKernel_v7000", at, at + 2, number, thread=THREAD + thread)
                file.kernel(f"t{thread}k{place}", at + 10, number, stream=13 + thread, took=400_000)
            file.call("cudaStreamSynchronize_v3020", at + 410_000, at + 420_000, 10**6 + number)
        for again in range(3):
            number += 1
            at = 10_000_000 * step + 3_500_000 + 100_000 * again
            file.call("cudaLaunchKernel_v7000", at, at + 2, number)
            file.kernel("small", at + 10, number, stream=7, took=2_000)
            file.call("cudaStreamSynchronize_v3020", at + 3_000, at + 4_000, 2 * 10**6 + number)
    inferences = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.inferences
    assert set(inferences.ints("kernels").tolist()) == {6}


def benchmark(waits: bool) -> NsysFile:
    """Three loops of one kernel each, and a pause before each."""
    file, number, now = NsysFile(), 0, 1_000
    for name, took in (("_Z5smallPf", 100_000), ("_Z5largePf", 900_000), ("_Z4lastPf", 50_000)):
        for _ in range(120):
            number += 1
            file.launch(name, now, number, took=took)
            now += took + 10_000
            if waits:
                file.call("cudaStreamSynchronize_v3020", now - took, now, 10**6 + number)
            now += 1_000
        now += 2_000_000_000
    return file


def test_of_loops_of_one_kernel_the_one_with_the_most_time_is_told_first(tmp_path: Path) -> None:
    answer = summarize(
        analyze(benchmark(True).write(tmp_path / "x.sqlite"), rules=[]).tables.by_name()
    )
    found = answer.unlike_loops
    assert found is not None
    assert [loop.what for loop in found.loops] == ["large", "small", "last"]
    assert 900_000 <= found.loops[0].median_ns <= 920_000 and 0.8 < found.loops[0].share < 0.9
    lines = [form for line in first.times(answer) for form in line]
    assert not any("without nsys" in line for line in lines)
    assert any("between runs" in line for line in lines)
    gpu = first.main_gpu(answer)
    assert gpu is not None and gpu.busy_share is not None and gpu.busy_share < 0.1
    assert not any("without nsys" in line for line in first.busy(answer, gpu))
    # the page says the same as the terminal, and has no bar of causes that are of the loops alone
    page = page_sentences(answer, {}, layers=False)
    assert page.traced in lines[0] and "of 3 loops" in page.traced_of
    assert (page.predicted, page.rate, bars_of(answer)) == ("", "", ())
    assert [one.busy_share for one in answer.gpus] == [gpu.busy_share]


def test_a_kind_that_comes_a_few_times_after_a_long_pause_is_no_loop(tmp_path: Path) -> None:
    file = benchmark(True)
    answer = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).summary
    times = answer.tables["inference_times"]
    group, took = times.ints("group_id").copy(), times.ints("time_ns").copy()
    group[200], took[200] = group.max() + 1, 60_000_000_000
    changed = times.with_columns(INFERENCE_TIMES, {"group_id": group, "time_ns": took})
    again = with_tables(replace(answer, traced=Figure(361_000)), inference_times=changed)
    found = without_means(again).unlike_loops
    assert found is not None
    assert [loop.what for loop in found.loops] == ["large", "small", "last"]


def test_no_form_gives_a_mean_over_unlike_loops(tmp_path: Path) -> None:
    """The mean of the three is 361 us, and 2,770 per second: no loop has them."""
    analysis = analyze(benchmark(True).write(tmp_path / "x.sqlite"), rules=[])
    answer = analysis.summary
    assert (answer.traced, answer.unprofiled, answer.gpu_unprofiled) == (None, None, None)
    assert not any(one.throughput_only for one in answer.actions)
    full = report_text(report_of(analysis), full=True)
    for form in ("x.md", "x.json"):
        analysis.write(tmp_path / form)
    full += (tmp_path / "x.md").read_text()
    assert "over 3 unlike" in full
    assert not [mean for mean in ("361 µs", "349 µs", "2,770") if mean in full]
    held = json.loads((tmp_path / "x.json").read_text())["answer"]
    assert held["traced"] is None and held["unprofiled"] is None
    assert [one["what"] for one in held["unlike_loops"]["loops"]] == ["large", "small", "last"]
    said = json.loads(json.dumps(brief(answer)))
    assert said["time_in_trace_us"] is None and said["time_without_profiler_us"] is None
    assert [one["kernels"] for one in said["unlike_loops"]] == ["large", "small", "last"]
    assert "large" in repr(analysis)
    analysis.write(tmp_path / "x.html")
    shown = (tmp_path / "x.html").read_text().partition('id="answer"')[2].partition("</dl>")[0]
    assert f"<dd>{page_sentences(answer, {}, layers=False).traced}</dd>" in shown


def test_a_kernel_many_times_without_a_wait_may_be_the_inside_of_anything(tmp_path: Path) -> None:
    trace = read_trace(benchmark(False).write(tmp_path / "x.sqlite"))
    assert (long_loops(trace, np.arange(len(trace.kernels))) < 0).all()


def test_loops_in_turns_are_no_loops_one_after_the_other(tmp_path: Path) -> None:
    file, number, now = NsysFile(), 0, 1_000
    for turn in range(60):
        for size in (3, 9) if turn % 3 else (9, 3):
            for place in range(size):
                number += 1
                file.launch(f"k{size}_{place}", now, number, took=90_000)
                now += 100_000
            file.call("cudaStreamSynchronize_v3020", now, now + 1_000, 10**6 + number)
            now += 2_000
    answer = summarize(analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.by_name())
    assert answer.unlike_loops is None


def test_a_kernel_that_takes_most_of_the_time_in_two_launches_is_no_loop_to_capture(
    tmp_path: Path,
) -> None:
    file, now = NsysFile(), 1_000
    for number, (name, took) in enumerate(
        [("_Z4initPf", 9_000), ("_Z6searchPf", 900_000), ("_Z6reducePf", 300_000)] * 2
        + [("_Z4lastPf", 5_000), ("_Z4donePf", 3_000)],
        1,
    ):
        file.launch(f"{name}", now, number, took=took + 1_000 * number)
        now += took + 20_000 * number * (number % 3)
    answer = summarize(
        {
            **analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.by_name(),
            "inferences": Table.empty(INFERENCES),
            "inference_times": Table.empty(INFERENCE_TIMES),
        }
    )
    assert not answer.next_steps and not first.doubts(answer)
    (one,) = first.todo(answer)
    assert one.title == "make search faster" and "in 2 launches" in one.gain
