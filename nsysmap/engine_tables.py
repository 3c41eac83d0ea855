"""Every table that is worked out from the engine files alone, by name."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap import schema
from nsysmap.attention import attention_tables
from nsysmap.chains import chain_tables
from nsysmap.engine import edges_table, tensors_table
from nsysmap.model import Engine
from nsysmap.reformats import quantizers_table, reformats_table
from nsysmap.siblings import sibling_tables
from nsysmap.tables import Table
from nsysmap.work import work_table


def engine_tables(engines: Sequence[Engine], *, compute: tuple[int, int] | None = None) -> dict[str, Table]:
    """tensors, edges, work, open_engines, chains, chain_layers, attention, attention_layers, siblings, sibling_layers, reformats and
    quantizers, by their names.

    `compute` is the compute capability of the device that ran them, where the trace tells it.  Their layer ids are those of
    `nsysmap.engine.layers_table`.
    """
    chains, chain_layers = chain_tables(engines)
    attention, attention_layers = attention_tables(engines, compute=compute)
    made = (
        tensors_table(engines),
        edges_table(engines),
        work_table(engines),
        open_engines_table(engines),
        chains,
        chain_layers,
        attention,
        attention_layers,
        *sibling_tables(engines),
        reformats_table(engines),
        quantizers_table(engines),
    )
    return {table.spec.name: table for table in made}


def open_engines_table(engines: Sequence[Engine]) -> Table:
    """The table `open_engines`: an engine is not in it where the file has names only, or an opaque region in place of its layers."""
    rows: list[dict[str, object]] = []
    for number, engine in enumerate(engines):
        tensors = any(layer.inputs or layer.outputs for layer in engine.layers)
        if tensors and not any(layer.kind == "myelin" for layer in engine.layers):
            row = {"engine": number, "source": engine.source, "layers": len(engine.layers), "tensorrt_version": engine.tensorrt_version}
            rows.append(row)
    return Table.of_rows(schema.OPEN_ENGINES, rows)
