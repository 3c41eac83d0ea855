"""Finds the data types that kernel time is spent in, whether tensor cores are used, and what
conversions between types cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import PRECISION
from nsysmap.core.table import Row, Table, sum_of
from nsysmap.inputs.engine.model import Engine, Layer, numbered_engines
from nsysmap.names.decode import KernelName, decode, matches_tactic, split_layer_name
from nsysmap.network.operations import operations, quantizes
from nsysmap.timing.half_precision import saved_share
from nsysmap.timing.peak_rates import Capability

_PRODUCTS = frozenset({"gemm", "gemv", "convolution", "deconvolution", "attention"})
_MOVES = frozenset(
    {"reformat", "copy", "shuffle", "slice", "concat", "gather", "scatter", "transpose"}
)
_UNTOLD = frozenset({"myelin_kernel", "foreign_node", "plugin", "other", "unknown", "loop"})
"""Kinds of layers that do not show whether they contain a matrix product."""
_NO_WORK = frozenset({"shape", "signal", "noop", "constant"})
_QUANTIZES = ("int8-quantize", "fp8-quantize", "fp4-quantize", "int8-dequantize", "dequantize")


@dataclass(frozen=True)
class Use:
    """What one kernel of a layer does, and in which type; see schema.PRECISION."""

    work: str
    datatype: str | None
    told_by: str | None
    to_type: str | None
    tensor_cores: str


def precision_table(
    kernel_time: Table,
    layers: Table,
    engines: Sequence[Engine],
    gpu: Capability | None = None,
) -> Table:
    """The table `precision` of a trace, from its `kernel_time`; both add up to the same time.

    ``gpu`` is the compute capability of the GPU that ran the kernels, None where it is unknown.
    """
    spent_rows = list(kernel_time)
    spending = {row.maybe_integer("layer_id") for row in spent_rows}
    described = {
        first + layer.index: layer
        for _, first, engine in numbered_engines(engines)
        for layer in _as_written(
            engine, [one for one in engine.layers if first + one.index in spending]
        )
    }
    mine_only = np.isin(layers.ints("layer_id"), kernel_time.ints("layer_id"))
    known = {row.integer("layer_id"): row for row in layers.take(mine_only)}
    names: dict[int | None, dict[str, Use]] = {}
    for spent in spent_rows:
        names.setdefault(spent.maybe_integer("layer_id"), {})[spent.text("name")] = Use(
            "unknown", None, None, None, "unknown"
        )
    for layer_id, found in names.items():
        layer = described.get(-1 if layer_id is None else layer_id) or _undescribed(
            _none_or(known, layer_id)
        )
        found.update(uses_of(list(found), layer))
    groups: dict[tuple[int | None, int | None, Use], list[Row]] = {}
    for spent in spent_rows:
        layer_id = spent.maybe_integer("layer_id")
        groups.setdefault(
            (spent.maybe_integer("engine"), layer_id, names[layer_id][spent.text("name")]), []
        ).append(spent)
    rows = []
    for (engine, layer_id, use), mine in groups.items():
        layer_row = _none_or(known, layer_id)
        time_ns, runs = (
            sum(row.integer("time_ns") for row in mine),
            mine[-1].maybe_integer("inferences"),
        )
        rows.append(
            {
                "layer_id": layer_id,
                "engine": engine,
                "region": (
                    None
                    if layer_row is None
                    else region_of(
                        layer_row.text("name"),
                        layer_row.text("kind"),
                        layer_row.maybe_integer("region"),
                    )
                ),
                **vars(use),
                "half_saved_ns": _saved_ns(use, mine, gpu),
                "kernels": sum(row.integer("kernels") for row in mine),
                "time_ns": time_ns,
                "mean_ns": None if runs is None else round(time_ns / runs),
                "share_of_kernel_time": sum(row.real("share_of_kernel_time") for row in mine),
            }
        )
    return Table.of_rows(PRECISION, rows)


def _saved_ns(use: Use, spent: Iterable[Row], gpu: Capability | None) -> int | None:
    """How much of the time of these kernels half precision can save at most."""
    shares = [(row.integer("time_ns"), _half_share(use, row.text("name"), gpu)) for row in spent]
    known = [time_ns * share for time_ns, share in shares if share is not None]
    return round(sum(known)) if known else None


def _half_share(use: Use, name: str | None, gpu: Capability | None) -> float | None:
    return saved_share(
        work=use.work, datatype=use.datatype, tensor_cores=use.tensor_cores, name=name, gpu=gpu
    )


def _none_or(known: Mapping[int, Row], layer_id: int | None) -> Row | None:
    return None if layer_id is None else known.get(layer_id)


def engine_precision_table(engine: Engine) -> Table:
    """The table `precision` of an engine file alone: one row per layer, by its tactic; times are
    those of `--exportProfile`, if given.
    """
    times = engine.trtexec_ns or (None,) * len(engine.layers)
    total = sum(time or 0 for time in times)
    rows: list[dict[str, object]] = []
    for layer, time in zip(_as_written(engine, engine.layers), times, strict=True):
        if layer.kind in _NO_WORK and not time:
            continue
        region = region_of(layer.name, layer.kind, layer.region)
        use = use_of(layer.tactic, layer)
        share = _half_share(use, layer.tactic, None)
        row = {"layer_id": layer.index, "engine": 0, "region": region, **vars(use)}
        rows.append(
            {
                **row,
                "half_saved_ns": None if time is None or share is None else round(time * share),
                "time_ns": time,
                "mean_ns": time,
                "share_of_kernel_time": time / total if time is not None and total else None,
            }
        )
    return Table.of_rows(PRECISION, rows)


def _as_written(engine: Engine, of: Sequence[Layer]) -> list[Layer]:
    """The layers of an engine with the types that are really read: casts that show the same type on
    both sides read what the previous layer wrote.
    """
    layers = {layer.index: layer for layer in of}
    casts = {layer.index for layer in of if operations(layer).cast}
    for source, layer, tensor in engine.links if casts else ():
        if not (
            layer.index in casts
            and layer.outputs
            and tensor == layer.inputs[0]
            and tensor.datatype == layer.outputs[0].datatype
        ):
            continue
        written = next(
            (output.datatype for output in source.outputs if output.name == tensor.name), None
        )
        layers[layer.index] = replace(
            layer, inputs=(replace(tensor, datatype=written), *layer.inputs[1:])
        )
    return list(layers.values())


def region_of(name: str, kind: str, region: int | None) -> str | None:
    """The Myelin region of a layer with that name and kind, with the engine file's number; None
    outside regions.
    """
    number = region if region is not None else split_layer_name(name).region
    if number is not None:
        return f"myl{number}"
    return name if kind == "foreign_node" else None


def uses_of(names: Sequence[str], layer: Layer | None) -> dict[str, Use]:
    """What each kernel of a layer does, by name.

    If by their names all of them only move data although the layer computes, their names do not
    show what computes.
    """
    uses = {name: use_of(name, layer) for name in names}
    if (
        layer is not None
        and layer.type is not None
        and all(use.work in ("convert", "move") for use in uses.values())
    ):
        work = _work_by_layer(layer)
        if work in ("product", "arithmetic"):
            cores = "unknown" if work == "product" else "no"
            return dict.fromkeys(
                names,
                Use(work, layer.precision, "engine" if layer.precision else None, None, cores),
            )
    return uses


def use_of(name: str | None, layer: Layer | None) -> Use:
    """What a kernel of that name does for a layer. Facts that neither shows are None or unknown,
    never guessed.
    """
    decoded = decode(name) if name else None
    work = _work_by_name(decoded) or _work_by_layer(layer)
    source = layer.inputs[0].datatype if layer is not None and layer.inputs else None
    target = layer.outputs[0].datatype if layer is not None and layer.outputs else None
    if work in ("convert", "move"):
        return _moving(decoded, layer, (source, target))
    datatype, told_by = _field(decoded, "compute_type") or _field(decoded, "input_type"), "kernel"
    if datatype is None:
        datatype, told_by = None if layer is None else layer.precision, "engine"
    cores = _tensor_cores(decoded, layer, work)
    if datatype == "FP32" and told_by == "engine" and cores == "yes":
        datatype = "TF32"  # tensor cores do not multiply FP32
    return Use(work, datatype, told_by if datatype else None, None, cores)


def _moving(
    decoded: KernelName | None, layer: Layer | None, types: tuple[str | None, str | None]
) -> Use:
    """A conversion or a copy: the types are those of the layer's tensors if the layer does nothing
    else, otherwise those in the name.
    """
    source, target = types
    told_by = "engine"
    alone = layer is not None and _only_moves(layer)
    if not alone or source is None or target is None:
        read, written = _field(decoded, "input_type"), _field(decoded, "output_type")
        if read is not None or not alone:
            source, target, told_by = read, written, "kernel"
    cast = (
        decoded is not None
        and bool(decoded.ops)
        and any(op.cls in ("cast", "quantize") for op in decoded.ops)
    )
    cast = cast or (layer is not None and alone and layer.kind in ("cast", "quantize"))
    if cast and source is not None and source == target:
        # the name says that the type changes, so what it reads is not what the file shows
        source = None
    converts = source != target if source is not None and target is not None else cast
    told = told_by if source is not None else None
    return (
        Use("convert", source, told, target, "no")
        if converts
        else Use("move", source, told, None, "no")
    )


def _only_moves(layer: Layer) -> bool:
    """Whether the layer does nothing but convert, quantise or move data."""
    done = operations(layer)
    return (
        layer.kind in _MOVES | {"cast", "quantize"}
        or done.cast
        or done.movement
        or quantizes(layer) is not None
    )


def _work_by_name(decoded: KernelName | None) -> str | None:
    """The work that a kernel's or tactic's name shows; None if it shows none."""
    if decoded is None:
        return None
    operation = decoded.fields.get("operation")
    classes = {op.cls for op in decoded.ops}
    if operation in _PRODUCTS or classes & {"gemm", "convolution", "attention"}:
        return "product"
    if classes:
        if classes <= {"data movement"}:
            return "move"
        if classes <= {"data movement", "cast", "quantize"} or _quantizes(decoded):
            return "convert"
        return None if classes <= {"unknown", "cut", "data movement"} else "arithmetic"
    if operation in _MOVES or operation == "cast":
        return "move" if operation != "cast" else "convert"
    return None if operation in (None, "unknown", "myelin_kernel") else "arithmetic"


def _quantizes(decoded: KernelName) -> bool:
    """Whether every operation but data movement is part of a quantisation."""
    inside = {
        place
        for pattern in decoded.patterns
        if pattern.name.startswith(_QUANTIZES)
        for place in range(pattern.first, pattern.last + 1)
    }
    return bool(inside) and all(
        place in inside or op.cls == "data movement" for place, op in enumerate(decoded.ops)
    )


def _work_by_layer(layer: Layer | None) -> str:
    if layer is None:
        return "unknown"
    done = operations(layer)
    if layer.kind in _PRODUCTS or done.product:
        return "product"
    if layer.kind in ("cast", "quantize") or done.cast:
        return "convert"
    if layer.kind in _MOVES or done.movement:
        return "move"
    return "unknown" if layer.kind in _UNTOLD and (not done.ops or done.cut) else "arithmetic"


def _tensor_cores(decoded: KernelName | None, layer: Layer | None, work: str) -> str:
    """Taken from the kernel's name, otherwise from the layer's tactic if it is that of the kernel.
    Work without a product does not use them.
    """
    if decoded is not None and decoded.tensor_cores != "unknown":
        return decoded.tensor_cores
    if (
        decoded is not None
        and layer is not None
        and layer.tactic
        and matches_tactic(decoded.name, layer.tactic)
    ):
        told = decode(layer.tactic).tensor_cores
        if told != "unknown":
            return told
    return "no" if work == "arithmetic" else "unknown"


def _field(decoded: KernelName | None, name: str) -> str | None:
    value = None if decoded is None else decoded.fields.get(name)
    return str(value) if value else None


def _undescribed(row: Row | None) -> Layer | None:
    """A layer that only the trace's ranges name."""
    return None if row is None else Layer(index=0, name=row.text("name"), kind=row.text("kind"))


@dataclass(frozen=True)
class Total:
    """The sum of rows of the table `precision`. `layers` is the number of distinct layers; figures
    that no row has are None.
    """

    key: tuple[str | int | None, ...]
    layers: int
    kernels: int | None
    time_ns: int | None
    mean_ns: int | None
    share: float | None


def totals(rows: Iterable[Row], *columns: str) -> list[Total]:
    """The rows summed by these columns, the most time first, then the most layers."""
    groups: dict[tuple[str | int | None, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_key(row[column]) for column in columns), []).append(row)
    found = [
        Total(
            key=key,
            layers=len({row["layer_id"] for row in group if row["layer_id"] is not None}),
            kernels=sum_of(group, "kernels"),
            time_ns=sum_of(group, "time_ns"),
            mean_ns=sum_of(group, "mean_ns"),
            share=_share(group),
        )
        for key, group in groups.items()
    ]
    return sorted(
        found,
        key=lambda one: (
            -(one.time_ns or 0),
            -one.layers,
            tuple(str(part or "~") for part in one.key),
        ),
    )


def _key(value: object) -> str | int | None:
    return value if isinstance(value, (str, int)) else None


def _share(rows: Iterable[Row]) -> float | None:
    known = [share for row in rows if (share := row.maybe_real("share_of_kernel_time")) is not None]
    return sum(known) if known else None
