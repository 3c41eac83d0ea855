"""The whole tables of peak rates and limits, beside those of the CUDA C++ Programming Guide and the
whitepapers, which are written another way there.
"""

from __future__ import annotations

import pytest

from nsysmap.timing.peak_rates import (
    CORES,
    OCCUPANCY,
    TENSOR,
    Capability,
    blocks_per_sm,
    operations_per_clock,
)

# "Throughput of Native Arithmetic Instructions": results per clock and SM
FP32_RESULTS = {
    64: [(7, 0), (7, 2), (7, 5), (8, 0)],
    128: [(8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 1), (10, 3), (11, 0), (12, 0), (12, 1)],
}
FP16_RESULTS = {
    128: [(7, 0), (7, 2), (7, 5), (8, 6), (8, 9), (12, 0), (12, 1)],
    256: [(8, 0), (8, 7), (9, 0), (10, 0), (10, 1), (10, 3), (11, 0)],
}
DP4A_RESULTS = 64  # of four products and four sums each, on every architecture
# "Technical Specifications per Compute Capability"
WARPS = {
    32: [(7, 5)],
    48: [(8, 6), (8, 7), (8, 9), (10, 1), (11, 0), (12, 0), (12, 1)],
    64: [(7, 0), (7, 2), (8, 0), (9, 0), (10, 0), (10, 3)],
}
BLOCKS = {
    16: [(7, 5), (8, 6), (8, 7)],
    24: [(8, 9), (10, 1), (11, 0), (12, 0), (12, 1)],
    32: [(7, 0), (7, 2), (8, 0), (9, 0), (10, 0), (10, 3)],
}
SHARED_KIB = {
    64: [(7, 5)],
    96: [(7, 0), (7, 2)],
    100: [(8, 6), (8, 9), (12, 0), (12, 1)],
    164: [(8, 0), (8, 7)],
    228: [(9, 0), (10, 0), (10, 1), (10, 3), (11, 0)],
}
# tensor cores: FP16 multiply-adds per clock and SM, and what the others are of that
FP16_FMA = {
    512: [(7, 0), (7, 2), (7, 5), (8, 6), (8, 9), (12, 0), (12, 1)],
    1024: [(8, 0), (8, 7)],
    2048: [(9, 0)],
    4096: [(10, 0), (10, 1), (10, 3), (11, 0)],
}
TIMES_FP16: dict[str, dict[float, list[Capability]]] = {
    "INT8": {
        2: [
            *[(7, 2), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0)],
            *[(10, 0), (10, 1), (11, 0), (12, 0), (12, 1)],
        ],
        1 / 16: [(10, 3)],
    },
    "INT4": {4: [(7, 5), (8, 0), (8, 6), (8, 7), (8, 9)]},
    "FP8": {2: [(8, 9), (9, 0), (10, 0), (10, 1), (10, 3), (11, 0), (12, 0), (12, 1)]},
    "FP4": {4: [(10, 0), (10, 1), (11, 0), (12, 0), (12, 1)], 6: [(10, 3)]},
}
EVERY = sorted(TENSOR)


def value_of(table: dict[int, list[Capability]], capability: Capability) -> int:
    [value] = [value for value, those in table.items() if capability in those]
    return value


def test_every_architecture_is_in_every_table() -> None:
    assert sorted(CORES) == sorted(OCCUPANCY) == EVERY
    assert len(EVERY) == 14


@pytest.mark.parametrize("capability", EVERY)
def test_cuda_cores_compute_as_the_guide_says(capability: Capability) -> None:
    assert CORES[capability] == {
        "FP32": 2 * value_of(FP32_RESULTS, capability),
        "FP16": 2 * value_of(FP16_RESULTS, capability),
        "INT8": 8 * DP4A_RESULTS,
    }


@pytest.mark.parametrize("capability", EVERY)
def test_an_sm_holds_what_the_guide_says(capability: Capability) -> None:
    limit = OCCUPANCY[capability]
    assert limit.threads == 32 * value_of(WARPS, capability)
    assert limit.blocks == value_of(BLOCKS, capability)
    assert limit.shared_bytes == 1024 * value_of(SHARED_KIB, capability)
    assert limit.registers == 64 * 1024


@pytest.mark.parametrize("capability", EVERY)
def test_tensor_cores_compute_what_the_whitepapers_say(capability: Capability) -> None:
    fp16 = 2 * value_of(FP16_FMA, capability)
    other = {
        name: int(factor * fp16)
        for name, table in TIMES_FP16.items()
        for factor, those in table.items()
        if capability in those
    }
    ampere = {"BF16": fp16, "TF32": fp16 // 2} if capability >= (8, 0) else {}
    assert TENSOR[capability] == {"FP16": fp16, **other, **ampere}


def test_which_rate_a_data_type_has() -> None:
    a100 = (8, 0)
    assert operations_per_clock(a100, "FP32", tensor_cores=True) == 1024  # as TF32
    assert operations_per_clock(a100, "FP32", tensor_cores=False) == 128
    assert operations_per_clock(a100, "TF32", tensor_cores=False) == 128
    assert operations_per_clock(a100, "BF16", tensor_cores=False) == 512
    assert operations_per_clock(a100, "FP8", tensor_cores=False) == 128
    assert operations_per_clock(a100, "FP8", tensor_cores=True) is None
    assert operations_per_clock((6, 1), "FP16", tensor_cores=False) is None


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "blocks"),
    [
        ((9, 0), 1, 0, 0, 32),  # so many blocks at most
        ((9, 0), 64, 0, 0, 32),
        ((9, 0), 65, 0, 0, 21),  # three warps
        ((9, 0), 1024, 0, 0, 2),
        ((9, 0), 32, 65, 0, 28),  # 65 registers a thread are 72
        ((9, 0), 256, 64, 0, 4),
        ((9, 0), 256, 72, 0, 3),
        ((9, 0), 32, 255, 0, 8),
        ((9, 0), 32, 0, 128, 32),
        ((9, 0), 32, 0, 100 * 1024, 2),
        ((9, 0), 32, 0, 113 * 1024, 2),  # and 1 KiB of each is the system's
        ((9, 0), 32, 0, 113 * 1024 + 1, 1),
        ((9, 0), 32, 0, 227 * 1024, 1),
        ((9, 0), 32, 0, 228 * 1024, 0),
        ((7, 5), 32, 0, 32 * 1024, 2),  # before Ampere it is not
        ((7, 5), 32, 0, 64 * 1024, 1),
        ((9, 0), 0, 0, 0, None),
        ((6, 1), 32, 0, 0, None),
    ],
)
def test_how_many_blocks_fit(
    capability: Capability, threads: int, registers: int, shared: int, blocks: int | None
) -> None:
    assert blocks_per_sm(capability, threads, registers, shared) == blocks
