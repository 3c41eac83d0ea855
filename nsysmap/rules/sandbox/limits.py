"""Runs an untrusted SELECT over declared tables: nothing else is allowed, within a time and a
memory limit.

Two fences, either of which would do for most attacks.  The statement's syntax tree may hold only
what is listed here (kinds of nodes, tables, functions: no function that reads a file, a setting, a
variable or the clock, or whose answer changes from run to run), and the engine itself has files,
network, extensions and Python variables switched off and its configuration locked.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from nsysmap.core.errors import current_folder
from nsysmap.core.records import dataclass
from nsysmap.core.system import HAS_POLL, SIGNALS
from nsysmap.core.table import Kind, Spec
from nsysmap.rules.sandbox.given_tables import selected

if TYPE_CHECKING:
    import pyarrow

Value = int | float | str | bool

_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a table name must not find a Python variable
    "temp_directory": "",  # nothing spills to disk
}
# Kinds of syntax nodes: expressions have a class, everything else a type only.
_EXPRESSIONS = """
BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR PARAMETER
POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW
"""
_STRUCTURE = """
SELECT_NODE SET_OPERATION_NODE RECURSIVE_CTE_NODE CTE_NODE BASE_TABLE EMPTY EXPRESSION_LIST JOIN
SUBQUERY TABLE_FUNCTION
DISTINCT_MODIFIER LIMIT_MODIFIER ORDER_MODIFIER ORDER_DEFAULT ASCENDING DESCENDING
"""
# Deterministic, and no answer much larger than what it is made from: growth that doubles at every
# step is what no limit stops in time.
_FUNCTION_NAMES = """
+ - * / // % ** ^ & | << >> ~ || = != <> < > <= >= @ ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape
ilike_escape not_ilike_escape
abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log10 log2 pow power mod fmod divide
multiply add subtract greatest least
gcd lcm pi even bit_count isnan isinf isfinite xor
length len strlen lower lcase upper ucase trim ltrim rtrim left right substr substring contains
prefix suffix starts_with
ends_with strpos instr position regexp_matches regexp_full_match regexp_extract regexp_escape concat
split_part
string_split str_split string_split_regex regexp_split_to_array regexp_extract_all reverse translate
ascii unicode chr hash md5
coalesce nullif ifnull if switch typeof
list_extract array_extract list_element list_contains list_has array_contains array_has
list_position
list_indexof list_slice array_slice list_sort array_sort list_distinct list_unique list_sum list_min
list_max list_avg list_count list_first list_last list_any_value list_reverse array_length
cardinality
struct_extract map_keys map_values map_extract element_at
json_extract json_extract_string json_extract_path json_extract_path_text json_type json_valid
json_array_length json_keys json_contains
json_exists json_value -> ->>
count count_star count_if countif sum sum_no_overflow fsum kahan_sum favg avg mean min max min_by
max_by arg_min arg_max argmin argmax
arg_min_null arg_max_null first last any_value arbitrary median mode mad quantile quantile_cont
quantile_disc percentile_cont
percentile_disc stddev stddev_pop stddev_samp variance var_pop var_samp sem skewness kurtosis
entropy corr covar_pop covar_samp
regr_slope regr_intercept regr_r2 regr_count bool_and bool_or bit_and bit_or bit_xor product geomean
histogram string_agg group_concat
listagg list array_agg weighted_avg wavg grouping
row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value
nth_value
"""
_JOINING = frozenset({"||", "concat"})
_MOST_JOINED = 24  # operands of the above in one statement
# as scalars, the last two would make lists of any length
_TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})
_CLASSES = frozenset(_EXPRESSIONS.split())
_NODES = frozenset(_STRUCTURE.split())
_FUNCTIONS = frozenset({*_FUNCTION_NAMES.split(), "unnest"})
# views that every database has
_SYSTEM_NAME = re.compile(r"(duckdb|pg|pragma|sqlite|information)_")
_UNSPOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)  # texts and comments
# SELECT *, t.*, COLUMNS(*); one pattern with the next would be tried at every character
_STAR = re.compile(r"(?:select|distinct|columns\s*\(|[,.])\s*\*")
_FROM_FIRST = re.compile(r"(?:\(|union|all)\s*from\b")
# functions that are written without brackets
_DISGUISED = re.compile(r"(current_\w+|session_user|user|localtime\w*)$", re.IGNORECASE)
_KINDS: tuple[tuple[str, Kind], ...] = (
    (r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|INT\d+$", "int"),
    (r"FLOAT|DOUBLE|REAL|DECIMAL|NUMERIC", "float"),
    (r"BOOL", "bool"),
    (r"VARCHAR|TEXT|STRING|CHAR|ENUM", "text"),
)
_SQL_TYPES: dict[Kind, str] = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
}


_OVER = b"\0"  # no signal has this number
_ENDING = frozenset(SIGNALS)
# what DuckDB raises where it has called a signal's handler, instead of what that one raised
_DROPPED = "Query interrupted"
_GIVEN = "a table given"
_COPIED_ROWS = 100_000
"""Up to which a table is copied into the database, which reads it faster then."""
_BATCH_ROWS = 65_536  # of an answer that are read together


class QueryError(Exception):
    """The statement is broken, or holds something that is not allowed."""


class LimitError(Exception):
    """The statement was stopped at its time or memory limit."""


@dataclass(frozen=True)
class Query:
    """A statement that passed the fence, and what it reads."""

    sql: str
    parameters: frozenset[str]
    tables: frozenset[str]
    # names it mentions, of whichever table; None if it may read all of them
    columns: frozenset[str] | None
    own: bool = False  # comes with nsysmap and was not parsed: see own_query


@dataclass(frozen=True)
class SqlAnswer:
    """The first rows of what a statement returns."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def own_query(sql: str, specs: Sequence[Spec]) -> Query:
    """A statement that comes with nsysmap, taken without a look at its syntax: its words say what
    it may read, and rather too much.
    """
    text = sql.strip().rstrip(";").strip()
    bare = _UNSPOKEN.sub(" ", text).lower().lstrip()
    words = frozenset(re.findall(r"\w+", bare))
    every_column = (
        _STAR.search(bare)
        or _FROM_FIRST.search(bare)
        or bare.startswith("from")
        or "natural" in words
    )
    return Query(
        text,
        parameters=frozenset(re.findall(r"\$(\w+)", bare)),
        tables=words & {spec.name for spec in specs},
        columns=None if every_column else words,
        own=True,
    )


class Sandbox:
    """An empty in-memory database without any way out.

    Each statement of a stranger gets a connection and tables of its own; those that come with
    nsysmap share one.
    """

    def __init__(
        self, specs: Sequence[Spec], *, memory_limit_bytes: int = 1 << 30, threads: int = 2
    ) -> None:
        """Open it for statements over these tables."""
        import duckdb

        current_folder()  # without one DuckDB ends the process
        self._tables = {spec.name: spec for spec in specs}
        self._memory_bytes = memory_limit_bytes
        self._engine: Any = duckdb.connect(
            ":memory:",
            config={**_CONFIG, "threads": threads, "memory_limit": f"{memory_limit_bytes}B"},
        )
        self._engine.execute("SET lock_configuration = true")
        self._checking: Any = None
        self._shared: Any = None  # connection of the statements that come with nsysmap, and …
        self._registered: dict[str, pyarrow.Table] = {}  # … its tables

    def close(self) -> None:
        """Give its memory back."""
        for connection in (self._checking, self._shared):
            if connection is not None:
                connection.close()
        self._engine.close()

    @property
    def _empty(self) -> Any:
        """A connection that holds every table without rows, to check statements against."""
        if self._checking is None:
            self._checking = self._engine.cursor()
            for spec in self._tables.values():
                columns = ", ".join(
                    f'"{column.name}" {_SQL_TYPES[column.kind]}' for column in spec.columns
                )
                self._checking.execute(f'CREATE TEMP TABLE "{spec.name}" ({columns})')
        return self._checking

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def parse(self, sql: str) -> Query:
        """The statement, once it is known to be a single harmless SELECT; QueryError where it is
        not.
        """
        import duckdb

        text = sql.strip().rstrip(";").strip()
        try:
            row = self._engine.execute(
                "SELECT json_serialize_sql(CAST($sql AS VARCHAR))", {"sql": text}
            ).fetchone()
        except duckdb.Error as error:
            raise QueryError(_first_lines(error)) from None
        nodes: list[dict[str, Any]] = []

        def keep(node: dict[str, Any]) -> dict[str, Any]:
            nodes.append(node)
            return node

        try:
            tree = json.loads(row[0], object_hook=keep)
        except RecursionError:
            raise QueryError("is nested too deeply") from None
        if tree["error"]:
            message = str(tree.get("error_message", "cannot be parsed"))
            raise QueryError(
                "is not a SELECT" if "Only SELECT statements" in message else _first_lines(message)
            )
        if len(tree["statements"]) != 1:
            raise QueryError(
                f"holds {len(tree['statements'])} statements" if tree["statements"] else "is empty"
            )
        nodes.pop()  # the envelope
        return self._fenced(text, nodes)

    def _fenced(self, sql: str, nodes: Sequence[dict[str, Any]]) -> Query:
        ours = _common_tables(nodes)
        parameters, tables, columns = set[str](), set[str](), set[str]()
        from_functions = {
            id(node["function"]) for node in nodes if node.get("type") == "TABLE_FUNCTION"
        }
        star, joined = False, 0
        for node in nodes:
            kind, class_ = node.get("type"), node.get("class")
            if class_ is not None and class_ not in _CLASSES:
                raise QueryError(f"uses {_words(class_)}, which is not allowed")
            if (
                class_ is None
                and isinstance(kind, str)
                and kind not in _NODES
                and not kind.endswith("_TYPE_INFO")
            ):
                if kind == "SHOW_REF":
                    raise QueryError(
                        "describes tables, as `nsysmap sql` and `nsysmap sql TABLE` do"
                    )
                raise QueryError(f"uses {_words(kind)}, which is not allowed")
            if "function_name" in node:
                name = str(node["function_name"]).lower()
                if name not in (_TABLE_FUNCTIONS if id(node) in from_functions else _FUNCTIONS):
                    raise QueryError(f"calls the function {name}(), which is not allowed")
                joined += (
                    len(node.get("arguments") or node.get("children") or ())
                    if name in _JOINING
                    else 0
                )
                if joined > _MOST_JOINED:
                    raise QueryError(
                        f"joins more than {_MOST_JOINED} texts; leave that to the message"
                    )
            if node.get("sample"):
                raise QueryError("takes a sample, whose rows change from run to run")
            if kind == "BASE_TABLE":
                tables.add(self._table(node, ours))
            if class_ == "PARAMETER":
                parameters.add(str(node.get("identifier")))
            if class_ == "COLUMN_REF" and _DISGUISED.match(str(node["column_names"][-1])):
                raise QueryError(f"reads {node['column_names'][-1]}, which is not allowed")
            star = (
                star or class_ == "STAR" or (kind == "JOIN" and node.get("ref_type") == "NATURAL")
            )
            columns.update(
                str(name).lower()
                for key in ("column_names", "using_columns")
                for name in node.get(key) or ()
            )
        return Query(
            sql,
            frozenset(parameters),
            frozenset(tables - ours),
            None if star else frozenset(columns),
        )

    def _table(self, node: Mapping[str, Any], ours: frozenset[str]) -> str:
        path = node.get("qualified_name", {}).get("path", [])
        if node.get("schema_name") or node.get("catalog_name") or len(path) > 1:
            raise QueryError(
                f"reads {'.'.join(path) or node['table_name']}; give a table's name alone"
            )
        name = str(node["table_name"]).lower()
        if name not in ours and name not in self._tables:
            near = get_close_matches(name, self._tables)
            hint = (
                f"did you mean {' or '.join(near)}?"
                if near
                else f"there are {', '.join(sorted(self._tables))}"
            )
            raise QueryError(f"reads the table {node['table_name']}, which does not exist; {hint}")
        return name

    def columns(self, query: Query, parameters: Mapping[str, Value]) -> dict[str, Kind | None]:
        """Name and kind of the columns that the statement returns, without running it; None for
        lists, dates and other kinds.
        """
        import duckdb

        try:
            with _time_limit(self._empty, 5.0):
                rows = self._empty.execute(
                    f"DESCRIBE {query.sql}", dict(parameters) or None
                ).fetchall()
        except duckdb.Error as error:
            raise QueryError(_first_lines(error)) from None
        names = [str(row[0]) for row in rows]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise QueryError(f"returns two columns named {twice[0]}")
        return {str(row[0]): _kind(str(row[1])) for row in rows}

    def run(
        self,
        query: Query,
        tables: Mapping[str, pyarrow.Table],
        parameters: Mapping[str, Value],
        *,
        time_limit_s: float,
        max_rows: int,
    ) -> SqlAnswer:
        """The first rows of what the statement returns.

        QueryError where it fails on these rows, LimitError where it would take too long or too much
        memory.
        """
        with self._connected(query, tables, time_limit_s) as running:
            running.connection.execute(query.sql, dict(parameters) or None)
            names = tuple(str(column[0]) for column in running.connection.description)
            answer = SqlAnswer(names, running.connection.fetchmany(max_rows))
            running.done = query.own and running.connection.fetchone() is None
        return answer

    def whole(
        self,
        query: Query,
        tables: Mapping[str, pyarrow.Table],
        *,
        time_limit_s: float,
        max_bytes: int,
    ) -> pyarrow.Table:
        """All that the statement returns, as an Arrow table; errors as with `run`, LimitError where
        it is larger than ``max_bytes``.
        """
        import pyarrow as pa

        with self._connected(query, tables, time_limit_s) as running:
            relation = running.connection.sql(query.sql)
            # before 2.0
            read = (
                relation.to_arrow_reader
                if hasattr(relation, "to_arrow_reader")
                else relation.fetch_record_batch
            )
            with read(_BATCH_ROWS) as reader:
                batches, held = [], 0
                for batch in reader:
                    batches.append(batch)
                    held += batch.nbytes
                    if held > max_bytes:
                        raise LimitError(f"returns more than {max_bytes >> 20:,} MiB")
                running.done = True
                return pa.Table.from_batches(batches, reader.schema)

    @contextmanager
    def _connected(
        self, query: Query, tables: Mapping[str, pyarrow.Table], time_limit_s: float
    ) -> Iterator[_Running]:
        import duckdb

        running = _Running(self._connection(query, tables))
        try:
            with _time_limit(running.connection, time_limit_s):
                yield running
        except duckdb.InterruptException:
            raise LimitError(f"ran past its time limit of {time_limit_s:g} s") from None
        except (duckdb.OutOfMemoryException, MemoryError):
            raise LimitError(
                f"needs more memory than it may have ({self._memory_bytes / (1 << 30):g} GiB)"
            ) from None
        except duckdb.Error as error:
            raise QueryError(_first_lines(error)) from None
        finally:
            if running.connection is not self._shared:
                _leave(running.connection)
            elif not running.done:
                self._leave_shared()

    def _connection(self, query: Query, tables: Mapping[str, pyarrow.Table]) -> Any:
        """One with the tables that the statement names: its own, with no view, variable or prepared
        statement of another in reach.
        """
        if not query.own:
            connection = self._engine.cursor()
            for name in sorted(query.tables):
                _put(connection, name, tables[name])
            return connection
        if any(
            self._registered[name] is not tables[name]
            for name in query.tables & self._registered.keys()
        ):
            self._leave_shared()
        if self._shared is None:
            self._shared = self._engine.cursor()
        for name in sorted(query.tables - self._registered.keys()):
            _put(self._shared, name, tables[name])
            self._registered[name] = tables[name]
        return self._shared

    def _leave_shared(self) -> None:
        connection, self._shared, self._registered = self._shared, None, {}
        _leave(connection)


@dataclass
class _Running:
    """A connection while a statement runs on it; `done` once nothing is left to fetch."""

    connection: Any
    done: bool = False


@dataclass(frozen=True)
class _Stream:
    """An Arrow table as any library hands one over; pyarrow's own is read through pyarrow.dataset,
    which takes 0.3 s to import.
    """

    table: pyarrow.Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def _put(connection: Any, name: str, table: pyarrow.Table) -> None:
    """Give the connection this table: a copy, or where it is large the table itself, which then is
    read in place.
    """
    if table.num_rows > _COPIED_ROWS:
        connection.register(f"{_GIVEN}: {name}", table)
        connection.execute(
            f'CREATE TEMP VIEW "{name}" AS SELECT {selected(table)} FROM "{_GIVEN}: {name}"'
        )
        return
    # of a stream DuckDB 1.3 reads once only, and no version knows the number of rows
    connection.register(_GIVEN, _Stream(table))
    connection.execute(f'CREATE TEMP TABLE "{name}" AS SELECT {selected(table)} FROM "{_GIVEN}"')
    connection.unregister(_GIVEN)


def _leave(connection: Any) -> None:
    # else closing it would wait for rows that nobody fetches, without end for an endless statement
    connection.interrupt()
    connection.close()


@contextmanager
def _time_limit(connection: Any, seconds: float) -> Iterator[None]:
    """Interrupts what the connection runs after that time, or at a signal: Python's own handler
    waits until the engine has returned.
    """
    if not HAS_POLL:
        timer = threading.Timer(seconds, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    in_main = threading.current_thread() is threading.main_thread()
    others = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False) if in_main else -1
    came: list[int] = []

    def watch() -> None:
        end = time.monotonic() + seconds
        told = select.poll()  # unlike select(), of any file descriptor
        told.register(ours, select.POLLIN)
        while told.poll(max(0.0, end - time.monotonic()) * 1e3):
            byte = os.read(ours, 1)
            if byte == _OVER:
                return
            if others >= 0:
                with suppress(OSError):
                    os.write(others, byte)
            if byte[0] in _ENDING:
                came.append(byte[0])
                break
        connection.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except RuntimeError as error:
        if str(error) == _DROPPED:
            watcher.join(1.0)
            for number in came:
                signal.raise_signal(number)  # its handler raises once more
        raise
    finally:
        if in_main:
            signal.set_wakeup_fd(others)
        os.write(theirs, _OVER)
        watcher.join()
        os.close(ours)
        os.close(theirs)


def _common_tables(nodes: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    names = {
        str(entry["key"]).lower()
        for node in nodes
        for entry in (node.get("cte_map") or {}).get("map", ())
    }
    for name in sorted(names):
        if _SYSTEM_NAME.match(name):
            raise QueryError(f"names a common table {name}, which is the database's own")
    return frozenset(names)


def _kind(sql_type: str) -> Kind | None:
    if "[" in sql_type or "(" in sql_type.removeprefix("DECIMAL(").removeprefix("ENUM("):
        return None
    return next(
        (kind for pattern, kind in _KINDS if re.match(pattern, sql_type.upper())),
        "int" if sql_type == '"NULL"' else None,
    )


def _words(name: object) -> str:
    return str(name).lower().replace("_", " ")


def _first_lines(error: Exception | str) -> str:
    """DuckDB's message without its drawing of the statement, and without advice to change a
    setting, which is refused here.
    """
    return " ".join(
        str(error).split("\n\nLINE")[0].split("\nLINE")[0].split(' Use "SET ')[0].split()
    ).rstrip(".")[:400]
