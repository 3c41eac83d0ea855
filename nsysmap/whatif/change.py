"""The changes that what-if knows, and the engine layers to which they apply."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.changes import ABOUT_LAYERS, CHANGES, DeclaredChange
from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import Table
from nsysmap.whatif.engine_facts import EngineFacts

CHANGE_NAMES = tuple(CHANGES)

REFORMATS = ("Reformatting CopyNode*",)
"""TensorRT's name for layers that it inserted to change a layout."""

# origins of copies that another layout would avoid; SLICE, QDQ and CAST are part of the network
_PUT_IN = (
    "REFORMAT",
    "CONCAT",
)


@dataclass(frozen=True)
class Change:
    """One change; ``layers`` and ``runs`` name layers, their parts or kernels; a name that ends in
    ``*`` is a prefix.
    """

    name: str
    layers: tuple[str, ...] = ()  # drop-layers: what to remove
    runs: tuple[tuple[str, ...], ...] = ()  # join-kernels: each run becomes one kernel

    @property
    def declared(self) -> DeclaredChange:
        """The declared facts about the change."""
        return CHANGES[self.name]


def default_changes(facts: EngineFacts | None = None) -> list[Change]:
    """All changes: drop-layers removes TensorRT's reformats, join-kernels joins split norms and
    softmaxes.

    Without engine files, reformats are recognised by name.
    """
    layers = reformat_layers(facts.layers) if facts is not None else REFORMATS
    runs = piece_runs(facts) if facts is not None else ()
    changes = [Change(name) for name in CHANGE_NAMES if name not in ABOUT_LAYERS]
    changes.append(Change("drop-layers", layers=layers))
    changes.append(Change("join-kernels", runs=runs))
    return changes


def chosen_changes(
    names: Sequence[str], layers: Sequence[str], facts: EngineFacts | None = None
) -> list[Change]:
    """The changes of these names (all if none is given); ``layers`` are those that drop-layers
    removes and join-kernels joins.

    Raises NsysmapError for an unknown change, and for layers without a change that takes layers.
    """
    check_change(names, layers)
    changes = [change for change in default_changes(facts) if not names or change.name in names]
    if not layers:
        return changes
    return [
        (
            Change(change.name, tuple(layers), (tuple(layers),))
            if change.name in ABOUT_LAYERS
            else change
        )
        for change in changes
    ]


def check_change(names: Sequence[str], layers: Sequence[str]) -> None:
    """Raises NsysmapError for an unknown change, and for layers without a change that takes
    layers.
    """
    for name in names:
        if name not in CHANGE_NAMES:
            raise NsysmapError(
                f"change {name}",
                "there is no such change",
                f"use one of: {', '.join(CHANGE_NAMES)}",
            )
    if layers and not ABOUT_LAYERS.intersection(names):
        raise NsysmapError(
            "--layer",
            "none of the given changes is about layers",
            f"add {' or '.join(f'--change {name}' for name in CHANGES if name in ABOUT_LAYERS)}",
        )


def reformat_layers(layers: Table) -> tuple[str, ...]:
    """The names of the layers that only change a layout or type and that are not part of the
    network.
    """
    names, origins = layers.text("name").list(), layers.text("origin").list()
    reformat = layers.text("kind").equals("reformat").tolist()
    return tuple(
        dict.fromkeys(
            str(name)
            for name, origin, is_reformat in zip(names, origins, reformat, strict=True)
            if is_reformat
            and (origin in _PUT_IN or (origin is None and str(name).startswith(REFORMATS[0][:-1])))
        )
    )


def piece_runs(facts: EngineFacts) -> tuple[tuple[str, ...], ...]:
    """The layers of each norm or softmax that is split, in order."""
    pieces = {
        int(chain)
        for chain, kind in zip(
            facts.chains.ints("chain_id").tolist(), facts.chains.text("kind").list(), strict=True
        )
        if kind in ("norm", "softmax")
    }
    layers, chain_layers = facts.layers, facts.chain_layers
    name = dict(zip(layers.ints("layer_id").tolist(), layers.text("name").list(), strict=True))
    runs: dict[int, list[str]] = {}
    order = np.lexsort((chain_layers.ints("position"), chain_layers.ints("chain_id")))
    for chain, layer in zip(
        chain_layers.ints("chain_id")[order].tolist(),
        chain_layers.ints("layer_id")[order].tolist(),
        strict=True,
    ):
        if chain in pieces and layer in name:
            runs.setdefault(chain, []).append(str(name[layer]))
    return tuple(tuple(run) for run in runs.values())
