"""A trace whose CUDA API calls are all of one kind, or lack one kind, is answered: a column of one
value is stored as such, and nobody may write into it.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsysmap.api import analyze
from nsysmap.core.table import Text
from tests.places import FIXTURES

GRAPH = FIXTURES / "bert_trt10" / "graph.sqlite"
KINDS = ("cudaGraphLaunch%", "cudaMemcpy%", "%Synchronize%", "cuda%LaunchKernel%", "nothing")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_answered(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    shutil.copy(GRAPH, path)
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as file:
        file.execute(
            "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE nameId NOT IN"
            " (SELECT id FROM StringIds WHERE value LIKE ?)",
            (kind,),
        )
        file.commit()
    done = analyze(path)
    assert len(done.tables.kernels) == 2800
    assert done.summary is not None


@pytest.mark.parametrize("value", ["copy", "other", None])
def test_what_a_text_is_asked_is_the_callers_own(value: str | None) -> None:
    asked = Text.same(value, 5)
    for told in (asked.equals("copy"), asked.where(lambda text: text == "copy")):
        assert told.tolist() == [value == "copy"] * 5
        told[1] = not told[0]
        assert told.tolist() == [told[0], not told[0], *[told[0]] * 3]
