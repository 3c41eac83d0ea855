"""Sums of layer times: by kind, and over layers whose names differ only in numbers, as in repeated blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

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
    """One name for each of these groups of layers (`alike`), which no layer of another group of its engine fits."""
    return names_apart([[row.text("name") for row in mine] for mine in groups], [mine[0].maybe_integer("engine") for mine in groups])


def names_apart(groups: Sequence[Sequence[str]], keys: Sequence[object]) -> list[str]:
    """`common_name` of each group of names, with those numbers listed that keep out the names of other groups with an equal key."""
    every: dict[tuple[object, str], set[str]] = {}
    for key, mine in zip(keys, groups, strict=True):
        for name in mine:
            every.setdefault((key, NUMBER.sub("*", name)), set()).add(name)
    found = []
    for key, mine in zip(keys, groups, strict=True):
        texts = {NUMBER.sub("*", name) for name in mine}
        own = set(mine)
        found.append(_apart(own, every[key, texts.pop()] - own) if len(texts) == 1 else common_name(mine))
    return found


def _apart(own: set[str], others: set[str]) -> str:
    """The common name of names that differ only in numbers, with the numbers of as few places as keep out the others, as in
    layer.{0,2,5,…}; where none do, of those that keep out most."""
    first, columns = next(iter(own)), [set(column) for column in zip(*map(NUMBER.findall, own), strict=True)]
    shared = [place for place, values in enumerate(columns) if len(values) == 1]
    different = [place for place, values in enumerate(columns) if len(values) > 1]
    numbers = [NUMBER.findall(name) for name in others]
    numbers = [row for row in numbers if all(row[place] in columns[place] for place in shared)]
    choices = [(), *combinations(different, 1), *combinations(different, 2), tuple(different)] if numbers else [()]

    def cost(places: tuple[int, ...]) -> tuple[int, int, int]:
        fits = sum(all(row[place] in columns[place] for place in places) for row in numbers)
        return fits, len(places), sum(len(columns[place]) for place in places)

    listed = min(choices, key=cost)
    shown = [_listed(values) if place in (*shared, *listed) else "*" for place, values in enumerate(columns)]
    return "".join(text + number for text, number in zip(NUMBER.split(first), [*shown, ""], strict=True))


def _listed(numbers: Iterable[str]) -> str:
    """One number, or several in braces."""
    different = sorted(set(numbers), key=lambda digits: (len(digits), digits))
    listed = different if len(different) <= _LISTED + 1 else [*different[:_LISTED], "…"]
    return different[0] if len(different) == 1 else f"{{{','.join(listed)}}}"


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
    """Rows whose names differ only in numbers, in groups with times within a factor of each other.

    The rows that have the same number at one place of their names stay together where they can, so that numbers tell the groups apart; the
    place is the one that makes the fewest groups.
    """
    times = [row.integer("time_ns") for row in rows]
    if max(times) <= _ALIKE * min(times):
        return [list(rows)]
    best: list[list[int]] | None = None
    fewest = (0, 0)
    for column in zip(*(NUMBER.findall(row.text("name")) for row in rows), strict=True):
        of_number: dict[str, list[int]] = {}
        for at, number in enumerate(column):
            of_number.setdefault(number, []).append(at)
        if len(of_number) > 1:
            found = _by_time(list(of_number.values()), times)
            cost = sum(len(_by_time([[at] for at in mine], times)) for mine in found), len(of_number)
            if best is None or cost < fewest:
                best, fewest = found, cost
    if best is None:
        return [[rows[at] for at in mine] for mine in _by_time([[at] for at in range(len(rows))], times)]
    return [part for mine in best for part in _of_like_time([rows[at] for at in mine])]


def _by_time(groups: Sequence[list[int]], times: Sequence[int]) -> list[list[int]]:
    """The groups, joined where their times together are within the factor, the slowest first."""
    parts: list[list[int]] = []
    slowest = fastest = 0
    for mine in sorted(groups, key=lambda places: -max(times[at] for at in places)):
        least = min(times[at] for at in mine)
        if parts and slowest <= _ALIKE * min(fastest, least):
            parts[-1].extend(mine)
            fastest = min(fastest, least)
        else:
            parts.append(list(mine))
            slowest, fastest = max(times[at] for at in mine), least
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
