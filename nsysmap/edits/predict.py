"""What an edit saves: from the measured time of the layers that compute its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nsysmap.edits.model import Edit
from nsysmap.rules.finding import Finding

LEAST_SHARE = 0.002
"""An edit that saves less than this share of the time at most is not made unless asked for."""


@dataclass(frozen=True)
class Saving:
    """What an edit saves in each inference, with its range."""

    ns: int
    low_ns: int
    high_ns: int

    def __add__(self, other: Saving) -> Saving:
        return Saving(self.ns + other.ns, self.low_ns + other.low_ns, self.high_ns + other.high_ns)


NOTHING = Saving(0, 0, 0)


@dataclass(frozen=True)
class LayerTime:
    """One layer of the engine: the nodes that it computes and its time in each inference."""

    layer_id: int
    name: str
    nodes: frozenset[str]
    time_ns: int
    does: str  # as the table `work` has it
    bound_ns: int = 0  # what its bytes and operations need at least
    precision: str = ""  # the type it computes in


@dataclass(frozen=True)
class PredictedEdit:
    """What an edit saves, the layers that this is about, and the finding it serves."""

    saving: Saving
    layers: tuple[LayerTime, ...]
    finding: Finding | None
    basis: str


@dataclass
class EngineTimes:
    """The layers of an engine, and what of their time no edit has been credited with yet."""

    layers: Sequence[LayerTime]
    between_ns: int  # idle time between two kernels that follow each other
    inference_ns: int
    findings: Sequence[Finding] = ()
    left: dict[int, float] = field(default_factory=dict)  # share of a layer's time

    def of(self, nodes: Iterable[str]) -> list[LayerTime]:
        """The layers that compute any of these nodes."""
        wanted = frozenset(nodes)
        return [one for one in self.layers if one.nodes & wanted]

    def remaining(self, layer: LayerTime) -> float:
        """The time of a layer that is left."""
        return layer.time_ns * self.left.get(layer.layer_id, 1.0)

    def credit(self, predicted: PredictedEdit) -> None:
        """Take an edit's saving from the time of its layers."""
        total = sum(self.remaining(one) for one in predicted.layers)
        if total > 0:
            kept = max(0.0, 1 - predicted.saving.ns / total)
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


def predict(edit: Edit, rules: Sequence[str], times: EngineTimes) -> PredictedEdit | str:
    """What an edit saves; why it saves nothing, in words, where no kernel's time is due to its
    nodes.
    """
    nodes = frozenset(edit.nodes)
    layers = times.of(nodes)
    if not layers:
        return "no kernel of the engine computes these nodes"
    finding = times.finding(layers, rules)
    whole = [one for one in layers if one.nodes <= nodes]
    part = [one for one in layers if not one.nodes <= nodes]
    if edit.gain in ("join", "merge") and len(layers) == 1:
        return f"TensorRT computes them as one kernel already ({layers[0].name})"
    saving, basis = _GAINS[edit.gain](edit, whole, part, times)
    if saving.high_ns <= 0:
        inside = part[0].name if part else layers[0].name
        return f"TensorRT computes them inside other kernels ({inside}), where they cost nothing"
    return PredictedEdit(saving, tuple(layers), finding, basis)


def _vanish(
    edit: Edit, whole: Sequence[LayerTime], part: Sequence[LayerTime], times: EngineTimes
) -> tuple[Saving, str]:
    """Kernels that compute nothing else are gone; those that do take up to a quarter less, and may
    be joined.
    """
    gone = sum(times.remaining(one) for one in whole) + len(whole) * times.between_ns
    beside = [one for one in times.of(edit.beside) if one not in whole and one not in part]
    pointwise = [one for one in beside if one.does not in ("product", "attention")]
    joined = sum(sorted(times.remaining(one) + times.between_ns for one in pointwise)[:-1])
    moved = sum(times.remaining(one) * 0.25 for one in part if one.does != "attention")
    if not whole and not moved:
        return NOTHING, ""
    if not whole:
        return Saving(round(moved / 4), 0, round(moved + joined)), "the kernels do less"
    return (
        Saving(round(gone), round(0.6 * gone), round(1.1 * gone + moved + joined)),
        f"{len(whole)} kernels compute nothing else",
    )


def _join(
    edit: Edit, whole: Sequence[LayerTime], part: Sequence[LayerTime], times: EngineTimes
) -> tuple[Saving, str]:
    """As one kernel they take as long as the longest of them, or what a finding says."""
    layers = [*whole, *part, *(one for one in times.of(edit.beside) if one not in (*whole, *part))]
    total = sum(times.remaining(one) for one in layers)
    longest = max(times.remaining(one) for one in layers)
    most = total - longest + (len(layers) - 1) * times.between_ns
    return (
        Saving(round(0.6 * most), round(0.2 * most), round(most)),
        f"{len(layers)} kernels become one, which takes as long as the longest at least",
    )


def _merge(
    _edit: Edit, whole: Sequence[LayerTime], part: Sequence[LayerTime], times: EngineTimes
) -> tuple[Saving, str]:
    layers = [*whole, *part]
    total = sum(times.remaining(one) for one in layers)
    longest = max(times.remaining(one) for one in layers)
    bound = sum(one.bound_ns for one in layers)
    most = total - max(longest, bound) + (len(layers) - 1) * times.between_ns
    return (
        Saving(round(0.5 * most), 0, round(most)),
        f"{len(layers)} kernels become one, which takes as long as the longest at least",
    )


def _narrow(
    _edit: Edit, whole: Sequence[LayerTime], part: Sequence[LayerTime], times: EngineTimes
) -> tuple[Saving, str]:
    wide = [one for one in (*whole, *part) if one.precision in ("FP32", "TF32")]
    products = sum(times.remaining(one) for one in wide if one.does == "product")
    others = sum(times.remaining(one) for one in wide if one.does != "product")
    casts = [one for one in whole if one.does in ("cast", "movement", "reformat")]
    gone = sum(times.remaining(one) for one in casts) + len(casts) * times.between_ns
    likely = 0.6 * products + 0.3 * others + 0.5 * gone
    return (
        Saving(round(likely), round(0.3 * products), round(0.9 * products + 0.6 * others + gone)),
        "half the bytes, and tensor cores where it multiplies",
    )


def _align(
    _edit: Edit, whole: Sequence[LayerTime], part: Sequence[LayerTime], times: EngineTimes
) -> tuple[Saving, str]:
    layers = [*whole, *part]
    total = sum(times.remaining(one) for one in layers)
    return (
        Saving(round(0.6 * total), round(0.2 * total), round(0.9 * total)),
        "kernels for aligned channels use tensor cores and whole vectors",
    )


def _unknown(
    _edit: Edit, whole: Sequence[LayerTime], part: Sequence[LayerTime], times: EngineTimes
) -> tuple[Saving, str]:
    total = sum(times.remaining(one) for one in (*whole, *part))
    return Saving(0, 0, round(total)), "how much is unknown"


_GAINS = {
    "vanish": _vanish,
    "join": _join,
    "merge": _merge,
    "narrow": _narrow,
    "align": _align,
    "unknown": _unknown,
}


def total(savings: Mapping[str, Saving] | Iterable[Saving]) -> Saving:
    """All savings together."""
    found = NOTHING
    for one in savings.values() if isinstance(savings, Mapping) else savings:
        found = found + one
    return found
