"""Where noise comes from: the operating system, unless a test says otherwise.

Noise on counts is the discrete Gaussian: P(k) proportional to exp(-k²/(2 sigma²)) over all integers k
(Canonne, Kamath, Steinke 2020), drawn exactly (see `kamino.privacy.gaussian_table`). Gradients and sampled
matrices have noise of another kind (see `kamino.privacy.mechanisms.gradients`).

    >>> SecureNoise().discrete_gaussian(3.0, (2, 5)).shape
    (2, 5)
    >>> ExactNoise().discrete_gaussian(0.0, (3,)).tolist()
    [0, 0, 0]
"""

from __future__ import annotations

import math
import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.gaussian_table import draw_gaussian

NOT_FOR_RELEASE = "not for release"
NOT_PRIVATE = "not private"


class Noise(Protocol):
    """A source of noise. `mark` is empty, or says why what it made must not be released."""

    @property
    def mark(self) -> str:
        """Return "", `NOT_FOR_RELEASE` or `NOT_PRIVATE`."""
        ...

    def discrete_gaussian(self, sigma: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent draws of the discrete Gaussian of scale `sigma`."""
        ...

    def coins(self) -> bytes:
        """Return 32 random bytes, to choose among the rows of a unit."""
        ...


class SecureNoise:
    """Exact discrete Gaussian noise from the operating system's randomness. The default.

    Guarantees:
        The draws have the stated probabilities. [test_discrete_gaussian_fits_its_probabilities]
        The law is exact, in the far tail too. [test_the_table_passes_and_broken_ones_fail]
    """

    @property
    def mark(self) -> str:
        """Return "": what this makes may be released."""
        return ""

    def discrete_gaussian(self, sigma: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent draws of the discrete Gaussian of scale `sigma`."""
        _check_sigma(sigma)
        size = math.prod(shape)
        if size == 0:
            return np.zeros(shape, dtype=np.int64)
        return draw_gaussian(sigma, size).reshape(shape)

    def coins(self) -> bytes:
        """Return 32 random bytes from the operating system."""
        return os.urandom(32)


class SeededNoise:
    """Repeatable noise, for tests only: marks all it makes "not for release"."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rng = np.random.default_rng(seed)

    def begin(self, number: int) -> None:
        """Go on with noise that the seed and a number decide, whatever was drawn before."""
        self._rng = np.random.default_rng([self._seed, number])

    @property
    def mark(self) -> str:
        """Return `NOT_FOR_RELEASE`: who knows the seed can take the noise away."""
        return NOT_FOR_RELEASE

    def discrete_gaussian(self, sigma: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return draws by inversion of a table, or rounded normal ones where nobody can tell the two apart."""
        _check_sigma(sigma)
        if sigma > 1_000:
            return np.rint(self._rng.normal(0.0, sigma, shape)).astype(np.int64)
        half = math.ceil(12 * sigma) + 1
        support = np.arange(-half, half + 1)
        weights = np.exp(-(support**2) / (2 * sigma**2))
        cumulative = np.cumsum(weights / weights.sum())
        places = np.searchsorted(cumulative, self._rng.random(shape), side="right")
        return support[np.minimum(places, 2 * half)].astype(np.int64)

    def coins(self) -> bytes:
        """Return 32 bytes that the seed decides."""
        return self._rng.bytes(32)


class ExactNoise:
    """No noise, for epsilon=inf: marks all it makes "not private".

    Coins choose samples without noise too: they are those of a `source`, so that a seed decides them.

    Guarantees:
        A seed gives the same model without noise.  [test_a_seed_decides_samples_without_noise]
    """

    def __init__(self, source: Noise | None = None) -> None:
        self._source = source

    @property
    def mark(self) -> str:
        """Return `NOT_PRIVATE`."""
        return NOT_PRIVATE

    def discrete_gaussian(self, sigma: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return zeros."""
        return np.zeros(shape, dtype=np.int64)

    def coins(self) -> bytes:
        """Return 32 bytes of the source, or from the operating system."""
        return os.urandom(32) if self._source is None else self._source.coins()


def _check_sigma(sigma: float) -> None:
    if not 0 < sigma < 2.0**50:
        raise PrivacyError(
            f"the noise has sigma {sigma:g}; expected more than 0 and less than 2^50. Give the run a larger budget "
            "share, or epsilon=inf for no noise at all."
        )
