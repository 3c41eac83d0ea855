"""Makes a synthetic nsys export of any size, nested as TensorRT nests its ranges, and the engine
file that belongs to it.

The schema and the capture's own rows are those of a real export (fixtures/bert_trt10/sync.sqlite);
the events are made up, the same ones for the same arguments.  Per inference, on each of two
threads:

    infer                                          default domain
      ExecutionContext::enqueueV3                  TensorRT
        44 layers of their own                     TensorRT, registered strings; one launches
        nothing, three launch twice 2 x {ForeignNode[...]}                     TensorRT
          myelinGraphExecute                       myelin-exec, a start/end range
            92 nodes                               myelin-exec, text in the row
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEMPLATE = Path(__file__).parents[1] / "fixtures" / "bert_trt10" / "sync.sqlite"
COPIED = (
    "META_DATA_EXPORT",
    "META_DATA_CAPTURE",
    "TARGET_INFO_GPU",
    "TARGET_INFO_SESSION_START_TIME",
    "ENUM_%",
)
LAYERS, REGIONS, NODES = 44, 2, 92
PERIOD_NS = 3_000_000  # from one inference of a thread to its next
KERNELS_AN_INFERENCE = LAYERS + 2 + REGIONS * NODES  # 3 layers launch twice, one not at all
PUSH_POP, START_END, NEW_DOMAIN = 59, 60, 75
TENSORRT, MYELIN = 1, 2
ROWS_AT_ONCE = 100_000

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One leaf range of an inference and what it launches."""

    layer: str
    kernels: tuple[str, ...]
    domain: int
    region: int = -1  # which ForeignNode it lies in


@dataclass(frozen=True)
class Calls:
    """Times of one thread's events, ns: one row an inference, one column a step, launch or
    region.
    """

    thread: int
    infer: tuple[Ints, Ints]
    enqueue: tuple[Ints, Ints]
    steps: tuple[Ints, Ints]
    regions: tuple[Ints, Ints]
    names: tuple[Ints, Ints]  # cuKernelGetName, before each launch of Myelin's
    launches: tuple[Ints, Ints]
    syncs: tuple[Ints, Ints]
    kernels: tuple[Ints, Ints]


def steps() -> list[Step]:
    """The leaf ranges of one inference, in order."""
    made = []
    for i in range(LAYERS):
        tactic = f"sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x{32 + i}x32_stage4_g1_tensor16x8x16"  # noqa: E501
        count = 0 if i == 7 else 2 if i % 15 == 3 else 1
        kernels = (
            f"{tactic}_execute_kernel_trt",
            (
                "void genericReformat::copyVectorizedKernel<double, __half, __half, true>(unsigned"
                " int)"
            ),
        )
        made.append(
            Step(f"/stem/block.{i}/conv/Conv + /stem/block.{i}/act/Relu", kernels[:count], TENSORRT)
        )
    for region in range(REGIONS):
        for i in range(NODES):
            if i % 3 == 0:
                kernel = f"sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_tilesize128x{32 << i % 4}x64_stage3_tensor16x8x16_execute_kernel_trt"  # noqa: E501
                layer = f"/encoder.{region}/layer.{i}/dense/MatMul_myl{region}_{i}"
            else:
                ops = "AddMeanSubMulMeanAddSqrtDivMulMulAdd" if i % 3 == 1 else "CastMulTanhAddMul"
                kernel = f"__myl_{ops}_0x{region * NODES + i:032x}"
                layer = f"__myl_{ops}_myl{region}_{i}"
            made.append(Step(layer, (kernel,), MYELIN, region))
    return made


def engine_file(plan: list[Step]) -> dict[str, object]:
    """The engine's layers, in the form of trtexec's --exportLayerInfo."""
    layers = []
    for n, step in enumerate(plan):
        kind = (
            "CaskConvolution"
            if step.domain == TENSORRT
            else "gemm"
            if "MatMul" in step.layer
            else "kgen"
        )
        tactic = step.kernels[0].removesuffix("_execute_kernel_trt") if step.kernels else ""
        form = {"Dimensions": [1, 128, 768], "Format/Datatype": "Half"}
        layers.append(
            {
                "Name": step.layer,
                "LayerType": kind,
                "Inputs": [{"Name": f"tensor.{n}", **form}],
                "Outputs": [{"Name": f"tensor.{n + 1}", **form}],
                "TacticName": tactic,
                "StreamId": 0,
                "Metadata": "",
            }
        )
    return {"Layers": layers, "Bindings": ["tensor.0", f"tensor.{len(plan)}"]}


def calls(plan: list[Step], thread: int, inferences: int, random: np.random.Generator) -> Calls:
    """When everything of one thread happens."""
    launched_by = np.repeat(np.arange(len(plan)), [len(step.kernels) for step in plan])
    begin = (np.arange(inferences, dtype=np.int64) * PERIOD_NS + 1_000_000 + thread * 611_000)[
        :, None
    ]

    # each step: 400 ns of its own, then for each launch 300 ns of cuKernelGetName (or nothing), 100
    # ns, the call, 200 ns
    call = random.integers(3_500, 6_500, (inferences, len(launched_by)))
    named = np.array([plan[i].domain == MYELIN for i in launched_by])
    asked = np.where(named, 300, 0)
    length = np.full((inferences, len(plan)), 600, dtype=np.int64)
    np.add.at(length.T, launched_by, (call + asked + 300).T)
    gap = random.integers(150, 600, (inferences, len(plan)))
    step_end = begin + 2_000 + np.cumsum(length + gap, axis=1)
    step_start = step_end - length
    # the first launch of each step that has one
    first = np.flatnonzero(np.diff(launched_by, prepend=-1))
    before = np.cumsum(call + asked + 300, axis=1) - (call + asked + 300)
    within = (
        before
        - before[:, first][:, np.searchsorted(first, np.arange(len(launched_by)), side="right") - 1]
    )
    name_start = step_start[:, launched_by] + 400 + within
    launch_start = name_start + asked + 100
    launch_end = launch_start + call

    # a stream runs its kernels one after the other, each 1.5 us after its launch at the earliest
    duration = random.integers(2_000, 9_000, len(launched_by)) + random.integers(
        -150, 150, (inferences, len(launched_by))
    )
    ready = launch_start + 1_500
    ahead = np.cumsum(duration + 800, axis=1) - (duration + 800)
    kernel_start = ahead + np.maximum.accumulate(ready - ahead, axis=1)

    in_region = [
        [i for i, step in enumerate(plan) if step.region == region] for region in range(REGIONS)
    ]
    regions = (
        np.stack([step_start[:, i[0]] - 60 for i in in_region], 1),
        np.stack([step_end[:, i[-1]] + 60 for i in in_region], 1),
    )
    enqueue = (begin + 500, step_end[:, -1:] + 1_000)
    sync = (
        enqueue[1] + 500,
        np.maximum(enqueue[1], kernel_start[:, -1:] + duration[:, -1:]) + 2_000,
    )
    return Calls(
        thread,
        infer=(begin, sync[1] + 500),
        enqueue=enqueue,
        steps=(step_start, step_end),
        regions=regions,
        names=(name_start[:, named], name_start[:, named] + 200),
        launches=(launch_start, launch_end),
        syncs=sync,
        kernels=(kernel_start, kernel_start + duration),
    )


class Strings:
    """Texts by number, as in StringIds."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {"[Unknown]": 0}

    def of(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids))


def write(file: sqlite3.Connection, table: str, columns: dict[str, object], rows: int) -> None:
    """Fill a table in the order of `start`; a column not given is NULL, a single value is
    repeated.
    """
    names = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
    assert set(columns) <= set(names), set(columns) - set(names)
    start = columns["start"]
    assert isinstance(start, np.ndarray)
    order = np.argsort(start, kind="stable")
    statement = f"INSERT INTO {table} VALUES ({','.join('?' * len(names))})"
    for first in range(0, rows, ROWS_AT_ONCE):
        part = order[first : first + ROWS_AT_ONCE]
        held: list[Iterable[object]] = []
        for name in names:
            value = columns.get(name)
            held.append(
                value[part].tolist() if isinstance(value, np.ndarray) else [value] * len(part)
            )
        file.executemany(statement, zip(*held, strict=True))


def ranges(
    plan: list[Step], per_thread: list[Calls], strings: Strings, tids: list[int]
) -> dict[str, object]:
    """The columns of NVTX_EVENTS."""
    texts = np.array(
        [
            "infer",
            "ExecutionContext::enqueueV3",
            "myelinGraphExecute ",
            "TensorRT",
            "myelin-exec",
            *(f"{{ForeignNode[/encoder.{r}...]}}" for r in range(REGIONS)),
        ]
        + [step.layer for step in plan],
        dtype=object,
    )
    number = {text: i for i, text in enumerate(texts)}
    # start, end, type, domain, text, thread
    blocks: list[tuple[Ints, Ints, int, int, Ints, int]] = []
    for made in per_thread:
        tid = tids[made.thread]

        def block(
            when: tuple[Ints, Ints], kind: int, domain: int, names: list[str], tid: int = tid
        ) -> None:
            text = np.tile([number[name] for name in names], len(when[0]))
            blocks.append((when[0].ravel(), when[1].ravel(), kind, domain, text, tid))

        leaves = {
            domain: [i for i, step in enumerate(plan) if step.domain == domain]
            for domain in (TENSORRT, MYELIN)
        }
        block(made.infer, PUSH_POP, 0, ["infer"])
        block(made.enqueue, PUSH_POP, TENSORRT, ["ExecutionContext::enqueueV3"])
        block(
            made.regions,
            PUSH_POP,
            TENSORRT,
            [f"{{ForeignNode[/encoder.{r}...]}}" for r in range(REGIONS)],
        )
        block(
            (made.regions[0] + 30, made.regions[1] - 30),
            START_END,
            MYELIN,
            ["myelinGraphExecute "] * REGIONS,
        )
        for domain, at in leaves.items():
            block(
                (made.steps[0][:, at], made.steps[1][:, at]),
                PUSH_POP,
                domain,
                [plan[i].layer for i in at],
            )
    for process in sorted({tid >> 24 for tid in tids}):
        tid = next(tid for tid in tids if tid >> 24 == process)
        for domain, name in ((TENSORRT, "TensorRT"), (MYELIN, "myelin-exec")):
            blocks.append(
                (
                    np.array([domain]),
                    np.array([-1]),
                    NEW_DOMAIN,
                    domain,
                    np.array([number[name]]),
                    tid,
                )
            )
    sizes = [len(block[0]) for block in blocks]
    kind = np.repeat([block[2] for block in blocks], sizes)
    domains = np.repeat([block[3] for block in blocks], sizes)
    thread = np.repeat([block[5] for block in blocks], sizes)
    text = np.concatenate([block[4] for block in blocks])
    registered = (kind == PUSH_POP) & (domains == TENSORRT) & (text > number["myelin-exec"])
    ids = np.array(
        [
            strings.of(name) if i > number["myelin-exec"] and not name.startswith("__myl") else -1
            for i, name in enumerate(texts)
        ]
    )
    end = np.concatenate([block[1] for block in blocks]).astype(object)
    end[kind == NEW_DOMAIN] = None
    in_row, by_id, range_id = (
        texts[text],
        *(np.full(len(kind), None, dtype=object) for _ in range(2)),
    )
    in_row[registered] = None
    by_id[registered] = ids[text][registered]
    range_id[kind == START_END] = np.flatnonzero(kind == START_END)
    return {
        "start": np.concatenate([block[0] for block in blocks]),
        "end": end,
        "eventType": kind,
        "rangeId": range_id,
        "text": in_row,
        "textId": by_id,
        "globalTid": thread,
        "domainId": domains,
    }


def fill(
    file: sqlite3.Connection, plan: list[Step], per_thread: list[Calls], tids: list[int]
) -> None:
    """Write every event of every thread."""
    strings = Strings()
    api = {
        name: strings.of(name)
        for name in ("cudaLaunchKernel_v7000", "cuKernelGetName", "cudaStreamSynchronize_v3020")
    }
    kernel_names = np.array([strings.of(kernel) for step in plan for kernel in step.kernels])

    starts, ends, ids, classes, threads, launch_of = [], [], [], [], [], []
    for made in per_thread:
        for when, name, event in (
            (made.names, "cuKernelGetName", 1),
            (made.launches, "cudaLaunchKernel_v7000", 0),
            (made.syncs, "cudaStreamSynchronize_v3020", 0),
        ):
            starts.append(when[0].ravel())
            ends.append(when[1].ravel())
            size = starts[-1].size
            ids.append(np.full(size, api[name]))
            classes.append(np.full(size, event))
            threads.append(np.full(size, made.thread))
            launch_of.append(np.full(size, event == 0 and name.startswith("cudaLaunch")))
    start, thread, is_launch = (
        np.concatenate(starts),
        np.concatenate(threads),
        np.concatenate(launch_of),
    )
    tid = np.array(tids)[thread]
    process = tid & ~0xFFFFFF
    correlation = np.empty(len(start), dtype=np.int64)
    for one in np.unique(
        process
    ):  # each process counts its calls from 1, so that two of them collide
        mine = np.flatnonzero(process == one)
        correlation[mine[np.argsort(start[mine], kind="stable")]] = np.arange(1, len(mine) + 1)
    write(
        file,
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        {
            "start": start,
            "end": np.concatenate(ends),
            "eventClass": np.concatenate(classes),
            "globalTid": tid,
            "correlationId": correlation,
            "nameId": np.concatenate(ids),
            "returnValue": 0,
        },
        len(start),
    )

    inferences = len(per_thread[0].infer[0])
    names = np.tile(kernel_names, inferences * len(per_thread))
    # the launches stand in the same order as the kernels: thread, inference, position
    launched_on = thread[is_launch]
    kernels = {
        "start": np.concatenate([made.kernels[0].ravel() for made in per_thread]),
        "end": np.concatenate([made.kernels[1].ravel() for made in per_thread]),
        "deviceId": 0,
        "contextId": 1,
        "greenContextId": 0,
        "streamId": 13 + launched_on,
        "correlationId": correlation[is_launch],
        "globalPid": process[is_launch],
        "demangledName": names,
        "shortName": names,
        "mangledName": names,
        "launchType": 1,
        "cacheConfig": 1,
        "registersPerThread": 64,
        "gridX": 48,
        "gridY": 1,
        "gridZ": 1,
        "blockX": 128,
        "blockY": 1,
        "blockZ": 1,
        "staticSharedMemory": 0,
        "dynamicSharedMemory": 49152,
        "localMemoryPerThread": 0,
        "localMemoryTotal": 155713536,
        "gridId": np.arange(1, len(names) + 1),
        "sharedMemoryExecuted": 65536,
        "sharedMemoryLimitConfig": 0,
    }
    write(file, "CUPTI_ACTIVITY_KIND_KERNEL", kernels, len(names))

    nvtx = ranges(plan, per_thread, strings, tids)
    write(file, "NVTX_EVENTS", nvtx, len(np.asarray(nvtx["start"])))
    file.executemany(
        "INSERT INTO StringIds VALUES (?, ?)",
        [(number, text) for text, number in strings.ids.items()],
    )
    last = max(int(made.infer[1].max()) for made in per_thread)
    file.execute("INSERT INTO ANALYSIS_DETAILS VALUES (281474976710656, ?, 0, ?)", (last, last))
    file.executemany(
        "INSERT INTO PROCESSES VALUES (?, ?, './bench')",
        sorted({(tid & ~0xFFFFFF, (tid >> 24) & 0xFFFFFF) for tid in tids}),
    )


def make(kernels: int, path: Path, engine: Path, *, processes: int = 1, seed: int = 1) -> int:
    """Write an export of at least that many kernels and its engine file; how many kernels it
    has.
    """
    plan = steps()
    random = np.random.default_rng(seed)
    inferences = -(-kernels // (2 * KERNELS_AN_INFERENCE))
    per_thread = [calls(plan, thread, inferences, random) for thread in range(2)]
    tids = [(1 << 48) | (298 + thread % processes << 24) | (298 + thread) for thread in range(2)]
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as file:
        file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        file.execute("ATTACH ? AS template", (str(TEMPLATE),))
        filled = (
            "StringIds",
            "ANALYSIS_DETAILS",
            "PROCESSES",
            "NVTX_EVENTS",
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            "CUPTI_ACTIVITY_KIND_KERNEL",
        )
        wanted = " OR ".join(f"name LIKE '{name}'" for name in (*filled, *COPIED))
        for name, ddl in file.execute(
            f"SELECT name, sql FROM template.sqlite_master WHERE type = 'table' AND ({wanted})"
        ).fetchall():
            file.execute(ddl)
            if name not in filled:
                file.execute(f"INSERT INTO main.{name} SELECT * FROM template.{name}")
        fill(file, plan, per_thread, tids)
        file.commit()
    engine.write_text(json.dumps(engine_file(plan), indent=1), encoding="utf-8")
    return inferences * 2 * KERNELS_AN_INFERENCE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", type=int)
    parser.add_argument("export", type=Path, help="the .sqlite to write")
    parser.add_argument("engine", type=Path, help="the .json to write")
    parser.add_argument(
        "--processes",
        type=int,
        choices=(1, 2),
        default=1,
        help="with 2, each thread is a process of its own, and correlation ids collide",
    )
    given = parser.parse_args()
    print(f"{make(given.kernels, given.export, given.engine, processes=given.processes):,} kernels")


if __name__ == "__main__":
    main()
