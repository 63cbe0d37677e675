"""How strongly two columns go together, as one number for any pair of kinds.

Two numbers: Pearson's correlation, -1 to 1. Two categories: Cramér's V, 0 to 1, corrected for the bias that many
values bring (Bergsma 2013). A number and a category: the correlation ratio, 0 to 1, corrected in the same spirit
(epsilon squared, Kelley 1935). Rows in which either column is null are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.evaluate.measure.columns import Kind, Numbers, kind_of, numbers, texts
from kamino.evaluate.measure.marginals import Names, joint_cells
from kamino.schema.coding.joint_codes import number_values

Integers = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float64]


def pearson(one: Numbers, two: Numbers) -> float:
    """Pearson's correlation; 0 where a column is constant.

    >>> round(pearson(np.array([1.0, 2, 3]), np.array([2.0, 4, 6])), 6)
    1.0
    """
    both = np.isfinite(one) & np.isfinite(two)
    x, y = one[both], two[both]
    if len(x) < 2:
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip((x @ y) / scale, -1.0, 1.0)) if scale > 0 else 0.0


def cramers_v(one: Integers, two: Integers) -> float:
    """Cramér's V of two columns of codes, corrected for bias; negative codes are null.

    >>> cramers_v(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    both = (one >= 0) & (two >= 0)
    rows = int(both.sum())
    if rows < 2:
        return 0.0
    x, y = number_values(one[both])[0], number_values(two[both])[0]
    a, b = np.bincount(x), np.bincount(y)
    cells, size = joint_cells([x, y], [len(a), len(b)])
    counts = np.bincount(cells, minlength=size)
    some = np.zeros(size, dtype=np.int64)
    some[cells] = np.arange(rows)  # any row of a cell
    there = np.flatnonzero(counts)
    joint, some = counts[there], some[there]
    # chi-squared over n, from the cells that occur: sum of n_ij^2 / (n_i n_j), less one
    phi = float((joint / a[x[some]] * joint / b[y[some]]).sum() - 1)
    return corrected_v(phi, len(a), len(b), rows)


def corrected_v(phi: float, left: int, right: int, rows: float) -> float:
    """Cramér's V from chi-squared over n, for `left` times `right` values in `rows` rows (infinite: no correction)."""
    fewer = 0.0 if np.isinf(rows) else 1 / (rows - 1)
    excess = max(0.0, phi - (left - 1) * (right - 1) * fewer)
    width = min(left - (left - 1) ** 2 * fewer, right - (right - 1) ** 2 * fewer) - 1
    return float(min(1.0, np.sqrt(excess / width))) if width > 1e-12 else 0.0


def correlation_ratio(codes: Integers, values: Numbers) -> float:
    """How much of a number's variance a category explains, as a square root, corrected for bias.

    >>> correlation_ratio(np.array([0, 0, 1, 1]), np.array([1.0, 1, 5, 5]))
    1.0
    """
    both = (codes >= 0) & np.isfinite(values)
    rows = int(both.sum())
    if rows < 2:
        return 0.0
    y = values[both]
    y = y - y.mean()
    x = number_values(codes[both])[0]
    sizes, sums = np.bincount(x), np.bincount(x, weights=y)
    total, between = float(y @ y), float((sums**2 / sizes).sum())
    if total <= 0 or len(sizes) >= rows:
        return 0.0
    unexplained = max(0.0, 1 - between / total) * (rows - 1) / (rows - len(sizes))
    return float(np.sqrt(max(0.0, 1 - unexplained)))


@dataclass(frozen=True, kw_only=True)
class Correlations:
    """The correlation of every pair of columns, with 1 on the diagonal."""

    names: tuple[str, ...]
    values: Matrix


def correlate(
    table: pa.Table,
    *,
    kinds: Mapping[str, Kind] | None = None,
    progress: Callable[[Iterable[Names]], Iterable[Names]] = iter,
) -> Correlations:
    """Correlate every pair of columns; `kinds` says as what each is read, by default as its type says."""
    names = tuple(table.column_names)
    read = {name: _read(table.column(name), (kinds or {}).get(name)) for name in names}
    place = {name: i for i, name in enumerate(names)}
    values = np.eye(len(names))
    for one, two in progress(list(combinations(names, 2))):
        found = _correlation(read[one], read[two])
        values[place[one], place[two]] = values[place[two], place[one]] = found
    return Correlations(names=names, values=values)


def _read(column: pa.ChunkedArray, kind: Kind | None) -> Numbers | Integers:
    """Floats for a number or a time, codes for a category."""
    if (kind or kind_of(column.type)) is not Kind.CATEGORY:
        return numbers(column)
    encoded = texts(column).combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)


def _correlation(one: Numbers | Integers, two: Numbers | Integers) -> float:
    if one.dtype.kind == "i" and two.dtype.kind == "i":
        return cramers_v(_codes(one), _codes(two))
    if one.dtype.kind == "i":
        return correlation_ratio(_codes(one), _floats(two))
    if two.dtype.kind == "i":
        return correlation_ratio(_codes(two), _floats(one))
    return pearson(_floats(one), _floats(two))


def _codes(column: Numbers | Integers) -> Integers:
    return column.astype(np.int64, copy=False)


def _floats(column: Numbers | Integers) -> Numbers:
    return column.astype(np.float64, copy=False)
