"""The largest share of a kernel's time that half precision can save, by the rates of the GPU's
units.
"""

from __future__ import annotations

from nsysmap.names.decode import decode
from nsysmap.timing.peak_rates import CORES, TENSOR, Capability

_WIDE = ("FP32", "TF32")
_BYTES = 0.5
"""Halving the bytes saves this share where memory is the limit, and for products on tensor cores,
which run FP16 and BF16 at twice the rate of TF32.
"""
_GREATEST = max(rates["FP16"] / CORES[gpu]["FP32"] for gpu, rates in TENSOR.items())


def saved_share(
    *, work: str, datatype: str | None, tensor_cores: str, name: str | None, gpu: Capability | None
) -> float | None:
    """The largest share of such a kernel's time that FP16 can save; None unless the kernel is known
    to compute in FP32 or TF32.

    ``gpu`` is None where it is unknown: then that of the GPU whose tensor cores gain most.
    """
    if datatype not in _WIDE or work not in ("product", "arithmetic"):
        return None
    if work != "product" or tensor_cores != "no":
        return _BYTES
    decoded = decode(name) if name else None
    if decoded is not None and decoded.fields.get("operation") == "gemv":
        return _BYTES  # reads its matrix for one vector: memory limits it
    faster = _GREATEST
    if gpu is not None and gpu in TENSOR:
        faster = TENSOR[gpu]["FP16"] / CORES[gpu]["FP32"]
    return max(_BYTES, 1 - 1 / faster)
