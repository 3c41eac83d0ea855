"""Why a build in another precision is faster or slower: what layers that compute in another type,
and the rest, add to the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from nsysmap.comparison.joined import RUNS_NOTHING, JoinedGroup, block_name, blocks_of
from nsysmap.comparison.side import Side
from nsysmap.core.records import dataclass
from nsysmap.core.table import Row, Table, sum_of
from nsysmap.network.matched_groups import GONE, NEW, ONE_TO_ONE
from nsysmap.text.units import counted, microseconds
from nsysmap.timing.eight_bits import FIRST_ARCH
from nsysmap.timing.layer_sums import common_name

PRODUCTS, OTHER_TYPE, FUSION, CONVERSIONS, SAME_TYPE, OUTSIDE = (
    "products",
    "other-type",
    "fusion",
    "conversions",
    "same-type",
    "outside",
)
_PRODUCT_KINDS = frozenset({"gemm", "convolution", "deconvolution", "attention"})
_CONVERSION_KINDS = frozenset({"reformat", "cast", "quantize"})
_SPLIT = re.compile(r"split_?k", re.IGNORECASE)
_ARCH = re.compile(r"\d+")


@dataclass(frozen=True)
class PrecisionReason:
    """How much a change of precision adds to the difference, or the rest; the differences of all
    add up to the whole, in nanoseconds.
    """

    # products, other-type, fusion, conversions, same-type (as recorded) or outside (all that is no
    # layer's kernel time)
    reason: str
    types: str  # before → after, as far as known
    ns: int  # after minus before
    before_ns: int
    after_ns: int
    before_layers: int
    after_layers: int
    names: tuple[str, ...]  # of its layers, repeated blocks as one
    told: str


def precision_reasons(
    sides: tuple[Side, Side],
    groups: Sequence[JoinedGroup],
    joined: Table,
    wholes: tuple[int | None, int | None],
) -> tuple[PrecisionReason, ...]:
    """The reasons, the largest first and the rest last; none if no layer that computes does so in
    another type, or a time is missing.

    ``joined`` is JOINED_LAYERS, ``wholes`` are the times of both sides.
    """
    rows = [
        row
        for row in joined
        if row.text("kind") not in RUNS_NOTHING and row["difference_ns"] is not None
    ]
    if wholes[0] is None or wholes[1] is None or not any(_other_type(row) for row in rows):
        return ()
    kernels = (_Kernels.of(sides[0]), _Kernels.of(sides[1]))
    held: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        held.setdefault(_kind_of(row, groups[row.integer("group")], sides, kernels), []).append(row)
    same = held.pop((SAME_TYPE,), [])
    found = [
        _reason(str(kind), mine, _words(str(kind), mine, groups, sides, kernels))
        for (kind, *_), mine in held.items()
    ]
    found.sort(key=lambda one: (-abs(one.ns), one.names))
    if same:
        found.append(_reason(SAME_TYPE, same, f"{_layers(same)} in the same types"))
    ours, theirs = wholes[0] - _sum(rows, "before_ns"), wholes[1] - _sum(rows, "after_ns")
    if ours or theirs:
        found.append(
            PrecisionReason(
                OUTSIDE, "", theirs - ours, ours, theirs, 0, 0, (), "outside the layers' kernels"
            )
        )
    return tuple(found)


def _other_type(row: Row) -> bool:
    """Whether layers on both sides compute, and in other types."""
    types = _types(row)
    return all(types) and types[0] != types[1] and row.text("kind") not in _CONVERSION_KINDS


def _types(row: Row) -> tuple[str | None, str | None]:
    return row.maybe_text("before_precision"), row.maybe_text("after_precision")


def _kind_of(
    row: Row, group: JoinedGroup, sides: tuple[Side, Side], kernels: tuple[_Kernels, _Kernels]
) -> tuple[object, ...]:
    """The reason that a row belongs to; rows of one reason are shown together if they changed in
    the same way.
    """
    kinds = {
        kernels_of.converts.get(at, side.layers[at].kind)
        for side, kernels_of, ids in zip(sides, kernels, (group.before, group.after), strict=True)
        for at in ids
    }
    if kinds <= _CONVERSION_KINDS and (
        row.text("relation") in (NEW, GONE) or row.text("change") == "reformat"
    ):
        return CONVERSIONS, row.text("relation")
    if not _other_type(row):
        return (SAME_TYPE,)
    if row.text("relation") != ONE_TO_ONE:
        return (FUSION, *map(str, _types(row)), _blocks_key(row))
    way = _way(row)
    if kinds <= _PRODUCT_KINDS:
        return (PRODUCTS, *map(str, _types(row)), way, *_older(row, kernels))
    return (OTHER_TYPE, *map(str, _types(row)), way)


def _blocks_key(row: Row) -> str:
    return re.sub(
        r"\d+|_(?=\d)", "", f"{row.maybe_text('before_titles')}>{row.maybe_text('after_titles')}"
    )


def _way(row: Row) -> str:
    if not row.flag("significant") and row["low_ns"] is not None:
        return "as long"
    return "longer" if row.integer("difference_ns") > 0 else "shorter"


def _reason(kind: str, rows: list[Row], told: str) -> PrecisionReason:
    types = dict.fromkeys(_types_told(row) for row in rows)
    return PrecisionReason(
        reason=kind,
        types="" if kind in (SAME_TYPE, CONVERSIONS) else ", ".join(filter(None, types)),
        ns=_sum(rows, "difference_ns"),
        before_ns=_sum(rows, "before_ns"),
        after_ns=_sum(rows, "after_ns"),
        before_layers=_sum(rows, "before_layers"),
        after_layers=_sum(rows, "after_layers"),
        names=tuple(_names(rows)),
        told=told,
    )


def _sum(rows: Sequence[Row], name: str) -> int:
    return sum_of(rows, name) or 0


def _types_told(row: Row) -> str:
    ours, theirs = _types(row)
    return f"{ours} → {theirs}" if ours and theirs and ours != theirs else ours or theirs or ""


def _names(rows: Iterable[Row]) -> list[str]:
    """The layers' names, those with the largest differences first."""
    blocks = sorted(blocks_of(rows), key=lambda mine: -abs(sum_of(mine, "difference_ns") or 0))
    return list(
        dict.fromkeys(
            name
            for mine in blocks
            if (name := block_name(mine, "after") or block_name(mine, "before"))
        )
    )


def _layers(rows: Sequence[Row], word: str = "layer") -> str:
    return counted(
        sum(max(row.integer("before_layers"), row.integer("after_layers")) for row in rows), word
    )


# --- the words
# --------------------------------------------------------------------------------------------------


def _words(
    kind: str,
    rows: list[Row],
    groups: Sequence[JoinedGroup],
    sides: tuple[Side, Side],
    kernels: tuple[_Kernels, _Kernels],
) -> str:
    if kind == FUSION:
        return (
            f"{_with_times(rows, groups, sides[0], 0)} → {_with_times(rows, groups, sides[1], 1)}"
        )
    if kind == CONVERSIONS:
        became = {NEW: "more", GONE: "fewer"}.get(rows[0].text("relation"), "other")
        return (
            f"{_sum(rows, 'after_layers') or _sum(rows, 'before_layers')} {became} conversions"
            " between types"
        )
    told = f"{_layers(rows, 'product' if kind == PRODUCTS else 'layer')} {_length(rows)}"
    evidence = _evidence(rows, kernels) if kind == PRODUCTS else []
    return f"{told}: {', '.join(evidence)}" if evidence else told


def _length(rows: Sequence[Row]) -> str:
    ours, theirs = _sum(rows, "before_ns"), _sum(rows, "after_ns")
    ratio = f"{theirs / ours:.2f} times" if ours else ""
    return (
        f"as long ({ratio})"
        if _way(rows[0]) == "as long"
        else f"{ratio} as long"
        if ratio
        else "that took no time before"
    )


def _with_times(rows: Sequence[Row], groups: Sequence[JoinedGroup], side: Side, which: int) -> str:
    """The layers of one side, each place of the groups with its time over all groups."""
    ids = [((group := groups[row.integer("group")]).before, group.after)[which] for row in rows]
    if len({len(one) for one in ids}) > 1 or not side.traced:
        key = ("before", "after")[which]
        return f"{block_name(list(rows), key)} {microseconds(sum_of(rows, f'{key}_ns'))}"
    times = side.pace.weight @ side.pace.kernels
    return " + ".join(
        f"{common_name([side.titles[at] for at in place])}"
        f" {microseconds(round(float(times[list(place)].sum())))}"
        for place in zip(*ids, strict=True)
    )


@dataclass(frozen=True)
class _Kernels:
    """The facts in the names of a side's kernels."""

    arch: Mapping[str, int]
    tensor_cores: Mapping[str, str]
    # the kind of layers that only convert, also where the file calls them Myelin's kernels
    converts: Mapping[int, str]

    @staticmethod
    def of(side: Side) -> _Kernels:
        totals = side.tables.get("kernel_totals") if side.traced else None
        rows = [] if totals is None else list(totals)
        arch = {
            row.text("name"): int(found[0])
            for row in rows
            if (found := _ARCH.search(row.maybe_text("arch") or ""))
        }
        work = side.tables.get("work")
        converts = {
            row.integer("layer_id"): row.text("does")
            for row in (() if work is None else work)
            if row.text("does") in _CONVERSION_KINDS
        }
        return _Kernels(
            arch, {row.text("name"): row.text("tensor_cores") for row in rows}, converts
        )


@dataclass(frozen=True)
class _Older:
    """Kernels made for an architecture whose tensor cores do not know their type."""

    type: str
    arch: int
    first: int  # the first architecture whose tensor cores do


def _own_kernels(row: Row, side: str) -> list[str]:
    return (row.maybe_text(f"{side}_kernels") or "").split("; ")


def _older(row: Row, kernels: tuple[_Kernels, _Kernels]) -> tuple[_Older | None, ...]:
    """The architectures that the kernels of AFTER and of BEFORE were written for, where its tensor
    cores do not know the type; nothing otherwise.
    """
    found = []
    for one, side, type_ in zip(kernels, ("before", "after"), _types(row), strict=True):
        archs = {one.arch.get(name) for name in _own_kernels(row, side)}
        first = FIRST_ARCH.get(type_ or "")
        arch = archs.pop() if len(archs) == 1 else None
        found.append(
            _Older(type_ or "", arch, first)
            if arch is not None and first is not None and arch < first
            else None
        )
    return tuple(found)


def _evidence(rows: Sequence[Row], kernels: tuple[_Kernels, _Kernels]) -> list[str]:
    """What the names of their kernels show about why they take longer or shorter."""
    told = []
    for older, when in zip(_older(rows[0], kernels), ("before in ", ""), strict=True):
        if older is not None:
            told.append(
                f"{when}sm{older.arch} kernels, made before {older.type} tensor cores"
                f" (sm{older.first})"
            )
    cores = [
        {one.tensor_cores.get(name) for row in rows for name in _own_kernels(row, side)}
        for one, side in zip(kernels, ("before", "after"), strict=True)
    ]
    if cores in ([{"no"}, {"yes"}], [{"yes"}, {"no"}]):
        told.append("now on tensor cores" if cores[1] == {"yes"} else "no longer on tensor cores")
    split = [[row for row in rows if _splits(row, side)] for side in ("before", "after")]
    lost, won = (([row for row in split[at] if row not in split[1 - at]]) for at in (0, 1))
    told += [f"{len(lost)} no longer split along K"] if lost else []
    told += [f"{len(won)} now split along K"] if won else []
    return told


def _splits(row: Row, side: str) -> bool:
    return any(_SPLIT.search(name) for name in _own_kernels(row, side))
