"""Fitting the neural backend: units, parameters within the budget, histograms, then one sub-model after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kamino.errors import ModelError
from kamino.model.neural.extra import require
from kamino.model.neural.label_histograms import cells_of
from kamino.model.neural.measuring import Described, NeuralMeasurer
from kamino.model.neural.model import NeuralModel
from kamino.model.neural.networks.layout import (
    Array,
    Layout,
    embeddings_of,
    empty_embeddings,
    head,
    with_unit,
)
from kamino.model.neural.networks.levels import (
    LevelDescent,
    find_levels,
    first_parameters,
    level_shares,
    log_shares,
    with_levels,
)
from kamino.model.neural.networks.parallel import require_workers, train_side_by_side
from kamino.model.neural.networks.training import SubModelDescent
from kamino.model.neural.neural_parameters import Parameters
from kamino.model.neural.neural_schedule import NeuralPlan, Step, in_sequence, plan_fit, plan_steps
from kamino.model.neural.neural_settings import Networks, NeuralSettings
from kamino.model.neural.shifting import calibrate
from kamino.model.neural.sub_model import SubModel
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import FloatArray, IntArray, ModelAttribute
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
    """Fit the model to a private table, with parameters that the settings' search finds within its gate's budget.

    `reserved` are events that will be charged later, such as the rates of soft constraints: their price is left over.
    With `learn_weights`, so is that of Algorithm 5, whose parameters are then searched together with the others: the
    model's `parameters` say with which rows and noise to run it, and their `weight_events` what it will be charged.
    With `jobs` above 1 sub-models are trained side by side, and embeddings are not reused: in processes, or on the
    Dask cluster (Ray's, for `ray://...`) whose address is `cluster`, which then sees private rows.

    Guarantees:
        The result depends on private rows only through the gate.  [test_replay_passes_for_the_neural_backend]
        What is spent is at most the budget.  [test_neural_fit_stays_within_the_budget]
        Workers that cannot be had are told before anything is charged.  [test_missing_workers_cost_nothing]
    """
    settings = settings or NeuralSettings()
    if settings.networks is Networks.PRINTED:
        require("jax", "optax")
    gate = measurer.gate
    # Refuse before anything is charged.
    _refuse_uncounted(settings, plan_steps(in_sequence(attributes, sequence), settings.limits))
    if jobs > 1:
        require_workers(gate, cluster)
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

    def histogram_of(self, place: int, counted: Mapping[int, FloatArray]) -> SubModel:
        """Return the sub-model of a unit without context: its histogram, with levels where networks are over them."""
        unit = self.chain[place].unit
        over_levels = self.settings.networks is Networks.LEVELS and unit.kind is not Kind.WIDE
        labels = self.levels(unit, counted[place]) if over_levels else None
        return SubModel(unit=unit, probability=counted[place], labels=labels)

    def levels(self, unit: Unit, distribution: FloatArray) -> IntArray:
        """Return the levels of a unit's cells, found from its histogram."""
        null = unit.attributes[0].null_code
        cells = cells_of(unit, self.settings.num_cells)
        apart = int(cells.map(np.array([null]))[0]) if unit.ordered and null is not None else None
        return find_levels(distribution, ordered=unit.ordered, most=self.settings.levels, null=apart)

    def describe(
        self,
        place: int,
        context: tuple[SubModel, ...],
        embeddings: Mapping[str, Array] | None,
        counted: Mapping[int, FloatArray],
        rng: np.random.Generator,
    ) -> Described:
        """Return one sub-model to be trained. It begins with `embeddings`, or with random ones."""
        step, chosen, settings = self.chain[place], self.parameters, self.settings
        labels = None
        descent: SubModelDescent | LevelDescent
        if settings.networks is Networks.LEVELS:
            labels = self.levels(step.unit, counted[place])
            shares = level_shares(counted[place], labels)
            sizes = [each.num_levels for each in context]
            first = first_parameters(embeddings, sizes, len(shares), settings.dim, rng)
            layout = Layout.of(first)
            descent = LevelDescent(
                layout=layout,
                first=layout.pack(first),
                sections=tuple(np.cumsum([0, *sizes]).tolist()),
                offset=log_shares(shares),
                optimizer=settings.optimizer,
                steps=chosen.steps,
                batch_size=chosen.batch_size,
            )
        else:
            first = {**(embeddings or self._random(context, rng)), **head(step.unit, settings.dim, rng)}
            layout = Layout.of(first)
            descent = SubModelDescent(
                unit=step.unit,
                layout=layout,
                first=layout.pack(first),
                optimizer=settings.optimizer,
                steps=chosen.steps,
                batch_size=chosen.batch_size,
            )
        return Described(
            unit=step.unit,
            context=context,
            num_cells=settings.num_cells,
            labels=labels,
            descent=descent,
            plan=self._descent_plan(step, layout.size),
        )

    def _random(self, context: tuple[SubModel, ...], rng: np.random.Generator) -> dict[str, Array]:
        """Return random embeddings of the paper's networks."""
        embeddings = empty_embeddings(self.settings.dim, self.settings.hidden)
        for each in context:
            embeddings = with_unit(embeddings, each.unit, rng)
        return embeddings

    def _descent_plan(self, step: Step, size: int) -> DescentPlan:
        """Return what is charged for one sub-model."""
        chosen = self.parameters
        return DescentPlan(
            what=f"gradients of the sub-model of {step.unit.name}",
            attributes=(*(name for i in step.context for name in self.chain[i].unit.names), *step.unit.names),
            noise_multiplier=chosen.gradient_noise,
            sampling_rate=chosen.sampling_rate,
            steps=chosen.steps,
            clip_norm=chosen.clip_norm,
            batch_size=chosen.batch_size,
            num_parameters=size,
            factored=self.settings.networks is Networks.LEVELS,
        )

    def trained(
        self, place: int, described: Described, counted: Mapping[int, FloatArray], params: dict[str, Array]
    ) -> SubModel:
        """Return the sub-model with the parameters that it was trained to."""
        step = self.chain[place]
        if described.labels is None:
            return SubModel(unit=step.unit, context=step.context, params=params)
        return SubModel(
            unit=step.unit,
            context=step.context,
            params=params,
            probability=counted[place],
            labels=described.labels,
        )


def train_in_sequence(fit: Fit, counted: Mapping[int, FloatArray]) -> tuple[SubModel, ...]:
    """Fit one sub-model after the other; each begins with the embeddings and the attention of the one before."""
    rng = np.random.default_rng(fit.settings.seed)
    over_levels = fit.settings.networks is Networks.LEVELS
    embeddings: dict[str, Array] | None = None
    if not over_levels:
        embeddings = empty_embeddings(fit.settings.dim, fit.settings.hidden)
    found: list[SubModel] = []
    for place, step in enumerate(fit.chain):
        if step.context:
            context = tuple(found[i] for i in step.context)
            described = fit.describe(place, context, embeddings, counted, rng)
            params = fit.measurer.train(described)
            found.append(fit.trained(place, described, counted, params))
            embeddings = with_levels(params) if over_levels else _with_own(params, step.unit, rng)
        else:
            found.append(fit.histogram_of(place, counted))
            if embeddings is not None and step.unit.kind is not Kind.WIDE and not over_levels:
                embeddings = with_unit(embeddings, step.unit, rng)
        fit.tell(len(found), step)
    return tuple(found)


def _with_own(params: Mapping[str, Array], unit: Unit, rng: np.random.Generator) -> dict[str, Array]:
    """Return the embeddings of the paper's networks with one more unit, begun by what its own sub-model learned."""
    learned = params["out"] if unit.kind is Kind.CATEGORICAL else None
    return with_unit(embeddings_of(params), unit, rng, learned)


def _refuse_uncounted(settings: NeuralSettings, steps: Sequence[Step]) -> None:
    uncounted = [step.unit.name for step in steps if not step.counted]
    if settings.networks is Networks.LEVELS and uncounted:
        raise ModelError(
            f"networks over levels need the histogram of every unit, and {uncounted[0]!r} has none; set "
            "UnitLimits(counted=0), or take the paper's networks."
        )


def _silent(done: int, total: int, name: str) -> None:
    """Tell nobody."""
