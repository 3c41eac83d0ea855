"""How often the loops of an engine run, if its file shows it, and the order of its layers with the
loops unrolled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.model import Layer

_JUMP, _JUMP_BY_NAME = "cjmp", "clp_"
# names of what is set before a loop; where only names are told, its body begins behind
_INIT = re.compile(r"init_hvar\^|__mye\d+_(?:hc_)?init_")
# Myelin's name of a constant that the host holds has its value
_CONSTANT = re.compile(r"__d\^(-?\d+)i\d+(?:_|$)")
_LONGEST = 20_000  # layers, written out


@dataclass(frozen=True)
class Loop:
    """Layers that run again and again, as positions in an order: from the first one to the jump
    back to it.
    """

    first: int
    last: int
    trips: int | None  # None where the file does not tell


def loops_in(layers: Sequence[Layer], order: Sequence[int]) -> list[Loop]:
    """The loops among these layers in that order; inner ones before those around them."""
    place = {layers[at].name: number for number, at in enumerate(order)}
    found = []
    for number, at in enumerate(order):
        layer = layers[at]
        if layer.type is None and layer.name.startswith(_JUMP_BY_NAME):
            set_before = [
                begin for begin in range(number) if _INIT.match(layers[order[begin]].name)
            ]
            if set_before:
                found.append(Loop(set_before[-1] + 1, number, None))
        if layer.type != _JUMP:
            continue
        targets = [
            place.get(str(layer.parameters.get(key)), number + 1)
            for key in ("JumpTargetThen", "JumpTargetElse")
        ]
        if min(targets) <= number:
            found.append(Loop(min(targets), number, _trips(layer, layers)))
    return sorted(found, key=lambda loop: loop.last - loop.first)


def has_open_loops(layers: Sequence[Layer]) -> bool:
    """Whether there are loops whose number of trips the file does not show."""
    return any(loop.trips is None for loop in loops_in(layers, range(len(layers))))


def unrolled(layers: Sequence[Layer], order: Sequence[int], otherwise: int = 1) -> tuple[int, ...]:
    """The order with every loop repeated as often as it runs; ``otherwise`` is the number for loops
    whose trips the file does not show.
    """
    result = [[at] for at in order]  # what stands at each place of the order
    for loop in loops_in(layers, order):
        body = [at for place in result[loop.first : loop.last + 1] for at in place]
        trips = max(loop.trips if loop.trips is not None else otherwise, 1)
        if sum(map(len, result)) + len(body) * (trips - 1) <= _LONGEST:
            result[loop.last] = result[loop.last] + body * (trips - 1)
    return tuple(at for place in result for at in place)


def _trips(jump: Layer, layers: Sequence[Layer]) -> int | None:
    """How often a loop runs whose counter grows by a constant from 0 up to a constant."""
    limits = [value for tensor in jump.inputs if (value := _value(tensor.name)) is not None]
    counters = [tensor.name for tensor in jump.inputs if _value(tensor.name) is None]
    if len(limits) != 1 or len(counters) != 1:
        return None
    for layer in layers:
        reads = [tensor.name for tensor in layer.inputs]
        if counters[0] in reads and [tensor.name for tensor in layer.outputs] == counters:
            steps = [value for name in reads if (value := _value(name)) is not None]
            return -(-limits[0] // steps[0]) if len(steps) == 1 and steps[0] > 0 else None
    return None


def _value(tensor: str) -> int | None:
    found = _CONSTANT.match(tensor)
    return int(found[1]) if found else None
