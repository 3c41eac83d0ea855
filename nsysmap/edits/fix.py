"""Makes the script that edits the model, from a report, its engine and the model."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.core.extras import need_extras
from nsysmap.core.output_file import replacing
from nsysmap.core.records import dataclass
from nsysmap.edits.flags import Flag, flags, pinned
from nsysmap.edits.model import Edit, Refusal, Unwanted
from nsysmap.edits.predict import (
    LEAST_SHARE,
    EngineTimes,
    LayerTime,
    PredictedEdit,
    SavedTime,
    predict,
    total,
)
from nsysmap.inputs.engine.model import PROFILE
from nsysmap.inputs.engine.onnx_model import read_model
from nsysmap.names.layers import without_suffix
from nsysmap.text.units import rounded

if TYPE_CHECKING:
    import onnx_ir as ir

    from nsysmap.analysis import Analysis
    from nsysmap.edits.check import Compared
    from nsysmap.edits.registry import EditKind
    from nsysmap.edits.view import Array
    from nsysmap.inputs.engine.model import Engine

NEEDED = ("onnx", "onnx-ir")
"""The optional packages that finding edits takes."""

NEEDED_TO_APPLY = ("onnxruntime",)
"""Additional packages for applying the edits, because results are compared."""

_MOST_BETWEEN_NS = 6_000
"""A launch takes no longer: more idle time between kernels has other reasons than their number."""
_FP32 = ("FP32", "TF32")
_NAMED = 3  # names that a message has
_MOST_FOREIGN = 0.05
"""Share of the nodes that an engine file names which the model may lack: TensorRT makes some."""


@dataclass(frozen=True)
class Fix:
    """The edits of a model, what they save, what is not edited, and the script."""

    script: str
    made: tuple[tuple[Edit, PredictedEdit], ...]
    together: SavedTime
    inference_ns: int
    refused: tuple[Refusal, ...]  # that findings are about, or what was asked for
    flags: tuple[Flag, ...]


def load_model(path: str) -> ir.Model:
    """The model with its weights, which are read when they are needed.

    Raises NsysmapError if onnx or onnx-ir is not installed, the file is no model, weights are
    missing, or its opset is too old.
    """
    need_extras("nsysmap fix", *NEEDED)
    import onnx_ir as ir

    from nsysmap.edits.opsets import LEAST

    read_model(path)  # says what is wrong with the file
    model = ir.load(named_path(path))
    for graph in model.graphs():
        for value in graph.initializers.values():
            held = value.const_value
            if isinstance(held, ir.ExternalTensor) and not Path(held.path).is_file():
                raise NsysmapError(
                    path,
                    f"its weights are in {held.location}, which is not there",
                    "put that file beside the model",
                )
            if isinstance(held, ir.ExternalTensor) and _cut(held):
                raise NsysmapError(
                    path,
                    f"its weights are in {held.location}, which is too short for {value.name}",
                    "copy that file again",
                )
    opset = model.graph.opset_imports.get("")
    if opset is None or opset < LEAST:
        raise NsysmapError(
            path,
            f"is of opset {opset}; edits need {LEAST} or later",
            f"export it with opset {LEAST} or later, or convert it with onnx.version_converter",
        )
    return model


def _cut(held: ir.ExternalTensor) -> bool:
    """Whether the file ends before the weight does."""
    end = (held.offset or 0) + (held.nbytes if held.length is None else held.length)
    return Path(held.path).stat().st_size < end


def fix(  # one parameter a file or an option
    analysis: Analysis,
    model_path: str,
    *,
    asked: Sequence[str] = (),
) -> Fix:
    """The edits of a model that the capture of its engine calls for.

    ``asked`` are names of rules or of kinds of edits; without any all are tried.  Raises
    NsysmapError if the model is not the engine's, or nothing can be edited.
    """
    model = load_model(model_path)
    from nsysmap.edits.search import plan

    kinds = _kinds(asked)
    _check_names(analysis.engines, model, model_path)
    times = replace(times_of(analysis), made_by=_made_by(model))
    rules = {kind.name: kind.rules for kind in kinds}
    predicted: list[PredictedEdit] = []
    opened: set[str] = set()  # nodes whose attention TensorRT may fuse from then on
    least = 0.0 if asked else LEAST_SHARE * times.inference_ns

    def wanted(edit: Edit) -> Unwanted | None:
        found = predict(edit, rules[edit.kind], times)
        if isinstance(found, Unwanted):
            return found
        if edit.kind == "attention" and opened & {*edit.nodes}:
            # it was fused in every pair, where the operator is no faster (see docs/fix.md)
            return Unwanted("another edit lets TensorRT fuse it")
        if found.saving.high_ns < least:
            return Unwanted(f"it saves {rounded(found.saving.high_ns)} at most")
        if found.saving.ns <= 0 and not asked:
            return Unwanted(f"it would rather cost time: {found.basis}")
        times.credit(found)
        predicted.append(found)
        if edit.kind in ("softmax", "casts"):
            opened.update(edit.nodes)
        return None

    external = _is_external(model)
    chosen = plan(model, wanted, kinds)
    made = tuple(zip(chosen.made, predicted, strict=True))
    told = flags(analysis.findings, asked) + (() if asked else pinned(model))
    refused = tuple(
        one
        for one in chosen.refused
        if asked or times.finding(times.of(one.nodes), _all_rules(kinds))
    )
    if not made and not (told and not asked):
        raise _nothing(model_path, chosen.refused, asked, times)
    together = total([one.saving for one in predicted], times.inference_ns)
    text = _script(made, model_path, analysis.source, times.inference_ns, together, external)
    return Fix(text, made, together, times.inference_ns, refused, told)


def _script(
    made: Sequence[tuple[Edit, PredictedEdit]],
    model_path: str,
    report: str,
    inference_ns: int,
    together: SavedTime,
    external: bool,
) -> str:
    from nsysmap.edits.script import script

    return script(
        made,
        model=Path(model_path).name,
        report=report,
        inference_ns=inference_ns,
        together=together,
        external=external,
    )


def _is_external(model: ir.Model) -> bool:
    import onnx_ir as ir

    return any(
        isinstance(value.const_value, ir.ExternalTensor)
        for graph in model.graphs()
        for value in graph.initializers.values()
    )


def names_of_edits() -> set[str]:
    """The names of the edits, and of the rules that an edit serves."""
    from nsysmap.edits.registry import KINDS

    return {kind.name for kind in KINDS} | {rule for kind in KINDS for rule in kind.rules}


def _kinds(asked: Sequence[str]) -> tuple[EditKind, ...]:
    from nsysmap.edits.registry import KINDS

    for one in asked:
        if one not in names_of_edits():
            known = ", ".join(kind.name for kind in KINDS)
            raise NsysmapError(
                one,
                "is no edit, and no rule that an edit serves",
                f"give one of {known}, or a rule",
            )
    return tuple(
        kind
        for kind in KINDS
        if not asked or kind.name in asked or any(rule in asked for rule in kind.rules)
    )


def _all_rules(kinds: Sequence[EditKind]) -> tuple[str, ...]:
    return tuple(rule for kind in kinds for rule in kind.rules)


def _check_names(engines: Sequence[Engine], model: ir.Model, path: str) -> None:
    """Raises NsysmapError if the engine was not built from the model: its file names nodes, inputs
    or outputs that the model does not have.
    """
    from nsysmap.edits.view import node_name

    layers = [layer for engine in engines for layer in engine.layers]
    held = {node_name(node) for node in model.graph.all_nodes()}
    told = dict.fromkeys(name for layer in layers for name in layer.onnx)
    foreign = [name for name in told if name not in held and without_suffix(name) not in held]
    if not told:
        raise NsysmapError(
            path,
            "whether it is the engine's model cannot be told: the engine file names no ONNX nodes",
            "build the engine with --profilingVerbosity=detailed",
        )
    ends = {str(one.name) for one in (*model.graph.inputs, *model.graph.outputs)}
    bound = dict.fromkeys(PROFILE.sub("", name) for engine in engines for name in engine.bindings)
    unbound = [name for name in bound if name not in ends] or (
        [name for name in sorted(ends) if name not in bound] if bound else []
    )
    if len(foreign) <= _MOST_FOREIGN * len(told) and not unbound:
        return
    names = [*unbound, *foreign]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    raise NsysmapError(
        path,
        f"is not the engine's model: they do not both have {', '.join(names[:_NAMED])}{more}",
        "give the .onnx file that the engine was built from",
    )


def _nothing(
    path: str, refused: Sequence[Refusal], asked: Sequence[str], times: EngineTimes
) -> NsysmapError:
    """The message if nothing is edited: the reason at the place that takes most time."""
    of = f" for {', '.join(asked)}" if asked else ""
    if not refused:
        return NsysmapError(
            path, f"has no place that can be edited{of}", "see `nsysmap rules` for what to do"
        )
    first = max(refused, key=lambda one: sum(at.time_ns for at in times.of(one.nodes)))
    more = f", and {len(refused) - 1} more places" if len(refused) > 1 else ""
    return NsysmapError(
        path,
        f"nothing is edited{of}: {first.kind} at {first.nodes[0]}{more}: {first.reason}"
        + (f" ({first.layer})" if first.layer else ""),
        "see docs/fix.md",
    )


def _made_by(model: ir.Model) -> dict[str, frozenset[str]]:
    """For each node of the model the nodes that produce its inputs."""
    from nsysmap.edits.view import node_name

    return {
        node_name(node): frozenset(
            node_name(made)
            for value in node.inputs
            if value is not None and (made := value.producer()) is not None
        )
        for node in model.graph
    }


def times_of(analysis: Analysis) -> EngineTimes:
    """The measured time of the layers of an analysis, by the nodes that they compute."""
    does = {row.integer("layer_id"): row.text("does") for row in analysis.tables.work}
    bounds = {
        row.integer("layer_id"): row.maybe_integer("bound_ns") for row in analysis.tables.roofline
    }
    reads_fp32 = {
        row.integer("layer_id")
        for row in analysis.tables.tensors
        if row.text("direction") == "in" and row.maybe_text("datatype") in _FP32
    }
    nodes = [layer.onnx for engine in analysis.engines for layer in engine.layers]
    layers = tuple(
        LayerTime(
            at,
            row.text("name"),
            frozenset(nodes[at] if at < len(nodes) else ()),
            row.maybe_integer("time_ns") or 0,
            does.get(at, "other"),
            bounds.get(at) or 0,
            row.maybe_text("precision") in _FP32
            or (does.get(at) == "product" and at in reads_fp32),
            row.maybe_integer("stream") or 0,
        )
        for row in analysis.tables.layers
        if (at := row.integer("layer_id")) is not None
    )
    told = analysis.summary.unprofiled or analysis.summary.traced
    held = sum(one.time_ns for one in layers)
    inference_ns = told.ns if told else held
    ran = sum(1 for one in layers if one.time_ns)
    between = (inference_ns - held) / ran if ran else 0.0
    return EngineTimes(
        tuple(one for one in layers if one.time_ns and one.nodes),
        round(min(max(between, 0.0), _MOST_BETWEEN_NS)),
        inference_ns,
        analysis.findings,
    )


def apply_script(
    script: str, model_path: str, output: Path, given: Sequence[Mapping[str, Array]]
) -> Compared:
    """Run a script on the model, and compare the two models; the output is written if they compute
    the same.

    Raises NsysmapError if they do not, or if the script fails.
    """
    need_extras("nsysmap fix --apply", *NEEDED, *NEEDED_TO_APPLY)
    import onnx_ir as ir

    from nsysmap.edits.check import check_interface, compare

    with tempfile.TemporaryDirectory() as folder, replacing(output) as fresh:
        program = Path(folder) / "fix.py"
        program.write_text(script, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program), model_path, str(fresh)],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise NsysmapError(model_path, f"the script failed ({last})", "report this as a bug")
        changed = check_interface(ir.load(model_path), ir.load(fresh))
        if changed:
            raise NsysmapError(
                model_path, f"the edits would change its {changed}", "report this as a bug"
            )
        compared = compare(Path(model_path), fresh, given, {})
        if compared.worst > 1:
            raise NsysmapError(
                model_path,
                f"the edited model computes something else: {compared.output} differs by"
                f" {compared.worst:.3g} times what its type allows",
                "leave out edits by naming those that you want; nothing was written",
            )
    return compared
