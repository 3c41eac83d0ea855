"""Rules run over an analysis: which ones there are, what they are told, and what they answered."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.base.errors import NsysmapError
from nsysmap.base.schema import RULE_TABLES
from nsysmap.base.table import MISSING, Data, Spec, Table, Text
from nsysmap.base.terminal import escaped
from nsysmap.base.trace_schema import STEADY_STATE
from nsysmap.rules.finding import Finding, Outcome, by_cost
from nsysmap.rules.message import Shown, fill
from nsysmap.rules.rule_file import OPTIONAL, PLACE, Rule, check_answer, check_requirement, read_rule, typed
from nsysmap.rules.sandbox import Answer, LimitError, Query, QueryError, Sandbox, Value
from nsysmap.trace.steady import steady_windows

if TYPE_CHECKING:
    import pyarrow

Params = Mapping[str, Mapping[str, Value]]

TIME_LIMIT_S = 10.0
"""How long one rule may run unless said otherwise."""

_BEYOND = 2**62  # ns: no time, and no number that every form of the report can hold

MOST_FINDINGS = 200
"""Findings kept of one rule: the most costly."""

_CORRECT = "correct the SQL, or leave this rule out"
_WHY_EMPTY = {
    "steady_state": "no complete inference after the warm-up was found",
    "kernels": "the trace shows no kernels",
    "whatif": "the timeline could not be replayed",
    "memcpys": "the trace shows no memory copies",
    "memsets": "the trace shows no memory fills",
    "api_calls": "the host's CUDA calls were not traced",
    "layers": "neither an engine file nor the trace names any layer",
    "engines_with_tensors": "there is no engine file that shows its layers' tensors (none, names only, or one opaque region)",
    "layer_times": "no kernel of a steady inference has a layer, and there is no profile",
}


def builtin_rules_dir() -> Path:
    """The folder of the rules that come with nsysmap: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "rule_files"
    return installed if installed.is_dir() else package.parent / "rules"


def load_rules(directories: Sequence[Path], *, check_own: bool = True) -> tuple[Rule, ...]:
    """Every rule in these folders, by folder and name; NsysmapError at the first file that is broken, or where two have one name.

    Unless ``check_own``, those that come with nsysmap are taken as sound until they run (see rule_file.read_rule) and have no cases.
    """
    rules: dict[str, Rule] = {}
    own = None if check_own else builtin_rules_dir()
    with ExitStack() as opened:
        sandbox = None
        for directory in directories:
            if not directory.is_dir():
                raise NsysmapError(str(directory), "is not a folder", "give a folder of rule files (NAME.yaml)")
            paths = _rule_paths(directory)
            if not paths:
                raise NsysmapError(str(directory), "holds no rule files", "a rule file is named NAME.yaml")
            if sandbox is None and directory != own:
                sandbox = opened.enter_context(Sandbox(RULE_TABLES))
            for path in paths:
                if path.suffix == ".yml":
                    raise NsysmapError(str(path), "is named .yml", f"name it {path.stem}.yaml")
                if not path.is_file():
                    raise NsysmapError(str(path), "is no plain file", "give a folder of rule files (NAME.yaml)")
                rule = read_rule(path, None if directory == own else sandbox)
                if rule.name in rules:
                    raise NsysmapError(str(path), f"is named as {rules[rule.name].source}", "give one of them another name")
                rules[rule.name] = rule
    return tuple(rules.values())


def _rule_paths(directory: Path) -> list[Path]:
    """The rule files of a folder and of the folders in it, one a group; deeper ones are not looked into."""
    found = [path for path in directory.iterdir() if not path.name.startswith(".")]
    inside = [path for folder in found if folder.is_dir() for path in folder.iterdir() if not path.name.startswith(".")]
    return sorted((path for path in (*found, *inside) if path.suffix in (".yaml", ".yml")), key=lambda path: (path.name, path))


def load_params(place: Path) -> dict[str, dict[str, Value]]:
    """Rule parameters set in a .toml file, or in the nsysmap.toml and pyproject.toml of a folder (the first goes before the second)."""
    params: dict[str, dict[str, Value]] = {}
    for path in (place / "pyproject.toml", place / "nsysmap.toml") if place.is_dir() else (place,):
        if place.is_dir() and not path.is_file():
            continue
        try:
            content: object = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise NsysmapError(str(path), f"cannot be read: {error.strerror}", "check its name and permissions") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise NsysmapError(str(path), f"is not TOML: {error}", "correct it there") from None
        section = "tool.nsysmap.rules" if path.name == "pyproject.toml" else "rules"
        for key in section.split("."):
            content = content.get(key, {}) if isinstance(content, dict) else content
        if not isinstance(content, dict):
            raise NsysmapError(f"{path}: {section}", "is not a table", f"write [{section}.RULE], then NAME = VALUE")
        for rule, values in content.items():
            if not isinstance(values, dict) or not all(isinstance(value, bool | int | float | str) for value in values.values()):
                raise NsysmapError(f"{path}: {section}.{rule}", "must hold parameters", f"write [{section}.{rule}], then NAME = VALUE")
            params.setdefault(rule, {}).update(values)
    return params


def parse_params(texts: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Rule parameters as given on a command line: RULE.NAME=VALUE."""
    params: dict[str, dict[str, Value]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        rule, dot, name = key.strip().partition(".")
        if not (equals and dot and rule and name):
            raise NsysmapError(f"--param {text}", "is not RULE.NAME=VALUE", "write it like launch-bound.min_share=0.1")
        params.setdefault(rule, {})[name] = value.strip()
    return params


def with_params(rules: Sequence[Rule], params: Params) -> tuple[Rule, ...]:
    """The rules with these values in place of their defaults; NsysmapError where there is no such rule or parameter."""
    by_name = {rule.name: rule for rule in rules}
    for name, values in params.items():
        if name not in by_name:
            raise NsysmapError(f"parameter of {name}", "there is no such rule", "see `nsysmap rules list`")
        rule = by_name[name]
        for key in values:
            if key not in rule.params:
                raise NsysmapError(
                    f"parameter {name}.{key}", "there is no such parameter", f"{name} has {', '.join(rule.params) or 'none'}"
                )
        changed = {key: typed(value, rule.params[key], f"parameter {name}.{key}") for key, value in values.items()}
        by_name[name] = replace(rule, params={**rule.params, **changed})
    return tuple(by_name.values())


def run_rules(
    rules: Sequence[Rule],
    tables: Mapping[str, Table],
    *,
    params: Params | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    sandbox: Sandbox | None = None,
) -> tuple[Outcome, ...]:
    """What each rule answers to these tables (see schema.RULE_TABLES; one that is left out has no rows), in the order of the rules.

    A rule that runs into its time or memory limit is skipped for that reason; NsysmapError where its SQL fails on these rows.
    """
    rules = with_params(rules, params or {})
    held = {spec.name: tables.get(spec.name) or Table.empty(spec) for spec in RULE_TABLES}
    if not len(held[STEADY_STATE.name]):
        held[STEADY_STATE.name] = steady_windows(held["inferences"])
    if sandbox is None:
        with Sandbox(RULE_TABLES) as opened:
            return _answers(rules, held, time_limit_s, opened)
    return _answers(rules, held, time_limit_s, sandbox)


def _answers(rules: Sequence[Rule], tables: Mapping[str, Table], time_limit_s: float, sandbox: Sandbox) -> tuple[Outcome, ...]:
    reasons = {rule.name: _missing(rule, tables) for rule in rules}
    arrow = _arrow([query for rule in rules if reasons[rule.name] is None for query in rule.queries], tables)
    window, runner = _window(tables), _Runner(sandbox, arrow, time_limit_s)
    outcomes = []
    for rule in rules:
        outcome = Outcome(rule.name, rule.group, rule.severity, skipped=reasons[rule.name])
        if outcome.skipped is None:
            try:
                reason = _unmet(rule, runner)
                outcome = _answer(rule, window, runner) if reason is None else replace(outcome, skipped=reason)
            except LimitError as error:
                outcome = replace(outcome, skipped=f"it {error}")
        outcomes.append(outcome)
    return tuple(outcomes)


@dataclass(frozen=True)
class _Runner:
    """Runs the statements of rules, each once for the same parameters."""

    sandbox: Sandbox
    arrow: Mapping[str, pyarrow.Table]
    time_limit_s: float
    known: dict[tuple[object, ...], Answer] = field(default_factory=dict)

    def run(self, rule: Rule, query: Query, part: str, *, max_rows: int) -> Answer:
        """The answer of this statement of the rule; NsysmapError, with the part of the rule's file, where it fails on these rows."""
        used = {name: rule.params[name] for name in sorted(query.parameters)}
        key = (query, max_rows, *((name, type(value), value) for name, value in used.items()))
        if key not in self.known:
            try:
                self.known[key] = self.sandbox.run(query, self.arrow, used, time_limit_s=self.time_limit_s, max_rows=max_rows)
            except QueryError as error:
                raise NsysmapError(f"{rule.source}: {part}", str(error), _CORRECT) from None
        return self.known[key]


def _missing(rule: Rule, tables: Mapping[str, Table]) -> str | None:
    for need in rule.needs:
        name, _, column = need.partition(".")
        table = tables[name]
        if not len(table):
            return f"no rows in {name}" + (f": {_WHY_EMPTY[name]}" if name in _WHY_EMPTY else "")
        if column and not _has_value(table.columns[column]):
            return f"no value in {need}"
    return None


def _has_value(data: Data) -> bool:
    if isinstance(data, Text):
        return bool((data.codes >= 0).any())
    if data.dtype == np.int64:
        return bool((data != MISSING).any())
    return bool((~np.isnan(data)).any()) if data.dtype == np.float64 else True


def _arrow(queries: Sequence[Query], tables: Mapping[str, Table]) -> dict[str, pyarrow.Table]:
    """The tables that these statements read, with the columns that any of them names: most have many more."""
    result = {}
    for name in sorted({name for query in queries for name in query.tables}):
        readers = [query.columns for query in queries if name in query.tables]
        table = tables[name]
        if None not in readers:
            named = frozenset[str]().union(*(columns for columns in readers if columns is not None))
            columns = tuple(column for column in table.spec.columns if column.name in named) or table.spec.columns[:1]
            table = Table(Spec(name, "", columns), {column.name: table.columns[column.name] for column in columns})
        result[name] = table.arrow()
    return result


def _unmet(rule: Rule, runner: _Runner) -> str | None:
    """Why the rule cannot tell; None where it can."""
    for place, requirement in enumerate(rule.requires):
        answer = runner.run(rule, requirement.query, f"requires {place + 1}: sql", max_rows=1)
        if not rule.checked:
            check_requirement(rule, place, answer)
        values = [_value(value) for value in answer.rows[0]] if answer.rows else [None] * len(answer.columns)
        if not values[0]:
            return fill(requirement.reason, dict(zip(answer.columns, values, strict=True)), longest=400)
    return None


def _answer(rule: Rule, window: _Window, runner: _Runner) -> Outcome:
    ordered = replace(rule.query, sql=f"SELECT * FROM ({rule.query.sql}\n) ORDER BY cost_ns DESC NULLS LAST, start_ns, end_ns")
    answer = runner.run(rule, ordered, "sql", max_rows=MOST_FINDINGS + 1)
    if not rule.checked:
        check_answer(rule, answer)
    more = 0
    if len(answer.rows) > MOST_FINDINGS:
        counted = replace(rule.query, sql=f"SELECT count(*) FROM ({rule.query.sql}\n)")
        more = int(str(runner.run(rule, counted, "sql", max_rows=1).rows[0][0])) - MOST_FINDINGS
    rows = (dict(zip(answer.columns, map(_value, row), strict=True)) for row in answer.rows[:MOST_FINDINGS])
    outcome = Outcome(rule.name, rule.group, rule.severity, tuple(_finding(rule, row, window) for row in rows), None, more)
    return replace(outcome, findings=by_cost([outcome]))


def _finding(rule: Rule, row: dict[str, Shown], window: _Window) -> Finding:
    start, end, cost = (
        _nanoseconds(row[name], fallback) for name, fallback in zip(PLACE, (window.start_ns, window.end_ns, 0), strict=True)
    )
    if end < start or cost < 0 or not -_BEYOND < start <= end < _BEYOND or cost >= _BEYOND:
        raise NsysmapError(f"{rule.source}: sql", f"returned a finding from {start} to {end} ns with a cost of {cost} ns", _CORRECT)
    if "share_of_window" not in row:
        device = row.get("device")
        of = window.by_device.get(device) if isinstance(device, int) else None
        of = of or window.longest_ns
        row["share_of_window"] = min(cost / of, 1.0) if of else None  # a cost outside the steady part cannot be more than all of it
    share, layer_index, layer = (row.get(name) for name in OPTIONAL)
    if isinstance(layer_index, int) and not -1 < layer_index < _BEYOND:
        raise NsysmapError(f"{rule.source}: sql", f"returned a finding on layer {layer_index}", _CORRECT)
    return Finding(
        rule=rule.name,
        group=rule.group,
        severity=rule.severity,
        message=fill(rule.message, row),
        start_ns=start,
        end_ns=end,
        cost_ns=cost,
        share_of_window=None if share is None else float(share),
        layer_index=None if layer_index is None else int(layer_index),
        layer=None if layer is None else str(layer),
        evidence={
            name: escaped(value) if isinstance(value, str) else value for name, value in row.items() if name not in (*PLACE, *OPTIONAL)
        },
        advice=rule.advice,
    )


def _nanoseconds(value: Shown, fallback: int) -> int:
    """A NULL place is the whole trace, a NULL cost is nothing."""
    if value is None:
        return fallback
    return round(float(value)) if isinstance(value, float) else int(value)


def _value(value: object) -> Shown:
    """A value from the engine; floats to nine digits, as sums in another order differ in the last ones."""
    if value is None or isinstance(value, bool | int | str):
        return value
    number = float(str(value))  # float and Decimal
    return float(f"{number:.9g}") if np.isfinite(number) else None


@dataclass(frozen=True)
class _Window:
    """What findings without a place get, and what a share is of."""

    start_ns: int
    end_ns: int
    longest_ns: int
    by_device: Mapping[int, int]


def _window(tables: Mapping[str, Table]) -> _Window:
    """The steady part; the whole trace where there is none."""
    part = tables[STEADY_STATE.name]
    if len(part):
        lengths = dict(zip(part.ints("device").tolist(), part.ints("window_ns").tolist(), strict=True))
        return _Window(int(part.ints("start_ns").min()), int(part.ints("end_ns").max()), int(part.ints("window_ns").max()), lengths)
    work = [tables[name] for name in ("kernels", "memcpys", "memsets", "cuda_graph_traces", "api_calls") if len(tables[name])]
    start = min((int(table.ints("start_ns").min()) for table in work), default=0)
    end = max((int(table.ints("end_ns").max()) for table in work), default=start)
    return _Window(start, end, end - start, {})
