"""Symmetric systems in which only neighbours on a ring couple, and one more unknown with all: stored as bands, solved by blocks.

Several systems that differ in the weights of single unknowns and of neighbours are solved together: one per metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsysmap.base.table import BoolArray, FloatArray, IntArray

LEAST_BLOCK = 24
"""Smallest blocks: the parts of one kernel then fit into two neighbouring blocks."""
_LARGE = 64
_COUPLED = 1e-5  # share of the unknowns' own weights: less counts as no coupling


@dataclass(frozen=True)
class Gram:
    """A symmetric matrix on a ring: ``band[d, i]`` couples unknown i with unknown i + d going round, ``edge[i]`` with the common one."""

    band: FloatArray
    edge: FloatArray
    last: float

    @property
    def ring(self) -> int:
        """The number of unknowns on the ring, without the common one."""
        return len(self.edge)

    @property
    def reach(self) -> int:
        """The largest distance of unknowns that couple."""
        return len(self.band) - 1

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal."""
        return np.append(self.band[0], self.last)

    def times(self, values: FloatArray) -> FloatArray:
        """The matrix times vectors along the last axis."""
        if 4 * self.reach > self.ring:
            product: FloatArray = values @ self.full
            return product
        inner, ring = values[..., :-1], self.ring
        around = np.concatenate([self.band[0] * inner + self.edge * values[..., -1:], np.zeros((*values.shape[:-1], self.reach))], axis=-1)
        ahead = np.concatenate([inner, inner[..., : self.reach]], axis=-1)
        for away in range(1, self.reach + 1):
            around[..., :ring] += self.band[away] * ahead[..., away : away + ring]
            around[..., away : away + ring] += self.band[away] * inner
        around[..., : self.reach] += around[..., ring:]  # entries beyond the end wrap around
        last = inner @ self.edge + self.last * values[..., -1]
        return np.concatenate([around[..., :ring], last[..., None]], axis=-1)

    @cached_property
    def full(self) -> FloatArray:
        """The matrix with all its entries."""
        at = np.arange(self.ring)
        full = np.zeros((self.ring + 1, self.ring + 1))
        for away, band in enumerate(self.band):
            np.add.at(full, (at, (at + away) % self.ring), band)
            if away:
                np.add.at(full, ((at + away) % self.ring, at), band)
        full[:-1, -1] = full[-1, :-1] = self.edge
        full[-1, -1] = self.last
        return full

    def without(self, other: Gram) -> Gram:
        """The difference; relevant entries of ``other`` are within the band."""
        band = self.band.copy()
        common = min(self.reach, other.reach) + 1
        band[:common] -= other.band[:common]
        return Gram(band, self.edge - other.edge, self.last - other.last)

    def between(self, row: IntArray, column: IntArray) -> FloatArray:
        """Entries of unknowns on the ring."""
        ahead = (column - row) % self.ring
        behind = (row - column) % self.ring
        found = np.where(ahead <= self.reach, self.band[np.minimum(ahead, self.reach), row], 0.0)
        found += np.where((behind <= self.reach) & (behind > 0), self.band[np.minimum(behind, self.reach), column], 0.0)
        return found

    @cached_property
    def blocks(self) -> Blocks:
        """The matrix cut into blocks."""
        return _blocks_of(self)


@dataclass(frozen=True)
class Blocks:
    """The matrix cut: each block couples with the next and with the border, which is the rest of the ring and the common unknown."""

    size: int  # of a block
    own: FloatArray  # [block, row, column]
    nexts: FloatArray  # of each block but the last with the next
    edges: FloatArray  # of each with the border
    border: FloatArray

    @property
    def count(self) -> int:
        """The number of blocks before the border."""
        return len(self.own)


@dataclass(frozen=True)
class Systems:
    """The matrix with additions on the diagonal and between neighbours, for each metric."""

    gram: Gram
    own: FloatArray  # added to the diagonal: [metric, unknown]
    beside: FloatArray  # added between unknown i and i + 1 of the ring: [metric, i]

    def times(self, values: FloatArray) -> FloatArray:
        """Each matrix times its vector."""
        product = self.gram.times(values) + self.own * values
        product[:, : self.gram.ring - 1] += self.beside * values[:, 1 : self.gram.ring]
        product[:, 1 : self.gram.ring] += self.beside * values[:, : self.gram.ring - 1]
        return product

    def some(self, rows: IntArray) -> Systems:
        """Those of these metrics."""
        return Systems(self.gram, self.own[rows], self.beside[rows])

    def left(self, target: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each metric squares - t'M⁻¹t, and the logarithm of M's determinant."""
        if self.gram.blocks.count:
            factor = self.factor()
            return squares - (factor.solve(target) * target).sum(axis=1), factor.log_determinant
        unknowns = target.shape[1]
        full = np.empty((len(target), unknowns + 1, unknowns + 1))
        full[:, :-1, :-1] = _with(self.gram.blocks.border, self.own, self.beside)
        full[:, :-1, -1] = full[:, -1, :-1] = target
        scale = 2 * np.maximum(squares, 1.0)  # makes the last diagonal element positive whatever rounding does
        full[:, -1, -1] = squares + scale
        diagonal = np.diagonal(np.linalg.cholesky(full), axis1=1, axis2=2)
        return diagonal[:, -1] ** 2 - scale, 2 * np.log(diagonal[:, :-1]).sum(axis=1)

    def factor(self, *, fixed: BoolArray | None = None) -> Factor:
        """The factorised matrices; ``fixed`` unknowns couple with none and have weight 1."""
        return _factored(self, fixed)


@dataclass(frozen=True)
class Factor:
    """Factorised matrices on a ring; one entry per block, with one matrix per metric."""

    size: int  # of a block
    inverses: tuple[FloatArray, ...]  # of the blocks, with earlier ones eliminated
    nexts: tuple[FloatArray, ...]  # coupling of each block with the next; the last one's is with the border
    borders: tuple[FloatArray, ...]  # coupling of each block with the border, with earlier ones eliminated
    last: FloatArray  # inverse of the border, everything else eliminated

    @property
    def log_determinant(self) -> FloatArray:
        """Of each metric's matrix, the logarithm of its determinant."""
        blocks = [np.linalg.slogdet(each)[1] for each in (*self.inverses, self.last)]
        logarithm: FloatArray = -np.sum(blocks, axis=0)
        return logarithm

    def solve(self, target: FloatArray) -> FloatArray:
        """For each metric the x with Mx = target: [metric, unknown], or [metric, unknown, target]."""
        if target.ndim == 2:
            single: FloatArray = self.solve(target[:, :, None])[:, :, 0]
            return single
        count, size = len(self.inverses), self.size
        answer = np.empty_like(target)
        passed: list[FloatArray] = []
        rest = target[:, count * size :]
        for at in range(count):
            here = target[:, at * size : (at + 1) * size]
            if at:
                here = here - turned(self.nexts[at - 1]) @ passed[-1]
            passed.append(self.inverses[at] @ here)
            rest = rest - turned(self.borders[at]) @ passed[-1]
        border = self.last @ rest
        answer[:, count * size :] = border
        following: FloatArray | None = None
        for at in range(count - 1, -1, -1):
            taken = self.borders[at] @ border
            if following is not None:
                taken = taken + self.nexts[at] @ following
            following = passed[at] - self.inverses[at] @ taken
            answer[:, at * size : (at + 1) * size] = following
        return answer


def gram_of(columns: int, pairs: list[tuple[IntArray, IntArray, FloatArray]], squares: FloatArray) -> Gram:
    """The matrix from its diagonal and from the sums of pairs (left, right, product); the last column is the common one."""
    ring = columns - 1
    band = np.zeros((1, ring))
    band[0] = squares[:-1]
    edge = np.zeros(ring)
    for left, right, product in pairs:
        low, high = np.minimum(left, right), np.maximum(left, right)
        common = high == ring
        edge += np.bincount(low[common], product[common], ring)[:ring]
        low, high, inner = low[~common], high[~common], product[~common]
        round_the_end = 2 * (high - low) > ring
        first = np.where(round_the_end, high, low)
        away = np.where(round_the_end, ring - (high - low), high - low)
        rows = int(away.max(initial=0)) + 1
        if rows > len(band):
            band = np.concatenate([band, np.zeros((rows - len(band), ring))])
        band[:rows] += np.bincount(away * ring + first, np.where(away == 0, 2 * inner, inner), rows * ring).reshape(rows, ring)
    return Gram(_trimmed(band), edge, float(squares[-1]))


def gram_of_dense(matrix: FloatArray) -> Gram:
    """The same from all entries."""
    ring = len(matrix) - 1
    at = np.arange(ring)
    band = np.stack([matrix[at, (at + away) % ring] for away in range(ring // 2 + 1)])
    if ring > 1 and not ring % 2:
        band[ring // 2, ring // 2 :] = 0.0  # each pair once
    return Gram(_trimmed(band), matrix[:-1, -1].copy(), float(matrix[-1, -1]))


def _trimmed(band: FloatArray) -> FloatArray:
    """Without the farthest couplings, if they are negligible."""
    own = np.sqrt(np.maximum(band[0], 1e-300))
    for away in range(len(band) - 1, 0, -1):
        if (band[away] > _COUPLED * own * np.roll(own, -away)).any():
            return band[: away + 1]
    return band[:1]


def _blocks_of(gram: Gram) -> Blocks:
    ring = gram.ring
    size = max(gram.reach, LEAST_BLOCK)
    count = ring // size - 1 if 4 * size <= ring else 0
    inside = np.arange(size)
    starts = np.arange(count)[:, None, None] * size
    own = gram.between(starts + inside[:, None], starts + inside) if count else np.zeros((0, size, size))
    nexts = gram.between(starts[:-1] + inside[:, None], starts[:-1] + size + inside) if count else np.zeros((0, size, size))
    rest = np.arange(count * size, ring)
    edges = np.zeros((count, size, len(rest) + 1))
    border = np.empty((len(rest) + 1, len(rest) + 1))
    border[:-1, :-1] = gram.between(rest[:, None], rest)
    border[-1, :-1] = border[:-1, -1] = gram.edge[rest]
    border[-1, -1] = gram.last
    if count:
        edges[:, :, -1] = gram.edge[: count * size].reshape(count, size)
        for at in {0, count - 1}:
            edges[at, :, :-1] = gram.between(at * size + inside[:, None], rest)
    return Blocks(size, own, nexts, edges, border)


def _factored(systems: Systems, fixed: BoolArray | None) -> Factor:
    blocks = systems.gram.blocks
    size, count = blocks.size, blocks.count
    inverses: list[FloatArray] = []
    nexts: list[FloatArray] = []
    borders: list[FloatArray] = []
    free = None if fixed is None else (~fixed).astype(np.float64)
    rest = slice(count * size, None)
    last = _with(blocks.border, systems.own[:, rest], systems.beside[:, rest])
    last = last if free is None else _freed(last, free[:, rest], free[:, rest]) + _diagonal(1.0 - free[:, rest])
    for at in range(count):
        here, following = slice(at * size, (at + 1) * size), slice((at + 1) * size, (at + 2) * size)
        own = _with(blocks.own[at], systems.own[:, here], systems.beside[:, at * size : (at + 1) * size - 1])
        edge = np.repeat(blocks.edges[at][None], len(own), axis=0)
        beside = systems.beside[:, (at + 1) * size - 1]
        step = None
        if at + 1 < count:
            step = np.repeat(blocks.nexts[at][None], len(own), axis=0)
            step[:, -1, 0] += beside
        else:
            edge[:, -1, 0] += beside
        if free is not None:
            own = _freed(own, free[:, here], free[:, here]) + _diagonal(1.0 - free[:, here])
            edge = _freed(edge, free[:, here], free[:, rest])
            step = None if step is None else _freed(step, free[:, here], free[:, following])
        if at:
            carried = turned(nexts[-1]) @ inverses[-1]
            own = own - carried @ nexts[-1]
            edge = edge - carried @ borders[-1]
        inverses.append(_inverse(own))
        borders.append(edge)
        if step is not None:
            nexts.append(step)
        last = last - turned(edge) @ (inverses[-1] @ edge)
    return Factor(size, tuple(inverses), tuple(nexts), tuple(borders), _inverse(last))


def _with(block: FloatArray, own: FloatArray, beside: FloatArray) -> FloatArray:
    """The block for each metric, with what is added to its diagonal and beside it."""
    full = np.repeat(block[None], len(own), axis=0)
    at, step = np.arange(own.shape[1]), np.arange(beside.shape[1])
    full[:, at, at] += own
    full[:, step, step + 1] += beside
    full[:, step + 1, step] += beside
    return full


def _freed(block: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    freed: FloatArray = block * rows[:, :, None] * columns[:, None, :]
    return freed


def _diagonal(values: FloatArray) -> FloatArray:
    full = np.zeros((*values.shape, values.shape[1]))
    at = np.arange(values.shape[1])
    full[:, at, at] = values
    return full


def _inverse(matrices: FloatArray) -> FloatArray:
    """Of symmetric matrices; large ones by halves, as products of matrices are quicker than elimination."""
    size = matrices.shape[-1]
    if size <= _LARGE:
        small: FloatArray = np.linalg.inv(matrices).astype(np.float64, copy=False)
        return small
    half = size // 2
    first = _inverse(matrices[..., :half, :half])
    across = first @ matrices[..., :half, half:]
    second = _inverse(matrices[..., half:, half:] - turned(matrices[..., :half, half:]) @ across)
    inverse: FloatArray = np.empty_like(matrices)
    inverse[..., half:, half:] = second
    inverse[..., :half, half:] = beside = -across @ second
    inverse[..., half:, :half] = turned(beside)
    inverse[..., :half, :half] = first - beside @ turned(across)
    return inverse


def turned(matrices: FloatArray) -> FloatArray:
    """Each matrix transposed."""
    return np.swapaxes(matrices, -1, -2)
