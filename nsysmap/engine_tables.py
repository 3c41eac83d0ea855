"""Every table that is worked out from the engine files alone, by name."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.attention import attention_tables
from nsysmap.chains import chain_tables
from nsysmap.engine import edges_table, tensors_table
from nsysmap.model import Engine
from nsysmap.reformats import quantizers_table, reformats_table
from nsysmap.tables import Table
from nsysmap.work import work_table


def engine_tables(engines: Sequence[Engine], *, compute: tuple[int, int] | None = None) -> dict[str, Table]:
    """tensors, edges, work, chains, chain_layers, attention, attention_layers, reformats and quantizers, by their names.

    `compute` is the compute capability of the device that ran them, where the trace tells it.  Their layer ids are those of
    `nsysmap.engine.layers_table`.
    """
    chains, chain_layers = chain_tables(engines)
    attention, attention_layers = attention_tables(engines, compute=compute)
    made = (
        tensors_table(engines),
        edges_table(engines),
        work_table(engines),
        chains,
        chain_layers,
        attention,
        attention_layers,
        reformats_table(engines),
        quantizers_table(engines),
    )
    return {table.spec.name: table for table in made}
