"""Real vectors (rates, scores), rounded to a grid and given discrete Gaussian noise in steps of the grid.

Rounding moves each of d coordinates by at most half a step on either table, so two neighbours that are S
apart are at most S + step * sqrt(d) apart on the grid. That is the sensitivity that the noise is made for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.ledger import Entry
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

# Rounding to the default grid makes a sensitivity at most 1/1024 larger.
_STEPS = 1024
# Beyond it a number of steps is not exact in float64.
_MOST_STEPS = 2.0**52


def release_vector(
    gate: Gate,
    values: NDArray[np.float64],
    *,
    what: str,
    attributes: tuple[str, ...],
    noise_multiplier: float,
    sensitivity: float | Sensitivity,
    lower: float = -math.inf,
    upper: float = math.inf,
    grid: float | None = None,
) -> NDArray[np.float64]:
    """Add grid noise to a real vector; see `Gate.release_vector`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        found = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise PrivacyError(f"a vector to release is {found}; expected a numpy array of numbers.")
    if not lower < upper:
        raise PrivacyError(f"a vector is bounded by [{lower}, {upper}]; expected lower < upper.")
    exact = gate.sensitivity(sensitivity)
    step = _step(grid, exact.under(gate.budget.neighbours), values.size)
    rounded = _on_grid(exact, step, values.size)
    deviation = gate.deviation(noise_multiplier, rounded)
    scale = scale_for(deviation) if deviation else 0.0
    entry = Entry(
        kind="vector",
        what=what,
        attributes=attributes,
        events=((rounded.event(deviation), 1),),
        sigma=scale * step,
        sensitivity=rounded.under(gate.budget.neighbours) * step,
        grid=step,
        shape=values.shape,
        parameters=(("lower", lower), ("upper", upper)),
    )
    noisy = gate.publish(
        entry,
        truth=lambda: _steps(values, step, lower, upper),
        answer=lambda truth: truth + gate.noise.discrete_gaussian(scale, truth.shape),
    )
    return (noisy * step).astype(np.float64)


def _step(grid: float | None, sensitivity: float, size: int) -> float:
    """Return the grid's step: a power of two, so that steps times grid is exact."""
    if not math.isfinite(sensitivity):
        raise PrivacyError(
            "a vector's sensitivity has no bound under the relation of the run; declare one, or clip the values."
        )
    wanted = sensitivity / (_STEPS * math.sqrt(max(size, 1))) if grid is None else grid
    if not 0 < wanted < math.inf:
        raise PrivacyError(f"a vector's grid has step {wanted}; expected a positive number.")
    return math.ldexp(1.0, math.floor(math.log2(wanted)))


def _on_grid(exact: Sensitivity, step: float, size: int) -> Sensitivity:
    rounding = math.sqrt(size)
    return Sensitivity(add_remove=exact.add_remove / step + rounding, replace=exact.replace / step + rounding)


def _steps(values: NDArray[np.float64], step: float, lower: float, upper: float) -> NDArray[np.int64]:
    """Clip and round: anything that is no number becomes the nearest allowed one to 0."""
    finite = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=math.inf, neginf=-math.inf)
    clipped = np.clip(finite, max(lower, -_MOST_STEPS * step), min(upper, _MOST_STEPS * step))
    steps: NDArray[np.int64] = np.rint(clipped / step).astype(np.int64)
    return steps
