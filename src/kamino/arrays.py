"""The array types that all stages share, and how rows are put in order."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Numbers = TypeVar("Numbers", IntArray, FloatArray)

# NumPy sorts 16-bit numbers by counting, several times as fast as wider ones.
_DIGIT = 16
_MOST_DIGITS = 3
_FEW = 4096


def distinct(*numbers: Numbers) -> Numbers:
    """Return the different ones among some numbers, sorted.

    By sorting: the hashes of `np.unique` clash where numbers lie evenly spaced, and a million of them take seconds. It
    also imports masked arrays, to see that there are none.

    Guarantees:
        Equal to `np.unique` of all of them.  [test_distinct_numbers_are_those_of_numpy]

    >>> distinct(np.array([3, 1, 3]), np.array([2])).tolist()
    [1, 2, 3]
    """
    ordered = np.sort(np.concatenate(numbers))
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def stable_order(*columns: IntArray) -> IntArray:
    """Return the rows in the order of the first column, ties by the next ones; equal rows stay as they stand.

    Guarantees:
        Equal to `np.lexsort` of the columns in reverse.  [test_stable_order_is_that_of_numpy]

    >>> stable_order(np.array([2, 1, 2, 1]), np.array([0, 5, 0, 4])).tolist()
    [3, 1, 0, 2]
    """
    spans = [int(column.max()) - int(column.min()) if len(column) else 0 for column in columns]
    if len(columns[0]) < _FEW or max(spans) >> (_DIGIT * _MOST_DIGITS):
        return np.lexsort(columns[::-1])
    order: IntArray | None = None
    for column, span in zip(reversed(columns), reversed(spans), strict=True):
        # The difference of two 64-bit numbers that are this near fits, however large they are.
        offset = column - column.min()
        for shift in range(0, max(span.bit_length(), 1), _DIGIT):
            digit = (offset >> shift).astype(np.uint16)
            if order is None:
                order = np.argsort(digit, kind="stable")
            elif span:
                order = order[np.argsort(digit[order], kind="stable")]
    assert order is not None, "there is a column to sort by"
    return order
