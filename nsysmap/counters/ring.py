"""Symmetric systems in which only neighbours on a ring couple, and one more unknown with all:
stored as bands, solved by blocks.

Several systems that differ in the weights of single unknowns and of neighbours are solved together:
one per metric.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nsysmap.core.records import dataclass
from nsysmap.core.table import BoolArray, FloatArray, IntArray

LEAST_BLOCK = 16
"""Smallest blocks: the parts of most kernels fit into two of them, and for smaller ones calling
numpy takes longer than computing.
"""
_FEWEST_BLOCKS = 2  # a ring of one block is solved whole
_CALLS = 250_000  # operations of one matrix in the time that calling numpy for one more block takes
_COUPLED = 1e-5  # share of the unknowns' own weights: less counts as no coupling


@dataclass(frozen=True)
class Gram:
    """A symmetric matrix on a ring: ``band[d, i]`` couples unknown i with unknown i + d going
    round, ``edge[i]`` with the common one.
    """

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
        around = np.concatenate(
            [
                self.band[0] * inner + self.edge * values[..., -1:],
                np.zeros((*values.shape[:-1], self.reach)),
            ],
            axis=-1,
        )
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

    def merged(self, into: IntArray) -> Gram:
        """The matrix for unknowns that are equal where ``into`` is: unknown i on the ring becomes
        unknown into[i].
        """
        ring, at = int(into[-1]) + 1, np.arange(self.ring)
        away = np.repeat(np.arange(self.reach + 1), self.ring)
        left, right = (
            into[np.tile(at, self.reach + 1)],
            into[(np.tile(at, self.reach + 1) + away) % self.ring],
        )
        band = band_of_pairs(left, right, self.band.ravel(), away == 0, ring)
        return Gram(
            band, np.bincount(into, self.edge, ring).astype(np.float64, copy=False), self.last
        )

    def between(self, row: IntArray, column: IntArray) -> FloatArray:
        """Entries of unknowns on the ring."""
        ahead = (column - row) % self.ring
        behind = (row - column) % self.ring
        found = np.where(ahead <= self.reach, self.band[np.minimum(ahead, self.reach), row], 0.0)
        found += np.where(
            (behind <= self.reach) & (behind > 0),
            self.band[np.minimum(behind, self.reach), column],
            0.0,
        )
        return found

    @cached_property
    def blocks(self) -> RingBlocks:
        """The matrix cut into blocks."""
        return _blocks_of(self)


@dataclass(frozen=True)
class RingBlocks:
    """The matrix cut: each block couples with the next and with the border, which is the rest of
    the ring and the common unknown.
    """

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
        """The systems of equations of these metrics."""
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
        # makes the last diagonal element positive whatever rounding does
        scale = 2 * np.maximum(squares, 1.0)
        full[:, -1, -1] = squares + scale
        diagonal = np.diagonal(np.linalg.cholesky(full), axis1=1, axis2=2)
        return diagonal[:, -1] ** 2 - scale, 2 * np.log(diagonal[:, :-1]).sum(axis=1)

    def factor(self, *, fixed: BoolArray | None = None) -> Factor:
        """The factorised matrices; ``fixed`` unknowns couple with none and have weight 1."""
        return _factored(self, fixed)


@dataclass(frozen=True)
class Factor:
    """Factorised matrices on a ring, by block and metric."""

    # of the blocks, with earlier ones eliminated: [block, metric, row, column]
    inverses: FloatArray
    # of each block with the next (0 for the last), and then with the border, with earlier ones
    # eliminated
    coupling: FloatArray
    pushed: FloatArray  # inverses times coupling
    last: FloatArray  # inverse of the border, everything else eliminated: [metric, row, column]

    @property
    def size(self) -> int:
        """The number of unknowns of a block."""
        return int(self.inverses.shape[-1])

    @property
    def log_determinant(self) -> FloatArray:
        """The logarithm of the determinant of each metric's matrix."""
        logarithm: FloatArray = (
            -np.linalg.slogdet(self.inverses)[1].sum(axis=0) - np.linalg.slogdet(self.last)[1]
        )
        return logarithm

    def of(self, metric: int) -> Factor:
        """The factors of this metric's matrix alone."""
        one = slice(metric, metric + 1)
        return Factor(
            self.inverses[:, one], self.coupling[:, one], self.pushed[:, one], self.last[one]
        )

    def solve(self, target: FloatArray) -> FloatArray:
        """For each metric the x with Mx = target: [metric, unknown], or [metric, unknown,
        target].
        """
        if target.ndim == 2:
            single: FloatArray = self.solve(target[:, :, None])[:, :, 0]
            return single
        (metrics, _, targets), (count, size) = target.shape, (len(self.inverses), self.size)
        passed = (
            target[:, : count * size].reshape(metrics, count, size, targets).swapaxes(0, 1).copy()
        )
        ahead = turned(self.pushed[..., :size])
        for at in range(1, count):
            passed[at] -= ahead[at - 1] @ passed[at - 1]
        border = self.last @ (
            target[:, count * size :] - (turned(self.pushed[..., size:]) @ passed).sum(axis=0)
        )
        answer = self.inverses @ passed - self.pushed[..., size:] @ border
        for at in range(count - 2, -1, -1):
            answer[at] -= self.pushed[at, ..., :size] @ answer[at + 1]
        return np.concatenate(
            [answer.swapaxes(0, 1).reshape(metrics, count * size, targets), border], axis=1
        )


def band_of_pairs(
    left: IntArray, right: IntArray, product: FloatArray, own: BoolArray, ring: int
) -> FloatArray:
    """The band of the matrix that is the sum of the products of pairs of unknowns; a pair that is
    ``own`` is an unknown with itself.
    """
    ahead = (right - left) % ring
    turned_round = 2 * ahead > ring
    first, away = np.where(turned_round, right, left), np.where(turned_round, ring - ahead, ahead)
    both = np.where((away == 0) & ~own, 2 * product, product)
    rows = int(away.max(initial=0)) + 1
    return (
        np.bincount(away * ring + first, both, rows * ring)
        .astype(np.float64, copy=False)
        .reshape(rows, ring)
    )


def gram_of_dense(matrix: FloatArray) -> Gram:
    """The matrix of all these entries; the last column is the common one."""
    ring = len(matrix) - 1
    at = np.arange(ring)
    band = np.stack([matrix[at, (at + away) % ring] for away in range(ring // 2 + 1)])
    if ring > 1 and not ring % 2:
        band[ring // 2, ring // 2 :] = 0.0  # each pair once
    return Gram(trimmed(band), matrix[:-1, -1].copy(), float(matrix[-1, -1]))


def trimmed(band: FloatArray) -> FloatArray:
    """A copy without the farthest couplings, if they are negligible."""
    own = np.sqrt(np.maximum(band[0], 1e-300))
    for away in range(len(band) - 1, 0, -1):
        if (band[away] > _COUPLED * own * np.roll(own, -away)).any():
            return band[: away + 1]
    return band[:1]


def _blocks_of(gram: Gram) -> RingBlocks:
    ring = gram.ring
    least, reach = max(gram.reach, LEAST_BLOCK), max(gram.reach, 1)
    size = min(range(least, 2 * least), key=lambda size: _cost(ring, reach, size))
    count = (ring - reach) // size
    if count < _FEWEST_BLOCKS or _cost(ring, reach, size) > 2 * ring**3:
        count = 0
    inside = np.arange(size)
    starts = np.arange(count)[:, None, None] * size
    own = (
        gram.between(starts + inside[:, None], starts + inside)
        if count
        else np.zeros((0, size, size))
    )
    nexts = (
        gram.between(starts[:-1] + inside[:, None], starts[:-1] + size + inside)
        if count
        else np.zeros((0, size, size))
    )
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
    return RingBlocks(size, own, nexts, edges, border)


def _cost(ring: int, reach: int, size: int) -> int:
    """The operations that blocks of that size take; what they leave over, no less than the reach,
    is in the border.
    """
    count = (ring - reach) // size
    border = ring - count * size + 1
    return (
        count * (6 * size**3 + 4 * size**2 * border + 2 * size * border**2 + _CALLS) + 2 * border**3
    )


def _factored(systems: Systems, fixed: BoolArray | None) -> Factor:
    blocks = systems.gram.blocks
    size, count, metrics = blocks.size, blocks.count, len(systems.own)
    chain = count * size
    own = np.repeat(blocks.own[:, None], metrics, axis=1)
    coupling = np.zeros((count, metrics, size, size + len(blocks.border)))
    coupling[:-1, ..., :size] = blocks.nexts[:, None]
    coupling[..., size:] = blocks.edges[:, None]
    last = _with(blocks.border, systems.own[:, chain:], systems.beside[:, chain:])
    if count:
        at, beside = np.arange(size), _by_block(systems.beside, blocks)
        own[..., at, at] += _by_block(systems.own, blocks)
        own[..., at[:-1], at[1:]] += beside[..., :-1]
        own[..., at[1:], at[:-1]] += beside[..., :-1]
        coupling[:-1, :, -1, 0] += beside[:-1, :, -1]
        coupling[-1, :, -1, size] += beside[-1, :, -1]
    if fixed is not None:
        free = (~fixed).astype(np.float64)
        inside, border = _by_block(free, blocks), free[:, chain:]
        own = _freed(own, inside, inside) + _diagonal(1.0 - inside)
        coupling[:-1, ..., :size] = _freed(coupling[:-1, ..., :size], inside[:-1], inside[1:])
        coupling[..., size:] = _freed(
            coupling[..., size:], inside, np.broadcast_to(border, (count, *border.shape))
        )
        last = _freed(last, border, border) + _diagonal(1.0 - border)
    inverses, pushed = np.empty_like(own), np.empty_like(coupling)
    for block in range(count):
        if block:
            carried = turned(coupling[block - 1, ..., :size]) @ pushed[block - 1]
            own[block] -= carried[..., :size]
            coupling[block, ..., size:] -= carried[..., size:]
        inverses[block] = np.linalg.inv(own[block])
        np.matmul(inverses[block], coupling[block], out=pushed[block])
    last -= (turned(coupling[..., size:]) @ pushed[..., size:]).sum(axis=0)
    rest: FloatArray = np.linalg.inv(last).astype(np.float64, copy=False)
    return Factor(inverses, coupling, pushed, rest)


def _by_block(values: FloatArray, blocks: RingBlocks) -> FloatArray:
    """[metric, unknown] without the border as [block, metric, unknown]."""
    return (
        values[:, : blocks.count * blocks.size]
        .reshape(len(values), blocks.count, blocks.size)
        .swapaxes(0, 1)
    )


def _with(block: FloatArray, own: FloatArray, beside: FloatArray) -> FloatArray:
    """The block for each metric, with what is added to its diagonal and beside it."""
    full = np.repeat(block[None], len(own), axis=0)
    at, step = np.arange(own.shape[1]), np.arange(beside.shape[1])
    full[:, at, at] += own
    full[:, step, step + 1] += beside
    full[:, step + 1, step] += beside
    return full


def _freed(block: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    freed: FloatArray = block * rows[..., :, None] * columns[..., None, :]
    return freed


def _diagonal(values: FloatArray) -> FloatArray:
    full = np.zeros((*values.shape, values.shape[-1]))
    at = np.arange(values.shape[-1])
    full[..., at, at] = values
    return full


def turned(matrices: FloatArray) -> FloatArray:
    """Each matrix transposed."""
    return np.swapaxes(matrices, -1, -2)
