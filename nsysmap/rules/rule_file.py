"""Reads one rule's YAML file and checks it as far as possible without data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast, get_args

from nsysmap.advice.conditions import AdviceParagraph, is_condition
from nsysmap.core.changes import CHANGES
from nsysmap.core.errors import NsysmapError
from nsysmap.core.note import Level
from nsysmap.core.records import dataclass
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import Kind
from nsysmap.rules.message import check_template
from nsysmap.rules.only_if import Alternatives, read_alternatives
from nsysmap.rules.plain_yaml import plain_yaml
from nsysmap.rules.ready_rules import ReadyRule, own_values
from nsysmap.rules.sandbox.limits import Query, QueryError, SqlAnswer, Value, own_query
from nsysmap.rules.sandbox.strangers import AnySandbox

Group = Literal[
    "capture",
    "launch",
    "host",
    "copy",
    "fusion",
    "reformat",
    "precision",
    "mapping",
    "hotspot",
    "counters",
]
GROUPS: tuple[Group, ...] = get_args(Group)

PLACE = ("start_ns", "end_ns", "cost_ns")
"""Columns that every rule's SQL returns."""

OPTIONAL: Mapping[str, Kind] = {
    "share_of_window": "float",
    "layer_index": "int",
    "layer": "text",
    "about": "text",
}
"""Columns that mean something where a rule's SQL returns them; every other column is evidence."""

_TEXTS = ("name", "group", "severity", "summary", "why", "sql", "message")
_KEYS = (
    *_TEXTS,
    "advice",
    "needs",
    "requires",
    "clean_if",
    "only_if",
    "supersedes",
    "takes_back",
    "what_if",
    "seen",
    "params",
    "cases",
)
_MOST_SHOWN = 60  # characters of a wrong value in an error
_BEYOND = 2**63  # what no integer column holds
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SPECS = {spec.name: spec for spec in RULE_TABLES}
_VALUES: Mapping[type, Kind] = {
    bool: "bool",
    int: "int",
    float: "float",
    Decimal: "float",
    str: "text",
}
_ONE_SELECT = "a rule is one SELECT over the tables of docs/rules/tables.md"


@dataclass(frozen=True)
class Requirement:
    """What a rule needs in order to decide: one of these rows exists, or the first column of the
    query's first row is true.
    """

    rows: Alternatives
    query: Query | None
    columns: tuple[str, ...]
    reason: str  # template over the columns of that row

    @property
    def tables(self) -> frozenset[str]:
        """The tables that it reads."""
        return frozenset(
            {wanted.table for wanted in self.rows} | (self.query.tables if self.query else set())
        )

    @property
    def names(self) -> frozenset[str]:
        """The names of tables and columns that it reads."""
        tested = {test.column for wanted in self.rows for test in wanted.tests}
        return self.tables | tested | ((self.query and self.query.columns) or frozenset())


@dataclass(frozen=True)
class Case:
    """Rows and what the rule must answer to them."""

    name: str
    given: Mapping[str, Sequence[Mapping[str, object]]]
    params: Mapping[str, Value]
    finds: tuple[Mapping[str, object], ...]
    skips: str | None  # part of the reason; none if the rule must answer


@dataclass(frozen=True)
class Rule:
    """One kind of finding: how to detect it, what it means, what to do."""

    name: str
    group: Group
    severity: Level
    summary: str
    why: str
    advice: tuple[AdviceParagraph, ...]
    needs: tuple[str, ...]  # table, or table.column
    requires: tuple[Requirement, ...]
    clean_if: tuple[Requirement, ...]  # must hold for "found nothing" to be an answer
    only_if: tuple[Alternatives, ...]  # rows without which the SQL would find nothing
    supersedes: tuple[str, ...]  # rules whose findings at the same place its own stand for
    takes_back: tuple[str, ...]  # those of them whose findings its own show to be no problem
    what_if: str | None  # the change of `nsysmap what-if` that works out its saving
    # traces and engine files of real GPUs in which it was found, and checked by hand
    seen: str | None
    params: Mapping[str, Value]
    query: Query
    columns: tuple[str, ...]  # none known where it is not checked
    message: str
    cases: tuple[Case, ...]
    source: str  # its file
    checked: bool = True  # false: taken as sound until it runs, without its cases

    @property
    def queries(self) -> tuple[Query, ...]:
        """Every statement that the rule runs."""
        return (
            self.query,
            *(
                requirement.query
                for requirement in (*self.requires, *self.clean_if)
                if requirement.query is not None
            ),
        )


def read_rule(
    path: Path, sandbox: AnySandbox | None, ready: Mapping[str, ReadyRule] | None = None
) -> Rule:
    """The rule in a YAML file; NsysmapError names the file, the part of it and the remedy.

    Without a sandbox neither its SQL nor its cases are looked at (``checked`` is false):
    check_answer looks at what the SQL returns.  What the file says is then taken from the
    ``ready`` rules where they have it.
    """
    said = own_values(path, ready or {}) if sandbox is None else plain_yaml(path)
    content = _mapping(said, str(path), "a rule file")
    _known(content, _KEYS, str(path), "the file")
    for key in _TEXTS:
        _text(content, key, str(path))
    name = content["name"].strip()
    if not _NAME.fullmatch(name) or name != path.stem:
        raise NsysmapError(
            f"{path}: name",
            f"is {name!r}",
            f"name the rule as its file, in kebab case: {path.stem}",
        )
    for key, allowed in (("group", GROUPS), ("severity", get_args(Level))):
        if content[key] not in allowed:
            raise NsysmapError(
                f"{path}: {key}", f"is {content[key]!r}", f"use one of {', '.join(allowed)}"
            )
    if content.get("what_if") not in (None, *CHANGES):
        raise NsysmapError(
            f"{path}: what_if",
            f"is {content['what_if']!r}",
            f"use one of {', '.join(sorted(CHANGES))}",
        )
    if "seen" in content:
        _text(content, "seen", str(path))
    params = _params(content.get("params") or {}, str(path))
    query, columns = _query(content["sql"], params, sandbox, f"{path}: sql")
    if sandbox is not None:
        _check_returned(columns, content["message"], str(path))
    supersedes, takes_back = (
        _rules(content.get(key) or [], f"{path}: {key}") for key in ("supersedes", "takes_back")
    )
    rule = Rule(
        name=name,
        group=content["group"],
        severity=content["severity"],
        summary=content["summary"].strip(),
        why=content["why"].strip(),
        advice=_advice(content.get("advice"), set(columns), f"{path}: advice"),
        needs=_needs(content.get("needs") or [], str(path)),
        requires=_requires(content.get("requires") or [], params, sandbox, f"{path}: requires"),
        clean_if=_requires(content.get("clean_if") or [], params, sandbox, f"{path}: clean_if"),
        only_if=_only_if(content.get("only_if") or [], params, f"{path}: only_if"),
        supersedes=(*supersedes, *takes_back),
        takes_back=takes_back,
        what_if=content.get("what_if"),
        seen=content["seen"].strip() if "seen" in content else None,
        params=params,
        query=query,
        columns=tuple(columns),
        message=content["message"].strip(),
        cases=(
            _cases(content.get("cases") or [], params, set(columns), str(path))
            if sandbox is not None
            else ()
        ),
        source=str(path),
        checked=sandbox is not None,
    )
    unused = sorted(
        set(params) - {parameter for query in rule.queries for parameter in query.parameters}
    )
    if unused:
        raise NsysmapError(
            f"{path}: params",
            f"{unused[0]} is not used",
            f"write ${unused[0]} in the SQL, or remove it from params",
        )
    return rule


def check_answer(rule: Rule, answer: SqlAnswer) -> None:
    """NsysmapError unless these rows are what the SQL of the rule has to return, and hold what its
    message shows.
    """
    _check_returned(_kinds(answer, f"{rule.source}: sql"), rule.message, rule.source)


def check_requirement(requirement: Requirement, where: str, answer: SqlAnswer) -> None:
    """NsysmapError unless this is the row that the SQL of the requirement has to return; ``where``
    is its place in the file.
    """
    _check_required(_kinds(answer, f"{where}: sql"), requirement.reason, where)


def _kinds(answer: SqlAnswer, where: str) -> dict[str, Kind | None]:
    """The kinds of the columns by their values; None for a column without any."""
    kinds: dict[str, Kind | None] = {}
    for place, name in enumerate(answer.columns):
        value = next((row[place] for row in answer.rows if row[place] is not None), None)
        kinds[name] = None if value is None else _kind(name, _VALUES.get(type(value)), where)
    if len(kinds) < len(answer.columns):
        raise NsysmapError(where, "returns two columns with the same name", _ONE_SELECT)
    return kinds


def _kind(column: str, kind: Kind | None, where: str) -> Kind:
    if kind is None:
        raise NsysmapError(
            where,
            f"returns {column}, which is not a number, boolean or text",
            "cast it, or list it with string_agg()",
        )
    return kind


def typed(value: object, default: Value, where: str) -> Value:
    """A parameter's value as the kind that its default is; text, as from a command line, is
    read.
    """
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
    elif isinstance(default, str):
        if isinstance(value, str):
            return value
    elif not isinstance(value, bool):
        try:
            number = int(str(value)) if isinstance(default, int) else float(str(value))
            if abs(number) < _BEYOND if isinstance(number, int) else math.isfinite(number):
                return number
        except ValueError:
            pass
    kind = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}[
        type(default)
    ]
    shown = repr(value) if len(str(value)) <= _MOST_SHOWN else repr(str(value)[:_MOST_SHOWN]) + "…"
    raise NsysmapError(where, f"is {shown}", f"give {kind}, such as {default!r}")


def _mapping(value: object, where: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise NsysmapError(
            where,
            f"{what} must be a mapping of names to values",
            "see docs/rules/README.md for an example",
        )
    return cast("dict[str, Any]", value)


def _known(content: Mapping[str, object], allowed: Sequence[str], where: str, what: str) -> None:
    strange = sorted(set(content) - set(allowed))
    if strange:
        raise NsysmapError(
            where, f"{what} has the unknown key {strange[0]}", f"there are {', '.join(allowed)}"
        )


def _text(content: Mapping[str, object], key: str, where: str) -> None:
    value = content.get(key)
    if not isinstance(value, str) or not value.strip():
        raise NsysmapError(
            f"{where}: {key}",
            "is missing" if value is None else "is not text",
            f"write {key}: and text",
        )


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise NsysmapError(where, "is not a list", "write one item per line, each after a dash")
    return value


def _params(value: object, path: str) -> dict[str, Value]:
    params = _mapping(value, f"{path}: params", "params")
    for name, default in params.items():
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise NsysmapError(
                f"{path}: params",
                f"{name!r} is not a parameter name",
                "use lower-case letters, digits and underscores",
            )
        if not isinstance(default, bool | int | float | str):
            raise NsysmapError(
                f"{path}: params.{name}", f"is {default!r}", "give a number, text, true or false"
            )
    return params


def _query(
    sql: object, params: Mapping[str, Value], sandbox: AnySandbox | None, where: str
) -> tuple[Query, dict[str, Kind]]:
    """The statement, and the columns that it returns (none known without a sandbox)."""
    if not isinstance(sql, str):
        raise NsysmapError(where, "is not text", "write one SELECT")
    columns: dict[str, Kind | None] = {}
    try:
        query = own_query(sql, RULE_TABLES) if sandbox is None else sandbox.parse(sql)
        for parameter in sorted(query.parameters - set(params)):
            raise QueryError(f"uses ${parameter}, which params does not declare")
        if sandbox is not None:
            columns = sandbox.columns(query, {name: params[name] for name in query.parameters})
    except QueryError as error:
        raise NsysmapError(where, str(error), _ONE_SELECT) from None
    return query, {column: _kind(column, kind, where) for column, kind in columns.items()}


def _check_returned(columns: Mapping[str, Kind | None], message: str, path: str) -> None:
    """Checks the SQL of a rule: its columns, and the fields of the message."""
    _check_columns(columns, f"{path}: sql")
    _check_message(message, {**columns, "share_of_window": "float"}, f"{path}: message")


def _check_columns(columns: Mapping[str, Kind | None], where: str) -> None:
    for name in PLACE:
        if name not in columns:
            raise NsysmapError(
                where,
                f"does not return {name}",
                f"select … AS {name}; it returns {', '.join(columns)}",
            )
        if columns[name] not in ("int", "float", None):
            raise NsysmapError(where, f"returns {name} as {columns[name]}", "give nanoseconds")
    for name, kind in OPTIONAL.items():
        if columns.get(name, kind) not in (
            {"int", "float", None} if kind == "float" else {kind, None}
        ):
            raise NsysmapError(
                where,
                f"returns {name} as {columns[name]}",
                f"{name} must be {kind}; use another name for other things",
            )


def _check_message(message: str, columns: Mapping[str, Kind | None], where: str) -> None:
    try:
        check_template(message, columns)
    except ValueError as error:
        raise NsysmapError(
            where, str(error), "show columns of the SQL as {name} or {name:format}"
        ) from None


def _needs(value: object, path: str) -> tuple[str, ...]:
    needs = _list(value, f"{path}: needs")
    for need in needs:
        table, _, column = str(need).partition(".")
        spec = _SPECS.get(table)
        if spec is None:
            raise NsysmapError(
                f"{path}: needs",
                f"there is no table {table}",
                f"there are {', '.join(sorted(_SPECS))}",
            )
        if column and column not in {known.name for known in spec.columns}:
            raise NsysmapError(
                f"{path}: needs",
                f"there is no column {need}",
                f"see the columns of {table} in docs/rules/tables.md",
            )
    return tuple(str(need) for need in needs)


def _only_if(value: object, params: Mapping[str, Value], where: str) -> tuple[Alternatives, ...]:
    try:
        return tuple(read_alternatives(str(line), params) for line in _list(value, where))
    except ValueError as error:
        raise NsysmapError(
            where,
            str(error),
            "write a table, or conditions on a row of it: gaps where cause = sync | launch",
        ) from None


def _check_required(columns: Mapping[str, Kind | None], reason: str, where: str) -> None:
    if next(iter(columns.values())) not in ("bool", None):
        raise NsysmapError(
            f"{where}: sql",
            "does not begin with a boolean",
            "make its first column say whether the rule can tell",
        )
    _check_message(reason, columns, f"{where}: reason")


def _advice(value: object, columns: Set[str], where: str) -> tuple[AdviceParagraph, ...]:
    """Its parts: a text for everybody, or a list of texts that say to whom, and about which of the
    rule's findings.
    """
    if not isinstance(value, list):
        if not isinstance(value, str) or not value.strip():
            raise NsysmapError(
                where,
                "is missing" if value is None else "is not text",
                "write advice: and text, or a list",
            )
        return (AdviceParagraph(value.strip()),)
    parts = []
    for place, item in enumerate(value, start=1):
        content = _mapping(item, f"{where} {place}", "a part of the advice")
        _known(content, ("to", "when", "say"), f"{where} {place}", "it")
        _text(content, "say", f"{where} {place}")
        if "to" in content and not (isinstance(content["to"], str) and is_condition(content["to"])):
            raise NsysmapError(
                f"{where} {place}: to",
                f"is {content['to']!r}",
                'write pytorch, "tensorrt < 11" or "tensorrt >= 10.14"',
            )
        parts.append(
            AdviceParagraph(
                content["say"].strip(),
                content.get("to"),
                _when(content.get("when"), columns, f"{where} {place}: when"),
            )
        )
    if not any(part.to is None and not part.when for part in parts):
        raise NsysmapError(
            where, "has no part for everyone", "leave `to` and `when` out of at least one part"
        )
    return tuple(parts)


def _when(value: object, columns: Set[str], where: str) -> dict[str, tuple[str, ...] | bool]:
    """What the evidence of a finding must be, by column; ``columns`` are empty where the SQL was
    not looked at.
    """
    found: dict[str, tuple[str, ...] | bool] = {}
    for name, one in _mapping({} if value is None else value, where, "a condition").items():
        if columns and name not in columns:
            raise NsysmapError(
                where,
                f"{name} is not among the columns of the SQL",
                f"use one of: {', '.join(sorted(columns))}",
            )
        texts = one if isinstance(one, list) else [one]
        if not isinstance(one, bool) and not (
            texts and all(isinstance(text, str) for text in texts)
        ):
            raise NsysmapError(
                f"{where}: {name}", f"is {one!r}", "write a text, a list of texts, true or false"
            )
        found[name] = one if isinstance(one, bool) else tuple(texts)
    return found


def _rules(value: object, where: str) -> tuple[str, ...]:
    names = _list(value, where)
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise NsysmapError(
                where, f"{name!r} is not a rule's name", "list the names of other rules"
            )
    return tuple(names)


def _requires(
    value: object, params: Mapping[str, Value], sandbox: AnySandbox | None, path: str
) -> tuple[Requirement, ...]:
    requirements = []
    for place, item in enumerate(_list(value, path), start=1):
        where = f"{path} {place}"
        content = _mapping(item, where, "a requirement")
        _known(content, ("rows", "sql", "reason"), where, "it")
        _text(content, "reason", where)
        rows: Alternatives = ()
        if "rows" in content:
            _text(content, "rows", where)
            (rows,) = _only_if([content["rows"]], params, f"{where}: rows")
        query, columns = None, dict[str, Kind]()
        if "sql" in content or not rows:
            _text(content, "sql", where)
            query, columns = _query(content["sql"], params, sandbox, f"{where}: sql")
            if sandbox is not None:
                _check_required(columns, content["reason"], where)
        else:
            _check_message(content["reason"], {}, f"{where}: reason")
        requirements.append(Requirement(rows, query, tuple(columns), content["reason"].strip()))
    return tuple(requirements)


def _cases(
    value: object, params: Mapping[str, Value], columns: set[str], path: str
) -> tuple[Case, ...]:
    cases = []
    for place, item in enumerate(_list(value, f"{path}: cases"), start=1):
        content = _mapping(item, f"{path}: case {place}", "a case")
        _text(content, "name", f"{path}: case {place}")
        cases.append(_case(content, params, columns, f"{path}: case {content['name']!r}"))
    for found, what in ((True, "finds something"), (False, "finds nothing (finds: [])")):
        if not any(case.skips is None and bool(case.finds) is found for case in cases):
            raise NsysmapError(
                f"{path}: cases",
                f"none of them {what}",
                "write at least one case that does and one that does not",
            )
    if len({case.name for case in cases}) < len(cases):
        raise NsysmapError(
            f"{path}: cases", "two of them have the same name", "give each its own name"
        )
    return tuple(cases)


def _case(
    content: Mapping[str, Any], params: Mapping[str, Value], columns: set[str], where: str
) -> Case:
    _known(content, ("name", "given", "params", "finds", "skips"), where, "it")
    if ("finds" in content) == ("skips" in content):
        raise NsysmapError(
            where, "must have either finds or skips", "say how the rule answers these rows"
        )
    given = _mapping(content.get("given") or {}, f"{where}: given", "given")
    for table, rows in given.items():
        if table not in _SPECS:
            raise NsysmapError(
                f"{where}: given",
                f"there is no table {table}",
                f"there are {', '.join(sorted(_SPECS))}",
            )
        known = {column.name for column in _SPECS[table].columns}
        for row in _list(rows, f"{where}: given.{table}"):
            _known(
                _mapping(row, f"{where}: given.{table}", "a row"),
                sorted(known),
                f"{where}: given.{table}",
                "a row",
            )
    overrides = _mapping(content.get("params") or {}, f"{where}: params", "params")
    for name, value in overrides.items():
        if name not in params:
            raise NsysmapError(
                f"{where}: params",
                f"the rule has no parameter {name}",
                f"it has {', '.join(params) or 'none'}",
            )
        overrides[name] = typed(value, params[name], f"{where}: params.{name}")
    finds = [
        _mapping(item, f"{where}: finds", "a finding")
        for item in _list(content.get("finds") or [], f"{where}: finds")
    ]
    for finding in finds:
        _known(
            finding,
            sorted({*columns, "message", "share_of_window"} - {"about"}),
            f"{where}: finds",
            "a finding",
        )
    if "skips" in content:
        _text(content, "skips", where)
    return Case(content["name"], given, overrides, tuple(finds), content.get("skips"))
