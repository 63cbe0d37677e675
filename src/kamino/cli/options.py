"""Options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from kamino.constraints import Constraints
from kamino.io.text import read_text

DataArgument = Annotated[
    str, typer.Argument(help="A .csv or .parquet file, or a database: duckdb:///f.db, postgresql://…")
]
QueryOption = Annotated[str | None, typer.Option("--query", "-q", help="SQL query or table name, for a database.")]
ConstraintsOption = Annotated[
    Path | None, typer.Option("-c", "--constraints", help="The constraint file, one constraint a line.")
]
SchemaOption = Annotated[Path | None, typer.Option("-s", "--schema", help="The schema file (see kamino init).")]
EpsilonOption = Annotated[
    float, typer.Option("-e", "--epsilon", help="Privacy loss allowed; smaller is more private. inf: not private.")
]
DeltaOption = Annotated[float, typer.Option("-d", "--delta", help="Chance allowed for more than epsilon.")]
RowsOption = Annotated[
    int | None, typer.Option("-n", "--rows", min=0, help="Rows to make; by default about as many as there are.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="For tests only: repeats the run and marks it 'not for release'.")
]


def read_constraints(path: Path | None) -> Constraints:
    """The constraints of a file; none where there is no file."""
    if path is None:
        return Constraints()
    return Constraints.parse(read_text(path, what="constraint file"), source=str(path))


def shown_epsilon(epsilon: float | None) -> str:
    """Epsilon for people."""
    return "infinite: not private" if epsilon is None or math.isinf(epsilon) else f"{epsilon:.4g}"
