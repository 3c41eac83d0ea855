"""How clear the difference of two offsets is, where rates of kernels explain samples imperfectly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nsysmap.counters.odds import Explained, by_place, less_likely


def one(misfit: float, squares: NDArray[np.float64]) -> Explained:
    return Explained(np.array([misfit]), squares, np.ones(len(squares)))


def test_a_difference_that_all_places_agree_on_counts_in_full() -> None:
    better, worse = one(0.0, np.full((1, 400), 10.0)), one(40.0, np.full((1, 400), 10.2))
    assert by_place(worse, better) == pytest.approx(np.full(400, 0.1))
    assert less_likely([worse, better]) == pytest.approx([40.0, 0.0])


def test_a_difference_that_is_of_some_places_and_against_others_counts_by_its_scatter() -> None:
    """+1000 in 51 places and -1000 in 49, in units of twice the noise's variance: 1000 of a scatter of 10,000 tell nothing."""
    apart = np.where(np.arange(100) < 51, 2000.0, -2000.0)[None]
    same = np.full((1, 100), 5000.0)
    told = less_likely([one(0.0, same), one(2000.0, same + apart)])
    assert told[0] == 0
    assert told[1] == pytest.approx(2 * (2000 / 10_000) ** 2)
