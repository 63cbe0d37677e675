"""A guess of the dual's curvature that sees what measurements share: the 1-way marginals of their attributes.

The curvature is sigma² + (N²/tau) Cov, with the covariance of the measured cells of one row. Cells of one measurement
have nearly the diagonal of it. Two measurements that share an attribute pull at the same 1-way marginal: if they are
independent given that attribute, cells c and c' that hold its value v have the covariance P(c) P(c') / P(v). So

    curvature ~ D + U U^T,   U[c, v] = (N / sqrt(tau)) P(c and v) / sqrt(P(v)),   D = sigma² + (N²/tau) P(c),

with one column for each value of each attribute, and the inverse needs a matrix of that many columns only (Woodbury).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, sum_groups
from kamino.model.marginal.graph.measurement import Measurement
from kamino.model.protocol import IntArray

#: Beyond so many values of all attributes, or numbers for one measurement, what is shared is left out.
MOST_VALUES, MOST_NUMBERS = 4_000, 2_000_000
#: A block of lines of U with more numbers than this is multiplied by way of the marginal's table.
DENSE_NUMBERS = 20_000


class _Shared:
    """The lines of U that belong to one measurement, and which columns they have."""

    def __init__(self, m: Measurement, table: FloatArray, lines: slice, columns: IntArray, factor: float) -> None:
        self.lines, self.columns = lines, columns
        self._measurement, self._table = m, table
        self._ends = np.cumsum(table.shape)[:-1]
        axes = range(table.ndim)
        self._others = [tuple(i for i in axes if i != axis) for axis in axes]
        self._shapes = [tuple(-1 if i == axis else 1 for i in axes) for axis in axes]
        held = [np.maximum(table.sum(axis=others), 1e-12) for others in self._others]
        self._roots = [factor / np.sqrt(each) for each in held]
        #: P(measured cell and value) / sqrt(P(value)), scaled: a line for each measured cell, a column for each value.
        self.block: FloatArray | None = self.dense()
        if self.block.size > DENSE_NUMBERS:
            self.block = None

    def dense(self) -> FloatArray:
        """Return the lines as a matrix."""
        m, table = self._measurement, self._table
        own = np.arange(table.size) if m.group is None else m.group
        parts = []
        for root, shape in zip(self._roots, self._shapes, strict=True):
            value = np.broadcast_to(np.arange(len(root)).reshape(shape), table.shape)
            joint = sum_groups(own * len(root) + value.ravel(), table.ravel(), m.counts.size * len(root))
            parts.append(np.stack([m.centred(c) for c in joint.reshape(m.counts.size, -1).T], axis=1) * root)
        return np.concatenate(parts, axis=1)

    def times(self, columns: FloatArray) -> FloatArray:
        """Return the lines times a number for each of their columns."""
        if self.block is not None:
            return self.block @ columns
        spread: FloatArray = np.zeros(())
        for part, root, shape in zip(np.split(columns, self._ends), self._roots, self._shapes, strict=True):
            spread = spread + (part * root).reshape(shape)
        return self._measurement.answer((self._table * spread).ravel())

    def transposed_times(self, lines: FloatArray) -> FloatArray:
        """Return the transposed lines times a number for each of them."""
        if self.block is not None:
            return lines @ self.block
        table = self._table * self._measurement.spread(lines).reshape(self._table.shape)
        parts = [np.add.reduce(table, axis=others) for others in self._others]
        return np.concatenate([part * root for part, root in zip(parts, self._roots, strict=True)])


class InverseCurvature:
    """Multiplies by the inverse of the guess.

    Guarantees:
        It is the inverse of D + U U^T.  [test_curvature_is_inverted]
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        tables: Mapping[int, FloatArray],
        sizes: Sequence[int],
        *,
        num_rows: float,
        tau: float,
    ) -> None:
        """Guess from the model's probabilities of the measured marginals, `tables`, and from what was measured."""
        self.factor = num_rows / float(np.sqrt(tau))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shared: list[_Shared] = []
        diagonal, place = [], 0
        for number, m in enumerate(measurements):
            table = tables[number].reshape([sizes[a] for a in m.attributes])
            diagonal.append(m.sigma.ravel() ** 2 + self.factor**2 * _own(m, table, num_rows))
            width = sum(sizes[a] for a in m.attributes)
            if starts[-1] <= MOST_VALUES and m.counts.size * width <= MOST_NUMBERS:
                columns = np.concatenate([np.arange(starts[a], starts[a + 1]) for a in m.attributes])
                lines = slice(place, place + m.counts.size)
                self.shared.append(_Shared(m, table, lines, columns, self.factor))
            place += m.counts.size
        self.diagonal = np.concatenate(diagonal)
        inner = np.eye(starts[-1]) if self.shared else np.zeros((0, 0))
        for each in self.shared:
            block = each.dense()
            inner[np.ix_(each.columns, each.columns)] += block.T @ (block / self.diagonal[each.lines, None])
        self._inner = np.linalg.inv(inner)

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Return the inverse curvature times a vector."""
        result = vector / self.diagonal
        if not self.shared:
            return result
        seen = np.zeros(len(self._inner))
        for each in self.shared:
            seen[each.columns] += each.transposed_times(result[each.lines])
        seen = self._inner @ seen
        taken = np.zeros(len(vector))
        for each in self.shared:
            taken[each.lines] = each.times(seen[each.columns])
        return result - taken / self.diagonal


def _own(m: Measurement, table: FloatArray, num_rows: float) -> FloatArray:
    """The probability of each measured cell, by the model or by what was measured, whichever is larger.

    A 1-way marginal is all in its shared columns: only what the model does not expect yet is left.
    """
    expected = m.grouped(table.ravel())
    seen = m.counts.ravel() / num_rows + (expected if m.is_interaction else 0.0)
    likely = np.maximum(expected, np.clip(np.abs(seen), m.sigma.ravel() / num_rows, 1.0))
    own: FloatArray = likely - expected if len(m.attributes) == 1 else likely
    return own
