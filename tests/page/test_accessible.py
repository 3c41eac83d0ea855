"""What readers of screens and of keyboards need of the pages: the rules that axe-core found broken,
and those that are easily broken again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.page.opening import CAPTURES, MIXED, open_tab, opened

BROKEN = """() => {
  const shown = [...document.querySelectorAll("body *")].filter(one => one.checkVisibility()), told = [];
  const say = (rule, one) => told.push(`${rule}: ${one.outerHTML.slice(0, 90)}`);
  const words = one => (one.innerText ?? one.textContent).replace(/\\s+/g, " ").trim().toLowerCase();
  const reached = "a[href], button, input, select, summary, canvas, [tabindex]";
  for (const one of shown) {
    const label = one.getAttribute("aria-label"), { overflowX, overflowY } = getComputedStyle(one);
    if (one.matches("ul, ol") && [...one.children].some(child => !child.matches("li, script, template"))) say("list", one);
    if (one.matches("dl") && [...one.children].some(child => !child.matches("div, dt, dd"))) say("list of definitions", one);
    if (one.matches("dl > div") && [...one.children].map(child => child.tagName).join() !== "DT,DD") say("definition", one);
    if (label && one.matches("a, button") && /\\w/.test(words(one)) && !label.toLowerCase().includes(words(one))) say("label", one);
    if (one.matches("input, select") && !label && !one.closest("label")) say("field without a label", one);
    if (one.matches("button, a[href], summary") && !label && !words(one)) say("nothing to read", one);
    if (one.matches("[role=img]") && one.querySelector(reached)) say("control in a picture", one);
    if ([overflowX, overflowY].some(how => how === "auto" || how === "scroll") && (one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
      && one.tabIndex < 0 && ![...one.querySelectorAll(reached)].some(inside => inside.tabIndex >= 0)) say("scrolls by mouse only", one);
  }
  const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
  for (const id of new Set(ids)) if (ids.indexOf(id) !== ids.lastIndexOf(id)) told.push(`id twice: ${id}`);
  if (document.querySelectorAll("h1").length !== 1) told.push("not one h1");
  return [...new Set(told)];
}"""  # noqa: E501
FAINT = """() => {
  const light = colour => {
    const [r, g, b] = colour.map(part => { part /= 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const faint = new Set();
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility() || one.closest("svg, canvas, .off") || ![...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    let under = one;
    while (under.parentElement && (parts(getComputedStyle(under).backgroundColor)[3] ?? 1) === 0) under = under.parentElement;
    const [ink, ground] = [one, under].map((place, at) => light(parts(getComputedStyle(place)[at ? "backgroundColor" : "color"]).slice(0, 3)));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) faint.add(`${ratio.toFixed(1)}: ${one.outerHTML.slice(0, 80)}`);
  }
  return [...faint];
}"""  # noqa: E501


@pytest.mark.parametrize(
    "names", [CAPTURES["one inference at a time"], MIXED, CAPTURES["no engine file"]]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_tab_can_be_read_and_reached(
    browser: Browser, written: Callable[..., Path], names: tuple[str, ...], scheme: str
) -> None:
    page = opened(browser, written(*names), scheme=scheme)
    for tab in page.locator("#tabs a").all():
        open_tab(page, str(tab.get_attribute("aria-controls")))
        page.wait_for_timeout(50)  # what follows the size of a table
        assert page.evaluate(BROKEN) == [], tab.inner_text()
        assert page.evaluate(FAINT) == [], tab.inner_text()
