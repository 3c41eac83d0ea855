"""What a user of the Python API finds: the names, the short texts, and that docs/python.md and the
notebook say what is so.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import nsysmap
from tests.places import FIXTURES, ROOT
from tests.reports import analysis

CAPTURE = FIXTURES / "bert_trt10"
NOTEBOOK = ROOT / "examples" / "analysis.ipynb"


def plain_of(cell: dict[str, Any]) -> str:
    """What a cell shows, as text."""
    return "".join(
        one.get("text", "") or one.get("data", {}).get("text/plain", "") for one in cell["outputs"]
    )


def test_tab_finds_the_api_before_anything_is_loaded() -> None:
    code = (
        "import nsysmap, sys; print(dir(nsysmap)); print([m for m in sys.modules if"
        " m.startswith(('nsysmap.', 'numpy'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    for name in ("analyze", "map_report", "decode", "read_engine", "compare"):
        assert f"'{name}'" in names
    assert "TYPE_CHECKING" not in names


def test_every_name_that_is_offered_is_there() -> None:
    for name in nsysmap.__all__:
        assert getattr(nsysmap, name).__module__.startswith("nsysmap.")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nsysmap.nothing  # noqa: B018


def test_texts_for_people_are_short() -> None:
    told = analysis("bert_trt10", "sync.sqlite")
    assert len(repr(told)) < 200
    assert (
        repr(told)
        == "<Analysis of sync.sqlite with engine.json: 375 µs per inference in the trace, 331 µs"
        " (312 to 359) without the profiler; GPU 73% busy; first run it as a CUDA graph: saves"
        " 50 µs (39 to 71)>"
    )
    hidden = repr(analysis("bert_trt10", "graph_whole.sqlite"))
    assert (
        ": The trace hides the kernels of 50 CUDA graph launches; 291 µs per inference in the trace"
        in hidden
    )
    assert len(repr(told.tables)) < 2000
    assert repr(told.engines[0]) == "<Engine engine.json: 57 layers>"
    assert repr(told.tables.devices).startswith("<Table devices: 1 rows of ")


def test_the_tables_of_users_are_data_frames() -> None:
    told = analysis("bert_trt10", "sync.sqlite")
    for name in ("kernels", "layers", "inferences", "idle", "whatif", "coverage"):
        frame = getattr(told, name)
        assert isinstance(frame, pd.DataFrame), name
        assert len(frame), name
    assert told.idle["time_ns"].sum() == told.tables.idle_totals.ints("time_ns").sum()


def test_the_page_is_the_one_that_the_command_writes() -> None:
    from nsysmap.output.page.write import page

    told = analysis("bert_trt10", "sync.sqlite")
    assert told.to_html() == page(told, nsysmap.report_of(told))


def test_the_examples_of_the_python_page_run_as_they_stand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("sync.sqlite", "graph.sqlite", "engine.json"):
        (tmp_path / name).symlink_to(CAPTURE / name)
    monkeypatch.chdir(tmp_path)
    told = doctest.testfile(
        str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert told.failed == 0
    assert told.attempted > 20
    assert (tmp_path / "report.md").read_text().startswith("**sync")


def test_mistakes_are_told_as_on_the_command_line(tmp_path: Path) -> None:
    told = analysis("bert_trt10", "sync.sqlite")
    for call, words in (
        (
            lambda: nsysmap.analyze(CAPTURE / "sync.sqlite", reader="mine"),  # type: ignore[arg-type]
            "use one of: auto, nsys, own",
        ),
        (lambda: nsysmap.analyze(tmp_path / "none"), "there is no such file"),
        (lambda: nsysmap.read_engine(CAPTURE / "sync.sqlite"), "not an engine"),
        (lambda: told.write(tmp_path / "report.txt"), "names no known format"),
        (lambda: told.write(tmp_path / "none" / "report.md"), "there is no folder"),
        (lambda: told.query("SELECT nothing FROM layers"), "nothing"),
        (
            lambda: nsysmap.compare(CAPTURE / "sync.sqlite", tmp_path / "none"),
            "there is no such file",
        ),
    ):
        with pytest.raises(nsysmap.NsysmapError, match=words):
            call()


def test_engines_are_given_as_files_or_opened() -> None:
    engine = CAPTURE / "engine.json"
    for given in (
        engine,
        str(engine),
        [engine],
        [nsysmap.read_engine(engine)],
        nsysmap.read_engine(engine),
    ):
        assert len(nsysmap.map_report(CAPTURE / "sync.sqlite", given).engines) == 1
    assert nsysmap.map_report(CAPTURE / "sync.sqlite").engines == ()


def test_the_notebook_runs_and_every_cell_shows_something(tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kept = [plain_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert all(kept)  # its host shows what is in the file: python docs/make_pictures.py
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
        patch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))))
        nbclient.NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            resources={"metadata": {"path": str(NOTEBOOK.parent)}},
        ).execute()
    shown = [
        [kind for one in cell["outputs"] for kind in one.get("data", ["text"])]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    assert len(shown) > 5
    assert all(shown)
    now = [plain_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert now[0].split("\n")[0] == kept[0].split("\n")[0]
    assert now[1:4] == kept[1:4]  # tables of the trace


@pytest.mark.parametrize(
    "given",
    [("a\0b",), ("sync.sqlite", ["a\0b"]), "onnx", "ncu", "times"],
    ids=str,
)
def test_a_path_with_a_nul_is_an_error_of_one_line(given: str | tuple[str, list[str]]) -> None:
    sync = CAPTURE / "sync.sqlite"
    with pytest.raises(nsysmap.NsysmapError, match="NUL character") as caught:
        if isinstance(given, str):
            nsysmap.analyze(sync, [CAPTURE / "engine.json"], **{given: "a\0b"})  # type: ignore[arg-type]
        else:
            nsysmap.analyze(CAPTURE / given[0], *given[1:])
    assert "\n" not in str(caught.value)
    assert "\0" not in str(caught.value)
