"""Reads what `nsys export -t parquetdir`, `-t arrowdir` and `-t arrow` write: one file per table,
or all tables in one file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import MISSING, IntArray, Text
from nsysmap.inputs.nsys.tables import Columns, NsysTables, spelling

if TYPE_CHECKING:
    import pyarrow

PARQUET_MAGIC = b"PAR1"
ARROW_MAGIC = b"\xff\xff\xff\xff"  # the first message of a stream
_BATCH_ROWS = 1 << 14  # nsys 2023.4 writes groups of 2048 rows
_WHOLE_REAL = 2**53  # beyond it, a real number stands for several integers
_MOST_GROWTH = 64  # bytes that a byte of a file may stand for; nsys compresses nothing, others do
_SPARE_BYTES = 1 << 26  # of small files that ratio says little
_AGAIN = "export the report again: nsys export -t parquetdir REPORT.nsys-rep"


def table_files(folder: Path) -> tuple[str, dict[str, Path]]:
    """The form of an exported folder (``Parquet``, ``Arrow``, or empty for other folders) and its
    files by table.
    """
    held = sorted(folder.iterdir())
    for form, suffix in (("Parquet", ".parquet"), ("Arrow", ".arrow")):
        files = {path.stem: path for path in held if path.suffix == suffix and path.is_file()}
        if files:
            return form, files
    return "", {}


def folder_tables(folder: Path, form: str, files: Mapping[str, Path]) -> NsysTables:
    """The tables of an exported folder, see :func:`table_files`; only the schemas are read here."""
    columns = {
        table: _schema(path, form).names for table, path in files.items() if path.stat().st_size
    }

    def fetch(table: str, integers: Sequence[str], texts: Sequence[str]) -> Columns:
        read = _parquet if form == "Parquet" else _arrow
        return read(files[table], integers, texts)

    return NsysTables(folder, form, spelling(columns), fetch)


def stream_tables(path: Path) -> NsysTables:
    """The tables of one file of `nsys export -t arrow`, in which they stand one after the other,
    each with its name.
    """
    import pyarrow as pa

    begins: dict[str, int] = {}
    columns: dict[str, list[str]] = {}
    with _damage(path), pa.memory_map(str(path)) as source:
        while (begin := source.tell()) < source.size():
            reader = pa.ipc.open_stream(source)
            name = (reader.schema.metadata or {}).get(b"table_name", b"").decode("utf-8", "replace")
            for _ in reader:  # to where the next one begins
                pass
            if name and name not in begins:
                begins[name], columns[name] = begin, reader.schema.names

    def fetch(table: str, integers: Sequence[str], texts: Sequence[str]) -> Columns:
        return _arrow(path, integers, texts, begin=begins[table])

    return NsysTables(path, "Arrow", spelling(columns), fetch)


def _schema(path: Path, form: str) -> pyarrow.Schema:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _damage(path):
        if form == "Parquet":
            return pq.read_schema(path)
        with pa.OSFile(str(path)) as source:
            return pa.ipc.open_stream(source).schema


def _parquet(path: Path, integers: Sequence[str], texts: Sequence[str]) -> Columns:
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = path.stat().st_size
    with _damage(path), pq.ParquetFile(path, pre_buffer=False) as file:
        rows = file.metadata.num_rows
        bytes_told = sum(
            file.metadata.row_group(group).total_byte_size
            for group in range(file.metadata.num_row_groups)
        )
        if rows > size or bytes_told > _MOST_GROWTH * size + _SPARE_BYTES:
            raise pa.ArrowInvalid("it says that it holds more than its size explains")
        batches = file.iter_batches(_BATCH_ROWS, columns=[*integers, *texts], use_threads=False)
        return _columns(path, rows, batches, integers, texts)


def _arrow(path: Path, integers: Sequence[str], texts: Sequence[str], *, begin: int = 0) -> Columns:
    import pyarrow as pa

    with _damage(path), pa.memory_map(str(path)) as source:
        source.seek(begin)
        batches = list(pa.ipc.open_stream(source))
        return _columns(path, sum(len(batch) for batch in batches), batches, integers, texts)


def _columns(
    path: Path,
    rows: int,
    batches: Iterable[pyarrow.RecordBatch],
    integers: Sequence[str],
    texts: Sequence[str],
) -> dict[str, IntArray | Text]:
    numbers = {name: np.empty(rows, np.int64) for name in integers}
    codes = {name: np.empty(rows, np.int32) for name in texts}
    seen: dict[str, dict[str, int]] = {name: {} for name in texts}
    begin = 0
    for batch in batches:
        end = begin + len(batch)
        for name in integers:
            numbers[name][begin:end] = _ints(path, name, batch.column(name))
        for name in texts:
            codes[name][begin:end] = _codes(path, name, batch.column(name), seen[name])
        begin = end
    columns: dict[str, IntArray | Text] = {**numbers}
    columns.update({name: Text(codes[name], tuple(seen[name])) for name in texts})
    return columns


def _ints(path: Path, name: str, column: pyarrow.Array) -> Any:
    """The values, to be put into int64: ids that nsys writes as uint64 keep their bits, as in
    SQLite.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return MISSING
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise NsysmapError(str(path), f"column {name} holds {kind}, not integers", _AGAIN)
    values = np.frombuffer(column.buffers()[1] or b"", kind.to_pandas_dtype())[
        column.offset : column.offset + len(column)
    ]
    missing = _missing(column)
    if pa.types.is_floating(kind):
        missing = np.isnan(values) if missing is None else missing | np.isnan(values)
        values = np.where(missing, 0.0, values)
        if not ((np.abs(values) <= _WHOLE_REAL) & (values == np.floor(values))).all():
            raise NsysmapError(
                str(path), f"column {name} holds real numbers, not only integers", _AGAIN
            )
    values = values.view(np.int64) if kind == pa.uint64() else values
    return (
        values if missing is None else np.where(missing, np.int64(MISSING), values.astype(np.int64))
    )


def _codes(path: Path, name: str, column: pyarrow.Array, seen: dict[str, int]) -> Any:
    """The numbers of the texts in ``seen``, which grows; -1 for NULL and for empty."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return -1
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise NsysmapError(str(path), f"column {name} holds {kind}, not text", _AGAIN)
    if kind is column.type:
        column = column.dictionary_encode()
    number = np.array(
        [
            *(
                seen.setdefault(value, len(seen)) if value else -1
                for value in column.dictionary.to_pylist()
            ),
            -1,
        ],
        np.int32,
    )
    indices = column.indices
    places = np.frombuffer(indices.buffers()[1] or b"", indices.type.to_pandas_dtype())[
        indices.offset : indices.offset + len(indices)
    ]
    missing = _missing(indices)
    return number[places if missing is None else np.where(missing, len(number) - 1, places)]


def _missing(array: pyarrow.Array) -> Any:
    """Marks the values that are NULL; None if no value is."""
    bitmap = array.buffers()[0]
    if bitmap is None or not array.null_count:
        return None
    bits = np.unpackbits(
        np.frombuffer(bitmap, np.uint8), bitorder="little", count=array.offset + len(array)
    )
    return bits[array.offset :] == 0


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        told = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise NsysmapError(
            str(path), f"cannot be read as a table of nsys ({told})", _AGAIN
        ) from error
