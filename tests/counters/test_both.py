"""Two computations on two threads give what they give one after the other."""

from __future__ import annotations

import threading

import pytest

from nsysmap.counters.both import both


def test_both_run_at_the_same_time_and_their_results_keep_their_places() -> None:
    met = threading.Barrier(2, timeout=10)

    def one(value: str) -> tuple[str, int]:
        met.wait()  # raises if the other does not run meanwhile
        return value, threading.get_ident()

    (first, here), (second, there) = both(lambda: one("first"), lambda: one("second"))
    assert (first, second) == ("first", "second")
    assert here == threading.get_ident() != there


def test_what_either_raises_is_raised() -> None:
    def wrong() -> int:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        both(lambda: 1, wrong)
    with pytest.raises(ValueError, match="wrong"):
        both(wrong, lambda: 1)
