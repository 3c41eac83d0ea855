"""Sums of layer times: by kind, and over layers whose names differ only in numbers, as in repeated blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
    """One name for each of these groups of layers (`alike`), with numbers where others of its engine and kind have the same."""
    keys = [(mine[0].maybe_integer("engine"), mine[0].text("kind")) for mine in groups]
    return names_apart([[row.text("name") for row in mine] for mine in groups], keys)


def names_apart(groups: Sequence[Sequence[str]], keys: Sequence[object]) -> list[str]:
    """`common_name` of each group of names; where several with an equal key have the same, with the numbers that tell them apart."""
    names = [common_name(mine) for mine in groups]
    same: dict[tuple[object, str], list[int]] = {}
    for at, (key, name) in enumerate(zip(keys, names, strict=True)):
        if len(groups[at]) > 1:
            same.setdefault((key, name), []).append(at)
    for mine in same.values():
        if len(mine) > 1:
            told = _with_numbers([groups[at] for at in mine])
            names = [told[mine.index(at)] if at in mine else name for at, name in enumerate(names)]
    return names


def _with_numbers(groups: Sequence[Sequence[str]]) -> list[str]:
    """The common names of groups of names that differ only in numbers, with those of the first place where all groups have others, as in
    layer.{0,2,5,…}; without such a place with all numbers."""
    listed = [[_listed(column) for column in zip(*(NUMBER.findall(name) for name in mine), strict=True)] for mine in groups]
    places = [place for place, column in enumerate(zip(*listed, strict=True)) if len(set(column)) == len(groups)][:1]
    found = []
    for mine, numbers in zip(groups, listed, strict=True):
        shown = [one if place in places or not places or not one.startswith("{") else "*" for place, one in enumerate(numbers)]
        found.append("".join(text + number for text, number in zip(NUMBER.split(mine[0]), [*shown, ""], strict=True)))
    return found


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
