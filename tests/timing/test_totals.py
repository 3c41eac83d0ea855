"""Sums over all kernels of a trace."""

from __future__ import annotations

from statistics import median, median_low

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.result_schema import KERNEL_TOTALS, KERNELS
from nsysmap.core.table import MISSING, Table
from nsysmap.names.decode import names_table
from nsysmap.timing.totals import (
    by_family,
    by_kernel_name,
    coverage,
    in_steady_part,
    layer_totals,
    layers_with_time,
    other_kernels,
    unmapped,
)
from nsysmap.trace.inferences.steady import steady_inferences
from tests.reports import analysis


def test_families_come_by_their_time_most_first_and_by_name_where_that_is_the_same() -> None:
    rows = [("a", "xmma", 2, 30), ("b", "cudnn", 1, 50), ("c", "xmma", 4, 30), ("d", "cub", 1, 50)]
    totals = Table.of_rows(
        KERNEL_TOTALS,
        [
            {"name": name, "family": family, "count": count, "time_ns": time_ns}
            for name, family, count, time_ns in rows
        ],
    )
    found = [tuple(row.values()) for row in by_family(totals).records()]
    assert found == [
        ("xmma", 2, 6, 60, 60 / 160),
        ("cub", 1, 1, 50, 50 / 160),
        ("cudnn", 1, 1, 50, 50 / 160),
    ]


@pytest.mark.parametrize(
    ("capture", "report"),
    [
        ("torch_mixed", "sync.nsys-rep"),
        ("decode_loop", "sync.nsys-rep"),
        ("bert_trt10", "sync.sqlite"),
    ],
)
def test_the_shares_of_layers_of_all_engines_and_of_other_kernels_add_up_to_one(
    capture: str, report: str
) -> None:
    tables = analysis(capture, report, engine=capture == "bert_trt10").tables
    steady = tables.kernels.take(
        in_steady_part(tables.kernels, steady_inferences(tables.inferences))
    )
    other = steady.take(steady.ints("layer_id") == MISSING)
    shares = (
        tables.repeated_layers.floats("share_of_all_kernel_time").sum()
        + tables.other_kernels.floats("share_of_all_kernel_time").sum()
    )
    assert shares == pytest.approx(1)
    assert tables.other_kernels.ints("kernels").sum() == len(other)
    assert (
        tables.other_kernels.ints("time_ns").sum()
        == (other.ints("end_ns") - other.ints("start_ns")).sum()
    )


# --- against a slow reading
# ------------------------------------------------------------------------

ENGINE_OF = (0, 0, 1)  # of each layer


@st.composite
def made_kernels(draw: st.DrawFn) -> list[dict[str, object]]:
    """Kernels of a few inferences of two engines, and some of none, on two devices."""
    rows: list[dict[str, object]] = []
    at = 0
    for inference in range(draw(st.integers(0, 5))):
        engine = draw(st.sampled_from((0, 0, 1, None)))
        layers = [None, *(layer for layer, its in enumerate(ENGINE_OF) if its == engine)]
        for _ in range(draw(st.integers(1, 4))):
            layer = draw(st.sampled_from(layers))
            rows.append({"inference": inference, "layer_id": layer})
    outside = draw(st.lists(st.sampled_from((None, 0, 2)), max_size=3))
    rows.extend({"inference": None, "layer_id": layer} for layer in outside)
    for number, row in enumerate(rows):
        at += draw(st.integers(0, 3))
        took = draw(st.integers(1, 9))
        its = row["layer_id"]
        row |= {
            "kernel_id": number,
            "device": 0,
            "start_ns": at,
            "end_ns": at + took,
            "name": draw(st.sampled_from("abc")),
            "engine": ENGINE_OF[its] if isinstance(its, int) else None,
            "method": "none" if its is None else draw(st.sampled_from(("nvtx", "order"))),
            "reason": draw(st.sampled_from(("x", "y"))) if its is None else None,
        }
        at += took
    return rows


def took_of(row: dict[str, object]) -> int:
    return int(str(row["end_ns"])) - int(str(row["start_ns"]))


@given(made_kernels(), st.sets(st.integers(0, 4)))
def test_layers_take_the_mean_over_the_inferences_of_their_engine(
    rows: list[dict[str, object]], steady: set[int]
) -> None:
    kernels = Table.of_rows(KERNELS, rows)
    layers = Table.of_rows(
        LAYERS,
        [
            {"layer_id": at, "engine": engine, "name": f"l{at}"}
            for at, engine in enumerate(ENGINE_OF)
        ],
    )
    there = {row["inference"] for row in rows}
    counts = sorted(one for one in steady if one in there)
    found = layers_with_time(layers, kernels, np.array(counts, np.int64))
    counted = [row for row in rows if not counts or row["inference"] in counts]
    engine_of: dict[object, int] = {}
    for row in rows:
        its = row["engine"] if isinstance(row["engine"], int) else -1
        engine_of[row["inference"]] = max(its, engine_of.get(row["inference"], -1))

    def whose(row: dict[str, object]) -> int:
        if row["inference"] is not None:
            return engine_of[row["inference"]]
        return row["engine"] if isinstance(row["engine"], int) else -1

    for layer, record in enumerate(found.records()):
        mine = [row for row in counted if row["layer_id"] == layer]
        if not mine:
            assert record["time_ns"] is None
            assert record["kernels"] is None
            continue
        total = sum(map(took_of, mine))
        engine = ENGINE_OF[layer]
        of_engine = sum(took_of(row) for row in counted if whose(row) == engine)
        if not counts:
            assert (record["time_ns"], record["median_ns"]) == (total, total)
            assert record["kernels"] == len(mine)
        else:
            runs = [one for one in counts if engine_of[one] == engine]
            each = [[took_of(row) for row in mine if row["inference"] == one] for one in runs]
            assert record["time_ns"] == round(total / len(runs))
            assert record["median_ns"] == round(median(map(sum, each)))
            assert record["kernels"] == median_low(map(len, each))
        assert record["share_of_kernel_time"] == pytest.approx(total / of_engine)


@given(made_kernels())
def test_totals_by_method_reason_and_name_add_up_as_a_slow_reading_has_them(
    rows: list[dict[str, object]],
) -> None:
    kernels = Table.of_rows(KERNELS, rows)
    whole = sum(map(took_of, rows))
    found = {record["method"]: record for record in coverage(kernels).records()}
    assert found.keys() == {row["method"] for row in rows}
    for method, record in found.items():
        mine = [took_of(row) for row in rows if row["method"] == method]
        assert (record["kernels"], record["time_ns"]) == (len(mine), sum(mine))
        assert record["share_of_kernel_time"] == pytest.approx(sum(mine) / whole)
    reasons = unmapped(kernels).records()
    assert [(one["reason"], one["kernels"], one["time_ns"]) for one in reasons] == sorted(
        (
            (reason, len(mine), sum(mine))
            for reason in ("x", "y")
            if (mine := [took_of(row) for row in rows if row["reason"] == reason])
        ),
        key=lambda one: (-one[2], one[0]),
    )
    names = by_kernel_name(kernels, names_table(["a", "b", "c"])).records()
    columns = ("name", "count", "time_ns", "median_ns")
    assert [tuple(one[column] for column in columns) for one in names] == sorted(
        (
            (name, len(mine), sum(mine), round(median(mine)))
            for name in "abc"
            if (mine := [took_of(row) for row in rows if row["name"] == name])
        ),
        key=lambda one: (-one[2], one[0]),
    )
    shares = sum(float(str(one["share_of_kernel_time"])) for one in names)
    assert shares == pytest.approx(1 if rows else 0)


@given(made_kernels(), st.sets(st.integers(0, 4)))
def test_what_is_no_layer_s_is_of_the_part_from_the_first_to_the_last_steady_inference(
    rows: list[dict[str, object]], steady: set[int]
) -> None:
    kernels = Table.of_rows(KERNELS, rows)
    counts = np.array(sorted(steady), np.int64)
    begun = [int(str(row["start_ns"])) for row in rows if row["inference"] in steady]
    inside = [not begun or min(begun) <= int(str(row["start_ns"])) <= max(begun) for row in rows]
    assert in_steady_part(kernels, counts).tolist() == inside
    here = [row for row, is_in in zip(rows, inside, strict=True) if is_in]
    time, whole = layer_totals(kernels, 3, counts)
    assert whole == sum(map(took_of, here))
    assert time.tolist() == [
        sum(took_of(row) for row in here if row["layer_id"] == layer) for layer in range(3)
    ]
    others = other_kernels(kernels, names_table(["a", "b", "c"]), counts).records()
    mine = [took_of(row) for row in here if row["layer_id"] is None]
    assert sum(int(str(one["kernels"])) for one in others) == len(mine)
    assert sum(int(str(one["time_ns"])) for one in others) == sum(mine)
    for one in others:
        assert one["share_of_all_kernel_time"] == pytest.approx(int(str(one["time_ns"])) / whole)
