"""Engine files with the same layers: told apart by what ran, or not at all."""

from __future__ import annotations

from nsysmap.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.twins import Ran, twins_of, which_ran

ATTENTION = "layers/0/attention/PLUGIN_V2_GPTAttention_0"


def engine(tokens: int, *, tactic: str | None = None, dims: bool = True) -> Engine:
    def layer(index: int, name: str, kind: str) -> Layer:
        outputs = (Tensor(f"t{index}", (tokens, 64)),) if dims else ()
        return Layer(index, name, kind, outputs=outputs, tactic=tactic if kind == "gemm" else None)

    layers = (layer(0, "embed", "gather"), layer(1, "qkv", "gemm"), layer(2, ATTENTION, "plugin"), layer(3, "out", "gemm"))
    return Engine("made-up.json", layers, detailed=True)


def ran(*, attention: str = "attention_kernel", gemm: str = "gemm_kernel", scale: float = 1.0) -> list[Ran]:
    names = ("gather_kernel", gemm, attention, gemm)
    return [Ran(at, name, scale * 1000.0 * (at + 1)) for at, name in enumerate(names)]


def test_engines_are_twins_if_their_layers_have_the_same_names_in_the_same_order() -> None:
    other = Engine("other.json", (Layer(0, "conv", "convolution"),), detailed=True)
    assert twins_of([engine(64), other, engine(1)]) == [[0, 2]]
    assert twins_of([engine(64), other]) == []


def test_tactics_tell() -> None:
    pair = [engine(64, tactic="large_gemm_tile"), engine(1, tactic="small_gemm_tile")]
    assert which_ran([ran(gemm="small_gemm_tile"), ran(gemm="large_gemm_tile")], pair) == [1, 0]


def test_attention_for_one_token_is_the_smaller_engine_s_in_either_order() -> None:
    sequences = [ran(attention="mmha::masked_multihead_attention_kernel"), ran(attention="fmha_v2_flash_attention_causal")]
    assert which_ran(sequences, [engine(64), engine(1)]) == [1, 0]
    assert which_ran(sequences, [engine(1), engine(64)]) == [0, 1]


def test_one_sequence_alone_is_told_by_its_attention() -> None:
    assert which_ran([ran(attention="fmha_v2_flash_attention_causal")], [engine(64), engine(1)]) == [0]
    assert which_ran([ran(attention="mmha_kernel")], [engine(64), engine(1)]) == [1]


def test_the_longer_sequence_is_the_larger_engine_s() -> None:
    assert which_ran([ran(scale=3.0), ran()], [engine(1), engine(64)]) == [1, 0]


def test_what_nothing_tells_is_not_told() -> None:
    assert which_ran([ran(), ran()], [engine(1), engine(64)]) == [None, None]  # as long
    assert which_ran([ran()], [engine(1), engine(64)]) == [None]  # nothing to compare with
    assert which_ran([ran(scale=3.0), ran()], [engine(8), engine(8)]) == [None, None]  # equal tensors
    assert which_ran([ran(scale=3.0), ran()], [engine(1, dims=False), engine(64, dims=False)]) == [None, None]
