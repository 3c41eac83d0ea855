"""Prints time and memory of what hardware counters add to `nsysmap map`, beside that command, in
turn; and of reading all samples, as a page with their tracks does.

The export is that of make_trace.py with the kernels of one thread alone, and samples of ten metrics
that follow them, as many as kernels.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from speed import HERE, NSYSMAP, measure

METRICS = (
    *(
        "GPC Clock Frequency [MHz]",
        "SYS Clock Frequency [MHz]",
        "GR Active [Throughput %]",
        "SMs Active [Throughput %]",
    ),
    *(
        "SM Issue [Throughput %]",
        "Tensor Active [Throughput %]",
        "DRAM Read Bandwidth [Throughput %]",
        "DRAM Write Bandwidth [Throughput %]",
    ),
    *("PCIe RX Throughput [Throughput %]", "PCIe TX Throughput [Throughput %]"),
)
SHARES = np.array([100, 90, 40, 30, 20, 10, 0, 0])
"""Percent of each metric behind the clocks while a kernel runs."""
CLOCKS_HZ = (1_700_000_000, 1_500_000_000)
AT_ONCE = 100_000
COUNTERS = """
import json, resource, sys, time
from pathlib import Path
from nsysmap.core.memory import keep_freed_memory
keep_freed_memory()
from nsysmap.counters.of_trace import counters_of
from nsysmap.mapping.mapped_trace import map_report, read_engines

mapped = map_report(Path(sys.argv[1]), read_engines([Path(sys.argv[2])]))
metrics, steps = mapped.trace.gpu_metrics, {}

def timed(name, work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    steps[name] = time.perf_counter() - wall, time.process_time() - cpu
    return result

timed("counters", lambda: counters_of(mapped.trace, mapped.kernels, mapped.inferences, mapped.found.of_call))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
timed("reading all", lambda: metrics.samples)
print(json.dumps({**steps, "peak_mib": peak}))
"""  # noqa: E501


def made(kernels: int, export: Path, engine: Path) -> None:
    """An export with about that many kernels of one thread, and as many moments at which the
    metrics were sampled.
    """
    subprocess.run(
        [sys.executable, HERE / "make_trace.py", str(2 * kernels), export, engine], check=True
    )
    with closing(sqlite3.connect(export)) as file:
        threads = [
            row[0]
            for row in file.execute(
                "SELECT DISTINCT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY 1"
            )
        ]
        streams = [
            row[0]
            for row in file.execute(
                "SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY 1"
            )
        ]
        file.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE streamId <> ?", (streams[0],))
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            file.execute(
                f"DELETE FROM {table} WHERE globalTid = ? AND end IS NOT NULL", (threads[-1],)
            )
        sampled(file)
        file.commit()
        file.execute("VACUUM")


def sampled(file: sqlite3.Connection) -> None:
    """Add the tables of the samples."""
    rows = np.array(
        file.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start").fetchall()
    )
    first, last = int(rows[0, 0]) - 100_000, int(rows[-1, 1]) + 100_000
    period = (last - first) // len(rows)
    edges = first + period * np.arange(len(rows) + 1)
    until = np.cumsum(rows[:, 1] - rows[:, 0])
    busy = np.interp(
        edges, rows.ravel(), np.stack([until - (rows[:, 1] - rows[:, 0]), until], axis=1).ravel()
    )
    share = np.clip(np.diff(busy) / period, 0, 1)
    random = np.random.default_rng(0)
    file.execute(
        "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, typeName TEXT, metricId"
        " INT, metricName TEXT)"
    )
    file.executemany(
        "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (0, 0, 'x', ?, ?)", list(enumerate(METRICS))
    )
    file.execute(
        "CREATE TABLE GPU_METRICS (rawTimestamp INT, timestamp INT, typeId INT, metricId INT, value"
        " INT)"
    )
    for begin in range(0, len(share), AT_ONCE):
        some = share[begin : begin + AT_ONCE]
        percent = some[:, None] * SHARES
        percent = np.clip(percent + random.normal(0, 0.5, percent.shape) * (percent > 0), 0, 100)
        values = np.concatenate(
            [np.tile(CLOCKS_HZ, (len(some), 1)), percent.round().astype(np.int64)], axis=1
        )
        time, metric = (
            np.repeat(edges[begin : begin + len(some)], len(METRICS)),
            np.tile(np.arange(len(METRICS)), len(some)),
        )
        file.executemany(
            "INSERT INTO GPU_METRICS VALUES (?1, ?1, 0, ?2, ?3)",
            np.column_stack([time, metric, values.ravel()]).tolist(),
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the export here")
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        export, engine = (
            folder / f"counters{asked.kernels}.sqlite",
            folder / f"counters{asked.kernels}.json",
        )
        if not (export.exists() and engine.exists()):
            made(asked.kernels, export, engine)
        runs: dict[str, list[tuple[float, float]]] = {}
        peaks: dict[str, list[float]] = {}
        for _ in range(asked.repeat):
            run = measure([*NSYSMAP, "map", export, engine, "-o", Path(temporary) / "map.parquet"])
            runs.setdefault("nsysmap map", []).append((run.wall_s, run.cpu_s))
            peaks.setdefault("nsysmap map", []).append(run.peak_mib)
            out = Path(temporary) / "counters.json"
            measure(
                [
                    sys.executable,
                    "-c",
                    f"import os\nos.environ['OPENBLAS_NUM_THREADS'] = '1'\n{COUNTERS}",
                    export,
                    engine,
                ],
                out,
            )
            told = json.loads(out.read_text(encoding="utf-8"))
            peaks.setdefault("with counters", []).append(told.pop("peak_mib"))
            for name, (wall, cpu) in told.items():
                runs.setdefault(name, []).append((wall, cpu))
    for name, taken in runs.items():
        wall, cpu = (statistics.median(each) for each in zip(*taken, strict=True))
        print(
            f"{name:<14} {wall:6.2f} s elapsed {cpu:6.2f} s of processor time (median of"
            f" {asked.repeat})"
        )
    print(
        "peak memory:"
        f" {', '.join(f'{name} {statistics.median(taken):.0f} MiB' for name, taken in peaks.items())}"  # noqa: E501
    )


if __name__ == "__main__":
    main()
