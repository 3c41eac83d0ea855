"""Calls of the host that something disturbed take as long as the same calls of other inferences."""

from __future__ import annotations

import pytest

from nsysmap.whatif.disturbed import brisk, undisturbed
from nsysmap.whatif.timeline import Step, Timeline, each_step
from tests.whatif.test_replay import program


def slowed(by: int, *, inferences: set[int], outside: bool = False) -> Timeline:
    """Five launches an inference, with 2 us of the host's own work before each, which takes so many
    times as long in these inferences.
    """

    def slow(step: Step) -> Step:
        enqueue = step.kind == "submit"
        own = 2_000 * (by if step.inference in inferences and enqueue else 1)
        return step._replace(
            own_ns=own, outside_ns=own if outside or not enqueue else 0, enqueue=enqueue
        )

    return each_step(program(kernels=[1_000] * 5, inferences=20), slow)


@pytest.mark.parametrize(
    ("slow", "outside", "found"),
    [
        (set(), False, 0),
        ({3, 4, 5, 9, 11, 12}, False, 6),  # too many to be outliers
        ({3}, False, 1),
        (
            {3, 4, 5, 9, 11, 12},
            True,
            0,
        ),  # work between inferences is the program's own: it may do more in some
    ],
)
def test_calls_that_are_far_slower_than_the_same_calls_elsewhere_take_what_those_take(
    slow: set[int], outside: bool, found: int
) -> None:
    timeline = slowed(8, inferences=slow, outside=outside)
    calm, held_up = undisturbed(timeline)
    assert held_up == found
    assert calm == (timeline if outside or not slow else slowed(1, inferences=set()))


def test_inferences_that_make_other_calls_are_compared_with_their_like_only() -> None:
    timeline = slowed(8, inferences={3, 4, 5, 9})
    other = each_step(
        timeline,
        lambda step: step._replace(api="other") if step.inference in {3, 4, 5, 9} else step,
    )
    assert undisturbed(other) == (other, 0)


def test_a_quick_host_takes_what_the_quickest_tenth_of_inferences_take() -> None:
    timeline = slowed(4, inferences=set(range(4, 20)))  # disturbed nearly throughout
    assert brisk(timeline) == slowed(1, inferences=set())
    assert brisk(slowed(1, inferences=set())) == slowed(1, inferences=set())
