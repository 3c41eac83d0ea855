"""What the parts of a region became."""

from __future__ import annotations

from collections import Counter

import pytest

from nsysmap.comparison.compare import compare
from nsysmap.comparison.region_parts import ComparedPart, joined_parts
from tests.places import FIXTURES

BLOCK = (
    "gemm",
    "gemm",
    "gemm",
    "move",
    "gemm",
    "softmax",
    "gemm",
    "gemm",
    "layernorm",
    "gemm",
    "gelu-erf",
    "gemm",
    "layernorm",
)


def parts(*words: str) -> list[ComparedPart]:
    return [ComparedPart(word, 100) for word in words]


def told(before: list[ComparedPart], after: list[ComparedPart]) -> Counter[tuple[str, str]]:
    return Counter(
        (" ".join(one.word for one in ours), " ".join(one.word for one in theirs))
        for ours, theirs in joined_parts(before, after)
    )


def test_between_norms_that_stay_what_was_fused_is_one_group() -> None:
    before = parts("layernorm", *BLOCK, *BLOCK, *BLOCK)
    fused = ("gemm", "attention", "gemm", "layernorm", "gemm", "gemm", "layernorm")
    after = parts("layernorm", *fused, *BLOCK, *fused)
    found = told(before, after)
    assert found["gemm gemm gemm move gemm softmax gemm gemm", "gemm attention gemm"] == 2
    assert found["gemm gelu-erf gemm", "gemm gemm"] == 2
    assert (found["softmax", "softmax"], found["layernorm", "layernorm"]) == (1, 7)
    for side in (0, 1):
        assert sum(len(pair[side].split()) * count for pair, count in found.items()) == len(
            (before, after)[side]
        )


@pytest.mark.parametrize("after", [("layernorm", *BLOCK), ("gemm", "softmax"), ()])
def test_where_norms_came_or_went_nothing_is_told(after: tuple[str, ...]) -> None:
    assert joined_parts(parts("layernorm", *BLOCK, *BLOCK), parts(*after)) == []


def test_their_times_add_up_to_the_region_s() -> None:
    folders = [FIXTURES / name for name in ("bert_trt85", "bert_trt86")]
    reports, engines = (
        [folder / name for folder in folders] for name in ("sync.nsys-rep", "engine.json")
    )
    found = compare(reports[0], reports[1], engine_before=engines[0], engine_after=engines[1])
    (group,) = {row.integer("group") for row in found.region_parts}
    region = found.layers.records()[group]
    for key in ("before_ns", "after_ns"):
        assert found.region_parts.ints(key).sum() == region[key]
    assert all(row["before"] == row["after"] for row in found.region_parts)
