"""The page of a picture, in a real browser: it works from a file, searches, shows details, and runs nothing that a name holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nsysmap.analysis import measured
from nsysmap.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_report
from nsysmap.picture.model import picture, times_of
from nsysmap.picture.write import write_graph
from tests.graph_engines import decoder
from tests.made_engines import made, row
from tests.places import FIXTURES

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
RUNS = '<img src=x onerror="document.title=1"></script><script>document.title=2</script>'


def opened(page: Path, asked: str, profile: Path) -> str:
    """The page's document once its script has run; skips where there is no browser."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is here to open the page in")
    command = [
        found, "--headless", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}", "--virtual-time-budget=5000",
        "--window-size=1400,900", "--dump-dom", f"file://{page}#{asked}",
    ]  # fmt: skip
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "</html>" in done.stdout, done.stderr[-2000:]
    return done.stdout


def panel(document: str) -> str:
    """The text of the details, without marks."""
    found = re.search(r'<aside id="details">(.*?)</aside>', document, re.DOTALL)
    assert found is not None
    return re.sub(r"<[^>]*>", " ", found[1])


def test_a_layer_is_found_by_name_and_shows_its_details(tmp_path: Path) -> None:
    engine = read_engine(FIXTURES / "bert_trt10" / "engine.json")
    tables = measured(map_report(FIXTURES / "bert_trt10" / "sync.sqlite", [engine]))
    write_graph(picture(engine, times_of(engine, tables, "sync.sqlite")), tmp_path / "x.html")
    document = opened(tmp_path / "x.html", "find=gemm_mha&layer=4", tmp_path / "profile")
    assert '<span id="count" role="status">4 layers</span>' in document
    assert len(re.findall(r'<g class="box found', document)) == 4
    text = panel(document)
    assert "#4 _gemm_mha_v2_myl0_4" in text
    assert "_gemm_mha_v2_0x" in text
    assert "1 ×" in text
    assert "/bert/encoder/layer.0/attention/self/Softmax" in text
    assert re.search(r'<g class="scene" transform="translate\([^)]*\) scale\([\d.]+\)"', document)
    assert re.search(r'<path class="chosen" d="M[^"]+"', document)  # the tensors that it reads and writes


def test_a_thousand_layers_are_shown_by_block_and_one_by_one(tmp_path: Path) -> None:
    write_graph(picture(decoder(124), None, all_views=True), tmp_path / "x.html")
    blocks = opened(tmp_path / "x.html", "layer=500&color=precision", tmp_path / "profile")
    assert 'data-color="precision"' in blocks
    assert len(re.findall(r'<svg class="view shown"', blocks)) == 1
    assert "/model/layers.62/" in panel(blocks)
    layers = opened(tmp_path / "x.html", "view=1&find=layers.77", tmp_path / "profile")
    assert len(re.findall(r'<g class="box found', layers)) == 8
    assert re.search(r'<svg class="view shown finding"[^>]*aria-label="every layer"', layers)


def test_names_are_never_run(tmp_path: Path) -> None:
    engine = made(
        *(row(f"{RUNS} {at}", "kgen", [(RUNS, [1], "Half")], [(RUNS, [1], "Half")], TacticName=RUNS, Metadata=RUNS) for at in range(2))
    )
    write_graph(picture(engine, None), tmp_path / "x.html")
    document = opened(tmp_path / "x.html", "layer=1&find=%3Cscript%3E", tmp_path / "profile")
    assert "<img" not in document
    assert len(re.findall("<script", document)) == 2  # the page's data and its code
    assert "<title>made.json: 2 layers</title>" in document
    assert "2 layers" in document
    assert "onerror=" in panel(document).replace("&quot;", '"')  # shown as text
