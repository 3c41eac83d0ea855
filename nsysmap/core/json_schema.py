"""JSON Schema of values and of the declared tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from nsysmap.core.table import Spec

Schema = dict[str, Any]

TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_TYPES: Mapping[object, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}
_KINDS = {"int": "integer", "float": "number", "text": "string", "bool": "boolean"}


def object_of(properties: Schema) -> Schema:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def list_of(items: Schema) -> Schema:
    """A list of such items."""
    return {"type": "array", "items": items}


def or_null(held: Schema) -> Schema:
    """That, or null."""
    if set(held) == {"type"} and isinstance(held["type"], str):
        return {"type": [held["type"], "null"]}
    return {"anyOf": [held, {"type": "null"}]}


def columns_of(spec: Spec) -> Schema:
    """Each column of a declared table with its type and meaning."""
    found = {}
    for column in spec.columns:
        kind = _KINDS[column.kind]
        found[column.name] = {
            "type": [kind, "null"] if column.nullable else kind,
            "description": column.comment,
        }
    return found


def schema_of_hint(
    hint: Any, known: Mapping[object, Schema], fields_of: Callable[[type], Schema]
) -> Schema:
    """The schema of values of an annotated type: ``known`` gives those of some types, and
    ``fields_of`` the properties of a dataclass.
    """

    def typed(held: Any) -> Schema:
        return schema_of_hint(held, known, fields_of)

    if hint in known:
        return known[hint]
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return object_of(fields_of(hint))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return or_null(typed(next(one for one in arguments if one is not type(None))))
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return list_of(typed(arguments[0]))
    if origin is tuple:
        return {"type": "array", "prefixItems": [typed(one) for one in arguments], "items": False}
    return {"type": "object"}
