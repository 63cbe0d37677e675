"""The closed forms by which Gaussian releases are priced: those of `dp_accounting`, without what they import.

In that package they take one function of scipy.stats and one of scipy.optimize; importing these takes a second, longer
than many a run. Here is the same arithmetic with the one function of scipy.special that lies below.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

#: How closely roots are found: the absolute tolerance of the package, and the relative one of scipy.
_TOLERANCE = 1.0e-12
_RELATIVE = 4 * math.ulp(1.0)
_MOST_STEPS = 100


def get_epsilon_gaussian(sigma: float, delta: float) -> float:
    """Return `dp_accounting.get_epsilon_gaussian`: the epsilon at `delta` of a Gaussian mechanism.

    Guarantees:
        It is what the package returns, to the last bit.  [test_closed_forms_are_those_of_the_package]
    """
    _check(sigma, "sigma", delta)
    if delta == 1 or sigma == math.inf:
        return 0.0
    if sigma == 0 or delta == 0:
        return math.inf
    log_delta = np.log(delta)
    if _log_delta(sigma, 0.0) < log_delta:
        return 0.0
    low, high = 0.0, 1.0
    while _log_delta(sigma, high) > log_delta:
        low, high = high, high * 10
    return _root(lambda epsilon: float(_log_delta(sigma, epsilon) - log_delta), low, high)


def get_sigma_gaussian(epsilon: float, delta: float) -> float:
    """Return `dp_accounting.get_sigma_gaussian`: the least noise of a Gaussian mechanism with this price.

    Guarantees:
        It is what the package returns, to the last bit.  [test_closed_forms_are_those_of_the_package]
    """
    _check(epsilon, "epsilon", delta)
    if delta == 1 or epsilon == math.inf:
        return 0.0
    if delta == 0:
        return math.inf
    log_delta = np.log(delta)
    low, high = 0.1, 1.0
    while _log_delta(low, epsilon) < log_delta:
        low, high = low / 10, low
    while _log_delta(high, epsilon) > log_delta:
        low, high = high, high * 10
    return _root(lambda sigma: float(_log_delta(sigma, epsilon) - log_delta), low, high)


def _check(value: float, name: str, delta: float) -> None:
    if not value >= 0:
        raise ValueError(f"found {name} {value}, expected a number from 0 on.")
    if not 0 <= delta <= 1:
        raise ValueError(f"found delta {delta}, expected a number from 0 to 1.")


def _log_delta(sigma: float, epsilon: float) -> np.floating:
    """Return the logarithm of delta: equation 6 of Balle and Wang (2018), https://arxiv.org/abs/1805.06530."""
    from scipy.special import log_ndtr  # slow to import: only where something is priced

    bound = epsilon * sigma + 1 / (2 * sigma)
    above = log_ndtr(1 / sigma - bound)
    below = epsilon + log_ndtr(-bound)
    return above + np.log1p(-np.exp(below - above)) if below <= above else np.float64(-np.inf)


def _root(function: Callable[[float], float], first: float, second: float) -> float:
    """Return a root between two numbers by Brent's method, in the steps of `scipy.optimize.brentq`.

    `last` and `now` are the newest two points; the root lies between `now` and `far`.
    """
    last, now, far = first, second, 0.0
    at_last, at_now, at_far = function(last), function(now), 0.0
    before = step = 0.0
    if at_last == 0:
        return last
    if at_now == 0:
        return now
    if not at_last * at_now < 0:
        raise ValueError("found no change of sign between two numbers, expected a root between them.")
    for _ in range(_MOST_STEPS):
        if at_last != 0 and (at_last < 0) != (at_now < 0):
            far, at_far = last, at_last
            before = step = now - last
        if abs(at_far) < abs(at_now):
            last, now, far = now, far, now
            at_last, at_now, at_far = at_now, at_far, at_now
        least = (_TOLERANCE + _RELATIVE * abs(now)) / 2
        half = (far - now) / 2
        if at_now == 0 or abs(half) < least:
            return now
        tried = math.inf
        if abs(before) > least and abs(at_now) < abs(at_last):
            tried = _interpolated((last, at_last), (now, at_now), (far, at_far))
        if 2 * abs(tried) < min(abs(before), 3 * abs(half) - least):
            before, step = step, tried
        else:
            before = step = half
        last, at_last = now, at_now
        now += step if abs(step) > least else math.copysign(least, half)
        at_now = function(now)
    raise ValueError("found no root in a hundred steps, expected one.")


def _interpolated(last: tuple[float, float], now: tuple[float, float], far: tuple[float, float]) -> float:
    """Return the step to where a line, or a hyperbola through three points, is 0; infinite where there is none."""
    try:
        if last[0] == far[0]:
            return -now[1] * (now[0] - last[0]) / (now[1] - last[1])
        to_last = (last[1] - now[1]) / (last[0] - now[0])
        to_far = (far[1] - now[1]) / (far[0] - now[0])
        return -now[1] * (far[1] * to_far - last[1] * to_last) / (to_far * to_last * (far[1] - last[1]))
    except ZeroDivisionError:
        return math.inf
