"""Writes the script that makes the edits: what it needs stands in it, each edit under what it is
for.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence

from nsysmap.core.fix_script import prediction_lines
from nsysmap.edits.editor import Editor
from nsysmap.edits.model import Edit
from nsysmap.edits.predict import PredictedEdit, SavedTime
from nsysmap.edits.steps import used, written
from nsysmap.text.units import ranged, rounded

_ALWAYS = ("__init__", "_values", "finish")
_NEEDS = {
    "array": ("_node",),
    "wide": ("array", "_node"),
    "connect": ("_node",),
    "change": ("_node",),
    "replace": ("add",),
    "axes_as_input": ("weight", "_node"),
}
_WIDTH = 100  # columns of the script that is written


def script(
    made: Sequence[tuple[Edit, PredictedEdit]],
    *,
    model: str,
    report: str,
    inference_ns: int,
    together: SavedTime,
    external: bool,
) -> str:
    """The script for these edits of the model of this name."""
    number = "one edit" if len(made) == 1 else f"{len(made)} edits"
    predicted = ranged(together.ns, together.low_ns, together.high_ns)
    slower = f"; it may be slower by up to {together.lost}" if together.lost else ""
    head = (
        f'"""Edits {_quoted(model)}: {number}, which `nsysmap fix` found with'
        f" {_quoted(report)}.\n\nPredicted: {predicted}"
        f" less in each inference of {rounded(inference_ns)}{slower}.\n\n"
        f"usage: python FILE MODEL.onnx OUT.onnx        (needs onnx, onnx-ir and numpy)\n"
        '"""\n'
    )
    parts = [head, _IMPORTS, _editor([step for edit, _ in made for step in edit.steps])]
    kinds = [*dict.fromkeys(edit.kind for edit, _ in made)]
    parts.append(prediction_lines(kinds, together.ns, together.low_ns, together.high_ns))
    parts.append("edit = Editor(ir.load(sys.argv[1]))\n")
    parts += [_block(at, edit, saves) for at, (edit, saves) in enumerate(made, 1)]
    where = ', external_data=Path(sys.argv[2]).name + ".data"' if external else ""
    parts.append(f"ir.save(edit.finish(), sys.argv[2]{where})\n")
    return "\n".join(parts)


_IMPORTS = """from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

"""


def _quoted(name: str) -> str:
    return name.replace("\\", "/").replace('"""', "'''")


def _editor(steps: Sequence[object]) -> str:
    """The source of the editor, with the methods that the steps call."""
    wanted = set(_ALWAYS) | used(steps)  # type: ignore[arg-type]
    for name in sorted(wanted):
        wanted.update(_NEEDS.get(name, ()))
    source = [f"class Editor:\n    {_doc()}\n"]
    source += [
        textwrap.indent(textwrap.dedent(inspect.getsource(function)), "    ")
        for name, function in vars(Editor).items()
        if name in wanted and inspect.isfunction(function)
    ]
    return "\n".join(source) + "\n"


def _doc() -> str:
    return f'"""{inspect.getdoc(Editor)}"""'


def _block(number: int, edit: Edit, predicted: PredictedEdit) -> str:
    saving = predicted.saving
    told = [
        (f"{number}.", f"{edit.kind}: {edit.does}"),
        (
            "finding",
            predicted.finding.rule if predicted.finding else "none; from the time of its layers",
        ),
        ("nodes", ", ".join(edit.nodes)),
        ("layers", ", ".join(one.name for one in predicted.layers)),
        ("saves", f"{ranged(saving.ns, saving.low_ns, saving.high_ns)}: {predicted.basis}"),
        ("safe", edit.proof),
    ]
    lines: list[str] = []
    for name, words in told:
        lead = f"# {name} " if name.endswith(".") else f"#   {name:<8} "
        lines += textwrap.wrap(
            _one_line(words),
            _WIDTH,
            initial_indent=lead,
            subsequent_indent="#" + " " * (len(lead) - 1),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join([*lines, *(written(step) for step in edit.steps)]) + "\n"


def _one_line(words: str) -> str:
    return " ".join(words.split())
