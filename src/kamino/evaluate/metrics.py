"""How far a synthetic table is from the true one: distances of marginals.

Both tables are read exactly: these numbers are for the owner of the true table and are not private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.evaluate.columns import require_columns
from kamino.schema.joint_codes import number_combinations, number_values

Bins = npt.NDArray[np.int64]
NUM_BINS = 16


@dataclass(frozen=True, kw_only=True)
class BinnedPair:
    """The true and the synthetic table with each attribute as bins of one scale."""

    true: Mapping[str, Bins]
    synthetic: Mapping[str, Bins]
    sizes: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Distances:
    """Total variation distances of all marginals of one order, by their attributes."""

    order: int
    by_attributes: Mapping[tuple[str, ...], float]

    @property
    def mean(self) -> float:
        """The mean over all marginals; 0 where there are none."""
        return float(np.mean(list(self.by_attributes.values()))) if self.by_attributes else 0.0

    @property
    def maximum(self) -> float:
        """The largest distance; 0 where there are none."""
        return max(self.by_attributes.values(), default=0.0)


def bin_tables(true: pa.Table, synthetic: pa.Table) -> BinnedPair:
    """Numbers and times in `NUM_BINS` bins of equal width over the true range, everything else by value.

    Null is a bin of its own. A synthetic number outside the true range falls into the nearest bin.
    """
    require_columns(true.column_names, synthetic.column_names)
    left, right, sizes = {}, {}, {}
    for name in true.column_names:
        left[name], right[name], sizes[name] = _bin_columns(true.column(name), synthetic.column(name))
    return BinnedPair(true=left, synthetic=right, sizes=sizes)


def distances_of(pair: BinnedPair, *, order: int, names: Sequence[str] | None = None) -> Distances:
    """The total variation distance (half the L1 distance) of every `order`-way marginal.

    >>> a, b = pa.table({"x": ["u", "u", "v", "v"]}), pa.table({"x": ["u", "v", "v", "v"]})
    >>> distances_of(bin_tables(a, b), order=1).mean
    0.25
    """
    chosen = combinations(names if names is not None else tuple(pair.sizes), order)
    return Distances(order=order, by_attributes={each: _distance(pair, each) for each in chosen})


def _distance(pair: BinnedPair, names: tuple[str, ...]) -> float:
    one, two = len(pair.true[names[0]]), len(pair.synthetic[names[0]])
    if not one or not two:
        return float(bool(one) != bool(two))
    both = [np.concatenate([pair.true[name], pair.synthetic[name]]) for name in names]
    cells, size = number_values(number_combinations(both, [pair.sizes[name] for name in names])[0])
    a = np.bincount(cells[:one], minlength=size) / one
    b = np.bincount(cells[one:], minlength=size) / two
    return float(np.abs(a - b).sum() / 2)


def _bin_columns(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> tuple[Bins, Bins, int]:
    if _is_numeric(true.type) and (_is_numeric(synthetic.type) or synthetic.null_count == len(synthetic)):
        return _bin_numbers(true, synthetic)
    both = pa.chunked_array([*true.cast(pa.string()).chunks, *synthetic.cast(pa.string()).chunks], type=pa.string())
    encoded = both.combine_chunks().dictionary_encode()
    size = len(encoded.dictionary)
    codes = np.asarray(encoded.indices.fill_null(size)).astype(np.int64)
    return codes[: len(true)], codes[len(true) :], size + 1


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64())
    floats = column.cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(floats, float("nan")))


def _bin_numbers(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> tuple[Bins, Bins, int]:
    a, b = _numbers(true), _numbers(synthetic)
    finite = a[np.isfinite(a)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    edges = np.linspace(low, high, NUM_BINS + 1)[1:-1] if high > low else np.empty(0)

    def place(values: npt.NDArray[np.float64]) -> Bins:
        bins = np.searchsorted(edges, np.nan_to_num(values, nan=low), side="right")
        return np.where(np.isnan(values), NUM_BINS, bins).astype(np.int64)

    return place(a), place(b), NUM_BINS + 1
