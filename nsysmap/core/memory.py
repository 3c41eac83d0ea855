"""The memory of large arrays: integers in as few bytes as they need, Arrow arrays over the same
memory, freed memory kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.records import dataclass

if TYPE_CHECKING:
    import pyarrow

_MISSING = int(np.iinfo(np.int64).min)  # as in base.table
_KINDS = (np.uint8, np.uint16, np.uint32)
# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = (
    -1,
    -2,
    -3,
    -4,
    -8,
)
_KEPT_BYTES = 2**31 - 1  # the largest value that the call accepts
_AT_ONCE_BYTES = 2**26  # by which the heap grows and shrinks: fewer calls of the system
_LARGEST_KEPT_BYTES = 2**25  # the largest value that glibc accepts
_MANY_ARRAYS = 2**16
"""That glibc may map on their own: its default, which setting the option above would end."""
_ROWS_AT_ONCE = 1 << 19  # 4 MiB per column


@dataclass(frozen=True)
class Narrow:
    """An int64 column as small codes, to which ``least`` and, if given, ``near`` are added."""

    codes: NDArray[Any]  # unsigned
    least: int
    # another column to which this one is always close, such as the start of an end
    near: NDArray[np.int64] | None
    missing: bool  # the greatest code stands for a missing value

    def __len__(self) -> int:
        return len(self.codes)

    def wide(self) -> NDArray[np.int64]:
        """The values, in a new array."""
        values = self.codes.astype(np.int64)
        values += self.least
        if self.near is not None:
            values += self.near
        if self.missing:
            values[self.codes == np.iinfo(self.codes.dtype).max] = _MISSING
        return values

    @property
    def repeated(self) -> int | None:
        """The value that all rows have, where it is stored once; else None."""
        once = self.codes.strides == (0,) and self.near is None and not self.missing
        return int(self.codes[0]) + self.least if once and len(self.codes) else None

    def part(self, rows: slice | NDArray[Any]) -> Narrow:
        """These rows; those of a slice over the same memory."""
        return Narrow(
            self.codes[rows],
            self.least,
            None if self.near is None else self.near[rows],
            self.missing,
        )

    def take(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The values of the rows at these positions."""
        return self.part(rows).wide()


def narrowed(values: NDArray[np.int64], near: NDArray[np.int64] | None) -> Narrow | None:
    """The column in at most half its bytes, by itself or as differences from ``near``; None if the
    values are too far apart.
    """
    if not len(values):
        return None
    known = None
    if int(values.min()) == _MISSING:
        known = values != _MISSING
    return _coded(values, known, None) or (None if near is None else _coded(values, known, near))


def compact(values: NDArray[np.int64]) -> Ints:
    """The column in few bytes, if it can be; one value throughout takes none."""
    if len(values) and (values == values[0]).all():
        return Narrow(np.broadcast_to(np.uint8(0), len(values)), int(values[0]), None, False)
    return narrowed(values, None) or values


def _coded(
    values: NDArray[np.int64], known: NDArray[np.bool_] | None, near: NDArray[np.int64] | None
) -> Narrow | None:
    # a missing value may overflow and is ignored
    offsets = values if near is None else values - near
    if known is None:
        least, greatest = int(offsets.min()), int(offsets.max())
    else:
        bounds = np.iinfo(np.int64)
        least = int(offsets.min(where=known, initial=bounds.max))
        greatest = int(offsets.max(where=known, initial=bounds.min))
        if least > greatest:  # no value at all
            return None
    for kind in _KINDS:
        top = int(np.iinfo(kind).max)
        if greatest - least + (known is not None) <= top:
            codes = np.empty(len(values), kind)
            np.subtract(offsets, least, out=codes, casting="unsafe")
            if known is not None:
                codes[~known] = top
            return Narrow(codes, least, near, known is not None)
    return None


Ints = NDArray[np.int64] | Narrow
"""An integer column in any storage."""


def whole(held: Ints) -> NDArray[np.int64]:
    """The values of a column that may be stored as narrow codes."""
    return held.wide() if isinstance(held, Narrow) else held


def in_pieces(*columns: Ints) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Row numbers and the columns (of the same length) in batches of rows: a whole large table
    takes much memory.
    """
    for first in range(0, len(columns[0]), _ROWS_AT_ONCE):
        rows = slice(first, min(first + _ROWS_AT_ONCE, len(columns[0])))
        yield (
            np.arange(rows.start, rows.stop),
            *(
                whole(held.part(rows) if isinstance(held, Narrow) else held[rows])
                for held in columns
            ),
        )


def small_codes(codes: NDArray[Any], values: int) -> NDArray[Any]:
    """Codes of that many values, from -1 on, in as few bytes as they need."""
    return codes.astype(
        next(kind for kind in (np.int8, np.int16, np.int32) if values <= np.iinfo(kind).max),
        copy=False,
    )


def arrow_array(
    kind: pyarrow.DataType,
    data: NDArray[np.generic],
    missing: NDArray[np.bool_] | None,
    *,
    rows: int | None = None,
) -> pyarrow.Array:
    """The Arrow array over the same memory; pyarrow.array() would do, but imports pandas, which
    takes longer than all rules.
    """
    import pyarrow as pa

    validity = (
        None
        if missing is None or not missing.any()
        else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    )
    return pa.Array.from_buffers(
        kind,
        len(data) if rows is None else rows,
        [validity, pa.py_buffer(np.ascontiguousarray(data))],
    )


def arrow_ints(values: NDArray[np.int64]) -> pyarrow.Array:
    """An Arrow array over the same memory."""
    import pyarrow as pa

    return arrow_array(pa.int64(), values, None)


def arrow_texts(values: Sequence[str]) -> pyarrow.Array:
    """An Arrow array of these texts; invalid Unicode is replaced."""
    import pyarrow as pa

    encoded = [value.encode(errors="replace") for value in values]  # a file name need not be UTF-8
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    small = int(ends[-1]) <= np.iinfo(np.int32).max
    offsets = ends.astype(np.int32) if small else ends
    return pa.Array.from_buffers(
        pa.string() if small else pa.large_string(),
        len(values),
        [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))],
    )


def keep_freed_memory() -> None:
    """Have freed memory stay with this process, for any of its threads: otherwise every large array
    consists of new pages, which the kernel must clear.

    This saves a fifth of the time of a large report. Does nothing if the C library is not glibc.
    """
    _set_options(
        (_M_MMAP_MAX, 0),
        (_M_TRIM_THRESHOLD, _KEPT_BYTES),
        (_M_TOP_PAD, _AT_ONCE_BYTES),
        (_M_ARENA_MAX, 1),
    )
    _keeps.append(True)


def give_back_large_arrays() -> None:
    """Have arrays of 32 MiB and more return to the system when they are freed, even if freed memory
    is otherwise kept.

    Kept, they leave holes into which no other array fits: 0.4 GiB with 2×10^7 kernels.
    """
    if _keeps:
        _set_options((_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES), (_M_MMAP_MAX, _MANY_ARRAYS))


def give_back_freed_memory() -> None:
    """Returns freed memory to the system now, and that of large arrays from now on: for long
    memory-intensive work after all else is done.
    """
    if _keeps:
        give_back_large_arrays()
        _c_library("malloc_trim")(0)


_keeps: list[bool] = []


def _set_options(*options: tuple[int, int]) -> None:
    set_option = _c_library("mallopt")
    for option, value in options:
        set_option(option, value)


def _c_library(name: str) -> Callable[..., object]:
    """A function of glibc; one that does nothing where the C library is another."""
    if not sys.platform.startswith("linux"):
        return _nothing
    import ctypes

    try:
        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except AttributeError:  # musl
        return _nothing
    return found


def _nothing(*_: int) -> None:
    """Does nothing, as on systems without glibc."""
