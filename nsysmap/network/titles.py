"""Gives each layer a title: the module path and the operators of the model that it computes, as in
`layer.3 … up/MatMul + bias + GELU`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from nsysmap.core.records import dataclass
from nsysmap.core.table import Row, Table, Text, either
from nsysmap.inputs.engine.model import PROFILE, Layer
from nsysmap.names.decode import KernelName, decode
from nsysmap.names.fusion import part_words
from nsysmap.names.layers import node_row, nodes_of, read_layer, split_layer_name, without_suffix
from nsysmap.names.onnx_words import MAIN_KINDS

_LAST = 2
"""Components of a path that are always shown."""

_NAMED = 3  # of what else a layer does that is named, not counted
_BESIDE = 3  # products side by side that are named
# characters of such a name; PyTorch's run to 40 (_native_batch_norm_legit_no_training)
_LONGEST = 20
_COMPONENTS = 1 << 16  # of paths: the modules and nodes of a model share most of their words
_WIDEST = 64  # characters of one component of a path that are shown
_PLAIN = ("dense", "linear", "activation", "act")
_WEIGHTS = ".weight"
_CONSTANT = re.compile(r"(^|[/_])Constant(_\d+)?(_output_\d+)?$")
_QUANTIZE = re.compile(
    r"(Quantize|Dequantize)Linear(_\d+)?(_quantize_scale_node|_dequantize_scale_node)?$"
)
_PLUGIN = re.compile(r"PLUGIN_V\d+_(?=\w)")  # what TensorRT-LLM puts before the plugin's own name
_NUMBER = re.compile(r"\d+")
_HELPER = re.compile(
    r"(?:copied_|un)?(?:reshape|transpose|squeeze|shuffle)_(?:node_)?(?:before|after|between)_|.*(?:\.bias|\]_output)$"
)
_LOOP = re.compile(r"\(Unnamed Loop\* (\d+)\)\^\(Unnamed Layer\* \d+\) \[([^\]]{1,60})\]")
_ORDINAL = re.compile(r"_\d+$")
_MADE = re.compile(
    r"_{2}my[a-z]|_ge[mv][mv]_mha_v\d|(?:dummy_)?shape_call__mye|\$\$myelin\$\$|cast_hvar\^|\w+\^bb\^"
)
"""Names that Myelin makes up."""


_NORMS = {
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "groupnorm": "GroupNorm",
    "instancenorm": "InstanceNorm",
}
_PATTERNS = {
    **_NORMS,
    "gelu-erf": "GELU",
    "gelu-tanh": "GELU",
    "silu": "SiLU",
    "swiglu": "SwiGLU",
    "rope": "RoPE",
    "residual-add": "residual",
}
"""Patterns of the decoder in the words of a title."""
_HALVES = {
    "layernorm-statistics": "statistics",
    "rmsnorm-statistics": "statistics",
    "softmax-statistics": "statistics",
    "layernorm-affine": "normalize",
    "norm-scale": "normalize",
    "softmax-normalize": "normalize",
}
_WHOLE = (*_NORMS, "softmax", "log-softmax", "normalize", "rms-normalize")
_ADDS = ("Add", "Sum")
_PRODUCTS = ("convolution", "deconvolution", "gemm")
# kinds of nodes that say little of what a layer is for
_STILL = (
    "cast",
    "constant",
    "shape",
    "reformat",
)
_ORDER = (
    "gemm",
    "convolution",
    "gather",
    "scale",
    "quantize",
    "pointwise",
    "activation",
    "softmax",
    "reduce",
    "normalization",
)
"""The order in which further work of a layer is named, before nodes that only move data."""
_MOVES = ("concat", "slice", "shuffle", "resize")
_OF_NO_SCOPE = frozenset((*_STILL, *_MOVES, "quantize"))
# of the decoder's operations, for people
_WORDS = {
    "Identity": "copy",
    "MaxPool or AveragePool": "Pool",
}


class _Node(NamedTuple):
    """One node of the model."""

    name: str
    path: tuple[str, ...]  # its module
    last: str
    op: str  # ONNX's word for what it does, where its name tells
    kind: str  # as NodeRow.kind; empty where its name does not tell
    of_weights: bool  # it holds or prepares weights
    rank: int  # where it stands among what else a layer does


@dataclass(frozen=True)
class _Fold:
    """Several nodes that exporters write for one operation: it is present if the module has enough
    of each needed node, and it takes at most that many of each.
    """

    word: str
    needs: Mapping[str, int]
    takes: Mapping[str, int]
    anchor: str
    without: tuple[str, ...] = ()

    def fits(self, counts: Mapping[str, int]) -> bool:
        """Whether a module with these counts of operations contains it."""
        enough = all(counts.get(op, 0) >= least for op, least in self.needs.items())
        return enough and not any(counts.get(op, 0) for op in self.without)


_NORM_TAKES = {
    "ReduceMean": 2,
    "Pow": 1,
    "Sub": 2,
    "Add": 2,
    "Sqrt": 1,
    "Reciprocal": 1,
    "Div": 1,
    "Mul": 2,
}
_FOLDS = (
    _Fold("LayerNorm", {"ReduceMean": 2, "Sub": 1, "Sqrt": 1}, _NORM_TAKES, "ReduceMean"),
    _Fold(
        "RMSNorm",
        {"ReduceMean": 1, "Sqrt": 1},
        {**_NORM_TAKES, "ReduceMean": 1, "Sub": 0, "Add": 1, "Mul": 3},
        "ReduceMean",
        ("Sub",),
    ),
    _Fold(
        "GroupNorm",
        {"InstanceNormalization": 1, "Reshape": 1, "Mul": 1, "Add": 1},
        {"InstanceNormalization": 1, "Reshape": 2, "Mul": 1, "Add": 1},
        "InstanceNormalization",
    ),
    _Fold("GELU", {"Erf": 1, "Div": 1, "Mul": 1}, {"Erf": 1, "Div": 1, "Add": 1, "Mul": 2}, "Erf"),
    _Fold("GELU", {"Erf": 1, "Mul": 1}, {"Erf": 1, "Add": 1, "Mul": 3}, "Erf"),
    _Fold(
        "GELU", {"Tanh": 1, "Add": 2, "Mul": 3}, {"Tanh": 1, "Add": 2, "Pow": 1, "Mul": 6}, "Tanh"
    ),
    _Fold("HardSwish", {"HardSigmoid": 1, "Mul": 1}, {"HardSigmoid": 1, "Mul": 1}, "HardSigmoid"),
    _Fold(
        "RoPE",
        {"Mul": 4, "Sub": 1, "Add": 1, "Concat": 1},
        {"Mul": 4, "Sub": 1, "Add": 1, "Concat": 1, "Slice": 4, "Split": 2},
        "Concat",
    ),
    _Fold(
        "RoPE",
        {"Mul": 2, "Neg": 1, "Add": 1, "Concat": 1},
        {"Mul": 2, "Neg": 1, "Add": 1, "Concat": 1, "Slice": 2, "Split": 1},
        "Neg",
    ),
)
_SILU = _Fold("SiLU", {"Sigmoid": 1, "Mul": 1}, {"Sigmoid": 1, "Mul": 1}, "Sigmoid")
_SWIGLU = _Fold("SwiGLU", {"Sigmoid": 1, "Mul": 2}, {"Sigmoid": 1, "Mul": 2}, "Sigmoid")
_ANCHORS = frozenset(fold.anchor for fold in (*_FOLDS, _SILU, _SWIGLU))
_EXACT = {
    **{op: (op,) for op in ("Sqrt", "Log", "Sin", "Cos", "ReduceMin")},
    "ReduceMax": ("ReduceMax", "TopK"),
    "ReduceSum": ("ReduceSum", "ReduceMean"),
    "ReduceMean": ("ReduceSum", "ReduceMean"),
    "GlobalAveragePool": ("ReduceSum", "ReduceMean", "MaxPool or AveragePool"),
}
"""Nodes that a generated kernel computes only if its name has one of these operations; others may
be there in another form.
"""
# kinds of nodes that name a layer rather than a fold does
_ABOVE_FOLDS = (
    "softmax",
    "topk",
    "nms",
    "pooling",
    "normalization",
)
_FOLDED_MAIN = ("LayerNorm", "RMSNorm", "GroupNorm")

_BY_RANK = attrgetter("rank")

Scopes = Mapping[tuple[str, ...], "Counter[str]"]
"""The operations of the nodes of each module, over a whole engine."""


class _Nodes(dict[str, _Node]):
    """The nodes of an engine by their names, each read once."""

    def __missing__(self, name: str) -> _Node:
        found = self[name] = _node(name)
        return found


class _Network(NamedTuple):
    """What titles need to know about the whole engine."""

    nodes: _Nodes
    scopes: Scopes


def layer_titles(layers: Sequence[Layer]) -> tuple[str, ...]:
    """The title of each layer of an engine: its description, preceded by those components of its
    path in which layers of the same description differ.
    """
    network = _network(layers)
    found = [_split(layer, network) for layer in layers]
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, (_, words) in enumerate(found):
        alike[tuple(word for word in words if not word.startswith("+"))].append(row)
    blocks = _blocks(network.scopes)
    places = {path: _of_blocks(path, blocks) for path in {path for path, _ in found}}
    titles = [""] * len(layers)
    for rows in alike.values():
        kept = _telling([found[row][0] for row in rows])
        for row in rows:
            path, words = found[row]
            of_profile = (
                f" [profile {profile}]" if (profile := layers[row].optimization_profile) else ""
            )
            shown = _without_repeats({*kept, *places[path]}, (*path, words[0]))
            titles[row] = _joined(path, shown, words) + of_profile
    several = Counter(titles)
    return tuple(
        _numbered(title, layer) if several[title] > 1 else title
        for title, layer in zip(titles, layers, strict=True)
    )


def called(row: Row) -> str:
    """The title of a layer of the table `layers`, or its name if the table has no titles."""
    return row.maybe_text("title") or row.text("name")


def called_text(layers: Table) -> Text:
    """The titles of all layers of the table `layers`."""
    return either(layers.text("title"), layers.text("name"))


def modules_of(name: str, onnx: Sequence[str]) -> tuple[str, ...]:
    """The modules of the model that a layer belongs to, from the outermost in: the common beginning
    of its nodes' paths, without the nodes' own names; none if no path is known.
    """
    node = split_layer_name(name).node
    if not onnx and node.startswith("{ForeignNode["):
        names: Sequence[str] = node.removeprefix("{ForeignNode[").rstrip("]}").split("...")
    elif onnx:
        names = onnx
    else:
        made = _MADE.match(node) or node.startswith(("{", "Reformatting "))
        names = () if made else nodes_of(node)
    return _common([_parts(bare)[:-1] for one in names if (bare := _bare(one))])


def _blocks(scopes: Scopes) -> frozenset[tuple[str, ...]]:
    """Places in the model that occur several times and differ only in a number, such as
    ``/encoder/layer.*``.
    """
    found: dict[tuple[str, ...], str] = {}
    several: set[tuple[str, ...]] = set()
    for path in scopes:
        for end, part in enumerate(path):
            if (starred := _starred(part)) != part:
                place = (*path[:end], starred)
                if found.setdefault(place, part) != part:
                    several.add(place)
    return frozenset(several)


@lru_cache(maxsize=_COMPONENTS)
def _starred(part: str) -> str:
    """A component of a path with a star for each number."""
    return _NUMBER.sub("*", part)


def _of_blocks(path: tuple[str, ...], blocks: frozenset[tuple[str, ...]]) -> list[int]:
    """The components of a path that say which of several blocks it is in."""
    return [place for place, part in enumerate(path) if (*path[:place], _starred(part)) in blocks]


def _without_repeats(shown: set[int], parts: Sequence[str]) -> list[int]:
    """The components to show, with the next one for each that this begins with, as in
    ``/layer1/layer1.0``.
    """
    repeated = {
        place
        for place, (part, behind) in enumerate(pairwise(parts))
        if behind.startswith(part) and behind.startswith(".", len(part))
    }
    found = set()
    for place in shown:
        while place in repeated:
            place += 1  # noqa: PLW2901
        found.add(place)
    return sorted(found - {len(parts) - 1})


def _numbered(title: str, layer: Layer) -> str:
    """The title of a layer that shares it with another, with the number of its instruction in its
    Myelin region.
    """
    handle = _handle(layer.name)
    return f"{title} ({handle})" if handle and not title.endswith(f"({handle})") else title


def _handle(name: str) -> str:
    split = split_layer_name(name)
    return "" if split.region is None else f"myl{split.region}_{split.region_index}"


def _network(layers: Sequence[Layer]) -> _Network:
    nodes = _Nodes()
    names = dict.fromkeys(node for layer in layers for node in _told(layer))
    scopes: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for node in map(nodes.__getitem__, names):
        if node.kind not in _OF_NO_SCOPE:
            scopes[node.path][node.op] += 1
    return _Network(nodes, scopes)


def _told(layer: Layer) -> Sequence[str]:
    """The nodes of the model that a layer's metadata names, or its own name."""
    if layer.onnx:
        return layer.onnx
    node = split_layer_name(layer.name).node
    return () if _MADE.match(node) or node.startswith(("{", "Reformatting ")) else nodes_of(node)


def _split(layer: Layer, network: _Network) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path of a layer, and the words that describe it: those of its name, or the end of its
    path.
    """
    node = split_layer_name(layer.name).node
    if reformat := _of_reformat(node):
        return reformat
    if node.startswith("{ForeignNode["):
        first, dots, last = node.removeprefix("{ForeignNode[").rstrip("]}").partition("...")
        return _parts(first)[:-1], (
            f"{{ForeignNode[{_parts(first)[-1]}{dots}{_parts(last)[-1] if dots else ''}]}}",
        )
    made = _MADE.match(node) is not None
    decoded = decode(node) if made else None
    if decoded is not None and (not layer.onnx or layer.kind in ("signal", "shape")):
        return (), (_without_nodes(layer, node, decoded),)
    own = [] if made else nodes_of(node) or [node]
    names = [one for one in dict.fromkeys(map(_bare, layer.onnx or own)) if one] or own
    nodes = [network.nodes[one] for one in names]
    return _of_nodes(nodes, {_bare(one) for one in own}, layer, decoded, network.scopes)


def _without_nodes(layer: Layer, node: str, decoded: KernelName) -> str:
    """The title of a layer that Myelin created without naming its nodes: its work, and the number
    of its instruction.
    """
    handle = _handle(layer.name)
    if loops := _LOOP.findall(node):
        many = f" x {len(loops)}" if len(loops) > 1 else ""
        return f"loop {loops[0][0]}: {loops[0][1]}{many}{f' ({handle})' if handle else ''}"
    if not (decoded.ops or decoded.patterns):
        what = (layer.type or "").split(" ")[0].lower()
        return (
            f"{what} ({handle})"
            if handle and what and node.startswith("__mye")
            else node + (f" ({handle})" if handle else "")
        )
    if not handle:
        return node
    return f"{_of_ops(decoded)} ({handle})"


def _of_ops(decoded: KernelName) -> str:
    """The work of a generated kernel, from its name: its patterns or its operations."""
    patterns = [pattern.name for pattern in decoded.patterns]
    if patterns and not any(one.endswith(("movement", "cast")) for one in patterns):
        return " + ".join(_PATTERNS.get(word, word) for word in part_words(decoded).split(" + "))
    words = list(
        dict.fromkeys(_WORDS.get(op.word, op.word) for op in decoded.ops if op.cls != "cut")
    )
    words = [word for word in words if word not in ("copy", "Cast")] or words
    more = f" +{len(words) - _NAMED - 1}" if len(words) > _NAMED + 1 else ""
    return " + ".join(words[: _NAMED + 1]) + more


def _of_reformat(node: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The path and words of a reformat that TensorRT inserted; None for another layer."""
    reading = read_layer(node) if node.startswith("Reformatting CopyNode") else None
    if reading is None or "of_layer" not in reading.fields:
        return None
    fields = reading.fields
    of = Layer(0, str(fields["of_layer"]), "unknown")
    within, words = _split(of, _network([of]))
    what = f"{fields['direction']} {fields['tensor']} of " if "direction" in fields else ""
    return within, (f"reformat {what}{words[0]}", *words[1:])


def _of_nodes(  # one return a kind of layer
    nodes: Sequence[_Node], own: set[str], layer: Layer, decoded: KernelName | None, scopes: Scopes
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path and words for a layer that computes these nodes, of which its own name contains
    those in ``own``.
    """
    kept = [node for node in nodes if not node.of_weights] or list(nodes)
    weights = next((node.name for node in nodes if node.name.endswith(_WEIGHTS)), None)
    if layer.kind == "attention" or (
        decoded is not None and any(pattern.name == "attention" for pattern in decoded.patterns)
    ):
        return _of_attention(kept, decoded)
    computed = [node for node in kept if decoded is None or _computes(node, decoded)]
    if not computed:
        assert decoded is not None
        place = next((node for node in kept if node.path), kept[0])
        return _shown(place, f": {_of_ops(decoded)}", ())
    if products := _products(computed, own):
        return _of_products(products, computed, layer, decoded, scopes, weights)
    items, folds = _folded(computed, decoded, scopes)
    norm = next((node for node in items if node.kind == "normalization"), None)
    if norm is None and (found := next((fold for fold in folds if fold[0] in _FOLDED_MAIN), None)):
        words = _more(
            [node for node in items if node is not found[1]],
            [fold for fold in folds if fold is not found],
            layer,
            scopes,
            norm=True,
        )
        return _placed(*found, words)
    main = norm or _main(items, decoded)
    if folds and (main is None or main.kind not in _ABOVE_FOLDS):
        placed = next((node for node in items if node.path), None)
        if placed is not None and not folds[0][1].path:
            return _shown(
                placed,
                "",
                _more([node for node in items if node is not placed], folds, layer, scopes),
            )
        return _placed(*folds[0], _more(items, folds[1:], layer, scopes))
    main = main or items[0]
    half = _half(main, decoded)
    return _shown(
        main,
        half,
        _more(
            [node for node in items if node is not main],
            folds,
            layer,
            scopes,
            main=main,
            norm=main is norm,
        ),
        weights,
    )


def _of_attention(
    nodes: Sequence[_Node], decoded: KernelName | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Attention is named after the module of its products and its softmax, otherwise after its
    softmax or a node whose name contains attention.
    """
    named = next((node for node in nodes if node.kind == "attention"), None)
    if named is not None:
        return _shown(named, "", ())
    if decoded is None:
        return _shown(nodes[0], "", ())
    softmax = next((node for node in nodes if node.kind == "softmax"), None)
    anchor = softmax or next((node for node in nodes if node.kind == "gemm"), nodes[0])
    inner = [node for node in nodes if node.kind in ("gemm", "softmax")] or [anchor]
    path = _common([node.path for node in inner if node.path]) or anchor.path
    if path:
        return path[:-_LAST], (*path[-_LAST:-1], f"{path[-1]}: attention")
    return (), (f"attention ({_cut(anchor.last)})",)


def _products(nodes: Sequence[_Node], own: set[str]) -> list[_Node]:
    """The main products: of the highest class, those in the layer's own name if it names some."""
    for kind in _PRODUCTS:
        found = [node for node in nodes if node.kind == kind]
        if found:
            return [node for node in found if node.name in own] or found
    return []


def _of_products(  # what the words are about
    products: Sequence[_Node],
    nodes: Sequence[_Node],
    layer: Layer,
    decoded: KernelName | None,
    scopes: Scopes,
    weights: str | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    main = products[0]
    others = [node for node in nodes if node not in products]
    items, folds = _folded(others, decoded, scopes)
    more = _more(items, folds, layer, scopes, main=main)
    if len(products) == 1:
        return _shown(main, "", more, weights)
    # one behind the other in a generated kernel
    beside = _beside(products) if decoded is None else None
    if beside is None:
        return _shown(
            main, "", (*(f"+ {_cut(node.last)}" for node in products[1:2]), *more), weights
        )
    return _of_parts((*beside[:-1], beside[-1]), "", more)


def _beside(products: Sequence[_Node]) -> tuple[str, ...] | None:
    """The path of products side by side, such as ``layer.0/query|key|value/MatMul``; None if these
    are of several lengths.
    """
    paths = [(*node.path, node.last) for node in products]
    if len({len(path) for path in paths}) > 1:
        return None
    places = [place for place, parts in enumerate(zip(*paths, strict=True)) if len(set(parts)) > 1]
    if not places:
        return None
    first, end = places[0], places[-1] + 1
    different = list(dict.fromkeys("/".join(map(_cut, path[first:end])) for path in paths))
    shown = "|".join(different[:_BESIDE]) + (
        f"|+{len(different) - _BESIDE}" if len(different) > _BESIDE else ""
    )
    return (*paths[0][:first], shown, *paths[0][end:])


def _folded(
    nodes: Sequence[_Node], decoded: KernelName | None, scopes: Scopes
) -> tuple[list[_Node], list[tuple[str, _Node]]]:
    """The nodes that are left, and what the others are together: its word, and the node that stands
    for it.
    """
    left, found = list(nodes), list[tuple[str, _Node]]()
    ops = {node.op for node in nodes}
    possible = () if ops.isdisjoint(_ANCHORS) else _folds_of(frozenset(ops))
    if not possible:
        return left, found
    patterns = {pattern.name for pattern in decoded.patterns} if decoded is not None else set()
    silu = decoded is not None and (
        "silu" in patterns or any(op.code.startswith("Sil") for op in decoded.ops)
    )
    for path in dict.fromkeys([node.path for node in nodes]):
        alone = bool(path) and set(scopes.get(path, ())) == {"Sigmoid", "Mul"}
        counts = Counter([node.op for node in left if node.path == path])
        for fold in possible:
            if (fold is _SWIGLU and "swiglu" not in patterns) or (
                fold is _SILU and not (silu or alone or "swiglu" in patterns)
            ):
                continue
            while fold.fits(counts):
                anchor = next(node for node in left if node.path == path and node.op == fold.anchor)
                takes = Counter(fold.takes)
                for node in [node for node in left if node.path == path]:
                    if takes[node.op] > 0:
                        takes[node.op] -= 1
                        counts[node.op] -= 1
                        left.remove(node)
                found.append((fold.word, anchor))
    return left, found


@lru_cache(maxsize=1 << 10)  # layers do few different sets of operations
def _folds_of(ops: frozenset[str]) -> tuple[_Fold, ...]:
    """The folds that have at least one of each needed operation, in the order in which they are
    looked for.
    """
    return tuple(fold for fold in (*_FOLDS, _SWIGLU, _SILU) if fold.needs.keys() <= ops)


def _more(  # what the words are about
    nodes: Sequence[_Node],
    folds: Sequence[tuple[str, _Node]],
    layer: Layer,
    scopes: Scopes,
    *,
    main: _Node | None = None,
    norm: bool = False,
) -> tuple[str, ...]:
    """The further work of a layer: ``+ bias``, ``+ Relu``, and the number of other operations."""
    if not nodes and not folds:
        return ()
    words: dict[str, int] = {}
    gathers = any(node.kind == "gather" for node in nodes)
    for node in sorted(nodes, key=_BY_RANK):
        if node.kind in _STILL:
            continue
        word = "bias" if _is_bias(node, scopes) else _operation(node)
        if word in _ADDS and not gathers and _adds_two(layer, main, norm=norm):
            word = "residual"
        words.setdefault(word, node.rank)
    told = sorted(words, key=lambda word: (word != "bias", words[word]))
    acts = list(dict.fromkeys(word for word, _ in folds))
    computing = [word for word in told if words[word] < len(_ORDER)]
    moving = [word for word in told if words[word] >= len(_ORDER)]
    told = [*computing, *acts, *moving]
    long = [word for word in told if len(word) > _LONGEST]
    shown = [word for word in told if len(word) <= _LONGEST][:_NAMED]
    rest = len(told) - len(shown)
    return (
        *(f"+ {word}" for word in shown),
        *((f"+{rest}",) if rest or (long and not shown) else ()),
    )


def _rank(kind: str) -> int:
    if kind in _ORDER:
        return _ORDER.index(kind)
    return len(_ORDER) + (
        _MOVES.index(kind) if kind in _MOVES else -1 if kind not in _STILL else len(_MOVES)
    )


def _is_bias(node: _Node, scopes: Scopes) -> bool:
    """Whether an addition is the bias of the product in its module: the module contains these two
    and nothing else that computes.
    """
    counts = scopes.get(node.path)
    if (
        node.op != "Add"
        or not node.path
        or counts is None
        or counts["Add"] != 1
        or len(counts) != _LAST
    ):
        return False
    return counts["MatMul"] == 1


def _adds_two(layer: Layer, main: _Node | None, *, norm: bool) -> bool:
    """Whether the file shows that an addition before a norm or after a product adds two tensors
    that other layers computed.
    """
    read = sum(
        not ("_dconst" in tensor.name or "_constant" in tensor.name) for tensor in layer.inputs
    )
    if norm or (main is not None and main.kind in ("convolution", "deconvolution")):
        return read > 1
    return main is not None and main.kind == "gemm" and read > 1 and bool(layer.constants)


def _main(nodes: Sequence[_Node], decoded: KernelName | None) -> _Node | None:
    """The node that names a layer without a product: a softmax or the like, otherwise one that
    computes, otherwise one that moves data.
    """
    ranks: dict[int, _Node] = {}
    for node in nodes:
        if node.kind in MAIN_KINDS:
            ranks.setdefault(MAIN_KINDS.index(node.kind), node)
    if ranks:
        return ranks[min(ranks)]
    unknown = [node for node in nodes if not node.kind or node.kind in ("loop", "other")]
    computing = [node for node in nodes if node.kind in _ORDER]
    moving = sorted((node for node in nodes if node.kind in _MOVES), key=_BY_RANK)
    for found in (unknown if decoded is None else (), computing, moving, nodes):
        if found:
            return next((node for node in found if node.path), found[0])
    return None


def _computes(node: _Node, decoded: KernelName) -> bool:
    """Whether the operations in a generated kernel's name can be those of a node: Metadata also
    lists nodes whose data it only moves.
    """
    classes = {op.cls for op in decoded.ops}
    if (
        not classes
        or "cut" in classes
        or "unknown" in classes
        or classes & {"gemm", "convolution", "attention"}
    ):
        return True
    arithmetic = bool(classes - {"data movement", "cast", "index"})
    if node.kind in ("convolution", "deconvolution", "gemm"):
        return any(pattern.name == "matmul-by-reduction" for pattern in decoded.patterns)
    exact = _EXACT.get(node.op)
    if exact is not None and not any(op.op in exact for op in decoded.ops):
        return False
    if node.kind in (
        "softmax",
        "normalization",
        "pooling",
        "quantize",
        "scale",
        "pointwise",
        "activation",
        "reduce",
    ):
        return arithmetic or (node.op == "Where" and any(op.op == "Where" for op in decoded.ops))
    if node.kind == "gather":
        return any(op.op in ("Gather", "Slice") for op in decoded.ops)
    return True


def _half(main: _Node, decoded: KernelName | None) -> str:
    """The half of a norm or softmax that a kernel computes, where it computes only one."""
    patterns = [pattern.name for pattern in decoded.patterns] if decoded is not None else []
    if main.kind not in ("normalization", "softmax") or any(one in _WHOLE for one in patterns):
        return ""
    return next((f": {_HALVES[one]}" for one in patterns if one in _HALVES), "")


def _placed(
    word: str, anchor: _Node, more: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path and words of what several nodes are together."""
    if not anchor.path:
        return (), (f"{word} ({_cut(anchor.last)})", *more)
    return anchor.path[:-_LAST], (*anchor.path[-_LAST:-1], f"{anchor.path[-1]}: {word}", *more)


def _shown(
    node: _Node, what: str, more: Sequence[str], weights: str | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path and words of a layer that is named after a node."""
    parts = (*node.path, _PLUGIN.sub("", node.last.removesuffix(_WEIGHTS)))
    if len(parts) == 1 and weights is not None and weights != node.name:
        # features.0.0.weight + Conv_12: the module that the node lies in
        parts = (
            weights.removesuffix(_WEIGHTS),
            *parts,
        )
    return _of_parts(parts, what, more)


def _of_parts(
    parts: tuple[str, ...], what: str, more: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # layers/0/Add
    shown = _LAST + (len(parts) > _LAST and (parts[-_LAST].isdigit() or _tells_nothing(parts)))
    cut = [_cut(part) for part in parts]
    return tuple(cut[:-shown]), (*cut[-shown:-1], cut[-1] + what, *more)


def _tells_nothing(parts: tuple[str, ...]) -> bool:
    """Whether the module of a node is called after what every such module is, as in
    ``query/linear/MatMul`` and ``conv1/conv/Conv``.
    """
    module = _NUMBER.sub("", parts[-_LAST]).strip("._").lower()
    return module in _PLAIN or (len(module) >= len("conv") and module in parts[-1].lower())


def _bare(node: str) -> str:
    """The name of a node without what TensorRT appended to it."""
    if "[profile " in node:
        node = PROFILE.sub("", node)
    return node if "(Unnamed" in node else without_suffix(node)


def _cut(part: str) -> str:
    return part if len(part) <= _WIDEST else f"{part[: _WIDEST // 2]}…{part[-_WIDEST // 4 :]}"


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The components with which all paths begin."""
    if not paths:
        return ()
    first, last = min(paths), max(paths)
    same = next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )
    return first[:same]


def _of_weights(name: str) -> bool:
    return (
        name.endswith(_WEIGHTS)
        or _HELPER.match(name) is not None
        or _CONSTANT.search(name) is not None
        or _QUANTIZE.search(name) is not None
    )


def _operation(node: _Node) -> str:
    """The operation in the name of a node: its last part without a number."""
    return node.op if "(Unnamed" in node.name else _ORDINAL.sub("", node.last.removeprefix("node_"))


def _node(name: str) -> _Node:
    parts = _parts(name)
    # nearly all are a path, of which the last component tells what the node does
    plain = "/" in name[:-1] and not (
        name.endswith("/") or "(Unnamed" in name or "[" in name or _NOT_BY_LAST.match(name)
    )
    found = _node_called(name[name.rfind("/") :] if plain else name)
    return found._replace(name=name, path=parts[:-1], last=parts[-1])


_NOT_BY_LAST = re.compile(r"onnx::|ONNXTRT_|(?:copied_|un)?(?:reshape|transpose|squeeze|shuffle)_")
"""Beginnings of node names that are themselves meaningful."""


@lru_cache(maxsize=_COMPONENTS)
def _node_called(name: str) -> _Node:
    """Describes a node by its name alone."""
    row = node_row(name)
    parts = _parts(name)
    last = parts[-1]
    kind = row.kind if row is not None else ""
    op = row.op if row is not None else _ORDINAL.sub("", last)
    return _Node(name, parts[:-1], last, op, kind, _of_weights(name), _rank(kind))


def _parts(node: str) -> tuple[str, ...]:
    if (
        node.startswith("[") and node.endswith("]") and "]-[" in node
    ):  # Torch-TensorRT: [CONVOLUTION]-[aten_ops.…]-[/features/0/conv]
        node = node[:-1].rpartition("]-[")[2]
    return tuple(part for part in node.split("/") if part) or (node,)


def _telling(paths: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Indices of the components that distinguish the paths, the most distinctive first, until no
    further one distinguishes more.
    """
    kept: list[int] = []
    keys: list[tuple[str, ...]] = [()] * len(paths)
    distinct = 1
    while distinct < len(paths):
        gains = {
            place: len(
                {(*key, *path[place : place + 1]) for key, path in zip(keys, paths, strict=True)}
            )
            for place in range(max(map(len, paths)))
            if place not in kept
        }
        best = max(gains, key=lambda place: (gains[place], -place), default=None)
        if best is None or gains[best] <= distinct:
            break
        kept.append(best)
        distinct = gains[best]
        keys = [(*key, *path[best : best + 1]) for key, path in zip(keys, paths, strict=True)]
    return tuple(sorted(kept))


def _joined(path: tuple[str, ...], kept: Sequence[int], words: Sequence[str]) -> str:
    """The kept components and the words, with an ellipsis for omitted components."""
    text, after = "", -1
    for place in kept:
        if place < len(path):
            begin = place - 1 if path[place].isdigit() and after < place - 1 else place  # layers/0
            begin = max(begin, 0)
            text += ("/" if after == begin - 1 else " … ") * bool(text) + "/".join(
                path[begin : place + 1]
            )
            after = place
    last = "/".join([word for word in words if not word.startswith("+")])
    more = "".join([f" {word}" for word in words if word.startswith("+")])
    if not text:
        return last + more
    follows = after == len(path) - 1 and len(words) > 1
    return f"{text}{'/' if follows else ' … '}{last}{more}"
