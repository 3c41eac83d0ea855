"""Reads back what the page's packing wrote, as the page's script does."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode

import numpy as np

from nsysmap.core.table import IntArray


def read(text: str) -> dict[str, dict[str, IntArray]]:
    """The columns by table and name."""
    plain = zlib.decompress(b64decode(text))
    at = 4 + int.from_bytes(plain[:4], "little")
    tables: dict[str, dict[str, IntArray]] = {}
    for name, told in json.loads(plain[4:at]).items():
        tables[name] = {}
        for column, planes, differences, _wide in told["columns"]:
            values = np.zeros(told["rows"], np.int64)
            for place in range(planes):
                values |= np.frombuffer(plain, np.uint8, told["rows"], at).astype(np.int64) << (
                    8 * place
                )
                at += told["rows"]
            values = (values >> 1) ^ -(values & 1)
            tables[name][column] = np.cumsum(values) if differences else values
    assert at == len(plain)
    return tables
