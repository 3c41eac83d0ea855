"""Reads demangled C++ kernel names: the function, its namespace and its template arguments, however
deeply nested.
"""

from __future__ import annotations

import re

from nsysmap.names.families import (
    FUNCTION_FAMILIES,
    MATRIX_OPERATIONS,
    OF_A_FRAMEWORK,
    TYPE_WORDS,
    operation_of,
)
from nsysmap.names.model import Fields, Reading

_BRACKET = re.compile(r"[<>()\[\]{}]|->|operator *(?:<=>|<<=?|>>=?|<=?|>=?|\(\)|\[\])")
_ANONYMOUS = re.compile(r"\((?:anonymous (?:namespace|class)|instance \d+)\)|<unnamed>")
_RETURN = re.compile(
    r"(?:static |inline |unsigned )*(?:void|int|float|double|bool|long|auto)\s+(?=[\w<(])"
)
_READ = 400  # characters in which the words that tell are looked for: they stand in front
_TENSORRT_NAMESPACE = re.compile(r"cu[A-Z]")  # cuEltwise, cuDepthwise, …: TensorRT's own layers
_OPEN = {")": "(", "]": "[", ">": "<", "}": "{"}
# cuTENSOR's views: computed in, stored in
_STORED = re.compile(r"Vector(Read|Write)\w*TensorView<(?:\([^()]*\)\d+, )*\w+, (\w+)")
_VIEWS = {"Read": "input", "Write": "output"}
_NO_CORES = re.compile(
    r"(?<![a-z])[sdh]gemm|winograd|gemmSN|gemmk1|wgrad_alg|dgrad_engine|direct_kernel|simt|SIMT"
)
_CORES = re.compile(
    r"[hdiq]gmma|[hid]mma_|_mma_|wmma|wgmma|tensorop|tcgen05|utcmma|(?<![a-z])(?:[hsi](?:884|1688|16816|8816|16832)(?:gemm|cudnn|fprop))"
)


def read_cpp(name: str) -> Reading:
    """Parses a demangled C++ name."""
    head = _RETURN.match(name)
    start = head.end() if head else 0
    path, template, stop, balanced = _split(name, start)
    namespace, _, function = path.rpartition("::")
    fields: Fields = {"function": function}
    if namespace:
        fields["namespace"] = namespace
    arguments = split_arguments(template) if template else []
    if arguments:
        fields["template"] = ", ".join(arguments)
    family = next(
        (
            family
            for text, family in FUNCTION_FAMILIES
            if text in (path if text in OF_A_FRAMEWORK else name)
        ),
        "cuda",
    )
    if family == "cuda" and _TENSORRT_NAMESPACE.match(namespace):
        family = "tensorrt"
    inner = arguments[0] if arguments else ""
    if family == "cutlass" and inner.startswith("cutlass_"):
        from nsysmap.names.tactics import read_tactic

        reading = read_tactic(inner)
        fields |= {key: value for key, value in reading.fields.items() if key not in fields}
        tensor_cores = reading.tensor_cores
    else:
        operation = operation_of(function, template)
        if operation == "unknown" and family == "tensorrt":
            operation = operation_of(namespace)
        if function.startswith("_scatter_gather") and (
            "scatter_fill" in template or "_internal_kernel<(bool)1" in template
        ):
            operation = "scatter"
        fields["operation"] = operation
        types = _data_types(arguments[1:] if function.startswith("copyVectorized") else arguments)
        if function.startswith("permutationKernel") and (stored := _STORED.findall(template)):
            fields |= {
                f"{_VIEWS[view]}_type": held
                for view, spelled in stored
                for held in _data_types([spelled])
            }
        elif types:
            fields["input_type"] = types[0]
            if (
                operation == "reformat" and len(types) > 1
            ):  # <input, output>: the parameters of cuInt8 and cuDNN kernels say so
                fields["output_type"] = types[1]
        tensor_cores = (
            "unknown"
            if operation in MATRIX_OPERATIONS and not _NO_CORES.search(function[:_READ])
            else "no"
        )
        if _CORES.search(name[: 5 * _READ]):
            tensor_cores = "yes"
    pieces = [
        piece
        for piece in (name[:start], path, name[start + len(path) : stop], name[stop:])
        if piece
    ]
    return Reading(
        family, fields, tensor_cores, [] if balanced and function else [name[start:]], pieces
    )


def _data_types(arguments: list[str]) -> list[str]:
    """The data types of those template arguments that spell one, in order."""
    return [
        short
        for argument in arguments
        if (short := next((short for spelled, short in TYPE_WORDS if spelled in argument), ""))
    ]


def _split(name: str, start: int) -> tuple[str, str, int, bool]:
    """The function's path, its template arguments, where its parameter list begins, and whether all
    brackets close.
    """
    opened: list[tuple[str, int]] = []
    stop = len(name)
    skip = last = 0
    template = (0, 0)
    balanced = True
    for match in _BRACKET.finditer(name, start):
        text, at = match.group(), match.start()
        if at < skip or len(text) > 1:
            continue
        if text in "(<[{":
            special = _ANONYMOUS.match(name, at) if text in "(<" else None
            if special:
                skip = special.end()
                continue
            if text == "(" and not opened and stop == len(name):
                stop = at
            opened.append((text, at))
        elif opened and opened[-1][0] == _OPEN[text]:
            _, first = opened.pop()
            if not opened and text == ">" and at < stop:
                template, last = (first, at), at + 1
        else:
            balanced = False
            break
    if template[1] and last == len(name[:stop].rstrip()):
        return (
            name[start : template[0]],
            name[template[0] + 1 : template[1]],
            stop,
            balanced and not opened,
        )
    return name[start:stop], "", stop, balanced and not opened


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
        elif symbol == ">" and text[match.start() - 1 : match.start()] == "-":
            continue
        else:
            depth += 1 if symbol in "<([" else -1
    parts.append(text[last:].strip())
    return [part for part in parts if part]
