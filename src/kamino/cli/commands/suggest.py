"""`kamino suggest`: constraints that a table seems to keep, found within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import pyarrow as pa
import typer

from kamino.cli.asking import LEDGER, READING, Asked, options
from kamino.cli.console import counted, error_console
from kamino.cli.options import DataArgument, tell
from kamino.constraints import Constraints
from kamino.engine import keep_rows, with_types
from kamino.engine.suggesting import suggest_constraints
from kamino.errors import InputError, visible
from kamino.io import read_table
from kamino.io.text import read_text
from kamino.pipeline import Settings
from kamino.pipeline.fitting import open_gate
from kamino.pipeline.inputs import named_by, refuse_unread
from kamino.pipeline.ledgering import LedgerUse, RunFacts, open_run, standing
from kamino.pipeline.output.release_mark import spent_of
from kamino.pipeline.spending import telling_what_is_spent
from kamino.privacy.durable.durable_run import DurableRun
from kamino.privacy.private import PrivateTable
from kamino.schema import Schema, check_columns

SuggestEpsilonOption = Annotated[
    float, typer.Option("-e", "--epsilon", help="Privacy loss allowed, on top of what synthesis will spend.")
]


@options(
    *("data", "schema", "epsilon", "delta", "accept", "trust_domain", "query", *READING, "seed", *LEDGER),
)
def suggest(
    data: DataArgument,
    *,
    asked: Asked,
    epsilon: SuggestEpsilonOption = 0.5,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Do not mark what is printed, although epsilon is above 10 or delta above 0.01."),
    ] = False,
    trust_domain: Annotated[
        bool, typer.Option("--trust-domain", help="The types of the columns are public: use them to look for orders.")
    ] = False,
) -> None:
    """Print constraints that the table seems to keep, one a line with the part of rows that break it, ready to paste.

    Looks for keys, for dependencies with one or two columns on the left, and, where types are in the schema or trusted,
    for orders and for comparisons of two columns. A draft of kamino init will do as the schema: domains are not needed.
    What is printed is private within epsilon; add it to what you spend elsewhere. The last line says what was spent,
    and whether it may be released.
    """
    known = None
    if asked.schema is not None:
        known = Schema.from_yaml(read_text(asked.schema, what="schema file"), source=str(asked.schema))
    settings = _settings(known, epsilon=epsilon, accept=accept, **asked.settings)
    reading = asked.reading
    refuse_unread(reading, Constraints(), known)
    facts = RunFacts(
        command="suggest",
        settings=settings,
        schema=known,
        query=reading.query,
        finds_domains=False,
        more={"trust_domain": trust_domain, **reading.to_json()},
    )
    with _entered(asked.ledger, data, facts) as run:
        # Types that are inferred from a file depend on all of its rows: without leave, what stands in it is text.
        how = named_by(reading, data, known, settings.privacy_unit.column)
        private = PrivateTable(read_table(data, reading=how, private=not trust_domain))
        if not private.names:
            raise InputError("found a table without columns; expected at least one")
        if known is not None:
            _check_typed(private, known)
        gate = open_gate(settings)
        if run is not None:
            run.attach(gate)
        with telling_what_is_spent(gate.ledger.to_dict, settings, resumable=run is not None):
            # The unit's column may be a key, which typing leaves out: rows are chosen before.
            private = keep_rows(private, gate)
            if known is not None:
                private = with_types(private, known)
            typed = known is not None or trust_domain
            ordered = tuple(field.name for field in private.without_rows().schema if typed and is_number(field.type))
            found = suggest_constraints(private, gate, ordered=ordered)
        spent = spent_of(gate.ledger.to_dict(), settings)
        if not spent.is_for_release:
            # A comment of a constraint file: the mark stays with what is pasted or piped elsewhere.
            typer.echo(visible(f"# {spent.told}"))
        for each in found:
            typer.echo(visible(str(each)))
    error_console().print(
        f"{counted(len(found), 'suggestion')}; spent epsilon {spent.shown_epsilon} at delta {spent.delta:g}, unit: "
        f"{spent.unit}; {spent.told}.",
        markup=False,
        soft_wrap=True,
    )


@contextmanager
def _entered(use: LedgerUse | None, data: str, facts: RunFacts) -> Iterator[DurableRun | None]:
    """A run in the durable ledger, if there is one: ended when the block ends well, and else left to go on later."""
    if use is None:
        yield None
        return
    run = open_run(use, data, facts)
    try:
        yield run
        run.close()
    except BaseException:
        run.leave()
        raise
    tell(standing(run))
    run.finish()


def _settings(
    schema: Schema | None, *, epsilon: float, delta: float, seed: int | None, accept: bool = False
) -> Settings:
    """The budget, for the unit that the schema names: the noise and the rows kept of a unit follow from it.

    Guarantees:
        A schema's unit scales the noise as in a synthesis.  [test_suggest_protects_the_unit_of_the_schema]
    """
    unit = schema.unit if schema is not None else None
    max_rows = schema.max_rows if schema is not None else None
    return Settings(epsilon=epsilon, delta=delta, unit=unit, max_rows=max_rows, seed=seed, accept=accept)


def _check_typed(private: PrivateTable, schema: Schema) -> None:
    """Refuse, before anything is spent, a schema that does not fit the columns of the table."""
    check_columns(schema, private.without_rows())


def is_number(kind: pa.DataType) -> bool:
    """Whether the order of the values of a type means something."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )
