"""What running rules answers: findings with their cost and place, none, or skipped for a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.errors import NsysmapError
from nsysmap.core.result_schema import ENGINE_FITS, KERNELS, NAMES, WHATIF
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import CAPTURE, INFERENCES
from nsysmap.rules.cases import run_cases
from nsysmap.rules.finding import by_cost
from nsysmap.rules.packs import load_rules
from nsysmap.rules.parameters import with_params
from nsysmap.rules.run import MOST_FINDINGS, run_rules
from nsysmap.trace.inferences.steady import steady_windows
from tests.figures import figures
from tests.rule_packs import ANY_CASES, gaps, inferences, one_rule, write_rule

SQL = "SELECT start_ns, end_ns, dur_ns AS cost_ns, {more} cause FROM gaps WHERE dur_ns >= $min_ns"


def test_findings_come_with_place_cost_share_and_evidence_the_most_costly_first(
    tmp_path: Path,
) -> None:
    tables = {"gaps": gaps(150, 50, 400), "inferences": inferences((0, 2000))}
    (outcome,) = run_rules([one_rule(tmp_path)], tables)
    assert outcome.skipped is None
    assert [finding.cost_ns for finding in outcome.findings] == [400, 150]
    first = outcome.findings[0]
    assert (first.rule, first.group, first.severity) == ("long-gap", "launch", "warning")
    assert (first.start_ns, first.end_ns, first.share_of_window) == (220, 620, 0.2)
    assert first.message == "a gap of 400 ns by host"
    assert first.evidence == {"cause": "host"}
    assert first.advice == "Close them, and look again."
    assert (first.layer, first.layer_index) == (None, None)


def test_a_clean_answer_differs_from_one_that_cannot_be_given(tmp_path: Path) -> None:
    rule = one_rule(tmp_path)
    (clean,) = run_rules([rule], {"gaps": gaps(1)})
    (unknown,) = run_rules([rule], {})
    assert (clean.findings, clean.skipped) == ((), None)
    assert (unknown.findings, unknown.skipped) == ((), "no rows in gaps")


def test_a_column_without_values_is_a_reason_to_skip(tmp_path: Path) -> None:
    rule = one_rule(tmp_path, needs="[gaps, gaps.before_layer, gaps.thread]")
    assert run_rules([rule], {"gaps": gaps(200)})[0].skipped == "no value in gaps.before_layer"
    assert (
        run_rules([rule], {"gaps": gaps(200, before_layer="a")})[0].skipped
        == "no value in gaps.thread"
    )
    assert run_rules([rule], {"gaps": gaps(200, before_layer="a", thread=1)})[0].skipped is None


def test_a_requirement_that_is_not_met_gives_its_reason_with_its_values(tmp_path: Path) -> None:
    rule = one_rule(
        tmp_path,
        requires=(
            "[{sql: 'SELECT streams > 1 AS ok, streams, nsys_version AS v FROM capture', reason:"
            " 'only {streams} ({v})'}]"
        ),
    )
    tables = {
        "gaps": gaps(200),
        "capture": Table.of_rows(CAPTURE, [{"streams": 1, "nsys_version": "20\x1b[2J"}]),
    }
    assert run_rules([rule], tables)[0].skipped == "only 1 (20\\x1b[2J)"
    tables["capture"] = Table.of_rows(CAPTURE, [{"streams": 2}])
    assert run_rules([rule], tables)[0].skipped is None
    assert run_rules([rule], {"gaps": gaps(200)})[0].skipped == "only unknown (unknown)"


def test_a_requirement_of_rows_is_met_where_they_are_and_of_sql_beside_them_by_either(
    tmp_path: Path,
) -> None:
    rows = "[{rows: capture where streams >= 2, reason: one stream}]"
    either = (
        "[{rows: capture where streams >= 2, sql: 'SELECT bool_or(kernels > 3) AS ok, max(kernels)"
        " AS most FROM capture', reason: 'only {most}'}]"
    )
    for requires, few in ((rows, "one stream"), (either, "only 3")):
        rule = one_rule(tmp_path, requires=requires)
        skips = [
            run_rules([rule], {"gaps": gaps(200), "capture": Table.of_rows(CAPTURE, [row])})[0]
            for row in ({"streams": 2, "kernels": 3}, {"streams": 1, "kernels": 3})
        ]
        assert [outcome.skipped for outcome in skips] == [None, few]


def test_parameters_change_what_is_found(tmp_path: Path) -> None:
    rule = one_rule(tmp_path)
    tables = {"gaps": gaps(150, 50)}
    assert (
        len(run_rules(with_params([rule], {"long-gap": {"min_ns": "10"}}), tables)[0].findings) == 2
    )
    assert (
        len(run_rules(with_params([rule], {"long-gap": {"min_ns": 151}}), tables)[0].findings) == 0
    )


def test_a_share_is_of_the_steady_window_of_the_finding_s_device_and_never_above_one(
    tmp_path: Path,
) -> None:
    tables = {"gaps": gaps(100, 5000), "inferences": inferences((0, 1000), device=0)}
    two = Table.of_rows(
        INFERENCES,
        [
            *tables["inferences"].records(),
            {"start_ns": 0, "end_ns": 4000, "device": 1, "complete": True},
        ],
    )
    rule = one_rule(tmp_path, sql=SQL.format(more="1 AS device,"))
    assert [
        finding.share_of_window
        for finding in run_rules([rule], {**tables, "inferences": two})[0].findings
    ] == [1.0, 0.025]
    rule = one_rule(tmp_path, sql=SQL.format(more=""))
    assert [finding.share_of_window for finding in run_rules([rule], tables)[0].findings] == [
        1.0,
        0.1,
    ]
    rule = one_rule(tmp_path, sql=SQL.format(more="0.75 AS share_of_window,"))
    assert [finding.share_of_window for finding in run_rules([rule], tables)[0].findings] == [
        0.75,
        0.75,
    ]


def test_a_finding_without_a_place_is_about_the_whole_steady_part(tmp_path: Path) -> None:
    rule = one_rule(
        tmp_path,
        sql=(
            "SELECT NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns, NULL::BIGINT AS cost_ns,"
            " cause FROM gaps WHERE dur_ns > $min_ns"
        ),
    )
    (finding,) = run_rules(
        [rule], {"gaps": gaps(200), "inferences": inferences((500, 900), (1000, 1500))}
    )[0].findings
    assert (finding.start_ns, finding.end_ns, finding.cost_ns) == (500, 1500, None)
    kernels = Table.of_rows(KERNELS, [{"start_ns": 7, "end_ns": 9}, {"start_ns": 8, "end_ns": 30}])
    (finding,) = run_rules([rule], {"gaps": gaps(200), "kernels": kernels})[0].findings
    assert (finding.start_ns, finding.end_ns) == (7, 30)


def test_layers_are_carried_as_such(tmp_path: Path) -> None:
    rule = one_rule(tmp_path, sql=SQL.format(more="4 AS layer_index, after_layer AS layer, "))
    (finding,) = run_rules([rule], {"gaps": gaps(200, after_layer="conv1")})[0].findings
    assert (finding.layer_index, finding.layer) == (4, "conv1")
    assert "layer" not in finding.evidence


def test_names_from_the_trace_cannot_drive_a_terminal(tmp_path: Path) -> None:
    (finding,) = run_rules(
        [one_rule(tmp_path)], {"gaps": gaps(200, cause="\x1b]0;x\x07\u202etxt\n\x9b31m")}
    )[0].findings
    assert finding.message.isprintable()
    assert str(finding.evidence["cause"]).isprintable()
    assert "\\x1b" in finding.message


def test_names_cannot_smuggle_fields_into_a_message(tmp_path: Path) -> None:
    (finding,) = run_rules(
        [one_rule(tmp_path)], {"gaps": gaps(200, cause="{cost_ns} [[x]] {0.__class__}")}
    )[0].findings
    assert finding.message == "a gap of 200 ns by {cost_ns} [[x]] {0.__class__}"


def test_a_part_of_a_message_without_its_value_is_left_out(tmp_path: Path) -> None:
    rule = one_rule(
        tmp_path,
        sql=SQL.format(more="after_layer,"),
        message="a gap[[ before {after_layer}]] by {cause}[[ ({after_layer})]].",
    )
    assert run_rules([rule], {"gaps": gaps(200)})[0].findings[0].message == "a gap by host."
    assert (
        run_rules([rule], {"gaps": gaps(200, after_layer="a")})[0].findings[0].message
        == "a gap before a by host (a)."
    )


def test_a_rule_that_runs_too_long_is_skipped_and_the_others_answer(tmp_path: Path) -> None:
    endless = (
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT max(a) AS"
        " start_ns, 0 AS end_ns, 0 AS cost_ns FROM r"
    )
    write_rule(tmp_path, "endless", sql=endless, message="never", params="{}", cases=ANY_CASES)
    write_rule(tmp_path, "long-gap")
    first, second = run_rules(load_rules([tmp_path]), {"gaps": gaps(200)}, time_limit_s=0.3)
    assert first.skipped is not None
    assert figures(first.skipped) == ["0.3"]
    assert "time limit" in first.skipped
    assert len(second.findings) == 1


def test_sql_that_fails_on_the_rows_stops_the_run_with_the_file(tmp_path: Path) -> None:
    rule = one_rule(tmp_path, sql=SQL.format(more="CAST(cause AS INTEGER) AS number,"))
    with pytest.raises(NsysmapError, match="Could not convert") as caught:
        run_rules([rule], {"gaps": gaps(200)})
    assert str(tmp_path / "long-gap.yaml") in caught.value.where


@pytest.mark.parametrize(
    "sql",
    [
        "-dur_ns AS cost_ns, start_ns, end_ns",
        "dur_ns AS cost_ns, end_ns AS start_ns, start_ns AS end_ns",
    ],
)
def test_an_impossible_finding_stops_the_run_with_the_file(tmp_path: Path, sql: str) -> None:
    rule = one_rule(tmp_path, sql=f"SELECT {sql}, cause FROM gaps WHERE dur_ns > $min_ns")
    with pytest.raises(NsysmapError, match="long-gap"):
        run_rules([rule], {"gaps": gaps(200)})


def test_only_the_most_costly_findings_are_kept_and_the_rest_is_counted(tmp_path: Path) -> None:
    (outcome,) = run_rules(
        [one_rule(tmp_path)], {"gaps": gaps(*range(101, 101 + MOST_FINDINGS + 5))}
    )
    assert len(outcome.findings) == MOST_FINDINGS
    assert outcome.more == 5
    assert outcome.findings[0].cost_ns == 100 + MOST_FINDINGS + 5


def test_findings_of_all_rules_are_ordered_by_cost(tmp_path: Path) -> None:
    write_rule(tmp_path, "long-gap")
    write_rule(
        tmp_path,
        "half-gap",
        sql=(
            "SELECT start_ns, end_ns, dur_ns / 2 AS cost_ns, cause FROM gaps WHERE dur_ns > $min_ns"
        ),
    )
    outcomes = run_rules(load_rules([tmp_path]), {"gaps": gaps(200, 150)})
    assert [(finding.rule, finding.cost_ns) for finding in by_cost(outcomes)] == [
        ("long-gap", 200), ("long-gap", 150), ("half-gap", 100), ("half-gap", 75),
    ]  # fmt: skip


def test_the_same_rows_in_another_order_give_the_same_findings(tmp_path: Path) -> None:
    rule = one_rule(tmp_path)
    table = gaps(200, 300, 300, 150)
    turned = table.take(np.array([3, 1, 0, 2]))
    assert run_rules([rule], {"gaps": table}) == run_rules([rule], {"gaps": turned})


def test_numbers_become_plain_numbers(tmp_path: Path) -> None:
    sql = SQL.format(
        more=(
            "sum(dur_ns) OVER () AS total, dur_ns / 3 AS third, 1.50 AS decimal, dur_ns > 1 AS yes,"
            " before_layer, 0 / 0.0 AS odd,"
        )
    )
    (finding,) = run_rules([one_rule(tmp_path, sql=sql)], {"gaps": gaps(200)})[0].findings
    assert finding.evidence == {
        "total": 200, "third": 66.6666667, "decimal": 1.5, "yes": True, "before_layer": None,
        "odd": None, "cause": "host",
    }  # fmt: skip


def test_only_complete_inferences_after_the_warm_up_are_steady() -> None:
    table = inferences((0, 900), (1000, 1300), (1200, 1500), (5000, 9000))
    table.columns["warmup"] = np.array([True, False, False, False])
    table.columns["complete"] = np.array([True, True, True, False])
    assert steady_windows(table).records() == [
        {
            "device": 0,
            "start_ns": 1000,
            "end_ns": 1500,
            "window_ns": 500,
            "inferences": 2,
            "span_ns": 500,
        }
    ]
    assert len(steady_windows(Table.empty(INFERENCES))) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: (min(pair), max(pair))),
        min_size=1,
        max_size=12,
    )
)
def test_the_steady_span_is_the_union_of_the_inferences(spans: list[tuple[int, int]]) -> None:
    covered = {moment for start, end in spans for moment in range(start, end)}
    assert steady_windows(inferences(*spans)).records()[0]["span_ns"] == len(covered)


def test_columns_that_no_rule_names_are_not_needed(tmp_path: Path) -> None:
    sql = (
        "SELECT n.rest, 0 AS start_ns, 1 AS end_ns, gaps.dur_ns AS cost_ns FROM names n, gaps WHERE"
        " gaps.dur_ns > $min_ns"
    )
    rule = one_rule(tmp_path, sql=sql, message="{rest}", cases=ANY_CASES)
    names = Table.of_rows(NAMES, [{"name": "a", "rest": "b"}])
    (finding,) = run_rules([rule], {"gaps": gaps(200), "names": names})[0].findings
    assert finding.message == "b"


def test_a_case_that_the_rule_does_not_answer_as_it_says_is_told(tmp_path: Path) -> None:
    rule = one_rule(tmp_path)
    long, short = rule.cases
    wrong = replace(
        rule,
        cases=(
            replace(long, finds=()),
            replace(short, finds=({"cause": "host"},)),
            replace(long, finds=({"cause": "sync"},)),
            replace(long, finds=({"message": "nothing"},)),
            replace(long, skips="why"),
            replace(long, given={}),
            long,
            replace(long, given={}, skips="no rows"),
            replace(long, params={"min_ns": 1000}, finds=()),
        ),
    )
    results = [result.wrong for result in run_cases([wrong])]
    assert results == [
        "found 1 instead of 0: a gap of 200 ns by host",
        "found 0 instead of 1",
        "finding 1 has cause 'host' instead of 'sync'",
        "finding 1 has message 'a gap of 200 ns by host' instead of 'nothing'",
        "should be skipped because of 'why', but answered with 1 findings",
        "was skipped: no rows in gaps",
        None,
        None,
        None,
    ]


def test_rows_of_a_case_that_do_not_fit_their_table_are_said(tmp_path: Path) -> None:
    rule = one_rule(tmp_path, cases=ANY_CASES.replace("dur_ns: 20}", "dur_ns: twenty}"))
    with pytest.raises(NsysmapError, match=r"given\.gaps"):
        run_cases([rule])


@pytest.mark.parametrize(
    "more",
    [
        "(2::HUGEINT)**100 AS cost_ns",
        "1e300 AS cost_ns",
        "-5 AS cost_ns",
        "0 AS cost_ns, -1 AS layer_index",
    ],
)
def test_a_cost_or_a_layer_that_cannot_be_stops_with_the_rule_s_name(
    tmp_path: Path, more: str
) -> None:
    rule = one_rule(
        tmp_path,
        sql=f"SELECT start_ns, end_ns, {more}, cause FROM gaps WHERE dur_ns >= $min_ns",
        message="a gap by {cause}",
    )
    with pytest.raises(NsysmapError, match=r"long-gap.yaml: sql: returned a finding"):
        run_rules([rule], {"gaps": gaps(200)})


def test_an_engine_file_that_did_not_run_is_neither_found_fault_with_nor_called_clean(
    tmp_path: Path,
) -> None:
    rule = one_rule(
        tmp_path,
        needs="[layers]",
        requires=(
            "[{sql: SELECT count(engine) > 0 AS ok FROM layers, reason: there is no engine file}]"
        ),
        sql=(
            "SELECT NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns, NULL::BIGINT AS cost_ns, name"
            " AS cause FROM layers WHERE $min_ns > 0"
        ),
    )
    layers = [
        {
            "layer_id": number,
            "engine": number,
            "layer_index": 0,
            "name": f"of engine {number}",
            "kind": "conv",
        }
        for number in (0, 1)
    ]
    fits = [
        {"engine": 0, "source": "a.json", "verdict": "did-not-run"},
        {"engine": 1, "source": "b.json", "verdict": "ran"},
    ]
    both = {
        "layers": Table.of_rows(LAYERS, layers),
        "engine_fits": Table.of_rows(ENGINE_FITS, fits),
    }
    assert [finding.evidence["cause"] for finding in run_rules([rule], both)[0].findings] == [
        "of engine 1"
    ]
    other = {
        "layers": Table.of_rows(LAYERS, layers[:1]),
        "engine_fits": Table.of_rows(ENGINE_FITS, fits[:1]),
    }
    (outcome,) = run_rules([rule], other)
    assert outcome.skip is not None
    assert (outcome.skip.lacks, outcome.skip.why.split()[0]) == ("layers", "a.json")
    seen = Table.of_rows(
        LAYERS, [layers[0], {"layer_id": 1, "name": "that the trace names", "kind": "conv"}]
    )
    skipped = run_rules([rule], {**other, "layers": seen})[0].skipped
    assert skipped is not None
    assert "(a.json did not run" in skipped


def test_a_finding_on_an_engine_file_that_may_not_have_run_says_so(tmp_path: Path) -> None:
    rule = one_rule(
        tmp_path,
        needs="[layers]",
        sql=(
            "SELECT NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns, NULL::BIGINT AS cost_ns,"
            " layer_index, name AS layer, name AS cause FROM layers WHERE $min_ns > 0"
        ),
    )
    names = [("only in a", 0), ("in both", 0), ("in both", 1)]
    layers = [
        {
            "layer_id": number,
            "engine": engine,
            "layer_index": int(name == "in both"),
            "name": name,
            "kind": "conv",
        }
        for number, (name, engine) in enumerate(names)
    ]
    fits = [
        {"engine": 0, "source": "a.json", "verdict": "cannot-tell"},
        {"engine": 1, "source": "b.json", "verdict": "ran"},
    ]
    found = run_rules(
        [rule],
        {"layers": Table.of_rows(LAYERS, layers), "engine_fits": Table.of_rows(ENGINE_FITS, fits)},
    )[0].findings
    doubts = [
        finding.message.partition(" Whether ")[2]
        for finding in found
        if finding.layer == "only in a"
    ]
    assert doubts
    assert all("a.json" in doubt and "be determined" in doubt for doubt in doubts)
    assert {
        finding.message.partition(" Whether ")[2] for finding in found if finding.layer == "in both"
    } == {""}


def test_a_what_if_command_is_printed_only_for_a_change_that_what_if_answers(
    tmp_path: Path,
) -> None:
    rule = one_rule(tmp_path, what_if="aux-streams")
    told: list[dict[str, object]] = [
        {"change": "cuda-graph", "answer": "answered", "after_ns": 5},
        {"change": "aux-streams", "answer": "cannot-tell"},
    ]
    tables = {"gaps": gaps(200), "whatif": Table.of_rows(WHATIF, told)}
    assert run_rules([rule], tables)[0].findings[0].command is None
    tables["whatif"] = Table.of_rows(
        WHATIF, [told[0], {"change": "aux-streams", "answer": "answered", "after_ns": 5}]
    )
    assert (
        run_rules([rule], tables)[0].findings[0].command
        == "nsysmap what-if REPORT --change aux-streams"
    )
