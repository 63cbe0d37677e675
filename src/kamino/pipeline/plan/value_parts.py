"""The parts that a schema gives values: year to second of dates and times, first and last digits of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.model.marginal.maps.part_maps import Following, can_follow
from kamino.model.parts import Part
from kamino.model.protocol import CodeMap, IntArray, ModelAttribute
from kamino.schema import Codec, Date, Datetime, Integer
from kamino.schema.times import wall_clock

# Parts are spelled out value by value: of wider domains none is.
_MOST_CODES = 1 << 20
# A part with more values than this is hardly one that a column of its own is made for.
_MOST_VALUES = 128
_DIGITS = (10, 100, 1_000, 10_000)

_DAY_PARTS: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "weekday": pc.day_of_week,
}
_CLOCK_PARTS: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def followings(
    pairs: Sequence[tuple[str, str]], attributes: Sequence[ModelAttribute], codec: Codec
) -> Iterator[Following]:
    """Return the dependencies that may follow a part of their left side. Reads the schema only.

    Guarantees:
        Parts are those of the values, in their own timezone.  [test_parts_are_those_of_the_values]
    """
    named = {each.name: each for each in attributes}
    for left, right in pairs:
        if left in codec.differences or right in codec.differences:
            continue
        attribute = codec.schema[right]
        if isinstance(attribute, Integer) and not attribute.grid.is_narrow:
            continue
        numbers = (attribute.grid.start, attribute.grid.step) if isinstance(attribute, Integer) else (None, 1)
        for part in parts_of(codec, left):
            if can_follow(part, named[right]):
                yield Following(left=left, right=right, part=part, first=numbers[0], step=numbers[1])


def parts_of(codec: Codec, name: str) -> tuple[Part, ...]:
    """Return the parts of an attribute's values that are not the same for all."""
    attribute, size = codec.schema[name], codec[name].num_values
    if size > _MOST_CODES or not isinstance(attribute, Date | Datetime | Integer) or not attribute.grid.is_narrow:
        return ()
    if isinstance(attribute, Integer):
        numbers = attribute.grid.ticks(np.arange(size, dtype=np.int64))
        found = {f"last digits, modulo {base:,}": numbers % base for base in _DIGITS}
        found |= {f"first digits, without {base:,}s": numbers // base for base in _DIGITS}
    else:
        values = codec[name].decode(np.arange(size, dtype=np.int64))
        values = wall_clock(values) if isinstance(attribute, Datetime) else values
        kinds = _DAY_PARTS if isinstance(attribute, Date) else {**_DAY_PARTS, **_CLOCK_PARTS}
        found = {kind: _numbers(read(values)) for kind, read in kinds.items()}
    parts = (_part(kind, each, codec[name].null_code) for kind, each in found.items())
    return tuple(part for part in parts if part is not None)


def _numbers(array: Any) -> IntArray:
    return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)


def _part(name: str, of_code: IntArray, null_code: int | None) -> Part | None:
    """Return the part of each code as bins; None where it has one value, too many, or as many as there are codes."""
    numbers, labels = np.unique(of_code, return_inverse=True)
    if not 1 < len(numbers) <= min(_MOST_VALUES, len(of_code) - 1):
        return None
    starts = np.flatnonzero(np.append(True, np.diff(labels) != 0))
    runs, bins, size = labels[starts], len(numbers), len(of_code)
    if null_code is not None:
        starts, runs, bins, size = np.append(starts, null_code), np.append(runs, bins), bins + 1, size + 1
    return Part(name=name, map=CodeMap(size=size, bins=bins, starts=starts, labels=runs), numbers=numbers)
