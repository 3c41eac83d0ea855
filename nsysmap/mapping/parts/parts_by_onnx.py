"""Assigns the parts of an opaque Myelin region to nodes of the ONNX model that the engine was built
from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, Table, Text
from nsysmap.inputs.engine.model import Engine, Layer, first_layers
from nsysmap.inputs.engine.onnx_model import OnnxModel
from nsysmap.mapping.order.sequence_alignment import AlignmentCosts, best_path, likeliest
from nsysmap.mapping.parts.onnx_blocks import ModelGraph, OnnxBlock, blocks
from nsysmap.mapping.parts.parts import Namer
from nsysmap.mapping.parts.parts_by_name import PatternPart
from nsysmap.names.decode import decode
from nsysmap.names.layers import without_suffix

SURE = 0.99
"""Least probability of a part's block for the part to take its name; below it the name from its
kernels stays.
"""
LEAST = 0.5
"""Least share of the parts that must be placed for any to take a name: a model with other blocks is
not the engine's.
"""

# Nats, as in `scores`: what counts is how they compare.
_FITS, _NOT = 4.0, -12.0
_LATER = -6.0  # a second part in one block
_BESIDE = -1.5  # … where it can be several products
_DROP, _DROP_ELSE = -5.0, -1.5  # a part that is in no block; activations
_SKIP = {
    "product": -2.5,
    "convolution": -3.0,
    "deconvolution": -3.0,
    "softmax": -2.5,
    "layernorm": -3.0,
    "rmsnorm": -3.0,
    "groupnorm": -3.0,
}
_SKIP_ELSE = -0.3  # activations are mostly fused into the product before them
_INSIDE = 3  # blocks that one attention kernel stands for

_NORMS = ("layernorm", "rmsnorm", "groupnorm")
_KINDS = {  # what a part's word can be in the model
    "gemm": ("product",), "matmul-by-reduction": ("product",),
    "convolution": ("convolution",), "deconvolution": ("deconvolution", "convolution"),
    "layernorm": ("layernorm",), "layernorm-statistics": ("layernorm",),
    "layernorm-affine": ("layernorm",),
    "rmsnorm": ("rmsnorm",), "rms-normalize": ("rmsnorm",), "rmsnorm-statistics": ("rmsnorm",),
    "groupnorm": ("groupnorm",), "instancenorm": ("groupnorm",),
    "normalize": ("layernorm", "groupnorm"), "normalization": _NORMS,
    "norm-scale": _NORMS, "softmax": ("softmax",), "softmax-statistics": ("softmax",),
    "log-softmax": ("log-softmax",),
    "attention": ("attention",), "gelu-erf": ("gelu",), "gelu-tanh": ("gelu", "tanh"),
    "geglu": ("gelu", "tanh"),
    "silu": ("sigmoid",), "swiglu": ("sigmoid",), "sigmoid": ("sigmoid",), "topk": ("topk",),
}  # fmt: skip
# operations that tell, in a part named by its operations
_IN_WORDS = {
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "TopK": "topk",
    "Erf": "gelu",
}
_UNNAMED = re.compile(r"^\(Unnamed Layer\* \d+\)$")


@dataclass(frozen=True)
class Placing:
    """What is known about the regions before their kernels are placed."""

    namer: Namer
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class _Region:
    blocks: tuple[OnnxBlock, ...]
    names: tuple[str, ...]  # of the blocks
    single: tuple[tuple[str, ...], ...]  # names of a block's siblings, one by one


def place_on_model(model: OnnxModel, engines: Sequence[Engine], layers: Table) -> Placing:
    """Returns a namer for `parts.find_parts`, and a warning for each opaque region whose nodes are
    not in the model.

    A region is what lies between the first and the last node that its name tells, less what other
    layers of the engine name and what must run before or after these.  Its parts (gemm, norm,
    softmax, attention, activation) are aligned with the model's in topological order; a part gets
    the name of its block where the alignment is sure of it (SURE).
    """
    graph = ModelGraph(model)
    regions: dict[int, _Region] = {}
    notes: list[Note] = []
    offsets = first_layers(engines)
    names, kinds, of_engine = (
        layers.text("name").list(),
        layers.text("kind").list(),
        layers.ints("engine").tolist(),
    )
    for row, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind != "foreign_node" or name is None:
            continue
        number = of_engine[row]
        others: tuple[Layer, ...] = ()
        if number != MISSING:
            others = tuple(
                layer for layer in engines[number].layers if layer.index != row - offsets[number]
            )
        found = _nodes_of(graph, name, others)
        if found is None:
            notes.append(
                Note(
                    "warning",
                    f"{model.source} has none of the nodes named in {name}: its parts are not"
                    " assigned to nodes.",
                    brief=f"{model.source} has none of the nodes of a region",
                )
            )
            continue
        held = tuple(blocks(graph, found))
        tree = _Tree.of(model)
        single = tuple(tuple(tree.name(sibling) for sibling in block.siblings) for block in held)
        regions[row] = _Region(held, tuple(tree.name(block.nodes) for block in held), single)
    return Placing(lambda layer, parts: _named(regions.get(layer), parts), tuple(notes))


def note_of(model: OnnxModel, part_by: Text) -> Note:
    """States how many kernels were placed; ``part_by`` is the source of each kernel's part."""
    placed, left = (int(np.count_nonzero(part_by.equals(by))) for by in ("onnx", "pattern"))
    if not placed + left:
        return Note(
            "info",
            f"{model.source} was not needed: the trace names every kernel inside an opaque region.",
        )
    return Note(
        "info",
        f"{model.source}: {placed:,} of {placed + left:,} kernels that the trace does not name are"
        " assigned to its nodes.",
    )


# --- which nodes a region holds
# -------------------------------------------------------------------------------------------


def _nodes_of(graph: ModelGraph, name: str, others: Sequence[Layer]) -> set[int] | None:
    """Positions of the region's nodes; None if neither its first nor its last one is in
    the model.
    """
    first, last = _ends(graph, name)
    if first is None and last is None:
        return None
    count = len(graph.model.nodes)
    result = set(range(first or 0, (count - 1 if last is None else last) + 1))
    inner = last if last is not None else first
    assert inner is not None
    before, after = graph.ancestors([inner]), graph.descendants([inner])
    named = {number for layer in others for number in _named_in(graph, layer)} - {inner, first}
    result -= graph.ancestors(named & before)
    result -= graph.descendants((named & after) - before)
    return result - named


def _ends(graph: ModelGraph, name: str) -> tuple[int | None, int | None]:
    """Positions of the first and the last node in a region's name; None for one that is a constant
    or not in the model.
    """
    inner = name[name.find("[") + 1 : name.rfind("]")]
    ways = [
        (inner[:at], inner[at + 3 :]) for at in range(len(inner)) if inner.startswith("...", at)
    ] or [(inner, inner)]
    found = [(_find(graph, first, 0), _find(graph, last, -1)) for first, last in ways]
    return max(found, key=lambda ends: sum(end is not None for end in ends))


def _find(graph: ModelGraph, text: str, place: int) -> int | None:
    """The node that TensorRT calls by this name: the first (place 0) or last (-1) of several joined
    by +; None for constants and unknown names.
    """
    text = re.split(r" ?\+ ?", text)[place].strip() if text not in graph.by_name else text
    while text:
        if text in graph.by_name:
            number = graph.by_name[text]
            return number if graph.computed(graph.model.nodes[number]) else None
        if text in graph.model.constants or _UNNAMED.match(text):
            return None
        shorter = without_suffix(text)
        if shorter == text:
            return None
        text = shorter
    return None


def _named_in(graph: ModelGraph, layer: Layer) -> list[int]:
    """The nodes that another layer of the engine names."""
    if layer.kind in ("reformat", "constant", "noop"):
        return []
    if layer.kind == "foreign_node":
        return [end for end in _ends(graph, layer.name) if end is not None]
    nodes = str(decode(layer.name).fields.get("nodes", layer.name)).split(" + ")
    found = [_find(graph, node, 0) for node in (layer.name, *nodes, *layer.onnx)]
    return [number for number in found if number is not None]


# --- names
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tree:
    """Counts the computing nodes under each path of the model's node names."""

    names: tuple[str, ...]
    under: Mapping[str, int]

    @staticmethod
    def of(model: OnnxModel) -> _Tree:
        under: Counter[str] = Counter()
        for node in model.nodes:
            if not model.constants.issuperset(node.outputs):
                under.update(
                    node.name[:at] for at in range(1, len(node.name)) if node.name[at] == "/"
                )
        return _Tree(tuple(node.name for node in model.nodes), under)

    def name(self, numbers: Sequence[int]) -> str:
        """A node's name. For several nodes: their common path if little else lies under it,
        otherwise first...last.
        """
        names = [self.names[number] for number in numbers]
        if len(names) == 1:
            return names[0]
        paths = [name.split("/") for name in names]
        common = []
        for words in zip(*paths, strict=False):
            if len(set(words)) > 1:
                break
            common.append(words[0])
        path = "/".join(common)
        if path and 2 * len(names) > self.under.get(path, 0) > 0:
            return path
        return f"{names[0]}...{names[-1]}"


# --- alignment
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slot:
    """What one part may be."""

    kind: str
    name: str
    several: bool = False  # more than one part may be in it


def _named(region: _Region | None, parts: Sequence[PatternPart]) -> list[str | None]:
    """The name of each part's block in the model, None if it has none or the alignment is not sure.

    Twice aligned: first with attention blocks beside their insides and products of one input
    together, which shows what became one kernel; then with what is there accordingly, a part a
    slot.
    """
    result: list[str | None] = [None] * len(parts)
    items = [(place, kinds) for place, part in enumerate(parts) if (kinds := _kinds_of(part.word))]
    if region is None or not items or not region.blocks:
        return result
    wanted = [kinds for _, kinds in items]
    either = [_Slot(block.kind, "", bool(block.siblings)) for block in region.blocks]
    slots = _slots(region, Counter(likeliest(_costs(wanted, either))[0].tolist()))
    path = best_path(_costs(wanted, slots))
    sure = [
        (place, slot)
        for (place, _), slot, chance in zip(
            items, path.slot.tolist(), path.chance.tolist(), strict=True
        )
        if slot >= 0 and chance >= SURE
    ]
    if len(sure) >= LEAST * len(items):
        for place, slot in sure:
            result[place] = slots[slot].name
    return result


def _slots(region: _Region, parts: Counter[int]) -> list[_Slot]:
    """The slots available, given how many parts fell to each block."""
    fused = {
        node
        for at, block in enumerate(region.blocks)
        if block.kind == "attention" and parts[at]
        for node in block.nodes
    }
    slots = []
    for at, block in enumerate(region.blocks):
        if block.kind == "attention":
            slots += [_Slot(block.kind, region.names[at])] if parts[at] else []
        elif block.siblings:
            single = region.single[at]
            slots += (
                [_Slot(block.kind, "+".join(single))]
                if parts[at] == 1
                else [_Slot(block.kind, name) for name in single]
            )
        elif fused.isdisjoint(block.nodes):
            slots.append(_Slot(block.kind, region.names[at]))
    return slots


def _kinds_of(word: str) -> tuple[str, ...]:
    """The kinds of block that a part with that word can be."""
    return _KINDS.get(word) or tuple(
        dict.fromkeys(kind for op, kind in _IN_WORDS.items() if op in word.split())
    )


def _costs(items: Sequence[tuple[str, ...]], slots: Sequence[_Slot]) -> AlignmentCosts:
    """The rewards for these parts, each with its kinds, in these slots. An attention block is
    optional; if used, the blocks inside it are skipped.
    """
    distinct = list(dict.fromkeys(items))
    skip = np.array(
        [0.0 if slot.kind == "attention" else _SKIP.get(slot.kind, _SKIP_ELSE) for slot in slots]
    )
    match = np.array(
        [
            [
                _FITS - (_INSIDE * _SKIP["product"] if slot.kind == "attention" else 0.0)
                if slot.kind in kinds
                else _NOT
                for slot in slots
            ]
            for kinds in distinct
        ]
    )
    more: FloatArray = np.tile(
        np.array([_BESIDE if slot.several else _LATER for slot in slots]), (len(distinct), 1)
    )
    drop = np.array(
        [
            (
                _DROP
                if kinds[0] in _NORMS or kinds[0] in _SKIP or kinds[0] == "attention"
                else _DROP_ELSE
            )
            for kinds in distinct
        ]
    )
    row = np.array([distinct.index(kinds) for kinds in items], np.int64)
    return AlignmentCosts(match, row, skip, more, drop)
