"""Sums of layer times: by kind, and over layers that differ only in numbers of what they are
called, as in repeated blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from nsysmap.core.report_schema import LAYER_KINDS, REPEATED_LAYERS
from nsysmap.core.table import IntArray, Row, Table
from nsysmap.network.titles import called

NUMBER = re.compile(r"\d+")
_COMPONENT = re.compile(r"([/|:,+() ]+)")
_ORDINAL = re.compile(r"_(?:\d+|\*)$")
# numbers of a row that its name lists, where another row's name is the same but for them
_LISTED = 3
_ALIKE = 2.0  # largest ratio of the times of layers in one row


def layer_kinds(layers: Table) -> Table:
    """The table `layer_kinds`, by engine, then the most time first; `layers` is LAYERS with
    times.
    """
    found: dict[tuple[int | None, str], list[Row]] = {}
    for row in _timed(layers):
        found.setdefault((row.maybe_integer("engine"), row.text("kind")), []).append(row)
    rows = [
        {"engine": engine, "kind": kind, "layers": len(mine), **_sums(mine)}
        for (engine, kind), mine in found.items()
    ]
    return Table.of_rows(
        LAYER_KINDS, sorted(rows, key=lambda row: (_engine(row), -_time(row), str(row["kind"])))
    )


def repeated_layers(layers: Table, totals: IntArray, whole_ns: int) -> Table:
    """The table `repeated_layers`, the most time first; every layer with time is in one row.

    ``totals`` has for each layer the time of its kernels in the steady-state part, ``whole_ns`` is
    that of all kernels in it (see totals.layer_totals).
    """
    timed = alike(layers)
    # in incomplete inferences
    others = [
        [row]
        for row in layers
        if not row.maybe_integer("time_ns") and totals[row.integer("layer_id")]
    ]
    groups = [*timed, *others]
    names = [*names_of(timed), *(row.text("name") for (row,) in others)]
    titles = [*titles_of(timed), *(called(row) for (row,) in others)]
    rows = [
        {
            "engine": mine[0].maybe_integer("engine"),
            "name": name,
            "title": title,
            "kind": mine[0].text("kind"),
            "layers": len(mine),
            "first_layer": min(row.integer("layer_id") for row in mine),
            **_sums(mine),
            "total_ns": (total := sum(int(totals[row.integer("layer_id")]) for row in mine)),
            "share_of_all_kernel_time": total / max(whole_ns, 1),
            "kernels": sum(row.maybe_integer("kernels") or 0 for row in mine),
            "opaque": mine[0].text("kind") == "foreign_node",
        }
        for name, title, mine in zip(names, titles, groups, strict=True)
    ]
    rows.sort(key=lambda row: (-_time(row, "total_ns"), _engine(row), str(row["name"])))
    return Table.of_rows(
        REPEATED_LAYERS, [{"repeat_id": number, **row} for number, row in enumerate(rows)]
    )


def alike(layers: Table) -> list[list[Row]]:
    """The layers with time, in groups that are one row of `repeated_layers`.

    Layers of one engine and kind are alike if their titles differ only in numbers: where the file
    names a layer's nodes these are places in the model; for others the engine's names must agree
    too.
    """
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in _timed(layers):
        name = "" if row.maybe_text("onnx") else unnumbered(row.text("name"))
        found.setdefault(
            (row.maybe_integer("engine"), row.text("kind"), unnumbered(called(row)), name), []
        ).append(row)
    return [mine for several in found.values() for mine in _of_like_time(several)]


def names_of(groups: Sequence[Sequence[Row]]) -> list[str]:
    """The engine's names of each of these groups of layers (`alike`) as one, which no layer of
    another group of its engine fits.
    """
    return names_apart(
        [[row.text("name") for row in mine] for mine in groups],
        [mine[0].maybe_integer("engine") for mine in groups],
    )


def titles_of(groups: Sequence[Sequence[Row]]) -> list[str]:
    """What each of these groups of layers (`alike`) is called; of several groups that are called
    the same, with their names in brackets.
    """
    keys = [(mine[0].maybe_integer("engine"), mine[0].text("kind")) for mine in groups]
    return names_apart([[called(row) for row in mine] for mine in groups], keys)


@lru_cache(maxsize=65_536)
def unnumbered(text: str) -> str:
    """The text with a * for each number, and without those that exporters append to all but the
    first of a name: down, down_1, down_2.
    """
    texts, numbers = _pieces(text)
    return "".join(
        piece + "*" * number.isdigit() for piece, number in zip(texts, [*numbers, ""], strict=True)
    )


def names_apart(groups: Sequence[Sequence[str]], keys: Sequence[object]) -> list[str]:
    """`common_name` of each group of names, with those numbers listed that keep out the names of
    other groups with an equal key.
    """
    every: dict[tuple[object, str], set[str]] = {}
    for key, mine in zip(keys, groups, strict=True):
        for name in mine:
            every.setdefault((key, unnumbered(name)), set()).add(name)
    found = []
    for key, mine in zip(keys, groups, strict=True):
        texts = {unnumbered(name) for name in mine}
        own = set(mine)
        found.append(
            _apart(own, every[key, texts.pop()] - own) if len(texts) == 1 else common_name(mine)
        )
    return found


def _pieces(text: str) -> tuple[list[str], list[str]]:
    """The text in pieces, and the number behind each but the last: digits, or what ends a
    component, such as _1, which may be empty.
    """
    texts, numbers = [""], list[str]()
    for place, part in enumerate(_COMPONENT.split(text)):
        if place % 2 or not part:
            texts[-1] += part
            continue
        ordinal = found[0] if (found := _ORDINAL.search(part)) and found.start() else ""
        base = part.removesuffix(ordinal)
        digits = NUMBER.findall(base)
        first, *more = NUMBER.split(base)
        texts[-1] += first
        for number, piece in zip(digits, more, strict=True):
            numbers.append(number)
            texts.append(piece)
        numbers.append(ordinal)
        texts.append("")
    return texts, numbers


def _apart(own: set[str], others: set[str]) -> str:
    """The common name of names that differ only in numbers, with the numbers of as few places as
    keep out the others, as in layer.{0,2,5,…}; where none do, of those that keep out most.
    """
    texts, columns = (
        _pieces(next(iter(own)))[0],
        [set(column) for column in zip(*(_pieces(name)[1] for name in own), strict=True)],
    )
    shared = [place for place, values in enumerate(columns) if len(values) == 1]
    different = [place for place, values in enumerate(columns) if len(values) > 1]
    numbers = [_pieces(name)[1] for name in others]
    numbers = [row for row in numbers if all(row[place] in columns[place] for place in shared)]
    choices = (
        [(), *combinations(different, 1), *combinations(different, 2), tuple(different)]
        if numbers
        else [()]
    )

    def cost(places: tuple[int, ...]) -> tuple[int, int, int]:
        fits = sum(all(row[place] in columns[place] for place in places) for row in numbers)
        return fits, len(places), sum(len(columns[place]) for place in places)

    listed = min(choices, key=cost)
    shown = [
        _listed(values) if place in (*shared, *listed) else _star(values)
        for place, values in enumerate(columns)
    ]
    return _put_together(texts, shown)


def _star(values: Iterable[str]) -> str:
    """What stands for different numbers at one place: _* where each is behind an underscore."""
    return "_*" if all(value.startswith("_") for value in values) else "*"


def _listed(numbers: Iterable[str]) -> str:
    """One number, or several in braces."""
    different = sorted(set(numbers), key=lambda digits: (len(digits), digits))
    if len(different) == 1:
        return different[0]
    mark = "_" if all(number.startswith("_") for number in different) else ""
    listed = different if len(different) <= _LISTED + 1 else [*different[:_LISTED], "…"]
    return f"{mark}{{{','.join(number.removeprefix(mark) for number in listed)}}}"


def common_name(names: Sequence[str]) -> str:
    """One name for names that differ only in numbers: a * for each number that differs, for every
    one where some of them have a *.

    Of names that differ in more, what they begin and end with.
    """
    if len({NUMBER.sub("*", name).count("*") - name.count("*") for name in names}) > 1 and any(
        "*" in name for name in names
    ):
        return NUMBER.sub("*", names[0])
    if len({unnumbered(name) for name in names}) > 1:
        begin = _beginning(names)
        end = _beginning([name[len(begin) :][::-1] for name in names])[::-1]
        return f"{begin}*{end}" if begin or end else f"{names[0]}, …"
    texts = _pieces(names[0])[0]
    numbers = [set(column) for column in zip(*(_pieces(name)[1] for name in names), strict=True)]
    shown = [min(values) if len(values) == 1 else _star(values) for values in numbers]
    return _put_together(texts, shown)


def _beginning(names: Sequence[str]) -> str:
    """The characters with which all names begin."""
    first, last = min(names), max(names)
    same = next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )
    return first[:same]


def _put_together(texts: Sequence[str], numbers: Sequence[str]) -> str:
    """The pieces of a text with what stands between them; a star behind a star says nothing
    more.
    """
    found = ""
    for text, number in zip(texts, [*numbers, ""], strict=True):
        found += text
        found += "" if number == "*" and found.endswith("*") else number
    return found


def _timed(layers: Table) -> list[Row]:
    return [row for row in layers if row.maybe_integer("time_ns")]


def _of_like_time(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows whose names differ only in numbers, in groups with times within a factor of each other.

    The rows that have the same number at one place of their names stay together where they can, so
    that numbers tell the groups apart; the place is the one that makes the fewest groups.
    """
    times = [row.integer("time_ns") for row in rows]
    if max(times) <= _ALIKE * min(times):
        return [list(rows)]
    best: list[list[int]] | None = None
    fewest = (0, 0)
    for column in zip(*(_pieces(called(row))[1] for row in rows), strict=True):
        of_number: dict[str, list[int]] = {}
        for at, number in enumerate(column):
            of_number.setdefault(number, []).append(at)
        if len(of_number) > 1:
            found = _by_time(list(of_number.values()), times)
            cost = (
                sum(len(_by_time([[at] for at in mine], times)) for mine in found),
                len(of_number),
            )
            if best is None or cost < fewest:
                best, fewest = found, cost
    if best is None:
        return [
            [rows[at] for at in mine] for mine in _by_time([[at] for at in range(len(rows))], times)
        ]
    return [part for mine in best for part in _of_like_time([rows[at] for at in mine])]


def _by_time(groups: Sequence[list[int]], times: Sequence[int]) -> list[list[int]]:
    """The groups, joined where their times together are within the factor, the slowest first."""
    parts: list[list[int]] = []
    slowest = fastest = 0
    for mine in sorted(groups, key=lambda places: -max(times[at] for at in places)):
        least = min(times[at] for at in mine)
        if parts and slowest <= _ALIKE * min(fastest, least):
            parts[-1].extend(mine)
        else:
            parts.append(list(mine))
            slowest, fastest = max(times[at] for at in mine), least
    return parts


def _sums(rows: Sequence[Row]) -> dict[str, object]:
    shares = [row.maybe_real("share_of_kernel_time") or 0.0 for row in rows]
    return {
        "time_ns": sum(row.maybe_integer("time_ns") or 0 for row in rows),
        "share_of_kernel_time": sum(shares),
    }


def _engine(row: Mapping[str, object]) -> int:
    engine = row["engine"]
    return engine if isinstance(engine, int) else -1


def _time(row: Mapping[str, object], column: str = "time_ns") -> int:
    time = row[column]
    assert isinstance(time, int)
    return time
