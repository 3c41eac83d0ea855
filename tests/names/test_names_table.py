"""Every line of tests/names/*.tsv is a name and everything that the decoder must say of it."""

from __future__ import annotations

import csv
import json

import pytest

from nsysmap.names.decode import decode
from tests.places import NAME_TABLES

TABLES = sorted((NAME_TABLES).glob("*.tsv"))


def _rows() -> list[dict[str, str]]:
    rows = []
    for table in TABLES:
        with table.open(encoding="utf-8", newline="") as file:
            rows += list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return rows


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row["name"][:70])
def test_a_name_says_what_the_table_says(row: dict[str, str]) -> None:
    decoded = decode(row["name"])
    fields = dict(decoded.fields)
    said = {
        "family": decoded.family,
        "kind": decoded.kind,
        "operation": str(fields.pop("operation", "")),
        "generation": str(decoded.generation or ""),
        "ops": " ".join(op.op.replace(" ", "_") for op in decoded.ops),
        "patterns": " ".join(
            f"{pattern.name}:{pattern.first}-{pattern.last}" for pattern in decoded.patterns
        ),
        "tensor_cores": decoded.tensor_cores,
        "rest": decoded.rest,
    }
    assert said == {key: row[key] for key in said}
    assert fields == json.loads(row["fields"])
    assert "".join(decoded.pieces) == row["name"]


def test_the_table_has_names_of_every_kind_from_many_sources() -> None:
    rows = _rows()
    assert len({row["name"] for row in rows}) == len(rows) >= 400
    assert len({row["source"] for row in rows}) >= 25
    assert {row["kind"] for row in rows} == {"kernel", "layer", "range", "unknown"}
    assert {row["tensor_cores"] for row in rows} == {"yes", "no", "unknown"}
    assert {row["generation"] for row in rows} == {"3", "4", ""}
