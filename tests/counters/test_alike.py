"""Kernels that do the same have one rate, as far as the samples do not say otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysmap.api import analyze
from nsysmap.core.table import FloatArray
from nsysmap.counters.alike import of_same_members, of_same_time, pooled_means
from nsysmap.counters.estimate import estimate
from nsysmap.counters.model import Shift
from tests.counters.made import sampled, sequence

REAL = Path(__file__).parents[2] / "fixtures" / "real_trt"
DURATIONS = [4000, 2000, 4000, 2000, 4000, 2000]
GAPS = [0] * 6
ALIKE = np.array([0, 1, 0, 1, 0, 1])


def test_kernels_that_do_the_same_are_nearer_to_the_truth_together() -> None:
    rates = [60.0, 5.0] * 3
    alone: list[list[FloatArray]] = []
    together: list[list[FloatArray]] = []
    for seed in range(6):
        work = sequence(DURATIONS, GAPS, 40, seed=seed)
        samples = sampled(work, rates, 20_000, noise=1.0, seed=seed)
        for found, alike in ((alone, None), (together, ALIKE)):
            each = estimate(samples, work, Shift(), alike=alike).by_metric[0].groups
            found.append([each.value - rates, each.error, each.high - each.low])
    apart, joined = np.array(alone), np.array(together)
    assert np.abs(joined[:, 0]).mean() < np.abs(apart[:, 0]).mean()
    assert np.median(joined[:, 1]) < np.median(apart[:, 1])
    assert np.abs(joined[:, 0] / joined[:, 1]).max() < 4
    differ, differed = (np.ptp(one[:, 0, 1::2], axis=1).mean() for one in (joined, apart))
    assert differ < differed / 2


def test_kernels_of_one_name_that_differ_keep_their_own_rates() -> None:
    rates = [60.0, 5.0, 20.0, 30.0, 90.0, 70.0]
    work = sequence(DURATIONS, GAPS, 80)
    samples = sampled(work, rates, 5000, noise=0.5)
    plain, found = (
        estimate(samples, work, Shift(), alike=alike).by_metric[0].groups for alike in (None, ALIKE)
    )
    assert found.value == pytest.approx(plain.value, abs=0.3)
    assert found.value == pytest.approx(rates, abs=1.5)


def test_kernels_that_last_longer_do_not_do_the_same() -> None:
    number = of_same_time(np.array([3, 3, 3, 3, -1]), np.array([10.0, 14.5, 10.8, 15.0, 10.0]))
    assert number[0] == number[2] != number[1] == number[3]
    assert number[4] == -1


def test_layers_of_the_same_kernels_do_the_same() -> None:
    found = of_same_members(np.array([0, 1, 1, 0, 2, -1]), np.array([0, 0, 1, 1, 2, 3]), 5)
    assert found[0] == found[1] != found[2]
    assert found[3] == found[4] == -1


def test_a_layer_of_one_kernel_has_its_value() -> None:
    value, error = np.array([3.0, 1.0, 2.0, 3.0, 1.0, 2.0]), np.full(6, 1.0)
    one = np.array([0, 0, 0])
    found = pooled_means(one, one, value, error).value(value)
    assert found[:3] == pytest.approx(found[3:])
    assert np.ptp(found[:3]) < 0.1


def test_equal_attention_kernels_of_a_real_engine_have_equal_values() -> None:
    found = analyze(REAL / "gm_bert-graph.nsys-rep", REAL / "bert_eager.engine.json")
    rows = [
        row
        for row in found.tables.kernel_counters.records()
        if row["metric"] == "tensor_active" and str(row["kernel"]).startswith("_gemm_mha_v2")
    ]
    value, error = (np.array([float(str(row[key])) for row in rows]) for key in ("value", "error"))
    assert len(rows) == 4
    assert np.ptp(value) < 0.2
    # their operations take 1.4 % of the cycles at the full rate, 2.2 % at that of mma.sync
    assert (np.abs(value - 1.8) < 1.5 * error).all()
