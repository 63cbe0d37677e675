"""Dates that are coded by their distance from another date: an end by how long after its start it comes.

Two dates of one event lie close together and far from their neighbours in the table. Bins of either are wider than what
lies between them, so that a model of both loses it; the distance is a number of its own, with a histogram of its own.

The distance of an attribute from its base is counted in codes of the attribute. A row whose base is null is coded as
if nothing were known of it.

>>> from kamino.schema import Date
>>> start, end = (GridCodec(name, Date(min="2024-01-01", max="2024-12-31")) for name in ("start", "end"))
>>> stay = Distance(end, start, Difference(base="start", least=0))
>>> distances = stay.encode(np.array([12, 40]), np.array([10, 40]))
>>> distances.tolist(), stay.decode(distances, np.array([10, 40])).tolist()
([2, 0], [12, 40])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kamino.schema.attributes import Date, Datetime, Integer
from kamino.schema.coding.attribute_codec import AttributeCodec, Codes
from kamino.schema.coding.grid_codec import GridCodec
from kamino.schema.grid import MICROSECONDS_PER_DAY


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An attribute's base, and how it may lie to it.

    least: 0 if it is never before its base, 1 if always after it, None if it may lie on either side.
    """

    base: str
    least: int | None = None


def is_date(codec: AttributeCodec) -> bool:
    """Whether an attribute is a date or a datetime: distances between any two of these can be told."""
    return isinstance(codec, GridCodec) and isinstance(codec.attribute, Date | Datetime)


class Distance:
    """Codes of one attribute as distances from its base, and back.

    Guarantees:
        Codes of rows that keep `least` come back, as far as the domain of distances reaches.
        [test_distances_come_back]
        What comes back lies in the domain and keeps `least`, or is null.  [test_distances_keep_the_order]
    """

    def __init__(self, own: GridCodec, base: GridCodec, difference: Difference) -> None:
        self._own, self._base, self._difference = own, base, difference
        first, last = (int(self._places(np.array([code]))[0]) for code in (0, base.num_values - 1))
        self.first_place, self.last_place = first, last
        self._middle = own.num_values // 2 if difference.least is None else 0
        reach = own.num_values if difference.least is None else own.num_values + max(0, -first)
        distances = Integer(min=0, max=reach - 1, nullable=own.null_code is not None)
        self.codec = GridCodec(own.name, distances)

    def encode(self, own: Codes, base: Codes) -> Codes:
        """Return the codes of distances, those out of reach at the ends."""
        away = np.clip(own - self._places_or_none(base) + self._middle, 0, self.codec.num_values - 1)
        null, nothing = self._own.null_code, self.codec.null_code
        return away if null is None or nothing is None else np.where(own == null, nothing, away)

    def decode(self, distances: Codes, base: Codes) -> Codes:
        """Return the codes of the attribute; those that would leave its domain are folded back into it."""
        place, lowest = self._places_or_none(base), self.lowest(base)
        highest = self._own.num_values - 1
        found = _fold(place + distances - self._middle, np.minimum(lowest, highest), highest)
        null = self._own.null_code
        if null is None:
            return found
        return np.where((distances == self.codec.null_code) | (lowest > highest), null, found)

    def lowest(self, base: Codes) -> Codes:
        """Return the lowest code that the order to the base permits; beyond the domain where it permits none."""
        place = self._places_or_none(base)
        return np.zeros_like(place) if self._difference.least is None else np.maximum(place, 0)

    def is_near(self, own: Codes, base: Codes, within: int) -> NDArray[np.bool_]:
        """Whether attribute and base are at most `within` codes of the attribute apart; False where one is null."""
        near: NDArray[np.bool_] = np.abs(own - self._places(base)) <= within
        return near & self.is_known(own, base)

    def is_known(self, own: Codes, base: Codes) -> NDArray[np.bool_]:
        """Whether neither is null."""
        known = np.ones(len(own), dtype=np.bool_)
        for codec, codes in ((self._own, own), (self._base, base)):
            if codec.null_code is not None:
                known &= codes != codec.null_code
        return known

    def _places(self, base: Codes) -> Codes:
        """Return the first code of the attribute that is not before the base (with `least` 1: that is after it)."""
        unit, own_unit = _microseconds(self._base), _microseconds(self._own)
        ticks = self._base.grid.ticks(base) * unit - self._own.grid.start * own_unit
        step = self._own.grid.step * own_unit
        return ticks // step + 1 if self._difference.least == 1 else -(-ticks // step)

    def _places_or_none(self, base: Codes) -> Codes:
        places = self._places(base)
        # As if the base stood where distances are the attribute's own codes.
        return places if self._base.null_code is None else np.where(base == self._base.null_code, self._middle, places)


def _microseconds(codec: GridCodec) -> int:
    """How many microseconds a tick of a date or datetime has."""
    return MICROSECONDS_PER_DAY if isinstance(codec.attribute, Date) else 1


def _fold(codes: Codes, lowest: Codes, highest: int) -> Codes:
    """Bring codes beyond an end back inside, as far from the end as they were beyond it, and round again."""
    room = highest - lowest + 1
    above = highest - (codes - highest - 1) % room
    below = lowest + (lowest - codes - 1) % room
    return np.where(codes > highest, above, np.where(codes < lowest, below, codes))
