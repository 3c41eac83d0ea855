"""Why a build in another precision is faster or slower."""

from __future__ import annotations

from functools import cache

import pytest

from nsysmap.comparison.compare import Comparison, compare
from nsysmap.comparison.pages import comparison_json, comparison_markdown, comparison_text
from nsysmap.comparison.precision import PrecisionReason
from tests.places import FIXTURES

REAL = FIXTURES / "real_trt"
HEADING = "What the other precision does to the time"


@cache
def of_real(before: str, after: str) -> Comparison:
    files = [REAL / f"{name}-graph.nsys-rep" for name in (before, after)]
    return compare(
        *files,
        engine_before=REAL / f"{before}.engine.json",
        engine_after=REAL / f"{after}.engine.json",
    )


def by_reason(found: Comparison) -> dict[str, PrecisionReason]:
    return {one.reason: one for one in found.precision}


def test_fp8_that_is_slower_is_told_by_its_products_and_by_what_is_no_longer_fused() -> None:
    """Times as kernels.tsv has them: 12 products of 70.15 µs take 112.40, and GELU is a kernel of
    its own.
    """
    found = of_real("bert_eager", "bert_fp8")
    assert found.verdict == "slower"
    told = by_reason(found)
    products, fusion = told["products"], told["fusion"]
    assert (products.types, products.before_layers, products.after_layers) == ("FP16 → FP8", 12, 12)
    assert products.ns == pytest.approx(42_260, rel=0.01)
    assert "1.60 times as long" in products.told
    assert "sm80 kernels, made before FP8 tensor cores (sm89)" in products.told
    assert "4 no longer" in products.told
    assert products.names == ("down*/MatMul", "value*|key*|query*/MatMul", "out*/MatMul")
    assert (fusion.types, fusion.before_layers, fusion.after_layers) == ("FP16 → FP16+FP8", 4, 8)
    assert fusion.told == "up*/MatMul + bias + GELU 34.48 → up*/MatMul 34.70 + up*/Add + GELU 9.56"


@pytest.mark.parametrize(
    "names", [("bert_eager", "bert_fp8"), ("bert_fp8", "bert_eager"), ("bert_fp32", "bert_fp8")]
)
def test_the_reasons_add_up_to_the_difference_and_to_both_times(names: tuple[str, str]) -> None:
    found = of_real(*names)
    assert sum(one.ns for one in found.precision) == found.difference_ns
    assert sum(one.before_ns for one in found.precision) == found.before.time_ns
    assert sum(one.after_ns for one in found.precision) == found.after.time_ns
    assert [one.reason for one in found.precision[-2:]] == ["same-type", "outside"]


def test_the_other_way_round_the_same_reasons_make_it_faster() -> None:
    slower, faster = (
        by_reason(of_real(*names))
        for names in (("bert_eager", "bert_fp8"), ("bert_fp8", "bert_eager"))
    )
    assert {name: -one.ns for name, one in slower.items()} == {
        name: one.ns for name, one in faster.items()
    }
    assert faster["products"].types == "FP8 → FP16"
    assert (
        "before in sm80 kernels" in faster["products"].told and "4 now" in faster["products"].told
    )


def test_fp8_that_is_faster_than_fp32_is_told_by_shorter_products_and_fused_attention() -> None:
    found = of_real("bert_fp32", "bert_fp8")
    assert found.verdict == "faster"
    first, second = found.precision[:2]
    assert (first.reason, first.types) == ("products", "FP32 → FP8")
    assert "0.63 times as long" in first.told and first.ns < 0
    assert (second.reason, second.types) == ("fusion", "FP32 → FP16")
    assert "attention" in second.told.split("→")[1]


def test_nothing_is_told_where_all_layers_compute_in_the_types_that_they_had() -> None:
    folder = FIXTURES / "bert_trt10"
    engine = folder / "engine.json"
    for found in (
        of_real("bert_eager", "bert_eager"),
        compare(
            folder / "sync.sqlite",
            folder / "graph.sqlite",
            engine_before=engine,
            engine_after=engine,
        ),
    ):
        assert found.precision == ()
        assert HEADING not in comparison_text(found)


def test_it_takes_six_lines_of_a_terminal_and_is_in_every_form() -> None:
    found = of_real("bert_eager", "bert_fp8")
    section = comparison_text(found, 110).split(HEADING)[1].split("\n\n")[0]
    assert section.count("\n") + 1 <= 6
    assert f"## {HEADING}" in comparison_markdown(found)
    told = comparison_json(found)["precision"]
    assert isinstance(told, list)
    assert [one["reason"] for one in told] == ["products", "fusion", "same-type", "outside"]
