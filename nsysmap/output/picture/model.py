"""The content of an engine's picture: boxes, the tensors between them, colours by time, kind or
precision, and the legend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, Row, Table
from nsysmap.inputs.engine.model import Engine, Tensor
from nsysmap.inputs.engine.tensor_formats import tensor_bytes
from nsysmap.names.decode import decode
from nsysmap.names.fusion import part_words
from nsysmap.network.titles import layer_titles
from nsysmap.output.picture.blocks import Group, block_groups, region_groups
from nsysmap.output.picture.layout import Layout, Link, Point, Segment, layout
from nsysmap.output.picture.swatches import (
    KIND_WORDS,
    PLAIN,
    TYPE_WORDS,
    UNTIMED,
    Legend,
    Swatch,
    heat,
    kernel_swatch,
    kind_swatch,
    type_swatch,
)
from nsysmap.text.units import counted, duration, percent, size
from nsysmap.timing.measured import Measured
from nsysmap.timing.precision import engine_precision_table

MODES = ("time", "kind", "precision")
"""The ways to colour boxes."""

MANY = 150
"""The number of layers above which `auto` collapses."""


@dataclass(frozen=True)
class RanKernels:
    """Kernels of one name that ran for a layer; executions and time are per steady-state inference,
    or totals if there is none.
    """

    name: str
    summary: str
    executions: float
    time_ns: int


@dataclass(frozen=True)
class Times:
    """What is known about the layers' times, by index."""

    words: str  # a description of the times
    per: str  # the unit of the kernels' counts and times
    time_ns: tuple[int | None, ...]
    kernels: Mapping[int, tuple[RanKernels, ...]]
    precision: Table  # with layer_id as their index


@dataclass(frozen=True)
class Box:
    """One layer, or several drawn as one; one swatch per mode, and its parts by colour (one for a
    single layer).
    """

    title: str
    subtitle: str
    layers: tuple[int, ...]
    swatch: Mapping[str, Swatch]
    parts: Mapping[str, tuple[tuple[str, float], ...]]


@dataclass(frozen=True)
class Edge:
    """A tensor from one box to another; `order`: no tensor is known, only the order of the two."""

    source: int
    target: int
    tensor: str
    words: str
    order: bool = False


@dataclass(frozen=True)
class Trunk:
    """The way of one tensor to all its readers: line segments, each with the segment before it (-1:
    it leaves the source).
    """

    tensor: str
    words: str
    order: bool
    segments: tuple[Segment, ...]
    before: tuple[int, ...]
    # source and target box, and the last segment of the way between them
    ends: tuple[tuple[int, int, int], ...]
    heads: tuple[tuple[Point, bool], ...]  # arrow tips, and whether they point up


@dataclass(frozen=True)
class View:
    """One way to draw the engine."""

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    trunks: tuple[Trunk, ...]
    layout: Layout
    legends: Mapping[str, Legend]


@dataclass(frozen=True)
class Picture:
    """An engine as a picture; the first view is the one asked for."""

    title: str
    notes: tuple[str, ...]
    mode: str
    views: tuple[View, ...]
    titles: tuple[str, ...]  # of the layers
    engine: Engine
    times: Times | None


_EVERY = "every layer"


def times_of(
    engine: Engine, measured: Measured | None = None, source: str = "", *, number: int = 0
) -> Times | None:
    """The engine's times: those that a trace measured, otherwise those of its profile; None without
    either.

    `source` is the trace's file name, `number` the engine's among those that were measured.
    """
    if measured is not None:
        rows = list(_of_engine(measured.layers, number))
        told = [row.maybe_integer("time_ns") for row in rows]
        if any(time is not None for time in told):
            spent_by = list(_of_engine(measured.kernel_time, number))
            runs = max(
                (row.maybe_integer("inferences") or 0 for row in spent_by),
                default=measured.inferences,
            )
            words = (
                f"mean of {counted(runs, 'inference')} in {source}"
                if runs
                else f"total over {source}"
            )
            # the layers of an engine are contiguous
            first = min((row.integer("layer_id") for row in rows), default=0)
            spent, precision = (
                _by_index(_of_engine(table, number), first)
                for table in (measured.kernel_time, measured.precision)
            )
            per = "mean per inference" if runs else "over the whole trace"
            return Times(words, per, tuple(told), _kernels(spent), precision)
    if any(time is not None for time in engine.trtexec_ns):
        return Times(
            "median of the trtexec profile",
            "from the trtexec profile",
            engine.trtexec_ns,
            {},
            engine_precision_table(engine),
        )
    return None


def picture(
    engine: Engine,
    times: Times | None,
    *,
    mode: str | None = None,
    collapse: str = "auto",
    all_views: bool = False,
) -> Picture:
    """The picture of an engine; `mode` is one of MODES (time if it is known, otherwise kind),
    `collapse` is auto, block, region or none.

    With `all_views` the other ways to draw it follow the requested one.  Raises NsysmapError if
    nothing can be collapsed in that way.
    """
    name, groups = _groups(engine, collapse)
    laid = _laid_out(engine, groups)  # first: it says where it would be too large
    swatches = {
        "kind": [kind_swatch(layer.kind, layer.name) for layer in engine.layers],
        "precision": _types(engine, times),
    }
    told = _Told(layer_titles(engine.layers), swatches, _opened(engine, times))
    views = [_view(engine, times, told, name, laid)]
    notes = [note.text for note in engine.notes if note.level != "info"]
    if all_views and groups:
        try:
            views.append(_view(engine, times, told, _EVERY, _laid_out(engine, ())))
        except NsysmapError as error:
            notes.append(f"The view of all layers is left out: {error.what}.")
    if any(edge.order for edge in views[0].edges):
        notes.append("The file has no tensors: dashed lines show the order of execution, not data.")
    title = f"{engine.source}: {counted(len(engine.layers), 'layer')}"
    if groups:
        title += f" in {counted(len(views[0].boxes), 'box')} ({name})"
    return Picture(
        title,
        tuple(notes),
        mode or ("time" if times else "kind"),
        tuple(views),
        told.titles,
        engine,
        times,
    )


def tensor_words(tensor: Tensor) -> str:
    """Dimensions, data type and size of a tensor."""
    shape = (
        "x".join(str(extent) for extent in tensor.dimensions)
        if tensor.dimensions is not None
        else None
    )
    held = tensor_bytes(tensor)
    return " ".join(
        part
        for part in (shape, tensor.datatype, None if held is None else f"({size(held)})")
        if part
    )


def _of_engine(table: Table, number: int) -> Table:
    return table.take(table.ints("engine") == number)


def _by_index(table: Table, first_layer: int) -> Table:
    """The rows with the index of a layer in its engine as its id."""
    ids = table.ints("layer_id")
    return table.with_columns(
        table.spec, {"layer_id": np.where(ids == MISSING, MISSING, ids - first_layer)}
    )


def _kernels(kernel_time: Table) -> dict[int, tuple[RanKernels, ...]]:
    found: dict[int, list[RanKernels]] = {}
    for row in kernel_time:
        layer, runs, name = (
            row.maybe_integer("layer_id"),
            row.maybe_integer("inferences"),
            row.text("name"),
        )
        if layer is not None:
            per = 1 if runs is None else runs
            one = RanKernels(
                name,
                part_words(decode(name)),
                row.integer("kernels") / per,
                round(row.integer("time_ns") / per),
            )
            found.setdefault(layer, []).append(one)
    return {layer: tuple(ran) for layer, ran in found.items()}


# --- boxes and edges
# --------------------------------------------------------------------------------------------------


def _groups(engine: Engine, collapse: str) -> tuple[str, tuple[Group, ...]]:
    """The name of the view, and what is drawn as one box."""
    if collapse == "none" or (collapse == "auto" and len(engine.layers) <= MANY):
        return _EVERY, ()
    found = {"block": block_groups(engine), "region": region_groups(engine)}
    words = {"block": "repeated blocks", "region": "Myelin regions"}
    if collapse != "auto":
        if not found[collapse]:
            remedy = (
                "use --collapse none"
                if not found["region" if collapse == "block" else "block"]
                else "use the other --collapse, or none"
            )
            raise NsysmapError(
                engine.source, f"has no {words[collapse]} to draw as one box", remedy
            )
        return words[collapse], found[collapse]
    boxes = {
        name: len(engine.layers) - sum(len(group.layers) - 1 for group in groups)
        for name, groups in found.items()
    }
    # a single box for everything would show nothing
    telling = [name for name in found if found[name] and boxes[name] > 1]
    few = [name for name in telling if boxes[name] <= MANY]
    if not telling:
        return _EVERY, ()
    best = (
        max(few, key=lambda name: boxes[name])
        if few
        else min(telling, key=lambda name: boxes[name])
    )
    return words[best], found[best]


@dataclass(frozen=True)
class _LaidOut:
    """Where everything is drawn: the layers of each box, with the name of a group, and
    the edges.
    """

    members: Sequence[tuple[str | None, tuple[int, ...]]]
    edges: tuple[Edge, ...]
    placed: Layout


def _laid_out(engine: Engine, groups: Sequence[Group]) -> _LaidOut:
    """Raises NsysmapError where it would be too large."""
    inside = {layer: group for group in groups for layer in group.layers}
    members: list[tuple[str | None, tuple[int, ...]]] = []
    for layer in engine.layers:
        group = inside.get(layer.index)
        if group is None:
            members.append((None, (layer.index,)))
        elif group.layers[0] == layer.index:
            members.append((group.name, group.layers))
    box_of = {layer: number for number, (_, layers) in enumerate(members) for layer in layers}
    edges = _edges(engine, box_of)
    if not edges:
        edges = tuple(
            Edge(number, number + 1, "", "comes after", order=True)
            for number in range(len(members) - 1)
        )
    placed = layout(len(members), [Link(edge.source, edge.target, edge.tensor) for edge in edges])
    return _LaidOut(members, edges, placed)


def _view(engine: Engine, times: Times | None, told: _Told, name: str, laid: _LaidOut) -> View:
    members, edges, placed = laid.members, laid.edges, laid.placed
    most = max((_total(times, layers) or 0 for _, layers in members), default=0)
    whole = _total(times, range(len(engine.layers))) or 0
    shades = _Shades(times, most, whole, told)
    boxes = tuple(_box(engine, shades, title, layers) for title, layers in members)
    return View(name, boxes, edges, _trunks(edges, placed), placed, _legends(shades, members))


def _edges(engine: Engine, box_of: Mapping[int, int]) -> tuple[Edge, ...]:
    """One edge for each tensor between two boxes."""
    found: dict[tuple[int, int, str], Edge] = {}
    for source, target, tensor in engine.links:
        key = (box_of[source.index], box_of[target.index], tensor.name)
        if key[0] != key[1] and key not in found:
            found[key] = Edge(*key, words=tensor_words(tensor))
    return tuple(found.values())


def _trunks(edges: Sequence[Edge], placed: Layout) -> tuple[Trunk, ...]:
    """The edges' ways, with segments shared by readers of one tensor only once; an edge against the
    order of execution has its own.
    """
    shared: dict[tuple[object, ...], list[tuple[Edge, tuple[Segment, ...]]]] = {}
    for number, (edge, way) in enumerate(zip(edges, placed.ways, strict=True)):
        key = (edge.source, edge.tensor) if edge.source < edge.target else (number,)
        shared.setdefault(key, []).append((edge, way))
    trunks = []
    for found in shared.values():
        number_of: dict[Segment, int] = {}
        before: list[int] = []
        ends: list[tuple[int, int, int]] = []
        for edge, way in found:
            last = -1
            for segment in way:
                if segment not in number_of:
                    number_of[segment] = len(before)
                    before.append(last)
                last = number_of[segment]
            ends.append((edge.source, edge.target, last))
        first = found[0][0]
        heads = {way[-1][-1]: edge.source > edge.target for edge, way in found if way}
        trunks.append(
            Trunk(
                first.tensor,
                first.words,
                first.order,
                tuple(number_of),
                tuple(before),
                tuple(ends),
                tuple(heads.items()),
            )
        )
    return tuple(trunks)


def _box(engine: Engine, shades: _Shades, title: str | None, layers: tuple[int, ...]) -> Box:
    times = shades.times
    spent = _total(times, layers)
    timed = None if spent is None else f"{duration(spent)} {percent(spent, shades.whole)}"
    layer = engine.layers[layers[0]]
    if title is None:
        inside = (
            sum(round(ran.executions) for ran in times.kernels.get(layer.index, ()))
            if times and layer.kind == "foreign_node"
            else 0
        )
        # a region's title already says so, and its kernels need the space
        kind = "" if inside else layer.kind
        words = [
            " ".join(part for part in (kind, layer.precision) if part),
            counted(inside, "kernel") if inside else None,
            timed,
        ]
    else:
        words = [counted(len(layers), "layer"), timed]
    parts = {mode: _parts(shades, mode, layers) for mode in shades.told.swatches}
    # a region's own, although the strip shows its kernels
    own = {mode: swatches[layer.index] for mode, swatches in shades.told.swatches.items()}
    swatch = {mode: found[0][0] if title else own[mode] for mode, found in parts.items()} | {
        "time": _hot(shades, spent)
    }
    colours = {
        mode: tuple((one.fill, share) for one, share in found) for mode, found in parts.items()
    }
    subtitle = " · ".join(word for word in words if word)
    return Box(
        title or f"#{layer.index} {shades.told.titles[layer.index]}",
        subtitle,
        layers,
        swatch,
        colours,
    )


def _total(times: Times | None, layers: Iterable[int]) -> int | None:
    """The sum of the layers' times; None if none of them has one."""
    known = [
        time for layer in layers if times is not None and (time := times.time_ns[layer]) is not None
    ]
    return sum(known) if known else None


# --- colours
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Told:
    """The facts about each layer: its title, its swatch in the modes other than time, and the
    kernels of an opaque region.
    """

    titles: tuple[str, ...]
    swatches: Mapping[str, Sequence[Swatch]]
    opened: Mapping[int, Sequence[tuple[Swatch, int]]]


@dataclass(frozen=True)
class _Shades:
    """The values that colour the boxes of a view: the largest time of a box, the total time, and
    the facts about each layer.
    """

    times: Times | None
    most: int
    whole: int
    told: _Told


def _opened(engine: Engine, times: Times | None) -> dict[int, list[tuple[Swatch, int]]]:
    """The kernels of each opaque region by kind, decoded from their names, with their time."""
    ran = times.kernels if times else {}
    regions = [
        layer.index
        for layer in engine.layers
        if layer.kind == "foreign_node" and ran.get(layer.index)
    ]
    return {
        index: [(kernel_swatch(None, one.name), one.time_ns) for one in ran[index]]
        for index in regions
    }


def _parts(shades: _Shades, mode: str, layers: Sequence[int]) -> list[tuple[Swatch, float]]:
    """The swatches of the layers with their shares of the time, or of the number of layers without
    times; the largest first.
    """
    times, told = shades.times, shades.told
    weighed: list[tuple[Swatch, int]] = []
    for layer in layers:
        own = (told.swatches[mode][layer], (times.time_ns[layer] or 0) if times else 1)
        weighed.extend(told.opened.get(layer, [own]) if mode == "kind" else [own])
    if not sum(weight for _, weight in weighed):
        weighed = [(swatch, 1) for swatch, _ in weighed]
    whole = sum(weight for _, weight in weighed)
    total: dict[Swatch, int] = {}
    for swatch, weight in weighed:
        total[swatch] = total.get(swatch, 0) + weight
    return sorted(
        ((swatch, weight / whole) for swatch, weight in total.items() if weight),
        key=lambda part: (-part[1], part[0].words),
    )


def _hot(shades: _Shades, spent: int | None) -> Swatch:
    if shades.times is None:
        return Swatch(PLAIN, "no times")
    if spent is None:
        return UNTIMED
    return Swatch(heat(spent / shades.most if shades.most else 0), duration(spent))


def _legends(
    shades: _Shades, members: Sequence[tuple[str | None, tuple[int, ...]]]
) -> dict[str, Legend]:
    """The legend of the colours that a view uses."""
    if shades.times is None:
        time = Legend("Time: none given; add a REPORT, or --profile FILE", ())
    else:
        stops = [at / 4 for at in range(5)]
        scale = [
            Swatch(heat(stop), duration(round(shades.most * stop)) if stop else "0")
            for stop in stops
        ]
        untimed = (
            [UNTIMED] if any(_total(shades.times, layers) is None for _, layers in members) else []
        )
        time = Legend(f"GPU time: {shades.times.words}", (*scale, *untimed))
    several = any(title is not None for title, _ in members)
    most = (
        f", for most of {'the time' if shades.times else 'the layers'} of a box; the strip"
        " shows all"
        if several
        else ""
    )
    titles = f"Kind of layer{most}", f"Data type of the computation{most}"
    legends = {"time": time}
    shown = [layer for _, layers in members for layer in layers]
    for mode, title, words in zip(
        ("kind", "precision"), titles, (KIND_WORDS, TYPE_WORDS), strict=True
    ):
        used = {
            swatch.words: swatch
            for layer in shown
            for swatch in [shades.told.swatches[mode][layer]]
        }
        if mode == "kind":
            used |= {
                swatch.words: swatch
                for layer in shown
                for swatch, _ in shades.told.opened.get(layer, ())
            }
        legends[mode] = Legend(title, tuple(used[one] for one in words if one in used))
    return legends


def _types(engine: Engine, times: Times | None) -> list[Swatch]:
    """For each layer the type in which most of its time is spent; without a trace, that of its
    tactic or tensors.
    """
    best: dict[int, Row] = {}
    # in this case its rows are those of the engine file
    profiled = times is not None and not times.kernels
    for rows in (
        () if profiled else engine_precision_table(engine),
        times.precision if times else (),
    ):
        seen: dict[int, int] = {}
        for row in rows:
            layer, weight = row.maybe_integer("layer_id"), row.maybe_integer("time_ns") or 0
            if layer is not None and weight >= seen.get(layer, -1):
                if weight > seen.get(layer, -1):
                    best[layer] = row
                seen[layer] = weight
    return [type_swatch(best.get(layer.index)) for layer in engine.layers]
