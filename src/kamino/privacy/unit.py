"""Whose privacy is promised: a row, or all rows that share a value of one column, cut to a number of rows.

>>> PrivacyUnit().max_rows
1
>>> PrivacyUnit(column="customer_id", max_rows=3).describe()
"all rows with one value of 'customer_id', at most 3 of them kept"
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.schema.coding.value_hashes import hash_values, mix

if TYPE_CHECKING:
    import pyarrow as pa

    from kamino.privacy.private import RemoteParts
    from kamino.schema.table_parts import TableParts

# Rows that are hashed and not sorted yet.
_WAITING = 1 << 20
# Rows that are sorted in one pass: some 40 bytes each.
_MOST_AT_ONCE = 1 << 24


@dataclass(frozen=True, kw_only=True)
class PrivacyUnit:
    """What one neighbour has and the other has not. Without a column it is one row.

    With a column, all rows with one value of it are one unit (null is a value as any other), and at most
    `max_rows` of them are kept. Every sensitivity grows with `max_rows`.

    With a family, it is one row of that table with everything that hangs on it, of which so many samples are counted.
    """

    column: str | None = None
    max_rows: int = 1
    family: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int) or self.max_rows < 1:
            raise PrivacyError(f"max_rows is {self.max_rows!r}; expected a whole number, 1 or larger.")
        if self.family is not None and self.column is not None:
            raise PrivacyError("a privacy unit is a family or the rows of one value of a column; found both.")
        if self.column is None and self.family is None and self.max_rows != 1:
            raise PrivacyError(
                f"max_rows is {self.max_rows} but no unit column is given; name the column that says whose a row is, "
                "for example unit='customer_id'."
            )

    def describe(self) -> str:
        """Say in one line what the unit is."""
        if self.family is not None:
            return f"one row of '{self.family}' with all rows that hang on it"
        if self.column is None:
            return "one row"
        return f"all rows with one value of '{self.column}', at most {self.max_rows} of them kept"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RowHashes:
    """What tells units apart (128 bits), and what puts the rows of a unit in a random order (64 bits). Private."""

    units: NDArray[np.uint64]
    rows: NDArray[np.uint64]


def hash_rows(table: pa.Table, column: str, coins: bytes) -> RowHashes:
    """Hash the unit and the whole content of each row, keyed by `coins`.

    Numbers, dates and times of one unit have one hash and others have others; texts differ but for a chance of 2^-128.

    Guarantees:
        Nothing that a column holds raises.  [test_a_unit_at_the_end_of_the_calendar]
        0.0 and -0.0 are one unit.  [test_two_zeros_are_one_unit]
        A hash depends on the row alone, not on others or on its place.  [test_choice_does_not_depend_on_row_order]
    """
    units = hash_values(table.column(column), hashlib.blake2b(b"unit", key=coins).digest())
    rows = np.zeros(table.num_rows, dtype=np.uint64)
    for name in sorted(table.column_names):
        key = hashlib.blake2b(b"row " + name.encode(), key=coins).digest()
        rows = mix(rows ^ hash_values(table.column(name), key)[:, 0])
    return RowHashes(units=units, rows=rows)


def choose_rows(parts: Iterable[RowHashes], max_rows: int) -> NDArray[np.int64]:
    """Return the places of the kept rows, ascending: at most `max_rows` for each unit, those with the lowest hashes.

    A unit that has more loses some at random. Which ones depends on the coins and on the unit's own rows alone, so
    another unit's coming or going changes nothing here, and neither does the order of the rows, but for rows that are
    equal in all columns.

    Guarantees:
        No unit keeps more than `max_rows`. [test_no_unit_keeps_more_than_its_rows]
        Zeros of both signs are one unit. [test_zeros_of_both_signs_are_one_unit]
        The choice in a unit does not depend on others. [test_choice_ignores_other_units]
        How rows are cut into parts does not matter. [test_choice_does_not_depend_on_parts]
    """
    units, rows = np.zeros((0, 2), dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    places = np.zeros(0, dtype=np.int64)
    seen = 0
    waiting: list[tuple[NDArray[Any], ...]] = []
    for part in parts:
        waiting.append((part.units, part.rows, seen + np.arange(len(part.rows), dtype=np.int64)))
        seen += len(part.rows)
        # Each row is sorted a few times at most: what waits is half of what is kept, or more.
        if sum(len(each[1]) for each in waiting) > max(_WAITING, len(rows) // 2):
            units, rows, places = _lowest([(units, rows, places), *waiting], max_rows)
            waiting = []
    return np.sort(_lowest([(units, rows, places), *waiting], max_rows)[2])


def select_parts(table: TableParts, column: str, max_rows: int, coins: bytes) -> SelectedParts:
    """Choose the rows of a table that is read in parts, in one pass or, if it is long, a pass for some of the units.

    Guarantees:
        The rows are those that are chosen of the table in memory.  [test_a_streamed_unit_keeps_the_same_rows]
    """
    num_rows = sum(part.num_rows for part in table.parts([column]))
    passes = -(-num_rows // _MOST_AT_ONCE) or 1
    kept = np.zeros(num_rows, dtype=np.bool_)
    for turn in range(passes):
        mine: list[NDArray[np.int64]] = []
        kept[_concatenated(mine, choose_rows(_of_turn(table, column, coins, turn, passes, mine), max_rows))] = True
    return SelectedParts(table=table, kept=kept)


def select_remote(table: RemoteParts, column: str, max_rows: int, coins: bytes) -> TableParts:
    """Choose the rows of a table on other machines, where they are.

    Rows of a unit with the same hash are equal in all columns, so that it makes no difference which of them are kept.

    Guarantees:
        The rows are those that are chosen of the table in memory.  [test_engines_keep_the_same_rows_of_a_unit]
    """

    def hashes(part: pa.Table) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        found = hash_rows(part, column, coins)
        return found.units, found.rows

    return table.keep_lowest(hashes, max_rows)


def _of_turn(
    table: TableParts, column: str, coins: bytes, turn: int, passes: int, places: list[NDArray[np.int64]]
) -> Iterator[RowHashes]:
    """The hashes of the rows of some units; their places in the table are appended to `places`."""
    seen = 0
    for part in table.parts():
        hashes = hash_rows(part, column, coins)
        own = np.flatnonzero(hashes.units[:, 0] % np.uint64(passes) == turn)
        places.append(seen + own)
        seen += part.num_rows
        yield RowHashes(units=hashes.units[own], rows=hashes.rows[own])


def _concatenated(places: list[NDArray[np.int64]], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(places)[chosen]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SelectedParts:
    """Some rows of a table that is read in parts. Private."""

    table: TableParts
    kept: NDArray[np.bool_]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.table.schema

    @property
    def is_ordered(self) -> bool:
        """As the table, which must be: rows are selected by their places."""
        return self.table.is_ordered

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns, without the rows that are not selected."""
        import pyarrow as pa

        seen = 0
        for part in self.table.parts(names):
            yield part.filter(pa.array(self.kept[seen : seen + part.num_rows]))
            seen += part.num_rows


def _lowest(parts: list[tuple[NDArray[Any], ...]], max_rows: int) -> tuple[NDArray[Any], ...]:
    """The rows of each unit with the lowest hashes; of equal ones, the first."""
    units, rows, places = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.lexsort((places, rows, units[:, 1], units[:, 0]))
    units, rows, places = units[order], rows[order], places[order]
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = np.any(units[1:] != units[:-1], axis=1)
    start = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    low = np.arange(len(rows)) - start < max_rows
    return units[low], rows[low], places[low]
