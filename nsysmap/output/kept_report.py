"""A report as bytes for the cache of results, and back: its figures, findings and small tables,
from which every form of it is laid out again.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from nsysmap.answer.model import Answer
from nsysmap.core.memory import Narrow
from nsysmap.core.schema import ALL_TABLES, RULE_TABLES, Tables
from nsysmap.core.table import Table, Text

MOST_ROWS = 20_000
"""The most rows of a kept table: event tables of a large report have millions, and only the page
and the database show them row by row.
"""

_SPECS = {spec.name: spec for spec in ALL_TABLES}


def report_bytes(report: Answer) -> bytes:
    """The report with those of its tables that have not too many rows.

    Every form but the page and the database shows tables that rules may read. They are worked out
    here where nothing has asked for them yet: another form of the same answer is then laid out
    without the trace.
    """
    for spec in RULE_TABLES:
        report.tables[spec.name]
    figures = {
        one.name: getattr(report, one.name)
        for one in fields(report)
        if one.init and one.name != "tables"
    }
    tables = {
        name: {column: _plain(held) for column, held in table.columns.items()}
        for name, table in report.tables.made().items()
        if len(table) <= MOST_ROWS
        and not any(isinstance(held, Narrow) for held in table.columns.values())
    }
    return pickle.dumps((figures, tables), protocol=5)


def report_in(data: bytes, again: Callable[[], Tables]) -> Answer | None:
    """The report stored in these bytes; None if they hold anything else. ``again`` computes tables
    that were not kept, once one of them is requested.
    """
    try:
        figures, held = _Data(io.BytesIO(data)).load()
        kept = {
            name: Table(
                _SPECS[name], {column: _column(*values) for column, values in columns.items()}
            )
            for name, columns in held.items()
        }
        return Answer(**figures, tables=_tables(kept, again))
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError):
        return None


def _tables(kept: Mapping[str, Table], again: Callable[[], Tables]) -> Tables:
    def missing(name: str) -> Callable[[], Table]:
        return lambda: again()[name]

    return Tables({name: kept[name] if name in kept else missing(name) for name in _SPECS})


def _plain(held: object) -> tuple[str, bytes, tuple[str, ...]]:
    """A column as the type of its numbers, these, and the texts that they stand for."""
    codes, texts = (held.codes, held.values) if isinstance(held, Text) else (held, ())
    array = np.ascontiguousarray(codes)
    return ("text " if isinstance(held, Text) else "") + array.dtype.str, array.tobytes(), texts


def _column(kind: str, numbers: bytes, texts: tuple[str, ...]) -> Text | np.ndarray:
    array = np.frombuffer(numbers, np.dtype(kind.removeprefix("text "))).copy()
    return Text(array, texts) if kind.startswith("text ") else array


class _Data(pickle.Unpickler):
    """Reads records of nsysmap and plain values, and calls nothing."""

    def find_class(self, module: str, name: str) -> type:
        if module.partition(".")[0] == "nsysmap":
            found = super().find_class(module, name)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no record of nsysmap")
