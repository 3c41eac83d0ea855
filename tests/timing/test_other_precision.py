"""A narrower type shrinks what a layer comes closest to, gains nothing where kernels hardly do more
than start and end, and costs time where measured pairs say so.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nsysmap.core.engine_schema import ATTENTION, ATTENTION_LAYERS, WORK
from nsysmap.core.result_schema import HEADROOM
from nsysmap.core.table import Row, Table
from nsysmap.core.trace_schema import DEVICES
from nsysmap.timing.other_precision import Described, precision_changes_table

PRODUCT = {"does": "product", "macs": 1_000, "flops": 2_000, "tensor_cores": "yes"}
OTHER = {"does": "pointwise", "macs": 0, "flops": 10, "tensor_cores": "no"}


def _changes(
    work: Mapping[str, object],
    *,
    reason: str = "few-blocks",
    limit: str = "device-memory",
    capability: tuple[int, int] = (9, 0),
    rtx: bool = False,
    in_attention: bool = False,
) -> dict[str, Row]:
    """The rows of one layer of 1,000 ns by their type."""
    device = {
        "device": 0,
        "name": "GPU",
        "compute_major": capability[0],
        "compute_minor": capability[1],
        "sm_count": 100,
        "clock_hz": 10**9,
        "bandwidth_bytes_per_s": 10**12,
    }
    row = {
        "rank": 1,
        "layer_id": 0,
        "time_ns": 1_000,
        "reason": reason,
        "limit": limit,
        "tensor_cores": "yes",
    }
    block = {
        "block_id": 0,
        "engine": 0,
        "fused": False,
        "first_layer": 0,
        "last_layer": 0,
        "softmax_layer": 0,
        "layers": 3,
    }
    member = {"block_id": 0, "position": 0, "layer_id": 0, "role": "softmax"}
    told = Described(
        Table.of_rows(WORK, [{"layer_id": 0, **work}]),
        Table.of_rows(ATTENTION, [block] * in_attention),
        Table.of_rows(ATTENTION_LAYERS, [member] * in_attention),
    )
    found = precision_changes_table(
        told, Table.of_rows(HEADROOM, [row]), Table.of_rows(DEVICES, [device]), rtx=rtx
    )
    return {one.text("to_type"): one for one in found}


def test_half_precision_halves_bytes_at_best_and_likely_as_measured() -> None:
    half = _changes({**PRODUCT, "precision": "FP32"})["FP16"]
    assert (half.integer("best_ns"), half.text("gains_by")) == (500, "bytes")
    assert half.integer("low_ns") == 500, "never less than the best"
    assert (half.integer("likely_ns"), half.integer("high_ns")) == (500, 680)
    other = _changes({**OTHER, "precision": "FP32"})["FP16"]
    assert [other.integer(f"{end}_ns") for end in ("best", "low", "likely", "high")] == [
        500,
        700,
        950,
        1_100,
    ]


def test_products_gain_by_the_peak_rates_that_limit_them() -> None:
    without = {**PRODUCT, "precision": "FP32", "tensor_cores": "no"}
    found = _changes(without, limit="arithmetic")["FP16"]
    assert (found.integer("best_ns"), found.text("gains_by")) == (
        round(1_000 * 256 / 4096),
        "products",
    )


def test_what_is_launch_bound_gains_nothing() -> None:
    found = _changes({**PRODUCT, "precision": "FP32"}, reason="launch-bound")["FP16"]
    assert found.text("gains_by") == "nothing"
    assert {found.integer(f"{end}_ns") for end in ("best", "low", "likely", "high")} == {1_000}


def test_half_precision_fuses_attention_that_fp32_keeps_apart() -> None:
    found = _changes({**OTHER, "precision": "FP32"}, in_attention=True)["FP16"]
    assert (found.text("gains_by"), found.integer("likely_ns")) == ("fusion", 0)


@pytest.mark.parametrize(("capability", "types"), [((9, 0), {"FP8", "INT8"}), ((8, 0), {"INT8"})])
def test_eight_bits_are_for_products_and_where_the_gpu_has_them(
    capability: tuple[int, int], types: set[str]
) -> None:
    assert set(_changes({**PRODUCT, "precision": "FP16"}, capability=capability)) == types
    assert not _changes({**OTHER, "precision": "FP16"}, capability=capability)


def test_fp8_was_measured_with_tensorrt_for_rtx_only_where_it_costs_time() -> None:
    rtx = _changes({**PRODUCT, "precision": "FP16"}, rtx=True)["FP8"]
    assert rtx.integer("likely_ns") > rtx.integer("time_ns") > rtx.integer("best_ns")
    other = _changes({**PRODUCT, "precision": "FP16"})["FP8"]
    assert (other["likely_ns"], other.integer("best_ns")) == (None, 500)
