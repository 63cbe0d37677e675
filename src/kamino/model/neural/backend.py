"""Fitting the neural backend: units, parameters within the budget, histograms, then one sub-model after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kamino.errors import ModelError
from kamino.model.marginal.order import order_attributes
from kamino.model.neural.extra import require
from kamino.model.neural.histogram import release_histogram
from kamino.model.neural.layout import (
    Array,
    Layout,
    context_arrays,
    embeddings_of,
    empty_embeddings,
    head,
    with_unit,
)
from kamino.model.neural.model import NeuralModel, SubModel
from kamino.model.neural.search import Parameters, Ranges, search_parameters
from kamino.model.neural.training import Optimizer, SubModelDescent, target_arrays
from kamino.model.neural.units import Kind, Unit, UnitLimits, plan_units
from kamino.model.protocol import ModelAttribute
from kamino.privacy import Budget, Events, Gate
from kamino.privacy.mechanisms.gradients import DescentPlan
from kamino.schema import CodedTable


@dataclass(frozen=True, kw_only=True)
class NeuralSettings:
    """How the backend works.

    dim, hidden: the length of embeddings, and of the hidden layer that embeds a number. num_cells: the cells in which a
    numeric attribute is released (the paper's q) and sampled. num_rows: the number of rows if it is public; otherwise
    it is released with noise of `count_noise` rows. parameters: what Algorithm 2 is run with; searched by default.
    seed: of the first random parameters, which are public.
    """

    dim: int = 16
    hidden: int = 16
    num_cells: int = 64
    limits: UnitLimits = field(default_factory=UnitLimits)
    optimizer: Optimizer = field(default_factory=Optimizer)
    ranges: Ranges = field(default_factory=Ranges)
    parameters: Parameters | None = None
    num_rows: int | None = None
    count_noise: float = 100.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Step:
    """One sub-model to be fitted: its unit and the places of the units before it that it depends on."""

    unit: Unit
    context: tuple[int, ...]


def plan_steps(attributes: Sequence[ModelAttribute], limits: UnitLimits) -> tuple[Step, ...]:
    """Return the sub-models of a sequence; one without context is a histogram. Touches no data.

    Wide units are sampled without context, and their tables of embeddings would be as large: they are in no context.
    """
    units = plan_units(attributes, limits)
    steps = []
    for place, unit in enumerate(units):
        before = tuple(i for i in range(place) if units[i].kind is not Kind.WIDE)
        steps.append(Step(unit=unit, context=() if unit.kind is Kind.WIDE else before))
    return tuple(steps)


def plan_parameters(
    budget: Budget, steps: Sequence[Step], settings: NeuralSettings, *, num_rows: int, other: Events = ()
) -> Parameters:
    """Return the parameters of a run by Algorithm 6, or the given ones. Touches no data."""
    if settings.parameters is not None:
        return settings.parameters
    return search_parameters(
        budget,
        num_rows=num_rows,
        num_models=sum(1 for step in steps if step.context),
        num_histograms=sum(1 for step in steps if not step.context),
        first_size=steps[0].unit.size if steps[0].unit.kind is not Kind.NUMERIC else settings.num_cells,
        ranges=settings.ranges,
        other=other,
    )


def fit_neural(
    coded: CodedTable,
    attributes: Sequence[ModelAttribute],
    gate: Gate,
    *,
    sequence: Sequence[str] | None = None,
    settings: NeuralSettings | None = None,
    reserved: Events = (),
    jobs: int = 1,
    cluster: str | None = None,
) -> NeuralModel:
    """Fit the model to a private table, spending what is left of the gate's budget as Algorithm 6 finds.

    `reserved` are events that will be charged later, such as the rates of soft constraints: their price is left over.
    With `jobs` above 1 sub-models are trained side by side, and embeddings are not reused: in processes, or on the
    Dask cluster whose scheduler is at `cluster`, which then sees private rows.

    Guarantees:
        The result depends on private rows only through `gate`.  [test_replay_passes_for_the_neural_backend]
        What is spent is at most the budget.  [test_neural_fit_stays_within_the_budget]
    """
    require("jax", "optax")
    settings = settings or NeuralSettings()
    chain = plan_steps(_ordered(attributes, sequence), settings.limits)
    num_rows = settings.num_rows
    if num_rows is None:
        num_rows = max(1, gate.release_row_count(coded.num_rows, noise_multiplier=settings.count_noise))
    spent = tuple(event for entry in gate.ledger.entries for event in entry.events)
    parameters = plan_parameters(gate.budget, chain, settings, num_rows=num_rows, other=(*spent, *reserved))
    fit = Fit(coded=coded, gate=gate, chain=chain, settings=settings, parameters=parameters)
    if jobs > 1:
        from kamino.model.neural.parallel import train_side_by_side

        found = train_side_by_side(fit, jobs=jobs, cluster=cluster)
    else:
        found = train_in_sequence(fit)
    return NeuralModel(sub_models=found, num_rows=float(num_rows), num_cells=settings.num_cells)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Fit:
    """What all sub-models of one fit share. It holds private rows and does not outlive the fit."""

    coded: CodedTable
    gate: Gate
    chain: tuple[Step, ...]
    settings: NeuralSettings
    parameters: Parameters

    def histogram(self, step: Step) -> SubModel:
        """Release a unit without context."""
        probability = release_histogram(
            self.gate,
            step.unit,
            step.unit.joint(self.coded.columns),
            num_cells=self.settings.num_cells,
            noise_multiplier=self.parameters.histogram_noise,
        )
        return SubModel(unit=step.unit, probability=probability)

    def rows(self, step: Step) -> tuple[NDArray[np.generic], ...]:
        """Return the private rows of one sub-model as the network takes them."""
        units = [self.chain[i].unit for i in step.context]
        context = context_arrays(units, self.coded.columns, self.coded.num_rows)
        return (*context, *target_arrays(step.unit, step.unit.joint(self.coded.columns)))

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


def train_in_sequence(fit: Fit) -> tuple[SubModel, ...]:
    """Fit one sub-model after the other; each begins with the embeddings and the attention of the one before."""
    rng = np.random.default_rng(fit.settings.seed)
    embeddings = empty_embeddings(fit.settings.dim, fit.settings.hidden)
    found: list[SubModel] = []
    for step in fit.chain:
        learned = None
        if not step.context:
            found.append(fit.histogram(step))
        else:
            first = {**embeddings, **head(step.unit, fit.settings.dim, rng)}
            descent, plan = fit.descent(step, first)
            params = descent.result(fit.gate.release_descent(fit.rows(step), descent, plan))
            found.append(SubModel(unit=step.unit, context=step.context, params=params))
            embeddings = embeddings_of(params)
            learned = params["out"] if step.unit.kind is Kind.CATEGORICAL else None
        if step.unit.kind is not Kind.WIDE:
            embeddings = with_unit(embeddings, step.unit, rng, learned)
    return tuple(found)


def _ordered(attributes: Sequence[ModelAttribute], sequence: Sequence[str] | None) -> list[ModelAttribute]:
    by_name = {attribute.name: attribute for attribute in attributes}
    if not attributes or len(by_name) != len(attributes):
        raise ModelError("a model needs at least one attribute, and no name twice.")
    if sequence is None:
        sequence = order_attributes(attributes)
    if sorted(sequence) != sorted(by_name):
        raise ModelError("the sequence must name every attribute once.")
    return [by_name[name] for name in sequence]
