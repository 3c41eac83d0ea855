"""Findings of several rules about one problem at one place become one, and nothing of the others is
lost.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.note import Level
from nsysmap.rules.finding import Finding, Outcome
from nsysmap.rules.fold import PlacedFinding, WindowLengths, alike_on_gpus, fold

WINDOWS = WindowLengths({0: 1000, 1: 3000})


def placed(  # one parameter a part of a finding
    rule: str,
    cost_ns: int | None,
    about: str | None = None,
    *,
    device: int | None = 0,
    severity: Level = "info",
    text: str = "",
) -> PlacedFinding:
    finding = Finding(
        rule,
        "fusion",
        severity,
        text or rule,
        0,
        100,
        cost_ns,
        None,
        None,
        None,
        {"device": device},
        "",
    )
    return PlacedFinding(finding, None if about is None else frozenset(about.split()))


def folded(
    found: list[PlacedFinding], supersedes: dict[str, tuple[str, ...]]
) -> dict[str, Outcome]:
    rules = sorted({one.finding.rule for one in found} | set(supersedes))
    mine = {rule: [one for one in found if one.finding.rule == rule] for rule in rules}
    outcomes = fold([Outcome(rule, "fusion", "info") for rule in rules], mine, supersedes, WINDOWS)
    return {outcome.rule: outcome for outcome in outcomes}


def test_a_finding_on_the_same_layers_is_told_inside_the_one_that_stands_for_it() -> None:
    answers = folded([placed("detail", 70, "4 5"), placed("sum", 90, "4 5")], {"detail": ("sum",)})
    (kept,) = answers["detail"].findings
    assert (kept.cost_ns, [one.rule for one in kept.also], kept.also[0].cost_ns) == (
        70,
        ["sum"],
        90,
    )
    assert answers["sum"].findings == ()
    assert [one.cost_ns for one in answers["sum"].folded] == [90]
    assert not answers["sum"].clean


def test_a_finding_on_more_than_the_others_are_about_stands_by_itself() -> None:
    answers = folded([placed("detail", 70, "4"), placed("sum", 90, "4 5")], {"detail": ("sum",)})
    assert [one.also for one in answers["detail"].findings] == [()]
    assert [one.cost_ns for one in answers["sum"].findings] == [90]


def test_several_findings_together_stand_for_one_about_all_of_their_places() -> None:
    answers = folded(
        [placed("detail", 70, "4"), placed("detail", 20, "5"), placed("sum", 90, "4 5")],
        {"detail": ("sum",)},
    )
    assert [[other.rule for other in one.also] for one in answers["detail"].findings] == [
        ["sum"],
        [],
    ]
    assert answers["detail"].cost_ns == 90


def test_findings_of_other_devices_are_others() -> None:
    found = [
        placed("graph", 500, None, device=0),
        placed("launch", 400, None, device=1),
        placed("launch", 300, None, device=0),
    ]
    answers = folded(found, {"graph": ("launch",)})
    assert [one.evidence["device"] for one in answers["launch"].findings] == [1]
    assert [one.evidence["device"] for one in answers["graph"].findings[0].also] == [0]


def test_a_finding_about_the_whole_program_stands_for_those_of_each_device() -> None:
    found = [
        placed("graph", 500, device=None),
        placed("launch", 400, device=1),
        placed("launch", 300, device=0),
    ]
    answers = folded(found, {"graph": ("launch",)})
    assert len(answers["graph"].findings[0].also) == 2


def test_what_stands_for_a_finding_may_itself_be_inside_another() -> None:
    answers = folded([placed("a", 1), placed("b", 2), placed("c", 3)], {"a": ("b",), "b": ("c",)})
    assert {one.rule for one in answers["a"].findings[0].also} == {"b", "c"}


def test_rules_that_stand_for_each_other_lose_nothing() -> None:
    answers = folded([placed("a", 1), placed("b", 2)], {"a": ("b",), "b": ("a",)})
    told = [one for outcome in answers.values() for one in outcome.findings]
    assert len(told) == 1
    assert len(told[0].also) == 1


def test_a_finding_is_as_severe_as_the_most_severe_inside_it() -> None:
    answers = folded([placed("a", 1), placed("b", 2, severity="warning")], {"a": ("b",)})
    assert answers["a"].findings[0].severity == "warning"


def test_what_is_shown_to_be_no_problem_makes_no_finding_more_severe() -> None:
    found = {
        name: [placed(name, 1, severity="info" if name == "a" else "warning")]
        for name in ("a", "b", "c")
    }
    outcomes = [Outcome(rule, "fusion", "info") for rule in found]
    for takes_back, level in (
        ({"a": ("b",)}, "info"),
        ({"b": ("c",)}, "warning"),
        ({}, "warning"),
    ):  # c is inside b, which is inside a
        answers = fold(outcomes, found, {"a": ("b",), "b": ("c",)}, WINDOWS, takes_back)
        ((only,),) = [one.findings for one in answers if one.findings]
        assert (only.rule, only.severity, {one.rule for one in only.also}) == (
            "a",
            level,
            {"b", "c"},
        )


def test_a_rule_counts_each_place_once() -> None:
    answers = folded(
        [
            placed("a", 60, "1 2"),
            placed("a", 50, "2 3"),
            placed("a", 10, "4"),
            placed("a", None, "5"),
        ],
        {},
    )
    assert answers["a"].cost_ns == 70
    assert answers["a"].share_of_window == 0.07


def test_costs_on_two_devices_are_shares_of_both_windows() -> None:
    answers = folded([placed("a", 1000, device=0), placed("a", 1000, device=1)], {})
    assert (answers["a"].cost_ns, answers["a"].share_of_window) == (2000, 0.5)


def test_a_rule_none_of_whose_costs_is_known_costs_nothing_known() -> None:
    answers = folded([placed("a", None, "1")], {})
    assert (answers["a"].cost_ns, answers["a"].share_of_window) == (None, None)


RULES = ("a", "b", "c")
ANY = st.lists(
    st.tuples(
        st.sampled_from(RULES),
        st.none() | st.integers(0, 50),
        st.none()
        | st.frozensets(st.sampled_from("123"), min_size=1).map(
            lambda words: " ".join(sorted(words))
        ),
        st.sampled_from((None, 0, 1)),
    ),
    max_size=8,
)


@given(
    ANY,
    st.dictionaries(
        st.sampled_from(RULES), st.lists(st.sampled_from(RULES), max_size=3).map(tuple)
    ),
)
def test_every_finding_is_told_exactly_once(
    rows: list[tuple[str, int | None, str | None, int | None]],
    supersedes: dict[str, tuple[str, ...]],
) -> None:
    found = [
        placed(rule, cost, about, device=device, text=str(number))
        for number, (rule, cost, about, device) in enumerate(rows)
    ]
    answers = folded(found, supersedes)
    told = [
        other.message
        for outcome in answers.values()
        for one in outcome.findings
        for other in (one, *one.also)
    ]
    assert sorted(told) == sorted(one.finding.message for one in found)
    assert all(
        len(outcome.findings) + len(outcome.folded) == len([r for r in rows if r[0] == name])
        for name, outcome in answers.items()
    )


def test_what_each_gpu_has_alike_is_one_finding_of_all_of_them() -> None:
    windows = WindowLengths({0: 1000, 1: 3000})
    each = [placed("launch-bound", 400, device=0), placed("launch-bound", 600, device=1)]
    (one,) = alike_on_gpus(each, windows)
    assert one.finding.message.startswith("On 2 GPUs, most")
    assert (one.finding.cost_ns, one.finding.share_of_window, one.device) == (1000, 0.25, None)
    assert one.finding.evidence["devices"] == "0, 1"
    two_places = [placed("launch-bound", 400, device=0), placed("launch-bound", 100, device=0)]
    assert alike_on_gpus(two_places, windows) == two_places
    assert (
        alike_on_gpus([placed("x", 400, "a", device=0), placed("x", 600, "b", device=1)], windows)[
            1
        ].device
        == 1
    )
