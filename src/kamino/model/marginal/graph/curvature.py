"""A guess of the dual's curvature that sees what measurements share: the 1-way marginals of their attributes.

The curvature is sigma² + (N²/tau) Cov, with the covariance of the measured cells of one row. Cells of one measurement
have nearly the diagonal of it. Two measurements that share an attribute pull at the same 1-way marginal: if they are
independent given that attribute, cells c and c' that hold its value v have the covariance P(c) P(c') / P(v). So

    curvature ~ D + U U^T,   U[c, v] = (N / sqrt(tau)) P(c and v) / sqrt(P(v)),   D = sigma² + (N²/tau) P(c),

with one column for each value of each attribute, and the inverse needs a matrix of that many columns only (Woodbury).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, sum_groups
from kamino.model.marginal.graph.measurement import Measurement
from kamino.model.protocol import IntArray

#: Beyond so many values of all attributes, or numbers for one measurement, what is shared is left out.
MOST_VALUES, MOST_NUMBERS = 4_000, 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shared:
    """A block of lines of U, and which columns it has."""

    lines: slice
    columns: IntArray
    block: FloatArray


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
                blocks = [_with_values(m, table, axis) for axis in range(table.ndim)]
                block = self.factor * np.concatenate(blocks, axis=1)
                self.shared.append(_Shared(lines=slice(place, place + m.counts.size), columns=columns, block=block))
            place += m.counts.size
        self.diagonal = np.concatenate(diagonal)
        inner = np.eye(starts[-1]) if self.shared else np.zeros((0, 0))
        for each in self.shared:
            scaled = each.block / self.diagonal[each.lines, None]
            inner[np.ix_(each.columns, each.columns)] += each.block.T @ scaled
        self._inner = np.linalg.inv(inner)

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Return the inverse curvature times a vector."""
        result = vector / self.diagonal
        if not self.shared:
            return result
        seen = np.zeros(len(self._inner))
        for each in self.shared:
            seen[each.columns] += result[each.lines] @ each.block
        seen = self._inner @ seen
        taken = np.zeros(len(vector))
        for each in self.shared:
            taken[each.lines] = each.block @ seen[each.columns]
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


def _with_values(m: Measurement, table: FloatArray, axis: int) -> FloatArray:
    """P(measured cell and value) / sqrt(P(value)), a line for each measured cell, for the values of one axis."""
    size, cells = table.shape[axis], m.counts.size
    value = np.broadcast_to(np.arange(size).reshape([-1 if i == axis else 1 for i in range(table.ndim)]), table.shape)
    own = np.arange(table.size) if m.group is None else m.group
    joint = sum_groups(own * size + value.ravel(), table.ravel(), cells * size).reshape(cells, size)
    held = np.maximum(joint.sum(axis=0), 1e-12)
    lines: FloatArray = np.stack([m.centred(column) for column in joint.T], axis=1) / np.sqrt(held)
    return lines
