"""How far a synthetic table is from the true one: distances of marginals.

Both tables are read exactly: these numbers are for the owner of the true table and are not private.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.evaluate.measure.columns import require_columns
from kamino.schema.coding.joint_codes import number_combinations, number_values

Bins = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NUM_BINS = 16
NUM_MASS_BINS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Cuts:
    """Where the numbers of one column are cut into bins, and which bin a number on a cut belongs to."""

    edges: Floats
    edge_goes: Literal["up", "down"]

    def place(self, values: Floats) -> Bins:
        """The bin of each number; null is the bin after all others."""
        side: Literal["left", "right"] = "right" if self.edge_goes == "up" else "left"
        bins = np.searchsorted(self.edges, np.nan_to_num(values, nan=0.0), side=side)
        return np.where(np.isnan(values), len(self.edges) + 1, bins).astype(np.int64)


#: Cuts a column by its true numbers, without nulls.
Cutter: TypeAlias = Callable[[Floats], Cuts]


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


def bin_tables(true: pa.Table, synthetic: pa.Table, *, num_bins: int = NUM_BINS) -> BinnedPair:
    """Numbers and times in `num_bins` bins of equal width over the true range, everything else by value.

    Null is a bin of its own. A synthetic number outside the true range falls into the nearest bin.
    """
    return _bin_tables(true, synthetic, lambda known: _equal_width(known, num_bins))


def bin_tables_by_mass(true: pa.Table, synthetic: pa.Table, *, num_bins: int = NUM_MASS_BINS) -> BinnedPair:
    """Numbers and times in `num_bins` bins that hold equally many true rows, everything else by value.

    Bins of equal width put nearly all rows of a skewed column into one or two bins, and cannot see what is lost inside
    them; these can. The smallest value is a bin of its own, because skewed columns often begin with a spike. Where one
    value holds more rows than a bin should, there are fewer bins. Null is a bin of its own. A synthetic number outside
    the true range falls into the nearest bin.

    >>> skewed = pa.table({"pay": [0, 0, 0, 1, 2, 3, 4, 1000]})
    >>> bin_tables_by_mass(skewed, skewed, num_bins=2).true["pay"].tolist()
    [0, 0, 0, 1, 2, 2, 2, 2]
    >>> bin_tables(skewed, skewed, num_bins=2).true["pay"].tolist()
    [0, 0, 0, 0, 0, 0, 0, 1]
    """
    return _bin_tables(true, synthetic, lambda known: _equal_mass(known, num_bins))


def _bin_tables(true: pa.Table, synthetic: pa.Table, cutter: Cutter) -> BinnedPair:
    require_columns(true.column_names, synthetic.column_names)
    left, right, sizes = {}, {}, {}
    for name in true.column_names:
        left[name], right[name], sizes[name] = _bin_columns(true.column(name), synthetic.column(name), cutter)
    return BinnedPair(true=left, synthetic=right, sizes=sizes)


def _equal_width(known: Floats, num_bins: int) -> Cuts:
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    edges = np.linspace(low, high, num_bins + 1)[1:-1] if high > low else np.empty(0)
    return Cuts(edges=edges, edge_goes="up")


def _equal_mass(known: Floats, num_bins: int) -> Cuts:
    """Cut at the smallest value and at the quantiles up to the largest value, which ends the last bin."""
    quantiles = np.quantile(known, np.arange(num_bins + 1) / num_bins) if len(known) else np.empty(0)
    return Cuts(edges=np.unique(quantiles)[:-1], edge_goes="down")


def marginal_distances(
    true: pa.Table, synthetic: pa.Table, *, order: int, names: Sequence[str] | None = None
) -> Distances:
    """The total variation distance (half the L1 distance) of every `order`-way marginal.

    >>> a, b = pa.table({"x": ["u", "u", "v", "v"]}), pa.table({"x": ["u", "v", "v", "v"]})
    >>> marginal_distances(a, b, order=1).mean
    0.25
    """
    pair = bin_tables(true, synthetic)
    return distances_of(pair, order=order, names=names)


def distances_of(pair: BinnedPair, *, order: int, names: Sequence[str] | None = None) -> Distances:
    """As `marginal_distances`, for tables that are binned already."""
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


def _bin_columns(true: pa.ChunkedArray, synthetic: pa.ChunkedArray, cutter: Cutter) -> tuple[Bins, Bins, int]:
    if _is_numeric(true.type) and (_is_numeric(synthetic.type) or synthetic.null_count == len(synthetic)):
        return _bin_numbers(_numbers(true), _numbers(synthetic), cutter)
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


def _numbers(column: pa.ChunkedArray) -> Floats:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64())
    floats = column.cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(floats, float("nan")))


def _bin_numbers(true: Floats, synthetic: Floats, cutter: Cutter) -> tuple[Bins, Bins, int]:
    cuts = cutter(true[np.isfinite(true)])
    return cuts.place(true), cuts.place(synthetic), len(cuts.edges) + 2
