"""The tuple model of a run, by the backend that was chosen, and what is left for soft constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kamino.constraints import Constraints
from kamino.engine import MemoryMeasurer, StreamedMeasurer
from kamino.engine.rates import model_share
from kamino.model import SavedModel, fit_planned
from kamino.pipeline.plan.hints import model_attributes
from kamino.pipeline.settings import Settings, Training, WeightMode
from kamino.pipeline.stages import Progress, Stage
from kamino.privacy import Events, Gate, GaussianEvent
from kamino.privacy.private import PrivateCodes
from kamino.schema import Codec

if TYPE_CHECKING:
    from kamino.model.neural import NeuralSettings
    from kamino.pipeline.plan.run_plan import RunPlan


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


def neural_settings(settings: Settings) -> NeuralSettings:
    """How the neural backend works in a run: the same in its plan and in its fit."""
    from kamino.model.neural import NeuralSettings

    return NeuralSettings.printed() if settings.training is Training.PRINTED else NeuralSettings()


def fit_model(codes: PrivateCodes, codec: Codec, plan: RunPlan, gate: Gate, *, progress: Progress) -> SavedModel:
    """Fit the model as planned, and leave over what the weights of soft constraints will cost.

    Guarantees:
        The model depends on the table through the gate only.  [test_replay_passes_for_the_paper_preset]
    """
    settings = plan.settings
    if plan.marginal is not None:
        engine = StreamedMeasurer if codes.is_streamed else MemoryMeasurer
        return fit_planned(engine(codes, codec.sizes, gate), plan.marginal)
    from kamino.engine import NeuralRows  # many modules: only where networks are trained
    from kamino.model.neural import fit_neural

    return fit_neural(
        NeuralRows(codes, gate),
        model_attributes(codec),
        sequence=plan.sequence,
        settings=neural_settings(settings),
        reserved=plan.model_plan.left_over.reserved,
        learn_weights=plan.model_plan.left_over.learn_weights,
        # A cluster is given to be used: one job at a time would leave it out.
        jobs=settings.jobs if settings.cluster is None else max(2, settings.jobs),
        cluster=settings.cluster,
        progress=lambda done, total, name: progress(Stage.FIT, done, total),
    )
