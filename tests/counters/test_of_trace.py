"""Counters of a whole trace, as tables: samples made for a real timeline, a real encoder's where
../shared is there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.core.table import MISSING, IntArray, Table, Text
from nsysmap.counters import problem
from nsysmap.counters.of_trace import counters_of
from nsysmap.counters.sampling import Counters, sampling_notes
from nsysmap.inputs.nsys.sqlite_columns import sqlite_tables
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.mapping.mapped_trace import MappedTrace, map_report, map_trace, read_engines
from nsysmap.trace.gpu_metrics import GpuMetrics
from tests.exports import exported
from tests.figures import figures
from tests.places import CAPTURES, FIXTURES

ENCODER = CAPTURES / "gpu_metrics" / "eager.nsys-rep"
NAMES = (
    "GPC Clock Frequency [MHz]", "SMs Active [Throughput %]", "DRAM Read Bandwidth [Throughput %]",
    "DRAM Write Bandwidth [Throughput %]",
)  # fmt: skip
PERIOD_NS = 10_000
LONG, SHORT = 90.0, 40.0  # SM activity of kernels beyond 5 µs, and of the others


def sampled(
    kernels: Table,
    *,
    until: float = 1.0,
    lost: slice | None = None,
    gpu: int = 0,
    names: Sequence[str] = NAMES,
) -> NsysTables:
    """GPU metrics as nsys writes them, of the first part of the kernels' time; memory is read at
    half of the SM activity.

    ``lost`` are samples that nsys had no room for.
    """
    first, last = int(kernels.ints("start_ns").min()), int(kernels.ints("end_ns").max())
    start = np.arange(
        first - 10 * PERIOD_NS, first + int((last - first) * until) + 10 * PERIOD_NS, PERIOD_NS
    )
    busy = np.zeros(len(start))
    for begin, end in zip(
        kernels.ints("start_ns").tolist(), kernels.ints("end_ns").tolist(), strict=True
    ):
        activity = LONG if end - begin > 5_000 else SHORT
        for at in range(
            (begin - int(start[0])) // PERIOD_NS,
            min((end - int(start[0])) // PERIOD_NS + 1, len(start)),
        ):
            busy[at] += (
                activity
                * max(min(end, int(start[at]) + PERIOD_NS) - max(begin, int(start[at])), 0)
                / PERIOD_NS
            )
    if lost is not None:
        start, busy = np.delete(start, lost), np.delete(busy, lost)
    values = (
        np.stack([np.full(len(start), 1_700_000_000), busy, busy / 2, busy / 4])
        .T.round()
        .astype(np.int64)
    )
    rows: dict[str, IntArray | Text] = {
        "timestamp": np.repeat(start, 4), "typeId": np.full(4 * len(start), gpu),
        "metricId": np.tile(np.arange(4), len(start)),
        "value": values.reshape(-1),
    }  # fmt: skip
    told: dict[str, IntArray | Text] = {
        "typeId": np.full(4, gpu),
        "metricId": np.arange(4),
        "metricName": Text.of(names),
    }
    held = {
        "gpu_metrics": ("GPU_METRICS", rows),
        "target_info_gpu_metrics": ("TARGET_INFO_GPU_METRICS", told),
    }

    def fetch(
        table: str, integers: Sequence[str], texts: Sequence[str]
    ) -> Mapping[str, IntArray | Text]:
        return {name: dict(held[table.lower()][1])[name] for name in (*integers, *texts)}

    spelled = {
        name: (theirs, {column.lower(): column for column in columns})
        for name, (theirs, columns) in held.items()
    }
    return NsysTables(Path("made"), "SQLite", spelled, fetch)


def counted(
    mapped: MappedTrace,
    *,
    until: float = 1.0,
    lost: slice | None = None,
    gpu: int = 0,
    names: Sequence[str] = NAMES,
) -> Counters:
    metrics = GpuMetrics(
        sampled(mapped.trace.kernels, until=until, lost=lost, gpu=gpu, names=names)
    )
    return counters_of(
        replace(mapped.trace, gpu_metrics=metrics),
        mapped.kernels,
        mapped.inferences,
        mapped.found.of_call,
    )


@pytest.fixture(scope="module")
def bert() -> MappedTrace:
    folder = FIXTURES / "bert_trt10"
    return map_report(exported("bert_trt10/graph"), read_engines([folder / "engine.json"]))


def test_each_kernel_gets_the_activity_that_it_had(bert: MappedTrace) -> None:
    found = counted(bert)
    (run,) = found.gpu_sampling
    assert run.maybe_text("reason") is None
    assert abs(run.real("clock_offset_ns")) < 4 * run.real("clock_offset_error_ns") + 100
    rows = found.kernel_counters.pandas()
    stated = (rows.executions >= 5) & (rows.concurrent_share <= 0.05) & (rows.error <= 10)
    assert rows[stated].low.notna().all() and rows[rows.low.isna()].high.isna().all()
    active = rows[(rows.metric == "sm_active") & rows.known]
    true = np.where(active.duration_ns > 5_000, LONG, SHORT)
    # a kernel that is now longer, now shorter has no one true value
    clear = (active.duration_ns - 5_000).abs() > 500
    assert clear.sum() > 20
    inside = (active.low <= true + 0.5) & (active.high >= true - 0.5)
    assert inside[clear].mean() >= 0.85


def test_a_layer_of_one_kernel_has_the_counters_of_its_kernel(bert: MappedTrace) -> None:
    found = counted(bert)
    kernels, layers = found.kernel_counters.pandas(), found.layer_counters.pandas()
    of_layer = kernels[kernels.metric == "dram_read"].groupby("layer_id")
    alone = [layer for layer, rows in of_layer if len(rows) == 1]
    assert alone
    for layer in alone[:20]:
        kernel = of_layer.get_group(layer).iloc[0]
        row = layers[(layers.layer_id == layer) & (layers.metric == "dram_read")].iloc[0]
        assert (row.value, row.error) == (
            pytest.approx(kernel.value, abs=0.5),
            pytest.approx(kernel.error, rel=0.1, abs=0.05),
        )


def test_too_few_samples_are_an_answer_and_not_a_value(bert: MappedTrace) -> None:
    found = counted(bert, until=0.0)
    (run,) = found.gpu_sampling
    assert "too few" in run.text("reason")
    assert len(found.kernel_counters) == len(found.layer_counters) == 0


def test_samples_that_nsys_lost_are_said_to_be_lost(bert: MappedTrace) -> None:
    starts = bert.kernels.ints("start_ns")[bert.kernels.ints("inference") >= 0]
    first = int(starts.min() - bert.kernels.ints("start_ns").min()) // PERIOD_NS
    found = counted(bert, lost=slice(max(first - 80, 0) + 110, -5))
    (run,) = found.gpu_sampling
    assert "in one stretch" in run.text("reason")
    assert "--gpu-metrics-frequency=20000" in run.text("reason")
    assert len(found.kernel_counters) == 0


def test_another_gpu_than_the_one_with_the_kernels_is_said_to_have_been_sampled(
    bert: MappedTrace,
) -> None:
    (run,) = counted(bert, gpu=1).gpu_sampling
    assert figures(run.text("reason"))[:2] == ["1", "0"]  # the GPU sampled, and that of kernels
    # as nsys 2023.4, which captured it, spells it
    assert "--gpu-metrics-device=0 " in run.text("reason")


def test_metrics_whose_names_are_not_known_are_named(bert: MappedTrace) -> None:
    strange = "Waves In Flight [Throughput %]"
    found = counted(bert, names=(*NAMES[:3], strange))
    (run,) = found.gpu_sampling
    assert (run.text("unknown_metrics"), run.maybe_text("reason")) == (strange, None)
    assert sampling_notes(found.gpu_sampling, "inference")[0].text.endswith(strange)
    (run,) = counted(bert, names=("A", "B", "C", "D")).gpu_sampling
    assert "(not known: A, B, C, D)" in run.text("reason")


@pytest.mark.parametrize("engine", [True, False])
def test_kernels_that_only_their_order_maps_have_the_counters_that_ranges_give_them(
    bert: MappedTrace, *, engine: bool
) -> None:
    folder = FIXTURES / "bert_trt10"
    trace = replace(bert.trace, nvtx_ranges=bert.trace.nvtx_ranges.take(np.zeros(0, np.int64)))
    plain = map_trace(trace, read_engines([folder / "engine.json"] if engine else []))
    assert "nvtx" not in plain.kernels.text("method").list()
    by_range, by_order = (counted(each).kernel_counters.pandas() for each in (bert, plain))
    both = by_range.merge(by_order, on=["position", "metric"])
    both = both[both.known_x & both.known_y & (both.unit_x == "percent")]
    assert len(both) >= 3 * 50
    assert ((both.value_x - both.value_y).abs() <= both.error_x + both.error_y + 0.5).mean() > 0.95
    if engine:
        assert (both.layer_id_x == both.layer_id_y).mean() > 0.95


def test_no_sampling_no_rows(bert: MappedTrace) -> None:
    found = counters_of(bert.trace, bert.kernels, bert.inferences, bert.found.of_call)
    assert {name: len(table) for name, table in vars(found).items() if len(table)} == {}


@pytest.mark.skipif(not ENCODER.exists(), reason="without ../shared")
def test_an_encoder_that_pytorch_ran_is_counted_kernel_by_kernel() -> None:
    tables = analyze(ENCODER, rules=()).tables
    (run,) = tables.gpu_sampling
    assert (run.maybe_text("reason"), run.integer("inferences")) == (None, 60)
    rows = tables.kernel_counters.pandas()
    tensor = rows[rows.metric == "tensor_active"]
    assert len(tensor) == 60
    assert tensor.known.all()
    products = tensor[tensor.kernel.str.contains("gemm") & (tensor.position % 10 == 5)]
    assert products.value.between(60, 65).all()


def test_clocks_and_links_are_of_the_whole_gpu(bert: MappedTrace) -> None:
    """Neither is a single kernel's: what eager launches send over PCIe a graph does not, and clocks
    change from run to run.
    """
    names = (
        "GPC Clock Frequency [MHz]",
        "SMs Active [Throughput %]",
        "PCIe TX Throughput [Throughput %]",
        "NVLink bytes received [Throughput %]",
    )
    found = counted(bert, names=names)
    assert (
        set(found.kernel_counters.text("metric").list())
        == set(found.layer_counters.text("metric").list())
        == {"sm_active"}
    )
    rows = found.device_counters.pandas().set_index("metric")
    assert set(rows.index) == {"gpc_clock", "pcie_send", "nvlink_receive"}
    clock = rows.loc["gpc_clock"]
    assert (clock.value, clock.low, clock.high, clock.unit) == (1.7e9, 1.7e9, 1.7e9, "hertz")
    assert clock.inferences == found.gpu_sampling.ints("inferences")[0]
    link = rows.loc["pcie_send"]
    assert 0 < link.low <= link.value <= link.high < LONG / 2


@pytest.mark.parametrize(("active", "known"), [(60.0, True), (0.0, False)])
def test_long_kernels_without_repetition_are_told_of_the_whole_gpu_if_the_samples_follow_them(
    bert: MappedTrace, *, active: float, known: bool
) -> None:
    whole, mapped = (table.take(np.arange(1)) for table in (bert.trace.kernels, bert.kernels))
    end = np.array([int(whole.ints("start_ns")[0]) + 150 * PERIOD_NS])
    long, of_none = (
        Table(table.spec, {**table.columns, "end_ns": end}) for table in (whole, mapped)
    )
    of_none = Table(of_none.spec, {**of_none.columns, "inference": np.array([MISSING])})
    made = sampled(long)
    values = made.fetch("GPU_METRICS", ("value",), ())["value"]
    assert isinstance(values, np.ndarray)
    values[1::4][values[1::4] > 0] = active
    trace = replace(bert.trace, kernels=long, gpu_metrics=GpuMetrics(made))
    (run,) = counters_of(
        trace, of_none, bert.inferences.take(np.zeros(0, np.int64)), bert.found.of_call
    ).gpu_sampling
    assert run.integer("inferences") == 0
    assert run.text("reason")
    assert run.maybe_real("sm_percent") == (pytest.approx(active) if known else None)


def test_of_a_long_run_enough_stretches_tell_what_all_samples_tell(
    tmp_path: Path, bert: MappedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite"
    held = sampled(bert.trace.kernels, lost=slice(700, 800))
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA page_size = 512")
        for table, texts in (("GPU_METRICS", ()), ("TARGET_INFO_GPU_METRICS", ("metricName",))):
            names = list(held.spelled[table.lower()][1].values())
            columns = held.fetch(table, [name for name in names if name not in texts], texts)
            rows = zip(
                *(
                    each.list() if isinstance(each, Text) else each.tolist()
                    for each in (columns[name] for name in names)
                ),
                strict=True,
            )
            file.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            file.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)
        file.commit()
    trace = replace(bert.trace, gpu_metrics=GpuMetrics(sqlite_tables(path)))

    def counters() -> Counters:
        return counters_of(trace, bert.kernels, bert.inferences, bert.found.of_call)

    whole = counters()
    for name, value in {"ENOUGH_SAMPLES": 400, "ENOUGH_FOR_PART": 0, "TOGETHER": 50}.items():
        monkeypatch.setattr(problem, name, value)
    part = counters()
    (one,), (other,) = whole.gpu_sampling, part.gpu_sampling
    assert other.flag("thinned") and not one.flag("thinned")
    assert other.integer("used") < 500 < one.integer("used")
    for name in ("samples", "holes", "inferences"):
        assert one.integer(name) == other.integer(name)
    assert one.real("lost_share") == pytest.approx(other.real("lost_share"))
    every, some = whole.kernel_counters.pandas(), part.kernel_counters.pandas()
    apart: list[float] = ((every.value - some.value) / np.hypot(every.error, some.error)).tolist()
    assert len(every) > 100 and np.sqrt(np.mean(np.square(apart))) < 1.0
