"""Graph launches of several threads that take turns within a program's own ranges are one step."""

from __future__ import annotations

from pathlib import Path

from nsysmap.mapping.mapped_trace import map_trace
from tests.nsys_file import THREAD, NsysFile
from tests.reports import read_trace

US = 1000
FORWARD, BACKWARD = THREAD, THREAD + 1


class Graphs:
    """Launches CUDA graphs of some kernels on threads, within ranges or without."""

    def __init__(self) -> None:
        self.file, self.now, self.correlation = NsysFile(), 1000, 0

    def graph(self, thread: int, kernels: int) -> None:
        self.correlation += 1
        self.file.call(
            "cudaGraphLaunch_v10000", self.now, self.now + 5 * US, self.correlation, thread=thread
        )
        for place in range(kernels):
            at = self.now + (6 + 10 * place) * US
            node = 100 * thread + place
            self.file.kernel(f"k{kernels}_{place}", at, self.correlation, node=node, took=9 * US)
        self.now += 50 * US

    def range(self, name: str, begin: int, *, thread: int = FORWARD) -> None:
        self.file.range(name, begin, self.now - 1, thread=thread)

    def found(self, folder: Path) -> list[tuple[str | None, int]]:
        mapped = map_trace(read_trace(self.file.write(folder / "x.sqlite")), [])
        rows = mapped.inferences
        return list(zip(rows.text("found_by").list(), rows.ints("kernels").tolist(), strict=True))


def test_a_forward_and_a_backward_graph_within_one_range_are_one_step(tmp_path: Path) -> None:
    program = Graphs()
    for _ in range(8):
        begin = program.now
        program.graph(FORWARD, 3)
        program.graph(BACKWARD, 2)
        program.range("step", begin)
    assert program.found(tmp_path) == [("period", 5)] * 8


def test_graphs_of_two_threads_without_ranges_are_of_each(tmp_path: Path) -> None:
    """Two servers may share a lock."""
    program = Graphs()
    for _ in range(8):
        program.graph(FORWARD, 3)
        program.graph(BACKWARD, 2)
    assert program.found(tmp_path) == [("graph-launch", 3), ("graph-launch", 2)] * 8


def test_several_graphs_of_one_thread_in_a_range_stay_apart(tmp_path: Path) -> None:
    """A range around the tokens of one answer marks no step of the decoder."""
    program = Graphs()
    for _ in range(8):
        begin = program.now
        program.graph(FORWARD, 3)
        program.graph(FORWARD, 2)
        program.range("answer", begin)
    assert program.found(tmp_path) == [("graph-launch", 3), ("graph-launch", 2)] * 8


def test_threads_with_ranges_of_their_own_have_loops_of_their_own(tmp_path: Path) -> None:
    program = Graphs()
    for _ in range(8):
        for thread, kernels in ((FORWARD, 3), (BACKWARD, 2)):
            begin = program.now
            program.graph(thread, kernels)
            program.range("request", begin, thread=thread)
    assert program.found(tmp_path) == [("graph-launch", 3), ("graph-launch", 2)] * 8


def test_launches_of_hidden_graphs_are_of_each(tmp_path: Path) -> None:
    """However many they are."""
    program = Graphs()
    for _ in range(200):
        begin = program.now
        for thread in (FORWARD, BACKWARD):
            program.correlation += 1
            program.file.call(
                "cudaGraphLaunch_v10000",
                program.now,
                program.now + 5 * US,
                program.correlation,
                thread=thread,
            )
            program.now += 50 * US
        program.range("step", begin)
    program.graph(FORWARD, 2)
    assert program.found(tmp_path) == [*[("graph-launch", 0)] * 400, ("graph-launch", 2)]
