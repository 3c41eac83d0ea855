"""The facts about the engines that changes need."""

from __future__ import annotations

from nsysmap.core.records import dataclass
from nsysmap.core.table import Table


@dataclass(frozen=True)
class EngineFacts:
    """The layers of the engines that ran, their dependencies, the runs of layers that could be one
    kernel, and the layers' roofline.
    """

    layers: Table
    tensors: Table
    edges: Table
    chains: Table
    chain_layers: Table
    roofline: Table
    bindings: tuple[str, ...]  # names of the engines' inputs and outputs, where the files list them
