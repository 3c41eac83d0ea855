"""Runs the steps of edits, and writes them as Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nsysmap.edits.editor import Editor
from nsysmap.edits.model import Call

_WIDTH = 100  # columns of the script that is written


def run(steps: Sequence[Call], editor: Editor) -> None:
    """Make these calls on an editor, in order."""
    for step in steps:
        _value(step, editor)


def _value(one: Any, editor: Editor) -> Any:
    if isinstance(one, Call):
        owner, _, name = one.function.partition(".")
        function = getattr(editor if owner == "edit" else np, name)
        options = {name: _value(value, editor) for name, value in one.options.items()}
        return function(*(_value(value, editor) for value in one.arguments), **options)
    if isinstance(one, list):
        return [_value(value, editor) for value in one]
    return one


def written(step: Call) -> str:
    """A call as Python, on as many lines as it needs."""
    return _written(step, 0)


def _written(one: Any, indent: int) -> str:
    flat = _flat(one)
    if indent + len(flat) <= _WIDTH or not isinstance(one, Call | list) or not flat:
        return flat
    inner = indent + 4
    if isinstance(one, list):
        parts = [_written(value, inner) for value in one]
        return _folded("[", parts, "]", indent)
    parts = [_written(value, inner) for value in one.arguments]
    parts += [
        f"{name}={_written(value, inner + len(name) + 1)}" for name, value in one.options.items()
    ]
    return _folded(f"{one.function}(", parts, ")", indent)


def _folded(begin: str, parts: Sequence[str], end: str, indent: int) -> str:
    lines = [f"{' ' * (indent + 4)}{part}," for part in parts]
    return "\n".join([begin, *lines, f"{' ' * indent}{end}"])


def _flat(one: Any) -> str:
    if isinstance(one, Call):
        parts = [_flat(value) for value in one.arguments]
        parts += [f"{name}={_flat(value)}" for name, value in one.options.items()]
        return f"{one.function}({', '.join(parts)})"
    if isinstance(one, list):
        return f"[{', '.join(_flat(value) for value in one)}]"
    return f'"{one}"' if isinstance(one, str) and _plain(one) else repr(one)


def _plain(text: str) -> bool:
    return text.isprintable() and '"' not in text and "\\" not in text


def used(steps: Sequence[Call]) -> frozenset[str]:
    """The methods of the editor that these steps call."""
    found: set[str] = set()
    waiting: list[Any] = list(steps)
    while waiting:
        one = waiting.pop()
        if isinstance(one, Call):
            if one.function.startswith("edit."):
                found.add(one.function.removeprefix("edit."))
            waiting += [*one.arguments, *_values(one.options)]
        elif isinstance(one, list):
            waiting += one
    return frozenset(found)


def _values(options: Mapping[str, Any]) -> list[Any]:
    return list(options.values())
