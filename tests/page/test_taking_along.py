"""What a reader takes from a page: commands by a button that copies them, tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.page import scripts
from tests.page.opening import CAPTURES, bert, open_tab, opened


def test_each_command_has_a_button_that_copies_its_lines(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    commands = page.locator("#answer .command")
    assert commands.count() >= 2
    for command in commands.all():
        command.locator("button").click()
        command.locator("button", has_text="copied").wait_for()
        wanted = "\n".join(command.locator("code").all_text_contents())
        assert page.evaluate("navigator.clipboard.readText()") == wanted


def test_each_table_is_offered_as_csv(
    browser: Browser, written: Callable[..., Path], tmp_path: Path
) -> None:
    page = opened(browser, bert(written))
    for key, most in (("layers", 18), ("idle", 6), ("kernels", 15), ("whatif", 5), ("sure", 1)):
        open_tab(page, key)
        with page.expect_download() as download:
            page.locator(f"#{key} > .head .export").first.click()
        assert download.value.suggested_filename.endswith(".csv")
        download.value.save_as(tmp_path / key)
        head, *rows = csv.reader((tmp_path / key).read_text("utf-8").splitlines())
        assert rows and all(len(row) == len(head) for row in rows)
        shown = page.locator(f"#{key} table.rows").first.locator("tbody tr:visible").count()
        assert len(rows) == shown >= min(most, shown), key
    open_tab(page, "layers")
    page.fill("#layer-filter", "attention")
    with page.expect_download() as download:
        page.locator("#layers > .head .export").click()
    download.value.save_as(tmp_path / "some")
    _, *some = csv.reader((tmp_path / "some").read_text("utf-8").splitlines())
    assert 0 < len(some) == page.locator("#layer-table tbody tr").count()


@pytest.mark.parametrize("names", [CAPTURES["two engines in turns"]])
def test_every_table_of_rows_has_its_button(
    browser: Browser, written: Callable[..., Path], names: tuple[str, ...]
) -> None:
    page = opened(browser, written(*names))
    assert page.locator("#panels .export").count() == page.locator("#panels table.rows").count()


def test_the_parts_of_a_region_are_offered_as_csv(
    browser: Browser, written: Callable[..., Path], tmp_path: Path
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    region = page.locator("#region-list details").first
    if region.get_attribute("open") is None:
        region.locator("summary").click()
    with page.expect_download() as download:
        region.locator(".export").click()
    assert download.value.suggested_filename.startswith("parts of ")
    download.value.save_as(tmp_path / "parts")
    head, *rows = csv.reader((tmp_path / "parts").read_text("utf-8").splitlines())
    assert head[:2] == ["share of the region", "µs"]
    assert len(rows) == region.locator("tbody tr").count() > 0


def test_csv_holds_any_name_and_no_formula() -> None:
    cells = ["plain", 'a "quoted", one', "two\nlines", "=1+1", "@x", "-bad", "-1.5", "+2.00"]
    text = scripts.run("rows => csvOf([rows])", cells)
    (row,) = csv.reader(io.StringIO(str(text), newline=""))
    assert row == [
        "plain", 'a "quoted", one', "two\nlines", "'=1+1", "'@x", "'-bad", "-1.5", "+2.00",
    ]  # fmt: skip
