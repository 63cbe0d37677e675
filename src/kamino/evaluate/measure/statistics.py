"""Statistics of one column: mean, deviation, quantiles, nulls, distinct values; and values where none should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.evaluate.measure.columns import Kind, kind_of, numbers, shown, texts, type_fits

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """What one column looks like. Means and quantiles are `None` for categories; times are texts."""

    rows: int
    nulls: int
    distinct: int
    mean: Any = None
    std: float | None = None
    quantiles: tuple[Any, ...] = ()

    @property
    def null_share(self) -> float:
        """The share of rows without a value."""
        return self.nulls / self.rows if self.rows else 0.0


def describe(column: pa.ChunkedArray) -> ColumnStatistics:
    """Statistics of a column; NaN counts as null, and so do infinities for mean and quantiles.

    >>> found = describe(pa.chunked_array([[1, 2, 3, None]]))
    >>> found.mean, found.nulls, found.distinct, found.quantiles
    (2.0, 1, 3, (1.0, 1.5, 2.0, 2.5, 3.0))
    """
    kind = kind_of(column.type)
    rows = len(column)
    if kind is Kind.CATEGORY:
        return ColumnStatistics(rows=rows, nulls=column.null_count, distinct=pc.count_distinct(column).as_py())
    values = numbers(column)
    nulls = int(np.isnan(values).sum())
    distinct = len(np.unique(values[~np.isnan(values)]))
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ColumnStatistics(rows=rows, nulls=nulls, distinct=distinct)
    days = pa.types.is_date(column.type)
    return ColumnStatistics(
        rows=rows,
        nulls=nulls,
        distinct=distinct,
        mean=shown(finite.mean(), kind, whole_days=days),
        std=float(finite.std()) if kind is Kind.NUMBER else None,
        quantiles=tuple(shown(q, kind, whole_days=days) for q in np.quantile(finite, QUANTILES)),
    )


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Values of a synthetic column that the true column could not hold."""

    type_fits: bool
    outside: int
    """Values outside the true range, or for categories outside the true values."""
    new_nulls: bool
    """Whether there are nulls where the true column has none."""


def find_faults(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Faults:
    """Check type, range or values, and nulls of a synthetic column against the true one.

    >>> find_faults(pa.chunked_array([[1, 5]]), pa.chunked_array([[0, 3, 9, None]]))
    Faults(type_fits=True, outside=2, new_nulls=True)
    """
    fits = type_fits(true.type, synthetic.type) or synthetic.null_count == len(synthetic)
    return Faults(
        type_fits=fits,
        outside=_outside(true, synthetic, fits),
        new_nulls=bool(synthetic.null_count and not true.null_count),
    )


def _outside(true: pa.ChunkedArray, synthetic: pa.ChunkedArray, fits: bool) -> int:
    if kind_of(true.type) is Kind.CATEGORY or not fits:
        known = pc.unique(texts(true)).drop_null()
        inside = pc.is_in(texts(synthetic), value_set=known, skip_nulls=True)
        return int(len(synthetic) - pc.sum(inside).as_py() - synthetic.null_count) if len(synthetic) else 0
    values = numbers(true)
    values = values[~np.isnan(values)]
    drawn = numbers(synthetic)
    drawn = drawn[~np.isnan(drawn)]
    if not len(values):
        return len(drawn)
    return int(((drawn < values.min()) | (drawn > values.max())).sum())
