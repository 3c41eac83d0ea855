"""A stranger's statement runs in a process that is killed at its limits, whatever it is doing, and
takes nothing else with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import Table
from nsysmap.rules.packs import load_rules
from nsysmap.rules.run import run_rules
from nsysmap.rules.sandbox import strangers
from nsysmap.rules.sandbox.limits import LimitError, QueryError, own_query
from nsysmap.rules.sandbox.strangers import Other, Strangers
from tests.figures import figures
from tests.rule_packs import gaps, inferences, one_rule, write_rule

# the planner works it out, text twice as long at each step
FOLDED = f"SELECT length({'regexp_escape(' * 34}'!'{')' * 34}) AS x"
JOINED = ",".join(
    f"a{i} AS NOT MATERIALIZED (SELECT a.x FROM a{i - 1} a, a{i - 1} b)" for i in range(1, 40)
)
PLANNED = f"WITH a0 AS (SELECT 1 x), {JOINED} SELECT count(*) AS x FROM a39"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Strangers]:
    with Strangers() as opened:
        yield opened


def pid(sandbox: Strangers) -> int:
    assert sandbox._child is not None
    return sandbox._child._process.pid


def test_a_statement_is_answered_as_in_this_process(sandbox: Strangers) -> None:
    made = Table.of_rows(
        KERNELS, [{"kernel_id": number, "name": "ab"[number % 2]} for number in range(5)]
    ).arrow()
    columns = (
        "name, count(*) AS n, sum(kernel_id) / 2 AS half, 1.5 AS exact, NULL AS none, list(1) AS"
        " several"
    )
    sql = f"SELECT {columns} FROM kernels GROUP BY name ORDER BY name"
    query = sandbox.parse(sql)
    assert query.tables == {"kernels"}
    assert not query.own
    assert list(sandbox.columns(query, {})) == ["name", "n", "half", "exact", "none", "several"]
    answer = sandbox.run(query, {"kernels": made}, {}, time_limit_s=5, max_rows=10)
    own = sandbox.run(
        own_query(sql, RULE_TABLES), {"kernels": made}, {}, time_limit_s=5, max_rows=10
    )
    assert [row[:5] for row in answer.rows] == [row[:5] for row in own.rows]
    assert {row[5] for row in answer.rows} == {Other("list")}
    assert (
        sandbox.run(query, {"kernels": made.slice(0, 1)}, {}, time_limit_s=5, max_rows=10).rows[0][
            1
        ]
        == 1
    )


def test_nsysmap_s_own_statements_start_no_process() -> None:
    with Strangers() as opened:
        assert opened.run(
            own_query("SELECT 1 AS a", RULE_TABLES), {}, {}, time_limit_s=5, max_rows=1
        ).rows == [(1,)]
        assert opened._child is None


def test_what_is_wrong_with_a_statement_is_said(sandbox: Strangers) -> None:
    with pytest.raises(QueryError, match="is not allowed"):
        sandbox.parse("SELECT getenv('HOME')")
    with pytest.raises(QueryError, match="Could not convert"):
        sandbox.run(
            sandbox.parse("SELECT CAST('a' AS INTEGER)"), {}, {}, time_limit_s=5, max_rows=1
        )
    with pytest.raises(QueryError, match=r"nested too deeply|ended"):
        sandbox.parse(
            "SELECT x FROM (SELECT 1 x FROM " + "(SELECT * FROM " * 1500 + "gaps" + ")" * 1500 + ")"
        )
    assert sandbox.parse("SELECT 1 AS a").sql == "SELECT 1 AS a"


def test_a_planner_that_never_ends_is_killed_and_the_next_statement_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strangers, "CHECK_LIMIT_S", 0.2)
    monkeypatch.setattr(strangers, "KILL_AFTER_S", 0.2)
    with Strangers() as opened:
        folded, planned = opened.parse(FOLDED), opened.parse(PLANNED)
        first = pid(opened)
        with pytest.raises(QueryError, match=r"within 0\.2 s"):
            opened.columns(folded, {})
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        with pytest.raises(LimitError, match=r"time limit of 0\.3 s"):
            opened.run(planned, {}, {}, time_limit_s=0.3, max_rows=1)
        assert opened.parse("SELECT 1 AS a").sql == "SELECT 1 AS a"


def test_memory_that_duckdb_does_not_count_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MEMORY_BYTES", 1 << 30)
    with Strangers() as opened:
        text = "SELECT string_agg('aaaaaaaaaaaaaaaa', '') AS s FROM range(4000000)"
        query = opened.parse(
            f"SELECT max(length(reverse(s || i::VARCHAR))) AS x FROM ({text}), range(2000) t(i)"
        )
        with pytest.raises(LimitError, match="memory"):
            opened.run(query, {}, {}, time_limit_s=60, max_rows=1)


def test_an_answer_that_is_too_long_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "ANSWER_BYTES", 10_000)
    with Strangers() as opened:
        query = opened.parse("SELECT string_agg('aaaaaaaaaa', '') AS s FROM range(10000)")
        with pytest.raises(LimitError, match="answer is longer"):
            opened.run(query, {}, {}, time_limit_s=10, max_rows=1)


def test_all_rules_together_have_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rule = one_rule(tmp_path)
    monkeypatch.setattr(strangers, "TOTAL_LIMIT_S", 0.0)
    (outcome,) = run_rules([rule], {"gaps": gaps(200), "inferences": inferences((0, 1000))})
    assert outcome.skipped is not None
    assert figures(outcome.skipped) == ["0"]


def test_a_rule_that_is_killed_is_skipped_and_the_others_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "KILL_AFTER_S", 0.2)
    endless = (
        f"SELECT start_ns, end_ns, x AS cost_ns, cause FROM gaps, ({FOLDED}) WHERE dur_ns >="
        " $min_ns"
    )
    monkeypatch.setattr(strangers, "CHECK_LIMIT_S", 0.2)
    write_rule(tmp_path / "slow", "slow", sql=endless)
    with pytest.raises(NsysmapError, match=r"within 0\.2 s"):
        load_rules([tmp_path / "slow"])
    rule = one_rule(tmp_path / "sound")
    (outcome,) = run_rules([rule], {"gaps": gaps(200), "inferences": inferences((0, 1000))})
    assert len(outcome.findings) == 1


def test_the_process_is_gone_when_it_is_closed() -> None:
    with Strangers() as opened:
        opened.parse("SELECT 1")
        number = pid(opened)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_query_is_the_same_on_both_sides(sandbox: Strangers) -> None:
    query = sandbox.parse("SELECT cause FROM gaps WHERE dur_ns > $least")
    assert strangers.statement(json.loads(json.dumps(strangers.plain(query)))) == query
