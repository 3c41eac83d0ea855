"""Reads demangled C++ kernel names: the function, its namespace and its template arguments, however deeply nested."""
# ruff: noqa: E501 - one entry a line

from __future__ import annotations

import re

from nsysmap.names_tactics import Fields, Reading, looks_like_tactic, read_tactic

_BRACKET = re.compile(r"[<>()\[\]]|->|operator *(?:<=>|<<=?|>>=?|<=?|>=?|\(\)|\[\])")
_ANONYMOUS = re.compile(r"\((?:anonymous namespace|anonymous class|instance \d+)\)|<unnamed>|\[lambda")
_RETURN = re.compile(r"(?:static |inline )*(?:void|int|float|double|bool|unsigned int|long)\s+(?=\S)")
_CLOSE = {")": "(", "]": "[", ">": "<"}
_FAMILIES: tuple[tuple[str, str], ...] = (
    # text in the name, family; the first that is there counts
    ("genericReformat::", "reformat"), ("cuInt8::", "reformat"), ("CUTENSOR", "cutensor"), ("cutensor", "cutensor"), ("flash_fwd", "flash-attention"), ("flash::", "flash-attention"),
    ("flash_attn", "flash-attention"), ("pytorch_flash", "flash-attention"), ("fmha", "fmha"), ("at::native", "pytorch"), ("at_cuda_detail::cub", "cub"), ("c10::", "pytorch"), ("at::", "pytorch"), ("torch::", "pytorch"),
    ("cutlass", "cutlass"), ("cublasLt::", "cublas"), ("cublas", "cublas"), ("gemv", "cublas"), ("gemm", "cublas"), ("dot_kernel", "cublas"), ("reduce_1Block_kernel", "cublas"), ("splitKreduce", "cublas"),
    ("cudnn::", "cudnn"), ("cudnn", "cudnn"), ("nccl", "nccl"), ("tensorrt_llm::", "tensorrt-llm"), ("cub::", "cub"), ("thrust::", "cub"), ("nvinfer1::", "tensorrt"),
    ("cuEltwise::", "tensorrt"), ("cuSliceLayer::", "tensorrt"), ("softmax_warp", "pytorch"), ("elementwise_kernel_with_index", "pytorch"),
)  # fmt: skip
_OPERATIONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (operation, re.compile(words, re.IGNORECASE))
    for operation, words in (
        # operation, words that tell it in a function's name; the first that fits counts
        ("reformat", r"copyPackedKernel|copyVectorizedKernel|reformat|nchwTo|nhwcTo|ToNchw|ToNhwc|nchwToNcqhw"),
        ("attention", r"attention|fmha|flash_fwd|mha_|_mha|flash_attn|multihead"),
        ("normalization", r"layer_?norm|rms_?norm|batch_?norm|group_?norm|instance_?norm|bn_fw|RowwiseMoments"),
        ("softmax", r"soft_?max"),
        ("convolution", r"conv|depthwise|winograd|im2col"),
        ("gemv", r"gemv"),
        ("gemm", r"gemm|splitK|matmul|gemmk1|gemmSN"),
        ("pooling", r"pool"),
        ("topk", r"top_?k|radix_?sort|radixFindKth|bitonic|sort|argmax|gatherTopK"),
        ("nms", r"nms|NonMax"),
        ("gather", r"gather|embedding|index_?select|indexing|index_elementwise|index_kernel"),
        ("scatter", r"scatter|index_put"),
        ("resize", r"resize|upsample|interpolate|grid_?sampl"),
        ("concat", r"CatArray|concat"),
        ("slice", r"slice|\bpad|_pad"),
        ("shuffle", r"permut|transpose|tensorTranspose"),
        ("quantize", r"quantize|quantise"),
        ("communication", r"all_?reduce|all_?gather|reduce_?scatter|broadcast|send_?recv|ncclDevKernel|ncclKernel"),
        ("cast", r"cast|convert"),
        ("scan", r"scan|cumsum"),
        ("random", r"random|distribution|philox|dropout"),
        ("reduce", r"reduc|dot_kernel|asum|norm2|sum_kernel"),
        ("copy", r"copy|memcpy"),
        ("constant", r"fill|memset|arange|Range"),
        ("pointwise", r"elementwise|eltwise|pointwise|elementWise|unary|binary|activation|for_each|transform"),
    )
)
_TYPES = (
    ("__nv_bfloat16", "BF16"), ("BFloat16", "BF16"), ("__half", "FP16"), ("c10::Half", "FP16"), ("at::Half", "FP16"), ("half_t", "FP16"), ("__nv_fp8_e4m3", "FP8"), ("Float8", "FP8"), ("float", "FP32"),
    ("double", "FP64"), ("signed char", "INT8"), ("int8_t", "INT8"), ("long", "INT64"), ("bool", "BOOL"),
)  # fmt: skip


def looks_like_cpp(name: str) -> bool:
    """True if the name is a demangled C++ function rather than a word or a layer."""
    return name.startswith("void ") or (
        ("(" in name or "<" in name) and ("::" in name or "<" in name) and not name.startswith(("PWN(", "(Unnamed", "{", "Reformatting"))
    )


def read_cpp(name: str) -> Reading:
    """What a demangled C++ name says."""
    head = _RETURN.match(name)
    start = head.end() if head else 0
    spans, stop, balanced = _spans(name, start)
    path = name[start:stop]
    template = ""
    for first, last in spans:
        if name[first] == "<" and last + 1 == stop:
            path, template = name[start:first], name[first + 1 : last]
    function = path.rpartition("::")[2].strip()
    namespace = path.rpartition("::")[0]
    fields: Fields = {"function": function}
    if namespace:
        fields["namespace"] = namespace
    arguments = split_arguments(template) if template else []
    if arguments:
        fields["template"] = ", ".join(arguments)
    family = next((family for text, family in _FAMILIES if text in name), "cuda")
    tensor_cores = "unknown"
    inner = arguments[0].strip() if arguments else ""
    if family == "cutlass" and looks_like_tactic(inner):
        reading = read_tactic(inner)
        fields |= {key: value for key, value in reading.fields.items() if key not in fields}
        tensor_cores = reading.tensor_cores
    else:
        fields["operation"] = _operation(function, template)
        types = [short for argument in arguments for long, short in _TYPES if long in argument][:1]
        if types:
            fields["input_type"] = types[0]
        if fields["operation"] not in ("gemm", "convolution", "attention", "unknown", "gemv"):
            tensor_cores = "no"
    pieces = [piece for piece in (name[:start], path, name[start + len(path) : stop], name[stop:]) if piece]
    rest = [] if balanced and function else [name[start:]]
    return Reading(family, fields, tensor_cores, rest, pieces)


def _operation(function: str, template: str) -> str:
    for operation, words in _OPERATIONS:
        if words.search(function):
            return operation
    for operation, words in _OPERATIONS:
        if words.search(template):
            return operation
    return "unknown"


def _spans(name: str, start: int) -> tuple[list[tuple[int, int]], int, bool]:
    """The outermost brackets of a name, where its parameter list begins, and whether all brackets close."""
    spans: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    stop = len(name)
    skip = 0
    for match in _BRACKET.finditer(name, start):
        text, at = match.group(), match.start()
        if len(text) > 1 or at < skip:
            continue
        if not opened:
            special = _ANONYMOUS.match(name, at)
            if special and text in "(<":
                skip = special.end()
                continue
            if text == "(" and stop == len(name):
                stop = at
        if text in "(<[":
            opened.append((text, at))
        elif opened and opened[-1][0] == _CLOSE[text]:
            _, first = opened.pop()
            if not opened:
                spans.append((first, at))
        else:
            return spans, stop, False
    return spans, stop, not opened


def split_arguments(text: str) -> list[str]:
    """The arguments of a template or parameter list, split at its own commas only."""
    parts: list[str] = []
    depth = last = 0
    for match in re.finditer(r"[<>()\[\],]", text):
        symbol = match.group()
        if symbol == ",":
            if depth == 0:
                parts.append(text[last : match.start()].strip())
                last = match.end()
        else:
            depth += 1 if symbol in "<([" else -1
    parts.append(text[last:].strip())
    return [part for part in parts if part]


_KERNEL_WORD = re.compile(r"kernel|pointwise|elementwise|gemm|gemv|conv|reduce|permut|memcpy|memset|softmax|nccl|triton_", re.IGNORECASE)
_WORD_FAMILIES = (
    ("generatedNativePointwise", "native-pointwise"),
    ("triton_", "triton"),
    ("nccl", "nccl"),
    ("cudnn", "cudnn"),
    ("gem", "cublas"),
    ("flash", "flash-attention"),
)


def read_word(name: str) -> Reading | None:
    """What a kernel named by one bare identifier says; None if no word in it is a kernel's."""
    if not _KERNEL_WORD.search(name):
        return None
    family = next((family for text, family in _WORD_FAMILIES if name.startswith(text)), "cuda")
    operation = _operation(name, "")
    fields: Fields = {"function": name, "operation": operation}
    tensor_cores = "unknown" if operation in ("gemm", "convolution", "attention", "unknown", "gemv") else "no"
    return Reading(family, fields, tensor_cores, [], [name])
