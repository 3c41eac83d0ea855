"""Every table that follows from the engine files alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from nsysmap.core.engine_schema import EDGES, ENGINES, ENGINES_WITH_TENSORS, LAYERS, TENSORS
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.inputs.engine.model import Engine, Layer, numbered_engines
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.inputs.engine.tensor_formats import tensor_bytes
from nsysmap.network.titles import layer_titles

# kinds of layers that the model does not name
_NOT_NODES = (
    "foreign_node",
    "reformat",
    "constant",
    "noop",
    "signal",
    "shape",
)


@dataclass(frozen=True)
class EngineTables:
    """What follows from the engine files alone, as declared tables whose layer ids are those of
    `layers_table`.
    """

    engines: Table
    tensors: Table
    edges: Table
    work: Table
    engines_with_tensors: Table
    chains: Table
    chain_layers: Table
    attention: Table
    attention_layers: Table
    siblings: Table
    sibling_layers: Table
    reformats: Table
    quantizers: Table


def engine_tables(
    engines: Sequence[Engine], *, compute: tuple[int, int] | None = None
) -> EngineTables:
    """The tables of these engines; `compute` is the compute capability of the device that ran them,
    if the trace gives it.
    """
    from nsysmap.network.attention import attention_tables
    from nsysmap.network.chains import chain_tables
    from nsysmap.network.reformats import quantizers_table, reformats_table
    from nsysmap.network.siblings import sibling_tables
    from nsysmap.network.work import work_table

    chains, chain_layers = chain_tables(engines)
    attention, attention_layers = attention_tables(engines, compute=compute)
    siblings, sibling_layers = sibling_tables(engines)
    return EngineTables(
        engines=engines_table(engines),
        tensors=tensors_table(engines),
        edges=edges_table(engines),
        work=work_table(engines),
        engines_with_tensors=engines_with_tensors_table(engines),
        chains=chains,
        chain_layers=chain_layers,
        attention=attention,
        attention_layers=attention_layers,
        siblings=siblings,
        sibling_layers=sibling_layers,
        reformats=reformats_table(engines),
        quantizers=quantizers_table(engines),
    )


def engines_table(engines: Sequence[Engine]) -> Table:
    """The table `engines`, one row per engine file."""
    return Table.of_rows(
        ENGINES,
        [
            {
                "engine": number,
                "source": engine.source,
                "file": engine.among or engine.source,
                "tensorrt_version": engine.tensorrt_version,
                "layers": len(engine.layers),
                "detailed": engine.detailed,
            }
            for number, engine in enumerate(engines)
        ],
    )


def engines_with_tensors_table(engines: Sequence[Engine]) -> Table:
    """The table `engines_with_tensors`: an engine is not in it where the file has names only, or
    nothing but opaque regions.
    """
    from nsysmap.network.work import does

    rows: list[dict[str, object]] = []
    for number, engine in enumerate(engines):
        shown = [
            layer
            for layer in engine.layers
            if layer.kind != "foreign_node" and (layer.inputs or layer.outputs)
        ]
        if any(does(layer) != "nothing" for layer in shown):
            rows.append(
                {
                    "engine": number,
                    "source": engine.source,
                    "layers": len(engine.layers),
                    "opaque_regions": sum(layer.kind == "foreign_node" for layer in engine.layers),
                    "tensorrt_version": engine.tensorrt_version,
                }
            )
    return Table.of_rows(ENGINES_WITH_TENSORS, rows)


def engine_titles(engine: Engine, model: OnnxModel | None = None) -> tuple[str, ...]:
    """The title of each layer of an engine: by the nodes in its metadata or its name, otherwise by
    those of the ONNX model.
    """
    if model is None or all(layer.onnx for layer in engine.layers):
        return layer_titles(engine.layers)
    from nsysmap.network.model_nodes import with_model_nodes

    told = with_model_nodes(engine.layers, model)
    return layer_titles(
        [
            layer if layer.onnx or layer.kind in _NOT_NODES else one
            for layer, one in zip(engine.layers, told, strict=True)
        ]
    )


def layers_table(engines: Sequence[Engine], model: OnnxModel | None = None) -> Table:
    """The table `layers`, one row per layer, engine by engine; the measured columns (time_ns,
    share, kernels) are empty.
    """
    layers = [layer for engine in engines for layer in engine.layers]
    columns: dict[str, list[object]] = {
        "layer_id": list(range(len(layers))),
        "engine": [
            number for number, engine in enumerate(engines) for _ in range(len(engine.layers))
        ],
        "layer_index": [layer.index for layer in layers],
        "name": [layer.name for layer in layers],
        "title": [title for engine in engines for title in engine_titles(engine, model)],
        "kind": [layer.kind for layer in layers],
        "type": [layer.type for layer in layers],
        "tactic": [layer.tactic for layer in layers],
        "stream": [layer.stream for layer in layers],
        "region": [layer.region for layer in layers],
        "region_index": [layer.region_index for layer in layers],
        "optimization_profile": [layer.optimization_profile for layer in layers],
        "onnx": [",".join(layer.onnx) or None for layer in layers],
        "origin": [layer.origin for layer in layers],
        "precision": [layer.precision for layer in layers],
        "trtexec_ns": [
            engine.trtexec_ns[layer.index] if engine.trtexec_ns else None
            for engine in engines
            for layer in engine.layers
        ],
    }
    unmeasured = {column.name for column in LAYERS.columns} - columns.keys()
    return Table.of_lists(LAYERS, {**columns, **{one: [None] * len(layers) for one in unmeasured}})


def tensors_table(engines: Sequence[Engine]) -> Table:
    """The table `tensors`: every input and output of every layer, in the file's order."""
    listed = [
        (layer_id, direction, position, tensor)
        for layer_id, layer in _numbered(engines)
        for direction, tensors in (("in", layer.inputs), ("out", layer.outputs))
        for position, tensor in enumerate(tensors)
    ]
    tensors = [tensor for _, _, _, tensor in listed]
    return Table.of_lists(
        TENSORS,
        {
            "layer_id": [layer_id for layer_id, _, _, _ in listed],
            "direction": [direction for _, direction, _, _ in listed],
            "position": [position for _, _, position, _ in listed],
            "name": [tensor.name for tensor in tensors],
            "dimensions": [_shape_words(tensor.dimensions) for tensor in tensors],
            "datatype": [tensor.datatype for tensor in tensors],
            "format": [tensor.format for tensor in tensors],
            "bytes": [tensor_bytes(tensor) for tensor in tensors],
        },
    )


@lru_cache(maxsize=1 << 12)  # an engine has few, however many tensors
def _shape_words(dimensions: tuple[int, ...] | None) -> str | None:
    return None if dimensions is None else "x".join(map(str, dimensions))


def edges_table(engines: Sequence[Engine]) -> Table:
    """The table `edges`, by consumer.

    Myelin repeats tensor names between producers, so a name alone would join strangers and close
    cycles: a consumer is joined to the nearest producer of that name before it in the file, which
    is execution order, among the layers of the same optimization profile. Several producers before
    it are joined where the parts that they write make up exactly what is read (a concatenation
    without a copy). A name produced only later, or not at all, is an input of the engine.  The size
    is what is read, or the part.
    """
    edges = [
        (first + source.index, first + target.index, tensor)
        for _, first, engine in numbered_engines(engines)
        for source, target, tensor in engine.links
    ]
    return Table.of_lists(
        EDGES,
        {
            "from_layer": [source for source, _, _ in edges],
            "to_layer": [target for _, target, _ in edges],
            "tensor": [tensor.name for _, _, tensor in edges],
            "bytes": [tensor_bytes(tensor) for _, _, tensor in edges],
        },
    )


def _numbered(engines: Sequence[Engine]) -> Iterator[tuple[int, Layer]]:
    return enumerate(layer for engine in engines for layer in engine.layers)
