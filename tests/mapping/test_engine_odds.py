"""How names and launch shapes speak for an engine file, and against it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

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
    assert outcome([LIBRARY], MOVE, frozenset((MOVE, LIBRARY))) == OTHER
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


# --- what each piece of evidence adds, in nats
# ------------------------------------------------------------------------------


def nats(engine: Engine, ran: Mapping[int, Sequence[KernelFacts]]) -> float:
    probability = engine_odds(ran, engine.layers, engine).probability
    return math.log(probability / (1 - probability))


def by_name(*kernels: str | tuple[str, ...]) -> dict[int, list[KernelFacts]]:
    return {
        at: [KernelFacts(name) for name in ([names] if isinstance(names, str) else names)]
        for at, names in enumerate(kernels)
    }


STRANGE = tuple(f"__myl_Mul{number}_0x{number:032x}" for number in range(4))


@pytest.mark.parametrize(
    ("tactics", "ran", "worth"),
    [
        ([LIBRARY], [LIBRARY], 3.37),
        ([LIBRARY], [ANOTHER], -1.0),
        ([LIBRARY, LIBRARY], [LIBRARY, ANOTHER], 3 + 0.37 / 2 - 4 / 2),  # one tactic, one piece
        ([LIBRARY, LIBRARY], [LIBRARY, LIBRARY], 3.37),
        ([LIBRARY, ANOTHER], [LIBRARY, ANOTHER], 3.74),
        ([MOVE], [STRANGE[0]], -0.2),
        ([MOVE, MOVE], [STRANGE[0], STRANGE[1]], -3.4),  # two kernels for one tactic
        ([MOVE], [STRANGE], 3 - 4 * 3.2),
        ([MOVE], [LIBRARY], -0.2),
        ([MOVE], [MOVE_TOO], 1.0),  # other symbols only: less than the 3.2 that each is worth
        ([MOVE, RESHAPE], [MOVE_TOO, RESHAPE], 3 + 0.37 - 3.2),
        ([MOVE, RESHAPE], [RESHAPE, RESHAPE], 3 + 0.37),  # shared code
        ([MOVE, RESHAPE], [(MOVE_TOO, STRANGE[0]), RESHAPE], 3 + 0.37 - 6.4),
        ([MOVE, RESHAPE], [MOVE_TOO, STRANGE[0]], 3 - 3.2 - 2),
        ([MOVE, LIBRARY], [MOVE_TOO, LIBRARY], 3 + 0.37 - 2),
        # what a layer that ran its tactic ran besides is not counted
        ([MOVE, RESHAPE], [(MOVE, STRANGE[0]), STRANGE[1]], 3 + 0.37 - 3.2),
        # nor is code of the file with the suffix of a communicator
        ([MOVE, RESHAPE], [(RESHAPE + "_com", STRANGE[0]), RESHAPE], 3 + 0.37 - 3.2),
        ([LIBRARY] + [f"{LIBRARY}_{at}" for at in range(19)], [ANOTHER] * 20, -50.0),
    ],
)
def test_what_names_of_kernels_are_worth(
    tactics: list[str], ran: list[str | tuple[str, ...]], worth: float
) -> None:
    assert nats(_engine(*tactics), by_name(*ran)) == pytest.approx(worth)


@pytest.mark.parametrize(
    ("tactics", "ran", "shares"),
    [
        ([LIBRARY, None], [ANOTHER, ANOTHER], (0.0, 1, 0.0, None)),
        ([LIBRARY, MOVE, None], [LIBRARY, MOVE_TOO, LIBRARY], (1.0, 2, 0.5, 1.0)),
        ([LIBRARY, LIBRARY, MOVE], [LIBRARY, ANOTHER, STRANGE[0]], (1 / 3, 3, 0.25, 0.0)),
        ([MOVE, MOVE, RESHAPE], [MOVE, STRANGE[0], RESHAPE], (2 / 3, 3, 0.75, 2 / 3)),
        ([None], [LIBRARY], (None, 0, 0.0, None)),
    ],
)
def test_shares_of_tactics_that_ran(
    tactics: list[str | None],
    ran: list[str],
    shares: tuple[float | None, int, float, float | None],
) -> None:
    engine = _engine(*tactics)
    odds = engine_odds(by_name(*ran), engine.layers, engine)
    found = (odds.tactics, odds.named, odds.ran, odds.code)
    assert found == pytest.approx(shares)


def test_layers_that_ran_nothing_do_not_count_among_those_that_name_their_kernels() -> None:
    twin = math.exp(-4.55)
    for named, unnamed, alone in ((9, 1, True), (8, 1, False), (1, 0, True)):
        tactics = [f"{LIBRARY}_{at}" for at in range(named)]
        engine = _engine(*tactics, *[None] * unnamed, None)  # the last one ran nothing
        against = math.exp(-3 - 0.37 * named) + (0.0 if alone else twin)
        ran = by_name(*tactics, *["kernel"] * unnamed)
        assert nats(engine, ran) == pytest.approx(-math.log(against))


def test_other_streams_than_the_file_s_speak_for_a_twin() -> None:
    engine = Engine(
        "e",
        tuple(
            Layer(at, f"layer_{at}", "gemm", tactic=f"{LIBRARY}_{at}", stream=stream)
            for at, stream in enumerate((0, 0, 1))
        ),
        detailed=True,
    )

    def found(*streams: int) -> float:
        return nats(
            engine,
            {
                at: [KernelFacts(f"{LIBRARY}_{at}", stream=stream)]
                for at, stream in enumerate(streams)
            },
        )

    odds = 3 + 3 * 0.37
    assert found(7, 7, 8) == pytest.approx(odds)
    assert found(7, 7, 7) == pytest.approx(-math.log(math.exp(-odds) + math.exp(4.9 - 4.55)))
    # only the layers that ran tell: here those of one stream
    assert found(7, 7) == pytest.approx(3 + 2 * 0.37 - 4.0)
    assert found(7, 8) == pytest.approx(
        -math.log(math.exp(-(3 + 2 * 0.37 - 4.0)) + math.exp(4.9 - 4.55))
    )


TILED = "cudnn_generated_fort_native_sm80_matMul_knob_24_64x64x32_5_0"


@pytest.mark.parametrize(
    ("right", "wrong", "worth"),
    [(1, 0, 0.2), (5, 0, 1.0), (7, 0, 1.0), (0, 1, -3.0), (2, 2, 0.4 - 6.0)],
)
def test_what_numbers_of_blocks_are_worth(right: int, wrong: int, worth: float) -> None:
    """Of products of which each has its own size."""
    layers = tuple(
        Layer(at, f"layer_{at}", "gemm", outputs=(Tensor("t", (64 * (at + 1), 64)),))
        for at in range(right + wrong)
    )
    ran = {
        at: [
            KernelFacts(TILED, grid=(1, at + 1 if at < right else 40, 1)),
            KernelFacts(TILED, grid=(1, 50, 1)),  # only the first kernel counts
        ]
        for at in range(right + wrong)
    }
    # the same launches of another layer of that shape say nothing new
    again = Layer(len(layers), "again", "gemm", outputs=layers[0].outputs)
    ran[again.index] = ran[0]
    engine = Engine("e", (*layers, again), detailed=True)
    # the layers name no tactic: a twin may have run the same
    against = math.exp(-3 - worth) + math.exp(-4.55)
    assert nats(engine, ran) == pytest.approx(-math.log(against))


def test_blocks_count_once_where_all_generated_code_is_the_file_s() -> None:
    def found(first: str, second: str) -> float:
        outputs = [(Tensor("t", (64, 64)),), (Tensor("t", (64, 128)),)]
        layers = (
            Layer(0, "a", "myelin_kernel", tactic=MOVE),
            Layer(1, "b", "myelin_kernel", tactic=RESHAPE),
            *(Layer(2 + at, "g", "gemm", tactic=TILED, outputs=outputs[at]) for at in (0, 1)),
        )
        ran = {
            0: [KernelFacts(first)],
            1: [KernelFacts(second)],
            2: [KernelFacts(TILED, grid=(40, 1, 1))],
            3: [KernelFacts(TILED, grid=(41, 1, 1))],
        }
        return nats(Engine("e", layers, detailed=True), ran)

    assert found(MOVE, RESHAPE) == pytest.approx(3 + 3 * 0.37 - 3)
    assert found(MOVE_TOO, RESHAPE) == pytest.approx(3 + 2 * 0.37 - 3.2 - 6)
    assert found(MOVE, STRANGE[0]) == pytest.approx(3 + 2 * 0.37 - 3.2 - 6)


@pytest.mark.parametrize(
    ("right", "wrong", "worth"),
    [(1, 0, 0.2), (5, 0, 1.0), (6, 0, 1.0), (0, 1, -2.1), (2, 2, 0.4 - 4.2)],
)
def test_what_threads_of_other_code_are_worth(right: int, wrong: int, worth: float) -> None:
    count = right + wrong
    layers = tuple(
        Layer(
            at,
            f"layer_{at}",
            "myelin_kernel",
            tactic=f"__myl_Mov{at}_0x{at:032x}",
            outputs=(Tensor("t", (97, 1009)),),
        )
        for at in range(count)
    )
    ran = {
        at: [
            KernelFacts(
                f"__myl_Mov{at}_0x{at + 99:032x}",
                grid=(97 if at < right else 55, 1, 1),
                block=64,
            )
        ]
        for at in range(count)
    }
    found = nats(Engine("e", layers, detailed=True), ran)
    assert found == pytest.approx(3 + max(-3.2 * count, -2.0) + worth)
