"""Checks that no layer's least time exceeds what it takes.

In the trace, and without the profiler as trtexec or IProfiler measured it:

    python benchmarks/headroom.py FOLDER…

Each folder holds ``MODEL-MODE.nsys-rep`` with ``MODEL.engine.json`` and, where there is one,
``MODEL.profile.json``.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nsysmap.analysis import analyze_mapped
from nsysmap.core.table import Row
from nsysmap.mapping.mapped_trace import map_report, read_engines


def reports(folder: Path) -> Iterator[tuple[Path, Path, Path | None]]:
    """Each report with its engine file and the profile beside that."""
    for report in sorted(folder.glob("*.nsys-rep")):
        model = report.stem.rsplit("-", 1)[0].removeprefix("cpp_")
        engine, profile = (folder / f"{model}.{end}.json" for end in ("engine", "profile"))
        if engine.exists():
            yield report, engine, profile if profile.exists() else None


def checked(report: Path, engine: Path, profile: Path | None) -> Counter[str]:
    """How many layers the report has, of how many the least time is known, and how many exceed."""
    mapped = map_report(report, read_engines([engine], profile=profile), reader="own")
    tables = analyze_mapped(mapped, rules=[]).tables
    layers = {row.integer("layer_id"): row for row in tables.layers}
    found = Counter(reports=1)
    for row in tables.headroom:
        found.update(_layer(row, layers[row.integer("layer_id")]))
    return found


def _layer(row: Row, layer: Row) -> Counter[str]:
    least, unprofiled = row.maybe_integer("least_ns"), layer.maybe_integer("trtexec_ns")
    if least is None:
        return Counter(layers=1, unknown=1)
    dropped = row["memory_ns"] is None and row.text("least_from") == "model"
    return Counter(
        layers=1,
        above_trace=int(least > row.integer("time_ns")),
        unprofiled=int(unprofiled is not None),
        above_unprofiled=int(unprofiled is not None and least > unprofiled),
        # memory alone would need longer than the layer took: the cache held its data
        cached_after_all=int(dropped),
    )


def main() -> None:
    """Prints the counts of each report where something exceeds, and of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    whole: Counter[str] = Counter()
    for folder in parser.parse_args().folders:
        for report, engine, profile in reports(folder):
            found = checked(report, engine, profile)
            whole.update(found)
            if any(found[one] for one in ("above_trace", "above_unprofiled", "cached_after_all")):
                print(report.name, dict(found))
    print(dict(whole))


if __name__ == "__main__":
    main()
