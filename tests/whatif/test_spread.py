"""How far times of CUDA graphs may be off, and how their nodes lie without the profiler: facts on
real captures, and on made-up graphs.
"""

from __future__ import annotations

import csv
import statistics
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from nsysmap.analysis import observed_of
from nsysmap.core.table import MISSING
from nsysmap.mapping.mapped_trace import map_report, read_engines
from nsysmap.whatif.change import chosen_changes
from nsysmap.whatif.model import Model, read_model
from nsysmap.whatif.predict import predicted
from nsysmap.whatif.profiler import LIKELY, MACHINES, ProfilerCosts, unprofiled
from nsysmap.whatif.replay import replay
from nsysmap.whatif.spread import (
    FACTORS,
    MADE,
    RECORDED,
    graph_spread,
    has_dynamic_shapes,
    only_graphs,
    recorded_spread,
)
from nsysmap.whatif.timeline import Timeline, Work
from tests.places import FIXTURES
from tests.whatif.test_replay import COSTS, program, step, work

REAL = FIXTURES / "real_trt"
NO_PROFILER = ProfilerCosts(own_calls=True, call_ns=0, edge_ns=0, range_ns=0)
GRAPHS = (
    "bert_eager-graph", "c_odd-graph", "cpp_edsr-graph", "dgcnn-graph", "dlrm-graph",
    "googlenet-graph", "gru-graph", "llama-graph", "p_island-graph", "p_shift-graph",
    "p_softmax-graph", "resnet50_b1-graph",
)  # fmt: skip
STREAMS = (
    "bert_eager-sync", "bert_eager-sync_nonvtx", "cpp_edsr-sync", "dlrm-sync", "dlrm-sync_nonvtx",
    "gru-sync_nonvtx", "llama-sync", "llama-sync_nonvtx", "moe-sync", "resnet50_b1-sync",
)  # fmt: skip


@cache
def model_of(name: str) -> Model:
    engine = REAL / f"{name.rpartition('-')[0]}.engine.json"
    observed, facts = observed_of(map_report(REAL / f"{name}.nsys-rep", read_engines([engine])))
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    return model


@cache
def graph_ns() -> dict[str, float]:
    with (REAL / "timings.tsv").open(encoding="utf-8", newline="") as file:
        return {
            row["engine"]: float(row["us_median"]) * 1_000
            for row in csv.DictReader(file, delimiter="\t")
            if row["mode"] == "graph"
        }


def figures(name: str, column: str) -> tuple[int, int, int]:
    changes = list(chosen_changes(["cuda-graph"], ()))
    (row,) = predicted(model_of(name), changes).whatif.records()
    one, two, three = (int(str(row[f"{which}{column}"])) for which in ("", "low_", "high_"))
    return one, two, three


@pytest.mark.parametrize(
    ("names", "column", "median", "most", "width"),
    [(GRAPHS, "before_ns", 0.015, 0.04, 0.15), (STREAMS, "after_ns", 0.03, 0.06, 0.18)],
    ids=["recorded", "made"],
)
def test_graphs_of_tensorrt_take_what_is_predicted_and_are_in_the_range(
    names: tuple[str, ...], column: str, median: float, most: float, width: float
) -> None:
    off, widths = [], []
    for name in names:
        measured = graph_ns()[name.rpartition("-")[0]]
        likely, low, high = figures(name, column)
        assert low < measured < high, name
        off.append(abs(likely / measured - 1))
        widths.append((high - low) / likely)
    assert statistics.median(off) < median
    assert max(off) < most
    assert statistics.median(widths) < width


def test_a_range_is_wider_where_more_may_differ() -> None:
    model = model_of("llama-graph")
    assert only_graphs(model.likely)
    below, above = recorded_spread(model)
    assert 0 < above < below
    assert graph_spread(model, model.likely, MADE, FACTORS.made_graph)[0] > below
    quicker, slower = graph_spread(
        model, model.likely, RECORDED, FACTORS.recorded_graph, dynamic=True
    )
    assert (quicker, slower > above) == (below, True)
    more = replace(
        model.likely,
        threads=tuple(
            tuple(one._replace(works=one.works * 2) for one in steps)
            for steps in model.likely.threads
        ),
    )
    assert graph_spread(model, more, RECORDED, FACTORS.recorded_graph)[0] > below
    assert not only_graphs(model_of("llama-sync").likely)


@pytest.mark.parametrize(("blocks", "few"), [(1, True), (0, False)])
def test_one_block_is_few_and_no_block_is_unknown(blocks: int, few: bool) -> None:
    model = model_of("mixer_tf32-graph")
    trace = model.observed.trace
    same = np.full(len(trace.kernels), blocks, np.int64)
    grids = {f"grid_{axis}": same for axis in "xyz"}
    kernels = trace.kernels.with_columns(trace.kernels.spec, grids)
    observed = replace(model.observed, trace=replace(trace, kernels=kernels))
    assert (replace(model, observed=observed).few_blocks_share > 0.5) == few


def test_a_long_kernel_of_few_blocks_may_take_longer() -> None:
    assert 0.5 < model_of("mixer_tf32-graph").few_blocks_share < 0.6  # a convolution of 4 blocks
    assert model_of("bert_eager-graph").few_blocks_share == 0
    below, above = recorded_spread(model_of("mixer_tf32-graph"))
    assert above > 2 * below
    _, low, high = figures("mixer_tf32-graph", "before_ns")
    assert low < graph_ns()["mixer_tf32"] < high


def test_dynamic_shapes_show_in_the_engine_s_tensors() -> None:
    _, facts = observed_of(
        map_report(REAL / "prefill-profiles.nsys-rep", read_engines([REAL / "prefill.engine.json"]))
    )
    assert has_dynamic_shapes(facts)
    assert not has_dynamic_shapes(model_of("llama-graph").facts)
    assert not has_dynamic_shapes(None)


def spaced(works: tuple[Work, ...], *, wider_ns: int = 0) -> list[int]:
    """The begins of a graph's nodes without the profiler, behind the end of the one before."""
    launch = step("submit", 0, graph=True, works=works)
    costs = replace(COSTS, wider_node_ns=wider_ns)
    timeline = unprofiled(Timeline(((launch,),), costs, ({},)), NO_PROFILER, LIKELY)
    placed: list[tuple[Work, int, int]] = []
    replay(timeline, placed=placed)
    return [after[1] - before[2] for before, after in pairwise(placed)]


def test_what_waits_for_a_memset_in_a_graph_begins_earlier_than_recorded() -> None:
    nodes = (
        work(1, 5_000),
        work(2, 800, "memset", after=(1,))._replace(lead_ns=930),
        work(3, 5_000, after=(2,))._replace(lead_ns=3_300),
        work(4, 5_000, after=(3,))._replace(lead_ns=250),
    )
    assert spaced(nodes) == [930, 3_300 - LIKELY.memset_saved_ns, 250]
    close = (*nodes[:2], nodes[2]._replace(lead_ns=300), nodes[3])
    assert spaced(close) == [930, 300, 250]  # no closer than it was


def test_nodes_are_further_apart_where_their_recorded_gaps_are_too_narrow() -> None:
    nodes = (work(1, 5_000), work(2, 5_000, after=(1,))._replace(lead_ns=96))
    assert spaced(nodes) == [96]
    assert spaced(nodes, wider_ns=300) == [396]


@pytest.mark.parametrize(("name", "wider"), [("gm_bert-graph", True), ("bert_eager-graph", False)])
def test_narrow_gaps_are_seen_between_kernels_that_tensorrt_launches_with_attributes(
    name: str, wider: bool
) -> None:
    engine = REAL / "bert_eager.engine.json"
    observed, facts = observed_of(map_report(REAL / f"{name}.nsys-rep", read_engines([engine])))
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    assert (model.timeline.costs.wider_node_ns > 0) == wider
    assert model.before[model.machines[0]] == pytest.approx(graph_ns()["bert_eager"], rel=0.03)


def test_a_graph_of_launches_with_attributes_has_wider_gaps_than_one_of_plain_launches() -> None:
    assert model_of("llama-sync").timeline.costs.made_node_ns == 600
    observed, facts = observed_of(map_report(FIXTURES / "bert_trt10" / "sync.sqlite", []))
    model = read_model(observed, facts, MACHINES)
    assert isinstance(model, Model)
    assert model.timeline.costs.made_node_ns == 200


def test_work_before_time_0_is_replayed_beside_other_work() -> None:
    """A kernel that begins early may be placed before 0, where -1 once stood for "nothing"."""
    made = program(kernels=[2_000] * 3, need=1.0)
    first = made.threads[0]
    early = tuple(
        one._replace(works=tuple(w._replace(queue=1, early=True) for w in one.works))
        for one in first
    )
    costs = replace(COSTS, early_ns=-9_000, latency_ns=-5_000)
    assert MISSING not in (costs.early_ns, costs.latency_ns)
    ends = replay(replace(made, threads=(first, early), costs=costs, weights=({}, {})))
    assert len(ends) == len((first, early))
