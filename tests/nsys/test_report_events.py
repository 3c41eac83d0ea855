"""What is read of single events, and of the session that they belong to."""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.inputs.nsys.report_events import _opened
from nsysmap.inputs.nsys.report_facts import _clock_offsets
from nsysmap.inputs.nsys.report_wire import BufferParts, Message, WireError, padded
from tests.made_report import message


@pytest.mark.parametrize("kind", [1, 79, 127, 128, 200, 300, 16_383])
def test_the_type_of_an_event_and_where_its_body_is(kind: int) -> None:
    event = message((1, kind), (101, b"body"))
    types, bodies, spans = _opened(
        padded(event), BufferParts(np.array([0]), np.array([len(event)]))
    )
    assert (types.tolist(), bodies.tolist()) == ([kind], [101])
    assert event[spans.begin[0] : spans.end[0]] == b"body"


def test_types_beyond_two_bytes_are_an_error() -> None:
    event = message((1, 16_384), (101, b"body"))
    with pytest.raises(WireError, match="a type beyond"):
        _opened(padded(event), BufferParts(np.array([0]), np.array([len(event)])))


def test_only_offsets_are_offsets_of_a_clock() -> None:
    def conversion(of: int, text: bytes, kind: bytes) -> tuple[int, bytes]:
        return 1, message((1, of), (2, 9), (5, text), (6, kind))

    conversions = message(
        conversion(1, b"-12", b"Offset"),
        conversion(2, b"34", b"Scale"),
        conversion(3, b"1" * 21, b"Offset"),
        conversion(4, b"5.5", b"Offset"),
        conversion(5, b"56", b"Offset"),
    )
    session = Message.of(message((16, conversions)))
    assert _clock_offsets(session) == {(1, 9): -12, (5, 9): 56}


def test_one_event_that_is_none_is_an_error_among_many() -> None:
    right, long = message((1, 79), (101, b"body")), message((1, 300), (101, b"body"))
    wrong = {
        "type": message((2, 79), (101, b"body")),
        "known form": message((1, 79), (15, b"body")),
        "more than": message((1, 79), (101, b"body"), (3, 1)),
        "a type beyond": message((1, 16_384), (101, b"body")),
    }
    for why, one in wrong.items():
        for events in ([right, long, one], [one, right, long]):
            ends = np.cumsum([len(event) for event in events])
            spans = BufferParts(ends - [len(event) for event in events], ends)
            with pytest.raises(WireError, match=why):
                _opened(padded(*events), spans)
    ends = np.cumsum([len(right), len(long)])
    types, _, _ = _opened(padded(right, long), BufferParts(np.array([0, len(right)]), ends))
    assert types.tolist() == [79, 300]
