"""Every field of what a report has besides its events, by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.core.table import MISSING, Text
from nsysmap.inputs.nsys.own_reader import own_tables
from nsysmap.inputs.nsys.report_container import open_container
from nsysmap.inputs.nsys.report_facts import (
    _epoch,
    capture_tables,
    collected,
    environment_variable,
    graph_trace,
    machine_tables,
    nsys_version,
    read_texts,
    thread_names,
)
from nsysmap.inputs.nsys.report_wire import Message
from tests.made_report import Made, message

Pairs = list[tuple[int, object]]

# as the page about the format lists them
GPU = (
    "id=1 name=2 busLocation=3 isDiscrete=4 uuid=5 luid=6 chipName=7 pwGpuId=9 l2CacheSize=10"
    " totalMemory=11 memoryBandwidth=12 clockRate=13 smCount=14 cuDevice=15 revision=21 nodeMask=22"
    " constantMemory=23 maxIPC=24 maxRegistersPerBlock=25 maxShmemPerBlock=26"
    " maxShmemPerBlockOptin=27 maxShmemPerSm=28 maxRegistersPerSm=29 threadsPerWarp=30"
    " asyncEngines=31 maxWarpsPerSm=32 maxBlocksPerSm=33 maxThreadsPerBlock=34 maxBlockDimX=35"
    " maxBlockDimY=36 maxBlockDimZ=37 maxGridDimX=38 maxGridDimY=39 maxGridDimZ=40 computeMajor=41"
    " computeMinor=42 smMajor=43 smMinor=44"
)
TEXTS = {2, 3, 5, 7}
CONTEXT = (
    "nullStreamId=1 hwId=2 vmId=3 processId=4 deviceId=5 contextId=6 parentContextId=7"
    " isGreenContext=8"
)
STREAM = "streamId=1 hwId=2 vmId=3 processId=4 contextId=5 priority=6 flag=7"


def numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (one.split("=") for one in text.split())}


def all_of(text: str) -> Pairs:
    """A message in which each field has ten times its number, or that as text."""
    return [
        (number, str(10 * number) if text is GPU and number in TEXTS else 10 * number)
        for number in sorted(numbers(text).values())
    ]


def test_every_column_of_the_machine_is_the_field_of_its_number(tmp_path: Path) -> None:
    described: Pairs = [(7, all_of(GPU)), (9, [(1, 5), (2, 6), (3, 7)])]
    machine: Pairs = [
        (1, [(1, 2**64 - 9), (2, described), (2, [(7, [(14, 132)])])]),
        (1, [(2, [(7, [(14, 66)])])]),  # a machine without a number
        (14, all_of(CONTEXT)),
        (15, all_of(STREAM)),
    ]
    tables = machine_tables(open_container(Made(machine=machine).write(tmp_path / "a.nsys-rep")))
    gpus = tables["TARGET_INFO_GPU"]
    for name, number in numbers(GPU).items():
        column = gpus[name]
        if isinstance(column, Text):
            assert column.list() == [str(10 * number), None, None], name
        else:
            other = {14: [132, 66]}.get(number, [MISSING] * 2)
            assert column.tolist() == [10 * number, *other], name
    assert gpus["vmId"].tolist() == [-9, -9, 0]  # type: ignore[union-attr]
    assert set(gpus) == {"vmId", *numbers(GPU)}
    for table, text in (
        ("TARGET_INFO_CUDA_CONTEXT_INFO", CONTEXT),
        ("TARGET_INFO_CUDA_STREAM", STREAM),
    ):
        assert {name: column.tolist() for name, column in tables[table].items()} == {  # type: ignore[union-attr]
            name: [10 * number] for name, number in numbers(text).items()
        }
    devices = tables["TARGET_INFO_CUDA_DEVICE"]
    assert [devices[name].tolist() for name in ("gpuId", "cudaId", "pid")] == [[5], [6], [7]]  # type: ignore[union-attr]
    assert machine_tables(open_container(Made().write(tmp_path / "b.nsys-rep"))) == {}


def test_what_a_process_wrote_is_told_apart_from_the_strings(tmp_path: Path) -> None:
    block = message((1, "a"), (2, [(1, 5), (2, 0), (3, 1)]), (1, "b"), (2, [(1, 6)]))
    path = Made(strings_block=block, counts={3: 2}).write(tmp_path / "a.nsys-rep")
    texts = read_texts(open_container(path))
    assert texts.strings == ("a", "b")
    assert {name: column.tolist() for name, column in texts.written.items()} == {  # type: ignore[union-attr]
        "globalPid": [5, 6],
        "filenameId": [0, MISSING],
        "contentId": [1, MISSING],
    }


def test_names_of_threads(tmp_path: Path) -> None:
    threads = [message((2, 1), (3, 20), (4, 7)), message((4, 8))]
    container = open_container(Made(threads=threads).write(tmp_path / "a.nsys-rep"))
    assert {name: column.tolist() for name, column in thread_names(container).items()} == {  # type: ignore[union-attr]
        "nameId": [1, MISSING],
        "priority": [20, MISSING],
        "globalTid": [7, 8],
    }


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "CpuCycles"),
        (12, "NvtxEvents"),
        (123, "Cuda"),
        (124, "Graphics"),
        (127, "OSRuntime"),
        (128, "CuDNN"),
        (129, "CuBLAS"),
        (162, "OpenACC"),
        (166, "Wddm"),
        (254, "254"),
    ],
)
def test_what_was_collected_is_called_as_nsys_calls_it(
    number: int, name: str, tmp_path: Path
) -> None:
    session: Pairs = [(2, [(2, [(1, number)])]), (17, 1), (18, 2)]
    assert collected(open_container(Made(session=session).write(tmp_path / "a.nsys-rep"))) == (
        name,
    )


@pytest.mark.parametrize(
    ("mode", "told"), [([(1, 0)], "graph"), ([(1, 1)], "node"), ([(1, 2)], None), ([], None)]
)
def test_how_graphs_were_traced(mode: Pairs, told: str | None, tmp_path: Path) -> None:
    session: Pairs = [(2, [(26, [(49, mode)])]), (17, 1), (18, 2)]
    container = open_container(Made(session=session).write(tmp_path / "a.nsys-rep"))
    assert graph_trace(container) == told
    assert graph_trace(open_container(Made().write(tmp_path / "b.nsys-rep"))) is None


def test_a_variable_of_the_environment_by_its_name(tmp_path: Path) -> None:
    held: Pairs = [(30, [(1, "A"), (2, "1")]), (30, [(1, "B"), (2, "2")])]
    session: Pairs = [(2, [(26, held)]), (17, 1), (18, 2)]
    container = open_container(Made(session=session).write(tmp_path / "a.nsys-rep"))
    assert [environment_variable(container, name) for name in "ABC"] == ["1", "2", None]


@pytest.mark.parametrize(
    ("about", "version"),
    [
        ([(6, "2025.3.1.90-25v0")], "2025.3.1.90"),
        ([(7, "2024.1")], "2024.1"),
        ([(21, "2026.1")], "2026.1"),
        ([(6, "no version"), (7, "2024.1"), (21, "2026.1")], "2024.1"),
        ([(6, f"1.{'2' * 50}")], f"1.{'2' * 38}"),
        ([(8, "2025.1")], None),
    ],
)
def test_which_nsys_wrote_it(about: Pairs, version: str | None, tmp_path: Path) -> None:
    made = Made(sections={"UI Data": message(*about)}).write(tmp_path / "a.nsys-rep")
    assert nsys_version(open_container(made)) == version


def test_a_session_without_both_ends_has_no_times(tmp_path: Path) -> None:
    for at, session in enumerate(([(17, 5)], [(18, 5)])):
        path = Made(session=session).write(tmp_path / f"{at}.nsys-rep")  # type: ignore[arg-type]
        assert capture_tables(open_container(path)) == {}


# --- the time of day
# ------------------------------------------------------------------------------------


def conversion(day: int = 11, mono: int = 7, *, slope: float = 1.0, pieces: int = 1) -> Message:
    kinds: Pairs = [(1, [(1, b"day"), (2, day)]), (1, [(1, b"mono"), (2, mono)])]
    piece: Pairs = [(1, [(1, 5_000), (2, 300)]), (2, slope)]
    how: Pairs = [(1, b"day"), (2, b"mono"), *[(3, piece)] * pieces]
    return Message.of(message((1, kinds), (2, [(1, how)])))


def test_the_time_of_day_is_read_off_a_plain_conversion_of_the_right_clocks() -> None:
    none = Message({})
    assert _epoch(none, conversion(), 7_000) == 7_000 + 5_000 - 300
    for other in (
        conversion(day=10),
        conversion(mono=8),
        conversion(slope=1.5),
        conversion(pieces=2),
        conversion(pieces=0),
        none,
    ):
        assert _epoch(none, other, 7_000) is None
    bare: Pairs = [(1, b"day"), (2, b"mono"), (3, [(1, []), (2, 1.0)])]
    kinds: Pairs = [(1, [(1, b"day"), (2, 11)]), (1, [(1, b"mono"), (2, 7)])]
    assert _epoch(none, Message.of(message((1, kinds), (2, [(1, bare)]))), 7_000) == 7_000


@pytest.mark.parametrize(
    ("clocks", "told"),
    [
        ([(1, 3, 100), (3, 9, 20)], 7_000 - 100 - 20),
        ([(1, 3, 100)], None),
        ([(3, 9, 20)], None),
        ([(1, 3, 100), (9, 3, 20)], None),
    ],
)
def test_the_time_of_day_is_two_offsets_away(
    clocks: list[tuple[int, int, int]], told: int | None
) -> None:
    offsets: Pairs = [(1, [(1, of), (2, to), (5, str(by)), (6, "Offset")]) for of, to, by in clocks]
    session = Message.of(message((16, offsets)))
    assert _epoch(session, Message({}), 7_000) == told


def test_a_report_with_all_of_it_opens(tmp_path: Path) -> None:
    path = Made(machine=[(15, all_of(STREAM))]).write(tmp_path / "a.nsys-rep")
    held = own_tables(path).read("TARGET_INFO_CUDA_STREAM", ("priority",))
    assert held["priority"].tolist() == [60]
