"""The changes that what-if knows, and the engine layers that they apply to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nsysmap.base.errors import NsysmapError
from nsysmap.base.table import Table
from nsysmap.whatif.engine_facts import EngineFacts

ChangeName = Literal[
    "cuda-graph", "two-in-flight", "async", "pinned-copies", "no-host-gap", "one-stream", "aux-streams", "drop-layers", "join-kernels"
]
CHANGE_NAMES: tuple[ChangeName, ...] = get_args(ChangeName)
ABOUT_LAYERS = frozenset({"drop-layers", "join-kernels"})

REFORMATS = ("Reformatting CopyNode*",)
"""What TensorRT calls the layers that it put in to change a layout."""

_PUT_IN = ("REFORMAT", "CONCAT")  # origins of copies that another layout would spare; SLICE, QDQ and CAST do what the network asks for


@dataclass(frozen=True)
class Change:
    """One change; ``layers`` and ``runs`` name layers, their parts or kernels, a name ending in ``*`` all that begin so."""

    name: ChangeName
    layers: tuple[str, ...] = ()  # drop-layers: what to take out
    runs: tuple[tuple[str, ...], ...] = ()  # join-kernels: each run becomes one kernel


def default_changes(facts: EngineFacts | None = None) -> list[Change]:
    """All of them: drop-layers takes TensorRT's reformats out, join-kernels joins the norms and softmaxes in pieces.

    Without engine files reformats are known by their names.
    """
    changes = [Change(name) for name in CHANGE_NAMES if name not in ABOUT_LAYERS]
    changes.append(Change("drop-layers", layers=reformat_layers(facts.layers) if facts is not None else REFORMATS))
    changes.append(Change("join-kernels", runs=piece_runs(facts) if facts is not None else ()))
    return changes


def chosen_changes(names: Sequence[str], layers: Sequence[str], facts: EngineFacts | None = None) -> list[Change]:
    """The changes of these names (all where none is given); ``layers`` are what drop-layers takes out and join-kernels joins to one.

    NsysmapError for a change that does not exist, and for layers without a change that is about layers.
    """
    check_change(names, layers)
    changes = [change for change in default_changes(facts) if not names or change.name in names]
    if not layers:
        return changes
    return [Change(change.name, tuple(layers), (tuple(layers),)) if change.name in ABOUT_LAYERS else change for change in changes]


def check_change(names: Sequence[str], layers: Sequence[str]) -> None:
    """NsysmapError for a change that does not exist, and for layers without a change that is about layers."""
    for name in names:
        if name not in CHANGE_NAMES:
            raise NsysmapError(f"change {name}", "there is no such change", f"use one of: {', '.join(CHANGE_NAMES)}")
    if layers and not ABOUT_LAYERS.intersection(names):
        raise NsysmapError("--layer", "none of the given changes is about layers", "add --change drop-layers or --change join-kernels")


def reformat_layers(layers: Table) -> tuple[str, ...]:
    """The names of the layers that only change a layout or type and that the network does not ask for."""
    names, origins = layers.text("name").list(), layers.text("origin").list()
    reformat = layers.text("kind").equals("reformat").tolist()
    return tuple(
        dict.fromkeys(
            str(name)
            for name, origin, is_reformat in zip(names, origins, reformat, strict=True)
            if is_reformat and (origin in _PUT_IN or (origin is None and str(name).startswith(REFORMATS[0][:-1])))
        )
    )


def piece_runs(facts: EngineFacts) -> tuple[tuple[str, ...], ...]:
    """The layers of each norm or softmax that is in pieces, in order."""
    pieces = {
        int(chain)
        for chain, kind in zip(facts.chains.ints("chain_id").tolist(), facts.chains.text("kind").list(), strict=True)
        if kind in ("norm", "softmax")
    }
    layers, chain_layers = facts.layers, facts.chain_layers
    name = dict(zip(layers.ints("layer_id").tolist(), layers.text("name").list(), strict=True))
    runs: dict[int, list[str]] = {}
    order = np.lexsort((chain_layers.ints("position"), chain_layers.ints("chain_id")))
    for chain, layer in zip(chain_layers.ints("chain_id")[order].tolist(), chain_layers.ints("layer_id")[order].tolist(), strict=True):
        if chain in pieces and layer in name:
            runs.setdefault(chain, []).append(str(name[layer]))
    return tuple(tuple(run) for run in runs.values())
