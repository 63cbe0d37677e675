"""Private ranges of numeric attributes, all in one release: edges of cells in which rows were found, never the
extremes.

First one histogram for each attribute, over public cells that fit any number: powers of two of both signs and zero, or
spans of years. A range is what the cells say that stand out of the noise, and those next to them that add up to more
than noise does; one cell more is taken in where the noise could hide one row in three hundred, for a range that is too
wide costs little and one that is too narrow moves rows to its ends. Where there are rows enough, 32 equal cells of each
range are counted once more, and ends without rows are cut off. A row is in one cell of each histogram, so that m
histograms have sensitivity √m (add or remove) and √(2m) (replace). NaN is in no cell, infinities and numbers off the
grid are in the outermost ones: no value can stop the run.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.mechanisms.counts import noisy_counts
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

#: The values of each attribute; or what gives them part by part, and is asked once for each release.
Values: TypeAlias = Mapping[str, NDArray[Any]] | Callable[[], Iterable[Mapping[str, NDArray[Any]]]]

FINE_BINS = 32
# Cells of this width are not added up, which would be infinite.
_WIDE = 2.0**1000
_LOWEST_EXPONENT = -32
_HIGHEST_EXPONENT = 62
# Beyond them there are few numbers: cells get wider, up to the largest double. Numbers of one keep ten digits.
_HUGE = tuple(2.0**exponent for exponent in range(64, 1024, 16))
# What is added at an end makes it so many times as large at most: two cells of those that are not wider.
_MOST_TIMES = 4.0
# Numbers of these sizes are likely: a cell of them is believed sooner than one of others.
_LIKELY = (2.0**-7, 2.0**20)
_LIKELY_YEARS = (1900, 2050)
# How many deviations cells must be above zero to be seen: a run of up to four likely ones, any cell, and if none is,
# the likely cell that has most.
_SEEN, _SEEN_ELSEWHERE, _SEEN_ALONE = 4.0, 5.5, 3.0
_WIDEST_RUN = 4
# The same for all cells of the other sign together.
_SEEN_MIRRORED = 2.5
# What a cell next to those seen must have on average, in deviations, to be taken in.
_DRIFT = 1.5
# A cell of fewer rows than this part is not taken in either.
_FEW = 0.001
# The part of the rows that may lie beyond a range without being missed, and how many deviations may hide so many.
_MISSED, _HIDDEN = 0.003, 2.5
# Half a cell is added where the noise could hide more, and a whole one where it could hide this part of the rows.
# Counts that fall to the end are taken to fall no slower than this, from cell to cell, and so many cells are added at
# most.
_MUCH = 0.15
_SLOWEST_FALL, _MOST_ADDED = 0.6, 2.0
# Of the cost of ranges, the part of the second count. It is made if so many deviations cannot hide too many rows; where
# more cannot either, one bin is spared beyond the last that has rows, otherwise two.
_FINE_PART = 0.25
_TELLS, _TELLS_WELL = 1.25, 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Public cells [edge, next edge) of a number, with those marked that are likely; `integer` if it is whole.

    `zero` is the cell that begins at 0, where cells below it are for negative numbers.
    """

    edges: NDArray[np.float64]
    likely: NDArray[np.bool_]
    integer: bool
    zero: int | None = None

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.likely)


@dataclass(frozen=True, kw_only=True)
class NoisyBounds:
    """Bounds at edges of cells, both ends included. `found` is False if no cell stood out of the noise."""

    lower: float
    upper: float
    found: bool


def number_cells(*, integer: bool, decimals: int | None = None, largest: float = 2.0**_HIGHEST_EXPONENT) -> Cells:
    """Return the cells of numbers: 0 begins a cell, so that what is never negative gets a bound that is not.

    Numbers of so many `decimals` need no cells below the smallest of them. The last cell ends at the `largest` number
    that the type of the column holds: that of whole numbers is wider, and reals have some more cells.
    """
    lowest = _LOWEST_EXPONENT if decimals is None else max(_LOWEST_EXPONENT, math.floor(-decimals * math.log2(10)))
    powers = np.exp2(np.arange(0 if integer else min(lowest, 0), _HIGHEST_EXPONENT + 1, dtype=np.float64))
    if integer:
        powers[-1] = max(powers[-1], largest)
    elif largest > powers[-1]:
        powers = np.concatenate([powers, [edge for edge in _HUGE if edge < largest], [largest]])
    edges = np.concatenate([-powers[::-1], [0.0], powers]).astype(np.float64)
    outer = np.maximum(np.abs(edges[:-1]), np.abs(edges[1:]))
    inner = np.minimum(np.abs(edges[:-1]), np.abs(edges[1:]))
    likely = (inner >= _LIKELY[0]) & (outer <= _LIKELY[1]) | (edges[:-1] == 0)
    return Cells(edges=edges, likely=likely, integer=integer, zero=len(powers))


def time_cells(*, steps_per_day: float) -> Cells:
    """Return the cells of dates and times, as whole steps since 1970: five years each from 1900 to 2100."""
    years = [1, 1000, 1500, 1600, 1700, *range(1800, 1900, 25), *range(1900, 2100, 5), 2100, 2150, 2200, 3000, 9999]
    epoch = dt.date(1970, 1, 1).toordinal()
    edges = np.array([math.floor((dt.date(year, 1, 1).toordinal() - epoch) * steps_per_day) for year in years])
    starts = np.array(years[:-1])
    likely = (starts >= _LIKELY_YEARS[0]) & (starts < _LIKELY_YEARS[1])
    return Cells(edges=edges.astype(np.float64), likely=likely, integer=True)


def release_bounds(
    gate: Gate,
    columns: Values,
    cells: Mapping[str, Cells],
    *,
    noise_multiplier: float,
    about_rows: float,
) -> dict[str, NoisyBounds]:
    """Find ranges that hold nearly all values; see `Gate.release_bounds`."""
    if not callable(columns):
        _check_numbers(columns)
    noises = bounds_noise(gate, noise_multiplier, num_columns=len(cells), about_rows=about_rows)
    coarse = {
        name: _find(noisy, cells[name], sigma, about_rows)
        for name, (noisy, sigma) in _release(gate, columns, cells, noises[0], outermost=True).items()
    }
    if len(noises) == 1:
        return {name: _closed(found, cells[name]) for name, found in coarse.items()}
    finer = {name: _fine_cells(found, cells[name]) for name, found in coarse.items()}
    counted = _release(gate, columns, finer, noises[1], outermost=False)
    return {
        name: _closed(_cut(found, *counted[name], finer[name], about_rows) if found.found else found, cells[name])
        for name, found in coarse.items()
    }


def _check_numbers(columns: Mapping[str, NDArray[Any]]) -> None:
    for values in columns.values():
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
            found = f"{values.dtype}, {values.ndim}-d" if isinstance(values, np.ndarray) else type(values).__name__
            raise PrivacyError(
                f"values to bound are {found}; expected a 1-d numpy array of numbers (dates as whole days)."
            )


def bounds_noise(
    gate: Gate, noise_multiplier: float, *, num_columns: int, about_rows: float | None
) -> tuple[float, ...]:
    """Return the noise multipliers of the one or two releases that cost what one with `noise_multiplier` costs.

    There is a second one where its noise cannot hide too many of the rows.
    """
    coarse, fine = noise_multiplier / math.sqrt(1 - _FINE_PART), noise_multiplier / math.sqrt(_FINE_PART)
    sigma = _sigma(gate, fine, num_columns)
    tells = about_rows is None or _TELLS * sigma <= _MISSED * about_rows
    return (coarse, fine) if tells else (noise_multiplier,)


def _sigma(gate: Gate, noise_multiplier: float, num_columns: int) -> float:
    deviation = gate.deviation(noise_multiplier, gate.sensitivity(Sensitivity.of_histogram(num_columns)))
    return scale_for(deviation) if deviation else 0.0


def _release(
    gate: Gate,
    columns: Values,
    cells: Mapping[str, Cells],
    noise_multiplier: float,
    *,
    outermost: bool,
) -> dict[str, tuple[NDArray[np.int64], float]]:
    """One release of all histograms, side by side; each with the scale of its noise."""
    sizes = [each.size for each in cells.values()]
    noisy = noisy_counts(
        gate,
        lambda: _count_parts(columns, cells, outermost=outermost),
        kind="bounds",
        what="histograms, to find ranges",
        attributes=tuple(cells),
        shape=(sum(sizes),),
        row=Sensitivity.of_histogram(len(cells)),
        noise_multiplier=noise_multiplier,
    )
    parts = np.split(noisy, np.cumsum(sizes)[:-1])
    sigma = _sigma(gate, noise_multiplier, len(cells))
    return {name: (part, sigma) for name, part in zip(cells, parts, strict=True)}


def _count_parts(columns: Values, cells: Mapping[str, Cells], *, outermost: bool) -> NDArray[np.int64]:
    """The histograms of all attributes, side by side, added up over the parts."""
    found = np.zeros(sum(each.size for each in cells.values()), dtype=np.int64)
    for part in columns() if callable(columns) else (columns,):
        _check_numbers(part)
        found += np.concatenate([_count_bins(part[n], cells[n].edges, outermost=outermost) for n in cells])
    return found


def _find(noisy: NDArray[np.int64], cells: Cells, sigma: float, about_rows: float) -> NoisyBounds:
    """The range that a first histogram tells."""
    seen = _seen(noisy, cells, sigma)
    if not seen.size:
        most = np.where(cells.likely, noisy, 0)
        seen = np.flatnonzero((most == most.max()) & (most > _SEEN_ALONE * sigma))[:1]
    if not seen.size:
        return NoisyBounds(lower=float(cells.edges[0]), upper=float(cells.edges[-1]), found=False)
    lowest, highest = 0, cells.size - 1
    if cells.zero is not None:  # a sign of which no cell was seen is not taken in by the way
        lowest = cells.zero if seen[0] >= cells.zero else lowest
        highest = cells.zero if seen[-1] < cells.zero else highest
    first, last = (
        _reach(noisy, int(seen[0]), lowest, sigma, about_rows),
        _reach(noisy, int(seen[-1]), highest, sigma, about_rows),
    )
    before = min(_margin(noisy, first, 1, sigma, about_rows), first - lowest)
    after = min(_margin(noisy, last, -1, sigma, about_rows), highest - last)
    lower, upper = _edge(cells, first - before), _edge(cells, last + 1 + after)
    if cells.zero is not None:
        low, high = float(cells.edges[first]), float(cells.edges[last + 1])
        lower = max(lower, _MOST_TIMES * low) if low < 0 else lower
        upper = min(upper, _MOST_TIMES * high) if high > 0 else upper
    found = NoisyBounds(lower=lower, upper=upper, found=True)
    return found if cells.zero is None else _reach_zero(found, integer=cells.integer)


def _seen(noisy: NDArray[np.int64], cells: Cells, sigma: float) -> NDArray[np.int64]:
    """The cells that stand out of the noise.

    Numbers of one sign are taken to have the other sign as well if the cells of the same sizes say so together; and
    where no cell stands out, those of the same size and either sign are tried together.
    """
    places = _runs(noisy, cells.likely, sigma)
    zero = cells.zero
    if zero is None:
        return places
    if not places.size:
        sizes = _runs(noisy[zero:] + noisy[:zero][::-1], cells.likely[zero:], math.sqrt(2) * sigma)
        return np.sort(np.concatenate([zero + sizes, zero - 1 - sizes]))
    if places[0] < zero <= places[-1]:
        return places
    mirrored = 2 * zero - 1 - np.arange(places[0] - 1, places[-1] + 2)
    other = mirrored < zero if places[0] >= zero else mirrored >= zero
    inside = mirrored[other & (mirrored >= 0) & (mirrored < cells.size)]
    if inside.size and noisy[inside].sum() > _SEEN_MIRRORED * sigma * math.sqrt(inside.size):
        places = np.union1d(places, inside[noisy[inside] > sigma])
    return places


def _runs(noisy: NDArray[np.int64], likely: NDArray[np.bool_], sigma: float) -> NDArray[np.int64]:
    """The cells that stand out by themselves, or with likely ones next to them that do not."""
    found = noisy > _SEEN_ELSEWHERE * sigma
    for width in range(1, _WIDEST_RUN + 1):
        rest = np.where(likely & ~found, noisy, 0)
        for start in np.flatnonzero(np.convolve(rest, np.ones(width), mode="valid") > _SEEN * sigma * math.sqrt(width)):
            run = slice(int(start), int(start) + width)
            found[run] |= rest[run] > sigma
    return np.flatnonzero(found)


def _reach(noisy: NDArray[np.int64], start: int, end: int, sigma: float, about_rows: float) -> int:
    """The cell between `start` and `end` up to which cells add up to most, above what noise would or few rows."""
    step = 1 if end >= start else -1
    counts = noisy[start + step : end + 1] if step > 0 else noisy[end:start][::-1]
    if sigma == 0:  # without noise, the last cell that has rows
        filled = np.flatnonzero(counts)
        return start + step * int(filled[-1] + 1) if filled.size else start
    sums = np.cumsum(np.append(0.0, counts - max(_DRIFT * sigma, _FEW * about_rows)))
    return start + step * int(np.argmax(sums))


def _edge(cells: Cells, place: float) -> float:
    """An edge of the cells; of a place between two, the point half way."""
    low, high = cells.edges[math.floor(place)], cells.edges[math.ceil(place)]
    edge = float(low / 2 + high / 2)
    return float(math.floor(edge)) if cells.integer else edge


def _margin(noisy: NDArray[np.int64], end: int, inwards: int, sigma: float, about_rows: float) -> float:
    """How many cells to add beyond an end, in halves: none where the noise hides too little.

    Where counts fall to the end, they are taken to go on so, and cells are added until what lies beyond is too little.
    Where they do not, nothing is known of what the noise hides, and half a cell is added, or a whole one.
    """
    if _HIDDEN * sigma <= _MISSED * about_rows:
        return 0.0
    before = float(noisy[end + inwards]) if 0 <= end + inwards < len(noisy) else 0.0
    largest = float(noisy[end]) + sigma
    if largest >= before:
        return 0.5 if _HIDDEN * sigma <= _MUCH * about_rows else 1.0
    fall = min(max(largest, 1.0) / before, _SLOWEST_FALL)
    beyond = largest * fall / (1 - fall)
    needed = math.log(max(beyond / max(_MISSED * about_rows, 1e-9), 1.0)) / -math.log(fall)
    return min(math.ceil(2 * needed) / 2, _MOST_ADDED)


def _reach_zero(bounds: NoisyBounds, *, integer: bool) -> NoisyBounds:
    """Take zero in where it is nearer than one fine bin: log bins near zero are narrow, and hold few rows."""
    if 0 < bounds.lower <= bounds.upper / FINE_BINS:
        return replace(bounds, lower=0.0)
    if bounds.lower / FINE_BINS <= bounds.upper < 0:
        return replace(bounds, upper=1.0 if integer else 0.0)
    return bounds


def _fine_cells(found: NoisyBounds, cells: Cells) -> Cells:
    """Equal cells of a range: always as many, so that the size of the release is public before."""
    width = found.upper / FINE_BINS - found.lower / FINE_BINS
    width = float(math.ceil(width)) if cells.integer else width
    places = np.arange(FINE_BINS + 1, dtype=np.float64)
    if width > _WIDE:
        edges = np.append(
            (1 - places[:-1] / FINE_BINS) * found.lower + places[:-1] / FINE_BINS * found.upper, found.upper
        )
    else:
        edges = found.lower + width * places
    return Cells(edges=edges, likely=np.ones(FINE_BINS, dtype=np.bool_), integer=cells.integer)


def _cut(found: NoisyBounds, noisy: NDArray[np.int64], sigma: float, cells: Cells, about_rows: float) -> NoisyBounds:
    """The range without ends in which the second histogram shows no rows."""
    seen = np.flatnonzero(noisy > _SEEN_ALONE * sigma)
    if not seen.size:
        return found
    spare = 0 if sigma == 0 else 1 if _TELLS_WELL * sigma <= _MISSED * about_rows else 2
    first = max(_reach(noisy, int(seen[0]), 0, sigma, about_rows) - spare, 0)
    last = min(_reach(noisy, int(seen[-1]), FINE_BINS - 1, sigma, about_rows) + spare, FINE_BINS - 1)
    lower, upper = float(cells.edges[first]), min(float(cells.edges[last + 1]), found.upper)
    return replace(found, lower=min(lower, upper), upper=upper)


def _closed(bounds: NoisyBounds, cells: Cells) -> NoisyBounds:
    """The bounds with both ends included."""
    upper = bounds.upper - 1 if cells.integer else bounds.upper
    return replace(bounds, lower=min(bounds.lower, upper), upper=upper)


def _count_bins(values: NDArray[Any], edges: NDArray[np.float64], *, outermost: bool) -> NDArray[np.int64]:
    """Count values in [edge, next edge); those off the grid go to the outermost cells, or nowhere."""
    numbers = values.astype(np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if outermost:
        numbers = np.clip(numbers, edges[0], np.nextafter(edges[-1], edges[0]))
    places = np.searchsorted(edges, numbers, side="right") - 1
    inside = places[(places >= 0) & (places < len(edges) - 1)]
    return np.bincount(inside, minlength=len(edges) - 1).astype(np.int64)
