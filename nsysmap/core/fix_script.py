"""The prediction in a script of `nsysmap fix`, as a literal that comparisons read again."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.records import dataclass

_NAME = "PREDICTED"
_MOST_BYTES = 64 << 20  # a script that nsysmap fix wrote is far smaller


@dataclass(frozen=True)
class ScriptPrediction:
    """How much the edits of a script save per inference, with the range."""

    edits: tuple[str, ...]  # their kinds
    saves_ns: int
    low_ns: int
    high_ns: int


def prediction_lines(edits: Sequence[str], saves_ns: int, low_ns: int, high_ns: int) -> str:
    """The lines of the script that have its prediction."""
    kinds = "".join(f'        "{one}",\n' for one in edits)
    return (
        f'{_NAME} = {{\n    "edits": [\n{kinds}    ],\n    "saves_ns": {saves_ns},\n'
        f'    "low_ns": {low_ns},\n    "high_ns": {high_ns},\n}}\n'
    )


def read_prediction(path: str | Path) -> ScriptPrediction:
    """The prediction in a script; the script is not run.

    Raises NsysmapError if it has none.
    """
    file = named_path(path)
    remedy = "give a script that `nsysmap fix` wrote"
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise NsysmapError(str(path), "is no script of `nsysmap fix`", remedy)
        tree = ast.parse(file.read_bytes())
        for node in tree.body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == _NAME
            ):
                held = ast.literal_eval(node.value)
                return ScriptPrediction(
                    tuple(str(one) for one in held["edits"]),
                    *(int(held[name]) for name in ("saves_ns", "low_ns", "high_ns")),
                )
    except OSError as error:
        raise NsysmapError(str(path), f"cannot be read ({error.strerror})", remedy) from None
    except (SyntaxError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        pass
    raise NsysmapError(str(path), "is no script of `nsysmap fix`", remedy)
