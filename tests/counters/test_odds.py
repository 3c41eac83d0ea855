"""How clear the difference of two offsets is, where rates of kernels explain samples
imperfectly.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nsysmap.counters.odds import ExplainedSamples, by_place, less_likely, likely, spread

FAR = np.array([0.0, 20_000.0])
"""Offsets in ns that are so far apart that each place is wrong in its own way."""


def one(misfit: float, squares: NDArray[np.float64]) -> ExplainedSamples:
    return ExplainedSamples(np.array([misfit]), squares, np.ones(len(squares)))


def test_a_difference_that_all_places_agree_on_counts_in_full() -> None:
    better, worse = one(0.0, np.full((1, 400), 10.0)), one(40.0, np.full((1, 400), 10.2))
    assert by_place(worse, better) == pytest.approx(np.full(400, 0.1))
    assert less_likely([worse, better], FAR, np.arange(400)) == pytest.approx([40.0, 0.0])


def test_a_difference_that_is_of_some_places_and_against_others_counts_by_its_scatter() -> None:
    """+1000 in 51 places and -1000 in 49, in units of twice the noise's variance: 1000 of a scatter
    of 10,000 tell nothing.
    """
    apart = np.where(np.arange(100) < 51, 2000.0, -2000.0)[None]
    same = np.full((1, 100), 5000.0)
    told = less_likely([one(0.0, same), one(2000.0, same + apart)], FAR, np.arange(100))
    assert told[0] == 0
    assert told[1] == pytest.approx(2 * (2000 / 10_000) ** 2)


def test_places_of_a_kernel_count_as_one_where_offsets_are_near() -> None:
    """A kernel that begins late pulls all of its parts the same way: 20 kernels of 5 places."""
    apart = np.repeat(np.where(np.arange(20) < 13, 10.0, -10.0), 5)[None]
    same = np.full((1, 100), 100.0)
    each, kernel = [one(0.0, same), one(150.0, same + apart)], np.repeat(np.arange(20), 5)
    assert less_likely(each, FAR, kernel)[1] == pytest.approx(2 * 150.0**2 / (100 * 5.0**2))
    assert less_likely(each, FAR / 20, kernel)[1] == pytest.approx(2 * 150.0**2 / (20 * 25.0**2))


def test_offsets_that_are_hardly_probable_widen_the_error_but_no_interval() -> None:
    apart = np.array([1000.0, -5000.0, 4000.0])
    far, near = np.array([0.0, 0.02, 0.01]), np.array([0.2, 0.02, 0.01])
    assert spread(apart, far) > 700
    assert spread(apart, likely(far)) == 0
    assert spread(apart, likely(near)) == pytest.approx(1000 * (0.2 / 1.2) ** 0.5)
