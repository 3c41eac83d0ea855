"""Similarity of the pieces of two networks: by ONNX nodes, names, tensors, what they compute, and
what surrounds them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from nsysmap.core.records import dataclass
from nsysmap.names.layers import node_row
from nsysmap.network.colours import colours, own_structure
from nsysmap.network.layer_network import PRODUCTS, Network, Piece, unnumbered

Scores = NDArray[np.float32]

IMPOSSIBLE = -100.0  # below every sum of scores of layers that may be the same
_NODES, _WEIGHTS, _PLACES, _NAMES, _TENSORS = 60.0, 60.0, 40.0, 40.0, 15.0
"""Scores of full agreement: tensors score more than similarity and structure together (14), names
more than all of these.
"""
# of equal surroundings within 1, 2, 4, 8 steps, independent of fusion
_AROUND = (
    1.0,
    1.0,
    0.8,
    0.8,
)
_EXACT = 1.5  # if everything before it, or everything after it, is the same
_SAME_COLOUR = 2.0  # if everything around it is the same, at any distance
_WORDING = 3.0  # of names with the same words
_TRUST = 0.7  # share of the pieces with a common name that must be similar for names to be trusted
# how similar: shapes may differ only if the name is more than a number
_AGREE, _AGREE_NUMBERED = (
    1.0,
    2.0,
)
_NEARLY = 0.9  # share of the paths that a word must be in, to stand for a renamed part
# share of the pieces with a common numbered name above which this is more than chance
_LEAST_COVERED = 0.3
# penalty for nodes that the other side does not have, while other pieces share theirs
_OF_OTHER_NODES = 2.0
# Conv_24, input.8, onnx::MaxPool_125, 239
_NUMBERED = re.compile(r"(?:[A-Za-z]\w*?[_.]?|onnx::\w+?_)?\d+(?:$| \+ )")
_MOST_WORDS = 4_000  # pairs of words that are looked at, those in the fewest names first
_COUNTED = re.compile(r"(.*?[^\d])\d+", re.DOTALL)
_FEWEST_COUNTED = 3  # names of one counter on both sides, from which on they are judged together


@dataclass(frozen=True)
class Likeness:
    """Similarity of any two computing pieces, and its evidence; rows are pieces of the first
    network, columns those of the second.
    """

    first: tuple[int, ...]  # the pieces' indices in their networks
    second: tuple[int, ...]
    scores: Scores
    # common nodes as a share of the smaller piece's nodes, by row and column
    nodes: Mapping[tuple[int, int], float]
    tensors: Mapping[tuple[int, int], float]
    # the same name or weights, or nodes at the same place in the model
    names: frozenset[tuple[int, int]]
    around: Scores  # score of surroundings and of what they compute alone


def likeness(first: Network, second: Network) -> Likeness:
    """The similarity of the computing pieces of two networks."""
    ours, theirs = (
        tuple(place for place, piece in enumerate(one.pieces) if piece.computes)
        for one in (first, second)
    )
    mine, yours = (
        [first.pieces[place] for place in ours],
        [second.pieces[place] for place in theirs],
    )
    alike = _signature_scores(mine, yours)
    around = alike + _surroundings(first, second, (ours, theirs))
    told = tuple([bool(piece.shapes or piece.ops) for piece in side] for side in (mine, yours))
    regions = [
        np.array([piece.kind == "foreign_node" for piece in side], np.bool_)
        for side in (mine, yours)
    ]
    # a layer may have moved into a region
    evidence = np.where(regions[0][:, None] != regions[1][None, :], np.float32(np.nan), alike)
    held: tuple[_Names, _Names] = (
        [piece.weights for piece in mine],
        [piece.weights for piece in yours],
    )
    if first.of_model and second.of_model:
        nodes = _shared(*held)
    else:
        held = _without_other_counts(evidence, told, *held)
        nodes = _believed(evidence, *held)
    places = _believed(evidence, _places(mine), _places(yours))
    weights = _believed(
        evidence,
        [dict.fromkeys(piece.constants, 1) for piece in mine],
        [dict.fromkeys(piece.constants, 1) for piece in yours],
    )
    called = _without_other_counts(
        evidence,
        told,
        [{_plain(piece): 1} for piece in mine],
        [{_plain(piece): 1} for piece in yours],
    )
    names = _believed(evidence, *called)
    tensors = _believed_tensors(evidence, _tensors(first, ours), _tensors(second, theirs))
    scores = around.copy() if nodes else around + _WORDING * _same_wording(mine, yours)
    _contradict(scores, held, nodes)
    for shared, worth in (
        (nodes, _NODES),
        (weights, _WEIGHTS),
        (places, _PLACES),
        (names, _NAMES),
        (tensors, _TENSORS),
    ):
        for (row, column), (smaller, larger) in shared.items():
            scores[row, column] = (
                max(scores[row, column], around[row, column], -2.0) + worth * (smaller + larger) / 2
            )
    return Likeness(
        ours,
        theirs,
        scores,
        {pair: smaller for pair, (smaller, _) in nodes.items()},
        {pair: smaller for pair, (smaller, _) in tensors.items()},
        frozenset(names)
        | frozenset(
            pair for held in (places, weights) for pair, (_, larger) in held.items() if larger > 0.5
        ),
        around,
    )


# --- what two pieces compute
# -------------------------------------------------------------------------------------------


_GROUPS = (
    PRODUCTS | {"myelin_kernel"},
    frozenset({"attention", "myelin_kernel"}),
    frozenset(
        {"pointwise", "activation", "scale", "myelin_kernel", "normalization", "reduce", "softmax"}
    ),
    frozenset({"shuffle", "slice", "concat", "gather", "scatter", "resize", "myelin_kernel"}),
    frozenset({"topk", "nms", "reduce", "gather", "scatter"}),
)
"""Kinds that the same computation can have in different builds."""

_ANY = frozenset({"plugin", "unknown", "other"})


def _signature_scores(mine: Sequence[Piece], yours: Sequence[Piece]) -> Scores:
    """Similarity of two pieces by themselves: kind, operations, shapes and parameters; computed
    once per distinct pair.
    """
    rows, row_of = _distinct(mine)
    columns, column_of = _distinct(yours)
    table = np.array([[_alike(a, b) for b in columns] for a in rows], np.float32).reshape(
        len(rows), len(columns)
    )
    result: Scores = table[np.array(row_of, np.int64)][:, np.array(column_of, np.int64)]
    return result


def _distinct(pieces: Sequence[Piece]) -> tuple[list[Piece], list[int]]:
    index: dict[Hashable, int] = {}
    kept: list[Piece] = []
    number = []
    for piece in pieces:
        key = _signature(piece)
        if key not in index:
            index[key] = len(kept)
            kept.append(piece)
        number.append(index[key])
    return kept, number


def _signature(piece: Piece) -> Hashable:
    return (piece.kind, piece.ops, piece.shapes, piece.detail, piece.tactic, piece.part is None)


def _alike(a: Piece, b: Piece) -> float:
    """Score of kind, operations, shapes and parameters: about 5 if all agree; IMPOSSIBLE if they
    cannot be the same.
    """
    score = _kinds(a, b)
    if score <= IMPOSSIBLE:
        return score
    if a.ops and b.ops:
        score += 2.0 * _overlap(a.op_counts, b.op_counts) - 0.5
    if a.shapes and b.shapes:
        score += 1.0 if a.shapes == b.shapes else 0.5 if set(a.shapes) & set(b.shapes) else -1.0
    ours, theirs = dict(a.detail), dict(b.detail)
    common = ours.keys() & theirs.keys()
    if common:
        score += 2.0 * sum(ours[key] == theirs[key] for key in common) / len(common) - 1.0
    if a.tactic and a.tactic == b.tactic:
        score += 0.5
    return score


def _kinds(a: Piece, b: Piece) -> float:
    if a.kind == b.kind:
        return 1.0
    if "foreign_node" in (a.kind, b.kind):
        return IMPOSSIBLE  # a region and a layer: see `groups`
    if a.kind in _ANY or b.kind in _ANY:
        return 0.0
    if any(a.kind in group and b.kind in group for group in _GROUPS):
        return 0.3
    return IMPOSSIBLE


def _overlap(a: Counter[str], b: Counter[str]) -> float:
    """The overlap of two multisets of operations; casts do not count."""
    both = (a & b).total() - min(a["Cast"], b["Cast"])
    either = (a | b).total() - max(a["Cast"], b["Cast"])
    return both / either if either else 1.0


# --- what stands around them
# -------------------------------------------------------------------------------------------


def _surroundings(
    first: Network, second: Network, places: tuple[Sequence[int], Sequence[int]]
) -> Scores:
    """Score of equal surroundings: layers that compute the same up to eight steps away, and
    everything before or after.
    """
    result = np.zeros((len(places[0]), len(places[1])), np.float32)
    around: list[tuple[Sequence[int], Sequence[int]]] = list(
        zip(
            *(
                _neighbourhoods(one, own)
                for one, own in zip((first, second), own_structure(first, second), strict=True)
            ),
            strict=True,
        )
    )
    for worth, (ours, theirs) in zip(
        (*_AROUND, _EXACT, _EXACT, _SAME_COLOUR), [*around, colours(first, second)], strict=True
    ):
        codes: dict[Hashable, int] = {}
        left, right = (
            np.array([codes.setdefault(held[place], len(codes)) for place in wanted], np.int64)
            for held, wanted in zip((ours, theirs), places, strict=True)
        )
        if len(left) and len(right):
            result += worth * (left[:, None] == right[None, :])
    return result


def _neighbourhoods(network: Network, own: Sequence[Hashable]) -> list[list[int]]:
    """For each kind of surroundings one hash per piece: within 1, 2, 4 and 8 steps, then everything
    before it, then everything after it.
    """
    before, behind = computing_neighbours(network)
    loose = [
        hash((piece.kind if piece.kind not in PRODUCTS else "product", piece.shapes))
        for piece in network.pieces
    ]
    found: list[list[int]] = []
    now = loose
    for step in range(1, 9):
        now = [
            hash(
                (
                    loose[place],
                    _bag(now[one] for one, _ in before[place]),
                    _bag(now[one] for one, _ in behind[place]),
                )
            )
            for place in range(len(now))
        ]
        if step in (1, 2, 4, 8):
            found.append(now)
    exact = [hash(one) for one in own]
    found.append(_onward(exact, before, range(len(exact))))
    found.append(_onward(exact, behind, range(len(exact) - 1, -1, -1)))
    return found


def _onward(
    own: Sequence[int], neighbours: Sequence[Sequence[tuple[int, int]]], order: Iterable[int]
) -> list[int]:
    """For each piece a hash of itself and of everything it depends on, with input slots."""
    result = list(own)
    for place in order:
        result[place] = hash(
            (own[place], tuple(sorted((slot, result[one]) for one, slot in neighbours[place])))
        )
    return result


def _bag(values: Iterable[int]) -> int:
    return hash(tuple(sorted(values)))


Neighbours = tuple[tuple[tuple[int, int], ...], ...]


def computing_neighbours(network: Network) -> tuple[Neighbours, Neighbours]:
    """For each piece the computing pieces that it reads from and that read from it, with their
    slots; pieces that only move data are skipped.

    If the dataflow is unknown, the piece before and the piece after.
    """
    pieces = network.pieces
    if not network.flows:
        line = [place for place, piece in enumerate(pieces) if piece.computes]
        at = {place: number for number, place in enumerate(line)}
        before = tuple(
            ((line[at[place] - 1], 0),) if at.get(place, 0) > 0 else ()
            for place in range(len(pieces))
        )
        behind = tuple(
            ((line[at[place] + 1], 0),) if place in at and at[place] + 1 < len(line) else ()
            for place in range(len(pieces))
        )
        return before, behind
    onto: list[dict[tuple[int, int], None]] = []
    for place in range(len(pieces)):  # writers precede their readers
        held: dict[tuple[int, int], None] = {}
        for writer, slot in network.writers[place]:
            if pieces[writer].computes or writer >= place:
                held[writer, slot] = None
            else:
                held.update(((far, slot), None) for far, _ in onto[writer])
        onto.append(held)
    reading: list[dict[tuple[int, int], None]] = [{} for _ in pieces]
    for place, held in enumerate(onto):
        if pieces[place].computes:
            for writer, slot in held:
                reading[writer][place, slot] = None
    return tuple(tuple(one) for one in onto), tuple(tuple(one) for one in reading)


# --- names, nodes and tensors
# ------------------------------------------------------------------------------------------

_Shared = dict[tuple[int, int], tuple[float, float]]
_Names = list[Mapping[str, int]]


def _shared(mine: Sequence[Mapping[str, int]], yours: Sequence[Mapping[str, int]]) -> _Shared:
    """For each row and column with common elements, their share of the smaller and of the larger
    set.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    for column, held in enumerate(yours):
        for name in held:
            holders[name].append(column)
    sums = [sum(held.values()) for held in yours]
    result: _Shared = {}
    for row, held in enumerate(mine):
        own = sum(held.values())
        common: dict[int, int] = defaultdict(int)
        for name, weight in held.items():
            for column in holders.get(name, ()):
                common[column] += weight
        for column, weight in common.items():
            small, large = sorted((own, sums[column]))
            result[row, column] = (weight / small, weight / large)
    return result


def _believed(
    alike: Scores, mine: Sequence[Mapping[str, int]], yours: Sequence[Mapping[str, int]]
) -> _Shared:
    """What the pieces of both sides share, if these names can be trusted."""
    names = [[name for held in side for name in held] for side in (mine, yours)]
    return _trusted(_shared(mine, yours), alike, numbered=_are_numbered(*names))


def _believed_tensors(
    alike: Scores, mine: Sequence[Mapping[str, int]], yours: Sequence[Mapping[str, int]]
) -> _Shared:
    """The tensors that both sides share, if their names can be trusted; names that TensorRT numbers
    itself, differently in each build, are judged separately.
    """
    result: _Shared = {}
    for unnamed in (True, False):
        held = [
            [{name: 1 for name in one if (unnumbered(name) != name) == unnamed} for one in side]
            for side in (mine, yours)
        ]
        result.update(
            _trusted(
                _shared(*held),
                alike,
                numbered=unnamed or _are_numbered(*(chain(*side) for side in held)),
            )
        )
    return result


def _without_other_counts(
    alike: Scores, told: Sequence[Sequence[bool]], mine: _Names, yours: _Names
) -> tuple[_Names, _Names]:
    """The names without those that a counter numbered differently on the other side, such as
    LayerNorm-4 if one side has more of them before it.

    These are names that differ only in their last number, if too few of those on both sides belong
    to similar pieces. Only pieces of which more than the kind is known (``told``) and whose only
    name it is can be dissimilar: a piece of several nodes is unlike each part of it.
    """
    holders = [defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)]
    for places, side in zip(holders, (mine, yours), strict=True):
        for place, held in enumerate(side):
            for name in held:
                places[name].append(place)
    whole = [
        [known and len(held) == 1 for known, held in zip(side, names, strict=True)]
        for side, names in zip(told, (mine, yours), strict=True)
    ]
    agree: dict[str, list[bool]] = defaultdict(list)
    for name in holders[0].keys() & holders[1].keys():
        stem, number = _COUNTED.fullmatch(name), (holders[0][name], holders[1][name])
        if stem and all(
            len(places) == 1 and side[places[0]] for places, side in zip(number, whole, strict=True)
        ):
            score = float(alike[number[0][0], number[1][0]])
            if not np.isnan(score):
                agree[stem[1]].append(score >= _AGREE_NUMBERED)
    wrong = {
        stem
        for stem, told in agree.items()
        if len(told) >= _FEWEST_COUNTED and sum(told) < _TRUST * len(told)
    }
    if not wrong:
        return mine, yours

    def kept(held: Mapping[str, int]) -> Mapping[str, int]:
        return {
            name: weight
            for name, weight in held.items()
            if not ((stem := _COUNTED.fullmatch(name)) and stem[1] in wrong)
        }

    return [kept(held) for held in mine], [kept(held) for held in yours]


def _trusted(shared: _Shared, alike: Scores, *, numbered: bool) -> _Shared:
    """The shared names if they can be trusted, that is if the pieces that share all of one are
    similar; otherwise nothing.

    Exporters number nodes and tensors consecutively, so that another export uses the same names for
    other things: ``numbered`` names must also be in the same order, unless nearly all are present
    and similar. Whether a layer and a region are similar is unknown (NaN).
    """
    whole = sorted(pair for pair, (_, larger) in shared.items() if larger > 0.9)
    rows, columns = Counter(row for row, _ in whole), Counter(column for _, column in whole)
    unique = [(row, column) for row, column in whole if rows[row] == columns[column] == 1]
    scores = [float(alike[pair]) for pair in unique if not np.isnan(alike[pair])]
    if not scores:
        return {} if numbered else shared
    agree = sum(score >= (_AGREE_NUMBERED if numbered else _AGREE) for score in scores) / len(
        scores
    )
    if not numbered:
        return shared if agree >= _TRUST else {}
    covered = len(unique) / max(min(alike.shape), 1)
    in_order = _longest_rise([column for _, column in unique]) / len(unique)
    most = agree >= _NEARLY and covered >= _NEARLY
    return (
        shared
        if most or (agree >= _TRUST and in_order >= _TRUST and covered >= _LEAST_COVERED)
        else {}
    )


def _longest_rise(values: Sequence[int]) -> int:
    """The length of the longest increasing subsequence."""
    ends: list[int] = []
    for value in values:
        place = bisect_left(ends, value)
        ends[place : place + 1] = [value]
    return len(ends)


def _are_numbered(*sides: Iterable[str]) -> bool:
    """Whether most of the names, on at least one side, are a number or a word with a number."""
    return any(
        2 * sum(_NUMBERED.match(name) is not None for name in names) > len(names)
        for names in map(list, sides)
    )


def _contradict(scores: Scores, held: tuple[_Names, _Names], shared: _Shared) -> None:
    """If the nodes are those of one model: a piece whose nodes the other side has cannot be a piece
    that has none of them.
    """
    if not shared:
        return
    for side, other, table in ((held[0], held[1], scores), (held[1], held[0], scores.T)):
        known = {node for nodes in other for node in nodes}
        for row, nodes in enumerate(side):
            if 2 * sum(weight for node, weight in nodes.items() if node in known) > sum(
                nodes.values()
            ):
                table[row] = IMPOSSIBLE
            elif nodes:
                table[row] -= _OF_OTHER_NODES


def _plain(piece: Piece) -> str:
    return piece.name if piece.part is None else f"{piece.name} {piece.part}"


def _tensors(network: Network, places: Sequence[int]) -> list[dict[str, int]]:
    """What each piece writes, including copies by pieces that only move data; tensors with several
    writers are left out.
    """
    before, _ = computing_neighbours(network)
    row_of = {place: row for row, place in enumerate(places)}
    result: list[dict[str, int]] = [
        dict.fromkeys(network.pieces[place].writes, 1) for place in places
    ]
    for place, piece in enumerate(network.pieces):
        sources = {writer for writer, _ in before[place]}
        if not piece.computes and len(sources) == 1 and (source := sources.pop()) in row_of:
            result[row_of[source]].update(dict.fromkeys(piece.writes, 1))
    count = Counter(name for held in result for name in held)
    return [{name: 1 for name in held if count[name] == 1} for held in result]


def _same_wording(mine: Sequence[Piece], yours: Sequence[Piece]) -> Scores:
    """The share of two names that is the same words in the same order, rare words weighted more;
    numbered names have no words.
    """
    ours, theirs = ([_word_pairs(piece) for piece in side] for side in (mine, yours))
    held = Counter(pair for side in (ours, theirs) for words in side for pair in words)
    both = set().union(*ours) & set().union(*theirs)
    kept = sorted(both, key=lambda pair: (held[pair], pair))[:_MOST_WORDS]
    if not kept:
        return np.zeros((len(mine), len(yours)), np.float32)
    index = {pair: number for number, pair in enumerate(kept)}
    total = len(mine) + len(yours)
    worth = {pair: float(np.log(total / count)) + 0.1 for pair, count in held.items()}
    root = np.sqrt(np.array([worth[pair] for pair in kept], np.float32))
    tables, sums = [], []
    for side in (ours, theirs):
        table = np.zeros((len(side), len(kept)), np.float32)
        for row, words in enumerate(side):
            table[row, [index[pair] for pair in words if pair in index]] = 1.0
        tables.append(table * root)
        sums.append(np.array([sum(worth[pair] for pair in words) for words in side], np.float32))
    either = np.maximum(np.maximum(sums[0][:, None], sums[1][None, :]), 1e-6)
    result: Scores = ((tables[0] @ tables[1].T) / either).astype(np.float32)
    return result


def _word_pairs(piece: Piece) -> set[tuple[str, str]]:
    """Each pair of adjacent words in the names of a piece's nodes."""
    found: set[tuple[str, str]] = set()
    for node in piece.nodes:
        words = _WORD.findall(node.lower())
        if not _NUMBERED.match(node):
            found.update(pairwise(words))
    return found


_WORD = re.compile(r"[a-z]+|\d+")
_SPLIT = re.compile(r"[/.]+")
# what TensorFlow's quantization-aware training puts before the name of a layer that it wraps
_WRAPPED = "quant_"
# [CONVOLUTION]-[aten_ops.convolution.default]-[/layer1/0/conv1/convolution_1]
_BRACKETED = re.compile(r"\[(/[^\[\]]+)\]")


def _places(pieces: Sequence[Piece]) -> _Names:
    """The places in the model of each piece's nodes, in a form common to different exporters, with
    their weights.

    A place is the path of a node's modules and its operation, without modules that enclose the
    whole network.
    """
    paths = {node: path for piece in pieces for node in piece.nodes if (path := _path(node))}
    around = _around(list(paths.values()))
    result: _Names = []
    for piece in pieces:
        held: dict[str, int] = {}
        for node, weight in piece.weights.items():
            if node in paths:
                own = paths[node]
                place = " ".join(own[len(around) :] if own[: len(around)] == around else own)
                held[place] = max(held.get(place, 0), weight)
        result.append(held)
    return result


def _around(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The modules that nearly all of these paths begin with."""
    around: tuple[str, ...] = ()
    while True:
        depth = len(around)
        words = Counter(
            path[depth] for path in paths if len(path) > depth + 2 and path[:depth] == around
        )
        (word, count), *_ = words.most_common(1) or [("", 0)]
        if not word or count < _NEARLY * len(paths):
            return around
        around += (word,)


@lru_cache(maxsize=65536)
def _path(node: str) -> tuple[str, ...]:
    """A node's modules and its operation, such as layer1 0 conv1 Conv for
    /layer1/layer1.0/conv1/Conv and for Torch-TensorRT's name; empty if unknown.
    """
    own = _BRACKETED.findall(node)[-1:] or [node]
    row = node_row(own[0])
    path: list[str] = []
    for word in (word.removeprefix(_WRAPPED) for word in _SPLIT.split(own[0]) if word):
        if not path or word != path[-1]:
            path.append(word)
    return (*path[:-1], row.op) if len(path) > 1 and row is not None else ()
