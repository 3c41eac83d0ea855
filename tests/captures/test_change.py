"""A real capture, changed in one way: what nsysmap says of it changes only as it should."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nsysmap.analysis import analyze_mapped
from nsysmap.core import intervals, memory
from nsysmap.core import table as tables_module
from nsysmap.core.table import MISSING, Text
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.nsys.forms import exported_tables
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.mapping.mapped_trace import map_trace, read_engines
from nsysmap.rules.packs import chosen_rules
from nsysmap.timing import region_times, totals
from nsysmap.timing.idle import intervals as idle
from nsysmap.trace.inferences import find as inferences
from nsysmap.trace.reader import trace_of
from tests.held_tables import (
    STRINGS,
    TIMES,
    Held,
    analysed,
    changed,
    held,
    length,
    rows_of,
    told,
    with_other_process,
)
from tests.places import FIXTURES

CAPTURES = {
    "bert_trt10/sync": ("bert_trt10/engine.json",),
    "newer/aux_graph": ("aux_streams/engine.json",),
    "newer/torch_sync": ("torch_mixed/backbone.engine.json", "torch_mixed/head.engine.json"),
}
SHIFT_NS = 1_000_000_000
MOVED = {
    "kernels": {"start_ns", "end_ns", "launch_start_ns", "launch_end_ns"},
    "layers": set[str](),
    "gaps": {"start_ns", "end_ns", "evidence_start_ns", "evidence_end_ns"},
    "inferences": {
        "start_ns",
        "end_ns",
        "enqueue_start_ns",
        "enqueue_end_ns",
        "gpu_start_ns",
        "gpu_end_ns",
    },
    "findings": {"start_ns", "end_ns"},
}
RECORDED = ("NVTX_EVENTS", "PROFILER_OVERHEAD", "OSRT_API")


@cache
def tables_of(name: str) -> Held:
    return held(FIXTURES / f"{name}.sqlite")


@cache
def engines_of(name: str) -> tuple[Engine, ...]:
    return tuple(read_engines([FIXTURES / path for path in CAPTURES[name]]))


@cache
def told_of(name: str) -> dict[str, object]:
    return told(analysed(tables_of(name), engines_of(name)))


def told_when(name: str, change: Callable[[Held], Held]) -> dict[str, object]:
    return told(analysed(change(tables_of(name)), engines_of(name)))


@pytest.mark.parametrize("name", CAPTURES)
def test_how_a_large_table_holds_its_integers_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told_of(name)
    monkeypatch.setattr(tables_module, "_MANY_ROWS", 1)
    monkeypatch.setattr(tables_module, "_LARGE", 1)
    assert told_when(name, lambda held: held) == whole


IN_PIECES = (
    (memory, "_ROWS_AT_ONCE"), (intervals, "_AT_ONCE"), (intervals, "_BLOCK"),
    (inferences, "_AT_ONCE"), (idle, "_AT_ONCE"),
    (totals, "_AT_ONCE"), (region_times, "_AT_ONCE"),
)  # fmt: skip


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("name", CAPTURES)
def test_how_many_rows_are_worked_on_at_a_time_changes_nothing(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told_of(name)
    for module, constant in IN_PIECES:
        monkeypatch.setattr(module, constant, rows)
    monkeypatch.setattr(tables_module, "_LARGE", 1)
    assert told_when(name, lambda held: held) == whole


def shuffled(tables: Held) -> Held:
    random = np.random.default_rng(7)
    return {
        table: rows_of(columns, random.permutation(length(columns)))
        for table, columns in tables.items()
    }


def renumbered(tables: Held) -> Held:
    """Other numbers for the strings, in another order, and for calls and the work they launched."""
    ids = tables["StringIds"]["id"]
    assert not isinstance(ids, Text)
    other = {
        int(old): 5 * new + 3 for new, old in enumerate(np.random.default_rng(3).permutation(ids))
    }
    made = changed(
        tables,
        STRINGS,
        lambda column: np.array([other.get(int(value), 10**9) for value in column], np.int64),
    )
    made = changed(
        made,
        frozenset({"id"}),
        lambda column: np.array([other[int(value)] for value in column], np.int64),
        of=("StringIds",),
    )
    return changed(made, frozenset({"correlationId"}), lambda column: column + 100_000)


def other_process_numbers(tables: Held) -> Held:
    moved = changed(
        tables,
        frozenset({"globalTid", "globalPid", "endGlobalTid"}),
        lambda ids: ids + (7000 << 24),
    )
    return changed(moved, frozenset({"pid", "processId"}), lambda pids: pids + 7000)


def other_streams(tables: Held) -> Held:
    return changed(tables, frozenset({"streamId"}), lambda streams: streams + 1000)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, shuffled) for name in CAPTURES),
        *(
            ("newer/aux_graph", change)
            for change in (renumbered, other_process_numbers, other_streams)
        ),
    ],
)
def test_numbers_and_the_order_of_rows_change_nothing(
    name: str, change: Callable[[Held], Held]
) -> None:
    found, was = told_when(name, change), told_of(name)
    for what in ("kernels", "inferences", "layers", "idle", "skipped"):
        assert found[what] == was[what], what
    if change in (shuffled, renumbered):
        assert found == was


@pytest.mark.parametrize("name", CAPTURES)
def test_a_later_start_moves_every_time_and_nothing_else(name: str) -> None:
    later = analysed(
        changed(tables_of(name), TIMES, lambda times: times + SHIFT_NS), engines_of(name)
    ).tables
    now = analysed(tables_of(name), engines_of(name)).tables
    for table, timed in MOVED.items():
        ours, theirs = now.by_name()[table].records(), later.by_name()[table].records()
        assert len(ours) == len(theirs), table
        for one, other in zip(ours, theirs, strict=True):
            moved = {
                key: value + SHIFT_NS if key in timed and isinstance(value, int) else value
                for key, value in one.items()
            }
            assert other == moved, table


@pytest.mark.parametrize("name", CAPTURES)
def test_each_half_of_a_trace_gives_its_kernels_the_layers_that_the_whole_gives_them(
    name: str,
) -> None:
    whole = analysed(tables_of(name), engines_of(name), rules=False).tables
    starts = whole.inferences.ints("start_ns")
    cut = int(starts[len(starts) // 2])
    layer_of = {
        (row["start_ns"], row["stream"]): (row["engine"], row["layer_index"])
        for row in whole.kernels.records()
    }
    seen = 0
    for first in (True, False):
        part = analysed(
            half(tables_of(name), cut, first=first), engines_of(name), rules=False
        ).tables.kernels
        wrong = [
            row
            for row in part.records()
            if (row["engine"], row["layer_index"]) != layer_of[row["start_ns"], row["stream"]]
        ]
        assert [row for row in wrong if row["layer_index"] is not None] == []
        assert len(wrong) <= 0.02 * len(part)
        seen += len(part)
    assert seen == len(whole.kernels)


def half(tables: Held, cut: int, *, first: bool) -> Held:
    """What began before or after that moment; what was launched goes with its launch."""
    calls = tables["CUPTI_ACTIVITY_KIND_RUNTIME"]
    starts, correlations = calls["start"], calls["correlationId"]
    assert not isinstance(starts, Text)
    assert not isinstance(correlations, Text)
    before = set(correlations[starts < cut].tolist())
    made = {}
    for table, columns in tables.items():
        start = columns.get("start")
        if (
            start is None
            or isinstance(start, Text)
            or not (table.startswith("CUPTI") or table in RECORDED)
        ):
            made[table] = columns
            continue
        correlation = columns.get("correlationId")
        if (
            correlation is not None
            and not isinstance(correlation, Text)
            and table != "CUPTI_ACTIVITY_KIND_RUNTIME"
        ):
            early = np.isin(correlation, list(before))
        else:
            early = (start < cut) | (start == MISSING)
        kept = early if first else ~early | (start == MISSING)
        made[table] = rows_of(columns, np.flatnonzero(kept))
    return made


def with_idle_process(tables: Held) -> Held:
    """A second process with the same calls of CUDA but for its launches."""
    doubled = dict(
        with_other_process(
            tables, 50, of=("CUPTI_ACTIVITY_KIND_RUNTIME", "PROCESSES", "ThreadNames")
        )
    )
    calls, names = doubled["CUPTI_ACTIVITY_KIND_RUNTIME"], tables["StringIds"]["value"]
    ids, name_ids = tables["StringIds"]["id"], calls["nameId"]
    assert isinstance(names, Text)
    assert not isinstance(ids, Text)
    assert not isinstance(name_ids, Text)
    launches = [
        number
        for number, name in zip(ids.tolist(), names.list(), strict=True)
        if name and "Launch" in name
    ]
    own = np.arange(length(calls)) < length(tables["CUPTI_ACTIVITY_KIND_RUNTIME"])
    doubled["CUPTI_ACTIVITY_KIND_RUNTIME"] = rows_of(
        calls, np.flatnonzero(own | ~np.isin(name_ids, launches))
    )
    return doubled


@pytest.mark.parametrize("name", CAPTURES)
def test_a_process_that_launches_nothing_adds_nothing(name: str) -> None:
    found, was = told_when(name, with_idle_process), told_of(name)
    for what in ("kernels", "inferences", "layers"):
        assert found[what] == was[what], what


@pytest.mark.parametrize("name", CAPTURES)
def test_a_process_twice_is_twice_the_same_answer(name: str) -> None:
    one = analysed(tables_of(name), engines_of(name), rules=False).tables
    two = analysed(with_other_process(tables_of(name), 50), engines_of(name), rules=False).tables
    answers: dict[object, list[object]] = {}
    for row in two.kernels.records():
        answers.setdefault(row["pid"], []).append(
            [
                row["start_ns"],
                row["stream"],
                row["engine"],
                row["layer_index"],
                row["method"],
                row["part"],
            ]
        )
    wanted = sorted(
        (
            [
                row["start_ns"],
                row["stream"],
                row["engine"],
                row["layer_index"],
                row["method"],
                row["part"],
            ]
            for row in one.kernels.records()
        ),
        key=str,
    )
    assert [sorted(rows, key=str) for rows in answers.values()] == [wanted, wanted]
    assert len(two.inferences) == 2 * len(one.inferences)


@pytest.mark.parametrize("name", CAPTURES)
def test_parquet_files_give_the_same_answer(name: str, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for table, columns in tables_of(name).items():
        made = {
            column: pa.array(
                data.list()
                if isinstance(data, Text)
                else [None if value == MISSING else value for value in data.tolist()]
            )
            for column, data in columns.items()
        }
        if made and length(columns):
            pq.write_table(pa.table(made), tmp_path / f"{table}.parquet")
    tables = exported_tables(tmp_path)
    assert isinstance(tables, NsysTables)
    mapped = map_trace(trace_of(tables, source="report.sqlite"), list(engines_of(name)))
    assert told(analyze_mapped(mapped, rules=chosen_rules())) == told_of(name)
