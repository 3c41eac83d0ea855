"""Writes the map, one row per kernel with its layer, as CSV, Parquet or JSON."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.memory import arrow_ints, arrow_texts
from nsysmap.core.output_file import replacing
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Data, IntArray, Table, Text, mapped, uniform
from nsysmap.text.terminal import escaped
from nsysmap.text.units import percent

if TYPE_CHECKING:
    from concurrent.futures import Future

    import pyarrow

SUFFIXES = (".csv", ".parquet", ".json")
COLUMNS = {
    "kernel_id": "kernel_id", "start_ns": "start_ns", "end_ns": "end_ns", "device": "device",
    "stream": "stream", "pid": "pid",
    "inference": "inference", "position": "position", "kernel": "name", "engine": "engine",
    "layer_index": "layer_index",
    "layer": "layer", "part": "part", "method": "method", "confidence": "confidence",
    "reason": "reason",
    "part_by": "part_by", "layer_title": "layer_title",
}  # fmt: skip
"""The map's columns, in order, and which column of schema.KERNELS each is."""
# formatted row by row; the others repeat and are looked up
_DISTINCT = (
    "kernel_id",
    "start_ns",
    "end_ns",
    "inference",
    "position",
)
_BATCH_ROWS = 16_384  # that are made and written together
_GROUP_ROWS = 1 << 18  # of a Parquet file
_WORKERS = 2  # threads: one makes rows while another packs those before
_CONFIDENCE_DIGITS = 4  # beyond which a probability is noise
_FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True)
class _Form:
    """How a row of text is put together."""

    begin: str
    end: str
    # what stands before the value of column number i, and its name
    before: Callable[[int, str], str]
    after: str
    nothing: str
    quoted: Callable[[str], str]


def write_map(kernels: Table, path: Path) -> None:
    """Write schema.KERNELS as a map to ``path``, in the format that its suffix names; whole or not
    at all.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise NsysmapError(
            str(path), "has no suffix that names a format", f"use {', '.join(SUFFIXES)}"
        )
    with replacing(path) as fresh:
        if suffix == ".parquet":
            _write_parquet(kernels, fresh)
        else:
            with fresh.open("wb") as file:
                write_rows(kernels, file, as_json=suffix == ".json")


def write_rows(kernels: Table, file: BinaryIO, *, as_json: bool = False) -> None:
    """Write the map as CSV (a heading, then one line per kernel; no value is an empty cell) or as a
    JSON array of objects.
    """
    form = _JSON if as_json else _CSV
    file.write(form.begin.encode())
    # every JSON row begins with the comma that parts it from the one before
    skip = len(",\n") if as_json else 0
    for batch in _batches(kernels, form):
        file.write(batch[skip:])
        skip = 0
    file.write(form.end.encode())


def coverage_line(coverage: Table, *, hidden: bool = False) -> str:
    """One line on schema.COVERAGE: how many kernels have a layer, by number and by time, and by
    which methods.

    If the trace has ``hidden`` kernels, in CUDA graphs traced as a whole, it says that it is about
    the visible ones.
    """
    visible = "visible " if hidden else ""
    rows = [
        (row.text("method"), row.integer("kernels"), row.integer("time_ns")) for row in coverage
    ]
    kernels, time_ns = sum(row[1] for row in rows), sum(row[2] for row in rows)
    mapped = [row for row in rows if row[0] != "none"]
    share = percent(sum(row[2] for row in mapped), time_ns, 2)
    how = ", ".join(f"{method} {count:,}" for method, count, _ in rows)
    return (
        f"{sum(row[1] for row in mapped):,} of {kernels:,} {visible}kernels have a layer, {share}"
        f" of {visible}kernel time ({how})"
    )


# --- text
# --------------------------------------------------------------------------------------------------


def csv_cell(text: str) -> str:
    """A text as a cell of CSV that drives neither a terminal nor a spreadsheet.

    Control characters are escaped, and what a spreadsheet would take for a formula begins with an
    apostrophe; JSON and Parquet hold names as they are.
    """
    text = escaped(text)
    if text.startswith(_FORMULA):
        text = "'" + text
    if text and not any(char in text for char in ',"'):
        return text
    # "" where the text is empty: a cell of nothing at all is no value
    return '"' + text.replace('"', '""') + '"'


_CSV = _Form(",".join(COLUMNS) + "\n", "", lambda i, _name: "," if i else "", "\n", "", csv_cell)
_JSON = _Form(
    "[\n",
    "\n]\n",
    lambda i, name: f'{"," if i else "," + chr(10) + "{"}"{name}":',
    "}",
    "null",
    json.dumps,
)


def _batches(kernels: Table, form: _Form) -> Iterator[memoryview]:
    """The rows as UTF-8, some thousands at a time.

    Columns that repeat (the kernel's and the layer's names above all) are written once for each
    distinct combination and then looked up: four times as fast as formatting every cell.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[tuple[pyarrow.Array, pyarrow.Array | None]] = []  # numbers, or (codes, texts)
    fixed: list[str] = []  # what stands before each part
    run: list[tuple[int, str]] = []
    for i, name in enumerate([*COLUMNS, ""]):
        if run and (name in _DISTINCT or not name):
            parts.append(
                _looked_up(kernels, run, form, form.before(i, name) if name else form.after)
            )
            fixed.append("")
            run = []
        if name in _DISTINCT:
            parts.append((kernels.arrow([COLUMNS[name]]).column(0).chunk(0), None))
            # the texts end with it
            fixed.append("" if fixed and parts[-2][1] is not None else form.before(i, name))
        elif name:
            run.append((i, name))

    def rows_from(start: int) -> memoryview:
        pieces: list[object] = []
        for (first, texts), before in zip(parts, fixed, strict=True):
            held = first.slice(start, _BATCH_ROWS)
            if before:
                pieces.append(pa.scalar(before))
            pieces.append(held.cast(pa.string()) if texts is None else texts.take(held))
        joined = pc.binary_join_element_wise(
            *pieces, "", null_handling="replace", null_replacement=form.nothing
        )
        offsets = np.frombuffer(joined.buffers()[1], np.int32)
        return memoryview(joined.buffers()[2])[: offsets[len(joined)]]

    return _in_order(rows_from, range(0, len(kernels), _BATCH_ROWS))


def _in_order(work: Callable[[int], memoryview], items: Iterable[int]) -> Iterator[memoryview]:
    """The results in the order of the items; two are made at a time (Arrow lets go of the
    interpreter), few are kept waiting.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_WORKERS) as pool:
        waiting: deque[Future[memoryview]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * _WORKERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _looked_up(
    kernels: Table, run: Sequence[tuple[int, str]], form: _Form, after: str
) -> tuple[pyarrow.Array, pyarrow.Array]:
    """Adjacent columns as one: each row's code, and the text of every distinct combination with
    what stands behind it.
    """
    data = [_rounded(kernels.column(COLUMNS[name])) for _, name in run]
    codes, rows = _combined(data)
    texts = [
        "".join(form.before(i, name) + value for (i, name), value in zip(run, values, strict=True))
        + after
        for values in zip(*(_cells(column, rows, form) for column in data), strict=True)
    ]
    return arrow_ints(codes), arrow_texts(texts)


def _rounded(data: Data) -> Data:
    return (
        data
        if isinstance(data, Text) or data.dtype != np.float64
        else np.round(data, _CONFIDENCE_DIGITS)
    )


def _cells(data: Data, rows: IntArray, form: _Form) -> list[str]:
    chosen = data.take(rows)
    if isinstance(chosen, Text):
        # code -1 reads the last one
        quoted = [
            *(form.quoted(value) for value in chosen.values),
            form.nothing,
        ]
        return [quoted[code] for code in chosen.codes.tolist()]
    if chosen.dtype == np.float64:
        return [form.nothing if math.isnan(value) else f"{value:g}" for value in chosen.tolist()]
    return [form.nothing if value == MISSING else str(value) for value in chosen.tolist()]


def _combined(columns: Sequence[Data]) -> tuple[IntArray, IntArray]:
    """For each row the number of its combination of values, and for each combination one row that
    has it.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    for data in columns:
        values = data.codes if isinstance(data, Text) else data
        if len(values) == 0 or (values == values[0]).all():
            continue
        whole = (
            values.view(np.int64)
            if values.dtype == np.float64
            else values.astype(np.int64, copy=False)
        )
        encoded = arrow_ints(whole).dictionary_encode()
        pair = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        codes = arrow_ints(pair).dictionary_encode().indices.to_numpy().astype(np.int64)
    rows = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    rows[codes] = np.arange(len(codes))
    return codes, rows


# --- Parquet
# --------------------------------------------------------------------------------------------------


def _write_parquet(kernels: Table, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rounded = mapped(
        kernels.floats("confidence"), lambda values: np.round(values, _CONFIDENCE_DIGITS)
    )
    held = kernels.with_columns(kernels.spec, {"confidence": rounded})
    same = [name for name, column in COLUMNS.items() if uniform(held.columns[column])]
    few = [
        name
        for name, column in COLUMNS.items()
        if name not in _DISTINCT and (name in same or isinstance(held.columns[column], Text))
    ]
    schema = held.part(0, 0).arrow(list(COLUMNS.values())).rename_columns(list(COLUMNS)).schema
    repeated = dict(
        zip(
            same,
            held.part(0, _GROUP_ROWS).arrow([COLUMNS[name] for name in same]).columns,
            strict=True,
        )
    )
    # a dictionary of start times is work for nothing; differences of neighbours are small
    steps = dict.fromkeys(_DISTINCT, "DELTA_BINARY_PACKED")
    with pq.ParquetWriter(
        path,
        schema,
        compression="snappy",
        use_dictionary=few,
        column_encoding=steps,
        write_statistics=False,
    ) as writer:
        for start in range(0, max(len(held), 1), _GROUP_ROWS):
            rows = min(len(held) - start, _GROUP_ROWS)
            piece = held.part(start, start + rows).arrow(
                [column for name, column in COLUMNS.items() if name not in repeated]
            )
            others = iter(piece.columns)
            columns = [
                repeated[name].slice(0, rows) if name in repeated else next(others)
                for name in COLUMNS
            ]
            writer.write_table(
                pa.Table.from_arrays(columns, schema=schema), row_group_size=_GROUP_ROWS
            )
