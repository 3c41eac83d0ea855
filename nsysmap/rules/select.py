"""Answers one SELECT of a user over the declared tables, in the sandbox that rules run in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.schema import ALL_TABLES
from nsysmap.core.table import Spec, Table
from nsysmap.rules.sandbox.limits import LimitError, Query, QueryError, Sandbox

if TYPE_CHECKING:
    import pyarrow

TIME_LIMIT_S = 60.0  # of a reader's own statement
MEMORY_LIMIT_BYTES = 4 << 30  # of the same
ANSWER_LIMIT_BYTES = 1 << 30  # of the same
_FILE_SUFFIXES = (
    ".nsys-rep",
    ".qdrep",
    ".sqlite",
    ".json",
    ".engine",
    ".plan",
    ".log",
    ".txt",
    ".gz",
)
_ALIKE = 0.75  # of difflib's ratio: two letters of an eight letter name that changed places
LISTS_TABLES = "`nsysmap sql`"  # what lists the tables, for who types commands


@dataclass(frozen=True)
class SqlQuestion:
    """What `nsysmap sql` was asked: a statement (- for standard input), a table to describe, or
    neither; over these files.
    """

    files: tuple[str, ...]
    sql: str | None = None
    table: Spec | None = None


def asked_among(arguments: Sequence[str]) -> SqlQuestion:
    """The statement or table name and the files among ``arguments``, in any order.

    Raises NsysmapError if there are two statements, or if one argument is neither a file nor a
    table but nearly the name of a table.
    """
    files: list[str] = []
    statements: list[str] = []
    for argument in arguments:
        (statements if _is_statement(argument) else files).append(argument)
    for name in files:
        if os.path.lexists(name) or not name.isidentifier():
            continue
        if near := get_close_matches(
            name.lower(), [spec.name for spec in ALL_TABLES], cutoff=_ALIKE
        ):
            raise NsysmapError(
                name,
                "is neither a file nor a table",
                f"did you mean the table {' or '.join(near)}?",
            )
    if len(statements) > 1:
        raise NsysmapError(
            "query", "is given twice", "give one SELECT, or the name of one table, in quotes"
        )
    if not statements:
        return SqlQuestion(tuple(files))
    table = next((spec for spec in ALL_TABLES if spec.name == statements[0].strip().lower()), None)
    return SqlQuestion(tuple(files), None if table else statements[0], table)


def _is_statement(argument: str) -> bool:
    """Whether this is SQL rather than a path: no such file is there, and it reads like it."""
    if os.path.lexists(argument):
        return False
    words = argument.split()
    named = len(words) == 1 and (
        argument == "-" or argument.lower() in {spec.name for spec in ALL_TABLES}
    )
    return named or (len(words) > 1 and not argument.endswith(_FILE_SUFFIXES))


@dataclass(frozen=True)
class Select:
    """A statement that is known to be one SELECT over declared tables."""

    sandbox: Sandbox
    query: Query
    lists_tables: str = LISTS_TABLES

    def over(
        self, tables: Mapping[str, Table], *, time_limit_s: float = TIME_LIMIT_S
    ) -> pyarrow.Table:
        """All rows that the statement returns over these tables (by the names of
        schema.ALL_TABLES); those that it does not read are not looked up.

        Sums of integers are integers, and no two columns have one name.
        Raises NsysmapError if it fails, or runs into the limit of time or memory.
        """
        try:
            given = {name: tables[name].arrow() for name in self.query.tables}
            answer = self.sandbox.whole(
                self.query, given, time_limit_s=time_limit_s, max_bytes=ANSWER_LIMIT_BYTES
            )
        except QueryError as error:
            raise NsysmapError("query", str(error), _remedy(self.lists_tables)) from None
        except LimitError as error:
            raise NsysmapError(
                "query",
                str(error),
                "ask for less: fewer rows, a LIMIT, or a condition on what is joined",
            ) from None
        return _whole_numbers(answer.rename_columns(_distinct(answer.column_names)))


@contextmanager
def checked_select(sql: str, *, lists_tables: str = LISTS_TABLES) -> Iterator[Select]:
    """The statement, ready to run; ``lists_tables`` is what an error names for that.

    Raises NsysmapError if it is no single SELECT, or reads more than declared tables and their
    columns.
    """
    with Sandbox(ALL_TABLES, memory_limit_bytes=MEMORY_LIMIT_BYTES) as sandbox:
        try:
            query = sandbox.parse(sql)
            empty = {
                spec.name: Table.empty(spec).arrow()
                for spec in ALL_TABLES
                if spec.name in query.tables
            }
            with suppress(LimitError):
                sandbox.whole(query, empty, time_limit_s=1.0, max_bytes=1 << 20)
        except QueryError as error:
            raise NsysmapError("query", str(error), _remedy(lists_tables)) from None
        yield Select(sandbox, query, lists_tables)


def select(
    sql: str,
    tables: Mapping[str, Table],
    *,
    time_limit_s: float = TIME_LIMIT_S,
    lists_tables: str = LISTS_TABLES,
) -> pyarrow.Table:
    """The rows of this statement, checked and run: see :class:`Select`."""
    with checked_select(sql, lists_tables=lists_tables) as checked:
        return checked.over(tables, time_limit_s=time_limit_s)


def _remedy(lists_tables: str) -> str:
    return f"write one SELECT over the tables that {lists_tables} lists"


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns, those that come again with a number behind them: time_ns, time_ns_2."""
    taken: list[str] = []
    for name in names:
        number, told = 2, name
        while told in taken or (told != name and told in names):
            number, told = number + 1, f"{name}_{number}"
        taken.append(told)
    return taken


def _whole_numbers(answer: pyarrow.Table) -> pyarrow.Table:
    """The table with sums of integers, which DuckDB makes 128 bits wide, as int64 where
    they fit.
    """
    import pyarrow as pa

    for number, field in enumerate(answer.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):
                answer = answer.set_column(
                    number, field.name, answer.column(number).cast(pa.int64())
                )
    return answer
