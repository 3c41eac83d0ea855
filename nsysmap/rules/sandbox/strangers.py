"""Runs untrusted statements in a separate process, which is killed at its time and memory limits;
nsysmap's own statements run here.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nsysmap.core.ending import process_noted
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.system import can_limit_memory
from nsysmap.core.table import Kind
from nsysmap.rules.sandbox.limits import LimitError, Query, QueryError, Sandbox, SqlAnswer, Value

if TYPE_CHECKING:
    import pyarrow

CHECK_LIMIT_S = 5.0
"""For parsing one statement, or asking for its columns: a millisecond is usual, and only one made
to that end takes a second.
"""
KILL_AFTER_S = 2.0
"""Beyond a statement's own limit, at which DuckDB is asked to stop: inside one function call or its
planner it does not listen.
"""
TOTAL_LIMIT_S = 120.0
"""For all that strangers' rules do in one run: a hundred rules of a second each, and no pack of a
thousand slow ones.
"""
MEMORY_BYTES = 3 << 30
"""Address space of the process: 1 GiB is DuckDB's own limit, as much is for what it does not count,
the rest for libraries and tables.
"""
ANSWER_BYTES = 32 << 20
"""Of one answer: 200 findings of 30 columns with long texts are 1 MB."""
FEW_ROWS = 100_000
"""Of the largest table: threads would only wait for each other, as long as they work."""
_START_S = 60.0  # for starting the process on a machine that is busy
_HEAD = 8  # bytes of a message's length


@dataclass(frozen=True)
class Other:
    """A value that is no number, truth value or text."""

    kind: str


class Strangers:
    """Answers statements as a Sandbox does; those that did not come with nsysmap are parsed and run
    in another process.

    That process starts with the first of them, and starts anew after one that had to be killed.
    """

    def __init__(self) -> None:
        """Nothing is started before it is needed."""
        self._own: Sandbox | None = None
        self._child: _Child | None = None
        self._spent_s = 0.0

    def __enter__(self) -> Strangers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and give the memory back."""
        self._end_child()
        if self._own is not None:
            self._own.close()
            self._own = None

    def parse(self, sql: str) -> Query:
        """Do what `Sandbox.parse` does, in the process of its own for what is not nsysmap's."""
        told = self._check({"do": "parse", "sql": sql})["query"]
        columns = None if told["columns"] is None else frozenset(told["columns"])
        return Query(told["sql"], frozenset(told["parameters"]), frozenset(told["tables"]), columns)

    def columns(self, query: Query, parameters: Mapping[str, Value]) -> dict[str, Kind | None]:
        """Do what `Sandbox.columns` does, in the process of its own for what is not nsysmap's."""
        columns: dict[str, Kind | None] = self._check(
            {"do": "columns", "query": plain(query), "parameters": dict(parameters)}
        )["columns"]
        return columns

    def run(
        self,
        query: Query,
        tables: Mapping[str, pyarrow.Table],
        parameters: Mapping[str, Value],
        *,
        time_limit_s: float,
        max_rows: int,
    ) -> SqlAnswer:
        """Do what `Sandbox.run` does, in the process of its own for what is not nsysmap's."""
        if query.own:
            if self._own is None:
                rows = max((table.num_rows for table in tables.values()), default=0)
                self._own = Sandbox(RULE_TABLES, threads=1 if rows <= FEW_ROWS else 2)
            return self._own.run(
                query, tables, parameters, time_limit_s=time_limit_s, max_rows=max_rows
            )
        left_s = TOTAL_LIMIT_S - self._spent_s
        if left_s <= 0:
            raise LimitError(
                f"was not run: the given rules have used up the {TOTAL_LIMIT_S:g} s that are"
                " allowed for all of them"
            )
        limit_s = min(time_limit_s, left_s)
        child = self._started()
        asked = {
            "do": "run",
            "query": plain(query),
            "parameters": dict(parameters),
            "time_limit_s": limit_s,
            "max_rows": max_rows,
        }
        try:
            held = {name: child.given(tables[name]) for name in sorted(query.tables)}
            told = self._ask(child, {**asked, "tables": held}, limit_s + KILL_AFTER_S)
        except _TooLongError:
            raise LimitError(f"ran past its time limit of {limit_s:g} s") from None
        except _EndedError as error:
            raise LimitError(
                f"{error}: it needs more memory than a rule may have ({_memory()})"
            ) from None
        if "limit" in told:
            raise LimitError(told["limit"])
        if "error" in told:
            raise QueryError(told["error"])
        return SqlAnswer(tuple(told["columns"]), [tuple(map(_value, row)) for row in told["rows"]])

    def _check(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The answer to a question about a statement; QueryError where it has none."""
        if self._spent_s >= TOTAL_LIMIT_S:
            raise QueryError(
                f"is not checked: the given rules have used up the {TOTAL_LIMIT_S:g} s that are"
                " allowed for all of them"
            )
        try:
            told = self._ask(self._started(), request, CHECK_LIMIT_S + KILL_AFTER_S)
        except _TooLongError:
            raise QueryError(f"cannot be checked within {CHECK_LIMIT_S:g} s") from None
        except _EndedError as error:
            raise QueryError(f"cannot be checked: {error}") from None
        if "error" in told or "limit" in told:
            raise QueryError(told.get("error") or f"cannot be checked: it {told['limit']}")
        return told

    def _ask(self, child: _Child, request: Mapping[str, object], seconds: float) -> dict[str, Any]:
        began = time.monotonic()
        try:
            return child.ask(request, seconds)
        except (_TooLongError, _EndedError):
            self._end_child()
            raise
        finally:
            self._spent_s += time.monotonic() - began

    def _started(self) -> _Child:
        if self._child is None:
            if not can_limit_memory():
                raise NsysmapError(
                    "rules of a folder",
                    "do not run on this system, which cannot limit the memory of a process",
                    "run them on Linux or macOS",
                )
            self._child = _Child()
        return self._child

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


AnySandbox = Sandbox | Strangers
"""What answers statements: in this process, for those that came with nsysmap, or in one of their
own.
"""


class _TooLongError(Exception):
    """The process did not answer in time."""


class _EndedError(Exception):
    """The process ended, or answered more than it may."""


class _Child:
    """The process, and which tables it has."""

    def __init__(self) -> None:
        """Started once it says so."""
        paths = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[3])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(item for item in paths if item),
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        }
        self._until_its_end = ExitStack()
        self._process = self._until_its_end.enter_context(
            process_noted(
                [sys.executable, "-P", "-m", "nsysmap.rules.sandbox.child", str(MEMORY_BYTES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
        )
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._tables: list[pyarrow.Table] = []  # those that the process has, by number
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.ask({"do": "start"}, _START_S)
        except (_TooLongError, _EndedError):
            self.end()
            raise

    def _listen(self) -> None:
        """Hands on the process's messages; None for its end, or for a message that is too long."""
        stream = self._process.stdout
        while stream is not None:
            message = receive(stream, longest=ANSWER_BYTES)
            self._answers.put(message)
            if message is None:
                return

    def given(self, table: pyarrow.Table) -> int:
        """The number under which the process has this table, which is sent the first time."""
        number = next(
            (number for number, known in enumerate(self._tables) if known is table),
            len(self._tables),
        )
        if number == len(self._tables):
            import pyarrow as pa

            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            self._tables.append(table)
            self._send({"do": "table", "number": number})
            self._write(sink.getvalue())
        return number

    def ask(self, request: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """Its answer."""
        self._send(request)
        try:
            message = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise _TooLongError from None
        if message is None:
            raise _EndedError(
                "the process that runs it ended, or its answer is longer than"
                f" {ANSWER_BYTES >> 20} MiB"
            )
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _send(self, request: Mapping[str, object]) -> None:
        self._write(json.dumps(request).encode())

    def _write(self, message: Any) -> None:
        stream = self._process.stdin
        try:
            if stream is not None:
                stream.write(len(message).to_bytes(_HEAD, "little"))
                stream.write(message)
                stream.flush()
        except (BrokenPipeError, OSError):
            raise _EndedError("the process that runs it ended") from None

    def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self._until_its_end.close()


def receive(stream: IO[bytes], *, longest: int) -> bytes | None:
    """The next message; None if there is none, or it is too long."""
    try:
        head = stream.read(_HEAD)
        length = int.from_bytes(head, "little")
        if len(head) < _HEAD or length > longest:
            return None
        message = stream.read(length)
    except (OSError, ValueError):  # closed meanwhile
        return None
    return message if len(message) == length else None


def plain(query: Query) -> dict[str, object]:
    """A statement as JSON has it."""
    columns = None if query.columns is None else sorted(query.columns)
    return {
        "sql": query.sql,
        "parameters": sorted(query.parameters),
        "tables": sorted(query.tables),
        "columns": columns,
    }


def statement(told: Mapping[str, Any]) -> Query:
    """The statement that `plain` wrote."""
    columns: Sequence[str] | None = told["columns"]
    return Query(
        told["sql"],
        frozenset(told["parameters"]),
        frozenset(told["tables"]),
        None if columns is None else frozenset(columns),
    )


def _value(told: object) -> object:
    if isinstance(told, dict):
        return Decimal(told["decimal"]) if "decimal" in told else Other(str(told.get("other")))
    return told


def _memory() -> str:
    return f"{MEMORY_BYTES / (1 << 30):g} GiB"
