"""Rank correlations of ordered columns, and how far a synthetic table's are from the true ones.

Spearman's correlation is Pearson's of the ranks: 1 where one column rises with the other, whatever the curve, and not
moved by a few large values. It shows whether columns that go together still do, which bins may hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from kamino.evaluate.measure.columns import Kind, Numbers, kind_of, numbers
from kamino.evaluate.measure.correlation import Matrix, pearson
from kamino.evaluate.measure.marginals import Progress

# A column of one or two values has no order worth the name.
LEAST_VALUES = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class RankCorrelations:
    """Spearman's correlations of the ordered columns in both tables, with 1 on the diagonal."""

    names: tuple[str, ...]
    true: Matrix
    synthetic: Matrix

    @property
    def errors(self) -> Numbers:
        """The absolute difference of each pair."""
        gap = np.abs(self.synthetic - self.true)
        return np.asarray(gap[np.triu_indices(len(self.names), 1)], dtype=np.float64)

    @property
    def mean_error(self) -> float:
        """The mean over pairs; 0 where there are none."""
        return float(self.errors.mean()) if len(self.errors) else 0.0


def compare_ranks(
    true: pa.Table, synthetic: pa.Table, *, names: Sequence[str] | None = None, progress: Progress = iter
) -> RankCorrelations:
    """The rank correlations in both tables of every pair of `names`, by default of all ordered columns.

    A synthetic column that is no number or time where the true one is has no order: its correlations are 0.

    >>> true = pa.table({"a": [1, 2, 3, 4], "b": [1, 10, 100, 1000]})
    >>> turned = pa.table({"a": [1, 2, 3, 4], "b": [1000, 100, 10, 1]})
    >>> compare_ranks(true, turned).mean_error
    2.0

    Guarantees:
        Agrees with ranks by comparing all rows.  [test_rank_correlations_agree_with_brute_force]
    """
    chosen = ordered_columns(true) if names is None else tuple(names)
    return RankCorrelations(
        names=chosen,
        true=_correlate(true.select(chosen), progress),
        synthetic=_correlate(synthetic.select(chosen), progress),
    )


def ordered_columns(table: pa.Table) -> tuple[str, ...]:
    """The numbers and times of more than two values.

    >>> ordered_columns(pa.table({"n": [1, 2, 3], "flag": [0, 1, None], "text": ["a", "b", "c"]}))
    ('n',)
    """
    return tuple(name for name in table.column_names if _distinct(_numbers(table.column(name))) >= LEAST_VALUES)


def spearman(one: Numbers, two: Numbers) -> float:
    """Spearman's correlation over the rows in which neither is null; 0 where a column is constant.

    >>> round(spearman(np.array([1.0, 2, 3, np.nan]), np.array([1.0, 4, 90, 2])), 6)
    1.0
    """
    both = np.isfinite(one) & np.isfinite(two)
    return pearson(average_ranks(one[both]), average_ranks(two[both]))


def average_ranks(values: Numbers) -> Numbers:
    """The rank of each value, from 1; equal values share the mean of their ranks.

    >>> average_ranks(np.array([10.0, 30, 10, 20])).tolist()
    [1.5, 4.0, 1.5, 3.0]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)


def _correlate(table: pa.Table, progress: Progress) -> Matrix:
    """Correlate all pairs. A column without nulls has the same ranks in every such pair, and is sorted once."""
    columns = {name: _numbers(table.column(name)) for name in table.column_names}
    ranks = {name: average_ranks(column) for name, column in columns.items() if np.isfinite(column).all()}
    place = {name: i for i, name in enumerate(columns)}
    values = np.eye(len(columns))
    for one, two in progress(list(combinations(columns, 2))):
        whole = one in ranks and two in ranks
        found = pearson(ranks[one], ranks[two]) if whole else spearman(columns[one], columns[two])
        values[place[one], place[two]] = values[place[two], place[one]] = found
    return values


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.full(len(column), np.nan) if kind_of(column.type) is Kind.CATEGORY else numbers(column)


def _distinct(values: Numbers) -> int:
    return len(np.unique(values[np.isfinite(values)]))
