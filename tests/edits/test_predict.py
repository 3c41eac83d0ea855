"""What an edit is predicted to save, from made-up layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from nsysmap.edits.model import Edit, Gain, Unwanted
from nsysmap.edits.predict import EngineTimes, LayerTime, PredictedEdit, SavedTime, predict


def layer(at: int, nodes: str, time_ns: int, does: str = "pointwise", **more: Any) -> LayerTime:
    return LayerTime(at, f"layer {at}", frozenset(nodes.split()), time_ns, does, **more)


def edit(gain: Gain, nodes: str, beside: str = "") -> Edit:
    return Edit("kind", "does", tuple(nodes.split()), (), "", gain, tuple(beside.split()))


def times(layers: Sequence[LayerTime]) -> EngineTimes:
    return EngineTimes(tuple(layers), 1_000, 100_000)


def made(found: PredictedEdit | Unwanted) -> PredictedEdit:
    assert isinstance(found, PredictedEdit)
    return found


def test_a_kernel_that_does_nothing_else_goes_with_the_idle_time_before_it() -> None:
    held = times([layer(0, "a b", 4_000, "movement"), layer(1, "c", 9_000, "product")])
    saving = made(predict(edit("vanish", "a b"), (), held)).saving
    assert saving.ns == 5_000
    assert saving.low_ns < saving.ns < saving.high_ns


def test_nodes_in_one_kernel_with_others_save_nothing_by_being_joined() -> None:
    held = times([layer(0, "a b c", 4_000)])
    found = predict(edit("join", "a b"), (), held)
    assert isinstance(found, Unwanted)
    assert found.layer == "layer 0"
    assert "one kernel" in found.reason


def test_nodes_that_no_kernel_computes_save_nothing() -> None:
    found = predict(edit("vanish", "x"), (), times([layer(0, "a", 4_000)]))
    assert isinstance(found, Unwanted)
    assert "no kernel" in found.reason


def test_kernels_that_become_one_take_as_long_as_the_longest_at_least() -> None:
    held = times([layer(0, "a", 4_000), layer(1, "b", 6_000), layer(2, "c", 2_000)])
    saving = made(predict(edit("join", "a b c"), (), held)).saving
    assert saving.high_ns == 4_000 + 2_000 + 2 * 1_000


@pytest.mark.parametrize("wide", [True, False])
def test_a_narrower_type_saves_where_a_layer_computes_in_the_wider_one(wide: bool) -> None:
    held = times([layer(0, "a", 9_000, "product", in_fp32=wide)])
    found = predict(edit("narrow", "a"), (), held)
    assert isinstance(found, PredictedEdit) == wide


def test_what_only_moved_data_inside_a_kernel_may_free_it_for_another() -> None:
    held = times([layer(0, "a b", 4_000), layer(1, "c", 9_000, "product")])
    found = predict(replace(edit("vanish", "a"), unblocks=True), (), held)
    assert -2_000 < made(found).saving.low_ns < 0  # what is left of it is chosen anew
    assert made(found).saving.high_ns > 4_000
    assert isinstance(predict(edit("vanish", "a"), (), held), Unwanted)


@pytest.mark.parametrize(("stream", "why"), [(1, "beside each other, on 2 streams"), (0, "")])
def test_products_on_several_streams_stay(stream: int, why: str) -> None:
    held = times([layer(0, "a", 4_000, "product"), layer(1, "b", 4_000, "product", stream=stream)])
    found = predict(edit("merge", "a b"), (), held)
    assert why in found.reason if isinstance(found, Unwanted) else not why


def test_a_merged_product_whose_parts_did_more_is_cut_apart_by_further_kernels() -> None:
    both = [layer(0, "a act", 9_000, "product"), layer(1, "b act", 9_000, "product")]
    both += [layer(at, f"n{at}", 1_000) for at in range(2, 9)]
    saving = made(predict(edit("merge", "a b"), (), times(both))).saving
    assert saving.low_ns < 0 < saving.high_ns


def test_attention_that_is_fused_stays() -> None:
    held = times([layer(0, "a b", 4_000, "attention"), layer(1, "c", 1_000, "movement")])
    one = replace(edit("join", "a b c"), kind="attention")
    found = predict(one, (), held)
    assert isinstance(found, Unwanted)
    assert found.layer == "layer 0"
    assert "this attention" in found.reason


def test_what_stays_between_casts_saves_bytes_not_its_kernel() -> None:
    pool = layer(0, "b", 10_000, "pooling", in_fp32=True)
    held = times([pool, layer(1, "c", 2_000, "cast"), layer(2, "d", 9_000, "product")])
    saving = made(predict(edit("vanish", "a b c"), (), held)).saving
    assert saving.low_ns < 2_000
    assert 3_000 < saving.ns < saving.high_ns < 10_000


def test_a_kernel_that_moves_data_between_casts_is_not_gone_with_them() -> None:
    held = times([layer(0, "cast move cast_1", 9_000, "movement"), layer(1, "cast_2", 2_000)])
    one = replace(edit("vanish", "cast move cast_1 cast_2"), kept=("move",))
    assert made(predict(one, (), held)).saving.high_ns < 4_000
    assert made(predict(replace(one, kept=()), (), held)).saving.low_ns > 4_000


def test_branches_that_a_concatenation_joined_may_become_kernels_of_their_own() -> None:
    small = [layer(at, f"z{at}", 1_500) for at in range(1, 11)]
    held = times([layer(0, "q k v concat slice", 2_400), *small])
    one = replace(edit("vanish", "slice"), unblocks=True, parted=("q", "k", "v"))
    alone = replace(one, parted=("q",))
    assert made(predict(one, (), held)).saving.ns < 0 < made(predict(alone, (), held)).saving.ns


@pytest.mark.parametrize("wide", [True, False])
def test_a_softmax_between_two_products_may_let_tensorrt_fuse_attention(wide: bool) -> None:
    held = times(
        [
            layer(0, "qk", 8_000, "product", in_fp32=wide),
            layer(1, "exp sum div", 4_000, "softmax"),
            layer(2, "pv", 6_000, "product"),
        ]
    )
    found = predict(replace(edit("join", "exp sum div", "qk pv"), kind="softmax"), (), held)
    assert isinstance(found, Unwanted) == wide
    if not wide:
        # where TensorRT does not fuse it, or fills up its heads: a kernel more
        assert made(found).saving.low_ns == -(4_000 + 1_000)
        # the fused kernel writes no scores: it may take as little as a small one
        assert made(found).saving.high_ns == 8_000 + 6_000 + 2 * 1_000


def test_attention_that_is_fused_may_take_its_heads_in_a_cheaper_layout() -> None:
    layers = [layer(0, "qk", 8_000, "product"), layer(1, "exp sum div", 4_000, "softmax")]
    layers += [layer(2, "pv", 6_000, "product"), layer(3, "turn", 9_000), layer(4, "z", 1_000)]
    one = replace(edit("join", "exp sum div", "qk pv"), kind="softmax")
    held = times(layers)
    turned = replace(held, made_by={"qk": frozenset(["turn"])})
    more = (
        made(predict(one, (), turned)).saving.high_ns - made(predict(one, (), held)).saving.high_ns
    )
    assert more == 9_000 - held.least_ns


def test_arithmetic_that_becomes_part_of_a_product_may_make_it_slower() -> None:
    layers = [layer(0, "conv", 20_000, "product"), layer(1, "t silu u", 3_000)]
    one = replace(edit("vanish", "t u", "silu"), unblocks=True)
    alone = made(predict(one, (), times(layers)))
    behind = replace(times(layers), made_by={"t": frozenset(["conv"]), "u": frozenset(["silu"])})
    found = made(predict(one, (), behind))
    assert found.saving.low_ns == alone.saving.low_ns - 5_000
    assert found.saving.high_ns == alone.saving.high_ns + 5_000
    assert found.saving.ns == alone.saving.ns
    assert "maybe a slower one" in found.basis
    folded = replace(edit("join", "conv t"), kind="epilogues")
    assert made(predict(folded, (), times(layers))).saving.low_ns == -5_000
    behind.credit(found)
    assert made(predict(replace(one, nodes=("t",)), (), behind)).saving.low_ns > -5_000


def test_what_is_as_fast_as_a_small_kernel_does_not_surely_gain_by_a_narrower_type() -> None:
    least = layer(0, "a", 2_000, "product", in_fp32=True)
    held = [least, layer(1, "b", 2_000), layer(2, "c", 20_000, "product", in_fp32=True)]
    assert made(predict(edit("narrow", "a"), (), times(held))).saving.low_ns == 0
    assert made(predict(edit("narrow", "c"), (), times(held))).saving.low_ns == 18_000 / 20


def test_a_product_whose_rows_do_not_fill_vectors_may_lose_by_a_narrower_type() -> None:
    held = times([layer(0, "a", 20_000, "product", in_fp32=True), layer(1, "b", 2_000)])
    even, uneven = edit("narrow", "a"), replace(edit("narrow", "a"), uneven=("a",))
    assert made(predict(even, (), held)).saving.low_ns > 0
    assert made(predict(uneven, (), held)).saving.low_ns < 0


def test_a_product_of_few_rows_that_only_waits_is_not_faster_in_a_narrower_type() -> None:
    def saved(bound_ns: int) -> int:
        waits = layer(0, "a", 8_000, "product", in_fp32=True, bound_ns=bound_ns)
        held = times([waits, layer(1, "b", 2_000)])
        return made(predict(replace(edit("narrow", "a"), scant=("a",)), (), held)).saving.ns

    assert saved(bound_ns=10) < 0 < saved(bound_ns=6_000)  # the latter reads its weights


def test_a_pool_in_fp32_may_need_another_layout_in_fp16() -> None:
    held = times([layer(0, "cast pool", 5_000, "pooling", in_fp32=True)])
    one = replace(edit("narrow", "cast pool"), kept=("pool",))
    assert made(predict(one, (), held)).saving.low_ns < 0


def test_a_quantizer_that_takes_another_s_place_is_computed_by_its_kernel() -> None:
    apart = [layer(0, "q", 2_000, "quantize"), layer(2, "dq pool", 5_000, "pooling")]
    moved = [layer(0, "q", 2_000, "quantize"), layer(2, "dq pool q2", 5_000, "pooling")]
    one = replace(edit("vanish", "q dq", "pool q2"), instead=("q2",))
    assert isinstance(predict(one, (), times(moved)), Unwanted)
    both = times([*apart, layer(3, "q2", 2_000, "quantize")])
    assert made(predict(one, (), both)).saving.low_ns > 0


def test_added_channels_cost_bytes_and_operations() -> None:
    held = times([layer(0, "a", 9_000, "product", bound_ns=7_000), layer(1, "relu", 2_000)])
    one = edit("align", "a", "relu")
    wider = replace(one, growth=1.2)
    assert made(predict(one, (), held)).saving.high_ns == 2_000
    assert made(predict(wider, (), held)).saving.high_ns == 9_000 - 1.2 * 7_000
    assert made(predict(wider, (), held)).saving.low_ns < 600


def test_a_norm_of_several_kernels_surely_gains_nothing_as_one_operator() -> None:
    held = times([layer(0, "sum", 4_000), layer(1, "sub div add", 6_000)])
    found = made(predict(replace(edit("join", "sum sub div"), kind="norms"), (), held)).saving
    assert found.low_ns < 0 < found.ns < 0.5 * found.high_ns


def test_a_layer_s_time_is_saved_once() -> None:
    held = times([layer(0, "a", 4_000), layer(1, "b", 4_000)])
    first = made(predict(edit("vanish", "a b"), (), held))
    held.credit(first)
    again = predict(edit("vanish", "a b"), (), held)
    assert made(again).saving.ns <= 2 * 1_000


@pytest.mark.parametrize(("low_ns", "lost"), [(-9_060, "9 µs"), (0, ""), (4_000, "")])
def test_what_may_be_lost_is_rounded_as_the_range_is(low_ns: int, lost: str) -> None:
    assert SavedTime(23_200, low_ns, 39_400).lost == lost
