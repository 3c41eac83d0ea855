"""Why INT8 or FP8 is not faster, as values: what an engine uses it for, and what the rest of its
time is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsysmap.answer.model import EightBitPart, EightBits
from nsysmap.core.table import Row, Table
from nsysmap.network.titles import called
from nsysmap.timing.layer_sums import common_name, unnumbered


def eight_bits_of(tables: Mapping[str, Table]) -> tuple[EightBits, ...]:
    """How each engine with products in 8 bits uses these types; times per inference of
    the engine.
    """
    layers = {row.integer("layer_id"): row for row in tables["layers"]}
    reached = {
        row.integer("layer_id"): row.maybe_real("roofline_fraction") for row in tables["roofline"]
    }
    engines: dict[int | None, list[Row]] = {}
    for row in tables["eight_bits"]:
        engines.setdefault(row.maybe_integer("engine"), []).append(row)
    found = []
    for engine, rows in engines.items():
        groups: dict[tuple[str, str | None], list[Row]] = {}
        for row in rows:
            groups.setdefault((row.text("part"), row.maybe_text("why")), []).append(row)
        older = [row for row in rows if row.maybe_text("kernel_arch")]
        products = groups.get(("product", None), [])
        found.append(
            EightBits(
                engine=engine,
                type=rows[0].text("eight_bit_type"),
                time_ns=_time(rows),
                parts=tuple(
                    EightBitPart(
                        part=part,
                        why=why,
                        layers=len(mine),
                        time_ns=_time(mine),
                        datatypes=tuple(
                            sorted({one for row in mine if (one := row.maybe_text("datatype"))})
                        ),
                        titles=_titles(mine, layers),
                    )
                    for (part, why), mine in sorted(groups.items(), key=lambda one: -_time(one[1]))
                ),
                older_products=len(older),
                older_ns=_time(older),
                older_arch=older[0].maybe_text("kernel_arch") if older else None,
                reached=_mean(products, reached),
            )
        )
    return tuple(found)


def _time(rows: Sequence[Row]) -> int:
    return sum(row.maybe_integer("time_ns") or 0 for row in rows)


def _titles(rows: Sequence[Row], layers: Mapping[int, Row]) -> tuple[str, ...]:
    """The layers' titles, with those that differ only in numbers as one, the most time first."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(unnumbered(called(layers[row.integer("layer_id")])), []).append(row)
    return tuple(
        common_name([called(layers[row.integer("layer_id")]) for row in mine])
        for mine in sorted(alike.values(), key=lambda mine: -_time(mine))
    )


def _mean(rows: Sequence[Row], reached: Mapping[int, float | None]) -> float | None:
    known = [
        (row.maybe_integer("time_ns") or 0, share)
        for row in rows
        if (share := reached.get(row.integer("layer_id"))) is not None
    ]
    whole = sum(time_ns for time_ns, _ in known)
    return sum(time_ns * share for time_ns, share in known) / whole if whole else None
