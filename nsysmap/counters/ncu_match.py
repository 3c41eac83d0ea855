"""Matches the kernels that Nsight Compute profiled to the kernels of a trace's repeated
sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import IntArray
from nsysmap.inputs.ncu.printed import NcuKernel

_MOST_CELLS = 40_000_000  # of the table of all positions, which is held at once

Size = tuple[int, int, int]
Key = tuple[object, ...]


@dataclass(frozen=True)
class SequenceKernel:
    """One kernel of the sequence in the trace."""

    name: str
    grid: Size
    block: Size


@dataclass(frozen=True)
class Matched:
    """The kernel of the sequence that each profiled kernel is; -1 for none."""

    group: IntArray
    by: tuple[str, ...]  # what agrees
    # positions in the sequence at which the whole profile agrees equally well: 1 if the match is
    # unique
    turns: int


_EXACT = ("name", "grid", "block")
_MOST = 0.8
"""Share of the profile, or of the sequence, that has to be matched: of other programs' profiles
0.17 at most was (four networks).
"""
# share of the profile whose names the sequence has, up to which names are taken to be written in
# another way
_HARDLY = 0.2


def match_kernels(profiled: Sequence[NcuKernel], sequence: Sequence[SequenceKernel]) -> Matched:
    """The longest common subsequence: the profile may begin anywhere in the sequence, wrap around,
    and omit kernels.

    Kernels agree in name, grid and block; if hardly any name occurs on both sides, in grid and
    block alone (ncu's --kernel-name-base shortens names), and if ncu's output lacks these, in name
    alone.
    """
    way: tuple[str, ...] = _EXACT
    if profiled and not any(each.grid or each.block for each in profiled):
        way = ("name",)
    elif _named(profiled, sequence) < _HARDLY:
        way = ("grid", "block")
    left = [_key(each.name, each.grid, each.block, way) for each in profiled]
    right = [_key(each.name, each.grid, each.block, way) for each in sequence]
    group = _aligned(left, right)
    return (
        Matched(group, way, _turns(right, group)) if (group >= 0).any() else Matched(group, (), 0)
    )


def other_program(
    profiled: Sequence[NcuKernel], sequences: Sequence[tuple[Sequence[SequenceKernel], Matched]]
) -> str | None:
    """Why these matches are chance and the profile is of something else; None if it is of the
    trace's program.

    It is if most of it was matched, or with it most of one of the sequences: a profile may also
    hold what runs before the inferences.
    """
    found = np.zeros(len(profiled), np.bool_)
    for sequence, matched in sequences:
        found |= matched.group >= 0
        if (
            matched.by == _EXACT
            and len(np.unique(matched.group[matched.group >= 0])) >= _MOST * len(sequence) > 0
        ):
            return None
    if not len(profiled) or found.mean() >= _MOST:
        return None
    named = max((_named(profiled, sequence) for sequence, _ in sequences), default=0.0)
    if named >= _MOST:
        return (
            "the trace has kernels of these names, but with other grids or blocks: profile the same"
            " shapes and batch size"
        )
    return (
        "the trace's inferences have few kernels of these names, grids and blocks: it is a profile"
        " of another program, engine or GPU"
    )


def _named(profiled: Sequence[NcuKernel], sequence: Sequence[SequenceKernel]) -> float:
    """The share of the profile whose names the sequence has."""
    names = {base_name(each.name) for each in sequence}
    return (
        sum(base_name(each.name) in names for each in profiled) / len(profiled) if profiled else 0.0
    )


def _key(name: str, grid: Size | None, block: Size | None, way: tuple[str, ...]) -> Key:
    held: dict[str, object] = {"name": base_name(name), "grid": grid, "block": block}
    return tuple(held[each] for each in way)


def _turns(sequence: list[Key], group: IntArray) -> int:
    """The number of positions in the cyclic sequence at which kernels like the matched ones follow
    one another in the same way.
    """
    numbers = {key: at for at, key in enumerate(dict.fromkeys(sequence))}
    codes = np.array([numbers[key] for key in sequence])
    matched = group[group >= 0]
    return sum(
        bool((codes[(matched + turn) % len(codes)] == codes[matched]).all())
        for turn in range(len(codes))
    )


def base_name(name: str) -> str:
    """A kernel's own identifier: without return type, namespaces, template arguments and
    parameters.
    """
    depth = 0
    kept: list[str] = []
    for letter in name.replace("(anonymous namespace)", "").replace("<unnamed>", ""):
        if letter in "<(":
            depth += 1
            if letter == "(" and depth == 1 and "".join(kept).strip():
                break
        elif letter in ">)":
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(letter)
    words = "".join(kept).split()
    return words[-1].rsplit("::", 1)[-1] if words else name.strip()


def _aligned(profiled: list[Key], sequence: list[Key]) -> IntArray:
    """For each profiled kernel its position in the sequence, from the longest common subsequence
    with the cyclic sequence.
    """
    found = np.full(len(profiled), -1, np.int64)
    if not profiled or not sequence:
        return found
    numbers = {key: at for at, key in enumerate(dict.fromkeys(sequence))}
    left = np.array([numbers.get(key, -1) for key in profiled])
    once = np.array([numbers[key] for key in sequence])
    turns = min(-(-len(left) // len(once)) + 1, max(_MOST_CELLS // (len(left) * len(once)), 1))
    right = np.tile(once, turns)
    table = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for row in range(len(left) - 1, -1, -1):
        diagonal = table[row + 1, 1:] + (right == left[row])
        best = np.maximum(diagonal, table[row + 1, :-1])
        table[row, :-1] = np.maximum.accumulate(best[::-1])[::-1]
    row = column = 0
    while row < len(left) and column < len(right):
        if left[row] == right[column] and table[row, column] == table[row + 1, column + 1] + 1:
            found[row] = column % len(once)
            row, column = row + 1, column + 1
        elif table[row, column] == table[row, column + 1]:
            column += 1
        else:
            row += 1
    return found
