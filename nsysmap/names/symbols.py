"""Reads kernels named by one symbol: Triton's, NCCL's, hand-written ones, and mangled C++."""

from __future__ import annotations

import re

from nsysmap.names.families import FUNCTION_FAMILIES, MATRIX_OPERATIONS, WORD_FAMILIES, operation_of
from nsysmap.names.model import Fields, Reading
from nsysmap.names.trtllm_gen import read_trtllm_gen

_KERNEL_WORDS = ("kernel", "pointwise", "memcpy", "memset")
_ARGUMENTS = 2  # the fewest that are taken for a signature
_SIGNATURE = re.compile(r"\d[0-9decx]*d[0-9dec]*$")  # Triton's argument signature: 0d1d2de
_TRITON_KINDS = {
    "poi": "pointwise",
    "red": "reduce",
    "per": "reduce",
    "tem": "gemm",
    "spl": "scan",
    "for": "pointwise",
    "mix": "reduce",
}
_TRITON_SORTS = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent reduction",
    "tem": "template",
    "spl": "split scan",
    "for": "foreach",
    "mix": "mixed order reduction",
}
_XLA = re.compile(
    r"(?:(?P<sort>loop|input|wrapped|gemm|transpose|concatenate|scatter)_)?(?P<fused>(?:[a-z]+_)*)fusion(?:_+(?:dot|general|[0-9]+|impl))*"
)
_XLA_OPERATIONS = {
    "loop": "pointwise",
    "input": "reduce",
    "gemm": "gemm",
    "transpose": "shuffle",
    "concatenate": "concat",
    "scatter": "scatter",
}
_OFFLOADED = re.compile(
    r"nvkernel_(?P<openmp>\w+)_F\d+L(?P<openmp_line>\d+)_\d+|"  # NVIDIA's compilers: OpenMP
    r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(?P<llvm>\w+)_l(?P<llvm_line>\d+)\w*|"  # Clang: OpenMP
    # NVIDIA's compilers: OpenACC, standard parallelism
    r"(?P<openacc>[A-Za-z_]\w*)_(?P<openacc_line>\d+)_gpu(?P<reduction>__red)?"
)
_NCCL = re.compile(
    r"nccl(?:Dev)?Kernel_(?P<collective>[A-Z][A-Za-z]*)(?P<words>(?:_[A-Za-z0-9]+)*)(?P<parameters>\(.*\)?)?(?:"
    r" \[.*)?$",
    re.DOTALL,
)
_NCCL_WORDS = {
    **dict.fromkeys(("RING", "TREE", "COLLNET", "NVLS", "PAT", "CHAIN", "DIRECT"), "algorithm"),
    **dict.fromkeys(("LL", "LL128", "SIMPLE"), "protocol"),
    **dict.fromkeys(
        ("Sum", "Prod", "Max", "Min", "MinMax", "Avg", "PreMulSum", "SumPostDiv"), "reduction"
    ),
}
_MANGLED = re.compile(r"_ZN?K?(?:\d+\w+)")


def read_triton(name: str) -> Reading | None:
    """Reads a Triton kernel's name: torch.compile writes the sort of kernel and the operations in
    it.
    """
    if not name.isidentifier():
        return None
    words = name.split("_")[1:]
    fields: Fields = {"function": name}
    if words and _SIGNATURE.match(words[-1]):
        fields["signature"] = words.pop()
    if words and words[-1].isdigit() and len(words[-1]) < 10:
        fields["number"] = int(words.pop())
    sort = words[0] if words else ""
    if len(words) > 1 and sort in _TRITON_KINDS and words[1] == "fused":
        fields["sort"] = _TRITON_SORTS[sort]
        words = words[2:]
    else:
        sort = ""
    fused = "_".join(words).strip("_")
    if fused:
        fields["fused"] = fused
    special = next(
        (
            norm
            for norm in ("softmax", "layer_norm", "rms_norm", "group_norm", "batch_norm")
            if norm in fused
        ),
        "",
    )
    fields["operation"] = (
        ("softmax" if special == "softmax" else "normalization")
        if special
        else _TRITON_KINDS.get(sort) or operation_of(fused)
    )
    return Reading(
        "triton",
        fields,
        "unknown" if fields["operation"] in MATRIX_OPERATIONS else "no",
        [],
        [name],
    )


def read_signed(name: str) -> Reading | None:
    """A kernel whose name ends with the signature of its arguments, as Triton's did until 3.0:
    ``0d1d2de``, numbered from 0.
    """
    signature = name.rpartition("_")[2]
    at = number = 0
    while at < len(signature) and signature.startswith(str(number), at):
        at += len(str(number))
        while at < len(signature) and signature[at] in "dec":
            at += 1
        number += 1
    if at < len(signature) or number < _ARGUMENTS or "d" not in signature:
        return None
    function = name[: -len(signature) - 1]
    operation = operation_of(function)
    fields: Fields = {"function": function, "signature": signature, "operation": operation}
    return Reading(
        "triton", fields, "unknown" if operation in MATRIX_OPERATIONS else "no", [], [name]
    )


def read_xla(name: str) -> Reading | None:
    """Reads the name of a fusion that XLA compiled: its sort, and the operation that it is named
    after.
    """
    match = _XLA.fullmatch(name)
    if match is None:
        return None
    operation = operation_of(f"_{match['fused']}") if match["fused"] else "unknown"
    if operation == "unknown":
        operation = _XLA_OPERATIONS.get(match["sort"] or "", "unknown")
    fields: Fields = {"function": name, "operation": operation}
    if match["sort"]:
        fields["sort"] = match["sort"]
    if match["fused"]:
        fields["fused"] = match["fused"].rstrip("_")
    return Reading("xla", fields, "unknown" if operation in MATRIX_OPERATIONS else "no", [], [name])


def read_offloaded(name: str) -> Reading | None:
    """The line and the function that a compiler made a kernel of, for OpenACC, OpenMP or standard
    parallelism.
    """
    match = _OFFLOADED.fullmatch(name)
    if match is None:
        return None
    parts = match.groupdict()
    sort = next(one for one in ("openmp", "llvm", "openacc") if parts[one])
    inner = read_mangled(parts[sort])
    function = parts[sort] if inner is None else inner.fields["function"]
    operation = "reduce" if parts["reduction"] else "unknown"
    fields: Fields = {
        "function": function,
        "line": int(parts[f"{sort}_line"]),
        "operation": operation,
    }
    return Reading("offload", fields, "no" if parts["reduction"] else "unknown", [], [name])


def read_nccl(name: str) -> Reading | None:
    """Reads an NCCL kernel's name: collective, reduction, data type, algorithm and protocol."""
    match = _NCCL.match(name)
    if match is None:
        return None
    fields: Fields = {
        "function": name.partition("(")[0],
        "operation": "communication",
        "collective": match["collective"],
    }
    from nsysmap.names.tactic_words import DATATYPES

    rest = []
    for word in match["words"].split("_")[1:]:
        role = _NCCL_WORDS.get(word)
        if role:
            fields.setdefault(role, word)
        elif word in DATATYPES or word.lower() in (
            "float",
            "half",
            "double",
            "bfloat16",
            "u32",
            "u64",
            "u8",
            "f8e4m3",
            "f8e5m2",
            "uint32",
            "uint64",
        ):
            fields["input_type"] = {
                "float": "FP32",
                "half": "FP16",
                "double": "FP64",
                "bfloat16": "BF16",
            }.get(word.lower(), DATATYPES.get(word, word.upper()))
        elif not word.isdigit():
            rest.append(word)
    return Reading("nccl", fields, "no", rest, [name])


def read_mangled(name: str) -> Reading | None:
    """The identifiers in a mangled C++ name; its types and template arguments stay in the rest."""
    if not _MANGLED.match(name):
        return None
    identifiers: list[str] = []
    at = 2
    while at < len(name) and name[at] in "NKL":
        at += 1
    while at < len(name) and name[at].isdigit():
        digits = re.compile(r"\d{1,4}").match(name, at)
        if digits is None:
            break
        length, begin = int(digits.group()), digits.end()
        if length == 0 or begin + length > len(name):
            break
        identifiers.append(name[begin : begin + length])
        at = begin + length
        while at < len(name) and name[at] == "L":
            at += 1
    if not identifiers:
        return None
    if len(identifiers) == 1 and (offloaded := read_offloaded(identifiers[0])) is not None:
        return offloaded._replace(pieces=[name])
    fields: Fields = {"function": identifiers[-1], "operation": operation_of(identifiers[-1])}
    if identifiers[:-1]:
        fields["namespace"] = "::".join(
            "(anonymous namespace)" if part.startswith("_GLOBAL__N") else part
            for part in identifiers[:-1]
        )
    demangled = "::".join(identifiers) + "::"
    family = next((family for text, family in FUNCTION_FAMILIES if text in demangled), "cuda")
    rest = [] if name[at:] in ("", "Ev", "v") else [name[at:]]
    return Reading(
        family,
        fields,
        "unknown" if fields["operation"] in MATRIX_OPERATIONS else "no",
        rest,
        [name[:at], name[at:]] if name[at:] else [name],
    )


def read_symbol(name: str) -> Reading | None:
    """Reads a kernel name that is one symbol; None if no word in it is typical of kernels."""
    special = (
        read_triton(name)
        if name.startswith("triton_")
        else read_nccl(name)
        if name.startswith("nccl")
        else read_mangled(name)
    )
    if special is not None or not name.isidentifier():
        return special
    special = read_offloaded(name) or read_xla(name) or read_signed(name) or read_trtllm_gen(name)
    if special is not None:
        return special
    operation = operation_of(name)
    if operation == "unknown" and not any(word in name.lower() for word in _KERNEL_WORDS):
        return None
    family = next((family for text, family in WORD_FAMILIES if name.startswith(text)), "cuda")
    fields: Fields = {"function": name, "operation": operation}
    return Reading(
        family, fields, "unknown" if operation in MATRIX_OPERATIONS else "no", [], [name]
    )
