"""JSON objects of values by declaration: which keys an object has, and the attribute that each
holds.

A field that is renamed or added changes no JSON: its key is declared apart from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints

from nsysmap.core.json_schema import Schema, schema_of_hint
from nsysmap.core.table import Spec

Keys = Mapping[str, str]
"""For each key, in the object's order, the attribute that it holds."""

Declared = Mapping[type, Keys]
"""The keys of the object of each type."""


def keys(names: str) -> Keys:
    """Keys, separated by spaces: each is called as its attribute, or is ``key=attribute``."""
    pairs = [name.partition("=") for name in names.split()]
    return {key: attribute or key for key, _, attribute in pairs}


def record(value: object, declared: Declared) -> Any:
    """The value as JSON: an object for each dataclass, which must be declared."""
    if is_dataclass(value) and not isinstance(value, type):
        kinds = [kind for kind in type(value).__mro__ if kind in declared] or [type(value)]
        held = declared[kinds[0]]
        return {key: record(getattr(value, attribute), declared) for key, attribute in held.items()}
    if isinstance(value, (list, tuple)):
        return [record(one, declared) for one in value]
    if isinstance(value, Mapping):
        return {key: record(one, declared) for key, one in value.items()}
    return value


def record_schema(
    value: type,
    declared: Declared,
    *,
    spec: Spec | None = None,
    known: Mapping[object, Schema] | None = None,
) -> Schema:
    """Each key of the object of such a value with its type, and with its column's comment if
    ``spec`` declares it; ``known`` gives the types of some.
    """
    meanings = {} if spec is None else {column.name: column.comment for column in spec.columns}
    hints = get_type_hints(value)
    found = {}
    for key, attribute in declared[value].items():
        told = schema_of_hint(
            hints[attribute],
            known or {},
            lambda one: record_schema(one, declared, known=known),
        )
        meaning = meanings.get(attribute)
        found[key] = told if meaning is None else {**told, "description": meaning}
    return found
