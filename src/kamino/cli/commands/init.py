"""`kamino init`: a schema to start from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from kamino.cli.asking import READING, Asked, options
from kamino.cli.console import counted, error_console
from kamino.cli.options import DATA_HELP, tell
from kamino.cli.outputs import refuse_overwriting, refuse_unwritable
from kamino.constraints.language.printer import print_name
from kamino.errors import InputError, visible
from kamino.io import Reading, is_untyped, read_table
from kamino.io.atomic import atomic_file
from kamino.io.databases.catalogue import declared_attributes, read_catalogue, with_nulls_as_declared
from kamino.io.text import parse_json, read_text
from kamino.pipeline.output.notes import short_year_notes
from kamino.pipeline.plan.checked_domains import with_checks
from kamino.pipeline.plan.group_ids import with_person_ids
from kamino.pipeline.plan.whose_privacy import asked_columns, unit_question
from kamino.pipeline.plan.written_values import own_values
from kamino.pipeline.settings import Settings
from kamino.privacy.private import PrivateTable
from kamino.schema import (
    Categorical,
    Date,
    Datetime,
    Integer,
    Key,
    Real,
    Schema,
    Source,
    draft_schema,
    schema_from_pandera,
    schema_from_sdv,
)
from kamino.schema.files.date_formats import with_formats
from kamino.schema.files.draft import with_asserted
from kamino.schema.files.names import looks_like_amount, looks_like_code, proposed_range, with_usual_ranges
from kamino.schema.files.written_numbers import with_numbers


@options(
    *("data", "output", "trust_domain", "accept", "key", "usual_bounds", "look", "query", *READING, "sdv", "pandera"),
)
def init(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP)] = None,
    *,
    asked: Asked,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write it; the screen if left out.")
    ] = None,
    trust_domain: Annotated[
        bool,
        typer.Option(
            "--trust-domain",
            help="Take values and ranges from the table. Say this only if they are public: nothing protects them then.",
        ),
    ] = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="With --trust-domain, also list values nearly all of which are one row's own, such as names.",
        ),
    ] = False,
    key: Annotated[list[str] | None, typer.Option("--key", help="A column of identifiers; may be repeated.")] = None,
    usual_bounds: Annotated[
        bool,
        typer.Option(
            "--usual-bounds",
            help="Take the ranges that names suggest (age, percent, year) as declared: you confirm them.",
        ),
    ] = False,
    look: Annotated[
        bool,
        typer.Option(
            "--look",
            help="The cells may be looked at for how numbers and empty cells are written ($1,234.50, NA): the schema "
            "then says it.",
        ),
    ] = False,
    sdv: Annotated[Path | None, typer.Option("--sdv", help="Start from SDV's metadata JSON, not a table.")] = None,
    pandera: Annotated[
        Path | None, typer.Option("--pandera", help="Start from a pandera schema (YAML or JSON) instead of a table.")
    ] = None,
) -> None:
    """Draft a schema file: names and types only, unless you say that the domains are public.

    What has no domain in the schema is found within the privacy budget when the table is synthesized.
    """
    if sum(source is not None for source in (data, sdv, pandera)) != 1:
        raise InputError("found none or several of DATA, --sdv and --pandera; give the one to start from")
    if output is not None:
        refuse_overwriting(output, data, sdv, pandera)
        refuse_unwritable(output)
    if sdv is not None:
        schema = schema_from_sdv(_json(sdv))
    elif pandera is not None:
        schema = schema_from_pandera(read_text(pandera, what="pandera schema"))
    else:
        reading = asked.reading
        draft = _Draft(trust_domain=trust_domain, accept=accept, look=look, keys=tuple(key or ()))
        schema = _drafted(str(data), reading, draft)
    by = "as its cells are written" if data is not None and is_untyped(str(data)) else "by the type of the column"
    _tell(schema, by=by if data is not None else "as the file says", confirmed=usual_bounds)
    _write(with_usual_ranges(schema) if usual_bounds else schema, output)


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """What the user says of the cells: that domains are public, that values of single persons are, and how they are
    written; and which columns are keys.
    """

    trust_domain: bool
    accept: bool
    look: bool
    keys: tuple[str, ...]


def _drafted(data: str, reading: Reading, draft: _Draft) -> Schema:
    """A schema by names and types, by what cells of a file without types look like, and by the catalogue of a database.

    Guarantees:
        Keys, not-null, enums, checks, comments and references are taken over.  [test_init_takes_over_the_catalogue]
        Values of single persons are not listed, unless that is accepted.  [test_init_lists_no_values_of_one_person]
    """
    trust_domain, accept, look, keys = draft.trust_domain, draft.accept, draft.look, draft.keys
    table = read_table(data, reading=reading)
    catalogue = read_catalogue(data, reading.query)
    table = with_nulls_as_declared(table, catalogue)
    untyped = is_untyped(data)
    schema = draft_schema(table, trust_domain=trust_domain, keys=keys, codes=True, looks=untyped)
    if untyped:
        schema = with_formats(schema, table, trust_domain=trust_domain)
        schema = with_numbers(schema, table, trust_domain=trust_domain, styles=look or trust_domain)
    declared = {} if catalogue is None else declared_attributes(catalogue, table.schema)
    declared = with_checks(declared, catalogue, table.schema)
    for name, attribute in declared.items():
        if name not in keys:
            is_open = trust_domain and not attribute.has_domain
            made = with_asserted(attribute, table.column(name)) if is_open else attribute
            schema = schema.with_attribute(name, made)
    schema = with_person_ids(schema, but=(*keys, *declared))
    if not accept:
        schema = _without_own_values(schema, table)
    schema = _with_cells(schema, reading)
    for key in catalogue.not_made_up if catalogue is not None else ():
        named = ", ".join(map(print_name, key))
        tell(f"The database declares key ({named}): put that into a constraint file to keep it.")
    return schema


def _with_cells(schema: Schema, reading: Reading) -> Schema:
    """The schema, which says how cells are written, as the options say."""
    words, styles = dict(reading.cells.nulls_of), dict(reading.cells.numbers)
    for name, attribute in schema.attributes.items():
        said: dict[str, object] = {}
        if reading.nulls or name in words:
            said["nulls"] = tuple(dict.fromkeys([*attribute.nulls, *reading.nulls, *words.get(name, ())]))
        if name in styles and isinstance(attribute, Integer | Real):
            said["written"] = styles[name]
        if said:
            schema = schema.with_attribute(name, type(attribute)(**{**attribute.fields(), **said}))
    return schema


def _without_own_values(schema: Schema, table: pa.Table) -> Schema:
    """The schema without the lists of values nearly all of which are one row's own; each such column is told."""
    for name in own_values(PrivateTable(table), schema, Settings(trust_domain=True)):
        attribute = schema[name]
        schema = schema.with_attribute(name, Categorical(nullable=True, dtype=attribute.dtype))
        tell(
            f"{name}: nearly all of its values occur once, so they are not listed. Make it `type: key` to have values "
            "made up, leave it out, or say --accept to list them."
        )
    return schema


def _tell(schema: Schema, *, by: str, confirmed: bool) -> None:
    """Say what each column was taken for and why, which ranges names suggest, and which centuries are in doubt.

    Guarantees:
        Years of two digits are named.  [test_years_of_two_digits_are_told]
    """
    console = error_console()
    for name, attribute in schema.attributes.items():
        code = looks_like_code(name)
        if isinstance(attribute, Key) and attribute.repeats:
            text = f"{name}: key that repeats, by its name the id of a person: ids are made up, several rows for each."
            console.print(text, markup=False)
            continue
        if isinstance(attribute, Categorical) and code:
            why = ", by its name a code. List its values, or make it `type: key`" if not attribute.has_domain else ""
            console.print(f"{name}: categorical{why or ', by its name a code'}.", markup=False)
        elif isinstance(attribute, Integer) and code:
            console.print(
                f"{name}: integer, though its name is that of a code; `type: key` makes ids up.", markup=False
            )
        elif isinstance(attribute, Date | Datetime) and attribute.format is not None:
            console.print(f"{name}: {attribute.type}, written as {attribute.format}.", markup=False)
        else:
            console.print(f"{name}: {attribute.type}, {by}.", markup=False)
        if isinstance(attribute, Integer | Real) and attribute.written is not None:
            console.print(f"{name}: its numbers are written as {attribute.written}.", markup=False)
        if isinstance(attribute, Categorical) and not attribute.holds_integers and looks_like_amount(name):
            console.print(
                f"{name}: its name is that of an amount. If cells are written as $1,234.50 or 12,5, say "
                f"--numbers '{name}=1,234.5' (or 1.234,5), or --look to have that found.",
                markup=False,
            )
        usual = None if attribute.has_domain else proposed_range(name, attribute)
        if usual is not None and not confirmed:
            low, high = usual
            console.print(
                f"{name}: its name suggests min: {low}, max: {high}; write them into the file to confirm, or say "
                "--usual-bounds.",
                markup=False,
            )
    for note in short_year_notes(schema):
        console.print(f"{note}.", markup=False, soft_wrap=True)


def _json(path: Path) -> dict[str, object]:
    document = parse_json(read_text(path, what="metadata file"), source=str(path))
    if not isinstance(document, dict):
        raise InputError(f"{path}: found a JSON {type(document).__name__}, expected an object")
    return document


def _with_question(schema: Schema) -> str:
    """The text of the schema, with the question whose privacy it is, where columns look like ids of persons."""
    persons = asked_columns(schema.names, schema.attributes) if schema.unit is None else ()
    # A name may hold anything: in a comment it stays on its line.
    short = "".join(f"# {visible(' '.join(note.split()))}.\n" for note in short_year_notes(schema))
    if not persons:
        return short + schema.to_yaml()
    named = visible(" ".join(print_name(persons[0]).split()))
    question = (
        f"# {named} looks like the id of a person. Whose privacy is promised? Uncomment one:\n"
        f"# unit: {named}   # all rows of one person are hidden together, of which max_rows are kept\n"
        "# max_rows: 10\n"
        "# unit: row   # each row is another person's, or one row is all that is to be hidden\n"
    )
    return question + short + schema.to_yaml()


def _write(schema: Schema, output: Path | None) -> None:
    text = _with_question(schema)
    if output is None:
        typer.echo(text, nl=False)
        return
    with atomic_file(output) as handle:
        handle.write(text.encode("utf-8"))
    sources = list(schema.sources.values())
    persons = asked_columns(schema.names, schema.attributes) if schema.unit is None else ()
    asserted = sources.count(Source.ASSERTED)
    console = error_console()
    console.print(f"Wrote {output}: {counted(len(schema), 'attribute')}.", markup=False)
    if asserted:
        taken = "1 domain was" if asserted == 1 else f"{asserted} domains were"
        console.print(f"{taken} taken from the table because you said --trust-domain: the file records it.")
    if persons:
        console.print(f"{unit_question(persons)}. Say it in the file, as `unit:`, or to kamino synth.", markup=False)
    if schema.missing_domains:
        console.print(
            f"{len(schema.missing_domains)} without a domain yet: declare it in the file, or leave it out to have it "
            "found within the budget."
        )
