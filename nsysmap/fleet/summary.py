"""Summary of a fleet's dataset: medians by group, stragglers, outliers, drift over time, findings,
layers that differ between ranks.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsysmap.core.errors import NsysmapError
from nsysmap.core.idle_causes import idle_words
from nsysmap.core.records import dataclass
from nsysmap.fleet.charts import Chart, ChartRow, Mark, scale_of
from nsysmap.fleet.schema import FLEET_TABLES
from nsysmap.text.units import counted, duration, percent

if TYPE_CHECKING:
    import duckdb

ROWS = 20  # of a section
_STRAGGLES = 1.05  # ratio to its group's median
_OUTLIER = 1.5  # ratio to its own report's median
_DIFFERS = 1.10  # ratio of a layer's time on one rank to that on another
_LEAST_SHARE = 0.005  # share of kernel time from which on a layer is named
_IN_TIME = 2000  # reports of a group used to detect drift: every pair of them is compared
_SURE = 1.96  # standard deviations: 95 %
_MEMORY = "1GB"


@dataclass(frozen=True)
class FleetTable:
    """One table of the page, with an explanation."""

    key: str  # its name in an address
    title: str
    words: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    nothing: str  # what no rows mean
    align: str  # a letter per column: n a name, r a figure
    answer: str  # its answer in a sentence; the meaning of an empty table if it has no rows
    more: int = 0  # rows that are not shown
    chart: Chart | None = None


def sections(folder: Path) -> tuple[FleetTable, ...]:
    """The sections of the dataset in this folder, in reading order."""
    import duckdb

    database = duckdb.connect(config={"memory_limit": _MEMORY, "threads": 2})
    try:
        if not any((folder / FLEET_TABLES[-1].name).glob("*.parquet")):
            return ()
        for spec in FLEET_TABLES:
            files = str(Path(glob.escape(str(folder))) / spec.name / "*.parquet").replace("'", "''")
            database.execute(
                f"CREATE VIEW all_{spec.name} AS SELECT * FROM read_parquet('{files}')"
            )
        begin = len(_shared_folder(database)) + 1
        for spec in FLEET_TABLES:
            shorter = (
                f"substr(report, {begin}) AS report, coalesce(nullif(substr(report_group, {begin}),"
                " ''), '.') AS report_group"
            )
            database.execute(
                f"CREATE VIEW {spec.name} AS SELECT * REPLACE ({shorter}) FROM all_{spec.name}"
            )
        return tuple(_sections(database))
    except duckdb.Error as error:
        told = str(error).splitlines()[0]
        raise NsysmapError(
            str(folder), f"the dataset cannot be read ({told})", "run the fleet into a new folder"
        ) from error
    finally:
        database.close()


def _shared_folder(database: duckdb.DuckDBPyConnection) -> str:
    """The folder in which all reports lie, which is not shown; empty if a group is no folder."""
    names = database.execute(
        "SELECT min(report), max(report), bool_and(starts_with(report, report_group)) FROM"
        " all_reports"
    ).fetchone()
    if names is None or not names[2]:
        return ""
    shared = next(
        (i for i, (one, other) in enumerate(zip(names[0], names[1], strict=False)) if one != other),
        len(names[0]),
    )
    return "".join(str(names[0])[:shared].rpartition("/")[:2])


def _sections(database: duckdb.DuckDBPyConnection) -> Iterator[FleetTable]:
    yield _reports(database)
    yield replace(_medians(database), chart=_spread_chart(database))
    yield _stragglers(database)
    yield replace(_outliers(database), chart=_outlier_chart(database))
    yield replace(_drift(database), chart=_night_chart(database))
    yield _findings(database)
    yield _ranks(database)
    yield replace(_idle(database), chart=_idle_chart(database))


@dataclass(frozen=True)
class _Columns:
    """Headings of columns, and how they are aligned."""

    names: tuple[str, ...]
    align: str


def _cut(
    key: str,
    title: str,
    words: str,
    columns: _Columns,
    rows: Sequence[tuple[str, ...]],
    said: tuple[str, str],
) -> FleetTable:
    """A section with the first rows; ``said`` is its answer in a sentence, and the meaning of an
    empty table.
    """
    answer, nothing = said
    return FleetTable(
        key,
        title,
        words,
        columns.names,
        tuple(rows[:ROWS]),
        nothing,
        columns.align,
        answer if rows else nothing,
        max(0, len(rows) - ROWS),
    )


def _reports(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        "WITH held AS (SELECT *, median(gpu_time_ns) OVER (PARTITION BY report_group) AS usual FROM"
        " reports) SELECT report, gpu, inferences, gpu_time_ns, enqueue_ns, busy_share,"
        " mapped_share, findings, first_error FROM held ORDER BY coalesce(gpu_time_ns / usual, 0)"
        " DESC, report"
    ).fetchall()
    shown = [
        (
            name,
            gpu or "–",
            f"{count:,}",
            duration(own),
            duration(enqueue),
            _share(busy),
            _share(mapped),
            f"{found:,}",
            _begin(error),
        )
        for name, gpu, count, own, enqueue, busy, mapped, found, error in rows
    ]
    broken = sum(1 for row in rows if row[-1])
    lacking = f", {broken:,} with an error: see the last column" if broken else ""
    return _cut(
        "reports",
        "Reports",
        "The slowest first, relative to their group's median. GPU time: time during which a kernel,"
        " copy or memset of an inference ran; enqueue: the host time to launch it; both are medians"
        " of the steady-state inferences. Busy: the GPU's busy share of the time from the first to"
        " the last of them. Layers known: share of kernel time.",
        _Columns(
            (
                "report",
                "GPU",
                "inferences",
                "GPU time",
                "enqueue",
                "busy",
                "layers known",
                "findings",
                "error",
            ),
            "nnrrrrrrn",
        ),
        shown,
        (f"{counted(len(rows), 'report')}{lacking}.", "No report was analysed."),
    )


def _begin(error: str | None) -> str:
    return "–" if error is None else re.split(r"[:;] |\. ", error, maxsplit=1)[0]


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value, 1, 0)


_OF_REPORT = """
    SELECT report_group, report, any_value(rank) AS rank, coalesce(engine, '') AS engine,
      count(*) AS inferences,
      median(gpu_time_ns) AS gpu_ns, median(enqueue_ns) AS enqueue_ns
    FROM inferences WHERE steady AND gpu_time_ns IS NOT NULL GROUP BY ALL
"""


def _medians(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        f"WITH one AS ({_OF_REPORT}) SELECT report_group, engine, count(*), sum(inferences),"
        " median(gpu_ns), min(gpu_ns), max(gpu_ns), median(enqueue_ns) FROM one GROUP BY"
        " report_group, engine ORDER BY report_group, engine"
    ).fetchall()
    shown = [
        (group, engine or "–", f"{n:,}", f"{count:,}", *map(duration, times))
        for group, engine, n, count, *times in rows
    ]
    return _cut(
        "medians-by-group",
        "Medians by group",
        "GPU time is the time during which a kernel, copy or memset of an inference ran, the median"
        " of a report's steady-state inferences; shown are the median, minimum and maximum over the"
        " group's reports.",
        _Columns(
            (
                "group",
                "engine",
                "reports",
                "inferences",
                "GPU time",
                "least",
                "greatest",
                "enqueue",
            ),
            "nnrrrrrr",
        ),
        shown,
        (_spread_words([row[4] for row in rows]), "No report has steady-state inferences."),
    )


def _spread_words(medians: Sequence[float]) -> str:
    if len(medians) == 1:
        return f"An inference takes {duration(medians[0])} of GPU time."
    return (
        f"From {duration(min(medians))} to {duration(max(medians))} of GPU time per inference over"
        f" {counted(len(medians), 'group')}."
    )


def _stragglers(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        f"WITH one AS ({_OF_REPORT}), held AS (SELECT *, median(gpu_ns) OVER same AS usual,"
        " count(*) OVER same AS n FROM one WINDOW same AS (PARTITION BY report_group, engine))"
        " SELECT report, rank, engine, gpu_ns, usual, gpu_ns / usual FROM held WHERE n >= 3 AND"
        " gpu_ns >= ? * usual ORDER BY 6 DESC, report, engine",
        [_STRAGGLES],
    ).fetchall()
    told = _only(
        database,
        f"WITH one AS ({_OF_REPORT}) SELECT count(*) FROM (SELECT 1 FROM one GROUP BY report_group,"
        " engine HAVING count(*) >= 3)",
    )
    shown = [
        (name, _text(rank), engine or "–", duration(own), duration(usual), f"{times:.2f}x")
        for name, rank, engine, own, usual, times in rows
    ]
    return _cut(
        "stragglers",
        "Stragglers",
        f"Reports whose median GPU time is at least {_STRAGGLES:g} times the median of their"
        " group's reports, of three or more.",
        _Columns(("report", "rank", "engine", "GPU time", "group median", "ratio"), "nrnrrr"),
        shown,
        (
            (
                f"{shown[0][0]} takes {shown[0][-1]} its group's median;"
                f" {counted(len(shown), 'straggler')}."
                if shown
                else ""
            ),
            (
                f"None in {counted(told, 'group')} of three reports or more."
                if told
                else (
                    "Cannot tell: no group has three reports with steady-state inferences of one"
                    " engine."
                )
            ),
        ),
    )


def _outliers(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        "WITH held AS (SELECT report, coalesce(engine, '') AS engine, gpu_time_ns, start_ns,"
        " inference, median(gpu_time_ns) OVER (PARTITION BY report, engine) AS usual FROM"
        " inferences WHERE steady AND gpu_time_ns IS NOT NULL) SELECT report, engine, count(*)"
        " FILTER (gpu_time_ns >= ? * usual) AS far, count(*), any_value(usual), max(gpu_time_ns),"
        " arg_max(inference, gpu_time_ns) FROM held GROUP BY report, engine HAVING far > 0 ORDER BY"
        " far / count(*) DESC, report, engine",
        [_OUTLIER],
    ).fetchall()
    told = _only(
        database, "SELECT count(*) FROM inferences WHERE steady AND gpu_time_ns IS NOT NULL"
    )
    shown = [
        (name, engine or "–", f"{far:,} of {count:,}", duration(usual), duration(worst), str(which))
        for name, engine, far, count, usual, worst, which in rows
    ]
    return _cut(
        "outliers",
        "Outliers",
        f"Inferences that took at least {_OUTLIER:g} times the median GPU time of their own"
        " report.",
        _Columns(("report", "engine", "inferences", "median", "longest", "its number"), "nnrrrr"),
        shown,
        (
            (
                f"In {counted(len(shown), 'report')}, most of them in {shown[0][0]}: {shown[0][2]}"
                " inferences."
                if shown
                else ""
            ),
            (
                "None."
                if told
                else "Cannot tell: no report has steady-state inferences with GPU work."
            ),
        ),
    )


def _drift(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        f"WITH one AS ({_OF_REPORT}) SELECT o.report_group, o.engine, r.captured_at_ns, o.gpu_ns"
        " FROM one o JOIN reports r USING (report) WHERE r.captured_at_ns IS NOT NULL ORDER BY 1,"
        " 2, 3"
    ).fetchall()
    series: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for group, engine, at, took in rows:
        series.setdefault((group, engine), []).append((int(at), float(took)))
    shown = []
    for (group, engine), held in series.items():
        told = _trend(held[:: max(1, -(-len(held) // _IN_TIME))])
        if told is not None:
            shown.append(
                (group, engine or "–", f"{len(held):,}", _apart(held[-1][0] - held[0][0]), *told)
            )
    drifted = [row for row in shown if row[4] != "–"]
    return _cut(
        "drift-over-time",
        "Drift over time",
        "The change is from the first capture to the last: the median slope over all pairs of a"
        " group's reports (Theil-Sen). It is called a drift if Kendall's rank test confirms it at"
        " 95 %.",
        _Columns(("group", "engine", "reports", "time between", "change", "verdict"), "nnrrrn"),
        shown,
        (
            (
                "; ".join(f"{row[0]} is {row[5]} ({row[4]})" for row in drifted[:3]) + "."
                if drifted
                else "None is certain."
            ),
            (
                "Cannot tell: no group has four reports of one engine with different, known capture"
                " times."
            ),
        ),
    )


def _trend(held: Sequence[tuple[int, float]]) -> tuple[str, str] | None:
    """The slope in words, and whether it is a drift; None if that cannot be determined."""
    at, took = np.array([one[0] for one in held], np.float64), np.array([one[1] for one in held])
    first, second = np.triu_indices(len(held), 1)
    apart = at[second] - at[first]
    later = apart > 0
    count = len(held)
    if count < 4 or not later.any():
        return None
    difference = took[second] - took[first]
    slope = (
        float(np.median(difference[later] / apart[later]))
        * float(at[-1] - at[0])
        / float(np.median(took))
    )
    order = float(np.sign(difference[later]).sum())
    spread = (count * (count - 1) * (2 * count + 5) / 18) ** 0.5
    sure = abs(order) - 1 > _SURE * spread
    return (
        (f"{100 * slope:+.1f}%", "slower" if order > 0 else "faster")
        if sure
        else ("–", "no certain drift")
    )


def _apart(time_ns: int) -> str:
    """A time between two captures, in the largest unit that gives at least two."""
    seconds = time_ns / 1e9
    units = (("day", 86_400), ("hour", 3_600), ("minute", 60))
    return next(
        (counted(round(seconds / length), name) for name, length in units if seconds >= 2 * length),
        duration(time_ns),
    )


def _findings(database: duckdb.DuckDBPyConnection) -> FleetTable:
    reports = _only(database, "SELECT count(*) FROM reports")
    rows = database.execute(
        "SELECT rule, any_value(severity), count(DISTINCT report) AS reports, count(*),"
        " median(share_of_window) FROM findings GROUP BY rule ORDER BY reports DESC, rule"
    ).fetchall()
    shown = [
        (
            rule,
            severity,
            f"{n:,} of {reports:,}",
            f"{count:,}",
            "–" if share is None else percent(share, 1),
        )
        for rule, severity, n, count, share in rows
    ]
    return _cut(
        "findings-by-count",
        "Findings by count",
        "Shares are of the measured time, the median of the findings with a cost. Costs of"
        " different rules overlap: do not add them.",
        _Columns(("rule", "severity", "reports", "findings", "share"), "nnrrr"),
        shown,
        (
            "Most frequent: " + ", ".join(f"{row[0]} (in {row[2]})" for row in shown[:3]) + ".",
            (
                "No rule found anything; the column skipped_rules of `reports` says how many could"
                " not tell."
            ),
        ),
    )


def _ranks(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        "WITH one AS (SELECT report_group, coalesce(engine, '') AS engine, layer, rank,"
        " median(time_ns) AS took, max(share_of_kernel_time) AS share FROM layers WHERE rank IS NOT"
        " NULL AND time_ns > 0 GROUP BY ALL) SELECT report_group, engine, layer, count(*),"
        " min(took), arg_min(rank, took), max(took), arg_max(rank, took), max(took) / min(took)"
        " FROM one GROUP BY report_group, engine, layer HAVING count(*) > 1 AND max(took) >= ? *"
        " min(took) AND max(share) >= ? ORDER BY max(took) - min(took) DESC, layer",
        [_DIFFERS, _LEAST_SHARE],
    ).fetchall()
    told = _only(
        database,
        "SELECT count(DISTINCT report_group) FROM (SELECT report_group FROM layers WHERE rank IS"
        " NOT NULL AND time_ns > 0 GROUP BY report_group, coalesce(engine, ''), layer HAVING"
        " count(DISTINCT rank) > 1)",
    )
    shown = [
        (
            group,
            layer,
            f"{ranks:,}",
            f"{duration(least)} (rank {fast})",
            f"{duration(most)} (rank {slow})",
            f"{times:.2f}x",
        )
        for group, _, layer, ranks, least, fast, most, slow, times in rows
    ]
    return _cut(
        "layers-that-differ-between-ranks",
        "Layers that differ between ranks",
        f"Layers of one group whose median time at one rank is at least {_DIFFERS:g} times that at"
        " another, the greatest difference first.",
        _Columns(("group", "layer", "ranks", "least", "greatest", "ratio"), "nnrrrr"),
        shown,
        (
            (
                f"{shown[0][1]}: {shown[0][3]} to {shown[0][4]}; {counted(len(shown), 'layer')}."
                if shown
                else ""
            ),
            (
                f"None in {counted(told, 'group')} with the same layers at two ranks or more."
                if told
                else (
                    "Cannot tell: no group has the same layers at two ranks (a number after the"
                    " word rank in the path, or --label)."
                )
            ),
        ),
    )


def _idle(database: duckdb.DuckDBPyConnection) -> FleetTable:
    rows = database.execute(
        "SELECT report_group, cause, count(DISTINCT report), median(share_of_window),"
        " max(share_of_window), arg_max(report, share_of_window) FROM idle GROUP BY report_group,"
        " cause ORDER BY report_group, 4 DESC, cause"
    ).fetchall()
    shown = [
        (group, idle_words(cause), f"{n:,}", percent(usual, 1), percent(most, 1), which)
        for group, cause, n, usual, most, which in rows
    ]
    worst = max(rows, key=lambda row: row[4], default=None)
    return _cut(
        "idle-time-by-cause",
        "Idle time by cause",
        "The share is that of the window from the start of the first to the end of the last"
        " steady-state inference: the median over the reports that have such idle time, and the"
        " maximum.",
        _Columns(("group", "cause", "reports", "share", "greatest", "of report"), "nnrrrn"),
        shown,
        (
            (
                f"Most: {idle_words(worst[1])} for {percent(worst[4], 1)} of the time in"
                f" {worst[5]}."
                if worst
                else ""
            ),
            "No report has idle time.",
        ),
    )


_CHART_ROWS = 12  # of a chart; the tables have more


def _spread_chart(database: duckdb.DuckDBPyConnection) -> Chart | None:
    """How groups differ: a mark for each report at its median GPU time, a row for each group and
    engine; the groups that differ most within come first.
    """
    rows = database.execute(
        f"WITH one AS ({_OF_REPORT}) SELECT report_group, engine, report, gpu_ns FROM one ORDER BY"
        " report_group, engine, gpu_ns"
    ).fetchall()
    held: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for group, engine, report, took in rows:
        held.setdefault((group, engine), []).append((report, float(took)))
    if sum(map(len, held.values())) < 2:
        return None
    several = len({engine for _, engine in held}) > 1
    drawn = []
    for (group, engine), mine in held.items():
        times = [took for _, took in mine]
        low, high = duration(min(times)), duration(max(times))
        marks = tuple(Mark(took, f"{report}: {duration(took)}") for report, took in mine)
        name = f"{group}, {engine}" if several and engine else group
        figure = low if low == high else f"{low} to {high}"
        drawn.append((max(times) / max(min(times), 1.0), ChartRow(name, figure, marks)))
    drawn.sort(key=lambda one: -one[0])
    low_ns, high_ns = scale_of([took for mine in held.values() for _, took in mine])
    return Chart(
        "How do groups, and the reports of one group, differ?",
        "a mark is a report: the median GPU time of its inferences",
        duration(max(low_ns, 0.0)), duration(high_ns), low_ns, high_ns,
        tuple(row for _, row in drawn[:_CHART_ROWS]),
        beyond=max(len(drawn) - _CHART_ROWS, 0),
    )  # fmt: skip


def _night_chart(database: duckdb.DuckDBPyConnection) -> Chart | None:
    """How nights differ: each report at the time of its capture, as high as its median GPU time in
    multiples of the lowest of its engine; a row for each engine.
    """
    rows = database.execute(
        f"WITH one AS ({_OF_REPORT}) SELECT o.engine, o.report, r.captured_at_ns, o.gpu_ns,"
        " strftime(make_timestamp(r.captured_at_ns // 1000), '%Y-%m-%d %H:%M') FROM one o JOIN"
        " reports r USING (report) WHERE r.captured_at_ns IS NOT NULL ORDER BY 1, 3"
    ).fetchall()
    if len({row[2] for row in rows}) < 2:
        return None
    held: dict[str, list[tuple[str, int, float, str]]] = {}
    for engine, report, at, took, when in rows:
        held.setdefault(engine, []).append((report, int(at), float(took), when))
    drawn, highest = [], 1.0
    for engine, mine in held.items():
        least = max(min(took for _, _, took, _ in mine), 1.0)
        most = max(took for _, _, took, _ in mine)
        highest = max(highest, most / least)
        marks = tuple(
            Mark(float(at), f"{report}, {when}: {duration(took)}", high=took / least)
            for report, at, took, when in mine
        )
        figure = f"{duration(least)} to {duration(most)}"
        drawn.append(ChartRow(engine or "no engine", figure, marks))
    low, high = scale_of([float(row[2]) for row in rows])
    begin = min(rows, key=lambda row: row[2])[4]
    end = max(rows, key=lambda row: row[2])[4]
    return Chart(
        "How do nights differ?",
        "a mark is a report: the median GPU time of its inferences, by when it was captured (UTC)",
        begin, end, low, high, tuple(drawn[:_CHART_ROWS]),
        across=(1.0 - (highest - 1.0) * 0.05, highest + 1e-9),
        beyond=max(len(drawn) - _CHART_ROWS, 0),
    )  # fmt: skip


def _outlier_chart(database: duckdb.DuckDBPyConnection) -> Chart | None:
    """Draws the reports that have outliers: a bar from the median to the 99th percentile and a mark
    for the longest inference, in multiples of the report's median.
    """
    rows = database.execute(
        "WITH held AS (SELECT report, coalesce(engine, '') AS engine, gpu_time_ns, median("
        "gpu_time_ns) OVER (PARTITION BY report, engine) AS usual FROM inferences WHERE steady AND"
        " gpu_time_ns IS NOT NULL) SELECT report, engine, quantile_cont(gpu_time_ns / usual, 0.99),"
        " max(gpu_time_ns / usual), count(*) FROM held WHERE usual > 0 GROUP BY report, engine"
        " ORDER BY 4 DESC, 1"
    ).fetchall()
    if not rows:
        return None
    several = len({row[1] for row in rows}) > 1
    drawn = tuple(
        ChartRow(
            f"{report}, {engine}" if several and engine else report,
            f"{most:.2f}x",
            (
                Mark(1.0, f"99 % of {count:,} inferences within {upper:.2f}x", until=float(upper)),
                Mark(float(most), f"the longest: {most:.2f}x the median"),
            ),
        )
        for report, engine, upper, most, count in rows[:_CHART_ROWS]
    )
    low, high = scale_of([1.0, _OUTLIER, *(float(row[3]) for row in rows)])
    return Chart(
        "Which reports have outliers?",
        f"the bar holds 99 % of the inferences, the mark is the longest; from {_OUTLIER:g}x the"
        " median of the report (the line) it is an outlier",
        "1x", f"{high:.2f}x", low, high, drawn, line=_OUTLIER,
        beyond=max(len(rows) - _CHART_ROWS, 0),
    )  # fmt: skip


def _idle_chart(database: duckdb.DuckDBPyConnection) -> Chart | None:
    """Why GPUs were idle: for each group the median share of each cause, end to end."""
    rows = database.execute(
        "WITH one AS (SELECT report_group, report, cause, avg(share_of_window) AS share FROM idle"
        " GROUP BY ALL), n AS (SELECT report_group, count(DISTINCT report) AS n FROM idle GROUP BY"
        " ALL) SELECT report_group, cause, sum(share) / any_value(n) FROM one JOIN n USING"
        " (report_group) GROUP BY report_group, cause ORDER BY report_group, 3 DESC, cause"
    ).fetchall()
    held: dict[str, list[tuple[str, float]]] = {}
    for group, cause, share in rows:
        held.setdefault(group, []).append((cause, float(share)))
    if not held:
        return None
    drawn = []
    for group, mine in held.items():
        marks, left = [], 0.0
        for cause, share in mine:
            words = f"{idle_words(cause)}: {percent(share, 1)}"
            marks.append(Mark(left, words, until=left + share, cause=cause))
            left += share
        drawn.append((left, ChartRow(group, percent(left, 1), tuple(marks))))
    drawn.sort(key=lambda one: -one[0])
    return Chart(
        "Why were GPUs idle?",
        "shares of the time of the inferences by cause, the mean over a group's reports",
        "0%", "100%", 0.0, 1.0, tuple(row for _, row in drawn[:_CHART_ROWS]),
        beyond=max(len(drawn) - _CHART_ROWS, 0),
    )  # fmt: skip


def _only(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    row: Any = database.execute(sql).fetchone()
    return int(row[0])


def _text(value: object) -> str:
    return "–" if value is None else str(value)
