"""Reads the first bytes of a serialized engine without TensorRT: the library that wrote it, its
version, and the engine's length.
"""

from __future__ import annotations

from nsysmap.core.records import dataclass

TENSORRT_MAGIC = (b"ftrt", b"ptrt")
TENSORRT_RTX_MAGIC = b"vtrt"
PLAN_MAGIC = (*TENSORRT_MAGIC, TENSORRT_RTX_MAGIC)

_HEADER_BYTES = 64  # what is read of a plan to know who wrote it
_LENGTH = slice(16, 24)
_VERSION = slice(24, 28)
_WRAPPER_BYTES = 1 << 20  # the JSON in front of a plan that another tool wrapped


@dataclass(frozen=True)
class PlanHeader:
    """What a plan says about itself; None is unknown."""

    for_rtx: bool | None  # TensorRT for RTX, or TensorRT
    # of the library that built it, in the four numbers of the package; only TensorRT for RTX
    version: str | None = None
    length: int | None = None  # bytes of the whole plan; only TensorRT for RTX


def plan_header(plan: bytes) -> PlanHeader:
    """Reads the header of a plan.

    TensorRT for RTX: `vtrt`, at byte 16 the length of the plan, at byte 24 one byte for each number
    of the version.  Read so in plans that 1.4.0.76, 1.5.0.114, 1.6.1.120 and 1.7.1.116 built.  Of
    TensorRT's own plans only the magic is used: none was there to compare.
    """
    if plan.startswith(TENSORRT_MAGIC):
        return PlanHeader(for_rtx=False)
    if not plan.startswith(TENSORRT_RTX_MAGIC):
        return PlanHeader(for_rtx=None)
    if len(plan) < _HEADER_BYTES:
        return PlanHeader(for_rtx=True)
    return PlanHeader(
        for_rtx=True,
        version=".".join(str(number) for number in plan[_VERSION]),
        length=int.from_bytes(plan[_LENGTH], "little"),
    )


def without_wrapper(data: bytes) -> bytes:
    """The plan; ultralytics puts a length and a JSON header before it."""
    length = int.from_bytes(data[:4], "little")
    if (
        2 <= length < min(len(data) - 4, _WRAPPER_BYTES)
        and data[4:5] == b"{"
        and data[3 + length : 4 + length] == b"}"
    ):
        return data[4 + length :]
    return data
