"""How many bytes of activations an engine holds at a time at least, from what its layers read and
write.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.tensor_formats import tensor_bytes


def activation_bytes(engine: Engine) -> int | None:
    """The most bytes of tensors between layers that are alive at a time, in the file's order of the
    layers; None where the file shows no tensors, or a size is unknown.

    A tensor lives from the layer that writes it to the last that reads it; the engine's own inputs
    and outputs are the caller's.
    """
    sizes: list[dict[str, int]] = []
    last_read: dict[str, int] = {}
    for at, layer in enumerate(engine.layers):
        written: dict[str, int] = {}
        for tensor in layer.outputs:
            if tensor.name in engine.bindings or tensor.location == "Host":
                continue
            size = tensor_bytes(tensor)
            if size is None:
                return None
            written[tensor.name] = size
        sizes.append(written)
        last_read.update((tensor.name, at) for tensor in layer.inputs)
    if not any(sizes):
        return None
    alive: dict[str, int] = {}
    most = 0
    for at, written in enumerate(sizes):
        alive |= written
        most = max(most, sum(alive.values()))
        alive = {name: size for name, size in alive.items() if last_read.get(name, at) > at}
    return most


def weight_bytes(sizes: Sequence[int | None]) -> int | None:
    """The bytes of all weights; None if none are known."""
    known = [one for one in sizes if one]
    return sum(known) if known else None
