"""What a run will do, as data that `fit` carries out. Made from public facts: reads no private table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from kamino.advice import Advice, drafting, setting
from kamino.constraints import Constraints, print_constraint
from kamino.constraints.analysis.text_orders import text_order_notes
from kamino.engine.recoded import recode
from kamino.errors import ConstraintError, ConstraintErrors, InputError, PrivacyError
from kamino.layout.offsets import ordered_dates
from kamino.layout.recoding import Recoding, SplitRules, joined
from kamino.layout.table_layout import Layout, left_by, outer_steps
from kamino.model import MarginalPlan, order_attributes, plan_marginal
from kamino.model.marginal.marginal_schedule import HISTOGRAMS
from kamino.model.parts import KnownMap
from kamino.pipeline.modelling import LeftOver, left_over, neural_settings
from kamino.pipeline.output.notes import distance_notes, promise_notes, short_year_notes, trusted_notes
from kamino.pipeline.output.release_mark import Spent, mark_before, weak_promises
from kamino.pipeline.plan.bound_schema import NOTHING, check_has_columns, check_names, schema_for
from kamino.pipeline.plan.close_dates import open_pairs, planned_closeness
from kamino.pipeline.plan.group_ids import planned_groups, with_group_ids
from kamino.pipeline.plan.hints import hints_of, model_attributes
from kamino.pipeline.plan.hopeless import is_beyond_memory, refuse_beyond_a_day, refuse_beyond_memory, refuse_hopeless
from kamino.pipeline.plan.planned_discovery import Discovery, charge, planned_domains, planned_rows, planned_types
from kamino.pipeline.plan.public_domains import check_lists, with_public_domains
from kamino.pipeline.plan.reference_domains import with_reference_domains
from kamino.pipeline.plan.references import References, read_references, typed_references
from kamino.pipeline.plan.required_types import refuse_clashing_types, with_required_types
from kamino.pipeline.plan.unreadable_dates import planned_unreadable
from kamino.pipeline.plan.whose_privacy import (
    asked_columns,
    id_question,
    refuse_unsaid_unit,
    unit_question,
    written_ids,
)
from kamino.pipeline.plan.written_values import refuse_written_values
from kamino.pipeline.settings import Backend, SequenceMode, Settings
from kamino.pipeline.weighing import model_noise, planned_weights, weights_noise
from kamino.privacy import Gate, Neighbours, gaussian_mu
from kamino.privacy.accounting.meaning import Meaning, meaning_of_budget, of_epsilon
from kamino.privacy.private import PrivateTable
from kamino.privacy.schedule import Schedule
from kamino.privacy.sensitivity import Sensitivity
from kamino.sampling import Requirements, Sampling, SamplingPlan, paper_sequence, random_order, require
from kamino.sampling.closed_world import can_close, why_not_closed
from kamino.sampling.feasible.undrawable import refuse_undrawable
from kamino.sampling.plan.reference_maps import known_of
from kamino.sampling.soft.soft_notes import soft_notes
from kamino.schema import Attribute, Codec, Schema

if TYPE_CHECKING:
    from kamino.model.neural import NeuralPlan

CHOSEN_BY_THE_MODEL = "chosen by the model from what it has released"
CHOSEN_BY_CHANCE = "the order of attributes is by chance: another run has another, unless it is given the same seed"
_TYPES_WERE_FOUND = Advice.of(
    "types-were-found",
    "types of a CSV file's columns are found within the budget, and with few rows a column stays text; declare them in "
    "a schema (",
    *(drafting(), "), or say ", setting("trust_domain"), " if they are public"),
)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The first measurement of one attribute: its cells, its noise, and the distance that the noise may cost."""

    attribute: str
    cells: int
    sigma: float
    distance: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunPlan:
    """The steps of a run, its budget, its releases and their noise. Every field may be published.

    A plan is made in stages where something must be found first. Without `schema`, the types of `columns` are found;
    with domains that are `missing`, these are. The schedule then ends there, and `with_schema` plans what follows. What
    finding them may spend follows from `discovery`, and so from a noisy number of rows: before that is known, releases
    are planned with the least noise they can have, and `with_rows` plans them exactly.

    `given` are the constraints as they were given, `outer` the steps of the layout that they ask for, `rules` are bound
    to the schema: those that rows are drawn for, and those that the `layout` keeps by itself; whether more dates lie
    `close` together is measured. `raw_references`
    are the reference tables as they were read, `references` with the schema's types. `sampling` is None where the model
    chooses the order, but for `chains`: `sampling_along` makes it then. `marginal` or `neural` is what the model is
    fitted by; the second depends on the number of rows. `weights_noise` is the noise multiplier of what is measured for
    soft constraints. `notes` say what a reader of the table may not expect.

    Guarantees:
        A run makes the planned releases and no others.  [test_the_ledger_is_what_was_planned]
        It draws by the planned steps.  [test_the_steps_are_what_was_planned]
    """

    settings: Settings
    given: Constraints
    columns: tuple[str, ...] = ()
    schema: Schema | None = None
    outer: tuple[Recoding, ...] = ()
    rules: SplitRules = field(default_factory=SplitRules)
    layout: Layout | None = None
    close: tuple[tuple[str, str], ...] = ()
    references: References = field(default_factory=dict, repr=False)
    raw_references: References = field(default_factory=dict, repr=False)
    folder: Path = Path()
    num_rows: int | None = None
    discovery: Discovery | None = None
    schedule: Schedule = field(default_factory=Schedule)
    requirements: Requirements | None = None
    sequence: tuple[str, ...] | None = None
    chains: tuple[tuple[str, ...], ...] = ()
    sampling: SamplingPlan | None = None
    marginal: MarginalPlan | None = None
    neural: NeuralPlan | None = None
    left_over: LeftOver = field(default_factory=LeftOver)
    weights_noise: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def constraints(self) -> Constraints:
        """The constraints that rows are drawn for."""
        return self.rules.drawn

    @property
    def held(self) -> Constraints:
        """The constraints that the layout keeps by itself."""
        return self.rules.kept

    @property
    def known_layout(self) -> Layout:
        """The layout, once there is a schema."""
        return Layout.of(self.known, outer=self.outer) if self.layout is None else self.layout

    @property
    def missing(self) -> tuple[str, ...]:
        """The attributes whose domains are found within the budget; no order can be planned before."""
        return self.schema.missing_domains if self.schema is not None else self.columns

    @property
    def is_complete(self) -> bool:
        """Whether nothing has to be found before the model is fitted."""
        return self.requirements is not None

    @property
    def known(self) -> Schema:
        """The schema, once there is one."""
        if self.schema is None:
            raise InputError("found a plan for columns whose types are not known yet; expected a schema")
        return self.schema

    @property
    def noise_multiplier(self) -> float:
        """The noise of one Gaussian release that would cost the whole budget; 0 where there is no privacy."""
        return 1 / gaussian_mu(self.settings.budget) if self.settings.budget.is_private else 0.0

    @property
    def what_binds(self) -> str | None:
        """What keeps a long table of this plan from being drawn block by block, in words; None if nothing surely does.

        Attributes that hard constraints on pairs tie together keep their order, so that each of these constraints ends
        at the same attribute in whatever order the model chooses.
        """
        wanted = self.requirements
        if wanted is None:
            return "domains are not known yet"
        groups = bool(self.known.group_names)
        return what_binds(self.constraints, lambda: self.sampling or wanted.arrange(), self.settings.sampling, groups)

    @property
    def meaning(self) -> Meaning:
        """What the budget means once it is spent: exact for a run of Gaussian releases, else what epsilon implies."""
        budget = self.settings.budget
        if self.settings.backend is Backend.MARGINAL or not budget.is_private:
            return meaning_of_budget(budget)
        return of_epsilon(budget.epsilon, budget.delta)

    @property
    def meaning_text(self) -> str:
        """The same in words."""
        return self.meaning.describe(self.settings.privacy_unit.describe(), self.settings.neighbours)

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The first histograms of the marginal model: the noise of a cell, and the distance it makes on average.

        Distances of ordered attributes are in 16 bins, as `kamino.evaluate.measure.metrics` measures them.
        """
        if self.marginal is None:
            return ()
        first = {each.attributes[0]: each for each in reversed(self.schedule.part(HISTOGRAMS))}
        found = []
        for attribute in self.marginal.attributes:
            planned = first[attribute.name]
            cells, sigma = planned.most_cells or 1, planned.sigma or 0.0
            bins = 16 if cells > 16 and attribute.ordered else cells
            noise = bins * sigma * math.sqrt(cells / bins) * math.sqrt(2 / math.pi) / 2
            distance = min(1.0, noise / self.num_rows) if self.num_rows else None
            found.append(Expected(attribute=attribute.name, cells=cells, sigma=sigma, distance=distance))
        return tuple(found)

    @property
    def mark(self) -> Spent:
        """What a run is about to spend, and the mark of what will come of it, as far as that is sure before it."""
        return mark_before(self.settings, about_rows=self.num_rows, schema=self.schema)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner should settle before anything is spent: a weak promise, and whose privacy it is about."""
        settings = self.settings
        names = self.columns if self.schema is None else self.schema.names
        weak = weak_promises(settings.epsilon, settings.delta, self.num_rows)
        accepted = "accepted" if settings.accept else f"such a table is not for release without {setting('accept')}"
        known, trusted = {} if self.schema is None else self.schema.attributes, settings.trust_domain
        persons = asked_columns(names, known, self.given, trust_domain=trusted) if settings.unit is None else ()
        asked = (unit_question(persons).told(),) if persons else ()
        if self.schema is None:
            return (*(f"{each}; {accepted}" for each in weak), *asked)
        ids = () if settings.accept else written_ids(self.schema)
        texts = text_order_notes(self.given, self.known_layout.types)
        return (
            *(f"{each}; {accepted}" for each in weak),
            *asked,
            *((id_question(ids).told(),) if ids else ()),
            *texts,
            *short_year_notes(self.schema),
        )

    def with_schema(self, schema: Schema) -> RunPlan:
        """The plan of what follows, once types or domains are found: by the same code as any other plan."""
        return plan_run(
            _with_found_types(schema, self.given, self.settings) if self.schema is None else schema,
            self.given,
            self.settings,
            num_rows=self.num_rows,
            folder=self.folder,
            raw_references=self.raw_references,
            discovery=self.discovery,
            earlier=self.schedule,
            outer=self.outer,
        )

    def with_rows(self, about_rows: int) -> RunPlan:
        """The plan of what is to be found, once the noisy number of rows is known that its cost follows from."""
        assert self.discovery is not None, "only a plan that has something to find asks for the number of rows"
        return plan_run(
            self.schema,
            self.given,
            self.settings,
            columns=self.columns,
            num_rows=self.num_rows,
            folder=self.folder,
            raw_references=self.raw_references,
            discovery=replace(self.discovery, about_rows=about_rows),
            outer=self.outer,
        )

    def sampling_along(self, sequence: Sequence[str]) -> SamplingPlan:
        """How rows are drawn along the sequence of a fitted model: as planned, if the order was."""
        if self.sampling is not None and self.sampling.sequence == tuple(sequence):
            return self.sampling
        assert self.requirements is not None, "a model is fitted by a complete plan"
        return self.requirements.arrange(sequence)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        budget = self.settings.budget
        return {
            "epsilon": budget.epsilon if budget.is_private else None,
            "delta": budget.delta,
            "neighbours": budget.neighbours.value,
            "unit": self.settings.privacy_unit.describe(),
            "mark": self.mark.told,
            "noise_multiplier": self.noise_multiplier,
            "meaning": {**self.meaning.to_json(), "text": self.meaning_text},
            "types_to_find": list(self.columns) if self.schema is None else [],
            "domains_to_find": list(self.missing) if self.schema is not None else [],
            "sampling": self._sampling_json(),
            "backend": self.settings.backend.value,
            "measurements": [vars(each) for each in self.expected],
            "releases": self.schedule.to_json(),
            "notes": [*self.warnings, *self.notes],
            "neural": self.neural.to_json() if self.neural else None,
            "rows": self.num_rows,
        }

    @property
    def order(self) -> str:
        """Who chooses the order of attributes, in words."""
        if not self.chains:
            return f"{CHOSEN_BY_THE_MODEL}; no hard constraint on pairs asks for one"
        return f"{CHOSEN_BY_THE_MODEL}, but for {'; '.join(' before '.join(chain) for chain in self.chains)}"

    def _sampling_json(self) -> dict[str, Any] | None:
        if self.sampling is not None or self.requirements is None:
            return self.sampling.to_json() if self.sampling else None
        return {
            "sequence": None,
            "order": self.order,
            "chains": [list(chain) for chain in self.chains],
            "steps": [
                {
                    "last_of": list(step.among),
                    "kind": step.kind.value,
                    "constraints": [print_constraint(c) for c in step.constraints],
                }
                for step in self.requirements.open_steps()
            ],
        }


def plan_table(
    private: PrivateTable,
    schema: Schema | None,
    constraints: Constraints,
    settings: Settings,
    *,
    untyped: bool = False,
    folder: Path = Path(),
    num_rows: int | None = None,
    listed: Mapping[str, Sequence[Any]] = NOTHING,
    declared: Mapping[str, Attribute] = MappingProxyType({}),
    of_cells: Collection[str] = (),
    dated: bool = False,
) -> RunPlan:
    """Plan a run on a table, of which names and types of columns are public; with `trust_domain`, values as well.

    With `untyped`, the columns are text for want of types, which are then found within the budget. `listed` are domains
    that the types of columns list themselves, some of them made `of_cells`, `declared` are attributes that the
    catalogue of a database declares. With `dated`, texts may be dates as people write them, which is looked at with
    `trust_domain` only.

    Guarantees:
        Without `trust_domain`, no value of the table is looked at.  [test_replay_passes_for_synth]
        With it, real values of single persons are written only if that is accepted.
        [test_values_of_one_person_are_refused]
    """
    check_has_columns(private)
    refuse_beyond_a_day(num_rows, len(private.names))
    outer = outer_steps(constraints, private.without_rows().schema)
    check_names(left_by(constraints, outer), list(private.names) if schema is None else list(schema))
    private = recode(private, outer)
    schema = schema if schema is None else _after(schema, outer)
    refuse_unsaid_unit(private.names, constraints, settings, declared if schema is None else schema.attributes)
    if schema is None and untyped:
        refuse_beyond_memory(num_rows, len(private.names))
        names = private.names
        return plan_run(None, constraints, settings, columns=names, num_rows=num_rows, folder=folder, outer=outer)
    known = schema_for(private, schema, settings, listed, declared, of_cells=of_cells, dated=dated)
    known = with_group_ids(known, constraints, settings) if schema is None else known
    refuse_written_values(private, known, settings)
    plan = plan_run(known, constraints, settings, num_rows=num_rows, folder=folder, outer=outer)
    if is_beyond_memory(num_rows, len(private.names)) and plan.what_binds is not None:
        refuse_beyond_memory(num_rows, len(private.names))
    return plan


def _after(schema: Schema, steps: Sequence[Recoding]) -> Schema:
    """The schema of the table after steps of the layout."""
    return reduce(lambda current, step: step.schema(current), steps, schema)


def what_binds(
    constraints: Constraints, arranged: Callable[[], SamplingPlan], mode: Sampling, has_groups: bool
) -> str | None:
    """What keeps a long table from being drawn block by block, in words; None if nothing does."""
    if has_groups:
        return "ids that repeat bind all rows together"
    if mode is not Sampling.CONSTRAINT_AWARE:
        return f"{mode.value} sampling goes through all rows together"
    shape = why_not_closed(constraints)
    if shape is not None:
        return shape
    return None if can_close(arranged()) else "the order of attributes leaves a constraint that binds all rows together"


def plan_run(
    schema: Schema | None,
    constraints: Constraints,
    settings: Settings,
    *,
    columns: Sequence[str] = (),
    num_rows: int | None = None,
    folder: Path = Path(),
    raw_references: References | None = None,
    discovery: Discovery | None = None,
    earlier: Schedule = Schedule(),
    outer: Sequence[Recoding] = (),
) -> RunPlan:
    """Plan a run from public facts.

    Args:
        schema: None if types must be found first, of `columns`.
        constraints: as they were given.
        settings: what the run is asked to do.
        columns: the names of the table's columns, needed without a schema only.
        num_rows: what you think or ask: for expected errors, for keys and for the neural model.
        folder: where paths of reference tables start.
        raw_references: the reference tables, if they were read before.
        discovery: what there is to find, and what is known of it, if it was planned before.
        earlier: the releases that found types or domains, which are paid for.
        outer: the steps of the layout that constraints ask for; schema and columns are those after them.

    Raises:
        SamplingError: the constraints clash, and no table can satisfy them.
        InputError: a reference table cannot be used.

    Guarantees:
        No private table is an argument, so none is read.  [test_plan_command_reads_no_data]
    """
    raw_references = read_references(constraints, folder=folder) if raw_references is None else raw_references
    types_found = discovery is not None and discovery.untyped
    plan = RunPlan(
        settings=settings,
        given=constraints,
        columns=tuple(columns),
        num_rows=num_rows,
        folder=folder,
        raw_references=raw_references,
        outer=tuple(outer),
    )
    if schema is None:
        refuse_clashing_types(constraints)
        check_lists(settings.value_lists, columns)
        discovery = discovery or Discovery(num_columns=len(columns), untyped=True)
        schedule = planned_rows(settings, untyped=True) + planned_types(columns, discovery, settings)
        return _with_sigmas(replace(plan, discovery=discovery, schedule=schedule))
    schema = with_reference_domains(schema, raw_references, types_were_found=types_found)
    schema = with_public_domains(schema, constraints, settings.value_lists, types_found=types_found)
    layout = Layout.of(schema, outer=outer)
    split = layout.rules(_bind(constraints, layout, types_were_found=types_found))
    refuse_undrawable(split.drawn)
    rules = split.drawn
    plan = replace(
        plan,
        schema=schema,
        layout=layout,
        rules=split,
        references=typed_references(raw_references, schema, rules),
        discovery=discovery,
        schedule=earlier,
    )
    refuse_hopeless(schema, rules, num_rows, keeps=settings.sampling.keeps_hard_constraints)
    if schema.missing_domains:
        discovery = discovery or Discovery(num_columns=len(schema.missing_domains), untyped=False)
        begun = earlier if discovery.untyped else planned_rows(settings, untyped=False)
        found = planned_domains(schema, discovery, settings)
        return _with_sigmas(replace(plan, discovery=discovery, schedule=begun + found))
    if not schema.data_names:
        raise InputError("every column is a key, which carries no data; expected at least one other column")
    groups = planned_groups(schema, settings, plan.noise_multiplier)
    unreadable = Schedule(releases=planned_unreadable(schema, plan.noise_multiplier))
    plan = _with_differences(replace(plan, schedule=plan.schedule + groups + unreadable), layout)
    return _complete(plan, plan.known_layout.codec)


def _with_found_types(schema: Schema, constraints: Constraints, settings: Settings) -> Schema:
    """The schema of types that were found, where these may be other than constraints and ids need them."""
    return with_group_ids(with_required_types(schema, constraints), constraints, settings)


def _with_differences(plan: RunPlan, layout: Layout) -> RunPlan:
    """Plan which dates are modelled by their distance from another, and what is measured to find more."""
    if plan.settings.backend is not Backend.MARGINAL:
        return plan
    codec = layout.codec
    differences = ordered_dates(plan.constraints, codec)
    layout = layout.with_differences(differences)
    after = layout.rules(plan.constraints)
    close = open_pairs(after.drawn, codec, differences)
    return replace(
        plan,
        rules=SplitRules(drawn=after.drawn, kept=joined(plan.held, after.kept)),
        layout=layout,
        close=close,
        schedule=plan.schedule + Schedule(releases=planned_closeness(close, plan.noise_multiplier)),
    )


def _complete(plan: RunPlan, codec: Codec) -> RunPlan:
    """Plan order, steps, model and weights, all domains being known."""
    settings, rules = plan.settings, plan.constraints
    requirements = require(codec, rules, num_rows=plan.num_rows, references=plan.references)
    sampling = _sampling(codec, requirements, rules, settings)
    gate = Gate(settings.budget, unit=settings.privacy_unit)
    charge(gate, plan.schedule)
    noise = weights_noise(rules, settings, gate)
    plan = replace(
        plan,
        requirements=requirements,
        sampling=sampling,
        sequence=sampling.sequence if sampling is not None else None,
        chains=() if sampling is not None else requirements.chains,
        weights_noise=noise,
        left_over=left_over(rules, settings, rates_noise=noise),
    )
    plan = (
        _with_marginal(plan, codec, gate) if settings.backend is Backend.MARGINAL else _with_neural(plan, codec, gate)
    )
    _refuse_samples_of_units(plan)
    return replace(_with_sigmas(plan), notes=_notes(plan, codec))


def _with_marginal(plan: RunPlan, codec: Codec, gate: Gate) -> RunPlan:
    marginal = plan_marginal(
        model_attributes(codec),
        noise_multiplier=model_noise(plan.constraints, gate),
        sequence=plan.sequence,
        chains=plan.chains,
        hints=replace(hints_of(plan.constraints, codec), known=_public_maps(plan, codec)),
        distance=gate.sensitivity(Sensitivity.of_histogram()).under(gate.budget.neighbours),
        replaced=gate.budget.neighbours is Neighbours.REPLACE,
    )
    weights = planned_weights(plan.constraints, plan.settings, plan.weights_noise)
    return replace(plan, marginal=marginal, schedule=plan.schedule + marginal.schedule + weights)


def _public_maps(plan: RunPlan, codec: Codec) -> tuple[KnownMap, ...]:
    """The maps of reference tables, as the model reads them."""
    assert plan.requirements is not None, "a model is planned after what it must keep"
    found = (known_of(each, codec) for each in plan.requirements.references.values())
    return tuple(each for each in found if each is not None)


def _with_neural(plan: RunPlan, codec: Codec, gate: Gate) -> RunPlan:
    """Plan a neural fit; its noise is searched from the number of rows, by the same code as in the fit."""
    from kamino.model.neural.neural_schedule import charge_rows, in_sequence, plan_fit, plan_steps, planned_releases

    settings, attributes = neural_settings(plan.settings), model_attributes(codec)
    assert plan.sequence is not None, "a neural model does not choose its order"
    neural = None
    if plan.num_rows is not None:
        charge_rows(gate.ledger, settings)
        neural = plan_fit(
            attributes,
            gate.ledger,
            num_rows=max(1, plan.num_rows),
            sequence=plan.sequence,
            settings=settings,
            reserved=plan.left_over.reserved,
            learn=plan.left_over.learn_weights,
        )
    steps = plan_steps(in_sequence(attributes, plan.sequence), settings.limits)
    parameters = neural.parameters if neural else None
    releases = planned_releases(steps, parameters, settings, private=plan.settings.budget.is_private)
    weights = planned_weights(plan.constraints, plan.settings, plan.weights_noise, parameters=parameters)
    return replace(plan, neural=neural, schedule=plan.schedule + releases + weights)


def _sampling(codec: Codec, requirements: Requirements, rules: Constraints, settings: Settings) -> SamplingPlan | None:
    """Order and steps; None where the model chooses the order."""
    if settings.sequence is SequenceMode.PAPER:
        return requirements.arrange(paper_sequence(codec, rules))
    if settings.sequence is SequenceMode.RANDOM:
        return requirements.arrange(random_order(tuple(codec.attributes), np.random.default_rng(settings.chance)))
    if settings.backend is Backend.NEURAL and not requirements.asks_for_an_order:
        return requirements.arrange(order_attributes(model_attributes(codec)))
    if requirements.depend_on_groups:
        # What a group has in common is drawn before what its rows differ in.
        return requirements.arrange()
    chained = requirements.chains
    open_ = settings.backend is Backend.MARGINAL and (len(chained) != 1 or set(chained[0]) != set(codec.attributes))
    if open_ and (chained or not requirements.asks_for_an_order):
        return None
    return requirements.arrange()


def _bind(constraints: Constraints, layout: Layout, *, types_were_found: bool) -> Constraints:
    """The constraints, checked against the types of all columns."""
    try:
        return constraints.bind(layout.types)
    except ConstraintErrors as problem:
        if not types_were_found:
            raise
        faults = [_of_found_type(error) for error in problem.errors]
        raise ConstraintErrors([*faults, _TYPES_WERE_FOUND.error(ConstraintError)]) from None


def _of_found_type(error: ConstraintError) -> ConstraintError:
    """The error of a constraint whose column has a type that was found: the type is in doubt, not the constraint."""
    found, _, _ = error.message.rpartition("; ")
    return Advice.of(
        "type-was-found",
        *(f"{found}; this type was found, not declared: declare the type in a schema (", drafting(), ")"),
    ).error(ConstraintError, source=error.source, line=error.line, column=error.column)


def _with_sigmas(plan: RunPlan) -> RunPlan:
    """The plan with the scale of the noise of each release, for its privacy unit."""
    gate = Gate(plan.settings.budget, unit=plan.settings.privacy_unit)
    return replace(plan, schedule=plan.schedule.with_sigmas(gate))


def _refuse_samples_of_units(plan: RunPlan) -> None:
    """Refuse what the gate would refuse after other releases: a sample of rows where a unit has several."""
    unit = plan.settings.privacy_unit
    sampled = [each for each in plan.schedule if each.kind in ("gradients", "sample")]
    if sampled and unit.max_rows > 1:
        raise PrivacyError(
            f"the privacy unit is {unit.describe()}, but {sampled[0].what!r} samples single rows; use the marginal "
            "backend and weights by matching, or set max_rows=1."
        )


def _notes(plan: RunPlan, codec: Codec) -> tuple[str, ...]:
    """What may surprise in the table, as far as it is known before the run."""
    settings, num_rows = plan.settings, plan.num_rows
    trusted = () if num_rows is None else trusted_notes(codec.schema, num_rows)
    promised = promise_notes(codec, plan.constraints, num_rows) if settings.sampling.keeps_hard_constraints else ()
    weighed = settings.sampling is Sampling.CONSTRAINT_AWARE and plan.sampling is not None
    soft = soft_notes(plan.sampling, codec) if weighed and plan.sampling is not None else ()
    by_chance = settings.sequence is SequenceMode.RANDOM and settings.seed is None
    return (*distance_notes(codec), *trusted, *promised, *soft, *((CHOSEN_BY_CHANCE,) if by_chance else ()))
