"""Builds made out of an engine file: every layer is joined with what it was made of, by what it
computes alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest

from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.matched_groups import groups_of
from tests.joining.networks import network
from tests.places import FIXTURES

ENGINES = [
    "bert_trt10/engine.json", "bert_split_trt10/engine.json", "aux_streams/engine.json",
    "decode_loop/context.engine.json",
    "torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json",
]  # fmt: skip

Build = list[tuple[Layer, int | None]]
"""Layers with the index of the layer that each was made of; None for what is new."""


def kernel(
    name: str, reads: tuple[Tensor, ...], writes: tuple[Tensor, ...], kind: str = "myelin_kernel"
) -> Layer:
    return Layer(
        0, name, kind, type="gemm" if kind == "gemm" else "kgen", inputs=reads, outputs=writes
    )


def three_letters(layers: list[Layer]) -> Build:
    """The op codes of TensorRT 10.3 and older, and other numbers."""

    def named(name: str, at: int) -> str:
        codes = re.match(r"__myl_(.*?)(?:_myl\d+_\d+)?$", name)
        if not codes:
            return re.sub(r"_myl\d+_\d+$", "", name)
        return (
            "__myl_"
            + "".join(code[:3] for code in re.findall(r"[A-Z][a-z0-9]*", codes[1]))
            + f"_myl0_{7 * at + 1}"
        )

    return [(replace(one, name=named(one.name, at)), at) for at, one in enumerate(layers)]


def quantized(layers: list[Layer]) -> Build:
    """FP8: a kernel that quantizes before each product, products of other names and tactics, casts
    in every third kernel.
    """
    made: Build = []
    for at, one in enumerate(layers):
        if one.kind in ("gemm", "convolution") and one.inputs:
            fp8 = replace(one.inputs[0], name=f"fp8 {at}")
            made.append(
                (kernel(f"__myl_MulMaxMinCast_myl0_{1000 + at}", one.inputs[:1], (fp8,)), None)
            )
            made.append((replace(one, name=f"layer {at}", inputs=(fp8, *one.inputs[1:])), at))
        else:
            casts = at % 3 == 0 and one.name.startswith("__myl_")
            made.append(
                (
                    (
                        replace(one, name=re.sub(r"(_myl\d+_\d+)?$", r"Cast\1", one.name, count=1))
                        if casts
                        else one
                    ),
                    at,
                )
            )
    return made


def unfused(layers: list[Layer]) -> Build:
    """Attention in five layers."""
    made: Build = []
    for at, one in enumerate(layers):
        if one.kind != "attention":
            made.append((one, at))
            continue
        (out,) = one.outputs
        a, b, c, d = (replace(out, name=f"inside {at} {step}") for step in range(4))
        b, c = (replace(tensor, dimensions=(1, 12, 128, 128)) for tensor in (b, c))
        parts = [
            kernel(f"__myl_ReshTran_myl0_{2000 + at}", one.inputs, (a,)),
            kernel(f"/x{at}/MatMul", (a,), (b,), "gemm"),
            kernel(f"__myl_MulAddMaxrSubExpSumDivMul_myl0_{2000 + at}", (b,), (c,)),
            kernel(f"/x{at}/MatMul_1", (c, a), (d,), "gemm"),
            kernel(f"__myl_TranResh_myl0_{2000 + at}", (d,), (out,)),
        ]
        made += [(part, at) for part in parts]
    return made


def with_plugins(layers: list[Layer]) -> Build:
    """A plugin of another name for each norm."""
    norm = [{"Mean", "Sqrt"} <= set(re.findall(r"[A-Z][a-z]*", one.name)) for one in layers]
    return [
        (replace(one, name=f"anything {at}", kind="plugin") if norm[at] else one, at)
        for at, one in enumerate(layers)
    ]


def elsewhere(layers: list[Layer]) -> Build:
    """Another version on another GPU: other tensors, tactics and numbers."""

    def moved(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(replace(tensor, name=f"t{hash(tensor.name)}") for tensor in tensors)

    return [
        (
            replace(
                one,
                name=re.sub(r"_myl\d+_\d+$", f"_myl3_{at}", one.name),
                inputs=moved(one.inputs),
                outputs=moved(one.outputs),
            ),
            at,
        )
        for at, one in enumerate(layers)
    ]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("file", ENGINES)
@pytest.mark.parametrize("build", [three_letters, quantized, unfused, with_plugins, elsewhere])
def test_layers_of_another_build_are_joined_with_what_they_were_made_of(
    build: Callable[[list[Layer]], Build], file: str, turned: bool
) -> None:
    layers = list(read_engine(FIXTURES / file).layers)
    made = build(layers)
    of = [at for _, at in made]
    other = network([replace(one, onnx=(), tactic=None) for one, _ in made])
    sides = (other, network(layers)) if turned else (network(layers), other)
    parts: dict[int, set[int]] = defaultdict(set)
    for at, origin in enumerate(of):
        if origin is not None:
            parts[origin].add(at)
    wrong = []
    for group in groups_of(*sides):
        places = [
            {sides[side].pieces[place].layer_id for place in held}
            for side, held in enumerate((group.before, group.after))
        ]
        original, built = places[turned], places[not turned]
        wrong += [layers[at].name for at in original if not parts[at] & built]
        wrong += [
            made[at][0].name
            for at in built
            if (of[at] not in original if of[at] is not None else bool(original))
        ]
    assert wrong == []
