"""What every test runs with."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.browser import Browser, browser_of

# no deadline: a slow machine is no failure; and CI draws the same examples each time
settings.register_profile("nsysmap", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("nsysmap")

# a run in the background, or under nohup, ignores these, and so would the commands that tests
# interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the session's own: results and exports are kept between its tests, and nothing in
    the user's.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NSYSMAP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def _chromium() -> Iterator[Browser]:
    with browser_of() as browser:
        yield browser


@pytest.fixture
def browser(_chromium: Browser) -> Iterator[Browser]:
    """A real browser without network; a page of it that logged an error or asked for anything fails
    the test.
    """
    yield _chromium
    _chromium.close_pages()
