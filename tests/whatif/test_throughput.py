"""What the hardware needs at least, by phase, on timelines of a few pieces of work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysmap.whatif.throughput import Phase, least_ns, phases_in_flight, phases_of
from nsysmap.whatif.timeline import Step, Timeline, Work
from tests.whatif.test_replay import COSTS, step, work


def at(number: int, start: int, end: int, kind: str = "kernel", need: float = 1.0) -> Work:
    made = work(number, end - start, kind, need=need)  # type: ignore[arg-type]
    return made._replace(start_ns=start, end_ns=end)


def submit(inference: int, *works: Work) -> Step:
    return step("submit", inference, works=works)


def timeline(
    *threads: tuple[Step, ...], weights: dict[int, float], phases: bool = False
) -> Timeline:
    made = Timeline(threads, COSTS, tuple(weights for _ in threads))
    return replace(made, phases=tuple({2: 1, 3: 1} for _ in threads)) if phases else made


def test_an_inference_is_in_flight_where_it_begins_before_the_one_before_it_ends() -> None:
    one = timeline(
        (
            submit(0, at(1, 0, 100)),
            submit(1, at(2, 99, 200)),
            submit(2, at(3, 200, 300)),
            submit(4, at(4, 250, 400)),  # the one before it is not there
        ),
        weights={1: 2.0, 2: 3.0, 4: 5.0},
    )
    ends = ({0: 100, 1: 200, 2: 320, 4: 400},)
    assert phases_of(one, ends) == {
        0: Phase(inferences=10.0, in_flight=2.0, took_ns=2 * 100 + 3 * 120 + 5 * 80)
    }


def test_phases_have_sums_of_their_own_shared_among_threads() -> None:
    steps = tuple(
        submit(number, at(number, 100 * number, 100 * number + 150)) for number in range(4)
    )
    one = timeline(steps, steps, weights={1: 1.0, 2: 1.0, 3: 1.0}, phases=True)
    ends = {0: 100, 1: 250, 2: 350, 3: 460}
    found = phases_of(one, (ends, ends))
    assert found[0] == Phase(inferences=2.0, in_flight=2.0, took_ns=150)
    assert found[1] == Phase(inferences=4.0, in_flight=4.0, took_ns=210)


def test_copies_to_the_host_are_part_of_an_inference_on_the_gpu_and_others_are_not() -> None:
    def in_flight(kind: str) -> float:
        one = timeline(
            (submit(0, at(1, 0, 100), at(2, 100, 150, kind)), submit(1, at(3, 120, 200))),
            weights={1: 1.0},
        )
        return phases_of(one, ({0: 150, 1: 200},))[0].in_flight

    assert [in_flight(kind) for kind in ("DtoH", "HtoD", "memset")] == [1.0, 0.0, 0.0]
    between = timeline(  # an early copy to the host begins it, a late kernel ends it
        (submit(0, at(1, 50, 100), at(2, 0, 20, "DtoH")), submit(1, at(3, 40, 200))),
        weights={1: 1.0},
    )
    assert phases_of(between, ({0: 100, 1: 200},))[0].in_flight == 1.0
    later = timeline(  # an inference begins with its first kernel
        (submit(0, at(1, 0, 100)), submit(1, at(2, 90, 120), at(3, 120, 200))),
        weights={1: 1.0},
    )
    assert phases_of(later, ({0: 100, 1: 200},))[0].in_flight == 1.0


@pytest.mark.parametrize(("in_flight", "overlaps"), [(2.0, False), (2.1, True), (0.0, False)])
def test_most_of_a_phase_is_more_than_half(in_flight: float, overlaps: bool) -> None:
    assert Phase(4.0, in_flight, 1.0).overlaps == overlaps


def test_the_share_of_phases_with_several_in_flight_is_of_their_time() -> None:
    phases = {0: Phase(4.0, 4.0, 300.0), 1: Phase(40.0, 1.0, 100.0)}
    assert phases_in_flight(phases) == 0.75
    assert phases_in_flight({}) == 0.0


def needed(*works: Work, weight: float = 1.0, threads: int = 1) -> float:
    one = timeline((submit(1, *works),), weights={1: weight})
    return least_ns(one, threads, {0: Phase(inferences=2.0, took_ns=9.0)})


def test_the_least_time_is_the_longest_of_kernels_and_copies_of_each_direction() -> None:
    kernels = (at(1, 0, 100, need=0.5), at(2, 0, 60, need=3.0))
    up, down = at(3, 0, 200, "HtoD"), at(4, 0, 150, "DtoH")
    assert needed(*kernels) == 110 / 2
    assert needed(*kernels, up, down) == 200 / 2
    assert needed(*kernels, down) == 150 / 2
    assert needed(*kernels, at(5, 0, 900, "copy"), at(6, 0, 900, "memset")) == 110 / 2
    assert needed(*kernels, weight=3.0) == 330 / 2
    assert needed(*kernels, threads=2) == 110
    assert needed() == 0.0


def test_an_inference_that_does_not_count_needs_nothing() -> None:
    one = timeline((submit(0, at(1, 0, 100)), submit(1, at(2, 0, 30))), weights={1: 1.0})
    assert least_ns(one, 1, {0: Phase(inferences=1.0)}) == 30


def test_a_phase_that_overlaps_takes_as_long_as_it_does_at_least() -> None:
    one = timeline(
        tuple(submit(number, at(number, 0, 100)) for number in range(4)),
        weights={1: 1.0, 2: 1.0, 3: 1.0},
        phases=True,
    )
    phases = {0: Phase(1.0, 0.0, 500.0), 1: Phase(2.0, 2.0, 230.0)}
    assert least_ns(one, 1, phases) == pytest.approx((100 + 230) / 3)
    shorter = {0: Phase(1.0, 0.0, 500.0), 1: Phase(2.0, 2.0, 150.0)}
    assert least_ns(one, 1, shorter) == pytest.approx((100 + 200) / 3)
