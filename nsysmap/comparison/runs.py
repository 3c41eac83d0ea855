"""Several captures of one program as one side of a comparison: the runs are the unit of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from nsysmap.comparison.noise import mean_of_runs
from nsysmap.comparison.pace import Pace
from nsysmap.comparison.side import Side
from nsysmap.core.errors import NsysmapError
from nsysmap.core.table import FloatArray
from nsysmap.inputs.nsys.arrow_tables import table_files

_SUFFIXES = (".nsys-rep", ".qdrep", ".sqlite")


def runs_in(path: str) -> tuple[str, ...]:
    """The reports in a folder, one per run, by name; the path itself if it is not a folder of
    reports.
    """
    folder = Path(path)
    if not folder.is_dir() or table_files(folder)[0]:
        return (path,)
    by_stem: dict[str, Path] = {}
    for suffix in reversed(
        _SUFFIXES
    ):  # nsys leaves its export beside the report: only the report counts
        by_stem.update({file.stem: file for file in sorted(folder.glob(f"*{suffix}"))})
    if not by_stem:
        raise NsysmapError(
            path,
            "is a folder without reports",
            "give reports, or a folder that contains the reports of one side",
        )
    return tuple(str(by_stem[stem]) for stem in sorted(by_stem))


def together(runs: Sequence[Side]) -> Side:
    """The runs of one program as a side; its time is the mean of theirs.  Raises NsysmapError if
    they are not of one program.
    """
    if len(runs) == 1:
        return runs[0]
    first = runs[0]
    for one in runs:
        if not one.traced or not one.pace.known:
            raise NsysmapError(
                one.source,
                "has no time per inference",
                "give captures with inferences, or one file per side",
            )
        if [layer.name for layer in one.layers] != [layer.name for layer in first.layers]:
            raise NsysmapError(
                one.source,
                f"has other layers than {first.source}",
                "give captures of one program per side",
            )
    for one, other in combinations(runs, 2):
        if other.is_capture_of(one):
            raise NsysmapError(
                other.source,
                f"is the same run as {one.source}",
                "give each run once: copies do not show how runs differ",
            )
    gpus = sorted(
        {name for one in runs for name in one.tables["devices"].text("name").list() if name}
    )
    alike = len({tuple(one.tables["devices"].text("name").list()) for one in runs}) == 1
    source = f"{first.source} and {len(runs) - 1} more"
    return replace(
        first,
        source=source,
        gpus=() if alike else tuple(gpus),
        merged=_merged([one.pace for one in runs]),
    )


def _merged(paces: Sequence[Pace]) -> Pace:
    """The mean of the runs."""
    why = next((one.profiled for one in paces if one.profiled), "")
    times = [one.recorded if why else one.likely for one in paces]
    return replace(
        paces[0],
        runs=len(paces),
        held_up=sum(one.held_up for one in paces),
        held_up_ns=float(np.mean([one.held_up_ns for one in paces])),
        weight=np.full(len(paces), 1 / len(paces)),
        recorded=float(np.mean([one.recorded for one in paces])),
        likely=float(np.mean(times)),
        quick=float(np.mean([one.quick for one in paces])),
        slow=float(np.mean([one.slow for one in paces])),
        profiled=why,
        noise=mean_of_runs(np.array(times)),
        recorded_noise=mean_of_runs(np.array([one.recorded for one in paces])),
        parts=_averaged([one.recorded_parts if why else one.parts for one in paces]),
        recorded_parts=_averaged([one.recorded_parts for one in paces]),
        kernels=np.array([one.weight @ one.kernels for one in paces]),
        kernel_excess=_averaged(
            [np.zeros_like(one.kernel_excess) if why else one.kernel_excess for one in paces]
        ),
    )


def _averaged(parts: Sequence[FloatArray]) -> FloatArray:
    result: FloatArray = np.mean(parts, axis=0)
    return result
