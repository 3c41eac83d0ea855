"""A broken rule file stops the run and says which file, which part and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import CAPTURE
from nsysmap.rules.packs import MOST_FILES, builtin_rules_dir, chosen_rules, load_rules
from nsysmap.rules.parameters import load_params, parse_params, with_params
from nsysmap.rules.rule_file import read_rule
from nsysmap.rules.run import run_rules
from tests.rule_packs import ANY_CASES, SOUND, gaps, one_rule, write_rule


def refused(folder: Path, **parts: str | None) -> NsysmapError:
    path = write_rule(folder, "long-gap", **parts)
    with pytest.raises(NsysmapError) as caught:
        load_rules([folder])
    assert str(path) in caught.value.where
    assert caught.value.remedy
    return caught.value


def test_a_sound_rule_is_read(tmp_path: Path) -> None:
    rule = one_rule(tmp_path)
    assert (rule.name, rule.group, rule.severity, rule.needs, rule.params) == (
        "long-gap",
        "launch",
        "warning",
        ("gaps",),
        {"min_ns": 100},
    )
    assert rule.query.tables == {"gaps"}
    assert rule.columns == ("start_ns", "end_ns", "cost_ns", "cause")
    assert [case.name for case in rule.cases] == ["long", "short"]


def test_advice_for_some_findings_is_given_to_those(tmp_path: Path) -> None:
    said = (
        "[{say: for both}, {say: for hosts, when: {cause: [host, sync]}}, {say: for others, when:"
        " {cause: copy}}]"
    )
    (outcome,) = run_rules([one_rule(tmp_path, advice=said)], {"gaps": gaps(200)})
    assert outcome.findings[0].advice.splitlines() == ["for both", "for hosts"]


@pytest.mark.parametrize("key", [key for key in SOUND if key not in ("needs", "params", "cases")])
def test_a_missing_part_is_named(tmp_path: Path, key: str) -> None:
    error = refused(tmp_path, **{key: None})
    assert error.where.endswith(f": {key}")
    assert "missing" in error.what


@pytest.mark.parametrize(
    ("parts", "part", "what"),
    [
        ({"sql": "SELECT start_ns, end_ns, duration AS cost_ns FROM gaps"}, "sql", "duration"),
        (
            {"sql": "SELECT start_ns, end_ns, dur_ns AS cost_ns FROM gasp WHERE dur_ns > $min_ns"},
            "sql",
            "gasp",
        ),
        (
            {"sql": "SELECT start_ns, end_ns, dur_ns AS cost_ns FROM gaps WHERE dur_ns > $least"},
            "sql",
            "$least",
        ),
        (
            {"sql": "SELECT start_ns, end_ns FROM gaps WHERE dur_ns > $min_ns"},
            "sql",
            "does not return cost_ns",
        ),
        (
            {"sql": "SELECT start_ns, end_ns, cause AS cost_ns FROM gaps WHERE dur_ns > $min_ns"},
            "sql",
            "cost_ns as text",
        ),
        (
            {
                "sql": (
                    "SELECT start_ns, end_ns, dur_ns AS cost_ns, 1 AS layer FROM gaps WHERE dur_ns"
                    " > $min_ns"
                )
            },
            "sql",
            "layer as int",
        ),
        (
            {
                "sql": (
                    "SELECT start_ns, end_ns, dur_ns AS cost_ns, DATE '2020-01-01' AS day FROM gaps"
                )
            },
            "sql",
            "day",
        ),
        (
            {
                "sql": (
                    "SELECT start_ns, end_ns, dur_ns AS cost_ns, cause, cause FROM gaps WHERE"
                    " dur_ns > $min_ns"
                )
            },
            "sql",
            "two columns",
        ),
        ({"sql": "SELEKT 1"}, "sql", "SELEKT"),
        ({"sql": "SELECT 1; SELECT 2"}, "sql", "2 statements"),
        ({"sql": "COPY gaps TO 'x.csv'"}, "sql", "not a SELECT"),
        ({"sql": "SELECT * FROM read_text('/etc/hostname')"}, "sql", "read_text"),
        ({"message": "a gap of {cost}"}, "message", "{cost} is not a column"),
        ({"message": "a gap of {cost_ns.real}"}, "message", "not a plain column name"),
        ({"message": "a gap of {cost_ns[0]}"}, "message", "not a plain column name"),
        ({"message": "a gap of {cost_ns!r}"}, "message", "conversions"),
        ({"message": "a gap of {cost_ns:1000000000d}"}, "message", "is not a format"),
        ({"message": "a gap of {cost_ns:{cause}}"}, "message", "is not a format"),
        ({"message": "a gap by {cause:ns}"}, "message", "formats a number"),
        ({"message": "a gap of {"}, "message", "expected '}'"),
        ({"message": "a gap[[ of {cost}]]"}, "message", "{cost} is not a column"),
        ({"params": "{min_ns: 100, max_ns: 200}"}, "params", "max_ns is not used"),
        ({"params": "{min_ns: [1]}"}, "params.min_ns", "[1]"),
        ({"params": "{Min: 1}"}, "params", "is not a parameter name"),
        ({"params": "3"}, "params", "mapping"),
        ({"needs": "[gasps]"}, "needs", "no table gasps"),
        ({"needs": "[gaps.duration]"}, "needs", "no column gaps.duration"),
        ({"needs": "gaps"}, "needs", "not a list"),
        ({"group": "launches"}, "group", "launches"),
        ({"severity": "fatal"}, "severity", "fatal"),
        ({"advise": "oh"}, "", "unknown key advise"),
        (
            {"advice": "[{say: a}, {say: b, when: {reason: host}}]"},
            "advice 2: when",
            "reason is not among the columns",
        ),
        ({"advice": "[{say: a}, {say: b, when: {cause: 3}}]"}, "advice 2: when: cause", "is 3"),
        ({"advice": "[{say: a}, {say: b, when: {cause: []}}]"}, "advice 2: when: cause", "is []"),
        ({"advice": "[{say: a}, {say: b, when: host}]"}, "advice 2: when", "mapping"),
        ({"advice": "[{say: b, when: {cause: host}}]"}, "advice", "no part for everyone"),
        ({"requires": "[{sql: SELECT 1 AS ok, reason: nay}]"}, "requires 1: sql", "with a boolean"),
        ({"requires": "[{sql: SELECT true AS ok}]"}, "requires 1: reason", "missing"),
        ({"requires": "[{reason: nay}]"}, "requires 1: sql", "missing"),
        ({"requires": "[{rows: gap, reason: nay}]"}, "requires 1: rows", "no table gap"),
        ({"requires": "[{rows: gaps, reason: '{osrt}'}]"}, "requires 1: reason", "osrt"),
        (
            {"requires": "[{sql: SELECT has_osrt FROM capture, reason: '{osrt}'}]"},
            "requires 1: reason",
            "{osrt} is not a column",
        ),
        (
            {"requires": "[{sql: SELECT has_osr FROM capture, reason: nay}]"},
            "requires 1: sql",
            "has_osr",
        ),
        ({"cases": "[]"}, "cases", "finds something"),
        (
            {"cases": "\n  - {name: long, given: {gaps: [{dur_ns: 200}]}, finds: [{}]}"},
            "cases",
            "finds nothing",
        ),
        (
            {"cases": "\n  - {name: short, given: {gaps: []}, finds: []}"},
            "cases",
            "finds something",
        ),
        (
            {"cases": "\n  - {name: a, given: {gasps: []}, finds: []}"},
            "case 'a': given",
            "no table gasps",
        ),
        (
            {"cases": "\n  - {name: a, given: {gaps: [{duration: 3}]}, finds: []}"},
            "case 'a': given.gaps",
            "unknown key duration",
        ),
        (
            {"cases": "\n  - {name: a, params: {least: 1}, finds: []}"},
            "case 'a': params",
            "no parameter least",
        ),
        (
            {"cases": "\n  - {name: a, params: {min_ns: much}, finds: []}"},
            "case 'a': params.min_ns",
            "'much'",
        ),
        (
            {"cases": "\n  - {name: a, finds: [{price_ns: 1}]}"},
            "case 'a': finds",
            "unknown key price_ns",
        ),
        ({"cases": "\n  - {name: a, finds: [], skips: no}"}, "case 'a'", "either finds or skips"),
        ({"cases": "\n  - {name: a}"}, "case 'a'", "either finds or skips"),
        ({"cases": "\n  - {finds: []}"}, "case 1: name", "missing"),
        ({"cases": ANY_CASES.replace("none", "some")}, "cases", "same name"),
    ],
)
def test_a_wrong_part_is_named_with_what_is_wrong(
    tmp_path: Path, parts: dict[str, str], part: str, what: str
) -> None:
    fitting = {
        "cases": ANY_CASES,
        "params": "{min_ns: 100}" if "$min_ns" in parts.get("sql", "$min_ns") else "{}",
        "message": "a gap",
    }
    error = refused(tmp_path, **{**fitting, **parts})
    assert error.where.endswith(part)
    assert what in error.what


def answered(folder: Path, **parts: str | None) -> NsysmapError:
    """What a rule with these parts comes to where it counts as one that comes with nsysmap, which
    is checked only when it runs.
    """
    path = write_rule(folder, "long-gap", **parts)
    with pytest.raises(NsysmapError) as caught:
        run_rules(
            [read_rule(path, None)],
            {"gaps": gaps(200), "capture": Table.of_rows(CAPTURE, [{"kernels": 1}])},
        )
    assert str(path) in caught.value.where
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("parts", "part", "what"),
    [
        ({"sql": "SELECT start_ns, end_ns, duration AS cost_ns FROM gaps"}, "sql", "duration"),
        (
            {"sql": "SELECT start_ns, end_ns, dur_ns AS cost_ns FROM gasp WHERE dur_ns > $min_ns"},
            "sql",
            "gasp",
        ),
        (
            {"sql": "SELECT start_ns, end_ns, dur_ns AS cost_ns FROM gaps WHERE dur_ns > $least"},
            "sql",
            "$least",
        ),
        ({"sql": "SELECT start_ns, end_ns FROM gaps WHERE dur_ns > $min_ns"}, "sql", "cost_ns"),
        (
            {"sql": "SELECT start_ns, 1 AS cost_ns FROM gaps WHERE dur_ns > $min_ns"},
            "sql",
            "end_ns",
        ),
        (
            {"sql": "SELECT start_ns, end_ns, cause AS cost_ns FROM gaps WHERE dur_ns > $min_ns"},
            "sql",
            "cost_ns as text",
        ),
        (
            {
                "sql": (
                    "SELECT start_ns, end_ns, dur_ns AS cost_ns, 1 AS layer FROM gaps WHERE dur_ns"
                    " > $min_ns"
                )
            },
            "sql",
            "layer as int",
        ),
        (
            {
                "sql": (
                    "SELECT start_ns, end_ns, dur_ns AS cost_ns, DATE '2020-01-01' AS day FROM gaps"
                )
            },
            "sql",
            "day",
        ),
        (
            {"sql": "SELECT start_ns, end_ns, dur_ns AS cost_ns, [1] AS all_of FROM gaps"},
            "sql",
            "all_of",
        ),
        ({"sql": "SELEKT 1"}, "sql", "syntax error"),
        ({"sql": "SELECT 1; SELECT 2"}, "sql", "syntax error"),
        ({"sql": "COPY gaps TO 'x.csv'"}, "sql", "syntax error"),
        (
            {
                "sql": (
                    "SELECT 0 AS start_ns, 1 AS end_ns, 0 AS cost_ns FROM"
                    " read_text('/etc/hostname')"
                )
            },
            "sql",
            "disabled",
        ),
        ({"message": "a gap of {cost}"}, "message", "{cost} is not a column"),
        ({"message": "a gap by {cause:ns}"}, "message", "formats a number"),
        ({"message": "a gap of {"}, "message", "encountered"),
        ({"params": "{min_ns: 100, max_ns: 200}"}, "params", "max_ns is not used"),
        ({"needs": "[gasps]"}, "needs", "no table gasps"),
        ({"group": "launches"}, "group", "launches"),
        ({"summary": None}, "summary", "missing"),
        ({"advise": "oh"}, "", "unknown key advise"),
        ({"advice": "[{say: a}, {say: b, when: {cause: 3}}]"}, "advice 2: when: cause", "is 3"),
        ({"advice": "[{say: a}, {say: b, when: {cause: []}}]"}, "advice 2: when: cause", "is []"),
        ({"advice": "[{say: a}, {say: b, when: host}]"}, "advice 2: when", "mapping"),
        ({"advice": "[{say: b, when: {cause: host}}]"}, "advice", "no part for everyone"),
        ({"requires": "[{sql: SELECT 1 AS ok, reason: nay}]"}, "requires 1: sql", "with a boolean"),
        (
            {"requires": "[{sql: SELECT has_osr FROM capture, reason: nay}]"},
            "requires 1: sql",
            "has_osr",
        ),
        (
            {"requires": "[{sql: SELECT has_osrt FROM capture, reason: '{osrt}'}]"},
            "requires 1: reason",
            "{osrt} is not a column",
        ),
    ],
)
def test_a_broken_rule_of_nsysmap_itself_is_named_when_it_runs(
    tmp_path: Path, parts: dict[str, str | None], part: str, what: str
) -> None:
    fitting = {
        "params": "{min_ns: 100}" if "$min_ns" in str(parts.get("sql", "$min_ns")) else "{}",
        "message": "a gap",
    }
    error = answered(tmp_path, **{**fitting, **parts})
    assert error.where.endswith(part)
    assert what in error.what


def test_a_column_without_values_fits_whatever_the_message_shows_of_it(tmp_path: Path) -> None:
    path = write_rule(
        tmp_path, "long-gap", message="{cost_ns:ns}{before_layer}[[{thread:,}]]", sql=EMPTY_COLUMNS
    )
    assert run_rules([read_rule(path, None)], {"gaps": gaps(20)})[0].findings == ()
    (outcome,) = run_rules([read_rule(path, None)], {"gaps": gaps(200)})
    assert [finding.message for finding in outcome.findings] == ["200 nsunknown"]


EMPTY_COLUMNS = (
    "SELECT start_ns, end_ns, dur_ns AS cost_ns, before_layer, thread, after_layer AS layer FROM"
    " gaps WHERE dur_ns > $min_ns"
)


def test_a_stranger_s_rules_are_checked_whether_those_of_nsysmap_are_or_not(tmp_path: Path) -> None:
    write_rule(tmp_path, "long-gap", message="{cost}")
    with pytest.raises(NsysmapError, match="not a column"):
        load_rules([builtin_rules_dir(), tmp_path], check_own=False)


def test_a_rule_is_named_as_its_file(tmp_path: Path) -> None:
    write_rule(tmp_path, "long-gap").rename(tmp_path / "gap.yaml")
    with pytest.raises(NsysmapError, match="'long-gap'") as caught:
        load_rules([tmp_path])
    assert caught.value.where == f"{tmp_path / 'gap.yaml'}: name"
    (tmp_path / "gap.yaml").rename(tmp_path / "Long_Gap.yaml")
    with pytest.raises(NsysmapError, match="kebab case"):
        load_rules([tmp_path])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"name: a\nname: b\n", "has the key name twice"),
        (b"name: a\nparams: {x: 1, x: 2}\n", "has the key x twice"),
        (b"name: &a long\nsummary: *a\n", "anchor"),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchor"),
        (b"name: !!python/object/apply:os.system [id]\n", "not plain YAML"),
        (b"name: x\nseverity: !!bool foo\n", "has a tag"),
        (b'name: x\nseverity: !!int ""\n', "has a tag"),
        (b"name: x\nseverity: !!timestamp foo\n", "has a tag"),
        (b"name: [\n", "not plain YAML"),
        (b"name: a\n---\nname: b\n", "not plain YAML"),
        (b"\xff\xfe", "not plain YAML"),
        (b"", "must be a mapping"),
        (b"- a\n", "must be a mapping"),
        (b"1: 2\n", "must be a mapping"),
        (b"[" * 60000, "more than 50 deep"),
        (b"? " * 30000, "more than 50 deep"),
        (b"why: " + b"x" * 70000, "larger than 64 KiB"),
    ],
)
def test_a_file_that_is_no_plain_yaml_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "odd.yaml").write_bytes(content)
    with pytest.raises(NsysmapError) as caught:
        load_rules([tmp_path])
    assert str(tmp_path / "odd.yaml") in caught.value.where
    assert what in caught.value.what


def test_yaml_runs_no_code(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (tmp_path / "odd.yaml").write_text(
        f"name: !!python/object/apply:pathlib.Path.touch [{made}]\n", encoding="utf-8"
    )
    with pytest.raises(NsysmapError):
        load_rules([tmp_path])
    assert not made.exists()


def test_folders_without_rules_and_other_suffixes_are_said(tmp_path: Path) -> None:
    with pytest.raises(NsysmapError, match="holds no rule"):
        load_rules([tmp_path])
    with pytest.raises(NsysmapError, match="not a folder"):
        load_rules([tmp_path / "none"])
    write_rule(tmp_path, "long-gap").rename(tmp_path / "long-gap.yml")
    with pytest.raises(NsysmapError, match=r"name it long-gap\.yaml"):
        load_rules([tmp_path])


def test_a_pack_cannot_replace_a_rule_of_nsysmap(tmp_path: Path) -> None:
    write_rule(tmp_path, "launch-bound")
    with pytest.raises(NsysmapError, match=r"launch-bound\.yaml") as caught:
        load_rules([builtin_rules_dir(), tmp_path])
    assert caught.value.where == str(tmp_path / "launch-bound.yaml")


def test_parameters_come_from_toml(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.nsysmap.rules.long-gap]\nmin_ns = 7\n[tool.other]\nx = 1\n", encoding="utf-8"
    )
    assert load_params(tmp_path) == {"long-gap": {"min_ns": 7}}
    (tmp_path / "nsysmap.toml").write_text("[rules.long-gap]\nmin_ns = 8\n", encoding="utf-8")
    assert load_params(tmp_path) == {"long-gap": {"min_ns": 8}}
    assert load_params(tmp_path / "nsysmap.toml") == {"long-gap": {"min_ns": 8}}
    (rule,) = with_params([one_rule(tmp_path / "pack")], load_params(tmp_path))
    assert rule.params == {"min_ns": 8}


def test_no_file_means_no_parameters(tmp_path: Path) -> None:
    assert load_params(tmp_path) == {}


def test_a_broken_pyproject_of_somebody_else_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other\n", encoding="utf-8")
    assert load_params(tmp_path) == {}


def test_a_folder_with_too_many_files_is_refused_before_any_is_read(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 1):
        (tmp_path / f"r{number}.yaml").touch()
    with pytest.raises(NsysmapError, match="1,001 rule files"):
        load_rules([tmp_path])


def test_rules_are_those_of_nsysmap_and_of_the_packs_with_the_folder_s_parameters_and_the_caller_s_before_them(  # noqa: E501
    tmp_path: Path,
) -> None:
    write_rule(tmp_path / "pack", "long-gap")
    (tmp_path / "nsysmap.toml").write_text(
        "[rules.long-gap]\nmin_ns = 8\n[rules.launch-bound]\nmin_share = 0.5\n", encoding="utf-8"
    )
    rules = {
        rule.name: rule
        for rule in chosen_rules(
            [tmp_path / "pack"], params={"long-gap": {"min_ns": 9}}, settings=tmp_path
        )
    }
    assert (rules["long-gap"].params["min_ns"], rules["launch-bound"].params["min_share"]) == (
        9,
        0.5,
    )


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("nsysmap.toml", "rules = ", "is not TOML"),
        ("nsysmap.toml", "rules = 3\n", "is not a table"),
        ("nsysmap.toml", "[rules]\nlong-gap = 3\n", "must hold parameters"),
        ("pyproject.toml", "[tool.nsysmap.rules.long-gap]\nmin_ns = [1]\n", "must hold parameters"),
        ("nsysmap.toml", "x = " + "[" * 20000, "nested too deeply"),
        (
            "nsysmap.toml",
            "[rules.long-gap]\nmin_ns = 1" + "0" * 5000 + "\n",
            "contains a number that is too long",
        ),
        ("nsysmap.toml", "a." * 50000 + "b = 1\n", "a key of more than 50 parts"),
        ("nsysmap.toml", "[" + "a." * 50000 + "b]\n", "a key of more than 50 parts"),
        ("nsysmap.toml", "# " + "x" * (1 << 20), "larger than 1 MiB"),
        ("nsysmap.toml", "\ud800", "is not a text file"),
    ],
)
def test_broken_parameter_files_are_named(
    tmp_path: Path, name: str, content: str, what: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(NsysmapError, match=what) as caught:
        load_params(tmp_path)
    assert name in caught.value.where


def test_parameters_come_from_the_command_line() -> None:
    assert parse_params(["long-gap.min_ns=5", "long-gap.name=a=b", "x.y= 1 "]) == {
        "long-gap": {"min_ns": "5", "name": "a=b"},
        "x": {"y": "1"},
    }
    for text in ("long-gap", "long-gap.min_ns", "min_ns=5", "=5", ".a=5", "a.=5"):
        with pytest.raises(NsysmapError, match=r"RULE\.NAME=VALUE"):
            parse_params([text])


@pytest.mark.parametrize(
    ("default", "given", "value"),
    [
        ("0.5", "1", 1.0),
        ("0.5", 2, 2.0),
        ("3", "4", 4),
        ("true", "False", False),
        ("false", True, True),
        ("word", "7", "7"),
    ],
)
def test_a_parameter_is_read_as_its_default_s_kind(
    tmp_path: Path, default: str, given: str | int, value: object
) -> None:
    rule = one_rule(
        tmp_path,
        params=f"{{p: {default}}}",
        sql="SELECT start_ns, end_ns, dur_ns AS cost_ns, $p AS p, cause FROM gaps",
    )
    (changed,) = with_params([rule], {"long-gap": {"p": given}})
    assert changed.params["p"] == value
    assert type(changed.params["p"]) is type(value)


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"long-gap": {"min_ns": "much"}}, "'much'"),
        ({"long-gap": {"min_ns": "1.5"}}, r"'1\.5'"),
        ({"long-gap": {"min_ns": True}}, "True"),
        ({"long-gap": {"least": 1}}, "no such parameter"),
        ({"no-rule": {"least": 1}}, "no such rule"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(
    tmp_path: Path, params: dict[str, dict[str, str | int]], what: str
) -> None:
    with pytest.raises(NsysmapError, match=what):
        with_params([one_rule(tmp_path)], params)


@pytest.mark.parametrize("given", ["nan", "inf", "-inf"])
def test_a_threshold_is_a_finite_number(tmp_path: Path, given: str) -> None:
    rule = one_rule(tmp_path, params="{min_ns: 0.5}")
    with pytest.raises(NsysmapError, match=given):
        with_params([rule], {"long-gap": {"min_ns": given}})


def test_a_pipe_named_like_a_rule_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(NsysmapError, match="not a regular file"):
        load_rules([tmp_path])
