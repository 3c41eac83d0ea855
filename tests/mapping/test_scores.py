"""What each kernel is worth in each layer: the rules, the figures taken over inferences, and what
learns from a first alignment, each against a slow reading.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import Table
from nsysmap.core.trace_schema import GPU_KERNELS
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.mapping.order.scores import (
    KernelFacts,
    Scores,
    between_costs,
    expected_kernels,
    habits,
    kernel_facts,
    profile_of,
    score,
    surely_run,
    threads_of,
    times,
)

GEMM = "sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize64x64x32_stage5_warpsize2x2x1_tensor16x8x16"
OTHER_GEMM = GEMM.replace("64x64x32", "128x64x32")
REFORMAT = "void genericReformat::copyVectorizedKernel<double, __half, __half, (bool)1>(long long)"
TORCH = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"
OWN = "void preprocess::normalize_kernel<float, 3>(float const*, float*, int)"
MYELIN = "__myl_AddMul_0x0123456789abcdef0123456789abcdef"
SPLIT_K = "void splitKreduce_kernel<32, 16, int, float, __half, float, __half>(int)"


def layers(*made: Layer) -> tuple[Layer, ...]:
    return tuple(
        Layer(
            at,
            one.name,
            one.kind,
            type=one.type,
            tactic=one.tactic,
            outputs=one.outputs,
            optimization_profile=one.optimization_profile,
        )
        for at, one in enumerate(made)
    )


def engine(*made: Layer, trtexec_ns: tuple[int | None, ...] = ()) -> Engine:
    return Engine("made-up.json", layers(*made), detailed=True, trtexec_ns=trtexec_ns)


def scored(kernels: list[str], *made: Layer, trtexec_ns: tuple[int | None, ...] = ()) -> Scores:
    one = engine(*made, trtexec_ns=trtexec_ns)
    return score([KernelFacts(name) for name in kernels], one, one.layers)


# --- facts over the inferences of a shape
# -------------------------------------------------------------------------------


def kernels_of(took: list[list[int]]) -> tuple[Table, np.ndarray]:
    """Inferences (rows of durations) of the same kernels, and their rows."""
    rows: list[dict[str, object]] = []
    at = 0
    for inference in took:
        for place, duration in enumerate(inference):
            rows.append(
                {
                    "kernel_id": len(rows),
                    "device": 0,
                    "stream": 7 + place,
                    "process": 1,
                    "pid": 1,
                    "start_ns": at,
                    "end_ns": at + duration,
                    "name": f"kernel_{place}",
                    "grid_x": place + 1,
                    "grid_y": place + 2,
                    "grid_z": place + 3,
                    "block_x": 32,
                    "block_y": place + 1,
                    "block_z": 2,
                }
            )
            at += duration + 1
    return Table.of_rows(GPU_KERNELS, rows), np.arange(len(rows)).reshape(len(took), -1)


@given(
    st.integers(1, 4).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(1, 90), min_size=size, max_size=size), min_size=1, max_size=9
        )
    )
)
def test_a_kernel_takes_the_median_over_its_inferences(took: list[list[int]]) -> None:
    table, rows = kernels_of(took)
    for place, fact in enumerate(kernel_facts(table, rows)):
        assert fact.duration_ns == float(np.median([one[place] for one in took]))
        assert fact.name == f"kernel_{place}"
        assert fact.grid == (place + 1, place + 2, place + 3)
        assert fact.stream == 7 + place
        assert fact.block == 32 * (place + 1) * 2


def test_a_block_of_which_a_side_is_not_known_has_no_known_threads() -> None:
    table = Table.of_rows(
        GPU_KERNELS,
        [
            {"kernel_id": at, "start_ns": 0, "end_ns": 1, "name": "k", "block_x": 32, **more}
            for at, more in enumerate(({"block_y": 4}, {"block_y": 4, "block_z": 1}))
        ],
    )
    assert threads_of(table, np.array([0, 1])).tolist() == [0, 128]


# --- the rules
# ------------------------------------------------------------------------------


def test_the_name_of_a_layer_s_tactic_decides_for_it_and_against_all_others() -> None:
    found = scored(
        [GEMM],
        Layer(0, "a", "gemm", tactic=GEMM),
        Layer(0, "b", "gemm", tactic=OTHER_GEMM),
        Layer(0, "c", "gemm"),
        Layer(0, "d", "pooling"),
    )
    own, another, untold, unlike = found.match[0].tolist()
    assert found.tactic.tolist() == [[True, False, False, False]]
    assert own > 0 > untold > unlike
    assert untold > another  # a tactic that is known and another speaks most against it
    assert own - another >= 12
    assert untold == -2.5
    assert not found.foreign[0]
    assert found.drop[0] == -5.5


def test_a_kernel_that_is_no_tactic_at_most_helps_a_layer_that_has_one() -> None:
    found = scored([OTHER_GEMM, REFORMAT], Layer(0, "a", "gemm", tactic=GEMM))
    assert found.match[0, 0] == 1.5  # of the very operation
    assert found.match[1, 0] <= -1.0
    assert found.drop.tolist() == [-5.5, -9.0]  # a reformat goes with another kernel's layer


@pytest.mark.parametrize(
    ("kind", "most"),
    [("plugin", math.inf), ("foreign_node", -30.0), ("gemm", -30.0), ("unknown", -30.0)],
)
def test_a_framework_s_kernel_is_in_plugins_only(kind: str, most: float) -> None:
    found = scored([TORCH], Layer(0, "a", kind))
    assert found.foreign[0]
    assert found.match[0, 0] <= most
    assert (found.match[0, 0] == -30.0) == (kind != "plugin")
    assert found.drop[0] == -2.0


@pytest.mark.parametrize(
    ("kind", "tactic", "most"),
    [
        ("foreign_node", None, -1.5),
        ("unknown", None, -1.5),
        ("convolution", None, -4.0),
        ("convolution", GEMM, -12.0),
    ],
)
def test_an_application_s_kernel_is_worth_little_in_any_layer_but_a_plugin(
    kind: str, tactic: str | None, most: float
) -> None:
    found = scored([OWN], Layer(0, "a", kind, tactic=tactic), Layer(0, "b", "plugin"))
    assert found.foreign[0]
    assert found.match[0, 0] == most
    assert found.match[0, 1] > most


def test_a_kernel_of_the_builder_is_in_no_plugin() -> None:
    found = scored([REFORMAT, MYELIN], Layer(0, "a", "plugin"), Layer(0, "b", "reformat"))
    assert found.match[:, 0].tolist() == [-30.0, -30.0]
    assert found.match[0, 1] > 0
    assert not found.foreign.any()


def test_kernels_of_no_engine_cost_less_between_two_inferences_than_within_one() -> None:
    names = [GEMM, TORCH, OWN, OTHER_GEMM, REFORMAT]
    inside, between = between_costs(
        [KernelFacts(name) for name in names], np.array([True, False, False, False, False])
    )
    assert inside.tolist() == [-5.5, -2.0, -2.0, -5.5, -9.0]
    assert between.tolist() == [-5.5, -0.3, -0.7, -4.0, -4.0]


@pytest.mark.parametrize(
    ("kind", "again"),
    [("foreign_node", 0.0), ("loop", -0.5), ("nms", -1.0), ("topk", -1.0), ("plugin", -1.2),
     ("unknown", -2.0), ("other", -2.0), ("resize", -2.0), ("pooling", -3.5)],
)  # fmt: skip
def test_how_dear_one_more_kernel_is_goes_by_the_kind_of_layer(kind: str, again: float) -> None:
    found = scored(["mystery"], Layer(0, "a", kind))
    assert found.more[0, 0] == again


def test_a_second_main_kernel_is_worth_more_than_one_of_no_layer_and_less_than_one_between() -> (
    None
):
    found = scored([GEMM, REFORMAT], Layer(0, "a", "gemm"))
    worth = found.more[0, 0] + found.match[0, 0]
    assert found.drop[0] < worth < -4.0
    assert found.more[1, 0] == -3.5  # a helper
    # a reduction may run in two steps
    assert scored(["void cudnn::reduce_kernel<float>(int)"], Layer(0, "a", "reduce")).more[
        0, 0
    ] in (
        -3.5,
        -5.0,
    )


def test_what_adds_up_the_parts_of_a_product_begins_no_layer() -> None:
    found = scored([SPLIT_K, SPLIT_K.replace("splitKreduce", "other")], Layer(0, "a", "gemm"))
    assert found.helps[:, 0].tolist() == [True, False]
    assert scored([f"{GEMM}_splitK_3"], Layer(0, "a", "gemm")).helps[0, 0] == np.False_
    assert scored([OWN], Layer(0, "a", "plugin")).helps[0, 0]


@pytest.mark.parametrize("kind", ["shape", "signal", "constant", "noop"])
def test_layers_that_make_nothing_run_no_kernel(kind: str) -> None:
    found = scored([OTHER_GEMM], Layer(0, "a", kind))
    assert found.match[0, 0] <= -9.0
    assert found.skip[0] == 0.0
    assert not found.runs[0]


def test_what_a_compiler_or_the_host_does_runs_no_kernel() -> None:
    one, many = Tensor("t", (1,), "INT32"), Tensor("t", (1, 8), "INT32")
    real = Tensor("t", (1,), "FP32")
    made = layers(
        Layer(0, "__mye12_3", "unknown"),
        Layer(0, "__mye12_3x", "unknown"),
        Layer(0, "dummy_shape_call", "unknown"),
        Layer(0, "clp_7", "unknown"),
        Layer(0, "x", "gemm", type="memset"),
        Layer(0, "x", "gemm", type="cjmp"),
        Layer(0, "x", "gemm", type="add", outputs=(one,)),
        Layer(0, "x", "gemm", type="add", outputs=(many,)),
        Layer(0, "x", "gemm", type="add", outputs=(real,)),
        Layer(0, "x", "gemm", type="add", outputs=(one, real)),
        Layer(0, "x", "gemm", type="add"),
        Layer(0, "x", "gemm", type="mul", outputs=(one,)),
    )
    found = score([KernelFacts(OTHER_GEMM)], Engine("x", made, detailed=True), made)
    nothing = [True, False, True, True, True, True, True, False, False, False, False, False]
    assert [skip == 0.0 for skip in found.skip.tolist()] == nothing
    assert [match <= -9.0 for match in found.match[0].tolist()] == nothing


@pytest.mark.parametrize(
    ("name", "kind", "kernel_type", "skip", "runs"),
    [
        ("a", "gemm", None, -6.0, True),
        ("a", "shuffle", None, -1.5, False),
        ("a/Transpose", "shuffle", None, -3.0, True),
        ("a/PERMUTE", "shuffle", None, -3.0, True),
        ("a/Reshape", "shuffle", None, -0.2, False),
        ("a/view", "shuffle", None, -0.2, False),
        ("a/Transpose", "slice", None, -2.0, False),
        ("a", "reformat", "Reformat", -3.0, True),
        ("a", "reformat", None, -1.0, False),
        ("a", "cast", None, -2.5, False),
        ("a", "quantize", None, -4.5, True),
        ("a", "plugin", None, -4.0, True),
        ("a", "loop", None, -1.0, False),
    ],
)
def test_which_layers_must_run_kernels(
    name: str, kind: str, kernel_type: str | None, skip: float, runs: bool
) -> None:
    made = Layer(0, name, kind, type=kernel_type)
    assert scored([OTHER_GEMM], made).skip.tolist() == [skip]
    assert scored([OTHER_GEMM], made).runs.tolist() == [runs]
    assert surely_run(engine(made), engine(made).layers).tolist() == [runs]
    with_tactic = Layer(0, name, kind, type=kernel_type, tactic=GEMM)
    assert scored([OTHER_GEMM], with_tactic).skip.tolist() == [-7.0]
    # a profile in which it took time says that it runs, one in which it took none that it does not
    assert scored([OTHER_GEMM], made, trtexec_ns=(5,)).skip.tolist() == [min(skip, -5.0)]
    assert scored([OTHER_GEMM], made, trtexec_ns=(0,)).skip.tolist() == [0.0]
    assert scored([OTHER_GEMM], made, trtexec_ns=(0,)).match[0, 0] <= -9.0


def test_a_profile_tells_the_layers_that_it_has() -> None:
    one = engine(Layer(0, "a", "gemm"), Layer(0, "b", "gemm"), trtexec_ns=(7,))
    assert profile_of(one, one.layers) == [7, None]
    assert profile_of(one, one.layers[1:]) == [None]


def test_as_many_kernels_are_expected_as_layers_of_one_profile_must_run() -> None:
    gemm = Layer(0, "a", "gemm")
    assert expected_kernels(engine(gemm, gemm, Layer(0, "s", "shape"))) == 2
    assert expected_kernels(engine(Layer(0, "s", "shape"))) is None
    for kind in ("foreign_node", "plugin", "loop"):
        assert expected_kernels(engine(gemm, Layer(0, "x", kind))) is None
    first, second = (Layer(0, "a", "gemm", optimization_profile=at) for at in (0, 1))
    assert expected_kernels(engine(gemm, first, first, second)) == 3


def test_kernels_of_one_name_and_layers_of_one_class_have_one_number() -> None:
    one = engine(
        Layer(0, "layer.1/MatMul", "gemm"),
        Layer(0, "layer.22/MatMul", "gemm"),
        Layer(0, "layer.1/MatMul", "gemm", type="x"),
        Layer(0, "layer.1/Add", "gemm"),
    )
    facts = [KernelFacts(GEMM), KernelFacts(GEMM, grid=(2, 1, 1)), KernelFacts(OTHER_GEMM)]
    found = score([*facts, facts[0]], one, one.layers)
    assert found.row.tolist() == [0, 1, 2, 0]
    assert found.name.tolist() == [0, 0, 1]
    assert found.layer_class.tolist() == [0, 0, 1, 2]


# --- what is learnt from a first alignment
# --------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.integers(1, 9))
def test_habits_are_the_log_of_how_much_oftener_than_by_chance(
    seed: int, names: int, size: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    classes = random.integers(0, 3, size)
    classes = np.unique(classes, return_inverse=True)[1].reshape(-1)
    row = random.integers(0, names, count)
    chance = random.random((count, size)) / size
    nothing = np.zeros((names, size))
    scores = Scores(
        row, nothing, nothing > 0, np.zeros(size), nothing, np.zeros(size, np.bool_), classes,
        np.zeros(names), np.zeros(names, np.bool_), nothing > 0, np.arange(names), np.arange(names),
    )  # fmt: skip
    found = habits(scores, chance)
    everything = max(float(chance.sum()), 1.0)
    for name in range(names):
        for layer in range(size):
            mine = [at for at in range(size) if classes[at] == classes[layer]]
            both = sum(
                chance[item, at] for item in range(count) if row[item] == name for at in mine
            )
            of_name = sum(float(chance[item].sum()) for item in range(count) if row[item] == name)
            of_class = float(chance[:, mine].sum())
            lift = math.log((both + 0.5) / (of_name * of_class / everything + 0.5))
            want = min(max(lift * min(of_class / 4, 1), -1.5), 1.5)
            assert found[name, layer] == pytest.approx(want)


def test_a_kernel_as_long_as_the_profile_says_speaks_for_its_layer() -> None:
    profile = [1000, 2000, 4000, 8000, None, 0]
    took = [2000.0, 4000.0, 8000.0, 16000.0, 5000.0, 0.0]  # twice as slow as a whole
    slot = np.array([0, 1, 2, 3, 4, -1])
    found = times([KernelFacts("k", one) for one in took], profile, slot)

    def worth(ratio: float) -> float:
        off = math.log(ratio) / 0.35
        off = off / 2 if off < 0 else off
        return min(max(0.5 - off**2 / 2, -2.0), 0.5)

    for item in range(4):
        for layer in range(4):
            want = worth(took[item] / profile[layer] / 2)  # type: ignore[operator]
            assert found[item, layer] == pytest.approx(want)
    assert found[:, 4:].tolist() == [[0.0, 0.0]] * 6  # of these the profile has no time
    assert found[5].tolist() == [0.0] * 6  # this one's was not measured
    assert found[0, 0] == 0.5
    assert found[3, 0] == -2.0


def test_times_that_scatter_say_less_and_too_few_say_nothing() -> None:
    profile: list[int | None] = [1000] * 5
    took = [1000.0, 1000.0, 2000.0, 4000.0, 4000.0]
    facts = [KernelFacts("k", one) for one in took]
    found = times(facts, profile, np.arange(5))
    spread = 1.5 * math.log(2)
    assert found[3, 0] == pytest.approx(0.5 - (math.log(2) / spread) ** 2 / 2)
    assert not times(facts[:3], profile, np.arange(3)).any()
    # a layer with several kernels says nothing of either
    assert not times(facts[:4], profile, np.array([0, 0, 1, 2])).any()
    assert times(facts[:4], profile, np.array([0, 1, 2, 3])).any()
    assert not re.search("nan", str(found))


@pytest.mark.parametrize(
    ("kind", "skip"),
    [
        ("shape", 0.0),
        ("signal", 0.0),
        ("constant", 0.0),
        ("noop", 0.0),
        ("shuffle", -1.5),
        ("slice", -2.0),
        ("concat", -2.0),
        ("cast", -2.5),
        ("unknown", -1.5),
        ("other", -2.0),
        ("loop", -1.0),
        ("quantize", -4.5),
        ("gather", -3.0),
        ("reformat", -3.0),
        ("plugin", -4.0),
        ("convolution", -6.0),
        ("foreign_node", -6.0),
    ],
)
def test_how_dear_it_is_that_a_layer_runs_nothing_goes_by_its_kind(kind: str, skip: float) -> None:
    assert scored([OTHER_GEMM], Layer(0, "a", kind, type="x")).skip.tolist() == [skip]


def test_a_second_main_kernel_is_worth_as_much_whatever_its_name_says() -> None:
    found = scored([GEMM, OTHER_GEMM], Layer(0, "a", "gemm", tactic=GEMM))
    assert found.match[0, 0] == 6.0
    assert (found.match + found.more).tolist() == [[pytest.approx(-4.6)], [pytest.approx(-4.6)]]
    # a layer that runs any number takes one for as much as it takes any, after its main one
    assert scored([GEMM], Layer(0, "a", "topk", tactic=GEMM)).more[0, 0] == -2.5
    assert scored([GEMM], Layer(0, "a", "foreign_node", tactic=GEMM)).more[0, 0] == 0.0
    assert scored([GEMM], Layer(0, "a", "reduce", tactic=GEMM)).more[0, 0] == -5.0
    assert scored([GEMM], Layer(0, "a", "plugin", tactic=GEMM)).more[0, 0] == -1.2


def test_what_adds_up_parts_is_worth_two_nats_less_as_the_first_and_more_as_another() -> None:
    for kind, again in (("pooling", -1.5), ("foreign_node", 2.0)):
        assert scored([SPLIT_K], Layer(0, "a", kind)).more[0, 0] == again
    tactic = scored([SPLIT_K], Layer(0, "a", "gemm", tactic=SPLIT_K))
    assert tactic.match[0, 0] == 4.0
    assert tactic.more[0, 0] == pytest.approx(-4.6 - 6.0 + 2.0)


def test_numbers_of_blocks_speak_for_a_layer_and_more_against_it() -> None:
    name = "cudnn_generated_fort_native_sm80_matMul_knob_24_64x64x32_5_0"
    outputs = [(), (Tensor("t", (64, 64)),), (Tensor("t", (640, 64)),)]
    plain, right, wrong = scored(
        [name], *(Layer(0, f"{at}/x", "gemm", outputs=one) for at, one in enumerate(outputs))
    ).match[0]
    assert right - plain == pytest.approx(2.0)
    assert wrong - plain == pytest.approx(-3.4)
    # its tactic is enough
    named = scored([name], Layer(0, "a", "gemm", tactic=name, outputs=outputs[2]))
    assert named.match.tolist() == [[6.0]]


@pytest.mark.parametrize(
    ("kind", "symbol", "worth"),
    [
        ("myelin_kernel", "__myl_AddMul_0xff23456789abcdef0123456789abcdef", 4.0),
        ("myelin_kernel", MYELIN, 6.0),
    ],
)
def test_a_symbol_of_the_same_operations_may_be_the_same_code(
    kind: str, symbol: str, worth: float
) -> None:
    found = scored([MYELIN], Layer(0, "a", kind, tactic=symbol))
    assert found.match[0, 0] == worth
    # also where it is another layer's tactic
    found = scored([MYELIN], Layer(0, "a", kind, tactic=symbol), Layer(1, "b", kind, tactic=MYELIN))
    assert found.match[0].tolist() == [worth, 6.0]


def test_of_a_kernel_nothing_is_known_unless_it_is_told() -> None:
    assert KernelFacts("k") == KernelFacts("k", 0.0, (1, 1, 1), None, 0)


def test_a_layer_that_took_no_time_in_a_profile_runs_its_tactic_all_the_same() -> None:
    found = scored([GEMM, OTHER_GEMM], Layer(0, "a", "gemm", tactic=GEMM), trtexec_ns=(0,))
    assert found.match[0, 0] == 6.0
    assert found.skip.tolist() == [-7.0]
    assert found.match[1, 0] > -9.0
    untold = scored([GEMM], Layer(0, "a", "gemm"), trtexec_ns=(0,))
    assert untold.match.tolist() == [[-9.0]]


def test_which_kernels_of_one_family_are_told_alike() -> None:
    found = scored([GEMM, OTHER_GEMM, REFORMAT, OWN], Layer(0, "a", "gemm"))
    assert found.like[0] == found.like[1] != found.like[2]
    assert len(set(found.like.tolist())) == 3
    assert found.name.tolist() == [0, 1, 2, 3]
    # also beside a plugin, for which names count
    beside = scored([GEMM, OTHER_GEMM], Layer(0, "a", "plugin"), Layer(1, "b", "gemm"))
    assert beside.like.tolist() == [0, 0]
    assert beside.match[0, 1] == beside.match[1, 1]
