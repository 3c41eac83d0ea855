"""How far each layer is from the hardware's limits: its time beyond the least that the GPU needs
for it, and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, prod

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import ENGINE_HEADROOM, HEADROOM
from nsysmap.core.table import MISSING, BoolArray, IntArray, Row, Table, maybe, taken_values
from nsysmap.names.decode import decode
from nsysmap.timing.least_time import (
    LayerBytes,
    LeastTime,
    Measurement,
    TensorUse,
    bytes_from_memory,
    cache_holds,
    least_time,
)
from nsysmap.timing.peak_rates import OCCUPANCY, TENSOR, blocks_per_sm
from nsysmap.timing.reachable import Reachable, reachable
from nsysmap.timing.roofline import Device, Needed, device_of, longest_kernels, needed_of

NEAR = 0.6
"""A layer is bound by a limit from this share of it on, as in Nsight Compute."""
_LONGEST_START_NS = 3_000
"""A kernel that takes longer than this does more than start and end, on any GPU."""
_STARTS = 2.0
"""A layer hardly does more than start and end if its kernels take at most this many times the
shortest kernel.
"""
_EXPLAINS = 0.25
"""A reason must explain at least this share of the time beyond the least."""
_OLDER_REACH = 0.63
"""Share of the peak of 9.0 that mma.sync, the instruction of older architectures, reaches
("Dissecting the NVIDIA Hopper Architecture through Microbenchmarking and Multiple Level Analysis",
2024).
"""
_UNCOUNTED = frozenset({"selection", "resize", "other"})
"""Kinds of work whose operations are not, or not all, known."""
_CONVERSIONS = frozenset({"reformat", "cast", "quantize"})
_FUSED_AWAY = frozenset({"softmax", "pointwise", "movement"})
"""Roles in an attention block that a fused kernel performs on chip."""
_BYTES_PER_CLOCK = 64  # from the L2 cache to one SM (see least_time)
_TYPE_BYTES = {"FP32": 4.0, "TF32": 4.0, "FP16": 2.0, "BF16": 2.0, "INT8": 1.0, "FP8": 1.0}


@dataclass(frozen=True)
class Sources:
    """The tables that headroom is computed from."""

    layers: Table
    engines: Table
    work: Table
    tensors: Table
    roofline: Table
    precision: Table
    chains: Table
    chain_layers: Table
    attention: Table
    attention_layers: Table
    devices: Table
    kernels: Table
    kernel_totals: Table


def headroom_table(sources: Sources) -> Table:
    """The table `headroom`: one row per layer with time, the largest time that could go first,
    layers without a known one last.
    """
    machines = {row.integer("device"): row for row in sources.devices}
    timed = _timed(sources.layers)
    work = {row.integer("layer_id"): row for row in _of_layers(sources.work, timed)}
    roofline = {row.integer("layer_id"): row for row in _of_layers(sources.roofline, timed)}
    kept = _kept_if_fused(sources)
    cores = _tensor_cores(sources.precision)
    longest, start_ns = longest_kernels(sources.kernels), _shortest_ns(sources.kernel_totals)
    memory = _from_memory(sources, machines, timed)
    shapes = product_shapes(sources, timed)
    rows: list[dict[str, object]] = []
    for layer in _of_layers(sources.layers, timed):
        layer_id, time_ns = layer.integer("layer_id"), layer.integer("time_ns")
        kernel = longest.get(layer_id)
        number = None if kernel is None else int(sources.kernels.ints("device")[kernel])
        machine = machines.get(-1 if number is None else number) or next(
            iter(machines.values()), None
        )
        seen = _Seen(
            layer=layer,
            time_ns=time_ns,
            work=work.get(layer_id),
            roofline=roofline.get(layer_id),
            kernel=None if kernel is None else _kernel(sources.kernels, kernel),
            device=None if machine is None else device_of(machine),
            from_memory=memory.get(layer_id),
            tensor_cores=cores.get(layer_id, "unknown"),
            start_ns=start_ns,
            kept=kept.get(layer_id),
            shape=shapes.get(layer_id),
        )
        rows.append(_row(seen))
    rows.sort(key=lambda row: (row["headroom_ns"] is None, -_number(row["headroom_ns"])))
    whole = sum(_number(row["headroom_ns"]) for row in rows) or 1
    return Table.of_rows(
        HEADROOM,
        [
            {
                "rank": rank,
                **row,
                "share_of_headroom": (
                    None if row["headroom_ns"] is None else _number(row["headroom_ns"]) / whole
                ),
            }
            for rank, row in enumerate(rows, 1)
        ],
    )


def _timed(layers: Table) -> IntArray:
    """The layers with time; in a large engine file usually few."""
    time_ns = layers.ints("time_ns")
    timed: BoolArray = (time_ns != MISSING) & (time_ns != 0)
    return taken_values(layers.ints("layer_id"), np.flatnonzero(timed))


def _of_layers(table: Table, layers: IntArray) -> Table:
    """The rows of a table that are about these layers."""
    return table.take(np.isin(table.ints("layer_id"), layers))


def engine_headroom_table(sources: Sources, headroom: Table) -> Table:
    """The table `engine_headroom`: the layers of each engine together."""
    held: dict[int | None, list[Row]] = {}
    for row in headroom:
        held.setdefault(row.maybe_integer("engine"), []).append(row)
    weighs = dict(
        zip(
            sources.work.ints("layer_id").tolist(),
            sources.work.ints("weight_bytes").tolist(),
            strict=True,
        )
    )
    layers_of: dict[int | None, list[int]] = {}
    for layer in sources.layers:
        layers_of.setdefault(layer.maybe_integer("engine"), []).append(layer.integer("layer_id"))
    rows = []
    for engine, mine in sorted(held.items(), key=lambda one: (one[0] is None, one[0] or 0)):
        known = [row for row in mine if row["least_ns"] is not None]
        compared = [row for row in mine if row["reachable_ns"] is not None]
        weights = [
            weight
            for one in layers_of.get(engine, [])
            if (weight := weighs.get(one, MISSING)) != MISSING
        ]
        rows.append(
            {
                "engine": engine,
                "layers": len(mine),
                "time_ns": sum(row.integer("time_ns") for row in mine),
                "known_layers": len(known),
                "known_ns": sum(row.integer("time_ns") for row in known),
                "least_ns": sum(row.integer("least_ns") for row in known) if known else None,
                "headroom_ns": sum(row.integer("headroom_ns") for row in known) if known else None,
                "counted_layers": sum(row.maybe_text("least_from") == "counters" for row in known),
                "memory_ns": _sum(known, "memory_ns"),
                "compute_ns": _sum(known, "compute_ns"),
                "compared_ns": _sum(compared, "time_ns"),
                "reachable_ns": (
                    sum(
                        min(row.integer("reachable_ns"), row.integer("time_ns")) for row in compared
                    )
                    if compared
                    else None
                ),
                "weight_bytes": sum(weights) if any(weights) else None,
            }
        )
    return Table.of_rows(ENGINE_HEADROOM, rows)


def _sum(rows: Iterable[Row], name: str) -> int | None:
    known = [value for row in rows if (value := row.maybe_integer(name)) is not None]
    return sum(known) if known else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


@dataclass(frozen=True)
class _LongestKernel:
    """The longest kernel of a layer."""

    name: str
    blocks: int
    threads: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True)
class _Seen:
    """Everything known about one layer."""

    layer: Row
    time_ns: int
    work: Row | None
    roofline: Row | None
    kernel: _LongestKernel | None
    device: Device | None
    from_memory: int | None
    tensor_cores: str
    start_ns: int | None  # of the shortest kernel
    kept: float | None  # share of its bytes that are needed where it is fused with its neighbours
    shape: tuple[str, tuple[int, ...]] | None = None  # of its product, and which kind it is

    @property
    def needed(self) -> Needed:
        """What the layer needs according to the engine file."""
        if self.work is None:
            return Needed(None, None, None, None, "unknown", None)
        return needed_of(self.work)

    @property
    def does(self) -> str:
        """The layer's function."""
        return "" if self.work is None else self.work.text("does")

    @property
    def counted(self) -> Measurement:
        """The layer's hardware counters."""
        if self.roofline is None:
            return Measurement()
        tensor = self.roofline.maybe_real("tensor_percent")
        return Measurement(
            self.roofline.maybe_integer("dram_bytes"), None if tensor is None else tensor / 100
        )


def _row(seen: _Seen) -> dict[str, object]:
    found = LeastTime()
    shown = seen.work is not None and seen.does != "region"
    if seen.device is not None and (shown or seen.counted != Measurement()):
        found = least_time(
            seen.needed,
            seen.device,
            time_ns=seen.time_ns,
            from_memory=seen.from_memory,
            weight_bytes=None if seen.work is None else seen.work.maybe_integer("weight_bytes"),
            counted=seen.counted,
        )
    least_ns = found.least_ns
    figures = _figures(seen)
    good = _reachable(seen)
    reason = "unknown" if least_ns is None else _reason(seen, found, figures)
    if least_ns is not None and reason == "format-conversion":
        least_ns = 0
    elif least_ns is not None and reason == "not-fused":
        least_ns = round(least_ns * (seen.kept or 0.0))
    return {
        "layer_id": seen.layer.integer("layer_id"),
        "engine": seen.layer.maybe_integer("engine"),
        "time_ns": seen.time_ns,
        "least_ns": least_ns,
        "headroom_ns": None if least_ns is None else max(seen.time_ns - least_ns, 0),
        "least_from": found.source,
        "limit": found.limit,
        "memory_bytes": found.memory_bytes,
        "memory_ns": found.memory_ns,
        "cache_ns": found.cache_ns,
        "compute_ns": found.compute_ns,
        "reached": None if found.least_ns is None else found.least_ns / seen.time_ns,
        "shape": None if seen.shape is None else _shape_words(seen.shape[1]),
        "reachable_ns": None if good is None else good.ns,
        "reachable_shape": None if good is None else _shape_words(good.measured),
        "reason": reason,
        "kernels": seen.layer.maybe_integer("kernels"),
        "start_ns": seen.start_ns,
        "blocks": figures.blocks,
        "sms": figures.sms,
        "waves": None if seen.roofline is None else seen.roofline.maybe_real("waves"),
        "occupancy": figures.occupancy,
        "tile": figures.tile,
        "tile_reaches": figures.tile_reaches,
        "kernel_arch": figures.arch,
        "tensor_cores": seen.tensor_cores,
    }


def _reachable(seen: _Seen) -> Reachable | None:
    """The rate that the GPU was measured to reach on such a product."""
    precision = seen.needed.precision
    if seen.shape is None or seen.device is None or precision is None:
        return None
    return reachable(*seen.shape, precision, seen.device)


def _shape_words(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


@dataclass(frozen=True)
class _Figures:
    """Figures of a layer's longest kernel."""

    blocks: int | None = None
    sms: int | None = None
    occupancy: float | None = None  # share of an SM's warps that it has room for
    tile: str | None = None
    tile_reaches: float | None = None  # of the peak, as loading a tile takes so long
    arch: str | None = None
    older: bool = False


def _figures(seen: _Seen) -> _Figures:
    kernel, device = seen.kernel, seen.device
    if kernel is None or device is None:
        return _Figures()
    fields = decode(kernel.name).fields
    tile, arch = fields.get("tile"), fields.get("arch")
    return _Figures(
        blocks=kernel.blocks or None,
        sms=device.sm_count,
        occupancy=_occupancy(kernel, device),
        tile=tile if isinstance(tile, str) else None,
        tile_reaches=_tile_reaches(tile, seen.needed, device),
        arch=arch if isinstance(arch, str) else None,
        older=_is_older(arch, device),
    )


def _reason(seen: _Seen, found: LeastTime, figures: _Figures) -> str:
    """Why the layer takes longer than it must: something that changes the layer itself, a limit
    that it is close to, otherwise the reason that explains most.
    """
    reached = (found.least_ns or 0) / seen.time_ns
    bound = "compute-bound" if found.limit == "arithmetic" else "memory-bound"
    kernels = seen.layer.maybe_integer("kernels") or 1
    if seen.does in _CONVERSIONS:
        return "format-conversion"
    if seen.kept is not None and not seen.needed.macs:
        return "not-fused"
    if reached >= NEAR:
        return bound
    if seen.start_ns is not None and seen.time_ns <= _STARTS * seen.start_ns * kernels:
        return "launch-bound"
    if seen.does in _UNCOUNTED:
        return "other-work"
    explained = _explained_ns(seen, found, figures)
    most = max(explained, key=lambda one: explained[one])
    if explained[most] >= _EXPLAINS * (seen.time_ns - (found.least_ns or 0)):
        return most
    return bound if reached >= NEAR / 3 else "latency-bound"


def _explained_ns(seen: _Seen, found: LeastTime, figures: _Figures) -> dict[str, float]:
    """The most of the layer's time that each reason explains."""
    time_ns, compute_ns = float(seen.time_ns), float(found.compute_ns or 0)
    idle = {"few-blocks": 0.0, "last-wave": 0.0}
    waves = None if seen.roofline is None else seen.roofline.maybe_real("waves")
    if waves:
        idle["few-blocks" if waves < 1 else "last-wave"] = time_ns * (1 - waves / ceil(waves))
    if not seen.needed.macs:
        low = 0.0 if figures.occupancy is None else time_ns * (1 - figures.occupancy)
        return {**idle, "low-occupancy": low}
    on_cores = 0.0
    if seen.tensor_cores == "no" and seen.device is not None and _has_cores(seen):
        rate = seen.device.peak_flops_per_s(seen.needed.precision, tensor_cores=False)
        needs_ns = (seen.needed.flops or 0) / rate * 1e9 if rate else 0.0
        on_cores = max(min(needs_ns, time_ns) - (found.least_ns or 0), 0.0)
    return {
        "tensor-cores-idle": on_cores,
        **idle,
        "older-kernels": compute_ns * (1 / _OLDER_REACH - 1) if figures.older else 0.0,
        "small-tiles": compute_ns * (1 / (figures.tile_reaches or 1.0) - 1),
    }


def _has_cores(seen: _Seen) -> bool:
    """Whether the GPU has tensor cores for the type that the layer computes in."""
    return (
        seen.device is not None
        and seen.device.peak_flops_per_s(seen.needed.precision, tensor_cores=True) is not None
    )


def _occupancy(kernel: _LongestKernel, device: Device) -> float | None:
    if device.capability is None:
        return None
    limit = OCCUPANCY.get(device.capability)
    held = blocks_per_sm(device.capability, kernel.threads, kernel.registers, kernel.shared_bytes)
    if limit is None or held is None:
        return None
    return min(held * -(-kernel.threads // 32) * 32 / limit.threads, 1.0)


def _tile_reaches(tile: object, need: Needed, device: Device) -> float | None:
    """The largest share of the tensor cores' peak that such a tile can reach: for a x b results
    each step loads a + b numbers, and an SM receives 64 bytes a clock.
    """
    rates = TENSOR.get(device.capability) if device.capability else None
    size = _TYPE_BYTES.get(need.precision or "")
    sides = str(tile).split("x")[:2] if isinstance(tile, str) else []
    if rates is None or size is None or len(sides) < 2 or not all(map(str.isdigit, sides)):
        return None
    rate = rates.get("TF32" if need.precision == "FP32" else need.precision or "")
    a, b = map(int, sides)
    if not rate or not a or not b:
        return None
    return min(1.0, (2 * a * b / rate) / ((a + b) * size / _BYTES_PER_CLOCK))


def _is_older(arch: object, device: Device) -> bool:
    """Whether a kernel multiplies with instructions of an older architecture although this one has
    faster ones (wgmma of 9.0, tcgen05 of 10.x and 11.0).
    """
    if not isinstance(arch, str) or device.capability is None:
        return False
    digits = arch.removeprefix("sm").rstrip("af")
    return digits.isdigit() and device.capability[0] in (9, 10, 11) and int(digits) < 90


def _tensor_cores(precision: Table) -> dict[int, str]:
    """Whether the kernels of each layer's products use tensor cores, judged by most of
    their time.
    """
    most: dict[int, tuple[int, str]] = {}
    for row in precision:
        layer, time_ns = row.maybe_integer("layer_id"), row.maybe_integer("time_ns") or 0
        if layer is not None and row.text("work") in ("product", "unknown"):
            most[layer] = max(most.get(layer, (-1, "")), (time_ns, row.text("tensor_cores")))
    return {layer: cores for layer, (_, cores) in most.items()}


def _kernel(kernels: Table, row: int) -> _LongestKernel:
    def at(name: str) -> int:
        return max(int(kernels.ints(name)[row]), 0)

    return _LongestKernel(
        name=kernels.text("name")[row] or "",
        blocks=at("grid_x") * at("grid_y") * at("grid_z"),
        threads=at("block_x") * at("block_y") * at("block_z"),
        registers=at("registers"),
        shared_bytes=at("static_shared_bytes") + at("dynamic_shared_bytes"),
    )


def _shortest_ns(kernel_totals: Table) -> int | None:
    """The time of the shortest kernels of the trace, if they hardly do more than start and end."""
    shortest = min(
        (row.integer("median_ns") for row in kernel_totals if row.integer("median_ns") > 0),
        default=None,
    )
    return shortest if shortest is not None and shortest <= _LONGEST_START_NS else None


def _from_memory(
    sources: Sources, machines: Mapping[int, Row], timed: IntArray
) -> dict[int, int | None]:
    """How many bytes of each of these layers come from device memory; if GPUs differ, on
    the first.
    """
    machine = next(iter(machines.values()), None)
    device = None if machine is None else device_of(machine)
    held = cache_holds(
        None if machine is None else machine.maybe_integer("l2_bytes"),
        None if device is None else device.capability,
    )
    ids = sources.work.ints("layer_id")
    moved = (maybe(sources.work.ints(name)) for name in ("bytes_in", "bytes_out", "weight_bytes"))
    work = dict(zip(ids.tolist(), map(LayerBytes, *moved), strict=True))
    tensors = _uses_shared(sources.tensors, timed)
    layers = sources.layers.take(np.isin(sources.layers.ints("layer_id"), ids))
    engines: dict[tuple[int, int], list[int]] = {}
    for engine, profile, layer in zip(
        *(layers.ints(name).tolist() for name in ("engine", "optimization_profile", "layer_id")),
        strict=True,
    ):
        engines.setdefault((engine, profile), []).append(layer)
    found: dict[int, int | None] = {}
    asked = frozenset(timed.tolist())
    for mine in engines.values():
        if not asked.isdisjoint(mine):
            found |= bytes_from_memory(mine, work, tensors, held, asked=asked)
    return found


def _uses_shared(tensors: Table, layers: IntArray) -> dict[int, list[TensorUse]]:
    """How many bytes each layer reads and writes of the tensors that these layers use."""
    names = tensors.text("name")
    about = np.zeros(len(names.values) + 1, np.bool_)  # code -1 is the last one
    about[names.codes[np.isin(tensors.ints("layer_id"), layers)]] = True
    shared = tensors.take(about[names.codes])
    found: dict[int, list[TensorUse]] = {}
    for layer_id, name, direction, size in zip(
        shared.ints("layer_id").tolist(),
        shared.text("name").list(),
        shared.text("direction").list(),
        maybe(shared.ints("bytes")),
        strict=True,
    ):
        found.setdefault(layer_id, []).append(TensorUse(str(name), str(direction), size))
    return found


def product_shapes(sources: Sources, layers: IntArray) -> dict[int, tuple[str, tuple[int, ...]]]:
    """Each product's shape as a matrix product, and that of fused attention; none where the file
    does not show it.
    """
    kinds = {
        row.integer("layer_id"): row.text("kind") for row in _of_layers(sources.layers, layers)
    }
    results: dict[int, int] = {}
    for row in _of_layers(sources.tensors, layers):
        dimensions = (row.maybe_text("dimensions") or "").split("x")
        if row.text("direction") == "out" and all(map(str.isdigit, dimensions)):
            results.setdefault(row.integer("layer_id"), prod(map(int, dimensions)))
    found: dict[int, tuple[str, tuple[int, ...]]] = {}
    for row in _of_layers(sources.work, layers):
        layer, macs = row.integer("layer_id"), row.maybe_integer("macs")
        columns, size = row.maybe_integer("channels_out"), results.get(layer)
        grouped = (row.maybe_integer("groups") or 1) > 1
        if row.text("does") != "product" or grouped or not (macs and columns and size):
            continue
        if size % columns or macs % size:
            continue
        kind = "convolution" if kinds.get(layer) == "convolution" else "product"
        found[layer] = kind, (size // columns, columns, macs // size)
    for row in sources.attention:
        sides = tuple(
            row.maybe_integer(name) for name in ("heads", "query_length", "key_length", "head_size")
        )
        if row.flag("fused") and all(sides):
            shape = tuple(side for side in sides if side is not None)
            found[row.integer("softmax_layer")] = "attention", shape
    return found


def _kept_if_fused(sources: Sources) -> dict[int, float]:
    """The share of their bytes that the layers would still move if a single kernel
    performed them.
    """
    work = {row.integer("layer_id"): row for row in sources.work}
    found: dict[int, float] = {}
    members: dict[int, list[Row]] = {}
    for row in sources.chain_layers:
        members.setdefault(row.integer("chain_id"), []).append(row)
    for chain in sources.chains:
        mine = members.get(chain.integer("chain_id"), [])
        layers = [row.integer("layer_id") for row in mine]
        whole = _moved(work, layers)
        saved = chain.maybe_integer("saved_bytes")
        share = 1.0 if not whole or saved is None else max(1 - saved / whole, 0.0)
        for row in mine:
            if row.text("role") != "product":
                layer = row.integer("layer_id")
                found[layer] = min(found.get(layer, 1.0), share)
    split = {row.integer("block_id") for row in sources.attention if not row.flag("fused")}
    for row in sources.attention_layers:
        if row.integer("block_id") in split and row.text("role") in _FUSED_AWAY:
            found[row.integer("layer_id")] = 0.0
    return found


def _moved(work: Mapping[int, Row], layers: Sequence[int]) -> int:
    return sum(work[one].maybe_integer("bytes") or 0 for one in layers if one in work)
