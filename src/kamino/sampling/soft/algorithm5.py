"""Weights of soft constraints by the paper's Algorithm 5, to compare with weights by matching.

From the noisy violation matrix of a sample, gradient steps maximise O = exp(-sum of W[l] V[i][l]) for one line i after
another. V is not negative, so O only grows as weights fall: its maximum is at minus infinity, and the start value, the
step size and the number of steps alone decide what comes out. A weight starts at `START`, moves by `STEP` times the
gradient -V[i][l] O, and stays at or above 0. As the paper's Algorithm 6 has it, a step takes about one line (b_w = 1)
and there are as many steps for an attribute as the sample has places (T_w = L_w).
"""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray
from kamino.engine.paper_weights import NoisyMatrix
from kamino.sampling.plan.sampling_plan import SamplingPlan
from kamino.sampling.soft.weights import FoundWeight, FoundWeights

START = 1.0
STEP = 0.1
_LINES = 1.0


def learn_weights(matrix: NoisyMatrix, plan: SamplingPlan, rng: np.random.Generator) -> FoundWeights:
    """Learn weights from a released matrix: post-processing, which costs nothing.

    A constraint that no step of the plan weighs gets weight 0, since nothing would heed it.

    Guarantees:
        More violations never make a weight heavier, and none leave the start value.  [test_weights_fall_from_the_start]
    """
    violations = np.maximum(matrix.values, 0).astype(np.float64)
    place = {c: number for number, c in enumerate(matrix.constraints)}
    weighed = {c for step in plan.steps for c in step.soft if c in place}
    weights: FloatArray = np.array([START if c in weighed else 0.0 for c in matrix.constraints])
    for step in plan.steps:
        active = np.array([place[c] for c in step.soft if c in place], dtype=np.int64)
        if len(active):
            _descend(weights, violations, active, rng)
    found = [
        FoundWeight(constraint=c, weight=float(weight), per_violation=True)
        for c, weight in zip(matrix.constraints, weights, strict=True)
    ]
    return FoundWeights(items=tuple(found))


def _descend(weights: FloatArray, violations: FloatArray, active: np.ndarray, rng: np.random.Generator) -> None:
    """All steps of one attribute; changes `weights`."""
    size = len(violations)
    for _ in range(size):
        for line in np.flatnonzero(rng.random(size) < _LINES / size):
            seen = violations[line, active]
            objective = np.exp(-float(weights[active] @ seen))
            weights[active] = np.maximum(0.0, weights[active] - STEP * seen * objective)
