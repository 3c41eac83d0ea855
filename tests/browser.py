"""A real Chromium for the tests of pages: it opens files from disk, and remembers what went wrong
and what was asked for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@dataclass
class Browser:
    """The browser, with the pages that are open in it."""

    chromium: Chromium
    pages: list[Page] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def open(self, path: Path, fragment: str = "", *, scheme: str = "light") -> Page:
        """The page of that file once its script has run; ``fragment`` is what follows # in its
        address.
        """
        page = self.chromium.new_page(
            viewport={"width": 1400, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page.on(
            "console",
            lambda message: (
                self.wrong.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.is_navigation_request()
                else self.wrong.append(f"asked for {request.url[:200]}")
            ),
        )
        page.goto(path.resolve().as_uri() + (f"#{fragment}" if fragment else ""))
        self.pages.append(page)
        return page

    def close_pages(self) -> None:
        """Close them; AssertionError where one logged an error or asked for anything but itself."""
        for page in self.pages:
            page.close()
        wrong, self.wrong, self.pages = self.wrong, [], []
        assert wrong == []


@contextmanager
def browser_of() -> Iterator[Browser]:
    """The browser of this machine; the test is skipped where there is none, or no playwright to
    drive it.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is here to open the page in")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        try:
            yield Browser(chromium)
        finally:
            chromium.close()
