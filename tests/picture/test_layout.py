"""The layout of a picture: data flows down, boxes never overlap, lanes keep clear of boxes, and it
is the same each time.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.output.picture.layout import BOX_HEIGHT, BOX_WIDTH, MOST_BOXES, Layout, Link, layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Link]]:
    boxes = draw(st.integers(1, 30))
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, boxes - 1), st.integers(0, boxes - 1), st.sampled_from("ab")),
            max_size=60,
        )
    )
    return boxes, [Link(source, target, name) for source, target, name in dict.fromkeys(pairs)]


def ends(found: Layout, link: Link) -> tuple[tuple[float, float], tuple[float, float]]:
    """The point below the upper box and that above the lower one."""
    (x1, y1), (x2, y2) = (
        found.boxes[min(link.source, link.target)],
        found.boxes[max(link.source, link.target)],
    )
    return (x1 + BOX_WIDTH / 2, y1 + BOX_HEIGHT), (x2 + BOX_WIDTH / 2, y2)


@given(graphs())
def test_boxes_never_overlap_and_stay_on_the_page(graph: tuple[int, list[Link]]) -> None:
    found = layout(*graph)
    corners = sorted(found.boxes)
    for x, y in corners:
        assert -1e-6 <= x <= found.width - BOX_WIDTH + 1e-6
        assert -1e-6 <= y <= found.height - BOX_HEIGHT + 1e-6
    for number, (x, y) in enumerate(corners):
        for other_x, other_y in corners[number + 1 :]:
            assert abs(other_x - x) >= BOX_WIDTH - 1e-6 or abs(other_y - y) >= BOX_HEIGHT - 1e-6


@given(graphs())
def test_every_way_is_unbroken_from_its_source_to_its_target(graph: tuple[int, list[Link]]) -> None:
    found = layout(*graph)
    for link, way in zip(graph[1], found.ways, strict=True):
        if link.source == link.target:
            assert way == ()
            continue
        above, below = ends(found, link)
        first, last = (above, below) if link.source < link.target else (below, above)
        assert way[0][0] == first
        assert way[-1][-1] == last
        assert all(one[-1] == other[0] for one, other in pairwise(way))


@given(graphs())
def test_lanes_keep_clear_of_boxes(graph: tuple[int, list[Link]]) -> None:
    found = layout(*graph)
    for way in found.ways:
        for segment in way:
            for (x, y), (other_x, other_y) in pairwise(segment):
                if x != other_x:
                    continue
                low, high = sorted((y, other_y))
                for left, top in found.boxes:
                    inside = left + 1e-6 < x < left + BOX_WIDTH - 1e-6
                    assert not (inside and low < top + BOX_HEIGHT - 1e-6 and high > top + 1e-6)


@given(graphs())
def test_the_same_graph_has_the_same_places(graph: tuple[int, list[Link]]) -> None:
    assert layout(*graph) == layout(*graph)


def test_a_reader_is_below_what_it_reads_unless_it_begins_another_column() -> None:
    tops = [y for _, y in layout(4, [Link(0, 1), Link(1, 2), Link(2, 3), Link(0, 3, "skip")]).boxes]
    assert tops == sorted(set(tops))
    boxes = layout(400, [Link(at, at + 1, str(at)) for at in range(399)]).boxes
    for (left, top), (next_left, next_top) in pairwise(boxes):
        assert next_left > left or next_top > top


def test_a_long_chain_is_wrapped_into_columns_of_a_page() -> None:
    found = layout(400, [Link(at, at + 1, str(at)) for at in range(399)])
    assert 0.5 < found.width / found.height < 4
    assert len({x for x, _ in found.boxes}) > 10


def test_a_straight_chain_is_drawn_straight() -> None:
    found = layout(
        40,
        [Link(at, at + 1, str(at)) for at in range(39)]
        + [Link(at, at + 3, str(at)) for at in range(0, 36, 3)],
    )
    columns = {x for x, _ in found.boxes}
    assert len(columns) == len(
        {
            x
            for (x, _), (_, y) in zip(found.boxes, found.boxes, strict=True)
            if y == min(top for _, top in found.boxes)
        }
    )


def test_readers_of_one_tensor_share_its_lane() -> None:
    links = [Link(at, at + 1, f"t{at}") for at in range(9)] + [
        Link(0, 4, "shared"),
        Link(0, 8, "shared"),
    ]
    found = layout(10, links)
    near, far = found.ways[-2], found.ways[-1]
    assert near[0] == far[0]


def test_a_wide_row_is_broken_so_that_the_page_stays_readable() -> None:
    found = layout(
        62,
        [Link(0, at, "x") for at in range(1, 61)] + [Link(at, 61, f"y{at}") for at in range(1, 61)],
    )
    assert found.width < 12 * BOX_WIDTH


def test_nothing_is_drawn_of_nothing() -> None:
    assert layout(0, []) == Layout(0, 0, (), ())


@pytest.mark.parametrize(
    ("boxes", "links", "told"),
    [
        (MOST_BOXES + 1, [], "20,001 boxes"),
        (
            3000,
            [Link(number, 2999 - number, str(number)) for number in range(1500)],
            "too many parallel tensors",
        ),
        (
            13000,
            [Link(low, number) for number in range(1, 13000) for low in {number - 1, 0}],
            "line segments",
        ),
    ],
)
def test_a_drawing_beyond_all_bounds_is_refused_before_it_is_made(
    boxes: int, links: list[Link], told: str
) -> None:
    with pytest.raises(NsysmapError, match=told):
        layout(boxes, links)


def test_a_thousand_readers_of_one_tensor_one_below_the_other_are_drawn() -> None:
    links = [Link(number - 1, number, str(number)) for number in range(1, 1000)]
    assert (
        len(layout(1000, [*links, *(Link(0, number, "mask") for number in range(1, 1000))]).boxes)
        == 1000
    )
