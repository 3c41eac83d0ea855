"""Why each reformat is in the engine, which of them undo each other, and which quantisations no
neighbour absorbed.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.core.engine_schema import QUANTIZERS, REFORMATS
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.inputs.engine.dataflow import Flow
from nsysmap.inputs.engine.model import Engine, Layer, Tensor, numbered_engines
from nsysmap.inputs.engine.tensor_formats import FLOATING, total_bytes
from nsysmap.network.operations import converts, operations, quantizes

_STEPS_BACK = 6  # layers that only move data, between a reformat and what it serves


@dataclass(frozen=True)
class Reformat:
    """One layer that only changes type or layout."""

    layer: Layer
    cause: str
    producer: int | None
    consumer: int | None
    consumers: int
    undoes: int | None

    @property
    def source(self) -> Tensor | None:
        """The type and layout that it reads."""
        return self.layer.inputs[0] if self.layer.inputs else None

    @property
    def target(self) -> Tensor | None:
        """The type and layout that it writes."""
        return self.layer.outputs[0] if self.layer.outputs else None


def reformats_table(engines: Sequence[Engine]) -> Table:
    """The table `reformats`."""
    rows: list[dict[str, object]] = []
    for number, first_id, engine in numbered_engines(engines):
        for found in engine_reformats(engine):
            source, target = found.source, found.target
            rows.append(
                {
                    "layer_id": first_id + found.layer.index,
                    "engine": number,
                    "cause": found.cause,
                    "origin": found.layer.origin,
                    "from_type": source.datatype if source else None,
                    "to_type": target.datatype if target else None,
                    "from_format": source.format if source else None,
                    "to_format": target.format if target else None,
                    "converts": converts(found.layer),
                    "free": found.layer.kind == "noop",
                    "producer": _shifted(found.producer, first_id),
                    "consumer": _shifted(found.consumer, first_id),
                    "consumers": found.consumers,
                    "undoes": _shifted(found.undoes, first_id),
                    "bytes": _moved(found.layer),
                }
            )
    return Table.of_rows(REFORMATS, rows)


def quantizers_table(engines: Sequence[Engine]) -> Table:
    """The table `quantizers`."""
    rows: list[dict[str, object]] = []
    for number, first_id, engine in numbered_engines(engines):
        flow = engine.flow
        for layer in engine.layers:
            direction = quantizes(layer)
            if direction is None:
                continue
            writers, readers = flow.writers.get(layer.index, ()), flow.readers.get(layer.index, ())
            rows.append(
                {
                    "layer_id": first_id + layer.index,
                    "engine": number,
                    "direction": direction,
                    "from_type": layer.inputs[0].datatype if layer.inputs else None,
                    "to_type": layer.outputs[0].datatype if layer.outputs else None,
                    "producer": _shifted(writers[0] if writers else None, first_id),
                    "consumer": _shifted(readers[0] if readers else None, first_id),
                    "blocked_by": _blocked_by(engine, flow, layer),
                    "bytes": _moved(layer),
                }
            )
    return Table.of_rows(QUANTIZERS, rows)


def engine_reformats(engine: Engine) -> list[Reformat]:
    """Every layer that only changes type or layout, in the order of the file: reformats, casts, and
    reformats made free.
    """
    flow = engine.flow
    found: list[Reformat] = []
    for layer in engine.layers:
        done = operations(layer)
        free = layer.kind == "noop" and layer.name.startswith("Reformatting CopyNode")
        at_input = quantizes(layer) is not None and _reads_binding(engine, flow, layer)
        of_type = layer.kind == "quantize" and "reformat" in (layer.type or "").lower()
        if not (
            layer.kind in ("reformat", "cast")
            or of_type
            or (done.cast and layer.kind == "myelin_kernel")
            or free
            or at_input
        ):
            continue
        writers, readers = flow.writers.get(layer.index, ()), flow.readers.get(layer.index, ())
        found.append(
            Reformat(
                layer=layer,
                cause=_cause(engine, flow, layer),
                producer=writers[0] if writers else None,
                consumer=readers[0] if readers else None,
                consumers=len(readers),
                undoes=_undone(engine, flow, layer),
            )
        )
    return found


def _cause(engine: Engine, flow: Flow, layer: Layer) -> str:
    """The first: the engine's input, quantize, the engine's output, concat, precision, plugin or
    Myelin region beside it, layout.
    """
    writers, readers = flow.writers.get(layer.index, ()), flow.readers.get(layer.index, ())
    if "Network Input" in layer.name or _reads_binding(engine, flow, layer):
        return "input"
    if quantizes(layer) is not None:
        return "quantize"
    if (
        "Network Output" in layer.name
        or layer.index in flow.leaves
        or (not readers and _writes_binding(engine, layer))
    ):
        return "output"
    if layer.origin == "CONCAT":
        return "concat"
    if converts(layer) or layer.origin == "CAST" or operations(layer).cast:
        return "precision"
    beside = {engine.layers[index].kind for index in (*writers, *readers)}
    if "plugin" in beside:
        return "plugin"
    across = {
        engine.layers[index].region is not None or engine.layers[index].kind == "foreign_node"
        for index in (*writers, *readers)
    }
    if across == {True, False} or (across == {True} and layer.region is None):
        return "myelin"
    formats = (
        [layer.inputs[0].format, layer.outputs[0].format] if layer.inputs and layer.outputs else []
    )
    if len(formats) == 2 and None not in formats and formats[0] != formats[1]:
        return "layout"
    return "layout" if layer.origin == "REFORMAT" and writers and readers else "unknown"


def _reads_binding(engine: Engine, flow: Flow, layer: Layer) -> bool:
    """Whether the layer reads an input of the engine; without a list of bindings, whether nothing
    in the file writes what it reads.
    """
    if flow.writers.get(layer.index) or not layer.inputs:
        return False
    return (not engine.bindings and not engine.excerpt) or engine.binds(layer.inputs[0].name)


def _writes_binding(engine: Engine, layer: Layer) -> bool:
    """Whether the layer writes an output of the engine, of any optimization profile; without a list
    of bindings, what nobody reads.
    """
    if not engine.bindings:
        return bool(layer.outputs) and not engine.excerpt
    return any(engine.binds(tensor.name) for tensor in layer.outputs)


def _undone(engine: Engine, flow: Flow, layer: Layer) -> int | None:
    """An earlier reformat whose change this one reverses, with at most one other layer between
    them; None if there is none.
    """
    if not layer.inputs or not layer.outputs:
        return None
    here = _form(layer.inputs[0]), _form(layer.outputs[0])
    if None in (*here[0], *here[1]) or here[0] == here[1]:
        return None
    at, others = layer, 0
    for _ in range(_STEPS_BACK):
        before = flow.only_writer(at.index)
        if before is None:
            return None
        at = engine.layers[before]
        if at.kind in ("reformat", "cast") or operations(at).cast:
            if at.inputs and at.outputs and (_form(at.outputs[0]), _form(at.inputs[0])) == here:
                return at.index
        elif at.kind != "noop":
            others += 1
        if others > 1:
            return None
    return None


def _form(tensor: Tensor) -> tuple[str | None, str]:
    return tensor.datatype, tensor.format or ""


def _blocked_by(engine: Engine, flow: Flow, layer: Layer) -> str:
    """Why the layer before did not quantise (or the one after did not dequantise) itself."""
    writers = flow.writers.get(layer.index, ())
    if not writers:
        return (
            "input"
            if _reads_binding(engine, flow, layer)
            else "unknown"
            if engine.excerpt
            else "constant"
        )
    writer = engine.layers[writers[0]]
    if writer.kind == "plugin":
        return "plugin"
    read_type = layer.inputs[0].datatype if layer.inputs else None
    if _read_elsewhere(engine, flow, layer, writer.index):
        return "residual" if read_type is None or read_type in FLOATING else "shared"
    return (
        "producer"
        if operations(writer).product
        or writer.kind in ("pooling", "myelin_kernel", "pointwise", "activation", "reformat")
        else "unknown"
    )


def _read_elsewhere(engine: Engine, flow: Flow, layer: Layer, writer: int) -> bool:
    """Whether another layer, or the application, needs what this one converts as it is before;
    no-ops pass it on.
    """
    if not layer.inputs:
        return False
    read, seen, waiting = layer.inputs[0], {layer.index}, [writer]
    while waiting:
        index = waiting.pop()
        if any(
            engine.binds(tensor.name) and tensor.datatype == read.datatype
            for tensor in engine.layers[index].outputs
        ):
            return True
        for reader in flow.readers.get(index, ()):
            if reader in seen:
                continue
            seen.add(reader)
            if engine.layers[reader].kind == "noop":
                waiting.append(reader)
            elif any(
                tensor.datatype == read.datatype for tensor in flow.tensors.get((index, reader), ())
            ):
                return True
    return False


def _moved(layer: Layer) -> int | None:
    if layer.kind == "noop":
        return 0
    return total_bytes((*layer.inputs, *layer.outputs))


def _shifted(index: int | None, first_id: int) -> int | None:
    return None if index is None else first_id + index
