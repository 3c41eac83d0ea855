"""Finds independent layers: products that could be merged into one, and layers that could run
concurrently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod

from nsysmap.core.engine_schema import SIBLING_LAYERS, SIBLINGS
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.inputs.engine.dataflow import Flow, common_path
from nsysmap.inputs.engine.model import Engine, Layer, Tensor, numbered_engines
from nsysmap.inputs.engine.tensor_formats import elements, tensor_bytes
from nsysmap.network.operations import operations
from nsysmap.network.work import does

_LONGEST = 32  # layers of one parallel group: more do not run at the same time anyway


@dataclass(frozen=True)
class Siblings:
    """One group; `layers` are indices in the file, in order."""

    kind: str  # merge, parallel
    layers: tuple[int, ...]
    tensor: str | None = None
    saved_bytes: int | None = None


def sibling_tables(engines: Sequence[Engine]) -> tuple[Table, Table]:
    """The tables `siblings` and `sibling_layers`."""
    groups: list[dict[str, object]] = []
    members: list[dict[str, object]] = []
    for number, first_id, engine in numbered_engines(engines):
        for group in engine_siblings(engine):
            nodes = dict.fromkeys(
                node for index in group.layers for node in engine.layers[index].onnx
            )
            for position, index in enumerate(group.layers):
                members.append(
                    {"group_id": len(groups), "position": position, "layer_id": first_id + index}
                )
            groups.append(
                {
                    "group_id": len(groups),
                    "engine": number,
                    "kind": group.kind,
                    "layers": len(group.layers),
                    "first_layer": first_id + group.layers[0],
                    "last_layer": first_id + group.layers[-1],
                    "tensor": group.tensor,
                    "saved_bytes": group.saved_bytes,
                    "place": common_path(nodes),
                    "onnx": ",".join(nodes) or None,
                }
            )
    return Table.of_rows(SIBLINGS, groups), Table.of_rows(SIBLING_LAYERS, members)


def engine_siblings(engine: Engine) -> list[Siblings]:
    """Every group of an engine; none if the file has no tensors."""
    flow = engine.flow
    return [*_merges(engine, flow), *_parallel(engine, flow)]


def _merges(engine: Engine, flow: Flow) -> Iterable[Siblings]:
    """Matrix products with hidden weights that read the same tensor in the same type and write the
    same type.
    """
    groups: dict[tuple[object, ...], list[Layer]] = defaultdict(list)
    reads: dict[tuple[object, ...], Tensor] = {}
    for layer in engine.layers:
        operands = [tensor for tensor in layer.inputs if not _small(tensor)]
        if len(operands) != 1 or not layer.outputs or not _matrix_product(layer):
            continue
        (read,) = operands
        writers = flow.writers.get(layer.index, ())
        key: tuple[object, ...] = (
            writers,
            layer.optimization_profile,
            read.name,
            read.datatype,
            layer.outputs[0].datatype,
            _dynamic_rows(layer),
        )
        groups[key].append(layer)
        reads[key] = read
    for key, layers in groups.items():
        if len(layers) > 1:
            size = tensor_bytes(reads[key])
            saved = None if size is None else (len(layers) - 1) * size
            yield Siblings("merge", tuple(layer.index for layer in layers), reads[key].name, saved)


def _matrix_product(layer: Layer) -> bool:
    """A linear layer: a product of one activation with weights that the file hides."""
    shape = layer.outputs[0].dimensions
    # heads: a product of two activations that is listed once
    batched = shape is not None and len(shape) > 3 and prod(shape[:-2]) != 1
    return layer.kind in ("gemm", "myelin_kernel") and operations(layer).product and not batched


def _dynamic_rows(layer: Layer) -> tuple[int, ...] | None:
    """All extents of the result but the last: products with other rows are of another batch."""
    shape = layer.outputs[0].dimensions
    return None if shape is None else shape[:-1]


def _small(tensor: Tensor) -> bool:
    """Scalars, biases and constants, which are no operand."""
    return (
        tensor.name.endswith("_dconst")
        or len(tensor.dimensions or (0, 0)) < 2
        or elements(tensor) == 1
    )


def _all_written(layer: Layer, flow: Flow, engine: Engine) -> bool:
    """Whether the file shows who writes everything that the layer reads; without a list of
    bindings, tensors without a writer are inputs.
    """
    if not engine.bindings and not engine.excerpt:
        return True
    told = {
        tensor.name
        for index in flow.writers.get(layer.index, ())
        for tensor in flow.tensors[index, layer.index]
    }
    return all(
        tensor.name in told or engine.binds(tensor.name) or _small(tensor)
        for tensor in layer.inputs
    )


def _parallel(engine: Engine, flow: Flow) -> Iterable[Siblings]:
    """Adjacent layers of the file (whose order is the execution order) on one stream that do not
    depend on each other.

    A layer needs another also through layers that do nothing (reshapes, shapes), and may need any
    where the file does not tell who writes what it reads.
    """
    group: list[Layer] = []
    # of a layer that does nothing: the layers that it passes the results of
    behind: dict[int, frozenset[int]] = {}
    for layer in engine.layers:
        direct = flow.writers.get(layer.index, ())
        writers = frozenset(direct).union(*(behind.get(index, ()) for index in direct))
        if does(layer) == "nothing":
            behind[layer.index] = writers
            continue
        fits = bool(layer.inputs and layer.outputs) and _all_written(layer, flow, engine)
        joins = fits and (layer.stream, layer.optimization_profile) == (
            (group[0].stream, group[0].optimization_profile) if group else (None, None)
        )
        if (
            group
            and joins
            and len(group) < _LONGEST
            and writers.isdisjoint(item.index for item in group)
        ):
            group.append(layer)
            continue
        if len(group) > 1:
            yield Siblings("parallel", tuple(item.index for item in group))
        group = [layer] if fits else []
    if len(group) > 1:
        yield Siblings("parallel", tuple(item.index for item in group))
