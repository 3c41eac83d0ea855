"""JSON Schema of values: of frozen dataclasses from their types and the declared tables'
comments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

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


def fields_of(
    value: type, spec: Spec | None = None, known: Mapping[object, Schema] | None = None
) -> Schema:
    """Each field of a dataclass with its type, and with its column's comment if ``spec`` declares
    it; ``known`` gives the types of some.
    """
    meanings = {} if spec is None else {column.name: column.comment for column in spec.columns}
    hints = get_type_hints(value)
    found = {}
    for field in fields(value):
        told = _typed(hints[field.name], known or {})
        found[field.name] = (
            {**told, "description": meanings[field.name]} if field.name in meanings else told
        )
    return found


def _typed(hint: Any, known: Mapping[object, Schema]) -> Schema:
    if hint in known:
        return known[hint]
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return object_of(fields_of(hint, known=known))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return or_null(_typed(next(one for one in arguments if one is not type(None)), known))
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return list_of(_typed(arguments[0], known))
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [_typed(one, known) for one in arguments],
            "items": False,
        }
    return {"type": "object"}
