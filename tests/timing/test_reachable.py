"""What products of a shape were measured to take bounds that of others, on the GPU that it was
measured on and on its like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

import pytest

from nsysmap.timing.reachable import Reachable, best_bound, reachable
from nsysmap.timing.roofline import Device
from nsysmap.timing.shape_rates import ATTENTION, CONVOLUTIONS, PRODUCTS, Shape

H200 = Device("NVIDIA H200", (9, 0), 132, 1_980_000_000, 4_814_304_000_000)


def test_a_product_takes_no_longer_than_a_larger_one_nor_has_a_lower_rate_than_a_smaller() -> None:
    times: dict[Shape, float] = {(64, 64, 64): 2.0, (128, 128, 128): 4.0}
    assert best_bound((100, 100, 100), times) == Reachable(4_000, (128, 128, 128))
    assert best_bound((64, 64, 80), times) == Reachable(2_500, (64, 64, 64))
    assert best_bound((640, 640, 640), times) is None, "of more than eight times the operations"
    assert best_bound((256, 32, 64), times) is None, "neither contains it nor is contained"
    turned: dict[Shape, float] = {(128, 64, 64): 1.0}
    assert best_bound((32, 100, 64), turned, swaps=True) is not None


@pytest.mark.parametrize(("table", "precision"), [(PRODUCTS, "FP16"), (PRODUCTS, "FP8")])
def test_each_measured_product_follows_from_the_others(
    table: Mapping[str, Mapping[Shape, float]], precision: str
) -> None:
    """An upper bound for each, by at most a few percent too short, and seldom far above it."""
    times = table[precision]
    ratios = []
    for shape, us in times.items():
        others = {one: time for one, time in times.items() if one != shape}
        found = best_bound(shape, others, swaps=True)
        assert found is not None
        ratios.append(found.ns / 1e3 / us)
    assert min(ratios) > 0.9
    assert median(ratios) < 1.3
    assert max(ratios) < 3


def test_on_the_same_gpu_it_is_what_was_measured_and_on_others_longer_or_unknown() -> None:
    found = reachable("product", (128, 3072, 768), "BF16", H200)
    assert found is not None
    assert found.ns == round(PRODUCTS["FP16"][128, 3072, 768] * 1e3)
    h100 = replace(H200, name="NVIDIA H100 PCIe", sm_count=114, bandwidth_bytes_per_s=2 * 10**12)
    slower = reachable("product", (128, 3072, 768), "FP16", h100)
    assert slower is not None
    assert slower.ns == pytest.approx(found.ns * 4.814304 / 2, abs=1)
    ada = replace(H200, name="NVIDIA L4", capability=(8, 9))
    assert reachable("product", (128, 3072, 768), "FP16", ada) is None
    assert reachable("product", (128, 3072, 768), "INT8", H200) is None


def test_convolutions_and_attention_have_measurements_of_their_own() -> None:
    (pixels, channels, summed), us = next(iter(CONVOLUTIONS["FP16"].items()))
    assert reachable("convolution", (pixels, channels, summed), "FP16", H200) == Reachable(
        round(us * 1e3), (pixels, channels, summed)
    )
    for shape, us in ATTENTION["FP16"].items():
        found = reachable("attention", shape, "FP16", H200)
        assert found is not None
        assert found.ns <= round(us * 1e3)
