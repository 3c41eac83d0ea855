"""One quantity has one figure: the screen, the full text, Markdown, the page, a notebook, JSON,
what-if, compare, the gate's baseline and the table of layers say the same of one report, to the
last digit that each shows.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from nsysmap.answer import first, gains
from nsysmap.api import Analysis, analyze
from nsysmap.comparison.compare import compare_sides
from nsysmap.comparison.gate.baseline import baseline_of
from nsysmap.comparison.pages import comparison_text
from nsysmap.comparison.side import side_of
from nsysmap.output.build import report_of
from nsysmap.output.json import report_json
from nsysmap.output.layers import costs_text
from nsysmap.output.markdown import report_markdown
from nsysmap.output.text.report import report_text
from nsysmap.output.text.screen import screen
from nsysmap.output.whatif import whatif_text
from nsysmap.output.words import cost_words
from nsysmap.rules.packs import chosen_rules
from nsysmap.text.lines import WHOLE, rendered
from nsysmap.text.terminal import plain
from nsysmap.whatif.change import CHANGE_NAMES
from tests.places import FIXTURES
from tests.summary.test_costs import CAPTURES

# whose actions are those of rules too
WITH_RULES = (
    "a decode loop",
    "two engines in turn",
    "two shapes without ranges",
)
SIZES = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
NUMBER = r"-?[\d,]+(?:\.\d+)?"
TIME = rf"({NUMBER}) (ns|µs|ms|s)\b"
RANGED = rf"{TIME} \(({NUMBER}) to ({NUMBER})\)"


@dataclass(frozen=True)
class Said:
    """A figure, the place that shows it, and by how much it may be rounded."""

    label: str
    where: str
    value: float
    off: float = 0.5  # what is exact is in whole nanoseconds


@cache
def held(name: str) -> Analysis:
    report, *engines = (FIXTURES / part for part in CAPTURES[name])
    return analyze(report, engines, rules=chosen_rules() if name in WITH_RULES else [])


def told(label: str, where: str, number: str, unit: str, largest: str = "0") -> Said:
    """A figure as it is printed: rounded to its last digit, or to tens or hundreds, less than a
    twentieth of the largest beside it.
    """
    value, beside = (abs(float(one.replace(",", ""))) for one in (number, largest))
    step = 10.0 ** -len(number.partition(".")[2])
    while "." not in number and value % (10 * step) == 0 and 20 * 10 * step <= max(value, beside):
        step *= 10
    return Said(
        label, where, float(number.replace(",", "")) * SIZES[unit], 0.51 * step * SIZES[unit]
    )


def told_at(label: str, found: re.Match[str]) -> Said:
    """The time that a pattern of its own found."""
    return told(label, "finding", found[1], found[2])


def ranged(label: str, where: str, found: re.Match[str], first: int) -> Iterator[Said]:
    """The figure in the group of that number, with its unit and range in the three behind it."""
    middle, unit, low, high = found.groups()[first - 1 : first + 3]
    yield from with_ends(label, where, middle, unit, low=low, high=high)


def with_ends(
    label: str, where: str, middle: str, unit: str, *, low: str, high: str
) -> Iterator[Said]:
    """A figure and the two ends of its range, all in that unit."""
    for end, number in (("", middle), (", low", low), (", high", high)):
        yield told(
            f"{label}{end}",
            where,
            number,
            unit,
            max(low, high, key=lambda one: abs(float(one.replace(",", "")))),
        )


def tags_left_out(page: str) -> str:
    bare = re.sub(r"(?s)<(script|style)[^>]*>.*?</\1>", " ", page)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", bare)).split()).replace(" :", ":")


def texts(name: str) -> dict[str, str]:
    """What each form says of the report, in one line each."""
    analysis = held(name)
    report = report_of(analysis)
    markdown = re.sub(r"\\(.)", r"\1", report_markdown(report).replace("|", " "))
    return {
        "screen": " ".join(rendered(screen(analysis.summary, WHOLE), colour=False).split()),
        "narrow": " ".join(rendered(screen(analysis.summary, 80), colour=False).split()),
        "full": " ".join(report_text(report, full=True).split()),
        "markdown": tags_left_out(markdown),
        "page": tags_left_out(analysis.to_html()),
        "notebook": tags_left_out(analysis._repr_html_()),
        "what-if": " ".join(whatif_text(analysis.tables.whatif, analysis.source).split()),
        "compare": " ".join(
            comparison_text(compare_sides(side_of(analysis), side_of(analysis))).split()
        ),
    }


def spaceless(text: str) -> str:
    return "".join(text.split())


def in_text(where: str, text: str, analysis: Analysis) -> Iterator[Said]:
    """The figures that a text tells in words that are its own or those of all."""
    if analysis.summary.decoding is None:
        for found in re.finditer(rf"(?:every {TIME}|{TIME} per [^,;:]*?) while profiled", text):
            number, unit = (one for one in found.groups() if one)
            yield told("time in the trace", where, number, unit)
        for found in re.finditer(rf"{TIME} from [^,;:]*? while profiled", text):
            yield told("time in the trace", where, found[1], found[2])
    for found in re.finditer(
        rf"~{TIME}(?: per \w+)? without nsys \((?:uncertain: )?({NUMBER}) to", text
    ):
        yield told("time without the profiler", where, found[1], found[2])
        yield told("time without the profiler, low", where, found[3], found[2], found[1])
    for found in re.finditer(rf"(?:Where GPU time goes, of|Kernel time:) {TIME}", text):
        yield told("kernel time", where, found[1], found[2])
    for found in re.finditer(
        rf"{TIME} mean (?:\(median [\d.,]+(?: \w+)?\) )?(?:per|from) [^,;]*? in the trace,"
        rf" ({NUMBER}) ",
        text,
    ):
        yield told("time in the trace", where, found[1], found[2])
    for found in re.finditer(
        rf"{RANGED} predicted without (?:the )?profiler[^.:]*?, ({NUMBER})(?: per second|"
        r" passes/s|/s)",
        text,
    ):
        yield from ranged("time without the profiler", where, found, 1)
        yield told("rate without the profiler", where, found[5], "ns")
    if where == "page":
        for found in re.finditer(rf"profiler included [^%µ]*?{TIME} (?:without|GPU)", text):
            yield told("time in the trace", where, found[1], found[2])
        for found in re.finditer(
            rf"profiler, predicted(?: on GPU \d+)? ({NUMBER}) to ({NUMBER}), [^µ]*? {TIME} GPU",
            text,
        ):
            low, high, middle, unit = found.groups()
            label = "time without the profiler"
            yield from with_ends(label, where, middle, unit, low=low, high=high)
    if where == "compare" and not analysis.summary.hidden:
        pass_words = (
            analysis.summary.unit if analysis.summary.unit.startswith("pass") else "inference"
        )
        for found in re.finditer(
            rf"time per {pass_words} {TIME} .*?slower host {TIME} to {TIME} ", text
        ):
            yield told("time without the profiler", where, found[1], found[2])
            yield told("time without the profiler, low", where, found[3], found[4])
            yield told("time without the profiler, high", where, found[5], found[6])
            recorded = re.search(rf"as recorded, profiler included {TIME}", text)
            assert recorded
            of_one_gpu = len(analysis.summary.gpus) == 1  # compare is of the one that was replayed
            yield told(
                "time in the trace" if of_one_gpu else "time of one GPU",
                where,
                recorded[1],
                recorded[2],
            )
    for action in analysis.summary.actions:
        titles = {
            plain(one) if where == "markdown" else one
            for one in (gains.action_title(action), action.title)
        }
        title = f"(?:{'|'.join(map(re.escape, sorted(titles)))})"
        for found in re.finditer(rf"{title}: saves {RANGED}, (\d+)% of {TIME}", text):
            yield from ranged(f"saving of {action.name}", where, found, 1)
            yield Said(f"share of {action.name}", where, float(found[5]), 0.51)
            share = (
                100
                * told("", "", found[1], found[2]).value
                / told("", "", found[6], found[7]).value
            )
            assert abs(share - float(found[5])) <= 1.5, found[0]  # what a reader works out
        rates = (
            rf"{title}: ({NUMBER}) \(({NUMBER}) to ({NUMBER})\)(?: per second| passes/s|/s)(?:, up"
            rf" from ({NUMBER}))?"
        )
        for found in re.finditer(rates, text):
            for end, number in (("", found[1]), (", low", found[2]), (", high", found[3])):
                yield told(f"rate with {action.name}{end}", where, number, "ns", found[3])
            yield from (
                [told("rate without the profiler", where, found[4], "ns")] if found[4] else []
            )
        # where kernels slow each other down, it is the most that it may become
        at_most = (
            rf"{title}: up to ({NUMBER}) \(likely ({NUMBER})\)(?: per second| passes/s|/s)"
            rf"(?:, now ({NUMBER}))?"
        )
        for found in re.finditer(at_most, text):
            for end, number in ((", high", found[1]), ("", found[2])):
                yield told(f"rate with {action.name}{end}", where, number, "ns", found[1])
            yield from (
                [told("rate without the profiler", where, found[3], "ns")] if found[3] else []
            )
    for found in re.finditer(rf"worth it(?: \([^)]*\))?: saves {RANGED}", text):
        yield from ranged("saving of cuda-graph", where, found, 1)
    for found in re.finditer(
        rf"costliest layers, of {TIME}|take the most time, of {TIME}", text, re.IGNORECASE
    ):
        yield told("kernel time", where, found[1] or found[3], found[2] or found[4])
    for found in re.finditer(r"(\d+)% (?:busy )?without the profiler \(", text):
        yield Said("busy without the profiler", where, float(found[1]), 0.51)


def in_values(analysis: Analysis) -> Iterator[Said]:
    """The figures of JSON, of what-if's table as its command has it, and of the gate's baseline,
    exact.
    """
    value = json.loads(json.dumps(report_json(report_of(analysis))))
    answer, where = value["answer"], "json"
    a_pass = int(answer["unit"].split()[2]) if answer["unit"].startswith("pass") else 1
    if answer["traced"]:
        yield Said("time in the trace", where, answer["traced"]["ns"])
    if guess := answer["unprofiled"]:
        for end, key in (("", "ns"), (", low", "low_ns"), (", high", "high_ns")):
            yield Said(f"time without the profiler{end}", where, guess[key])
        yield Said("rate without the profiler", where, 1e9 / guess["ns"])
        baseline = baseline_of(side_of(analysis))
        yield Said("time without the profiler", "gate", baseline.time.value * a_pass, a_pass)
    yield Said("kernel time", where, answer["kernel_ns"])
    if gpu := answer["gpu_unprofiled"]:
        yield Said("busy without the profiler", where, 100 * gpu["busy_share"])
    for action in answer["actions"]:
        if action["basis"] == "replay" and not action["throughput_only"]:
            for end, key in (("", "ns"), (", low", "low_ns"), (", high", "high_ns")):
                yield Said(f"saving of {action['name']}{end}", where, action["saving"][key])
            yield Said(f"share of {action['name']}", where, 100 * action["share"])
    for row in value["whatif"]:
        if row["answer"] == "answered":
            for end, key in (
                ("", "before_ns"),
                (", low", "low_before_ns"),
                (", high", "high_before_ns"),
            ):
                yield Said(f"time without the profiler{end}", "what-if json", row[key])
            assert (
                row["low_before_ns"]
                <= row["before_ns"]
                <= row["high_before_ns"]
                <= max(1.05 * row["recorded_ns"], row["before_ns"])
            )  # more only for hosts of Python


def in_whatif(text: str) -> Iterator[Said]:
    """The rows of the what-if command: change, before, after, saving and its range, in
    microseconds.
    """
    for found in re.finditer(rf"(?<= )([a-z][a-z-]+)((?: {NUMBER}){{5}})(?= )", text):
        before, _, saving, low, high = found[2].split()
        yield told("time without the profiler", "what-if", before, "µs")
        for end, number in (("", saving), (", low", low), (", high", high)):
            yield told(f"saving of {found[1]}{end}", "what-if", number, "µs")


def layer_rows(analysis: Analysis) -> dict[str, list[tuple[str, str]]]:
    """By form, share and time of the costliest layers as they are printed, in their order; without
    kernels that have no layer.
    """
    row = re.compile(
        r"^ *(<?[\d.]+)% +([\d.,]+ (?:ns|µs|ms)) +\d+ (?!.*\(all others\)$)", re.MULTILINE
    )
    found = {}
    found["layers"] = row.findall(costs_text(analysis.summary))
    markdown = (
        report_markdown(report_of(analysis))
        .partition("<summary>Costliest layers")[2]
        .partition("</table>")[0]
    )
    found["markdown"] = [
        (html.unescape(share), time)
        for share, time in re.findall(
            r"<tr><td[^>]*>((?:&lt;)?[\d.]+)%</td><td[^>]*>([\d.,]+ (?:ns|µs|ms))</td>"
            r"<td[^>]*>\d+</td>",
            markdown,
        )
    ]
    page = (
        tags_left_out(analysis.to_html())
        .partition("take the most time")[2]
        .partition("in the steady-state inferences")[2]
    )
    rows = re.split(r" (?:headroom|slowest|not fused|how sure) ", page)[0]
    found["page"] = re.findall(
        r"(<?[\d.]+)% ([\d.,]+ (?:ns|µs|ms)) (?!\([^)]*without a layer)", rows
    )
    return {where: rows for where, rows in found.items() if rows}


@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_label_has_the_same_figure_wherever_it_is_shown(name: str) -> None:
    analysis = held(name)
    said = [one for where, text in texts(name).items() for one in in_text(where, text, analysis)]
    said += [*in_values(analysis), *in_whatif(texts(name)["what-if"])]
    by_label: dict[str, list[Said]] = {}
    for one in said:
        by_label.setdefault(one.label, []).append(one)
    for label, all_of_it in by_label.items():
        for one in all_of_it:
            for other in all_of_it:
                assert abs(one.value - other.value) <= one.off + other.off, (label, one, other)
    places = {label: {one.where for one in found} for label, found in by_label.items()}
    screens, whole = {"screen", "narrow"}, {"full", "markdown", "notebook"}
    forms = whole | {"json", "page"}
    assert forms | screens <= places["kernel time"]
    if analysis.summary.unprofiled:
        both = {
            "time without the profiler",
            "time without the profiler, low",
            "time without the profiler, high",
        }
        assert all(forms | {"what-if json", "compare"} <= places[label] for label in both), places
        assert (
            screens
            <= places["time without the profiler"] & places["time without the profiler, low"]
        )
        assert {"gate", "what-if"} <= places["time without the profiler"]
        assert forms - {"page"} <= places["rate without the profiler"]
        assert forms - {"page"} <= places["busy without the profiler"]
        for action in gains.first_actions(analysis.summary):
            if action.throughput_only and action.basis == "replay":
                assert whole <= places[f"rate with {action.name}"]
        assert forms <= places["time in the trace"]
        if analysis.summary.decoding is None:
            assert screens <= places["time in the trace"]
        assert (
            "compare" in places["time in the trace"]
            or not analysis.summary.unprofiled
            or len(analysis.summary.gpus) > 1
        )


@pytest.mark.parametrize("name", CAPTURES)
def test_the_costliest_layers_have_the_same_shares_and_times_in_every_form(name: str) -> None:
    rows = layer_rows(held(name))
    assert {"layers", "markdown", "page"} <= set(rows)
    for where, mine in rows.items():
        for (share, time), (exact, same) in zip(mine[:3], rows["markdown"], strict=False):
            assert time == same, where
            assert (
                share == exact or abs(float(share.lstrip("<")) - float(exact.lstrip("<"))) <= 0.5
            ), where


@pytest.mark.parametrize("name", WITH_RULES)
def test_every_form_lists_the_same_actions_in_the_same_words(name: str) -> None:
    summary = held(name).summary
    listed = [one for one in first.todo(summary) if one.name]
    assert listed
    for where, text in texts(name).items():
        if where in ("screen", "markdown", "page", "notebook"):
            for one in listed[: 1 if where == "screen" else None]:
                titles: tuple[str, ...] = (one.title,)
                steps: tuple[str, ...] = (one.paste or one.change,)
                if where == "screen":
                    titles += one.reasoned
                    steps += (one.paste_brief if one.paste else one.change_brief,)
                for said in (titles, (one.gain,), steps):
                    told = [spaceless(form) for form in said if form]
                    shown = spaceless(text)  # a page breaks lines between statements
                    assert any(form in shown or spaceless(plain(form)) in shown for form in told), (
                        where,
                        told,
                    )
    whole = texts(name)["full"]
    assert all(gains.action_title(one) in whole for one in gains.first_actions(summary))


@pytest.mark.parametrize("name", CAPTURES)
def test_before_minus_saving_is_after_as_a_reader_subtracts_them(name: str) -> None:
    """In every table of changes: the command, the full text, Markdown and the page; all of them
    with the same digits.
    """
    analysis = held(name)
    shown: dict[str, dict[str, list[float]]] = {}
    name_of = f"(?P<c>{'|'.join(CHANGE_NAMES)})"
    rows = {
        "what-if": (
            rf"(?<= ){name_of} (?P<b>{NUMBER}) (?P<a>{NUMBER}) (?P<s>{NUMBER}) (?P<l>{NUMBER})"
            rf" (?P<h>{NUMBER})(?= )"
        ),
        "full": (
            rf"(?P<s>{NUMBER}) µs (?P<l>{NUMBER}) to (?P<h>{NUMBER}) µs (?P<b>{NUMBER}) →"
            rf" (?P<a>{NUMBER}) µs {name_of}:"
        ),
        "markdown": (
            rf"(?P<s>{NUMBER}) µs \\?(?P<l>{NUMBER}) to (?P<h>{NUMBER}) µs (?P<b>{NUMBER}) →"
            rf" (?P<a>{NUMBER}) µs {name_of}:"
        ),
        "page": (
            rf"{name_of}: +(?P<s>{NUMBER}) µs (?P<l>{NUMBER}) µs (?P<h>{NUMBER}) µs (?P<b>{NUMBER})"
            rf" µs (?P<a>{NUMBER}) µs"
        ),
    }
    page = re.findall(
        r'(?s)<tr id="change-([a-z-]+)".*?</small></td>(.*?)</tr>', analysis.to_html()
    )
    for where, text in (
        texts(name) | {"page": "; ".join(f"{change}: {tags_left_out(row)}" for change, row in page)}
    ).items():
        for found in re.finditer(rows.get(where, "(?!)"), text):
            figures = {one: float(found[one].replace(",", "")) for one in "baslh"}
            assert figures["b"] - figures["s"] == pytest.approx(figures["a"], abs=1e-6), (
                where,
                found[0],
            )
            shown.setdefault(found["c"], {})[where] = [figures[one] for one in "basl"]
    answered = {
        row.text("change") for row in analysis.tables.whatif if row.text("answer") == "answered"
    }
    assert answered <= shown.keys()
    for change in answered:
        assert shown[change].keys() == rows.keys(), change
        assert len({tuple(one) for one in shown[change].values()}) == 1, shown[change]


def test_findings_are_told_in_the_unit_of_the_answer() -> None:
    """Of a pass of two engines every time is per pass; a figure that is all that a finding costs is
    that of its title.
    """
    analysis = held("two engines in turn")
    told = {one.rule: one for one in analysis.findings}
    assert {
        "idle-between-inferences",
        "launch-bound",
        "pageable-copy",
        "attention-not-fused",
        "reformat-at-input",
    } <= told.keys()
    units = {
        found
        for one in told.values()
        for found in re.findall(r"per (?:pass of 2 )?inferences?\b", one.message)
    }
    assert units == {f"per {analysis.summary.unit}"}
    for rule, pattern in (
        ("idle-between-inferences", rf"is idle for {TIME} per"),
        ("launch-bound", rf"next launch: {TIME} per"),
        ("reformat-at-input", rf": {TIME} per"),
        ("attention-not-fused", rf"of this engine: {TIME} less"),
    ):
        title = re.match(
            TIME, cost_words(told[rule].cost_ns or 0, told[rule].group, analysis.summary)
        )
        said = re.search(pattern, told[rule].message)
        assert title, rule
        assert said, told[rule].message
        ours, theirs = told_at(rule, title), told_at(rule, said)
        assert abs(ours.value - theirs.value) <= ours.off + theirs.off, (title[0], said[0])


def test_of_engines_that_run_unequally_often_a_time_says_whose_inference_it_is_of() -> None:
    analysis = held("a decode loop")
    found = [one for one in analysis.findings if one.rule == "reformat-at-output"]
    assert [re.findall(r"per inference of [\w.]+\.json", one.message) for one in found] == [
        ["per inference of generation.engine.json"],
        ["per inference of context.engine.json"],
    ]
    assert cost_words(1e6, "reformat", analysis.summary).endswith(" per inference of any engine")
    assert "of any engine" in costs_text(analysis.summary)
    assert cost_words(1e6, "reformat", held("one engine").summary).endswith(" per inference")


_BROKEN: dict[str, Callable[[str], str]] = {
    "another time": lambda text: re.sub(rf"{TIME} per", "9.99 ms per", text, count=1),
    "another range": lambda text: re.sub(
        rf"~{TIME} without nsys \({NUMBER} to", "~329 µs without nsys (320 to", text, count=1
    ),
}


@pytest.mark.parametrize("change", _BROKEN)
def test_a_figure_that_differs_is_found(change: str) -> None:
    analysis, text = held("one engine"), texts("one engine")["screen"]
    good, bad = (
        {one.label: one for one in in_text("screen", shown, analysis)}
        for shown in (text, _BROKEN[change](text))
    )
    assert good.keys() == bad.keys()
    assert any(
        abs(one.value - bad[label].value) > one.off + bad[label].off for label, one in good.items()
    )
