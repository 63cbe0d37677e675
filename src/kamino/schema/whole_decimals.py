"""Whole numbers beyond 64 bits, as columns of decimals and integers hold them: words of 64 bits, the lowest first.

A value of a grid is its start, which may be any integer, plus an offset of 64 bits. Both are added word by word, so
that no number passes through a double.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.uint64]

_MASK = 2**64 - 1


def sums_in_words(start: int, offsets: Offsets, num_words: int) -> npt.NDArray[np.uint64]:
    """Return `start + offset` for each offset as rows of words, in two's complement.

    Guarantees:
        It is the sum.  [test_sums_in_words_are_sums]

    >>> sums_in_words(-1, np.array([0, 3], np.uint64), 2).tolist()
    [[18446744073709551615, 18446744073709551615], [2, 0]]
    """
    words = [(start >> (64 * place)) & _MASK for place in range(num_words)]
    found = np.empty((len(offsets), num_words), np.uint64)
    carry = offsets
    for place, word in enumerate(words):
        total = carry + np.uint64(word)  # a sum that is too large goes round
        found[:, place] = total
        carry = (total < carry).astype(np.uint64)
    return found


def integers_at(start: int, offsets: Offsets) -> npt.NDArray[np.int64] | npt.NDArray[np.uint64]:
    """Return `start + offset` for each offset: as int64 where start is negative or all sums are, else as uint64."""
    sums = offsets + np.uint64(start & _MASK)
    return sums.view(np.int64) if start < 0 else sums


def decimals_at(start: int, offsets: Offsets, scale: int, null: npt.NDArray[np.bool_], bits: int) -> pa.Array:
    """Return `(start + offset) * 10^-scale` as decimals of 128 or 256 bits, null where `null`."""
    words = sums_in_words(start, offsets, bits // 64)
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    kind = pa.decimal128(38, scale) if bits == 128 else pa.decimal256(76, scale)
    return pa.Array.from_buffers(kind, len(offsets), [validity, pa.py_buffer(words.tobytes())])


def offsets_from(start: int, numbers: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> Offsets:
    """Return how far each number lies above `start`, which none is below, and less than 2^64."""
    return numbers.view(np.uint64) - np.uint64(start & _MASK)
