"""Conditions on dates that the model tells by their distance from another: met after drawing.

Rows are drawn without the condition. Those that meet it come first; in others the date becomes the nearest allowed one
that its order to its base permits. No constraint that rows are drawn for names such a date: nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import IntArray
from kamino.errors import SamplingError
from kamino.schema import Codec

#: So many times the rows are drawn, and so many times more while too few can meet the condition, ...
TIMES = 4
#: ... but no more rows than this beyond those that are asked for.
MOST_MORE = 1_000_000

Draw = Callable[[int], dict[str, IntArray]]


def draw_with_dates(draw: Draw, codec: Codec, num_rows: int, allowed: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Draw rows whose dates have one of the `allowed` codes (of values, not of distances).

    Raises:
        SamplingError: of a million rows, too few have other dates that leave room for an allowed one.

    Guarantees:
        Every row meets the condition and keeps its order.  [test_conditions_on_distances]
    """
    wanted = TIMES * num_rows
    while True:
        most = min(wanted, num_rows + MOST_MORE)
        columns = _draw_as_many(draw, most, num_rows)
        drawn = _length(columns)
        for name in (name for name in codec.bases_first if name in allowed):
            moved, as_drawn, possible = _meet(codec, columns, name, np.sort(allowed[name]))
            order = np.argsort(~as_drawn, kind="stable")
            kept = order[possible[order]]
            columns = {each: codes[kept] for each, codes in {**columns, name: moved}.items()}
        found = _length(columns)
        if found >= num_rows:
            return {name: codes[:num_rows] for name, codes in columns.items()}
        if most < wanted or drawn < most:
            raise SamplingError(f"only {found:,} of {num_rows:,} rows could meet it: other dates leave no room for it.")
        wanted *= TIMES


def _draw_as_many(draw: Draw, most: int, num_rows: int) -> dict[str, IntArray]:
    """Draw more rows than are asked for, where so many are possible."""
    try:
        return draw(most)
    except SamplingError:
        return draw(num_rows)


def _length(columns: Mapping[str, IntArray]) -> int:
    return len(next(iter(columns.values())))


def _meet(
    codec: Codec, columns: Mapping[str, IntArray], name: str, allowed: IntArray
) -> tuple[IntArray, NDArray[np.bool_], NDArray[np.bool_]]:
    """Bring one date to an allowed code; say which rows had one as drawn, and which have one now."""
    values = codec.as_values(columns)
    own, base = values[name], values[codec.differences[name].base]
    distance, null = codec.distance(name, codec.differences[name]), codec.plain[name].null_code
    dates = allowed if null is None else allowed[allowed != null]
    found = np.full(len(own), -1 if null is None or null not in allowed else null)
    if len(dates):
        nearest = dates[np.minimum(np.searchsorted(dates, np.maximum(own, distance.lowest(base))), len(dates) - 1)]
        found = np.where(nearest >= distance.lowest(base), nearest, found)
    as_drawn = np.isin(own, allowed)
    found = np.where(as_drawn, own, found)
    moved = distance.encode(np.maximum(found, 0), base)
    return moved, as_drawn, (found >= 0) & (distance.decode(moved, base) == found)
