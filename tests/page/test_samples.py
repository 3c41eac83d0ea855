"""Sampled hardware counters as tracks: on the kernels' clock, means over time where there are too
many, nothing where nothing is known.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nsysmap.analysis import Analysis, analyze_mapped
from nsysmap.api import analyze
from nsysmap.core.counter_schema import GPU_SAMPLING, KERNEL_COUNTERS, LAYER_COUNTERS
from nsysmap.core.table import MISSING, Table
from nsysmap.mapping.mapped_trace import map_report, read_engines
from nsysmap.names.metric_names import metric
from nsysmap.output.build import report_of
from nsysmap.output.page.events import Events, events_of
from nsysmap.output.page.samples import of_names, sampled_of
from nsysmap.output.page.windows import Windows, windows_of
from nsysmap.output.page.write import write_page
from nsysmap.output.perfetto.write import write_trace
from nsysmap.trace.gpu_metrics import GpuMetrics, GpuSamples
from tests.browser import Browser
from tests.counters.test_of_trace import LONG
from tests.counters.test_of_trace import sampled as samples_of
from tests.exports import exported
from tests.perfetto.test_write import read
from tests.places import FIXTURES

NAMES = (
    "SMs Active [Throughput %]",
    "Tensor Active [Throughput %]",
    "PCIe RX Throughput [Throughput %]",
    "GPC Clock Frequency [MHz]",
)
KERNEL = 1_000  # of the trace: whose place in its inference is 3 and whose counters are known


@pytest.fixture(scope="module")
def bare() -> Analysis:
    return analyze(
        FIXTURES / "bert_trt103" / "sync.nsys-rep",
        FIXTURES / "bert_trt103" / "engine.json",
        rules=(),
    )


def gpu(begin_ns: int, values: list[list[float]], period_ns: int = 10_000) -> GpuSamples:
    start = begin_ns + period_ns * np.arange(len(values[0]), dtype=np.int64)
    return GpuSamples(
        0, tuple(map(metric, NAMES)), start, start + period_ns, np.array(values, np.float64), 0, 0
    )


def sampled(analysis: Analysis, samples: GpuSamples, *, offset_ns: float | None = None) -> Analysis:
    held = GpuMetrics()
    vars(held)["samples"] = (samples,)
    tables = analysis.tables
    facts = [
        {
            "device": 0,
            "frequency_hz": 1e5,
            "samples": len(samples.start_ns),
            "clock_offset_ns": offset_ns,
            "clock_drift": 0.0,
        }
    ]
    return replace(
        analysis,
        gpu_metrics=held,
        tables=tables.with_tables(gpu_sampling=Table.of_rows(GPU_SAMPLING, facts)),
    )


def shown_in(analysis: Analysis) -> tuple[Windows, Events]:
    windows = windows_of(analysis.tables)
    return windows, events_of(analysis.tables, windows)


def test_samples_are_moved_to_the_clock_of_the_kernels_and_kept_among_the_events(
    bare: Analysis,
) -> None:
    windows, events = shown_in(bare)
    values = [[10.0, 20.0, 30.0, 40.0], [0.0] * 4, [0.0] * 4, [1.5e9] * 4]
    early = events.origin_ns - 20_000
    (one,) = sampled_of(sampled(bare, gpu(early, values)), windows, events)
    assert one.values[0].tolist() == [30, 40]  # the others lie before the first event
    assert not one.aligned
    (one,) = sampled_of(sampled(bare, gpu(early, values), offset_ns=10_000.0), windows, events)
    assert one.values[0].tolist() == [20, 30, 40]
    assert one.start_ns[0] == events.origin_ns
    assert one.aligned


def test_what_is_never_but_zero_has_no_track_unless_its_absence_says_something(
    bare: Analysis,
) -> None:
    windows, events = shown_in(bare)
    (one,) = sampled_of(
        sampled(bare, gpu(events.origin_ns, [[1.0], [0.0], [0.0], [1.5e9]])), windows, events
    )
    # PCIe is left out, idle tensor cores are not
    assert one.titles == (
        "SMs active",
        "tensor cores active",
        "SM clock",
    )
    assert one.values[2].tolist() == [1500]


def test_of_many_samples_the_means_are_shown_and_no_value_is_not_zero(bare: Analysis) -> None:
    windows, events = shown_in(bare)
    values = [[10.0, 20.0, np.nan, 40.0, np.nan, np.nan, 5.0], [0.0] * 7, [0.0] * 7, [1e9] * 7]
    (one,) = sampled_of(sampled(bare, gpu(events.origin_ns, values)), windows, events, most=4)
    assert one.each == 2
    assert one.values[0].tolist() == [15, 40, MISSING, 5]
    assert ((one.end_ns - one.start_ns) == [20_000, 20_000, 20_000, 10_000]).all()


def test_a_kernel_name_has_a_mean_only_where_all_its_kernels_have_a_value() -> None:
    base = {
        "kernel": "k",
        "metric": "sm_active",
        "unit": "percent",
        "executions": 10,
        "concurrent_share": 0.0,
        "duration_ns": 1000.0,
    }
    rows = [
        {**base, "position": 0, "value": 80.0, "known": True},
        {**base, "position": 1, "value": 20.0, "known": True, "duration_ns": 2000.0},
    ]
    assert of_names(Table.of_rows(KERNEL_COUNTERS, rows)) == {"k": {"sm_active": 40.0}}
    doubtful = [*rows, {**base, "position": 2, "value": 50.0, "known": False}]
    assert of_names(Table.of_rows(KERNEL_COUNTERS, doubtful)) == {"k": {"sm_active": None}}
    assert of_names(Table.empty(KERNEL_COUNTERS)) == {}


def test_the_page_shows_counters_below_the_streams_and_beside_kernel_and_layer(
    browser: Browser, bare: Analysis, tmp_path: Path
) -> None:
    kernels, inferences = bare.tables.kernels, bare.tables.inferences
    inference = int(kernels.ints("inference")[KERNEL])
    sequence, position = (
        int(inferences.ints("kernel_sequence")[inference]),
        int(kernels.ints("position")[KERNEL]),
    )
    layer = int(kernels.ints("layer_id")[KERNEL])
    about = {
        "device": 0,
        "layer_id": layer,
        "executions": 40,
        "unit": "percent",
        "duration_ns": 5000.0,
    }
    known = {**about, "metric": "tensor_active", "value": 61.7, "error": 2.2, "known": True}
    doubtful = {**about, "metric": "dram_read", "value": 20.0, "error": 30.0, "known": False}
    place = {
        "kernel_sequence": sequence,
        "position": position,
        "kernel": str(kernels.text("name")[KERNEL]),
        "concurrent_share": 0.0,
    }
    by_kernel = [{**known, **place}, {**doubtful, **place, "reason": "too few inferences"}]
    _, events = shown_in(bare)
    count = int(events.duration_ns // 10_000)
    wave = (50 + 40 * np.sin(np.arange(count) / 9)).tolist()
    analysis = sampled(bare, gpu(events.origin_ns, [wave, wave, [0.0] * count, [1.9e9] * count]))
    tables = analysis.tables.with_tables(
        kernel_counters=Table.of_rows(KERNEL_COUNTERS, by_kernel),
        layer_counters=Table.of_rows(LAYER_COUNTERS, [known, doubtful]),
    )
    write_page(replace(analysis, tables=tables), report_of(bare), tmp_path / "x.html")
    page = browser.open(tmp_path / "x.html", f"layer={layer}")
    page.wait_for_selector("body[data-ready]")
    assert re.search(r"tensor cores active\s+62% ± 2", page.inner_text("#details"))
    assert re.search(r"DRAM read\s+not known well enough", page.inner_text("#details"))
    assert "62%" in page.inner_text("#layer-table tr.on")
    canvas = page.locator("#lanes canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.get_by_text("first kernel in the timeline").click()
    page.wait_for_timeout(100)
    assert re.search(r"DRAM read\s+not known: too few inferences", page.inner_text("#details"))
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    box = canvas.bounding_box()
    assert box is not None
    # below inferences, idle time and the stream
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 22 + 21 + 23 + 37 + 10)
    told = page.inner_text("#details")
    assert "Hardware counters of GPU 0" in told
    assert re.search(r"SM clock\s+1,900 MHz", told)
    assert "not be aligned" in told


def test_the_counters_of_a_selected_part_of_time_are_the_means_of_its_samples(
    browser: Browser, bare: Analysis, tmp_path: Path
) -> None:
    _, events = shown_in(bare)
    wave = 50 + 40 * np.sin(np.arange(int(events.duration_ns // 10_000)) / 9)
    held = sampled(
        bare,
        gpu(
            events.origin_ns,
            [wave.tolist(), (100 - wave).tolist(), [0.0] * len(wave), [1.9e9] * len(wave)],
        ),
    )
    write_page(held, report_of(bare), tmp_path / "x.html")
    (one,) = sampled_of(held, *shown_in(held))
    begin, stop = (int(one.start_ns[at]) - events.origin_ns for at in (100, 140))
    page = browser.open(tmp_path / "x.html", f"range={begin}-{stop}")
    page.wait_for_selector("body[data-ready]")
    told = page.inner_text("#details")
    shown = dict(
        re.findall(
            r"(?m)^(.+?)\s+([\d.,]+)(?:%| MHz)$",
            told.partition("Hardware counters, mean over that time")[2],
        )
    )
    expected = {
        title: float(values[100:140].mean())
        for title, values in zip(one.titles, one.values, strict=True)
    }
    assert {title: float(text.replace(",", "")) for title, text in shown.items()} == pytest.approx(
        expected, abs=0.6
    )
    assert len({round(value) for value in expected.values()}) > 2
    page = browser.open(tmp_path / "x.html", "inference=5")
    page.wait_for_selector("body[data-ready]")
    assert "Hardware counters, mean over that time" in page.inner_text("#details")


def test_of_an_engine_s_trace_counters_are_estimated_and_shown_by_kernel_layer_and_over_time(
    browser: Browser, tmp_path: Path
) -> None:
    """Samples made for a capture with an engine, taken through the whole analysis: no capture has
    both.
    """
    mapped = map_report(
        exported("bert_trt10/graph"), read_engines([FIXTURES / "bert_trt10" / "engine.json"])
    )
    trace = replace(mapped.trace, gpu_metrics=GpuMetrics(samples_of(mapped.trace.kernels)))
    held = analyze_mapped(replace(mapped, trace=trace), rules=())
    write_page(held, report_of(held), tmp_path / "x.html")
    write_trace(held, tmp_path / "x.pftrace")
    _, tracks = read(tmp_path / "x.pftrace")
    active = next(values for name, values in tracks.items() if name.startswith("SMs active"))
    assert max(value for _, value in active) == pytest.approx(LONG, abs=1)
    assert {"DRAM read", "DRAM write", "SM clock"} <= {name.partition(",")[0] for name in tracks}
    page = browser.open(tmp_path / "x.html")
    page.wait_for_selector("body[data-ready]")
    page.select_option("#layer-rows", "each")
    heads = page.locator("#layer-table thead th").all_inner_texts()
    assert "DRAM read" in heads
    rows = page.locator("#layer-table tbody tr")
    # the costliest take 8 µs each
    told = [
        rows.nth(at).locator("td").nth(heads.index("DRAM read")).inner_text() for at in range(5)
    ]
    assert all(abs(int(text.rstrip("%")) - LONG / 2) <= 3 for text in told), told
    rows.first.locator("button").click()
    assert re.search(r"DRAM read\s+4\d% ± \d", page.inner_text("#details"))
    assert re.search(
        r"counters and engine file\s+[\d.]+ times the bytes of its tensors",
        page.inner_text("#details"),
    )
    page.get_by_text("first kernel in the timeline").click()
    assert re.search(
        r"Hardware counters .*\n[\s\S]*DRAM read\s+4\d% ± \d", page.inner_text("#details")
    )
    canvas = page.locator("#lanes canvas").bounding_box()
    assert canvas is not None
    page.mouse.click(canvas["x"] + canvas["width"] / 2, canvas["y"] + 22 + 21 + 23 + 37 + 10)
    assert "Hardware counters of GPU 0" in page.inner_text("#details")
    assert "could not be aligned" not in page.inner_text("#details")
