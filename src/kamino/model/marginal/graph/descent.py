"""Minimising a smooth strictly convex function by quasi-Newton steps (L-BFGS) from a good guess of its curvature."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray

Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""Returns the value and the gradient at a point."""
Linear: TypeAlias = Callable[[FloatArray], FloatArray]

#: Steps that are remembered.
MEMORY = 20
#: A step must gain this part of what the slope promises.
ARMIJO = 1e-4
#: The first step that is tried, in parts of the last one that gained enough; never more than a full one.
LONGER = 4.0
#: Smallest step that is tried, in parts of a full one: beyond it, rounding is all that is left.
SMALLEST = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Minimum:
    """Where a descent ended; `done` says whether it ended because `enough` said so."""

    point: FloatArray
    gradient: FloatArray
    iterations: int
    done: bool


class _Step(NamedTuple):
    """A step, the change of the gradient along it, what the guess makes of that, and 1 over the product of the two."""

    step: FloatArray
    change: FloatArray
    guessed: FloatArray
    weight: float


def minimise(
    objective: Objective,
    start: FloatArray,
    *,
    inverse_curvature: Linear,
    enough: Callable[[FloatArray, FloatArray], bool],
    iterations: int,
    resolution: float = 1e-15,
) -> Minimum:
    """Go down from `start` until `enough(point, gradient)`, or the iterations are used up, or no step gains anything.

    A gain below `resolution`, in parts of the value, is rounding.

    Guarantees:
        Finds the minimum of a quadratic function.  [test_descent_finds_the_minimum]
    """
    point = start
    value, gradient = objective(point)
    downhill = inverse_curvature(gradient)
    steps: deque[_Step] = deque(maxlen=MEMORY)
    scale = size = 1.0
    for iteration in range(iterations):
        if enough(point, gradient):
            return Minimum(point=point, gradient=gradient, iterations=iteration, done=True)
        direction = -_newton(gradient, downhill, steps, scale)
        first = min(1.0, LONGER * size)
        found = _search(objective, point, value, direction, float(gradient @ direction), first)
        if found is None and steps:
            steps.clear()  # what was learned far from here may mislead
            size = 1.0
            continue
        if found is None:
            return Minimum(point=point, gradient=gradient, iterations=iteration, done=False)
        new, lower, slope, size = found
        if value - lower <= resolution * abs(value):
            return Minimum(point=new, gradient=slope, iterations=iteration + 1, done=False)
        value = lower
        step, change = new - point, slope - gradient
        product = float(step @ change)
        ahead = inverse_curvature(slope)
        if product > 0:
            # The guess is linear: what it makes of the change is the difference of what it makes of the two.
            guessed = ahead - downhill
            steps.append(_Step(step, change, guessed, 1 / product))
            scale = product / float(change @ guessed)
        point, gradient, downhill = new, slope, ahead
    return Minimum(point=point, gradient=gradient, iterations=iterations, done=enough(point, gradient))


def _newton(gradient: FloatArray, downhill: FloatArray, steps: deque[_Step], scale: float) -> FloatArray:
    """Return the inverse curvature, as guessed and as corrected by the last steps, times the gradient.

    `downhill` is what the guess makes of the gradient.
    """
    rest, result = gradient.copy(), downhill.copy()
    parts = []
    for each in reversed(steps):
        part = each.weight * float(each.step @ rest)
        parts.append(part)
        rest -= part * each.change
        result -= part * each.guessed
    result *= scale
    for each, part in zip(steps, reversed(parts), strict=True):
        result += each.step * (part - each.weight * float(each.change @ result))
    return result


def _search(
    objective: Objective, point: FloatArray, value: float, direction: FloatArray, slope: float, size: float
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """Return the first point on the way that gains enough, with its value, gradient and step; None if none does."""
    while size >= SMALLEST and slope < 0:
        new = point + size * direction
        found, gradient = objective(new)
        if np.isfinite(found) and found <= value + ARMIJO * size * slope:
            return new, found, gradient, size
        # The minimum of the parabola through both values and the slope, within reason.
        bend = found - value - size * slope
        guess = -slope * size**2 / (2 * bend) if np.isfinite(found) and bend > 0 else 0.0
        size = min(max(guess, 0.1 * size), 0.5 * size)
    return None
