"""The report's part about precision: time by data type and tensor cores, as cells and sentences for
every writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nsysmap.core.table import Row
from nsysmap.text.units import counted, microseconds, percent, rounded_share
from nsysmap.timing.precision import Total, totals

Rows = Sequence[Row]
"""Rows of the table `precision`."""

WORK = {
    "product": "matrix products",
    "arithmetic": "other arithmetic",
    "convert": "conversion between types",
    "move": "moves data",
    "unknown": "cannot tell",
}
"""The words for each kind of work (schema.PRECISION)."""

TENSOR_CORES = {"yes": "used", "no": "not used", "unknown": "cannot tell"}
"""The meaning of the table's answers about tensor cores; "unknown" is an answer of its own."""

TYPES_HEADER = ("type", "tensor cores", "work")
REGIONS_HEADER = ("share", "µs", "on TC", "not on TC", "cannot tell", "convert", "types", "region")
OUTSIDE = "outside Myelin"
_FIGURES = ("kernels", "time_ns", "half_saved_ns", "mean_ns")
_MOST_TYPES = 4  # that one cell names


def heading(rows: Rows) -> str:
    """The section's heading, which says what its times are."""
    measured = any(row["mean_ns"] is not None for row in rows)
    from_trace = any(row["kernels"] is not None for row in rows)
    if not any(row["time_ns"] is not None for row in rows):
        return "Precision (from the engine file; no times were given)"
    if not from_trace:
        return "Precision (times of the profile, tactics of the engine file)"
    return (
        f"Precision ({'mean per {:inference}' if measured else 'total over the trace'}; share of"
        " kernel time)"
    )


def type_cells(rows: Rows) -> list[tuple[str, ...]]:
    """Share, µs, layers, data type, tensor cores and work, the most time first."""
    found = totals(rows, "work", "datatype", "to_type", "tensor_cores")
    whole = _time(found)
    return [
        (
            _share(one, whole),
            _microseconds(one),
            f"{one.layers:,}" if one.layers else "–",
            *_words(one.key),
        )
        for one in found
    ]


def region_cells(rows: Rows) -> list[tuple[str, ...]]:
    """One line per Myelin region and one for everything else: share, µs, and shares of its own time
    by tensor cores, conversions, types.
    """
    regions = totals(rows, "region")
    if all(one.key == (None,) for one in regions):
        return []
    whole = _time(regions)
    cells = []
    for one in regions:
        mine = [row for row in rows if row["region"] == one.key[0]]
        of = one.time_ns or 0
        cores = {str(part.key[0]): part.time_ns or 0 for part in totals(mine, "tensor_cores")}
        converting = sum(
            part.time_ns or 0 for part in totals(mine, "work") if part.key == ("convert",)
        )
        cells.append(
            (
                _share(one, whole),
                _microseconds(one),
                *(percent(cores.get(answer, 0), of) for answer in TENSOR_CORES),
                percent(converting, of),
                _types(mine, of),
                OUTSIDE if one.key[0] is None else str(one.key[0]),
            )
        )
    return cells


def layer_cells(rows: Rows) -> list[tuple[int, tuple[str, ...]]]:
    """Layer id, share, µs, data type, tensor cores and work, in the order of the layers; several
    rows if a layer's kernels differ.
    """
    found = totals(
        (row for row in rows if row["layer_id"] is not None),
        "layer_id",
        "work",
        "datatype",
        "to_type",
        "tensor_cores",
    )
    whole = sum(row.maybe_integer("time_ns") or 0 for row in rows)
    cells = [
        (
            layer_id,
            one,
            (_share(one, whole), _microseconds(one), *_words(one.key[1:])[:2], str(one.key[1])),
        )
        for one in found
        if isinstance(layer_id := one.key[0], int)
    ]
    return [
        (layer_id, shown)
        for layer_id, one, shown in sorted(
            cells, key=lambda cell: (cell[0], -(cell[1].time_ns or 0))
        )
    ]


def sentences(rows: Rows) -> list[str]:
    """How much of the time tensor cores are used, are not used or may be used, and what conversions
    between types cost.
    """
    timed = any(row["time_ns"] for row in rows)
    cores = {str(one.key[0]): one for one in totals(rows, "tensor_cores")}
    works = {str(one.key[0]): one for one in totals(rows, "work")}
    products = {
        str(one.key[1]): one
        for one in totals(rows, "work", "tensor_cores")
        if one.key[0] == "product"
    }
    if not timed:
        told = ", ".join(
            f"{words} in {counted(cores[answer].layers, 'layer')}"
            for answer, words in TENSOR_CORES.items()
            if answer in cores
        )
        return [f"Tensor cores: {told}."]
    whole = _time(cores.values())

    def part(found: Mapping[str, Total], key: str) -> str:
        return percent((found[key].time_ns or 0) if key in found else 0, whole)

    told = ", ".join(f"{words} in {part(cores, answer)}" for answer, words in TENSOR_CORES.items())
    lines = [
        f"Tensor cores: {told} of the time; matrix products without them: {part(products, 'no')}."
    ]
    if "convert" in works:
        count = f" ({counted(works['convert'].layers, 'layer')})" if works["convert"].layers else ""
        lines.append(f"Conversions between types: {part(works, 'convert')} of the time{count}.")
    return lines


def by_engine(rows: Rows) -> list[tuple[int | None, Rows]]:
    """The rows of each engine, in the order of the engine files; rows without an engine file
    last.
    """
    engines = {row.maybe_integer("engine") for row in rows}
    known = sorted(engine for engine in engines if engine is not None)
    found: list[tuple[int | None, Rows]] = [
        (engine, [row for row in rows if row["engine"] == engine]) for engine in known
    ]
    return found + (
        [(None, [row for row in rows if row["engine"] is None])] if None in engines else []
    )


def precision_json(
    rows: Rows, names: Mapping[int, tuple[int | None, str, str]]
) -> dict[str, object]:
    """Totals, totals by region, and every layer's rows, as JSON values; `names` has the index, name
    and title of each layer id.
    """
    work = ("work", "datatype", "to_type", "tensor_cores")
    return {
        "totals": [_total_json(one, ("engine", *work)) for one in totals(rows, "engine", *work)],
        "regions": [
            _total_json(one, ("engine", "region", *work))
            for one in totals(rows, "engine", "region", *work)
        ],
        "layers": [
            {
                "engine": row["engine"],
                "index": names[layer_id][0],
                "name": names[layer_id][1],
                "title": names[layer_id][2],
                **{name: row[name] for name in ("region", *work, "told_by", *_FIGURES)},
                "share_of_kernel_time": _share_json(row.maybe_real("share_of_kernel_time")),
            }
            for row in rows
            if (layer_id := row.maybe_integer("layer_id")) is not None
        ],
    }


def _total_json(one: Total, columns: Sequence[str]) -> dict[str, object]:
    figures = {
        "layers": one.layers,
        "kernels": one.kernels,
        "time_ns": one.time_ns,
        "mean_ns": one.mean_ns,
    }
    return {
        **dict(zip(columns, one.key, strict=True)),
        **figures,
        "share_of_kernel_time": _share_json(one.share),
    }


def _share_json(share: float | None) -> float | None:
    return None if share is None else rounded_share(share)


def _words(key: Sequence[object]) -> tuple[str, str, str]:
    """Data type, tensor cores and work in words."""
    work, datatype, to_type, cores = key
    kept = str(datatype) if datatype is not None else "cannot tell"
    if work == "convert" and (datatype, to_type) != (None, None):
        kept = f"{datatype or '?'} → {to_type or '?'}"
    return kept, TENSOR_CORES[str(cores)], WORK[str(work)]


def _types(rows: Rows, whole: int) -> str:
    """The data types of the work with a known one, with their shares."""
    found: dict[str, int] = {}
    for one in totals(rows, "work", "datatype"):
        word = "converting" if one.key[0] == "convert" else str(one.key[1] or "cannot tell")
        found[word] = found.get(word, 0) + (one.time_ns or 0)
    ordered = [
        word
        for word in sorted(found, key=lambda word: (-found[word], word))
        if word != "converting"
    ]
    words = [f"{word} {percent(found[word], whole, 0)}" if whole else word for word in ordered]
    return ", ".join(words[:_MOST_TYPES]) + (", …" if len(words) > _MOST_TYPES else "")


def _time(found: Iterable[Total]) -> int:
    return sum(one.time_ns or 0 for one in found)


def _share(one: Total, whole: int) -> str:
    return "–" if one.time_ns is None else percent(one.time_ns, whole)


def _microseconds(one: Total) -> str:
    return microseconds(one.mean_ns if one.mean_ns is not None else one.time_ns)
