"""Weights of soft constraints: what is measured of the table for them, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.tree import Kind
from kamino.engine.paper_weights import SAMPLING_RATE, paper_noise, release_violation_matrix
from kamino.engine.rates import model_share, release_rates
from kamino.model import SavedModel
from kamino.pipeline.settings import Backend, Settings, WeightMode
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.private import PrivateCodes
from kamino.privacy.schedule import PlannedRelease, Rule, Schedule
from kamino.sampling import Sampling, SamplingPlan
from kamino.sampling.draw_options import DrawIds
from kamino.sampling.soft.algorithm5 import learn_weights
from kamino.sampling.soft.weights import FoundWeights, find_weights
from kamino.schema import Codec

if TYPE_CHECKING:
    from kamino.model.neural import Parameters

# The part of the schedule.
WEIGHTS = "weights"


def has_soft(rules: Constraints) -> bool:
    """Whether a constraint has a weight to be found."""
    return model_share(rules) < 1


def rates_noise(rules: Constraints, mu_squared: float) -> float:
    """The noise multiplier of the rates of soft constraints, if so much of the budget is left; 0 if there are none."""
    share = 1 - model_share(rules)
    return multiplier_for(mu_squared * share) if share else 0.0


def model_noise(rules: Constraints, gate: Gate) -> float:
    """The noise multiplier of one release that would cost what is left for the model, planned before it is fitted."""
    return multiplier_for(gate.gaussian_left() * model_share(rules))


def planned_weights(
    rules: Constraints, settings: Settings, noise: float, *, parameters: Parameters | None = None
) -> Schedule:
    """The release that the weights of soft constraints follow from, if there are any.

    `noise` is as `weights_noise` says; the paper's search finds it together with the `parameters` of a neural model.
    """
    soft = tuple(dict.fromkeys(c for c in rules if c.strength.kind is Kind.SOFT))
    if not soft:
        return Schedule()
    names = tuple(dict.fromkeys(name for c in soft for name in c.attributes))
    if settings.weights is WeightMode.MATCHING:
        planned = PlannedRelease(
            part=WEIGHTS,
            kind="vector",
            what=f"violation rates of {len(soft)} soft constraints",
            attributes=names,
            noise_multiplier=noise,
            most_cells=len(soft),
        )
        return Schedule(releases=(planned,))
    planned = PlannedRelease(
        part=WEIGHTS,
        kind="sample",
        what=f"violations of {len(soft)} soft constraints in a sample",
        attributes=names,
        noise_multiplier=noise,
        sampling_rate=SAMPLING_RATE,
    )
    if settings.backend is Backend.NEURAL:
        planned = _searched(planned, len(soft), settings, parameters)
    return Schedule(releases=(planned,))


def _searched(planned: PlannedRelease, columns: int, settings: Settings, found: Parameters | None) -> PlannedRelease:
    """The paper's release with the noise that was found for it; not known yet without parameters."""
    if found is None:
        return replace(planned, rule=Rule.SEARCHED, noise_multiplier=None, sampling_rate=None)
    return replace(
        planned,
        noise_multiplier=found.weight_noise if settings.budget.is_private else 0.0,
        sampling_rate=min(1.0, found.weight_rows / max(found.num_rows, 1.0)),
        most_cells=max(2, found.weight_rows) * columns,
    )


def weights_noise(rules: Constraints, settings: Settings, gate: Gate) -> float:
    """The noise multiplier of what is measured for weights, planned before the model is fitted.

    The paper's parameter search finds its own, together with those of the neural model.
    """
    if settings.weights is WeightMode.MATCHING:
        return rates_noise(rules, gate.gaussian_left())
    return paper_noise(rules, gate) if settings.backend is Backend.MARGINAL else 0.0


def weigh(
    codes: PrivateCodes,
    codec: Codec,
    plan: SamplingPlan,
    rules: Constraints,
    model: SavedModel,
    gate: Gate,
    settings: Settings,
    *,
    noise_multiplier: float,
    draw_ids: DrawIds | None = None,
) -> FoundWeights:
    """Measure the table's violations of soft constraints, and find the weights that make the output do the same."""
    if not has_soft(rules):
        return FoundWeights()
    rng = np.random.default_rng(settings.chance)
    if settings.weights is WeightMode.MATCHING:
        rates = release_rates(codes, codec, rules, gate, model=model, noise_multiplier=noise_multiplier)
        if settings.sampling in (Sampling.ROW_BY_ROW, Sampling.PRINTED):
            sweeps, sampling = settings.sweeps, settings.sampling
            return find_weights(plan, model, codec, rates, rng, sweeps=sweeps, draw_ids=draw_ids, sampling=sampling)
        return find_weights(plan, model, codec, rates, rng, draw_ids=draw_ids)
    from kamino.model.neural import NeuralModel  # many modules: only for the paper's weights

    if isinstance(model, NeuralModel) and model.parameters is not None:
        found = model.parameters
        sample_rows, noise_multiplier, rate = found.weight_rows, found.weight_noise, None
        num_rows = float(found.num_rows)
    else:
        num_rows, rate = model.num_rows, SAMPLING_RATE
        sample_rows = max(2, math.ceil(num_rows * rate))
    return paper_weights(
        codes,
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
    codes: PrivateCodes,
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
        codes,
        codec,
        rules,
        gate,
        sample_rows=sample_rows,
        noise_multiplier=noise_multiplier,
        num_rows=num_rows,
        sampling_rate=sampling_rate,
    )
    return learn_weights(matrix, plan, rng)
