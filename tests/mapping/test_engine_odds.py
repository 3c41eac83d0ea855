"""How names and launch shapes speak for an engine file, and against it."""

from __future__ import annotations

from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.order.engine_odds import EQUAL_CODE, OTHER, RAN, engine_odds, outcome
from nsysmap.mapping.order.scores import KernelFacts

MOVE, RESHAPE = (
    "__myl_MoveConc_0xc1455be378008feffc8e73982aa134dd",
    "__myl_Resh_0x39c16d43d09058252c6afcb5b335d3b3",
)
MOVE_TOO = "__myl_MoveConc_0xb2f692d45b1de3b4308437bc08dcb763"
LIBRARY, ANOTHER = (
    "sm80_xmma_gemm_f16f16_tilesize128x64x64_stage3",
    "sm80_xmma_gemm_f16f16_tilesize64x64x64_stage5",
)


def _engine(*tactics: str | None) -> Engine:
    layers = (
        Layer(at, f"layer_{at}", "myelin_kernel", tactic=tactic)
        for at, tactic in enumerate(tactics)
    )
    return Engine("engine", tuple(layers), detailed=True)


def _probability(engine: Engine, *kernels: str) -> float:
    return engine_odds(
        {at: [KernelFacts(name)] for at, name in enumerate(kernels)}, engine.layers, engine
    ).probability


def test_what_a_layer_ran_is_its_tactic_or_code_that_may_be_the_same_or_another() -> None:
    known = frozenset((MOVE, RESHAPE))
    assert outcome([MOVE], MOVE, known) == RAN
    assert outcome([MOVE_TOO], MOVE, known) == EQUAL_CODE  # the same operations
    assert outcome([RESHAPE], MOVE, known) == EQUAL_CODE  # another layer's symbol
    assert outcome([RESHAPE], MOVE, frozenset((MOVE,))) == OTHER
    assert outcome([], MOVE, known) == OTHER
    # a library's kernels share no code
    assert outcome([ANOTHER], LIBRARY, frozenset((LIBRARY, ANOTHER))) == OTHER


def test_one_symbol_that_the_file_lacks_does_not_refute_it_and_many_do() -> None:
    symbols = [f"__myl_Add{number}_0x{number:032x}" for number in range(6)]
    strange = [f"__myl_Mul{number}_0x{number + 99:032x}" for number in range(6)]
    engine = _engine(*symbols)
    odds = [_probability(engine, *strange[:others], *symbols[others:]) for others in range(4)]
    assert odds == sorted(odds, reverse=True)
    assert odds[0] > 0.99 and odds[1] > 0.8 and odds[2] < 0.5 and odds[3] < 0.05


def test_a_symbol_counts_once_however_many_layers_have_it() -> None:
    once, often = _engine(*[MOVE] * 20), _engine(*(f"{MOVE}{at}" for at in range(20)))
    assert _probability(once, *[RESHAPE] * 20) > 0.05 > _probability(often, *[RESHAPE] * 20)


def test_several_symbols_in_the_place_of_one_are_several_that_the_file_lacks() -> None:
    strange = [f"__myl_Mul{number}_0x{number:032x}" for number in range(2)]
    once, twice = (
        _probability(_engine(MOVE, MOVE, RESHAPE), *kernels, RESHAPE)
        for kernels in ([strange[0]] * 2, strange)
    )
    assert once > 0.5 > twice


def test_another_hash_beside_symbols_of_the_file_is_not_another_gpus() -> None:
    symbols = [f"__myl_Add{number}_0x{number:032x}" for number in range(9)]
    others = [f"__myl_Add{number}_0x{number + 99:032x}" for number in range(9)]
    engine = _engine(*symbols)
    odds = [_probability(engine, *others[:count], *symbols[count:]) for count in (1, 2, 3)]
    assert odds == sorted(odds, reverse=True)
    assert odds[0] > 0.8 and odds[2] < 0.1 < _probability(engine, *others)


def test_symbols_that_all_have_other_hashes_are_of_another_gpu_perhaps() -> None:
    symbols = [f"__myl_Add{number}_0x{number:032x}" for number in range(9)]
    assert (
        0.6
        < _probability(
            _engine(*symbols), *(f"__myl_Add{number}_0x{number + 99:032x}" for number in range(9))
        )
        < 0.8
    )


def test_what_library_kernels_are_called_is_stronger() -> None:
    assert _probability(_engine(LIBRARY, MOVE), ANOTHER, MOVE) < 0.5


def test_layers_that_name_no_kernel_leave_a_twin() -> None:
    some, more = (
        _probability(_engine(*symbols, None, None), *symbols, LIBRARY, LIBRARY)
        for symbols in ((MOVE,), tuple(f"{MOVE}{at}" for at in range(9)))
    )
    assert 0.95 < some < more < 0.99  # six of 29 near twins run the same kernels


def test_threads_that_do_not_cover_the_tensors_speak_against_other_code() -> None:
    def probability(channels: int) -> float:
        shape = (1, channels, 56, 56)
        tensor = (Tensor("t", shape),)
        layers = (
            Layer(0, "first", "myelin_kernel", tactic=RESHAPE),
            Layer(1, "second", "myelin_kernel", tactic=MOVE, inputs=tensor, outputs=tensor),
        )
        ran = {
            0: [KernelFacts(RESHAPE)],
            1: [KernelFacts(MOVE_TOO, grid=(112, 1, 1), block=248)],  # seven elements a thread
        }
        return engine_odds(ran, layers, Engine("e", layers, detailed=True)).probability

    assert probability(64) < 0.5 < probability(62)


def test_a_launch_of_more_blocks_than_the_layer_needs_speaks_against_the_file() -> None:
    product = KernelFacts(
        "cudnn_generated_fort_native_sm80_matMul_knob_24_64x64x32_5_0", grid=(2, 12, 1)
    )
    layers = [
        Layer(at, "product", "gemm", outputs=(Tensor("out", shape),))
        for at, shape in enumerate([(128, 768), (1024, 768)])
    ]
    own, other = (
        engine_odds(
            {layer.index: [product]}, [layer], Engine("e", (layer,), detailed=True)
        ).probability
        for layer in layers
    )
    assert own > 0.95
    assert other <= 0.5


def test_kernels_on_one_stream_are_not_those_of_a_file_with_auxiliary_streams_nor_the_reverse() -> (
    None
):
    def probability(
        told: tuple[int | None, int | None], used: tuple[int | None, int | None]
    ) -> float:
        layers = tuple(
            Layer(at, f"layer_{at}", "myelin_kernel", tactic=f"{MOVE}{at}", stream=stream)
            for at, stream in enumerate(told)
        )
        ran = {at: [KernelFacts(f"{MOVE}{at}", stream=stream)] for at, stream in enumerate(used)}
        return engine_odds(ran, layers, Engine("e", layers, detailed=True)).probability

    assert probability((0, 1), (7, 9)) == probability((0, 0), (7, 7)) > 0.9
    assert probability((0, 1), (7, 7)) == probability((0, 0), (7, 9)) < 0.5
    assert probability((None, None), (7, 9)) > 0.9  # older files do not tell
    assert probability((0, 1), (None, None)) > 0.9
