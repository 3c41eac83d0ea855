"""The least time for bytes and products by hand, what the L2 cache holds, and the reason why a
layer takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nsysmap.advice.paste import TIMES_TACTICS, TRIALS
from nsysmap.answer.headroom import TRANSPOSED_NORM
from nsysmap.core.engine_schema import (
    ATTENTION,
    ATTENTION_LAYERS,
    CHAIN_LAYERS,
    CHAINS,
    ENGINES,
    LAYERS,
    TENSORS,
    WORK,
)
from nsysmap.core.headroom_reasons import REASONS, TRIED_BY
from nsysmap.core.result_schema import KERNEL_TOTALS, KERNELS, PRECISION, ROOFLINE
from nsysmap.core.table import Row, Table
from nsysmap.core.trace_schema import DEVICES
from nsysmap.timing.headroom import (
    Sources,
    _tile_reaches,
    engine_headroom_table,
    headroom_table,
)
from nsysmap.timing.least_time import (
    LayerBytes,
    LeastTime,
    Measurement,
    TensorUse,
    bytes_from_memory,
    cache_holds,
    least_time,
)
from nsysmap.timing.roofline import Device, Needed

H100 = Device("H100", (9, 0), 100, 1_000_000_000, 1_000_000_000_000)
"""100 SMs at 1 GHz and 1 TB/s: a byte of memory takes 1 ps, of the cache 0.156; 409.6 T FP16."""


def _least(need: Needed, **known: object) -> LeastTime:
    given: dict[str, object] = {
        "time_ns": None,
        "from_memory": None,
        "weight_bytes": None,
        "counted": Measurement(),
    }
    return least_time(need, H100, **{**given, **known})  # type: ignore[arg-type]


PRODUCT = Needed(6_400_000, 819_200_000, 409_600_000, "FP16", "yes", None)


def test_least_time_is_the_longest_of_memory_cache_and_products() -> None:
    cached = _least(PRODUCT, from_memory=0)
    assert (cached.memory_ns, cached.cache_ns, cached.compute_ns) == (0, 1_000, 2_000)
    assert (cached.least_ns, cached.limit, cached.source) == (2_000, "arithmetic", "model")
    weights = _least(PRODUCT, from_memory=3_000_000)
    assert (weights.least_ns, weights.limit) == (3_000, "device-memory")


def test_fp32_products_need_what_tensor_cores_take_with_tf32() -> None:
    need = Needed(1, 819_200_000, 409_600_000, "FP32", "no", None)
    assert _least(need).compute_ns == 4_000


def test_of_counters_and_model_the_smaller_counts() -> None:
    counted = _least(
        PRODUCT, from_memory=6_000_000, time_ns=10_000, counted=Measurement(2_000_000, 0.1)
    )
    assert (counted.memory_ns, counted.compute_ns, counted.source) == (2_000, 1_000, "counters")
    wasted = _least(PRODUCT, time_ns=10_000, counted=Measurement(60_000_000, 0.9))
    assert wasted.memory_bytes == 6_400_000, "more was moved than its tensors have"
    assert wasted.compute_ns == 2_000, "tiles were padded"


def test_counters_alone_suffice_and_nothing_known_is_nothing() -> None:
    unknown = Needed(None, None, None, None, "unknown", None)
    assert _least(unknown, time_ns=10_000, counted=Measurement(5_000_000, 0.2)).least_ns == 5_000
    nothing = _least(unknown, time_ns=10_000)
    assert (nothing.least_ns, nothing.source) == (None, None)


def test_what_tensor_cores_did_beside_a_layer_without_products_is_not_its_own() -> None:
    moves = Needed(6_400_000, None, 0, None, "no", None)
    assert _least(moves, time_ns=10_000, counted=Measurement(None, 0.3)).compute_ns is None


def test_of_dynamic_shapes_the_weights_are_known() -> None:
    dynamic = Needed(None, None, None, "FP16", "yes", "a dimension is dynamic")
    found = _least(dynamic, weight_bytes=2_000_000, from_memory=2_000_000)
    assert (found.least_ns, found.source) == (2_000, "weights")


def test_least_time_is_never_longer_than_what_was_measured() -> None:
    cached = _least(PRODUCT, from_memory=6_400_000, time_ns=5_000)
    assert (cached.memory_ns, cached.least_ns) == (None, 2_000), "the cache held it after all"
    assert _least(PRODUCT, from_memory=0, time_ns=1_900).least_ns is None, "it did less"


def test_two_partitions_of_the_cache_hold_half_of_what_all_sms_read() -> None:
    assert cache_holds(60 << 20, (9, 0)) == 30 << 20
    assert cache_holds(72 << 20, (8, 9)) == 72 << 20
    assert cache_holds(None, (9, 0)) > 200 << 20


def _tensor(name: str, direction: str, size: int) -> TensorUse:
    return TensorUse(name, direction, size)


def _work(bytes_in: int, bytes_out: int, weights: int) -> LayerBytes:
    return LayerBytes(bytes_in, bytes_out, weights)


def test_weights_of_an_engine_that_the_cache_holds_need_no_memory() -> None:
    work = {0: _work(10, 10, 40), 1: _work(10, 10, 40)}
    tensors = {0: [_tensor("a", "in", 10), _tensor("b", "out", 10)], 1: [_tensor("b", "in", 10)]}
    assert bytes_from_memory([0, 1], work, tensors, 100) == {0: 0, 1: 0}
    assert bytes_from_memory([0, 1], work, tensors, 99) == {0: 40, 1: 40}


def test_what_the_next_layer_reads_is_cached_and_a_skip_over_much_is_not() -> None:
    work = {0: _work(10, 10, 0), 1: _work(10, 10, 200), 2: _work(20, 10, 0)}
    tensors = {
        0: [_tensor("x", "in", 10), _tensor("a", "out", 10)],
        1: [_tensor("a", "in", 10), _tensor("b", "out", 10)],
        2: [_tensor("b", "in", 10), _tensor("x", "in", 10), _tensor("y", "out", 10)],
    }
    assert bytes_from_memory([0, 1, 2], work, tensors, 100) == {0: 0, 1: 200, 2: 10}


def test_a_tensor_larger_than_the_cache_comes_from_memory() -> None:
    work = {0: _work(10, 500, 0), 1: _work(500, 10, 0)}
    tensors = {0: [_tensor("a", "out", 500)], 1: [_tensor("a", "in", 500)]}
    assert bytes_from_memory([0, 1], work, tensors, 100) == {0: 500, 1: 500}


# --- the table

NEEDS = {"macs": 409_600_000, "flops": 819_200_000, "bytes_in": 3_200_000, "bytes_out": 3_200_000}


def _sources(
    work: Mapping[str, object],
    kernel: Mapping[str, object],
    *,
    time_ns: int = 20_000,
    roofline: Mapping[str, object] | None = None,
    tensor_cores: str = "yes",
    shortest_ns: int = 1_000,
    chain: bool = False,
) -> Sources:
    """One layer, with one kernel, on the GPU above."""
    layer = {"layer_id": 0, "engine": 0, "layer_index": 0, "name": "a", "kind": "gemm"}
    name = str(kernel.get("name", "k"))
    described = {"does": "product", "precision": "FP16", "tensor_cores": tensor_cores, **work}
    described["bytes"] = int(str(described.get("bytes_in") or 0)) + int(
        str(described.get("bytes_out") or 0)
    )
    rows: dict[str, list[dict[str, object]]] = {
        "layers": [{**layer, "time_ns": time_ns, "kernels": 1}],
        "engines": [{"engine": 0, "source": "e", "layers": 1, "detailed": True}],
        "work": [{"layer_id": 0, **described}],
        "tensors": [],
        "roofline": [
            {
                "layer_id": 0,
                "verdict": "unknown",
                "reason": "",
                "verdict_from": "model",
                **(roofline or {}),
            }
        ],
        "precision": [
            {
                "layer_id": 0,
                "work": "product",
                "tensor_cores": tensor_cores,
                "time_ns": time_ns,
            }
        ],
        "chains": [
            {
                "chain_id": 0,
                "engine": 0,
                "kind": "pointwise",
                "layers": 2,
                "first_layer": 0,
                "last_layer": 0,
                "saved_bytes": 4_800_000,
                "separated_by": "nothing",
                "in_attention": False,
            }
        ]
        * chain,
        "chain_layers": [{"chain_id": 0, "position": 0, "layer_id": 0, "role": "pointwise"}]
        * chain,
        "attention": [],
        "attention_layers": [],
        "devices": [
            {
                "device": 0,
                "name": H100.name,
                "compute_major": 9,
                "compute_minor": 0,
                "sm_count": H100.sm_count,
                "clock_hz": H100.clock_hz,
                "bandwidth_bytes_per_s": H100.bandwidth_bytes_per_s,
                "l2_bytes": 60 << 20,
            }
        ],
        "kernels": [
            {
                "kernel_id": 0,
                "start_ns": 0,
                "end_ns": time_ns,
                "layer_id": 0,
                "grid_x": 1_000,
                "grid_y": 1,
                "grid_z": 1,
                "block_x": 256,
                "block_y": 1,
                "block_z": 1,
                "registers": 32,
                "static_shared_bytes": 0,
                "dynamic_shared_bytes": 0,
                **kernel,
                "name": name,
            }
        ],
        "kernel_totals": [{"name": name, "median_ns": shortest_ns, "count": 1}],
    }
    specs = (
        *(LAYERS, ENGINES, WORK, TENSORS, ROOFLINE, PRECISION, CHAINS, CHAIN_LAYERS, ATTENTION),
        *(ATTENTION_LAYERS, DEVICES, KERNELS, KERNEL_TOTALS),
    )
    return Sources(**{spec.name: _table(spec.name, rows[spec.name]) for spec in specs})


def _table(name: str, rows: list[dict[str, object]]) -> Table:
    spec = next(
        one
        for one in (
            *(LAYERS, ENGINES, WORK, TENSORS, ROOFLINE, PRECISION, CHAINS, CHAIN_LAYERS),
            *(ATTENTION, ATTENTION_LAYERS, DEVICES, KERNELS, KERNEL_TOTALS),
        )
        if one.name == name
    )
    blank = {
        column.name: {"int": 0, "float": 0.0, "bool": False, "text": ""}[column.kind]
        for column in spec.columns
        if not column.nullable
    }
    return Table.of_rows(spec, [{**blank, **row} for row in rows])


def _only(sources: Sources) -> Row:
    return headroom_table(sources).only()


@pytest.mark.parametrize(
    ("work", "kernel", "more", "reason"),
    [
        (NEEDS, {}, {"time_ns": 3_000}, "compute-bound"),
        (NEEDS, {}, {"time_ns": 8_000, "roofline": {"waves": 1.0}}, "compute-bound"),
        (NEEDS, {}, {"time_ns": 20_000, "roofline": {"waves": 1.0}}, "latency-bound"),
        (NEEDS, {}, {"roofline": {"waves": 0.2}}, "few-blocks"),
        (NEEDS, {}, {"roofline": {"waves": 1.1}}, "last-wave"),
        (NEEDS, {}, {"time_ns": 21_000, "shortest_ns": 2_900}, "latency-bound"),
        (NEEDS, {}, {"time_ns": 5_000, "shortest_ns": 2_600}, "launch-bound"),
        (NEEDS, {}, {"time_ns": 5_000, "shortest_ns": 4_000}, "compute-bound"),
        ({**NEEDS, "does": "reformat", "macs": 0}, {}, {}, "format-conversion"),
        ({**NEEDS, "does": "pointwise", "macs": 0}, {}, {"chain": True}, "not-fused"),
        ({**NEEDS, "does": "selection", "macs": 0, "flops": 1}, {}, {}, "other-work"),
        ({**NEEDS, "does": "region", "macs": None, "flops": None}, {}, {}, "unknown"),
        (
            {**NEEDS, "does": "pointwise", "macs": 0, "flops": 1},
            {"registers": 255},
            {"roofline": {"waves": 3.0}},
            "low-occupancy",
        ),
    ],
)
def test_reasons(
    work: Mapping[str, object], kernel: Mapping[str, object], more: dict[str, object], reason: str
) -> None:
    assert _only(_sources(work, kernel, **more)).text("reason") == reason  # type: ignore[arg-type]


def test_tensor_cores_idle_only_where_they_would_be_faster() -> None:
    busy = {**NEEDS, "macs": 4_096_000_000, "flops": 8_192_000_000}
    found = _only(_sources(busy, {}, time_ns=300_000, tensor_cores="no"))
    assert (found.text("reason"), found.integer("least_ns")) == ("tensor-cores-idle", 20_000)
    vector = {**NEEDS, "macs": 3_200_000, "flops": 6_400_000}
    assert _only(_sources(vector, {}, tensor_cores="no")).text("reason") != "tensor-cores-idle"


def test_kernels_of_an_older_architecture_and_small_tiles() -> None:
    """Both at the peak that they can reach, of which the names tell."""
    older = {"name": "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_stage3"}
    found = _only(_sources(NEEDS, older, time_ns=3_500, roofline={"waves": 1.0}))
    assert (found.text("reason"), found.text("kernel_arch")) == ("older-kernels", "sm80")
    small = {"name": "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1"}
    found = _only(_sources(NEEDS, small, time_ns=4_000, roofline={"waves": 1.0}))
    assert found.text("reason") == "small-tiles"
    # 2 * 64 * 64 operations take 2 clocks, 128 halves of 2 bytes 4
    assert found.real("tile_reaches") == pytest.approx(0.5)


def test_conversions_could_go_and_of_a_chain_what_it_saves() -> None:
    work = {**NEEDS, "does": "cast", "macs": 0, "flops": 0}
    cast = _only(_sources(work, {}))
    assert (cast.integer("least_ns"), cast.integer("headroom_ns")) == (0, 20_000)
    chained = _only(_sources({**work, "does": "pointwise"}, {}, chain=True))
    assert chained.integer("least_ns") == 250, "a quarter of 1 us: three quarters are saved"


def test_engine_headroom_adds_up_and_leaves_out_the_unknown() -> None:
    sources = _sources(NEEDS, {})
    whole = engine_headroom_table(sources, headroom_table(sources)).only()
    assert (whole.integer("known_ns"), whole.integer("least_ns")) == (20_000, 2_000)
    opaque = _sources({"does": "region", "bytes_in": 10, "bytes_out": 10}, {})
    whole = engine_headroom_table(opaque, headroom_table(opaque)).only()
    assert (whole.integer("time_ns"), whole.integer("known_ns")) == (20_000, 0)
    assert whole["least_ns"] is None


def test_every_reason_and_trial_is_known_to_those_who_use_it() -> None:
    by_type, by_rule = {"half", "fp8", "int8"}, {"quantized-latency-bound"}
    assert set(TRIED_BY) | by_type | by_rule | {TRANSPOSED_NORM} == set(TRIALS)
    assert set(TRIALS) >= TIMES_TACTICS
    assert set().union(*TRIED_BY.values()) <= set(REASONS)


@pytest.mark.parametrize(
    ("tile", "reaches"),
    [
        ("64x64", 0.5),
        ("256x128x32", 1.0),
        ("64xq", None),
        ("qx64", None),
        ("64", None),
        ("0x64", None),
        (None, None),
    ],
)
def test_what_a_tile_of_a_kernel_name_can_reach(tile: str | None, reaches: float | None) -> None:
    assert _tile_reaches(tile, PRODUCT, H100) == reaches


def test_of_a_gpu_without_a_number_of_sms_the_cache_s_rate_is_unknown() -> None:
    for device in (replace(H100, sm_count=None), replace(H100, clock_hz=None)):
        assert (
            least_time(
                PRODUCT,
                device,
                time_ns=None,
                from_memory=0,
                weight_bytes=None,
                counted=Measurement(),
            ).cache_ns
            is None
        )
