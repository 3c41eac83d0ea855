"""Why a layer takes longer than its bytes and products need, each reason declared once."""

from __future__ import annotations

from collections.abc import Mapping

from nsysmap.core.records import dataclass


@dataclass(frozen=True)
class Reason:
    """One reason for time beyond what the hardware needs."""

    name: str
    words: str  # wherever people read it
    meaning: str


_DECLARED = (
    Reason(
        "format-conversion",
        "format conversion",
        "it changes a type or layout only: neighbours of the same format do not need it",
    ),
    Reason(
        "not-fused",
        "kernels that could be one",
        "it is part of a chain or an attention block that one kernel could do",
    ),
    Reason(
        "tensor-cores-idle",
        "tensor cores idle",
        "it multiplies on CUDA cores, though tensor cores could",
    ),
    Reason(
        "launch-bound",
        "kernels start and end",
        "its kernels take at most twice as long as the shortest kernel of the trace: they hardly do"
        " more than start and end",
    ),
    Reason(
        "few-blocks",
        "too few thread blocks",
        "its longest kernel has fewer thread blocks than the GPU can hold at once",
    ),
    Reason(
        "last-wave",
        "last wave not full",
        "the blocks of its longest kernel fill the GPU some times, and the last time only in part",
    ),
    Reason(
        "older-kernels",
        "kernels for older GPUs",
        "its longest kernel multiplies with the instructions of an older architecture, which do not"
        " reach this GPU's peak",
    ),
    Reason(
        "small-tiles",
        "small tiles",
        "its tiles are so small that loading them takes longer than multiplying them",
    ),
    Reason(
        "low-occupancy",
        "low occupancy",
        "registers, shared memory or block size leave room for few warps on an SM, so that they do"
        " not hide the latency of memory",
    ),
    Reason(
        "other-work",
        "work that is not counted",
        "it sorts, samples, exchanges data or the like: only its bytes are counted",
    ),
    Reason("memory-bound", "memory", "device memory or the L2 cache is what it comes closest to"),
    Reason("compute-bound", "arithmetic", "the peak rate is what it comes closest to"),
    Reason("latency-bound", "latency", "nothing is close to its limit, and nothing shows why"),
    Reason("unknown", "unknown", "its bytes or products are unknown"),
)

REASONS: Mapping[str, Reason] = {one.name: one for one in _DECLARED}
"""The reasons by their name in the tables; the first that holds is the reason of a layer."""

_KERNELS = frozenset(
    {
        "tensor-cores-idle",
        "few-blocks",
        "last-wave",
        "older-kernels",
        "small-tiles",
        "low-occupancy",
        "compute-bound",
        "latency-bound",
    }
)
"""Trials that may lead to other kernels for the same layers."""

TRIED_BY: Mapping[str, frozenset[str]] = {
    "kernels": _KERNELS,
    "routes": _KERNELS | {"not-fused", "launch-bound", "format-conversion"},
    "tactic-sources": frozenset({"tensor-cores-idle", "few-blocks", "older-kernels"}),
    "batch": frozenset({"few-blocks", "last-wave", "launch-bound", "latency-bound"}),
}
"""The trials (`nsysmap.advice.paste.TRIALS`), and the reasons of the layers that each may help."""
