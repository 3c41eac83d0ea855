"""The tables that modules exchange: their columns, with types, units and meaning.

A :class:`Table` holds numpy arrays (integers, floats, booleans) and dictionary-coded text.  "No
value" is :data:`MISSING` in an integer column, NaN in a float column and code -1 in a text column;
it becomes NULL in Arrow, in SQL and in pandas.  Times are int64 nanoseconds since the start of the
profiling session, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.memory import Ints, Narrow, arrow_array, arrow_texts, narrowed, small_codes
from nsysmap.core.records import dataclass

if TYPE_CHECKING:
    import pandas
    import pyarrow

Of = TypeVar("Of")

MISSING = int(np.iinfo(np.int64).min)
"""The value of an integer column that stands for "no value"."""

Kind = Literal["int", "float", "bool", "text"]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
CodeArray = NDArray[np.int32]


@dataclass(frozen=True)
class Column:
    """One declared column; ``unit`` is empty for counts, ids and text."""

    name: str
    kind: Kind
    comment: str
    unit: str = ""
    nullable: bool = False
    row_of: str = ""
    """The table to whose key the values refer."""


@dataclass(frozen=True)
class Spec:
    """One declared table; rows are unique in the columns of ``key``, if it has one."""

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """The declared column of that name. Raises KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name}.{name}")


@dataclass(frozen=True)
class Text:
    """A text column: ``values[codes[i]]`` is row i's text, code -1 stands for no value; a large
    table stores the codes in fewer bytes.
    """

    codes: CodeArray
    values: tuple[str, ...]

    @staticmethod
    def of(values: Iterable[str | None]) -> Text:
        """The column with these texts."""
        texts = list(values)
        index = dict.fromkeys(texts)
        index.pop(None, None)
        known: dict[str | None, int] = {text: code for code, text in enumerate(index)}
        known[None] = -1
        codes = np.fromiter(map(known.__getitem__, texts), np.int32, len(texts))
        return Text(codes, tuple(index))  # type: ignore[arg-type]  # without None

    @staticmethod
    def same(value: str | None, rows: int) -> Text:
        """A column of that many rows with the same text."""
        if value is None:
            return Text(repeated(np.int32(-1), rows), ())
        return Text(repeated(np.int32(0), rows), (value,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code < 0 else self.values[code]

    def list(self) -> list[str | None]:
        """Every row's text, as Python objects."""
        lookup: list[str | None] = [*self.values, None]  # code -1 reads the last one
        return [lookup[code] for code in self.codes.tolist()]

    def take(self, rows: IntArray) -> Text:
        """The rows at these positions; a negative position gives no value."""
        if uniform(self.codes) and rows.min(initial=0) >= 0:
            return Text(repeated(np.int32(self.codes[0]), len(rows)), self.values)
        inside = rows >= 0
        if inside.all():
            return Text(self.codes.take(rows).astype(np.int32, copy=False), self.values)
        codes = np.full(len(rows), -1, dtype=np.int32)
        codes[inside] = self.codes[rows[inside]]
        return Text(codes, self.values)

    def where(self, test: Callable[[str], bool], *, missing: bool = False) -> BoolArray:
        """True if the row's text passes the test, which runs once per distinct text; ``missing``
        where there is no text. The array is the caller's own, also where all rows have one text.
        """
        # code -1 reads the last one
        passes = np.array(self._of_each(test, missing), np.bool_)
        if uniform(self.codes):
            return np.full(len(self.codes), passes[self.codes[0]])
        return passes[self.codes]

    def numbers(self, number: Callable[[str], int], *, missing: int) -> IntArray:
        """The number for each row's text, computed once per distinct text; ``missing`` where there
        is no text.
        """
        # code -1 reads the last one
        found = np.array(self._of_each(number, missing), np.int64)
        return mapped(self.codes, lambda codes: found[codes])

    def _of_each(self, of: Callable[[str], Of], missing: Of) -> Sequence[Of]:
        """What the function makes of each text, and last what stands for no value; a part of a
        table holds the texts of the whole, of which only those of its rows are asked.
        """
        if len(self.values) <= len(self.codes):
            return [*map(of, self.values), missing]
        found = [missing] * (len(self.values) + 1)
        for code in np.unique(self.codes).tolist():
            if code >= 0:
                found[code] = of(self.values[code])
        return found

    def equals(self, value: str) -> BoolArray:
        """True if a row has exactly this text."""
        return (
            self.where(value.__eq__)
            if value in self.values
            else np.zeros(len(self.codes), np.bool_)
        )


def either(first: Text, second: Text) -> Text:
    """The first text where there is one, the second elsewhere."""
    later = np.where(second.codes >= 0, second.codes + len(first.values), -1)
    return Text(
        np.where(first.codes >= 0, first.codes, later).astype(np.int32),
        (*first.values, *second.values),
    )


Data = IntArray | FloatArray | BoolArray | Text
Held = Data | Narrow
"""The stored form of a column: a large table stores integers in as few bytes as they need."""

# --- columns of one value
# -------------------------------------------------------------------------------------------
#
# A trace has many columns with the same value in all rows: the device, the context, the process,
# most of a launch's grid. Such a column is stored once, as an array whose rows are all the same
# place in memory (stride 0); it cannot be written into.

_MANY_ROWS = 1 << 16  # number of rows from which on a table looks for such columns
# number of rows from which on memory matters more than the time to widen integers at each use
_LARGE = 1 << 19

Values = TypeVar("Values", bound=np.generic)
Other = TypeVar("Other", bound=np.generic)


def repeated(value: Values, rows: int) -> NDArray[Values]:
    """A column of that many rows with the same value, which is stored once."""
    return np.broadcast_to(value, (rows,))


def uniform(data: Held | CodeArray) -> bool:
    """Whether the column has the same value in all rows and is stored as such."""
    if isinstance(data, Narrow):
        return False
    held = data.codes if isinstance(data, Text) else data
    return held.strides == (0,) and len(held) > 0


def mapped(
    values: NDArray[Values], work: Callable[[NDArray[Values]], NDArray[Other]]
) -> NDArray[Other]:
    """``work(values)``, done once for a column of one value; ``work`` must depend on each row's
    value alone.
    """
    if values.strides == (0,) and len(values) > 0:
        return repeated(work(values[:1])[0], len(values))
    return work(values)


def _packed(data: Data) -> Data:
    if isinstance(data, Text):
        codes = packed(data.codes)
        return data if codes is data.codes else Text(codes, data.values)
    return packed(data)  # type: ignore[return-value]  # of the same type as it was


def packed(values: NDArray[Values]) -> NDArray[Values]:
    """The column, stored as one value if all rows have the same."""
    if (
        not len(values)
        or values.strides == (0,)
        or values[0] != values[-1]
        or not (values == values[0]).all()
    ):
        return values
    return repeated(values[0], len(values))


def taken(data: Held, rows: IntArray) -> Data:
    """The rows at these positions."""
    return data.take(rows) if isinstance(data, (Text, Narrow)) else taken_values(data, rows)  # type: ignore[return-value]


def taken_values(values: NDArray[Values], rows: IntArray) -> NDArray[Values]:
    """The values of an array at these rows."""
    return repeated(values[0], len(rows)) if uniform(values) else values.take(rows)  # type: ignore[arg-type]


def wide(data: Held) -> Data:
    """The column in the form for computation, whatever its stored form."""
    if isinstance(data, Text) and data.codes.dtype != np.int32:
        return Text(mapped(data.codes, lambda codes: codes.astype(np.int32)), data.values)
    return data.wide() if isinstance(data, Narrow) else data


def slim(values: IntArray, near: IntArray | None = None) -> Ints:
    """The column as a table of that many rows stores it: a large table converts each column at
    once, to save memory.
    """
    return values if len(values) < _LARGE else _narrow(packed(values), near)  # type: ignore[return-value]  # integers stay integers


class _LazyColumns(dict[str, Sequence[object]]):
    """The columns of a table as Python values, each made when it is first asked for."""

    __slots__ = ("table",)

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, name: str) -> Sequence[object]:
        found = self[name] = _objects(self.table.column(name))
        return found

    def names(self) -> Iterable[str]:
        """All columns, also those that nobody has asked for."""
        return self.table.columns


class Row:
    """One row of a small table: its values by column, each of its column's declared kind."""

    __slots__ = ("_at", "_columns", "_name")

    def __init__(self, name: str, columns: Mapping[str, Sequence[object]], at: int) -> None:
        """A row of the table of that name, whose columns are given as Python values; None stands
        for no value.
        """
        self._name = name
        self._columns = columns
        self._at = at

    def __getitem__(self, name: str) -> object:
        """The value of any column, None if missing; for passing it on unchanged."""
        return self._columns[name][self._at]

    def _value(self, name: str, kinds: tuple[type, ...]) -> object:
        value = self._columns[name][self._at]
        if value is not None and type(value) not in kinds:
            raise TypeError(
                f"{self._name}.{name} holds {value!r}, asked for as {kinds[0].__name__}"
            )
        return value

    def _known(self, name: str, kinds: tuple[type, ...]) -> object:
        value = self._value(name, kinds)
        if value is None:
            raise ValueError(f"{self._name}.{name} has no value in this row")
        return value

    def integer(self, name: str) -> int:
        """The value of an integer column. Raises ValueError if it is missing."""
        return self._known(name, (int,))  # type: ignore[return-value]  # checked there, as below

    def maybe_integer(self, name: str) -> int | None:
        """The value of an integer column; None if missing."""
        return self._value(name, (int,))  # type: ignore[return-value]

    def real(self, name: str) -> float:
        """The value of a float column. Raises ValueError if it is missing."""
        return self._known(name, (float,))  # type: ignore[return-value]

    def maybe_real(self, name: str) -> float | None:
        """The value of a float column; None if missing."""
        return self._value(name, (float,))  # type: ignore[return-value]

    def text(self, name: str) -> str:
        """The value of a text column. Raises ValueError if there is none."""
        return self._known(name, (str,))  # type: ignore[return-value]

    def maybe_text(self, name: str) -> str | None:
        """The value of a text column; None if missing."""
        return self._value(name, (str,))  # type: ignore[return-value]

    def flag(self, name: str) -> bool:
        """The value of a column of true and false."""
        return self._known(name, (bool,))  # type: ignore[return-value]

    def values(self) -> dict[str, object]:
        """All values, by column."""
        columns = self._columns
        names = columns.names() if isinstance(columns, _LazyColumns) else columns
        return {name: columns[name][self._at] for name in names}


class Table:
    """The rows of one declared table, stored as columns."""

    __slots__ = ("columns", "rows", "spec")

    def __init__(self, spec: Spec, columns: Mapping[str, Held]) -> None:
        """Check the columns against the declaration: an extra, missing or too short column, or one
        of another type, is an error.
        """
        wanted = {column.name for column in spec.columns}
        if wanted != set(columns):
            raise ValueError(
                f"{spec.name}: missing {sorted(wanted - set(columns))}, undeclared"
                f" {sorted(set(columns) - wanted)}"
            )
        lengths = {len(data) for data in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"{spec.name}: columns of different lengths {sorted(lengths)}")
        for column in spec.columns:
            _check(spec, column, columns[column.name])
        self.spec = spec
        self.rows = lengths.pop() if lengths else 0
        self.columns: dict[str, Held] = {
            column.name: columns[column.name] for column in spec.columns
        }
        if self.rows >= _MANY_ROWS:
            self.columns = {
                name: data if isinstance(data, Narrow) else _packed(data)
                for name, data in self.columns.items()
            }
        if self.rows >= _LARGE:
            near = _start(self.columns)
            self.columns = {name: _narrow(data, near) for name, data in self.columns.items()}

    @staticmethod
    def empty(spec: Spec) -> Table:
        """The table without rows."""
        return Table.of_rows(spec, [])

    @staticmethod
    def of_rows(spec: Spec, rows: Sequence[Mapping[str, object]]) -> Table:
        """A table of a few rows given as mappings; an omitted key means no value (0, false or "" if
        the column is not nullable).
        """
        declared = {column.name for column in spec.columns}
        for row in rows:
            if not row.keys() <= declared:
                for key in row.keys() - declared:
                    spec.column(key)
        return Table(
            spec,
            {
                column.name: _column_of(column, [row.get(column.name) for row in rows])
                for column in spec.columns
            },
        )

    @staticmethod
    def of_lists(spec: Spec, columns: Mapping[str, list[object]]) -> Table:
        """A table whose columns are given as Python values; None stands for no value (0, false or
        "" if the column is not nullable).
        """
        return Table(
            spec,
            {name: _column_of(spec.column(name), values) for name, values in columns.items()},
        )

    def __len__(self) -> int:
        return self.rows

    def column(self, name: str) -> Data:
        """A column of any kind; one that is stored narrow is widened, which takes time, and memory
        while it is used.
        """
        return wide(self.columns[name])

    def ints(self, name: str) -> IntArray:
        """An integer column, int64."""
        data = self.column(name)
        if isinstance(data, Text) or data.dtype != np.int64:
            raise TypeError(f"{self.spec.name}.{name} is not an integer column")
        return data  # type: ignore[return-value]  # the dtype is checked above

    def ints_at(self, name: str, rows: IntArray) -> IntArray:
        """The values of an integer column in these rows, without widening the others."""
        held = self.held_ints(name)
        return held.take(rows) if isinstance(held, Narrow) else taken_values(held, rows)

    def floats(self, name: str) -> FloatArray:
        """A float column, float64."""
        data = self.column(name)
        if isinstance(data, Text) or data.dtype != np.float64:
            raise TypeError(f"{self.spec.name}.{name} is not a float column")
        return data  # type: ignore[return-value]

    def bools(self, name: str) -> BoolArray:
        """A boolean column."""
        data = self.column(name)
        if isinstance(data, Text) or data.dtype != np.bool_:
            raise TypeError(f"{self.spec.name}.{name} is not a boolean column")
        return data  # type: ignore[return-value]

    def text(self, name: str) -> Text:
        """A text column."""
        return wide(self.held_text(name))  # type: ignore[return-value]

    def held_ints(self, name: str) -> Ints:
        """An integer column in its stored form, for looking up single rows."""
        return self.columns[name]  # type: ignore[return-value]

    def held_text(self, name: str) -> Text:
        """A text column with its codes in their stored form, for looking up single rows."""
        data = self.columns[name]
        if not isinstance(data, Text):
            raise TypeError(f"{self.spec.name}.{name} is not a text column")
        return data

    def take(self, rows: IntArray | BoolArray) -> Table:
        """The rows at these positions, or where the mask is true."""
        at: IntArray = (
            np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        )
        return Table(self.spec, {name: taken(data, at) for name, data in self.columns.items()})

    def part(self, start: int, stop: int) -> Table:
        """The rows from one position up to but excluding the other, over the same memory."""
        return Table(
            self.spec,
            {name: _part(data, slice(start, stop)) for name, data in self.columns.items()},
        )

    def with_columns(self, spec: Spec, extra: Mapping[str, Held]) -> Table:
        """These rows under a wider (or changed) declaration, with the extra columns added."""
        held = {**self.columns, **extra}
        return Table(spec, {column.name: held[column.name] for column in spec.columns})

    def with_rows(self, rows: Sequence[Mapping[str, object]]) -> Table:
        """These rows, and after them those given as mappings as in :meth:`of_rows`."""
        return Table.of_lists(
            self.spec,
            {
                name: [*_objects(self.column(name)), *(row.get(name) for row in rows)]
                for name in self.columns
            },
        )

    def records(self) -> list[dict[str, object]]:
        """Every row as a mapping of Python values, with None for no value; for small tables."""
        lists = [_objects(self.column(name)) for name in self.columns]
        return [dict(zip(self.columns, values, strict=True)) for values in zip(*lists, strict=True)]

    def __iter__(self) -> Iterator[Row]:
        """Every row with typed access to its values; for small tables."""
        name, columns = self.spec.name, _LazyColumns(self)
        return (Row(name, columns, at) for at in range(self.rows))

    def only(self) -> Row:
        """The only row of a table. Raises ValueError if it has none or several."""
        (row,) = self
        return row

    def arrow(self, names: Sequence[str] | None = None) -> pyarrow.Table:
        """The rows as an Arrow table (of all columns, or of these); text columns are
        dictionary-encoded.
        """
        import pyarrow as pa

        arrays = []
        for name in names or self.columns:
            held = self.columns[name]
            data = wide(held)
            if isinstance(data, Text):
                codes = arrow_array(
                    pa.int32(), data.codes, mapped(data.codes, lambda codes: codes < 0)
                )
                arrays.append(pa.DictionaryArray.from_arrays(codes, arrow_texts(data.values)))
            elif data.dtype == np.int64:
                whole = isinstance(held, Narrow) and not held.missing
                arrays.append(
                    arrow_array(
                        pa.int64(),
                        data,
                        None if whole else mapped(data, lambda values: values == MISSING),
                    )
                )
            elif data.dtype == np.float64:
                arrays.append(arrow_array(pa.float64(), data, np.isnan(data)))
            else:
                arrays.append(
                    arrow_array(
                        pa.bool_(),
                        np.packbits(self.bools(name), bitorder="little"),
                        None,
                        rows=len(data),
                    )
                )
        return pa.Table.from_arrays(arrays, names=list(names or self.columns))

    def __repr__(self) -> str:
        return f"<Table {self.spec.name}: {self.rows:,} rows of {', '.join(self.columns)}>"

    def pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame: nullable integers, categorical text."""
        import pandas as pd

        frame: dict[str, object] = {}
        for column in self.spec.columns:
            data = self.column(column.name)
            if isinstance(data, Text):
                frame[column.name] = pd.Series(
                    pd.Categorical.from_codes(
                        data.codes, categories=pd.Index(data.values, dtype="object")
                    )
                )
            elif data.dtype == np.int64 and column.nullable:
                values = self.ints(column.name)
                frame[column.name] = pd.Series(
                    pd.arrays.IntegerArray(values.copy(), values == MISSING)
                )
            else:
                frame[column.name] = pd.Series(data)
        return pd.DataFrame(frame)


def _objects(data: Data) -> list[object]:
    if isinstance(data, Text):
        return list(data.list())
    found: list[object] = data.tolist()
    unknown = None
    if data.dtype == np.int64:
        unknown = np.flatnonzero(data == MISSING)
    elif data.dtype == np.float64:
        unknown = np.flatnonzero(np.isnan(data))
    if unknown is not None:
        for row in unknown.tolist():
            found[row] = None
    return found


def stacked(parts: Iterable[Table]) -> Table:
    """The concatenated rows of these tables (at least one) of one declaration and with the same
    texts. Each is

    stored compactly until all are there.
    """
    held: list[Table] = []
    for part in parts:
        start = _start(part.columns)
        held.append(
            Table(part.spec, {name: _narrow(data, start) for name, data in part.columns.items()})
            if held
            else part
        )
    if len(held) == 1:
        return held[0]
    columns: dict[str, Held] = {}
    for name in sorted(held[0].columns, key=lambda name: name != "start_ns"):
        # each is released before the next is made
        pieces = [part.columns.pop(name) for part in held]
        if isinstance(pieces[0], Text):
            texts = [piece for piece in pieces if isinstance(piece, Text)]
            assert all(text.values == texts[0].values for text in texts)
            columns[name] = Text(np.concatenate([text.codes for text in texts]), texts[0].values)
        else:
            whole = _joined(pieces)
            columns[name] = slim(whole, _start(columns)) if whole.dtype == np.int64 else whole
    return Table(held[0].spec, columns)


def _joined(pieces: Sequence[Held]) -> NDArray[Any]:
    """The values of these parts of a column, none of text, made wide one part after the other."""
    first = pieces[0]
    kind = first.dtype if isinstance(first, np.ndarray) else np.dtype(np.int64)
    values: NDArray[Any] = np.empty(sum(map(len, pieces)), kind)
    at = 0
    for piece in pieces:
        values[at : at + len(piece)] = wide(piece)
        at += len(piece)
    return values


def _start(columns: Mapping[str, Held]) -> IntArray | None:
    """The column of times to which the table's other times are close."""
    start = columns.get("start_ns")
    return (
        start  # type: ignore[return-value]
        if isinstance(start, np.ndarray) and start.dtype == np.int64 and not uniform(start)
        else None
    )


def _narrow(data: Held, near: IntArray | None) -> Held:
    if isinstance(data, Text) and not uniform(data):
        return Text(small_codes(data.codes, len(data.values)), data.values)
    if isinstance(data, (Text, Narrow)) or data.dtype != np.int64 or data is near or uniform(data):
        return data
    return narrowed(data, near) or data  # type: ignore[arg-type]  # the dtype is checked above


def maybe(values: IntArray) -> list[int | None]:
    """The values of an integer column as Python's, None where there is none."""
    found: list[int | None] = values.tolist()
    for row in np.flatnonzero(values == MISSING).tolist():
        found[row] = None
    return found


def sum_of(rows: Iterable[Row], column: str) -> int | None:
    """The sum of an integer column over the rows; None if none of them has a value."""
    known = [value for row in rows if (value := row.maybe_integer(column)) is not None]
    return sum(known) if known else None


def _part(data: Held, rows: slice) -> Held:
    if isinstance(data, Text):
        return Text(data.codes[rows], data.values)
    return data.part(rows) if isinstance(data, Narrow) else data[rows]


def _check(spec: Spec, column: Column, data: Held) -> None:
    if isinstance(data, Narrow):
        if column.kind != "int":
            raise TypeError(f"{spec.name}.{column.name}: declared {column.kind}, given integers")
        return
    kind = (
        "text"
        if isinstance(data, Text)
        else {"i": "int", "f": "float", "b": "bool"}.get(data.dtype.kind, str(data.dtype))
    )
    whole = isinstance(data, Text) or data.dtype in (np.int64, np.float64, np.bool_)
    if kind != column.kind or not whole:
        raise TypeError(
            f"{spec.name}.{column.name}: declared {column.kind}, given"
            f" {kind if isinstance(data, Text) else data.dtype}"
        )


def _nothing_known(column: Column, rows: int) -> Data:
    if column.kind == "text":
        return Text(np.full(rows, -1, np.int32), ())
    if column.kind == "int":
        return np.full(rows, MISSING)
    return np.full(rows, np.nan) if column.kind == "float" else np.zeros(rows, np.bool_)


def _column_of(column: Column, values: list[object]) -> Data:
    kinds = set(map(type, values))
    whole = type(None) not in kinds
    kinds.discard(type(None))
    if not kinds and column.nullable and values:  # nothing is known
        return _nothing_known(column, len(values))
    if column.kind == "text":
        if kinds <= {str} and (column.nullable or None not in values):
            return Text.of(values)  # type: ignore[arg-type]  # texts and None
        return Text.of(
            None if value is None and column.nullable else str("" if value is None else value)
            for value in values
        )
    if column.kind == "int":
        nothing = MISSING if column.nullable else 0
        if not kinds <= {int}:
            values = [None if value is None else int(str(value)) for value in values]
        if not whole:
            values = [nothing if value is None else value for value in values]
        return np.fromiter(values, np.int64, len(values))
    if column.kind == "float":
        nan = float("nan") if column.nullable else 0.0
        if not kinds <= {float}:
            values = [None if value is None else float(str(value)) for value in values]
        if not whole:
            values = [nan if value is None else value for value in values]
        return np.fromiter(values, np.float64, len(values))
    return np.array([bool(value) for value in values], dtype=np.bool_)
