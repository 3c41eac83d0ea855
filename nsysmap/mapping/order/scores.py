"""Scores how well each kernel of an inference fits each layer of an engine, and the cost of a layer
without kernels or with several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray, Table
from nsysmap.inputs.engine.model import Engine, Layer
from nsysmap.mapping.order.launch_shapes import tiles_agree
from nsysmap.names.decode import KernelName, affinity, decode, matches_tactic, split_layer_name
from nsysmap.names.match import is_generated

# Nats.  What counts is how they compare: to force a wrong layer on one kernel must cost more than
# an odd name does.
_TACTIC = 6.0  # the kernel's name is the layer's tactic
# its name is a symbol of the operations of the layer's tactic, with another hash: code may be
# shared
_EQUAL_CODE = 4.0
_NOT_TACTIC = -6.0  # … is the tactic of other layers, and this one has a different tactic
_ELSEWHERE = -2.5  # … is the tactic of other layers, and of this one no tactic is known
_HELPER = -1.0  # the kernel is no layer's tactic: at best a helper of a layer that has one
_AFFINITY = 8.0  # times (affinity - 0.5)
_NEVER = -9.0  # a layer that runs no kernels
_DROP = -5.5  # a kernel that is none of the engine's
_DROP_HELPER = -9.0  # … that is of a kind which goes with another kernel's layer
_HELPERS = ("reformat", "shuffle", "copy", "cast", "constant", "reduce")
_DROP_FOREIGN = -2.0  # … by whose name it need not be TensorRT's at all
_FOREIGN = -1.5  # such a kernel in a layer that may run anything
_FOREIGN_OP = 1.0  # … at most, in a layer of its operation of which TensorRT too has such kernels
_FOREIGN_ELSE = -4.0  # … in any other layer that is no plugin
_FOREIGN_TACTIC = -12.0  # … in one whose tactic is known, and another
# a kernel of a framework in any layer that is no plugin, and one of TensorRT itself in a plugin
_NEVER_RUN = -30.0
# such kernels between two inferences, and TensorRT's own
_BETWEEN_FRAMEWORK, _BETWEEN_FOREIGN, _BETWEEN_TENSORRT = (
    -0.3,
    -0.7,
    -4.0,
)
# the launch has as many blocks as the layer's output needs (of own layers 0.97 at least, of others
# 0.13), or not
_TILES = (
    2.0,
    -3.4,
)
_HABIT = 1.5  # at most this for what kernels of that name did elsewhere in the engine
SPEAKS = 1.0  # from that on a kernel's name speaks for its layer
_TIME_SPREAD = 0.35  # of the log of measured over profiled time
_TIME = (0.5, 2.0)  # at most that for, and that against

_SKIP = {
    "shape": 0.0, "signal": 0.0, "constant": 0.0, "noop": 0.0, "shuffle": -1.5, "slice": -2.0,
    "concat": -2.0, "cast": -2.5,
    "unknown": -1.5, "other": -2.0, "loop": -1.0, "quantize": -4.5, "gather": -3.0,
    "reformat": -3.0, "plugin": -4.0,
}  # fmt: skip
_SKIP_ELSE = -6.0  # of kinds that are not listed: they run kernels
# without its type nothing tells it from one that runs nothing: 220 of 401 in public files with
# profiles
_SKIP_UNTYPED_REFORMAT = -1.0
# a shuffle that moves data, and one that need not: 85 of 85 ran, 0 of 171
_SKIP_TRANSPOSE, _SKIP_RESHAPE = (
    -3.0,
    -0.2,
)
_TRANSPOSE, _NODE = (
    re.compile("transpose|permute", re.IGNORECASE),
    re.compile("transpose|permute|reshape|squeeze|flatten|view", re.IGNORECASE),
)
_SURELY = -3.0  # one of twenty: a layer that is skipped no more often must run kernels
ANY_NUMBER = ("foreign_node", "plugin", "loop", "unknown", "other")
"""Kinds of layers that may run any number of kernels."""
_MORE = {
    "foreign_node": 0.0,
    "loop": -0.5,
    "nms": -1.0,
    "topk": -1.0,
    "plugin": -1.2,
    "unknown": -2.0,
    "other": -2.0,
    "resize": -2.0,
}
_MORE_ELSE = -3.5  # of kinds that are not listed: they run one kernel
# besides, where the kernel that the layer is known by is not its first: helpers come after it
_MAIN_LATER = -1.5
_MAIN_TWICE, _MAIN_AGAIN = frozenset(("softmax", "normalization", "reduce")), -4.6
"""Layers that may run their main kernel in two steps, and what a second main kernel of any other
layer is worth: less than one of TensorRT between two inferences, so that a layer takes none of the
inference that follows, and more than one of no layer within an inference.
"""
_SPLIT_K, _FOLLOWS = re.compile("splitk(?!_\\d)", re.IGNORECASE), 2.0
"""Kernels that add up what the matrix product before them left: they begin no layer.  A product
that is split names its parts.
"""
_COMPILER_MADE = re.compile(
    r"__mye\d+_\d+$|dummy_shape_call|[\w^]*hvar\^|clp_|__mye\d+_(?:hc_)?init$|__mye\d+_incr$"
)
"""Loop counters, shapes on the host and memory that is filled: none of 86 in 60 engine files of
TensorRT for RTX ran a kernel."""
_DIGITS = re.compile(r"\d+")

_MEASURED = 64  # inferences of a shape that a kernel's median time is taken over


@dataclass(frozen=True)
class KernelFacts:
    """What is known of one kernel of an inference, over all inferences of its shape."""

    name: str
    duration_ns: float = 0.0  # median; 0 where not measured
    grid: tuple[int, int, int] = (1, 1, 1)
    stream: int | None = None  # None where kernels of several are taken together
    block: int = 0  # threads of a block; 0 where not known


def kernel_facts(kernels: Table, rows: IntArray) -> tuple[KernelFacts, ...]:
    """The facts about each kernel of a shape; ``rows`` are the kernels of its inferences
    (inferences x kernels).
    """
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MEASURED)).astype(np.int64)]
    took = np.median(kernels.ints("end_ns")[some] - kernels.ints("start_ns")[some], axis=0)
    names = kernels.text("name").take(rows[0]).list()
    grids = np.stack(
        [kernels.ints(name)[rows[0]] for name in ("grid_x", "grid_y", "grid_z")], axis=1
    )
    streams = kernels.ints("stream")[rows[0]].tolist()
    blocks = threads_of(kernels, rows[0]).tolist()
    return tuple(
        KernelFacts(name or "", float(time), (int(x), int(y), int(z)), stream, block)
        for name, time, (x, y, z), stream, block in zip(
            names, took, grids.tolist(), streams, blocks, strict=True
        )
    )


def threads_of(kernels: Table, rows: IntArray) -> IntArray:
    """The threads per block of each of these kernels; 0 if unknown."""
    sides = [kernels.ints_at(name, rows) for name in ("block_x", "block_y", "block_z")]
    found: IntArray = np.maximum(sides[0], 0) * np.maximum(sides[1], 0) * np.maximum(sides[2], 0)
    return found


@dataclass(frozen=True)
class Scores:
    """The scores of distinct kernels (by name and grid) against layers."""

    row: IntArray  # for each kernel its row in the matrices
    match: FloatArray  # rows x layers, nats
    tactic: BoolArray  # rows x layers: the name is the layer's tactic
    skip: FloatArray  # per layer
    more: FloatArray  # rows x layers
    runs: BoolArray  # per layer: it surely runs kernels
    layer_class: IntArray  # layers of one class differ in the numbers of their names only
    drop: FloatArray  # per row
    foreign: BoolArray  # per row: nothing in its name speaks of TensorRT
    # rows x layers: needs no other reason to be in the layer than that the kernel before it is
    helps: BoolArray
    name: IntArray  # per row: kernels of one name have the same number
    # per row: kernels that do the same, as far as their names tell, have the same number
    like: IntArray


def score(kernels: Sequence[KernelFacts], engine: Engine, layers: Sequence[Layer]) -> Scores:
    """Scores these kernels against these layers of the engine, in the order given."""
    index: dict[tuple[str, tuple[int, int, int]], int] = {}
    row = np.array(
        [index.setdefault((kernel.name, kernel.grid), len(index)) for kernel in kernels], np.int64
    )
    names = [name for name, _ in index]
    profile = profile_of(engine, layers)
    tactic = _tactics(names, layers)
    decoded = [decode(name) for name in names]
    match = _matches(decoded, layers, tactic)
    foreign = np.array([_is_foreign(kernel) for kernel in decoded], np.bool_)
    match = np.where(tactic, match, np.minimum(match, _most_of_foreign(decoded, layers)))
    helper = np.array([kernel.fields.get("operation") in _HELPERS for kernel in decoded])
    drop = np.where(foreign, _DROP_FOREIGN, np.where(helper, _DROP_HELPER, _DROP))
    drop = np.where(np.asarray(tactic.any(axis=1)), _DROP, drop)
    skip = np.array([_skip(layer, time) for layer, time in zip(layers, profile, strict=True)])
    more = np.array([_MORE.get(layer.kind, _MORE_ELSE) for layer in layers])
    # a plugin may prepare before it does its work
    own_order = np.array([layer.kind == "plugin" for layer in layers])
    main = (match >= SPEAKS) & ~own_order
    once = np.array([layer.kind not in _MORE and layer.kind not in _MAIN_TWICE for layer in layers])
    more = np.where(
        main & once,
        np.minimum(more + _MAIN_LATER, _MAIN_AGAIN - match),
        more + np.where((more < 0) & main, _MAIN_LATER, 0.0),
    )
    agree, told = tiles_agree(list(index), layers)
    match = np.where(told & ~tactic, match + np.where(agree, *_TILES), match)
    follows = np.array([_SPLIT_K.search(name) is not None for name in names], np.bool_)[:, None]
    match, more = (
        np.where(follows, match - _FOLLOWS, match),
        np.where(follows, more + _FOLLOWS, more),
    )
    idle = [
        at
        for at, (layer, time) in enumerate(zip(layers, profile, strict=True))
        if _makes_nothing(layer) or (time == 0 and not layer.tactic)
    ]
    match[:, idle] = np.minimum(match[:, idle], _NEVER)
    helps = follows | (own_order & (match >= 0))
    alike: dict[tuple[object, ...], int] = {}
    known: dict[str, int] = {}
    named = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
    like = np.array(
        [alike.setdefault(_told(kernel, named=False), len(alike)) for kernel in decoded], np.int64
    )
    return Scores(
        row,
        match,
        tactic,
        skip,
        more,
        skip <= _SURELY,
        _classes(layers),
        drop,
        foreign,
        helps,
        named,
        like,
    )


def profile_of(engine: Engine, layers: Sequence[Layer]) -> list[int | None]:
    """The profiled time of each of these layers, ns; None if there is no profile."""
    return [
        engine.trtexec_ns[layer.index] if layer.index < len(engine.trtexec_ns) else None
        for layer in layers
    ]


def surely_run(engine: Engine, layers: Sequence[Layer]) -> BoolArray:
    """Marks the layers that must run kernels."""
    return np.array(
        [
            _skip(layer, time) <= _SURELY
            for layer, time in zip(layers, profile_of(engine, layers), strict=True)
        ],
        np.bool_,
    )


def expected_kernels(engine: Engine) -> int | None:
    """The approximate number of kernels in one inference; None if the engine has opaque regions or
    its file gives no such information.
    """
    if any(layer.kind in ("foreign_node", "plugin", "loop") for layer in engine.layers):
        return None
    profile = min(
        (
            layer.optimization_profile
            for layer in engine.layers
            if layer.optimization_profile is not None
        ),
        default=None,
    )
    mine = [layer for layer in engine.layers if layer.optimization_profile in (None, profile)]
    return int(surely_run(engine, mine).sum()) or None


# families that TensorRT never runs but in plugins
_FRAMEWORK = frozenset(("pytorch", "triton", "cufft", "nccl"))
# … of which it runs few
_ANYBODYS = frozenset(("cuda", "unknown", "cub", "pytorch", "tensorrt-llm", "flash-attention"))
# families that only TensorRT's own layers run
_BUILDERS = frozenset(("reformat", "native-pointwise", "tensorrt", "trt", "myelin"))
_ANYTHING = frozenset(("foreign_node", "unknown", "other", "loop"))


def _is_foreign(kernel: KernelName) -> bool:
    """Whether nothing in the name indicates TensorRT or its libraries."""
    return _is_framework(kernel) or kernel.family in _ANYBODYS


def _is_builders(kernel: KernelName) -> bool:
    """Whether only one of TensorRT's own layers runs the kernel: plugins call libraries, whose
    kernels have other names.
    """
    return kernel.family in _BUILDERS or (
        kernel.family == "xmma" and str(kernel.fields.get("launcher", "")).endswith("_trt")
    )


def _is_framework(kernel: KernelName) -> bool:
    """Whether the kernel certainly belongs to a framework. Some kernels that PyTorch shares are
    recognised by a single word of their name.
    """
    return kernel.family in _FRAMEWORK and (kernel.family != "pytorch" or "::" in kernel.name)


def _most_of_foreign(decoded: Sequence[KernelName], layers: Sequence[Layer]) -> FloatArray:
    """The highest score that each kernel's family allows in each layer."""
    most = np.full((len(decoded), len(layers)), np.inf)
    plugin = np.array([layer.kind == "plugin" for layer in layers])
    anything = np.array([layer.kind in _ANYTHING for layer in layers])
    tactic = np.array([bool(layer.tactic) for layer in layers])
    for number, kernel in enumerate(decoded):
        if _is_framework(kernel):
            most[number] = np.where(plugin, np.inf, _NEVER_RUN)
        elif _is_foreign(kernel):
            operation = kernel.fields.get("operation", "unknown")
            alike = np.array([layer.kind == operation and not layer.tactic for layer in layers])
            usual = np.where(
                anything,
                _FOREIGN,
                np.where(alike, _FOREIGN_OP, np.where(tactic, _FOREIGN_TACTIC, _FOREIGN_ELSE)),
            )
            most[number] = np.where(plugin, np.inf, usual)
        elif _is_builders(kernel):
            most[number] = np.where(plugin, _NEVER_RUN, np.inf)
    return most


def between_costs(
    kernels: Sequence[KernelFacts], tactic: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The cost of treating each of these distinct kernels as belonging to no engine: launched
    within an inference, and between two.

    ``tactic``: its name is some layer's tactic.
    """
    inside, between = [], []
    for kernel, known in zip(
        [decode(kernel.name) for kernel in kernels], tactic.tolist(), strict=True
    ):
        if known:
            costs = (_DROP, _DROP)
        elif _is_framework(kernel):
            costs = (_DROP_FOREIGN, _BETWEEN_FRAMEWORK)
        elif _is_foreign(kernel):
            costs = (_DROP_FOREIGN, _BETWEEN_FOREIGN)
        else:
            costs = (
                _DROP_HELPER if kernel.fields.get("operation") in _HELPERS else _DROP,
                _BETWEEN_TENSORRT,
            )
        inside.append(costs[0])
        between.append(costs[1])
    return np.array(inside), np.array(between)


def _makes_nothing(layer: Layer) -> bool:
    return (
        layer.kind in ("shape", "signal", "constant", "noop")
        or _on_host(layer)
        or bool(_COMPILER_MADE.match(split_layer_name(layer.name).node))
    )


def _on_host(layer: Layer) -> bool:
    """Whether a layer fills memory, or computes a loop counter or where its tensors lie."""
    counts = all(
        tensor.dimensions == (1,) and (tensor.datatype or "").startswith("INT")
        for tensor in layer.outputs
    )
    return layer.type in ("memset", "cjmp") or (
        layer.type == "add" and bool(layer.outputs) and counts
    )


def _skip(layer: Layer, trtexec_ns: int | None) -> float:
    if layer.tactic:
        return -7.0
    if _makes_nothing(layer) or trtexec_ns == 0:
        return 0.0
    usual = _SKIP.get(layer.kind, _SKIP_ELSE)
    if layer.kind == "shuffle" and _NODE.search(layer.name):
        usual = _SKIP_TRANSPOSE if _TRANSPOSE.search(layer.name) else _SKIP_RESHAPE
    elif layer.kind == "reformat" and layer.type is None:
        usual = _SKIP_UNTYPED_REFORMAT
    return min(usual, -5.0) if trtexec_ns else usual


def _tactics(names: Sequence[str], layers: Sequence[Layer]) -> BoolArray:
    result = np.zeros((len(names), len(layers)), np.bool_)
    having: dict[str, list[int]] = {}
    for at, layer in enumerate(layers):
        if layer.tactic:
            having.setdefault(layer.tactic, []).append(at)
    begins: dict[str, list[str]] = {}
    for tactic in having:
        begins.setdefault(tactic[:6], []).append(tactic)
    for number, name in enumerate(names):
        for tactic in begins.get(name[:6], ()):
            if matches_tactic(name, tactic):
                result[number, having[tactic]] = True
    return result


def _matches(
    decoded: Sequence[KernelName], layers: Sequence[Layer], tactic: BoolArray
) -> FloatArray:
    """Nats for tactic and affinity. Affinity is computed once for layers that differ only in their
    numbers.
    """
    columns: dict[tuple[str, str, tuple[str, ...]], int] = {}
    column = []
    asked: list[Layer] = []
    for layer in layers:
        node = split_layer_name(layer.name).node
        bare = node if node.startswith(("__my", "_gem")) else _DIGITS.sub("", node)
        key = (
            layer.kind,
            bare + ("_myl" if "_myl" in layer.name else ""),
            tuple(_DIGITS.sub("", node) for node in layer.onnx),
        )
        if key not in columns:
            columns[key] = len(asked)
            asked.append(layer)
        column.append(columns[key])
    alike: dict[tuple[object, ...], int] = {}  # kernels that affinity cannot tell apart
    named = any(layer.kind == "plugin" for layer in layers)
    which = [
        alike.setdefault(_told(kernel, named=named), number)
        for number, kernel in enumerate(decoded)
    ]
    place = {number: at for at, number in enumerate(alike.values())}
    different = [decoded[number] for number in alike.values()]
    like = np.array(
        [
            [affinity(kernel, layer.kind, layer.name, layer.onnx) for layer in asked]
            for kernel in different
        ]
    )
    like = like.reshape(len(different), len(asked))[[place[number] for number in which]]
    match: FloatArray = _AFFINITY * (like[:, column] - 0.5)
    has = np.array([bool(layer.tactic) for layer in layers])
    known = np.asarray(tactic.any(axis=1)).reshape(-1, 1)
    code = np.array([layer.tactic is not None and is_generated(layer.tactic) for layer in layers])
    # equal code has one symbol
    symbol = np.array([is_generated(kernel.name) for kernel in decoded], np.bool_).reshape(-1, 1)
    shared = code & symbol
    match = np.where(has & ~tactic & known & ~shared, _NOT_TACTIC, match)
    match = np.where(
        has & ~tactic & ~known, np.minimum(match, np.where(match > 3.5, 1.5, _HELPER)), match
    )
    # what a region holds may be the code of a layer before it
    opaque = np.array([layer.kind == "foreign_node" for layer in layers])
    elsewhere = ~has & known & ~opaque
    match = np.where(elsewhere, np.minimum(match, 0.0) + _ELSEWHERE, match)
    match = np.where(shared & _same_operations(decoded, layers), _EQUAL_CODE, match)
    return np.where(tactic, _TACTIC, match)


def _same_operations(decoded: Sequence[KernelName], layers: Sequence[Layer]) -> BoolArray:
    """True where a kernel's name is a symbol with the operations of a layer's tactic (kernels x
    layers).
    """
    numbers: dict[str, int] = {}
    mine, its = (
        np.array(
            [
                (
                    numbers.setdefault(name.partition("_0x")[0], len(numbers))
                    if is_generated(name)
                    else none
                )
                for name in names
            ],
            np.int64,
        )
        for names, none in (
            ([kernel.name for kernel in decoded], -1),
            ([layer.tactic or "" for layer in layers], -2),
        )
    )
    return np.equal.outer(mine, its)


def _told(kernel: KernelName, *, named: bool) -> tuple[object, ...]:
    """Everything that `affinity` reads; the name itself only for plugins (``named``)."""
    fields = kernel.fields
    return (
        kernel.family,
        fields.get("operation"),
        fields.get("launcher"),
        kernel.ops,
        kernel.patterns,
        kernel.name if named else "",
    )


def _classes(layers: Sequence[Layer]) -> IntArray:
    index: dict[tuple[str, str, str], int] = {}
    keys = [
        (layer.kind, _DIGITS.sub("", split_layer_name(layer.name).node), layer.type or "")
        for layer in layers
    ]
    return np.array([index.setdefault(key, len(index)) for key in keys], np.int64)


def habits(scores: Scores, chance: FloatArray) -> FloatArray:
    """The score bonus for what kernels of that name do elsewhere in this engine, in layers of the
    same class.

    ``chance``: of each kernel and layer, how likely the one is in the other; what nothing decides
    forms no habit.
    """
    kinds = int(scores.layer_class.max(initial=-1)) + 1
    by_row = np.zeros(scores.match.shape)
    np.add.at(by_row, scores.row, chance)
    count = np.zeros((scores.match.shape[0], kinds))
    np.add.at(count.T, scores.layer_class, by_row.T)
    of_class, of_row, everything = (
        count.sum(axis=0),
        count.sum(axis=1),
        max(float(count.sum()), 1.0),
    )
    expected = of_row[:, None] * of_class[None, :] / everything
    lift = np.log((count + 0.5) / (expected + 0.5))
    trusted = np.minimum(of_class / 4.0, 1.0)[None, :]  # a class of one layer has no habits
    result: FloatArray = np.clip(lift * trusted, -_HABIT, _HABIT)[:, scores.layer_class]
    return result


def times(
    kernels: Sequence[KernelFacts], trtexec_ns: Sequence[int | None], slot: IntArray
) -> FloatArray:
    """The score per kernel (not per distinct kernel) for how its time compares with the layer's in
    the profile.

    ``slot`` is a first alignment: it tells how much slower or faster than the profile this trace is
    as a whole.
    """
    profile = np.array([float(value) if value else np.nan for value in trtexec_ns])
    took = np.array(
        [kernel.duration_ns if kernel.duration_ns > 0 else np.nan for kernel in kernels]
    )
    nothing = np.zeros((len(kernels), len(profile)))
    alone = np.bincount(slot[slot >= 0], minlength=len(profile)) == 1
    at = np.flatnonzero((slot >= 0) & alone[np.maximum(slot, 0)])
    ratio = np.log(took[at] / profile[slot[at]])
    ratio = ratio[np.isfinite(ratio)]
    if len(ratio) < 4:
        return nothing
    scale = float(np.median(ratio))
    spread = max(_TIME_SPREAD, 1.5 * float(np.median(np.abs(ratio - scale))))
    off = (np.log(took)[:, None] - np.log(profile)[None, :] - scale) / spread
    off = np.where(off < 0, 0.5 * off, off)  # a shorter one may be one of several kernels
    added = np.clip(_TIME[0] - 0.5 * off**2, -_TIME[1], _TIME[0])
    return np.where(np.isfinite(added), added, 0.0)
