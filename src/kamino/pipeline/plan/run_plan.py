"""What a run will do, as data that `fit` carries out. Made from public facts: reads no private table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kamino.advice import Advice, drafting, setting
from kamino.constraints import Constraints, print_constraint
from kamino.constraints.analysis.text_orders import text_order_notes
from kamino.engine.recoded import recode
from kamino.errors import InputError
from kamino.layout.recoding import Recoding, SplitRules
from kamino.layout.table_layout import Layout, left_by, outer_steps
from kamino.model import MarginalPlan
from kamino.model.marginal.marginal_schedule import HISTOGRAMS
from kamino.pipeline.modelling import LeftOver
from kamino.pipeline.output.notes import short_year_notes
from kamino.pipeline.output.release_mark import Spent, mark_before, weak_promises
from kamino.pipeline.plan.bound_schema import NOTHING, check_has_columns, check_names, schema_for
from kamino.pipeline.plan.group_ids import with_group_ids
from kamino.pipeline.plan.hopeless import is_beyond_memory, refuse_beyond_a_day, refuse_beyond_memory
from kamino.pipeline.plan.planned_discovery import Discovery
from kamino.pipeline.plan.references import References, read_references
from kamino.pipeline.plan.required_types import with_required_types
from kamino.pipeline.plan.whose_privacy import (
    asked_columns,
    id_question,
    refuse_unsaid_unit,
    unit_question,
    written_ids,
)
from kamino.pipeline.plan.written_values import refuse_written_values
from kamino.pipeline.settings import Backend, Settings
from kamino.privacy import gaussian_mu
from kamino.privacy.accounting.meaning import Meaning, meaning_of_budget, of_epsilon
from kamino.privacy.private import PrivateTable
from kamino.privacy.schedule import Schedule
from kamino.sampling import Requirements, Sampling, SamplingPlan
from kamino.sampling.closed_world import can_close, why_not_closed
from kamino.schema import Attribute, Schema

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


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked of a run, with the public tables that it names.

    `columns` are those of the table where no schema says so, `given` the constraints as they were given, `outer` the
    steps of the layout that they ask for. `raw_references` are the reference tables as they were read, in `folder`.
    """

    settings: Settings
    given: Constraints
    columns: tuple[str, ...] = ()
    outer: tuple[Recoding, ...] = ()
    folder: Path = Path()
    num_rows: int | None = None
    raw_references: References = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class BoundRules:
    """The constraints bound to a schema: those that rows are drawn for, and those that the `layout` keeps by itself.

    `references` have the schema's types; whether more dates lie `close` together is measured.
    """

    rules: SplitRules = field(default_factory=SplitRules)
    layout: Layout | None = None
    close: tuple[tuple[str, str], ...] = ()
    references: References = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class OrderPlan:
    """In which order attributes are drawn, and by which steps.

    `sampling` is None where the model chooses the order, but for `chains`: `sampling_along` makes it then.
    """

    requirements: Requirements | None = None
    chains: tuple[tuple[str, ...], ...] = ()
    sampling: SamplingPlan | None = None


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """What the model is fitted by: `marginal` or `neural`, which depends on the number of rows.

    `weights_noise` is the noise multiplier of what is measured for soft constraints.
    """

    marginal: MarginalPlan | None = None
    neural: NeuralPlan | None = None
    left_over: LeftOver = field(default_factory=LeftOver)
    weights_noise: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PlannedStage:
    """A stage of a run, and what it will release; `allowed` is what it may, where it is planned for so many rows."""

    name: str
    releases: Schedule = field(default_factory=Schedule)
    allowed: Schedule | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunPlan:
    """The steps of a run, its budget, its releases and their noise. Every field may be published.

    The `program` is made stage by stage (`kamino.pipeline.program`), and ends at a stage that something must be known
    for. Without `schema`, the types of columns are found; with domains that are `missing`, these are. `with_schema`
    plans what follows. What finding them may spend follows from `discovery`, and so from a noisy number of rows: before
    that is known, releases are planned with the least noise they can have, and `with_rows` plans them exactly.

    `notes` say what a reader of the table may not expect.

    Guarantees:
        A run makes the planned releases and no others.  [test_the_ledger_is_what_was_planned]
        Whatever else a stage asks for is refused before it is charged.  [test_what_a_stage_did_not_plan_is_refused]
        It draws by the planned steps.  [test_the_steps_are_what_was_planned]
    """

    asked: Asked
    schema: Schema | None = None
    bound: BoundRules = field(default_factory=BoundRules)
    discovery: Discovery | None = None
    program: tuple[PlannedStage, ...] = ()
    order_plan: OrderPlan = field(default_factory=OrderPlan)
    model_plan: ModelPlan = field(default_factory=ModelPlan)
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """What the run is asked to do."""
        return self.asked.settings

    @property
    def given(self) -> Constraints:
        """The constraints as they were given."""
        return self.asked.given

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, where no schema says so."""
        return self.asked.columns

    @property
    def outer(self) -> tuple[Recoding, ...]:
        """The steps of the layout that the constraints ask for, which come before anything is read."""
        return self.asked.outer

    @property
    def num_rows(self) -> int | None:
        """How many rows the table is thought to have, or were asked for."""
        return self.asked.num_rows

    @property
    def schedule(self) -> Schedule:
        """The releases of all stages, in their order."""
        return Schedule(releases=tuple(release for stage in self.program for release in stage.releases))

    @property
    def references(self) -> References:
        """The reference tables, with the schema's types."""
        return self.bound.references

    @property
    def close(self) -> tuple[tuple[str, str], ...]:
        """The pairs of dates of which is measured whether they lie close together."""
        return self.bound.close

    @property
    def requirements(self) -> Requirements | None:
        """What hard constraints ask of the order of attributes; None before all domains are known."""
        return self.order_plan.requirements

    @property
    def sampling(self) -> SamplingPlan | None:
        """Order and steps; None where the model chooses the order."""
        return self.order_plan.sampling

    @property
    def sequence(self) -> tuple[str, ...] | None:
        """The order of attributes; None where the model chooses it."""
        return None if self.sampling is None else self.sampling.sequence

    @property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """Attributes that keep their order where the model chooses that of the others."""
        return self.order_plan.chains

    @property
    def marginal(self) -> MarginalPlan | None:
        """What a marginal model is fitted by."""
        return self.model_plan.marginal

    @property
    def neural(self) -> NeuralPlan | None:
        """What a neural model is fitted by, for so many rows."""
        return self.model_plan.neural

    @property
    def program_text(self) -> str:
        """The stages in words, each with how many kinds of releases it plans."""
        parts = [f"{stage.name} ({len(stage.releases)})" if stage.releases else stage.name for stage in self.program]
        return ", ".join(parts) + ("" if self.is_complete else "; what follows is planned from what this finds")

    def of_stage(self, name: str) -> Schedule:
        """What a stage will release; nothing where the program does not come to it."""
        return next((stage.releases for stage in self.program if stage.name == name), Schedule())

    def allowed_of(self, name: str) -> Schedule:
        """What a stage may release while it runs: what it will, or the same for any number of rows."""
        stage = next((stage for stage in self.program if stage.name == name), None)
        return Schedule() if stage is None else stage.releases if stage.allowed is None else stage.allowed

    def for_rows(self, num_rows: int) -> RunPlan:
        """The same for another number of rows, as far as errors to expect go."""
        return replace(self, asked=replace(self.asked, num_rows=num_rows))

    @property
    def constraints(self) -> Constraints:
        """The constraints that rows are drawn for."""
        return self.bound.rules.drawn

    @property
    def held(self) -> Constraints:
        """The constraints that the layout keeps by itself."""
        return self.bound.rules.kept

    @property
    def known_layout(self) -> Layout:
        """The layout, once there is a schema."""
        layout = self.bound.layout
        return Layout.of(self.known, outer=self.outer) if layout is None else layout

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
        from kamino.pipeline.program.programs import plan_program

        known = _with_found_types(schema, self.given, self.settings) if self.schema is None else schema
        plan = RunPlan(asked=replace(self.asked, columns=()), schema=known, discovery=self.discovery)
        return plan_program(plan, done=self.program)

    def with_rows(self, about_rows: int) -> RunPlan:
        """The plan of what is to be found, once the noisy number of rows is known that its cost follows from."""
        from kamino.pipeline.program.programs import plan_program

        assert self.discovery is not None, "only a plan that has something to find asks for the number of rows"
        discovery = replace(self.discovery, about_rows=about_rows)
        return plan_program(RunPlan(asked=self.asked, schema=self.schema, discovery=discovery))

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
            "program": [{"stage": stage.name, "releases": len(stage.releases)} for stage in self.program],
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
    named = {} if schema is None else schema.attributes
    domains = [name for name, each in named.items() if each.has_domain]
    outer = outer_steps(constraints, private.without_rows().schema, domains)
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
        outer: the steps of the layout that constraints ask for; schema and columns are those after them.

    Raises:
        SamplingError: the constraints clash, and no table can satisfy them.
        InputError: a reference table cannot be used.

    Guarantees:
        No private table is an argument, so none is read.  [test_plan_command_reads_no_data]
    """
    from kamino.pipeline.program.programs import plan_program

    asked = Asked(
        settings=settings,
        given=constraints,
        columns=tuple(columns),
        outer=tuple(outer),
        folder=folder,
        num_rows=num_rows,
        raw_references=read_references(constraints, folder=folder),
    )
    return plan_program(RunPlan(asked=asked, schema=schema))


def _with_found_types(schema: Schema, constraints: Constraints, settings: Settings) -> Schema:
    """The schema of types that were found, where these may be other than constraints and ids need them."""
    return with_group_ids(with_required_types(schema, constraints), constraints, settings)
