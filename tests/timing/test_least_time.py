"""The least time of a layer on a GPU of round figures, and which of its bytes come from memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.timing.least_time import (
    LayerBytes,
    LeastTime,
    Measurement,
    TensorUse,
    bytes_from_memory,
    cache_holds,
    least_time,
)
from nsysmap.timing.roofline import Device, Needed

# a byte of memory takes 1 ps, of the cache 1/6.4; tensor cores do 409.6 T operations of FP16 a
# second
H100 = Device("H100", (9, 0), 100, 1_000_000_000, 1_000_000_000_000)


def need(
    moved: int | None = None, *, macs: int | None = 0, precision: str | None = "FP16"
) -> Needed:
    return Needed(moved, None if macs is None else 2 * macs, macs, precision, "unknown", None)


def least(
    needed: Needed,
    *,
    time_ns: int | None = None,
    from_memory: int | None = None,
    weight_bytes: int | None = None,
    counted: Measurement | None = None,
    device: Device = H100,
) -> LeastTime:
    return least_time(
        needed,
        device,
        time_ns=time_ns,
        from_memory=from_memory,
        weight_bytes=weight_bytes,
        counted=counted or Measurement(),
    )


def test_the_longest_part_is_the_limit() -> None:
    assert LeastTime(1, 3, 2, 1, "model").limit == "device-memory"
    assert LeastTime(1, 2, 3, 1, "model").limit == "l2-cache"
    assert LeastTime(1, 2, 2, 3, "model").limit == "arithmetic"
    assert LeastTime(1, 3, 3, 3, "model").limit == "arithmetic"
    assert LeastTime(1, 3, 3, 1, "model").limit == "device-memory"
    assert LeastTime(1, None, 3, None, "model").least_ns == 3
    assert LeastTime(1, None, None, None, "model").least_ns is None
    assert LeastTime(1, 3, 3, 3, None).least_ns is None
    assert LeastTime().limit is None


def test_bytes_take_what_memory_and_the_cache_need_for_them() -> None:
    assert least(need(6_400_000), from_memory=2_000_000) == LeastTime(
        2_000_000, 2_000, 1_000, 0, "model"
    )
    assert least(need(), weight_bytes=6_400_000, from_memory=5) == LeastTime(
        5, 0, 1_000, 0, "weights"
    )
    assert least(need(6_400_000), weight_bytes=5).source == "model"
    assert least(need(macs=None)) == LeastTime()
    unknown = Device("x", None, None, None, None)
    assert least(need(6_400_000), from_memory=9, device=unknown) == LeastTime(
        9, None, None, None, "model"
    )
    for lacking in (
        Device("x", (9, 0), None, 1_000_000_000, None),
        Device("x", (9, 0), 100, None, None),
    ):
        assert least(need(6_400_000), device=lacking).cache_ns is None


def test_counted_bytes_count_where_they_are_fewer() -> None:
    few, many = Measurement(dram_bytes=1_000_000), Measurement(dram_bytes=9_000_000)
    assert least(need(6_400_000), from_memory=5, counted=few).memory_bytes == 1_000_000
    assert least(need(6_400_000), from_memory=5, counted=many).memory_bytes == 6_400_000
    assert least(need(), from_memory=5, counted=many).memory_bytes == 9_000_000
    assert least(need(), counted=many).source == "counters"


def test_tensor_cores_take_what_they_were_busy_where_that_is_less() -> None:
    product = need(macs=409_600_000)  # 2 us
    assert least(product).compute_ns == 2_000
    for share, ns, source in ((0.1, 1_000, "counters"), (0.5, 2_000, "counters")):
        found = least(product, time_ns=10_000, counted=Measurement(tensor_share=share))
        assert (found.compute_ns, found.source) == (ns, source)
    unknown = need(macs=None)
    assert least(unknown, time_ns=10_000, counted=Measurement(tensor_share=0.3)).compute_ns == 3_000
    assert (
        least(need(macs=0), time_ns=10_000, counted=Measurement(tensor_share=0.3)).source is (None)
        or least(need(macs=0), time_ns=10_000, counted=Measurement(tensor_share=0.3)).compute_ns
        == 0
    )
    assert least(product, counted=Measurement(tensor_share=0.1)).compute_ns == 2_000


def test_what_multiplies_nothing_is_as_fast_as_the_other_cores() -> None:
    pointwise = Needed(None, 1_000_000_000, 0, None, "no", None)
    plain = H100.peak_flops_per_s("FP32", tensor_cores=False)
    assert plain is not None
    assert least(pointwise).compute_ns == round(1_000_000_000 / plain * 1e9)
    older = Device("P100", (6, 0), 100, 1_000_000_000, None)  # without tensor cores
    rate = older.peak_flops_per_s("FP32", tensor_cores=False)
    found = least(need(macs=500_000_000, precision="FP32"), device=older).compute_ns
    assert found == (None if rate is None else round(1_000_000_000 / rate * 1e9))


@pytest.mark.parametrize(
    ("time_ns", "found"),
    [
        (2_000, LeastTime(2_000_000, 2_000, 1_000, 0, "model")),
        (1_999, LeastTime(None, None, 1_000, 0, "model")),  # the cache held it after all
        (1_000, LeastTime(None, None, 1_000, 0, "model")),
        (999, LeastTime()),
        (0, LeastTime(2_000_000, 2_000, 1_000, 0, "model")),
        (None, LeastTime(2_000_000, 2_000, 1_000, 0, "model")),
    ],
)
def test_it_is_no_longer_than_measured(time_ns: int | None, found: LeastTime) -> None:
    assert least(need(6_400_000), from_memory=2_000_000, time_ns=time_ns) == found


def test_the_cache_of_two_partitions_holds_half() -> None:
    for capability in ((8, 0), (9, 0), (10, 0), (10, 1), (10, 3)):
        assert cache_holds(101, capability) == 50
    for other in ((7, 0), (8, 6), (8, 9), (12, 0), (11, 0), None):
        assert cache_holds(101, other) == 101
    assert cache_holds(None, (9, 0)) == 256 << 20


# --- bytes from memory
# ---


def of_layers(
    *layers: tuple[int | None, int | None, int | None, tuple[TensorUse, ...]],
    held: int,
    asked: frozenset[int] | None = None,
) -> list[int | None]:
    numbers = range(len(layers))
    found = bytes_from_memory(
        numbers,
        {at: LayerBytes(*layers[at][:3]) for at in numbers},
        {at: layers[at][3] for at in numbers},
        held,
        asked=asked,
    )
    return [found[at] for at in found]


def reads(name: str, size: int | None) -> TensorUse:
    return TensorUse(name, "in", size)


def writes(name: str, size: int | None) -> TensorUse:
    return TensorUse(name, "out", size)


def test_weights_come_from_memory_unless_all_of_them_stay() -> None:
    layers = ((4, 6, 50, ()), (4, 5, 40, ()))
    assert of_layers(*layers, held=100) == [0, 0]  # 90 and the 10 of the largest layer
    assert of_layers(*layers, held=99) == [50, 40]


def test_what_was_written_is_read_from_the_cache_unless_too_much_came_between() -> None:
    def third(between: int, size: int = 10, held: int = 100) -> list[int | None]:
        return of_layers(
            (0, size, 95, (writes("a", size),)),
            (between, 0, 0, ()),
            (size, 0, 0, (reads("a", size),)),
            held=held,
        )

    assert third(90) == [95, 0, 0]
    assert third(91) == [95, 0, 10]
    assert third(0, size=100) == [95, 0, 0]
    assert third(0, size=101) == [95 + 101, 0, 101]


def test_weights_in_between_count_too() -> None:
    def third(weights: int) -> list[int | None]:
        return of_layers(
            (0, 10, 95, (writes("a", 10),)),
            (0, 0, weights, ()),
            (10, 0, 7, (reads("a", 10),)),
            held=100,
        )

    assert third(90) == [95, 90, 7]
    assert third(91) == [95, 91, 17]


def test_no_more_is_read_than_the_layer_reads_and_what_is_not_known_is_not_made_up() -> None:
    assert of_layers((60, 0, 0, (reads("a", 101), reads("b", 5))), held=100) == [60]
    assert of_layers((None, 0, 0, (reads("a", 101), reads("b", 102))), held=100) == [203]
    assert of_layers((0, 0, 0, (reads("a", None),)), held=100) == [None]
    assert of_layers((0, 0, 101, (reads("a", None),)), held=100) == [101]
    assert of_layers((None, None, None, ()), held=100) == [0]


USES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["in", "out"]), st.integers(1, 60)),
    max_size=3,
)


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), USES), max_size=6
    ),
    st.sets(st.integers(0, 5)),
)
def test_of_some_layers_it_is_what_it_is_of_all(
    layers: list[tuple[int, int, int, list[tuple[str, str, int]]]], asked: set[int]
) -> None:
    made = [
        (read, written, weights, tuple(TensorUse(*use) for use in uses))
        for read, written, weights, uses in layers
    ]
    every = of_layers(*made, held=80)
    some = of_layers(*made, held=80, asked=frozenset(asked))
    assert some == [one for at, one in enumerate(every) if at in asked]
