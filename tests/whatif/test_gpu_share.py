"""The share of a GPU that kernels need, worked out by hand for a GPU of 100 SMs and 1 TB/s."""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.core.table import Table
from nsysmap.core.trace_schema import DEVICES, GPU_KERNELS
from nsysmap.whatif.gpu_share import Needs, kernel_needs


def needs(
    *,
    blocks: tuple[int, int, int],
    threads: int,
    registers: int = 0,
    shared: tuple[int, int] = (0, 0),
    roofline: float = np.nan,
    sm_count: int | None = 100,
    bandwidth: int | None = 10**12,
) -> tuple[float, float, float]:
    devices = Table.of_rows(
        DEVICES,
        [
            {"device": 0, "sm_count": 7, "bandwidth_bytes_per_s": 7 * 10**9},
            {"device": 1, "sm_count": sm_count, "bandwidth_bytes_per_s": bandwidth},
        ],
    )
    another = {"grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 1, "block_y": 1, "block_z": 1}
    kernel = {
        "grid_x": blocks[0],
        "grid_y": blocks[1],
        "grid_z": blocks[2],
        "block_x": threads // 4,
        "block_y": 2,
        "block_z": 2,
        "registers": registers,
        "static_shared_bytes": shared[0],
        "dynamic_shared_bytes": shared[1],
    }
    rows = {"registers": 1, "static_shared_bytes": 0, "dynamic_shared_bytes": 0}
    kernels = Table.of_rows(GPU_KERNELS, [another | rows, kernel])
    found: Needs = kernel_needs(kernels, np.array([1]), devices, 1, np.array([roofline]))
    return float(found.least[0]), float(found.sms[0]), float(found.most[0])


@pytest.mark.parametrize("registers", [32, 0])
def test_blocks_that_fill_half_an_sm_each_need_a_quarter_of_the_gpu_on_half_of_its_sms(
    registers: int,
) -> None:
    least, sms, most = needs(blocks=(5, 5, 2), threads=1024, registers=registers)
    assert (least, sms) == pytest.approx((0.25, 0.5 if registers else 50 * 4096 / 600_000))
    assert most == (1.0 if registers else 0.5)  # without registers little is on the way


def test_a_kernel_whose_layer_is_near_its_peak_needs_as_much_of_the_gpu() -> None:
    at = {"blocks": (5, 5, 2), "threads": 1024, "registers": 32}
    assert needs(**at, roofline=0.6)[0] == 0.6  # type: ignore[arg-type]
    assert needs(**at, roofline=0.1)[0] == 0.25  # type: ignore[arg-type]
    assert needs(**at, roofline=3.0)[0] == 1.0  # type: ignore[arg-type]


def test_few_registers_keep_few_bytes_on_the_way_from_memory() -> None:
    """50 blocks of 2 KiB of registers, where 600,000 bytes fill the way."""
    assert needs(blocks=(50, 1, 1), threads=32, registers=16) == pytest.approx(
        (50 / 64 / 100, 50 * 2048 / 600_000, 0.5)
    )


def test_the_last_wave_of_blocks_leaves_room() -> None:
    assert needs(blocks=(300, 1, 1), threads=1024, registers=32) == (0.75, 0.875, 1.0)


def test_shared_memory_fills_an_sm_too() -> None:
    least, sms, _ = needs(blocks=(10, 1, 1), threads=32, registers=1, shared=(100_000, 16_736))
    assert (least, sms) == pytest.approx((0.05, 0.1))


def test_registers_fill_an_sm_too() -> None:
    assert needs(blocks=(50, 1, 1), threads=256, registers=128)[0] == 0.25


def test_more_blocks_than_sms_use_all_of_them_though_they_fill_none() -> None:
    assert needs(blocks=(200, 1, 1), threads=256, registers=32) == (0.25, 1.0, 1.0)


def test_no_more_blocks_count_than_fit_on_the_gpu_at_once() -> None:
    """Of 10,000 blocks of 32 threads 6,400 are resident, each with 128 bytes of registers."""
    _, sms, most = needs(blocks=(10_000, 1, 1), threads=32, registers=1, bandwidth=10**13)
    assert (sms, most) == pytest.approx((6_400 * 128 / 6_000_000, 1.0))


def test_where_the_gpu_is_not_known_a_kernel_needs_all_of_it() -> None:
    assert needs(blocks=(1, 1, 1), threads=32, sm_count=None) == (1.0, 1.0, 1.0)
    least, sms, most = needs(blocks=(50, 1, 1), threads=1024, bandwidth=None)
    assert (least, sms, most) == (0.25, 0.5, 1.0)  # as much as any kernel may have on the way
