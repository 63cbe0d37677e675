"""What a fit will do, told before it does it: units, sub-models, parameters and their price. Reads no table.

>>> from kamino.privacy import Budget
>>> attributes = [ModelAttribute(name=name, size=size) for name, size in {"a": 2, "b": 90, "zip": 9_000}.items()]
>>> plan = describe_plan(attributes, Budget(epsilon=1.0, delta=1e-6), sequence=("a", "b", "zip"), num_rows=20_000)
>>> [(step.unit.name, step.context) for step in plan.steps]
[('a', ()), ('b', (0,)), ('zip', ())]
>>> plan.epsilons[Neighbours.ADD_REMOVE] <= 1.0
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kamino.errors import ModelError
from kamino.model.marginal.order import order_attributes
from kamino.model.neural.label_histograms import cells_of
from kamino.model.neural.neural_parameters import Parameters
from kamino.model.neural.neural_settings import NeuralSettings
from kamino.model.neural.search import search_parameters
from kamino.model.neural.units import Kind, Unit, UnitLimits, plan_units
from kamino.model.protocol import ModelAttribute
from kamino.privacy import Budget, Entry, Events, GaussianEvent, Ledger, Neighbours, epsilon
from kamino.privacy.ledger import Sealed
from kamino.privacy.schedule import PlannedRelease, Rule, Schedule
from kamino.privacy.sensitivity import Sensitivity


@dataclass(frozen=True, kw_only=True)
class Step:
    """One sub-model to be fitted: its unit and the places of the units before it that it depends on.

    counted: whether the unit's histogram is released; always where there is no context.
    """

    unit: Unit
    context: tuple[int, ...]
    counted: bool

    def describe(self) -> str:
        """Say what is done for the unit."""
        if not self.context:
            how = "histogram"
        else:
            how = f"network over {len(self.context)} unit{'s' if len(self.context) > 1 else ''}"
            how += ", and histogram" if self.counted else ""
        return f"{self.unit.name:40} {self.unit.kind.value:12} {self.unit.size:>12,} values  {how}"


@dataclass(frozen=True, kw_only=True)
class NeuralPlan:
    """The sub-models of a fit, what Algorithm 2 (and 5) is run with, and the price. Every field may be published.

    reserved: what is left over for later. sealed: what was released before, by which the fit is planned, and which is
    therefore priced by itself. `epsilons` are of everything together.
    """

    steps: tuple[Step, ...]
    parameters: Parameters
    budget: Budget
    reserved: Events = ()
    sealed: tuple[Sealed, ...] = ()

    @property
    def epsilons(self) -> Mapping[Neighbours, float]:
        """The epsilon of the whole run under each relation."""
        if not self.budget.is_private:
            return dict.fromkeys(Neighbours, math.inf)
        events = (*self.reserved, *self.parameters.events(self.budget.neighbours))
        delta = self.budget.delta - sum(part.delta for part in self.sealed)
        return {
            each: sum(part.epsilon[each] for part in self.sealed) + epsilon(events, delta=delta, neighbours=each)
            for each in Neighbours
        }

    def describe(self) -> str:
        """Say the plan, one unit or parameter a line."""
        own = self.budget.neighbours
        prices = ", ".join(
            f"{value:.4f} {each.value}{' (this run)' if each is own else ''}" for each, value in self.epsilons.items()
        )
        lines = [
            "units, in the order of the sequence:",
            *(f"  {step.describe()}" for step in self.steps),
            "parameters, within the budget:",
            *(f"  {line}" for line in self.parameters.describe().splitlines()),
            f"  epsilon at delta {self.budget.delta:g}       {prices}",
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        units = [
            {"attributes": list(step.unit.names), "kind": step.unit.kind.value, "size": step.unit.size}
            | {"context": list(step.context)}
            for step in self.steps
        ]
        found = {each.value: value if self.budget.is_private else None for each, value in self.epsilons.items()}
        return {"units": units, "parameters": self.parameters.to_json(), "epsilon": found}


def charge_rows(ledger: Ledger, settings: NeuralSettings) -> None:
    """Charge and seal the noisy number of rows that a fit is planned from, as the fit does."""
    if settings.num_rows is None and ledger.budget.is_private:
        count = GaussianEvent(noise_multiplier=settings.count_noise, replace_multiplier=settings.count_noise)
        ledger.charge(Entry(kind="counts", what="number of rows", attributes=(), events=((count, 1),)))
    ledger.seal()


def describe_plan(
    attributes: Sequence[ModelAttribute],
    budget: Budget,
    *,
    num_rows: int,
    sequence: Sequence[str] | None = None,
    settings: NeuralSettings | None = None,
    learn_weights: bool = False,
    reserved: Events = (),
) -> NeuralPlan:
    """Plan a fit from public facts: needs no table, and neither jax nor optax.

    `num_rows` is what you think: the fit itself takes a noisy count, unless the settings say that it is public.
    """
    settings = settings or NeuralSettings()
    ledger = Ledger(budget)
    charge_rows(ledger, settings)
    return plan_fit(
        attributes,
        ledger,
        num_rows=num_rows,
        sequence=sequence,
        settings=settings,
        reserved=reserved,
        learn=learn_weights,
    )


def planned_releases(
    steps: Sequence[Step], parameters: Parameters | None, settings: NeuralSettings, *, private: bool
) -> Schedule:
    """Return the releases of a fit in their order: rows, histograms, then one training for each network.

    Without `parameters`, which follow from the noisy number of rows, their noise is not known yet.

    Guarantees:
        A fit makes these releases and no others.  [test_the_ledger_of_a_neural_run_is_what_was_planned]
    """
    found = [] if settings.num_rows is not None else [_planned_rows(settings, private=private)]
    rule = Rule.SEARCHED if parameters is None else Rule.EACH
    for step in steps:
        if step.counted:
            found.append(
                PlannedRelease(
                    part="histograms",
                    kind="counts",
                    what="histogram of a unit",
                    attributes=step.unit.names,
                    rule=rule,
                    noise_multiplier=parameters.histogram_noise if parameters and private else _none(parameters),
                    most_cells=_num_cells(step.unit, settings.num_cells),
                )
            )
    for step in steps:
        if step.context:
            context = (name for i in step.context for name in steps[i].unit.names)
            found.append(
                PlannedRelease(
                    part="networks",
                    kind="gradients",
                    what=f"gradients of the sub-model of {step.unit.name}",
                    attributes=(*context, *step.unit.names),
                    rule=rule,
                    noise_multiplier=parameters.gradient_noise if parameters and private else _none(parameters),
                    sampling_rate=parameters.sampling_rate if parameters else None,
                )
            )
    return Schedule(releases=tuple(found))


def _none(parameters: Parameters | None) -> float | None:
    """The noise multiplier of a release without noise; not known before the parameters are."""
    return None if parameters is None else 0.0


def _planned_rows(settings: NeuralSettings, *, private: bool) -> PlannedRelease:
    return PlannedRelease(
        part="rows",
        kind="counts",
        what="number of rows",
        attributes=(),
        noise_multiplier=settings.count_noise if private else 0.0,
        most_cells=1,
        sensitivity=Sensitivity(add_remove=1.0, replace=1.0),
    )


def _num_cells(unit: Unit, num_cells: int) -> int:
    return cells_of(unit, num_cells).map.bins


def plan_fit(
    attributes: Sequence[ModelAttribute],
    ledger: Ledger,
    *,
    num_rows: int,
    sequence: Sequence[str] | None,
    settings: NeuralSettings,
    reserved: Events,
    learn: bool,
) -> NeuralPlan:
    """Plan a fit within what a sealed ledger leaves, `reserved` events and, if `learn`, Algorithm 5 to come."""
    steps = plan_steps(in_sequence(attributes, sequence), settings.limits)
    parameters = settings.parameters or search_parameters(
        ledger.open_budget,
        num_rows=num_rows,
        num_models=sum(1 for step in steps if step.context),
        num_histograms=sum(1 for step in steps if step.counted),
        first_size=steps[0].unit.size if steps[0].unit.kind is not Kind.NUMERIC else settings.num_cells,
        learn_weights=learn,
        ranges=settings.ranges,
        other=reserved,
        holds=ledger.holds,
    )
    return NeuralPlan(steps=steps, parameters=parameters, budget=ledger.budget, reserved=reserved, sealed=ledger.sealed)


def plan_steps(attributes: Sequence[ModelAttribute], limits: UnitLimits) -> tuple[Step, ...]:
    """Return the sub-models of a sequence; one without context is a histogram. Touches no data.

    Wide units are sampled without context, and their tables of embeddings would be as large: they are in no context.
    """
    units = plan_units(attributes, limits)
    steps = []
    for place, unit in enumerate(units):
        before = tuple(i for i in range(place) if units[i].kind is not Kind.WIDE)
        context = () if unit.kind is Kind.WIDE else before
        steps.append(Step(unit=unit, context=context, counted=not context or unit.size > limits.counted))
    return tuple(steps)


def in_sequence(attributes: Sequence[ModelAttribute], sequence: Sequence[str] | None) -> list[ModelAttribute]:
    """Return the attributes in the order asked for, or in the model's own."""
    by_name = {attribute.name: attribute for attribute in attributes}
    if not attributes or len(by_name) != len(attributes):
        raise ModelError("a model needs at least one attribute, and no name twice.")
    if sequence is None:
        sequence = order_attributes(attributes)
    if sorted(sequence) != sorted(by_name):
        raise ModelError("the sequence must name every attribute once.")
    return [by_name[name] for name in sequence]
