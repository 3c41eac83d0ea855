"""Leaves out of a rule's tables what stands there of engine files that did not run: findings on those would be about another program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nsysmap.base.engine_schema import LAYERS
from nsysmap.base.result_schema import ENGINE_FITS
from nsysmap.base.schema import RULE_TABLES
from nsysmap.base.table import IntArray, Table

_OF_A_LAYER = ("layer_id", "from_layer", "first_layer")  # row numbers in `layers`
_KEPT = frozenset({ENGINE_FITS.name, "engines"})  # say of each engine file whether it ran


@dataclass(frozen=True)
class OfThisRun:
    """What rules are told."""

    tables: Mapping[str, Table]
    left_out: frozenset[str] = frozenset()  # the tables that lost rows
    why: str = ""  # which files did not run, in words


def of_this_run(tables: Mapping[str, Table]) -> OfThisRun:
    """The tables without the rows of engines that did not run; ids stay as they are."""
    fits = tables[ENGINE_FITS.name]
    idle = [row for row in fits if row.text("verdict") == "did-not-run"]
    if not idle:
        return OfThisRun(tables)
    engines = np.array([row.integer("engine") for row in idle], np.int64)
    layers = tables[LAYERS.name]
    gone = layers.ints("layer_id")[np.isin(layers.ints("engine"), engines)]
    kept = {spec.name: tables[spec.name] if spec.name in _KEPT else _without(tables[spec.name], engines, gone) for spec in RULE_TABLES}
    sources = [row.text("source") for row in idle]
    left_out = frozenset(name for name, table in kept.items() if len(table) < len(tables[name]))
    return OfThisRun({**tables, **kept}, left_out, f"{' and '.join(sources)} did not run in this trace")


def _without(table: Table, engines: IntArray, layers: IntArray) -> Table:
    stays = np.ones(len(table), np.bool_)
    for column in table.spec.columns:
        if column.name == "engine":
            stays &= ~np.isin(table.ints("engine"), engines)
        elif column.name in _OF_A_LAYER:
            stays &= ~np.isin(table.ints(column.name), layers)
    return table if stays.all() else table.take(stays)
