"""`only_if` decides without SQL that a rule finds nothing: it never changes an answer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import Table
from nsysmap.rules.cases import run_cases
from nsysmap.rules.only_if import may_find, read_alternatives
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from nsysmap.rules.rule_file import Requirement, Rule
from nsysmap.rules.run import run_rules
from nsysmap.rules.sandbox.limits import Query, Sandbox, SqlAnswer

FIXTURES = Path(__file__).parents[2] / "fixtures"
CAPTURES = (
    ("bert_trt103/graph.sqlite", "bert_trt103/engine.json"),
    ("bert_trt10/sync.sqlite", "bert_trt10/engine.json"),
    ("bert_split_trt10/pageable.nsys-rep", "bert_split_trt10/engine.json"),
    ("real_trt/bert_fp8-graph.nsys-rep", "real_trt/bert_fp8.engine.json"),
    ("real_trt/gru-sync_nonvtx.nsys-rep", "real_trt/gru.engine.json"),
)


@cache
def builtin() -> tuple[Rule, ...]:
    return tuple(load_rules([builtin_rules_dir()], check_own=False))


@cache
def analysis(report: str, engine: str) -> Analysis:
    return analyze(FIXTURES / report, [FIXTURES / engine], rules=[])


@pytest.mark.parametrize(("report", "engine"), CAPTURES)
def test_every_rule_answers_as_without_its_only_if(report: str, engine: str) -> None:
    tables = analysis(report, engine).tables.by_name()
    without = [replace(rule, only_if=()) for rule in builtin()]
    assert run_rules(builtin(), tables) == run_rules(without, tables)


@pytest.mark.parametrize(("report", "engine"), CAPTURES)
def test_a_requirement_with_rows_and_sql_is_met_as_by_the_sql_alone(
    report: str, engine: str
) -> None:
    tables = analysis(report, engine).tables.by_name()

    def by_sql(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
        return tuple(replace(one, rows=()) if one.query else one for one in requirements)

    asked = [
        replace(rule, requires=by_sql(rule.requires), clean_if=by_sql(rule.clean_if))
        for rule in builtin()
    ]
    assert asked != list(builtin())
    assert run_rules(builtin(), tables) == run_rules(asked, tables)


def test_the_sql_of_a_rule_without_its_rows_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run = Sandbox.run

    def noted(self: Sandbox, query: Query, *args: object, **kwargs: object) -> SqlAnswer:
        ran.append(query.sql)
        return run(self, query, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Sandbox, "run", noted)
    tables = analysis(*CAPTURES[0]).tables.by_name()
    assert not len(tables["memcpys"])
    (copies,) = (rule for rule in builtin() if rule.name == "many-small-copies")
    (outcome,) = run_rules([copies], tables)
    assert (outcome.findings, outcome.skipped) == ((), None)
    assert not any("memcpys" in sql for sql in ran)
    run_rules([replace(copies, only_if=())], tables)
    assert any("memcpys" in sql for sql in ran)


def one_row(name: str, **values: object) -> dict[str, Table]:
    spec = next(spec for spec in RULE_TABLES if spec.name == name)
    return {name: Table.of_rows(spec, [values])}


@pytest.mark.parametrize(
    ("line", "met", "unmet"),
    [
        ("gaps", {"cause": "sync"}, None),
        ("gaps where cause = sync | launch", {"cause": "launch"}, {"cause": "host"}),
        ("gaps where cause != sync", {"cause": "host"}, {"cause": "sync"}),
        ("gaps where inference unknown", {}, {"inference": 3}),
        ("gaps where inference known", {"inference": 3}, {}),
        ("gaps where dur_ns >= $least", {"dur_ns": 50}, {"dur_ns": 49}),
        ("gaps where dur_ns >= 7", {"dur_ns": 7}, {"dur_ns": 6}),
        (
            "gaps where cause = sync and inference unknown",
            {"cause": "sync"},
            {"cause": "sync", "inference": 1},
        ),
        (
            "gaps where cause = sync or gaps where cause = host",
            {"cause": "host"},
            {"cause": "graph"},
        ),
        ("reformats where converts", {"converts": True}, {"converts": False}),
        ("reformats where not converts", {"converts": False}, {"converts": True}),
        ("layer_times where share_of_kernel_time >= 0.5", {"share_of_kernel_time": 0.5}, {}),
        (
            "whatif where saving_ns >= 0.05 * before_ns",
            {"saving_ns": 5, "before_ns": 100},
            {"saving_ns": 5, "before_ns": 101},
        ),
        ("whatif where saving_ns >= $least * before_ns", {"saving_ns": 50, "before_ns": 1}, {}),
    ],
)
def test_a_condition_is_met_by_one_row_that_meets_all_of_it(
    line: str, met: dict[str, object], unmet: dict[str, object] | None
) -> None:
    params = {"least": 50}
    asked = [read_alternatives(line, params)]
    absent = [read_alternatives(f"no {line}", params)] if " or " not in line else []
    table = line.split(maxsplit=1)[0]
    assert not absent or not may_find(absent, one_row(table, **met), params)
    assert not absent or unmet is None or may_find(absent, one_row(table, **unmet), params)
    assert may_find(asked, one_row(table, **met), params)
    empty = {table: one_row(table)[table].part(0, 0)}
    assert not may_find(asked, empty if unmet is None else one_row(table, **unmet), params)


def test_rows_that_must_last_a_share_of_the_time_do_so_together() -> None:
    steady, gaps = (
        next(one for one in RULE_TABLES if one.name == n) for n in ("steady_state", "gaps")
    )
    tables = {
        "steady_state": Table.of_rows(steady, [{"window_ns": 1000}, {"window_ns": 2000}]),
        "gaps": Table.of_rows(
            gaps,
            [{"cause": "host", "dur_ns": 20}, {"cause": "host", "dur_ns": 30}, {"dur_ns": 900}],
        ),
    }
    for share, there in ((0.05, True), (0.051, False)):
        line = f"gaps where cause = host for {share} of window_ns"
        assert may_find([read_alternatives(line, {})], tables, {}) is there
        line = line.replace(str(share), "$share")
        assert may_find([read_alternatives(line, {"share": 1})], tables, {"share": share}) is there


@pytest.mark.parametrize(
    "line",
    [
        "gap",
        "gaps for $unheard of window_ns",
        "gaps for much of window_ns",
        "gaps for 0.1 of dur_ns",
        "layers for 0.1 of window_ns",
        "gaps where dur_ns >= 2 * cause",
        "gaps where dur_ns >= 2 * nothing",
        "gaps where cause = sync * dur_ns",
        "gaps where why = sync",
        "gaps where cause",
        "gaps where cause =",
        "gaps where cause >= 3",
        "gaps where dur_ns >= $unheard",
        "gaps where dur_ns >= much",
        "gaps where not inference",
        "reformats where not converts known",
        "gaps with cause = sync",
        "no gap",
        "no gaps where",
    ],
)
def test_what_is_no_condition_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_alternatives(line, {})


def test_a_case_tells_when_only_if_hides_a_finding() -> None:
    rule = next(rule for rule in load_rules([builtin_rules_dir()]) if rule.name == "hot-layer")
    hidden = replace(rule, only_if=(read_alternatives("memsets", {}),))
    assert not any(result.wrong for result in run_cases([rule]))
    assert any(result.wrong for result in run_cases([hidden]))
