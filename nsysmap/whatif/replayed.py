"""The replay without the profiler, inference by inference and piece by piece, as declared
tables.
"""

from __future__ import annotations

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import REPLAYED_INFERENCES, REPLAYED_WORK
from nsysmap.core.table import Table, Text
from nsysmap.whatif.model import Model, NoModel
from nsysmap.whatif.replay import lengths_ns, recorded, replay


@dataclass(frozen=True)
class Replayed:
    """The tables of a replay."""

    replayed_inferences: Table
    replayed_work: Table


def replayed_tables(model: Model | NoModel) -> Replayed:
    """The tables `replayed_inferences` and `replayed_work`; no rows if there is no model."""
    if isinstance(model, NoModel):
        return Replayed(Table.empty(REPLAYED_INFERENCES), Table.empty(REPLAYED_WORK))
    return Replayed(_inferences(model), _work(model))


def _inferences(model: Model) -> Table:
    likely = lengths_ns(model.likely, model.finished)
    quick, slow = (
        lengths_ns(timeline, replay(timeline))
        for timeline in (model.without[one] for one in model.machines[1:3])
    )
    as_recorded = lengths_ns(model.timeline, recorded(model.timeline))
    rows = []
    for number, (thread, own) in enumerate(
        zip(model.window.threads, model.window.inferences, strict=True)
    ):
        for place, (begin, end) in likely[number].items():
            others = [lengths[number].get(place) for lengths in (quick, slow, as_recorded)]
            if None in others:
                # the last of a thread, if another runs longer on one machine but not on the other
                continue
            lengths = [one[1] - one[0] for one in others if one is not None]
            rows.append(
                {
                    "inference": int(own[place]),
                    "thread": thread,
                    "weight": model.window.weights[number][place],
                    "begin_ns": begin,
                    "end_ns": end,
                    **dict(zip(("quick_ns", "slow_ns", "recorded_ns"), lengths, strict=True)),
                }
            )
    return Table.of_rows(REPLAYED_INFERENCES, rows)


def _work(model: Model) -> Table:
    placed = sorted(model.placed, key=lambda one: one[1])
    columns = np.array(
        [(work.row, start, end, work.start_ns, work.end_ns) for work, start, end in placed],
        np.int64,
    ).reshape(-1, 5)
    return Table(
        REPLAYED_WORK,
        {
            "kind": Text.of(work.kind for work, _, _ in placed),
            "kernel_id": columns[:, 0].copy(),
            "start_ns": columns[:, 1].copy(),
            "end_ns": columns[:, 2].copy(),
            "recorded_start_ns": columns[:, 3].copy(),
            "recorded_end_ns": columns[:, 4].copy(),
        },
    )
