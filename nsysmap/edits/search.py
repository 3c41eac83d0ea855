"""Finds the edits of a model, kind after kind, and makes those that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nsysmap.core.records import dataclass
from nsysmap.edits.editor import Editor
from nsysmap.edits.model import Edit, Refusal, Unwanted
from nsysmap.edits.opsets import hindered, raised
from nsysmap.edits.registry import KINDS, EditKind
from nsysmap.edits.steps import run
from nsysmap.edits.view import ModelView

_PASSES = 12  # of one kind, each of edits that do not touch each other

Wanted = Callable[[Edit], Unwanted | None]
"""Why an edit is not wanted; None if it is."""


@dataclass(frozen=True)
class EditPlan:
    """The edits to make, and those not made."""

    made: tuple[Edit, ...]
    refused: tuple[Refusal, ...]


def plan(model: ir.Model, wanted: Wanted, kinds: Iterable[EditKind] = KINDS) -> EditPlan:
    """The edits of a model, made in it as they are found; ``wanted`` is asked about each."""
    work = _Search(model, wanted)
    for kind in kinds:
        work.all_of(kind)
    work.editor.finish()
    return EditPlan(tuple(work.made), tuple(work.refused.values()))


class _Search:
    def __init__(self, model: ir.Model, wanted: Wanted) -> None:
        self.model, self.wanted = model, wanted
        self.editor = Editor(model)
        self.origins: dict[str, tuple[str, ...]] = {}
        self.made: list[Edit] = []
        self.refused: dict[tuple[str, tuple[str, ...]], Refusal] = {}

    def all_of(self, kind: EditKind) -> None:
        """Make every edit of one kind that is wanted."""
        for _ in range(_PASSES):
            view = ModelView(inferred(self.model), self.origins)
            touched: set[str] = set()
            before = len(self.made)
            for found in [*kind.find(view)]:
                key = (found.kind, found.nodes)
                if isinstance(found, Refusal):
                    self.refused.setdefault(key, found)
                    continue
                around = {*found.nodes, *found.beside}
                if touched & around or key in self.refused:
                    continue
                why = self.wanted(found) or self._opset(found)
                if why is not None:
                    self.refused[key] = Refusal(found.kind, found.nodes, why.reason, why.layer)
                    continue
                touched |= around
                self._make(found)
            if len(self.made) == before:
                return
            self.editor.finish()

    def _opset(self, edit: Edit) -> Unwanted | None:
        now = int(self.model.graph.opset_imports.get("", 0))
        if edit.opset <= now:
            return None
        hindrance = hindered(self.model, edit.opset)
        if hindrance is None:
            return None
        return Unwanted(
            f"it needs opset {edit.opset}, and {hindrance} means something else there than in opset"
            f" {now}: export the model with opset {edit.opset}"
        )

    def _make(self, edit: Edit) -> None:
        if edit.opset > int(self.model.graph.opset_imports.get("", 0)):
            edit = replace(edit, steps=(*raised(self.model, edit.opset), *edit.steps))
        run(edit.steps, self.editor)
        for step in edit.steps:
            if step.function == "edit.add":
                self.origins[step.arguments[2][0]] = edit.nodes
        self.made.append(edit)


def inferred(model: ir.Model) -> ir.Model:
    """The model, in order and with the shapes that follow from its inputs."""
    model.graph.sort()
    return ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model).model
