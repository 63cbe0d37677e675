"""Types of text columns, and decimals of numbers, found within the budget: a CSV file says nothing of them but by its
cells.

Every cell is written in one of some seventy ways: as a boolean, a whole number, a number with so many decimals, a date,
a time down to the hour or the second, a date as people write it in one of many formats (or in two, where days and
months cannot be told apart), other text, or not at all. One release counts the ways of all columns. What a column is
follows from the ways that stand out of the noise.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.engine.finding_policy import FINDING
from kamino.privacy import Gate, Sensitivity, multiplier_for
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.private import PrivateTable, open_parts
from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Real, Schema, spelling
from kamino.schema.dtypes import is_text
from kamino.schema.files.date_formats import MAYBE_DATE, TEXT_FORMATS, dated_as, formats_of, has_time
from kamino.schema.numbers import DEFAULT_DECIMALS

SPELLINGS = "how cells are written"
# The decimals of numbers that are told apart; the last way is for more.
_MOST_DECIMALS = DEFAULT_DECIMALS
# What times are whole multiples of, in microseconds, the finest last.
_RESOLUTIONS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1)
_REALS = tuple(f"real{decimals}" for decimals in range(_MOST_DECIMALS + 2))
_TIMES = tuple(f"time{microseconds}" for microseconds in _RESOLUTIONS)
# Formats of dates, and pairs of formats that one text may be in; the way of a text is all that it may be.
_PAIRS = tuple(
    (one, other)
    for place, one in enumerate(TEXT_FORMATS)
    for other in TEXT_FORMATS[place + 1 :]
    if other in (one.replace("%m", "%_").replace("%d", "%m").replace("%_", "%d"), one.replace("%b", "%B"))
)
_SHAPES: dict[tuple[str, ...], str] = {each: " or ".join(each) for each in (*((f,) for f in TEXT_FORMATS), *_PAIRS)}
_WRITTEN = {shape: tuple(way for fits, way in _SHAPES.items() if shape in fits) for shape in TEXT_FORMATS}
_WAYS = ("boolean", "integer", *_REALS, "date", *_TIMES, *_SHAPES.values(), "text", "empty")
_TYPED = tuple(way for way in _WAYS if way not in _SHAPES.values())
_BOOLEANS, _NUMBERS, _DATES = ("boolean",), ("integer", *_REALS), ("date", *_TIMES)
_FAMILIES = (_BOOLEANS, _NUMBERS, _DATES, *_WRITTEN.values())
_PLACES = {way: place for place, way in enumerate(_WAYS)}
# How many deviations a way must be above zero to be seen. Beside the most frequent one there are many others: at four
# deviations, noise makes one of fifty seem to be there in one table of six hundred.
_SEEN, _SEEN_BESIDE = 3.0, 4.0
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The noisy number of cells of one column that are written in each way, and the scale of the noise."""

    counts: Mapping[str, int]
    sigma: float

    def seen(self, way: str) -> bool:
        """Whether a way stands out of the noise; one that is not the most frequent must do so more clearly."""
        most = max(self.counts[each] for each in _WAYS if each != "empty")
        sure = _SEEN if self.counts[way] == most and way not in _SHAPES.values() else _SEEN_BESIDE
        return self.counts[way] > sure * self.sigma

    def total(self, *ways: str) -> int:
        """How many cells are written in one of the ways."""
        return sum(self.counts[way] for way in ways)

    @property
    def decimals(self) -> int:
        """The decimals that numbers need: those of the finest way that stands out."""
        finest = max((place for place, way in enumerate(_REALS) if self.seen(way)), default=0)
        return min(finest, _MOST_DECIMALS)

    @property
    def resolution(self) -> Decimal:
        """The seconds that times are whole multiples of."""
        finest = max((place for place, way in enumerate(_TIMES) if self.seen(way)), default=0)
        return Decimal("0.001") if _RESOLUTIONS[finest] == 1 else Decimal(_RESOLUTIONS[finest]) / 1_000_000


def num_ways(*, typed: bool = False) -> int:
    """Return in how many ways cells are written; those of columns with a type are in no format."""
    return len(_TYPED if typed else _WAYS)


def discover_types(private: PrivateTable, gate: Gate, *, mu_squared: float) -> Schema:
    """Return a schema without domains for a table of text: names as they are, types from noisy counts of spellings.

    What is spelled otherwise than its column's type becomes null later. With too few rows to tell, a column is text.

    Guarantees:
        The types depend on the table through the gate only.  [test_replay_passes_for_types]
        Whole numbers stay whole, and decimals are those of the cells.  [test_decimals_are_found]
        Dates as people write them are dates, in their format.  [test_formats_of_dates_are_found]
    """
    names = private.names
    ways = release_ways(private, names, gate, mu_squared=mu_squared)
    return Schema(attributes={name: _attribute(ways[name]) for name in names})


def release_ways(
    private: PrivateTable, names: Sequence[str], gate: Gate, *, mu_squared: float, typed: bool = False
) -> dict[str, Ways]:
    """Count how the cells of some columns are written, in one release: a row counts once for each column.

    Columns of a type (`typed`) are written in fewer ways; nothing is known of the others.
    """
    ways = _TYPED if typed else _WAYS
    kept = [_PLACES[way] for way in ways]
    multiplier, row = multiplier_for(mu_squared), Sensitivity.of_histogram(len(names))
    noisy = gate.release_counts(
        np.concatenate([counts[kept] for counts in _count_all(private, names)]),
        what=SPELLINGS,
        attributes=tuple(names),
        noise_multiplier=multiplier,
        sensitivity=row,
    )
    deviation = gate.deviation(multiplier, gate.sensitivity(row))
    sigma = scale_for(deviation) if deviation else 0.0
    return {
        name: Ways(counts={**dict.fromkeys(_WAYS, 0), **dict(zip(ways, part.tolist(), strict=True))}, sigma=sigma)
        for name, part in zip(names, np.split(noisy, len(names)), strict=True)
    }


def _count_all(private: PrivateTable, names: Sequence[str]) -> list[NDArray[np.int64]]:
    """The ways of each column: those of parts of a table add up."""
    parts = [[_count_ways(part.column(name)) for name in names] for part in open_parts(private, names)]
    return [np.sum(counts, axis=0, dtype=np.int64) for counts in zip(*parts, strict=True)]


def _attribute(ways: Ways) -> Attribute:
    """The type whose ways nearly all cells are written in; text, if no way stands out, or if too many cells are other
    text.

    A family of ways weighs what those of it do that stand out: a sum over all of them would be mostly noise.
    """
    weights = {family: ways.total(*filter(ways.seen, family)) for family in _FAMILIES}
    family = max(_FAMILIES, key=lambda each: weights[each])
    # Dates in another format are other text.
    strange = ways.counts["text"] + ways.total(*(w for w in _SHAPES.values() if w not in family and ways.seen(w)))
    filled = weights[family] + max(0, strange)
    if not weights[family] or strange > FINDING.other_text * filled + FINDING.other_text_deviations * ways.sigma:
        return Categorical(nullable=True)
    for shape, written in _WRITTEN.items():
        if family == written:
            return dated_as(shape, has_time(shape))
    if family == _BOOLEANS:
        return Boolean(nullable=True)
    if family == _NUMBERS:
        return _number(ways)
    return Datetime(nullable=True, resolution=ways.resolution) if any(map(ways.seen, _TIMES)) else Date(nullable=True)


def _number(ways: Ways) -> Attribute:
    """Whole numbers, unless some are written with a decimal point."""
    fractions = any(map(ways.seen, _REALS))
    return Real(nullable=True, decimals=ways.decimals) if fractions else Integer(nullable=True)


def _count_ways(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Count the cells of a column by way. Nothing here raises because of a value."""
    kind = column.type
    counts = np.zeros(len(_WAYS), dtype=np.int64)
    counts[_PLACES["empty"]] = column.null_count
    if is_text(kind):
        return counts + _count_texts(column)
    present = column.drop_null().combine_chunks()
    if pa.types.is_floating(kind):
        return counts + _count_floats(present.to_numpy(zero_copy_only=False).astype(np.float64), kind)
    if pa.types.is_timestamp(kind):
        return counts + _count_times(present)
    counts[_PLACES["text"]] = len(present)
    return counts


def _count_texts(column: pa.ChunkedArray) -> NDArray[np.int64]:
    values = column.combine_chunks().value_counts()
    texts, counts = values.field("values"), np.asarray(values.field("counts"))
    found = np.zeros(len(_WAYS), dtype=np.int64)
    left = ~np.asarray(texts.is_null()).astype(np.bool_)
    for way, pattern, read in _PATTERNS:
        fits = np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), False)).astype(np.bool_) & left
        if read is None:
            found[_PLACES[way]] += counts[fits].sum()
        else:
            places = [_PLACES[read(text)] for text in texts.filter(pa.array(fits)).to_pylist()]
            np.add.at(found, np.asarray(places, dtype=np.int64), counts[fits])
        left &= ~fits
    maybe = np.asarray(pc.fill_null(pc.match_substring_regex(texts, MAYBE_DATE), False)).astype(np.bool_) & left
    places = [_PLACES[_way_of_date(text)] for text in texts.filter(pa.array(maybe)).to_pylist()]
    np.add.at(found, np.asarray(places, dtype=np.int64), counts[maybe])
    found[_PLACES["text"]] += counts[left & ~maybe].sum()
    return found


def _way_of_date(text: str) -> str:
    """In which formats a text is a date; in the first of them, where no way is for all of them together."""
    fits = formats_of(text)
    return _SHAPES.get(fits, _SHAPES[fits[:1]]) if fits else "text"


def _way_of_number(text: str) -> str:
    """How many decimals a number in text needs; infinities and what is not a number need none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return _REALS[0]
    if not number.is_finite() or number == 0:
        return _REALS[0]
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    zeros = next(place for place, digit in enumerate(reversed(digits)) if digit)
    return _REALS[min(max(0, -exponent - zeros), _MOST_DECIMALS + 1)]


def _way_of_time(text: str) -> str:
    """What a time in text is a whole multiple of."""
    try:
        since = dt.datetime.fromisoformat(text) - _EPOCH
    except (ValueError, OverflowError):
        return "text"
    ticks = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return next(way for way, step in zip(_TIMES, _RESOLUTIONS, strict=True) if ticks % step == 0)


# From the narrowest spelling to the widest; a cell counts for the first that fits.
_PATTERNS: tuple[tuple[str, str, Any], ...] = (
    ("boolean", spelling.BOOLEAN, None),
    ("integer", spelling.INTEGER, None),
    ("real", spelling.NUMBER_OR_NOT, _way_of_number),
    ("date", spelling.DATE, None),
    ("time", spelling.LOCAL_TIME, _way_of_time),
)


def _count_floats(numbers: NDArray[np.float64], kind: pa.DataType) -> NDArray[np.int64]:
    """Count floats by the fewest decimals that show them; NaN is empty, and what is too large has none to show."""
    counts = np.zeros(len(_WAYS), dtype=np.int64)
    missing = np.isnan(numbers)
    counts[_PLACES["empty"]] = missing.sum()
    left = numbers[~missing]
    narrow = kind.to_pandas_dtype()
    for decimals, way in enumerate(_REALS):
        scale = float(10**decimals)
        large = np.abs(left) >= 2**51 / scale
        inside = np.where(large, 0.0, left)
        shown = large | ((np.rint(inside * scale) / scale).astype(narrow) == inside.astype(narrow))
        if decimals > _MOST_DECIMALS:
            shown = np.ones(len(left), dtype=np.bool_)
        counts[_PLACES[way]] = shown.sum()
        left = left[~shown]
    return counts


def _count_times(present: pa.Array) -> NDArray[np.int64]:
    """Count timestamps by what they are whole multiples of."""
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[present.type.unit]
    ticks = present.view(pa.int64()).to_numpy(zero_copy_only=False)
    counts = np.zeros(len(_WAYS), dtype=np.int64)
    left = np.ones(len(ticks), dtype=np.bool_)
    for way, step in zip(_TIMES, _RESOLUTIONS, strict=True):
        unit = max(1, step * per_second // 1_000_000)
        whole = left & (ticks % unit == 0) if step > 1 else left
        counts[_PLACES[way]] = whole.sum()
        left = left & ~whole
    return counts
