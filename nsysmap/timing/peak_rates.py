"""Peak rates per SM and clock, and capacities, of NVIDIA GPUs by compute capability, with their
sources; the trace's clock and SM count make them rates.

TENSOR and CORES are dense operations (two a multiply-add) per SM and clock; times SMs and clock
they give the device's peak, which tests compare with the published datasheets.  Sources, all
NVIDIA's: beside each line of TENSOR, for all three tables the CUDA C++ Programming Guide,
"Throughput of Native Arithmetic Instructions" and "Technical Specifications per Compute
Capability". GeForce boards run FP16, BF16, TF32 and FP8 with FP32 accumulation at half the rate
given: a floor worked out from it is still a floor.
"""

from __future__ import annotations

from nsysmap.core.records import dataclass

Capability = tuple[int, int]


@dataclass(frozen=True)
class Occupancy:
    """How much one SM holds at once."""

    threads: int
    blocks: int
    shared_bytes: int
    registers: int = 65536


def _rates(
    fp16: int, *, int8: int = 0, int4: int = 0, fp8: int = 0, fp4: int = 0
) -> dict[str, int]:
    told = {"FP16": fp16, "INT8": int8, "INT4": int4, "FP8": fp8, "FP4": fp4}
    return {name: rate for name, rate in told.items() if rate}


def _from_ampere(
    fp16: int, *, int8: int = 0, int4: int = 0, fp8: int = 0, fp4: int = 0
) -> dict[str, int]:
    return _rates(fp16, int8=int8, int4=int4, fp8=fp8, fp4=fp4) | {"BF16": fp16, "TF32": fp16 // 2}


TENSOR: dict[Capability, dict[str, int]] = {
    # V100 whitepaper 2017: 125 T of 80 SMs at 1.53 GHz
    (7, 0): _rates(1024),
    # Jetson AGX Xavier datasheet: 22 T of 8 SMs at 1.377 GHz
    (7, 2): _rates(1024, int8=2048),
    # T4 datasheet, Turing whitepaper 2018: 65, 130, 260 T of 40 SMs at 1.59 GHz
    (7, 5): _rates(1024, int8=2048, int4=4096),
    # A100 whitepaper 2020: 312, 156, 624, 1248 T of 108 SMs at 1.41 GHz
    (8, 0): _from_ampere(2048, int8=4096, int4=8192),
    # A10 datasheet, GA102 whitepaper 2021: 125, 62.5, 250, 500 T of 72 at 1.695
    (8, 6): _from_ampere(1024, int8=2048, int4=4096),
    # Jetson AGX Orin datasheet: 85 dense INT8 T of 16 SMs at 1.3 GHz
    (8, 7): _from_ampere(2048, int8=4096, int4=8192),
    # L40S datasheet, Ada whitepaper 2022: 366, 183, 733 T of 142 at 2.52
    (8, 9): _from_ampere(1024, int8=2048, int4=4096, fp8=2048),
    # H100 whitepaper 2022: 989, 495, 1979 T of 132 SMs at 1.83 GHz; no INT4
    (9, 0): _from_ampere(4096, int8=8192, fp8=8192),
    # B200 datasheet: 2.25, 1.1, 4.5, 9 P of 148 SMs at 1.85 GHz
    (10, 0): _from_ampere(8192, int8=16384, fp8=16384, fp4=32768),
    # what 11.0 was called before CUDA 13
    (10, 1): _from_ampere(8192, int8=16384, fp8=16384, fp4=32768),
    # GB300 datasheet: 2.5, 1.25, 0.16, 5, 15 P of 160 SMs at 1.92 GHz
    (10, 3): _from_ampere(8192, int8=512, fp8=16384, fp4=49152),
    # Jetson Thor datasheet: 1035 dense FP4 T of 20 at 1.575 GHz
    (11, 0): _from_ampere(8192, int8=16384, fp8=16384, fp4=32768),
    # RTX Blackwell whitepaper 2025: 419, 838, 1676 T of 170 at 2.407
    (12, 0): _from_ampere(1024, int8=2048, fp8=2048, fp4=4096),
    # DGX Spark datasheet: 500 dense FP4 T of 48 SMs at 2.5 GHz
    (12, 1): _from_ampere(1024, int8=2048, fp8=2048, fp4=4096),
}
"""Tensor cores: dense operations per SM and clock."""

CORES: dict[Capability, dict[str, int]] = {
    (7, 0): {"FP32": 128, "FP16": 256, "INT8": 512},
    (7, 2): {"FP32": 128, "FP16": 256, "INT8": 512},
    (7, 5): {"FP32": 128, "FP16": 256, "INT8": 512},
    (8, 0): {"FP32": 128, "FP16": 512, "INT8": 512},
    (8, 6): {"FP32": 256, "FP16": 256, "INT8": 512},
    (8, 7): {"FP32": 256, "FP16": 512, "INT8": 512},
    (8, 9): {"FP32": 256, "FP16": 256, "INT8": 512},
    (9, 0): {"FP32": 256, "FP16": 512, "INT8": 512},
    (10, 0): {"FP32": 256, "FP16": 512, "INT8": 512},
    (10, 1): {"FP32": 256, "FP16": 512, "INT8": 512},
    (10, 3): {"FP32": 256, "FP16": 512, "INT8": 512},
    (11, 0): {"FP32": 256, "FP16": 512, "INT8": 512},
    (12, 0): {"FP32": 256, "FP16": 256, "INT8": 512},
    (12, 1): {"FP32": 256, "FP16": 256, "INT8": 512},
}
"""CUDA cores: operations per SM and clock; INT8 by dp4a."""

OCCUPANCY: dict[Capability, Occupancy] = {
    (7, 0): Occupancy(2048, 32, 96 * 1024),
    (7, 2): Occupancy(2048, 32, 96 * 1024),
    (7, 5): Occupancy(1024, 16, 64 * 1024),
    (8, 0): Occupancy(2048, 32, 164 * 1024),
    (8, 6): Occupancy(1536, 16, 100 * 1024),
    (8, 7): Occupancy(1536, 16, 164 * 1024),
    (8, 9): Occupancy(1536, 24, 100 * 1024),
    (9, 0): Occupancy(2048, 32, 228 * 1024),
    (10, 0): Occupancy(2048, 32, 228 * 1024),
    (10, 1): Occupancy(1536, 24, 228 * 1024),
    (10, 3): Occupancy(2048, 32, 228 * 1024),
    (11, 0): Occupancy(1536, 24, 228 * 1024),
    (12, 0): Occupancy(1536, 24, 100 * 1024),
    (12, 1): Occupancy(1536, 24, 100 * 1024),
}
"""Limits of one SM."""


def operations_per_clock(
    capability: Capability, precision: str, *, tensor_cores: bool
) -> int | None:
    """Dense operations per SM and clock in that data type; None if the architecture is not in the
    table or lacks the type.
    """
    rates = (TENSOR if tensor_cores else CORES).get(capability)
    if rates is None:
        return None
    if tensor_cores:
        return rates.get("TF32" if precision == "FP32" else precision)
    return rates.get({"BF16": "FP16", "TF32": "FP32"}.get(precision, precision), rates["FP32"])


def blocks_per_sm(
    capability: Capability, threads: int, registers: int, shared_bytes: int
) -> int | None:
    """How many such thread blocks one SM holds at once; None if the architecture is not in the
    table.

    Registers are allocated per warp in units of 256, shared memory in units of 128 bytes, plus 1
    KiB per block from 8.0 on.
    """
    limit = OCCUPANCY.get(capability)
    if limit is None or threads <= 0:
        return None
    warps = -(-threads // 32)
    fits = [limit.blocks, limit.threads // (warps * 32)]
    if registers > 0:
        fits.append(limit.registers // (warps * -(-registers * 32 // 256) * 256))
    reserved = 1024 if capability >= (8, 0) else 0
    if shared_bytes > 0:
        fits.append(limit.shared_bytes // (-(-shared_bytes // 128) * 128 + reserved))
    return max(min(fits), 0)
