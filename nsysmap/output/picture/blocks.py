"""Groups the layers of an engine that belong together: the Myelin regions, and the blocks that
repeat (layer.0, layer.1, …).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import IntArray
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.names.layers import nodes_of, split_layer_name
from nsysmap.timing.precision import region_of

_NUMBERED = re.compile(r"(.{0,80}?)(\d{1,9})$")
_NUMBERS = re.compile(r"\d+")
_SHORTEST_PERIOD = 3  # layers: shorter patterns are chance
_MOST_PATTERNS = 8  # that repeat in one engine
_LEAST_COVERED = 0.98  # of the layers that the best period covers: then a shorter one is taken
_SOURCES = ("$$myelin$$", "ONNXTRT_")

Family = tuple[str, ...]
"""A path up to the number that identifies the block, with a star for each number."""


@dataclass(frozen=True)
class Group:
    """Layers drawn as one box, by their index in the file."""

    name: str
    family: str  # groups of one family are similar: the same name except for numbers
    layers: tuple[int, ...]


def region_groups(engine: Engine) -> tuple[Group, ...]:
    """The Myelin regions with more than one layer, by their first layer; each optimization profile
    has its own.
    """
    found: dict[tuple[int | None, str], list[int]] = {}
    for layer in engine.layers:
        region = region_of(layer.name, layer.kind, layer.region)
        if region is not None:
            found.setdefault((layer.optimization_profile, region), []).append(layer.index)
    several = len({profile for profile, _ in found}) > 1
    return tuple(
        Group(
            f"Myelin region {region.removeprefix('myl')}"
            + (f" [profile {profile}]" if several else ""),
            "Myelin region",
            tuple(layers),
        )
        for (profile, region), layers in found.items()
        if len(layers) > 1
    )


def block_groups(engine: Engine) -> tuple[Group, ...]:
    """The blocks that repeat, by their first layer: found from numbers in the names of the layers'
    nodes, otherwise from repetitions in the order.

    A layer that names no node joins the layers around it; one between two blocks joins the block
    before it.
    """
    paths = [list(_paths(layer)) for layer in engine.layers]
    assigned = _by_name(engine.layers, paths)
    if not assigned:
        return _by_order(engine.layers)
    _fill(engine.layers, paths, assigned)
    blocks: dict[tuple[Family, tuple[str, ...]], list[int]] = defaultdict(list)
    for index in sorted(assigned):
        blocks[assigned[index]].append(index)
    return tuple(
        Group(_with_numbers(family, numbers), "/".join(family), tuple(layers))
        for (family, numbers), layers in sorted(blocks.items(), key=lambda item: item[1][0])
        if len(layers) > 1
    )


def _paths(layer: Layer) -> Iterator[list[str]]:
    """The path of each node that the layer names, without the operation itself."""
    nodes = layer.onnx or nodes_of(split_layer_name(layer.name).node)
    for node in nodes:
        text = node
        for source in _SOURCES:
            text = text.removeprefix(source)
        parts = [part for part in text.split("/") if part] if "/" in text else text.split(".")
        if len(parts) > 1 and not text.startswith(("__my", "{ForeignNode")):
            yield parts[:-1]


def _candidates(path: Sequence[str]) -> Iterator[tuple[Family, tuple[str, ...]]]:
    """Each way to read the path as a block: the family, and the numbers that identify the block."""
    family: list[str] = []
    numbers: list[str] = []
    for part in path:
        if found := _NUMBERED.match(part):
            family.append(found[1] + "*")
            numbers.append(found[2])
            yield tuple(family), tuple(numbers)
        else:
            family.append(part)


def _with_numbers(family: Family, numbers: Sequence[str]) -> str:
    left = iter(numbers)
    parts = [part[:-1] + next(left) if part.endswith("*") else part for part in family]
    joiner = (
        "."
        if all(part.isidentifier() or part.isdigit() for part in parts) and "*" in family
        else "/"
    )
    return joiner.join(parts)


def _by_name(
    layers: Sequence[Layer], paths: Sequence[Sequence[Sequence[str]]]
) -> dict[int, tuple[Family, tuple[str, ...]]]:
    """The block of each layer that names one: chosen from the families whose blocks cover the most
    layers and are most similar.
    """
    votes: dict[Family, dict[int, Counter[tuple[str, ...]]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for index, of_layer in enumerate(paths):
        for path in of_layer:
            for family, numbers in _candidates(path):
                votes[family][index][numbers] += 1
    members = {
        family: {index: _most_voted(counts) for index, counts in found.items()}
        for family, found in votes.items()
    }
    assigned: dict[int, tuple[Family, tuple[str, ...]]] = {}
    for family in sorted(members, key=lambda one: (-_score(layers, members[one]), -len(one), one)):
        mine = {
            index: numbers for index, numbers in members[family].items() if index not in assigned
        }
        if _score(layers, mine) > 0 and len(mine) * 2 > len(members[family]):
            assigned.update({index: (family, numbers) for index, numbers in mine.items()})
    return assigned


def _most_voted(counts: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    """The block that contains most of a layer's nodes; the first if there are several."""
    return min(counts, key=lambda numbers: (-counts[numbers], [int(one) for one in numbers]))


def _score(layers: Sequence[Layer], members: dict[int, tuple[str, ...]]) -> float:
    """The number of layers in blocks of two or more, counting double those of blocks that resemble
    another block; 0 for fewer than two blocks.
    """
    blocks: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for index, numbers in members.items():
        blocks[numbers].append(layers[index].kind)
    shapes = [tuple(sorted(kinds)) for kinds in blocks.values() if len(kinds) > 1]
    alike = Counter(shapes)
    if len(shapes) < 2:
        return 0
    return sum(len(shape) * (2 if alike[shape] > 1 else 1) for shape in shapes) / 2


def _fill(
    layers: Sequence[Layer],
    paths: Sequence[Sequence[Sequence[str]]],
    assigned: dict[int, tuple[Family, tuple[str, ...]]],
) -> None:
    """Gives layers that name no node a block: that of both neighbours, or of the one before; after
    the last block, as many as after the others.
    """
    sizes = Counter(assigned.values())
    named = sorted(assigned)
    tails: dict[Family, list[str]] = {}
    for before, after in pairwise(named):
        between = range(before + 1, after)
        block = assigned[before]
        if not between or any(paths[index] for index in between) or len(between) > sizes[block]:
            continue
        if block[0] == assigned[after][0]:
            assigned.update(dict.fromkeys(between, block))
            if block != assigned[after]:
                tails[block[0]] = [layers[index].kind for index in between]
    for family, tail in tails.items():
        last = max(index for index, (one, _) in assigned.items() if one == family)
        for offset, kind in enumerate(tail, start=last + 1):
            if (
                offset >= len(layers)
                or offset in assigned
                or paths[offset]
                or layers[offset].kind != kind
            ):
                break
            assigned[offset] = assigned[last]


# --- by order
# --------------------------------------------------------------------------------------------------


def _by_order(layers: Sequence[Layer]) -> tuple[Group, ...]:
    """Stretches of layers that repeat consecutively, the longest first: one block per
    repetition.
    """
    words = [
        f"{layer.kind} {_NUMBERS.sub('', split_layer_name(layer.name).node)}" for layer in layers
    ]
    index = {word: number for number, word in enumerate(dict.fromkeys(words))}
    codes = np.array([index[word] for word in words], np.int64)
    groups: list[Group] = []
    for number in range(_MOST_PATTERNS):
        first, period, repeats = _best_repeat(codes)
        if repeats < 2:
            break
        family = f"{period} layers" + (f" ({number + 1})" if number else "")
        for repeat in range(repeats):
            start = first + repeat * period
            groups.append(
                Group(
                    f"block {repeat} of {family}",
                    f"block * of {family}",
                    tuple(range(start, start + period)),
                )
            )
        taken = slice(first, first + repeats * period)
        # unique, so that it is not found again
        codes[taken] = -1 - np.arange(first, first + repeats * period)
    return tuple(sorted(groups, key=lambda group: group.layers))


def _best_repeat(codes: IntArray) -> tuple[int, int, int]:
    """First layer, period and number of repetitions of the stretch that covers the most layers,
    with the shortest period.
    """
    found: list[tuple[int, int, int]] = []
    for period in range(_SHORTEST_PERIOD, len(codes) // 2 + 1):
        same = np.concatenate([[False], codes[:-period] == codes[period:], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        lengths = edges[1::2] - edges[::2]
        if len(lengths) and lengths.max() >= period:
            at = int(lengths.argmax())
            repeats = int(lengths[at]) // period + 1
            first = int(edges[2 * at])
            if (
                codes[first : first + period] != codes[first]
            ).any():  # a single repeated layer is not a block
                found.append((first, period, repeats))
    if not found:
        return 0, 0, 0
    most = max(period * repeats for _, period, repeats in found)
    return min(
        (one for one in found if one[1] * one[2] >= _LEAST_COVERED * most), key=lambda one: one[1]
    )
