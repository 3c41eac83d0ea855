"""Reads the names of library kernels and tactics: words joined by underscores (xmma, cutlass,
cuDNN, cuBLAS, fmha, nvjet).
"""

from __future__ import annotations

import re
from functools import lru_cache

from nsysmap.names.model import Fields, Reading
from nsysmap.names.tactic_words import DATATYPES, FAMILIES, GRAPH_NODES, NUMBERED, WORDS

_LAUNCH = re.compile(
    r"(?:_(?:exec(?:ute)?_(?:split_k_|segment_k_(?:on_|off_)|[a-z]\w{0,40}?_)?)?kernel\d*(?:_\d+)?(?:_kernel)?"
    r"(?:_(?:_?5[x0-9]_)?(?:trt|cublas(?:lt)?|cusparse(?:lt)?|cudnn(?:_infer|_train)?))?|_fused|_by_fusion_tactic)$"
)
_LONGEST_LAUNCH = 120  # characters at the end of a name, where a launch configuration stands
_TYPE = (
    r"(?:tf32|bf16|fp?(?:8|16|32|64)|u?i(?:nt)?(?:4|8|16|32|64)|ue4m3x(?:f4|e2m1)|"
    r"ue8m0x(?:f4|e4m3|e2m1)|e4m3|e5m2|e2m1|f4|s[48]|u8|s32|b1|void)"
)
# compiled where it is first used: that takes longer than most commands need for all else that they
# import
_LEX = (
    rf"f32x(?P<scaled>{_TYPE})$"  # block-scaled: the scales are FP32, the values what follows
    rf"|(?P<types>(?:{_TYPE}){{1,3}})$"
    r"|tile(?:size)?(?P<tile>\d+(?:x\d+)+)$"
    r"|stages?(?P<stages>\d+)$"
    r"|warpsize(?P<warps>\d+(?:x\d+)+)$"
    r"|(?P<instruction>(?:sp)?tensor\d+x\d+x\d+)$"
    r"|(?P<align>align[a-dA-D]*\d+)$"
    r"|warpgroupsize(?P<warpgroups>\d+(?:x\d+)+)$"
    r"|cga(?:size)?(?P<cluster>\d+(?:x\d+)+)$"
    r"|(?P<shape>\d+(?:x\d+)+)$"
    r"|g(?P<groups>\d+)$"
    r"|(?P<filter>(?:t\d+x?)?r\d+x?s\d+)$"
    r"|(?P<stride>u\d+v\d+)$"
    r"|(?P<layout>\d*(?:n[dchw]+(?:k[dcrs]+)?|k[cr]s?rs?c?)(?:x?\d+)?)$"
    r"|beta(?P<beta>\d)$"
    r"|ldg(?P<load_width>\d+)$"
    r"|sliced(?P<slice>\d+x\d+)$"
    r"|(?P<math>(?:gc|[hsdicz]|bf16|f16)(?:884|16\d\d+|88\d\d+|\d+x\d+x\d+))(?P<math_op>(?:tf32|bf16|f16|xor|and)?(?:gemm|cudnn|fprop|dgrad|wgrad|conv\w*)|)$"
    r"|(?P<cuda_math>gc|[sdhicz])(?P<cuda_op>gemm|cudnn)$"
    r"|v(?P<version>\d+)$"
    r"|(?P<arch>sm\d+[af]?)$"
    r"|stride(?P<stride2>\d+x\d+)$"
    r"|(?P<problem>k\d+(?:r\d+s\d+c\d+|c\d+r\d+s\d+))$"
    r"|(?P<vector>[ck]\d+)$"
    r"|(?:tile(?=\d+[tm]$)|wngd(?=\d))(?P<winograd_tile>\d+[tm]|\d+x\d+)$"
    r"|filter(?P<kernel_size>\d+x\d+)$"
    r"|(?P<scales>[AB]vec\d+[A-Z0-9]+)$"
    r"|param(?P<launch_param>\d+(?:x\d+)+)$"
    r"|threadsize(?P<threads>\d+(?:x\d+)+)$"
    r"|(?P<transpose>[tn]{2,4}|[TN]{3,4})$"
    r"|(?P<mma>(?:wg|utc|[hiqdb]g?)mma(?:\d+x\d+x\d+)?)$"
    r"|(?P<number>\d+)$"
)
_CASED = re.compile(
    r"(?P<op>depthwise(?:HMMA|IMMA|[A-Z][a-z]+)?)?(?P<types>(?:FP32|FP16|INT8|BF16|fp32|fp16|int8)+)?(?P<layout>(?:N[CDHWx]+|n[cdhwx]+|KCRS|kcrs|KRSC|krsc)(?:x?\d+)?)?$"
)
_PARAMETER = re.compile(r"([A-Za-z]+?)(\d+)$")
_ONLY_TYPES = re.compile(_TYPE)
_LETTER = {
    "s": "FP32",
    "h": "FP16",
    "d": "FP64",
    "i": "INT32",
    "c": "FP32",
    "gc": "FP32",
    "z": "FP64",
    "b": "BF16",
    "f": "FP16",
}
_JOIN = {"layout": "_", "parameters": " "}
_NUMBERS = frozenset(
    (
        "stages",
        "groups",
        "version",
        "load_width",
        "beta",
        "head_size",
        "sequence",
        "knob",
        "fused_nodes",
    )
)
_NO_FIELD = frozenset(("types", "math", "rest"))
_ROLES = {"scales": "variant", "number": "parameters", "stride2": "stride", "vector": "variant"}
_SEVERAL = frozenset(("epilogue", "variant", "layout", "schedule", "align", "parameters"))
_CUTLASS_ARCHS = frozenset(
    ("50", "60", "61", "70", "72", "75", "80", "86", "89", "90", "100", "103", "120")
)
_NATIVE = ("gemm", "convolution", "attention")
"""The type in which cuDNN 9's natively generated kernels compute on tensor cores (measured by
Nsight Compute on an H200); those without tensor cores say ``ffma``.
"""
_NVJET = re.compile(r"[a-z]{3,6}$")
_NVJET_EPILOGUE = re.compile(r"(?=.)(d?gelu|d?relu)?(?:[aA]ux)?(bias|bgrad[ab]?)?t?$")
# s1688bf16gemm: FP32 in memory, rounded by the kernel
_ROUNDED = re.compile(r"\d(bf16|f16)(?:gemm|fprop|dgrad|wgrad)")
_NVJET_TYPES = {
    "h": "FP16",
    "s": "FP32",
    "t": "BF16",
    "q": "FP8",
    "o": "FP4",
    "d": "FP64",
    "i": "INT8",
}


def read_tactic(name: str) -> Reading:
    """Reads an underscore-joined kernel or tactic name."""
    parameters = name[name.index("(") :] if "(" in name else ""
    symbol = name[: len(name) - len(parameters)] if parameters else name
    launch = launch_suffix(symbol)
    tokens = (symbol[: len(symbol) - len(launch)] if launch else symbol).split("_")
    family = _family(tokens)
    found: dict[str, list[str]] = {}
    graph = family == "cudnn" and "generated" in tokens
    numbered = ""
    for token in tokens:
        role, value = (
            _generated(token, numbered, family)
            if graph
            else WORDS.get(token) or _lex(token, family)
        )
        numbered = token
        if role in found:
            found[role].append(value)
        elif role:
            found[role] = [value]
    pieces = [token + "_" for token in tokens[:-1]]
    pieces.append(tokens[-1])
    if launch:
        pieces.append(launch)
        found["launcher"] = [launch.strip("_")]
        if "split_k" in launch:
            found["split_k"] = ["yes"]
    if parameters:
        pieces.append(parameters)
    _place_activation(found, family)
    fields = _fields(found, family)
    math = found.get("math", [])
    _set_types(fields, family, math, found.get("types", []))
    fields["operation"] = _operation(found, math, family)
    return Reading(
        family, fields, _tensor_cores(fields, math, family), found.get("rest", []), pieces
    )


def launch_suffix(name: str) -> str:
    """The part of a kernel's name after the tactic's: ``_execute_kernel_trt``, ``_fused``, …; empty
    if there is none.
    """
    if "kernel" not in name and "fus" not in name:
        return ""
    match = _LAUNCH.search(name, max(len(name) - _LONGEST_LAUNCH, 0))
    return match.group() if match else ""


def _family(tokens: list[str]) -> str:
    for token in tokens[:3]:
        family = FAMILIES.get(token)
        if family is not None:
            return family
    for token in tokens:
        if token.endswith("cudnn"):
            return "cudnn"
        if token.endswith("gemm"):
            return "cublas"
    return "tactic"


def _generated(token: str, before: str, family: str) -> tuple[str, str]:
    """The field of a word in the name of a kernel that cuDNN generated: a node of the graph that it
    computes, or how.
    """
    if token in GRAPH_NODES:
        return "nodes", token
    if before in NUMBERED and token.isdigit():
        return NUMBERED[before], token
    return WORDS.get(token) or _lex(token, family)


@lru_cache(maxsize=4096)
def _lex(token: str, family: str) -> tuple[str, str]:
    """The field that a word fills and its value; the role is "rest" for a word that no grammar
    has.
    """
    match = re.match(_LEX, token, re.ASCII)
    if match is None:
        return _lex_cased(token, family) if token else ("", "")
    role = match.lastgroup or ""
    if role == "scaled":
        return "types", match["scaled"]
    if role in ("math", "math_op", "mma"):
        return "math", token
    if role == "transpose":
        return role, token.lower()
    if role == "cuda_op":
        return "math", "cuda:" + token
    return _ROLES.get(role, role), match.group(role)


def _lex_cased(token: str, family: str) -> tuple[str, str]:
    match = _CASED.match(token)
    if match and (match["op"] or match["types"] or match["layout"]):
        return "cased", token
    if family == "nvjet" and (epilogue := _NVJET_EPILOGUE.match(token)) and token:
        return "epilogue", "+".join(part for part in (epilogue[2], epilogue[1]) if part)
    if (
        family == "nvjet"
        and _NVJET.match(token)
        and all(letter in _NVJET_TYPES for letter in token)
    ):
        return "nvjet_types", token
    parameter = _PARAMETER.match(token)
    if parameter and family in ("xmma", "fmha", "trt"):
        return "named", f"{parameter[1]}={parameter[2]}"
    return "rest", token


def _fields(found: dict[str, list[str]], family: str) -> Fields:
    """The fields that need no interpretation."""
    fields: Fields = {}
    for token in found.pop("cased", ()):
        match = _CASED.match(token)
        if match:
            if match["op"]:
                found.setdefault("variant", []).append(match["op"])
                found["operation"] = ["convolution"]
                if match["op"].endswith("MMA"):
                    found["math"] = [match["op"][-4:].lower()]
            if match["types"]:
                found.setdefault("types", []).append(match["types"].lower())
            if match["layout"]:
                found.setdefault("layout", []).append(match["layout"])
    nodes = found.pop("nodes", [])
    _set_tile(found, family)
    numbers = found.pop("parameters", [])
    if (
        "layout" in found and "c" in found["layout"]
    ):  # nchw_vect_c_32: the number belongs to the layout
        numbers = _into_layout(found, numbers)
    if family == "fmha" and numbers:  # query tile, key tile (or sequence), head size
        tiled = len(numbers) > 2 or "head_size" in found
        found["tile" if tiled else "sequence"] = ["x".join(numbers[:2]) if tiled else numbers[0]]
        found.setdefault("head_size", numbers[2:3] if tiled else numbers[1:2])
        numbers = numbers[3:]
    if family == "cutlass" and numbers and numbers[0] in _CUTLASS_ARCHS:
        found["arch"] = ["sm" + numbers.pop(0)]
    if nodes:
        _set_nodes(found, nodes)
    if (
        (family in ("cutlass", "nvjet") or (nodes and "warps" not in found))
        and numbers
        and "stages" not in found
    ):
        found["stages"] = [numbers.pop(0)]  # 0: as many as fit
    if numbers := [*found.pop("named", ()), *numbers]:
        found["parameters"] = numbers
    for role, values in found.items():
        if not values or role in _NO_FIELD:
            continue
        if role in _SEVERAL:
            fields[role] = _JOIN.get(role, "+").join(values)
        else:
            fields[role] = (
                int(values[0])
                if role in _NUMBERS and values[0].isdigit() and len(values[0]) < 10
                else values[0]
            )
    return fields


def _place_activation(found: dict[str, list[str]], family: str) -> None:
    """Puts ``relu`` where it belongs: nvjet's kernels do apply it; any other kernel of that name
    can, and runs without one too.

    cuBLAS runs …gemm_relu… for plain products, cuDNN …scudnn_…_relu… for plain convolutions, and
    TensorRT …_bias_f16_relu in a model that has no ReLU at all (openpi's).
    """
    variant, epilogue = found.get("variant", []), found.get("epilogue", [])
    if "relu" not in variant:
        return
    if family == "nvjet":
        variant.remove("relu")
        found["epilogue"] = [*epilogue, "relu"]
    elif "bias" in epilogue:
        epilogue.remove("bias")
        variant.insert(variant.index("relu"), "bias")


def _set_nodes(found: dict[str, list[str]], nodes: list[str]) -> None:
    """Reads the nodes of cuDNN's graph: the operation is that of the first node that is not
    pointwise, and the others are fused into it.
    """
    main = next((node for node in nodes if GRAPH_NODES[node][0] != "pointwise"), nodes[0])
    operation, direction = GRAPH_NODES[main]
    found["operation"] = [operation]
    if direction:
        found["direction"] = [direction]
    others = [GRAPH_NODES[node][0] for node in nodes]
    others.remove(operation)
    if others:
        found["fused_nodes"] = [str(len(others))]
        if different := [one for one in dict.fromkeys(others) if one != "pointwise"]:
            found["epilogue"] = different


def _into_layout(found: dict[str, list[str]], numbers: list[str]) -> list[str]:
    """Puts the numbers behind ``vect_c`` into the layout; gives back the numbers that are left."""
    layout: list[str] = []
    taken = 0
    words = found["layout"]
    for i, word in enumerate(words):
        layout.append(word)
        # 32kcrs: the number stands at the next word
        glued = i + 1 < len(words) and words[i + 1][0].isdigit()
        if word == "c" and not glued and taken < len(numbers):
            layout.append(numbers[taken])
            taken += 1
    found["layout"] = layout
    return numbers[taken:]


def _set_tile(found: dict[str, list[str]], family: str) -> None:
    """The tile as MxNxK, the stages and the cluster, from the bare sizes; K and stages stand
    together as ``64x5``.
    """
    if "shape" not in found:
        return
    shapes = found.pop("shape")
    attention = "tile" if {"aligned", "notaligned"} & set(found.get("variant", ())) else "head_size"
    for text in [*found.pop("tile", []), *shapes]:
        flat = text.count("x") == 1
        tile = found.get("tile")
        if family == "fmha":
            found[attention] = [text]
        elif tile is None:
            found["tile"] = [text]
        elif flat and tile[0].count("x") == 1 and "stages" not in found:
            depth, _, stages = text.partition("x")
            tile[0] += "x" + depth
            found["stages"] = [stages]
        elif family == "cudnn":
            found.setdefault("warps", [text])
        elif family == "nvjet" and not flat:
            found.setdefault("warp_tile", [text])
        else:
            found.setdefault("cluster", [text])


def _set_types(fields: Fields, family: str, math: list[str], types: list[str]) -> None:
    """The data types, from the order in which each family writes them."""
    spelled = str(fields.pop("nvjet_types", ""))
    if spelled:  # input(s), compute, output
        fields["input_type"], fields["accumulate_type"], fields["output_type"] = (
            _NVJET_TYPES[spelled[i]] for i in (0, -2, -1)
        )
        return
    parts = [_types_in(word) for word in types]
    flat = [text for part in parts for text in part]
    letter = ""
    for word in math:
        if word.endswith(("gemm", "cudnn", "fprop", "dgrad", "wgrad")):
            fields["accumulate_type"] = letter = _LETTER.get(word.removeprefix("cuda:")[:1], "")
            if "tf32" in word:  # s1688tf32gemm: FP32 in memory, rounded to TF32 by the instruction
                fields["compute_type"] = "TF32"
            if rounded := _ROUNDED.search(word):  # s1688bf16gemm: the same, rounded to BF16
                fields["compute_type"] = {"f16": "FP16", "bf16": "BF16"}[rounded[1]]
        if not word.startswith("cuda:"):
            fields.setdefault("instruction", word)
    if (
        not flat
        and letter == "FP32"
        and str(fields.get("instruction", "")).startswith("tensorop")
        and any("1688" in word for word in math)
        and "compute_type" not in fields
    ):
        fields["compute_type"] = "TF32"  # s1688gemm of FP32: tensor cores do not multiply FP32
    if not flat:
        if letter:
            fields["input_type"] = fields["output_type"] = "INT8" if letter == "INT32" else letter
    elif (
        family == "xmma" and len(parts) > 1 and len(parts[0]) == 2
    ):  # <in><out>_<in><accumulate>_<scale>
        fields["input_type"], fields["output_type"] = parts[0]
        fields["accumulate_type"] = parts[1][-1]
        if len(parts[1]) == 2:
            fields["compute_type"] = parts[1][0]
    elif family == "cutlass" and len(flat) >= 5:  # A, B, accumulate, C, D
        fields["input_type"], fields["accumulate_type"], fields["output_type"] = (
            flat[0],
            flat[2],
            flat[4],
        )
    elif family == "fmha":  # input, then what it accumulates in, then behind "output" the output
        fields["input_type"], *others = flat
        if others and others[0] == "FP32":
            fields["accumulate_type"] = others.pop(0)
        fields["output_type"] = (
            others[0] if others and "output" in str(fields.get("variant")) else flat[0]
        )
    elif len(flat) == 2 and "pooling" in fields:  # FP16FP32: read and written, accumulated
        fields["input_type"] = fields["output_type"] = flat[0]
        fields["accumulate_type"] = flat[1]
    elif len(flat) == 3 and len(parts) == 1:  # f16f16f32: input, output, accumulate
        fields["input_type"], fields["output_type"], fields["accumulate_type"] = flat
    else:  # <out>_<instruction>_<in>
        fields["output_type"], fields["input_type"] = flat[0], flat[min(1, len(flat) - 1)]


@lru_cache(maxsize=1024)
def _types_in(word: str) -> tuple[str, ...]:
    return tuple([DATATYPES[text] for text in _ONLY_TYPES.findall(word)])


def _operation(found: dict[str, list[str]], math: list[str], family: str) -> str:
    if "pooling" in found or found.get("operation", [""])[0] == "pooling":
        return "pooling"
    direction = found.get("direction", [""])[0]
    if "attention" in found.get("operation", ()) or family == "fmha":
        return "attention"
    if "as" in found.get("variant", ()) and "gemm" in found.get("operation", ()):
        return "gemm"  # gemm_as_conv1x1: what it is, by way of what
    if "convolution" in found.get("operation", ()):
        return "convolution"
    # a gradient; TensorRT's dgrad is a deconvolution
    trained = "cudnn" in found.get("launcher", [""])[0]
    if "deconvolution" in found.get("operation", ()) or (
        direction == "dgrad" and family == "xmma" and not trained
    ):
        return "deconvolution"
    if (
        direction in ("fprop", "dgrad", "wgrad", "fwd")
        or any(word.endswith(("cudnn", "fprop", "dgrad", "wgrad")) for word in math)
        or "winograd" in found.get("variant", ())
    ):
        return "convolution"
    if "operation" in found:
        return found["operation"][0]
    return "gemm" if any(word.endswith("gemm") for word in math) or family == "nvjet" else "unknown"


def _tensor_cores(fields: Fields, math: list[str], family: str) -> str:
    """Whether the words prove that tensor cores are used, or that they are not."""
    if any(word.startswith("cuda:") for word in math):
        return "no"
    if (
        math
        or family == "nvjet"
        or (
            family == "cudnn"
            and "native" in str(fields.get("variant"))
            and fields.get("operation") in _NATIVE
        )
        or "warpgroups" in fields
        or fields.get("compute_type") == "TF32"
        or "tensor" in str(fields.get("instruction", ""))
    ):
        return "yes"
    if fields.get("operation") in ("pooling", "gemv"):
        return "no"
    return "unknown"
