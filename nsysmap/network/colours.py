"""Colour refinement over two networks: pieces that nothing in the structure distinguishes have the
same colour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from nsysmap.network.layer_network import PRODUCTS, Network, Piece

_MOST_STEPS = 3_000_000  # neighbours visited; pieces not distinguished by then keep the same colour

Edge = tuple[tuple[int, int], int]
"""The relation to a neighbour (written, read or shared, and the slot), and its node."""

_READS, _READ_BY, _READS_SOURCE, _SOURCE_OF = range(4)


def colours(first: Network, second: Network) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """One colour per piece of each network; two pieces have the same colour if everything around
    them, at any distance, is the same.

    Neighbours are distinguished by direction and by the reader's input slot; readers of a tensor
    that no layer writes (an input of the network, or a concatenation without a copy) are neighbours
    of that tensor.  If several pieces have the same colour, equally many on both sides, the first
    to run on one side is then matched with the first on the other, and the consequences are worked
    out before the next ones: so that identical branches are matched as a whole.
    """
    edges = [*_edges(first, 0)]
    of_first = len(edges)
    edges += _edges(second, of_first)
    ours, theirs = own_structure(first, second)
    own: list[Hashable] = [*ours, *["source"] * (of_first - len(ours)), *theirs]
    work = _Refinement(edges, own + ["source"] * (len(edges) - len(own)))
    work.refine(range(len(edges)))
    for node in range(len(first.pieces)):
        members = work.members[work.colour[node]]
        of_second = [one for one in members if one >= of_first]
        if len(members) == 2 * len(of_second) > 2 and edges[node]:
            work.refine(work.excluded_words([min(members), min(of_second)]))
    return tuple(work.colour[: len(first.pieces)]), tuple(
        work.colour[of_first : of_first + len(second.pieces)]
    )


def own_structure(first: Network, second: Network) -> tuple[list[Hashable], list[Hashable]]:
    """What identifies each piece by itself, independent of precision and tactic; its operations
    only if the names of both sides show them.
    """
    told = all(
        2 * sum(bool(piece.ops) for piece in one.pieces if piece.computes)
        > sum(piece.computes for piece in one.pieces)
        for one in (first, second)
    )

    def own(piece: Piece) -> Hashable:
        return (
            piece.kind if piece.kind not in PRODUCTS else "product",
            piece.ops if told else (),
            piece.shapes,
            piece.detail,
        )

    return [own(piece) for piece in first.pieces], [own(piece) for piece in second.pieces]


def _edges(network: Network, start: int) -> list[list[Edge]]:
    """The neighbours of each piece, then those of each tensor that no piece writes; ``start`` is
    the number of the first node.
    """
    found: list[list[Edge]] = [
        [
            *(((_READS, slot), start + writer) for writer, slot in network.writers[place]),
            *(((_READ_BY, slot), start + reader) for reader, slot in network.readers[place]),
        ]
        for place in range(len(network.pieces))
    ]
    written = {name for piece in network.pieces for name in piece.writes}
    sources: dict[str, list[Edge]] = defaultdict(list)
    for place, piece in enumerate(network.pieces):
        for slot, name in enumerate(piece.reads):
            if name not in written:
                sources[name].append(((_SOURCE_OF, slot), start + place))
    for number, readers in enumerate(sources.values(), start + len(found)):
        for (_, slot), reader in readers:
            found[reader - start].append(((_READS_SOURCE, slot), number))
    return [*found, *sources.values()]


class _Refinement:
    """Classes of nodes, split until all members of a class have neighbours of the same classes."""

    def __init__(self, edges: Sequence[Sequence[Edge]], own: Sequence[Hashable]) -> None:
        self.edges = edges
        number: dict[Hashable, int] = {}
        self.colour = [number.setdefault(one, len(number)) for one in own]
        self.members: list[list[int]] = [[] for _ in number]
        for node, colour in enumerate(self.colour):
            self.members[colour].append(node)
        self._left = _MOST_STEPS

    def refine(self, touched: Iterable[int]) -> None:
        """Split classes until nothing changes; ``touched`` are nodes whose neighbours changed
        class.
        """
        waiting = set(touched)
        while waiting and self._left > 0:
            classes = sorted({self.colour[node] for node in waiting})
            waiting = set()
            for one in classes:
                waiting.update(self._split(one))

    def excluded_words(self, nodes: Sequence[int]) -> set[int]:
        """Move these nodes of one class to a new class; returns their neighbours."""
        kept = self.colour[nodes[0]]
        self.members[kept] = [node for node in self.members[kept] if node not in nodes]
        self.members.append(list(nodes))
        for node in nodes:
            self.colour[node] = len(self.members) - 1
        return {other for node in nodes for _, other in self.edges[node]}

    def _split(self, one: int) -> set[int]:
        members = self.members[one]
        if len(members) < 2:
            return set()
        alike: dict[tuple[tuple[tuple[int, int], int], ...], list[int]] = defaultdict(list)
        for node in members:
            self._left -= 1 + len(self.edges[node])
            alike[
                tuple(sorted((how, self.colour[other]) for how, other in self.edges[node]))
            ].append(node)
        if len(alike) == 1:
            return set()
        _, *others = sorted(alike.values(), key=len, reverse=True)
        changed: set[int] = set()
        for part in others:
            changed |= self.excluded_words(part)
        return changed
