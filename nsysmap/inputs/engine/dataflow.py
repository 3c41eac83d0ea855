"""An engine as a graph: which layer reads what which layer writes, and chains in which each layer
has a single reader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.inputs.engine.model import Engine, Layer, Tensor
from nsysmap.inputs.engine.tensor_formats import elements, total_bytes

if TYPE_CHECKING:
    import networkx

MOST_EDGES, MOST_EDGES_A_TENSOR = 100_000, 20
"""Of an engine: a tensor written in parts joins each of its readers to each part, so a small file
could ask for millions of edges.

Engines have about one edge a tensor; the most come of dense networks, whose hundredth layer reads
the parts of all before it.
"""


@dataclass(frozen=True)
class Flow:
    """The data between the layers of one engine, by the layers' index in the file; tensors as the
    reader sees them.
    """

    readers: dict[int, tuple[int, ...]]
    writers: dict[int, tuple[int, ...]]
    tensors: dict[tuple[int, int], tuple[Tensor, ...]]
    leaves: frozenset[int]  # layers that write an output of the engine, which must stay in memory

    def only_reader(self, index: int) -> int | None:
        """The one layer that reads anything this layer writes; None if there are more or none, or
        where it writes an engine output.
        """
        readers = self.readers.get(index, ())
        return readers[0] if len(readers) == 1 and index not in self.leaves else None

    def only_writer(self, index: int) -> int | None:
        """The one layer that this layer reads from; None if there are more or none."""
        writers = self.writers.get(index, ())
        return writers[0] if len(writers) == 1 else None

    def bytes_between(self, source: int, target: int) -> int | None:
        """Size of what passes from one layer to another; None if a size is not known."""
        return total_bytes(self.tensors.get((source, target), ()))

    def bytes_kept(self, layers: Iterable[int]) -> int | None:
        """Bytes that these layers write and read again among themselves: twice the size of what
        passes; None if a size is not known.
        """
        inside = set(layers)
        pairs = [
            (source, target)
            for source in inside
            for target in self.readers.get(source, ())
            if target in inside
        ]
        passed = total_bytes(tensor for pair in pairs for tensor in self.tensors[pair])
        return None if passed is None else 2 * passed


def flow_of(engine: Engine) -> Flow:
    """Producers and consumers of every layer, joined by tensor as `tables.edges_table` says; it has
    no cycles.
    """
    readers: dict[int, dict[int, None]] = defaultdict(dict)
    writers: dict[int, dict[int, None]] = defaultdict(dict)
    tensors: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
    for source, target, tensor in engine.links:
        readers[source.index][target.index] = None
        writers[target.index][source.index] = None
        tensors[source.index, target.index].append(tensor)
    leaves = frozenset(
        layer.index
        for layer in engine.layers
        if any(engine.binds(tensor.name) for tensor in layer.outputs)
    )
    return Flow(
        {index: tuple(found) for index, found in readers.items()},
        {index: tuple(found) for index, found in writers.items()},
        {pair: tuple(found) for pair, found in tensors.items()},
        leaves,
    )


def runs(engine: Engine, flow: Flow, member: Callable[[Layer], bool]) -> list[tuple[int, ...]]:
    """The longest runs of two or more members, each the only reader of the one before it; every
    layer is in one run at most.
    """
    inside = {layer.index for layer in engine.layers if member(layer)}
    following = {
        index: reader
        for index in inside
        if (reader := flow.only_reader(index)) in inside and reader is not None
    }
    leading: dict[int, int] = {}
    for index in sorted(following):
        # two branches into one reader: the run goes along the first
        leading.setdefault(following[index], index)
    found: list[tuple[int, ...]] = []
    for first in sorted(index for index in following if index not in leading):
        run = [first]
        while (after := following.get(run[-1])) is not None and leading[after] == run[-1]:
            run.append(after)
        if len(run) > 1:
            found.append(tuple(run))
    return found


def engine_graph(engine: Engine) -> networkx.DiGraph[int]:
    """The engine as a networkx graph: nodes are layer indices with name, kind, precision and
    region, edges carry tensor names and bytes.
    """
    import networkx as nx

    graph: networkx.DiGraph[int] = nx.DiGraph()
    for layer in engine.layers:
        graph.add_node(
            layer.index,
            name=layer.name,
            kind=layer.kind,
            precision=layer.precision,
            region=layer.region,
        )
    flow = engine.flow
    for (source, target), tensors in flow.tensors.items():
        graph.add_edge(
            source,
            target,
            tensors=tuple(tensor.name for tensor in tensors),
            bytes=flow.bytes_between(source, target),
        )
    return graph


def common_path(nodes: Iterable[str]) -> str | None:
    """The path that most of these ONNX nodes share, at least two steps deep
    (/encoder/layer.5/attention); None if there is none.

    A node is named after its module's path and its own operation; of several modules the deepest
    path of at least half of the nodes counts.
    """
    paths = [tuple(node.split("/")[:-1]) for node in nodes if node.startswith("/")]
    best: tuple[str, ...] = ()
    # at most one path of each length is that of most nodes, and begins with the shorter one
    for depth in range(3, max(map(len, paths), default=0) + 1):
        begins = Counter(
            path[:depth] for path in paths if len(path) >= depth and path[: len(best)] == best
        )
        path, number = begins.most_common(1)[0] if begins else ((), 0)
        if 2 * number <= len(paths):
            break
        best = path
    return "/".join(best) or None


def nearest(indices: Sequence[int], to: int) -> int | None:
    """The number among these ascending ones that is nearest to another, the smaller on a tie; None
    if there is none.
    """
    place = bisect_left(indices, to)
    around = indices[max(place - 1, 0) : place + 1]
    return min(around, key=lambda index: abs(index - to), default=None)


def links(engine: Engine) -> Iterator[tuple[Layer, Layer, Tensor]]:
    """Producer, consumer and the tensor that passes between them, each pair and name once; see
    `edges_table`.

    Raises NsysmapError if more edges come of it than any engine has (MOST_EDGES,
    MOST_EDGES_A_TENSOR).
    """
    tensors = sum(len(layer.inputs) + len(layer.outputs) for layer in engine.layers)
    left = MOST_EDGES + MOST_EDGES_A_TENSOR * tensors
    written: dict[tuple[int | None, str], _Written] = defaultdict(_Written)
    for layer in engine.layers:
        seen: set[str] = set()
        for tensor in layer.inputs:
            if tensor.name not in seen:
                seen.add(tensor.name)
                producers = written[layer.optimization_profile, tensor.name].producers_of(tensor)
                left -= len(producers)
                if left < 0:
                    most = MOST_EDGES + MOST_EDGES_A_TENSOR * tensors
                    what = (
                        f"has more than {most:,} edges between layers, too many for its {tensors:,}"
                        " tensors"
                    )
                    raise NsysmapError(
                        engine.source,
                        what,
                        "export it again: trtexec --loadEngine=ENGINE --exportLayerInfo=FILE.json",
                    )
                for source, part in producers:
                    yield source, layer, part
        for tensor in layer.outputs:
            written[layer.optimization_profile, tensor.name].add(layer, tensor)


class _Written:
    """The layers that wrote a tensor of one name, in order, with the elements of what they wrote
    added up.
    """

    def __init__(self) -> None:
        self._writers: list[tuple[Layer, Tensor]] = []
        self._sums: list[int] = [0]  # sum of the elements of the first writers, by how many
        # the writers before this one are apart: one after them wrote nothing, or what is not known
        self._first = 0

    def add(self, layer: Layer, tensor: Tensor) -> None:
        held = elements(tensor) or 0
        self._writers.append((layer, tensor))
        self._sums.append(self._sums[-1] + held)
        if not held:
            self._first = len(self._writers)

    def producers_of(self, tensor: Tensor) -> list[tuple[Layer, Tensor]]:
        """The nearest writer with the tensor as it is read; or the last few with the part of each,
        where those make up what is read.
        """
        nearest = [(layer, tensor) for layer, _ in self._writers[-1:]]
        wanted = elements(tensor)
        if wanted is None:
            return nearest
        before = self._sums[-1] - wanted
        first = bisect_left(self._sums, before, self._first)
        if first >= len(self._writers) - 1 or self._sums[first] != before:
            return nearest
        return self._writers[first:]
