"""The parts of the headroom table: what is known of kernels, shapes and chains, and at which share
a reason explains enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nsysmap.core.table import MISSING, Row, Table
from nsysmap.timing.headroom import (
    Sources,
    _Figures,
    _is_older,
    _kept_if_fused,
    _kernel,
    _LongestKernel,
    _occupancy,
    _reason,
    _Seen,
    _shortest_ns,
    _tensor_cores,
    _tile_reaches,
    _uses_shared,
    engine_headroom_table,
    headroom_table,
    product_shapes,
)
from nsysmap.timing.least_time import LeastTime
from nsysmap.timing.roofline import Device
from tests.timing.test_headroom import H100, NEEDS, PRODUCT, _sources, _table

Rows = list[dict[str, object]]


def sources(**tables: Rows) -> Sources:
    """One layer with its tables, of which these are others."""
    plain = _sources(NEEDS, {})
    return replace(plain, **{name: _table(name, rows) for name, rows in tables.items()})


# --- kernels
# ------------------------------------------------------------------------------------------


def test_what_is_read_of_the_longest_kernel() -> None:
    kernels = sources(
        kernels=[
            {
                "kernel_id": 0,
                "name": "k",
                "grid_x": 2,
                "grid_y": 3,
                "grid_z": 5,
                "block_x": 7,
                "block_y": 11,
                "block_z": 13,
                "registers": 17,
                "static_shared_bytes": 19,
                "dynamic_shared_bytes": 23,
            },
            {"kernel_id": 1, "grid_x": 2, "grid_y": -1, "grid_z": 5},
        ]
    ).kernels
    assert _kernel(kernels, 0) == _LongestKernel("k", 30, 1001, 17, 42)
    assert _kernel(kernels, 1).blocks == 0


@pytest.mark.parametrize(
    ("medians", "shortest"),
    [([3_000], 3_000), ([3_001], None), ([0, 5, 7], 5), ([1, 7], 1), ([], None)],
)
def test_the_shortest_kernel_tells_what_a_start_takes(
    medians: list[int], shortest: int | None
) -> None:
    rows: Rows = [{"name": str(at), "median_ns": one} for at, one in enumerate(medians)]
    assert _shortest_ns(_table("kernel_totals", rows)) == shortest


@pytest.mark.parametrize(
    ("threads", "registers", "occupancy"),
    [
        (256, 32, 1.0),
        (256, 64, 0.5),
        (33, 0, 1.0),
        (32, 0, 0.5),
        (1024, 40, 0.5),
        (96, 128, 0.234375),
    ],
)
def test_occupancy_is_the_share_of_an_sm_s_warps(
    threads: int, registers: int, occupancy: float
) -> None:
    kernel = _LongestKernel("k", 1, threads, registers, 0)
    assert _occupancy(kernel, H100) == occupancy
    assert _occupancy(kernel, replace(H100, capability=None)) is None
    assert _occupancy(kernel, replace(H100, capability=(6, 1))) is None
    assert _occupancy(replace(kernel, threads=0), H100) is None


@pytest.mark.parametrize(
    ("arch", "capability", "older"),
    [
        ("sm80", (9, 0), True),
        ("sm89", (9, 0), True),
        ("sm90", (9, 0), False),
        ("sm90a", (9, 0), False),
        ("sm80", (10, 0), True),
        ("sm86", (11, 0), True),
        ("sm80", (12, 0), False),  # which has no faster ones
        ("sm80", (8, 9), False),
        ("sm80", None, False),
        ("smxy", (9, 0), False),
        (None, (9, 0), False),
    ],
)
def test_kernels_of_an_older_architecture_where_this_one_has_faster_instructions(
    arch: object, capability: tuple[int, int] | None, older: bool
) -> None:
    assert _is_older(arch, replace(H100, capability=capability)) == older


@pytest.mark.parametrize(
    ("precision", "reaches"),
    [("FP16", 0.5), ("BF16", 0.5), ("FP32", 0.5), ("TF32", 0.5), ("INT8", 0.5), ("FP4", None)],
)
def test_a_tile_of_a_smaller_type_loads_less_and_is_multiplied_as_much_faster(
    precision: str, reaches: float | None
) -> None:
    assert _tile_reaches("64x64", replace(PRODUCT, precision=precision), H100) == reaches


@pytest.mark.parametrize(
    "device", [replace(H100, capability=None), replace(H100, capability=(6, 1))]
)
def test_without_rates_no_tile_reaches_anything(device: Device) -> None:
    assert _tile_reaches("64x64", PRODUCT, device) is None
    assert _tile_reaches("64x64", replace(PRODUCT, precision=None), H100) is None
    assert _tile_reaches("64x0", PRODUCT, H100) is None
    assert _tile_reaches("128x256", PRODUCT, H100) == 1.0
    assert _tile_reaches("64x128", PRODUCT, H100) == pytest.approx(2 / 3)


def test_tensor_cores_are_those_of_most_of_a_layer_s_time_in_products() -> None:
    rows: Rows = [
        {"layer_id": 0, "work": "product", "time_ns": 5, "tensor_cores": "no"},
        {"layer_id": 0, "work": "unknown", "time_ns": 6, "tensor_cores": "yes"},
        {"layer_id": 0, "work": "pointwise", "time_ns": 9, "tensor_cores": "no"},
        {"layer_id": 1, "work": "pointwise", "time_ns": 9, "tensor_cores": "no"},
        {"layer_id": 2, "work": "product", "tensor_cores": "no", "time_ns": MISSING},
        {"layer_id": MISSING, "work": "product", "time_ns": 9, "tensor_cores": "no"},
    ]
    assert _tensor_cores(_table("precision", rows)) == {0: "yes", 2: "no"}


# --- why
# ----------------------------------------------------------------------------------------------


def seen(
    *,
    work: Mapping[str, object] | None = None,
    time_ns: int = 10_000,
    waves: float | None = None,
    start_ns: int | None = None,
    kernels: int | None = 1,
    cores: str = "yes",
    device: Device | None = H100,
    kept: float | None = None,
) -> _Seen:
    held = _sources({**NEEDS, **(work or {})}, {}, roofline={"waves": waves})
    layer: Row = _table("layers", [{"layer_id": 0, "time_ns": time_ns, "kernels": kernels}]).only()
    return _Seen(
        layer,
        time_ns,
        held.work.only(),
        held.roofline.only(),
        None,
        device,
        None,
        cores,
        start_ns,
        kept,
    )


def least(ns: int, *, limit: str = "device-memory") -> LeastTime:
    by_compute = limit == "arithmetic"
    return LeastTime(1, 0 if by_compute else ns, 0, ns if by_compute else None, "model")


@pytest.mark.parametrize(
    ("ns", "reason"),
    [
        (6_000, "memory-bound"),
        (5_999, "memory-bound"),
        (2_001, "memory-bound"),
        (1_999, "latency-bound"),
    ],
)
def test_a_layer_that_nothing_explains_is_bound_by_what_it_is_within_reach_of(
    ns: int, reason: str
) -> None:
    assert _reason(seen(waves=4.0), least(ns), _Figures()) == reason
    by_compute = reason.replace("memory", "compute")
    assert _reason(seen(waves=4.0), least(ns, limit="arithmetic"), _Figures()) == by_compute


@pytest.mark.parametrize(
    ("start_ns", "kernels", "launch"),
    [
        (5_000, 1, True),
        (4_999, 1, False),
        (2_500, 2, True),
        (2_499, 2, False),
        (None, 1, False),
        (5_000, None, True),
    ],
)
def test_a_layer_that_hardly_does_more_than_start_and_end_is_bound_by_launches(
    start_ns: int | None, kernels: int | None, launch: bool
) -> None:
    one = seen(start_ns=start_ns, kernels=kernels, waves=4.0)
    assert (_reason(one, least(1_000), _Figures()) == "launch-bound") == launch
    assert _reason(one, least(6_000), _Figures()) == "memory-bound"  # that goes before it


@pytest.mark.parametrize(
    ("waves", "reason"),
    [
        (0.80, "latency-bound"),  # 2,000 of 8,500
        (0.78, "few-blocks"),  # 2,200
        (0.5, "few-blocks"),
        (1.0, "latency-bound"),
        (1.5, "last-wave"),
        (1.6, "latency-bound"),
        (2.0, "latency-bound"),
        (0.0, "latency-bound"),
        (None, "latency-bound"),
    ],
)
def test_blocks_that_leave_sms_idle_explain_a_quarter_of_the_time_at_least(
    waves: float | None, reason: str
) -> None:
    assert _reason(seen(waves=waves), least(1_500), _Figures()) == reason


@pytest.mark.parametrize(
    ("occupancy", "reason"),
    [(0.775, "low-occupancy"), (0.79, "latency-bound"), (None, "latency-bound")],
)
def test_low_occupancy_explains_layers_without_products(
    occupancy: float | None, reason: str
) -> None:
    plain = seen(work={"does": "pointwise", "macs": 0, "flops": 1})
    assert _reason(plain, least(1_000), _Figures(occupancy=occupancy)) == reason
    assert _reason(seen(), least(1_000), _Figures(occupancy=occupancy)) == "latency-bound"


def test_older_kernels_and_small_tiles_explain_by_the_time_of_the_products() -> None:
    older, small = _Figures(older=True), _Figures(tile_reaches=0.5)
    # 0.587 of the time of the products, and once that time, of what is left of 10,000
    for compute, figures, reason in (
        (3_000, older, "older-kernels"),
        (2_950, older, "compute-bound"),
        (2_000, small, "small-tiles"),
        (1_999, small, "latency-bound"),
        (2_600, _Figures(), "compute-bound"),
    ):
        found = least(compute, limit="arithmetic")
        assert _reason(seen(), found, figures) == reason
    assert _reason(seen(), least(1_000), small) == "latency-bound"


def test_idle_tensor_cores_explain_what_the_cuda_cores_need_longer() -> None:
    # 51.2 T FP16 of the CUDA cores of this GPU
    needs = {"macs": 128_000_000, "flops": 256_000_000}  # 5,000 ns
    assert _reason(seen(work=needs, cores="no"), least(1_000), _Figures()) == "tensor-cores-idle"
    assert _reason(seen(work=needs, cores="yes"), least(1_000), _Figures()) == "latency-bound"
    less = {"macs": 80_000_000, "flops": 160_000_000}  # 3,125 ns, of which 2,125 are too long
    assert _reason(seen(work=less, cores="no"), least(1_000), _Figures()) == "latency-bound"
    none = {**needs, "precision": "FP64"}
    assert _reason(seen(work=none, cores="no"), least(1_000), _Figures()) == "latency-bound"
    without = seen(work=needs, cores="no", device=None)
    assert _reason(without, least(1_000), _Figures()) == "latency-bound"


def test_what_would_go_first_is_named_first() -> None:
    cast = seen(work={"does": "cast", "macs": 0})
    assert _reason(cast, least(9_000), _Figures()) == "format-conversion"
    fused = seen(work={"does": "pointwise", "macs": 0}, kept=0.5)
    assert _reason(fused, least(9_000), _Figures()) == "not-fused"
    assert _reason(replace(fused, kept=0.0), least(9_000), _Figures()) == "not-fused"
    product = seen(kept=0.5)
    assert _reason(product, least(9_000), _Figures()) == "memory-bound"
    for does in ("selection", "resize", "other"):
        other = seen(work={"does": does, "macs": 0}, waves=0.1)
        assert _reason(other, least(1_000), _Figures()) == "other-work"


# --- shapes, tensors and chains
# ---------------------------------------------------------------------------


def shaped(
    work: Mapping[str, object], *tensors: Mapping[str, object], kind: str = "gemm"
) -> object:
    described = {"layer_id": 0, "does": "product", "macs": 2 * 30 * 7, "channels_out": 5, **work}
    held = sources(
        layers=[{"layer_id": 0, "kind": kind, "time_ns": 9}],
        work=[described],
        tensors=[{"layer_id": 0, "name": "x", **one} for one in tensors],
    )
    return product_shapes(held, held.layers.ints("layer_id")).get(0)


def test_the_shape_of_a_product_follows_from_its_result_and_its_operations() -> None:
    out = {"direction": "out", "dimensions": "2x6x5"}
    assert shaped({}, out) == ("product", (12, 5, 7))
    assert shaped({"groups": 1}, out, kind="convolution") == ("convolution", (12, 5, 7))
    # the first result counts, and neither what is read nor what has an open dimension
    first = {"direction": "in", "dimensions": "9x9"}
    opened = {"direction": "out", "dimensions": "-1x5"}
    assert shaped({}, first, opened, out, {"direction": "out", "dimensions": "1x5"}) == (
        "product",
        (12, 5, 7),
    )
    for other in (
        {"groups": 2},
        {"does": "pointwise"},
        {"channels_out": 7},  # does not divide the result
        {"macs": 421},
        {"macs": 0},
        {"macs": MISSING},
        {"channels_out": MISSING},
    ):
        assert shaped(other, out) is None
    assert shaped({}, first) is None
    assert shaped({}) is None


def test_fused_attention_has_a_shape_of_its_own() -> None:
    sides = {"heads": 4, "query_length": 8, "key_length": 16, "head_size": 32}

    def found(**changes: object) -> object:
        held = sources(
            attention=[{"block_id": 0, "softmax_layer": 0, "fused": True, **sides, **changes}]
        )
        return product_shapes(held, held.layers.ints("layer_id")).get(0)

    assert found() == ("attention", (4, 8, 16, 32))
    assert found(fused=False) is None
    assert found(key_length=MISSING) is None


def test_tensors_are_those_that_the_layers_share_with_any_other() -> None:
    tensors = _table(
        "tensors",
        [
            {"layer_id": 0, "name": "a", "direction": "out", "bytes": 4},
            {"layer_id": 1, "name": "a", "direction": "in", "bytes": 4},
            {"layer_id": 1, "name": "b", "direction": "out", "bytes": MISSING},
            {"layer_id": 2, "name": "c", "direction": "in", "bytes": 4},
        ],
    )
    held = sources().layers.ints("layer_id")  # layer 0
    found = _uses_shared(tensors, held)
    assert {
        layer: [(one.name, one.direction, one.bytes) for one in uses]
        for layer, uses in found.items()
    } == {
        0: [("a", "out", 4)],
        1: [("a", "in", 4)],
    }


def test_layers_of_chains_keep_what_the_chain_does_not_save() -> None:
    chain = {"kind": "pointwise", "separated_by": "nothing"}
    held = sources(
        work=[
            {"layer_id": at, "bytes_in": 100, "bytes_out": 100, "bytes": 200, "does": "pointwise"}
            for at in range(6)
        ]
        + [{"layer_id": 6, "bytes": MISSING, "does": "pointwise"}],
        chains=[
            {"chain_id": 0, "saved_bytes": 150, **chain},
            {"chain_id": 1, "saved_bytes": 300, **chain},
            {"chain_id": 2, "saved_bytes": 900, **chain},
            {"chain_id": 3, "saved_bytes": MISSING, **chain},
            {"chain_id": 4, "saved_bytes": 100, **chain},
        ],
        chain_layers=[
            {"chain_id": 0, "layer_id": 0, "role": "pointwise"},
            {"chain_id": 0, "layer_id": 1, "role": "pointwise"},
            {"chain_id": 0, "layer_id": 2, "role": "product"},
            {"chain_id": 1, "layer_id": 1, "role": "pointwise"},
            {"chain_id": 1, "layer_id": 3, "role": "pointwise"},
            {"chain_id": 2, "layer_id": 4, "role": "pointwise"},
            {"chain_id": 3, "layer_id": 5, "role": "pointwise"},
            {"chain_id": 4, "layer_id": 6, "role": "pointwise"},
        ],
    )
    assert _kept_if_fused(held) == {0: 0.75, 1: 0.25, 3: 0.25, 4: 0.0, 5: 1.0, 6: 1.0}


def test_of_attention_in_parts_a_fused_kernel_leaves_softmax_and_what_moves_out() -> None:
    held = sources(
        attention=[{"block_id": 0, "fused": False}, {"block_id": 1, "fused": True}],
        attention_layers=[
            {"block_id": 0, "layer_id": 1, "role": "softmax"},
            {"block_id": 0, "layer_id": 2, "role": "product"},
            {"block_id": 0, "layer_id": 3, "role": "movement"},
            {"block_id": 0, "layer_id": 4, "role": "pointwise"},
            {"block_id": 1, "layer_id": 5, "role": "softmax"},
        ],
    )
    assert _kept_if_fused(held) == {1: 0.0, 3: 0.0, 4: 0.0}


# --- whole tables
# ----------------------------------------------------------------------------------------


def rows_of(table: Table, *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in names) for row in table]


def three_layers() -> Sources:
    """Two layers of one engine, one of which shows nothing, and one without an engine."""
    layer = {"name": "a", "kind": "gemm", "kernels": 1}
    product = {"does": "product", "precision": "FP16", "tensor_cores": "yes", "bytes": 6_400_000}
    return sources(
        layers=[
            {"layer_id": 0, "engine": 0, "time_ns": 20_000, **layer},
            {"layer_id": 1, "engine": 0, "time_ns": 10_000, **layer},
            {"layer_id": 2, "engine": MISSING, "time_ns": 40_000, **layer},
            {"layer_id": 3, "engine": 0, "time_ns": 0, **layer},
            {"layer_id": 4, "engine": 0, "time_ns": MISSING, **layer},
        ],
        work=[
            {"layer_id": 0, **product, **NEEDS, "weight_bytes": 7},
            {"layer_id": 1, "does": "region", "weight_bytes": 0},
            {"layer_id": 2, **product, **NEEDS, "weight_bytes": 3},
            {"layer_id": 4, "does": "region", "weight_bytes": 5},
        ],
        roofline=[],
        precision=[],
    )


def test_the_largest_time_that_could_go_is_first_and_what_is_unknown_last() -> None:
    table = headroom_table(three_layers())
    assert rows_of(table, "rank", "layer_id", "headroom_ns", "least_ns", "tensor_cores") == [
        (1, 2, 38_000, 2_000, "unknown"),
        (2, 0, 18_000, 2_000, "unknown"),
        (3, 1, None, None, "unknown"),
    ]
    assert [row["share_of_headroom"] for row in table] == [38 / 56, 18 / 56, None]
    # the kernel of layer 0 alone is in the trace
    assert [row["blocks"] for row in table] == [None, 1_000, None]


def test_engines_together_with_what_they_weigh() -> None:
    held = three_layers()
    whole = engine_headroom_table(held, headroom_table(held))
    names = ("engine", "layers", "known_layers", "time_ns", "known_ns", "least_ns", "weight_bytes")
    assert rows_of(whole, *names) == [
        (0, 2, 1, 30_000, 20_000, 2_000, 12),
        (None, 1, 1, 40_000, 40_000, 2_000, 3),
    ]
    assert rows_of(whole, "counted_layers", "headroom_ns", "compute_ns", "reachable_ns") == [
        (0, 18_000, 2_000, None),
        (0, 38_000, 2_000, None),
    ]


def test_what_is_reachable_counts_no_more_than_the_time_itself() -> None:
    held = three_layers()
    table = headroom_table(held)
    changed = [
        {**row, "reachable_ns": known, "least_from": "counters" if known else "model"}
        for row, known in zip(table.records(), (50_000, 15_000, None), strict=True)
    ]
    whole = engine_headroom_table(held, Table.of_rows(table.spec, changed))
    assert rows_of(whole, "compared_ns", "reachable_ns", "counted_layers") == [
        (20_000, 15_000, 1),
        (40_000, 40_000, 1),
    ]


def test_a_layer_is_on_the_gpu_of_its_longest_kernel() -> None:
    held = three_layers()
    gpu = held.devices.records()[0]
    slow = {**gpu, "device": 1, "clock_hz": 500_000_000}
    kernel = held.kernels.records()[0]
    two = replace(
        held,
        devices=Table.of_rows(held.devices.spec, [gpu, slow]),
        kernels=Table.of_rows(
            held.kernels.spec,
            [{**kernel, "device": 1}, {**kernel, "kernel_id": 1, "layer_id": 2, "device": 9}],
        ),
    )
    table = headroom_table(two)
    # where that GPU is not described, or no kernel is there, the first one counts
    assert rows_of(table, "layer_id", "compute_ns") == [(2, 2_000), (0, 4_000), (1, None)]
    none = replace(two, devices=Table.of_rows(held.devices.spec, []))
    assert rows_of(headroom_table(none), "least_ns", "sms") == [(None, None)] * 3
