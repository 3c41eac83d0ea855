"""Decides without SQL whether a rule can find anything, and whether it can decide, by the rows that
its tables must hold.

The database needs some milliseconds to plan a statement, however few rows it reads, and most rules
have nothing to find in most traces.  Where the rows are not there, the rule's SQL is not run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import MISSING, BoolArray, Column, Kind, Table, Text
from nsysmap.core.trace_schema import STEADY_STATE

Test = Literal["true", "not", "known", "unknown", "=", "!=", ">="]

_TEST = re.compile(
    r"(?:(?P<before>not) )?(?P<column>\w+)"
    r"(?: (?P<after>known|unknown|=|!=|>=)(?: (?P<values>.+?)(?: \* (?P<times>\w+))?)?)?"
)
_ROWS = re.compile(
    r"(?P<absent>no )?(?P<table>\w+)(?: where (?P<tests>.+?))?"
    r"(?: for (?P<share>\S+) of (?P<whole>\w+))?"
)
_ROUNDING = 1e-9
"""Share by which a value may be below a product and still count: the SQL may divide instead, and
round elsewhere.
"""
_SPECS = {spec.name: spec for spec in RULE_TABLES}
_KINDS: Mapping[str, frozenset[Kind]] = {
    "true": frozenset({"bool"}),
    "not": frozenset({"bool"}),
    "known": frozenset({"int", "float", "text"}),
    "unknown": frozenset({"int", "float", "text"}),
    "=": frozenset({"text"}),
    "!=": frozenset({"text"}),
    ">=": frozenset({"int", "float"}),
}
"""The kinds of columns that each test is for."""


@dataclass(frozen=True)
class ColumnTest:
    """A condition on one column of a row; a missing value meets only `unknown`."""

    column: str
    test: Test
    values: tuple[str, ...] = ()  # texts, or one number or $parameter
    times: str | None = None  # the column by which that number is multiplied


@dataclass(frozen=True)
class Lasting:
    """How long rows must last in all: this share (a number or $parameter) of a column of
    steady_state, on the device that has the least of it.
    """

    share: str
    whole: str


@dataclass(frozen=True)
class WantedRow:
    """A table that must hold a row which meets all of these conditions; ``absent``: that must hold
    none; ``lasting``: that must hold so many that they last so long.
    """

    table: str
    tests: tuple[ColumnTest, ...]
    absent: bool = False
    lasting: Lasting | None = None


Alternatives = tuple[WantedRow, ...]
"""At least one of these rows must exist."""


def read_alternatives(text: str, parameters: Mapping[str, object]) -> Alternatives:
    """Parses a line of `only_if`: "gaps where cause = sync | launch and inference unknown", or "no
    gaps where …", with " or " between alternatives.

    Raises ValueError with what is wrong.
    """
    return tuple(_wanted_row(part.strip(), parameters) for part in text.split(" or "))


def _wanted_row(text: str, parameters: Mapping[str, object]) -> WantedRow:
    found = _ROWS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a table, or a table and conditions after where")
    table = found["table"]
    if table not in _SPECS:
        raise ValueError(f"there is no table {table}")
    tests = found["tests"].split(" and ") if found["tests"] else []
    lasting = None
    if found["share"] is not None:
        _check_number([found["share"]], parameters)
        for owner, column in ((table, "dur_ns"), (STEADY_STATE.name, found["whole"])):
            _column(owner, column)
        lasting = Lasting(found["share"], found["whole"])
    return WantedRow(
        table,
        tuple(_test(one.strip(), table, parameters) for one in tests),
        absent=found["absent"] is not None,
        lasting=lasting,
    )


def _column(table: str, name: str) -> Column:
    found = next((one for one in _SPECS[table].columns if one.name == name), None)
    if found is None:
        raise ValueError(f"there is no column {table}.{name}")
    return found


def _test(text: str, table: str, parameters: Mapping[str, object]) -> ColumnTest:
    found = _TEST.fullmatch(text)
    if found is None or (found["before"] and found["after"]):
        raise ValueError(f"{text!r} is not a condition")
    column = _column(table, found["column"])
    word = found["before"] or found["after"] or "true"
    test = next(one for one in get_args(Test) if one == word)
    if column.kind not in _KINDS[test]:
        raise ValueError(f"{text!r} is no condition for {column.kind} values")
    values = tuple(one.strip() for one in (found["values"] or "").split("|") if one.strip())
    if bool(values) != (test in ("=", "!=", ">=")):
        raise ValueError(f"{text!r} has {'values' if values else 'no value'}")
    if test == ">=":
        _check_number(values, parameters)
    times = found["times"]
    if times is not None and (test != ">=" or _column(table, times).kind not in _KINDS[">="]):
        raise ValueError(f"{text!r} multiplies by what is no number")
    return ColumnTest(column.name, test, values, times)


def _check_number(values: Sequence[str], parameters: Mapping[str, object]) -> None:
    if len(values) != 1:
        raise ValueError("more than one number after >=")
    if values[0].startswith("$"):
        if values[0][1:] not in parameters:
            raise ValueError(f"uses {values[0]}, which params does not declare")
    else:
        float(values[0])


def may_find(
    alternatives: Sequence[Alternatives],
    tables: Mapping[str, Table],
    parameters: Mapping[str, object],
) -> bool:
    """Whether one row of each group of alternatives is in the tables."""
    return all(
        any(_is_there(wanted, tables, parameters) is not wanted.absent for wanted in group)
        for group in alternatives
    )


def _is_there(
    wanted: WantedRow, tables: Mapping[str, Table], parameters: Mapping[str, object]
) -> bool:
    table = tables[wanted.table]
    if not len(table):
        return False
    left = np.ones(len(table), np.bool_)
    for test in wanted.tests:
        left &= _met(test, table, parameters)
        if not left.any():
            return False
    lasting = wanted.lasting
    if lasting is None:
        return True
    least = _number(lasting.share, parameters) * tables[STEADY_STATE.name].ints(lasting.whole)
    took = table.ints("dur_ns")[left]
    return bool((took[took != MISSING].sum() >= least * (1 - _ROUNDING)).any())


def _number(value: str, parameters: Mapping[str, object]) -> float:
    return float(str(parameters[value[1:]] if value.startswith("$") else value))


def _met(test: ColumnTest, table: Table, parameters: Mapping[str, object]) -> BoolArray:
    """Marks the rows that meet the condition."""
    data = table.column(test.column)
    if isinstance(data, Text):
        if test.test in ("=", "!="):
            wanted = frozenset(test.values)
            return data.where(lambda value: (value in wanted) == (test.test == "="))
        known: BoolArray = data.codes >= 0
    elif data.dtype == np.bool_:
        flags = table.bools(test.column)
        return ~flags if test.test == "not" else flags
    else:
        known = data != MISSING if data.dtype == np.int64 else ~np.isnan(data)
        if test.test == ">=":
            least = _number(test.values[0], parameters)
            above: BoolArray = data >= least
            if test.times is not None:
                of = table.column(test.times)
                assert not isinstance(of, Text)
                known &= of != MISSING if of.dtype == np.int64 else ~np.isnan(of)
                product = np.asarray(of, np.float64) * least
                above = data >= product - _ROUNDING * np.abs(product)
            return known & above
    return ~known if test.test == "unknown" else known
