"""`nsysmap rules`: what it prints and the exit status it sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nsysmap.cli.main import cli
from nsysmap.core.errors import NsysmapError
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from tests.rule_packs import ANY_CASES, write_rule


def rules(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        cli, ["rules", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )


def test_list_names_every_rule_with_its_summary_in_80_columns(tmp_path: Path) -> None:
    write_rule(tmp_path, "long-gap")
    output = rules("list", "--rules", tmp_path).output
    for rule in load_rules([builtin_rules_dir(), tmp_path]):
        assert rule.name in output
    assert "Long gaps." in output
    assert max(map(len, output.splitlines())) <= 80


def test_show_says_why_what_to_do_and_how_it_tells(tmp_path: Path) -> None:
    write_rule(tmp_path, "long-gap")
    output = rules("show", "long-gap", "--rules", tmp_path).output
    for part in (
        "Long gaps.",
        "They cost.",
        "Close them",
        "long-gap.min_ns = 100",
        "no rows in gaps",
        "FROM gaps",
        "short: finds nothing",
    ):
        assert part in output


def test_show_suggests_the_rule_that_was_meant() -> None:
    with pytest.raises(NsysmapError, match="did you mean launch-bound"):
        rules("show", "launch-bond")
    with pytest.raises(NsysmapError, match="nsysmap rules list"):
        rules("show", "xyzzy")


def test_a_stranger_s_summary_cannot_drive_the_terminal(tmp_path: Path) -> None:
    write_rule(tmp_path, "long-gap", summary='"a \\x1b]0;title\\x07 b"')
    for command in (("list",), ("show", "long-gap")):
        output = rules(*command, "--rules", tmp_path).output
        assert "\\x1b]0;title" in output
        assert "\x1b" not in output


def test_test_stops_at_a_broken_rule(tmp_path: Path) -> None:
    write_rule(tmp_path, "odd-gap", message="{cost}")
    with pytest.raises(NsysmapError, match=r"odd-gap\.yaml: message"):
        rules("test", tmp_path)


def test_test_runs_the_cases_and_fails_where_a_rule_does_not_answer_as_they_say(
    tmp_path: Path,
) -> None:
    write_rule(tmp_path, "long-gap")
    passed = rules("test", tmp_path)
    assert passed.output == "2 of 2 cases of 1 rule gave the expected answer\n"
    assert passed.return_value == 0
    write_rule(tmp_path, "odd-gap", cases=ANY_CASES.replace("dur_ns: 20}", "dur_ns: 900}"))
    failed = rules("test", tmp_path)
    assert failed.output.splitlines() == [
        "odd-gap: none: found 1 instead of 0: a gap of 900 ns by",
        "3 of 4 cases of 2 rules gave the expected answer",
    ]
    assert failed.return_value == 1


def test_the_rules_that_come_with_nsysmap_pass_their_own_test() -> None:
    assert rules("test", builtin_rules_dir()).return_value == 0
