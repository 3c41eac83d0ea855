"""The pages that tests open, each written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysmap.api import analyze
from nsysmap.output.build import report_of
from nsysmap.output.page.write import write_page
from tests.places import FIXTURES

if TYPE_CHECKING:
    pass


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("pages")

    def write(report: str, *engines: str, most_kernels: int = 150_000) -> Path:
        path = folder / f"{'-'.join((report, *engines)).replace('/', '_')}-{most_kernels}.html"
        if not path.exists():
            analysis = analyze(FIXTURES / report, [FIXTURES / engine for engine in engines])
            write_page(analysis, report_of(analysis), path, most_kernels=most_kernels)
        return path

    return write
