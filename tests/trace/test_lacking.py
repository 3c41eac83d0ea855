"""What a trace lacks is said as it is, with the remedy for the nsys that wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.answer import gains
from nsysmap.api import analyze
from nsysmap.trace.lacking import gpu_unrecorded, lacking, unrecorded
from nsysmap.trace.model import Trace
from tests.figures import figures
from tests.nsys_file import THREAD, NsysFile
from tests.places import FIXTURES
from tests.reports import read_trace


def told(trace: Trace, mode: str = "none") -> list[tuple[str, str]]:
    return [(note.level, note.text) for note in lacking(trace, mode)]


def capture(file: NsysFile, **facts: str) -> None:
    for name, value in facts.items():
        file.add("META_DATA_CAPTURE", name=name, value=value)


def system(file: NsysFile, **facts: str) -> None:
    for name, value in facts.items():
        file.add("TARGET_INFO_SYSTEM_ENV", name=name, value=value)


def test_a_whole_trace_lacks_nothing(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(3):
        file.launch("k", 100 * number + 1, number)
    assert told(read_trace(file.write(tmp_path / "x.sqlite"))) == []


def launches_only(file: NsysFile) -> None:
    for number in range(3):
        file.call("cudaLaunchKernel_v7000", 100 * number + 50, 100 * number + 52, number)


def test_launches_without_any_gpu_work_are_not_told_to_be_captured_as_they_were(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    launches_only(file)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert gpu_unrecorded(trace)
    ((level, text),) = told(trace)
    assert level == "error"
    assert "only the host's 3 launches" in text
    assert "no GPU work" in text
    assert all(word in text for word in ("vGPU", "MIG", "MPS"))
    assert "-t cuda" not in text


def test_under_wsl2_that_is_named_and_from_2025_on_the_other_way_to_trace(tmp_path: Path) -> None:
    file = NsysFile()
    launches_only(file)
    system(
        file,
        SoftwareReleaseVersion="5.15.146.1-microsoft-standard-WSL2",
        TargetInstallDir="/home/me/nsight-systems-2025.3.2/target-linux-x64",
        DeviceEnvironment="SECRET=1",
    )
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert (trace.recording.wsl, trace.nsys_version, trace.recording.exported_by) == (
        True,
        "2025.3.2",
        "2023.4.4.54",
    )
    ((_, text),) = told(trace)
    assert "under WSL2" in text
    assert text.endswith("-t cuda-sw,nvtx.")
    assert "SECRET" not in repr(trace.recording)


def test_work_captured_into_a_graph_was_not_carried_out(tmp_path: Path) -> None:
    file = NsysFile()
    file.call("cudaStreamBeginCapture_v10000", 10, 12, 1)
    launches_only(file)
    file.call("cudaStreamEndCapture_v10000", 300, 310, 2)
    file.call("cudaGraphLaunch_v10000", 400, 410, 3)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert not gpu_unrecorded(trace)
    assert unrecorded(trace).launches == 0


@pytest.mark.parametrize(
    ("version", "option"),
    [
        ("2023.4.4.54", "--cuda-graph-trace=node …"),
        ("2026.4.1.191", "--cuda-graph-trace=node:nvtx-precapture …"),
    ],
)
def test_whole_graphs_are_told_with_the_option_that_nsys_has(
    tmp_path: Path, version: str, option: str
) -> None:
    file = NsysFile(product=version)
    file.call("cudaGraphLaunch_v10000", 400, 410, 3)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    ((level, text),) = told(trace, "graph")
    assert level == "error"
    assert "1 CUDA graph launch:" in text
    assert option in text


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("2025.6.1.1", "or use nsys 2026.4 with --cuda-graph-trace=node:nvtx-precapture."),
        ("2026.4.1.191", "records the ranges of such graphs."),
    ],
)
def test_graphs_that_were_built_before_the_collection_have_no_ranges(
    tmp_path: Path, version: str, remedy: str
) -> None:
    file = NsysFile(product=version)
    file.call("cudaGraphLaunch_v10000", 400, 410, 3)
    file.kernel("k", 420, 3, node=5)
    ((level, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")), "node")
    assert level == "info"
    assert "before the collection" in text
    assert text.endswith(remedy)


def test_a_trace_without_cuda_says_so_where_nsys_tells_what_was_traced(tmp_path: Path) -> None:
    file = NsysFile()
    file.range("a", 1, 2)
    capture(file, CAPTURE_EVENT_TYPE="NvtxEvents")
    ((level, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert level == "error"
    assert "was not traced" in text
    assert "(only NvtxEvents)" in text
    assert "-t cuda,nvtx --cuda-graph-trace=node" in text


def test_cuda_that_was_to_be_traced_and_is_not_there_is_another_thing(tmp_path: Path) -> None:
    file = NsysFile()
    capture(file, CAPTURE_EVENT_TYPE="Cuda")
    for text in (
        (
            "Installed CUDA driver version (13.3) is not supported by this build of Nsight Systems."
            " CUDA trace will be collected using …"
        ),
        "No CUDA events collected. Does the process use CUDA?",
        "Process was launched by the profiler, see /home/somebody/stderr.log",
    ):
        file.add("DIAGNOSTIC_EVENT", timestamp=1, text=text)
    ((level, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert level == "error"
    assert "CUDA was traced" in text
    assert "no CUDA events" in text
    assert "-t cuda" not in text  # as it was captured already
    assert "driver was newer" in text
    assert "somebody" not in text


def test_a_program_without_gpu_work_is_not_to_be_captured_again_in_the_same_way(
    tmp_path: Path,
) -> None:
    steps = []
    for traced in ("Cuda", "NvtxEvents"):
        file = NsysFile()
        capture(file, CAPTURE_EVENT_TYPE=traced)
        file.range("a", 1, 2)
        summary = analyze(file.write(tmp_path / f"{traced}.sqlite"), rules=[]).summary
        steps.append([step.command for step in summary.next_steps])
        assert gains.no_action(summary).startswith(
            "see above" if traced == "Cuda" else "capture again"
        )
    assert steps == [[], ["nsys profile -t cuda,nvtx,osrt -o report ./PROGRAM"]]


def test_an_old_export_that_does_not_say_what_was_traced_leaves_both_open(tmp_path: Path) -> None:
    file = NsysFile(version=None)
    file.range("a", 1, 2)
    ((_, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert text.startswith("The trace has 1 NVTX range ")
    assert "no CUDA calls" in text
    assert "no GPU work" in text
    assert "or could not be" in text


def test_calls_that_launch_nothing_are_told_apart(tmp_path: Path) -> None:
    file = NsysFile()
    file.call("cudaMalloc_v3020", 1, 2, 1)
    ((_, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert text.startswith("The trace has 1 CUDA call,")
    assert "none of them" in text


def test_the_last_launches_without_kernels_are_a_capture_that_ended_early(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(10):
        file.launch("k", 1_000_000_000 * number + 1, number)
    for number in (20, 21):
        file.call("cuLaunchKernel", 1_000_000_000 * number, 1_000_000_000 * number + 5, number)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert unrecorded(trace).last == 2
    ((level, text),) = told(trace)
    assert level == "warning"
    assert figures(text)[:3] == ["2", "12", "20.000"]
    assert "have no kernel" in text


def test_launches_without_kernels_here_and_there_are_lost_records(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(100):
        if number in (10, 50):
            file.call("cuLaunchKernel", 100 * number, 100 * number + 5, number)
        else:
            file.launch("k", 100 * number + 1, number)
    ((level, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert level == "info"
    assert figures(text)[:2] == ["2", "100"]
    assert "scattered" in text
    assert "records were lost" in text


def test_a_launch_that_failed_or_whose_id_another_row_has_too_lacks_nothing(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    file.call("cuLaunchKernel", 99, 101, 1)  # the driver's call inside the runtime's
    file.call("cudaLaunchKernel_v7000", 200, 205, 2)
    file.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["returnValue"] = 98
    file.launch("k", 300, 3)
    assert told(read_trace(file.write(tmp_path / "x.sqlite"))) == []


def test_kernels_that_cannot_be_joined_are_not_told_as_lost_twice(tmp_path: Path) -> None:
    file = NsysFile()
    for number in range(10):
        file.launch("k", 100 * number + 1, number)
    for row in file.rows["CUPTI_ACTIVITY_KIND_KERNEL"][:5]:
        row["correlationId"] = None
    assert told(read_trace(file.write(tmp_path / "x.sqlite"))) == []


def test_what_nsys_warned_of_is_passed_on_in_our_words(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    file.add("DIAGNOSTIC_EVENT", timestamp=1, text="Not all CUDA events might have been collected.")
    file.add("DIAGNOSTIC_EVENT", timestamp=1, text="Profiling has stopped.")
    ((level, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert level == "info"
    assert "CUDA events" in text
    assert "might" not in text  # in our own words


def test_the_whole_graph_fixture_says_what_it_said() -> None:
    notes = [
        note.text
        for note in analyze(FIXTURES / "bert_trt10" / "graph_whole.sqlite", rules=()).notes
        if note.level == "error"
    ]
    (note,) = notes
    assert "50 CUDA graph launches" in note


def test_graph_launches_without_gpu_work_beside_plain_ones_are_not_whole_graph_tracing(
    tmp_path: Path,
) -> None:
    file = NsysFile()
    launches_only(file)
    file.call("cudaGraphLaunch_v10000", 400, 410, 13)
    file.add(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        start=1,
        end=2,
        globalTid=THREAD,
        correlationId=99,
        nameId=0,
        returnValue=0,
    )
    analysis = analyze(file.write(tmp_path / "x.sqlite"), rules=())
    assert analysis.tables.capture.records()[0]["cuda_graph_trace"] == "none"
    assert ["no GPU work" in note.text for note in analysis.notes if note.level == "error"] == [
        True
    ]


@pytest.mark.parametrize(
    ("reported", "told_"),
    [
        (
            (
                "GPU Metrics [0]: The user running Nsight Systems does not have permission to"
                " access NVIDIA GPU Performance Counters on the target device. For more details,"
                " please visit https://developer.nvidia.com/ERR_NVGPUCTRPERM"
            ),
            (
                "the user was not allowed to read the GPU's performance counters"
                " (ERR_NVGPUCTRPERM); become root for the capture"
            ),
        ),
        (
            (
                "GPU Metrics [0]: GPU sampling hardware unit is already in use by another instance"
                " of Nsight Systems or other tool. The conflict can occur within the OS as well as"
                " containers, VMs and hypervisor."
            ),
            "or pause DCGM with `dcgmi profile --pause`",
        ),
        (
            "GPU metrics collection disabled due to Confidential Compute mode.",
            "the GPU is in confidential computing mode",
        ),
        (
            "Concurrent GPU metrics sampling within a single MIG enabled GPU is not supported",
            "another MIG instance",
        ),
        (
            (
                "GPU Metrics: Some GPUs are not supported. See the user guide:"
                " https://docs.nvidia.com/"
            ),
            "it needs Turing or newer",
        ),
        (
            (
                "GPU Metrics [0]: Skipping metric CTC.TriageCompute (requires unsupported counter"
                " 0xc9 @ auto)"
            ),
            "this file does not say why",
        ),
    ],
)
def test_counters_that_could_not_be_sampled_are_missed_with_the_reason_that_nsys_gives(
    reported: str, told_: str, tmp_path: Path
) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    file.add("META_DATA_CAPTURE", name="GPU_METRICS_OPTIONS:SAMPLING_FREQUENCY", value="10000")
    file.add("DIAGNOSTIC_EVENT", timestamp=1, text=reported)
    ((level, text),) = told(read_trace(file.write(tmp_path / "x.sqlite")))
    assert level == "warning"
    assert text.startswith("Hardware counters ")
    assert told_ in text


def test_counters_that_nobody_asked_for_are_not_missed(tmp_path: Path) -> None:
    file = NsysFile()
    file.launch("k", 100, 1)
    file.add("META_DATA_CAPTURE", name="COLLECT_GPU_CTX_SW_TRACE", value="false")
    assert told(read_trace(file.write(tmp_path / "x.sqlite"))) == []
