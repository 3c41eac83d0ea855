"""Every table that is worked out from the engine files alone, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsysmap.base.engine_schema import EDGES, ENGINES_WITH_TENSORS, LAYERS, TENSORS
from nsysmap.base.table import Table
from nsysmap.engine.attention import attention_tables
from nsysmap.engine.chains import chain_tables
from nsysmap.engine.dataflow import links
from nsysmap.engine.model import Engine, Layer
from nsysmap.engine.reformats import quantizers_table, reformats_table
from nsysmap.engine.siblings import sibling_tables
from nsysmap.engine.tensor_formats import tensor_bytes
from nsysmap.engine.work import work_table


def engine_tables(engines: Sequence[Engine], *, compute: tuple[int, int] | None = None) -> dict[str, Table]:
    """tensors, edges, work, engines_with_tensors, chains, chain_layers, attention, attention_layers, siblings, sibling_layers, reformats
    and quantizers, by their names.

    `compute` is the compute capability of the device that ran them, where the trace tells it.  Their layer ids are those of
    `layers_table`.
    """
    chains, chain_layers = chain_tables(engines)
    attention, attention_layers = attention_tables(engines, compute=compute)
    made = (
        tensors_table(engines),
        edges_table(engines),
        work_table(engines),
        engines_with_tensors_table(engines),
        chains,
        chain_layers,
        attention,
        attention_layers,
        *sibling_tables(engines),
        reformats_table(engines),
        quantizers_table(engines),
    )
    return {table.spec.name: table for table in made}


def engines_with_tensors_table(engines: Sequence[Engine]) -> Table:
    """The table `engines_with_tensors`: an engine is not in it where the file has names only, or an opaque region in place of layers."""
    rows: list[dict[str, object]] = []
    for number, engine in enumerate(engines):
        tensors = any(layer.inputs or layer.outputs for layer in engine.layers)
        if tensors and not any(layer.kind == "foreign_node" for layer in engine.layers):
            row = {"engine": number, "source": engine.source, "layers": len(engine.layers), "tensorrt_version": engine.tensorrt_version}
            rows.append(row)
    return Table.of_rows(ENGINES_WITH_TENSORS, rows)


def layers_table(engines: Sequence[Engine]) -> Table:
    """The table `layers`, one row a layer, engine by engine; the measured columns (time_ns, share, kernels) are empty."""
    rows: list[dict[str, object]] = []
    for number, engine in enumerate(engines):
        for layer in engine.layers:
            rows.append(
                {
                    "layer_id": len(rows),
                    "engine": number,
                    "layer_index": layer.index,
                    "name": layer.name,
                    "kind": layer.kind,
                    "type": layer.type,
                    "tactic": layer.tactic,
                    "stream": layer.stream,
                    "region": layer.region,
                    "region_index": layer.region_index,
                    "optimization_profile": layer.optimization_profile,
                    "onnx": ",".join(layer.onnx) or None,
                    "origin": layer.origin,
                    "precision": layer.precision,
                    "trtexec_ns": engine.trtexec_ns[layer.index] if engine.trtexec_ns else None,
                }
            )
    return Table.of_rows(LAYERS, rows)


def tensors_table(engines: Sequence[Engine]) -> Table:
    """The table `tensors`: every input and output of every layer, in the file's order."""
    rows: list[dict[str, object]] = []
    for layer_id, layer in _numbered(engines):
        for direction, tensors in (("in", layer.inputs), ("out", layer.outputs)):
            for position, tensor in enumerate(tensors):
                shape = None if tensor.dimensions is None else "x".join(str(extent) for extent in tensor.dimensions)
                rows.append(
                    {
                        "layer_id": layer_id,
                        "direction": direction,
                        "position": position,
                        "name": tensor.name,
                        "dimensions": shape,
                        "datatype": tensor.datatype,
                        "format": tensor.format,
                        "bytes": tensor_bytes(tensor),
                    }
                )
    return Table.of_rows(TENSORS, rows)


def edges_table(engines: Sequence[Engine]) -> Table:
    """The table `edges`, by consumer.

    Myelin repeats tensor names between producers, so a name alone would join strangers and close cycles: a consumer is joined to the
    nearest producer of that name before it in the file, which is execution order, among the layers of the same optimization profile.
    Several producers before it are joined where the parts that they write make up exactly what is read (a concatenation without a copy).
    A name produced only later, or not at all, is an input of the engine.  The size is what is read, or the part.
    """
    rows: list[dict[str, object]] = []
    first = 0
    for engine in engines:
        rows += [
            {"from_layer": first + source.index, "to_layer": first + target.index, "tensor": tensor.name, "bytes": tensor_bytes(tensor)}
            for source, target, tensor in links(engine)
        ]
        first += len(engine.layers)
    return Table.of_rows(EDGES, rows)


def _numbered(engines: Sequence[Engine]) -> Iterator[tuple[int, Layer]]:
    return enumerate(layer for engine in engines for layer in engine.layers)
