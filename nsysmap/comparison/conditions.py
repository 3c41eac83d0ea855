"""What differs between two captures besides the program: GPU, clocks, shapes, streams, warm-up,
versions.
"""

from __future__ import annotations

import numpy as np

from nsysmap.comparison.noise import (
    CLOCK,
    FEWEST,
    difference,
    factor_between,
    mean_of,
    mean_of_runs,
)
from nsysmap.comparison.side import Side
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING, IntArray, Row, Table
from nsysmap.inputs.engine.model import Engine
from nsysmap.mapping.engine_match import DID_NOT_RUN
from nsysmap.names.fusion import NORM_PATTERNS
from nsysmap.text.units import duration, percent
from nsysmap.trace.copies import hold_the_host

# another clock's factor has at least this share of the kernels on the same side of half of it
_TIGHT = 0.75
_THROUGHOUT = 0.95  # … or at least this share is slower, or faster, by any amount
_FEWEST_KERNELS = 5  # in common: of fewer, "nearly all of them" says nothing
# share of the inferences, from which on a number of kernels is not by chance missing among forty
# others
_FREQUENT = 0.1
_NAMED = 4  # numbers of kernels that are named; otherwise their mean is given
_WHOLE_NORM = "layernorm"  # a kernel with all of a norm
# ratio of kernels per inference from which on repetitions may be different units of work
ANOTHER_LENGTH = 1.5
# share of the kernel time with a counterpart, below which these are different networks
_ANOTHER_NETWORK = 0.1


@dataclass(frozen=True)
class Condition:
    """One difference in the conditions."""

    what: str
    before: str
    after: str
    told: str = ""  # what it means for the comparison
    # an inference does other work or runs on other hardware, so predictions cannot be checked
    # against it
    other_work: bool = False


def conditions(
    before: Side, after: Side, joined: Table, regions: Table | None = None
) -> tuple[Condition, ...]:
    """The differences and their meaning; facts that one side lacks are omitted. ``regions`` is
    REGION_KINDS.
    """
    found: list[Condition] = []

    def differs(
        what: str, pair: tuple[object, object], told: str = "", *, work: bool = False
    ) -> None:
        ours, theirs = pair
        if ours is not None and theirs is not None and ours != theirs:
            found.append(Condition(what, str(ours), str(theirs), told, work))

    differs("TensorRT", (_version(before), _version(after)))
    told = "A different amount of work: the times do not measure the same thing."
    differs("shapes of inputs and outputs", _binding_shapes(before, after), told, work=True)
    if before.traced and after.traced:
        sides = (before, after)
        differs(
            "GPU",
            (_gpu(before), _gpu(after)),
            "Times are from different GPUs; only the networks can be compared.",
            work=True,
        )
        told = "The times are of different GPUs: the interval includes the difference between them."
        differs(
            "GPU whose inferences are compared",
            (_known(before.pace.device), _known(after.pace.device)),
            told,
        )
        differs(
            "GPU clock",
            (_clock(before), _clock(after)),
            "This is the maximum that the device reports, not the clock at which it ran.",
        )
        capture = [side.tables["capture"].only() for side in sides]
        differs(
            "nsys",
            (capture[0].maybe_text("nsys_version"), capture[1].maybe_text("nsys_version")),
            "Another version of the profiler may have another overhead.",
        )
        differs("CUDA graph", (_launched(before), _launched(after)))
        differs(
            "threads that run inferences",
            (before.pace.threads or None, after.pace.threads or None),
            "The time per inference is wall time divided by the inferences of all threads.",
        )
        differs(
            "streams with GPU work",
            (capture[0].integer("streams") or None, capture[1].integer("streams") or None),
        )
        told = _repetition(before, after)
        differs("kernels per inference", _kernels(sides), told, work=bool(told))
        differs("copies per inference", (_copies(before), _copies(after)))
        differs(
            "inferences per pass",
            (_passes(before), _passes(after)),
            "Times are per inference, not per pass.",
        )
        differs(
            "engines that ran",
            (len(_engines_that_ran(before)) or None, len(_engines_that_ran(after)) or None),
        )
        found += [
            one
            for side, own in zip(("before", "after"), sides, strict=True)
            for one in (*_warm_up(side, own), *_mixed(side, own))
        ]
        found += [*_wrong_engines(before, "before"), *_wrong_engines(after, "after")]
        found += _grids(before, after)
    if before.traced == after.traced and _enough(before, after):
        known = ", ".join(one.what for one in found if one.other_work)
        unknown = f"another clock, power limit{'' if before.traced else ', GPU'} or shape is why"
        found += _clocks(
            before, after, joined, f"what differs above ({known}) may be why" if known else unknown
        )
    found += _network(joined, names_only=_names_only(before) or _names_only(after))
    if regions is not None:
        told = (
            "A build neither adds nor removes norms: these may be networks of different depth,"
            " which do a different amount of work."
        )
        differs("norms in regions", _norms(regions), told, work=True)
    return tuple(found)


def _norms(regions: Table) -> tuple[int | None, int | None]:
    """The norms per inference in regions on both sides; nothing where some are split and cannot be
    counted.
    """
    rows = [row for row in regions if row.text("kind") in NORM_PATTERNS]
    counts = [sum(row.real(f"{side}_kernels") for row in rows) for side in ("before", "after")]
    if {row.text("kind") for row in rows} != {_WHOLE_NORM} or not all(
        count and count.is_integer() for count in counts
    ):
        return None, None
    return int(counts[0]), int(counts[1])


def _repetition(before: Side, after: Side) -> str:
    """What it means that the inferences of both sides are repetitions without ranges, of different
    lengths; otherwise empty.
    """
    for side in (before, after):
        inferences = side.tables["inferences"]
        rows = np.isin(inferences.ints("inference"), side.pace.inferences)
        if not rows.any() or not inferences.text("found_by").equals("period")[rows].all():
            return ""
    kernels = [mean_kernels(side) for side in (before, after)]
    if not min(kernels) or max(kernels) < ANOTHER_LENGTH * min(kernels):
        return ""
    return (
        "No ranges bound the inferences: they are what repeats, and that may be a different unit of"
        " work on each side."
    )


def _enough(before: Side, after: Side) -> bool:
    """Whether the layers' times are means over more than a few inferences, as in trtexec's
    profiles.
    """
    return (
        not before.traced
        or before.pace.runs > 1
        or min(side.pace.noise.count for side in (before, after)) >= FEWEST
    )


def _names_only(side: Side) -> bool:
    """Whether nothing but the names and the order of its layers is known, as from a profile."""
    return not side.traced and not any(one.detailed for one in side.engines)


def _network(joined: Table, *, names_only: bool) -> list[Condition]:
    """Whether hardly any layer of one side has a counterpart on the other."""
    shares = []
    for key in ("before_ns", "after_ns"):
        known = [(row.integer(key), _counterpart(row)) for row in joined if row[key] is not None]
        whole = sum(time for time, _ in known)
        if not whole:
            return []
        shares.append(sum(time for time, has in known if has) / whole)
    if max(shares) >= _ANOTHER_NETWORK:
        return []
    told = (
        "Hardly any layer has a counterpart by name, and a profile has nothing else: give the"
        " engine files too (engine.json profile.json -- engine.json profile.json). Until then"
        " layers are joined by their position."
        if names_only
        else "Hardly any layer has a counterpart by ONNX nodes, name or structure: these may be"
        " different networks, and their times say nothing about a change."
    )
    return [
        Condition(
            "layer time with a counterpart by name"
            if names_only
            else "kernel time of layers with a counterpart",
            percent(shares[0], 1),
            percent(shares[1], 1),
            told,
            other_work=True,
        )
    ]


def _counterpart(row: Row) -> bool:
    sure = row["joined_by"] in ("onnx", "name", "tensors") or (
        row["joined_by"] == "structure" and row["relation"] == "one-to-one"
    )
    return bool(sure or "region" in row.text("relation"))


def _version(side: Side) -> str | None:
    versions = [
        engine.tensorrt_version for engine in _engines_that_ran(side) if engine.tensorrt_version
    ]
    return (
        versions[0]
        if versions
        else side.tables["capture"].only().maybe_text("tensorrt_version")
        if side.traced
        else None
    )


def _binding_shapes(before: Side, after: Side) -> tuple[str | None, str | None]:
    """The shapes of inputs and outputs that both sides name; nothing if they are equal."""
    shapes: list[dict[str, tuple[int, ...]]] = []
    for side in (before, after):
        names = {name for engine in _engines_that_ran(side) for name in engine.bindings}
        shapes.append(
            {
                tensor.name: tensor.dimensions
                for engine in _engines_that_ran(side)
                for layer in engine.layers
                for tensor in (*layer.inputs, *layer.outputs)
                if tensor.name in names and tensor.dimensions is not None
            }
        )
    other = sorted(
        name
        for name in shapes[0].keys() & shapes[1].keys()
        if sorted(shapes[0][name]) != sorted(shapes[1][name])
    )
    if not other:
        return None, None
    words = [
        ", ".join(f"{name} {'x'.join(map(str, held[name]))}" for name in other[:4])
        for held in shapes
    ]
    return words[0], words[1]


def _engines_that_ran(side: Side) -> tuple[Engine, ...]:
    """The side's engines without those that the trace shows did not run."""
    if not side.traced:
        return side.engines
    wrong = {
        row.integer("engine")
        for row in side.tables["engine_fits"]
        if row.text("verdict") == DID_NOT_RUN
    }
    return tuple(engine for at, engine in enumerate(side.engines) if at not in wrong)


def _wrong_engines(side: Side, own: str) -> list[Condition]:
    ran = _engines_that_ran(side)
    wrong = ", ".join(
        engine.source for engine in side.engines if not any(engine is one for one in ran)
    )
    if not wrong:
        return []
    told = (
        f"{wrong} did not run in {side.source}: give the engine file of that run. Its layers are"
        " those that the trace names."
    )
    ends = (wrong, "") if own == "before" else ("", wrong)
    return [Condition(f"engine file of {own.upper()}", *ends, told)]


def _known(number: int) -> int | None:
    return None if number == MISSING else number


def _gpu(side: Side) -> str | None:
    devices = side.tables["devices"]
    rows = np.flatnonzero(devices.ints("device") == side.pace.device)
    return devices.text("name")[int(rows[0])] if len(rows) else None


def _clock(side: Side) -> str | None:
    devices = side.tables["devices"]
    rows = np.flatnonzero(devices.ints("device") == side.pace.device)
    value = int(devices.ints("clock_hz")[rows[0]]) if len(rows) else MISSING
    return None if value == MISSING else f"{value / 1e6:,.0f} MHz"


def _launched(side: Side) -> str | None:
    if not len(side.tables["inferences"]):
        return None
    mode = side.tables["capture"].only().text("cuda_graph_trace")
    used = side.cuda_graphs
    return (
        {"node": "yes, nodes traced", "graph": "yes, traced as a whole"}.get(mode, "yes")
        if used
        else "no"
    )


def mean_kernels(side: Side) -> float:
    """The mean number of kernels of the counted inferences; 0 if there are none."""
    counts = _kernel_counts(side)
    return float(counts.mean()) if len(counts) else 0.0


def _kernel_counts(side: Side) -> IntArray:
    inferences = side.tables["inferences"]
    return inferences.ints("kernels")[np.isin(inferences.ints("inference"), side.pace.inferences)]


def _kernels(sides: tuple[Side, Side]) -> tuple[str | None, str | None]:
    """The numbers of kernels per inference on both sides; nothing if each has those that are
    frequent on the other, as often.
    """
    counts = [_kernel_counts(side) for side in sides]
    if not all(len(own) and own.max() > 0 for own in counts):
        return None, None
    frequent = [
        [int(one) for one in np.unique(own) if np.mean(own == one) >= _FREQUENT] for own in counts
    ]
    alike = all(
        np.isin(mine, other).all() for mine, other in zip(frequent, counts[::-1], strict=True)
    )
    if alike and not difference(*(mean_of(own.astype(np.float64)) for own in counts)).significant:
        return None, None
    if frequent[0] == frequent[1] or not all(0 < len(own) <= _NAMED for own in frequent):
        return f"{counts[0].mean():.1f} on average", f"{counts[1].mean():.1f} on average"
    words = [" or ".join(map(str, own)) for own in frequent]
    return words[0], words[1]


def _copies(side: Side) -> str | None:
    if not len(side.pace.inferences):
        return None
    begin, end = side.pace.steady_span_ns
    memcpys = side.tables["memcpys"]
    inside = (
        (memcpys.ints("start_ns") >= begin)
        & (memcpys.ints("end_ns") <= end)
        & (memcpys.ints("process") == side.pace.process)
    )
    number = len(side.pace.inferences) + side.pace.held_up
    holding = int(np.count_nonzero(inside & hold_the_host(memcpys)))
    count = round(int(np.count_nonzero(inside)) / number)
    return f"{count}, {round(holding / number)} that block the host" if count else "none"


def _passes(side: Side) -> int | None:
    loops = [row.integer("inferences_a_pass") for row in side.tables["inference_loops"]]
    return max(loops, default=None)


def _warm_up(name: str, side: Side) -> list[Condition]:
    found = []
    drift = side.pace.noise.drift
    if side.pace.known and drift > 0:
        moved = duration(2 * drift)
        told = (
            f"The times of {name.upper()} drift by {moved} from first to last: warm-up or clocks;"
            " the interval includes it."
        )
        found.append(
            Condition(
                f"drift of {name}",
                side.source if name == "before" else "",
                side.source if name == "after" else "",
                told,
            )
        )
    return found


def _mixed(name: str, side: Side) -> list[Condition]:
    """Whether the runs of a side used several GPU models."""
    if not side.gpus:
        return []
    told = (
        f"The runs of {name.upper()} used different GPUs ({', '.join(side.gpus)}), which differ by"
        " more than runs on one GPU."
    )
    return [Condition(f"GPUs of the runs of {name}", "", "", told, other_work=True)]


def _clocks(before: Side, after: Side, joined: Table, reason: str) -> list[Condition]:
    """Whether the same kernels take longer or shorter by a factor; ``reason`` says what that may
    come from.

    Launches and nodes of CUDA graphs, two versions of nsys and two GPUs differ by a constant per
    kernel, whatever its length: factor and constant are fitted together, and only the factor
    counts.
    """
    rows = [
        row
        for row in joined
        if row["change"] == "same"
        and row["before_ns"]
        and row["after_ns"]
        and row["before_kernels"]
    ]
    numbers = np.array(
        [
            [_kernels_of(side, row, name) for name, side in (("before", before), ("after", after))]
            for row in rows
        ]
    )
    if (
        not rows
        or np.count_nonzero(alike := numbers[:, 0, 0] == numbers[:, 1, 0]) < _FEWEST_KERNELS
    ):
        return []
    times = (
        np.array([[row.integer("before_ns"), row.integer("after_ns")] for row in rows])
        / numbers[:, :, 1]
    )
    times = times[alike]
    factor = factor_between(times[:, 0], times[:, 1])
    noise = _relative_noise(
        (before, after), [row for row, same in zip(rows, alike.tolist(), strict=True) if same]
    )
    if np.isnan(factor.value) or (
        factor.low * (1 - noise) <= 1 + CLOCK and factor.high * (1 + noise) >= 1 - CLOCK
    ):
        return []
    ratios = (times[:, 1] - np.median(times[:, 1] - factor.value * times[:, 0])) / times[:, 0]
    same_way, throughout = (
        float(np.mean((ratios > middle) == (factor.value > 1)))
        for middle in ((1 + factor.value) / 2, 1.0)
    )
    if same_way < _TIGHT and throughout < _THROUGHOUT:
        return []
    ratio = f"{factor.value:.3f}"
    told = (
        f"In {len(times)} layers that run the same kernels, these take {ratio} times as long"
        f" throughout: {reason}, not the build."
    )
    return [Condition("times of the same kernels", "1.000", ratio, told, other_work=True)]


def _kernels_of(side: Side, row: Row, name: str) -> tuple[float, float]:
    """The kernels of these layers in an inference of their engine, and their mean number over all
    inferences; 1 of a profile.
    """
    ids = [int(one) for one in (row.maybe_text(f"{name}_ids") or "").split(".") if one]
    counts = np.maximum(side.tables["layers"].ints("kernels")[ids], 0)
    if not side.traced or not counts.any():
        return 1.0, 1.0
    ran = side.pace.weight @ (side.pace.kernels[:, ids] > 0)
    return float(counts.sum()), float(counts @ ran) or 1.0


def _relative_noise(sides: tuple[Side, Side], rows: list[Row]) -> float:
    """How far the ratio of all these layers' times may be off because inferences differ, as a share
    of it; 0 for profiles.
    """
    if not sides[0].traced:
        return 0.0
    means = []
    for side, name in zip(sides, ("before_ids", "after_ids"), strict=True):
        ids = [int(one) for row in rows for one in (row.maybe_text(name) or "").split(".") if one]
        series = side.pace.kernels[:, ids].sum(axis=1)
        series /= series.mean()
        means.append(mean_of(series) if side.pace.runs == 1 else mean_of_runs(series))
    found = difference(*means)
    return (found.high - found.low) / 2


def _grids(before: Side, after: Side) -> list[Condition]:
    """Whether kernels of the same names have other grids, which means other shapes."""
    sizes: list[dict[str, set[int]]] = []
    for side in (before, after):
        kernels = side.tables["kernels"]
        rows = np.flatnonzero(np.isin(kernels.ints("inference"), side.pace.inferences))
        blocks = (
            kernels.ints("grid_x")[rows]
            * kernels.ints("grid_y")[rows]
            * kernels.ints("grid_z")[rows]
        )
        codes = kernels.text("name").codes[rows].astype(np.int64)
        held: dict[str, set[int]] = {}
        for pair in np.unique(codes << 32 | np.minimum(blocks, (1 << 32) - 1)).tolist():
            held.setdefault(kernels.text("name").values[pair >> 32], set()).add(
                pair & ((1 << 32) - 1)
            )
        sizes.append(held)
    common = sizes[0].keys() & sizes[1].keys()
    other = [name for name in common if not sizes[0][name] & sizes[1][name]]
    if len(common) < _FEWEST_KERNELS or len(other) < len(common) / 2:
        return []
    told = (
        "Kernels of the same names have other grids: another batch size or shape. The times are for"
        " different amounts of work."
    )
    return [
        Condition(
            "grids of the same kernels",
            f"{len(common)} kernel names",
            f"{len(other)} of them with other grids",
            told,
            other_work=True,
        )
    ]
