"""What each layer would take in another data type: at best, by its bytes and products, and by
measured pairs of engines in both types.

Measured pairs: a BERT, a ViT, a ResNet-50 and a U-Net with a batch of 4 or 8, each built by
TensorRT for RTX 1.5 in FP32 (with TF32), FP16, BF16, and in FP8 with quantizers before every
product, on one H200; the ratio is that of the time of all products, with what quantises for them.
A BERT with a batch of 1 was left out of it, to try it on.
"""

from __future__ import annotations

from collections.abc import Mapping

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import PRECISION_CHANGES
from nsysmap.core.table import Row, Table
from nsysmap.timing.roofline import Device, Needed, device_of, needed_of

_BITS = {"FP32": 32, "TF32": 32, "FP16": 16, "BF16": 16, "FP8": 8, "INT8": 8}
_TARGETS: Mapping[str, tuple[str, ...]] = {
    "FP32": ("FP16", "BF16"),
    "TF32": ("FP16", "BF16"),
    "FP16": ("FP8", "INT8"),
    "BF16": ("FP8", "INT8"),
}
"""The next narrower types; those two steps away are left out, because nobody starts with them."""


@dataclass(frozen=True)
class _Ratio:
    """The time after such a change, divided by the time before it."""

    low: float
    likely: float
    high: float


_PRODUCTS: Mapping[tuple[str, str], _Ratio] = {
    # 0.42 (BERT), 0.43 (ViT), 0.58 (U-Net), 0.62 (ResNet-50)
    ("FP32", "FP16"): _Ratio(0.38, 0.50, 0.68),
    # 0.42, 0.44, 0.61, 0.64
    ("FP32", "BF16"): _Ratio(0.38, 0.53, 0.70),
}
_RTX_FP8 = _Ratio(0.95, 1.4, 2.4)
"""Measured 0.95 to 1.1 (BERT), 1.4 (ResNet-50), 1.5 (ViT), 2.3 (U-Net): TensorRT for RTX on 9.0,
whose FP8 products run kernels of older architectures.
"""
_OTHERS = _Ratio(0.7, 0.95, 1.1)
"""For layers without products, from FP32 to FP16 or BF16: norms 0.82 to 1.2, element-wise ones 0.95
to 1.8 where casts were added in between.
"""


_FUSED = _Ratio(0.0, 0.0, 1.0)
"""For the layers between the products of attention that FP32 keeps apart: in FP16 and BF16 one
kernel did everything in each transformer of the pairs.
"""


@dataclass(frozen=True)
class Described:
    """The tables that describe layers."""

    work: Table
    attention: Table
    attention_layers: Table

    @property
    def inside_attention(self) -> frozenset[int]:
        """The layers of attention that is not fused."""
        split = {row.integer("block_id") for row in self.attention if not row.flag("fused")}
        return frozenset(
            row.integer("layer_id")
            for row in self.attention_layers
            if row.integer("block_id") in split
        )


def precision_changes_table(
    told: Described, headroom: Table, devices: Table, *, rtx: bool
) -> Table:
    """The table `precision_changes`: layers with time, in each narrower type that the GPU supports;
    ``rtx`` is for TensorRT for RTX.
    """
    device = next((device_of(row) for row in devices), None)
    described = {row.integer("layer_id"): row for row in told.work}
    inside = told.inside_attention
    rows: list[dict[str, object]] = []
    for row in headroom:
        layer = row.integer("layer_id")
        if device is None or layer not in described:
            continue
        need = needed_of(described[layer])
        for to_type in _TARGETS.get(need.precision or "", ()):
            if device.peak_flops_per_s(to_type, tensor_cores=True) is None:
                continue
            if to_type in ("FP8", "INT8") and not need.macs:
                continue  # quantizers are for products
            if layer in inside and not need.macs and need.precision in ("FP32", "TF32"):
                rows.append(_told(row, need, to_type, 0.0, _FUSED))
                continue
            best = _best_ratio(row, need, device, to_type)
            measured = _measured(need.precision or "", to_type, need, rtx=rtx)
            if row.text("reason") == "launch-bound":
                best, measured = 1.0, _Ratio(1.0, 1.0, 1.0)
            rows.append(_told(row, need, to_type, best, measured))
    return Table.of_rows(PRECISION_CHANGES, rows)


def _told(
    row: Row, need: Needed, to_type: str, best: float, measured: _Ratio | None
) -> dict[str, object]:
    time_ns = row.integer("time_ns")
    told = measured
    if measured is not None:
        low = max(measured.low, min(best, 1.0))
        told = _Ratio(low, max(measured.likely, low), max(measured.high, low))
    return {
        "layer_id": row.integer("layer_id"),
        "engine": row.maybe_integer("engine"),
        "from_type": need.precision,
        "to_type": to_type,
        "time_ns": time_ns,
        "best_ns": round(time_ns * best),
        "low_ns": None if told is None else round(time_ns * told.low),
        "likely_ns": None if told is None else round(time_ns * told.likely),
        "high_ns": None if told is None else round(time_ns * told.high),
        "gains_by": (
            "fusion"
            if measured is _FUSED
            else "nothing"
            if row.text("reason") == "launch-bound"
            else "products"
            if row.maybe_text("limit") == "arithmetic"
            else "bytes"
        ),
    }


def _best_ratio(row: Row, need: Needed, device: Device, to_type: str) -> float:
    """The least time in that type divided by that in the layer's own type: by type size for bytes,
    by peak rates for products, whichever is the limit.
    """
    bytes_ratio = _BITS[to_type] / _BITS[need.precision or ""]
    if row.maybe_text("limit") != "arithmetic" or not need.macs:
        return bytes_ratio
    own = device.peak_flops_per_s(need.precision, tensor_cores=need.tensor_cores != "no")
    other = device.peak_flops_per_s(to_type, tensor_cores=True)
    return own / other if own and other else bytes_ratio


def _measured(from_type: str, to_type: str, need: Needed, *, rtx: bool) -> _Ratio | None:
    wide = "FP32" if from_type == "TF32" else from_type
    if wide == "FP32":
        return _PRODUCTS[wide, to_type] if need.macs else _OTHERS
    return _RTX_FP8 if rtx and to_type == "FP8" else None
