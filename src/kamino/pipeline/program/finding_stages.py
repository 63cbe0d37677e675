"""Stages that come before all domains are known: rows are kept, rules are read, types and domains are found."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from kamino.advice import Advice, drafting, setting
from kamino.constraints import Constraints
from kamino.engine import discover_domains, discover_types, keep_rows, release_about_rows, set_delta_aside
from kamino.engine.discovery import FoundDomains
from kamino.engine.recoded import recode
from kamino.errors import ConstraintError, ConstraintErrors
from kamino.layout.table_layout import Layout
from kamino.pipeline.output.taken import refuse_too_few_rows, refuse_useless
from kamino.pipeline.plan.hopeless import refuse_hopeless
from kamino.pipeline.plan.mostly_noise import refuse_noise
from kamino.pipeline.plan.planned_discovery import (
    Discovery,
    planned_domains,
    planned_rows,
    planned_types,
    rows_share,
)
from kamino.pipeline.plan.public_domains import check_lists, with_public_domains
from kamino.pipeline.plan.reference_domains import with_reference_domains
from kamino.pipeline.plan.references import typed_references
from kamino.pipeline.plan.required_types import refuse_clashing_types
from kamino.pipeline.plan.run_plan import BoundRules, RunPlan
from kamino.pipeline.program.release_stage import Learned, Means, Planned, PrivateRows
from kamino.pipeline.stages import Stage
from kamino.sampling.feasible.undrawable import refuse_undrawable
from kamino.schema import check_columns

_TYPES_WERE_FOUND = Advice.of(
    "types-were-found",
    "types of a CSV file's columns are found within the budget, and with few rows a column stays text; declare them in "
    "a schema (",
    *(drafting(), "), or say ", setting("trust_domain"), " if they are public"),
)


class KeepRows:
    """Keep so many rows of each privacy unit, and leave out columns that are computed from others."""

    name: ClassVar[str] = "keep rows"

    def plan(self, plan: RunPlan) -> Planned:
        """It releases nothing."""
        return Planned(plan=plan)

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Which rows are kept is chosen by secret numbers of the gate."""
        return PrivateRows(table=recode(keep_rows(rows.table, means.gate), known.plan.outer)), known


class ReadRules:
    """Bind constraints to the schema, and take domains from public tables; refuse what no table can keep."""

    name: ClassVar[str] = "read rules"

    def plan(self, plan: RunPlan) -> Planned:
        """It releases nothing; without a schema, names and types that rules ask for are looked at."""
        asked, schema = plan.asked, plan.schema
        if schema is None:
            refuse_clashing_types(asked.given)
            check_lists(asked.settings.value_lists, asked.columns)
            return Planned(plan=plan)
        found = plan.discovery is not None and plan.discovery.untyped
        schema = with_reference_domains(schema, asked.raw_references, types_were_found=found)
        schema = with_public_domains(schema, asked.given, asked.settings.value_lists, types_found=found)
        layout = Layout.of(schema, outer=asked.outer)
        split = layout.rules(_bind(asked.given, layout, types_were_found=found))
        refuse_undrawable(split.drawn)
        references = typed_references(asked.raw_references, schema, split.drawn)
        refuse_hopeless(schema, split.drawn, asked.num_rows, keeps=asked.settings.sampling.keeps_hard_constraints)
        return Planned(
            plan=replace(plan, schema=schema, bound=BoundRules(rules=split, layout=layout, references=references))
        )

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Nothing is left to do."""
        del means
        return rows, known


class CountRows:
    """Release about how many rows there are, which tells what finding types and domains must cost.

    Guarantees:
        Where there are too few rows, next to nothing is spent.  [test_too_few_rows_are_refused_at_once]
    """

    name: ClassVar[str] = "count rows"

    def plan(self, plan: RunPlan) -> Planned:
        """The number of rows, where something is to be found; before it, delta is set aside if types are."""
        if not plan.missing:
            return Planned(plan=plan)
        untyped = plan.schema is None
        discovery = plan.discovery or Discovery(num_columns=len(plan.missing), untyped=untyped)
        return Planned(
            plan=replace(plan, discovery=discovery), releases=planned_rows(plan.settings, untyped=discovery.untyped)
        )

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release it, and plan what follows exactly."""
        plan, settings = known.plan, known.plan.settings
        if plan.discovery is None:
            return rows, known
        means.progress(Stage.DOMAINS)
        if plan.discovery.untyped:
            set_delta_aside(means.gate, plan.discovery.domains(settings))
        about = release_about_rows(rows.table, means.gate, mu_squared=rows_share(settings))
        plan = plan.with_rows(about)
        if plan.discovery is not None and plan.discovery.is_hopeless(settings):
            columns = plan.columns if plan.schema is None else plan.schema.data_names
            refuse_too_few_rows(about, num_missing=len(plan.missing), num_columns=len(columns), settings=settings)
        if plan.schema is not None:
            refuse_noise(plan, about)
        return rows, replace(known, plan=plan)


class FindTypes:
    """Find the types of a file's columns by how their cells are written."""

    name: ClassVar[str] = "find types"

    def plan(self, plan: RunPlan) -> Planned:
        """How cells are written, for all columns together; what follows waits for the types."""
        if plan.schema is not None or plan.discovery is None:
            return Planned(plan=plan)
        releases = planned_types(plan.columns, plan.discovery, plan.settings)
        return Planned(plan=plan, releases=releases, waits=True)

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release it, and plan what follows."""
        plan = known.plan
        if plan.schema is not None or plan.discovery is None:
            return rows, known
        found = discover_types(rows.table, means.gate, mu_squared=plan.discovery.types(plan.settings))
        return rows, replace(known, plan=plan.with_schema(found))


class FindDomains:
    """Find the domains that nobody declared.

    Guarantees:
        Where most columns turn out useless, nothing more is spent.  [test_a_useless_table_is_refused_early]
        The same holds for a table that would be noise.  [test_a_table_of_noise_is_refused]
    """

    name: ClassVar[str] = "find domains"

    def plan(self, plan: RunPlan) -> Planned:
        """Decimals, ranges, sets of categories, and what these lose; what follows waits for the domains."""
        if plan.schema is None or not plan.schema.missing_domains or plan.discovery is None:
            return Planned(plan=plan)
        releases = planned_domains(plan.schema, plan.discovery, plan.settings)
        return Planned(plan=plan, releases=releases, waits=True)

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release them, and plan what follows."""
        plan, settings = known.plan, known.plan.settings
        found = None
        if plan.discovery is not None:
            found = FoundDomains(schema=plan.known, types_found=plan.discovery.untyped)
            if plan.known.missing_domains:
                found = discover_domains(rows.table, plan.known, means.gate, plan.discovery.domains(settings))
                refuse_useless(found, settings)
                plan = plan.with_schema(found.schema)
            refuse_noise(plan, plan.discovery.about_rows or 0 if plan.discovery is not None else 0)
        check_columns(plan.known, rows.table.without_rows())
        return rows, replace(known, plan=plan, found=found)


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
