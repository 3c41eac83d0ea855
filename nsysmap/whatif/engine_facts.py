"""What changes need to know about the engines."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.base.table import Table


@dataclass(frozen=True)
class EngineFacts:
    """The layers of the engines that ran, how they depend on each other, the runs of them that could be one kernel, and their limits."""

    layers: Table
    tensors: Table
    edges: Table
    chains: Table
    chain_layers: Table
    roofline: Table
    bindings: tuple[str, ...]  # names of the engines' inputs and outputs, where the files list them
