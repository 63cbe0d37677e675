"""Making a chain of sub-models agree with the histograms that were released next to them.

A gradient says little of a rare code, and a step's noise is the same for all: the biases of a wide softmax wander off.
A normal distribution, as a numeric unit has, knows nothing of spikes and skew. Where a unit was counted as well, a
number for each code (or cell, or level) is added to its log probabilities after training: to the biases, or as the
`shift` of a numeric unit. They are such that the unit's distribution, over contexts drawn from the model itself, is the
released one. This looks at nothing private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kamino.model.neural.model import NeuralModel
from kamino.model.neural.networks.layers import log_softmax
from kamino.model.neural.networks.levels import level_shares
from kamino.model.neural.sub_model import SubModel
from kamino.model.neural.units import Kind
from kamino.model.protocol import FloatArray, IntArray

_ROWS = 8_192
_ROUNDS = 40
# How much of the model's own distribution is left in the target, so that no code is ruled out by noise.
_OWN = 1e-3
_FARTHEST = 30.0


def calibrate(
    sub_models: Sequence[SubModel], targets: Mapping[int, FloatArray], *, num_cells: int, rng: np.random.Generator
) -> tuple[SubModel, ...]:
    """Return the sub-models with those in `targets` (by place) moved to their target distributions.

    Guarantees:
        What is drawn then follows the target.  [test_a_calibrated_unit_follows_its_histogram]
    """
    if not targets:
        return tuple(sub_models)
    found: list[SubModel] = []
    columns: dict[str, IntArray] = {}
    for place, each in enumerate(sub_models):
        if place in targets:
            chain = _chain((*found, each), num_cells)
            if each.labels is None:
                shift = _shift(chain.of_unit(each, columns, _ROWS), targets[place])
            else:
                shift = _shift(chain.of_levels(each, columns), level_shares(targets[place], each.labels))
            each = _moved(each, shift)
        found.append(each)
        columns = _chain(tuple(found), num_cells).sample(_ROWS, rng, given=columns)
    return tuple(found)


def _chain(sub_models: tuple[SubModel, ...], num_cells: int) -> NeuralModel:
    return NeuralModel(sub_models=sub_models, num_rows=1.0, num_cells=num_cells)


def _shift(log: FloatArray, target: FloatArray) -> FloatArray:
    """Return what makes the mean of the distributions in `log` the target: again and again the log of their ratio."""
    aim = (1 - _OWN) * target + _OWN * np.exp(log).mean(axis=0)
    shift = np.zeros(len(aim))
    for _ in range(_ROUNDS):
        now = np.exp(log_softmax(np, log + shift)).mean(axis=0)
        shift = np.clip(shift + np.log(np.maximum(aim, 1e-12) / np.maximum(now, 1e-300)), -_FARTHEST, _FARTHEST)
    result: FloatArray = shift - shift.mean()
    return result


def _moved(sub_model: SubModel, shift: FloatArray) -> SubModel:
    params = dict(sub_model.params or {})
    over_codes = sub_model.labels is not None or sub_model.unit.kind is Kind.CATEGORICAL
    name = "bias" if over_codes else "shift"
    params[name] = (params.get(name, 0.0) + shift).astype(np.float32)
    return replace(sub_model, params=params)
