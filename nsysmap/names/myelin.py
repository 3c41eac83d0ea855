"""Reads the op lists that Myelin writes into its names, and finds the patterns in them."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from nsysmap.names.model import Op, Pattern, compiled
from nsysmap.names.myelin_tables import MOVE, OPS, PATTERNS

_CODES = r"[A-Z][a-z0-9]*"
_EITHER_MAX = Op("Max", "Max or ReduceMax", "pointwise or reduction", "likely")


class OpList(NamedTuple):
    """The content of an op list."""

    ops: tuple[Op, ...]
    generation: int | None
    patterns: tuple[Pattern, ...]
    unknown: tuple[str, ...]  # codes that the tables do not have


def _by_code(generation: int) -> dict[str, Op]:
    found: dict[str, Op] = {}
    for row in OPS:
        code, evidence = (
            (row.code3, row.evidence3) if generation == 3 else (row.code4, row.evidence4)
        )
        if code:
            found[code] = Op(code, row.op, row.cls, evidence)
    return found


_OPS3 = _by_code(3)
_OPS4 = _by_code(4)
_ONLY3 = frozenset(_OPS3) - frozenset(_OPS4)
_ONLY4 = frozenset(_OPS4) - frozenset(_OPS3)
_SAME = {**_OPS3, **_OPS4, "Max": _EITHER_MAX}
_OPS3["Max"] = _EITHER_MAX
_REDUCE_MAX3 = Op("Max", "ReduceMax", "reduction", "aligned")
_REDUCE_MAX = Op("Max", "ReduceMax", "reduction", "likely")
_CLIP_MAX = Op("Max", "Max", "pointwise", "likely")
_KEYS = {row.op: chr(0xE000 + i) for i, row in enumerate(OPS)}  # one private character an operation
_NO_KEY = "\uf8ff"


def known_codes(text: str) -> bool:
    """True if the text is nothing but at least three op codes that are more than guesses."""
    codes = compiled(_CODES).findall(text)
    return (
        len(codes) > 2
        and "".join(codes) == text
        and all((op := _SAME.get(code)) is not None and op.evidence != "guess" for code in codes)
    )


def read_ops(text: str, *, generation: int | None = None) -> OpList:
    """The op list that this text spells; the generation is found from the codes where it is not
    given.
    """
    codes = compiled(_CODES).findall(text)
    if generation is None:
        present = frozenset(codes)
        has3, has4 = not _ONLY3.isdisjoint(present), not _ONLY4.isdisjoint(present)
        generation = 3 if has3 and not has4 else 4 if has4 and not has3 else None
    table = _OPS3 if generation == 3 else _OPS4 if generation == 4 else _SAME
    ops: list[Op] = []
    unknown: list[str] = []
    for i, code in enumerate(codes):
        op = table.get(code) or _SAME.get(code)
        if op is None:
            op = Op(code, "unknown", "unknown", "none")
            unknown.append(code)
        elif op is _EITHER_MAX:
            op = _which_max(codes, i, generation)
        ops.append(op)
    return OpList(tuple(ops), generation, find_patterns(ops), tuple(unknown))


def _which_max(codes: list[str], i: int, generation: int | None) -> Op:
    """The meaning of ``Max`` if the generation does not settle it: a softmax's reduction, half of a
    clip, or undecided.
    """
    if codes[i + 1 : i + 3] == ["Sub", "Exp"]:
        return _REDUCE_MAX3 if generation == 3 else _REDUCE_MAX
    if "Min" in codes[max(i - 1, 0) : i + 2]:
        return _CLIP_MAX
    return _EITHER_MAX


def find_patterns(ops: list[Op]) -> tuple[Pattern, ...]:
    """The patterns in an op list, in order and without overlap; then, where all ops are of one
    sort, what that is.
    """
    if len(ops) > 1 or (ops and ops[0].cls in ("quantize", "normalization")):
        text = "".join([_KEYS.get(op.op, _NO_KEY) for op in ops])
        expression, rows = _pattern_expression()
        found = [
            Pattern(name, match.start(), match.end() - 1, meaning, evidence)
            for match in expression.finditer(text)
            for name, meaning, evidence in (rows[(match.lastindex or 1) - 1],)
        ]
        if found:
            return tuple(found)
    whole = _whole(ops)
    return (whole,) if whole else ()


def _whole(ops: list[Op]) -> Pattern | None:
    kinds = {op.cls for op in ops}
    if kinds == {"cast"}:
        return Pattern(
            "pure-cast", 0, len(ops) - 1, "nothing but a change of data type", "confirmed"
        )
    if kinds == {MOVE}:
        return Pattern(
            "pure-data-movement", 0, len(ops) - 1, "moves data and computes nothing", "confirmed"
        )
    if kinds == {MOVE, "cast"}:
        return Pattern(
            "data-movement-and-cast",
            0,
            len(ops) - 1,
            "moves data and changes its type, computes nothing",
            "confirmed",
        )
    return None


@cache
def _pattern_expression() -> tuple[re.Pattern[str], list[tuple[str, str, str]]]:
    """All patterns as one expression over one character per op; the empty group that ends a row
    identifies the matching one.
    """
    keys = {row.code4: _KEYS[row.op] for row in OPS}
    parts: list[str] = []
    for row in PATTERNS:
        body = re.sub(r">\(", "(?=", row.expression)
        body = re.sub(r"<\(", "(?<=", body)
        body = re.sub(r"\((?!\?)", "(?:", body)
        body = re.sub(r"[A-Z][a-z0-9]*", lambda code: keys[code.group()], body).replace(" ", "")
        parts.append(f"{body}()")
    return re.compile("|".join(parts)), [(row.name, row.text, row.evidence) for row in PATTERNS]


PRODUCTS = ("convolution", "gemm")
"""Classes of operations that give a generated kernel its kind, whatever else is fused into it."""


@lru_cache(maxsize=1 << 12)  # repeated blocks of a network share most names of kernels
def product_of(name: str) -> str:
    """The class of the product in a generated kernel with that name, such as ``__myl_FcAddRelu``;
    empty if it has none or is not generated.
    """
    found = read_myelin(name) if name.startswith("__myl_") else None
    classes = {op.cls for op in found.ops.ops} if found is not None else set()
    return next((cls for cls in PRODUCTS if cls in classes), "")


class MyelinName(NamedTuple):
    """The content of a Myelin name apart from its op list."""

    kind: str  # kernel, layer, range
    ops: OpList
    fields: dict[str, str | int]
    rest: str
    pieces: tuple[str, ...]


_LAYER_TAIL = (
    r"(?: \[profile (?P<profile>\d+)\])?(?:_myl(?P<region>\d+)_(?P<index>\d+))?(?: \[profile"
    r" (?P<profile2>\d+)\])?"
)
_GENERATED = (
    r"(?P<head>__myl_(?:bb(?P<block>\d{1,9})_(?P<node>\d{1,9})_)?)(?P<ops>(?:[A-Z][a-z0-9]*)+)(?P<tile>_cuda_tile)?(?:_0x(?P<hash>[0-9a-fA-F]+))?"
    r"(?:_tensorop(?P<gemm_tile>\d+x\d+)(?:_cga(?P<cluster>\d+x\d+))?(?:_(?P<sm>\d*sm\d*))?(?:_acc_(?P<acc>[a-z]+\d*))?(?:_tile_k_count_(?P<k_count>\d+))?"
    r"(?:_gemm_(?P<gemm_id>\d+(?:_\d+)?))?)?(?P<com>_com)?(?P<vec>_vec)?" + _LAYER_TAIL
)
_ATTENTION = (
    r"(?:__mye(?P<node>\d+))?_(?P<form>gem[mv])_mha_v(?P<version>\d{1,9})(?:_0x(?P<hash>[0-9a-fA-F]+))?(?P<com>_com)?(?P<vec>_vec)?"
    + _LAYER_TAIL
)
_ACCUMULATE = {"float": "FP32", "half": "FP16", "int": "INT32", "int32": "INT32", "double": "FP64"}
_MHA_OPS = {
    "gemm": (
        Op("gemm", "MatMul", "gemm", "confirmed"),
        Op("mha", "Attention", "attention", "confirmed"),
    ),
    "gemv": (Op("gemv", "MatMul", "gemm", "likely"), Op("mha", "Attention", "attention", "likely")),
}


def read_myelin(name: str) -> MyelinName | None:
    """Reads the name of a Myelin kernel, layer or range; None if it is neither made of op codes nor
    a fused attention.
    """
    match = compiled(_GENERATED).match(name)
    if match is not None:
        ops = read_ops(match["ops"], generation=3 if match["block"] else None)
        kind = (
            "layer" if match["region"] else "kernel" if match["hash"] or match["block"] else "range"
        )
        fields = _generated_fields(match)
    else:
        match = compiled(_ATTENTION).match(name)
        if match is None:
            return None
        ops = OpList(
            _MHA_OPS[match["form"]],
            None,
            (
                Pattern(
                    "attention",
                    0,
                    1,
                    "fused attention: MatMul, scale, softmax, MatMul",
                    "confirmed",
                ),
            ),
            (),
        )
        kind = (
            "layer" if match["region"] else "kernel" if match["hash"] or match["node"] else "range"
        )
        fields = {"operation": "attention", "version": int(match["version"])}
    for field, group in (
        ("hash", "hash"),
        ("region", "region"),
        ("region_index", "index"),
        ("profile", "profile"),
        ("profile", "profile2"),
        ("node", "node"),
    ):
        text = match[group]
        if text:
            fields[field] = (
                "0x" + text if field == "hash" else int(text) if len(text) < 10 else text
            )
    suffix = (match["com"] or "") + (match["vec"] or "")
    if suffix:
        fields["suffix"] = suffix[1:]
    end = match.end()
    pieces = _pieces(name, match, ops)
    return MyelinName(
        kind,
        ops,
        fields,
        " ".join([*ops.unknown, name[end:]] if end < len(name) else ops.unknown),
        pieces,
    )


def _generated_fields(match: re.Match[str]) -> dict[str, str | int]:
    fields: dict[str, str | int] = {}
    if match["block"]:
        fields["block"] = int(match["block"])
    if match["tile"]:
        fields["compiler"] = "cuda_tile"
    if match["gemm_tile"]:
        fields["tile"] = match["gemm_tile"]
        fields["instruction"] = "tensorop"
        for field, group in (
            ("cluster", "cluster"),
            ("schedule", "sm"),
            ("k_tiles", "k_count"),
            ("gemm_id", "gemm_id"),
        ):
            if match[group]:
                fields[field] = match[group]
        if match["acc"]:
            fields["accumulate_type"] = _ACCUMULATE.get(match["acc"], match["acc"].upper())
    return fields


def _pieces(name: str, match: re.Match[str], ops: OpList) -> tuple[str, ...]:
    """The name's parts: what stands before the op list, each op code, what stands behind."""
    if "ops" not in match.groupdict():
        return (name,)
    first, last = match.span("ops")
    parts = [name[:first], *[op.code for op in ops.ops], name[last:]]
    return tuple(part for part in parts if part)
