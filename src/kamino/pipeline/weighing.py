"""Weights of soft constraints: what is measured of the table for them, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from kamino.constraints import Constraints, DenialConstraint
from kamino.engine.paper_weights import SAMPLING_RATE, paper_noise, release_violation_matrix
from kamino.engine.rates import model_share, release_rates
from kamino.model import SavedModel
from kamino.model.neural import NeuralModel
from kamino.pipeline.settings import Backend, Settings, WeightMode
from kamino.privacy import Gate, multiplier_for
from kamino.sampling import SamplingPlan
from kamino.sampling.soft.algorithm5 import learn_weights
from kamino.sampling.soft.weights import FoundWeights, find_weights
from kamino.schema import Codec, CodedTable


def has_soft(rules: Constraints) -> bool:
    """Whether a constraint has a weight to be found."""
    return model_share(rules) < 1


def rates_noise(rules: Constraints, mu_squared: float) -> float:
    """The noise multiplier of the rates of soft constraints, if so much of the budget is left; 0 if there are none."""
    share = 1 - model_share(rules)
    return multiplier_for(mu_squared * share) if share else 0.0


def weights_noise(rules: Constraints, settings: Settings, gate: Gate) -> float:
    """The noise multiplier of what is measured for weights, planned before the model is fitted.

    The paper's parameter search finds its own, together with those of the neural model.
    """
    if settings.weights is WeightMode.MATCHING:
        return rates_noise(rules, gate.gaussian_left())
    return paper_noise(rules, gate) if settings.backend is Backend.MARGINAL else 0.0


def weigh(
    coded: CodedTable,
    codec: Codec,
    plan: SamplingPlan,
    rules: Constraints,
    model: SavedModel,
    gate: Gate,
    settings: Settings,
    *,
    noise_multiplier: float,
) -> FoundWeights:
    """Measure the table's violations of soft constraints, and find the weights that make the output do the same."""
    if not has_soft(rules):
        return FoundWeights()
    rng = np.random.default_rng(settings.seed)
    if settings.weights is WeightMode.MATCHING:
        rates = release_rates(coded, codec, rules, gate, model=model, noise_multiplier=noise_multiplier)
        return find_weights(plan, model, codec, rates, rng)
    if isinstance(model, NeuralModel) and model.parameters is not None:
        found = model.parameters
        sample_rows, noise_multiplier, rate = found.weight_rows, found.weight_noise, None
        num_rows = float(found.num_rows)
    else:
        num_rows, rate = model.num_rows, SAMPLING_RATE
        sample_rows = max(2, math.ceil(num_rows * rate))
    return paper_weights(
        coded,
        codec,
        plan,
        rules,
        gate,
        sample_rows=sample_rows,
        noise_multiplier=noise_multiplier,
        num_rows=num_rows,
        sampling_rate=rate,
        rng=rng,
    )


def paper_weights(
    coded: CodedTable,
    codec: Codec,
    plan: SamplingPlan,
    rules: Iterable[DenialConstraint],
    gate: Gate,
    *,
    sample_rows: int,
    noise_multiplier: float,
    num_rows: float,
    rng: np.random.Generator,
    sampling_rate: float | None = None,
) -> FoundWeights:
    """Release the violation matrix of a sample (see `release_violation_matrix`), and learn the weights from it.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_paper_weights]
    """
    matrix = release_violation_matrix(
        coded,
        codec,
        rules,
        gate,
        sample_rows=sample_rows,
        noise_multiplier=noise_multiplier,
        num_rows=num_rows,
        sampling_rate=sampling_rate,
    )
    return learn_weights(matrix, plan, rng)
