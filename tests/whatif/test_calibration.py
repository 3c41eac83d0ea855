"""What a trace shows of the costs of launches, waits and graphs, on traces that are made up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from nsysmap.core.table import MISSING, Table
from nsysmap.core.trace_schema import API_CALLS, GPU_KERNELS, MEMCPYS, MEMSETS
from nsysmap.trace.model import Trace
from nsysmap.whatif.calibration import calibrate
from nsysmap.whatif.timeline import Costs
from nsysmap.whatif.window import Window
from tests.whatif.test_window import trace

DEFAULTS = Costs(
    latency_ns=2_000,
    graph_latency_ns=6_000,
    graph_start_ns=MISSING,
    dispatch_ns=1_150,
    early_ns=MISSING,
    to_copy_ns=4_500,
    from_copy_ns=1_700,
    node_ns=MISSING,
    made_node_ns=200,
    wider_node_ns=0,
    early_node_ns=MISSING,
    to_memset_ns=930,
    from_memset_ns=3_300,
    crossing_ns=300,
    return_ns=2_500,
    restart_ns=0,
    idle_sync_ns=1_000,
    submit_ns=4_300,
    graph_launch_ns=10_000,
)
"""What is assumed where a trace shows nothing."""
TABLES = {"kernel": GPU_KERNELS, "copy": MEMCPYS, "memset": MEMSETS}
WINDOW = Window(
    1,
    0,
    (7,),
    (np.arange(2),),
    ({1: 1.0},),
    np.array([0]),
    np.array([10**9]),
    ({0: 0, 1: 0},),
    (1.0,),
    1,
    (),
    1.0,
)


@dataclass
class Program:
    """Calls of one thread, and the GPU work that each launched."""

    calls: list[dict[str, object]] = field(default_factory=list)
    work: dict[str, list[dict[str, object]]] = field(
        default_factory=lambda: {name: [] for name in TABLES}
    )

    def call(
        self,
        start: int,
        end: int,
        kind: str = "launch",
        *,
        api: str = "cudaLaunchKernel",
        thread: int = 7,
    ) -> int:
        self.calls.append(
            {
                "start_ns": start,
                "end_ns": end,
                "process": 1,
                "thread": thread,
                "api": api,
                "kind": kind,
            }
        )
        return len(self.calls) - 1

    def run(
        self,
        start: int,
        end: int,
        launch: int,
        *,
        table: str = "kernel",
        stream: int = 7,
        name: str = "k",
        process: int = 1,
        **more: object,
    ) -> None:
        call = self.calls[launch]
        self.work[table].append(
            {
                "start_ns": start,
                "end_ns": end,
                "launch": launch,
                "launch_start_ns": call["start_ns"],
                "launch_end_ns": call["end_ns"],
                "process": process,
                "device": 0,
                "stream": stream,
                **({"name": name, "kernel_id": len(self.work[table])} if table == "kernel" else {}),
                **more,
            }
        )

    def costs(self) -> Costs:
        return calibrate(self.trace(), WINDOW)

    def trace(self) -> Trace:
        made = {name: Table.of_rows(TABLES[name], rows) for name, rows in self.work.items()}
        return replace(
            trace(),
            api_calls=Table.of_rows(API_CALLS, self.calls),
            kernels=made["kernel"],
            memcpys=made["copy"],
            memsets=made["memset"],
        )


def test_where_a_trace_shows_nothing_usual_costs_are_assumed() -> None:
    assert Program().costs() == DEFAULTS


def late(count: int, *, latency: int = 3_000, kind: str = "launch") -> Program:
    """Kernels that find the GPU idle: each is launched after the one before it ended."""
    made = Program()
    for at in range(count + 1):
        call = made.call(100_000 * at, 100_000 * at + 5_000, kind)
        made.run(100_000 * at + 5_000 + latency, 100_000 * at + 20_000, call)
    return made


@pytest.mark.parametrize("count", [4, 5])
def test_a_median_is_of_five_examples_at_least(count: int) -> None:
    seen = count == 5
    assert late(count).costs().latency_ns == (3_000 if seen else 2_000)
    # the calls are one more, as the first kernel follows none
    assert late(count).costs().submit_ns == 5_000
    assert late(3).costs().submit_ns == 4_300


@pytest.mark.parametrize(("latency", "told"), [(19_999, 19_999), (20_000, 2_000)])
def test_a_kernel_that_waits_for_twenty_microseconds_had_another_reason(
    latency: int, told: int
) -> None:
    made = Program()
    for at in range(6):
        call = made.call(100_000 * at, 100_000 * at + 5_000)
        made.run(100_000 * at + 5_000 + latency, 100_000 * at + 40_000, call)
    assert made.costs().latency_ns == told


def test_a_graph_s_latency_is_that_of_its_first_node() -> None:
    made = Program()
    for at in range(6):
        call = made.call(100_000 * at, 100_000 * at + 5_000, "graph-launch")
        for node, latency in ((8, 9_000), (7, 7_000)):
            begin = 100_000 * at + 5_000 + latency
            made.run(begin, begin + 500, call, stream=node, graph_node_id=node)
    costs = made.costs()
    assert (costs.graph_latency_ns, costs.latency_ns) == (7_000, 2_000)
    assert costs.graph_start_ns == MISSING  # it waits for the return of its call
    assert (costs.graph_launch_ns, costs.submit_ns) == (5_000, 4_300)


@pytest.mark.parametrize(
    ("graphs", "begin", "told"), [(6, 12_000, 12_000), (5, 12_000, MISSING), (6, 50_000, MISSING)]
)
def test_a_graph_that_begins_within_its_call_is_counted_from_that_call_s_begin(
    graphs: int, begin: int, told: int
) -> None:
    made = Program()
    for at in range(graphs):
        call = made.call(200_000 * at, 200_000 * at + 50_000, "graph-launch")
        made.run(200_000 * at + begin, 200_000 * at + begin + 60_000, call)
    assert made.costs().graph_start_ns == told


def queued(*kinds: tuple[str, int], slack: int = 4_001, count: int = 5, name: str = "k") -> Program:
    """Pieces of work that follow each other, so many times: each kind with the gap before it, each
    launched ``slack`` before the end of the one before it.
    """
    made = Program()
    for turn in range(count):
        at = 1_000_000 * turn + 100_000
        for kind, gap in kinds:
            call = made.call(at - slack - 1_000, at - slack)
            made.run(at + gap, at + gap + 10_000, call, table=kind, name=name)
            at += gap + 10_000
    return made


def test_gaps_of_work_that_was_launched_in_time_by_what_they_lie_between() -> None:
    assert queued(("kernel", 0), ("kernel", 1_300)).costs().dispatch_ns == 1_300
    assert queued(("kernel", 0), ("copy", 4_000)).costs().to_copy_ns == 4_000
    assert queued(("copy", 0), ("kernel", 1_600)).costs().from_copy_ns == 1_600
    for before, after in map(
        str.split, ("copy kernel", "kernel copy", "memset kernel", "kernel memset")
    ):
        costs = queued((before, 0), (after, 1_600)).costs()
        assert costs.dispatch_ns == 1_150
        assert (costs.to_copy_ns == 1_600) == (after == "copy")
        assert (costs.from_copy_ns == 1_600) == (before == "copy")
        assert (costs.to_memset_ns, costs.from_memset_ns) == (930, 3_300)  # of graphs only
    assert queued(("kernel", 0), ("kernel", 1_300), slack=4_000).costs().dispatch_ns == 1_150
    assert queued(("kernel", 0), ("kernel", 19_999)).costs().dispatch_ns == 19_999
    assert queued(("kernel", 0), ("kernel", 20_000)).costs().dispatch_ns == 1_150


def test_work_of_two_streams_does_not_follow_each_other() -> None:
    made = Program()
    for at in range(6):
        call = made.call(100_000 * at, 100_000 * at + 1_000)
        made.run(100_000 * at + 20_000, 100_000 * at + 30_000, call, stream=7 + at)
    assert made.costs().latency_ns == 2_000


def test_work_that_begins_before_the_end_of_the_work_before_it_does_not_follow_it() -> None:
    assert queued(("kernel", 0), ("kernel", -1)).costs().dispatch_ns == 1_150
    assert queued(("kernel", 0), ("kernel", 0)).costs().dispatch_ns == 0


def attributes(gap: int) -> Program:
    made = queued(("kernel", 0), ("kernel", gap), name="cudnn_convFwd")
    made.calls = [{**call, "api": "cudaLaunchKernelExC"} for call in made.calls]
    return made


@pytest.mark.parametrize(("gap", "told"), [(-700, -700), (-1, -1), (0, MISSING), (500, MISSING)])
def test_kernels_that_may_begin_early_mostly_do_or_nothing_is_known(gap: int, told: int) -> None:
    costs = attributes(gap).costs()
    assert costs.early_ns == told
    assert costs.dispatch_ns == 1_150
    assert costs.made_node_ns == 600  # as launches with attributes are recorded


def test_pytorch_s_graphs_are_recorded_as_close_as_others() -> None:
    made = attributes(500)
    assert made.costs().made_node_ns == 600
    for one in made.work["kernel"]:
        one["name"] = "void at::native::vectorized_elementwise_kernel<4, float>(int)"
    assert made.costs().made_node_ns == 200


# --- nodes of graphs
# ----------------------------------------------------------------------------------------


def graph(*gaps: int, kinds: str = "", streams: tuple[int, ...] = (), name: str = "k") -> Program:
    """One graph launch: nodes with these gaps before each but the first."""
    made = Program()
    call = made.call(0, 5_000, "graph-launch")
    at = 20_000
    for number, gap in enumerate((0, *gaps)):
        table = {"m": "memset", "": "kernel", "k": "kernel"}[kinds[number : number + 1]]
        stream = streams[number] if streams else 7
        made.run(
            at + gap,
            at + gap + 1_000,
            call,
            table=table,
            stream=stream,
            graph_node_id=number,
            name=name,
        )
        at += gap + 1_000
    return made


def test_nodes_of_a_graph_without_branches_follow_each_other_as_recorded() -> None:
    assert graph(*[700] * 5).costs().node_ns == 700
    assert graph(*[700] * 4).costs().node_ns == MISSING
    assert graph(*[700] * 5).costs().dispatch_ns == 1_150


@pytest.mark.parametrize(("gap", "told"), [(700, 510), (260, 70), (249, 60)])
def test_nodes_of_a_graph_with_branches_follow_each_other_later_than_without(
    gap: int, told: int
) -> None:
    assert graph(*[gap] * 6, streams=(7, 7, 7, 7, 7, 7, 9)).costs().node_ns == told


def test_memsets_in_graphs_have_gaps_of_their_own() -> None:
    costs = graph(*[100, 200] * 5, kinds="km" * 5 + "k").costs()
    assert (costs.to_memset_ns, costs.from_memset_ns, costs.node_ns) == (100, 200, MISSING)
    assert graph(*[100, 200] * 4, kinds="km" * 4 + "k").costs().to_memset_ns == 930


@pytest.mark.parametrize(
    ("gaps", "told"),
    [
        ([100] * 5, 740),
        ([100] * 4, 0),  # too few
        ([60] * 5, 740),
        ([165] * 5, 740),
        ([59] * 5, 0),
        ([166] * 5, 0),
        ([100] * 2 + [400] * 3, 740),  # 40 % are narrow
        ([100] * 3 + [400] * 5, 0),  # 37.5 %
    ],
)
def test_nodes_of_generated_kernels_are_wider_apart_than_they_are_recorded_where_they_are_close(
    gaps: list[int], told: int
) -> None:
    assert graph(*gaps, name="cudnn_generated_fwd").costs().wider_node_ns == told
    assert graph(*gaps).costs().wider_node_ns == 0


def test_the_width_is_by_the_share_of_generated_kernels_and_of_graphs_without_branches() -> None:
    made = graph(*[100] * 7, name="cudnn_generated_fwd")
    for one in made.work["kernel"][:6]:
        one["name"] = "k"
    assert made.costs().wider_node_ns == round(740 * 2 / 8)
    streams = (7,) * 7 + (9,)
    assert graph(*[100] * 7, streams=streams, name="cudnn_generated_x").costs().wider_node_ns == 0
    # most kernels of the window must be a graph's
    for beside, told in ((10, round(740 * 8 / 18)), (15, round(740 * 8 / 23)), (16, 0)):
        made = graph(*[100] * 7, name="cudnn_generated_fwd")
        for at in range(beside):
            call = made.call(10**7 * (at + 1), 10**7 * (at + 1) + 10)
            made.run(10**7 * (at + 1) + 100_000, 10**7 * (at + 1) + 100_010, call, stream=20 + at)
        assert made.costs().wider_node_ns == told


# --- waits
# --------------------------------------------------------------------------------------------------


def waits(count: int, *, waited: bool = True, thread: int = 7, process: int = 1) -> Program:
    made = Program()
    for at in range(count):
        begin = 100_000 * at
        call = made.call(begin, begin + 1_000)
        made.run(begin + 2_000, begin + (20_000 if waited else 9_000), call, process=process)
        made.call(begin + 10_000, begin + (23_000 if waited else 11_700), "sync", thread=thread)
    return made


def test_a_wait_returns_after_the_last_work_or_takes_its_time_where_there_is_none() -> None:
    costs = waits(5).costs()
    assert (costs.return_ns, costs.idle_sync_ns) == (3_000, 1_000)
    costs = waits(5, waited=False).costs()
    assert (costs.return_ns, costs.idle_sync_ns) == (2_500, 1_700)
    assert waits(4).costs().return_ns == 2_500
    assert waits(5, thread=8).costs().return_ns == 2_500  # of another thread
    assert waits(5, process=2).costs().return_ns == 2_500  # for another process's work


def test_a_wait_before_any_work_took_its_own_time() -> None:
    made = Program()
    for at in range(5):
        made.call(1_000 * at, 1_000 * at + 400, "sync")
    call = made.call(50_000, 51_000)
    made.run(60_000, 70_000, call)
    assert made.costs().idle_sync_ns == 400
    # work that ends as the wait begins was not waited for
    made = Program()
    for at in range(5):
        call = made.call(10_000 * at, 10_000 * at + 10)
        made.run(10_000 * at + 50, 10_000 * at + 100, call)
        made.call(10_000 * at + 100, 10_000 * at + 700, "sync")
    assert made.costs().idle_sync_ns == 600
