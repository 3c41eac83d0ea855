"""Adds to the evidence that an engine ran, in the engine's row on top of the page, how many of its
layers ran no kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nsysmap.core.schema import Tables
from nsysmap.text.units import counted

_NAMED = 2  # kinds of layers without a kernel that are named


def proofs(tables: Tables) -> Mapping[int, str]:
    """For each engine a sentence about its layers without a kernel; none if all ran one, or none
    did.
    """
    ran = {
        layer for row in tables.kernel_time if (layer := row.maybe_integer("layer_id")) is not None
    }
    found: dict[int, str] = {}
    for number in {row.integer("engine") for row in tables.engines}:
        mine = [row for row in tables.layers if row.maybe_integer("engine") == number]
        idle = Counter(row.text("kind") for row in mine if row.integer("layer_id") not in ran)
        if 0 < idle.total() < len(mine):
            kinds = ", ".join(f"{count} {kind}" for kind, count in idle.most_common(_NAMED))
            more = ", …" if len(idle) > _NAMED else ""
            found[number] = (
                f"of its {counted(len(mine), 'layer')} {idle.total()} ran no kernel ({kinds}{more})"
            )
    return found
