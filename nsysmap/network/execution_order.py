"""Finds the order in which an engine runs its layers: that of the file, unless the data flow
contradicts it.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from itertools import pairwise

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.inputs.engine.tensor_formats import elements
from nsysmap.names.decode import split_layer_name

_NUMBER = re.compile(r"(\d+)")
_REFORMAT = re.compile(r"Reformatting CopyNode for (Input|Output) Tensor \d+ to (.+)$", re.DOTALL)


def execution_orders(layers: Sequence[Layer]) -> list[tuple[int, ...]]:
    """The orders in which the layers can run, as positions in ``layers``; the file's own first.

    Where the file lists every producer before its consumers and Myelin's instructions by their
    numbers, that is the only one.
    """
    as_listed = tuple(range(len(layers)))
    before = _before(layers)
    if all(first < then for then, firsts in enumerate(before) for first in firsts):
        return [as_listed]
    return [as_listed, _sorted(layers, before)]


def _before(layers: Sequence[Layer]) -> list[set[int]]:
    """For each layer those that must run earlier: producers of its inputs, and the previous
    instruction in its Myelin region.
    """
    before: list[set[int]] = [set() for _ in layers]
    makers: dict[str, list[tuple[int, Tensor]]] = {}
    for at, layer in enumerate(layers):
        for tensor in layer.outputs:
            makers.setdefault(tensor.name, []).append((at, tensor))
    for at, layer in enumerate(layers):
        for tensor in layer.inputs:
            made_by = makers.get(tensor.name, ())
            # Myelin gives several tensors one name: that says nothing, unless they are the parts of
            # what is read
            if (len(made_by) == 1 or _parts_of(tensor, made_by)) and all(
                maker != at for maker, _ in made_by
            ):
                before[at].update(maker for maker, _ in made_by)
    instructions: dict[tuple[int, int | None], list[tuple[int, int]]] = {}
    for at, layer in enumerate(layers):
        split = split_layer_name(layer.name)
        if split.region is not None and split.region_index is not None:
            instructions.setdefault((split.region, layer.optimization_profile), []).append(
                (split.region_index, at)
            )
    for numbered in instructions.values():
        numbered.sort()
        for (_, first), (_, then) in pairwise(numbered):
            before[then].add(first)
    _reformats(layers, before)
    return before


def _parts_of(tensor: Tensor, made: Sequence[tuple[int, Tensor]]) -> bool:
    """Whether several layers write the parts of a tensor: a concatenation without a copy."""
    whole, parts = elements(tensor), [elements(part) for _, part in made]
    return (
        len(made) > 1
        and whole is not None
        and None not in parts
        and sum(part for part in parts if part is not None) == whole
    )


def _reformats(layers: Sequence[Layer], before: list[set[int]]) -> None:
    """A reformat's name says which layer it feeds, or which it follows."""
    called: dict[str, list[int]] = {}
    for at, layer in enumerate(layers):
        called.setdefault(layer.name, []).append(at)
    for at, layer in enumerate(layers):
        found = _REFORMAT.match(layer.name)
        other = called.get(found[2], ()) if found else ()
        if found and len(other) == 1 and other[0] != at:
            first, then = (at, other[0]) if found[1] == "Input" else (other[0], at)
            before[then].add(first)


def _sorted(layers: Sequence[Layer], before: list[set[int]]) -> tuple[int, ...]:
    """Sorts producers first; among layers that are ready, the one whose name's numbers are lowest,
    then the file's order.
    """
    after: list[list[int]] = [[] for _ in layers]
    waits = [len(firsts) for firsts in before]
    for then, firsts in enumerate(before):
        for first in firsts:
            after[first].append(then)
    rank = {
        at: place
        for place, at in enumerate(
            sorted(range(len(layers)), key=lambda at: (_natural(layers[at].name), at))
        )
    }
    ready = [(rank[at], at) for at, count in enumerate(waits) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    left = set(range(len(layers)))
    while left:
        if not ready:  # a circle, of names that repeat: begin with the layer that waits for least
            at = min(left, key=lambda one: (waits[one], rank[one]))
            heapq.heappush(ready, (rank[at], at))
        _, at = heapq.heappop(ready)
        if at not in left:
            continue
        left.remove(at)
        order.append(at)
        for then in after[at]:
            waits[then] -= 1
            if waits[then] <= 0 and then in left:
                heapq.heappush(ready, (rank[then], then))
    return tuple(order)


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which layer.2 comes before layer.10."""
    parts = _NUMBER.split(name)
    return tuple(
        (1, int(part), "") if part.isdigit() and len(part) < 19 else (0, 0, part)
        for part in parts
        if part
    )
