"""`kamino check`: does the table satisfy its constraints?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kamino.cli.console import json_text, output_console, track
from kamino.cli.render_check import print_check
from kamino.constraints import Constraints, value_types
from kamino.evaluate.checking import as_json, check_table
from kamino.io import read_table
from kamino.io.text import read_text


def check(
    data: Annotated[str, typer.Argument(help="A .csv or .parquet file, or a database: duckdb:///f.db, postgresql://…")],
    constraints: Annotated[Path, typer.Option("-c", "--constraints", help="The constraint file, one a line.")],
    query: Annotated[str | None, typer.Option("--query", "-q", help="SQL query or table name, for a database.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each constraint's class, how it is counted, and what is redundant.")
    ] = False,
    show: Annotated[int, typer.Option("--show", min=0, help="Show up to this many violations of each.")] = 0,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Count the violations of each constraint, exactly.

    A tool for the owner of the table: what it prints is computed from the table itself and is not private.

    Exit code 1 if a hard constraint is violated, 0 if none is.
    """
    table = read_table(data, query=query)
    rules = Constraints.parse(
        read_text(constraints, what="constraint file"), source=str(constraints), types=value_types(table)
    )
    result = check_table(table, rules, examples=show, explain=explain, progress=track("Counting violations"))
    if as_json_text:
        typer.echo(json_text(as_json(result, explain=explain)))
    else:
        print_check(output_console(), result, table=table, explain=explain)
    if not result.is_clean:
        raise typer.Exit(1)
