"""Tells which of several engine files with the same layers ran, such as the context and the
generation engine of one network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.core.groups import runs
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, FloatArray, IntArray
from nsysmap.inputs.engine.model import Engine, Layer, first_layers
from nsysmap.inputs.engine.tensor_formats import elements
from nsysmap.mapping.ranges.launch_ranges import Evidence
from nsysmap.mapping.ranges.range_layers import EngineFit, RangeLayers
from nsysmap.names.decode import matches_tactic
from nsysmap.trace.inferences.find import sequence_hashes
from nsysmap.trace.inferences.launch_order import launch_order
from nsysmap.trace.inferences.tensorrt_ranges import TensorRtRanges
from nsysmap.trace.model import Trace

if TYPE_CHECKING:
    from nsysmap.mapping.order.scores import KernelFacts

SEVERAL = "several engine files have this layer or one like it, and nothing shows which of them ran"
EITHER = (
    "one of several engine files ran, and nothing shows which; the layer has the same index in each"
)

# nats, which is 20 to 1: by how much better an engine must explain the kernels of an inference to
# be told from another
_TELLS = 3.0
_TACTICS = 2  # matching tactics that an engine must be ahead of the others
_LARGER = 1.2  # times longer or larger: less says nothing
_ONE_TOKEN = re.compile(
    r"masked_multihead|mmha|singledecode|batchdecode|decode_attention|decoder_masked", re.IGNORECASE
)

_MANY_TOKENS = re.compile(r"fmha|flash_fwd|context|prefill", re.IGNORECASE)
_ATTENTION = re.compile("attention", re.IGNORECASE)
# dimensions of an attention layer's output where the sequences are padded to one length
_PADDED = 3


@dataclass(frozen=True)
class Ran:
    """One kernel of a sequence, and the layer that it belongs to in any of the engines."""

    layer: int  # its index, the same in all of them
    kernel: str
    duration_ns: float


def twins_of(engines: Sequence[Engine]) -> list[list[int]]:
    """The groups of two or more engines whose layers have the same names in the same order."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, engine in enumerate(engines):
        groups.setdefault(tuple(layer.name for layer in engine.layers), []).append(number)
    return [group for group in groups.values() if len(group) > 1]


def twins_in(
    ran: Iterable[tuple[int | None, Sequence[KernelFacts]]], engines: Sequence[Engine]
) -> list[list[int]]:
    """Groups of engines with the same layers, joined by engines that explain the kernels layer by
    layer as well as the engine said to have run.

    ``ran``: the engine of each sequence of kernels, and its kernels in launch order.  Names of
    layers tell nothing here: kernels bear none of those that come from the model.
    """
    groups = [set(group) for group in twins_of(engines)]
    for engine, kernels in ran:
        if engine is None:
            continue
        for other in range(len(engines)):
            known = engine == other or any({engine, other} <= group for group in groups)
            if not known and _explain_alike(kernels, engines[engine], engines[other]):
                joined = [group for group in groups if group & {engine, other}]
                groups = [group for group in groups if group not in joined] + [
                    {engine, other}.union(*joined)
                ]
    return [sorted(group) for group in groups]


def do_the_same(engines: Sequence[Engine]) -> bool:
    """Whether it makes no difference which engine ran: the layers of each index do the same in all
    of these engines, as far as their files show.

    Files without tensors tell it by the names of their layers only.
    """
    told = {tuple((layer.kind, _extents(layer)) for layer in engine.layers) for engine in engines}
    shapes = any(_extents(layer) for layer in engines[0].layers)
    return len(told) == 1 and (shapes or len(twins_of(engines)) == 1)


def same_layers(engines: Sequence[Engine], number: int) -> FloatArray:
    """For each layer of one engine: the share of the engines that have the same layer, which is how
    likely it is the layer of the engine that ran.
    """
    told = [
        [(layer.name, layer.kind, _extents(layer)) for layer in engine.layers] for engine in engines
    ]
    return np.array([
        sum(other[at] == layer for other in told) / len(told)
        for at, layer in enumerate(told[number])
    ])  # fmt: skip


def _extents(layer: Layer) -> tuple[tuple[int, ...], ...]:
    return tuple(tensor.dimensions for tensor in layer.outputs if tensor.dimensions is not None)


def _explain_alike(kernels: Sequence[KernelFacts], one: Engine, other: Engine) -> bool:
    """Whether two engines can both have run these kernels, each in the same layer, and neither
    explains them noticeably better.
    """
    if len(one.layers) != len(other.layers):
        return False
    from nsysmap.mapping.order.kernel_alignment import align_inference, engine_match

    matches = [engine_match(kernels, engine) for engine in (one, other)]
    if not all(match.accepted or match.undecided for match in matches):
        return False
    if abs(matches[0].evidence - matches[1].evidence) * len(kernels) >= _TELLS:
        return False
    mine, its = (align_inference(kernels, engine) for engine in (one, other))
    return bool((mine.layer == its.layer).all() and (mine.by_tactic == its.by_tactic).all())


def which_ran(sequences: Sequence[Sequence[Ran]], engines: Sequence[Engine]) -> list[int | None]:
    """For each sequence of kernels the position of the engine that ran it; None if it cannot be
    determined.

    By tactics; else by attention kernels for one token at a time, which are the smaller engine's;
    else longer sequences are the larger engine's.
    """
    found = [_by_tactics(sequence, engines) for sequence in sequences]
    open_ones = [at for at, engine in enumerate(found) if engine is None]
    ranked = _by_size(engines)
    if not open_ones or ranked is None:
        return found
    tokens = {at: tokens_of(sequences[at], engines[0]) for at in open_ones}
    if any(tokens.values()):
        for at in open_ones:
            found[at] = {"one": ranked[0], "many": ranked[1] if len(ranked) == 2 else None}.get(
                tokens[at] or ""
            )
    elif len(ranked) == 2 and len(open_ones) > 1:
        for at, longer in zip(open_ones, _longer([sequences[at] for at in open_ones]), strict=True):
            found[at] = None if longer is None else ranked[int(longer)]
    return found


def _is_attention(layer: Layer) -> bool:
    return layer.kind == "plugin" and _ATTENTION.search(layer.name) is not None


def tokens_of(sequence: Sequence[Ran], engine: Engine) -> str | None:
    """Whether the attention plugins of a language model work on "one" token of each sequence or on
    "many"; None if no kernel shows it.
    """
    attention = [ran.kernel for ran in sequence if _is_attention(engine.layers[ran.layer])]
    if any(_ONE_TOKEN.search(kernel) for kernel in attention):
        return "one"
    return "many" if any(_MANY_TOKENS.search(kernel) for kernel in attention) else None


def tokens_in_file(engine: Engine) -> str | None:
    """Whether the engine file's attention plugins work on one token or many, by the shape of their
    output; None if the shape does not show it.

    Of packed tokens (tokens x width), one token is one token of one sequence, and more tokens than
    the engine has rows of output (one for the last token of each sequence) are many of a sequence;
    as many may be one each of several sequences.
    """
    last = next(
        (layer.outputs[0].dimensions for layer in reversed(engine.layers) if layer.outputs), None
    )
    told = set()
    for layer in engine.layers:
        if (
            _is_attention(layer)
            and layer.outputs
            and (extents := layer.outputs[0].dimensions) is not None
            and min(extents, default=-1) > 0
        ):
            if len(extents) == _PADDED:  # sequences x tokens x width
                told.add("one" if extents[1] == 1 else "many")
            elif len(extents) == _PADDED - 1 and extents[0] == 1:
                told.add("one")
            elif len(extents) == _PADDED - 1 and last is not None and 0 < last[0] < extents[0]:
                told.add("many")
            else:
                return None
    return told.pop() if len(told) == 1 else None


def _by_tactics(sequence: Sequence[Ran], engines: Sequence[Engine]) -> int | None:
    ahead = []
    for engine in engines:
        tactics = [(ran.kernel, engine.layers[ran.layer].tactic) for ran in sequence]
        ahead.append(
            sum(2 * matches_tactic(kernel, tactic) - 1 for kernel, tactic in tactics if tactic)
        )
    best = int(np.argmax(ahead))
    others = [count for at, count in enumerate(ahead) if at != best]
    return best if others and ahead[best] >= max(others) + _TACTICS else None


def _by_size(engines: Sequence[Engine]) -> list[int] | None:
    """The engines from the smallest tensors to the largest, None if any two are alike."""
    sizes = []
    for engine in engines:
        volumes = [elements(tensor) for layer in engine.layers for tensor in layer.outputs]
        sizes.append([volume for volume in volumes if volume])
    if not all(sizes) or len({len(size) for size in sizes}) > 1:
        return None
    typical = [float(np.median(np.log(np.array(size, np.float64)))) for size in sizes]
    order = [int(at) for at in np.argsort(typical)]
    apart = all(
        typical[larger] - typical[smaller] >= np.log(_LARGER) for smaller, larger in pairwise(order)
    )
    return order if apart else None


def _longer(sequences: Sequence[Sequence[Ran]]) -> list[bool | None]:
    """Marks the sequences that take longer, layer by layer, if the sequences fall into two distinct
    kinds; otherwise None.
    """
    times: list[dict[int, float]] = []
    for sequence in sequences:
        took: dict[int, float] = {}
        for ran in sequence:
            took[ran.layer] = took.get(ran.layer, 0.0) + ran.duration_ns
        times.append(took)
    shared = set.intersection(*(set(took) for took in times))
    shared = {layer for layer in shared if all(took[layer] > 0 for took in times)}
    if not shared:
        return [None] * len(sequences)
    size = np.array(
        [np.median([np.log(took[layer]) for layer in sorted(shared)]) for took in times]
    )
    order = np.argsort(size)
    steps = np.diff(size[order])
    cut = int(steps.argmax())
    if steps[cut] < np.log(_LARGER):
        return [None] * len(sequences)
    return [bool(value > size[order[cut]]) for value in size]


_MEASURED = 15  # calls that a sequence's times are taken over


def settle_ranges(
    trace: Trace,
    tensorrt: TensorRtRanges,
    evidence: Evidence,
    resolved: RangeLayers,
    engines: Sequence[Engine],
) -> RangeLayers:
    """Assigns each call's ranges to the engine that its kernels indicate, where several engines
    have the layers that the ranges name.
    """
    offsets = np.array(first_layers(engines))
    for group in twins_of(engines) if len(tensorrt.layers) else []:
        mine = np.isin(resolved.engine, group)
        kernels = np.flatnonzero((evidence.place >= 0) & mine[np.maximum(evidence.place, 0)])
        if not len(kernels):
            continue
        call = np.where(tensorrt.call_of_layer >= 0, tensorrt.call_of_layer, len(tensorrt.calls))
        order = launch_order(trace.kernels, kernels, call[evidence.place[kernels]])
        local = resolved.layer - offsets[np.maximum(resolved.engine, 0)]
        calls, sequences, of_call = _sequences(
            trace, order, call[evidence.place[order]], local[evidence.place[order]]
        )
        told = which_ran(sequences, [engines[number] for number in group])
        chosen = np.full(len(tensorrt.calls) + 1, MISSING, np.int64)
        either = do_the_same([engines[number] for number in group])
        open_one = group[0] if either else MISSING
        number = np.array([open_one if at is None else group[at] for at in told], np.int64)
        chosen[calls] = number[of_call]
        with_kernels = np.zeros(len(tensorrt.calls) + 1, np.bool_)
        with_kernels[calls] = True
        decided = np.where(with_kernels[call], chosen[call], resolved.engine)
        engine = np.where(mine, decided, resolved.engine)
        known = mine & (resolved.layer != MISSING)
        layer = np.where(
            known,
            np.where(engine >= 0, local + offsets[np.maximum(engine, 0)], np.int64(MISSING)),
            resolved.layer,
        )
        ran = {group[at] for at in told if at is not None}
        fits = tuple(_fit(fit, group, ran, resolved.fits, either=either) for fit in resolved.fits)
        resolved = replace(
            resolved,
            engine=engine,
            layer=layer,
            several=resolved.several | (mine & (engine == MISSING)),
            fits=fits,
        )
    return resolved


def _sequences(
    trace: Trace, order: IntArray, call: IntArray, layer: IntArray
) -> tuple[IntArray, list[list[Ran]], IntArray]:
    """The calls that launched these kernels, the distinct kernel sequences among them, and the
    sequence of each call.
    """
    names = trace.kernels.text("name")
    calls, first, size = runs(call)
    _, where, inverse = np.unique(
        sequence_hashes(names.codes[order], first, size), return_index=True, return_inverse=True
    )
    took = (trace.kernels.ints("end_ns") - trace.kernels.ints("start_ns"))[order]
    found = []
    for which, at in enumerate(where.tolist()):
        members = first[np.flatnonzero(inverse.reshape(-1) == which)][:_MEASURED]
        times = np.median(took[members[:, None] + np.arange(size[at])], axis=0)
        items = np.arange(first[at], first[at] + size[at]).tolist()
        found.append([
            Ran(int(layer[item]), names[int(order[item])] or "", float(time))
            for item, time in zip(items, times.tolist(), strict=True)
            if layer[item] >= 0
        ])  # fmt: skip
    return calls, found, inverse.reshape(-1).astype(np.int64)


def _fit(
    fit: EngineFit,
    group: Sequence[int],
    chosen: set[int],
    fits: Sequence[EngineFit],
    *,
    either: bool,
) -> EngineFit:
    if fit.engine not in group:
        return fit
    best = max(
        (other for other in fits if other.engine in group),
        key=lambda other: (other.accepted, other.known),
    )
    several = () if fit.engine in chosen else tuple(group)
    return replace(
        best,
        engine=fit.engine,
        accepted=fit.engine in chosen,
        several=several,
        shown=either and not chosen,
    )
