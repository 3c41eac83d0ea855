"""Places a graph on a page: rows by longest path, few crossings by barycentres, long graphs wrapped
into columns like text.

A tensor that passes rows does so in a lane of its own beside the boxes, shared by all its readers;
to reach another column it runs along the bottom of the page and through the gutter before that
column.  The same graph always gets the same layout.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from math import inf, log

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass

Point = tuple[float, float]
Segment = tuple[Point, ...]
"""Two points are joined by a smooth curve; more points by straight lines."""

BOX_WIDTH, BOX_HEIGHT = 232.0, 40.0
_ROW_GAP, _BOX_GAP, _LANE, _GUTTER, _TRACK = 26.0, 14.0, 9.0, 30.0, 4.0
_PITCH = BOX_HEIGHT + _ROW_GAP
_PAGE_SHAPE = 1.5
"""The ratio of width to height at which the number of columns aims."""
_WIDEST_ROW = 8  # boxes side by side, before those further away move to another row
_SWEEPS, _STRAIGHTENINGS = 6, 4

MOST_BOXES = 20_000
"""Boxes in a drawing at most: this many take seconds, and more are of no use; engines have some
thousands of layers.
"""
MOST_LANES = 50_000_000
"""Work to keep lanes apart at most, as the sum over rows of the squared number of passing tensors:
ten seconds.

Networks have some tens of tensors beside a row: a dense network of 500 layers comes to 5,000,000.
"""
MOST_PIECES = 2_000_000
"""Line segments at most, counted as the readers of a tensor times the rows that it passes in a
column.

They take 600 MB; 2,000 layers that all read one tensor reach it.
"""


@dataclass(frozen=True)
class Link:
    """An edge between two boxes; links with the same source and name carry the same tensor."""

    source: int
    target: int
    name: str = ""


@dataclass(frozen=True)
class Layout:
    """The layout in CSS pixels: the upper left corner of each box, and each link's way from box to
    box.
    """

    width: float
    height: float
    boxes: tuple[Point, ...]
    ways: tuple[tuple[Segment, ...], ...]


def layout(boxes: int, links: Sequence[Link]) -> Layout:
    """The layout of that many boxes. Box numbers grow in execution order; links against it are
    drawn upwards.

    Raises NsysmapError if it would be more work than any real network needs: MOST_BOXES,
    MOST_LANES, MOST_PIECES.
    """
    if not boxes:
        return Layout(0, 0, (), tuple(() for _ in links))
    if boxes > MOST_BOXES:
        raise _too_large(f"{boxes:,} boxes, but at most {MOST_BOXES:,} are drawn")
    trunks = _trunks_of(links)
    row = _rows_of(boxes, links)
    rows: list[list[int]] = [[] for _ in range(max(row) + 1)]
    for box, at in enumerate(row):
        rows[at].append(box)
    near = _neighbours(boxes, links)
    _uncross(rows, row, near)
    columns = _columns(rows, row, trunks)
    column = [0] * boxes
    for number, (first, end) in enumerate(columns):
        for at in range(first, end):
            for box in rows[at]:
                column[box] = number
    grid = _BoxGrid(rows, row, column, columns, near)
    _check_work(grid, trunks)
    page = _page(grid, trunks)
    ways = _ways(page, links, trunks)
    corners = tuple((page.x[box] - BOX_WIDTH / 2, page.top(row[box])) for box in range(boxes))
    points = [point for way in ways for segment in way for point in segment]
    left = min([x for x, _ in points] + [x for x, _ in corners])
    right = max([x for x, _ in points] + [x + BOX_WIDTH for x, _ in corners])
    up = min([y for _, y in points] + [y for _, y in corners])
    down = max([y for _, y in points] + [y + BOX_HEIGHT for _, y in corners])
    moved = tuple(
        tuple(tuple((x - left, y - up) for x, y in segment) for segment in way) for way in ways
    )
    return Layout(right - left, down - up, tuple((x - left, y - up) for x, y in corners), moved)


def _too_large(what: str) -> NsysmapError:
    return NsysmapError(
        "picture", f"it has {what}", "draw less with --collapse block or --collapse region"
    )


@dataclass(frozen=True)
class _Trunk:
    """One tensor: the topmost of its boxes, and the others below it."""

    top: int
    name: str
    ends: frozenset[int]


@dataclass(frozen=True)
class _BoxGrid:
    """Boxes by row, the row and column of each box, first and past-the-last row of each column, and
    the neighbours of each box.
    """

    rows: list[list[int]]
    row: list[int]
    column: list[int]
    columns: list[tuple[int, int]]
    near: list[list[int]]


@dataclass
class _Page:
    """The positions on the page: middle of each box, start of each column, lanes by trunk and
    column, tracks at bottom and top.
    """

    grid: _BoxGrid
    x: dict[int, float] = field(default_factory=dict)
    lanes: dict[tuple[_Trunk, int], float] = field(default_factory=dict)
    # x and number of the way into that column
    gutters: dict[tuple[_Trunk, int], tuple[float, int]] = field(default_factory=dict)
    feet: dict[_Trunk, int] = field(default_factory=dict)

    def top(self, row: int) -> float:
        """The upper edge of the row."""
        first = next(first for first, end in self.grid.columns if first <= row < end)
        return (row - first) * _PITCH

    def bottom(self, row: int) -> float:
        """The lower edge of the row."""
        return self.top(row) + BOX_HEIGHT

    @property
    def foot(self) -> float:
        """The lower edge of the longest column."""
        return max(end - first for first, end in self.grid.columns) * _PITCH - _ROW_GAP


def _trunks_of(links: Sequence[Link]) -> dict[tuple[int, str], _Trunk]:
    ends: dict[tuple[int, str], set[int]] = defaultdict(set)
    for link in links:
        if link.source != link.target:
            ends[min(link.source, link.target), _key(link)].add(max(link.source, link.target))
    return {key: _Trunk(*key, frozenset(found)) for key, found in ends.items()}


def _key(link: Link) -> str:
    return link.name if link.source < link.target else f"{link.name}\0{link.source}"


def _neighbours(boxes: int, links: Sequence[Link]) -> list[list[int]]:
    near: list[dict[int, None]] = [{} for _ in range(boxes)]
    for link in links:
        if link.source != link.target:
            near[link.source][link.target] = None
            near[link.target][link.source] = None
    return [list(found) for found in near]


# --- rows
# --------------------------------------------------------------------------------------------------


def _rows_of(boxes: int, links: Sequence[Link]) -> list[int]:
    """The row of each box: below everything that it reads, at most so many boxes per row; sources
    as late as they are needed.
    """
    writers: dict[int, list[int]] = defaultdict(list)
    readers: dict[int, list[int]] = defaultdict(list)
    for link in links:
        low, high = sorted((link.source, link.target))
        if low != high:
            writers[high].append(low)
            readers[low].append(high)
    row = [0] * boxes
    held: dict[int, int] = defaultdict(int)
    # for a full row, a lower row such that all rows in between are full
    beyond: dict[int, int] = {}
    for box in range(boxes):
        alone = box > 0 and not writers[box] and not readers[box]
        first = at = (
            row[box - 1] if alone else max((row[writer] + 1 for writer in writers[box]), default=0)
        )
        while held[at] >= _WIDEST_ROW:
            at = beyond.get(at, at + 1)
        if at > first:
            beyond[first] = at
        row[box] = at
        held[at] += 1
    for box in range(boxes - 1, -1, -1):
        if writers[box] or not readers[box]:
            continue
        for at in range(min(row[reader] for reader in readers[box]) - 1, row[box], -1):
            if held[at] < _WIDEST_ROW:
                held[row[box]] -= 1
                held[at] += 1
                row[box] = at
                break
    used = {at: number for number, at in enumerate(sorted(set(row)))}
    return [used[at] for at in row]


def _uncross(rows: list[list[int]], row: Sequence[int], near: Sequence[Sequence[int]]) -> None:
    """Orders each row by the barycentre of its neighbours above, then below, several times."""
    place = {box: number - (len(one) - 1) / 2 for one in rows for number, box in enumerate(one)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for at in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            if len(rows[at]) < 2:
                continue
            middle = {}
            for box in rows[at]:
                found = [
                    place[one] for one in near[box] if (row[one] < at if down else row[one] > at)
                ]
                middle[box] = sum(found) / len(found) if found else place[box]
            rows[at].sort(key=lambda box: (middle[box], box))
            place.update(
                {box: number - (len(rows[at]) - 1) / 2 for number, box in enumerate(rows[at])}
            )


# --- columns
# --------------------------------------------------------------------------------------------------


def _columns(
    rows: Sequence[Sequence[int]], row: Sequence[int], trunks: Mapping[tuple[int, str], _Trunk]
) -> list[tuple[int, int]]:
    """First and past-the-last row of each column, cut where few tensors pass, for a page of about
    the wanted shape.
    """
    count = len(rows)
    passing = _passing(count, row, trunks)
    width = [
        len(boxes) * (BOX_WIDTH + _BOX_GAP) + passing[at] * _LANE for at, boxes in enumerate(rows)
    ]
    best, score = 1, inf
    for columns in range(1, count + 1):
        height = -(-count // columns) * _PITCH
        wide = sum(
            max(width[count * k // columns : count * (k + 1) // columns]) + _GUTTER
            for k in range(columns)
        )
        found = abs(log(wide / height / _PAGE_SHAPE))
        if found < score:
            best, score = columns, found
        elif wide / height > 4 * _PAGE_SHAPE:
            break
    cuts, first = [], 0
    for left in range(best, 0, -1):
        target = first + (count - first) / left
        slack = max(1, int(target - first) // 6)
        options = range(
            max(first + 1, round(target) - slack), min(count - left + 1, round(target) + slack) + 1
        )
        end = (
            count
            if left == 1
            else min(
                options,
                key=lambda at: (passing[at] + 2 * abs(at - target) / slack, at),
                default=first + 1,
            )
        )
        cuts.append((first, end))
        first = end
    return [(first, end) for first, end in cuts if first < end]


def _check_work(grid: _BoxGrid, trunks: Mapping[tuple[int, str], _Trunk]) -> None:
    """Raises NsysmapError if there would be too many lanes or line segments; they are counted
    before they are made.
    """
    lanes = sum(count * count for count in _passing(len(grid.rows), grid.row, trunks))
    if lanes > MOST_LANES:
        raise _too_large(
            f"too many parallel tensors ({lanes:,} as the sum of squares over rows, at most"
            f" {MOST_LANES:,})"
        )
    pieces = 0
    for trunk in trunks.values():
        for column, readers in Counter(grid.column[end] for end in trunk.ends).items():
            first, end = grid.columns[column]
            pieces += readers * min(readers, end - first)
    if pieces > MOST_PIECES:
        raise _too_large(f"up to {pieces:,} line segments, but at most {MOST_PIECES:,} are drawn")


def _passing(rows: int, row: Sequence[int], trunks: Mapping[tuple[int, str], _Trunk]) -> list[int]:
    """How many tensors pass the upper edge of each row."""
    change = [0] * (rows + 1)
    for trunk in trunks.values():
        change[row[trunk.top] + 1] += 1
        change[max(row[end] for end in trunk.ends) + 1] -= 1
    return list(accumulate(change[:rows]))


def _page(grid: _BoxGrid, trunks: Mapping[tuple[int, str], _Trunk]) -> _Page:
    """Positions for the boxes and lanes of each column, side by side, and tracks between the
    columns.
    """
    page = _Page(grid)
    entering: dict[int, list[_Trunk]] = defaultdict(list)
    # for each column, the first and last row that a trunk passes
    spans: dict[int, list[tuple[int, int, _Trunk]]] = defaultdict(list)
    tracks: list[int] = []  # for each track at the bottom, the last column that it reaches
    for trunk in sorted(trunks.values(), key=lambda one: (grid.row[one.top], one.top, one.name)):
        own = grid.column[trunk.top]
        reached = sorted({grid.column[end] for end in trunk.ends})
        for column in {own, *reached}:
            first, end = grid.columns[column]
            begin = grid.row[trunk.top] + 1 if column == own else first
            leaves = column == own and reached[-1] != own
            last = (
                end - 1
                if leaves
                else max(grid.row[one] for one in trunk.ends if grid.column[one] == column) - 1
            )
            if begin <= last:
                spans[column].append((begin, last, trunk))
            if column != own:
                entering[column].append(trunk)
        if reached[-1] != own:
            free = next((number for number, taken in enumerate(tracks) if taken < own), len(tracks))
            tracks[free : free + 1] = [reached[-1]]
            page.feet[trunk] = free
    left = 0.0
    for column in range(len(grid.columns)):
        for number, trunk in enumerate(entering[column]):
            page.gutters[trunk, column] = left + number * _TRACK, number
        if column:
            left += _GUTTER + len(entering[column]) * _TRACK
        _place_column(page, column, spans[column])
        held = [
            page.x[box] + edge
            for at in range(*grid.columns[column])
            for box in grid.rows[at]
            for edge in (-BOX_WIDTH / 2, BOX_WIDTH / 2)
        ]
        held += [page.lanes[trunk, column] for _, _, trunk in spans[column]]
        shift = left - min(held)
        for at in range(*grid.columns[column]):
            for box in grid.rows[at]:
                page.x[box] += shift
        for _, _, trunk in spans[column]:
            page.lanes[trunk, column] += shift
        left = max(held) + shift + _GUTTER / 2
    return page


def _place_column(page: _Page, column: int, spans: Sequence[tuple[int, int, _Trunk]]) -> None:
    """Places boxes below their neighbours, then lanes beside the boxes of the rows that they pass,
    short ones first.
    """
    grid = page.grid
    first, end = grid.columns[column]
    for at in range(first, end):
        page.x.update(
            {
                box: (number - (len(grid.rows[at]) - 1) / 2) * (BOX_WIDTH + _BOX_GAP)
                for number, box in enumerate(grid.rows[at])
            }
        )
    for sweep in range(2 * _STRAIGHTENINGS):
        down = sweep % 2 == 0
        for at in range(first + 1, end) if down else range(end - 2, first - 1, -1):
            wanted = [
                _wanted(page, box, (first, at) if down else (at + 1, end)) for box in grid.rows[at]
            ]
            page.x.update(zip(grid.rows[at], _apart(wanted), strict=True))
    half = BOX_WIDTH / 2
    taken = [
        [(page.x[box] - half, page.x[box] + half) for box in grid.rows[at]]
        for at in range(first, end)
    ]
    for begin, last, trunk in sorted(
        spans, key=lambda span: (span[1] - span[0], span[0], span[2].top, span[2].name)
    ):
        ends = [
            page.x[one] for one in (trunk.top, *sorted(trunk.ends)) if grid.column[one] == column
        ]
        x = _free_place(
            (span for at in range(begin, last + 1) for span in taken[at - first]),
            sum(ends) / len(ends) if ends else inf,
        )
        page.lanes[trunk, column] = x
        for at in range(begin, last + 1):
            taken[at - first].append((x, x))


def _wanted(page: _Page, box: int, rows: tuple[int, int]) -> float:
    """The wanted position of a box: the middle of its nearest neighbours in those rows, or its own
    without any.
    """
    grid = page.grid
    near = [
        (abs(grid.row[one] - grid.row[box]), page.x[one])
        for one in grid.near[box]
        if rows[0] <= grid.row[one] < rows[1]
    ]
    least = min(near, default=(0, 0.0))[0]
    places = [x for distance, x in near if distance == least]
    return sum(places) / len(places) if places else page.x[box]


def _apart(wanted: Sequence[float]) -> list[float]:
    """Positions in this order, without overlap, with the least squared distance from the wanted
    ones.
    """
    width = BOX_WIDTH + _BOX_GAP
    # sum and number of wanted positions minus offsets, pooled until they increase
    blocks: list[tuple[float, int]] = []
    for number, want in enumerate(wanted):
        value, count = want - number * width, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > value / count:
            before, more = blocks.pop()
            value, count = value + before, count + more
        blocks.append((value, count))
    means = [value / count for value, count in blocks for _ in range(count)]
    return [mean + number * width for number, mean in enumerate(means)]


def _free_place(taken: Iterable[tuple[float, float]], wanted: float) -> float:
    """The position nearest to the wanted one with enough distance from everything placed; the right
    one of two equally near.
    """
    blocked: list[list[float]] = []
    for low, high in sorted(taken):
        if blocked and low - _LANE <= blocked[-1][1] + 1e-6:
            blocked[-1][1] = max(blocked[-1][1], high + _LANE)
        else:
            blocked.append([low - _LANE, high + _LANE])
    if not blocked:
        return 0.0 if wanted == inf else wanted
    if wanted == inf:
        return blocked[-1][1]
    at = bisect_left(blocked, [wanted, inf]) - 1
    if at < 0 or wanted >= blocked[at][1] or wanted <= blocked[at][0]:
        return wanted
    low, high = blocked[at]
    return high if high - wanted <= wanted - low + 1e-6 else low


# --- ways
# --------------------------------------------------------------------------------------------------


def _ways(
    page: _Page, links: Sequence[Link], trunks: Mapping[tuple[int, str], _Trunk]
) -> tuple[tuple[Segment, ...], ...]:
    """The way of each link; links of one tensor share their common segments."""
    grid = page.grid
    branches: dict[tuple[_Trunk, int], list[int]] = {}
    for trunk in trunks.values():
        for end in trunk.ends:
            branches.setdefault((trunk, grid.column[end]), []).append(grid.row[end])
    found: list[tuple[Segment, ...]] = []
    for link in links:
        if link.source == link.target:
            found.append(())
            continue
        trunk = trunks[min(link.source, link.target), _key(link)]
        way = _way(page, trunk, max(link.source, link.target), branches)
        found.append(
            tuple(way)
            if link.source < link.target
            else tuple(tuple(reversed(segment)) for segment in reversed(way))
        )
    return tuple(found)


def _way(
    page: _Page, trunk: _Trunk, target: int, branches: Mapping[tuple[_Trunk, int], list[int]]
) -> list[Segment]:
    grid = page.grid
    own, column = grid.column[trunk.top], grid.column[target]
    row, wanted = grid.row[trunk.top], grid.row[target]
    at: Point = (page.x[trunk.top], page.bottom(row))
    goal: Point = (page.x[target], page.top(wanted))
    way: list[Segment] = []
    if own != column:
        last = grid.columns[own][1] - 1
        if row < last:
            at = _down(page, trunk, at, row + 1, last, branches.get((trunk, own), []), way)
        first = grid.columns[column][0]
        x, track = page.gutters[trunk, column]
        foot = page.foot + _ROW_GAP / 3 + page.feet[trunk] * _TRACK
        head = -_ROW_GAP / 3 - track * _TRACK
        arrives = goal if wanted == first else (page.lanes[trunk, column], page.top(first))
        way.append((at, (at[0], foot), (x, foot), (x, head), (arrives[0], head), arrives))
        if wanted == first:
            return way
        at = _down(page, trunk, arrives, first, wanted - 1, branches[trunk, column], way)
    elif wanted > row + 1:
        at = _down(page, trunk, at, row + 1, wanted - 1, branches[trunk, column], way)
    way.append((at, goal))
    return way


def _down(
    page: _Page,
    trunk: _Trunk,
    at: Point,
    first: int,
    last: int,
    readers: Sequence[int],
    way: list[Segment],
) -> Point:
    """Adds the way through the trunk's lane, from a point above the first of these rows to below
    the last; returns its end.

    The lane is divided where a reader's way leaves it, so that all readers share the same segments.
    """
    x = page.lanes[trunk, page.grid.column[page.grid.rows[first][0]]]
    if at != (x, page.top(first)):
        way.append((at, (x, page.top(first))))
    cuts = sorted({reader - 1 for reader in readers if first <= reader - 1 < last} | {last})
    stops = [(x, page.top(first)), *((x, page.bottom(cut)) for cut in cuts)]
    way.extend(pairwise(stops))
    return stops[-1]
