"""How slow the host was, and what that leaves of its work without the profiler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysmap.trace.inferences.disturbance import SlowCalls
from nsysmap.whatif.host_pace import HostPace, host_pace
from nsysmap.whatif.model import slowed_note
from nsysmap.whatif.profiler import MACHINES, around_calls, at_pace
from nsysmap.whatif.timeline import Timeline
from tests.whatif.test_replay import COSTS, program


def launching(call_ns: int) -> Timeline:
    made = program(kernels=[1_000] * 10)
    threads = tuple(
        tuple(step._replace(call_ns=call_ns) if step.works else step for step in steps)
        for steps in made.threads
    )
    return replace(made, threads=threads, costs=COSTS)


@pytest.mark.parametrize(
    ("call_ns", "times"), [(4_000, 1.0), (8_000, 2.0), (3_600, 0.9), (1_000, 0.825)]
)
def test_the_pace_is_that_of_launch_calls_beside_those_of_a_host_that_nothing_slows(
    call_ns: int, times: float
) -> None:
    pace = host_pace(launching(call_ns), None, own_calls=False)
    assert pace.launches == pytest.approx(times)
    assert pace.slowness == max(pace.launches, 1.0)


def test_a_host_that_launches_as_usual_takes_what_is_left_without_the_profiler() -> None:
    assert host_pace(launching(4_000), None, own_calls=False).without == 1.0


def test_the_slower_the_host_was_the_less_is_left() -> None:
    left = [
        host_pace(launching(ns), SlowCalls("cuKernelSetAttribute", 500, quickest), own_calls=False)
        for ns, quickest in ((4_000, 1.0), (4_000, 1.4), (6_000, 1.0), (6_000, 1.4))
    ]
    by = [pace.without for pace in left]
    assert by[0] == 1.0 > max(by[1], by[2]) > min(by[1], by[2]) > by[3] > 0.4


def test_the_profiler_s_own_calls_tell_more_than_launches() -> None:
    assert HostPace(2.0, 1.1, own_calls=True).without == 1.0
    assert HostPace(2.0, 1.5, own_calls=True).without == pytest.approx(1 / 1.5)


def test_the_pace_changes_what_launches_take_on_every_machine() -> None:
    pace = HostPace(2.0, 1.0, own_calls=False)
    for before, after in zip(MACHINES, at_pace(MACHINES, pace), strict=True):
        assert after.launch == pytest.approx(before.launch * pace.without)
        assert replace(after, launch=before.launch) == before


def test_python_s_work_around_calls_shrinks_with_the_host_s_slowness() -> None:
    calm, slow = (HostPace(launches, 1.0, own_calls=False) for launches in (0.9, 2.0))
    quick, slowed = (around_calls(pace, graphs=True, repeats=False) for pace in (calm, slow))
    assert (quick.left, quick.within_ns) == (0.75, 15_000)
    assert slowed.left == pytest.approx(0.75 / 2**1.5)
    # of what it took on a slow host as much is left as of what it would have taken on another
    assert slowed.left_ns(100_000) == pytest.approx(quick.left_ns(100_000), abs=1)
    assert slowed.rest_ns(100_000) == 100_000 - slowed.within_ns < quick.rest_ns(100_000)
    repeated = around_calls(calm, graphs=False, repeats=True)
    marked = around_calls(calm, graphs=False, repeats=False)
    assert repeated.left < marked.left
    # what TensorRT does before its first launch and after its last lies there too
    assert repeated.within_ns == 2 * marked.within_ns


def test_launches_of_threads_that_wait_for_each_other_are_less_of_a_sign_of_a_slow_host() -> None:
    alone = HostPace(2.0, 1.3, own_calls=False)
    both = replace(alone, contended=True)
    assert alone.without < both.without < 1
    assert both.without == replace(both, quickest=1.0).without
    one = launching(8_000)
    two = replace(one, threads=one.threads * 2)
    paces = [host_pace(timeline, None, own_calls=False) for timeline in (one, two)]
    assert [pace.contended for pace in paces] == [False, True]
    assert paces[0].launches == paces[1].launches


@pytest.mark.parametrize(
    ("launches", "quickest", "told"),
    [
        (1.0, 1.1, ()),
        (1.15, 1.15, ("most calls of cuKernelSetAttribute", "launch calls")),
        (1.4, 1.1, ("launch calls",)),
        (1.0, 1.6, ("most calls of cuKernelSetAttribute",)),
    ],
)
def test_what_shows_a_slow_host_is_said_whatever_it_is(
    launches: float, quickest: float, told: tuple[str, ...]
) -> None:
    pace = HostPace(launches, quickest, own_calls=False)
    note = slowed_note(SlowCalls("cuKernelSetAttribute", 100, quickest), pace)
    said = [one for one in ("most calls of cuKernelSetAttribute", "launch calls") if one in note]
    assert (bool(note), tuple(said)) == (bool(told), told)
