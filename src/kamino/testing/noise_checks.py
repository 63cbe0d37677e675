"""Whether recorded noise is noise: fresh for every release and every coordinate, and as large as it was charged for.

A replay compares outputs, and noise that is drawn once for all passes it. Here the noise of a recorded run, what was
released less what is true, is looked at by itself. All coins must differ; no two releases may have noise that goes
together, and no two parts of one; no vector may have one number for all of its coordinates; and the mean square, in
declared deviations, is near 1, their mean near 0.

>>> from kamino.privacy.noise import SeededNoise
>>> from kamino.testing.replay import record
>>> class OneSeed(SeededNoise):
...     def discrete_gaussian(self, sigma, shape):
...         return SeededNoise(1).discrete_gaussian(sigma, shape)
>>> def run(table, gate):
...     for name in ("ages", "pays"):
...         gate.release_counts(table, what=name, attributes=(name,), noise_multiplier=9.0)
>>> noise_problems(record(run, np.arange(50), noise=OneSeed(1)).records)
('releases 1 and 2 have noise that goes together',)

Correlations of 16 and more coordinates are above 0.95 by chance less often than once in 10^8 pairs, and the mean square
of m coordinates is off by more than 6 of its deviations less often than once in 10^7 runs. For tests only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kamino.privacy.ledger import Entry
from kamino.privacy.tape import Truth

Record = tuple[Entry, Truth, object]
_FEWEST = 16
_ALIKE = 0.95
_DEVIATIONS = 6.0
# Sums of so many products of independent noise, by their deviation: beyond it less often than once in 10^11 (Chernoff).
_FEWEST_PRODUCTS, _FAR = 50, 8.5


def noise_problems(records: Sequence[Record]) -> tuple[str, ...]:
    """Return what is wrong with the noise of a recorded run; nothing if it looks as declared.

    Guarantees:
        One seed for all noise, one draw for a vector, constant coins and noise of one sign are seen.
        [test_every_planted_fault_is_caught]
        Too little noise is seen.  [test_half_of_the_noise_is_seen]
    """
    noises = dict(_noises(records))
    return (
        *_coins(records),
        *_constant(noises),
        *_repeated(noises),
        *_alike(noises),
        *_size(noises),
        *_centre(noises),
    )


def _noises(records: Sequence[Record]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The noise of every release of a vector, in declared deviations, by the number of the release."""
    for number, (entry, truth, released) in enumerate(records, start=1):
        if entry.sigma and isinstance(truth, np.ndarray) and isinstance(released, np.ndarray):
            yield number, (released - truth).ravel().astype(np.float64) * entry.grid / entry.sigma


def _coins(records: Sequence[Record]) -> Iterator[str]:
    seen: dict[object, int] = {}
    for number, (entry, _, released) in enumerate(records, start=1):
        if entry.kind == "coins":
            if released in seen:
                yield f"releases {seen[released]} and {number} have the same coins"
            seen[released] = number


def _constant(noises: dict[int, NDArray[np.float64]]) -> Iterator[str]:
    for number, noise in noises.items():
        if len(noise) >= _FEWEST and np.ptp(noise) == 0:
            yield f"release {number} has one number as the noise of all its coordinates"


def _repeated(noises: dict[int, NDArray[np.float64]]) -> Iterator[str]:
    """Vectors whose noise goes together with itself some places further on, whatever the distance."""
    for number, noise in noises.items():
        lags = np.arange(1, len(noise) - _FEWEST_PRODUCTS + 1)
        if not len(lags) or np.ptp(noise) == 0:
            continue
        spectrum = np.fft.rfft(noise, 2 * len(noise))
        sums = np.fft.irfft(np.abs(spectrum) ** 2, 2 * len(noise))[lags]
        if (np.abs(sums) > _FAR * np.sqrt(len(noise) - lags)).any():
            yield f"release {number} has noise that goes together with itself"


def _alike(noises: dict[int, NDArray[np.float64]]) -> Iterator[str]:
    """Pairs whose noise is nearly proportional, which one stream of random numbers makes at any two deviations."""
    long = {number: noise for number, noise in noises.items() if len(noise) >= _FEWEST and np.ptp(noise) > 0}
    pairs = {pair for length in {len(noise) for noise in long.values()} for pair in _correlated(long, length)}
    for number, other in sorted(pairs):
        yield f"releases {number} and {other} have noise that goes together"


def _correlated(noises: dict[int, NDArray[np.float64]], length: int) -> Iterator[tuple[int, int]]:
    """The pairs of which the shorter has this length, and the longer begins alike: a run has many releases, and all
    pairs of a length are looked at together.
    """
    starts = {number: noise[:length] for number, noise in noises.items() if len(noise) >= length}
    varied = {number: start - start.mean() for number, start in starts.items() if np.ptp(start) > 0}
    units = {number: start / np.linalg.norm(start) for number, start in varied.items()}
    shorter = [number for number in units if len(noises[number]) == length]
    if not shorter:
        return
    alike = np.abs(np.stack([units[number] for number in shorter]) @ np.stack(list(units.values())).T) > _ALIKE
    others = list(units)
    for row, column in np.argwhere(alike):
        first, second = sorted((shorter[row], others[column]))
        if first < second:
            yield first, second


def _size(noises: dict[int, NDArray[np.float64]]) -> Iterator[str]:
    if not noises:
        return
    every = np.concatenate(list(noises.values()))
    square = float(np.mean(every**2))
    # A square of standard noise has variance 2; whole numbers and their rounding add a little.
    if len(every) >= _FEWEST and abs(square - 1) > _DEVIATIONS * math.sqrt(2 / len(every)) + 0.02:
        yield f"the noise is {'larger' if square > 1 else 'smaller'} than declared"


def _centre(noises: dict[int, NDArray[np.float64]]) -> Iterator[str]:
    every = np.concatenate([np.zeros(0), *noises.values()])
    if len(every) >= _FEWEST and abs(float(every.mean())) > _DEVIATIONS / math.sqrt(len(every)):
        yield "the noise is not centred at 0"
