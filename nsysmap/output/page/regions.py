"""The parts of regions as the page's script adds them up, over all steady-state inferences, with
the kernels of each.
"""

from __future__ import annotations

from nsysmap.core.records import dataclass
from nsysmap.core.schema import Tables
from nsysmap.core.table import IntArray
from nsysmap.names.decode import decode, summary
from nsysmap.output.page.unit import Unit
from nsysmap.text.terminal import escaped
from nsysmap.timing.region_times import parts_of_kernels

KNOWN_FROM = {
    "trace": "the trace",
    "engine": "the engine file",
    "onnx": "the ONNX model",
    "kernel": "the kernel's name",
}
"""The evidence for the parts of a region, by `told_by`."""


@dataclass(frozen=True)
class Regions:
    """The regions as JSON values, the most time first, and for each kernel the number of its part,
    MISSING outside regions.
    """

    found: list[dict[str, object]]
    part: IntArray


def regions_of(tables: Tables, unit: Unit) -> Regions:
    """The regions of a trace.  A part that ran only outside the steady-state inferences has neither
    time nor kernels.
    """
    part, labels, first = parts_of_kernels(tables.kernels, tables.layers)
    names = tables.kernels.text("name")
    told = {
        (
            row.maybe_integer("engine"),
            row.text("region"),
            row.text("told_by"),
            row.text("part"),
        ): row
        for row in tables.region_parts
    }
    regions: dict[tuple[int | None, str], list[dict[str, object]]] = {}
    spent: dict[tuple[int | None, str], int] = {}
    for number, (label, kernel) in enumerate(zip(labels, first.tolist(), strict=True)):
        key, row = label[:2], told.get(label)
        time, kernels, share, what = 0, 0.0, 0.0, summary(decode(names[kernel] or ""))
        if row is not None:
            mean, share, what = (
                row.maybe_integer("mean_ns"),
                row.real("share_of_region_time"),
                row.text("summary"),
            )
            time = mean if mean is not None else row.integer("time_ns")
            # of the part's engine
            inferences = max(1, round(row.integer("time_ns") / time)) if time else 1
            time, kernels = (
                unit.of(time, key[0]),
                row.integer("kernels") / (inferences / unit.runs.get(key[0], 1)),
            )
        spent[key] = spent.get(key, 0) + time
        regions.setdefault(key, []).append(
            {
                "number": number,
                "part": escaped(label[3].removeprefix("$$myelin$$")),
                "told_by": KNOWN_FROM[label[2]],
                "summary": escaped(what),
                "kernels": round(kernels, 1),
                "time": time,
                "share": share,
            }
        )
    named = sorted(regions, key=lambda key: -spent[key])
    return Regions(
        [
            {"name": escaped(key[1]), "engine": key[0], "time": spent[key], "parts": regions[key]}
            for key in named
        ],
        part,
    )
