"""The tuple model of a run, by the backend that was chosen, and what is left for soft constraints."""

from __future__ import annotations

from collections.abc import Sequence

from kamino.constraints import Constraints
from kamino.engine import MemoryMeasurer
from kamino.engine.rates import model_share
from kamino.model import SavedModel, fit_marginal
from kamino.pipeline.hints import hints_of, model_attributes
from kamino.pipeline.settings import Backend, Settings, WeightMode
from kamino.pipeline.stages import Progress, Stage
from kamino.privacy import Events, Gate, GaussianEvent, multiplier_for
from kamino.schema import Codec, CodedTable


def fit_model(
    coded: CodedTable,
    codec: Codec,
    rules: Constraints,
    sequence: Sequence[str] | None,
    settings: Settings,
    gate: Gate,
    *,
    rates_noise: float,
    progress: Progress,
) -> SavedModel:
    """Fit the model along `sequence`, and leave over what the weights of soft constraints will cost.

    `rates_noise` is the noise multiplier that the rates of soft constraints will have.

    Guarantees:
        The model depends on the table through the gate only.  [test_replay_passes_for_the_paper_preset]
    """
    if settings.backend is Backend.NEURAL:
        return _fit_neural(coded, codec, rules, sequence, settings, gate, rates_noise=rates_noise, progress=progress)
    return fit_marginal(
        MemoryMeasurer(coded, codec.sizes, gate),
        model_attributes(codec),
        noise_multiplier=multiplier_for(gate.gaussian_left() * model_share(rules)),
        sequence=sequence,
        hints=hints_of(rules, codec),
    )


def _fit_neural(
    coded: CodedTable,
    codec: Codec,
    rules: Constraints,
    sequence: Sequence[str] | None,
    settings: Settings,
    gate: Gate,
    *,
    rates_noise: float,
    progress: Progress,
) -> SavedModel:
    from kamino.model.neural import fit_neural

    soft = model_share(rules) < 1
    by_matching = settings.weights is WeightMode.MATCHING
    return fit_neural(
        coded,
        model_attributes(codec),
        gate,
        sequence=sequence,
        reserved=rates_events(rates_noise) if soft and by_matching else (),
        learn_weights=soft and not by_matching,
        jobs=settings.jobs,
        cluster=settings.cluster,
        progress=lambda done, total, name: progress(Stage.FIT, done, total),
    )


def rates_events(noise_multiplier: float) -> Events:
    """What the rates of soft constraints will cost, under either relation; nothing without noise."""
    if noise_multiplier == 0:
        return ()
    return ((GaussianEvent(noise_multiplier=noise_multiplier, replace_multiplier=noise_multiplier), 1),)
