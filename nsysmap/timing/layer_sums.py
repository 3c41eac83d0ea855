"""Sums of layer times: by kind, and over layers whose names differ only in numbers, as in repeated blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from nsysmap.base.report_schema import LAYER_KINDS, REPEATED_LAYERS
from nsysmap.base.table import IntArray, Row, Table

NUMBER = re.compile(r"\d+")
_LISTED = 3  # numbers of a row that its name lists, where another row's name is the same but for them
_ALIKE = 2.0  # largest ratio of the times of layers in one row


def layer_kinds(layers: Table) -> Table:
    """The table `layer_kinds`, by engine, then the most time first; `layers` is LAYERS with times."""
    found: dict[tuple[int | None, str], list[Row]] = {}
    for row in _timed(layers):
        found.setdefault((row.maybe_integer("engine"), row.text("kind")), []).append(row)
    rows = [{"engine": engine, "kind": kind, "layers": len(mine), **_sums(mine)} for (engine, kind), mine in found.items()]
    return Table.of_rows(LAYER_KINDS, sorted(rows, key=lambda row: (_engine(row), -_time(row), str(row["kind"]))))


def repeated_layers(layers: Table, totals: IntArray, whole_ns: int) -> Table:
    """The table `repeated_layers`, the most time first; every layer with time is in one row.

    ``totals`` has for each layer the time of its kernels in the steady-state part, ``whole_ns`` is that of all kernels in it (see
    totals.layer_totals).
    """
    timed = alike(layers)
    others = [[row] for row in layers if not row.maybe_integer("time_ns") and totals[row.integer("layer_id")]]  # in incomplete inferences
    rows = [
        {
            "engine": mine[0].maybe_integer("engine"),
            "name": name,
            "kind": mine[0].text("kind"),
            "layers": len(mine),
            "first_layer": min(row.integer("layer_id") for row in mine),
            **_sums(mine),
            "total_ns": (total := sum(int(totals[row.integer("layer_id")]) for row in mine)),
            "share_of_all_kernel_time": total / max(whole_ns, 1),
            "kernels": sum(row.maybe_integer("kernels") or 0 for row in mine),
            "opaque": mine[0].text("kind") == "foreign_node",
        }
        for name, mine in zip([*names_of(timed), *(row.text("name") for (row,) in others)], [*timed, *others], strict=True)
    ]
    rows.sort(key=lambda row: (-_time(row, "total_ns"), _engine(row), str(row["name"])))
    return Table.of_rows(REPEATED_LAYERS, [{"repeat_id": number, **row} for number, row in enumerate(rows)])


def alike(layers: Table) -> list[list[Row]]:
    """The layers with time, in groups that are one row of `repeated_layers`."""
    found: dict[tuple[int | None, str, str], list[Row]] = {}
    for row in _timed(layers):
        found.setdefault((row.maybe_integer("engine"), row.text("kind"), NUMBER.sub("*", row.text("name"))), []).append(row)
    return [mine for several in found.values() for mine in _of_like_time(several)]


def names_of(groups: Sequence[Sequence[Row]]) -> list[str]:
    """One name for each of these groups of layers (`alike`): `common_name`; where several of an engine and kind would have the same, with
    their numbers."""
    names = [common_name([row.text("name") for row in mine]) for mine in groups]
    keys = [(mine[0].maybe_integer("engine"), mine[0].text("kind"), name) for mine, name in zip(groups, names, strict=True)]
    count = Counter(keys)
    return [
        with_numbers([row.text("name") for row in mine]) if count[key] > 1 and len(mine) > 1 else name
        for mine, key, name in zip(groups, keys, names, strict=True)
    ]


def with_numbers(names: Sequence[str]) -> str:
    """One name for names that differ only in numbers, with the numbers that differ: {0,2,5,…}."""
    shown = []
    for column in zip(*(NUMBER.findall(name) for name in names), strict=True):
        numbers = sorted(set(column), key=lambda digits: (len(digits), digits))
        listed = numbers if len(numbers) <= _LISTED + 1 else [*numbers[:_LISTED], "…"]
        shown.append(numbers[0] if len(numbers) == 1 else f"{{{','.join(listed)}}}")
    return "".join(text + number for text, number in zip(NUMBER.split(names[0]), [*shown, ""], strict=True))


def common_name(names: Sequence[str]) -> str:
    """One name for names that differ only in numbers: a * for each number that differs, for every one where some of them have a *."""
    texts, found = NUMBER.split(names[0]), [NUMBER.findall(name) for name in names]
    if len({len(row) for row in found}) > 1:
        return NUMBER.sub("*", names[0])
    numbers = [set(column) for column in zip(*found, strict=True)]
    shown = [min(values) if len(values) == 1 else "*" for values in numbers]
    return "".join(text + number for text, number in zip(texts, [*shown, ""], strict=True))


def _timed(layers: Table) -> list[Row]:
    return [row for row in layers if row.maybe_integer("time_ns")]


def _of_like_time(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows in groups, each with times within a factor of each other."""
    parts: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -row.integer("time_ns")):
        if parts and parts[-1][0].integer("time_ns") <= _ALIKE * row.integer("time_ns"):
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts


def _sums(rows: Sequence[Row]) -> dict[str, object]:
    shares = [row.maybe_real("share_of_kernel_time") or 0.0 for row in rows]
    return {"time_ns": sum(row.maybe_integer("time_ns") or 0 for row in rows), "share_of_kernel_time": sum(shares)}


def _engine(row: Mapping[str, object]) -> int:
    engine = row["engine"]
    return engine if isinstance(engine, int) else -1


def _time(row: Mapping[str, object], column: str = "time_ns") -> int:
    time = row[column]
    assert isinstance(time, int)
    return time
