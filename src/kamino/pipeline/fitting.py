"""From a private table to a fitted model, through the gate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints
from kamino.engine import DiscoveryShare, discover_domains, discover_types, set_delta_aside
from kamino.errors import ConstraintError, ConstraintErrors, InputError
from kamino.pipeline.binding import bind_constraints, check_names, check_table, held_by_keys, schema_for
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.modelling import fit_model
from kamino.pipeline.references import load_references
from kamino.pipeline.settings import SequenceMode, Settings
from kamino.pipeline.stages import Progress, Stage, silent
from kamino.pipeline.weighing import has_soft, weigh, weights_noise
from kamino.privacy import Gate, SeededNoise
from kamino.sampling import SamplingPlan, build_plan, paper_sequence, random_order
from kamino.schema import Codec, Schema

# Of what finding domains may spend, the part that finding the types of a CSV file's columns takes.
TYPES_PART = 0.2
_TYPES_WERE_FOUND = (
    "types of a CSV file's columns are found within the budget, and with few rows a column stays text; "
    "declare them in a schema (kamino init), or say --trust-domain if they are public"
)


def open_gate(settings: Settings) -> Gate:
    """The gate of a run: noise from the operating system, unless a seed was given."""
    noise = SeededNoise(settings.seed) if settings.seed is not None else None
    return Gate(settings.budget, unit=settings.privacy_unit, noise=noise)


def fit(
    table: pa.Table,
    schema: Schema | None,
    constraints: Constraints,
    settings: Settings,
    gate: Gate,
    *,
    untyped: bool = False,
    folder: Path = Path(),
    num_rows: int | None = None,
    progress: Progress = silent,
) -> Fitted:
    """Fit a model of `table`, spending the gate's budget.

    With `untyped`, the columns are text for want of types, which are then found within the budget. Paths of reference
    tables start at `folder`. With `num_rows`, what so many rows cannot satisfy is refused at once.

    Raises:
        SamplingError: no table satisfies the constraints; nothing was spent where the schema has all domains.

    Guarantees:
        What is returned depends on the table through the gate only.  [test_replay_passes_for_synth]
        The ledger's total is within 0.1% below the budget, but for the neural backend, whose search may stop lower, and
        never above.  [test_budget_is_spent_and_not_overspent]
    """
    check_table(table)
    check_names(constraints, table.column_names if schema is None else list(schema))
    table = gate.select_rows(table)
    known, rules = _known_domains(table, schema, constraints, settings, gate, untyped=untyped, progress=progress)
    if not known.data_names:
        raise InputError("every column is a key, which carries no data; expected at least one other column")
    codec = Codec(known)
    references = load_references(rules, known, folder=folder)
    plan = build_plan(codec, rules, num_rows=num_rows, references=references)
    sequence = _sequence(codec, plan, rules, settings)
    progress(Stage.FIT)
    coded = codec.encode(table)
    noise = weights_noise(rules, settings, gate)
    model = fit_model(coded, codec, rules, sequence, settings, gate, rates_noise=noise, progress=progress)
    final = build_plan(codec, rules, references=references, sequence=model.sequence)
    if has_soft(rules):
        progress(Stage.WEIGHTS)
    soft = weigh(coded, codec, final, rules, model, gate, settings, noise_multiplier=noise)
    return Fitted(
        schema=known,
        constraints=rules,
        model=model,
        ledger=gate.ledger.to_dict(),
        references=references,
        soft=soft,
        settings=settings,
        held=held_by_keys(constraints, known),
    )


def _known_domains(
    table: pa.Table,
    schema: Schema | None,
    constraints: Constraints,
    settings: Settings,
    gate: Gate,
    *,
    untyped: bool,
    progress: Progress,
) -> tuple[Schema, Constraints]:
    """The schema with all domains, and the constraints bound to it; what is missing is found within the budget."""
    share = DiscoveryShare(
        mu_squared=gate.gaussian_left() * settings.discovery_share, delta=settings.delta * settings.discovery_share
    )
    find_types = schema is None and untyped
    if schema is None and untyped:
        progress(Stage.DOMAINS)
        share = set_delta_aside(gate, share)
        schema = discover_types(table, gate, mu_squared=TYPES_PART * share.mu_squared)
        share = replace(share, mu_squared=(1 - TYPES_PART) * share.mu_squared)
    known = schema_for(table, schema, settings)
    try:
        rules = bind_constraints(constraints, known)
    except ConstraintErrors as problem:
        if not find_types:
            raise
        faults = [_of_found_type(error) for error in problem.errors]
        raise ConstraintErrors([*faults, ConstraintError(_TYPES_WERE_FOUND)]) from None
    if known.missing_domains:
        progress(Stage.DOMAINS)
        known = discover_domains(table, known, gate, share)
    return known, rules


def _of_found_type(error: ConstraintError) -> ConstraintError:
    """The error of a constraint whose column has a type that was found: the type is in doubt, not the constraint."""
    found, _, _ = error.message.rpartition("; ")
    return ConstraintError(
        f"{found}; this type was found, not declared: declare the type in a schema (kamino init)",
        source=error.source,
        line=error.line,
        column=error.column,
    )


def _sequence(codec: Codec, plan: SamplingPlan, rules: Constraints, settings: Settings) -> tuple[str, ...] | None:
    """The order of attributes that the constraints ask for; None, if they do not care, leaves it to the model."""
    if settings.sequence is SequenceMode.PAPER:
        return paper_sequence(codec, rules)
    if settings.sequence is SequenceMode.RANDOM:
        return random_order(tuple(codec.attributes), np.random.default_rng(settings.seed))
    across = any(not c.is_unary for step in plan.steps for c in step.enforced)
    return plan.sequence if across else None
