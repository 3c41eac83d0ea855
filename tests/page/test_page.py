"""The page of an analysis in a real browser: one file, no request, and every figure follows one selection."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.analysis import analyze
from nsysmap.base.table import MISSING, IntArray, Table, Text
from nsysmap.page.write import write_page
from nsysmap.picture.blocks import block_groups
from nsysmap.report.build import report_of
from tests.browser import Browser
from tests.places import FIXTURES, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

CAPTURES = {
    "one inference at a time": ("bert_trt103/sync.nsys-rep", "bert_trt103/engine.json"),
    "a graph, kernels hidden": ("bert_trt10/graph_whole.nsys-rep", "bert_trt10/engine.json"),
    "auxiliary streams in a graph": ("aux_streams/graph.nsys-rep", "aux_streams/engine.json"),
    "two engines in turns": ("decode_loop/sync.nsys-rep", "decode_loop/context.engine.json", "decode_loop/generation.engine.json"),
    "pageable copies": ("bert_split_trt10/pageable.nsys-rep", "bert_split_trt10/engine.json"),
    "no engine file": ("bert_trt85/sync.nsys-rep",),
}

MIXED = ("torch_mixed/sync.nsys-rep", "torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("pages")

    def write(report: str, *engines: str, most_kernels: int = 150_000) -> Path:
        path = folder / f"{'-'.join((report, *engines)).replace('/', '_')}-{most_kernels}.html"
        if not path.exists():
            analysis = analyze(FIXTURES / report, [FIXTURES / engine for engine in engines])
            write_page(analysis, report_of(analysis), path, most_kernels=most_kernels)
        return path

    return write


def opened(browser: Browser, path: Path, fragment: str = "", *, scheme: str = "light") -> Page:
    page = browser.open(path, fragment, scheme=scheme)
    page.wait_for_selector("body[data-ready]")
    return page


def bert(written: Callable[..., Path]) -> Path:
    return written(*CAPTURES["one inference at a time"])


@pytest.mark.parametrize("name", CAPTURES)
def test_a_page_opens_with_its_figures_and_asks_for_nothing(browser: Browser, written: Callable[..., Path], name: str) -> None:
    page = opened(browser, written(*CAPTURES[name]))
    assert CAPTURES[name][0].rpartition("/")[2] in page.title()
    assert page.locator("#answer dd").count() >= 3
    assert page.locator("#lanes canvas").evaluate("canvas => canvas.height") > 40
    for section in page.locator("main > section").all():
        section.scroll_into_view_if_needed()  # the graph is drawn when it comes into sight
    assert page.is_hidden("#broken")


def test_the_answer_stands_on_one_screen_of_a_small_laptop(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.set_viewport_size({"width": 1024, "height": 700})
    assert page.locator("#details").is_hidden()  # nothing is clicked yet
    told = page.inner_text("#answer")
    for word in (
        "CUDA graph",
        "not fused",
        "slowest",
        "engine.json is the engine that ran",
        "how sure",
        "What to do first",
        "Which layers take the most time",
    ):
        assert word in told, word
        assert page.locator("#answer").get_by_text(word).first.evaluate("one => one.getBoundingClientRect().bottom < 700"), word
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_text("show it").click()
    assert page.inner_text("#details h2").startswith("Inference")
    page.get_by_label("close the details").click()
    assert page.locator("#details").is_hidden()


def test_findings_of_one_rule_stand_together(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    assert page.locator(".finding h3", has_text="attention-not-fused").count() == 1
    assert "attention-not-fused × 2" in page.inner_text("#answer")
    assert page.locator(".finding", has_text="attention-not-fused").locator(".place").count() == 2


def test_parts_of_a_region_that_are_alike_are_one_row(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("bert_trt85/sync.nsys-rep", "bert_trt85/engine.json"))
    rows = page.locator("#region-list tbody tr")
    page.locator("#region-list").scroll_into_view_if_needed()
    assert rows.first.inner_text().split("\t")[3].startswith("gemm")
    assert rows.count() < 12
    page.uncheck("#region-alike")
    assert rows.count() == 64


def test_search_lists_what_it_finds_and_a_click_goes_there(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    page.fill("#find", "relu")
    page.get_by_text("720 kernels of 18 layers").first.wait_for()
    assert page.locator("#hits h3").all_inner_texts() == ["720 kernels of 18 layers", "720 NVTX ranges"]
    first = page.locator("#hits button").first
    assert "40 ×" in page.locator("#hits li").first.inner_text()
    name = first.inner_text()
    first.click()
    assert page.inner_text("#details h2") == name
    assert page.inner_text("#count").endswith("of 720")
    page.click("#answer h2")
    assert page.locator("#hits").is_hidden()
    page.fill("#find", "no such name")
    page.get_by_text("nothing found").wait_for()


def test_shares_of_layers_and_other_kernels_are_of_one_whole(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    assert "pytorch kernels without a layer" in page.inner_text("#answer .ranked")
    rows = page.locator("#layers tbody tr")
    texts = [text for text in rows.locator("td:first-child").all_inner_texts() if text != "–"]
    shares = [float(text.rstrip("%").lstrip("<")) for text in texts]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    assert page.locator("#layers tbody").get_by_text("pytorch kernels without a layer").count() == 1
    assert page.locator("#layers th", has_text="engine").count() == 1


def test_a_click_on_layers_that_are_alike_selects_all_of_them(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    page.locator(".ranked button").first.click()
    assert "12 layers" in page.inner_text("#chips")
    page.locator("#chips button").click()
    page.locator("#layers tbody button").first.click()
    assert "12 layers" in page.inner_text("#chips")
    page.locator("#layers tbody button").first.click()
    assert page.locator("#chips").is_hidden()


def test_idle_time_names_kernels_beside_it_that_have_no_layer_and_a_name_is_explained(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*MIXED))
    page.fill("#find", "elementwise")
    page.get_by_text("kernels", exact=False).first.wait_for()
    page.locator("#find").press("Enter")
    assert "Kernel without a layer" in page.inner_text("#details h2")
    lanes = page.locator("#lanes canvas")
    for at in range(200, 1000, 25):  # along the idle time of GPU 0, the second row from above
        lanes.click(position={"x": at, "y": 22 + 21 + 10})
        if "Between" in page.inner_text("#details") and "pytorch" in page.inner_text("#details"):
            break
    else:
        pytest.fail("no idle time beside a kernel of PyTorch was found")
    page = opened(browser, written(*MIXED), "find=xmma_gemm")
    page.get_by_text(re.compile(r"^\d+ kernels of")).first.wait_for()
    page.locator("#find").press("Enter")
    assert "A transposed, B not" in page.inner_text("#details")
    assert "compute capability" in page.inner_text("#details")


def test_what_all_changes_assume_stands_once(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    assert page.inner_text("#whatif").count("Replay of") == 1
    assert "Does not apply" in page.inner_text("#whatif")


def test_inferences_of_two_engines_have_colours_and_a_legend(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    assert page.locator("#inferences .legend span").all_inner_texts() == ["backbone.engine.json", "head.engine.json"]
    slow = page.inner_text("#inferences .slow")
    assert "among the first of its kind: may be warm-up" in slow
    assert re.search(r"inference \d+ of head: [\d.]+ µs", slow)
    assert re.search(r"inference \d+ of backbone: [\d.]+ µs", slow)


def test_search_finds_a_kernel_and_shows_its_launch_and_evidence(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("/")
    page.keyboard.type("gemm_mha")
    page.locator("#count", has_text="150 kernels of 3 layers").wait_for()
    page.keyboard.press("Enter")
    details = page.inner_text("#details")
    assert "_gemm_mha_v2_0x" in details
    assert "the NVTX range around its launch names the layer" in details
    assert "cudaLaunchKernel" in details
    assert "48 × 1 × 1" in details
    assert "ExecutionContext::enqueue" in details
    first = page.inner_text("#count")
    page.click("#next")
    assert page.inner_text("#count") != first
    page.keyboard.press("Escape")
    assert page.inner_text("#count") == ""


def test_after_enter_the_keys_go_through_the_matches_and_move_the_timeline(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("/")
    page.keyboard.type("gemm_mha")
    page.keyboard.press("Enter")
    first = page.inner_text("#count")
    page.keyboard.press("n")
    second = page.inner_text("#count")
    assert page.input_value("#find") == "gemm_mha"
    assert [int(one.split()[0]) for one in (first, second)] == [int(first.split()[0]), int(first.split()[0]) + 1]
    page.keyboard.press("p")
    assert page.inner_text("#count").split()[0] == first.split()[0]
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"
    page.keyboard.press("/")
    page.keyboard.type("no such name")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "find"  # to be corrected


def test_each_cause_of_idle_time_has_one_name(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    of_answer = {
        one.strip() for one in page.locator("#answer .legend button").evaluate_all("all => all.map(one => one.childNodes[3].data)")
    }
    of_table = {one.strip() for one in page.locator("#idle tbody button").all_inner_texts()}
    of_timeline = {one.strip() for one in page.locator("#legend b ~ span").all_inner_texts()}
    assert len(of_table) > 3
    assert of_answer == of_table == of_timeline


def test_an_outlier_by_the_profiler_s_own_work_is_called_an_artefact(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("two_shapes/sync.nsys-rep", "two_shapes/engine.json"))
    listed = page.locator("#inferences .slow li").all_inner_texts()
    tables = analyze(FIXTURES / "two_shapes/sync.nsys-rep", [FIXTURES / "two_shapes/engine.json"], rules=()).tables
    median = {row.integer("group_id"): row.maybe_integer("median_ns") or 0 for row in tables.inference_groups}
    longer = {row.integer("inference"): row.integer("time_ns") - median[row.integer("group_id")] for row in tables.inference_times}
    by_profiler = {
        row.integer("inference")
        for row in tables.inference_times
        if row.maybe_text("extra_cause") == "profiler" and 2 * (row.maybe_integer("extra_ns") or 0) > longer[row.integer("inference")]
    }
    told = {int(one.split()[1].rstrip(":")): "an artefact of profiling, not of the program" in one for one in listed}
    assert told == {inference: inference in by_profiler for inference in told}
    assert set(told.values()) == {True, False}  # one waited for launches
    page.locator("#inferences .slow button").first.click()
    assert "an artefact of profiling" in page.inner_text("#details")


def test_parts_of_a_region_are_named_without_myelin_s_mark(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("bert_trt86/sync.nsys-rep", "bert_trt86/engine.json"))
    page.locator("#region-list").scroll_into_view_if_needed()
    parts = page.locator("#region-list tbody tr")
    assert "/encoder/layer" in parts.first.inner_text()
    assert {one.strip() for one in parts.locator("td:last-child").all_inner_texts()} == {"the trace"}
    page.fill("#find", "gemm")
    page.locator("#find").press("Enter")
    details = page.inner_text("#details")
    assert "part known from\ta tag of the trace" in details.replace("\n", "\t").replace("\t\t", "\t")
    shown = page.inner_text("main") + details.partition("NVTX ranges")[0]  # the ranges stand as the trace has them
    assert "$$myelin$$" not in shown


def test_the_timeline_zooms_moves_and_is_clicked(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    canvas = page.locator("#lanes canvas")
    canvas.scroll_into_view_if_needed()
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    canvas.focus()
    page.keyboard.press("w")
    page.wait_for_timeout(100)
    zoomed = canvas.evaluate("canvas => canvas.toDataURL()")
    page.keyboard.press("d")
    page.wait_for_timeout(100)
    assert len({before, zoomed, canvas.evaluate("canvas => canvas.toDataURL()")}) == 3
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 500, box["y"] + 30)  # the lane of inferences
    assert page.inner_text("#details h2").startswith("Inference")
    assert "inference" in page.inner_text("#chips")
    page.keyboard.press("Escape")
    assert page.is_hidden("#chips")


def test_one_selection_filters_every_figure(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    whole = page.inner_text("#layers tbody tr:first-child")
    page.keyboard.press("]")  # the first inference
    assert "within the selection" in page.inner_text("#layers .said")
    assert "within the selection" in page.inner_text("#idle .said")
    assert page.inner_text("#layers tbody tr:first-child") != whole
    page.locator("#layers tbody button").first.click()
    assert page.locator("#layers tr.on").count() == 1
    assert "layer" in page.inner_text("#chips")
    assert "concern the selection" in page.inner_text("#finding-count")
    page.locator("#chips button").first.click()
    assert "mean per inference" in page.inner_text("#layers .said")


def test_layers_are_filtered_sorted_and_put_together(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    rows = page.locator("#layers tbody tr")
    assert (together := rows.count()) < 30  # layers that repeat are one row, unless each is asked for
    page.locator("#layers tbody").get_by_text("8 ×").first.click()
    assert rows.count() == together + 8
    assert page.locator("#layers tr.member").count() == 8
    page.select_option("#layer-rows", "block")
    blocks = [rows.nth(at).locator("td").nth(2).inner_text() for at in range(3)]
    ran = analyze(*(FIXTURES / file for file in CAPTURES["one inference at a time"]), rules=[])
    times = [row.maybe_integer("time_ns") or 0 for row in ran.tables.layers]
    costly = sorted(block_groups(ran.engines[0]), key=lambda block: -sum(times[layer] for layer in block.layers))
    assert blocks == [block.name for block in costly[:3]]
    page.select_option("#layer-rows", "each")
    assert rows.count() == 39
    page.fill("#layer-filter", "layer.2 dense")
    assert rows.count() == 3
    page.fill("#layer-filter", "")
    page.click("#layers th[data-by=index] button")
    assert page.get_attribute("#layers th[data-by=index]", "aria-sort") == "ascending"
    assert rows.first.locator("td").nth(8).inner_text() == "0"


def test_a_finding_leads_to_its_place_in_time_and_graph(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    card = page.locator(".finding", has_text="attention-not-fused").first
    card.get_by_text("in the engine graph").click()
    page.wait_for_selector(".box.found")
    assert page.locator(".box .badge").count() > 0
    card.get_by_text("show in the timeline").click()
    assert "layer" in page.inner_text("#chips")
    assert page.locator("#lanes").evaluate("place => place.getBoundingClientRect().top < innerHeight")


def test_an_outlier_is_named_with_its_cause(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#inferences .slow button").first.click()
    assert page.inner_text("#details h2").startswith("Inference")
    assert "×" in page.inner_text("#details")


def test_light_and_dark_differ_and_the_reader_chooses(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_what_a_long_trace_leaves_out_is_said(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["one inference at a time"], most_kernels=400))
    assert "of 1,900 kernels event by event" in page.inner_text("#timeline")


def test_a_link_opens_the_page_at_a_layer(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), "layer=4&inference=7")
    assert "gemm_mha" in page.inner_text("#details")
    assert "inference 7" in page.inner_text("#chips")


RUNS = '<img src=x onerror="document.title=1"></script><script>document.title=2</script>{{ 7 * 7 }}'


def test_names_are_never_run(browser: Browser, tmp_path: Path) -> None:
    analysis = analyze(FIXTURES / "bert_trt103" / "sync.nsys-rep", rules=())
    tables = analysis.tables

    def spoiled(table: Table) -> Table:
        spoilt = {}
        for name in ("name", "layer", "part", "api", "domain", "evidence"):
            if isinstance(data := table.columns.get(name), Text):
                spoilt[name] = Text(data.codes, tuple(f"{RUNS}{text}" for text in data.values))
        return table.with_columns(table.spec, spoilt)

    changed = {
        name: spoiled(getattr(tables, name)) for name in ("kernels", "layers", "nvtx_ranges", "api_calls", "gaps", "repeated_layers")
    }
    bad = replace(analysis, source=RUNS, tables=replace(tables, **changed))
    write_page(bad, replace(report_of(analysis), trace=replace(report_of(analysis).trace, source=RUNS)), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html", "layer=3&find=onerror")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3  # the page's two parts of data and its code
    assert page.title().startswith("<img src=x")
    assert "onerror" in page.inner_text("#details")
    assert "{{ 7 * 7 }}" in page.inner_text("#layers")


def test_names_of_an_engine_are_never_run(browser: Browser, tmp_path: Path) -> None:
    engine = json.loads((FIXTURES / "bert_trt103/engine.json").read_text("utf-8"))
    for layer in engine["Layers"]:
        layer["Name"] = f"{layer['Name']}{RUNS}"
        layer["Metadata"] = f"[ONNX Layer: {RUNS}]"
        for tensor in (*layer["Inputs"], *layer["Outputs"]):
            tensor["Name"] = f"{tensor['Name']}{RUNS}"
    bad = tmp_path / '<img src=x onerror="document.title=3">.json'
    bad.write_text(json.dumps(engine), "utf-8")
    whole = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [bad])
    write_page(whole, report_of(whole), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html", "layer=3")
    for section in page.locator("main > section:visible").all():
        section.scroll_into_view_if_needed()
    page.wait_for_selector(".box")
    assert "onerror" in page.inner_text("#details")
    assert any("onerror" in str(one) for one in page.locator(".box title").all_text_contents())
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    assert "sync.nsys-rep" in page.title()


def test_the_policy_of_the_page_lets_no_other_script_run(browser: Browser, written: Callable[..., Path], tmp_path: Path) -> None:
    text = bert(written).read_text("utf-8")
    assert "unsafe" not in text
    (tmp_path / "y.html").write_text(text.replace("</body>", "<script>document.title = 'ran'</script></body>"), "utf-8")
    page = opened(browser, tmp_path / "y.html")
    assert page.title() != "ran"
    assert any("Content Security Policy" in one for one in browser.wrong)
    browser.wrong.clear()


def test_a_kernel_s_name_is_explained_and_found_in_the_timeline(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    row = page.locator("#kernels tbody tr", has_text="_gemm_mha_v2")
    assert "attention" in row.inner_text()
    row.locator("button").click()
    page.locator("#count", has_text="of 150").wait_for()
    assert "_gemm_mha_v2_0x" in page.inner_text("#details")


def test_the_page_of_a_hundred_thousand_kernels_is_small_and_whole(browser: Browser, tmp_path: Path) -> None:
    export, engine = tmp_path / "made.sqlite", tmp_path / "made.json"
    subprocess.run([sys.executable, ROOT / "benchmarks" / "make_trace.py", "100000", export, engine], check=True, capture_output=True)
    analysis = analyze(export, engine, rules=())
    write_page(analysis, report_of(analysis), tmp_path / "x.html")
    assert (tmp_path / "x.html").stat().st_size < 3_000_000
    page = opened(browser, tmp_path / "x.html")
    assert page.locator("#timeline .warn").count() == 0  # nothing is left out
    name = analysis.tables.kernels.text("name")[77]
    page.fill("#find", str(name))
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"\d+ of [\d,]+")).first.wait_for()
    assert str(name) in page.inner_text("#details")
    page.keyboard.press("Escape")
    page.locator("#lanes canvas").focus()
    page.keyboard.press("0")
    page.keyboard.press("w")
    assert page.get_attribute("body", "data-drawn")


def test_the_page_of_a_trace_of_nothing_opens(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt103" / "sync.nsys-rep", rules=())
    nothing = {name: Table.empty(table.spec) for name, table in whole.tables.by_name().items() if name not in ("capture", "devices")}
    empty = replace(whole, tables=replace(whole.tables, **nothing))
    write_page(empty, report_of(empty), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html")
    assert "none recognised" in page.inner_text("#answer")
    assert "No kernel is in the trace" in page.inner_text("#answer")
    assert page.locator("#layers").is_hidden()  # there is none, and no link leads there
    assert page.locator("a[href='#layers']").count() == 0
    page.keyboard.press("w")
    page.keyboard.press("]")


def test_ranges_in_ranges_are_all_there_however_deep(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt103" / "sync.nsys-rep", rules=())
    ranges = whole.tables.nvtx_ranges
    first = ranges.take(np.zeros(40, np.int64))
    begin, end = int(first.ints("start_ns")[0]), int(first.ints("end_ns")[0])
    step = max((end - begin) // 100, 1)
    nested: dict[str, IntArray | Text] = {"start_ns": begin + step * np.arange(40), "end_ns": end - step * np.arange(40)}
    nested["name"] = Text(np.arange(40, dtype=np.int32), tuple(f"depth {depth}" for depth in range(40)))
    deep = replace(whole, tables=replace(whole.tables, nvtx_ranges=first.with_columns(first.spec, nested)))
    write_page(deep, report_of(deep), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html")
    page.fill("#find", "depth 3")
    page.locator("#count", has_text="13 NVTX ranges").wait_for()  # 3, 13, 23, and 30 to 39
    page.keyboard.press("Enter")
    for _ in range(10):
        page.keyboard.press("n") if page.evaluate("document.activeElement.id !== 'find'") else page.click("#next")
    assert "depth 3" in page.inner_text("#details h2")
    names = page.evaluate("stacked({ranges: {start: [0, 1, 2], end: [9, 8, 7]}}, [[7, 0], [7, 1], [7, 2]]).map(row => row.length)")
    assert names == [1, 1, 1]
    deepest = page.evaluate(
        "(n => stacked({ranges: {start: [...Array(n).keys()], end: [...Array(n).keys()].map(k => 99 - k)}},"
        " [...Array(n).keys()].map(k => [7, k])).map(row => row.length))(40)"
    )
    assert deepest == [1] * 24 + [16]


def test_a_finding_marks_all_its_layers(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    card = page.locator(".finding", has_text="attention-not-fused").first
    card.get_by_text(re.compile(r"its \d+ layers")).first.click()
    assert page.locator("#layers tr.on").count() > 1
    assert re.search(r"layers=\d+(\.\d+)+", page.url)
    assert "marked in every figure" in page.inner_text("#details")
    link = page.url
    page.keyboard.press("Escape")
    assert page.locator("#layers tr.on").count() == 0
    again = opened(browser, bert(written), link.partition("#")[2])
    assert again.locator("#layers tr.on").count() > 1
    again.locator(".finding", has_text="attention-not-fused").get_by_text("in the engine graph").first.click()
    again.wait_for_selector(".box.found")
    assert again.locator(".box.found").count() > 1


def test_a_long_event_that_begins_in_the_pixel_of_a_short_one_is_drawn(browser: Browser, written: Callable[..., Path]) -> None:
    path = written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json")
    tables = analyze(FIXTURES / "bert_trt10/sync.nsys-rep", [FIXTURES / "bert_trt10/engine.json"], rules=()).tables
    calls = tables.api_calls
    launches = np.flatnonzero(calls.text("kind").equals("launch"))
    start, end = calls.ints("start_ns")[launches], calls.ints("end_ns")[launches]
    longest = int(np.argmax(end - start))
    events = (tables.kernels, tables.memcpys, tables.memsets, calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    begin, stop = int(start[longest]) - origin, int(end[longest]) - origin
    colour = [157, 183, 213]  # of a launch call
    for times in (2, 3, 5, 8, 13):
        beside = (stop - begin) * times // 2
        page = opened(browser, path, f"range={max(begin - beside, 0)}-{stop + beside}")
        found = page.evaluate(
            """async ([at, colour]) => {
              await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
              const canvas = document.querySelector("#lanes canvas"), x = Math.round(at * canvas.width);
              const pixels = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data;
              const pixel = place => [...pixels.slice(place * 4, place * 4 + 3)].join();
              return [...Array(canvas.height).keys()].some(place => pixel(place) === colour.join());
            }""",
            [_share_of_width(page, (begin + stop) / 2, max(begin - beside, 0), stop + beside), colour],
        )
        assert found, times
        page.close()


def _share_of_width(page: Page, moment: float, begin: float, end: float) -> float:
    """Where in the timeline's picture a moment stands while it shows that part of time."""
    width = float(page.locator("#lanes").evaluate("place => place.clientWidth"))
    room = max((end - begin) * 0.08, 200)
    return (168 + (moment - begin + room) / (end - begin + 2 * room) * (width - 168)) / width


def test_what_an_inference_waited_before_it_began_is_part_of_its_time(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), "inference=7")
    details = page.inner_text("#details")
    assert "from the end of the one before on its thread to its own" in details
    within = re.search(r"within the selection \(([\d.]+ µs)\)", page.inner_text("#idle .said"))
    assert within is not None
    assert within[1] in details  # the time of the inference is what the figures of the selection are of


def test_a_kernel_has_one_median(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["no engine file"]))
    assert page.evaluate("[[1], [1, 9], [1, 2, 9]].map(medianOf)") == [1, 5, 2]
    told = 0
    for row in page.locator("#kernels tbody tr").all()[:8]:
        median = row.locator("td").nth(3).inner_text()
        row.locator("button").click()
        if found := re.search(r"median of its name\s+([\d.]+ \S+) of", page.inner_text("#details")):
            told += 1
            assert float(found[1].split()[0]) == pytest.approx(float(median.split()[0]), abs=0.006)
    assert told


def test_an_inference_just_below_an_outlier_is_not_called_one(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    said = page.evaluate("[1.4963, 1.5, 1.4949, 1.504].map(times => timesWords(times, 1.5))")
    assert said == ["1.49 ×", "1.50 ×", "1.49 ×", "1.50 ×"]


def test_kernels_without_a_layer_are_shown_by_their_link(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    page.locator("#answer .ranked a[data-family]").click()
    assert page.is_checked("#kernel-unmapped")
    shown = page.locator("#kernels tbody tr:visible")
    assert 0 < shown.count() < page.locator("#kernels tbody tr").count()
    assert {row.get_attribute("data-family") for row in shown.all()} == {"pytorch"}


def test_a_click_on_a_kernel_s_name_leaves_the_details_free(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#kernels [data-find]").first.click()
    page.get_by_text(re.compile(r"\d+ of [\d,]+")).first.wait_for()
    assert page.locator("#hits").is_hidden()
    assert page.locator("#details h2").is_visible()


@pytest.mark.parametrize("fragment", ["finding-1", "whatif"])
def test_what_an_address_names_stands_below_the_header(browser: Browser, written: Callable[..., Path], fragment: str) -> None:
    page = opened(browser, bert(written), fragment)
    place = "place => place.getBoundingClientRect().top"
    head = page.locator("header").evaluate("head => head.getBoundingClientRect().bottom")
    assert head <= page.locator(f"#{fragment}").evaluate(place) < head + 300
    assert page.url.endswith(f"#{fragment}")
    page.keyboard.press("]")  # a selection
    page.locator("#answer a", has_text="all of it").click()
    head = page.locator("header").evaluate("head => head.getBoundingClientRect().bottom")
    assert page.locator("#sure").evaluate(place) >= head - 1


def test_times_of_layers_have_one_unit(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    assert "take the most time, of 281 µs kernel time per pass of 2 inferences" in page.inner_text("#answer")
    assert "times (µs): mean per pass of 2 inferences" in page.inner_text("#layers .said")
    assert "times: mean per pass of 2 inferences" in page.inner_text("#region-said")
    assert "of any engine, of which a pass has 2" in page.inner_text("#findings")
    costs = [head for head in page.locator("#findings h3").all_inner_texts() if "costs" in head]
    assert costs and all(re.search(r"costs [\d.,]+ \S+ (per pass of 2 inferences|in all)$", head) for head in costs), costs
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    assert "take the most time, of 227 µs kernel time per inference" in page.inner_text("#answer")
    others = page.locator("#layers tbody tr", has_text="without a layer")
    assert others.locator("td").nth(1).inner_text() == "–"  # they are of no engine
    page.keyboard.press("]")
    assert "times (µs) and kernels within the selection" in page.inner_text("#layers .said")


def test_the_engine_that_ran_is_proved_by_its_tactics(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    told = page.inner_text("#answer .more")
    assert "55 of 55 layers with a tactic ran the kernel that it names" in told
    assert "of its 57 layers 1 ran no kernel (1 shape)" in told


def test_a_kernel_for_an_older_gpu_and_of_another_data_type_is_remarked(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt10/sync.nsys-rep", [FIXTURES / "bert_trt10/engine.json"], rules=())
    tables = whole.tables
    layer = next(row.integer("layer_id") for row in tables.layers if row.maybe_text("precision") == "FP16" and row.maybe_integer("kernels"))
    name = "sm75_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize32x64x64_stage1_execute_kernel_trt"
    kernels = tables.kernels
    text = kernels.text("name")
    codes = np.where(kernels.ints("layer_id") == layer, len(text.values), text.codes).astype(np.int32)
    renamed = kernels.with_columns(kernels.spec, {"name": Text(codes, (*text.values, name))})
    own = replace(whole, tables=replace(tables, kernels=renamed))
    write_page(own, report_of(whole), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html", f"find={name}")
    page.get_by_text(re.compile(r"kernels of 1 layer")).first.wait_for()
    page.locator("#find").press("Enter")
    details = page.inner_text("#details")
    assert "written for compute capability 7.5; this GPU has 9.0" in details
    assert "the engine file says FP16, this kernel's name only INT8" in details
    page = opened(browser, tmp_path / "x.html", "find=_gemm_mha_v2")
    page.get_by_text(re.compile(r"kernels of \d+ layers")).first.wait_for()
    page.locator("#find").press("Enter")
    assert "What to know of it" not in page.inner_text("#details")


def test_kernels_by_name_follow_the_selection(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    rows = page.locator("#kernels tbody tr:visible")
    whole, count = rows.first.inner_text(), rows.count()
    page.keyboard.press("]")
    assert "within the selection" in page.inner_text("#kernels .said")
    assert 0 < rows.count() < count
    shares = [float(text.rstrip("%").lstrip("<")) for text in rows.locator("td:first-child").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    page.keyboard.press("Escape")
    assert rows.count() == count
    assert rows.first.inner_text() == whole


def test_paper_shows_the_graph_and_what_to_do(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#graph-canvas .box").count() > 20
    assert page.locator(".finding details").first.get_attribute("open") is not None
    assert page.locator(".places").first.is_hidden()
    assert page.locator("nav").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".finding details").first.get_attribute("open") is None


@pytest.mark.parametrize("names", [MIXED, CAPTURES["two engines in turns"], CAPTURES["no engine file"]])
def test_paper_cuts_no_table(browser: Browser, written: Callable[..., Path], names: tuple[str, ...]) -> None:
    page = opened(browser, written(*names))
    page.set_viewport_size({"width": 720, "height": 1000})  # A4 with a margin of 1 cm
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    cut = page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter(one => one.checkVisibility() && !one.closest("svg"))
          .filter(one => one.getBoundingClientRect().right > innerWidth
            || (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "auto"))
          .map(one => one.outerHTML.slice(0, 80))"""
    )
    assert cut == []
    assert page.locator("header").is_hidden()  # the name of the report is in the first heading


def test_paper_is_light_whatever_the_screen_is(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), scheme="dark")
    corner = """() => {
      const pen = document.createElement("canvas").getContext("2d");
      pen.drawImage(document.querySelector("#lanes canvas"), 0, 0);
      return [...pen.getImageData(2, 2, 1, 1).data].slice(0, 3).join();
    }"""
    dark = page.evaluate(corner)
    assert dark != "255,255,255"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(corner) == "255,255,255"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(corner) == dark
    assert page.evaluate("document.documentElement.dataset.theme") is None


def _blurred(page: Page) -> Iterator[None]:
    """Twice: as it is, and with nothing in focus."""
    yield
    page.evaluate("document.activeElement.blur()")
    yield


def test_all_controls_are_reached_by_tab_and_seen_to_be(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#graph").scroll_into_view_if_needed()
    page.wait_for_selector(".box")
    page.evaluate("scrollTo(0, 0)")
    wanted = page.evaluate(
        """() => {
          const all = [...document.querySelectorAll("a[href], button, input, select, canvas, summary, .box")];
          all.forEach((one, at) => { one.dataset.tabbed = at; });
          return all.filter(one => one.checkVisibility() && !one.closest("dialog")).map(one => one.dataset.tabbed);
        }"""
    )
    reached: set[str] = set()
    kinds: dict[str, str] = {}
    for _ in range(len(wanted) + 30):  # and what scrolls
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.dataset.tabbed")
        if at in reached:
            break
        if at is None:
            continue  # what scrolls
        reached.add(at)
        told = page.evaluate(
            """() => {
              const one = document.activeElement, { top, bottom } = one.getBoundingClientRect();
              return [one.tagName + "." + (one.id || one.className.baseVal || one.className), top < innerHeight && bottom > 0];
            }"""
        )
        assert told[1], told
        kinds.setdefault(re.sub(r"\d+", "", told[0].split(" ")[0]), at)
    assert set(wanted) <= reached
    assert len(kinds) > 15
    for kind, at in kinds.items():
        one = page.locator(f'[data-tabbed="{at}"]')
        one.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        if one.evaluate("one => document.activeElement !== one"):
            continue  # what scrolls stands between
        box = (page.locator("#lanes") if one.evaluate("one => Boolean(one.closest('#lanes'))") else one).bounding_box()
        assert box is not None
        left, top = max(box["x"] - 4, 0), max(box["y"] - 4, 0)
        height = min(box["y"] + box["height"] + 4, 900) - top
        focused, without = (
            page.screenshot(clip={"x": left, "y": top, "width": box["width"] + 8, "height": height}) for _ in _blurred(page)
        )
        assert focused != without, kind


def test_a_rule_of_many_places_shows_the_first_and_opens_the_others(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"])
    findings = whole.tables.findings
    mine = np.flatnonzero(findings.text("rule").equals("attention-not-fused"))[:1].repeat(7)
    layers = [str(number) for number in whole.tables.layers.ints("layer_id")[-7:].tolist()]
    several = findings.take(mine).with_columns(
        findings.spec,
        {
            "finding_id": np.arange(7),
            "about": Text.of(layers),
            "layer_id": np.array([int(layer) for layer in layers]),
            "inside": np.full(7, MISSING),
        },
    )
    many = replace(whole, tables=replace(whole.tables, findings=several))
    write_page(many, report_of(whole), tmp_path / "x.html")
    page = opened(browser, tmp_path / "x.html")
    rest = page.locator(".finding .rest")
    assert page.locator(".finding .place:visible").count() == 3
    assert rest.locator("summary").inner_text() == "4 more places"
    rest.locator("summary").click()
    rest.locator(".place").last.get_by_text("its layer").click()
    row = page.locator("#layers tr.on").last
    assert row.evaluate("row => row.getBoundingClientRect().bottom < innerHeight && row.getBoundingClientRect().top > 0")
    assert rest.locator("summary").inner_text() == "4 more places, 1 of them concern the selection"
    page.evaluate("document.querySelector('.rest').open = false")
    page.locator("#details td button", has_text="attention-not-fused").click()
    assert rest.locator(".place").last.is_visible()  # the place that it leads to
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".finding .place:visible").count() == 7


def test_regions_that_are_alike_are_one(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    regions = page.locator("#region-list summary")
    together = regions.all_inner_texts()
    assert "4 regions, 4 parts" in together[0]
    assert "(context)" in together[0]
    page.uncheck("#region-alike")
    assert regions.count() == 18 > len(together)


@pytest.mark.parametrize("selected", ["inference=7", "range=2000000-2260000", "inference=7&layer=1", "layer=0"])
def test_what_is_inside_regions_follows_the_selection(browser: Browser, written: Callable[..., Path], selected: str) -> None:
    names = ("bert_trt86/sync.nsys-rep", "bert_trt86/engine.json")
    tables = analyze(FIXTURES / names[0], [FIXTURES / names[1]], rules=()).tables
    kernels, region = tables.kernels, tables.layers.text("kind").equals("foreign_node")
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    timed = (kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in timed if len(table))
    inside = region[kernels.ints("layer_id")] & (kernels.ints("layer_id") >= 0)
    for what, _, value in (one.partition("=") for one in selected.split("&")):
        if what == "range":
            begin, stop = (origin + int(part) for part in value.split("-"))
            start, end = np.maximum(start, begin), np.minimum(end, stop)
            inside &= end > start
        else:
            inside &= kernels.ints("layer_id" if what == "layer" else what) == int(value)
    page = opened(browser, written(*names))
    whole = page.inner_text("#region-list tbody")
    page = opened(browser, written(*names), selected)
    if not inside.any():  # the layer is no region
        assert page.inner_text("#region-said") == "no kernel of a region is in the selection"
        assert page.locator("#region-list details").count() == 0
        return
    assert page.inner_text("#region-said") == "times and kernels within the selection"
    rows = page.locator("#region-list tbody tr")
    assert page.inner_text("#region-list tbody") != whole
    times = [float(text.replace(",", "")) for text in rows.locator("td:nth-child(2)").all_inner_texts()]
    assert sum(times) == pytest.approx((end - start)[inside].sum() / 1000, abs=0.006 * len(times))
    assert sum(int(text) for text in rows.locator("td:nth-child(3)").all_inner_texts()) == np.count_nonzero(inside)
    shares = [float(text.rstrip("%").lstrip("<")) for text in rows.locator("td:first-child").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    page.keyboard.press("Escape")
    assert page.inner_text("#region-list tbody") == whole


def test_a_part_of_time_is_marked_in_the_graph(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#graph").scroll_into_view_if_needed()
    page.wait_for_selector(".box")
    assert page.locator(".box.found").count() == 0
    page = opened(browser, bert(written), "range=2000000-2060000")
    page.locator("#graph").scroll_into_view_if_needed()
    page.wait_for_selector(".box.found")
    assert 0 < page.locator(".box.found").count() < page.locator(".box").count()
    page = opened(browser, written(*MIXED), "inference=17")  # of the one engine, not of the other
    shown = page.locator("#graph-engine option").all_inner_texts()
    marked = []
    for number, _ in enumerate(shown):
        page.locator("#graph").scroll_into_view_if_needed()
        page.select_option("#graph-engine", str(number))
        page.wait_for_selector(".graph:not([hidden]) .box")
        marked.append(page.locator(".graph:not([hidden]) .view.shown.finding").count())
    assert marked == [1, 0]  # none of the first ran in it, all of the second


def _seconds(text: str) -> float:
    """A duration of the page."""
    number, unit = text.split()
    return float(number.replace(",", "")) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]


def test_rooflines_of_a_selection_are_of_what_ran_in_it(browser: Browser, written: Callable[..., Path]) -> None:
    tables = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()).tables
    kernels = tables.kernels
    spent = kernels.ints("end_ns") - kernels.ints("start_ns")
    bound = {row.integer("layer_id"): row.maybe_integer("bound_ns") for row in tables.roofline if row.text("verdict") != "unknown"}
    index = {row.maybe_integer("layer_index"): row.integer("layer_id") for row in tables.layers}
    page = opened(browser, bert(written), "inference=7")
    page.select_option("#layer-rows", "each")
    told = 0
    for row in page.locator("#layers tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        layer = index[int(cells[8])]
        least, time = bound.get(layer), spent[(kernels.ints("layer_id") == layer) & (kernels.ints("inference") == 7)].sum()
        if least is None or not time or cells[6] == "<0.1%":
            continue
        told += 1
        assert float(cells[6].rstrip("%")) == pytest.approx(100 * least / time, abs=0.06), cells
    assert told > 10
    first = kernels.take(np.flatnonzero((kernels.ints("inference") == 7) & (spent > 3000))[[0]]).only()
    events = (kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    begin, stop = first.integer("start_ns") - origin, first.integer("end_ns") - origin
    for cut, known in ((0, True), (500, False)):  # what the selection cuts has not run as a whole
        page = opened(browser, bert(written), f"range={begin - 1}-{stop - cut}")
        page.select_option("#layer-rows", "each")
        layer_index = next(at for at, layer in index.items() if layer == first.integer("layer_id"))
        cells = next(
            cells for row in page.locator("#layers tbody tr").all() if (cells := row.locator("td").all_inner_texts())[8] == str(layer_index)
        )
        assert (cells[6] != "–") == known


def test_idle_time_of_layers_is_what_precedes_their_kernels(browser: Browser, written: Callable[..., Path]) -> None:
    tables = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()).tables
    after = tables.gaps.ints("after_kernel")
    of = np.where(after >= 0, tables.kernels.ints("layer_id")[np.maximum(after, 0)], -1)
    page = opened(browser, bert(written), "layer=4")
    assert "directly before kernels of the selected layers" in page.inner_text("#idle .said")
    cells = [row.locator("td").all_inner_texts() for row in page.locator("#idle tbody tr").all()]
    assert sum(_seconds(one[1]) for one in cells) == pytest.approx(tables.gaps.ints("dur_ns")[of == 4].sum() / 1e9, rel=0.005)
    assert sum(int(one[2].replace(",", "")) for one in cells) == np.count_nonzero(of == 4)


def test_idle_time_of_an_inference_is_that_of_its_gpu(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("two_gpus/tp_sync.nsys-rep", "two_gpus/tp.engine.json"), "inference=30")
    own = re.search(r"\nidle\s+([\d.,]+ \S+)", page.inner_text("#details"))
    assert own is not None
    cells = [row.locator("td").all_inner_texts() for row in page.locator("#idle tbody tr").all()]
    within = re.search(r"selection \(([\d.,]+ \S+)\)", page.inner_text("#idle .said"))
    assert within is not None
    assert sum(_seconds(one[1]) for one in cells) == pytest.approx(_seconds(own[1]), rel=0.01)
    shares = [float(one[0].rstrip("%").lstrip("<")) / 100 for one in cells]
    assert sum(shares) == pytest.approx(_seconds(own[1]) / _seconds(within[1]), abs=0.001 * len(shares))


def test_inferences_show_the_time_of_the_selected_layers(browser: Browser, written: Callable[..., Path]) -> None:
    tables = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()).tables
    kernels, inferences = tables.kernels, tables.inferences
    mine = kernels.ints("layer_id") == 4
    rows = tables.inference_times.ints("inference")
    spent = np.array([(kernels.ints("end_ns") - kernels.ints("start_ns"))[mine & (kernels.ints("inference") == row)].sum() for row in rows])
    events = (kernels, tables.memcpys, tables.memsets, tables.api_calls, inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    duration = max(int(table.ints("end_ns").max()) for table in events if len(table)) - origin
    page = opened(browser, bert(written), "layer=4")
    assert page.inner_text("#inferences .said") == "Now: the time of the selected layer's kernels in each inference."
    canvas = page.locator("#inferences canvas")
    wide = canvas.evaluate("one => one.clientWidth")
    ordered = np.sort(spent)
    top_ns = min(ordered[-1], max(ordered[int(len(ordered) * 0.99)] * 2, ordered[len(ordered) // 2] * 2.5))
    for place in (3, 20, 40):
        x = 64 + (wide - 64 - 120 - 10) * (int(inferences.ints("start_ns")[rows[place]]) - origin) / duration
        canvas.click(position={"x": x, "y": 180 - 172 * min(spent[place] / top_ns, 1)})
        assert f"inference {rows[place]} ×" in page.inner_text("#chips")
    page.keyboard.press("Escape")
    assert page.inner_text("#inferences .said") == ""


def test_what_if_is_of_the_selected_inferences_and_layers(browser: Browser, written: Callable[..., Path]) -> None:
    names = ("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json")
    tables = analyze(FIXTURES / names[0], [FIXTURES / names[1]], rules=()).tables
    replayed = {
        (row.text("change"), row.integer("inference")): (row.integer("before_ns"), row.integer("after_ns"))
        for row in tables.whatif_inferences
    }
    chosen = sorted({inference for _, inference in replayed})
    page = opened(browser, written(*names))
    rows = page.locator("#whatif tbody tr")
    whole = rows.all_inner_texts()
    assert "Times are per inference" in page.inner_text("#whatif .said")
    start, end = tables.inferences.ints("start_ns"), tables.inferences.ints("end_ns")
    events = (tables.kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    two = next(one for one in chosen if one + 1 in chosen)
    for selected, mine in (
        (f"inference={two}", [two]),
        (f"range={start[two] - origin}-{end[two + 1] - origin}", [two, two + 1]),
    ):
        page = opened(browser, written(*names), selected)
        rows = page.locator("#whatif tbody tr")
        for row in rows.all():
            cells = row.locator("td").all_inner_texts()
            if (cells[0], mine[0]) not in replayed:
                assert cells[0] in ("two-in-flight", "aux-streams")
                assert cells[1:6] == ["–"] * 5
                continue
            before, after = (np.mean([replayed[cells[0], one][at] for one in mine]) / 1e9 for at in (0, 1))
            assert [_seconds(cells[at]) for at in (1, 4, 5)] == pytest.approx([before - after, before, after], rel=0.005)
        page.keyboard.press("Escape")
        assert rows.all_inner_texts() == whole
    left_out = next(one for one in tables.inferences.ints("inference").tolist() if one not in chosen)
    page = opened(browser, written(*names), f"inference={left_out}")
    assert "None of the selected inferences was replayed" in page.inner_text("#whatif .said")
    assert page.locator("#whatif tr.off").count() == len(whole)
    reformat = next(row.integer("layer_id") for row in tables.layers if row.text("name").startswith("Reformatting CopyNode"))
    for layer, dimmed in ((reformat, 0), (reformat - 1, 1)):
        page = opened(browser, written(*names), f"layer={layer}")
        assert page.locator("#whatif tr.off").count() == dimmed
        assert "concern the selected layers" in page.inner_text("#whatif .said")


def test_what_is_not_done_first_is_said_with_the_limit(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    assert "each saves at least 1%, even at the low end of a predicted range, after the first 3%" in page.inner_text("#answer")
    first = {row.locator("td").first.inner_text(): row.locator("td").nth(6).inner_text() for row in page.locator("#whatif tbody tr").all()}
    listed = {str(link.get_attribute("href")).removeprefix("#change-") for link in page.get_by_text("how predicted").all()}
    assert {change for change, said in first.items() if said == "yes"} == listed != set()
    assert first["async"] == "no: it may save less than 1%"
    assert first["drop-layers"] == "no: it may save nothing"


def test_what_no_range_marks_as_inferences_are_repetitions(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written("torch_encoder/eager.nsys-rep"), "inference=3")
    assert "repetition 3 ×" in page.inner_text("#chips")
    assert page.inner_text("#details h2") == "Repetition 3"
    assert page.inner_text("#inferences h2") == "Repetitions"
    assert "Layers are TensorRT's, and the trace shows none" in page.inner_text("#answer")


def test_the_part_in_view_is_selected_by_a_key_and_told(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.locator("#lanes canvas").focus()
    page.keyboard.press("r")
    page.wait_for_selector("#chips:not([hidden])")
    assert re.search(r"range=\d+-\d+", page.url)
    told = page.inner_text("#details")
    assert "kernels" in told and "idle, waiting for launches" in told
    assert "within the selection" in page.inner_text("#layers .said")
    assert page.inner_text("#details h2").split(" from ")[0] in page.inner_text("#chips")


def test_idle_time_says_how_much_of_it_the_host_was_in_cuda_calls(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]), "inference=16")  # most of whose idle time is in no call
    lanes = page.locator("#lanes canvas")
    shares = {}
    for at in range(200, 1000, 15):
        lanes.click(position={"x": at, "y": 22 + 21 + 10})
        told = re.search(r"in CUDA calls\s+([\d.]+) (\S+) of ([\d.]+) (\S+)", page.inner_text("#details"))
        if told and told[2] == told[4]:
            shares[told[0]] = float(told[1]) / float(told[3])
    assert min(shares.values()) < 0.1
    assert max(shares.values()) > 0.9
    assert all(0 <= share <= 1 for share in shares.values())


@pytest.mark.parametrize("selected", ["range=2000000-2060000", "range=0-400000", "inference=0", "inference=9", "inference=48"])
def test_a_selection_adds_up_the_kernels_that_are_in_it(browser: Browser, written: Callable[..., Path], selected: str) -> None:
    tables = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"], rules=()).tables
    kernels = tables.kernels
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    events = (kernels, tables.memcpys, tables.memsets, tables.api_calls, tables.inferences)
    origin = min(int(table.ints("start_ns").min()) for table in events if len(table))
    what, _, value = selected.partition("=")
    if what == "range":
        begin, stop = (origin + int(part) for part in value.split("-"))
        spent = np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0)
    else:
        spent = np.where(kernels.ints("inference") == int(value), end - start, 0)
    page = opened(browser, bert(written), selected)
    page.select_option("#layer-rows", "each")
    times = [float(text.replace(",", "")) for text in page.locator("#layers tbody td:nth-child(2)").all_inner_texts() if text != "–"]
    assert sum(times) == pytest.approx(spent.sum() / 1000, abs=0.006 * len(times))
    counts = page.locator("#kernels tbody tr:visible td:nth-child(3)").all_inner_texts()
    assert sum(int(text.replace(",", "")) for text in counts) == np.count_nonzero(spent)


def top(page: Page, place: str) -> float:
    """How far below the header the first of these elements begins, in pixels."""
    head = page.locator("header").evaluate("one => one.getBoundingClientRect().bottom")
    return float(page.locator(place).first.evaluate("one => one.getBoundingClientRect().top")) - float(head)


def test_links_to_findings_and_predictions_show_what_they_are_about(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    for link in page.locator('#answer a[href^="#finding-"]').all():
        link.click()
        card = f"article{link.get_attribute('href')}"
        assert 0 <= top(page, f"{card} h3") < 60 or page.evaluate("scrollY + innerHeight >= document.body.scrollHeight - 1"), card
    link = page.get_by_text("how predicted").first
    change = str(link.get_attribute("href"))
    link.click()
    assert page.locator(f"tr{change}").inner_text().startswith(change.removeprefix("#change-"))
    assert 0 <= top(page, change) < 60


def test_a_match_is_shown_beside_its_details_and_escape_leaves_the_search(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("/")
    page.keyboard.type("gemm_mha")
    page.locator("#hits li").first.wait_for()
    page.keyboard.press("Enter")
    assert page.locator("#hits").is_hidden()  # it would cover the details
    assert 0 <= top(page, "#lanes") < 400
    assert page.inner_text("#count").endswith(" of 150, first in view")  # the search goes on from what the timeline shows
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id !== 'find'")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    assert page.input_value("#find") == ""


def test_matches_of_two_engines_are_listed_layer_by_layer(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    page.fill("#find", "gate")
    page.locator("#hits li").first.wait_for()
    layers = re.search(r"of (\d+) layers", page.inner_text("#hits h3"))
    assert layers is not None
    assert page.locator("#hits ul").first.locator("li").count() == int(layers[1])
    said = page.locator("#hits ul").first.inner_text()
    assert "context" in said and "generation" in said


def test_an_address_with_layers_opens_at_their_rows(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]), "layers=3.9.15")
    box = page.locator("#layers tr.on").first.bounding_box()
    assert page.locator("#layers tr.on").count() >= 1
    assert box is not None and 42 < box["y"] < 900
    assert 0 <= top(page, "#layers h2") < 60


def test_the_header_stays_together_beside_links_to_other_pages(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt103/sync.nsys-rep", [FIXTURES / "bert_trt103/engine.json"])
    write_page(whole, report_of(whole), tmp_path / "x.html", links=[("comparison", "c.html"), ("after", "c.after.html")])
    page = opened(browser, tmp_path / "x.html")
    tops = [top(page, one) for one in ("#find", "#theme", "#help")]
    assert max(tops) - min(tops) < 10
    script = """one => {
      const pen = document.createElement("canvas").getContext("2d"), { font, paddingLeft, paddingRight } = getComputedStyle(one);
      pen.font = font;
      return one.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - pen.measureText(one.placeholder).width;
    }"""
    for width in (1400, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        for box in page.locator("input[type=search]").all():  # what may be searched for is said in full
            assert box.evaluate(script) >= 0, box.get_attribute("placeholder")
    page.set_viewport_size({"width": 1400, "height": 900})
    assert page.locator("header").evaluate("one => one.offsetHeight") < 70


def test_a_cause_of_idle_time_is_selected_by_a_click_on_the_bar_its_legend_or_its_row(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    longest: set[str] = set()
    for place in (
        "#answer .legend [data-cause=launch]",
        "#answer .whole [data-cause=launch]",
        "#idle tbody button:text-is('waiting for launches')",
    ):
        page.locator(place).click()
        assert "idle: waiting for launches" in page.inner_text("#chips")
        assert page.inner_text("#details h2") == "GPU 0 idle: waiting for launches"
        assert 0 <= top(page, "#lanes") < 400
        assert "waiting for launches" in page.inner_text("#idle tr.on")
        longest.add(page.inner_text("#details"))
        page.keyboard.press("n")
        assert page.inner_text("#details h2") == "GPU 0 idle: waiting for launches"
        page.keyboard.press("Escape")
        assert page.locator("#chips").is_hidden()
        assert page.inner_text("#count") == ""
    assert len(longest) == 1


def test_layers_that_are_alike_say_what_they_are_and_nothing_moves(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    before = top(page, "#answer h2")
    row = page.locator("#answer .ranked tr").first
    share = row.locator("td").first.inner_text()
    row.locator("button").click()
    assert top(page, "#answer h2") == before
    details = page.inner_text("#details")
    assert share in details
    assert "Their kernels" in details
    page.keyboard.press("Escape")
    assert top(page, "#answer h2") == before


def test_keys_go_through_the_inferences_that_have_a_dot(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written))
    page.keyboard.press("]")
    assert "excluded" not in page.inner_text("#details")
    assert "inference 1" in page.inner_text("#chips")  # 0 is a warm-up
    assert 0 <= top(page, "#lanes") < 400
    page.keyboard.press("[")
    assert "inference 1" in page.inner_text("#chips")
    page.keyboard.press("]")
    assert "inference 2" in page.inner_text("#chips")


def test_a_kernel_s_name_opens_an_execution_of_its_median_time(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*CAPTURES["no engine file"]))
    seen = False
    for row in page.locator("#kernels tbody tr").all()[:6]:
        median = row.locator("td").nth(3).inner_text()
        row.locator("button").click()
        details = page.inner_text("#details")
        takes = re.search(r"takes\s+([\d.]+ \S+)", details)
        assert takes is not None
        assert takes[1].split()[1] == median.split()[1]
        assert float(takes[1].split()[0]) == pytest.approx(float(median.split()[0]), rel=0.02)
        seen |= "median of its name" in details  # it runs with several grids
    assert seen
