"""Packs columns of integers into few bytes: differences if they are smaller, zigzag-coded, split
into byte planes, deflated.

unpack.js reads them.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping

import numpy as np

from nsysmap.core.table import MISSING, IntArray

Columns = Mapping[str, IntArray]

_LEVEL = 9  # of zlib, the highest: a page is written once and sent often


def packed(tables: Mapping[str, Columns]) -> str:
    """Columns of integers, by table and name, as text in base64; MISSING becomes -1.

    The deflated data are the length of a JSON header (4 bytes, little endian), the header, and the
    planes.  The header has for each table its rows and for each column [name, planes, differences,
    wide]: the bytes per value, whether they are differences from the previous value, and whether a
    value needs more than 32 bits.
    """
    header: dict[str, dict[str, object]] = {}
    planes: list[bytes] = []
    for table, columns in tables.items():
        described: list[list[object]] = []
        rows = 0
        for name, given in columns.items():
            rows = len(given)
            values = np.where(given == MISSING, -1, given)
            count, differences = _planes(values, planes)
            described.append(
                [
                    name,
                    count,
                    int(differences),
                    int(bool(len(values)) and int(np.abs(values).max()) >= 2**31),
                ]
            )
        header[table] = {"rows": rows, "columns": described}
    return deflated(json.dumps(header, separators=(",", ":")).encode(), *planes)


def deflated(head: bytes, *rest: bytes) -> str:
    """The length of the first part, and all parts, deflated, as text in base64."""
    return b64encode(
        zlib.compress(len(head).to_bytes(4, "little") + head + b"".join(rest), _LEVEL)
    ).decode()


def _planes(values: IntArray, planes: list[bytes]) -> tuple[int, bool]:
    """Adds a column's planes; returns their number, and whether they contain differences."""
    if len(values) == 0:
        return 0, False
    steps = np.diff(values, prepend=np.int64(0))
    plain, stepwise = _folded(values), _folded(steps)
    differences = float(np.log2(stepwise + 1.0).sum()) < float(np.log2(plain + 1.0).sum())
    folded = stepwise if differences else plain
    count = (int(folded.max()).bit_length() + 7) // 8
    by_byte = folded.astype("<u8").view(np.uint8).reshape(-1, 8)
    planes.extend(by_byte[:, place].tobytes() for place in range(count))
    return count, differences


def _folded(values: IntArray) -> IntArray:
    """0, -1, 1, -2, … as 0, 1, 2, 3, …"""
    folded: IntArray = (values << 1) ^ (values >> 63)
    return folded
