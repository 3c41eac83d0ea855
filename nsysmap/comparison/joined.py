"""The layers of two sides, joined into groups: each group's time on both sides, and whether it
changed by more than the noise.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nsysmap.comparison.noise import (
    CLOCK,
    Difference,
    Mean,
    beyond_chance,
    difference,
    factor_between,
    mean_of,
    mean_of_runs,
    run_to_run,
)
from nsysmap.comparison.pace import Pace
from nsysmap.comparison.side import Side
from nsysmap.core.comparison_schema import JOINED_LAYERS
from nsysmap.core.groups import rows_by_value
from nsysmap.core.records import dataclass
from nsysmap.core.table import FloatArray, IntArray, Row, Table
from nsysmap.inputs.engine.model import Layer
from nsysmap.network.layer_network import Piece, network_of
from nsysmap.network.matched_groups import GONE, NEW, ONE_TO_ONE, MatchedGroup, groups_of
from nsysmap.timing.layer_sums import common_name

_NODE_NS = 120.0
"""How much more the profiler may lengthen a graph's node than another kernel (see whatif.profiler):
an uncertainty if launches differ.
"""


_TICK_NS = 32.0
"""The resolution of kernel times on the GPU: a difference of the means below half of it means
nothing.

Another version of nsys may round times differently: one tick per kernel.
"""

# of a block, node or region; fc1 and fc2 are two layers of one block
_INDEX = re.compile(r"(?<![A-Za-z])\d+|(?<=__mye)\d+")
_ORDINAL = re.compile(r"_\d+(?=[/|:,+() ]|$)")  # of all but the first of a name: up, up_1, up_2
# layers that run the same kernels, from which on what they have in common is taken for the
# profiler's
_FEWEST_ALIKE = 5
_MANY = 4  # layers in one group, from which on only the first and the last are named
_ALIKE = 2.0  # the largest ratio of differences within one part


@dataclass(frozen=True)
class JoinedGroup:
    """Layers of both sides, by layer id, that compute the same."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    relation: str
    joined_by: str
    # one layer per side, and one of them computes operations that the other does not
    other_nodes: bool = False


def joined_groups(before: Side, after: Side) -> tuple[JoinedGroup, ...]:
    """Groups that contain each layer of both sides exactly once."""
    found: list[JoinedGroup] = []
    for ours, theirs in _paired(before, after):
        networks = [
            network_of(
                [side.layers[at] for at in ids],
                ids,
                {name for engine in side.engines for name in engine.bindings},
                of_model=side.of_model,
            )
            for side, ids in ((before, ours), (after, theirs))
        ]
        found += [
            _by_ids(group, [one.pieces for one in networks]) for group in groups_of(*networks)
        ]
    return tuple(found)


def _by_ids(group: MatchedGroup, pieces: Sequence[Sequence[Piece]]) -> JoinedGroup:
    before, after = (
        tuple(own[place].layer_id for place in places)
        for own, places in zip(pieces, (group.before, group.after), strict=True)
    )
    return JoinedGroup(before, after, group.relation, group.joined_by, group.other_nodes)


def _paired(before: Side, after: Side) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of corresponding engines: by the layer names that they share, otherwise by their
    order.
    """
    ours, theirs = list(before.layer_ids), list(after.layer_ids)
    named = [
        [Counter(side.layers[at].name for at in ids) for ids in side.layer_ids]
        for side in (before, after)
    ]
    scores = sorted(
        (
            (-(named[0][i] & named[1][j]).total(), abs(i - j), i, j)
            for i in range(len(ours))
            for j in range(len(theirs))
        ),
    )
    pairs: dict[int, int] = {}
    for _, _, i, j in scores:
        if i not in pairs and j not in pairs.values():
            pairs[i] = j
    found = [(ours[i], theirs[pairs[i]] if i in pairs else ()) for i in range(len(ours))]
    return found + [((), theirs[j]) for j in range(len(theirs)) if j not in pairs.values()]


# --- times
# --------------------------------------------------------------------------------------------------


def joined_table(
    before: Side, after: Side, scale: float = 1.0
) -> tuple[tuple[JoinedGroup, ...], Table]:
    """The groups and the table `joined_layers` of two sides; times are multiplied by ``scale``
    (inferences per pass).
    """
    groups = joined_groups(before, after)
    traced = before.traced and after.traced
    times = [_Times.of(side) if side.traced else None for side in (before, after)]
    tests: list[Difference | None] = []
    rows: list[dict[str, object]] = []
    names = (_kernel_names(before), _kernel_names(after))
    slack = _slack(before, after) if traced else _Slack(0.0, 0.0)
    same_gpu = traced and before.pace.device == after.pace.device
    sides = tuple(zip(times, (before, after), strict=True))
    found = [
        [
            one.of_group(ids) if one is not None else _profiled(side, ids)
            for (one, side), ids in zip(sides, own, strict=True)
        ]
        for own in ((group.before, group.after) for group in groups)
    ]
    if traced and before.cuda_graphs != after.cuda_graphs:
        slack = replace(
            slack, a_kernel_ns=slack.a_kernel_ns + _common_shift(groups, found, times, names)
        )
    for number, (group, means) in enumerate(zip(groups, found, strict=True)):
        ids = (group.before, group.after)
        told = _tested(means, slack, times, ids) if traced and same_gpu else None
        tests.append(told)
        times_ns = tuple(
            None if math.isnan(mean.value) else round(mean.value * scale) for mean in means
        )
        row = (
            _row(number, group, (before, after), names)
            | _times(group, times_ns)
            | _interval(told, scale)
        )
        if group.relation in (NEW, GONE) and row["difference_ns"] == 0:
            row["change"] = "no-op"
        rows.append(row)
    held = beyond_chance(
        [math.nan if one is None or not one.significant else one.p for one in tests]
    )
    for row, sure, test in zip(rows, held, tests, strict=True):
        row["significant"] = sure and test is not None and test.significant
    if traced:
        for row in rows:
            row["shown_ns"] = row.get("difference_ns")
    return groups, Table.of_rows(JOINED_LAYERS, rows)


def _times(group: JoinedGroup, times_ns: Sequence[int | None]) -> dict[str, object]:
    """The times of both sides, and the difference if all layers have a time; a side without layers
    took 0.
    """
    ours, theirs = (
        time if ids else None
        for time, ids in zip(times_ns, (group.before, group.after), strict=True)
    )
    known = (ours is not None or not group.before) and (theirs is not None or not group.after)
    return {
        "before_ns": ours,
        "after_ns": theirs,
        "difference_ns": (theirs or 0) - (ours or 0) if known else None,
    }


@dataclass(frozen=True)
class _Times:
    """The layers' times in a capture, inference by inference."""

    pace: Pace
    engine: IntArray  # of each counted inference
    layer_engine: IntArray
    runs: dict[int, IntArray]  # rows by engine
    kernels: FloatArray  # number of kernels of each layer per inference

    @staticmethod
    def of(side: Side) -> _Times:
        pace = side.pace
        inferences = side.tables["inferences"]
        number = inferences.ints("inference")
        engine = (
            inferences.ints("engine")[np.searchsorted(number, pace.inferences)]
            if pace.runs == 1
            else np.zeros(pace.runs, np.int64)
        )
        counts = side.tables["layers"].ints("kernels").astype(np.float64)
        return _Times(
            pace,
            engine,
            side.tables["layers"].ints("engine"),
            {int(one): rows for one, rows in rows_by_value(engine)} if len(engine) else {},
            np.where(counts > 0, counts, 0.0),
        )

    def of_group(self, ids: Sequence[int]) -> Mean:
        """The kernel time of these layers per inference as recorded: what the profiler adds to each
        is an estimate for all of them.
        """
        if not ids or not len(self.pace.kernels):
            return Mean(0.0 if self.pace.known else math.nan, 0.0, 1.0, 0, 0.0, 0.0)
        rows = self.runs.get(int(self.layer_engine[ids[0]])) if len(self.runs) > 1 else None
        series = self.pace.kernels[:, list(ids)].sum(axis=1)
        value = float(self.pace.weight @ series)
        if (
            self.pace.hidden and value == 0
        ):  # it may have run inside a CUDA graph that was traced as a whole
            return Mean(math.nan, math.nan, 1.0, 0, 0.0, 0.0)
        share = 1.0
        if rows is not None and len(rows):
            series, share = series[rows], float(self.pace.weight[rows].sum())
        mean = mean_of(series) if self.pace.runs == 1 else mean_of_runs(series)
        return replace(mean, value=value, error=mean.error * share, drift=mean.drift * share)


def _profiled(side: Side, ids: Sequence[int]) -> Mean:
    times = side.tables["layers"].ints("trtexec_ns")[list(ids)] if ids else np.zeros(0, np.int64)
    value = float(times[times >= 0].sum()) if not ids or (times >= 0).any() else math.nan
    return Mean(value, math.nan, 0.0, 1, 1.0, 0.0)


@dataclass(frozen=True)
class _Slack:
    """How much kernel times of the same program may differ beside noise."""

    a_kernel_ns: float
    share: float


def _slack(before: Side, after: Side) -> _Slack:
    versions = [
        side.tables["capture"].only().maybe_text("nsys_version") for side in (before, after)
    ]
    a_kernel = (_NODE_NS if before.cuda_graphs != after.cuda_graphs else 0.0) + (
        _TICK_NS if versions[0] != versions[1] else 0.0
    )
    single = before.pace.runs == after.pace.runs == 1 and not before.is_capture_of(after)
    return _Slack(a_kernel, run_to_run(1.0, 0.0) if single else 0.0)


def _common_shift(
    groups: Sequence[JoinedGroup],
    means: Sequence[Sequence[Mean]],
    times: Sequence[_Times | None],
    names: Sequence[dict[int, str]],
) -> float:
    """The number of ns by which kernels of the layers that run the same ones differ (median): the
    profiler's part, unless they differ by a factor.
    """
    found = []
    for group, pair in zip(groups, means, strict=True):
        ids = (list(group.before), list(group.after))
        if (
            group.relation != ONE_TO_ONE
            or len({names[side].get(own[0]) for side, own in enumerate(ids)}) > 1
        ):
            continue
        counts = [
            float(one.kernels[own].sum())
            for one, own in zip(times, ids, strict=True)
            if one is not None
        ]
        if counts[0] == counts[1] > 0 and not math.isnan(pair[0].value + pair[1].value):
            found.append([one.value / counts[0] for one in pair])
    if len(found) < _FEWEST_ALIKE:
        return 0.0
    ours, theirs = np.array(found).T
    factor = factor_between(ours, theirs)
    return (
        abs(float(np.median(theirs - ours)))
        if factor.low <= 1 + CLOCK and factor.high >= 1 - CLOCK
        else 0.0
    )


def _tested(
    means: Sequence[Mean],
    slack: _Slack,
    times: Sequence[_Times | None],
    ids: Sequence[Sequence[int]],
) -> Difference | None:
    """The difference with its interval, widened by run-to-run differences and by what the profiler
    may add to one side's kernels only.
    """
    before, after = means
    if math.isnan(before.value) or math.isnan(after.value):
        return None
    one_sided = replace(before if ids[0] else after, value=0.0, error=0.0, freedom=1.0, drift=0.0)
    most = max(
        float(one.kernels[list(group)].sum())
        for one, group in zip(times, ids, strict=True)
        if one is not None
    )
    wide = (
        _TICK_NS / 2 * math.sqrt(max(most, 1.0))
        + slack.a_kernel_ns * max(most, 1.0)
        + slack.share * max(before.value, after.value)
    )
    return difference(before if ids[0] else one_sided, after if ids[1] else one_sided, slack=wide)


def _interval(told: Difference | None, scale: float) -> dict[str, object]:
    if told is None or math.isnan(told.low):
        return {}
    return {"low_ns": round(told.low * scale), "high_ns": round(told.high * scale)}


# --- words
# --------------------------------------------------------------------------------------------------


def _row(
    number: int,
    group: JoinedGroup,
    sides: tuple[Side, Side],
    names: tuple[dict[int, str], dict[int, str]],
) -> dict[str, object]:
    ids = (group.before, group.after)
    layers = [[side.layers[at] for at in members] for side, members in zip(sides, ids, strict=True)]
    precisions = [_joined(layer.precision for layer in members) for members in layers]
    kernels = [
        "; ".join(
            dict.fromkeys(
                name for at in members if (name := held.get(at) or (side.layers[at].tactic or ""))
            )
        )
        for side, members, held in zip(sides, ids, names, strict=True)
    ]
    return {
        "group": number,
        "before": "; ".join(layer.name for layer in layers[0]) or None,
        "after": "; ".join(layer.name for layer in layers[1]) or None,
        "before_titles": _titles(sides[0], ids[0]),
        "after_titles": _titles(sides[1], ids[1]),
        "before_ids": _ids(sides[0], ids[0]),
        "after_ids": _ids(sides[1], ids[1]),
        "relation": group.relation,
        "joined_by": group.joined_by or None,
        "kind": (layers[0] or layers[1])[0].kind,
        "before_layers": len(ids[0]),
        "after_layers": len(ids[1]),
        "before_precision": precisions[0] or None,
        "after_precision": precisions[1] or None,
        "before_kernels": kernels[0] or None,
        "after_kernels": kernels[1] or None,
        "change": _change(group, layers, precisions, kernels),
    }


def _titles(side: Side, ids: Sequence[int]) -> str | None:
    """The titles of these layers, separated by semicolons."""
    return "; ".join(side.titles[at] for at in ids) or None


def _ids(side: Side, ids: Sequence[int]) -> str | None:
    """Layer ids separated by dots; None if kernel names stand in for layers."""
    return ".".join(map(str, ids)) if ids and not side.by_kernel else None


def _change(
    group: JoinedGroup,
    layers: Sequence[Sequence[Layer]],
    precisions: Sequence[str],
    kernels: Sequence[str],
) -> str:
    if (
        all(layer.kind == "reformat" for side in layers for layer in side)
        and group.relation != ONE_TO_ONE
    ):
        return "reformat"
    if group.relation in (NEW, GONE):
        return (
            "no-op"
            if all(layer.kind in RUNS_NOTHING for side in layers for layer in side)
            else group.relation
        )
    if group.relation != ONE_TO_ONE:
        return "fusion"
    if all(precisions) and precisions[0] != precisions[1]:
        return "precision"
    if group.other_nodes:
        return "fusion"
    return "tactic" if all(kernels) and kernels[0] != kernels[1] else "same"


RUNS_NOTHING = frozenset({"noop", "signal", "constant", "shape"})


def _joined(values: Iterable[str | None]) -> str:
    return "+".join(sorted({value for value in values if value}))


def _kernel_names(side: Side) -> dict[int, str]:
    """The kernel in which each layer spends most of its time."""
    if not side.traced:
        return {}
    times = side.tables["layer_times"]
    return {
        layer: name
        for layer, name in zip(
            times.ints("layer_id").tolist(), times.text("kernel").list(), strict=True
        )
        if name
    }


def layer_means(side: Side) -> dict[str, Mean]:
    """The kernel time per inference of each layer that ran, by name; layers of one name are added
    up.
    """
    times = _Times.of(side)
    if not times.pace.known or not len(times.pace.kernels):
        return {}
    ran = times.pace.kernels.sum(axis=0) > 0
    by_name: dict[str, list[int]] = {}
    for at, layer in enumerate(side.layers):
        if ran[at]:
            by_name.setdefault(layer.name, []).append(at)
    return {name: times.of_group(ids) for name, ids in by_name.items()}


def blocks_of(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of JOINED_LAYERS grouped: layers whose titles differ only in indices and that
    changed in the same way.

    Significant differences in a group have one sign and are within a factor of two of each other,
    so that a layer that changed more than those in the other blocks stands alone.
    """
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        sure = row.flag("significant")
        found.setdefault((*_way(row), sure and row.integer("difference_ns") > 0, sure), []).append(
            row
        )
    return [
        part
        for (*_, sure), mine in found.items()
        for part in (_of_like_difference(mine) if sure else [mine])
    ]


def group_name(rows: list[Row], side: str) -> str | None:
    """The name of a block on one side; for many layers their number and the names of the first and
    the last.
    """
    name = block_name(rows, side)
    layers = rows[0].integer(f"{side}_layers")
    if name is None or layers < _MANY:
        return name
    names = name.split("; ")
    return f"{layers} layers, {names[0]} to {names[-1]}"


def block_name(rows: list[Row], side: str) -> str | None:
    """The name of the layers on one side, with a * for each number that differs; None if the side
    has no such layer.
    """
    titles = [title for row in rows if (title := row.maybe_text(f"{side}_titles")) is not None]
    return common_name(titles) if titles else None


def _way(row: Row) -> tuple[object, ...]:
    """The values that all rows of a group must share."""
    names = (
        _INDEX.sub("*", _ORDINAL.sub("", row.maybe_text(f"{side}_titles") or ""))
        for side in ("before", "after")
    )
    kernels = (row.maybe_text(f"{side}_kernels") for side in ("before", "after"))
    precision = (row.maybe_text(f"{side}_precision") for side in ("before", "after"))
    return (
        row.text("change"),
        row.text("relation"),
        row.maybe_text("joined_by"),
        *names,
        *kernels,
        *precision,
    )


def _of_like_difference(rows: list[Row]) -> list[list[Row]]:
    parts: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -abs(row.integer("difference_ns"))):
        if parts and abs(parts[-1][0].integer("difference_ns")) <= _ALIKE * abs(
            row.integer("difference_ns")
        ):
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts
