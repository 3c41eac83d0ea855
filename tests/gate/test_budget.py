"""Budgets and ignore files as people write them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from nsysmap.comparison.gate.budget import Limit, read_budget
from nsysmap.comparison.gate.ignores import Ignore, parsed, read_ignores
from nsysmap.core.errors import NsysmapError
from nsysmap.rules.finding import Finding
from tests.places import ROOT


def written(folder: Path, text: str) -> Path:
    path = folder / "budget.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ('[time]\nper_inference = "350 us"', Limit("time", "per_inference", "time", 350_000)),
        ('[time]\nper_inference = "+2 %"', Limit("time", "per_inference", "more-share", 0.02)),
        ('[time]\nrecorded = "+1.5ms"', Limit("time", "recorded", "more-time", 1_500_000)),
        ('[idle]\nlaunch = "12 %"', Limit("idle", "launch", "share", 0.12)),
        ('[layers]\n"/block.1/*" = "40 µs"', Limit("layers", "/block.1/*", "time", 40_000)),
        ("[findings]\nerror = 0", Limit("findings", "error", "count", 0)),
    ],
)
def test_a_limit_is_a_time_a_share_an_increase_or_a_number(
    tmp_path: Path, text: str, limit: Limit
) -> None:
    (found,) = read_budget(written(tmp_path, text))
    assert (found.section, found.name, found.kind) == (limit.section, limit.name, limit.kind)
    assert found.value == pytest.approx(limit.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[time]",
        "time = 3",
        "[speed]\nx = 1",
        '[time]\nper_inference = "fast"',
        '[time]\nper_inference = "3 %"',
        '[time]\nmedian = "3 us"',
        "[time]\nper_inference = 3",
        '[coverage]\nmapped = "3 us"',
        "[findings]\nerror = -1",
        "[findings]\nerror = true",
        '[idle]\nlaunch = {max = "3 us"}',
        "[time",
    ],
)
def test_what_is_no_limit_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(NsysmapError):
        read_budget(written(tmp_path, text))


def test_the_examples_are_read() -> None:
    assert len(read_budget(ROOT / "examples" / "gate" / "budget.toml")) == 8
    assert len(read_ignores(ROOT / "examples" / "gate" / "ignores.toml")) == 1


def finding(rule: str, layer: str | None) -> Finding:
    return Finding(rule, "reformat", "warning", "", 0, 0, None, None, None, layer, {}, "")


def test_an_ignore_covers_its_rule_and_place_until_its_day() -> None:
    until = datetime.date(2027, 1, 31)
    one = Ignore("reformat-*", "/block.1/*", "known", until)
    assert one.covers(finding("reformat-at-input", "/block.1/conv"), until)
    assert not one.covers(finding("reformat-at-input", "/block.2/conv"), until)
    assert not one.covers(finding("hot-region", "/block.1/conv"), until)
    assert not one.covers(
        finding("reformat-at-input", "/block.1/conv"), until + datetime.timedelta(days=1)
    )


def test_a_place_on_the_command_line_may_hold_colons() -> None:
    assert parsed(["hot-region:a:b"]) == [Ignore("hot-region", "a:b", "--ignore")]


@pytest.mark.parametrize(
    "text",
    [
        '[[ignore]]\nrule = "x"',
        '[[ignore]]\nreason = "x"',
        '[[ignore]]\nrule = "x"\nreason = "y"\nuntil = "2027-01-31"',
        '[[ignore]]\nrule = "x"\nreason = "y"\nwhen = 3',
        "ignore = 3",
        "",
    ],
)
def test_an_ignore_without_rule_reason_or_with_something_else_is_refused(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(NsysmapError):
        read_ignores(written(tmp_path, text))
