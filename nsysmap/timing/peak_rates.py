"""Peak rates and capacities of NVIDIA GPUs by compute capability, with their sources.

TENSOR and CORES are dense operations (two a multiply-add) per SM and clock; times SMs and clock they give the device's peak, which
tests compare with the published datasheets.  Sources, all NVIDIA's: the architecture whitepapers (V100 2017, Turing 2018, A100 2020,
GA102 2021, Ada 2022, H100 2022, RTX Blackwell 2025), the datasheets of T4, A10, L4, L40S, H200, B200, Jetson AGX Orin and Jetson Thor,
and the CUDA C++ Programming Guide, tables "Throughput of Native Arithmetic Instructions" and "Technical Specifications per Compute
Capability".
GeForce boards run FP16, BF16 and FP8 with FP32 accumulation at half the rate given: a floor worked out from it is still a floor.
"""

from __future__ import annotations

from dataclasses import dataclass

Capability = tuple[int, int]


@dataclass(frozen=True)
class Occupancy:
    """What one SM holds at once."""

    threads: int
    blocks: int
    shared_bytes: int
    registers: int = 65536


def _rates(fp16: int, *, tf32: int = 0, int8: int = 0, fp8: int = 0, fp4: int = 0) -> dict[str, int]:
    told = {
        "FP16": fp16,
        "BF16": fp16 if tf32 else 0,
        "TF32": tf32,
        "INT8": int8,
        "INT4": 2 * int8 if not fp4 else 0,
        "FP8": fp8,
        "FP4": fp4,
    }
    return {name: rate for name, rate in told.items() if rate}


TENSOR: dict[Capability, dict[str, int]] = {
    (7, 0): _rates(1024),
    (7, 2): _rates(1024, int8=2048),
    (7, 5): _rates(1024, int8=2048),
    (8, 0): _rates(2048, tf32=1024, int8=4096),
    (8, 6): _rates(1024, tf32=512, int8=2048),
    (8, 7): _rates(2048, tf32=1024, int8=4096),
    (8, 9): _rates(1024, tf32=512, int8=2048, fp8=2048),
    (9, 0): _rates(4096, tf32=2048, int8=8192, fp8=8192),
    (10, 0): _rates(8192, tf32=4096, int8=16384, fp8=16384, fp4=32768),
    (10, 1): _rates(8192, tf32=4096, int8=16384, fp8=16384, fp4=32768),
    (10, 3): _rates(8192, tf32=4096, fp8=16384, fp4=49152),
    (11, 0): _rates(8192, tf32=4096, int8=16384, fp8=16384, fp4=32768),
    (12, 0): _rates(1024, tf32=512, int8=2048, fp8=2048, fp4=4096),
    (12, 1): _rates(1024, tf32=512, int8=2048, fp8=2048, fp4=4096),
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


def operations_per_clock(capability: Capability, precision: str, *, tensor_cores: bool) -> int | None:
    """Dense operations per SM and clock in that data type; None where the table does not have the architecture or it lacks the type."""
    rates = (TENSOR if tensor_cores else CORES).get(capability)
    if rates is None:
        return None
    if tensor_cores:
        return rates.get("TF32" if precision == "FP32" else precision)
    return rates.get({"BF16": "FP16", "TF32": "FP32"}.get(precision, precision), rates["FP32"])


def blocks_per_sm(capability: Capability, threads: int, registers: int, shared_bytes: int) -> int | None:
    """How many such thread blocks one SM holds at once; None where the architecture is not in the table.

    Registers are given out per warp in units of 256, shared memory in units of 128 bytes plus 1 KiB a block from 8.0 on.
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
