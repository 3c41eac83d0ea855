"""Names in a report, an engine file and of the files themselves drive no terminal, mark up no page
and are no formula, in any output.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import xml.dom.minidom
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from nsysmap.api import analyze
from tests.browser import Browser
from tests.captures.test_privacy import cut
from tests.commands import run
from tests.places import FIXTURES

HOSTILE = (
    "=1+1</script><script>alert(1)</script><img src=x onerror=alert(1)>]]>\"'|`[x](javascript:y)"
    " https://e.vil/\x1b[31m\x1b]0;T\x07\x9b31m\x00\u202eabc\u2028\u2066\ufeff\r\n\t"
)
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
BUDGET = (
    '[time]\nper_inference = "1 us"\n[layers]\n"*" = "1 us"\n"\\u001b[31m\\u202e*" = "1'
    ' us"\n[findings]\n"no\\u001b<b>" = 0\n'
)


def hostile(folder: Path) -> tuple[Path, Path]:
    """A report and its engine file whose kernels, ranges, layers and file names are hostile, one
    kernel's name of 1 MB.
    """
    report, engine = folder / "a\u202e\x1b[31m<b>|`.sqlite", folder / "e\u202e\x1b[31m.json"
    shutil.copyfile(FIXTURES / "bert_trt10/sync.sqlite", report)
    report.chmod(0o644)
    cut(report, 0.12)
    with closing(sqlite3.connect(report)) as connection:
        names = (
            "SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT shortName FROM"
            " CUPTI_ACTIVITY_KIND_KERNEL"
        )
        connection.execute(
            f"UPDATE StringIds SET value = ? || id || value WHERE id IN ({names})", (HOSTILE,)
        )
        longest = "SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1"
        connection.execute(
            f"UPDATE StringIds SET value = value || ? WHERE id = ({longest})", ("x" * 1_000_000,)
        )
        for table, column in (("NVTX_EVENTS", "text"), ("StringIds", "value")):
            connection.execute(
                f'UPDATE {table} SET "{column}" = ? || "{column}" WHERE "{column}" LIKE'
                f" '%MatMul%' AND length(\"{column}\") < 5000",
                (HOSTILE,),
            )
        connection.commit()
    layers = (
        (FIXTURES / "bert_trt10/engine.json")
        .read_text()
        .replace("MatMul", json.dumps(HOSTILE)[1:-1] + "MatMul")
    )
    engine.write_text(layers)
    return report, engine


def test_hostile_names_are_inert_in_every_output(
    browser: Browser, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report, engine = hostile(tmp_path)
    budget, out = tmp_path / "budget.toml", tmp_path / "out"
    budget.write_text(BUDGET)
    out.mkdir()
    sound = FIXTURES / "bert_trt10/engine.json"

    def to(name: str, suffixes: str) -> list[str | Path]:
        return [part for suffix in suffixes.split() for part in ("-o", out / f"{name}.{suffix}")]

    commands: list[tuple[int, list[str | Path]]] = [
        # the engine file did not run
        (2, ["analyze", report, engine, *to("a", "html perfetto-trace json md db")]),
        (
            0,
            [
                "compare",
                report,
                report,
                "--engine-before",
                engine,
                "--engine-after",
                sound,
                *to("c", "html md json"),
            ],
        ),
        (0, ["compare", engine, sound, *to("e", "html md")]),
        (0, ["inference", report, engine, "slowest", *to("i", "html md json")]),
        (0, ["layers", engine, report, "--sort", "time"]),
        (0, ["layers", engine, report, "--findings"]),
        (0, ["map", report, engine, *to("map", "csv json")]),
        (0, ["map", report, engine, "--explain", "3"]),
        (0, ["graph", engine, report, *to("graph", "html svg")]),
        (0, ["what-if", report, engine]),
        (0, ["decode", HOSTILE.splitlines()[0]]),
        (0, ["inference", report, "p99", "--json"]),
        (0, ["baseline", report, engine, *to("base", "json")]),
        (
            1,
            [
                "gate",
                report,
                engine,
                "--budget",
                budget,
                "--ignore",
                "x\x1b[31m",
                *to("g", "xml sarif md json"),
            ],
        ),
        (0, ["plot", report, "layers", *to("layers", "svg")]),
        (0, ["plot", report, engine, "idle", *to("idle", "svg")]),
        (0, ["sql", report, engine, "SELECT name FROM layers"]),
        (0, ["sql", report, engine, "FROM kernels LIMIT 300", *to("q", "csv")]),
        (2, ["sql", report, 'SELECT * FROM "x\x1b[31m\u202e"']),
        (
            1,
            [
                "fleet",
                report,
                tmp_path / "no\x1b\u202e.sqlite",
                "--engine",
                engine,
                "--workers",
                "1",
                "-o",
                tmp_path / "fl\x1b[3meet",
            ],
        ),
    ]
    for status, command in commands:
        done = run(capfd, *command)
        assert done.status == status, (command, done.err[-2000:])
        assert RAW.findall(done.out + done.err) == [], command
        assert len(done.out) < 3_000_000
    pages = [
        path
        for where in (out, tmp_path / "fl\x1b[3meet")
        for path in where.rglob("*")
        if path.suffix in TEXT_SUFFIXES
    ]
    assert len(pages) == 29 + 1  # those of both sides lie beside the pages of comparisons
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert RAW.findall(text) == [], path.name
        if path.suffix in (".html", ".svg", ".xml", ".md"):
            assert "<script>alert" not in text
            assert "<img" not in text
        if path.suffix in (".svg", ".xml"):
            xml.dom.minidom.parseString(text)
        if path.suffix == ".md":
            assert (
                re.search(r"(?<!\\)\]\(javascript", re.sub(r"(?<!\\)`[^`\n]*`", "", text)) is None
            )  # a bracket after a backslash is no link
    before = csv.field_size_limit(1 << 22)
    for name in ("q.csv", "map.csv"):
        with (out / name).open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert any("alert(1)" in cell for cell in cells)
        assert [
            cell for cell in cells if cell.startswith(("=", "+", "@")) or re.match(r"-\D", cell)
        ] == [], name
    csv.field_size_limit(before)
    shown = analyze(report, engine)._repr_html_()
    assert RAW.findall(shown) == []
    assert "<script" not in shown and "<img" not in shown and "alert(1)" in shown
    assert_opened(browser, [path for path in pages if path.suffix == ".html"])
    assert_plain_in_perfetto(out / "a.perfetto-trace")


def assert_opened(browser: Browser, pages: list[Path]) -> None:
    """Every page runs its own script and nothing else, asks for nothing and logs no error (the
    fixture looks).
    """
    for path in pages:
        page = browser.open(path)
        page.on("dialog", lambda dialog: browser.wrong.append(dialog.message))
        if page.locator("#lanes").count():
            page.wait_for_selector("body[data-ready]")
            page.fill("#find", "alert")
            page.locator("#hits li").first.wait_for()
            page.locator("#hits button").first.click()
            assert "alert(1)" in page.inner_text("#details")
        assert page.locator("img").count() == 0


def assert_plain_in_perfetto(path: Path) -> None:
    """No name that Perfetto shows holds a control character."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    outer, trace = pb.Trace(), pb.Trace()
    outer.ParseFromString(path.read_bytes())
    for packet in outer.packet:
        trace.MergeFromString(zlib.decompress(packet.compressed_packets))
    told = [packet.interned_data for packet in trace.packet if packet.HasField("interned_data")]
    names = [
        one.name
        for data in told
        for kind in (data.event_names, data.debug_annotation_names)
        for one in kind
    ]
    names += [one.str.decode() for data in told for one in data.debug_annotation_string_values]
    names += [packet.track_descriptor.name for packet in trace.packet]
    assert any("alert(1)" in name for name in names)
    assert [name for name in names if RAW.search(name)] == []


TEXT_SUFFIXES = (".html", ".json", ".md", ".xml", ".sarif", ".svg", ".csv")
