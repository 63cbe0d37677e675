"""The delta of a Gaussian mechanism, never below the true one, however small epsilon and delta are.

A mechanism with `mu = 1 / noise multiplier` has `delta(epsilon) = Phi(mu/2 - x) - exp(epsilon) Phi(-mu/2 - x)` with
`x = epsilon / mu` (Balle, Wang 2018, theorem 8). Written so, the two terms agree in all digits where mu is small. With
the Mills ratio `M(y) = (1 - Phi(y)) / phi(y)` it is `phi(x - h) (M(x - h) - M(x + h))`, `h = mu / 2`, since
`exp(epsilon) phi(x + h) = phi(x - h)`. M is completely monotone (`M(y) = integral of exp(-y t - t^2 / 2)` over t > 0),
so that all terms of the difference's series in h are positive:

    M(x - h) - M(x + h) = 2h (-M'(x)) + h^3/3 (-M'''(x)) + h^5/60 (-M^(5)(x)) + ...

and what is left out after two of them is at most `h^5/60 (-M^(5)(x - h))`, for the odd derivatives grow towards x - h.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kamino.late_imports import special_function
from kamino.privacy.accounting.closed_forms import get_epsilon_gaussian

# Up to this h the series loses less than the difference of two Mills ratios does.
_SMALL = 2e-3
# Roundings in a Mills ratio and what is made of it: a dozen, each of half an ulp.
_ULPS = 16 * math.ulp(1.0)
# Steps of halving in which a bracket of doubles, in their logarithm, comes to its end.
_STEPS = 120
# Below this, halves and squares of a double lose digits: nothing is promised of so little.
_LEAST = 1e-300
# From here on delta is below exp(-low * _FAR / 2), far below any double.
_FAR = 1e4
# What the closed form of an ordinary epsilon may be off by: its root finder stops there.
_CLOSE = 1e-9
# A price is given anew where it is too high by more than this part, and a mu where it is too low.
_LOOSE = 1e-6


def log_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of delta at epsilon of a Gaussian mechanism with `mu`, at least the true one.

    >>> round(math.exp(log_delta(1 / 4.2247, 1.0)) * 1e6, 4)
    0.9999

    Guarantees:
        It is never below the true one, and close to it.  [test_delta_is_never_below_the_true_one]
    """
    x, h = epsilon / mu, mu / 2
    low = x - h
    if low < -8:
        return 0.0  # delta is below one by less than a double tells
    if low > _FAR:
        return -low * _FAR / 2  # M is below one here, and no double's logarithm comes near
    # The ends are rounded, and delta falls as `low` grows.
    low -= _ULPS * (x + h)
    gap = _gap_by_series(x, h) if h <= _SMALL else mills(low) - mills(x + h) + _ULPS * mills(low)
    if not gap > 0:
        return -math.inf
    found = math.log(gap) - low**2 / 2 - math.log(2 * math.pi) / 2
    return found + _ULPS * (1 + low**2 + abs(found))


def _gap_by_series(x: float, h: float) -> float:
    """M(x - h) - M(x + h) for small h, from above: two terms, the most that is left out, and roundings."""
    first = 1 - x * mills(x)
    third = 2 * first - x * (mills(x) - x * first)
    low = x - h
    fifth = min(8.1, 120 / low**6) if low > 1 else 8.1
    rounding = _ULPS * (2 * h + h**3 / 3 * (2 + x**2))
    return 2 * h * first + h**3 / 3 * third + h**5 / 60 * fifth + rounding


def mills(y: float) -> float:
    """Return (1 - Phi(y)) / phi(y).

    >>> round(mills(0.0) ** 2, 6) == round(math.pi / 2, 6)
    True
    """
    return math.sqrt(math.pi / 2) * float(special_function("erfcx")(y / math.sqrt(2)))


def sound_mu(epsilon: float, delta: float, guess: float) -> float:
    """Return `guess` where it is nearly the largest mu whose delta at epsilon is at most `delta`, else that.

    Guarantees:
        Its delta is at most the given one.  [test_no_budget_is_exceeded_at_the_extremes]
    """
    wanted = math.log(delta)

    def fits(mu: float) -> bool:
        return log_delta(mu, epsilon) <= wanted

    if _LEAST <= guess < math.inf and fits(guess) and not fits(guess * (1 + _LOOSE)):
        return guess
    high = guess if _LEAST <= guess < math.inf else 1.0
    while fits(high):
        high *= 2
    low = min(high, max(delta, _LEAST))  # delta is less than mu, and so is it at any epsilon
    low, _ = _halved(low, high, fits)
    return low if low > _LEAST else 0.0


def epsilon_at(mu: float, delta: float) -> float:
    """Return the epsilon at `delta` of a Gaussian mechanism with `mu`: that of the closed form, where it is sound.

    Else nearly the least at which the mechanism has at most `delta`. A mu that is too small to be told costs what the
    least one does that can be.

    Guarantees:
        What is told is never less than what was spent.  [test_no_price_is_too_low_at_the_extremes]
    """
    mu, wanted = max(mu, _LEAST), math.log(delta)
    # The library takes the log of a difference that rounds to 0 on the way to a very small epsilon.
    try:
        with np.errstate(divide="ignore"):
            guess = get_epsilon_gaussian(1 / mu, delta)
    except (RuntimeError, ValueError, ArithmeticError):
        guess = math.nan

    def costs_more(epsilon: float) -> bool:
        return log_delta(mu, epsilon) > wanted

    if guess >= 0 and not costs_more(guess * (1 + _CLOSE)) and (guess == 0 or costs_more(guess * (1 - _LOOSE))):
        return guess
    if not costs_more(_LEAST):
        return _LEAST if costs_more(0.0) else 0.0
    high = guess if guess > _LEAST else _LEAST
    while costs_more(high):
        high *= 2
    return _halved(_LEAST, high, costs_more)[1]


def _halved(low: float, high: float, below: Callable[[float], bool]) -> tuple[float, float]:
    """The neighbours between which `below`, true of `low` and false of `high`, becomes false."""
    for _ in range(_STEPS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high
