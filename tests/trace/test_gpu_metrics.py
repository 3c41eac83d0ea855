"""GPU metrics are read from exports of any version, whatever is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.nsys.sqlite_columns import sqlite_tables
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.trace import gpu_metrics
from nsysmap.trace.gpu_metrics import Enough, GpuMetrics, _Moments, read_gpu_metrics

KIND = 281479271677952
NAMES = ["GPC Clock Frequency [MHz]", "SM Active [Throughput %]"]
Row = tuple[int | None, int, int, int]


def export(
    path: Path, rows: Iterable[Row], names: Iterable[tuple[int, int, str]], *, raw: bool = False
) -> NsysTables:
    with closing(sqlite3.connect(path)) as connection:
        first = "rawTimestamp INTEGER, " if raw else ""
        connection.execute(
            f"CREATE TABLE GPU_METRICS ({first}timestamp INTEGER, typeId INTEGER, metricId INTEGER,"
            " value INTEGER)"
        )
        connection.execute(
            "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT,"
            " metricId INTEGER, metricName TEXT)"
        )
        connection.executemany(
            f"INSERT INTO GPU_METRICS VALUES ({'7, ' if raw else ''}?, ?, ?, ?)", rows
        )
        connection.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, 0, '', ?, ?)", names)
        connection.commit()
    return sqlite_tables(path)


def regular(count: int, *, kind: int = KIND, value: int = 40) -> list[Row]:
    return [
        row
        for at in range(count)
        for row in ((at * 1000, kind, 0, 1_500_000_000), (at * 1000, kind, 1, value))
    ]


def named(kind: int = KIND) -> list[tuple[int, int, str]]:
    return [(kind, at, name) for at, name in enumerate(NAMES)]


def test_a_sample_lasts_to_the_next_and_the_first_is_left_out(tmp_path: Path) -> None:
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", regular(6), named(), raw=True))
    assert found.start_ns.tolist() == [1000, 2000, 3000, 4000]
    assert found.end_ns.tolist() == [2000, 3000, 4000, 5000]
    assert [each.meaning for each in found.metrics] == ["gpc_clock", "sm_active"]
    assert found.values[1].tolist() == [40.0] * 4
    assert found.frequency_hz == 1e6


def test_each_gpu_has_its_own_samples(tmp_path: Path) -> None:
    both = export(
        tmp_path / "a.sqlite",
        [*regular(5), *regular(5, kind=KIND + 1, value=70)],
        [*named(), *named(KIND + 1)],
    )
    assert [(each.device, each.values[1, 0]) for each in read_gpu_metrics(both)] == [
        (0, 40.0),
        (1, 70.0),
    ]


def test_rows_in_any_order_and_missing_values(tmp_path: Path) -> None:
    rows = regular(8)
    del rows[9]  # SM Active of the fifth sample
    mixed = [rows[at] for at in np.random.default_rng(0).permutation(len(rows))]
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", mixed, named()))
    assert found.start_ns.tolist() == [1000, 2000, 3000, 4000, 5000, 6000]
    assert np.isnan(found.values[1, 3]) and np.isfinite(found.values[0]).all()


def test_holes_are_counted_and_no_sample_reaches_over_one(tmp_path: Path) -> None:
    rows = [row for row in regular(20) if not 6000 < int(row[0] or 0) < 10_000]
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", rows, named()))
    assert found.holes == 1
    assert (found.end_ns - found.start_ns == 1000).all()
    assert 6000 not in found.start_ns


def test_stretches_that_nsys_mistrusts_are_left_out(tmp_path: Path) -> None:
    ends = KIND + 512
    rows: list[Row] = [*regular(20), (5000, ends, 0, 9000)]
    (found,) = read_gpu_metrics(
        export(tmp_path / "a.sqlite", rows, [*named(), (ends, 0, "EndTimestamp")])
    )
    assert found.mistrusted == 4
    assert not np.isin(found.start_ns, [5000, 6000, 7000, 8000]).any()


def test_clocks_above_two_gigahertz_are_not_negative(tmp_path: Path) -> None:
    rows: list[Row] = [
        (at, kind, metric, value - (1 << 32) if metric == 0 else value)
        for at, kind, metric, value in regular(6)
    ]
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", rows, named()))
    assert (found.values[0] == 1_500_000_000).all()


def test_a_metric_without_a_name_goes_by_its_number(tmp_path: Path) -> None:
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", regular(6), named()[:1]))
    assert [each.name for each in found.metrics] == [NAMES[0]]
    assert [each.name for each in found.unknown] == ["1"]
    assert found.values.shape == (1, 4)  # nobody asks for values that mean nothing known


def test_a_time_that_is_not_known_is_left_out(tmp_path: Path) -> None:
    rows: list[Row] = [(None, KIND, 0, 5), *regular(6)]
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", rows, named()))
    assert len(found.start_ns) == 4


def test_without_the_tables_nothing_was_sampled(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.commit()
    assert read_gpu_metrics(sqlite_tables(tmp_path / "a.sqlite")) == ()


def test_two_samples_are_too_few(tmp_path: Path) -> None:
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", regular(2), named()))
    assert len(found.start_ns) == 0


def test_what_no_counter_can_be_is_no_value(tmp_path: Path) -> None:
    rows = regular(8)
    rows[5] = (2000, KIND, 1, 9_000_000_000_000)
    rows[7] = (3000, KIND, 1, -5)
    (found,) = read_gpu_metrics(export(tmp_path / "a.sqlite", rows, named()))
    assert np.isnan(found.values[1]).tolist() == [False, True, True, False, False, False]
    assert np.isfinite(found.values[0]).all()


def test_a_raw_time_is_taken_where_there_is_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    export(path, regular(6), named())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE GPU_METRICS RENAME COLUMN timestamp TO rawTimestamp")
        connection.commit()
    (found,) = read_gpu_metrics(sqlite_tables(path))
    assert found.start_ns.tolist() == [1000, 2000, 3000, 4000]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    order=st.sampled_from(("as sampled", "one moved", "one lost", "one twice", "mixed")),
    at_once=st.integers(1, 40),
    few=st.sampled_from((1, 8, 1024)),
)
def test_samples_are_put_together_whatever_is_read_at_once(
    seed: int, order: str, at_once: int, few: int
) -> None:
    random = Random(seed)
    which = random.sample(range(7), random.randrange(1, 6))
    rows = [
        (1000 * moment, kind, at, random.randrange(100))
        for moment in range(random.randrange(3, 30))
        for kind in (KIND, KIND + 1)[: random.randrange(1, 3)]
        for at in which
    ]
    place = random.randrange(len(rows))
    if order == "one lost":
        del rows[place]
    elif order == "one twice":
        rows.insert(random.randrange(len(rows)), (*rows[place][:3], random.randrange(100)))
    elif order == "one moved":
        rows.insert(random.randrange(len(rows)), rows.pop(place))
    elif order == "mixed":
        random.shuffle(rows)
    for kind in (KIND, KIND + 1):
        held = _Moments()
        mine = [row for row in rows if row[1] == kind]
        with patch.object(gpu_metrics, "_FEW_ROWS", few):
            for begin in range(0, len(mine), at_once):
                held.add(
                    tuple(  # type: ignore[arg-type]
                        np.array([row[at] for row in mine[begin : begin + at_once]])
                        for at in (0, 2, 3)
                    )
                )
        if not mine:
            continue
        metrics, moments, values = held.pivoted(Path(), lambda _: True)
        assert metrics == sorted({row[2] for row in mine})
        assert moments.tolist() == sorted({row[0] for row in mine})
        told = {
            (int(moments[at]), metrics[row]): int(value)
            for (row, at), value in np.ndenumerate(values)
            if np.isfinite(value)
        }
        assert told == {(time, at): value for time, _, at, value in mine}
        assert sorted(
            row
            for part in held.rows()
            for row in zip(*(column.tolist() for column in part), strict=True)
        ) == sorted((time, at, value) for time, _, at, value in mine)


@pytest.mark.parametrize("lost", [0, 50_001, 99_999])
def test_only_the_rows_around_one_that_is_missing_are_sorted(lost: int) -> None:
    held = _Moments()
    time, which = np.divmod(np.delete(np.arange(100_000), lost), 10)
    for begin in range(0, len(time), 30_000):
        held.add(
            (
                time[begin : begin + 30_000],
                which[begin : begin + 30_000],
                which[begin : begin + 30_000],
            )
        )
    assert sum(len(rows[0]) for rows in held.others) < 1100
    metrics, moments, values = held.pivoted(Path(), lambda _: True)
    assert metrics == list(range(10))
    assert moments.tolist() == list(range(10_000))
    assert np.argwhere(np.isnan(values)).tolist() == [[lost % 10, lost // 10]]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (lambda at: (at, KIND, at, 1), "5,000 metrics at 5,000 moments"),
        (lambda at: (0, at, 0, 1), "5,000 types"),
    ],
)
def test_a_small_file_cannot_take_all_memory(
    tmp_path: Path, row: Callable[[int], Row], told: str
) -> None:
    tables = export(tmp_path / "a.sqlite", [row(at) for at in range(5000)], named())
    with pytest.raises(NsysmapError, match=f"GPU_METRICS has .*{told}"):
        read_gpu_metrics(tables)


def long_run(moments: int, lost: Iterable[tuple[int, int]], seed: int) -> list[Row]:
    """A long run at 200 kHz whose moments jitter, without those lost."""
    random = np.random.default_rng(seed)
    time = (
        5000 * np.arange(moments)
        + random.integers(-40, 41, moments)
        + (np.arange(moments) * 5e-3 * seed).astype(np.int64)
    )
    kept = np.ones(moments, np.bool_)
    for begin, end in lost:
        kept[begin:end] = False
    rows = zip(time[kept].tolist(), random.integers(0, 101, int(kept.sum())).tolist(), strict=True)
    return [
        row for at, value in rows for row in ((at, KIND, 0, 1_500_000_000), (at, KIND, 1, value))
    ]


def enough_for(
    *, begin: float = 0.0, end: float = np.inf, most: int = 6000
) -> Callable[[int, float], Enough]:
    def wanted(device: int, period_ns: float) -> Enough:
        assert device == 0 and period_ns == pytest.approx(5000, abs=2)
        return Enough(begin * 5000, end * 5000, most, 500)

    return wanted


@pytest.mark.parametrize(
    "lost",
    [
        (),
        ((0, 5),),
        ((20_000, 31_000),),
        ((3, 4), (7, 90), (11_000, 11_001), (39_990, 39_999)),
        tuple((at, at + 2) for at in range(100, 2000, 70)),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_part_of_a_long_run_tells_of_all_what_reading_all_tells(
    tmp_path: Path, lost: tuple[tuple[int, int], ...], seed: int
) -> None:
    tables = export(tmp_path / "a.sqlite", long_run(40_000, lost, seed), named())
    (part,), (whole,) = GpuMetrics(tables).enough(enough_for()), read_gpu_metrics(tables)
    assert part.part_of is not None and whole.part_of is None
    assert 4000 < len(part.start_ns) < 9000
    assert (part.count, part.holes, part.device, part.number) == (
        whole.count,
        whole.holes,
        whole.device,
        whole.number,
    )
    assert part.lost_share == pytest.approx(whole.lost_share, rel=1e-9)
    assert [each.tolist() for each in part.stretches_ns] == [
        each.tolist() for each in whole.stretches_ns
    ]
    at = np.searchsorted(whole.start_ns, part.start_ns)
    assert (whole.start_ns[at] == part.start_ns).all() and (whole.end_ns[at] == part.end_ns).all()
    assert (whole.values[:, at] == part.values).all()
    tenths = np.bincount(
        10 * (part.start_ns - whole.start_ns[0]) // (whole.end_ns[-1] - whole.start_ns[0]),
        minlength=10,
    )
    assert tenths.min() > 0.2 * len(part.start_ns) / 10 or lost


def test_the_wanted_time_is_read_as_densely_as_wanted_and_the_rest_too(tmp_path: Path) -> None:
    tables = export(tmp_path / "a.sqlite", long_run(60_000, (), 0), named())
    (part,) = GpuMetrics(tables).enough(enough_for(begin=30_000, end=50_000))
    wanted = (part.start_ns >= 30_000 * 5000) & (part.end_ns <= 50_000 * 5000)
    assert 5500 < wanted.sum() < 8500
    assert 11_000 < (~wanted).sum() < 17_000


Change = Callable[[list[Row]], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.pop(30_001),
        lambda rows: rows.insert(30_000, rows[30_000]),
        lambda rows: rows.__setitem__(30_000, (rows[30_000][0], KIND, 5, 1)),
        lambda rows: rows.__setitem__(slice(30_000, 30_500), rows[30_000:30_500][::-1]),
        lambda rows: rows.pop(),
        lambda rows: rows.insert(40_000, (rows[40_000][0], KIND + 512, 0, 1)),
        lambda rows: rows.extend(
            (at, KIND + 1, metric, value) for at, _, metric, value in rows[:100]
        ),
    ],
)
def test_nothing_is_taken_for_granted_of_pages_that_were_not_read(
    tmp_path: Path, change: Change
) -> None:
    rows = long_run(40_000, (), 0)
    change(rows)
    tables = export(tmp_path / "a.sqlite", rows, named())
    part, whole = GpuMetrics(tables).enough(enough_for(most=1000)), read_gpu_metrics(tables)
    assert [(each.count, each.holes, each.number) for each in part] == [
        (each.count, each.holes, each.number) for each in whole
    ]


def test_short_runs_and_several_gpus_are_read_as_a_whole(tmp_path: Path) -> None:
    rows = long_run(5000, (), 0)
    other: list[Row] = [(at, KIND + 1, metric, value) for at, _, metric, value in rows]
    for name, held, names in (
        ("a", rows, named()),
        ("b", [*rows, *other], [*named(), *named(KIND + 1)]),
    ):
        tables = export(tmp_path / f"{name}.sqlite", held, names)
        assert all(
            each.part_of is None for each in GpuMetrics(tables).enough(enough_for(most=3000))
        )
