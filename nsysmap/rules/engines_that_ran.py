"""Removes engine files that did not run from a rule's tables: findings on those would be about
another program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from nsysmap.core.engine_schema import LAYERS
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import ENGINE_FITS
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.table import IntArray, Table

_OF_A_LAYER = ("layer_id", "from_layer", "first_layer")  # row numbers in `layers`
_KEPT = frozenset({ENGINE_FITS.name, "engines"})  # say of each engine file whether it ran


@dataclass(frozen=True)
class Unsure:
    """The files that may or may not have run."""

    fits: Table
    layers: Table

    @cached_property
    def _verdicts(self) -> dict[int, tuple[str, str]]:
        return {
            row.integer("engine"): (row.text("verdict"), row.text("source")) for row in self.fits
        }

    @cached_property
    def _by_index(self) -> tuple[IntArray, IntArray]:
        """The rows of the layers by their index, and these."""
        index = self.layers.ints("layer_index")
        order = np.argsort(index, kind="stable")
        return order, index[order]

    def file_of(self, index: int, name: str) -> str | None:
        """The first such file with this layer; None if there is none, or if a file that
        ran has it.
        """
        if all(verdict != "cannot-tell" for verdict, _ in self._verdicts.values()):
            return None
        order, indices = self._by_index
        alike = slice(*(np.searchsorted(indices, index, side) for side in ("left", "right")))
        names, engines = self.layers.text("name"), self.layers.ints("engine")
        found = [
            self._verdicts.get(int(engines[row]), ("", ""))
            for row in order[alike].tolist()
            if names[row] == name
        ]
        unsure = [source for verdict, source in found if verdict == "cannot-tell"]
        return unsure[0] if unsure and all(verdict != "ran" for verdict, _ in found) else None


@dataclass(frozen=True)
class OfThisRun:
    """The facts that rules receive."""

    tables: Mapping[str, Table]
    unsure: Unsure
    left_out: frozenset[str] = frozenset()  # the tables that lost rows
    why: str = ""  # which files did not run, in words


def of_this_run(tables: Mapping[str, Table]) -> OfThisRun:
    """The tables without the rows of engines that did not run; ids stay as they are."""
    fits = tables[ENGINE_FITS.name]
    unsure = Unsure(fits, tables[LAYERS.name])
    idle = [row for row in fits if row.text("verdict") == "did-not-run"]
    if not idle:
        return OfThisRun(tables, unsure)
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
        {**tables, **kept}, unsure, left_out, f"{' and '.join(sources)} did not run in this trace"
    )


def _without(table: Table, engines: IntArray, layers: IntArray) -> Table:
    stays = np.ones(len(table), np.bool_)
    for column in table.spec.columns:
        if column.name == "engine":
            stays &= ~np.isin(table.ints("engine"), engines)
        elif column.name in _OF_A_LAYER:
            stays &= ~np.isin(table.ints(column.name), layers)
    return table if stays.all() else table.take(stays)
