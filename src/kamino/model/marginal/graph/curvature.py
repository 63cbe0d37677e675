"""A guess of the dual's curvature that sees what measurements share: the 1-way marginals of their attributes.

The curvature is sigma² + (N²/tau) Cov, with the covariance of the measured cells of one row. Cells of one measurement
have nearly the diagonal of it. Two measurements that share an attribute pull at the same 1-way marginal: if they are
independent given that attribute, cells c and c' that hold its value v have the covariance P(c) P(c') / P(v). So

    curvature ~ D + U U^T,   U[c, v] = (N / sqrt(tau)) P(c and v) / sqrt(P(v)),   D = sigma² + (N²/tau) P(c),

with one column for each value of each attribute, and the inverse needs a matrix of that many columns only (Woodbury).
A measurement of groups of an attribute's values has the columns of the values: P(c and v) = P(c) P(v) / P(v's group).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from kamino.arrays import distinct
from kamino.model.marginal.graph.factor import FloatArray, first_of_runs, sum_groups
from kamino.model.marginal.graph.measurement import Measurement
from kamino.model.protocol import IntArray

Within: TypeAlias = Mapping[int, tuple[IntArray, FloatArray]]
#: Beyond so many values of all attributes, or numbers for one measurement, what is shared is left out.
MOST_VALUES, MOST_NUMBERS = 4_000, 2_000_000
#: A matrix of so many columns is inverted before scipy, which factors it in a sixth of the time, is imported.
FEW_VALUES = 600
#: A block of lines of U with more numbers than this is multiplied by way of the marginal's table.
DENSE_NUMBERS = 20_000


@dataclass(frozen=True, kw_only=True, eq=False)
class _Axis:
    """How the values of one axis of a measured table become columns, one for each value of `variable`.

    `root` is what each column is multiplied by; `group` is the place on the axis of each column, None if its own.
    """

    variable: int
    root: FloatArray
    group: IntArray | None = None

    @cached_property
    def _starts(self) -> IntArray | None:
        return None if self.group is None else first_of_runs(self.group)

    def spread(self, columns: FloatArray) -> FloatArray:
        """Return what numbers for the columns make of the values of the axis."""
        scaled = columns * self.root
        return scaled if self._starts is None else np.add.reduceat(scaled, self._starts)

    def collect(self, values: FloatArray) -> FloatArray:
        """Return what numbers for the values of the axis, the first dimension, make of the columns."""
        taken = values if self.group is None else values[self.group]
        return taken * (self.root if values.ndim == 1 else self.root[:, None])


class _Shared:
    """The lines of U that belong to one measurement, and which columns they have."""

    def __init__(
        self, m: Measurement, table: FloatArray, lines: slice, columns: IntArray, axes: Sequence[_Axis]
    ) -> None:
        self.lines, self.columns = lines, columns
        self._measurement, self._table, self._axes = m, table, axes
        ends = np.cumsum([len(axis.root) for axis in axes]).tolist()
        self._parts = [slice(end - len(axis.root), end) for end, axis in zip(ends, axes, strict=True)]
        places = range(table.ndim)
        self._others = [tuple(i for i in places if i != place) for place in places]
        self._shapes = [tuple(-1 if i == place else 1 for i in places) for place in places]
        #: P(measured cell and value) / sqrt(P(value)), scaled: a line for each measured cell, a column for each value.
        self.block: FloatArray | None = self.dense()
        if self.block.size > DENSE_NUMBERS:
            self.block = None

    def dense(self) -> FloatArray:
        """Return the lines as a matrix."""
        m, table = self._measurement, self._table
        own = np.arange(table.size) if m.group is None else m.group
        parts = []
        for size, axis, shape in zip(table.shape, self._axes, self._shapes, strict=True):
            value = np.broadcast_to(np.arange(size).reshape(shape), table.shape)
            joint = sum_groups(own * size + value.ravel(), table.ravel(), m.counts.size * size)
            parts.append(axis.collect(np.stack([m.centred(c) for c in joint.reshape(m.counts.size, -1).T])).T)
        return np.concatenate(parts, axis=1)

    def times(self, columns: FloatArray) -> FloatArray:
        """Return the lines times a number for each of their columns."""
        if self.block is not None:
            return self.block @ columns
        spread: FloatArray = np.zeros(())
        for own, axis, shape in zip(self._parts, self._axes, self._shapes, strict=True):
            spread = spread + axis.spread(columns[own]).reshape(shape)
        return self._measurement.answer((self._table * spread).ravel())

    def transposed_times(self, lines: FloatArray) -> FloatArray:
        """Return the transposed lines times a number for each of them."""
        if self.block is not None:
            return lines @ self.block
        table = self._table * self._measurement.spread(lines).reshape(self._table.shape)
        sums = [np.add.reduce(table, axis=others) for others in self._others]
        return np.concatenate([axis.collect(each) for axis, each in zip(self._axes, sums, strict=True)])


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
        within: Within | None = None,
    ) -> None:
        """Guess from the model's probabilities of the measured marginals, `tables`, and from what was measured.

        `within` has, of each variable that is the groups of another's values, the group and probability of each value.
        """
        self.factor = num_rows / float(np.sqrt(tau))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shared: list[_Shared] = []
        diagonal, place = [], 0
        for number, m in enumerate(measurements):
            table = tables[number].reshape([sizes[a] for a in m.attributes])
            diagonal.append(m.sigma.ravel() ** 2 + self.factor**2 * _own(m, table, num_rows))
            axes = [self._axis(table, place, a, within or {}) for place, a in enumerate(m.attributes)]
            width = sum(len(axis.root) for axis in axes)
            if starts[-1] <= MOST_VALUES and m.counts.size * width <= MOST_NUMBERS:
                columns = np.concatenate([np.arange(starts[x.variable], starts[x.variable + 1]) for x in axes])
                lines = slice(place, place + m.counts.size)
                self.shared.append(_Shared(m, table, lines, columns, axes))
            place += m.counts.size
        self.diagonal = np.concatenate(diagonal)
        self._width = _only_used(self.shared)
        self._solve = self._inner_solver() if self.shared else None

    def _inner_solver(self) -> Callable[[FloatArray], FloatArray]:
        """Return what solves I + U^T D^-1 U, symmetric and at least 1, for a vector."""
        # Filled in the order of columns, as LAPACK wants it: nothing is copied.
        inner = np.zeros((self._width, self._width), order="F")
        np.fill_diagonal(inner, 1.0)
        for each in self.shared:
            block = each.dense() if each.block is None else each.block
            inner[np.ix_(each.columns, each.columns)] += block.T @ (block / self.diagonal[each.lines, None])
        if self._width <= FEW_VALUES:
            inverse = np.linalg.inv(inner)
            return lambda vector: inverse @ vector
        from scipy.linalg import cho_factor, cho_solve  # slow to import: only for large models

        factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
        return lambda vector: np.asarray(cho_solve(factor, vector, check_finite=False))

    def _axis(self, table: FloatArray, place: int, variable: int, within: Within) -> _Axis:
        """How the values of an axis become columns."""
        if variable not in within:
            others = tuple(i for i in range(table.ndim) if i != place)
            held = np.maximum(table.sum(axis=others), 1e-12)
            return _Axis(variable=variable, root=self.factor / np.sqrt(held))
        group, share = within[variable]
        held = np.maximum(np.bincount(group, weights=share), 1e-12)
        root = self.factor * np.sqrt(np.maximum(share, 0.0)) / held[group]
        return _Axis(variable=variable - 1, root=root, group=group)

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Return the inverse curvature times a vector."""
        result = vector / self.diagonal
        if self._solve is None:
            return result
        seen = np.zeros(self._width)
        for each in self.shared:
            seen[each.columns] += each.transposed_times(result[each.lines])
        seen = self._solve(seen)
        taken = np.zeros(len(vector))
        for each in self.shared:
            taken[each.lines] = each.times(seen[each.columns])
        return result - taken / self.diagonal


def _only_used(shared: Sequence[_Shared]) -> int:
    """Number the columns that measurements have from 0, in place, and return how many there are."""
    used = distinct(*(each.columns for each in shared)) if shared else np.zeros(0, dtype=np.int64)
    for each in shared:
        each.columns = np.searchsorted(used, each.columns)
    return len(used)


def _own(m: Measurement, table: FloatArray, num_rows: float) -> FloatArray:
    """The probability of each measured cell, by the model or by what was measured, whichever is larger.

    A 1-way marginal is all in its shared columns: only what the model does not expect yet is left.
    """
    expected = m.grouped(table.ravel())
    seen = m.counts.ravel() / num_rows + (expected if m.is_interaction else 0.0)
    likely = np.maximum(expected, np.clip(np.abs(seen), m.sigma.ravel() / num_rows, 1.0))
    own: FloatArray = likely - expected if len(m.attributes) == 1 else likely
    return own
