"""The page of a picture, in a real browser: it works from a file, searches, shows details, and runs
nothing that a name holds.
"""

from __future__ import annotations

from pathlib import Path

from nsysmap.analysis import measured
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_report
from nsysmap.output.picture.model import picture, times_of
from nsysmap.output.picture.write import write_graph
from tests.browser import Browser
from tests.graph_engines import decoder
from tests.made_engines import made, row
from tests.places import FIXTURES

RUNS = '<img src=x onerror="document.title=1"></script><script>document.title=2</script>'


def test_a_layer_is_found_by_name_and_shows_its_details(browser: Browser, tmp_path: Path) -> None:
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    tables = measured(map_report(FIXTURES / "bert_trt10" / "sync.sqlite", [engine]))
    write_graph(picture(engine, times_of(engine, tables, "sync.sqlite")), tmp_path / "x.html")
    page = browser.open(tmp_path / "x.html", "find=gemm_mha&layer=4")
    assert page.inner_text("#count") == "4 layers"
    assert page.locator(".box.found").count() == 4
    text = page.inner_text("#details")
    assert "#4 _gemm_mha_v2_myl0_4" in text
    assert "_gemm_mha_v2_0x" in text
    assert "1 ×" in text
    assert "/bert/encoder/layer.0/attention/self/Softmax" in text
    assert page.get_attribute("path.chosen", "d")  # the tensors that it reads and writes
    page.keyboard.press("/")
    page.keyboard.type("layer.3 dense")
    assert page.locator(".box.found").count() == 3
    page.keyboard.press("Enter")
    assert "layer.3/attention/output/dense/MatMul" in page.inner_text("#details h2")
    page.keyboard.press("Escape")
    assert page.locator(".box.found").count() == 0


def test_boxes_are_clicked_zoomed_and_coloured(browser: Browser, tmp_path: Path) -> None:
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    write_graph(picture(engine, None), tmp_path / "x.html")
    page = browser.open(tmp_path / "x.html")
    page.locator("[data-box='7'] .face").click()
    assert "layer.0/intermediate/dense/MatMul" in page.inner_text("#details h2")
    before = page.get_attribute(".scene", "transform")
    page.click("#in")
    assert page.get_attribute(".scene", "transform") != before
    page.select_option("#color", "precision")
    assert page.get_attribute("[data-box='7'] .face", "fill") == "#566bcb"
    assert "Data type of the computation" in page.inner_text("#legend")
    page.locator("[data-box='8']").focus()
    page.keyboard.press("Enter")
    assert "layer.0/output/dense/MatMul" in page.inner_text("#details h2")


def test_a_thousand_layers_are_shown_by_block_and_one_by_one(
    browser: Browser, tmp_path: Path
) -> None:
    write_graph(picture(decoder(124), None, all_views=True), tmp_path / "x.html")
    page = browser.open(tmp_path / "x.html", "layer=500&color=precision")
    assert page.get_attribute("body", "data-color") == "precision"
    assert page.locator("svg.shown").get_attribute("aria-label") == "repeated blocks"
    assert "/model/layers.62/" in page.inner_text("#details")
    page.select_option("#view", "1")
    page.fill("#find", "layers.77")
    assert page.locator("svg.shown .box.found").count() == 8
    assert page.locator("svg.shown.finding").get_attribute("aria-label") == "every layer"


def test_names_are_never_run(browser: Browser, tmp_path: Path) -> None:
    engine = made(
        *(
            row(
                f"{RUNS} {at}",
                "kgen",
                [(RUNS, [1], "Half")],
                [(RUNS, [1], "Half")],
                TacticName=RUNS,
                Metadata=RUNS,
            )
            for at in range(2)
        )
    )
    write_graph(picture(engine, None), tmp_path / "x.html")
    page = browser.open(tmp_path / "x.html", "layer=1&find=%3Cscript%3E")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2  # the page's data and its code
    assert page.title() == "made.json: 2 layers – nsysmap"
    assert page.inner_text("#count") == "2 layers"
    assert "onerror=" in page.inner_text("#details")  # shown as text


def test_the_policy_of_the_page_lets_no_other_script_run(browser: Browser, tmp_path: Path) -> None:
    write_graph(picture(decoder(2), None), tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text("utf-8")
    assert "unsafe" not in text
    (tmp_path / "y.html").write_text(
        text.replace("</body>", "<script>document.title = 'ran'</script></body>"), "utf-8"
    )
    page = browser.open(tmp_path / "y.html")
    assert page.title() == "made.json: 19 layers – nsysmap"
    assert any("Content Security Policy" in one for one in browser.wrong)
    browser.wrong.clear()
