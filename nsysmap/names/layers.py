"""Reads the names of engine layers and NVTX ranges: ONNX nodes, merged nodes, Myelin's layers,
reformats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nsysmap.names.model import Op, compiled
from nsysmap.names.myelin import product_of
from nsysmap.names.onnx_words import LAYER_TYPES, MAIN_KINDS, NODES, NodeRow

_AROUND_ROW = NODES["reshape"]
_CONSTANT = NODES["constant"]
# they name a layer's class only where nothing else does
_LAST_KINDS = frozenset(("constant", "shape", "reformat"))
# classes that a type stands for unless the name says more
_KINDS_THAT_NAMES_TELL = frozenset(("myelin_kernel", "pointwise", "scale", "reformat"))
_NODE_OPS = {row.word: Op(row.op, row.op, row.kind, "likely") for row in NODES.values()}


class LayerName(NamedTuple):
    """A layer's name without what TensorRT put around the node's own name."""

    node: str
    region: int | None  # R of _myl<R>_<i>
    region_index: int | None  # i of _myl<R>_<i>
    profile: int | None  # of " [profile 1]"


_UNROLLED = r"__mye\d+_unroll\d+$"  # a product in a loop that was written out in part
_TAIL = r"_myl(\d{1,9})_(\d{1,9})$"
_PROFILE = r" \[profile (\d{1,9})\]$"
_REFORMAT = (
    r"Reformatting CopyNode for (?:(Input|Output) Tensor (\d{1,9}) to |Network (?:Input|Output) )"
)
_UNNAMED = r"\(Unnamed (?:Layer|Loop)\* \d{1,9}\) ?\[(\w{1,60})[^\]]{0,60}\]"
# Torch-TensorRT: what it made, and of which operation
_TORCH = r"\[([A-Z_]{1,60})\]-\[aten_ops\.([a-z0-9_]{1,60})"
# the same, and the node's name
_TORCH_NODE = r"\[[A-Z_]{1,60}\]-\[(?:aten_ops|acc_ops)\.[^\[\]]{0,80}\]-\[([^\[\]]{1,200})\]"
# … that may be one of several for it
_STEPS = frozenset(("ELEMENTWISE", "UNARY", "SHUFFLE", "SLICE"))
_CLONE = r"_clone_\d+$"
_CONVERTED = r"[A-Za-z0-9]__\d{1,9}$"  # tf2onnx: a node put in beside the one it is named after
_OUTPUT = r"_output_\d+$"
_CONSTANT_ENDS = (".weight", ".bias", "[Constant]", "_scale", "_zero_point")
_CONSTANT_BEGINS = ("onnx::", "ONNXTRT_")
_AROUND_BEGINS = ("reshape_", "transpose_", "squeeze_", "unsqueeze_", "shuffle_", "copied_")
_AROUND = r"(?:reshape|transpose|squeeze|unsqueeze|shuffle|copied_squeeze|unsqueeze_node|copied_\w+?|shuffle_between)_(?:before|after|between)_"  # noqa: E501
_SPLIT = r" \+ | \|\| "
# a tensor's copy into and out of the memory that a DLA works on, and the wait for such copies
_DLA_COPIES, _DLA_WAIT = (" to nvm", " from nvm"), " copy finish"
_SUFFIX = r"(?: ?\[[A-Za-z]+\]|_clone_\d+|_castHelper)$"
_SUFFIX_ENDS = ("]", "_castHelper", "\n")  # how a name with it ends, but for a number


def split_layer_name(name: str) -> LayerName:
    """The node's own name, and the Myelin region, instruction number and optimization profile
    written behind it.
    """
    if "_myl" not in name and not name.endswith("]"):
        return LayerName(name, None, None, None)
    profile = region = index = None
    node = name
    if node.endswith("]") and (found := compiled(_PROFILE).search(node, max(len(node) - 24, 0))):
        profile, node = int(found[1]), node[: found.start()]
    if "_myl" in node and (found := compiled(_TAIL).search(node, max(len(node) - 24, 0))):
        region, index, node = int(found[1]), int(found[2]), node[: found.start()]
        if node.endswith("]") and (
            found := compiled(_PROFILE).search(node, max(len(node) - 24, 0))
        ):
            profile, node = int(found[1]), node[: found.start()]
    return LayerName(node, region, index, profile)


def short_nodes(text: str) -> str:
    """A text with each name that Torch-TensorRT gave, such as
    [RELU]-[aten_ops.relu.default]-[relu_7], as that of the node: relu_7.
    """
    return compiled(_TORCH_NODE).sub(r"\1", text) if "_ops." in text else text


def without_suffix(node: str) -> str:
    """The name of an ONNX node without what TensorRT appended to it last: a type in brackets,
    _clone_N or _castHelper.
    """
    if not (node.endswith(_SUFFIX_ENDS) or "_clone_" in node):
        return node  # as nearly all
    return compiled(_SUFFIX).sub("", node)


def normalized_range_text(name: str) -> str:
    """The text of TensorRT 10.3's myelin-exec ranges for that layer: no ``_myl<R>_<i>``, dots as
    underscores.
    """
    return compiled(_TAIL).sub("", name).replace(".", "_")


def node_row(node: str) -> NodeRow | None:
    """The operation in a node's name: its last path component, or TensorRT's ``(Unnamed Layer* 3)
    [Shuffle]``.
    """
    if "(Unnamed" in node and (unnamed := compiled(_UNNAMED).search(node)):
        return NODES.get(unnamed[1].lower())
    if "_clone_" in node:
        node = compiled(_CLONE).sub("", node)
    if _is_constant(node):
        return _CONSTANT
    if "[aten_ops." in node and (torch := compiled(_TORCH).search(node)):
        made, whole = (NODES.get(word.replace("_", "").lower()) for word in torch.groups())
        return (
            made
            if torch[1] in _STEPS
            and made is not None
            and (whole is None or whole.kind != made.kind)
            else whole
        )
    last = node.rstrip(")")
    last = last[last.rfind("/") + 1 :]
    last = last[last.rfind("::") + 2 :] if "::" in last else last
    word = _without_number(last)
    if not word or ("/" in node and compiled(_CONVERTED).search(last)):
        return None
    found = NODES.get(word.removeprefix("node_").replace("_", "").lower())
    if found is None and "." in word:
        found = NODES.get(_without_number(word[word.rfind(".") + 1 :]).lower())
    return found or NODES.get(word.rstrip("0123456789").lower())


def _is_constant(node: str) -> bool:
    if node.endswith(_CONSTANT_ENDS) or node.startswith(_CONSTANT_BEGINS):
        return True
    return "_output_" in node and compiled(_OUTPUT).search(node) is not None


def _without_number(text: str) -> str:
    """The text without the numbers that exporters put behind an operation: ``MatMul_1``,
    ``Conv2D__6``, ``linear_2_1``.
    """
    while text:
        shorter = text.rstrip("0123456789")
        if len(shorter) == len(text) or not shorter.endswith("_"):
            break
        text = shorter.rstrip("_")
    return text


def nodes_of(text: str) -> list[str]:
    """The nodes merged into one layer, in order, out of ``A + B``, ``A || B``, ``PWN(A, PWN(B))``
    and Myelin's ``A+B``.
    """
    if "PWN(" in text:
        if "(Unnamed" in text:
            return [
                part for found in compiled(_PWN).split(text) if (part := _balanced(found.strip()))
            ]
        text = text.replace("PWN(", " + ").replace(")", "").replace(", ", " + ")
    parts = compiled(_SPLIT).split(text)
    if len(parts) == 1 and "+" in text:
        parts = text.split("+")
    return [part.strip() for part in parts if part.strip()]


def _balanced(text: str) -> str:
    """The text without the parentheses at its end that close none of its own."""
    left = text.count(")") - text.count("(")
    return text[:-left] if left > 0 and text.endswith(")" * left) else text


def layer_ops(nodes: Sequence[str]) -> tuple[Op, ...]:
    """The operations in the nodes' names; constants and unknown nodes have none."""
    return _ops_of([node_row(node) for node in nodes])


def _ops_of(rows: list[NodeRow | None]) -> tuple[Op, ...]:
    return tuple(
        [_NODE_OPS[row.word] for row in rows if row is not None and row.kind != "constant"]
    )


def layer_kind(name: str, layer_type: str | None) -> str:
    """The class (one of ``engine.model.LAYER_KINDS``) of an engine layer, from its LayerType or,
    without one, from its name.
    """
    words = layer_type.split() if layer_type else []
    kind = (
        (LAYER_TYPES.get(words[0].lower()) or LAYER_TYPES.get(words[-1].lower())) if words else ""
    )
    if kind and kind not in _KINDS_THAT_NAMES_TELL:
        return kind
    split = split_layer_name(name)
    if not words:
        if compiled(_UNROLLED).match(split.node):
            return "gemm"
        return _read_node(split.node, myelin=split.region is not None)[0]
    if kind == "myelin_kernel":
        return "attention" if "_mha_v" in split.node else product_of(split.node) or kind
    if kind == "pointwise" and _special_kind(split.node) == "shape":
        return "shape"  # an addition to a loop's counter or to an address, on the host
    if kind in ("scale", "reformat") and _read_node(split.node, myelin=False)[0] == "quantize":
        # a QuantizeLinear that nothing took in runs as a reformat, before TensorRT 8.4 as a scale
        return "quantize"
    if kind is None and words[0].lower().startswith("plugin"):
        return "plugin"
    if kind is None:
        told = _read_node(split.node, myelin=split.region is not None)[0]
        return told if told != "unknown" else "other"
    return kind


def _read_node(node: str, *, myelin: bool) -> tuple[str, list[str], list[NodeRow | None]]:
    """The class of a layer of that (possibly merged) node, the nodes in it and what they are."""
    special = _special_kind(node)
    if special and special != "pointwise":
        return special, [], []
    nodes = nodes_of(node)
    rows = [
        (
            _AROUND_ROW
            if part.startswith(_AROUND_BEGINS) and compiled(_AROUND).match(part)
            else node_row(part)
        )
        for part in nodes
    ]
    if special:
        return special, nodes, rows
    kinds = [row.kind for row in rows if row is not None]
    if "quantize" in kinds and len(nodes) > 1 and (product := _product_of_bias(nodes)):
        return product, nodes, rows
    for kind in MAIN_KINDS:
        if kind in kinds:
            return kind, nodes, rows
    for kind in kinds:
        if kind not in _LAST_KINDS:
            return kind, nodes, rows
    if myelin and len(nodes) > 1:
        return "gemm", nodes, rows
    return (kinds[0] if kinds else "unknown"), nodes, rows


def _product_of_bias(nodes: Sequence[str]) -> str:
    """TensorFlow's name for a product with quantised weights named only after its bias: the module
    shows which product; otherwise empty.
    """
    words = nodes[-1].lower().rsplit("/", 2)
    if len(words) < 2 or not words[-1].startswith("biasadd"):
        return ""
    return (
        "convolution"
        if "conv" in words[-2]
        else "gemm"
        if any(word in words[-2] for word in ("dense", "predictions", "matmul"))
        else ""
    )


def _special_kind(node: str) -> str:
    """The class of a layer whose name has a form of TensorRT's own; empty for one named after its
    nodes.
    """
    first = node[:1]
    if first == "_":
        if node.startswith("__myl_"):
            return product_of(node) or "myelin_kernel"
        if "_mha_v" in node and node.startswith(("_gem", "__mye")):
            return "attention"
        if node.startswith("__mye"):
            made = (
                "shape"
                if node.endswith("_incr")
                else "constant"
                if node.endswith("_hc_init")
                else "unknown"
            )
            return "gemm" if "+" in node else "convolution" if "_conv_" in node else made
    elif first == "R" and compiled(_REFORMAT).match(node):
        return "reformat"
    elif first == "{" and node.startswith("{ForeignNode["):
        return "foreign_node"
    elif first == "P" and node.startswith("PWN("):
        return "pointwise"
    elif first == "[" and node[-1] == "]":
        return "shape" if "DeviceCopy" in node or "HostCopy" in node else "other"
    elif first == "O" and node.startswith("ONNXTRT_") and " " not in node:
        return next((kind for text, kind in _HELPERS if text in node), "")
    if node.endswith((" copy", "_copy_input", "_copy_output", *_DLA_COPIES)):
        return "reformat"
    if node.endswith(_DLA_WAIT):
        return "signal"
    if "^" in node:
        if "^signal^" in node or "^wait^" in node:
            return "signal"
        if node.startswith("cast_hvar^"):
            return "cast"
        if "^hvar^" in node:
            return "shape"
    if "shape_call" in node:
        return "shape"
    if node.startswith("copied_") and " + " not in node:
        return "noop"
    return (
        "plugin"
        if "PLUGIN_V" in node or ("Plugin" in node[node.rfind("/") + 1 :] and "+" not in node)
        else ""
    )


class LayerReading(NamedTuple):
    """The reading of a layer's or range's name."""

    family: str
    kind: str  # layer or range
    ops: tuple[Op, ...]
    fields: dict[str, str | int]
    tensor_cores: str
    rest: str


_FOREIGN = r"(?s:\{ForeignNode\[(.*)\]\}$)"
# what nodes' names begin with, and hold; and what is a node's with a number behind it
_NODE_BEGINS = ("[", "onnx::", "node_", "PWN(")
_NODE_WORDS = ("/", "(Unnamed ", ".weight", " + ", " || ")
_NODE_NUMBERED = ("_output_", "_clone_", "[profile ")
_NODE_SHAPE = r"(?:_output_|_clone_|\[profile )\d"
_NUMBERED = r"_\d+$"
# nodes that the ONNX parser puts in
_HELPERS = (
    ("castHelper", "cast"),
    ("queezeTensor", "shuffle"),
    ("Shape", "shape"),
)
_PWN = r"PWN\(|, | \+ | \|\| "
_TENSOR = r"__mye\d+(?:[A-Za-z]\w*|_dconst)$|__myln|__tran\d"
_MYELIN_MADE = (
    r"(?:dummy_shape_call)?_{2}my[a-z]*\d|cast_hvar\^|\w+\^bb\^|__myln|__tran\d|\$\$myelin\$\$"
)


def _is_of_node(node: str) -> bool:
    """Whether the name has the form of those of nodes: without a regular expression for all of it,
    which takes long for a long name.
    """
    return (
        node.startswith(_NODE_BEGINS)
        or any(word in node for word in _NODE_WORDS)
        or (node.rstrip("\n")[-1:].isdigit() and compiled(_NUMBERED).search(node) is not None)
        or (
            any(word in node for word in _NODE_NUMBERED)
            and compiled(_NODE_SHAPE).search(node) is not None
        )
    )


def read_layer(name: str) -> LayerReading | None:
    """Reads the name of an engine layer or its range; None if it contains nothing of a layer's
    name.
    """
    split = split_layer_name(name)
    numbers = (
        ("region", split.region),
        ("region_index", split.region_index),
        ("profile", split.profile),
    )
    fields: dict[str, str | int] = {field: value for field, value in numbers if value is not None}
    node = split.node
    kind, nodes, rows = _read_node(node, myelin=split.region is not None)
    fields["operation"] = kind
    if kind == "reformat" and (reformat := compiled(_REFORMAT).match(node)):
        if reformat[1]:
            fields["direction"], fields["tensor"] = reformat[1].lower(), int(reformat[2])
        fields["of_layer"] = node[reformat.end() :]
        return LayerReading("reformat", "layer", (), fields, "no", "")
    if kind == "foreign_node" and (foreign := compiled(_FOREIGN).match(node)):
        first, _, last = foreign[1].partition("...")
        fields["first_node"], fields["last_node"] = first, last or first
        return LayerReading("myelin", "layer", (), fields, "unknown", "")
    if compiled(_MYELIN_MADE).match(node):
        if node.startswith("$$myelin$$"):
            fields["nodes"] = node.removeprefix("$$myelin$$")
            return LayerReading(
                "myelin", "range", layer_ops([str(fields["nodes"])]), fields, "unknown", ""
            )
        fields["nodes"] = node
        if compiled(_TENSOR).match(node):
            fields["operation"] = "tensor"
            return LayerReading("myelin", "unknown", (), fields, "unknown", "")
        return LayerReading(
            "myelin", "range" if split.region is None else "layer", (), fields, "unknown", ""
        )
    if split.region is None and kind == "unknown" and not _is_of_node(node):
        return None
    fields["nodes"] = " + ".join(nodes) if nodes else node
    if " || " in node:
        fields["branches"] = node.count(" || ") + 1  # layers side by side in one kernel
    family = "myelin" if split.region is not None else kind if kind != "unknown" else "layer"
    return LayerReading(family, "layer", _ops_of(rows), fields, "unknown", "")
