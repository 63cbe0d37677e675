"""Hashes of values: equal where the values are, whatever part of a table they are in."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# The key of hashes that hide nothing.
_PUBLIC = bytes(range(64))


def deal_out(table: pa.Table, turns: int) -> NDArray[np.int64]:
    """Deal rows out to so many turns: rows that are equal in all columns have the same turn in every table.

    Guarantees:
        Equal rows have one turn, zeros of both signs are equal.  [test_equal_rows_have_one_turn]
    """
    mixed = np.zeros(table.num_rows, dtype=np.uint64)
    for name in sorted(table.column_names):
        mixed = mix(mixed ^ hash_values(table.column(name), _PUBLIC)[:, 0])
    return (mixed % np.uint64(turns)).astype(np.int64)


def hash_values(column: pa.ChunkedArray, key: bytes) -> NDArray[np.uint64]:
    """Two words of 64 bits for each value: the first tells all numbers apart, both together all values."""
    null = np.frombuffer(hashlib.blake2b(b"null", key=key, digest_size=16).digest(), dtype=np.uint64)
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    numbers = _numbers(plain)
    if numbers is None:
        coded = plain.combine_chunks().dictionary_encode()
        texts = (str(value) for value in coded.dictionary.to_pylist())
        found = b"".join(hashlib.blake2b(text.encode(), key=key, digest_size=16).digest() for text in texts)
        words = np.frombuffer(found + null.tobytes(), dtype=np.uint64).reshape(-1, 2)
        return words[np.asarray(coded.indices.fill_null(len(coded.dictionary)), dtype=np.int64)]
    first, second = np.frombuffer(key, dtype=np.uint64)[:2]
    words = np.stack([mix(numbers ^ first), mix(numbers + second)], axis=1)
    words[np.asarray(plain.is_null(), dtype=np.bool_)] = null
    return words


def _numbers(column: pa.ChunkedArray) -> NDArray[np.uint64] | None:
    """The values of a column as whole numbers of 64 bits, one for each value; None where they are no such numbers."""
    kind = column.type
    if pa.types.is_floating(kind):
        # Adding 0.0 makes one zero of both; NaN has many forms, of which one is kept.
        floats = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0), dtype=np.float64) + 0.0
        return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not pa.types.is_integer(kind):
        return None
    return np.asarray(pc.fill_null(column, 0)).astype(np.uint64)


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each word, one to one (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
