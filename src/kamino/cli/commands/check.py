"""`kamino check`: does the table satisfy its constraints?"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Annotated

import typer

from kamino.cli.asking import READING, Asked, options
from kamino.cli.console import json_text, output_console, safe, track
from kamino.cli.options import DataArgument, read_constraints
from kamino.cli.render_check import print_cells, print_check
from kamino.constraints import value_types
from kamino.constraints.analysis.text_orders import text_order_notes
from kamino.errors import ConstraintError, ConstraintErrors, InputError
from kamino.evaluate.as_declared import DeclaredParts, as_declared
from kamino.evaluate.cells import CellCheck, add_cells, check_cells
from kamino.evaluate.checking import as_json, check_parts, check_table
from kamino.io import Reading, read_table
from kamino.io.streams.sources import is_large, open_stream, why_not_streamed
from kamino.io.text import read_text
from kamino.io.written_cells import WrittenParts
from kamino.pipeline import Engine
from kamino.pipeline.inputs import constraints_from, named_by, refuse_unread
from kamino.pipeline.plan.expected_other import mostly_other
from kamino.pipeline.plan.references import read_references, typed_like
from kamino.schema import Schema
from kamino.schema.table_parts import TableParts


@options("data", "constraints", "schema", "query", *READING, "explain", "show", "as_json_text", "engine")
def check(
    data: DataArgument,
    *,
    asked: Asked,
    schema: Annotated[
        Path | None,
        typer.Option("-s", "--schema", help="Count the cells that are unreadable, outside their domain or null."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each constraint's class, how it is counted, and what is redundant.")
    ] = False,
    show: Annotated[int, typer.Option("--show", min=0, help="Show up to this many violations of each.")] = 0,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Count the violations of each constraint, exactly; with a schema, the cells that do not fit it.

    A tool for the owner of the table: what it prints is computed from the table itself and is not private. Where a
    dependency names a reference table, the rows that contradict it are counted as well. With a schema, the cells are
    counted that a run would change: unreadable ones, ones outside their domain, nulls where none may be; and rules are
    counted as the schema reads the cells, such as dates by their format.

    Exit code 1 if a hard constraint is violated, its reference contradicted or a cell does not fit; else 0.
    """
    constraints, reading, engine = asked.constraints, asked.reading, asked.settings["engine"]
    if constraints is None and schema is None:
        raise InputError("found nothing to check the table against; expected -c rules.dc, -s schema.yaml or both")
    declared = None
    if schema is not None:
        declared = Schema.from_yaml(read_text(schema, what="schema file"), source=str(schema))
    if reading.columns or reading.drop:
        refuse_unread(reading, constraints_from(constraints), declared)
    parts = _open_parts(data, reading, engine, show=show, constraints=constraints)
    reading = reading.with_cells(declared)
    table = read_table(data, reading=reading) if parts is None else parts.schema.empty_table()
    # Rules are counted as a run reads the table: texts that the schema calls dates or numbers are no texts.
    table = table if declared is None else as_declared(table, declared)
    cells = None if declared is None else _count_cells(data, reading, declared, in_parts=parts is not None)
    rules = read_constraints(constraints, types=value_types(table))
    if parts is not None:
        result = check_parts(parts if declared is None else DeclaredParts(source=parts, declared=declared), rules)
    else:
        folder = Path() if constraints is None else constraints.parent
        references = typed_like(read_references(rules, folder=folder), table, rules)
        result = check_table(
            table, rules, examples=show, explain=explain, references=references, progress=track("Counting violations")
        )
    rare = () if declared is None else mostly_other([table] if parts is None else parts.parts(), declared)
    if as_json_text:
        document = as_json(result, explain=explain)
        if cells is not None:
            document["cells"] = [each.to_json() for each in cells]
            document["would_become_other"] = {each.name: each.share for each in rare}
        typer.echo(json_text(document))
    else:
        if cells is not None:
            print_cells(output_console(), cells, rows=result.rows, rare=rare)
        for line in text_order_notes(rules, value_types(table)):
            output_console().print(safe(f"Note: {line}.", style="yellow"), soft_wrap=True)
        if constraints is not None:
            print_check(output_console(), result, table=table, explain=explain)
    if not result.is_clean or any(each.faults for each in cells or ()):
        raise typer.Exit(1)


def _open_parts(
    data: str, reading: Reading, engine: Engine | None, *, show: int, constraints: Path | None
) -> TableParts | None:
    """What reads a table part by part, if it is large or somebody asks for it; None if it is read as a whole."""
    wanted = engine is Engine.STREAMED or (engine is not Engine.MEMORY and is_large(data, reading.query))
    if not wanted:
        return None
    obstacle = why_not_streamed(data, reading, guarded=False, by_unit=False)
    if show:
        obstacle = "violations are shown from a table in memory; leave out --show"
    if _names_a_reference(constraints):
        obstacle = "reference tables are compared with a table in memory"
    if engine is Engine.STREAMED and obstacle is not None:
        raise InputError(f"found --engine streamed, but {obstacle}. Say --engine memory, or leave it out.")
    if obstacle is not None:
        return None
    parts = open_stream(data, reading.query)
    return WrittenParts(source=parts, cells=reading.cells) if reading.cells else parts


def _names_a_reference(constraints: Path | None) -> bool:
    """Whether constraints name a reference table; what cannot be read is told later, with its place."""
    try:
        return any(each.reference is not None for each in read_constraints(constraints))
    except (ConstraintError, ConstraintErrors):
        return False


def _count_cells(data: str, reading: Reading, schema: Schema, *, in_parts: bool) -> tuple[CellCheck, ...]:
    """The cells that do not fit a schema; the table is read as a run reads it."""
    if not in_parts:
        return check_cells(read_table(data, reading=named_by(reading, data, schema), private=True), schema)
    parts = WrittenParts(source=open_stream(data, reading.query, private=True), cells=reading.cells)
    return reduce(add_cells, (check_cells(part, schema) for part in parts.parts()))
