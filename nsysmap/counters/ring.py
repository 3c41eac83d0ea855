"""Solves symmetric systems in which only neighbours on a ring couple, and one more unknown couples with all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmap.base.table import FloatArray

_BLOCK = 48
"""Blocks are not smaller than that: the time then goes into arithmetic."""
_COUPLED = 1e-5  # of the unknowns' own weights: less is no coupling


@dataclass(frozen=True)
class Ring:
    """Where a ring is cut into blocks: each couples with the next alone; the last block and the common unknown with all."""

    size: int
    block: int  # 0: everything is one block

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The blocks before the border."""
        if not self.block:
            return ()
        count = (self.size - 1) // self.block - 1
        return tuple(slice(at * self.block, (at + 1) * self.block) for at in range(count))

    @property
    def border(self) -> slice:
        """The last block, what is left over, and the common unknown."""
        return slice(len(self.blocks) * self.block, self.size)


@dataclass(frozen=True)
class Factor:
    """A matrix on a ring, ready to be solved with."""

    ring: Ring
    inverses: tuple[FloatArray, ...]  # of the blocks, what comes before eliminated
    nexts: tuple[FloatArray, ...]  # coupling of each block with the next
    borders: tuple[FloatArray, ...]  # coupling of each block with the border, what comes before eliminated
    last: FloatArray  # inverse of the border, everything else eliminated

    def solve(self, target: FloatArray) -> FloatArray:
        """The x with Mx = target, for one target or one a column."""
        blocks, border = self.ring.blocks, self.ring.border
        answer = np.empty_like(target)
        passed: list[FloatArray] = []
        rest = target[border]
        for at, block in enumerate(blocks):
            here = target[block]
            if at:
                here = here - self.nexts[at - 1].T @ passed[-1]
            passed.append(self.inverses[at] @ here)
            rest = rest - self.borders[at].T @ passed[-1]
        answer[border] = self.last @ rest
        following: FloatArray | None = None
        for at in range(len(blocks) - 1, -1, -1):
            taken = self.borders[at] @ answer[border]
            if following is not None:
                taken = taken + self.nexts[at] @ following
            following = passed[at] - self.inverses[at] @ taken
            answer[blocks[at]] = following
        return answer


def ring_of(matrix: FloatArray) -> Ring:
    """How this matrix, whose last unknown couples with all, is cut."""
    busy = matrix[:-1, :-1]
    own = np.sqrt(np.maximum(np.diag(busy), 1e-300))
    row, column = np.nonzero(busy > _COUPLED * own[:, None] * own[None, :])
    apart = np.abs(row - column)
    reach = int(np.minimum(apart, len(busy) - apart).max(initial=0))
    block = max(reach, _BLOCK)
    return Ring(len(matrix), block if 4 * block <= len(busy) else 0)


def factor(matrix: FloatArray, ring: Ring) -> Factor:
    """The matrix, positive definite, ready to be solved with."""
    blocks, border = ring.blocks, ring.border
    inverses: list[FloatArray] = []
    nexts: list[FloatArray] = []
    borders: list[FloatArray] = []
    last = matrix[border, border].copy()
    for at, block in enumerate(blocks):
        own, edge = matrix[block, block], matrix[block, border]
        if at:
            carried = nexts[-1].T @ inverses[-1]
            own = own - carried @ nexts[-1]
            edge = edge - carried @ borders[-1]
        inverses.append(_inverse(own))
        borders.append(edge)
        if at + 1 < len(blocks):
            nexts.append(matrix[block, blocks[at + 1]])
        last -= edge.T @ (inverses[-1] @ edge)
    return Factor(ring, tuple(inverses), tuple(nexts), tuple(borders), _inverse(last))


def _inverse(matrix: FloatArray) -> FloatArray:
    inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64, copy=False)
    return inverse
