"""What distances of bins do not show of a number: its deviation, its tails, and values that nobody has.

Bins of equal width put a long tail into one bin, and a value of its own beside its neighbour. So the deviation, the
quantiles near both ends, and the share of invented values are compared by themselves, each with what chance does to it:
the same between two random halves of the true table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kamino.evaluate.measure.columns import Kind, Numbers, kind_of, numbers, type_fits
from kamino.evaluate.measure.marginals import halve_rows

# The quantiles of the tails.
_TAILS = (0.01, 0.99)
# Values repeat where there are at least so many rows for each: of others, a new one is as good as an old one.
_REPEATS = 2.0


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How far the shape of a synthetic number is from that of the true one.

    deviation: the standard deviation in that of the true one. tails: how far the quantiles of 1% and 99% moved at most,
    in true deviations. invented: the share of values that no true row has; None where true values hardly repeat.
    """

    deviation: float
    tails: float
    invented: float | None


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """The shape of a synthetic number, and that of one random half of the true table beside the other."""

    found: Shape
    halves: Shape


def compare_shapes(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Shapes | None:
    """Compare the shapes of two columns of numbers; None for other columns, and where too few values are there.

    >>> half = compare_shapes(pa.chunked_array([[0, 10] * 50]), pa.chunked_array([[0, 5] * 50]))
    >>> half.found
    Shape(deviation=0.5, tails=1.0, invented=0.5)
    """
    if kind_of(true.type) is not Kind.NUMBER or not type_fits(true.type, synthetic.type):
        return None
    one, two = _finite(true), _finite(synthetic)
    first, second = (one[np.asarray(rows, dtype=np.int64)] for rows in halve_rows(len(one)))
    found, halves = _compare(one, two), _compare(first, second)
    return None if found is None or halves is None else Shapes(found=found, halves=halves)


def _finite(column: pa.ChunkedArray) -> Numbers:
    values = numbers(column)
    return values[np.isfinite(values)]


def _compare(true: Numbers, synthetic: Numbers) -> Shape | None:
    # Of fewer values the quantiles of the tails are the ends.
    if min(len(true), len(synthetic)) < 1 / _TAILS[0] / 2:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        deviation, other = float(true.std()), float(synthetic.std())
        moved = np.abs(np.quantile(synthetic, _TAILS) - np.quantile(true, _TAILS)).max()
    if not (np.isfinite([deviation, other, moved]).all() and deviation > 0):
        return None
    known = np.unique(true)
    invented = float((~np.isin(synthetic, known)).mean()) if len(known) * _REPEATS <= len(true) else None
    return Shape(deviation=other / deviation, tails=float(moved) / deviation, invented=invented)
