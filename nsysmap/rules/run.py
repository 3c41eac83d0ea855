"""Runs rules over the tables of an analysis: what they are given, and what they answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np

from nsysmap.advice.conditions import advice_to
from nsysmap.advice.program import Program, program_of
from nsysmap.core.changes import ABOUT_LAYERS
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import ROOFLINE, ROOFLINE_FROM_COUNTERS
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import MISSING, Data, Spec, Table, Text
from nsysmap.core.trace_schema import STEADY_STATE
from nsysmap.network.titles import called
from nsysmap.rules.engines_that_ran import OfThisRun, Unsure, of_this_run
from nsysmap.rules.finding import Finding, Outcome, Skip
from nsysmap.rules.fold import PlacedFinding, WindowLengths, alike_on_gpus, fold
from nsysmap.rules.message import Each, Shown, fill
from nsysmap.rules.only_if import may_find
from nsysmap.rules.rule_file import (
    OPTIONAL,
    PLACE,
    Requirement,
    Rule,
    check_answer,
    check_requirement,
)
from nsysmap.rules.sandbox.given_tables import given_table
from nsysmap.rules.sandbox.limits import LimitError, Query, QueryError, SqlAnswer
from nsysmap.rules.sandbox.strangers import AnySandbox, Strangers
from nsysmap.text.progress import PartDone
from nsysmap.text.terminal import escaped
from nsysmap.trace.inferences.steady import called_repetitions, steady_windows

if TYPE_CHECKING:
    import pyarrow

_SPECS = {spec.name: spec for spec in RULE_TABLES}

TIME_LIMIT_S = 10.0
"""How long one rule may run unless said otherwise."""

_LISTED = ", "  # between names of layers that a rule puts together
_BEYOND = 2**62  # ns: no time, and no number that every form of the report can hold

MOST_FINDINGS = 200
"""Findings kept of one rule: the most costly."""


_CORRECT = "correct the SQL, or leave this rule out"
_WHY_EMPTY = {
    "steady_state": "no complete {:inference} after the warm-up was found",
    "kernels": "the trace shows no kernels",
    "whatif": "the timeline could not be replayed",
    "memcpys": "the trace shows no memory copies",
    "memsets": "the trace shows no memory fills",
    "api_calls": "the host's CUDA calls were not traced",
    "layers": "neither an engine file nor the trace names any layer",
    "engines_with_tensors": (
        "there is no engine file that shows its layers' tensors (none, names only, or one opaque"
        " region)"
    ),
    "layer_times": "no kernel of a steady-state {:inference} has a layer, and there is no profile",
    "engine_fits": "there is no engine file to compare with the trace",
    "roofline": "no layer is known that has a time",
    "work": (
        "there is no engine file that shows its layers' tensors (none, names only, or one opaque"
        " region)"
    ),
    "tensors": (
        "there is no engine file that shows its layers' tensors (none, names only, or one opaque"
        " region)"
    ),
    "inferences.gpu_span_ns": "the trace shows no GPU work of {:an inference}",
    "inferences.enqueue_ns": "no ExecutionContext:: range shows where the enqueue begins and ends",
    "roofline.bound_ns": (
        "no layer's limit is known: that takes its tensors and the GPU's peak rates"
    ),
    "work.channels_in": "no convolution or product with known dimensions is in the engine files",
    "devices.sm_count": "the trace does not say how many SMs the GPU has",
}
"""Why a table has no rows, or a column of one no value."""

_OF_ENGINES = frozenset(
    {
        *("layers", "engines", "engines_with_tensors", "engine_fits", "roofline", "work"),
        *("tensors", "layer_times", "enqueue_ns", "found_by"),
    }
)
"""Tables, and a column, about the layers of engines: nothing is in them where TensorRT did not
run.
"""


_NOT_SAMPLED = "no hardware counters were sampled (nsys profile --gpu-metrics-devices=all)"
_COUNTED = frozenset(
    {"gpu_sampling", "kernel_counters", "kernel_ends", "device_counters", "copy_counters"}
)
"""Tables that hold nothing without hardware counters."""


def run_rules(
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    *,
    time_limit_s: float = TIME_LIMIT_S,
    sandbox: AnySandbox | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Outcome, ...]:
    """The answer of each rule for these tables (see schema.RULE_TABLES; a missing table has no
    rows), in the order of the rules.

    A rule that runs into its time or memory limit is skipped for that reason.  Raises NsysmapError
    if its SQL fails on these rows.
    """
    held = _Given(tables)
    if sandbox is None:
        with Strangers() as opened:
            return _answers(rules, held, time_limit_s, opened, progress)
    return _answers(rules, held, time_limit_s, sandbox, progress)


class _Given(Mapping[str, Table]):
    """The tables that rules may read: each is made when a rule, or what is said of findings, reads
    it.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._held: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._held:
            found = self._tables[name] if name in self._tables else Table.empty(_SPECS[name])
            if name == STEADY_STATE.name and not len(found):
                found = steady_windows(self["inferences"])
            self._held[name] = found
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_SPECS)

    def __len__(self) -> int:
        return len(_SPECS)


def _answers(
    rules: Sequence[Rule],
    given: Mapping[str, Table],
    time_limit_s: float,
    sandbox: AnySandbox,
    progress: Callable[[str], None] | None,
) -> tuple[Outcome, ...]:
    told = of_this_run(given)
    tables = told.tables
    program = program_of(tables)
    repeats = called_repetitions(tables["inferences"], tensorrt=program.shows_engine)
    each = each_of(tables, repeats=repeats)
    reasons = {rule.name: _missing(rule, told, each) for rule in rules}
    barren = {
        rule.name
        for rule in rules
        if reasons[rule.name] is None and not may_find(rule.only_if, tables, rule.params)
    }
    arrow = _arrow(
        [
            query
            for rule in rules
            if reasons[rule.name] is None
            for query in rule.queries
            if query is not rule.query or rule.name not in barren
        ],
        tables,
    )
    runner = _Runner(sandbox, arrow, time_limit_s, told, each)
    has_engine = bool((tables["layers"].ints("engine") != MISSING).any())
    about = _About(
        _window(tables),
        program,
        given["layers"],
        has_engine,
        _what_if(tables),
        told.unsure,
        each,
        titles_by_name(given["layers"]),
    )
    outcomes, placed = [], {}
    for number, rule in enumerate(rules, start=1):
        if progress is not None:
            step = "running the rules"
            progress(PartDone(step, f"{step}: {number} of {len(rules)}", number, len(rules)))
        outcome = Outcome(
            rule.name, rule.group, rule.severity, skip=reasons[rule.name], summary=rule.summary
        )
        if outcome.skipped is None:
            try:
                reason = _unmet(rule, "requires", runner)
                if reason is None:
                    placed[rule.name], more = (
                        ([], 0) if rule.name in barren else _answer(rule, about, runner)
                    )
                    outcome = replace(outcome, more=more)
                    reason = None if placed[rule.name] else _unmet(rule, "clean_if", runner)
                outcome = replace(outcome, skip=reason)
            except LimitError as error:
                outcome = replace(outcome, skip=Skip(f"it {error}"))
        outcomes.append(outcome)
    supersedes, takes_back = (
        {rule.name: rule.supersedes for rule in rules},
        {rule.name: rule.takes_back for rule in rules},
    )
    return fold(outcomes, placed, supersedes, about.window.windows, takes_back)


@dataclass(frozen=True)
class _Runner:
    """Runs the statements of rules, each once for the same parameters."""

    sandbox: AnySandbox
    arrow: Mapping[str, pyarrow.Table]
    time_limit_s: float
    told: OfThisRun
    each: Each
    known: dict[tuple[object, ...], SqlAnswer] = field(default_factory=dict)

    def run(self, rule: Rule, query: Query, part: str, *, max_rows: int) -> SqlAnswer:
        """The answer of this statement of the rule; NsysmapError, with the part of the rule's file,
        where it fails on these rows.
        """
        used = {name: rule.params[name] for name in sorted(query.parameters)}
        key = (query, max_rows, *((name, type(value), value) for name, value in used.items()))
        if key not in self.known:
            try:
                self.known[key] = self.sandbox.run(
                    query, self.arrow, used, time_limit_s=self.time_limit_s, max_rows=max_rows
                )
            except QueryError as error:
                raise NsysmapError(f"{rule.source}: {part}", str(error), _CORRECT) from None
        return self.known[key]


def _missing(rule: Rule, told: OfThisRun, each: Each) -> Skip | None:
    for need in rule.needs:
        name, _, column = need.partition(".")
        table = told.tables[name]
        if not len(table) and name in told.left_out:
            return Skip(escaped(told.why), name, about_engines=name in _OF_ENGINES)
        if not len(table):
            why = _not_counted(told.tables, name) if name in _COUNTED else _WHY_EMPTY.get(name)
            return Skip(each.words_in(why or ""), name, about_engines=name in _OF_ENGINES)
        if column and not _has_value(table.column(column)):
            counted = name in _COUNTED or (
                name == ROOFLINE.name and column in ROOFLINE_FROM_COUNTERS
            )
            why = _not_counted(told.tables, name) if counted else _WHY_EMPTY.get(need)
            return Skip(
                each.words_in(why or ""),
                need,
                about_engines=not _OF_ENGINES.isdisjoint({name, column}),
            )
    return None


def _not_counted(tables: Mapping[str, Table], name: str) -> str | None:
    """Why that table has no value from hardware counters; None if samples were used and just did
    not determine it.
    """
    sampling = tables["gpu_sampling"]
    if not len(sampling):
        return _NOT_SAMPLED
    if name == "copy_counters":
        crossing = tables["memcpys"].text("kind").where(("HtoD", "DtoH").__contains__).any()
        return (
            "the PCIe link was not sampled"
            if crossing
            else "the trace shows no copies between host and device"
        )
    reasons = sampling.text("reason").list()
    return escaped(reasons[0] or "") if all(reasons) else None


def _has_value(data: Data) -> bool:
    if isinstance(data, Text):
        return bool((data.codes >= 0).any())
    if data.dtype == np.int64:
        return bool((data != MISSING).any())
    return bool((~np.isnan(data)).any()) if data.dtype == np.float64 else True


def _arrow(queries: Sequence[Query], tables: Mapping[str, Table]) -> dict[str, pyarrow.Table]:
    """The tables that these statements read, with the columns that any of them names: most have
    many more.
    """
    result = {}
    for name in sorted({name for query in queries for name in query.tables}):
        readers = [query.columns for query in queries if name in query.tables]
        table = tables[name]
        if None not in readers:
            named = frozenset[str]().union(*(columns for columns in readers if columns is not None))
            columns = (
                tuple(column for column in table.spec.columns if column.name in named)
                or table.spec.columns[:1]
            )
            table = Table(
                Spec(name, "", columns),
                {column.name: table.columns[column.name] for column in columns},
            )
        result[name] = given_table(table)
    return result


def _unmet(rule: Rule, key: Literal["requires", "clean_if"], runner: _Runner) -> Skip | None:
    """Why the rule cannot decide; None if it can."""
    requirements: Sequence[Requirement] = rule.requires if key == "requires" else rule.clean_if
    for place, requirement in enumerate(requirements, start=1):
        rows = requirement.rows
        if rows and may_find([rows], runner.told.tables, rule.params):
            continue
        values: dict[str, Shown] = {}
        if requirement.query is not None:
            answer = runner.run(rule, requirement.query, f"{key} {place}: sql", max_rows=1)
            if not rule.checked:
                check_requirement(requirement, f"{rule.source}: {key} {place}", answer)
            row = answer.rows[0] if answer.rows else [None] * len(answer.columns)
            values = dict(zip(answer.columns, map(_value, row), strict=True))
            if values[answer.columns[0]]:
                continue
        reason = fill(requirement.reason, values, longest=400, each=runner.each)
        if not runner.told.left_out.isdisjoint(requirement.tables):
            reason = f"{reason} ({escaped(runner.told.why)})"
        return Skip(reason, about_engines=not _OF_ENGINES.isdisjoint(requirement.names))
    return None


def _answer(rule: Rule, about: _About, runner: _Runner) -> tuple[list[PlacedFinding], int]:
    """The most costly findings of the rule, and how many there are beyond them."""
    ordered = replace(
        rule.query,
        sql=(
            f"SELECT * FROM ({rule.query.sql}\n) ORDER BY cost_ns DESC NULLS LAST, start_ns, end_ns"
        ),
    )
    answer = runner.run(rule, ordered, "sql", max_rows=MOST_FINDINGS + 1)
    if not rule.checked:
        check_answer(rule, answer)
    more = 0
    if len(answer.rows) > MOST_FINDINGS:
        counted = replace(rule.query, sql=f"SELECT count(*) FROM ({rule.query.sql}\n)")
        found = runner.run(rule, counted, "sql", max_rows=1).rows[0][0]
        assert isinstance(found, int)
        more = found - MOST_FINDINGS
    rows = (
        dict(zip(answer.columns, map(_value, row), strict=True))
        for row in answer.rows[:MOST_FINDINGS]
    )
    return alike_on_gpus([_placed(rule, row, about) for row in rows], about.window.windows), more


def _placed(rule: Rule, row: dict[str, Shown], about: _About) -> PlacedFinding:
    window = about.window
    start, end = (
        _nanoseconds(row[name], fallback)
        for name, fallback in (("start_ns", window.start_ns), ("end_ns", window.end_ns))
    )
    cost = None if row["cost_ns"] is None else _nanoseconds(row["cost_ns"], 0)
    if (
        end < start
        or (cost or 0) < 0
        or not -_BEYOND < start <= end < _BEYOND
        or (cost or 0) >= _BEYOND
    ):
        raise NsysmapError(
            f"{rule.source}: sql",
            f"returned a finding from {start} to {end} ns with a cost of {cost} ns",
            _CORRECT,
        )
    if "share_of_window" not in row:
        of = window.windows.of({row.get("device")}) or window.end_ns - window.start_ns
        # a cost outside cannot be more than all of it
        row["share_of_window"] = min(cost / of, 1.0) if of and cost is not None else None
    share, layer_index, layer, places = (row.get(name) for name in OPTIONAL)
    if isinstance(layer_index, int) and not -1 < layer_index < _BEYOND:
        raise NsysmapError(
            f"{rule.source}: sql", f"returned a finding on layer {layer_index}", _CORRECT
        )
    if isinstance(unit := row.get("unit"), str):  # words of the rule's own, as an inference
        row["unit"] = about.each.words_in(unit)
    words = None if places is None else tuple(str(places).split())
    engine = (
        about.engine_of(words, layer_index, layer)
        if STEADY_STATE.name not in rule.query.tables
        else None
    )
    command = _command(rule, words, about)
    finding = Finding(
        rule=rule.name,
        group=rule.group,
        severity=rule.severity,
        message=fill(rule.message, about.in_titles(row), each=about.each, engine=engine)
        + about.doubt(layer_index, layer),
        start_ns=start,
        end_ns=end,
        cost_ns=cost,
        share_of_window=None if share is None else float(share),
        layer_index=None if layer_index is None else int(layer_index),
        layer=None if layer is None else str(layer),
        evidence={
            name: escaped(value) if isinstance(value, str) else value
            for name, value in row.items()
            if name not in (*PLACE, *OPTIONAL)
        },
        advice=about.each.words_in(advice_to(about.program, rule.advice, row)),
        about=words or (),
        what_if=rule.what_if if command is not None else None,
        command=command,
        layer_title=None if layer is None else about.titles.get(str(layer), str(layer)),
    )
    return PlacedFinding(finding, None if words is None else frozenset(words))


def _command(rule: Rule, places: Sequence[str] | None, about: _About) -> str | None:
    """The what-if command that works out the saving of a finding on these places; REPORT and ENGINE
    stand for the reader's files.
    """
    if rule.what_if not in about.answered:
        return None
    words = [
        "nsysmap what-if REPORT",
        *(["ENGINE"] if about.has_engine else []),
        f"--change {rule.what_if}",
    ]
    if rule.what_if in ABOUT_LAYERS:
        names = about.layers.text("name")
        rows = [
            int(place)
            for place in places or ()
            if place.isdecimal() and int(place) < len(about.layers)
        ]
        if not rows:
            return None
        words += [f"--layer {shlex.quote(escaped(str(names[row])))}" for row in rows]
    return " ".join(words)


def _nanoseconds(value: Shown, fallback: int) -> int:
    """A NULL place is the whole trace, a NULL cost is nothing."""
    if value is None:
        return fallback
    return round(float(value)) if isinstance(value, float) else int(value)


def _value(value: object) -> Shown:
    """A value from the engine; floats to nine digits, as sums in another order differ in the last
    ones.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    assert isinstance(value, float | Decimal)
    number = float(value)
    return float(f"{number:.9g}") if np.isfinite(number) else None


@dataclass(frozen=True)
class _Window:
    """The window for findings without a place, and for shares."""

    start_ns: int
    end_ns: int
    windows: WindowLengths


@dataclass(frozen=True)
class _About:
    """What findings need to know about the analysis beyond the rows of their rule."""

    window: _Window
    program: Program
    layers: Table
    has_engine: bool  # an engine file of this run was given
    answered: frozenset[str]  # changes of what-if
    unsure: Unsure
    each: Each
    titles: Mapping[str, str]  # what layers are called, by name

    def in_titles(self, row: Mapping[str, Shown]) -> dict[str, Shown]:
        """The row with names of layers, and lists of them, as what these are called; columns that
        end in _name keep TensorRT's names.
        """
        return {
            name: (
                self._titled(value)
                if isinstance(value, str) and not name.endswith("_name")
                else value
            )
            for name, value in row.items()
        }

    def _titled(self, text: str) -> str:
        if text in self.titles:
            return self.titles[text]
        several = text.split(_LISTED)
        return (
            _LISTED.join(self.titles[one] for one in several)
            if len(several) > 1 and all(one in self.titles for one in several)
            else text
        )

    def doubt(self, layer_index: Shown, layer: Shown) -> str:
        """The caveat for a finding on a layer of an engine file that may not have run."""
        source = (
            self.unsure.file_of(layer_index, layer)
            if isinstance(layer_index, int) and isinstance(layer, str)
            else None
        )
        return (
            "" if source is None else f" Whether {escaped(source)} ran here cannot be determined."
        )

    def engine_of(
        self, places: Sequence[str] | None, layer_index: Shown, layer: Shown
    ) -> int | None:
        """The engine of these layers (ids), or of the layer; None if that is not one."""
        rows = [
            int(place)
            for place in places or ()
            if place.isdecimal() and int(place) < len(self.layers)
        ]
        if not rows:
            rows = np.flatnonzero(
                (self.layers.ints("layer_index") == layer_index)
                & self.layers.text("name").equals(str(layer))
            ).tolist()
        found = {int(one) for one in self.layers.ints("engine")[rows]} - {MISSING}
        return found.pop() if len(found) == 1 else None


def titles_by_name(layers: Table) -> dict[str, str]:
    """The layers' titles, by the engine's name; layers of one name with different titles keep the
    name.
    """
    found: dict[str, set[str]] = {}
    for row in layers:
        found.setdefault(row.text("name"), set()).add(called(row))
    return {name: titles.pop() for name, titles in found.items() if len(titles) == 1}


def each_of(tables: Mapping[str, Table], *, repeats: bool) -> Each:
    """What the answer's unit is made of; ``repeats`` means repetitions."""
    told = {
        row.integer("inferences") for row in tables["whatif"] if row.maybe_integer("inferences")
    }
    found, names = tables["inferences"], tables["engines"].text("source").list()
    of = found.ints("engine")[found.bools("complete") & ~found.bools("warmup")]
    ran = {
        engine: int(np.count_nonzero(of == engine)) for engine in np.unique(of[of >= 0]).tolist()
    }
    sources = {engine: escaped(names[engine] or "") for engine in ran if engine < len(names)}
    return Each(told.pop() if len(told) == 1 else 1, repeats, len(of), ran, sources)


def _window(tables: Mapping[str, Table]) -> _Window:
    """The steady part; the whole trace if there is none."""
    part = tables[STEADY_STATE.name]
    if len(part):
        lengths = dict(
            zip(part.ints("device").tolist(), part.ints("window_ns").tolist(), strict=True)
        )
        return _Window(
            int(part.ints("start_ns").min()), int(part.ints("end_ns").max()), WindowLengths(lengths)
        )
    work = [
        tables[name]
        for name in ("kernels", "memcpys", "memsets", "cuda_graph_traces", "api_calls")
        if len(tables[name])
    ]
    start = min((int(table.ints("start_ns").min()) for table in work), default=0)
    end = max((int(table.ints("end_ns").max()) for table in work), default=start)
    return _Window(start, end, WindowLengths({}))


def _what_if(tables: Mapping[str, Table]) -> frozenset[str]:
    """The changes that what-if answers of this program; that one does not apply may still hold for
    layers that are named.
    """
    answers = {row.text("change"): row.text("answer") for row in tables["whatif"]}
    if "answered" not in answers.values():
        return frozenset()
    return frozenset(
        change
        for change, answer in answers.items()
        if answer == "answered" or (answer == "does-not-apply" and change in ABOUT_LAYERS)
    )
