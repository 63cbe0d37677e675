"""`kamino suggest`: constraints that a table seems to keep, found within a budget."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from kamino.cli.asking import LEDGER, READING, Asked, options
from kamino.cli.console import counted, error_console
from kamino.cli.options import DataArgument, tell
from kamino.constraints import Constraints
from kamino.engine import keep_rows, with_types
from kamino.engine.judging import Suggestion
from kamino.engine.suggesting import suggest_constraints
from kamino.errors import InputError, visible
from kamino.io.text import read_text
from kamino.pipeline import Engine, Job, Settings
from kamino.pipeline.ledgering import RunFacts, standing
from kamino.pipeline.output.release_mark import spent_of
from kamino.pipeline.plan.whose_privacy import refuse_unsaid_unit
from kamino.pipeline.run_source import RunRequest
from kamino.privacy import Gate
from kamino.privacy.private import PrivateTable
from kamino.schema import Schema, check_columns

SuggestEpsilonOption = Annotated[
    float, typer.Option("-e", "--epsilon", help="Privacy loss allowed, on top of what synthesis will spend.")
]


@options(
    *(
        "data",
        "schema",
        "epsilon",
        "delta",
        "unit",
        "max_rows",
        "accept",
        "trust_domain",
        "query",
        *READING,
        "seed",
        *LEDGER,
    ),
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
    settings = _settings(known, epsilon=epsilon, accept=accept, trust_domain=trust_domain, **asked.settings)
    request = RunRequest(settings=settings, schema=known, reading=asked.reading, command="suggest", ledger=asked.ledger)
    job = Job.open(data, request)
    with job.entered(_facts(job, trust_domain=trust_domain)) as run:
        found = _suggested(job, typed=known is not None or trust_domain)
        spent = spent_of(job.to_json()["ledger"], settings)
        if not spent.is_for_release:
            # A comment of a constraint file: the mark stays with what is pasted or piped elsewhere.
            typer.echo(visible(f"# {spent.told}"))
        for each in found:
            typer.echo(visible(str(each)))
    if run is not None:
        tell(standing(run))
        job.finish()
    error_console().print(
        f"{counted(len(found), 'suggestion')}; spent epsilon {spent.shown_epsilon} at delta {spent.delta:g}, unit: "
        f"{spent.unit}; {spent.told}.",
        markup=False,
        soft_wrap=True,
    )


def _facts(job: Job, *, trust_domain: bool) -> RunFacts:
    """What decides the releases: types are not found, and no domain is."""
    asked = job.request
    return RunFacts(
        command=asked.command,
        settings=asked.settings,
        schema=asked.schema,
        query=asked.reading.query,
        finds_domains=False,
        more={"trust_domain": trust_domain, **asked.reading.to_json()},
    )


def _suggested(job: Job, *, typed: bool) -> tuple[Suggestion, ...]:
    """The constraints that the table seems to keep; where it is typed, orders are looked for too."""
    schema, columns = job.request.schema, job.facts.columns
    if not columns.names:
        raise InputError("found a table without columns; expected at least one")
    known = job.facts.declared if schema is None else schema.attributes
    refuse_unsaid_unit(columns.names, Constraints(), job.request.settings, known)
    if schema is not None:
        # A schema that does not fit, or has only keys, is refused before anything is spent.
        check_columns(schema, columns.empty_table())
        if not schema.data_names:
            raise InputError(
                "found a schema in which every column is a key, whose values mean nothing; expected another column, "
                "about which something can be suggested. Nothing was spent"
            )

    def work(private: PrivateTable, gate: Gate) -> tuple[Suggestion, ...]:
        # The unit's column may be a key, which typing leaves out: rows are chosen before.
        private = keep_rows(private, gate)
        if schema is not None:
            private = with_types(private, schema)
        ordered = tuple(field.name for field in private.without_rows().schema if typed and is_number(field.type))
        return suggest_constraints(private, gate, ordered=ordered)

    return job.spend(work)


def _settings(
    schema: Schema | None,
    *,
    epsilon: float,
    delta: float,
    unit: str | None,
    max_rows: int | None,
    seed: int | None,
    accept: bool,
    trust_domain: bool,
) -> Settings:
    """The budget, for the unit that is given or that the schema names: the noise and the rows kept of a unit follow.

    Guarantees:
        A schema's unit scales the noise as in a synthesis.  [test_suggest_protects_the_unit_of_the_schema]
    """
    if unit is None and schema is not None:
        unit, max_rows = schema.unit, schema.max_rows if max_rows is None else max_rows
    return Settings(
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        max_rows=max_rows,
        seed=seed,
        accept=accept,
        trust_domain=trust_domain,
        engine=Engine.MEMORY,
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether the order of the values of a type means something."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )
