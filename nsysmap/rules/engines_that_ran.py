"""Removes engine files that did not run from a rule's tables: findings on those would be about
another program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import ENGINE_FITS
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import IntArray, Table

_OF_A_LAYER = ("layer_id", "from_layer", "first_layer")  # row numbers in `layers`
_KEPT = frozenset({ENGINE_FITS.name, "engines"})  # say of each engine file whether it ran


@dataclass(frozen=True)
class OfThisRun:
    """What rules are told."""

    tables: Mapping[str, Table]
    left_out: frozenset[str] = frozenset()  # the tables that lost rows
    why: str = ""  # which files did not run, in words
    # layers (index, name) of files that may not have run: the file
    unsure: Mapping[tuple[int, str], str] = field(default_factory=dict)


def of_this_run(tables: Mapping[str, Table]) -> OfThisRun:
    """The tables without the rows of engines that did not run; ids stay as they are."""
    fits = tables[ENGINE_FITS.name]
    unsure = _unsure(fits, tables[LAYERS.name])
    idle = [row for row in fits if row.text("verdict") == "did-not-run"]
    if not idle:
        return OfThisRun(tables, unsure=unsure)
    engines = np.array([row.integer("engine") for row in idle], np.int64)
    layers = tables[LAYERS.name]
    gone = layers.ints("layer_id")[np.isin(layers.ints("engine"), engines)]
    kept = {
        spec.name: (
            tables[spec.name] if spec.name in _KEPT else _without(tables[spec.name], engines, gone)
        )
        for spec in RULE_TABLES
    }
    sources = [row.text("source") for row in idle]
    left_out = frozenset(name for name, table in kept.items() if len(table) < len(tables[name]))
    return OfThisRun(
        {**tables, **kept}, left_out, f"{' and '.join(sources)} did not run in this trace", unsure
    )


def _unsure(fits: Table, layers: Table) -> dict[tuple[int, str], str]:
    """The layers of files of which it cannot be determined whether they ran, and which no file has
    that did.
    """
    verdicts = {row.integer("engine"): (row.text("verdict"), row.text("source")) for row in fits}
    if all(verdict != "cannot-tell" for verdict, _ in verdicts.values()):
        return {}
    found: dict[tuple[int, str], str] = {}
    ran: set[tuple[int, str]] = set()
    for engine, index, name in zip(
        *(layers.ints(one).tolist() for one in ("engine", "layer_index")),
        layers.text("name").list(),
        strict=True,
    ):
        verdict, source = verdicts.get(engine, ("", ""))
        if verdict == "ran":
            ran.add((index, str(name)))
        elif verdict == "cannot-tell":
            found.setdefault((index, str(name)), source)
    return {layer: source for layer, source in found.items() if layer not in ran}


def _without(table: Table, engines: IntArray, layers: IntArray) -> Table:
    stays = np.ones(len(table), np.bool_)
    for column in table.spec.columns:
        if column.name == "engine":
            stays &= ~np.isin(table.ints("engine"), engines)
        elif column.name in _OF_A_LAYER:
            stays &= ~np.isin(table.ints(column.name), layers)
    return table if stays.all() else table.take(stays)
