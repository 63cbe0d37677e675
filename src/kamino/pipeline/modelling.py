"""The tuple model of a run, by the backend that was chosen, and what is left for soft constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kamino.constraints import Constraints
from kamino.engine import MemoryMeasurer
from kamino.engine.rates import model_share
from kamino.model import SavedModel, fit_marginal
from kamino.pipeline.hints import hints_of, model_attributes
from kamino.pipeline.settings import Backend, Settings, WeightMode
from kamino.pipeline.stages import Progress, Stage
from kamino.privacy import Events, Gate, GaussianEvent, multiplier_for
from kamino.schema import Codec, CodedTable


@dataclass(frozen=True, kw_only=True)
class LeftOver:
    """What a neural fit leaves for the weights of soft constraints: planned releases, or the paper's own, searched."""

    reserved: Events = ()
    learn_weights: bool = False


def left_over(rules: Constraints, settings: Settings, *, rates_noise: float) -> LeftOver:
    """Say what the weights of soft constraints will need after a neural fit; nothing where there are none.

    `rates_noise` is the noise multiplier that their rates will have, 0 for no noise.
    """
    if model_share(rules) == 1:
        return LeftOver()
    if settings.weights is WeightMode.PAPER:
        return LeftOver(learn_weights=True)
    if rates_noise == 0:
        return LeftOver()
    return LeftOver(reserved=((GaussianEvent(noise_multiplier=rates_noise, replace_multiplier=rates_noise), 1),))


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

    Guarantees:
        The model depends on the table through the gate only.  [test_replay_passes_for_the_paper_preset]
    """
    attributes = model_attributes(codec)
    if settings.backend is Backend.MARGINAL:
        return fit_marginal(
            MemoryMeasurer(coded, codec.sizes, gate),
            attributes,
            noise_multiplier=multiplier_for(gate.gaussian_left() * model_share(rules)),
            sequence=sequence,
            hints=hints_of(rules, codec),
        )
    from kamino.model.neural import fit_neural

    later = left_over(rules, settings, rates_noise=rates_noise)
    return fit_neural(
        coded,
        attributes,
        gate,
        sequence=sequence,
        reserved=later.reserved,
        learn_weights=later.learn_weights,
        # A cluster is given to be used: one job at a time would leave it out.
        jobs=settings.jobs if settings.cluster is None else max(2, settings.jobs),
        cluster=settings.cluster,
        progress=lambda done, total, name: progress(Stage.FIT, done, total),
    )
