"""What-if on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysmap.api import analyze
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass
from tests.page.opening import bert, opened, seconds


def test_what_all_changes_assume_stands_once(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="whatif")
    assert page.inner_text("#whatif").count("Replay of") == 1
    assert "Does not apply" in page.inner_text("#whatif")
    # as what to do first says it
    assert (
        page.inner_text("#change-cuda-graph td:first-child") == "cuda-graph\nrun it as a CUDA graph"
    )


def test_what_if_is_of_the_selected_inferences_and_layers(
    browser: Browser, written: Callable[..., Path]
) -> None:
    names = ("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json")
    tables = analyze(FIXTURES / names[0], [FIXTURES / names[1]], rules=()).tables
    replayed = {
        (row.text("change"), row.integer("inference")): (
            row.integer("before_ns"),
            row.integer("after_ns"),
        )
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
            cells, change = (
                row.locator("td").all_inner_texts(),
                str(row.get_attribute("data-change")),
            )
            if (change, mine[0]) not in replayed:
                assert change in ("two-in-flight", "aux-streams")
                assert cells[1:6] == ["–"] * 5
                continue
            before, after = (
                np.mean([replayed[change, one][at] for one in mine]) / 1e9 for at in (0, 1)
            )
            assert [seconds(cells[at]) for at in (1, 4, 5)] == pytest.approx(
                [before - after, before, after], rel=0.005
            )
        page.keyboard.press("Escape")
        assert rows.all_inner_texts() == whole
    left_out = next(
        one for one in tables.inferences.ints("inference").tolist() if one not in chosen
    )
    page = opened(browser, written(*names), f"inference={left_out}")
    assert "was replayed" in page.inner_text("#whatif .said")
    assert page.locator("#whatif tr.off").count() == len(whole)
    reformat = next(
        row.integer("layer_id")
        for row in tables.layers
        if row.text("name").startswith("Reformatting CopyNode")
    )
    for layer, dimmed in ((reformat, 0), (reformat - 1, 1)):
        page = opened(browser, written(*names), f"layer={layer}")
        assert page.locator("#whatif tr.off").count() == dimmed
        assert "concern the selected" in page.inner_text("#whatif .said")
