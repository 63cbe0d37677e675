"""Whose privacy is promised: a row, or all rows that share a value of one column, cut to a number of rows.

>>> PrivacyUnit().max_rows
1
>>> PrivacyUnit(column="customer_id", max_rows=3).describe()
"all rows with one value of 'customer_id', at most 3 of them kept"
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class PrivacyUnit:
    """What one neighbour has and the other has not. Without a column it is one row.

    With a column, all rows with one value of it are one unit (null is a value as any other), and at most
    `max_rows` of them are kept. Every sensitivity grows with `max_rows`.
    """

    column: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int) or self.max_rows < 1:
            raise PrivacyError(f"max_rows is {self.max_rows!r}; expected a whole number, 1 or larger.")
        if self.column is None and self.max_rows != 1:
            raise PrivacyError(
                f"max_rows is {self.max_rows} but no unit column is given; name the column that says whose a row is, "
                "for example unit='customer_id'."
            )

    def describe(self) -> str:
        """Say in one line what the unit is."""
        if self.column is None:
            return "one row"
        return f"all rows with one value of '{self.column}', at most {self.max_rows} of them kept"


def unit_values(column: pa.ChunkedArray) -> list[object]:
    """Return what tells the units of a column apart: times by their ticks, all else by the values.

    Python has no time zone's clock at both ends of the calendar and no nanoseconds, so a time may have no value there.

    Guarantees:
        Nothing that a column holds raises.  [test_a_unit_at_the_end_of_the_calendar]
        0.0 and -0.0 are one unit.  [test_two_zeros_are_one_unit]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    elif pa.types.is_floating(column.type):
        column = pc.add(column.cast(pa.float64()), 0.0)
    values: list[object] = column.to_pylist()
    return values


def choose_rows(values: Sequence[object], max_rows: int, coins: bytes) -> NDArray[np.int64]:
    """Return the places of the kept rows, ascending: at most `max_rows` for each distinct value.

    A unit that has more loses some at random. Which ones depends on `coins`, on the unit's value and on the
    number of its rows alone, so another unit's coming or going changes nothing here.

    Guarantees:
        No unit keeps more than `max_rows`. [test_no_unit_keeps_more_than_its_rows]
        Zeros of both signs are one unit. [test_zeros_of_both_signs_are_one_unit]
        The choice in a unit does not depend on others. [test_choice_ignores_other_units]
    """
    # Told apart by their text, not by equality: NaN is not equal to itself, and its rows would escape the
    # limit.
    places: dict[str, list[int]] = {}
    for place, value in enumerate(values):
        # -0.0 equals 0.0, and adding 0.0 makes it so in text.
        told = value + 0.0 if isinstance(value, float) else value
        places.setdefault(f"{type(told).__name__}:{told!r}", []).append(place)
    kept: list[int] = []
    for name, own in places.items():
        kept.extend(own if len(own) <= max_rows else _some_of(own, name, max_rows, coins))
    return np.sort(np.asarray(kept, dtype=np.int64))


def _some_of(own: list[int], name: str, max_rows: int, coins: bytes) -> list[int]:
    seed = int.from_bytes(hashlib.blake2b(name.encode(), key=coins, digest_size=32).digest())
    picks = np.random.default_rng(seed).choice(len(own), size=max_rows, replace=False)
    return [own[pick] for pick in sorted(picks.tolist())]
