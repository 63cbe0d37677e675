"""Private bounds of a numeric attribute: edges of bins in which rows were found, never the exact extremes.

First a histogram over a public grid that fits any number: powers of two, both signs, and zero. The
range from the lowest to the highest bin whose noisy count stands out of the noise is then cut into 32 equal
bins, which are counted once more; a margin of one bin is left at either end. Both histograms are Gaussian
releases. NaN is in no bin, infinities and numbers off the grid are in the outermost ones: no value can stop
the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.mechanisms.counts import noisy_counts
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

_LOWEST_EXPONENT = -32
_HIGHEST_EXPONENT = 62
_FINE_BINS = 32
# How often an empty table would show a bin that stands out, in each of the two histograms.
_FALSE_ALARM = 0.01


@dataclass(frozen=True, kw_only=True)
class NoisyBounds:
    """Bounds at edges of bins, both ends included. `found` is False if no bin stood out of the noise."""

    lower: float
    upper: float
    found: bool


def release_bounds(
    gate: Gate, values: NDArray[Any], *, attribute: str, noise_multiplier: float, integer: bool = False
) -> NoisyBounds:
    """Find a range that holds nearly all values; see `Gate.release_bounds`."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
        found = f"{values.dtype}, {values.ndim}-d" if isinstance(values, np.ndarray) else type(values).__name__
        raise PrivacyError(f"values to bound are {found}; expected a 1-d numpy array of numbers (dates as whole days).")
    each = noise_multiplier * math.sqrt(2)  # two releases at √2 times the noise cost what one costs
    edges = coarse_edges(integer=integer)
    coarse = _reach_zero(
        _release_range(gate, values, edges, attribute, each, margin=0, outermost=True), integer=integer
    )
    fine_edges = _fine_edges(coarse.lower, coarse.upper, integer=integer)
    fine = _release_range(gate, values, fine_edges, attribute, each, margin=1, outermost=False)
    best = fine if coarse.found and fine.found else coarse
    edge = min(best.upper, coarse.upper)
    upper = edge - 1 if integer else edge
    return NoisyBounds(lower=best.lower, upper=upper, found=coarse.found)


def coarse_edges(*, integer: bool) -> NDArray[np.float64]:
    """Return the public grid: 0 begins a bin, so that what is never negative gets a bound that is not."""
    powers = np.exp2(np.arange(0 if integer else _LOWEST_EXPONENT, _HIGHEST_EXPONENT + 1, dtype=np.float64))
    return np.concatenate([-powers[::-1], [0.0], powers]).astype(np.float64)


def most_bins(*, integer: bool) -> tuple[int, int]:
    """Return how many bins the first and the second histogram have at most."""
    return len(coarse_edges(integer=integer)) - 1, _FINE_BINS


def _reach_zero(bounds: NoisyBounds, *, integer: bool) -> NoisyBounds:
    """Take zero in where it is nearer than one fine bin: log bins near zero are narrow, and hold few rows."""
    if 0 < bounds.lower <= bounds.upper / _FINE_BINS:
        return replace(bounds, lower=0.0)
    if bounds.lower / _FINE_BINS <= bounds.upper < 0:
        return replace(bounds, upper=1.0 if integer else 0.0)
    return bounds


def _fine_edges(lower: float, upper: float, *, integer: bool) -> NDArray[np.float64]:
    width = (upper - lower) / _FINE_BINS
    if integer:
        width = float(math.ceil(width))
        return lower + width * np.arange(math.ceil((upper - lower) / width) + 1, dtype=np.float64)
    return lower + width * np.arange(_FINE_BINS + 1, dtype=np.float64)


def _release_range(
    gate: Gate,
    values: NDArray[Any],
    edges: NDArray[np.float64],
    attribute: str,
    noise_multiplier: float,
    *,
    margin: int,
    outermost: bool,
) -> NoisyBounds:
    num_bins = len(edges) - 1
    noisy = noisy_counts(
        gate,
        lambda: _count_bins(values, edges, outermost=outermost),
        kind="bounds",
        what=f"histogram of {num_bins} bins, to find bounds",
        attributes=(attribute,),
        shape=(num_bins,),
        row=Sensitivity.of_histogram(),
        noise_multiplier=noise_multiplier,
    )
    sigma = gate.counts_sigma(noise_multiplier)
    above = np.flatnonzero(noisy > sigma * math.sqrt(2 * math.log(num_bins / _FALSE_ALARM)))
    chosen = above if above.size else np.asarray([int(np.argmax(noisy))])
    first = max(int(chosen[0]) - margin, 0)
    last = min(int(chosen[-1]) + margin, num_bins - 1)
    return NoisyBounds(lower=float(edges[first]), upper=float(edges[last + 1]), found=bool(above.size))


def _count_bins(values: NDArray[Any], edges: NDArray[np.float64], *, outermost: bool) -> NDArray[np.int64]:
    """Count values in [edge, next edge); those off the grid go to the outermost bins, or nowhere."""
    numbers = values.astype(np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if outermost:
        numbers = np.clip(numbers, edges[0], np.nextafter(edges[-1], edges[0]))
    places = np.searchsorted(edges, numbers, side="right") - 1
    inside = places[(places >= 0) & (places < len(edges) - 1)]
    return np.bincount(inside, minlength=len(edges) - 1).astype(np.int64)
