"""Predicts what an edit saves, from the measured time of the layers that compute its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from nsysmap.core.records import dataclass
from nsysmap.edits.model import Edit, Unwanted
from nsysmap.rules.finding import Finding
from nsysmap.text.units import counted, range_of

_MOST_SAVED = 0.95  # share of an inference
LEAST_SHARE = 0.002
"""An edit that saves less than this share of the time at most is not made unless asked for."""


@dataclass(frozen=True)
class SavedTime:
    """How much an edit saves per inference, with its range."""

    ns: int
    low_ns: int
    high_ns: int

    @property
    def lost(self) -> str:
        """What an inference may be slower by, rounded as the range is; nothing if it cannot be."""
        told = range_of(self.ns, self.low_ns, self.high_ns)
        return f"{told.low.lstrip('-')} {told.unit}" if self.low_ns < 0 else ""

    def __add__(self, other: SavedTime) -> SavedTime:
        return SavedTime(
            self.ns + other.ns, self.low_ns + other.low_ns, self.high_ns + other.high_ns
        )


NOTHING = SavedTime(0, 0, 0)


@dataclass(frozen=True)
class LayerTime:
    """One layer of the engine: the nodes that it computes and its time per inference."""

    layer_id: int
    name: str
    nodes: frozenset[str]
    time_ns: int
    does: str  # as the table `work` has it
    bound_ns: int = 0  # what its bytes and operations need at least
    in_fp32: bool = False  # it computes in FP32, or multiplies a tensor of it
    stream: int = 0


@dataclass(frozen=True)
class PredictedEdit:
    """How much an edit saves, the layers concerned, and the finding it serves."""

    saving: SavedTime
    layers: tuple[LayerTime, ...]
    finding: Finding | None
    basis: str
    taken_ns: int = 0  # time of the layers that no other edit may take away, too
    replaced: tuple[int, ...] = ()  # products that are computed by another kernel then


@dataclass
class EngineTimes:
    """The layers of an engine, and what of their time no edit has been credited with yet."""

    layers: Sequence[LayerTime]
    between_ns: int  # idle time between two kernels that follow each other
    inference_ns: int
    findings: Sequence[Finding] = ()
    # per node of the model: the nodes that make what it reads
    made_by: Mapping[str, frozenset[str]] = field(default_factory=dict)
    left: dict[int, float] = field(default_factory=dict)  # share of a layer's time
    replaced: set[int] = field(default_factory=set)  # products that edits have others computed for

    @property
    def overlap(self) -> float:
        """How much of a kernel's time an inference is longer for: less than 1 where kernels run
        beside each other.
        """
        held = sum(one.time_ns for one in self.layers)
        return min(1.0, self.inference_ns / held) if held else 1.0

    @property
    def least_ns(self) -> int:
        """The time of a small kernel in this trace."""
        times = sorted(one.time_ns for one in self.layers)
        return times[len(times) // 10] if times else 0

    def of(self, nodes: Iterable[str]) -> list[LayerTime]:
        """The layers that compute any of these nodes."""
        wanted = frozenset(nodes)
        return [one for one in self.layers if one.nodes & wanted]

    @property
    def one_more_ns(self) -> int:
        """What one small kernel more costs an inference."""
        return self.least_ns + self.between_ns

    def products_before(self, nodes: Iterable[str]) -> list[LayerTime]:
        """The products whose results these nodes read."""
        sources = frozenset[str]().union(*(self.made_by.get(one, ()) for one in nodes))
        return [one for one in self.of(sources) if one.does == "product"]

    def moved_before(self, products: Iterable[LayerTime]) -> list[LayerTime]:
        """The kernels that lay out what products read."""
        sources = frozenset[str]().union(
            *(self.made_by.get(one, ()) for product in products for one in product.nodes)
        )
        moves = ("movement", "reformat", "pointwise")
        return [one for one in self.of(sources) if one.does in moves]

    def remaining(self, layer: LayerTime) -> float:
        """The time of a layer that is left."""
        return layer.time_ns * self.left.get(layer.layer_id, 1.0)

    def credit(self, predicted: PredictedEdit) -> None:
        """Take an edit's saving from the time of its layers."""
        self.replaced.update(predicted.replaced)
        total = sum(self.remaining(one) for one in predicted.layers)
        if total > 0:
            kept = max(0.0, 1 - predicted.taken_ns / total)
            for one in predicted.layers:
                self.left[one.layer_id] = self.left.get(one.layer_id, 1.0) * kept

    def finding(self, layers: Sequence[LayerTime], rules: Sequence[str]) -> Finding | None:
        """The costliest finding of these rules that is about one of these layers."""
        ids = {str(one.layer_id) for one in layers}
        names = {one.name for one in layers}
        found = [
            one
            for finding in self.findings
            for one in (finding, *finding.also)
            if one.rule in rules and (ids & set(one.about) or one.layer in names)
        ]
        return max(found, key=lambda one: one.cost_ns or 0, default=None)


def predict(edit: Edit, rules: Sequence[str], times: EngineTimes) -> PredictedEdit | Unwanted:
    """How much an edit saves, or why it saves nothing, in words, if no kernel's time is due to its
    nodes.
    """
    nodes = frozenset(edit.nodes)
    layers = times.of(nodes)
    if not layers:
        return Unwanted("no kernel of the engine computes these nodes")
    fused = next((one for one in layers if one.does == "attention"), None)
    if fused is not None and edit.kind in ("attention", "softmax"):
        return Unwanted("TensorRT fuses this attention already", fused.name)
    judged = [one for one in layers if one.does == "product"] if edit.gain == "merge" else layers
    apart = edit.kind == "softmax" and _apart_from_products(edit, layers, times)
    if edit.gain in ("join", "merge") and len(judged) <= 1 and not apart:
        alone = (judged or layers)[0]
        return Unwanted("TensorRT computes them as one kernel already", alone.name)
    streams = {one.stream for one in judged}
    if edit.gain == "merge" and len(streams) > 1:
        return Unwanted(f"TensorRT runs them beside each other, on {len(streams)} streams")
    whole = [one for one in layers if one.nodes <= nodes]
    part = [one for one in layers if not one.nodes <= nodes]
    gain = _GAINS[edit.gain](edit, whole, part, times)
    saving, basis = gain.saving, gain.basis
    if saving.high_ns <= 0:
        inside = (part or layers)[0].name
        return Unwanted("TensorRT computes them inside other kernels, at no cost", inside)
    share = times.overlap
    saving = SavedTime(
        round(saving.ns * share),
        round(saving.low_ns * share),
        min(saving.high_ns, round(_MOST_SAVED * times.inference_ns)),
    )
    taken_ns, split = saving.ns, round(share * _split(edit, part, times))
    if split:
        saving = saving + SavedTime(-split, -split, 0)
        basis += ", branches that were joined may need kernels of their own"
    finding = times.finding(layers, rules)
    return PredictedEdit(saving, tuple(layers), finding, basis, taken_ns, gain.replaced)


_Layers = Sequence[LayerTime]


@dataclass(frozen=True)
class _Gain:
    saving: SavedTime
    basis: str  # in words
    replaced: tuple[int, ...] = ()  # products that are computed by another kernel then


def _other_kernels(products: _Layers, times: EngineTimes) -> float:
    """What products may lose, or win, that are computed by another kernel; each only once."""
    fresh = [one for one in products if one.layer_id not in times.replaced]
    return _REPLACED * sum(times.remaining(one) for one in fresh)


def _apart_from_products(edit: Edit, layers: _Layers, times: EngineTimes) -> bool:
    """Whether a softmax is a kernel between the two products of attention in FP16 or BF16: those
    that TensorRT fuses, which it does where it finds the operator.
    """
    around = [one for one in times.of(edit.beside) if one.does == "product"]
    return len(around) > 1 and not any(one.in_fp32 for one in (*around, *layers))


_STAY = frozenset(("product", "pooling", "attention", "norm", "softmax", "reduction", "resize"))
"""Work of kernels that no edit of their surroundings removes."""
_LAID_OUT = frozenset(("pooling", "reduction", "norm", "softmax"))
"""What kernels do that compute along some axes, for which their input may have to be laid out."""
_LIKELY_FREED = 0.4
"""Share of the time of kernels that may become part of others which is saved in the mean of what
was measured; in each pair it was either nothing or some six tenths (see docs/fix.md).
"""


_REPLACED = 0.25
"""Share of the time of a kernel that may be lost, or won, where nodes are taken from it, or where
it takes up what was a kernel of its own: TensorRT chooses it anew, and it may be slower than what
was there.  In two of eleven networks it lost, 0.07 and 0.2 of the time of these kernels (see
docs/fix.md); a quarter more than the largest is left for those that nobody measured.
"""


_PRODUCTS_NARROWER = (0.05, 0.5, 0.9)
"""Shares of the time of products in FP32 that they save in FP16: half the bytes, tensor cores at
twice their rate, and other kernels.  In eight networks they saved 0.29 to 0.85 of it, 0.56 in the
mean with a deviation of 0.2 (see docs/fix.md): the least is two and a half of these below the mean,
and of what goes beyond the time of a small kernel, for none is faster than that.  The most is all
but such a kernel, or but what half the bytes and operations need, where that is more.
"""
_UNEVEN_NARROWER = (0.3, 0.9)
"""The same of products that kernels for tensor cores may not take, likely and at most: as many
loads as before, each of one value, or a kernel that fills up the rows.
"""
_SCANT_NARROWER = (-1.0, -0.3, 0.9)
"""The same of products of few rows that take more than four times what their bytes and operations
need: they wait for one step after the other.  A kernel for tensor cores computes many more rows,
and took twice as long in the network that had such (see docs/fix.md).
"""
_WAITS = 4.0
"""Times the least time of a product of few rows: one that takes longer waits, as above."""
_ALIGNED = (0.05, 0.45, 0.9)
"""Shares of the time of convolutions that they save with whole vectors of channels: in nine
networks 0.22 to 0.7, 0.44 in the mean with a deviation of 0.15 (see docs/fix.md).
"""


_LIKELY_JOINED = 0.6
"""Share of the most that one kernel in place of several may save which is likely."""
_LIKELY_OPERATOR = 0.3
"""The same of norms and GELU: all that were measured were one kernel already, as TensorRT takes an
operator apart into the same nodes before it fuses them.
"""


_NARROWER = (0.0, 0.3, 0.6)
"""Shares of the time of kernels other than products that they save in a type of half the bytes."""


_OTHER_KERNEL = "a product that takes them up is computed by another kernel, maybe a slower one"


def _vanish(edit: Edit, whole: _Layers, part: _Layers, times: EngineTimes) -> _Gain:
    """Kernels that compute nothing else disappear. A kernel that also computes something else may
    become part of a neighbour, if the nodes kept it apart; arithmetic within a kernel costs
    nothing.
    """
    stay = [one for one in whole if one.does in _STAY or one.nodes & frozenset(edit.kept)]
    whole = [one for one in whole if one not in stay]
    others = times.of(edit.instead)
    if edit.instead and all(one.nodes & frozenset(edit.nodes) for one in others):
        whole = []  # TensorRT moved them together: the kernel stays, for what is done instead
    gone = sum(times.remaining(one) + times.between_ns for one in whole)
    beside = [one for one in times.of(edit.beside) if one not in whole and one not in part]
    pointwise = [one for one in beside if one.does not in ("product", "attention")]
    joined = sum(sorted(times.remaining(one) + times.between_ns for one in pointwise)[:-1])
    apart = [one for one in part if edit.unblocks and one.does not in ("product", "attention")]
    freed = sum(times.remaining(one) + times.between_ns for one in apart)
    narrower = sum(times.remaining(one) for one in stay if one.in_fp32)
    replaced = times.products_before(edit.nodes) if apart or pointwise else []
    replaced += [one for one in part if one.does == "product" and one not in replaced]
    other = _other_kernels(replaced, times)
    lost = other + _REPLACED * sum(times.remaining(one) for one in apart)
    if not whole and not freed and not narrower:
        return _Gain(NOTHING, "")
    told = [f"{counted(len(whole), 'kernel')} compute nothing else"] if whole else []
    told += [f"{counted(len(apart), 'kernel')} may become part of others"] if apart else []
    told += ["what stays reads and writes fewer bytes"] if narrower else []
    told += [_OTHER_KERNEL] if replaced else []
    low, likely, high = _NARROWER
    return _Gain(
        SavedTime(
            round(gone + _LIKELY_FREED * freed + likely * narrower),
            round(0.6 * gone + low * narrower - lost),
            round(1.1 * (gone + freed) + (joined if whole else 0) + high * narrower + other),
        ),
        ", ".join(told),
        tuple(one.layer_id for one in replaced),
    )


def _split(edit: Edit, part: _Layers, times: EngineTimes) -> float:
    """The cost of additional kernels if one kernel computed several branches that a concatenation
    joined; the edits of its branches share it equally.
    """
    branches = frozenset(edit.parted)
    held = (len(one.nodes & branches) for one in part)
    return sum((k - 1) / k * times.one_more_ns for k in held if k > 1)


def _join(edit: Edit, whole: _Layers, part: _Layers, times: EngineTimes) -> _Gain:
    """Predicts one kernel in place of several: it takes at least as long as the longest of them;
    attention that is fused only as long as a small kernel, for it writes no scores.

    Nothing is sure of it: TensorRT may compute an operator by the kernels that computed its nodes,
    or by one of its own, which leaves to a further kernel what they did besides.
    """
    layers = [*whole, *part]
    layers += [one for one in times.of(edit.beside) if one not in layers]
    total = sum(times.remaining(one) for one in layers)
    products = [one for one in layers if one.does == "product"]
    fused = edit.kind == "softmax" and len(products) > 1
    longest = times.least_ns if fused else max(times.remaining(one) for one in layers)
    most = max(total - longest, 0) + (len(layers) - 1) * times.between_ns
    lost = times.one_more_ns if part or products else 0
    wider = 0.0
    told = f"{len(layers)} kernels become one, which takes as long as the longest at least"
    if fused:
        told = f"{len(layers)} kernels become one, which keeps the scores to itself"
        # it takes heads in another layout, which kernels as fast as a small one may make
        before = [one for one in times.moved_before(products) if one not in layers]
        wider = sum(max(0.0, times.remaining(one) - times.least_ns) for one in before)
    elif edit.kind == "epilogues" and products and part:
        lost = round(_other_kernels(products, times))
        told += f", {_OTHER_KERNEL}"
    likely = _LIKELY_OPERATOR if edit.kind in ("norms", "gelu") else _LIKELY_JOINED
    replaced = tuple(one.layer_id for one in products)
    return _Gain(SavedTime(round(likely * most), -lost, round(most + wider)), told, replaced)


def _merge(edit: Edit, whole: _Layers, part: _Layers, times: EngineTimes) -> _Gain:
    """Predicts one product in place of several: it takes at least as long as the longest; where a
    product did more than multiply, or another product reads it, one more kernel cuts its part out
    of the result.
    """
    nodes = frozenset(edit.nodes)
    layers = [one for one in (*whole, *part) if one.does == "product"]
    sizes = [times.remaining(one) for one in layers]
    most = sum(sizes) - max(*sizes, sum(one.bound_ns for one in layers))
    most += (len(layers) - 1) * times.between_ns
    cut = sum(1 for one in layers if not one.nodes <= nodes)
    cuts = cut * times.one_more_ns
    lost = cuts + _other_kernels(layers, times)
    return _Gain(
        SavedTime(round(0.5 * most - cuts), round(-lost), round(most - 0.5 * cuts)),
        f"{len(layers)} kernels become one, which takes as long as the longest at least"
        + (f"; {counted(cut, 'kernel')} more cut its result apart" if cut else ""),
    )


def _narrow(edit: Edit, whole: _Layers, part: _Layers, times: EngineTimes) -> _Gain:
    """Predicts the nodes in the narrower type, without the casts around them."""
    uneven, scant, kept = (frozenset(one) for one in (edit.uneven, edit.scant, edit.kept))
    low = likely = high = 0.0
    told = "half the bytes, and tensor cores at twice their rate"
    for one in (*whole, *part):
        time = times.remaining(one)
        if not one.in_fp32:
            if one in part:  # it only casts
                low -= _REPLACED * time
            continue
        if one.does != "product":
            # of another layout than its neighbours, maybe, which one kernel more converts
            low -= times.one_more_ns if one.does in _LAID_OUT and one.nodes & kept else 0
            likely, high = likely + _NARROWER[1] * time, high + _NARROWER[2] * time
        elif one.nodes & scant and time > _WAITS * one.bound_ns:
            low, likely, high = (
                at + share * time
                for at, share in zip((low, likely, high), _SCANT_NARROWER, strict=True)
            )
            told = "half the bytes; products of few rows may take longer"
        elif one.nodes & uneven:
            low -= times.one_more_ns
            likely += _UNEVEN_NARROWER[0] * time
            high += _UNEVEN_NARROWER[1] * time
            told = "half the bytes; not all products are of a form that tensor cores take"
        else:
            shares = _PRODUCTS_NARROWER
            low += shares[0] * max(0.0, time - times.least_ns)
            likely += shares[1] * time
            high += max(shares[2] * time, time - max(times.least_ns, one.bound_ns / 2))
    moved = ("cast", "movement", "reformat")
    casts = [one for one in whole if one.does in moved and not one.nodes & kept]
    gone = sum(times.remaining(one) + times.between_ns for one in casts)
    return _Gain(
        SavedTime(round(likely + 0.8 * gone), round(low + 0.5 * gone), round(high + gone)),
        told,
    )


def _align(edit: Edit, whole: _Layers, part: _Layers, times: EngineTimes) -> _Gain:
    """Predicts convolutions of whole vectors: they have more bytes and operations, and take as long
    as these need at least; so does what else computes the channels.
    """
    layers = [*whole, *part]
    beside = [one for one in times.of(edit.beside) if one not in layers]
    more = (edit.growth - 1) * sum(times.remaining(one) for one in beside)
    low, likely, high = (
        sum(min(share * at, at - edit.growth * one.bound_ns) for one, at in held)
        for held in [[(one, times.remaining(one)) for one in layers]]
        for share in _ALIGNED
    )
    return _Gain(
        SavedTime(round(likely - more), round(low - more), round(high)),
        "kernels for aligned channels use tensor cores and whole vectors",
    )


_GAINS = {
    "vanish": _vanish,
    "join": _join,
    "merge": _merge,
    "narrow": _narrow,
    "align": _align,
}


def total(savings: Iterable[SavedTime], inference_ns: int) -> SavedTime:
    """All savings together, which leave something of the inference."""
    found = NOTHING
    for one in savings:
        found = found + one
    most = round(_MOST_SAVED * inference_ns)
    return SavedTime(min(found.ns, most), min(found.low_ns, most), min(found.high_ns, most))
