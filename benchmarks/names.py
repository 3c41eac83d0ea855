"""Measures the name decoder on a table of names: what it knows, what it leaves over, whether it
agrees with known facts, how fast it is.

    python benchmarks/names.py NAMES.tsv|FILE... [TENSOR_CORES.tsv]

FILE is a report, of which the kernels' names are taken, or an engine file (.json), of which those
of layers and tactics are. NAMES.tsv has the columns kind, name, source, versions, facts.  Facts
that begin with INFERRED are somebody's reading of the name itself, so they prove nothing and are
left out.  TENSOR_CORES.tsv has the columns tactic, yes or no.
"""
# ruff: noqa: E501 - tables and lines of figures

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nsysmap.inputs.engine.reader import read_engine
from nsysmap.names.decode import KernelName, affinity, decode, layer_kind
from nsysmap.trace.open_report import open_trace

_SHOWN = 12
_STUB = "__myelin_CASK_STUB"  # what TensorRT for RTX names where the kernel is chosen at run time
_TYPE = re.compile(r"LayerType=(\w+(?: \w+)?)")
_LAUNCHED = re.compile(r"launched inside NVTX (?:layer )?range\(s\): (.*)")
_ONNX = re.compile(r"ops=(.*)")
_MYELIN_KINDS = ("myelin_kernel",)
_KERNEL_KINDS = ("kernel", "tactic", "myelin_kernel")
_LAYER_KINDS = ("layer", "nvtx_layer")
_SAME_CLASS = {
    # what the name tells, LayerType's class: both right, since TensorRT runs the one as the other
    ("quantize", "reformat"), ("reformat", "noop"), ("shuffle", "noop"), ("reduce", "pooling"), ("gather", "slice"), ("convolution", "gemm"),
    ("gemm", "convolution"), ("attention", "fused"), ("fused", "attention"),
}  # fmt: skip
_SAYS = (
    # words in a DOC fact, what they say the kernel computes
    (re.compile(r"\breformat\b", re.IGNORECASE), "reformat"), (re.compile(r"depthwise|stem conv|\bConv\b|Conv_\d"), "convolution"),
    (re.compile(r"1x1 conv"), "gemm"), (re.compile(r"\bMatMul\b|\bgemm\b"), "gemm"), (re.compile(r"\bResize\b"), "resize"),
    (re.compile(r"\bPad\b"), "slice"), (re.compile(r"ElementWise"), "pointwise"),
)  # fmt: skip
_ONNX_SHOWS = {
    # ONNX operation in a kernel's metadata, what the name must then have: one of these operations
    # or patterns
    "LayerNormalization": {"layernorm", "layernorm-statistics", "layernorm-affine", "normalize", "ReduceMean", "Sqrt"},
    "Softmax": {"softmax", "softmax-statistics", "softmax-normalize", "attention"}, "Transpose": {"Transpose", "Reshape", "attention"},
    "Reshape": {"Reshape", "Transpose"}, "Concat": {"Concat"}, "Split": {"Slice"}, "Slice": {"Slice", "Fc"}, "Neg": {"Neg"}, "Erf": {"Erf", "Fc"},
    "Sqrt": {"Sqrt"}, "Div": {"Div", "Fc"}, "ReduceMean": {"ReduceMean"}, "Sub": {"Sub"}, "Pow": {"Mul", "Pow"}, "Gather": {"Gather", "Slice"},
    "Expand": {"Expand"}, "TRT_FP8QuantizeLinear": {"fp8-quantize", "attention", "Cast"}, "QuantizeLinear": {"int8-quantize", "int8-quantize-dequantize"},
    "DequantizeLinear": {"int8-quantize-dequantize", "dequantize"}, "Gelu": {"gelu-tanh", "gelu-erf", "geglu", "Fc"}, "MatMul": {"MatMul", "attention", "Fc"},
}  # fmt: skip


class Row(NamedTuple):
    """One line of the table of names."""

    kind: str
    name: str
    facts: str
    decoded: KernelName


def main() -> None:
    """Print all figures."""
    files = [Path(name) for name in sys.argv[1:]]
    told = [file for file in files if file.name.startswith("tensor_cores")]
    rows = [row for file in files if file not in told for row in read(file)]
    rows = list({(row.kind, row.name): row for row in reversed(rows)}.values())[::-1]
    known_ops(rows)
    left_over(rows)
    classes(rows)
    onnx(rows)
    if told:
        tensor_cores(told[0])
    speed([row.name for row in rows])


def read(path: Path) -> list[Row]:
    if path.suffix == ".json":
        return read_layers(path)
    if path.suffix != ".tsv":
        names = dict.fromkeys(name or "" for name in open_trace(path).kernels.text("name").list())
        return [Row("kernel", name, "", decode(name)) for name in names if name]
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        kind, name, *rest = line.split("\t")
        facts = rest[2] if len(rest) > 2 else ""
        rows.append(Row(kind, name, "" if "INFERRED" in facts else facts, decode(name)))
    return rows


def read_layers(path: Path) -> list[Row]:
    """The layers of an engine, with their type and metadata as facts, and their tactics."""
    rows = []
    for layer in read_engine(path).layers:
        facts = f"META: LayerType={layer.type}; ops={';'.join(layer.onnx)}"
        rows.append(Row("layer", layer.name, facts, decode(layer.name)))
        if layer.tactic and layer.tactic != _STUB:
            rows.append(Row("tactic", layer.tactic, "", decode(layer.tactic)))
    return rows


def known_ops(rows: list[Row]) -> None:
    ops = Counter(
        op.code for row in rows for op in row.decoded.ops if row.decoded.family == "myelin"
    )
    unknown = Counter(op.code for row in rows for op in row.decoded.ops if op.op == "unknown")
    print(
        f"Myelin op codes: {ops.total()} in {sum(bool(row.decoded.ops) for row in rows)} names,"
        f" {len(ops)} different, {len(unknown)} unknown {dict(unknown) or ''}"
    )
    print(
        "  by evidence:"
        f" {dict(Counter(op.evidence for row in rows for op in row.decoded.ops if row.decoded.family == 'myelin').most_common())}"
    )


def left_over(rows: list[Row]) -> None:
    print("rest empty:")
    groups: tuple[tuple[str, Callable[[Row], bool]], ...] = (
        ("Myelin kernels", lambda row: row.kind in _MYELIN_KINDS),
        (
            "all Myelin names",
            lambda row: row.decoded.family == "myelin" or row.name.startswith("__my"),
        ),
        ("tactics", lambda row: row.kind == "tactic"),
        ("all kernels and tactics", lambda row: row.kind in _KERNEL_KINDS),
        ("layers", lambda row: row.kind in _LAYER_KINDS),
        ("kernels and layers", lambda row: row.kind in _KERNEL_KINDS + _LAYER_KINDS),
        ("all names", lambda row: bool(row.name)),
    )
    for title, belongs in groups:
        group = [row for row in rows if belongs(row)]
        share(
            [row.decoded.rest == "" for row in group],
            title,
            [f"{row.name[:90]} | {row.decoded.rest[:60]}" for row in group if row.decoded.rest],
        )


def classes(rows: list[Row]) -> None:
    """The class that the name alone tells, against LayerType, the range it was launched in, and
    what the author says.
    """
    print("family and class against facts:")
    typed = [
        (row, kind[1])
        for row in rows
        if row.kind in _LAYER_KINDS and (kind := _TYPE.search(row.facts))
    ]
    pairs = [
        (row.name, layer_kind(row.name, None), layer_kind(row.name, kind)) for row, kind in typed
    ]
    judged = [pair for pair in pairs if pair[1] != "unknown"]
    share(
        [told == true or (told, true) in _SAME_CLASS for _, told, true in judged],
        "layers: class by name = LayerType",
        wrong(judged),
    )
    print(f"    {len(pairs) - len(judged)} of {len(pairs)} names tell no class")
    myelin = [
        row
        for row in rows
        if re.search(r"LayerType=(kgen|fusion)", row.facts) and row.kind != "tactic"
    ]
    share(
        [row.decoded.family == "myelin" for row in myelin],
        "kgen and fusion names are Myelin",
        [row.name for row in myelin if row.decoded.family != "myelin"],
    )
    tactics = [
        (row, kind[1]) for row in rows if row.kind == "tactic" and (kind := _TYPE.search(row.facts))
    ]
    told = [
        (row.name, str(row.decoded.fields.get("operation")), layer_kind("x", kind))
        for row, kind in tactics
    ]
    # a fusion of what, the type does not say
    told = [triple for triple in told if triple[2] != "myelin_kernel"]
    share(
        [ours == true or (ours, true) == ("gemv", "gemm") for _, ours, true in told],
        "tactics: operation = LayerType",
        wrong(told),
    )
    launched = [
        (row, match[1])
        for row in rows
        if row.kind in _KERNEL_KINDS and (match := _LAUNCHED.search(row.facts))
    ]
    fits = [(row.name, re.sub(r" \[.*", "", text.split(" | ")[0])) for row, text in launched]
    good = [affinity(decode(name), layer_kind(text, None), text, ()) >= 0.5 for name, text in fits]
    share(
        good,
        "kernels fit the layer range they ran in",
        [f"{name[:60]} in {text}" for (name, text), ok in zip(fits, good, strict=True) if not ok],
    )
    said = [
        (row.name, str(row.decoded.fields.get("operation")), want)
        for row in rows
        if row.kind == "kernel" and row.facts.startswith("DOC")
        if (want := says(row.facts))
    ]
    share(
        [ours == want or (ours, want) in _SAME_CLASS for _, ours, want in said],
        "kernels: operation = what the author says",
        wrong(said),
    )


def says(facts: str) -> str:
    return next((operation for words, operation in _SAYS if words.search(facts)), "")


def wrong(triples: Iterable[tuple[str, str, str]]) -> list[str]:
    return [
        f"{name[:80]}: {ours}, not {true}"
        for name, ours, true in triples
        if ours != true and (ours, true) not in _SAME_CLASS
    ]


def onnx(rows: list[Row]) -> None:
    """The ONNX operations that TensorRT's metadata lists for a generated kernel, against the
    operations read from its name.
    """
    results, missed = [], []
    for row in rows:
        found = _ONNX.search(row.facts)
        if (
            row.decoded.family != "myelin"
            or not found
            or not row.facts.startswith("META")
            or not row.name.startswith(("__myl_", "_gem"))
        ):
            continue
        has = (
            {op.op for op in row.decoded.ops}
            | {op.code for op in row.decoded.ops}
            | {pattern.name for pattern in row.decoded.patterns}
        )
        for node in re.split(r"[;,]", found[1]):
            word = re.sub(r"(_\d+)+$", "", re.sub(r"\(.*", "", node).strip().rpartition("/")[2])
            if word in _ONNX_SHOWS and not has & {"Etc", "Fc", "attention"}:
                results.append(bool(has & _ONNX_SHOWS[word]))
                if not results[-1]:
                    missed.append(f"{row.name[:70]} lacks {word}")
    share(
        results,
        "ONNX operations of the metadata shown by the name (it also lists some that another kernel"
        " does)",
        missed,
    )


def tensor_cores(path: Path) -> None:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    judged = [
        (name, decode(name).tensor_cores, want) for name, want, *_ in rows if want in ("yes", "no")
    ]
    share(
        [ours == want for _, ours, want in judged],
        "tensor cores: as known",
        [f"{name}: {ours}, not {want}" for name, ours, want in judged if ours != want],
    )


def speed(names: list[str]) -> None:
    distinct = list(dict.fromkeys(names))
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for name in distinct:
            decode(name)
        best = min(best, time.process_time() - start)
    print(
        f"speed: {len(distinct) / best:,.0f} distinct names a second ({len(distinct)} names, best"
        f" of 5 runs, processor time, mean length {sum(map(len, distinct)) / len(distinct):.0f})"
    )


def share(results: list[bool], title: str, misses: list[str]) -> None:
    if not results:
        print(f"  {title}: none to judge")
        return
    print(f"  {title}: {sum(results)} of {len(results)} ({sum(results) / len(results):.2%})")
    for line in misses[:_SHOWN]:
        print(f"      {line}")


if __name__ == "__main__":
    main()
