"""Answers one SELECT of a user over the declared tables, in the sandbox that rules run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nsysmap.base.errors import NsysmapError
from nsysmap.base.schema import ALL_TABLES
from nsysmap.base.table import Table
from nsysmap.rules.sandbox import LimitError, QueryError, Sandbox

if TYPE_CHECKING:
    import pyarrow

TIME_LIMIT_S = 60.0


def select(sql: str, tables: Mapping[str, Table], *, time_limit_s: float = TIME_LIMIT_S) -> pyarrow.Table:
    """All rows that the statement returns over these tables (by the names of schema.ALL_TABLES).

    Raises NsysmapError where it is no single SELECT, reads anything else, fails, or runs into the limit of time or memory.
    """
    with Sandbox(ALL_TABLES, memory_limit_bytes=4 << 30) as sandbox:
        try:
            query = sandbox.parse(sql)
            return sandbox.whole(query, {name: tables[name].arrow() for name in query.tables}, time_limit_s=time_limit_s)
        except (QueryError, LimitError) as error:
            raise NsysmapError("query", str(error), "write one SELECT over the tables of docs/rules/tables.md") from None
