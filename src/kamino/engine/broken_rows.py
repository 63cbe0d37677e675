"""How many rows break a candidate constraint: statistics that no single row moves by more than 1.

- The strays of X -> b: rows whose b is not the most frequent one among rows with their X. A new row adds one row, and
  one or none to the most frequent; a removed one likewise, so a replaced one moves it by -1, 0 or 1.
- The repeats of X: rows but for the first of each value. A new row adds one or none.
- The rows out of order, also within equal X: the fewest that have to go so that the order holds. Whatever may stay may
  stay beside a new row or without a removed one, but for that row: either adds one or none to those that have to go, or
  takes one or none away, so that a replaced row moves it by -1, 0 or 1.
- Rows with a > b. A row adds one or none.
- Pairs of different rows, i and j, with a of i above b of j, divided by 2 (T - 1) for the larger T of a public number
  and the number n of rows. A new row makes at most 2 n such pairs: that is at most 1 while n < T, and beyond it the
  divisor grows as well. A row in its place moves at most 2 (n - 1) of them.

Rows with a null in a named column break nothing and are left out. Computed from private rows: for the gate only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.schema.coding.joint_codes import MOST_NUMBERS, flatten_codes, number_combinations, number_values

Codes = NDArray[np.int64]


def codes_of(column: pa.ChunkedArray) -> Codes:
    """Number the values of a column, -1 for null. Only which rows are alike is used.

    Alike is what constraints call equal: 0.0 and -0.0 are one value, and NaN is none. A group of rows that violate
    together would otherwise be counted as two, and its violations weighed by the sizes of its parts.

    Guarantees:
        Zeros of both signs are one value, and NaN is null.  [test_zeros_of_both_signs_are_one_value_and_nan_is_none]
    """
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if pa.types.is_floating(plain.type):
        zero, null = pa.scalar(0.0, plain.type), pa.scalar(None, plain.type)
        plain = pc.if_else(pc.is_nan(plain), null, pc.if_else(pc.equal(plain, zero), zero, plain))
    indices = plain.combine_chunks().dictionary_encode().indices
    return np.asarray(indices.fill_null(-1), dtype=np.int64)


def count_repeats(*columns: Codes) -> float:
    """Count rows but for the first of each combination of values.

    Guarantees:
        Equal to a plain count, whatever the codes.  [test_broken_rows_are_counted_at_every_size]
    """
    there = np.logical_and.reduce([codes >= 0 for codes in columns])
    joined, _ = _numbered([codes[there] for codes in columns])
    return float(len(joined) - len(np.unique(joined)))


# Combinations of a dependency's sides are counted in a table of at most so many cells a row, else by sorting.
_CELLS_A_ROW = 4


def count_strays(codes: Mapping[str, Codes], left: tuple[str, ...], right: str) -> float:
    """Count rows whose right side is not the most frequent one for their left side.

    Guarantees:
        Equal to a plain count, whatever the codes.  [test_broken_rows_are_counted_at_every_size]
    """
    there = np.logical_and.reduce([codes[name] >= 0 for name in (*left, right)])
    target = codes[right][there]
    if len(target) == 0:
        return 0.0
    group, size = _numbered([codes[name][there] for name in left] or [np.zeros_like(target)])
    width = int(target.max()) + 1
    if size * width > MOST_NUMBERS:
        (group, size), (target, width) = number_values(group), number_values(target)
    joined = flatten_codes([group, target], [size, width])
    if size * width <= _CELLS_A_ROW * len(target):
        return float(len(target) - np.bincount(joined, minlength=size * width).reshape(size, width).max(axis=1).sum())
    values, counts = np.unique(joined, return_counts=True)
    begins = np.flatnonzero(np.diff(values // width, prepend=-1))
    return float(len(target) - np.maximum.reduceat(counts, begins).sum())


class StrayCounts:
    """How many rows stray from each dependency, counted when first asked for; holds private rows, for the gate.

    Guarantees:
        Equal to counting anew.  [test_counts_that_are_kept_are_those_of_counting]
    """

    def __init__(self, codes: Mapping[str, Codes]) -> None:
        self.codes = codes
        self._found: dict[tuple[tuple[str, ...], str], float] = {}

    def __repr__(self) -> str:
        return f"StrayCounts({len(self.codes)} columns)"

    def of(self, left: tuple[str, ...], right: str) -> float:
        """Count rows whose right side is not the most frequent one for their left side."""
        if (left, right) not in self._found:
            self._found[left, right] = count_strays(self.codes, left, right)
        return self._found[left, right]


def _numbered(columns: Sequence[Codes]) -> tuple[Codes, int]:
    return number_combinations(columns, [int(codes.max(initial=0)) + 1 for codes in columns])


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The rank of each row's value among the `size` different ones of a column, the least first; -1 for none."""

    codes: Codes
    size: int

    @staticmethod
    def of(column: pa.ChunkedArray) -> Ranks:
        """Rank the values of a column of numbers or times."""
        values, there = _numbers(column)
        codes = np.full(len(values), -1, dtype=np.int64)
        known, codes[there] = np.unique(values[there], return_inverse=True)
        return Ranks(codes=codes, size=len(known))

    @property
    def reversed(self) -> Ranks:
        """The same with the largest first."""
        return Ranks(codes=np.where(self.codes < 0, self.codes, self.size - 1 - self.codes), size=self.size)


def count_out_of_order(one: Ranks, other: Ranks, *, falls: bool, groups: Codes | None = None) -> float:
    """Count the fewest rows without which the second column never falls (rises, if `falls`) as the first one rises.

    Only rows of equal `groups` are compared, and rows alike in either column are in order. Sorted by one column and
    then by the other, the rows that stay are a longest sequence whose other column never falls. It does not matter by
    which of the two they are sorted: by that of fewer values, there are fewer and longer runs.

    Guarantees:
        Equal to the fewest of all subsets of rows that leave nothing broken.  [test_rows_out_of_order_are_the_fewest]
        A row moves it by at most 1, and so does another in its place.  [test_no_row_moves_a_statistic_further]
    """
    first, second = sorted((one, other.reversed if falls else other), key=lambda ranks: ranks.size)
    kept = (first.codes >= 0) & (second.codes >= 0)
    group, num_groups = np.zeros(len(kept), dtype=np.int64), 1
    if groups is not None:
        kept &= groups >= 0
        group, num_groups = groups, int(groups.max(initial=0)) + 1
    if num_groups * first.size * second.size > MOST_NUMBERS:
        order = np.lexsort((second.codes[kept], first.codes[kept], group[kept]))
        return _count_beyond_longest((number_values(group[kept])[0] * second.size + second.codes[kept])[order])
    numbers = flatten_codes([group[kept], first.codes[kept], second.codes[kept]], [num_groups, first.size, second.size])
    numbers.sort()
    # Each group lies above those before it, so that what stays of all of them is one sequence.
    return _count_beyond_longest(
        numbers // max(first.size * second.size, 1) * second.size + numbers % max(second.size, 1)
    )


# Rows of a run, on average, from which on runs are taken at once. Any number gives the same count.
_LONG_RUN = 32


def _count_beyond_longest(heights: Codes) -> float:
    """Count the numbers that have to go so that the rest never falls: all but a longest such sequence.

    `ends` holds, for each length, the least number that such a sequence of that length ends with. A new number takes
    the place of the least end above it. The numbers of a run that never falls do so one after the other, each at least
    one place further than the one before: at once, those are running maxima.

    Guarantees:
        Runs taken at once count as one number after the other does.  [test_runs_at_once_count_as_numbers_do]
    """
    if len(heights) == 0:
        return 0.0
    begins = np.flatnonzero(heights[1:] < heights[:-1]) + 1
    if len(heights) < _LONG_RUN * (len(begins) + 1):
        return float(len(heights) - len(_ends_one_by_one(heights.tolist())))
    ends, length = np.empty(len(heights), dtype=np.int64), 0
    for begin, end in zip([0, *begins.tolist()], [*begins.tolist(), len(heights)], strict=True):
        steps = np.arange(end - begin)
        places = np.searchsorted(ends[:length], heights[begin:end], side="right") - steps
        places = np.maximum.accumulate(places) + steps
        ends[places] = heights[begin:end]
        length = max(length, int(places[-1]) + 1)
    return float(len(heights) - length)


def _ends_one_by_one(heights: Sequence[int]) -> list[int]:
    ends: list[int] = []
    for each in heights:
        place = bisect_right(ends, each)
        if place == len(ends):
            ends.append(each)
        else:
            ends[place] = each
    return ends


def count_greater(table: pa.Table, one: str, other: str) -> float:
    """Count rows whose value of the first column is above that of the second.

    Guarantees:
        A row moves it by at most 1.  [test_no_row_moves_a_comparison_further]
    """
    a, b = _comparable(table, one, other)
    return float(np.count_nonzero(a > b))


def chance_of_greater(table: pa.Table, one: str, other: str, top: int) -> float:
    """Return how many pairs of different rows have the first column of one above the second of the other, by 2 (T - 1).

    Guarantees:
        A row moves it by at most 1.  [test_no_row_moves_a_comparison_further]
    """
    a, b = _comparable(table, one, other)
    pairs = int(np.searchsorted(np.sort(b), a, side="left").sum()) - int(np.count_nonzero(a > b))
    return pairs / (2.0 * (max(len(a), top) - 1))


def _comparable(table: pa.Table, one: str, other: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values of two columns, of rows that have both, as numbers."""
    (a, there), (b, also) = _numbers(table.column(one)), _numbers(table.column(other))
    return a[there & also], b[there & also]


def _numbers(column: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a column as numbers, and which rows have one: neither null nor NaN."""
    there = np.asarray(column.is_valid())
    kind = pa.int32() if pa.types.is_date32(column.type) else pa.int64() if pa.types.is_temporal(column.type) else None
    numbers = column.cast(kind) if kind is not None else column.cast(pa.float64(), safe=False)
    values = np.asarray(pc.fill_null(numbers, 0))
    return values, there & ~np.isnan(values)
