"""Which host memory the copies of an inference use, and how fast this trace's pinned copies are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.table import Table
from nsysmap.core.trace_schema import INFERENCES, MEMCPYS
from nsysmap.trace.copies import LARGE_COPY_BYTES, copied_memory, if_pinned_ns, link_rates

Made = dict[str, object]


def inferences(*ends: tuple[int, int]) -> Table:
    """Enqueued by these threads, up to these times."""
    rows = [
        {"inference": at, "start_ns": 0, "end_ns": 0, "thread": thread, "enqueue_end_ns": end}
        for at, (thread, end) in enumerate(ends)
    ]
    return Table.of_rows(INFERENCES, rows)


def copy(
    launch_ns: int,
    kind: str,
    memory: str,
    *,
    thread: int | None = 1,
    size: int = 4,
    took_ns: int = 1,
) -> Made:
    host, other = {
        "HtoD": ("source", "target"),
        "DtoH": ("target", "source"),
        "DtoD": ("source", "target"),
    }[kind]
    span = {"start_ns": launch_ns, "end_ns": launch_ns + took_ns, "bytes": size}
    return {
        "kind": kind,
        host: memory,
        other: "device",
        "thread": thread,
        "launch_start_ns": launch_ns,
        **span,
    }


def copies(*rows: Made) -> Table:
    return Table.of_rows(MEMCPYS, list(rows))


def test_the_copies_of_an_inference_are_those_its_thread_requested_after_the_enqueue_before_it() -> (  # noqa: E501
    None
):
    made = [
        copy(5, "HtoD", "pageable"),
        copy(15, "DtoH", "pageable"),
        copy(16, "HtoD", "pinned"),
        copy(35, "DtoD", "device"),
    ]
    made += [copy(16, "DtoH", "managed", thread=2), copy(41, "DtoH", "pageable")]
    found = copied_memory(inferences((1, 10), (1, 20), (1, 30), (1, 40), (2, 20)), copies(*made))
    assert found.list() == ["pageable", "HtoD pinned, DtoH pageable", "none", "none", "managed"]


def test_without_the_thread_that_requested_a_copy_nothing_is_said() -> None:
    found = copied_memory(
        inferences((1, 10), (1, 20)),
        copies(copy(5, "HtoD", "pinned"), copy(6, "DtoH", "pinned", thread=None)),
    )
    assert found.list() == [None, None]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), unique=True, max_size=12),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.sampled_from(["HtoD", "DtoH"])),
        max_size=12,
    ),
)
def test_each_copy_is_of_the_next_inference_of_its_thread(
    ends: list[tuple[int, int]], made: list[tuple[int, int, str]]
) -> None:
    found = copied_memory(
        inferences(*ends),
        copies(*(copy(at, way, "pinned", thread=thread) for thread, at, way in made)),
    )
    for place, (thread, end) in enumerate(ends):
        before = max((one for other, one in ends if other == thread and one < end), default=-1)
        mine = any(other == thread and before < at <= end for other, at, _ in made)
        assert found[place] == ("pinned" if mine else "none")


def test_large_pageable_copies_take_what_pinned_ones_take_and_never_longer() -> None:
    large = LARGE_COPY_BYTES
    made = copies(
        copy(0, "HtoD", "pinned", size=large, took_ns=large // 8),
        copy(0, "HtoD", "pinned", size=large * 4, took_ns=large // 4),
        copy(0, "HtoD", "pinned", size=100, took_ns=1_000),
        copy(0, "DtoH", "pinned", size=large * 4, took_ns=large),
        copy(0, "HtoD", "pageable", size=large * 3, took_ns=large),
        copy(0, "HtoD", "pageable", size=100, took_ns=1_000),
        copy(0, "DtoH", "pageable", size=large, took_ns=large // 5),
    )
    assert link_rates(made, "pinned") == pytest.approx({"HtoD": 12, "DtoH": 4})
    assert link_rates(made, "pageable") == pytest.approx({"HtoD": 3, "DtoH": 5}, rel=1e-4)
    took = (made.ints("end_ns") - made.ints("start_ns")).tolist()
    assert if_pinned_ns(made).tolist() == [*took[:4], large // 4, 1_000, large // 5]
    without = made.take(made.text("source").equals("pageable"))
    assert if_pinned_ns(without).tolist() == [large, 1_000]
