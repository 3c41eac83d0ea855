"""Lays out the output of `nsysmap sql`: which tables can be queried, and a statement's result as a
table for a terminal, CSV, JSON or Parquet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nsysmap.core.errors import NsysmapError
from nsysmap.core.output_file import replacing
from nsysmap.core.schema import ALL_TABLES
from nsysmap.core.table import Column, Spec
from nsysmap.output.kernel_map import csv_cell
from nsysmap.text.lines import WHOLE, Line, fits, folded, pairs, rendered, styled, table
from nsysmap.text.terminal import escaped
from nsysmap.text.units import counted

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".csv", ".json", ".parquet")
SHOWN_ROWS = 200  # on a terminal


def tables_text(rows: Mapping[str, int] | None = None, *, width: int = 100) -> str:
    """Every table with the meaning of a row, its columns, and its number of rows if ``rows`` has
    it.
    """
    parts = []
    for spec in ALL_TABLES:
        held = "" if rows is None else f" ({counted(rows[spec.name], 'row')})"
        lines = folded(f"{spec.name}{held}: {spec.comment}", max(60, width), later="  ", whole=True)
        names = ", ".join(column.name for column in spec.columns)
        parts.append(
            "\n".join(
                [*lines, *folded(names, max(60, width), first="    ", later="    ", whole=True)]
            )
        )
    return (
        "\n\n".join(parts)
        + "\n\n"
        + "`nsysmap sql … TABLE` shows the kind, unit and meaning of a table's columns.\n"
    )


def table_text(spec: Spec, rows: int | None = None, *, width: int = 100) -> str:
    """One table: the meaning of a row, and each column with kind, unit and meaning."""
    held = "" if rows is None else f" ({counted(rows, 'row')})"
    lines = [
        styled(line)
        for line in folded(
            f"{spec.name}{held}: {spec.comment}", max(60, width), later="  ", whole=True
        )
    ]
    lines += table(
        ("", "", ""),
        [(one.name, _declared(one), one.comment) for one in spec.columns],
        max(60, width),
        "kkw",
    )
    return rendered(lines, colour=False)


def _declared(column: Column) -> str:
    unit = f" ({column.unit})" if column.unit else ""
    return column.kind + unit + (", may be NULL" if column.nullable else "")


def answer_text(answer: pyarrow.Table, *, width: int | None = None) -> str:
    """The rows under their columns' names, NULL where there is no value.

    With a width (of a terminal) at most SHOWN_ROWS rows, in lines of at most so many columns: long
    texts lose what tells them apart least, and where the columns still do not fit, each row is
    shown as lines of its own.
    """
    shown = answer if width is None else answer.slice(0, SHOWN_ROWS)
    names = [escaped(name) for name in answer.column_names]
    rows = list(
        zip(
            *([_cell(value) for value in column.to_pylist()] for column in shown.columns),
            strict=True,
        )
    )
    columns_are = "".join("r" if _is_number(field.type) else "n" for field in answer.schema)
    if width is not None and not fits(names, rows, width, columns_are, indent=0):
        return _records(names, rows, width)
    return rendered(
        table(names, rows, WHOLE if width is None else width, columns_are, indent=0), colour=False
    )


def rest_words(answer: pyarrow.Table) -> str | None:
    """That a terminal does not show all rows, and how to get them; None if it does."""
    more = answer.num_rows - SHOWN_ROWS
    return (
        None if more <= 0 else f"{more:,} more rows: add --csv, or -o FILE.csv, .json or .parquet"
    )


def write_answer(answer: pyarrow.Table, path: Path) -> None:
    """Write all rows in the format that the suffix of ``path`` names; whole or not at all."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise NsysmapError(
            str(path), "has no suffix that names a format", f"use {', '.join(SUFFIXES)}"
        )
    with replacing(path) as fresh:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(answer, fresh)
            return
        with fresh.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            (write_csv if suffix == ".csv" else write_json)(answer, file)


def write_csv(answer: pyarrow.Table, file: TextIO) -> None:
    """Write the rows as CSV: a heading, then one line per row; no value is an empty cell, an empty
    text is "".
    """
    file.write(",".join(map(_csv_cell, answer.column_names)) + "\n")
    for batch in answer.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            file.write(",".join(_csv_cell(row[name]) for name in answer.column_names) + "\n")


def write_json(answer: pyarrow.Table, file: TextIO) -> None:
    """Write the rows as a JSON array of objects, one a line."""
    file.write("[")
    before = "\n"
    for batch in answer.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            file.write(before + json.dumps(json_value(row), allow_nan=False))
            before = ",\n"
    file.write("\n]\n")


def json_value(value: object) -> object:
    """The value in JSON: whole numbers of any length, null for NaN and infinities."""
    if isinstance(value, dict):
        return {str(key): json_value(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(held) for held in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _csv_cell(value: object) -> str:
    plain = json_value(value)
    if plain is None:
        return ""
    if isinstance(plain, dict | list):
        plain = json.dumps(plain)
    return csv_cell(plain) if isinstance(plain, str) else json.dumps(plain)


def _cell(value: object) -> str:
    plain = json_value(value)
    if plain is None:
        return "NULL"
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, float):
        return f"{plain:.6g}"
    return escaped(plain if isinstance(plain, str) else json.dumps(plain))


def _is_number(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _records(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Each row as lines of name and value; the values are whole."""
    lines: list[Line] = []
    for number, row in enumerate(rows, 1):
        lines += [
            styled(f"row {number}"),
            *pairs(list(zip(names, row, strict=True)), width, indent=0),
        ]
    return rendered(lines, colour=False)
