"""Passes a table to the database as stored, in little memory, with the SQL that makes the declared
columns of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.memory import Narrow, arrow_array, arrow_ints, arrow_texts, small_codes
from nsysmap.core.table import MISSING, BoolArray, Table, Text, uniform

if TYPE_CHECKING:
    import pyarrow

_METADATA = b"nsysmap"
_NEAR = "near"  # the column that narrow ones are near to, beside the declared ones


def given_table(table: Table) -> pyarrow.Table:
    """The rows as an Arrow table; narrow integers stay narrow, one value of all rows is not
    repeated: see :func:`selected`.
    """
    import pyarrow as pa

    near = next(
        (
            held.near
            for held in table.columns.values()
            if isinstance(held, Narrow) and held.near is not None
        ),
        None,
    )
    arrays: dict[str, pyarrow.Array] = {}
    made: dict[str, dict[str, object]] = {}
    for name, held in table.columns.items():
        if isinstance(held, Narrow) and (held.near is None or held.near is near):
            arrays[name] = _codes(held)
            made[name] = {"least": held.least, "near": held.near is not None}
        elif isinstance(held, np.ndarray) and held.dtype != np.bool_ and uniform(held):
            made[name] = _literal(held[0])
        elif isinstance(held, Text):
            codes = small_codes(held.codes, len(held.values))
            arrays[name] = pa.DictionaryArray.from_arrays(
                _indices(codes, codes < 0), arrow_texts(held.values)
            )
        else:
            arrays[name] = table.arrow([name]).column(0)
    if not arrays:  # something must tell how many rows there are
        first = next(iter(table.columns))
        del made[first]
        arrays[first] = table.arrow([first]).column(0)
    if near is not None:
        arrays[_NEAR] = arrow_ints(near)
    found = pa.table(arrays)
    return (
        found.replace_schema_metadata({_METADATA: json.dumps([list(table.columns), made])})
        if made
        else found
    )


def selected(table: pyarrow.Table) -> str:
    """What to select from a table of :func:`given_table` for the declared columns."""
    told = (table.schema.metadata or {}).get(_METADATA)
    if told is None:
        return "*"
    names, made = json.loads(told)
    return ", ".join(
        f'{_expression(name, made[name])} AS "{name}"' if name in made else f'"{name}"'
        for name in names
    )


def _literal(value: np.generic) -> dict[str, object]:
    """One value of all rows, as SQL writes it."""
    if value.dtype == np.int64:
        return {"value": "NULL" if value == MISSING else str(value), "type": "BIGINT"}
    return {"value": "NULL" if np.isnan(value) else f"'{float(value)!r}'", "type": "DOUBLE"}


def _expression(name: str, made: dict[str, int | str]) -> str:
    if "value" in made:
        return f"CAST({made['value']} AS {made['type']})"
    near = f' + "{_NEAR}"' if made["near"] else ""
    return f'CAST("{name}" AS BIGINT) + CAST({made["least"]} AS BIGINT){near}'


def _codes(held: Narrow) -> pyarrow.Array:
    return _indices(
        held.codes, held.codes == np.iinfo(held.codes.dtype).max if held.missing else None
    )


def _indices(codes: NDArray[Any], missing: BoolArray | None) -> pyarrow.Array:
    import pyarrow as pa

    return arrow_array(pa.from_numpy_dtype(codes.dtype), codes, missing)
