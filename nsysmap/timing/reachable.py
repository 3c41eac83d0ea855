"""What a GPU was measured to reach on products of a layer's shape: closer to what kernels can do
than the hardware's peak, above all for small products.

A product takes no longer than a larger one, and reaches at least the rate of a smaller one: of the
measured shapes that contain a shape, and of those that it contains, the best bound counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from nsysmap.core.records import dataclass
from nsysmap.timing.roofline import Device
from nsysmap.timing.shape_rates import (
    ATTENTION,
    BANDWIDTH_BYTES_PER_S,
    CONVOLUTIONS,
    MEASURED_ON,
    PEAK_FLOPS_PER_S,
    PRODUCTS,
    Shape,
)

_TABLES = {"product": PRODUCTS, "convolution": CONVOLUTIONS, "attention": ATTENTION}
_AS = {"BF16": "FP16", "FP32": "TF32"}
_ARCHITECTURE = (9, 0)
_FARTHEST = 8.0
"""The largest ratio between the operations of the two shapes."""


@dataclass(frozen=True)
class Reachable:
    """The time that good kernels need for a product of a shape, and the measurement that it follows
    from.
    """

    ns: int
    measured: Shape


def reachable(kind: str, shape: Shape, precision: str, device: Device) -> Reachable | None:
    """The time of a product, convolution or attention of that shape; None where nothing comparable
    was measured, or on a GPU of another architecture.

    On other GPUs of the same architecture it is longer by what they have less of, peak rate or
    bandwidth.
    """
    times = _TABLES[kind].get(_AS.get(precision, precision))
    slower = _slower(device)
    if times is None or slower is None or min(shape, default=0) < 1:
        return None
    found = best_bound(shape, times, swaps=kind == "product")
    return None if found is None else Reachable(round(found.ns * slower), found.measured)


def best_bound(
    shape: Shape, times: Mapping[Shape, float], *, swaps: bool = False
) -> Reachable | None:
    """The shortest time that follows from these measurements, in ns; with ``swaps``, rows and
    columns may change places.
    """
    whole = prod(shape)
    found: list[Reachable] = []
    for other, us in times.items():
        size = prod(other)
        if not 1 / _FARTHEST <= size / whole <= _FARTHEST:
            continue
        ways = [other, (other[1], other[0], *other[2:])] if swaps else [other]
        if any(_contains(one, shape) for one in ways):
            found.append(Reachable(round(us * 1e3), other))
        elif any(_contains(shape, one) for one in ways):
            found.append(Reachable(round(us * 1e3 * whole / size), other))
    return min(found, key=lambda one: one.ns, default=None)


def _contains(large: Shape, small: Shape) -> bool:
    return all(one >= other for one, other in zip(large, small, strict=True))


def _slower(device: Device) -> float | None:
    """How many times longer this GPU takes than the measured one; None if unknown."""
    if device.capability != _ARCHITECTURE or not device.bandwidth_bytes_per_s:
        return None
    if device.name == MEASURED_ON:
        return 1.0
    peak = device.peak_flops_per_s("FP16", tensor_cores=True)
    if not peak:
        return None
    return max(1.0, PEAK_FLOPS_PER_S / peak, BANDWIDTH_BYTES_PER_S / device.bandwidth_bytes_per_s)
