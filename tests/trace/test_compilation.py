"""Kernels compiled or loaded while a program runs: seen by what the host did, kept out of the
steady times, told as what it is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap import analyze
from nsysmap.answer import first, words
from nsysmap.api import Analysis
from nsysmap.core.intervals import Spans
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.trace.inferences.compilation import Compilation, compilation, first_use_ns
from nsysmap.trace.inferences.find import find_inferences
from nsysmap.trace.inferences.steady import excluded_spans, inferences_a_pass
from nsysmap.trace.inferences.tensorrt_ranges import tensorrt_ranges
from tests.nsys_file import PROCESS, THREAD, NsysFile
from tests.reports import read_trace

FIXTURES = Path(__file__).parents[2] / "fixtures"
MS = 1_000_000
COMPILER = PROCESS | 8


def enqueue(file: NsysFile, at: int, end: int, names: str, first: int) -> None:
    """An enqueue whose launches are at its end, one of 5 us for each letter."""
    file.range("ExecutionContext::enqueueV3", at, end, domain=1)
    for number, name in enumerate(names):
        begin = end - 10_000 * (len(names) - number)
        file.call("cudaLaunchKernel_v7000", begin, begin + 5_000, first + number)
        file.kernel(f"kernel {name}", begin + 6_000, first + number, took=1000)


def run_of(compiled: int) -> NsysFile:
    """Ten inferences of two kinds, of which one has a compiler's thread load a library before it
    launches two new kernels.
    """
    file = NsysFile()
    file.domain("TensorRT", 1)
    at = MS
    for number in range(10):
        took = 50 * MS if number == compiled else MS
        file.call("cudaStreamSynchronize_v3020", at, at + 1000, 1000 + number)
        enqueue(file, at + 2000, at + took, "cd" if number == compiled else "ab", 10 * number)
        if number == compiled:
            file.call(
                "cuLibraryLoadData", at + 49 * MS, at + 49 * MS + 60_000, 2000, thread=COMPILER
            )
        at += took + 100_000
    return file


def found(file: NsysFile, folder: Path) -> Compilation:
    return compilation(read_trace(file.write(folder / "x.sqlite")))


def test_a_thread_that_waits_for_a_compiler_s_thread_compiles_from_its_last_call_to_the_load(
    tmp_path: Path,
) -> None:
    of = found(run_of(4), tmp_path)
    mine = of.thread == THREAD
    begin = MS + 4 * (MS + 100_000)
    # its enqueue, to the load
    assert (of.start_ns[mine].tolist(), of.end_ns[mine].tolist()) == (
        [begin + 2000],
        [begin + 49 * MS],
    )
    assert of.before[mine].tolist() == [True]


def test_an_inference_that_compiles_counts_in_no_time_and_says_what_shows_it(
    tmp_path: Path,
) -> None:
    trace = read_trace(run_of(4).write(tmp_path / "x.sqlite"))
    table = find_inferences(trace, tensorrt_ranges(trace.nvtx_ranges)).table
    assert np.flatnonzero(table.bools("warmup")).tolist() == [4]
    assert table.text("compile_evidence").list()[4] == "before cuLibraryLoadData"
    assert table.ints("compile_ns").tolist() == [0] * 4 + [49 * MS - 2000] + [0] * 5
    ends = table.ints("gpu_end_ns")
    assert excluded_spans(table) == {0: [(int(ends[3]), int(ends[4]))]}


@pytest.mark.parametrize(
    ("later", "told"),
    [
        (
            ("ampere_sgemm_128x64_nn", "void at::native::f<4>(int)"),
            "library before cuLibraryLoadData",
        ),
        (("ampere_sgemm_128x64_nn", "triton_poi_fused_add_0"), "before cuLibraryLoadData"),
        (
            (
                "ampere_sgemm_128x64_nn",
                "cudnn_generated_fort_native_sm80_matMul_knob_24_64x64x32_5_0",
            ),
            "before cuLibraryLoadData",
        ),
        (("matmul_kernel",), "before cuLibraryLoadData"),  # anybody's
    ],
)
def test_what_a_library_does_before_it_loads_kernels_that_it_brings_is_no_compilation(
    later: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    """A program launches an own kernel, then loads a library; what it launches for the first time
    after that says what was loaded.
    """
    file = NsysFile()
    for number, name in enumerate(("own_kernel", *later, *later)):
        at = MS + number * 50 * MS
        if number == 1:
            file.call("cuLibraryLoadData", at - MS, at - MS + 60_000, 2000)
        file.call("cudaLaunchKernel_v7000", at, at + 5_000, number)
        file.kernel(name, at + 6_000, number, took=1000)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    of = compilation(trace)
    (shown,) = of.shown_by(trace, np.flatnonzero(of.before))
    assert shown.text == told


def test_what_runs_among_inferences_that_load_kernels_is_tried_out_only_where_such_kernels_ran(
    tmp_path: Path,
) -> None:
    trace = read_trace(run_of(4).write(tmp_path / "x.sqlite"))
    one = np.array([THREAD]), np.array([0]), np.array([1])  # before anything was loaded
    for tuning, told in ((False, "others that load kernels"), (True, "kernels that are tried out")):
        (shown,) = compilation(trace).most(trace, Spans(*one), np.array([True]), np.array([tuning]))
        assert shown is not None
        assert shown.text == told


def test_a_load_in_the_background_while_the_program_goes_on_holds_nobody_up(tmp_path: Path) -> None:
    file = run_of(-1)
    file.call("cuLibraryLoadData", 5 * MS, 5 * MS + 60_000, 2000, thread=COMPILER)
    assert not (found(file, tmp_path).thread == THREAD).any()


def launches(file: NsysFile, took: list[int], names: str) -> None:
    at = 0
    for number, (ns, name) in enumerate(zip(took, names, strict=True)):
        file.call("cudaLaunchKernel_v7000", at, at + ns, number)
        file.kernel(f"kernel {name}", at + ns, number, took=1000)
        at += ns + 10_000


def test_the_slow_first_launches_of_kernels_load_them(tmp_path: Path) -> None:
    file = NsysFile()
    launches(file, [900_000, 300_000, 5000, 5000, 400_000, *[5000] * 7], "abab" + "cabcabca")
    of = found(file, tmp_path)
    # the first of the thread: nsys begins there, and nothing is loaded
    assert (of.end_ns - of.start_ns).tolist() == [
        300_000,
        400_000,
    ]
    file.call("cuModuleLoadData", -100_000, -50_000, 99)
    (tmp_path / "loads").mkdir()
    of = found(file, tmp_path / "loads")
    assert (of.end_ns - of.start_ns).tolist()[-3:] == [900_000, 300_000, 400_000]


def test_a_first_launch_that_takes_longer_than_nsys_sets_up_its_tables_loads_code(
    tmp_path: Path,
) -> None:
    """As where nsys is too old to show that libraries load their code."""
    file = NsysFile()
    launches(file, [60 * MS, *[5000] * 11], "abababababab")
    of = found(file, tmp_path)
    assert (of.end_ns - of.start_ns).tolist() == [60 * MS]


@pytest.mark.parametrize(
    ("begins", "launches", "loading"),
    [
        (True, [("a", 575_000)], [575_000]),  # nothing else tells what is usual
        (True, [("a", 575_000), ("b", 70_000), ("c", 40_000)], [575_000, 70_000]),
        (False, [("a", 575_000)], []),  # nsys may have set up its tables
        (True, [("a", 575_000), ("a", 5_000), ("b", 300_000), ("b", 6_000)], [575_000, 300_000]),
        (True, [("a", 575_000), ("a", 550_000), ("b", 300_000), ("b", 560_000)], []),  # all wait
    ],
)
def test_the_first_launches_of_a_program_that_began_in_the_trace_load_kernels(
    tmp_path: Path, begins: bool, launches: list[tuple[str, int]], loading: list[int]
) -> None:
    file, at = NsysFile(), MS
    if begins:
        file.call("cuModuleGetLoadingMode", at, at + 1_000, 1)
        file.call("cudaMalloc_v3020", at + 2_000, at + 5_000, 2)
    for number, (name, took) in enumerate(launches, 10):
        at += MS
        file.call("cudaLaunchKernel_v7000", at, at + took, number)
        file.kernel(f"kernel {name}", at + took + 1_000, number, took=1_000)
    spans = found(file, tmp_path)
    assert (spans.end_ns - spans.start_ns).tolist() == loading


def test_first_launches_that_wait_no_more_often_than_others_load_nothing(tmp_path: Path) -> None:
    file = NsysFile()
    launches(file, [5000, 300_000, 5000, 300_000] * 3 + [5000] * 20, "abcd" * 3 + "ab" * 10)
    assert len(found(file, tmp_path)) == 0


def test_the_time_within_is_what_a_slow_count_gives() -> None:
    rng = np.random.default_rng(7)
    starts = np.sort(rng.choice(np.arange(0, 200, 4), 12, replace=False)).astype(np.int64)
    ends = starts + rng.integers(1, 4, 12)
    nothing = np.zeros(12, np.int64)
    of = Compilation(
        nothing, starts, ends, nothing, nothing, np.zeros(12, np.bool_), np.zeros(12, np.bool_)
    )
    begin = rng.integers(0, 150, 40).astype(np.int64)
    end = begin + rng.integers(0, 60, 40)
    busy = {ns for a, b in zip(starts.tolist(), ends.tolist(), strict=True) for ns in range(a, b)}
    slowly = [
        len(busy & set(range(a, b))) for a, b in zip(begin.tolist(), end.tolist(), strict=True)
    ]
    assert of.within(Spans(np.zeros(40, np.int64), begin, end)).tolist() == slowly


def test_an_inference_that_does_not_count_holds_its_place_in_the_turn() -> None:
    turn = np.array([0, 1, 1, 2, 1, 0, 1] * 4, np.int64)
    turn[[0, 3]] = np.iinfo(np.int64).min
    assert inferences_a_pass(turn) == 7


# --- TensorRT for RTX, which compiles when it first sees a shape
# -----------------------------------------------------


@cache
def shapes() -> Analysis:
    return analyze(
        FIXTURES / "real_trt/bert_dyn-shapes.nsys-rep",
        FIXTURES / "real_trt/bert_dyn.engine.json",
        rules=[],
    )


def test_compilation_of_a_shape_is_out_of_the_steady_times_of_its_kind() -> None:
    tables = shapes().tables
    excluded = tables.inferences.take(tables.inferences.text("compile_evidence").codes >= 0)
    assert excluded.ints("inference").tolist() == [0, 3]  # the first of 64 tokens and of 320
    assert excluded.ints("compile_ns").tolist() == pytest.approx([410 * MS, 854 * MS], rel=0.01)
    assert tables.inference_groups.ints("mean_ns").max() < 4 * MS  # 145 ms with the compilation
    assert tables.inference_loops.only().integer("inferences_a_pass") == 7
    assert tables.inference_loops.only().integer("mean_ns") < 25 * MS


def test_idle_time_of_compilation_has_its_own_cause_and_is_in_no_share_of_the_steady_time() -> None:
    tables = shapes().tables
    compiled = tables.gaps.take(tables.gaps.text("cause").equals("compile"))
    assert int(compiled.ints("dur_ns").sum()) > 1250 * MS
    assert int(tables.gaps.ints("dur_ns")[tables.gaps.text("cause").equals("launch")].max()) < MS
    device = tables.device_times.only()
    assert device.integer("window_ns") < 100 * MS
    assert device.integer("busy_ns") + device.integer("idle_ns") == device.integer("window_ns")
    assert device.integer("idle_ns") == pytest.approx(
        int(tables.idle_totals.ints("time_ns").sum()), rel=0.01
    )
    of_compilation = tables.idle_totals.text("cause").equals("compile")
    assert (
        not len(tables.idle_totals.take(of_compilation))
        or float(tables.idle_totals.floats("share_of_window")[of_compilation].max()) < 0.01
    )


def test_no_prediction_is_longer_than_the_recorded_time() -> None:
    whatif, loop = shapes().tables.whatif, shapes().tables.inference_loops.only()
    before = whatif.ints("before_ns")
    assert 0 < before[before > 0].max() <= loop.integer("mean_ns")


def test_the_screen_says_what_was_compiled_where_and_what_avoids_it() -> None:
    summary = shapes().summary
    assert summary.first_use is not None
    assert (summary.first_use.inferences, summary.first_use.compiled) == ((0, 3), True)
    text = " ".join(words.times(summary))
    # it took longer than the steady part, so that it is what to do first
    assert first.todo(summary)[0].title == "compile kernels before the run"
    assert "compiling kernels in inferences 0 and 3" in text
    assert "setRuntimeCache" in text
    assert "preempted" not in text


def test_a_change_of_shape_that_the_host_takes_long_for_is_found() -> None:
    found = analyze(
        FIXTURES / "real_trt/bert_dyn-shapes.nsys-rep", FIXTURES / "real_trt/bert_dyn.engine.json"
    ).findings
    (mine,) = [one for one in found if one.rule == "shape-changes-cost"]
    assert (mine.evidence["changes"], mine.evidence["inferences"]) == (32, 38)
    assert mine.cost_ns == pytest.approx(32 * 2.4 * MS, rel=0.1)  # 2.9 instead of 0.5 ms


def ranges_around(launches_inside: bool) -> NsysFile:
    """A range of 40 ms that says that it compiles, then ten launches of one kernel."""
    file = NsysFile()
    file.domain("NVFUSER", 2)
    file.range("FusionKernelRuntime::compileFusionParallel", MS, 41 * MS, domain=2)
    file.range("executor_utils::Nvrtc::CompileProgram", 2 * MS, 40 * MS, domain=2)
    for number in range(10):
        at = (3 if launches_inside and not number else 42) * MS + number * 100_000
        file.launch("kernel1", at, number + 1, took=1000)
    return file


@pytest.mark.parametrize(
    ("launches_inside", "compiled"), [(False, [(MS, 41 * MS)]), (True, [])], ids=["idle", "a run"]
)
def test_a_range_that_says_compile_compiles_only_if_its_process_launches_nothing_in_it(
    tmp_path: Path, launches_inside: bool, compiled: list[tuple[int, int]]
) -> None:
    of = found(ranges_around(launches_inside), tmp_path)
    assert list(zip(of.start_ns.tolist(), of.end_ns.tolist(), strict=True)) == compiled


@pytest.mark.parametrize(
    "name", ["Torch-Compiled Region: 0/0", "CompiledFxGraph", "recompiled step", "compiler.stats"]
)
def test_a_range_about_what_was_compiled_is_no_compilation(tmp_path: Path, name: str) -> None:
    file = NsysFile()
    file.domain("PyTorch", 2)
    file.range(name, MS, 41 * MS, domain=2)
    file.launch("kernel1", 42 * MS, 1)
    assert not len(found(file, tmp_path))


def test_loading_a_kernel_while_the_gpu_works_takes_only_what_the_gpu_idles() -> None:
    """The call returns after the GPU's earlier work, which is no loading."""
    rows = {
        "start_ns": [0, 1000, 2000],
        "end_ns": [1000, 2000, 3000],
        "gpu_busy_ns": [900, 100, 950],
        "compile_ns": [800, 700, 0],
    }
    times = Table.of_rows(
        INFERENCES, [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    )
    assert first_use_ns(times).tolist() == [100, 700, 0]


def test_what_a_repetition_waits_for_before_its_first_launch_is_its_own() -> None:
    """A compiler runs on the host after the repetition before has ended; nothing marks them."""
    rows = {
        "start_ns": [0, 9_000],
        "end_ns": [1_000, 10_000],
        "gpu_busy_ns": [900, 900],
        "compile_ns": [0, 7_500],
        "thread": [1, 1],
        "found_by": ["period", "period"],
    }
    times = Table.of_rows(
        INFERENCES, [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    )
    assert first_use_ns(times).tolist() == [0, 7_500]
