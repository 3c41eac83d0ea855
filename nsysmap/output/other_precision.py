"""Lays out the output of `nsysmap what-if --precision`: layer times in another data type, at best
and as measured pairs of engines suggest.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import Row, Table, sum_of
from nsysmap.network.titles import called
from nsysmap.text.lines import rendered, table
from nsysmap.text.terminal import escaped
from nsysmap.text.units import microseconds, range_of
from nsysmap.timing.layer_sums import common_name, unnumbered
from nsysmap.whatif.selection import check_named

WIDTH = 100  # columns
_ENDS = ("time_ns", "best_ns", "low_ns", "likely_ns", "high_ns")


def chosen_rows(changes: Table, layers: Table, to_type: str, names: Sequence[str]) -> list[Row]:
    """The rows of `precision_changes` in that type, of the layers with one of these names, titles
    or ONNX nodes (a name that ends in * is a prefix), or of all.

    Raises NsysmapError for a name that no layer has, and where no layer can be told in that type.
    """
    columns = [layers.text(name) for name in ("name", "title", "onnx")]
    check_named([one for one in names if not _of_node(layers, one)], columns[:2])
    known = {row.integer("layer_id"): row for row in layers}
    rows = [
        row
        for row in changes
        if row.text("to_type") == to_type
        and (not names or _named(known[row.integer("layer_id")], names))
    ]
    if not rows:
        raise NsysmapError(
            f"--precision {to_type}",
            "none of these layers can be told in that type",
            "FP16 and BF16 are told of layers in FP32, FP8 and INT8 of products in FP16 or BF16,"
            " where the GPU's tensor cores know the type and the engine file shows types",
        )
    return rows


def _named(layer: Row, names: Sequence[str]) -> bool:
    held = [layer.text("name"), called(layer), *_nodes(layer)]
    return any(
        one.startswith(name[:-1]) if name.endswith("*") else one == name
        for name in names
        for one in held
    )


def _nodes(layer: Row) -> list[str]:
    return [one.strip() for one in (layer.maybe_text("onnx") or "").split(",")]


def _of_node(layers: Table, name: str) -> bool:
    """Whether an ONNX node of a layer has this name."""
    return any(_named(row, [name]) for row in layers)


def precision_json(
    rows: Sequence[Row], layers: Table, to_type: str, source: str
) -> dict[str, object]:
    """The rows and their sums as one JSON object; times in nanoseconds per inference."""
    known = {row.integer("layer_id"): row for row in layers}
    return {
        "source": source,
        "to_type": to_type,
        "layers": [
            {**row.values(), "layer": called(known[row.integer("layer_id")])} for row in rows
        ],
        "total": {end: _total(rows, end) for end in _ENDS},
        "kernels_ns": sum(row.maybe_integer("time_ns") or 0 for row in layers),
    }


def precision_text(rows: Sequence[Row], layers: Table, to_type: str, source: str) -> str:
    """The same for people: repeated layers as one, the most time first."""
    known = {row.integer("layer_id"): row for row in layers}
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(unnumbered(called(known[row.integer("layer_id")])), []).append(row)
    groups = sorted(alike.values(), key=lambda mine: -(sum_of(mine, "time_ns") or 0))
    cells = [
        (
            *_figures(mine),
            "/".join(dict.fromkeys(row.text("gains_by") for row in mine)),
            f"{len(mine)}",
            escaped(common_name([called(known[row.integer("layer_id")]) for row in mine])),
        )
        for mine in groups
    ]
    cells.append((*_figures(rows), "", f"{len(rows)}", "all of these"))
    from_types = "/".join(dict.fromkeys(row.text("from_type") for row in rows))
    whole = sum(row.maybe_integer("time_ns") or 0 for row in layers)
    lines = [
        f"{source}: layers in {to_type} instead of {from_types}, kernel time in µs per inference"
        f" (of {microseconds(whole)} in all)",
        "",
    ]
    header = ("now", "at best", "likely", "gains by", "layers", "layer")
    lines += rendered(table(header, cells, WIDTH, "rrrlrn"), colour=False).splitlines()
    lines += ["", *_assumes(rows, to_type)]
    return "\n".join(lines)


def _figures(rows: Sequence[Row]) -> tuple[str, str, str]:
    now, best, low, likely, high = (_total(rows, end) for end in _ENDS)
    told = (
        "unknown"
        if likely is None or low is None or high is None
        else range_of(likely, low, high).alone
        if low == high
        else str(range_of(likely, low, high))
    )
    return microseconds(now), microseconds(best), told


def _total(rows: Sequence[Row], name: str) -> int | None:
    """The sum; None where one has no value."""
    values = [row.maybe_integer(name) for row in rows]
    known = [one for one in values if one is not None]
    return sum(known) if len(known) == len(values) else None


def _assumes(rows: Sequence[Row], to_type: str) -> list[str]:
    told = [
        "At best, what a layer comes closest to shrinks as the type does: bytes by its size,"
        " products by the peak rates.",
    ]
    if all(row["likely_ns"] is None for row in rows):
        return [
            *told,
            f"No pair of engines was measured in {to_type}: how likely that is, is unknown.",
        ]
    return [*told, "The range is that of measured pairs of engines (docs/headroom.md)."]
