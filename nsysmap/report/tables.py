"""Which tables can be asked by SQL, with their columns, kinds and units."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from nsysmap.base.schema import ALL_TABLES
from nsysmap.base.table import Column, Spec
from nsysmap.base.terminal import columns
from nsysmap.base.units import counted


def tables_text(rows: Mapping[str, int] | None = None, *, width: int = 100) -> str:
    """Every table with what a row of it is, its columns, and how many rows there are where ``rows`` tells."""
    parts = []
    for spec in ALL_TABLES:
        held = "" if rows is None else f" ({counted(rows[spec.name], 'row')})"
        lines = _wrapped(f"{spec.name}{held}: {spec.comment}", "", "  ", width)
        parts.append("\n".join([*lines, *_wrapped(", ".join(column.name for column in spec.columns), "    ", "    ", width)]))
    return "\n\n".join(parts) + "\n\n" + "`nsysmap sql … TABLE` shows the kind, unit and meaning of a table's columns.\n"


def table_text(spec: Spec, rows: int | None = None, *, width: int = 100) -> str:
    """One table: what a row of it is, and each column with kind, unit and meaning."""
    held = "" if rows is None else f" ({counted(rows, 'row')})"
    lines = _wrapped(f"{spec.name}{held}: {spec.comment}", "", "  ", width)
    name, kind = (max(columns(part(column)) for column in spec.columns) for part in (_name, _kind))
    for column in spec.columns:
        start = f"  {_name(column):<{name}}  {_kind(column):<{kind}}  "
        lines += _wrapped(column.comment, start, " " * len(start), width)
    return "\n".join(lines) + "\n"


def _name(column: Column) -> str:
    return column.name


def _kind(column: Column) -> str:
    unit = f" ({column.unit})" if column.unit else ""
    return column.kind + unit + (", may be NULL" if column.nullable else "")


def _wrapped(text: str, first: str, later: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, max(60, width), initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
