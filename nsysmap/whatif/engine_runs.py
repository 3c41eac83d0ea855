"""What the changes about layers need of the engines."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.base.table import Table


@dataclass(frozen=True)
class EngineRuns:
    """The layers of the engines, and the runs of them that could be one kernel."""

    layers: Table
    chains: Table
    chain_layers: Table
