"""Loops of an engine, written out as often as its file says that they run."""

from __future__ import annotations

from nsysmap.inputs.engine.layer_info import named_layer
from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.network.loops import Loop, loops_in, unrolled


def _layer(
    index: int,
    name: str,
    kind: str = "kgen",
    reads: str = "",
    writes: str = "",
    **parameters: object,
) -> Layer:
    tensors = [
        tuple(Tensor(one, (1,), "INT32") for one in text.split()) for text in (reads, writes)
    ]
    return Layer(
        index,
        name,
        "other",
        type=kind,
        inputs=tensors[0],
        outputs=tensors[1],
        parameters=parameters,
    )


def _engine(limit: str = "__d^16i32_myl0", step: str = "__d^8i32_myl0") -> list[Layer]:
    """As TensorRT for RTX writes a loop: its body, the counter's step, and the jump."""
    return [
        _layer(0, "before"),
        _layer(1, "first"),
        _layer(2, "second"),
        _layer(3, "__mye16508_incr_myl0_54", "add", f"phi {step}", "phi"),
        _layer(4, "clp", "cjmp", f"phi {limit}", JumpTargetThen="first", JumpTargetElse="after"),
        _layer(5, "after"),
    ]


def test_a_loop_runs_as_often_as_its_counter_steps_up_to_its_limit() -> None:
    layers = _engine()
    assert loops_in(layers, range(6)) == [Loop(1, 4, 2)]
    assert unrolled(layers, range(6)) == (0, 1, 2, 3, 4, 1, 2, 3, 4, 5)
    assert loops_in(_engine(limit="__d^17i32_myl0"), range(6))[0].trips == 3


def test_a_loop_whose_limit_is_not_known_runs_as_often_as_is_asked() -> None:
    layers = _engine(limit="hvar^12i32_myl0")
    assert loops_in(layers, range(6)) == [Loop(1, 4, None)]
    assert unrolled(layers, range(6)) == (0, 1, 2, 3, 4, 5)
    assert unrolled(layers, range(6), 3) == (0, *[1, 2, 3, 4] * 3, 5)


def test_an_inner_loop_runs_within_each_run_of_the_outer_one() -> None:
    inner = _engine()
    outer = [
        *inner[:5],
        _layer(5, "incr", "add", "psi __d^1i32", "psi"),
        _layer(6, "outer", "cjmp", "psi __d^2i32", JumpTargetThen="before"),
    ]
    assert unrolled(outer, range(7)) == (
        *(0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6),
        *(0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6),
    )


def test_a_jump_forward_is_no_loop() -> None:
    layers = [
        _layer(0, "jump", "cjmp", "phi __d^16i32", JumpTargetThen="last"),
        _layer(1, "middle"),
        _layer(2, "last"),
    ]
    assert loops_in(layers, range(3)) == []
    assert unrolled(layers, range(3)) == (0, 1, 2)


def test_a_loop_of_a_file_of_names_only_begins_behind_what_is_set_before_it() -> None:
    names = ["__mye16506_init_myl0_21", "init_hvar^16788i64_myl0_22", "__mye141_unroll0_myl0_23"]
    names += ["__myl_Add_myl0_24", "clp___mye1527_myl0_25", "__mye148_unroll16_myl0_26"]
    layers = [named_layer(name, at) for at, name in enumerate(names)]
    assert [(loop.first, loop.last, loop.trips) for loop in loops_in(layers, range(6))] == [
        (2, 4, None)
    ]
    assert unrolled(layers, range(6), 2) == (0, 1, 2, 3, 4, 2, 3, 4, 5)
    assert [layer.kind for layer in layers[2:3]] == ["gemm"]
