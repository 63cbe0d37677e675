"""Columns nearly all of whose values are one privacy unit's own, such as names, addresses, telephone numbers, comments.

This looks at a private table without noise, and what it finds shows: in a refusal, before anything is released. It may
be asked only of columns whose values the user called public (`--trust-domain`). The values of such a column are about
to be written into a schema, a model and a table as they are; that nearly each of them is one unit's own is one yes or
no more about the column, and is called public with them. Of any other column nothing may be asked here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.arrays import IntArray
from kamino.privacy.private import PrivateTable, open_parts
from kamino.schema.coding.value_hashes import hash_values

# A column is one of single units where more than these parts of its values belong to one unit each, or to at most two,
# as the telephone numbers of couples do; or where more than this part of the units that have a value have one of their
# own, so that the column tells most of them apart. In texts with a long tail, such as places, half of the values may
# occur once, and yet most rows have a common one. Fewer values than this say nothing.
_ONE, _TWO, _MOST = 0.9, 0.95, 0.5
FEW_VALUES = 10
# More units of a value than this need not be told apart.
_ENOUGH = 3
# The key of hashes that hide nothing: they only tell values apart.
_KEY = bytes(range(64))
_Words = NDArray[np.uint64]


def columns_of_single_units(private: PrivateTable, names: Iterable[str], unit: str | None) -> tuple[str, ...]:
    """The columns among `names`, called public, that tell most units apart or hold hardly anything but own values.

    A unit is what has one value of the column `unit`, or else a row. Nulls are no values; in the column of units they
    are one unit.

    Guarantees:
        It says what counting by hand says, however the rows are cut into parts.  [test_values_of_single_units]
        Nothing is asked of a column that was not called public.  [test_only_columns_called_public_are_looked_at]
    """
    return tuple(name for name in names if _is_of_single_units(*count_units(private, name, unit)))


def _is_of_single_units(units: IntArray, whole: int) -> bool:
    """Whether values of which each has so many `units`, of the `whole` number that have one, tell units apart."""
    count, own = len(units), np.count_nonzero(units == 1)
    if count < FEW_VALUES:
        return False
    return bool(own > _ONE * count or np.count_nonzero(units <= 2) > _TWO * count or own > _MOST * whole)


def count_units(private: PrivateTable, name: str, unit: str | None) -> tuple[IntArray, int]:
    """How many units have each value of a column, in no order: 1, 2, or 3 for more; and how many have any. Private."""
    if unit is None or unit == name:
        rows = _rows_of_values(private, name)
        return (np.minimum(rows, _ENOUGH), int(rows.sum())) if unit is None else (np.ones_like(rows), len(rows))
    seen, whole = np.zeros((0, 4), dtype=np.uint64), np.zeros((0, 2), dtype=np.uint64)
    for part in open_parts(private, (name, unit)):
        there = np.asarray(part.column(name).is_valid(), dtype=np.bool_)
        words = [hash_values(part.column(each), _KEY)[there] for each in (name, unit)]
        seen = _some_of_each(np.concatenate([seen, np.concatenate(words, axis=1)]))
        whole = _once(np.concatenate([whole, words[1]]))
    return _added_up(seen[:, :2], np.ones(len(seen), dtype=np.int64))[1], len(whole)


def _rows_of_values(private: PrivateTable, name: str) -> IntArray:
    """How many rows have each value of a column."""
    seen, rows = np.zeros((0, 2), dtype=np.uint64), np.zeros(0, dtype=np.int64)
    for part in open_parts(private, (name,)):
        column = part.column(name)
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        found = pc.value_counts(plain.drop_null())
        words = hash_values(pa.chunked_array([found.field("values")]), _KEY)
        counts = np.asarray(found.field("counts"), dtype=np.int64)
        seen, rows = _added_up(np.concatenate([seen, words]), np.concatenate([rows, counts]))
    return rows


def _once(words: _Words) -> _Words:
    return _added_up(words, np.ones(len(words), dtype=np.int64))[0]


def _some_of_each(pairs: _Words) -> _Words:
    """Of the units of each value, as many as need be told apart, each once."""
    pairs, _ = _added_up(pairs, np.ones(len(pairs), dtype=np.int64))
    first = _starts(pairs[:, :2])
    start = np.maximum.accumulate(np.where(first, np.arange(len(pairs)), 0)) if len(pairs) else np.zeros(0, np.int64)
    return pairs[np.arange(len(pairs)) - start < _ENOUGH]


def _added_up(words: _Words, counts: IntArray) -> tuple[_Words, IntArray]:
    """Each row of words once, in an order by the first words, with its counts added up."""
    if len(counts) == 0:
        return words, counts
    order = np.lexsort(tuple(words.T[::-1]))
    words, counts = words[order], counts[order]
    first = np.flatnonzero(_starts(words))
    return words[first], np.add.reduceat(counts, first)


def _starts(words: _Words) -> NDArray[np.bool_]:
    """Which rows of words differ from the one before."""
    if len(words) == 0:
        return np.zeros(0, dtype=np.bool_)
    return np.append(True, np.any(words[1:] != words[:-1], axis=1))
