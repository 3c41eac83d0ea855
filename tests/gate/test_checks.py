"""A capture held to a budget."""

from __future__ import annotations

import datetime
import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from nsysmap.api import analyze
from nsysmap.comparison.gate.baseline import Baseline, baseline_json, baseline_of, read_baseline
from nsysmap.comparison.gate.budget import Limit
from nsysmap.comparison.gate.checks import BROKEN, KEPT, UNKNOWN, Verdict, held_to
from nsysmap.comparison.gate.ignores import Ignore
from nsysmap.comparison.gate.junit import junit_xml
from nsysmap.comparison.gate.sarif import sarif
from nsysmap.comparison.gate.write import broken_lines, verdict_markdown
from nsysmap.comparison.noise import Mean
from nsysmap.comparison.side import Side, side_of
from nsysmap.core.errors import NsysmapError
from tests.commands import run
from tests.gate.sarif_schema import SARIF
from tests.places import FIXTURES

SYNC, ENGINE = FIXTURES / "bert_trt10" / "sync.sqlite", FIXTURES / "bert_trt10" / "engine.json"
TODAY = datetime.date(2026, 1, 1)
GRAPH_RULE = "cuda-graph-would-help"


@cache
def captured() -> Side:
    return side_of(analyze(SYNC, ENGINE))


def held(*limits: Limit, base: Baseline | None = None, ignores: tuple[Ignore, ...] = ()) -> Verdict:
    return held_to(captured(), limits, base, ignores, TODAY)


def quicker(base: Baseline, share: float) -> Baseline:
    time = replace(base.time, value=base.time.value * (1 - share))
    return replace(
        base,
        time=time,
        layers={
            name: replace(mean, value=mean.value * (1 - share))
            for name, mean in base.layers.items()
        },
    )


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        (Limit("time", "per_inference", "time", 340_000), KEPT),
        (Limit("time", "per_inference", "time", 300_000), BROKEN),
        (Limit("idle", "total", "share", 0.5), KEPT),
        (Limit("idle", "total", "share", 0.1), BROKEN),
        (Limit("idle", "tea", "share", 0.1), UNKNOWN),
        (Limit("layers", "/bert/encoder/layer.0/*", "time", 30_000), KEPT),
        (Limit("layers", "/bert/encoder/layer.0/*", "time", 10_000), BROKEN),
        (Limit("layers", "nothing", "time", 10_000), UNKNOWN),
        (Limit("coverage", "mapped", "share", 0.99), KEPT),
        (Limit("findings", "error", "count", 0), KEPT),
        (Limit("findings", GRAPH_RULE, "count", 0), BROKEN),
        (Limit("findings", "no-such-rule", "count", 0), UNKNOWN),
        (Limit("findings", "lock-contention", "count", 0), UNKNOWN),
        (Limit("time", "per_inference", "more-share", 0.02), UNKNOWN),
    ],
)
def test_a_limit_is_kept_broken_or_cannot_be_told(limit: Limit, status: str) -> None:
    verdict = held(limit)
    assert [check.status for check in verdict.checks] == [status]
    assert verdict.passed == (status == KEPT)
    assert bool(broken_lines(verdict)) == (status != KEPT)


def test_what_broke_is_told_with_how_much() -> None:
    (check,) = held(Limit("time", "per_inference", "time", 300_000)).checks
    assert "too long" in check.told and "over 300.0 µs" in check.told


@pytest.mark.parametrize(
    ("share", "status"), [(0.0, KEPT), (0.01, KEPT), (0.05, BROKEN), (-0.05, KEPT)]
)
def test_an_increase_over_the_baseline_breaks_where_it_is_more_than_is_allowed(
    share: float, status: str
) -> None:
    limits = (
        Limit("time", "per_inference", "more-share", 0.02),
        Limit("layers", "/bert/*", "more-share", 0.02),
    )
    assert {
        check.status for check in held(*limits, base=quicker(baseline_of(captured()), share)).checks
    } == {status}


def test_an_increase_over_the_baseline_of_another_gpu_cannot_be_told() -> None:
    base = replace(baseline_of(captured()), gpu="NVIDIA A10")
    relative, absolute = held(
        Limit("time", "per_inference", "more-share", 9.0),
        Limit("time", "per_inference", "time", 340_000),
        base=base,
    ).checks
    assert (relative.status, absolute.status) == (UNKNOWN, KEPT)
    assert "another GPU" in relative.told


def test_an_increase_within_the_noise_is_kept_and_told() -> None:
    base = quicker(baseline_of(captured()), 0.05)
    noisy = replace(base, time=Mean(base.time.value, 20_000.0, 20.0, 40, 30.0, 0.0))
    (check,) = held(Limit("time", "per_inference", "more-share", 0.02), base=noisy).checks
    assert check.status == KEPT
    assert "within the noise" in check.told


def test_an_ignored_finding_does_not_count_until_its_day() -> None:
    limit = Limit("findings", GRAPH_RULE, "count", 0)
    ignore = Ignore(GRAPH_RULE, "", "a graph comes with the next release", TODAY)
    assert held(limit, ignores=(ignore,)).passed
    late = held(limit, ignores=(replace(ignore, until=TODAY - datetime.timedelta(days=1)),))
    assert not late.passed
    assert "ended on 2025-12-31" in late.notes[0]


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    base = baseline_of(captured())
    path = tmp_path / "base.json"
    path.write_text(json.dumps(baseline_json(base)), encoding="utf-8")
    again = read_baseline(path)
    assert again.time.value == pytest.approx(base.time.value, abs=0.01)
    assert again.layers.keys() == base.layers.keys()
    assert again.findings == base.findings
    assert path.stat().st_size < 50_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "nsysmap/baseline/1"}',
        '{"schema": "nsysmap/baseline/1", "time": 3}',
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NsysmapError):
        read_baseline(path)


ALL = (
    Limit("time", "per_inference", "time", 300_000),
    Limit("coverage", "mapped", "share", 0.9),
    Limit("findings", "lock-contention", "count", 0),
    Limit("findings", GRAPH_RULE, "count", 0),
)


def test_sarif_is_valid_and_has_broken_limits_findings_and_suppressions() -> None:
    value = sarif(
        held(
            *ALL, ignores=(Ignore("hot-*", "", "known"), Ignore("time-not-in-kernels", "", "known"))
        ),
        "0.0",
    )
    jsonschema.validate(value, SARIF)
    (one,) = value["runs"]
    ids = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
    assert len(set(ids)) == len(ids)
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in one["results"])
    assert {"budget/time.per_inference", "budget/findings.lock-contention", GRAPH_RULE} <= set(ids)
    assert any(result.get("suppressions") for result in one["results"])


def test_sarif_that_lacks_its_tool_is_not_valid() -> None:
    value = sarif(held(*ALL), "0.0")
    del value["runs"][0]["tool"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, SARIF)


def test_junit_has_a_case_a_limit() -> None:
    root = ElementTree.fromstring(junit_xml(held(*ALL)))
    assert root.tag == "testsuites"
    (suite,) = root
    assert (suite.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "testsuite",
        "4",
        "2",
        "1",
    )
    cases = suite.findall("testcase")
    assert all(case.get("name") and case.get("classname") for case in cases)
    assert [[child.tag for child in case] for case in cases] == [
        ["failure"],
        [],
        ["error"],
        ["failure"],
    ]


def test_cases_of_one_name_are_told_apart_by_their_limits() -> None:
    verdict = held(ALL[0], Limit("time", "per_inference", "time", 9_000), ALL[1])
    (suite,) = ElementTree.fromstring(junit_xml(verdict))
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names == [
        f"per_inference: {verdict.checks[0].limit}",
        f"per_inference: {verdict.checks[1].limit}",
        "mapped",
    ]
    assert names[0] != names[1]


def test_markdown_has_a_row_a_limit() -> None:
    text = verdict_markdown(held(*ALL))
    assert text.splitlines()[0].startswith("## nsysmap gate: budget broken")
    assert sum(line.startswith("| ") for line in text.splitlines()) == 1 + len(ALL)


def test_the_status_says_whether_the_budget_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    budget, base = tmp_path / "budget.toml", tmp_path / "base.json"
    assert run(capfd, "baseline", SYNC, ENGINE, "-o", base).status == 0
    budget.write_text('[time]\nper_inference = ["340 us", "+2 %"]\n', encoding="utf-8")
    done = run(capfd, "gate", SYNC, ENGINE, "--budget", budget, "--baseline", base)
    assert (done.status, done.err) == (0, "")
    budget.write_text('[time]\nper_inference = "300 us"\n', encoding="utf-8")
    done = run(
        capfd,
        "gate",
        SYNC,
        ENGINE,
        "--budget",
        budget,
        "-o",
        tmp_path / "g.xml",
        "-o",
        tmp_path / "g.sarif",
    )
    assert done.status == 1
    assert done.err.startswith("nsysmap: time.per_inference: at most 300.0 µs, is 3")
    assert (tmp_path / "g.xml").exists() and (tmp_path / "g.sarif").exists()


@pytest.mark.parametrize("more", [(), ("--quiet",)])
def test_a_terminal_that_shows_both_outputs_shows_what_broke_once(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    (budget := tmp_path / "budget.toml").write_text(
        '[time]\nper_inference = "300 us"\n', encoding="utf-8"
    )
    ours, terminal = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "nsysmap",
        "gate",
        str(SYNC),
        str(ENGINE),
        "--budget",
        str(budget),
        *more,
    ]
    done = subprocess.run(
        command,
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(terminal)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    assert done.returncode == 1
    assert shown.count(b"time.per_inference: at most 300.0 ") == 1


def _read(terminal: int) -> bytes:
    """What is left to read; nothing where the other end is closed."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_findings_are_not_counted_where_the_trace_shows_no_kernels() -> None:
    side = side_of(
        analyze(FIXTURES / "bert_trt10/graph_whole.sqlite", FIXTURES / "bert_trt10/engine.json")
    )
    limits = (
        Limit("findings", "warning", "count", 5),
        Limit("idle", "launch", "time", 5_000),
        Limit("coverage", "mapped", "share", 0.9),
    )
    checks = held_to(side, limits, None, (), TODAY).checks
    assert [check.status for check in checks] == [UNKNOWN] * 3
    assert "rules could not tell" in checks[0].told


def test_a_time_of_whole_graphs_is_held_as_recorded_and_says_so() -> None:
    """289.7 µs as recorded, of which tracing is assumed to be 0 to 6 %: 272.4 µs at least."""
    side = side_of(analyze(FIXTURES / "bert_trt10/graph_whole.sqlite"))
    limits = [Limit("time", "per_inference", "time", most) for most in (300e3, 285e3, 272e3)]
    checks = held_to(side, limits, None, (), TODAY).checks
    assert [one.status for one in checks] == [KEPT, UNKNOWN, BROKEN]
    assert all("as recorded" in one.told and "0 to 6 %" in one.told for one in checks)
    more = Limit("time", "per_inference", "more-share", 0.5)
    nodes = baseline_of(side_of(analyze(FIXTURES / "bert_trt10/graph.sqlite")))
    whole = baseline_of(side)
    assert (nodes.whole_graphs, whole.whole_graphs) == (False, True)
    for baseline, status in ((nodes, UNKNOWN), (whole, KEPT)):
        (check,) = held_to(side, [more], baseline, (), TODAY).checks
        assert check.status == status


def test_a_limit_far_below_what_is_measured_is_told_in_times() -> None:
    (check,) = held(Limit("time", "per_inference", "time", 1_000)).checks
    assert "times 1.00 µs" in check.told and "%" not in check.told
