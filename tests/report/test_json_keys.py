"""The keys of JSON are declared: a field that is renamed changes none, and none goes without a new
version of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from nsysmap.comparison.json_keys import COMPARISON
from nsysmap.comparison.pages import json_schema
from nsysmap.core.json_record import Declared, keys, record, record_schema
from nsysmap.output.json import SCHEMA, schema
from nsysmap.output.json_keys import LEFT_OUT, REPORT

KEPT = Path(__file__).parent / "report_1_keys.txt"
"""Every key of version 1: a line may be added, none removed."""

# of a comparison of inferences: tables, which are declared on their own
_ELSEWHERE = {"OneInference": {"contributions", "waits", "kernels"}}


@dataclass(frozen=True)
class Inner:
    """Of a test."""

    at_ns: int


@dataclass(frozen=True)
class Outer:
    """Of a test."""

    called: str
    parts: tuple[Inner, ...]
    hidden: int = 0


DECLARED: Declared = {Inner: keys("at=at_ns"), Outer: keys("name=called parts")}


def test_an_object_has_the_declared_keys_and_no_other() -> None:
    found = record(Outer("x", (Inner(3),), 7), DECLARED)
    assert found == {"name": "x", "parts": [{"at": 3}]}
    assert record_schema(Outer, DECLARED)["parts"]["items"]["required"] == ["at"]
    with pytest.raises(KeyError):
        record(Outer("x", ()), {Inner: keys("at_ns")})


@pytest.mark.parametrize("declared", [REPORT, COMPARISON])
def test_every_field_of_an_answer_is_declared(declared: Declared) -> None:
    for held, names in declared.items():
        own = {field.name for field in fields(held)} - _ELSEWHERE.get(held.__name__, set())
        own -= LEFT_OUT.get(held, frozenset())
        assert set(names.values()) == own, held.__name__


def test_no_key_of_version_1_is_gone() -> None:
    assert SCHEMA == "nsysmap/report/1"  # for another version, a list of its own
    kept = set(KEPT.read_text(encoding="utf-8").split())
    assert kept <= set(paths(schema()))


def test_the_schemas_name_no_key_twice() -> None:
    for made in (schema(), json_schema()):
        found = list(paths(made))
        assert len(found) == len(set(found))


def paths(held: Any, before: str = "") -> Iterator[str]:
    """Every key of a schema with those around it."""
    if not isinstance(held, dict):
        return
    for key, inner in held.get("properties", {}).items():
        yield f"{before}{key}"
        yield from paths(inner, f"{before}{key}.")
    for key, inner in held.get("$defs", {}).items():
        yield from paths(inner, f"${key}.")
    for inner in (held.get("items"), held.get("additionalProperties"), *held.get("anyOf", ())):
        yield from paths(inner, before)
