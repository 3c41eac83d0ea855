"""Reads the names of engine layers and NVTX ranges: ONNX nodes, merged nodes, Myelin's layers, reformats."""

from __future__ import annotations

import re
from typing import NamedTuple

from nsysmap.names_model import Op
from nsysmap.names_onnx import LAYER_TYPES, MAIN_KINDS, NODES, NodeRow


class LayerName(NamedTuple):
    """A layer's name without what TensorRT put around the node's own name."""

    node: str
    region: int | None  # R of _myl<R>_<i>
    region_index: int | None  # i of _myl<R>_<i>
    profile: int | None  # of " [profile 1]"


_TAIL = re.compile(r"_myl(\d{1,9})_(\d{1,9})$")
_PROFILE = re.compile(r" \[profile (\d{1,9})\]$")
_REFORMAT = re.compile(r"Reformatting CopyNode for (?:(Input|Output) Tensor (\d{1,9}) to |Network (?:Input|Output) )")
_UNNAMED = re.compile(r"\(Unnamed (?:Layer|Loop)\* \d+\) ?\[(\w+)[^\]]*\]")
_NODE_TAIL = re.compile(r"(?:_{1,2}\d+)+$")
_CLONE = re.compile(r"_clone_\d+$")
_OUTPUT = re.compile(r"_output_\d+$|\.(?:weight|bias)$|^onnx::\w+?_\d+$|^ONNXTRT_\w+$|\[Constant\]$|_scale$|_zero_point$")
_AROUND = re.compile(
    r"(?:reshape|transpose|squeeze|unsqueeze|shuffle|copied_squeeze|unsqueeze_node|copied_\w+?|shuffle_between)_(?:before|after|between)_"
)
_SPLIT = re.compile(r" \+ | \|\| ")


def split_layer_name(name: str) -> LayerName:
    """The node's own name, and the Myelin region, instruction number and optimisation profile written behind it."""
    profile = region = index = None
    node = name
    found = _PROFILE.search(node)
    if found:
        profile, node = int(found[1]), node[: found.start()]
    found = _TAIL.search(node)
    if found:
        region, index, node = int(found[1]), int(found[2]), node[: found.start()]
        found = _PROFILE.search(node)
        if found:
            profile, node = int(found[1]), node[: found.start()]
    return LayerName(node, region, index, profile)


def normalized_range_text(name: str) -> str:
    """What the myelin-exec ranges of TensorRT 10.3 show for that layer: no ``_myl<R>_<i>``, dots as underscores."""
    return _TAIL.sub("", name).replace(".", "_")


def node_row(node: str) -> NodeRow | None:
    """The operation that a node's name tells: its last path component, or TensorRT's ``(Unnamed Layer* 3) [Shuffle]``."""
    unnamed = _UNNAMED.search(node)
    if unnamed:
        return NODES.get(unnamed[1].lower())
    if _OUTPUT.search(_CLONE.sub("", node)):
        return NODES["constant"]
    last = node.rstrip(")").rpartition("/")[2].rpartition("::")[2]
    last = _NODE_TAIL.sub("", last)
    if not last:
        return None
    word = last.removeprefix("node_").replace("_", "").lower()
    found = NODES.get(word)
    if found is None and "." in last:
        found = NODES.get(_NODE_TAIL.sub("", last.rpartition(".")[2]).lower())
    return found


def nodes_of(text: str) -> list[str]:
    """The nodes merged into one layer, in order, out of ``A + B``, ``A || B``, ``PWN(A, PWN(B))`` and Myelin's ``A+B``."""
    if "PWN(" in text:
        text = (
            text.replace("PWN(", " + ").replace(")", "").replace(", ", " + ")
            if "(Unnamed" not in text
            else re.sub(r"PWN\(|, (?=PWN\()", " + ", text)
        )
    parts = _SPLIT.split(text)
    if len(parts) == 1 and "+" in text:
        parts = text.split("+")
    return [part.strip() for part in parts if part.strip()]


def layer_ops(nodes: list[str]) -> tuple[Op, ...]:
    """The operations that the nodes' names tell; constants and unknown nodes tell none."""
    rows = (node_row(node) for node in nodes)
    return tuple(Op(row.op, row.op, row.kind, "likely") for row in rows if row is not None and row.kind != "constant")


def layer_kind(name: str, layer_type: str | None) -> str:
    """The class (one of ``nsysmap.model.LAYER_KINDS``) of an engine layer, from its LayerType or, without one, from its name."""
    node = split_layer_name(name).node
    if layer_type:
        words = layer_type.split()
        kind = LAYER_TYPES.get(words[0].lower()) if words else None
        if kind == "fused" and "_mha_v" in node:
            return "attention"
        if kind is None and words:
            kind = LAYER_TYPES.get(words[-1].lower()) or ("plugin" if words[0].lower().startswith("plugin") else "other")
        if kind is not None:
            return kind
    return _kind_of_node(node, myelin=node != name and "_myl" in name)


def _kind_of_node(node: str, *, myelin: bool) -> str:
    if node.startswith("__myl_"):
        return "fused"
    if "_mha_v" in node and node.startswith(("_gem", "__mye")):
        return "attention"
    if node.startswith("{ForeignNode["):
        return "myelin"
    if _REFORMAT.match(node) or node.endswith((" copy", "_copy_input", "_copy_output")):
        return "reformat"
    if node.startswith("PWN("):
        return "pointwise"
    if "^signal^" in node or "^wait^" in node:
        return "signal"
    if node.startswith("cast_hvar^"):
        return "cast"
    if "shape_call" in node:
        return "shape"
    if node.startswith("__mye"):
        return "gemm" if "+" in node else "convolution" if "_conv_" in node else "unknown"
    if node.startswith("copied_") and " + " not in node:
        return "noop"
    if "PLUGIN_V" in node:
        return "plugin"
    nodes = nodes_of(node)
    kinds = ["shuffle" if _AROUND.match(part) else row.kind if (row := node_row(part)) else "unknown" for part in nodes]
    for kind in MAIN_KINDS:
        if kind in kinds:
            return kind
    for kind in kinds:
        if kind not in ("constant", "unknown", "shape", "reformat"):
            return kind
    if myelin and len(nodes) > 1:
        return "gemm"
    return next((kind for kind in kinds if kind != "unknown"), "unknown")


class LayerReading(NamedTuple):
    """What a reader made of a layer's or range's name."""

    family: str
    kind: str  # layer or range
    ops: tuple[Op, ...]
    fields: dict[str, str | int]
    tensor_cores: str
    rest: str


_FOREIGN = re.compile(r"\{ForeignNode\[(.*)\]\}$", re.DOTALL)
_NODE_SHAPE = re.compile(r"/|\(Unnamed |^onnx::|^node_|_\d+$|^PWN\(|_output_\d|\.weight|_clone_\d| \+ | \|\| |\[profile \d")
_MYELIN_MADE = re.compile(r"(?:dummy_shape_call)?_{2}my[a-z]*\d|cast_hvar\^|\w+\^bb\^|__myln|__tran\d|\$\$myelin\$\$")


def read_layer(name: str) -> LayerReading | None:
    """What the name of an engine layer (or its range) says; None if the name has nothing of a layer's."""
    split = split_layer_name(name)
    numbers = (("region", split.region), ("region_index", split.region_index), ("profile", split.profile))
    fields: dict[str, str | int] = {field: value for field, value in numbers if value is not None}
    node = split.node
    kind = _kind_of_node(node, myelin=split.region is not None)
    fields["operation"] = kind
    reformat = _REFORMAT.match(node)
    if reformat:
        if reformat[1]:
            fields["direction"], fields["tensor"] = reformat[1].lower(), int(reformat[2])
        fields["of_layer"] = node[reformat.end() :]
        return LayerReading("reformat", "layer", (), fields, "no", "")
    foreign = _FOREIGN.match(node)
    if foreign:
        first, _, last = foreign[1].partition("...")
        fields["first_node"], fields["last_node"] = first, last or first
        return LayerReading("myelin", "layer", (), fields, "unknown", "")
    if _MYELIN_MADE.match(node):
        if node.startswith("$$myelin$$"):
            fields["nodes"] = node.removeprefix("$$myelin$$")
            return LayerReading("myelin", "range", layer_ops([str(fields["nodes"])]), fields, "unknown", "")
        fields["nodes"] = node
        return LayerReading("myelin", "layer", (), fields, "unknown", "")
    if split.region is None and kind == "unknown" and not _NODE_SHAPE.search(node):
        return None
    nodes = nodes_of(node)
    fields["nodes"] = " + ".join(nodes)
    family = "myelin" if split.region is not None else kind if kind != "unknown" else "layer"
    return LayerReading(family, "layer", layer_ops(nodes), fields, "unknown", "")
