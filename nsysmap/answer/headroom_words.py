"""The sentences about how far the layers are from the hardware."""

from __future__ import annotations

from nsysmap.answer.model import Answer, Headroom, HeadroomGroup, Trial
from nsysmap.core.headroom_reasons import REASONS
from nsysmap.text.units import counted, percent, range_of, rounded

_MODEL = (
    "by model: bytes and operations of the engine file at this GPU's peak rates, weights from"
    " device memory where the L2 cache cannot hold them"
)
_REASONS = 3  # that one sentence has room for
_NAMED = 3  # layers named in a sentence
_LIMITS = {
    "device-memory": "device memory",
    "l2-cache": "the L2 cache",
    "arithmetic": "the peak rate",
}


def distance(found: Headroom) -> str:
    """How far the layers are from the hardware, in a sentence."""
    of = rounded(found.known_ns)
    if found.known_ns < found.time_ns:
        of += f" (of {rounded(found.time_ns)}; for the rest it is unknown)"
    told = (
        f"{of} of kernels, and the GPU needs {rounded(found.least_ns)} for their bytes and products"
        f" ({percent(found.least_ns, found.known_ns, 0)})"
    )
    return f"{told}: {_told_reasons(found)}" if found.reasons else told


def _told_reasons(found: Headroom) -> str:
    told = [
        f"{REASONS[reason].words} {rounded(ns)}" for reason, ns in found.reasons[:_REASONS] if ns
    ]
    return ", ".join(told)


def basis(found: Headroom) -> str:
    """What the least time is based on."""
    told = [_MODEL]
    if found.counted_layers == found.layers:
        told = ["by hardware counters"]
    elif found.counted_layers:
        counters = counted(found.counted_layers, "layer")
        told = [f"by hardware counters for {counters}, otherwise by model"]
    if found.weights_only_layers:
        told.append(
            f"of {counted(found.weights_only_layers, 'layer')} only the bytes of the weights are"
            " known (dynamic shapes), so that they need longer"
        )
    return "; ".join(told)


def reach(found: Headroom) -> str:
    """The measured times of products of these shapes; empty if none was measured."""
    if not found.compared_ns:
        return ""
    return (
        f"good kernels for the shapes of its products were measured to take at most"
        f" {rounded(found.reachable_ns)} where these take {rounded(found.compared_ns)}"
    )


def why(group: HeadroomGroup) -> str:
    """Why these layers take longer than they must, with the figure that shows it."""
    words = REASONS[group.reason].words
    limit = _LIMITS.get(group.limit or "")
    reached = None if group.reached is None else percent(group.reached, 1, 0)
    if group.reason == "few-blocks" and group.waves is not None:
        blocks = "" if group.blocks is None else f"{counted(group.blocks, 'block')}, "
        return f"{words}: {blocks}{percent(group.waves, 1, 0)} of what the GPU holds"
    if group.reason == "last-wave" and group.waves is not None:
        return f"{words}: {group.waves:.1f} waves"
    if group.reason in ("older-kernels", "small-tiles"):
        told = [one for one in (group.kernel_arch, group.tile) if one]
        return f"{words}: {', '.join(told)}" if told else words
    if group.reason == "low-occupancy" and group.occupancy is not None:
        return f"{words}: {percent(group.occupancy, 1, 0)} of the warps"
    if group.reason in ("memory-bound", "compute-bound") and limit and reached:
        return f"at {reached} of {limit}"
    return words


def layers_words(group: HeadroomGroup) -> str:
    """The layers' title, and the time that could go."""
    return f"{group.title} {rounded(group.headroom_ns)}"


def farthest(found: Headroom, most: int = _NAMED) -> tuple[HeadroomGroup, ...]:
    """The groups with the most headroom, each with at least a twentieth of it."""
    return tuple(
        one for one in found.groups[:most] if one.headroom_ns * 20 >= max(found.headroom_ns, 1)
    )


def where(found: Headroom, most: int = _NAMED) -> str:
    """The layers in which the distance lies."""
    return ", ".join(layers_words(one) for one in farthest(found, most))


def trial_words(summary: Answer, trial: Trial) -> str:
    """What to try, on which layers, and the most that it may save."""
    layers = ", ".join(trial.layers[:_NAMED])
    more = len(trial.layers) - _NAMED
    also = f" and {more} more" if more > 0 else ""
    found = summary.headroom
    of = "" if found is None else f" ({percent(trial.at_most_ns, found.time_ns, 0)} of the kernels)"
    what = (
        f"each {summary.unit_of_time.short} may take up to {rounded(trial.at_most_ns)} less{of} of"
        " its share of a batch"
        if trial.throughput_only
        else f"up to {rounded(trial.at_most_ns)}{of}"
    )
    if trial.likely is not None:
        low, high = trial.likely.low_ns, trial.likely.high_ns
        ends = (trial.likely.ns if low is None else low, trial.likely.ns if high is None else high)
        what += f", likely {range_of(trial.likely.ns, *ends)}"
    return f"{trial.title}: {what}; {layers}{also}"
