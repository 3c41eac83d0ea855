"""What shows that an engine file is of the engine that ran beside the layers that the trace names: tactics, and layers without kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from nsysmap.base.groups import distinct_rows
from nsysmap.base.schema import Tables
from nsysmap.base.units import counted
from nsysmap.names.decode import matches_tactic

_NAMED = 2  # kinds of layers without a kernel that are named
_BY_RANGE = ("nvtx", "graph-node")  # methods that do not look at kernels' names


def proofs(tables: Tables) -> Mapping[int, str]:
    """By engine, a sentence: how many of its layers ran the kernel that their tactic names, and which layers ran none."""
    kernels: dict[int, set[str]] = {}
    for row in tables.kernel_time:
        if (layer := row.maybe_integer("layer_id")) is not None:
            kernels.setdefault(layer, set()).add(row.text("name"))
    by_name = _placed_by_name(tables)
    found: dict[int, list[str]] = {}
    for number in {row.integer("engine") for row in tables.engines}:
        mine = [row for row in tables.layers if row.maybe_integer("engine") == number]
        ran = [row for row in mine if row.integer("layer_id") in kernels]
        told = [row for row in ran if row.maybe_text("tactic") and row.integer("layer_id") not in by_name]
        same = sum(any(matches_tactic(name, row.text("tactic")) for name in kernels[row.integer("layer_id")]) for row in told)
        parts = [f"{same} of {counted(len(told), 'layer')} with a tactic ran the kernel that it names"] if told else []
        idle = Counter(row.text("kind") for row in mine if row.integer("layer_id") not in kernels)
        if ran and idle:
            kinds = ", ".join(f"{count} {kind}" for kind, count in idle.most_common(_NAMED))
            more = ", …" if len(idle) > _NAMED else ""
            parts.append(f"of its {counted(len(mine), 'layer')} {len(mine) - len(ran)} ran no kernel ({kinds}{more})")
        found[number] = parts
    return {number: "; ".join(parts) for number, parts in found.items()}


def _placed_by_name(tables: Tables) -> frozenset[int]:
    """Layers that kernels were mapped to by their names: that these agree proves nothing."""
    method = tables.kernels.text("method")
    by_range = [code for code, value in enumerate(method.values) if value in _BY_RANGE]
    return frozenset(distinct_rows(tables.kernels.ints("layer_id")[~np.isin(method.codes, by_range)], len(tables.layers)).tolist())
