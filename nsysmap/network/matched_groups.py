"""Groups the layers of one network with those of another that they became: one to one, split,
merged, moved into or out of a region, new or gone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from nsysmap.core.records import dataclass
from nsysmap.names.layers import split_layer_name
from nsysmap.network.layer_network import PRODUCTS, Network, Piece, unnumbered
from nsysmap.network.likeness import Neighbours, computing_neighbours
from nsysmap.network.matching import Match, match

ONE_TO_ONE, SPLIT, MERGED, REGROUPED = "one-to-one", "split", "merged", "regrouped"
INTO_REGION, OUT_OF_REGION, NEW, GONE = "moved-into-region", "moved-out-of-region", "new", "gone"
ONNX, NAME, TENSORS, STRUCTURE, POSITION = "onnx", "name", "tensors", "structure", "position"

_INSIDE = 0.5  # a piece is part of another that has this share of its nodes
_REGION = "foreign_node"
_PRODUCTS_OF_ATTENTION = 2  # of the scores, and of what they weigh
# kinds of which a name does not say what the layer does
_OPAQUE = frozenset({"plugin", "unknown", "other"})


@dataclass(frozen=True)
class MatchedGroup:
    """Pieces of the first network and those of the second that compute the same, by index; one side
    is empty if the piece is new or gone.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    relation: str
    joined_by: str  # onnx, name, tensors, structure or position; empty if new or gone
    # one-to-one, with nodes of one model, but one computes operations that the other does not
    other_nodes: bool = False


def groups_of(first: Network, second: Network) -> tuple[MatchedGroup, ...]:
    """Groups that contain each piece of both networks once, in the order of the second network;
    pieces that are gone stay where they were.
    """
    found = match(first, second)
    work = _GroupsSoFar(first, second, found)
    work.by_own_names()
    work.by_nodes()
    work.by_tensors()
    for _ in range(2):
        work.by_slots()
        work.by_operations()
        work.by_attention()
        work.by_opaque_layers()
        work.by_regions()
    work.carriers()
    return tuple(sorted(work.groups(), key=work.rank))


@dataclass
class _Open:
    """A group under construction."""

    sides: tuple[list[int], list[int]]
    by: str


@dataclass
class _GroupsSoFar:
    first: Network
    second: Network
    found: Match
    open: list[_Open] = field(default_factory=list)
    # piece's index to group's index in `open`, by side
    of: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    neighbours: tuple[tuple[Neighbours, Neighbours], tuple[Neighbours, Neighbours]] = field(
        init=False
    )

    def __post_init__(self) -> None:
        self.networks = (self.first, self.second)
        self.neighbours = (computing_neighbours(self.first), computing_neighbours(self.second))
        self.carrier_names = tuple(
            Counter(_own(piece) for piece in one.pieces if not piece.computes)
            for one in self.networks
        )
        alike = self.found.alike
        self.places = (alike.first, alike.second)
        rows = {place: row for row, place in enumerate(alike.first)}
        columns = {place: column for column, place in enumerate(alike.second)}
        for one, other in self.found.pairs.items():
            pair = (rows[one], columns[other])
            by = self._nodes_by(one, other) if alike.nodes.get(pair, 0.0) >= _INSIDE else ""
            by = by or (NAME if pair in alike.names else TENSORS if pair in alike.tensors else "")
            self._new(
                ([one], [other]),
                by or (POSITION if one in self.found.by_order or not self._flows() else STRUCTURE),
            )

    # --- the groups so far
    # ---------------------------------------------------------------------------------------------

    def _flows(self) -> bool:
        return self.first.flows and self.second.flows

    def _nodes_by(self, one: int, other: int) -> str:
        told = {self.first.pieces[one].nodes_by, self.second.pieces[other].nodes_by}
        return ONNX if told == {"onnx"} else NAME

    def _new(self, sides: tuple[list[int], list[int]], by: str) -> int:
        self.open.append(_Open(sides, by))
        for side in (0, 1):
            for place in sides[side]:
                self.of[side][place] = len(self.open) - 1
        return len(self.open) - 1

    def _add(self, side: int, place: int, group: int) -> None:
        self.open[group].sides[side].append(place)
        self.of[side][place] = group

    def _left(self, side: int) -> list[int]:
        """The computing pieces of one side that are not in a group yet."""
        return [place for place in self.places[side] if place not in self.of[side]]

    def _piece(self, side: int, place: int) -> Piece:
        return self.networks[side].pieces[place]

    def _around(self, side: int, places: Iterable[int]) -> tuple[set[int], set[int]]:
        """The groups from which these pieces read, and those that read from them."""
        inside = set(places)
        before, behind = self.neighbours[side]
        near = [
            {other for place in inside for other, _ in each[place]} - inside
            for each in (before, behind)
        ]
        reads, read_by = (
            {self.of[side][other] for other in others if other in self.of[side]} for others in near
        )
        return reads, read_by

    # --- by nodes and tensors
    # -----------------------------------------------------------------------------------------

    def by_own_names(self) -> None:
        """Pieces of the same name are the same if one build runs nothing for them, or a file does
        not say what they are.
        """
        if not self.found.alike.names:
            return
        named = [
            {
                piece.name: place
                for place, piece in enumerate(one.pieces)
                if place not in self.of[side]
            }
            for side, one in enumerate(self.networks)
        ]
        count = [Counter(piece.name for piece in one.pieces) for one in self.networks]
        for name in named[0].keys() & named[1].keys():
            pair = (named[0][name], named[1][name])
            pieces = [self._piece(side, pair[side]) for side in (0, 1)]
            unlike = pieces[0].computes != pieces[1].computes and any(
                piece.kind == "noop" for piece in pieces
            )
            if count[0][name] == count[1][name] == 1 and (
                unlike or any(piece.kind in _OPAQUE for piece in pieces)
            ):
                self._new(([pair[0]], [pair[1]]), NAME)

    def by_nodes(self) -> None:
        """A piece is part of another one that has its nodes."""
        self._by_share(
            {pair: share for pair, share in self.found.alike.nodes.items() if share >= _INSIDE}, ""
        )

    def by_tensors(self) -> None:
        """A piece is the last part of another one that writes the same tensor."""
        self._by_share(self.found.alike.tensors, TENSORS)

    def _by_share(self, shares: Mapping[tuple[int, int], float], by: str) -> None:
        best: tuple[dict[int, tuple[float, int]], dict[int, tuple[float, int]]] = ({}, {})
        for (row, column), share in sorted(shares.items()):
            places = (self.places[0][row], self.places[1][column])
            for side in (0, 1):
                here, there = places[side], places[1 - side]
                if here not in self.of[side] and share > best[side].get(here, (0.0, -1))[0]:
                    best[side][here] = (share, there)
        for side in (0, 1):
            for place, (_, other) in best[side].items():
                if place in self.of[side]:
                    continue
                one, two = (place, other) if side == 0 else (other, place)
                if other in self.of[1 - side]:
                    self._add(side, place, self.of[1 - side][other])
                else:
                    self._new(([one], [two]), by or self._nodes_by(one, two))

    # --- by neighbours
    # ----------------------------------------------------------------------------------------------

    def by_slots(self) -> None:
        """Pieces between the same neighbours on both sides compute the same."""
        parts = [self._connected(side) for side in (0, 1)]
        around = [[self._around(side, part) for part in parts[side]] for side in (0, 1)]
        for one, (before, behind) in enumerate(around[0]):
            same = [
                other
                for other, (theirs, behind_theirs) in enumerate(around[1])
                if parts[1][other]
                and _meet(before, theirs)
                and _meet(behind, behind_theirs)
                and (before | behind) & (theirs | behind_theirs)
            ]
            if len(same) == 1:
                self._new(
                    (list(parts[0][one]), list(parts[1][same[0]])),
                    STRUCTURE if self._flows() else POSITION,
                )
                parts[1][same[0]] = []

    def _connected(self, side: int) -> list[list[int]]:
        """The remaining pieces of one side, as connected components."""
        left = set(self._left(side))
        before, behind = self.neighbours[side]
        parts = []
        while left:
            start = min(left)
            part, frontier = {start}, [start]
            while frontier:
                place = frontier.pop()
                for other, _ in (*before[place], *behind[place]):
                    if other in left and other not in part:
                        part.add(other)
                        frontier.append(other)
            left -= part
            parts.append(sorted(part))
        return parts

    def by_operations(self) -> None:
        """A piece next to a group is part of it if the group's other side has just the piece's
        operations more than this side.
        """
        for side in (0, 1):
            for place in self._left(side):
                wanted = self._piece(side, place).op_counts
                if not wanted:
                    continue
                before, behind = self._around(side, [place])
                for group in (*sorted(before), *sorted(behind)):
                    held = self.open[group].sides
                    if not held[0] or not held[1]:
                        continue
                    missing = self._operations(1 - side, held[1 - side])
                    missing.subtract(self._operations(side, held[side]))
                    if all(
                        missing[op] >= count for op, count in wanted.items() if op != "Cast"
                    ) and set(wanted) != {"Cast"}:
                        self._add(side, place, group)
                        break

    def by_attention(self) -> None:
        """A softmax, with at most the products around it, beside a fused attention of the other
        side is part of it.
        """
        for side in (0, 1):
            for part in self._connected(side):
                pieces = [self._piece(side, place) for place in part]
                if sum(
                    piece.kind in PRODUCTS for piece in pieces
                ) > _PRODUCTS_OF_ATTENTION or not any(piece.softmax for piece in pieces):
                    continue
                before, behind = self._around(side, part)
                for group in (*sorted(behind), *sorted(before)):
                    own, others = (self.open[group].sides[one] for one in (side, 1 - side))
                    fused = any(
                        self._piece(1 - side, place).kind == "attention" for place in others
                    )
                    if fused and not any(self._piece(side, place).softmax for place in own):
                        for place in part:
                            self._add(side, place, group)
                        break

    def by_opaque_layers(self) -> None:
        """A piece between two groups that are adjacent on the other side is inside one of them, if
        that group hides what it does.
        """
        for side in (0, 1):
            known = {
                node
                for place in self.places[1 - side]
                for node in self._piece(1 - side, place).nodes
            }
            for part in self._connected(side):
                before, behind = self._around(side, part)
                if (
                    not before
                    or not behind
                    or any(
                        node in known for place in part for node in self._piece(side, place).nodes
                    )
                ):
                    continue
                for group in (*sorted(behind), *sorted(before)):
                    others = self.open[group].sides[1 - side]
                    reads, read_by = self._around(1 - side, others)
                    opaque = any(self._piece(1 - side, place).kind in _OPAQUE for place in others)
                    if opaque and (
                        before - {group} <= reads
                        if group in behind
                        else behind - {group} <= read_by
                    ):
                        for place in part:
                            self._add(side, place, group)
                        break

    def _operations(self, side: int, places: Sequence[int]) -> Counter[str]:
        return sum((self._piece(side, place).op_counts for place in places), Counter[str]())

    def by_regions(self) -> None:
        """A piece next to an opaque region of the other side, and unknown there, has moved into or
        out of the region.
        """
        for side in (0, 1):
            regions = [
                place
                for place in self.places[1 - side]
                if self._piece(1 - side, place).kind == _REGION
            ]
            if not regions:
                continue
            for part in self._connected(side):
                wholes = regions
                if any(self._piece(side, place).kind == _REGION for place in part):
                    # a smaller region was part of one that is known
                    wholes = [region for region in regions if region in self.of[1 - side]]
                before, behind = self._around(side, part)
                near = [
                    region for region in wholes if self._beside(1 - side, region, before, behind)
                ]
                if not near and not (before | behind) and len(wholes) == 1:
                    near = wholes
                if not near:
                    continue
                region = min(near, key=lambda one: self._unexplained(1 - side, one, before, behind))
                group = self.of[1 - side].get(region)
                if group is None:
                    group = self._new(
                        ([], [region]) if side == 0 else ([region], []),
                        STRUCTURE if self._flows() else POSITION,
                    )
                for place in part:
                    self._add(side, place, group)

    def _beside(self, side: int, region: int, before: set[int], behind: set[int]) -> bool:
        """Whether the region lies between these groups, or belongs to one of them and feeds or
        reads the other.
        """
        of_region = self.of[side].get(region)
        reads, read_by = self._around(side, [region])
        if of_region is not None and of_region in before:
            return not behind or bool(behind & read_by) or behind == {of_region}
        if of_region is not None and of_region in behind:
            return not before or bool(before & reads)
        return (
            bool(before | behind)
            and (not before or bool(before & reads))
            and (not behind or bool(behind & read_by))
        )

    def _unexplained(self, side: int, region: int, before: set[int], behind: set[int]) -> int:
        """How many of these groups the region neither belongs to nor is connected to."""
        reads, read_by = self._around(side, [region])
        own = {self.of[side].get(region)}
        return len(before - own - reads) + len(behind - own - read_by)

    # --- pieces that only carry data
    # ----------------------------------------------------------------------------------

    def carriers(self) -> None:
        """Pieces that compute nothing: joined by name, then by the groups between which they lie,
        the most similar first.
        """
        sides = [
            [place for place, piece in enumerate(one.pieces) if not piece.computes]
            for one in self.networks
        ]
        for key in (self._own_name, self._carrier_name, self._carrier_place):
            waiting: tuple[dict[object, list[int]], dict[object, list[int]]] = (
                defaultdict(list),
                defaultdict(list),
            )
            for side in (0, 1):
                for place in sides[side]:
                    if place not in self.of[side] and (at := key(side, place)) is not None:
                        waiting[side][at].append(place)
            by = STRUCTURE if key == self._carrier_place else NAME
            for at, ours in waiting[0].items():
                pairs = [
                    (one, other)
                    for one in ours
                    for other in waiting[1].get(at, ())
                    if self._may_carry_the_same(one, other, by)
                ]
                for one, other in sorted(pairs, key=lambda pair: (-self._carry_alike(*pair), pair)):
                    if one not in self.of[0] and other not in self.of[1]:
                        self._new(([one], [other]), by)

    def _may_carry_the_same(self, one: int, other: int, by: str) -> bool:
        """Whether two pieces between the same groups can correspond; they cannot if only one of
        them runs a kernel.

        Inside a group of several pieces the position is not known more precisely: there the extents
        must be equal.
        """
        ours, theirs = self._piece(0, one), self._piece(1, other)
        if ours.typed and theirs.typed and (ours.kind == "noop") != (theirs.kind == "noop"):
            return False
        if by == NAME or not ours.shapes or not theirs.shapes or ours.shapes == theirs.shapes:
            return True
        return not any(self._within_a_group(side, place) for side, place in ((0, one), (1, other)))

    def _within_a_group(self, side: int, place: int) -> bool:
        """Whether a piece that carries data lies between pieces of one group."""
        reads = {self.of[side].get(far) for far, _ in self.neighbours[side][0][place]}
        return bool(
            (reads & {self.of[side].get(far) for far, _ in self._readers(side, place)}) - {None}
        )

    def _carry_alike(self, one: int, other: int) -> int:
        """The number of ways in which two pieces that carry data are alike."""
        ours, theirs = self._piece(0, one), self._piece(1, other)
        return (
            (ours.reshapes == theirs.reshapes)
            + (ours.kind == theirs.kind)
            + (ours.shapes == theirs.shapes)
        )

    def _own_name(self, side: int, place: int) -> object:
        """Its name without TensorRT's numbers, if it is the only one of that name and names can be
        trusted.
        """
        name = _own(self._piece(side, place))
        return (
            name
            if self.found.alike.names and all(count[name] <= 1 for count in self.carrier_names)
            else None
        )

    def _carrier_name(self, side: int, place: int) -> object:
        """Its name and its position, if that is known."""
        where = self._carrier_place(side, place)
        return (
            (_own(self._piece(side, place)), where)
            if where is not None or not self._flows()
            else None
        )

    def _carrier_place(self, side: int, place: int) -> object:
        """The groups from which it reads and that read from it, with their slots; None if it has no
        neighbours.
        """
        if not self.networks[side].flows:
            return None
        reads = frozenset(
            self.of[side].get(other, -1) for other, _ in self.neighbours[side][0][place]
        )
        readers = frozenset(
            (self.of[side].get(other, -1), slot) for other, slot in self._readers(side, place)
        )
        return (reads, readers) if (reads | {group for group, _ in readers}) - {-1} else None

    def _readers(self, side: int, place: int) -> set[tuple[int, int]]:
        """The computing pieces that read what this one carries, directly or through other pieces
        that only carry data.
        """
        network = self.networks[side]
        found: set[tuple[int, int]] = set()
        frontier, seen = [place], {place}
        while frontier:
            for other, slot in network.readers[frontier.pop()]:
                if network.pieces[other].computes:
                    found.add((other, slot))
                elif other not in seen:
                    seen.add(other)
                    frontier.append(other)
        return found

    # --- the result
    # ----------------------------------------------------------------------------------------------

    def groups(self) -> list[MatchedGroup]:
        """All groups, including those of single pieces without a counterpart."""
        found = [self._closed(one) for one in self.open]
        left = [
            [place for place in range(len(one.pieces)) if place not in self.of[side]]
            for side, one in enumerate(self.networks)
        ]
        found += [MatchedGroup((place,), (), GONE, "") for place in left[0]]
        return found + [MatchedGroup((), (place,), NEW, "") for place in left[1]]

    def _closed(self, one: _Open) -> MatchedGroup:
        relation = self._relation(one)
        nodes = [
            self._piece(side, one.sides[side][0]).told_nodes if one.sides[side] else {}
            for side in (0, 1)
        ]
        # not the nodes: another export may number them differently
        ops = [Counter(each.values()) for each in nodes]
        told_alike = (
            len({self._piece(side, place).nodes_by for side in (0, 1) for place in one.sides[side]})
            == 1
        )
        other = (
            relation == ONE_TO_ONE
            and told_alike
            and ops[0] != ops[1]
            and bool(nodes[0].keys() & nodes[1].keys())
        )
        return MatchedGroup(
            tuple(sorted(one.sides[0])), tuple(sorted(one.sides[1])), relation, self._by(one), other
        )

    def _by(self, one: _Open) -> str:
        """The evidence for a group: stronger than position if it lies between the same groups on
        both sides.
        """
        if one.by != POSITION or not self._flows():
            return one.by
        around = [self._around(side, one.sides[side]) for side in (0, 1)]
        return (
            STRUCTURE
            if all(ours & theirs for ours, theirs in zip(*around, strict=True))
            else POSITION
        )

    def _relation(self, one: _Open) -> str:
        before, after = one.sides
        if not before or not after:
            return GONE if before else NEW
        regions = [
            any(self._piece(side, place).kind == _REGION for place in one.sides[side])
            for side in (0, 1)
        ]
        plain = [
            any(self._piece(side, place).kind != _REGION for place in one.sides[side])
            for side in (0, 1)
        ]
        if regions[1] and plain[0]:
            return INTO_REGION
        if regions[0] and plain[1]:
            return OUT_OF_REGION
        if len(before) == len(after) == 1:
            return ONE_TO_ONE
        return SPLIT if len(before) == 1 else MERGED if len(after) == 1 else REGROUPED

    def rank(self, group: MatchedGroup) -> tuple[float, int]:
        """Sort key: a group's position in the second network; a group that is gone follows the
        group of the piece before it.
        """
        if group.after:
            return (float(group.after[0]), 0)
        for place in range(group.before[0] - 1, -1, -1):
            if place in self.of[0] and self.open[self.of[0][place]].sides[1]:
                return (float(min(self.open[self.of[0][place]].sides[1])), 1)
        return (-1.0, group.before[0])


def _own(piece: Piece) -> str:
    """Its name without the numbers that are different in another build: TensorRT's own, and its
    place in a region.
    """
    return unnumbered(split_layer_name(piece.name).node)


def _meet(ours: set[int], theirs: set[int]) -> bool:
    """Whether two sets intersect, or are both empty."""
    return bool(ours & theirs) or not (ours or theirs)
