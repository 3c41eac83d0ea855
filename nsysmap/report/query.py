"""What `nsysmap sql` shows: which tables can be asked, and what a statement returned, as a table for a terminal, CSV, JSON or Parquet."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nsysmap.base.errors import NsysmapError
from nsysmap.base.lines import folded
from nsysmap.base.output_file import replacing
from nsysmap.base.schema import ALL_TABLES
from nsysmap.base.table import Column, Spec
from nsysmap.base.terminal import columns, escaped, shortened
from nsysmap.base.units import counted
from nsysmap.report.kernel_map import csv_cell

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".csv", ".json", ".parquet")
SHOWN_ROWS = 200
_NARROWEST = 12  # columns of text are not cut to fewer
_GAP = "  "


def tables_text(rows: Mapping[str, int] | None = None, *, width: int = 100) -> str:
    """Every table with what a row of it is, its columns, and how many rows there are where ``rows`` tells."""
    parts = []
    for spec in ALL_TABLES:
        held = "" if rows is None else f" ({counted(rows[spec.name], 'row')})"
        lines = folded(f"{spec.name}{held}: {spec.comment}", max(60, width), later="  ", whole=True)
        names = ", ".join(column.name for column in spec.columns)
        parts.append("\n".join([*lines, *folded(names, max(60, width), first="    ", later="    ", whole=True)]))
    return "\n\n".join(parts) + "\n\n" + "`nsysmap sql … TABLE` shows the kind, unit and meaning of a table's columns.\n"


def table_text(spec: Spec, rows: int | None = None, *, width: int = 100) -> str:
    """One table: what a row of it is, and each column with kind, unit and meaning."""
    held = "" if rows is None else f" ({counted(rows, 'row')})"
    lines = folded(f"{spec.name}{held}: {spec.comment}", max(60, width), later="  ", whole=True)
    name, kind = (max(columns(part(column)) for column in spec.columns) for part in (_name, _declared))
    for column in spec.columns:
        start = f"  {_name(column):<{name}}  {_declared(column):<{kind}}  "
        lines += folded(column.comment, max(60, width), first=start, later=" " * len(start), whole=True)
    return "\n".join(lines) + "\n"


def _name(column: Column) -> str:
    return column.name


def _declared(column: Column) -> str:
    unit = f" ({column.unit})" if column.unit else ""
    return column.kind + unit + (", may be NULL" if column.nullable else "")


def answer_text(answer: pyarrow.Table, *, width: int | None = None) -> str:
    """The rows under their columns' names, NULL where there is no value.

    With a width (of a terminal) at most SHOWN_ROWS rows, in lines of at most so many columns: long texts lose what tells them apart least,
    and where the columns still do not fit, each row is shown as lines of its own.
    """
    shown = answer if width is None else answer.slice(0, SHOWN_ROWS)
    names = [escaped(name) for name in answer.column_names]
    cells = [[_cell(value) for value in column.to_pylist()] for column in shown.columns]
    right = [_is_number(field.type) for field in answer.schema]
    if width is not None:
        fitted = _fitted(names, cells, right, width)
        if fitted is None:
            return _records(names, cells, width)
        cells = fitted
    widths = [max(map(columns, (name, *column))) for name, column in zip(names, cells, strict=True)]
    rows = [names, *map(list, zip(*cells, strict=True))]
    return "".join(_GAP.join(map(_padded, row, widths, right)).rstrip() + "\n" for row in rows)


def rest_words(answer: pyarrow.Table) -> str | None:
    """That a terminal does not show all rows, and how to get them; None where it does."""
    more = answer.num_rows - SHOWN_ROWS
    return None if more <= 0 else f"{more:,} more rows: add --csv, or -o FILE.csv, .json or .parquet"


def write_answer(answer: pyarrow.Table, path: Path) -> None:
    """Write all rows in the format that the suffix of ``path`` names; whole or not at all."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise NsysmapError(str(path), "has no suffix that names a format", f"use {', '.join(SUFFIXES)}")
    with replacing(path) as fresh:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(answer, fresh)
            return
        with fresh.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            (write_csv if suffix == ".csv" else write_json)(answer, file)


def write_csv(answer: pyarrow.Table, file: TextIO) -> None:
    """Write the rows as CSV: a heading, then one line a row; no value is an empty cell, an empty text is ""."""
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
            file.write(before + json.dumps(_plain(row), allow_nan=False))
            before = ",\n"
    file.write("\n]\n")


def _plain(value: object) -> object:
    """The value as JSON has them: whole numbers of any length, no number where there is none."""
    if isinstance(value, dict):
        return {str(key): _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _csv_cell(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, dict | list):
        plain = json.dumps(plain)
    return csv_cell(plain) if isinstance(plain, str) else json.dumps(plain)


def _cell(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return "NULL"
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, float):
        return f"{plain:.6g}"
    return escaped(plain if isinstance(plain, str) else json.dumps(plain))


def _is_number(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - columns(text))
    return space + text if right else text + space


def _fitted(names: Sequence[str], cells: Sequence[list[str]], right: Sequence[bool], width: int) -> list[list[str]] | None:
    """The cells with the widest texts cut so that rows take at most ``width`` columns; None where that takes too much of them."""
    widths = [max(map(columns, (name, *column))) for name, column in zip(names, cells, strict=True)]
    room = width - len(_GAP) * (len(names) - 1)
    while sum(widths) > room:
        widest = max((one for one in range(len(names)) if not right[one]), key=lambda one: widths[one], default=None)
        if widest is None or widths[widest] <= max(_NARROWEST, columns(names[widest])):
            return None
        widths[widest] -= min(sum(widths) - room, max(1, widths[widest] - _NARROWEST), max(1, widths[widest] // 8))
    cut = []
    for column, most in zip(cells, widths, strict=True):
        held = _cut(column, most)
        if held is None:
            return None
        cut.append(held)
    return cut


def _cut(column: list[str], width: int) -> list[str] | None:
    """The texts in at most ``width`` columns each, different ones still different; None where that cannot be."""
    texts = dict.fromkeys(column)
    for way in (shortened, _end):
        cut = {text: way(text, width) for text in texts}
        if len(set(cut.values())) == len(texts):
            return [cut[text] for text in column]
    return None


def _end(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    kept = ""
    for char in reversed(text):
        if columns(char + kept) > width - 1:
            break
        kept = char + kept
    return "…" + kept


def _records(names: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    """Each row as lines of name and value; the values are whole."""
    label = max(map(columns, names))
    out = io.StringIO()
    for number, row in enumerate(zip(*cells, strict=True), 1):
        out.write(f"row {number}\n")
        for name, value in zip(names, row, strict=True):
            lines = folded(value, max(20, width - label - 2))
            for line, text in enumerate(lines):
                out.write(f"{name if line == 0 else '':<{label}}{_GAP}{text}".rstrip() + "\n")
    return out.getvalue()
