"""Matches the kernels that Nsight Compute profiled to the kernels of a trace's repeated sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import IntArray
from nsysmap.ncu.printed import NcuKernel

_MOST_CELLS = 40_000_000

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
    """Which kernel of the sequence each profiled kernel is; -1 for none."""

    group: IntArray
    by: tuple[str, ...]  # what agrees
    turns: int  # positions in the sequence at which the whole profile agrees equally well: 1 if the match is unique


_WAYS = (("name", "grid", "block"), ("grid", "block"), ("name",))


def match_kernels(profiled: Sequence[NcuKernel], sequence: Sequence[SequenceKernel]) -> Matched:
    """The longest common subsequence: the profile may begin anywhere in the sequence, wrap around, and omit kernels.

    Kernels agree in name, grid and block; if hardly any do, in grid and block alone (ncu's --kernel-name-base shortens names) or in
    name alone.
    """
    best = Matched(np.full(len(profiled), -1, np.int64), (), 0)
    for way in _WAYS:
        left = [_key(each.name, each.grid, each.block, way) for each in profiled]
        right = [_key(each.name, each.grid, each.block, way) for each in sequence]
        group = _aligned(left, right)
        if (group >= 0).sum() > (best.group >= 0).sum() * 1.25:
            best = Matched(group, way, _turns(right, group))
        if (best.group >= 0).sum() >= 0.8 * len(profiled):
            break
    return best


def _key(name: str, grid: Size | None, block: Size | None, way: tuple[str, ...]) -> Key:
    held: dict[str, object] = {"name": base_name(name), "grid": grid, "block": block}
    return tuple(held[each] for each in way)


def _turns(sequence: list[Key], group: IntArray) -> int:
    """The number of positions in the cyclic sequence at which kernels like the matched ones follow one another in the same way."""
    numbers = {key: at for at, key in enumerate(dict.fromkeys(sequence))}
    codes = np.array([numbers[key] for key in sequence])
    matched = group[group >= 0]
    return sum(bool((codes[(matched + turn) % len(codes)] == codes[matched]).all()) for turn in range(len(codes)))


def base_name(name: str) -> str:
    """A kernel's own identifier: without return type, namespaces, template arguments and parameters."""
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
    """For each profiled kernel its position in the sequence, from the longest common subsequence with the cyclic sequence."""
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
