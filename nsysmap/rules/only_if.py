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
from nsysmap.core.table import MISSING, BoolArray, Kind, Table, Text

Test = Literal["true", "not", "known", "unknown", "=", "!=", ">="]

_TEST = re.compile(
    r"(?:(?P<before>not) )?(?P<column>\w+)"
    r"(?: (?P<after>known|unknown|=|!=|>=)(?: (?P<values>.+))?)?"
)
_ROWS = re.compile(r"(?P<absent>no )?(?P<table>\w+)(?: where (?P<tests>.+))?")
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


@dataclass(frozen=True)
class WantedRow:
    """A table that must hold a row which meets all of these conditions; ``absent``: that must hold
    none.
    """

    table: str
    tests: tuple[ColumnTest, ...]
    absent: bool = False


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
    return WantedRow(
        table,
        tuple(_test(one.strip(), table, parameters) for one in tests),
        absent=found["absent"] is not None,
    )


def _test(text: str, table: str, parameters: Mapping[str, object]) -> ColumnTest:
    found = _TEST.fullmatch(text)
    if found is None or (found["before"] and found["after"]):
        raise ValueError(f"{text!r} is not a condition")
    column = next((one for one in _SPECS[table].columns if one.name == found["column"]), None)
    if column is None:
        raise ValueError(f"there is no column {table}.{found['column']}")
    word = found["before"] or found["after"] or "true"
    test = next(one for one in get_args(Test) if one == word)
    if column.kind not in _KINDS[test]:
        raise ValueError(f"{text!r} is no condition for {column.kind} values")
    values = tuple(one.strip() for one in (found["values"] or "").split("|") if one.strip())
    if bool(values) != (test in ("=", "!=", ">=")):
        raise ValueError(f"{text!r} has {'values' if values else 'no value'}")
    if test == ">=":
        _check_number(values, parameters)
    return ColumnTest(column.name, test, values)


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
        any(
            _is_there(wanted, tables[wanted.table], parameters) is not wanted.absent
            for wanted in group
        )
        for group in alternatives
    )


def _is_there(wanted: WantedRow, table: Table, parameters: Mapping[str, object]) -> bool:
    if not len(table):
        return False
    left: BoolArray | None = None
    for test in wanted.tests:
        met = _met(test, table, parameters)
        left = met if left is None else left & met
        if not left.any():
            return False
    return True


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
            (value,) = test.values
            least = parameters[value[1:]] if value.startswith("$") else value
            above: BoolArray = data >= float(str(least))
            return known & above
    return ~known if test.test == "unknown" else known
