"""`kamino demo`: the main job on built-in data."""

from __future__ import annotations

from typing import Annotated

import typer

from kamino.cli.console import output_console, track
from kamino.cli.render_check import print_check
from kamino.constraints import Constraints, value_types
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.evaluate.check import check_table


def demo(
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many rows to make.")] = 30_000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the built-in table.")] = 0,
) -> None:
    """Make the built-in tax table and check its six constraints."""
    console = output_console()
    table = tax(rows, seed=seed)
    rules = Constraints.parse(TAX_CONSTRAINTS, source="built-in", types=value_types(table))
    console.print(f"A made-up tax table: {table.num_rows:,} rows, columns {', '.join(table.column_names)}.")
    result = check_table(table, rules, progress=track("Counting violations"))
    print_check(console, result, table=table, explain=False)
    if not result.is_clean:
        raise typer.Exit(1)
