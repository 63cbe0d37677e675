"""The least noise whose price a budget holds. A price takes a tenth of a second, so few are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

# The noise that fits is found to this part of itself.
CLOSE = 1.005
_MOST = 1e6
_LEAST = 1e-3


def least_noise(price: Callable[[float], float], limit: float, guess: float) -> float | None:
    """Return the least noise whose price is at most the limit, up to 0.5% more; None if there is none below a million.

    Prices fall as the noise grows, and may be infinite. Between a noise that costs too much and one that does not, a
    power law through both says where the limit is met; a little more noise than that is tried, then a little less.

    Guarantees:
        What is returned was priced and fits; 0.5% less does not.  [test_least_noise_is_the_least_that_fits]
        A smooth price is asked for a few times only.  [test_least_noise_asks_for_few_prices]
    """
    low = high = None
    noise, asked = guess, 0
    while True:
        found, asked = price(noise), asked + 1
        if found <= limit:
            high = noise, found
        else:
            low = noise, found
        if high is not None and (high[0] < _LEAST or (low is not None and high[0] / low[0] <= CLOSE)):
            return high[0]
        if low is not None and low[0] > _MOST:
            return None
        noise = _next(low, high, limit, halve=asked % 4 == 0)


Point = tuple[float, float]


def _next(low: Point | None, high: Point | None, limit: float, *, halve: bool) -> float:
    """Return the noise to try after a noise that costs too much and one that fits, or one of them."""
    if low is None or high is None:
        noise, found = low or high or (1.0, limit)
        # About, the price falls with the noise in proportion; a step past that place gives the other side.
        reach = min(max(found / limit, 0.25), 4.0) if math.isfinite(found) else 2.0
        return noise * reach * (CLOSE if high is None else 1 / CLOSE)
    if halve or not math.isfinite(low[1]) or not 0 < high[1] < low[1]:
        return math.sqrt(low[0] * high[0])
    power = math.log(low[1] / high[1]) / math.log(high[0] / low[0])
    root = high[0] * math.exp(math.log(high[1] / limit) / power)
    aside = math.pow(CLOSE, 0.3)
    return root * aside if high[0] / root > aside**2 else root / aside
