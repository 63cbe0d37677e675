"""Fitting the neural backend: units, parameters within the budget, histograms, then one sub-model after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kamino.model.neural.extra import require
from kamino.model.neural.measuring import NeuralMeasurer
from kamino.model.neural.model import NeuralModel, SubModel
from kamino.model.neural.networks.layout import (
    Array,
    Layout,
    embeddings_of,
    empty_embeddings,
    head,
    with_unit,
)
from kamino.model.neural.networks.training import SubModelDescent
from kamino.model.neural.neural_schedule import NeuralPlan, Step, in_sequence, plan_fit
from kamino.model.neural.neural_settings import NeuralSettings
from kamino.model.neural.search import Parameters
from kamino.model.neural.shifting import calibrate
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import FloatArray, ModelAttribute
from kamino.privacy import Events
from kamino.privacy.mechanisms.gradients import DescentPlan

#: Told of each unit that is done: how many are, of how many, and its name.
Progress: TypeAlias = Callable[[int, int, str], None]


def fit_neural(
    measurer: NeuralMeasurer,
    attributes: Sequence[ModelAttribute],
    *,
    sequence: Sequence[str] | None = None,
    settings: NeuralSettings | None = None,
    reserved: Events = (),
    learn_weights: bool = False,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> NeuralModel:
    """Fit the model to a private table, spending what its gate's budget has left as Algorithm 6 finds.

    `reserved` are events that will be charged later, such as the rates of soft constraints: their price is left over.
    With `learn_weights`, so is that of Algorithm 5, whose parameters are then searched together with the others: the
    model's `parameters` say with which rows and noise to run it, and its `weight_events` what may be charged for it.
    With `jobs` above 1 sub-models are trained side by side, and embeddings are not reused: in processes, or on the
    Dask cluster (Ray's, for `ray://...`) whose address is `cluster`, which then sees private rows.

    Guarantees:
        The result depends on private rows only through the gate.  [test_replay_passes_for_the_neural_backend]
        What is spent is at most the budget.  [test_neural_fit_stays_within_the_budget]
    """
    require("jax", "optax")
    settings = settings or NeuralSettings()
    gate = measurer.gate
    in_sequence(attributes, sequence)  # refuse before anything is charged
    num_rows = settings.num_rows
    if num_rows is None:
        num_rows = max(1, measurer.count_rows(noise_multiplier=settings.count_noise))
    # What follows is planned from what was released before, so that part is priced by itself.
    gate.ledger.seal()
    plan = plan_fit(
        attributes,
        gate.ledger,
        num_rows=num_rows,
        sequence=sequence,
        settings=settings,
        reserved=reserved,
        learn=learn_weights,
    )
    fit = Fit(measurer=measurer, plan=plan, settings=settings, progress=progress or _silent)
    counted = {place: fit.histogram(step) for place, step in enumerate(plan.steps) if step.counted}
    if jobs > 1:
        from kamino.model.neural.networks.parallel import train_side_by_side

        found = train_side_by_side(fit, counted, jobs=jobs, cluster=cluster)
    else:
        found = train_in_sequence(fit, counted)
    found = calibrate(
        found,
        {place: target for place, target in counted.items() if plan.steps[place].context},
        num_cells=settings.num_cells,
        rng=np.random.default_rng(settings.seed),
    )
    return NeuralModel(
        sub_models=found, num_rows=float(num_rows), num_cells=settings.num_cells, parameters=plan.parameters
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Fit:
    """What all sub-models of one fit share. Private rows are behind the measurer."""

    measurer: NeuralMeasurer
    plan: NeuralPlan
    settings: NeuralSettings
    progress: Progress

    @property
    def chain(self) -> tuple[Step, ...]:
        """The sub-models, in the order of the sequence."""
        return self.plan.steps

    @property
    def parameters(self) -> Parameters:
        """What Algorithm 2 is run with."""
        return self.plan.parameters

    def tell(self, done: int, step: Step) -> None:
        """Say that one more unit is done."""
        self.progress(done, len(self.chain), step.unit.name)

    def histogram(self, step: Step) -> FloatArray:
        """Release the histogram of a unit."""
        return self.measurer.histogram(
            step.unit,
            num_cells=self.settings.num_cells,
            noise_multiplier=self.parameters.histogram_noise,
        )

    def context(self, step: Step) -> list[Unit]:
        """Return the units that a sub-model is given."""
        return [self.chain[i].unit for i in step.context]

    def descent(self, step: Step, first: dict[str, Array]) -> tuple[SubModelDescent, DescentPlan]:
        """Return what the mechanism is told of one sub-model."""
        layout, chosen = Layout.of(first), self.parameters
        descent = SubModelDescent(
            unit=step.unit,
            layout=layout,
            first=layout.pack(first),
            optimizer=self.settings.optimizer,
            steps=chosen.steps,
            batch_size=chosen.batch_size,
        )
        plan = DescentPlan(
            what=f"gradients of the sub-model of {step.unit.name}",
            attributes=(*(name for i in step.context for name in self.chain[i].unit.names), *step.unit.names),
            noise_multiplier=chosen.gradient_noise,
            sampling_rate=chosen.sampling_rate,
            steps=chosen.steps,
            clip_norm=chosen.clip_norm,
            batch_size=chosen.batch_size,
            num_parameters=layout.size,
        )
        return descent, plan


def train_in_sequence(fit: Fit, counted: Mapping[int, FloatArray]) -> tuple[SubModel, ...]:
    """Fit one sub-model after the other; each begins with the embeddings and the attention of the one before."""
    rng = np.random.default_rng(fit.settings.seed)
    embeddings = empty_embeddings(fit.settings.dim, fit.settings.hidden)
    found: list[SubModel] = []
    for place, step in enumerate(fit.chain):
        learned = None
        if not step.context:
            found.append(SubModel(unit=step.unit, probability=counted[place]))
        else:
            first = {**embeddings, **head(step.unit, fit.settings.dim, rng)}
            descent, plan = fit.descent(step, first)
            params = fit.measurer.train(fit.context(step), step.unit, descent, plan)
            found.append(SubModel(unit=step.unit, context=step.context, params=params))
            embeddings = embeddings_of(params)
            learned = params["out"] if step.unit.kind is Kind.CATEGORICAL else None
        if step.unit.kind is not Kind.WIDE:
            embeddings = with_unit(embeddings, step.unit, rng, learned)
        fit.tell(len(found), step)
    return tuple(found)


def _silent(done: int, total: int, name: str) -> None:
    """Tell nobody."""
