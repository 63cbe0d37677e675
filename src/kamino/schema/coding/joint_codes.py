"""Combinations of codes as one number each, and even cuts of wide domains: whole-number arithmetic that never wraps.

A combination (a, b) of codes is `a * size_b + b`, which leaves 64 bits once the product of the sizes does: domains have
up to 2^62 codes. NumPy wraps then without a word, different combinations get one number, and which ones do can change
with a single row. Every part of Kamino that numbers combinations asks here:

- `flatten_codes` numbers all cells of a table, in C order. The sizes are public; if their product is too large, it
  refuses.
- `number_combinations` numbers the combinations that occur. It multiplies as long as that is exact, and renumbers
  before it would not be: it refuses nothing that has codes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kamino.errors import SchemaError

Codes: TypeAlias = npt.NDArray[np.int64]

MOST_NUMBERS = 2**63 - 1
"""So many numbers, from 0 on, fit a signed 64-bit integer."""


def flatten_codes(columns: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """Return the cell of each row in the table of all combinations, in C order.

    Guarantees:
        Equal to `np.ravel_multi_index`, or refused.  [test_cells_are_those_of_numpy]

    >>> flatten_codes([np.array([0, 1]), np.array([2, 0])], [2, 3]).tolist()
    [2, 3]
    """
    cells = math.prod(sizes)
    if cells > MOST_NUMBERS:
        raise SchemaError(
            f"a table over {len(sizes)} attributes has {cells} cells; at most 2^63 - 1 can be numbered. "
            "Ask for fewer attributes, or for bins."
        )
    flat = _checked(columns[0], sizes[0])
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        flat = flat * size + _checked(column, size)
    return flat


def number_combinations(columns: Sequence[Codes], sizes: Sequence[int] | None = None) -> tuple[Codes, int]:
    """Return a number for each row, equal exactly where all columns are, and one more than the largest possible.

    Numbers rise with the combinations, the first column being the most significant. They may leave gaps. With `sizes`,
    the codes of each column run from 0 to below its size; without, they are any whole numbers.

    Guarantees:
        Two rows compare as their combinations do, whatever the sizes.  [test_numbers_compare_as_combinations]

    >>> wide = np.array([0, 2**62 - 1, 2**62 - 1])
    >>> number_combinations([wide, wide, wide], [2**62] * 3)[0].tolist()
    [0, 3, 3]
    """
    parts = [number_values(column) for column in columns] if sizes is None else list(zip(columns, sizes, strict=True))
    numbers, size = _checked(*parts[0]), parts[0][1]
    for codes, width in parts[1:]:
        numbers, size = _pair(numbers, size, _checked(codes, width), width)
    return numbers, size


def number_values(values: Codes) -> tuple[Codes, int]:
    """Number the distinct values from 0 without gaps, in their order; return the numbers and how many there are.

    >>> number_values(np.array([70, -5, 70]))[0].tolist()
    [1, 0, 1]
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64), 0
    low, high = int(values.min()), int(values.max())
    if high - low > 8 * len(values) + 1024:
        distinct, inverse = np.unique(values, return_inverse=True)
        return inverse.astype(np.int64, copy=False), len(distinct)
    # Marking what occurs takes two passes; sorting takes many.
    seen = np.zeros(high - low + 1, dtype=np.int64)
    seen[values - low] = 1
    place = np.cumsum(seen) - 1
    numbers: Codes = place[values - low]
    return numbers, int(place[-1]) + 1


def distinct_values(values: Codes) -> tuple[Codes, Codes]:
    """Return the distinct values, ascending, and the place of each value among them.

    Guarantees:
        Equal to `np.unique`, which sorts.  [test_distinct_values_are_those_of_numpy]

    >>> [found.tolist() for found in distinct_values(np.array([70, -5, 70]))]
    [[-5, 70], [1, 0, 1]]
    """
    numbers, size = number_values(values)
    distinct = np.empty(size, dtype=np.int64)
    distinct[numbers] = values
    return distinct, numbers


def even_starts(size: int, parts: int) -> Codes:
    """Return where `parts` parts of about equal width begin in a domain of `size` codes: i * size // parts, exactly.

    >>> even_starts(10, 4).tolist()
    [0, 2, 5, 7]
    >>> int(even_starts(2**62, 128)[-1]) == 127 * 2**62 // 128
    True
    """
    place = np.arange(parts, dtype=np.int64)
    return place * (size // parts) + place * (size % parts) // parts


def _pair(first: Codes, size: int, second: Codes, width: int) -> tuple[Codes, int]:
    """Number pairs: by the product if it fits, else of values renumbered, else by sorting."""
    if size * width > MOST_NUMBERS:
        first, size = number_values(first)
    if size * width > MOST_NUMBERS:
        second, width = number_values(second)
    if size * width > MOST_NUMBERS:
        return _by_sorting(first, second)
    return first * width + second, size * width


def _by_sorting(first: Codes, second: Codes) -> tuple[Codes, int]:
    order = np.lexsort((second, first))
    new = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(new)])
    return numbers, int(numbers[order[-1]]) + 1


def _checked(codes: Codes, size: int) -> Codes:
    """Return the codes if they can be numbered: whole 64-bit numbers from 0 to below `size`."""
    if codes.dtype != np.int64:
        raise SchemaError(f"codes to be numbered are {codes.dtype}; expected int64, which holds every code exactly.")
    if len(codes) and not (codes.min() >= 0 and codes.max() < size):
        raise SchemaError(f"codes to be numbered leave their domain of {size} codes; encode the table with its schema.")
    return codes
