"""Options that several commands share."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kamino.cli.console import error_console
from kamino.constraints import Constraints
from kamino.constraints.types import ValueTypes
from kamino.errors import InputError
from kamino.io import Reading
from kamino.io.databases.credentials import has_password
from kamino.io.text import read_text
from kamino.pipeline import Preset, Synthesizer
from kamino.pipeline.inputs import constraints_from
from kamino.pipeline.ledgering import LedgerUse
from kamino.pipeline.settings import METHOD

DATA_HELP = (
    "A file (.csv, .tsv, .jsonl, .parquet, .feather, .xlsx), a folder of .parquet, or a database: duckdb:///f.db, "
    "postgresql://…, spark://… with -q or #table"
)


def _seen_by_others(address: str) -> str:
    """Say that a password on the command line can be read by others.

    Guarantees:
        It is told, and the password is not.  [test_a_password_on_the_command_line_is_told]
    """
    if has_password(address):
        error_console().print(
            "Warning: the address holds a password, which others can read in the list of processes of this machine. "
            "Leave it out, and set PGPASSWORD or write ~/.pgpass.",
            style="yellow",
            soft_wrap=True,
        )
    return address


DataArgument = Annotated[str, typer.Argument(help=DATA_HELP, callback=_seen_by_others)]
QueryOption = Annotated[
    str | None,
    typer.Option(
        "--query",
        "-q",
        help="SQL query or table name, for a database; the sheet of a workbook. A query has all rights of the user in "
        "the address, in a read-only transaction: connect as one who may only read.",
    ),
]
OutputOption = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        help="The synthetic table: .csv (.gz, .zst), .tsv, .jsonl, .parquet, .feather, or duckdb:///f.db#table, "
        "postgresql://…#table.",
        callback=_seen_by_others,
    ),
]
_READING = "Reading"
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--separator", help="Between cells of a text file; found in its header if left out.", rich_help_panel=_READING
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding", help="Of a text file, such as cp1252; found in its header if left out.", rich_help_panel=_READING
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="Read these columns only; may be repeated. They name those of JSON lines.",
        rich_help_panel=_READING,
    ),
]
DropOption = Annotated[
    list[str] | None, typer.Option("--drop", help="Leave this column out; may be repeated.", rich_help_panel=_READING)
]
NullsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--nulls",
        help="Cells of this text are empty, such as NA or -999; COLUMN=TEXT for one column; may be repeated.",
        rich_help_panel=_READING,
    ),
]
NumbersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--numbers",
        help="COLUMN=EXAMPLE: its numbers are written as 1,234.5 or 1.234,5 (or 1 234,5), with signs of currencies, "
        "percent, parentheses for negative ones; may be repeated.",
        rich_help_panel=_READING,
    ),
]
ConstraintsOption = Annotated[
    Path | None,
    typer.Option("-c", "--constraints", help="The constraint file, one a line; or .sql with a CREATE TABLE."),
]
SchemaOption = Annotated[Path | None, typer.Option("-s", "--schema", help="The schema file (see kamino init).")]
RowsOption = Annotated[
    int | None, typer.Option("-n", "--rows", min=0, help="Rows to make; by default about as many as there are.")
]
_LEDGER = "Durable ledger"
LedgerOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="Enter the run in this file before anything is read; see kamino ledger.",
        rich_help_panel=_LEDGER,
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset", help="Name of the dataset in the ledger; by default that of the file.", rich_help_panel=_LEDGER
    ),
]
AnchorOption = Annotated[
    Path | None,
    typer.Option(
        "--anchor",
        help="Keep the heads of the ledger in this file too, on another disk; a ledger that was set back is refused.",
        rich_help_panel=_LEDGER,
    ),
]
ResumeOption = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Go on with an unfinished run of the same plan, or start anew; by default go on if there is one.",
        rich_help_panel=_LEDGER,
    ),
]
SpreadsheetOption = Annotated[
    bool, typer.Option("--spreadsheet-safe", help="Put an apostrophe before texts that a spreadsheet would run.")
]
PresetOption = Annotated[
    Preset,
    typer.Option(
        "--preset", help="default; paper: neural model, sequence, sampling; printed: unmended.", rich_help_panel=METHOD
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        "--workers",
        help="Who draws a long table: a number of processes, or a cluster (tcp://… of Dask, spark://…). The rows are "
        "the same.",
        rich_help_panel=METHOD,
    ),
]


def reading_of(
    query: str | None,
    separator: str | None,
    encoding: str | None,
    columns: list[str] | None,
    drop: list[str] | None,
    nulls: list[str] | None = None,
    numbers: list[str] | None = None,
) -> Reading:
    """How the table is read, as the options say. Several names may stand in one option, with commas between."""
    words: dict[str, tuple[str, ...]] = {}
    for each in nulls or ():
        column, _, text = each.rpartition("=")
        words[column] = (*words.get(column, ()), text)
    return Reading(
        query=query,
        separator=separator,
        encoding=encoding,
        columns=_named(columns),
        drop=_named(drop),
        nulls=words.pop("", ()),
        nulls_of=words,
        numbers=dict(_styled(each) for each in numbers or ()),
    )


def _styled(given: str) -> tuple[str, str]:
    column, found, style = given.rpartition("=")
    if not found or not column:
        raise InputError(f"found --numbers {given}; expected COLUMN=EXAMPLE, such as price=1,234.5")
    return column, style


def _named(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name for text in given or () for name in next(csv.reader([text])))


def read_constraints(path: Path | None, *, types: ValueTypes | None = None) -> Constraints:
    """The constraints of a file; none where there is no file. What of DDL was not taken over is told."""
    if path is None:
        return Constraints()
    if path.suffix.lower() == ".sql":
        found = constraints_from(path, tell=tell)
        return found if types is None else found.bind(types)
    return Constraints.parse(read_text(path, what="constraint file"), source=str(path), types=types)


def told_constraints(path: Path | None) -> Constraints | Path:
    """The same for a run, which takes the path of the file, where reference tables are named from; DDL names none."""
    if path is None or path.suffix.lower() != ".sql":
        return Constraints() if path is None else path
    return read_constraints(path)


def ledger_use(path: Path | None, dataset: str | None, resume: bool | None, anchor: Path | None) -> LedgerUse | None:
    """What the options of the durable ledger ask for; what the user should know is told on standard error."""
    if path is None:
        if dataset is not None or resume is not None or anchor is not None:
            raise InputError(
                "found --dataset, --resume, --no-resume or --anchor without a ledger; expected --ledger FILE as well"
            )
        return None
    return LedgerUse(path=path, dataset=dataset, resume=resume, anchor=anchor, tell=tell)


def tell(text: str) -> None:
    """Say a line on standard error."""
    error_console().print(text, markup=False, soft_wrap=True)


def tell_if_whole(
    synthesizer: Synthesizer, output: str, rows: int | None, given: Mapping[str, Any] | None = None
) -> None:
    """Say on standard error why a long table will be held in memory, before it is drawn."""
    whole = synthesizer.why_whole(output, rows, given=given)
    if whole is not None:
        tell(f"Note: {whole}.")


def shown_epsilon(epsilon: float | None) -> str:
    """Epsilon for people."""
    return "infinite: not private" if epsilon is None or math.isinf(epsilon) else f"{epsilon:.4g}"


def value_lists(given: list[str] | None) -> list[tuple[str, str]]:
    """The columns and the public lists that `--public-list` names."""
    return [_split_list(each) for each in given or ()]


def _split_list(given: str) -> tuple[str, str]:
    column, found, chosen = given.rpartition("=")
    if not found or not column or not chosen:
        raise InputError(f"found --public-list {given}; expected COLUMN=LIST, such as state=us-states")
    return column, chosen
