"""Short titles for layers, different for different layers: `layer.3 … output/dense/MatMul`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from nsysmap.engine.model import Layer
from nsysmap.names.decode import decode
from nsysmap.names.fusion import part_words
from nsysmap.names.layers import node_row, nodes_of, read_layer, split_layer_name
from nsysmap.names.onnx_words import MAIN_KINDS

_LAST = 2
"""Components of a path that are always shown."""

_NAMED = 2  # fused operations that are named, not counted
_LONGEST = 16  # characters of such a name; PyTorch's run to 40 (_native_batch_norm_legit_no_training)
_WEIGHTS = ".weight"
_CONSTANT = re.compile(r"(^|[/_])Constant(_\d+)?(_output_\d+)?$")
_QUANTIZE = re.compile(r"(Quantize|Dequantize)Linear(_\d+)?(_quantize_scale_node|_dequantize_scale_node)?$")
_PLUGIN = re.compile(r"PLUGIN_V\d+_(?=\w)")  # what TensorRT-LLM puts before the plugin's own name
_ORDINAL = re.compile(r"_\d+$")


def layer_titles(layers: Sequence[Layer]) -> tuple[str, ...]:
    """A title for each layer: what it is, preceded by those components of its path in which layers of the same description differ."""
    found = [_split(layer) for layer in layers]
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, (_, words) in enumerate(found):
        alike[words].append(row)
    titles = [""] * len(layers)
    for words, rows in alike.items():
        kept = _telling([found[row][0] for row in rows])
        for row in rows:
            titles[row] = _joined(found[row][0], kept, words)
    return tuple(titles)


def name_title(name: str) -> str:
    """The title of a layer of that name by itself: its whole path, and what it does."""
    node = split_layer_name(name).node
    path, words = _of_reformat(node) or _of_nodes(node)
    return _joined(path, range(len(path)), words)


def _split(layer: Layer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path of a layer, and the words that describe it: those of its name, or the end of its path."""
    node = split_layer_name(layer.name).node
    if reformat := _of_reformat(node):
        return reformat
    if (layer.kind in ("myelin_kernel", "attention") or node.startswith("__myl_")) and (decoded := decode(node)).ops:
        return _path(layer.onnx), (part_words(decoded),)
    return _of_nodes(node)


def _of_reformat(node: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The path and words of a reformat that TensorRT inserted; None for another layer."""
    reading = read_layer(node) if node.startswith("Reformatting CopyNode") else None
    if reading is None or "of_layer" not in reading.fields:
        return None
    fields = reading.fields
    within, words = _of_nodes(str(fields["of_layer"]))
    what = f"{fields['direction']} {fields['tensor']} of " if "direction" in fields else ""
    return within, (f"reformat {what}{words[0]}", *words[1:])


def _of_nodes(node: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if node.startswith("{ForeignNode["):
        first, dots, last = node.removeprefix("{ForeignNode[").rstrip("]}").partition("...")
        return _parts(first)[:-1], (f"{{ForeignNode[{_parts(first)[-1]}{dots}{_parts(last)[-1] if dots else ''}]}}",)
    nodes = nodes_of(node) or [node]
    main = _main(nodes)
    parts = _parts(_PLUGIN.sub("", main.removesuffix(_WEIGHTS)))
    if len(parts) == 1 and (weights := next((one for one in nodes if one.endswith(_WEIGHTS) and one != main), None)) is not None:
        parts = (weights.removesuffix(_WEIGHTS), *parts)  # features.0.0.weight + Conv_12: the module that the node lies in
    more = _fused(main, nodes)
    shown = _LAST + (len(parts) > _LAST and parts[-_LAST].isdigit())  # layers/0/Add
    return parts[:-shown], (*parts[-shown:], *more)


def _fused(main: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """What else the layer does: ``+ Relu``, or how many nodes more; its weights and what is done to them are not counted."""
    others = [node for node in nodes if node != main and not _of_weights(node)]
    words = [_operation(node) for node in others]
    if not others:
        return ()
    if len(others) > _NAMED or _operation(main) in words or not all(0 < len(word) <= _LONGEST for word in words):
        return (f"+{len(others)}",)
    return (" ".join(f"+ {word}" for word in words),)


def _of_weights(node: str) -> bool:
    return node.endswith(_WEIGHTS) or _CONSTANT.search(node) is not None or _QUANTIZE.search(node) is not None


def _operation(node: str) -> str:
    """The operation in the name of a node: its last part without a number."""
    return _ORDINAL.sub("", _parts(node)[-1])


def _main(nodes: Sequence[str]) -> str:
    """The main node of the layer: a matrix product or similar, otherwise the first one with a path."""
    ranks: dict[int, str] = {}
    for node in nodes:
        row = node_row(node)
        if row is not None and row.kind in MAIN_KINDS:
            ranks.setdefault(MAIN_KINDS.index(row.kind), node)
    return ranks[min(ranks)] if ranks else next((node for node in nodes if "/" in node), nodes[0])


def _parts(node: str) -> tuple[str, ...]:
    if node.startswith("[") and node.endswith("]") and "]-[" in node:  # Torch-TensorRT: [CONVOLUTION]-[aten_ops.…]-[/features/0/conv]
        node = node[:-1].rpartition("]-[")[2]
    return tuple(part for part in node.split("/") if part) or (node,)


def _path(nodes: Iterable[str]) -> tuple[str, ...]:
    main = next((node for node in nodes if "/" in node), "")
    return tuple(part for part in main.split("/")[:-1] if part)


def _telling(paths: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Indices of the components that distinguish the paths, the most distinctive first, until no further one distinguishes more."""
    kept: list[int] = []
    keys: list[tuple[str, ...]] = [()] * len(paths)
    distinct = 1
    while distinct < len(paths):
        gains = {
            place: len({(*key, *path[place : place + 1]) for key, path in zip(keys, paths, strict=True)})
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
            text += ("/" if after == begin - 1 else " … ") * bool(text) + "/".join(path[begin : place + 1])
            after = place
    last = "/".join(word for word in words if not word.startswith("+"))
    more = "".join(f" {word}" for word in words if word.startswith("+"))
    if not text:
        return last + more
    follows = after == len(path) - 1 and len(words) > 1
    return f"{text}{'/' if follows else ' … '}{last}{more}"
