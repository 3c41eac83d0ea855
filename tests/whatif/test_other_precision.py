"""`nsysmap what-if --precision`: layers by name, title or ONNX node in another data type."""

from __future__ import annotations

import json

import pytest

from tests.commands import run
from tests.places import FIXTURES

REAL = FIXTURES / "real_trt"
FP32 = (REAL / "bert_fp32-graph.nsys-rep", REAL / "bert_fp32.engine.json")
FP16 = (REAL / "bert_fp8-graph.nsys-rep", REAL / "bert_fp8.engine.json")
"""In FP8, with attention in FP16."""
OWN = ("--reader", "own")


def test_half_precision_of_a_bert_covers_what_was_measured(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Its kernels take 160 us in FP16, as `bert_eager` shows."""
    done = run(capfd, "what-if", *FP32, *OWN, "--precision", "fp16", "--json")
    total = json.loads(done.out)["total"]
    assert total["best_ns"] <= total["low_ns"] <= total["likely_ns"] <= total["high_ns"]
    assert total["low_ns"] <= 160_000 <= total["high_ns"]
    assert total["likely_ns"] == pytest.approx(160_000, rel=0.03)


def test_layers_are_named_by_their_nodes(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "what-if", *FP32, *OWN, "--precision", "BF16", "--layer", "/up*")
    assert done.status == 0
    assert "up*/MatMul + bias + GELU" in done.out
    assert "down" not in done.out


def test_what_cannot_be_told_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for options in (
        ("--precision", "FP16"),
        ("--precision", "FP8", "--layer", "nowhere"),
        ("--precision", "FP8", "--change", "cuda-graph"),
    ):
        done = run(capfd, "what-if", *FP16, *OWN, *options)
        assert (done.status, done.out) == (2, "")
    done = run(capfd, "what-if", *FP16, *OWN, "--precision", "FP8")
    assert "attention" in done.out
