"""The content of a report besides its events: strings, threads, GPUs, contexts and streams, the
options and the times of the capture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Text
from nsysmap.inputs.nsys.report_container import Container, damage, decompressed
from nsysmap.inputs.nsys.report_wire import (
    Message,
    WireError,
    padded,
    signed,
    split,
    varint,
    walk,
)

Columns = dict[str, IntArray | Text]

_GPU_NUMBERS = {
    "id": 1, "isDiscrete": 4, "luid": 6, "pwGpuId": 9, "l2CacheSize": 10, "totalMemory": 11,
    "memoryBandwidth": 12, "clockRate": 13,
    "smCount": 14, "cuDevice": 15, "revision": 21, "nodeMask": 22, "constantMemory": 23,
    "maxIPC": 24, "maxRegistersPerBlock": 25,
    "maxShmemPerBlock": 26, "maxShmemPerBlockOptin": 27, "maxShmemPerSm": 28,
    "maxRegistersPerSm": 29, "threadsPerWarp": 30,
    "asyncEngines": 31, "maxWarpsPerSm": 32, "maxBlocksPerSm": 33, "maxThreadsPerBlock": 34,
    "maxBlockDimX": 35, "maxBlockDimY": 36,
    "maxBlockDimZ": 37, "maxGridDimX": 38, "maxGridDimY": 39, "maxGridDimZ": 40,
    "computeMajor": 41, "computeMinor": 42, "smMajor": 43,
    "smMinor": 44,
}  # fmt: skip
_GPU_TEXTS = {"name": 2, "busLocation": 3, "uuid": 5, "chipName": 7}
_STREAM = {
    "streamId": 1,
    "hwId": 2,
    "vmId": 3,
    "processId": 4,
    "contextId": 5,
    "priority": 6,
    "flag": 7,
}
_CONTEXT = {
    "nullStreamId": 1, "hwId": 2, "vmId": 3, "processId": 4, "deviceId": 5, "contextId": 6,
    "parentContextId": 7, "isGreenContext": 8,
}  # fmt: skip
_THREAD = {"nameId": 2, "priority": 3, "globalTid": 4}
_EVENT_TYPES = {
    1: "CpuCycles", 12: "NvtxEvents", 123: "Cuda", 124: "Graphics", 127: "OSRuntime", 128: "CuDNN",
    129: "CuBLAS", 162: "OpenACC",
    166: "Wddm",
}  # fmt: skip
_GRAPH_MODES = {0: "graph", 1: "node"}
_OF_DAY, _MONOTONIC = 11, 7  # kinds of clocks
_SLOPE_ONE = struct.pack("<d", 1.0)
_STRING, _WRITTEN = 0x0A, 0x12  # in the block of strings: one, and where a process's output is
_PROCESS_STREAMS = {"globalPid": 1, "filenameId": 2, "contentId": 3}
_MOST_WRITTEN = 10_000  # more files of output than processes are looked at
_STEPS_NS = (1, 100_000, 1_000_000)
_COMMAND_LINE, _COLLECTED, _GRAPH_TRACE, _VARIABLE = 26, 2, 49, 30


def nsys_version(container: Container) -> str | None:
    """The version of the nsys that wrote the report, such as ``2023.4.4.54``."""
    with damage(container.path, "description of itself"):
        for field in (6, 7, 21):
            text = container.about.text(field)
            if text and "." in text:
                return text.split("-")[0][:40]
    return None


@dataclass(frozen=True)
class ReportTexts:
    """The content of a report's block of strings."""

    strings: tuple[str, ...]  # those that events refer to by number
    # ProcessStreams: which of them are the name and the content of what processes wrote to stdout
    # and stderr
    written: Columns


def read_texts(container: Container) -> ReportTexts:
    """The strings of a report.  Raises NsysmapError if they are not as many as the file says."""
    with container.path.open("rb") as file:
        data = decompressed(container, file, container.strings)
    with damage(container.path, "strings"):
        _, begin = varint(data, 0)
        kinds = (_STRING, _WRITTEN)
        tags, spans = split(padded(data), begin, len(data), kinds, _most_strings(container))
        plain = np.flatnonzero(tags == _STRING)
        if len(plain) != container.counts.strings:
            raise WireError(f"{len(plain)} strings where the file says {container.counts.strings}")
        strings = tuple(
            data[first:behind].decode("utf-8", "replace")
            for first, behind in zip(
                spans.begin[plain].tolist(), spans.end[plain].tolist(), strict=True
            )
        )
        other = np.flatnonzero(tags == _WRITTEN)[:_MOST_WRITTEN]
        rows = [
            Message.of(data[first:behind])
            for first, behind in zip(
                spans.begin[other].tolist(), spans.end[other].tolist(), strict=True
            )
        ]
        return ReportTexts(strings, _numbers(rows, _PROCESS_STREAMS))


def _most_strings(container: Container) -> int:
    """Beside the strings themselves there is at most one message of another kind to each."""
    return 2 * container.counts.strings + 1000


def thread_names(container: Container) -> Columns:
    """ThreadNames.  Raises NsysmapError if they are not as many as the file says."""
    with damage(container.path, "thread names"):
        buffer = padded(container.thread_names)
        most = container.counts.thread_names
        _, spans = split(buffer, 0, len(container.thread_names), (0x0A,), most)
        if len(spans.begin) != container.counts.thread_names:
            raise WireError(
                f"{len(spans.begin)} thread names where the file says"
                f" {container.counts.thread_names}"
            )
        read = walk(buffer, spans, dict.fromkeys(_THREAD.values(), "number"))
        return {name: read.numbers[number] for name, number in _THREAD.items()}


def machine_tables(container: Container) -> dict[str, Columns]:
    """The GPUs, CUDA devices, contexts and streams, by nsys's table names; a table is there where
    it has rows.
    """
    with damage(container.path, "description of the machine"):
        gpus: list[Message] = []
        devices: list[Message] = []
        machines: list[int] = []
        for machine in container.machine.messages(1):
            for described in machine.messages(2):
                held = described.messages(7)
                gpus += held
                machines += [machine.number(1) or 0] * len(held)
                devices += described.messages(9)
        tables: dict[str, Columns] = {
            "TARGET_INFO_GPU": {
                "vmId": np.array([signed(number) for number in machines], np.int64),
                **_numbers(gpus, _GPU_NUMBERS),
                **{
                    name: Text.of(gpu.text(number) or None for gpu in gpus)
                    for name, number in _GPU_TEXTS.items()
                },
            },
            "TARGET_INFO_CUDA_DEVICE": _numbers(devices, {"gpuId": 1, "cudaId": 2, "pid": 3}),
            "TARGET_INFO_CUDA_CONTEXT_INFO": _numbers(container.machine.messages(14), _CONTEXT),
            "TARGET_INFO_CUDA_STREAM": _numbers(container.machine.messages(15), _STREAM),
        }
        return {
            name: columns for name, columns in tables.items() if len(next(iter(columns.values())))
        }


def capture_tables(container: Container) -> dict[str, Columns]:
    """When the capture was: ANALYSIS_DETAILS, TARGET_INFO_SESSION_START_TIME.  Command line,
    environment and user are left alone.
    """
    with damage(container.path, "description of the capture"):
        session = container.session
        tables: dict[str, Columns] = {}
        start, stop = session.number(17), session.number(18)
        if start is not None and stop is not None:
            begin, end = _rounded(session, signed(start), signed(stop))
            tables["ANALYSIS_DETAILS"] = _ints(
                {"duration": end - begin, "startTime": begin, "stopTime": end}
            )
            epoch = _epoch(session, container.clocks, begin)
            if epoch is not None:
                tables["TARGET_INFO_SESSION_START_TIME"] = _ints({"utcEpochNs": epoch})
        return tables


def graph_trace(container: Container) -> str | None:
    """How CUDA graphs were traced: ``node``, ``graph`` (whole graphs), or None if the report does
    not say.
    """
    with damage(container.path, "description of the capture"):
        for options in container.session.messages(2):
            for launched in options.messages(_COMMAND_LINE):
                for mode in launched.messages(_GRAPH_TRACE):
                    number = mode.number(1)
                    return None if number is None else _GRAPH_MODES.get(number)
    return None


def environment_variable(container: Container, name: str) -> str | None:
    """The value of this variable in the environment that the program was started with; the value of
    no other is looked at.

    None also where the report has something else at that place: nothing depends on it.
    """
    try:
        launched = [
            one
            for options in container.session.messages(2)
            for one in options.messages(_COMMAND_LINE)
        ]
        return next(
            (
                one.text(2)
                for command in launched
                for one in command.messages(_VARIABLE)
                if one.text(1) == name
            ),
            None,
        )
    except WireError:
        return None


def collected(container: Container) -> tuple[str, ...]:
    """The requested kinds of data, as nsys calls them in CAPTURE_EVENT_TYPE (``Cuda``,
    ``NvtxEvents``); others by their number.
    """
    with damage(container.path, "description of the capture"):
        numbers = [
            number
            for options in container.session.messages(2)
            for what in options.messages(_COLLECTED)
            for number in what.numbers(1)
        ]
    return tuple(_EVENT_TYPES.get(number, str(number)) for number in numbers)


def _rounded(session: Message, start: int, stop: int) -> tuple[int, int]:
    """When the session began and ended, in the steps that its clock has: 100 µs up to nsys 2021.2,
    1 ms on Windows.
    """
    zero = -_clock_offsets(session).get((7, 1), -start)
    step = next((step for step in _STEPS_NS if start // step * step == zero), 1)
    return start // step * step, stop // step * step


def _epoch(session: Message, clocks: Message, begin: int) -> int | None:
    """When the session began, in ns since 1970; None if the report's clocks do not lead there."""
    offsets = _clock_offsets(session)
    if (1, 3) in offsets and (3, 9) in offsets:
        return begin - offsets[1, 3] - offsets[3, 9]
    kinds = {
        clock.bytes(1): clock.number(2)
        for known in clocks.messages(1)
        for clock in known.messages(1)
    }
    for conversions in clocks.messages(2):
        for conversion in conversions.messages(1):
            pieces = conversion.messages(3)
            if (kinds.get(conversion.bytes(1)), kinds.get(conversion.bytes(2))) != (
                _OF_DAY,
                _MONOTONIC,
            ) or len(pieces) != 1:
                continue
            at = pieces[0].messages(1)
            if pieces[0].bytes(2) == _SLOPE_ONE and len(at) == 1:
                return begin + signed(at[0].number(1) or 0) - signed(at[0].number(2) or 0)
    return None


def _clock_offsets(session: Message) -> dict[tuple[int, int], int]:
    """The number of ns by which one clock is before another: 7 counts from the session's beginning,
    1 and 3 are the machine's, 9 is since 1970.
    """
    offsets: dict[tuple[int, int], int] = {}
    for conversions in session.messages(16):
        for conversion in conversions.messages(1):
            text = conversion.text(5) or ""
            if (
                conversion.text(6) == "Offset"
                and text.removeprefix("-").isdigit()
                and len(text) <= 20
            ):
                offsets[conversion.number(1) or 0, conversion.number(2) or 0] = signed(
                    int(text) & 0xFFFFFFFFFFFFFFFF
                )
    return offsets


def _numbers(rows: Sequence[Message], columns: Mapping[str, int]) -> Columns:
    return {name: _column(row.number(number) for row in rows) for name, number in columns.items()}


def _column(values: Iterable[int | None]) -> IntArray:
    return np.array([MISSING if value is None else signed(value) for value in values], np.int64)


def _ints(row: Mapping[str, int]) -> Columns:
    return {
        name: np.array([signed(value & 0xFFFFFFFFFFFFFFFF)], np.int64)
        for name, value in row.items()
    }
