"""`kamino suggest`: constraints that a table seems to keep, found within a budget."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from kamino.cli.console import counted, error_console
from kamino.cli.options import DataArgument, DeltaOption, QueryOption, SchemaOption, SeedOption, shown_epsilon
from kamino.engine import keep_rows, with_types
from kamino.engine.suggesting import suggest_constraints
from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.text import read_text
from kamino.pipeline import Settings
from kamino.pipeline.fitting import open_gate
from kamino.pipeline.spending import telling_what_is_spent
from kamino.privacy.private import PrivateTable
from kamino.schema import Schema, check_columns

SuggestEpsilonOption = Annotated[
    float, typer.Option("-e", "--epsilon", help="Privacy loss allowed, on top of what synthesis will spend.")
]


def suggest(
    data: DataArgument,
    schema: SchemaOption = None,
    epsilon: SuggestEpsilonOption = 0.5,
    delta: DeltaOption = 1e-6,
    trust_domain: Annotated[
        bool, typer.Option("--trust-domain", help="The types of the columns are public: use them to look for orders.")
    ] = False,
    query: QueryOption = None,
    seed: SeedOption = None,
) -> None:
    """Print constraints that the table seems to keep, one a line with the part of rows that break it, ready to paste.

    Looks for keys, for dependencies with one or two columns on the left, and for orders of two columns whose types are
    in the schema or trusted. What is printed is private within epsilon; add it to what you spend elsewhere.
    """
    # Types that are inferred from a file depend on all of its rows: without leave, what stands in it is text.
    private = PrivateTable(read_table(data, query=query, private=not trust_domain))
    if not private.names:
        raise InputError("found a table without columns; expected at least one")
    known = None
    if schema is not None:
        known = Schema.from_yaml(read_text(schema, what="schema file"), source=str(schema))
        _check_typed(private, known)
    gate = open_gate(_settings(known, epsilon=epsilon, delta=delta, seed=seed))
    with telling_what_is_spent(gate.ledger.to_dict):
        # The unit's column may be a key, which typing leaves out: rows are chosen before.
        private = keep_rows(private, gate)
        if known is not None:
            private = with_types(private, known)
        has_types = known is not None or trust_domain
        ordered = tuple(field.name for field in private.without_rows().schema if has_types and _is_number(field.type))
        found = suggest_constraints(private, gate, ordered=ordered)
    for each in found:
        typer.echo(str(each))
    spent = shown_epsilon(gate.ledger.spent())
    error_console().print(
        f"{counted(len(found), 'suggestion')}; spent epsilon {spent} at delta {delta:g}, unit: {gate.unit.describe()}.",
        markup=False,
    )


def _settings(schema: Schema | None, *, epsilon: float, delta: float, seed: int | None) -> Settings:
    """The budget, for the unit that the schema names: the noise and the rows kept of a unit follow from it.

    Guarantees:
        A schema's unit scales the noise as in a synthesis.  [test_suggest_protects_the_unit_of_the_schema]
    """
    unit = schema.unit if schema is not None else None
    max_rows = schema.max_rows if schema is not None else None
    return Settings(epsilon=epsilon, delta=delta, unit=unit, max_rows=max_rows, seed=seed)


def _check_typed(private: PrivateTable, schema: Schema) -> None:
    """Refuse, before anything is spent, a schema that does not fit the columns of the table."""
    if schema.missing_domains:
        raise InputError(
            f"found no domain for {', '.join(schema.missing_domains)} in the schema; declare it, or leave --schema out"
        )
    check_columns(schema, private.without_rows())


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )
