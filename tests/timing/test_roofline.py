"""Peak rates against datasheets, occupancy against the programming guide, floors and verdicts by
hand.
"""

from __future__ import annotations

import pytest

from nsysmap.core.engine_schema import LAYERS, WORK
from nsysmap.core.result_schema import KERNELS
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import DEVICES
from nsysmap.timing.peak_rates import blocks_per_sm, operations_per_clock
from nsysmap.timing.roofline import Device, LayerSeen, Needed, limit_of, roofline_table

H100 = Device("H100", (9, 0), 132, 1_830_000_000, 3_350_000_000_000)


@pytest.mark.parametrize(
    ("capability", "sms", "clock_ghz", "precision", "datasheet_tflops"),
    [
        ((7, 0), 80, 1.53, "FP16", 125),  # V100 SXM2
        ((7, 5), 40, 1.59, "FP16", 65),  # T4
        ((7, 5), 40, 1.59, "INT8", 130),
        ((7, 5), 40, 1.59, "INT4", 260),
        ((8, 0), 108, 1.41, "FP16", 312),  # A100
        ((8, 0), 108, 1.41, "TF32", 156),
        ((8, 0), 108, 1.41, "INT8", 624),
        ((8, 0), 108, 1.41, "INT4", 1248),
        ((8, 6), 72, 1.695, "FP16", 125),  # A10
        ((8, 0), 56, 1.44, "FP16", 165),  # A30
        ((8, 6), 82, 1.695, "FP16", 142),  # RTX 3090, accumulating in FP16
        ((8, 6), 84, 1.8, "FP16", 154.8),  # RTX A6000
        ((8, 6), 84, 1.8, "INT8", 309.7),
        ((8, 6), 84, 1.8, "INT4", 619.3),
        ((8, 6), 84, 1.74, "FP16", 149.7),  # A40
        ((8, 6), 84, 1.74, "TF32", 74.8),
        ((8, 6), 84, 1.74, "INT8", 299.3),
        ((8, 6), 84, 1.74, "INT4", 598.7),
        ((8, 6), 48, 1.56, "FP16", 76.7),  # RTX A4000, dense
        ((8, 7), 16, 1.3, "INT8", 85),  # Jetson AGX Orin, dense
        ((8, 9), 58, 2.04, "FP8", 242.5),  # L4, dense
        ((8, 9), 58, 2.04, "FP16", 121),
        ((8, 9), 58, 2.04, "TF32", 60),
        ((8, 9), 128, 2.52, "FP16", 330.3),  # RTX 4090, dense, accumulating in FP16
        ((8, 9), 128, 2.52, "INT8", 660.6),
        ((8, 9), 128, 2.52, "INT4", 1321.2),
        ((8, 9), 142, 2.52, "FP16", 362),  # L40S, dense
        ((8, 9), 142, 2.52, "TF32", 183.2),
        ((8, 9), 142, 2.52, "INT8", 733),
        ((9, 0), 132, 1.83, "FP16", 989.4),  # H100 SXM
        ((9, 0), 132, 1.83, "FP8", 1979),
        ((9, 0), 132, 1.83, "TF32", 494.7),
        ((9, 0), 132, 1.83, "INT8", 1979),
        ((9, 0), 114, 1.62, "INT8", 1513),  # H100 PCIe, dense
        ((10, 0), 148, 1.85, "FP4", 9000),  # B200, dense
        ((10, 0), 148, 1.85, "FP16", 2250),
        ((10, 0), 148, 1.85, "FP8", 4500),
        ((10, 0), 148, 1.85, "INT8", 4500),
        ((10, 3), 160, 1.92, "FP4", 15_000),  # GB300, dense
        ((10, 3), 160, 1.92, "FP8", 5000),
        ((10, 3), 148, 1.965, "INT8", 150),  # B300
        ((12, 0), 170, 2.407, "FP4", 1676),  # RTX 5090, dense
        ((11, 0), 20, 1.575, "FP4", 1035),  # Jetson T5000, dense
        ((12, 0), 188, 2.617, "FP16", 503.8),  # RTX PRO 6000
        (
            (12, 1),
            48,
            2.52,
            "FP4",
            500,
        ),  # GB10 (DGX Spark), dense, at the clock that its 31 T of FP32 take
    ],
)
def test_tensor_core_rates_agree_with_datasheets(
    capability: tuple[int, int], sms: int, clock_ghz: float, precision: str, datasheet_tflops: float
) -> None:
    rate = operations_per_clock(capability, precision, tensor_cores=True)
    assert rate is not None
    assert rate * sms * clock_ghz / 1e3 == pytest.approx(datasheet_tflops, rel=0.015)


def test_a_type_that_tensor_cores_do_not_compute_in_has_no_rate_of_theirs() -> None:
    assert operations_per_clock((7, 0), "INT8", tensor_cores=True) is None
    assert operations_per_clock((7, 5), "TF32", tensor_cores=True) is None
    assert operations_per_clock((8, 6), "FP8", tensor_cores=True) is None
    assert operations_per_clock((9, 0), "FP4", tensor_cores=True) is None
    assert operations_per_clock((9, 0), "INT4", tensor_cores=True) is None


@pytest.mark.parametrize(
    ("capability", "sms", "clock_ghz", "datasheet_tflops"),
    [
        ((7, 0), 80, 1.53, 15.7),
        ((7, 5), 40, 1.59, 8.1),
        ((8, 6), 84, 1.74, 37.4),
        ((8, 6), 82, 1.695, 35.6),
        ((8, 6), 84, 1.8, 38.7),
        ((8, 7), 16, 1.3, 5.3),
        ((12, 1), 48, 2.52, 31.0),
        ((8, 9), 128, 2.52, 82.6),
        ((8, 0), 108, 1.41, 19.5),
        ((8, 6), 72, 1.695, 31.2),
        ((8, 9), 58, 2.04, 30.3),
        ((9, 0), 132, 1.98, 67),
    ],
)
def test_fp32_rates_agree_with_datasheets(
    capability: tuple[int, int], sms: int, clock_ghz: float, datasheet_tflops: float
) -> None:
    rate = operations_per_clock(capability, "FP32", tensor_cores=False)
    assert rate is not None
    assert rate * sms * clock_ghz / 1e3 == pytest.approx(datasheet_tflops, rel=0.015)


def test_types_and_architectures_that_are_not_in_the_table_have_no_rate() -> None:
    assert operations_per_clock((8, 0), "FP8", tensor_cores=True) is None
    assert operations_per_clock((7, 5), "BF16", tensor_cores=True) is None
    assert operations_per_clock((6, 1), "FP32", tensor_cores=False) is None
    assert operations_per_clock((8, 0), "FP32", tensor_cores=True) == operations_per_clock(
        (8, 0), "TF32", tensor_cores=True
    )


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "expected"),
    [
        ((8, 0), 256, 32, 0, 8),  # threads: 2048 / 256
        ((8, 0), 128, 255, 0, 2),  # registers: 65536 / (4 warps * 32 * 256)
        ((8, 0), 128, 32, 48 * 1024, 3),  # shared: 164 KiB / 49 KiB
        ((8, 0), 32, 16, 0, 32),  # blocks
        ((7, 5), 256, 64, 0, 4),  # 1024 threads
        ((9, 0), 384, 168, 213 * 1024, 1),
        ((9, 0), 33, 0, 0, 32),
        ((6, 1), 256, 32, 0, None),
        ((9, 0), 0, 32, 0, None),
    ],
)
def test_blocks_of_an_sm_equal_those_worked_out_by_hand(
    capability: tuple[int, int], threads: int, registers: int, shared: int, expected: int | None
) -> None:
    assert blocks_per_sm(capability, threads, registers, shared) == expected


def need(
    moved: int | None,
    flops: int | None,
    macs: int | None = 0,
    precision: str | None = "FP16",
    cores: str = "yes",
) -> Needed:
    return Needed(
        moved,
        flops,
        macs,
        precision,
        cores,
        "a dimension is not in the file" if flops is None else None,
    )


def test_floors_are_amounts_over_rates() -> None:
    limit = limit_of(need(3_350_000, 989_429_760, 494_714_880), LayerSeen(2000, 1000, 1.0), H100)
    assert limit.bytes_bound_ns == 1000
    assert limit.flops_bound_ns == 1000
    assert limit.peak_flops_per_s == pytest.approx(4096 * 132 * 1.83e9)
    assert limit.roofline_fraction == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("needed", "measured", "verdict"),
    [
        (need(33_500_000, 1000), LayerSeen(12_000, 4000), "memory-bound"),
        (
            need(1_000_000, 98_900_000_000, 49_450_000_000),
            LayerSeen(150_000, 4000),
            "compute-bound",
        ),
        (need(100_000, 1000), LayerSeen(3_000, 400), "latency-bound"),  # short and far
        (need(1_000_000, 1000), LayerSeen(12_000, 4000), "memory-bound"),  # as far, but not short
        (
            need(1_000_000, 1_000_000_000, 500_000_000),
            LayerSeen(50_000, 20),
            "latency-bound",
        ),  # 20 blocks on 132 SMs
        (
            need(100_000_000, 1000),
            LayerSeen(32_000, 100),
            "memory-bound",
        ),  # few blocks, near the limit all the same
        (
            need(100_000_000, 1000),
            LayerSeen(10_000, 4000),
            "unknown",
        ),  # faster than memory: level-2 cache
        (need(None, None, None), LayerSeen(10_000, 4000), "unknown"),
        (need(1_000_000, None, None), LayerSeen(10_000, 4000), "unknown"),
        (need(1_000_000, 1000), LayerSeen(None), "unknown"),
        (need(1_000_000, 2_000_000, 1_000_000, precision=None), LayerSeen(20_000, 4000), "unknown"),
    ],
)
def test_the_verdict_says_what_holds_a_layer_back(
    needed: Needed, measured: LayerSeen, verdict: str
) -> None:
    limit = limit_of(needed, measured, H100)
    assert limit.verdict == verdict
    assert limit.reason


def test_products_off_the_tensor_cores_are_held_to_the_cuda_cores_rate() -> None:
    on, off = (
        limit_of(need(1, 10**9, 5 * 10**8, "FP32", cores), LayerSeen(10**6), H100).peak_flops_per_s
        for cores in ("yes", "no")
    )
    assert on == pytest.approx(2048 * 132 * 1.83e9)
    assert off == pytest.approx(256 * 132 * 1.83e9)


def test_without_a_device_nothing_is_claimed() -> None:
    limit = limit_of(need(1000, 1000), LayerSeen(1000), None)
    assert (limit.verdict, limit.bound_ns) == ("unknown", None)
    assert (
        limit_of(need(1000, 1000), LayerSeen(1000), Device("old", None, None, None, None)).verdict
        == "unknown"
    )


def test_the_table_takes_the_longest_kernel_of_each_layer() -> None:
    layers = Table.of_rows(
        LAYERS,
        [
            {"layer_id": 0, "name": "a", "kind": "gemm", "time_ns": 20_000},
            {"layer_id": 1, "name": "b", "kind": "myelin_kernel"},
        ],
    )
    work = Table.of_rows(
        WORK,
        [
            {
                "layer_id": 0,
                "macs": 500_000_000,
                "flops": 1_000_000_000,
                "bytes": 33_500_000,
                "precision": "FP16",
                "tensor_cores": "yes",
            },
            {"layer_id": 1, "macs": 0, "flops": 0, "bytes": 0, "tensor_cores": "no"},
        ],
    )
    devices = Table.of_rows(
        DEVICES,
        [
            {
                "device": 0,
                "name": "H100",
                "compute_major": 9,
                "compute_minor": 0,
                "sm_count": 132,
                "clock_hz": 1_830_000_000,
                "bandwidth_bytes_per_s": 3_350_000_000_000,
            }
        ],
    )
    launch = {
        "grid_y": 1,
        "grid_z": 1,
        "block_x": 256,
        "block_y": 1,
        "block_z": 1,
        "registers": 32,
        "layer_id": 0,
    }
    kernels = Table.of_rows(
        KERNELS,
        [
            {"start_ns": 0, "end_ns": 5_000, "grid_x": 1, **launch},
            {"start_ns": 0, "end_ns": 15_000, "grid_x": 1056, **launch},
            {"start_ns": 0, "end_ns": 9_000_000, "grid_x": 7, **{**launch, "layer_id": None}},
        ],
    )
    first, second = roofline_table(layers, work, devices, kernels).records()
    assert (first["blocks"], first["waves"], first["bytes_bound_ns"], first["verdict"]) == (
        1056,
        1.0,
        10_000,
        "memory-bound",
    )
    assert (second["verdict"], second["blocks"]) == ("unknown", None)


def test_a_layer_is_held_to_the_rates_of_the_gpu_that_ran_it() -> None:
    """Layer 0 ran on the GPU with half the bandwidth, layer 1 nowhere: it takes the first one."""
    layers = Table.of_rows(
        LAYERS,
        [
            {"layer_id": 0, "name": "a", "kind": "gemm", "time_ns": 20_000},
            {"layer_id": 1, "name": "b", "kind": "gemm"},
        ],
    )
    amounts = {"macs": 0, "flops": 0, "bytes": 2_000_000, "tensor_cores": "no"}
    work = Table.of_rows(WORK, [{"layer_id": 0, **amounts}, {"layer_id": 1, **amounts}])
    gpu = {"compute_major": 9, "compute_minor": 0, "sm_count": 132, "clock_hz": 1_830_000_000}
    devices = Table.of_rows(
        DEVICES,
        [
            {"device": 0, "name": "fast", "bandwidth_bytes_per_s": 2 * 10**12, **gpu},
            {"device": 1, "name": "slow", "bandwidth_bytes_per_s": 10**12, **gpu},
        ],
    )
    shape = dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 1)
    kernels = Table.of_rows(
        KERNELS,
        [{"start_ns": 0, "end_ns": 20_000, "layer_id": 0, "device": 1, "registers": 32, **shape}],
    )
    found = roofline_table(layers, work, devices, kernels)
    assert found.ints("bytes_bound_ns").tolist() == [2_000, 1_000]
