"""What each layer took over the steady-state inferences, or in trtexec's profile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsysmap.core.result_schema import KERNELS
from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES
from nsysmap.timing.layer_times import layer_times, profiled_layer_times
from tests.made_engines import made, row

STEADY_STATE = np.array([1, 2])


def kernel(
    inference: int, layer: int | None, start: int, end: int, name: str = "a", *, device: int = 0
) -> dict[str, object]:
    mapped = {"layer_id": layer, "engine": None if layer is None else 0}
    return {
        "inference": inference,
        **mapped,
        "start_ns": start,
        "end_ns": end,
        "name": name,
        "device": device,
    }


def times(*kernels: dict[str, object]) -> list[dict[str, object]]:
    inferences = Table.of_rows(
        INFERENCES, [{"inference": number, "engine": 0} for number in range(3)]
    )
    return layer_times(Table.of_rows(KERNELS, list(kernels)), inferences, STEADY_STATE).records()


def test_kernels_of_the_steady_inferences_add_up_by_layer() -> None:
    first, second = times(
        kernel(0, 0, 0, 900),
        kernel(1, 0, 1000, 1010, "short"),
        kernel(1, 0, 1020, 1050, "long"),
        kernel(1, 5, 1060, 1080),
        kernel(2, 0, 2000, 2020, "short"),
        kernel(2, None, 2030, 2100),
    )
    assert (first["layer_id"], first["total_ns"], first["kernels"], first["kernel"]) == (
        0,
        60,
        3,
        "long",
    )
    assert (
        first["start_ns"],
        first["end_ns"],
        first["inferences"],
        first["share_of_kernel_time"],
    ) == (1000, 2020, 2, 0.75)
    assert (second["layer_id"], second["total_ns"], second["share_of_kernel_time"]) == (5, 20, 0.25)
    assert (first["told_by"], first["device"]) == ("trace", 0)


def test_a_layer_that_ran_on_two_devices_has_none() -> None:
    (one,) = times(kernel(1, 0, 0, 10), kernel(2, 0, 20, 30, device=1))
    assert one["device"] is None


def test_without_steady_inferences_or_layers_there_are_no_rows() -> None:
    assert times(kernel(0, 0, 0, 10)) == []
    assert times(kernel(1, None, 0, 10)) == []


def test_a_profile_is_one_inference_and_an_engine_without_one_has_no_rows() -> None:
    engine = made(row("a", "gemm", [], []), row("b", "gemm", [], []))
    profiled = replace(engine, trtexec_ns=(3000, 1000))
    rows = profiled_layer_times([engine, profiled]).records()
    assert [
        (item["layer_id"], item["engine"], item["total_ns"], item["share_of_kernel_time"])
        for item in rows
    ] == [
        (2, 1, 3000, 0.75),
        (3, 1, 1000, 0.25),
    ]
    assert {(item["told_by"], item["inferences"]) for item in rows} == {("profile", 1)}
