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
from kamino.pipeline import Backend, Engine, Preset, SequenceMode, Synthesizer, Training, WeightMode
from kamino.pipeline.inputs import constraints_from
from kamino.pipeline.ledgering import LedgerUse
from kamino.privacy import Neighbours
from kamino.sampling import Sampling

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
ConstraintsOption = Annotated[
    Path | None,
    typer.Option("-c", "--constraints", help="The constraint file, one a line; or .sql with a CREATE TABLE."),
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
    int | None,
    typer.Option(
        "--seed",
        help="For tests only: repeats the run, to the byte on one machine with the same versions, and marks it "
        "'not for release'.",
    ),
]
UnitOption = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="Whose privacy: a column that says whose a row is, to hide all rows of one person together (with "
        "--max-rows); or row, to hide one row. Asked for where a column looks like the id of a person.",
    ),
]
AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Mark the table for release although epsilon is above 10, delta is above 1/rows or 0.01, or "
        "--trust-domain writes real ids of persons, or values that one row alone has (names, addresses, comments).",
    ),
]
AnywayOption = Annotated[
    bool,
    typer.Option("--anyway", help="Go on even if most columns turn out useless: not found, or hidden by noise."),
]
PublicListOption = Annotated[
    list[str] | None,
    typer.Option(
        "--public-list",
        help="COLUMN=LIST: its values are those of a public list (country-codes, currency-codes, us-states, "
        "us-state-codes); may be repeated.",
    ),
]
MaxRowsOption = Annotated[int | None, typer.Option("--max-rows", min=1, help="Rows kept of one unit.")]
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
# Choices of the method: what is not given is as the preset has it.
_METHOD = "Method"
PresetOption = Annotated[
    Preset,
    typer.Option(
        "--preset", help="default; paper: neural model, sequence, sampling; printed: unmended.", rich_help_panel=_METHOD
    ),
]
BackendOption = Annotated[
    Backend | None,
    typer.Option("--backend", help="The model: marginal, or neural.", rich_help_panel=_METHOD),
]
SequenceOption = Annotated[
    SequenceMode | None, typer.Option("--sequence", help="How attributes are ordered.", rich_help_panel=_METHOD)
]
SamplingOption = Annotated[
    Sampling | None,
    typer.Option(
        "--sampling",
        help="How rows are drawn; constraint-aware, row-by-row and printed keep hard constraints.",
        rich_help_panel=_METHOD,
    ),
]
WeightsOption = Annotated[
    WeightMode | None, typer.Option("--weights", help="How soft constraints are weighed.", rich_help_panel=_METHOD)
]
TrainingOption = Annotated[
    Training | None,
    typer.Option(
        "--training",
        help="The neural model: fitted to the budget, or as the paper prints it (needs kamino-synth\\[neural]).",
        rich_help_panel=_METHOD,
    ),
]
SweepsOption = Annotated[
    int | None,
    typer.Option(
        "--sweeps",
        min=0,
        help="How often rows are drawn again for soft constraints (4; paper: 0).",
        rich_help_panel=_METHOD,
    ),
]
CandidatesOption = Annotated[
    int | None,
    typer.Option("--candidates", min=1, help="Values tried for a number, by row-by-row (10).", rich_help_panel=_METHOD),
]
NeighboursOption = Annotated[
    Neighbours | None,
    typer.Option(
        "--neighbours", help="One person's data is a row more or less, or a row replaced.", rich_help_panel=_METHOD
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Parts of a neural model trained at a time (1).", rich_help_panel=_METHOD),
]
EngineOption = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        help="Where counts are computed: memory; streamed, for tables larger than that; spark. By default by kind and "
        "size.",
        rich_help_panel=_METHOD,
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        "--workers",
        help="Who draws a long table: a number of processes, or a cluster (tcp://… of Dask, spark://…). The rows are "
        "the same.",
        rich_help_panel=_METHOD,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Address of a Dask cluster to train on; it sees private rows.", rich_help_panel=_METHOD
    ),
]


def reading_of(
    query: str | None, separator: str | None, encoding: str | None, columns: list[str] | None, drop: list[str] | None
) -> Reading:
    """How the table is read, as the options say. Several names may stand in one option, with commas between."""
    return Reading(query=query, separator=separator, encoding=encoding, columns=_named(columns), drop=_named(drop))


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
