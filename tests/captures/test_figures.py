"""Every figure of every table of an analysis of some captures, as sums: what a change of any
algorithm changes, and in which columns.

    NSYSMAP_GOLDEN=write pytest tests/captures/test_figures.py

writes them anew; `git diff tests/golden/figures` then says what a change does to the captures.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nsysmap.analysis import Analysis, analyze_mapped
from nsysmap.core.table import MISSING, Column, Table, Text
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.mapping.mapped_trace import map_report, map_trace
from tests.nsys_file import NsysFile
from tests.places import FIXTURES, ROOT
from tests.reports import read_trace

HELD = ROOT / "tests" / "golden" / "figures"
CAPTURES = {
    "bert_trt10_sync": ("bert_trt10/sync.sqlite", ("bert_trt10/engine.json",)),
    "bert_trt103_graph": ("bert_trt103/graph.sqlite", ("bert_trt103/engine.json",)),
    "bert_trt85_sync": ("bert_trt85/sync.sqlite", ("bert_trt85/engine.json",)),
    "aux_streams_graph": ("aux_streams/graph.nsys-rep", ("aux_streams/engine.json",)),
    "bert_split_threads": ("bert_split_trt10/threads.nsys-rep", ("bert_split_trt10/engine.json",)),
    "decode_loop_nonvtx": (
        "decode_loop/nonvtx.nsys-rep",
        ("decode_loop/context.engine.json", "decode_loop/generation.engine.json"),
    ),
    "torch_mixed_nonvtx": (
        "torch_mixed/nonvtx.nsys-rep",
        ("torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"),
    ),
    "two_gpus_sync": ("two_gpus/tp_sync.nsys-rep", ("two_gpus/tp.engine.json",)),
    "two_shapes_nonvtx": ("two_shapes/nonvtx.nsys-rep", ("two_shapes/engine.json",)),
    "bert_eager_pageable": (
        "real_trt/bert_eager-pageable.nsys-rep",
        ("real_trt/bert_eager.engine.json",),
    ),
    "dlrm_sync_nonvtx": ("real_trt/dlrm-sync_nonvtx.nsys-rep", ("real_trt/dlrm.engine.json",)),
    "bert_fp8_graph": ("real_trt/bert_fp8-graph.nsys-rep", ("real_trt/bert_fp8.engine.json",)),
    "moe_sync": ("real_trt/moe-sync.nsys-rep", ("real_trt/moe.engine.json",)),
    "gru_sync_nonvtx": ("real_trt/gru-sync_nonvtx.nsys-rep", ("real_trt/gru.engine.json",)),
    "prefill_profiles_nonvtx": (
        "real_trt/prefill-profiles_nonvtx.nsys-rep",
        ("real_trt/prefill.engine.json",),
    ),
    "two_processes": ("two_processes/processes.nsys-rep", ("bert_trt10/engine.json",)),
    "decode_loop_graph_whole": (
        "decode_loop/graph_whole.nsys-rep",
        ("decode_loop/context.engine.json", "decode_loop/generation.engine.json"),
    ),
    "resnet50_b1_sync": (
        "real_trt/resnet50_b1-sync.nsys-rep",
        ("real_trt/resnet50_b1.engine.json",),
    ),
    "googlenet_sync_nonvtx": (
        "real_trt/googlenet-sync_nonvtx.nsys-rep",
        ("real_trt/googlenet.engine.json",),
    ),
    "t5dec_graph": ("real_trt/t5dec-graph.nsys-rep", ("real_trt/t5dec.engine.json",)),
    "eager_no_engine": ("torch_encoder/eager.nsys-rep", ()),
}
PROFILES = {
    "real_trt/resnet50_b1.engine.json": "real_trt/resnet50_b1.profile.json",
    "real_trt/googlenet.engine.json": "real_trt/googlenet.profile.json",
}
"""trtexec's times of the layers of some engines."""

BARE = {
    "bert_trt10_without_ranges": ("bert_trt10/sync.sqlite", "bert_trt10/engine.json"),
    "bert_trt85_without_ranges": ("bert_trt85/sync.sqlite", "bert_trt85/engine.json"),
    "bert_trt103_of_another_engine": ("bert_trt103/graph.sqlite", "bert_trt10/engine.json"),
}
"""Captures whose ranges are taken away, so that the order alone says which layer a kernel is of."""

OTHERS = (
    "void resize_nhwc<float>(float const*, float*, int)",
    "mean_subtract_kernel",
    "void at::native::fill<float>(float*)",
    "decode_boxes",
    "void cub::DeviceReduceKernel<int>(int)",
)
STREAMS = ("among_other_kernels", "two_engines_in_turn", "blocks_that_come_and_go")
"""Made of the kernels of captures: launched without ranges, some missing, others between."""

DIGITS = 9  # significant ones: what libraries of linear algebra differ in is far below
KINDS = 12  # most values of a column of words that are counted one by one


@cache
def analysed(name: str) -> Analysis:
    if name in CAPTURES:
        report, engines = CAPTURES[name]
        read = [
            read_engine(FIXTURES / engine, profile=FIXTURES / PROFILES[engine])
            if engine in PROFILES
            else read_engine(FIXTURES / engine)
            for engine in engines
        ]
        mapped = map_report(FIXTURES / report, read)
        return analyze_mapped(mapped, rules=())
    if name in STREAMS:
        with TemporaryDirectory() as folder:
            return _of_stream(name, Path(folder) / "x.sqlite")
    report, engine = BARE[name]
    trace = read_trace(FIXTURES / report)
    nothing = np.zeros(0, np.int64)
    bare = replace(
        trace,
        nvtx_ranges=trace.nvtx_ranges.take(nothing),
        cuda_graph_nodes=trace.cuda_graph_nodes.take(nothing),
    )
    return analyze_mapped(map_trace(bare, [read_engine(FIXTURES / engine)]), rules=())


def _of_stream(name: str, path: Path) -> Analysis:
    random = Random(4)
    file, at = NsysFile(), 1000
    folders = ("bert_trt10", "bert_trt103") if name == "two_engines_in_turn" else ("bert_trt10",)
    kernels = {
        folder: [line.split("\t")[-1] for line in _lines(FIXTURES / folder / "truth.tsv")]
        for folder in folders
    }
    launched = 0
    for turn in range(24):
        folder = folders[turn % len(folders) if random.random() < 0.8 else 0]
        mine = [kernel for kernel in kernels[folder] if random.random() > 0.03]
        if name == "among_other_kernels":
            mine = [*OTHERS[: random.randint(0, 3)], *mine, *OTHERS[random.randint(2, 5) :]]
            if turn == 7:
                mine = mine[:30]  # a run that was damaged
        elif name == "blocks_that_come_and_go" and turn % 3:
            mine = [*mine[:20], *OTHERS[:4], *mine[20:]]
        at += 20_000 if random.random() < 0.7 else 300
        for kernel in mine:
            launched += 1
            file.launch(kernel, at, launched)
            at += 20 + random.randint(0, 40)
        if turn % 4 == 0:
            launched += 1
            file.call("cudaStreamSynchronize_v3020", at, at + 50, launched)
            at += 100
    engines = [read_engine(FIXTURES / folder / "engine.json") for folder in folders]
    return analyze_mapped(map_trace(read_trace(file.write(path)), engines), rules=())


def _lines(path: Path) -> list[str]:
    """Those below the heading."""
    heading, *lines = path.read_text().splitlines()
    assert heading.split("\t")[-1] == "kernel"
    return lines


def figures(analysis: Analysis) -> dict[str, str]:
    """What each column of each table that has rows holds, in short."""
    return {
        f"{name}.{column.name}": held
        for name, table in analysis.tables.items()
        if len(table)
        for column in table.spec.columns
        if (held := " ".join(_of_column(table, column)))
    }


def _of_column(table: Table, column: Column) -> Iterator[str]:
    """How many values there are, the least, how much all are above it in sum, and the same with
    each times the number of its row; of words, how often each is there.
    """
    data = table.columns[column.name]
    if isinstance(data, Text):
        yield from _of_words([word for word in table.text(column.name).list() if word is not None])
        return
    values: NDArray[Any]
    if column.kind == "int":
        values = table.ints(column.name)
        known = values != MISSING
    elif column.kind == "float":
        values = table.floats(column.name)
        known = np.isfinite(values)
    else:
        values = table.bools(column.name).astype(np.int64)
        known = np.ones(len(values), np.bool_)
    rows, values = np.flatnonzero(known) + 1, values[known]
    yield str(len(values))
    if len(values):
        least = values.min()
        above = (values - least).astype(np.float64)
        yield from (
            f"{float(one):.{DIGITS}g}" if values.dtype == np.float64 else str(int(one))
            for one in (least, above.sum())
        )
        yield f"{float(above @ rows):.{DIGITS}g}"


def _of_words(words: list[str]) -> Iterator[str]:
    """The counts of identifiers; of names and sentences, whose words are held elsewhere, only how
    many there are.
    """
    counts = Counter(words)
    yield str(len(words))
    if len(counts) <= KINDS and all(word.replace("-", "").isidentifier() for word in counts):
        yield from (f"{word}:{count}" for word, count in sorted(counts.items()))


@pytest.mark.parametrize("name", [*CAPTURES, *BARE, *STREAMS])
def test_the_tables_of_the_captures_hold_the_same_figures(name: str) -> None:
    found = figures(analysed(name))
    path = HELD / f"{name}.txt"
    if os.environ.get("NSYSMAP_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{key} {value}\n" for key, value in found.items()))
    held = dict(line.split(" ", 1) for line in path.read_text().splitlines())
    different = {
        key: f"{value} -> {found.get(key)}"
        for key, value in held.items()
        if not _same(value.split(), found.get(key, "").split())
    }
    assert different == {}  # a new column is in no file until they are written anew


def _same(one: list[str], other: list[str]) -> bool:
    """Whether figures are the same but for what another order of additions does."""
    return len(one) == len(other) and all(
        mine == its
        or (
            _is_number(mine)
            and _is_number(its)
            and float(mine) == pytest.approx(float(its), rel=1e-7, abs=1e-9)
        )
        for mine, its in zip(one, other, strict=True)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
