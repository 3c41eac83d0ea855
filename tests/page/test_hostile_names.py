"""Names made to break the page are shown, never run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.api import analyze
from nsysmap.core.table import Table, Text
from nsysmap.output.build import report_of
from nsysmap.output.page.write import write_page
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import bert, open_tab, opened

RUNS = '<img src=x onerror="document.title=1"></script><script>document.title=2</script>{{ 7 * 7 }}'


def test_names_are_never_run(browser: Browser, tmp_path: Path) -> None:
    analysis = analyze(FIXTURES / "bert_trt103" / "sync.nsys-rep", rules=())
    tables = analysis.tables

    def spoiled(table: Table) -> Table:
        spoilt = {}
        for name in ("name", "title", "layer", "layer_title", "part", "api", "domain", "evidence"):
            if isinstance(data := table.columns.get(name), Text):
                spoilt[name] = Text(data.codes, tuple(f"{RUNS}{text}" for text in data.values))
        return table.with_columns(table.spec, spoilt)

    changed = {
        name: spoiled(getattr(tables, name))
        for name in ("kernels", "layers", "nvtx_ranges", "api_calls", "gaps", "repeated_layers")
    }
    bad = replace(analysis, source=RUNS, tables=tables.with_tables(**changed))
    write_page(
        bad,
        replace(report_of(analysis), trace=replace(report_of(analysis).trace, source=RUNS)),
        tmp_path / "x.html",
    )
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
    for tab in page.locator("#tabs a").all():
        tab.click()
    open_tab(page, "graph")
    page.wait_for_selector(".box")
    assert "onerror" in page.inner_text("#details")
    assert any("onerror" in str(one) for one in page.locator(".box title").all_text_contents())
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    assert "sync.nsys-rep" in page.title()


def test_a_name_without_a_place_to_break_widens_nothing(browser: Browser, tmp_path: Path) -> None:
    whole = analyze(FIXTURES / "bert_trt85/sync.nsys-rep", rules=())
    kernels = whole.tables.kernels
    names = kernels.text("name")
    long = Text(names.codes, tuple(f"{text.split('(')[0]}_{'x' * 300}" for text in names.values))
    renamed = kernels.with_columns(kernels.spec, {"name": long})
    totals = whole.tables.kernel_totals
    of = totals.text("name")
    longer = Text(of.codes, tuple(f"{text.split('(')[0]}_{'x' * 300}" for text in of.values))
    changed = {
        "kernels": renamed,
        "kernel_totals": totals.with_columns(totals.spec, {"name": longer, "summary": longer}),
    }
    odd = replace(whole, tables=whole.tables.with_tables(**changed))
    write_page(odd, report_of(odd), tmp_path / "x.html")
    for width in (1440, 390):
        page = opened(browser, tmp_path / "x.html")
        page.set_viewport_size({"width": width, "height": 900})
        for tab in page.locator("#tabs a").all():
            tab.click()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_policy_of_the_page_lets_no_other_script_run(
    browser: Browser, written: Callable[..., Path], tmp_path: Path
) -> None:
    text = bert(written).read_text("utf-8")
    assert "unsafe" not in text
    (tmp_path / "y.html").write_text(
        text.replace("</body>", "<script>document.title = 'ran'</script></body>"), "utf-8"
    )
    page = opened(browser, tmp_path / "y.html")
    assert page.title() != "ran"
    assert any("Content Security Policy" in one for one in browser.wrong)
    browser.wrong.clear()
