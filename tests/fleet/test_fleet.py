"""A fleet of reports: what fails fails alone and is named, what is done is not done again, and the
dataset is what the reports say.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from nsysmap.api import analyze
from nsysmap.core.errors import NsysmapError
from nsysmap.fleet.charts import Chart, ChartRow, Mark
from nsysmap.fleet.child import run_task
from nsysmap.fleet.dataset import open_dataset, part, sweep
from nsysmap.fleet.page import fleet_text, write_page
from nsysmap.fleet.run import FleetRun, Settings, run_fleet
from nsysmap.fleet.schema import FLEET_TABLES
from nsysmap.fleet.sources import Source, sources, without_secrets
from nsysmap.fleet.summary import FleetTable, sections
from tests.browser import Browser
from tests.page.test_accessible import BROKEN, FAINT
from tests.places import FIXTURES

HERE = FIXTURES / "bert_trt10"
ENGINE = str(HERE / "engine.json")
GIB = 1 << 30


def made(folder: Path, nights: int = 2, ranks: int = 4) -> None:
    """Reports of some nights and ranks: a real one, whose times grow from night to night, and whose
    rank 3 has one slow layer.
    """
    for night in range(nights):
        for rank in range(ranks):
            path = folder / f"night{night}" / f"rank{rank}.sqlite"
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HERE / "sync.sqlite", path)
            file = sqlite3.connect(path)
            file.execute(
                'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = CAST(start + ("end" - start) * ? AS'
                " INTEGER)",
                (1 + night / 10,),
            )
            if rank == 3:
                slow = file.execute(
                    "SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1"
                ).fetchone()[0]
                file.execute(
                    'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" + 900 WHERE'
                    " demangledName = ?",
                    (slow,),
                )
            file.execute(
                "UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?",
                (night * 86_400 * 10**9 + rank * 10**9,),
            )
            file.commit()
            file.close()
    (folder / "broken.nsys-rep").write_text("not a report")
    (folder / "night0" / "cut.sqlite").write_bytes((HERE / "sync.sqlite").read_bytes()[:100_000])


def job_in(folder: Path) -> dict[str, object]:
    """The job of one report, as a worker gets it."""
    return {
        "url": str(HERE / "sync.sqlite"),
        "name": "sync.sqlite",
        "labels": {},
        "folder": str(folder),
        "unfinished": str(folder),
        "engines": [ENGINE],
        "rules": [],
    }


def parts(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in sorted(folder.rglob("*.parquet"))
    }


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, FleetRun]:
    """Eight reports and two broken ones, analysed on a local cluster."""
    folder = tmp_path_factory.mktemp("fleet")
    made(folder / "in")
    done = run_fleet(
        sources([str(folder / "in")]), Settings(folder / "out", (ENGINE,)), lambda _: None
    )
    return folder / "in", folder / "out", done


def test_what_is_broken_fails_alone_and_is_named(fleet: tuple[Path, Path, FleetRun]) -> None:
    _, out, done = fleet
    failed = {Path(outcome.name).name: outcome.failed for outcome in done.failed}
    assert set(failed) == {"broken.nsys-rep", "cut.sqlite"}
    assert "an nsys report" in str(failed["broken.nsys-rep"])
    assert "cut short" in str(failed["cut.sqlite"])
    assert len(done.outcomes) == 10
    listed = json.loads((out / "failures.json").read_text())
    assert [Path(one["report"]).name for one in listed] == ["broken.nsys-rep", "cut.sqlite"]


def test_the_dataset_has_every_report_once_with_its_labels(
    fleet: tuple[Path, Path, FleetRun],
) -> None:
    _, out, _ = fleet
    for spec in FLEET_TABLES:
        assert len(list((out / spec.name).glob("*.parquet"))) == 8
        frame = pd.read_parquet(out / spec.name)
        by_duckdb = duckdb.execute(
            f"SELECT count(*), count(DISTINCT report) FROM '{out}/{spec.name}/*.parquet'"
        ).fetchone()
        assert by_duckdb == (len(frame), frame["report"].nunique()) == (len(frame), 8)
        assert list(frame.columns) == [column.name for column in spec.columns]
    reports = pd.read_parquet(out / "reports")
    assert sorted(reports["rank"]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert set(reports["report_group"]) == {"../in/night0", "../in/night1"}
    assert {json.loads(text)["rank"] for text in reports["labels"]} == {"0", "1", "2", "3"}


def test_its_rows_are_what_an_analysis_of_the_report_alone_says(
    fleet: tuple[Path, Path, FleetRun],
) -> None:
    there, out, _ = fleet
    report, name = there / "night1" / "rank3.sqlite", "../in/night1/rank3.sqlite"
    alone = analyze(report, ENGINE)
    layers = pd.read_parquet(out / "layers")
    mine = layers[layers["report"] == name]
    ran = alone.layers[alone.layers["time_ns"].notna()]
    assert list(mine["layer"]) == list(ran["name"])
    assert list(mine["time_ns"]) == list(ran["time_ns"])
    findings = pd.read_parquet(out / "findings")
    assert (findings["report"] == name).sum() == len(alone.tables.findings)
    inferences = pd.read_parquet(out / "inferences")
    assert list(inferences[inferences["report"] == name]["gpu_time_ns"]) == list(
        alone.inferences["gpu_busy_ns"]
    )


def test_a_second_run_does_nothing_again_and_one_changed_report_is_done_anew(
    fleet: tuple[Path, Path, FleetRun], tmp_path: Path
) -> None:
    there, out, _ = fleet
    shutil.copytree(out, tmp_path / "out")
    before = parts(tmp_path / "out")
    first = there / "night0" / "rank0.sqlite"
    job = [
        Source(str(first), {"rank": "0"}),
        Source(str(there / "night0" / "rank1.sqlite"), {"rank": "1"}),
    ]
    settings = Settings(tmp_path / "out", (ENGINE,), workers=1)
    again = run_fleet(job, settings, lambda _: None)
    assert [outcome.kept for outcome in again.outcomes] == [True, True]
    assert parts(tmp_path / "out") == before
    other = [Source(str(first), {"rank": "0", "host": "a"})]  # another label: other rows
    changed = run_fleet(other, settings, lambda _: None)
    assert [outcome.kept for outcome in changed.outcomes] == [False]
    frame = pd.read_parquet(tmp_path / "out" / "reports")
    assert len(frame) == frame["report"].nunique() == 8
    for spec in FLEET_TABLES:
        assert len(list((tmp_path / "out" / spec.name).glob("*.parquet"))) == 8


def test_a_report_is_named_from_the_dataset_on_and_a_url_without_who_may_read_it() -> None:
    assert (
        Source("/home/ann/runs/night0/rank0.nsys-rep", {}).named_from(Path("/home/ann/fleet"))
        == "../runs/night0/rank0.nsys-rep"
    )
    assert (
        Source("ftp://ann:key@host/a/rank0.nsys-rep", {}).named_from(Path("/fleet"))
        == "ftp://host/a/rank0.nsys-rep"
    )
    assert (
        Source("s3://bucket/a@b.nsys-rep", {}).named_from(Path("/fleet"))
        == "s3://bucket/a@b.nsys-rep"
    )
    signed = "https://host/a/rank0.nsys-rep?X-Amz-Credential=ann&X-Amz-Signature=0123"
    assert Source(signed, {}).named_from(Path("/fleet")) == "https://host/a/rank0.nsys-rep"


def test_urls_that_differ_in_what_they_ask_for_have_names_of_their_own_that_do_not_say_it() -> None:
    first, second = (
        Source(f"https://host/get?id={n}&sig=0123", {}).named_from(Path("/fleet")) for n in (1, 2)
    )
    assert first != second
    assert first == Source("https://host/get?sig=4567&id=1", {}).named_from(Path("/fleet"))
    assert "id=" not in first and "sig" not in first


def test_a_message_that_quotes_an_address_does_not_say_who_may_read_it() -> None:
    told = (
        "403, message='Forbidden', url='https://ann:key@host/a.nsys-rep?token=0123'"
        " zip://b::https://host/c?token=4567 (why?)"
    )
    assert (
        without_secrets(told) == "403, message='Forbidden', url='https://host/a.nsys-rep#fb4a06cc'"
        " zip://b::https://host/c#debba4d3 (why?)"
    )


def named(found: Sequence[FleetTable], title: str) -> FleetTable:
    return next(section for section in found if section.title == title)


def test_the_page_says_medians_drift_findings_and_the_layer_of_the_slow_rank(
    fleet: tuple[Path, Path, FleetRun],
) -> None:
    _, out, done = fleet
    found = sections(out)
    medians = named(found, "Medians by group")
    assert [row[:3] for row in medians.rows] == [
        ("night0", "engine.json", "4"),
        ("night1", "engine.json", "4"),
    ]
    slow = named(found, "Layers that differ between ranks")
    assert len(slow.rows) == 2
    assert {row[0] for row in slow.rows} == {"night0", "night1"}
    assert all("(rank 3)" in row[4] for row in slow.rows)
    assert slow.answer.endswith("2 layers.")
    reports = named(found, "Reports")
    assert (len(reports.rows), reports.answer) == (8, "8 reports.")
    assert {row[6] for row in reports.rows} == {"100%"}  # of kernel time has a layer
    assert all(section.answer for section in found)
    assert all(len(section.align) == len(section.columns) for section in found)
    counts = named(found, "Findings by count")
    assert ("attention-not-fused", "8 of 8") in {(row[0], row[2]) for row in counts.rows}
    text = fleet_text(done, found)
    assert "8 reports analysed, 2 failed" in text
    page = write_page(done, found, out).read_text()
    assert "cut.sqlite" in page
    # its own script, which only the hash in the policy lets run
    assert page.count("<script") == 1 and "script-src 'sha256-" in page and "unsafe" not in page


def test_a_chart_for_each_question_shows_what_was_made(
    fleet: tuple[Path, Path, FleetRun],
) -> None:
    _, out, _ = fleet
    charts = {one.title: one.chart for one in sections(out) if one.chart}
    assert set(charts) == {"Medians by group", "Outliers", "Drift over time", "Idle time by cause"}
    spread = charts["Medians by group"]
    assert {row.name: len(row.marks) for row in spread.rows} == {"night0": 4, "night1": 4}
    times = {row.name: [mark.at for mark in row.marks] for row in spread.rows}
    assert max(times["night0"]) < min(times["night1"])  # as made: a tenth longer
    assert spread.low < min(times["night0"]) and max(times["night1"]) < spread.high
    (nights,) = charts["Drift over time"].rows
    by_time = sorted((mark.at, mark.high or 0.0) for mark in nights.marks)
    assert len(by_time) == 8
    assert max(high for _, high in by_time[:4]) < min(high for _, high in by_time[4:])
    outliers = charts["Outliers"]
    assert len(outliers.rows) == 8 and outliers.line == 1.5
    assert all(bar.until and bar.until <= longest.at for bar, longest in
               (row.marks for row in outliers.rows))  # fmt: skip
    for row in charts["Idle time by cause"].rows:
        assert all(
            one.until == pytest.approx(other.at) for one, other in itertools.pairwise(row.marks)
        )  # end to end
        assert row.marks[-1].until is not None and row.marks[-1].until <= 1


def test_names_of_reports_are_never_run(tmp_path: Path) -> None:
    bad = '<img src=x onerror="document.title=1">'
    marks = (Mark(1.0, bad), Mark(2.0, bad))
    chart = Chart(bad, bad, bad, bad, 0.0, 3.0, (ChartRow(bad, bad, marks),))
    section = FleetTable("bad", bad, bad, (bad,), ((bad,),), bad, "n", bad, chart=chart)
    page = write_page(FleetRun(()), [section], tmp_path).read_text()
    assert "<img" not in page


def test_the_page_of_a_fleet_opens_on_its_charts_and_fits_a_phone(
    browser: Browser, fleet: tuple[Path, Path, FleetRun]
) -> None:
    _, out, done = fleet
    page = browser.open(write_page(done, sections(out), out))
    page.set_viewport_size({"width": 1440, "height": 900})
    for chart in page.locator(".chart").all():
        box = chart.bounding_box()
        assert box is not None and box["y"] + box["height"] < 900
    page.click("#tab-outliers")
    assert page.url.endswith("#tab=outliers")
    assert page.locator("#panels > section:visible").count() == 1
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for tab in page.locator("#tabs a").all():
            tab.click()
            assert page.evaluate(BROKEN) == []
            assert page.evaluate(FAINT) == []
    page.set_viewport_size({"width": 390, "height": 844})
    for tab in page.locator("#tabs a").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_stragglers_and_drift_are_of_one_group(
    tmp_path: Path, fleet: tuple[Path, Path, FleetRun]
) -> None:
    there, _, _ = fleet
    found = [
        Source(str(there / f"night{n}" / f"rank{r}.sqlite"), {"group": "all", "rank": str(r)})
        for n in range(2)
        for r in range(4)
    ]
    run_fleet(found, Settings(tmp_path / "one", (ENGINE,)), lambda _: None)
    told = sections(tmp_path / "one")
    (drift,) = named(told, "Drift over time").rows
    assert drift[0] == "all"
    assert drift[2] == "8"
    assert drift[4:] == ("+9.5%", "slower")  # as made: the captures get slower one after the other
    (median,) = named(told, "Medians by group").rows
    assert median[2] == "8"
    assert named(told, "Drift over time").answer == "all is slower (+9.5%)."
    assert named(told, "Layers that differ between ranks").rows


def test_what_cannot_be_told_of_one_report_is_not_called_none(
    tmp_path: Path, fleet: tuple[Path, Path, FleetRun]
) -> None:
    there, _, _ = fleet
    run_fleet(
        [Source(str(there / "night0" / "rank0.sqlite"), {})],
        Settings(tmp_path / "one", (ENGINE,)),
        lambda _: None,
    )
    told = sections(tmp_path / "one")
    for title in ("Stragglers", "Drift over time", "Layers that differ between ranks"):
        assert named(told, title).answer.startswith("Cannot tell: no group has"), title
    assert named(told, "Outliers").answer == "None."


def test_a_task_that_is_killed_or_takes_too_much_says_so(tmp_path: Path) -> None:
    open_dataset(tmp_path / "out")
    job = job_in(tmp_path / "out")
    slow = run_task(job, timeout_s=0.3, memory_bytes=GIB)
    assert slow.failed == "took longer than 0.3 s (--timeout)"
    large = run_task(job, timeout_s=60, memory_bytes=1 << 20)
    assert str(large.failed).startswith("took more than")
    assert large.key is None
    assert not list((tmp_path / "out").rglob("*.parquet"))
    well = run_task(job, timeout_s=60, memory_bytes=4 * GIB)
    assert well.failed is None


def test_a_task_ends_with_the_worker_that_started_it(tmp_path: Path) -> None:
    open_dataset(tmp_path / "out")
    job = job_in(tmp_path / "out")
    code = (
        f"from nsysmap.fleet.child import run_task; run_task({job!r}, timeout_s=60,"
        f" memory_bytes={4 * GIB})"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    task = None
    for _ in range(100):
        time.sleep(0.05)
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        if children:
            task = int(children[0])
            break
    assert task is not None
    worker.kill()
    worker.wait()
    for _ in range(200):
        if (
            not Path(f"/proc/{task}").exists()
            or "\nState:\tZ" in Path(f"/proc/{task}/status").read_text()
        ):
            break
        time.sleep(0.05)
    else:
        os.kill(task, signal.SIGKILL)
        pytest.fail("the task went on without its worker")


def test_reports_are_named_by_folder_glob_list_and_url(tmp_path: Path) -> None:
    for name in ("a/rank0.nsys-rep", "a/rank1.nsys-rep", "b/rank-2.sqlite", "b/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    every = [
        str(tmp_path / name) for name in ("a/rank0.nsys-rep", "a/rank1.nsys-rep", "b/rank-2.sqlite")
    ]
    (tmp_path / "list.txt").write_text("# two\na/*.nsys-rep\n\nb\n")
    for given in (
        [str(tmp_path)],
        [str(tmp_path / "*" / "rank*")],
        [str(tmp_path / "list.txt")],
        every + every[:1],
    ):
        assert [source.url for source in sources(given)] == every
    assert [source.labels.get("rank") for source in sources(every)] == ["0", "1", "2"]
    assert [source.url for source in sources([f"file://{tmp_path}/a/*.nsys-rep"])] == [
        f"file://{path}" for path in every[:2]
    ]
    (labelled,) = sources(every[:1], [r"/(?P<group>[ab])/rank"])
    assert labelled.columns("key", "rank0.nsys-rep")["report_group"] == "a"
    for wrong, told in (
        ([str(tmp_path / "none")], "no such"),
        ([str(tmp_path / "*.x")], "names no report"),
    ):
        with pytest.raises(NsysmapError, match=told):
            sources(wrong)
    for pattern in ("(", "rank"):
        with pytest.raises(NsysmapError, match="--label"):
            sources(every, [pattern])


def test_a_link_to_nothing_in_a_folder_is_a_report_that_fails(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.nsys-rep").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "in" / "pipe.sqlite")
    (tmp_path / "in" / "folder.sqlite").mkdir()
    for given in (tmp_path / "in", tmp_path / "in" / "*"):
        found = sources([str(given)])
        assert [Path(source.url).name for source in found] == ["pipe.sqlite", "x.nsys-rep"]
    told = []
    for source in found:
        outcome = run_task(
            job_in(tmp_path) | {"url": source.url, "name": source.url},
            timeout_s=60,
            memory_bytes=GIB,
        )
        told.append(outcome.failed)
    assert told == [
        "is not a file; give a report",
        "cannot be read (No such file or directory); check the path",
    ]


def test_a_folder_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_folder: object, *, onerror: Callable[[OSError], None]) -> list[object]:
        onerror(PermissionError(13, "Permission denied", "private"))
        return []

    monkeypatch.setattr(os, "walk", refused)
    with pytest.raises(NsysmapError, match="private: cannot be read"):
        sources([str(tmp_path)])


def test_a_report_on_another_file_system_is_copied_and_the_copy_removed(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "reports.zip", "w") as packed:
        packed.write(HERE / "sync.sqlite", "inner.sqlite")
    url = f"zip://inner.sqlite::file://{tmp_path}/reports.zip"
    done = run_fleet(
        sources([url]), Settings(tmp_path / "out", (ENGINE,), workers=1), lambda _: None
    )
    assert [outcome.failed for outcome in done.outcomes] == [None]
    assert pd.read_parquet(tmp_path / "out" / "reports")["kernels"].tolist() == [2800]


def test_only_what_a_fleet_made_is_removed_and_only_its_folder_is_written(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("x")
    with pytest.raises(NsysmapError, match="not empty"):
        open_dataset(tmp_path / "mine")
    open_dataset(tmp_path / "out")
    open_dataset(tmp_path / "out")
    own = tmp_path / "out" / "layers" / "own.parquet"
    own.write_text("a user's")
    left = part(tmp_path / "out", FLEET_TABLES[0], "0" * 40)
    left.write_text("of a task that was killed")
    os.utime(left, (1, 1))
    fresh = part(tmp_path / "out", FLEET_TABLES[0], "1" * 40)
    fresh.write_text("of a task that another run is at")
    sweep(tmp_path / "out")
    assert own.exists()
    assert fresh.exists()
    assert not left.exists()
