"""How far a kernel is believed to be in a layer that may run nearly any, such as an opaque region:
by what stands around it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.table import BoolArray, FloatArray
from nsysmap.inputs.engine.model import Layer

_ANYTHING = ("foreign_node", "plugin")
"""Kinds of layers that may run nearly any kernel."""
BETWEEN, AT_AN_END, ALONE = 0.99, 0.75, 0.6
"""The most that is believed of a kernel in such a layer by its order among others': between
kernels that other layers explain (99.9 % right in benchmarks/mixtures.py); before the first or
behind the last of these, where another engine may have run that nothing tells from this one; and
where no other layer explains any.

Two engines that a program enqueues one behind the other leave no more time between their kernels
than lies between two of one engine (in 26 models 0.8 to 5 times the median, within them up to 3.7
times), so that only what varies from inference to inference shows the border.  Of mixtures of an
engine alone, with another now and then, and in turn with another (benchmarks/interleaved.py) the
last leaves about half of such kernels right.
"""


def most_of_anything(layers: Sequence[Layer | None], explained: BoolArray) -> FloatArray:
    """The most that is believed of each kernel of an inference, in launch order: its layer, and
    whether its name speaks for that.
    """
    anything = np.array(
        [layer is not None and layer.kind in _ANYTHING for layer in layers], np.bool_
    )
    most = np.ones(len(anything))
    if not anything.any():
        return most
    told = np.array([layer is not None for layer in layers], np.bool_) & ~anything & explained
    known = np.flatnonzero(told)
    most[anything] = ALONE
    if len(known):
        at = np.arange(len(anything))
        inside = (at > known[0]) & (at < known[-1])
        most[anything] = np.where(inside, BETWEEN, AT_AN_END)[anything]
    return most
