"""`nsysmap compare` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import pytest

from tests.browser import Browser
from tests.commands import run
from tests.places import FIXTURES

SYNC, GRAPH, ENGINE = (
    FIXTURES / "bert_trt10" / name for name in ("sync.sqlite", "graph.sqlite", "engine.json")
)
ENGINES = ("--engine-before", ENGINE, "--engine-after", ENGINE)


def test_the_answer_stands_on_top(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "compare", SYNC, GRAPH, *ENGINES)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[2].startswith("FASTER: 3")


def test_engine_files_may_stand_beside_the_reports_of_their_side(
    capfd: pytest.CaptureFixture[str],
) -> None:
    beside = run(capfd, "compare", SYNC, ENGINE, "--", ENGINE, GRAPH)
    assert (beside.status, beside.out) == (0, run(capfd, "compare", SYNC, GRAPH, *ENGINES).out)


def test_in_a_pipe_no_name_is_cut(capfd: pytest.CaptureFixture[str]) -> None:
    other = FIXTURES / "bert_split_trt10"
    files = (
        other / "sync.nsys-rep",
        SYNC,
        "--engine-before",
        other / "engine.json",
        "--engine-after",
        ENGINE,
    )
    layers = run(capfd, "compare", *files).out.split("Layers, kernel time")[1].split("\n\n")[0]
    # a name has " … " for modules that it leaves out itself
    assert "…" not in layers.replace("… and", "").replace(" … ", "")


def test_json_has_the_figures(capfd: pytest.CaptureFixture[str]) -> None:
    value = json.loads(run(capfd, "compare", SYNC, GRAPH, *ENGINES, "--json").out)
    assert (
        value["after_ns"] - value["before_ns"]
        == value["difference_ns"]
        == sum(one["ns"] for one in value["contributions"])
    )
    assert value["interval_ns"][0] <= value["difference_ns"] <= value["interval_ns"][1]
    assert value["significant"] is True
    assert {"before", "after", "joined_by", "before_ns", "after_ns"} <= value["layers"][0].keys()


def test_json_is_what_its_schema_says(capfd: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(run(capfd, "compare", "--json-schema").out)
    profiles = [FIXTURES / name / "profile.json" for name in ("bert_split_trt10", "bert_trt10")]
    for files in ((SYNC, GRAPH, *ENGINES), profiles):
        jsonschema.validate(json.loads(run(capfd, "compare", *files, "--json").out), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": "nsysmap/comparison/1"}, schema)


def test_the_status_is_one_only_where_it_is_asked_for_and_worse(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(capfd, "compare", GRAPH, SYNC, *ENGINES).status == 0
    slower = run(capfd, "compare", "-q", GRAPH, SYNC, *ENGINES, "--fail-on", "worse")
    assert (slower.status, slower.out, slower.err.count("\n")) == (1, "", 1)
    assert re.fullmatch(
        r"nsysmap: failed: SLOWER: .* → .* per inference.* more .*\(--fail-on worse\)\n", slower.err
    )
    assert run(capfd, "compare", SYNC, GRAPH, *ENGINES, "--fail-on", "worse").status == 0


def test_it_is_written_as_markdown_and_json(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(
        capfd, "compare", SYNC, GRAPH, *ENGINES, "-o", tmp_path / "c.md", "-o", tmp_path / "c.json"
    )
    assert done.status == 0
    assert (
        (tmp_path / "c.md").read_text(encoding="utf-8").startswith("# sync.sqlite → graph.sqlite")
    )
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["verdict"] == "faster"


def test_the_page_needs_no_other_file_and_escapes_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(capfd, "compare", SYNC, GRAPH, *ENGINES, "-o", tmp_path / "c.html").status == 0
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    # its own script, which only the hash in the policy lets run
    assert page.count("<script") == 1 and "script-src 'sha256-" in page and "unsafe" not in page
    assert "http://" not in page and "https://" not in page
    waterfall = page.split("Where the difference comes from, µs</h2>")[1].split("</table>")[0]
    assert waterfall.count("<svg") == len(waterfall.split("<tr>")) - 3


def test_the_pages_of_both_sides_lie_beside_it_and_are_linked_layer_by_layer(
    browser: Browser, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = FIXTURES / "bert_trt85"
    files = (
        before / "sync.nsys-rep",
        SYNC,
        "--engine-before",
        before / "engine.json",
        "--engine-after",
        ENGINE,
    )
    assert run(capfd, "compare", *files, "-o", tmp_path / "a c.html").status == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "a c.html",
        "a c.before.html",
        "a c.after.html",
    }
    region = next(
        line
        for line in (tmp_path / "a c.html").read_text(encoding="utf-8").split("<tr>")
        if "moved-out-of-region structure<" in line
    )
    for word, layers, names in (("before", 1, "{ForeignNode["), ("after", 55, "__myl_GathGath")):
        file, _, fragment = unquote(re.findall(rf'href="([^"]*)">{word}</a>', region)[0]).partition(
            "#"
        )
        page = browser.open(tmp_path / file, fragment)
        page.wait_for_selector("body[data-ready]")
        assert fragment.count(".") + 1 == layers
        assert (
            f"{layers} layers" in page.inner_text("#chips")
            if layers > 1
            else names in page.inner_text("#chips")
        )
        assert page.get_attribute("nav a:has-text('comparison')", "href") == "a%20c.html"


def test_of_engine_files_alone_the_pictures_are_linked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = [FIXTURES / name / "engine.json" for name in ("bert_trt103", "bert_trt10")]
    assert run(capfd, "compare", *files, "-o", tmp_path / "c.html").status == 0
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert 'href="c.before.html#layer=1"' in page and 'href="c.after.html#layer=1"' in page
    assert 'href="c.html"' in (tmp_path / "c.after.html").read_text(encoding="utf-8")


def test_a_file_of_somebody_else_s_is_not_overwritten_by_the_page_of_a_side(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "c.after.html"
    notes.write_text("<html>my notes</html>")
    done = run(capfd, "compare", SYNC, GRAPH, *ENGINES, "-o", tmp_path / "c.html")
    assert (done.status, done.out, notes.read_text()) == (2, "", "<html>my notes</html>")
    assert "the page of AFTER" in done.err and done.err.count("\n") == 1
    notes.unlink()
    assert [
        run(capfd, "compare", SYNC, GRAPH, *ENGINES, "-o", tmp_path / "c.html").status
        for _ in range(2)
    ] == [0, 0]


def test_a_file_that_is_not_there_is_one_line_and_status_two(
    capfd: pytest.CaptureFixture[str],
) -> None:
    done = run(capfd, "compare", "nowhere.nsys-rep", GRAPH)
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1


def test_two_dashes_part_the_runs_of_both_sides(capfd: pytest.CaptureFixture[str]) -> None:
    others = [FIXTURES / "newer" / f"bert_{name}.sqlite" for name in ("sync", "graph")]
    done = run(capfd, "compare", SYNC, others[0], "--", GRAPH, others[1], *ENGINES, "--json")
    value = json.loads(done.out)
    assert (done.status, value["before"]["runs"], value["after"]["runs"], value["verdict"]) == (
        0,
        2,
        2,
        "faster",
    )
    beside = run(capfd, "compare", SYNC, ENGINES[-1], GRAPH)
    assert beside.status == 2, "a report, its engine and another report are no three builds"
