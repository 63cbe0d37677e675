"""`kamino rules`: rules that are written elsewhere, into this language, out of it, and explained."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from kamino.cli.console import counted, error_console, output_console, safe
from kamino.cli.outputs import refuse_overwriting
from kamino.cli.plain_help import PlainCommand, PlainGroup
from kamino.constraints import Constraints
from kamino.contracts import Contract, read_contract
from kamino.contracts.contract import print_statement
from kamino.contracts.contract_readers import ReadOptions
from kamino.contracts.exporting import EXPORTS, exported
from kamino.errors import InputError
from kamino.io.atomic import atomic_file
from kamino.io.text import read_text
from kamino.sampling.intervals.rules_in_words import explained

rules = typer.Typer(
    cls=PlainGroup,
    help="Read rules that are written elsewhere, write them for others, and explain them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
OutputOption = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write it; the screen if left out.")]


@rules.command("import", cls=PlainCommand)
def import_(
    source: Annotated[Path, typer.Argument(help="A file, or the folder of a dbt project.")],
    output: OutputOption = None,
    kind: Annotated[str | None, typer.Option("--kind", help="What it is, if that is not found by itself.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="Only this table, of several.")] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", help="The dialect of SQL in it.")] = None,
    today: Annotated[
        datetime | None,
        typer.Option("--today", formats=["%Y-%m-%d"], help="The day that stands for the current date in it."),
    ] = None,
) -> None:
    """Read rules of dbt, SQL, Great Expectations, Soda, ODCS, R's validate, pandera, SDV and others, as constraints.

    What is not carried over is listed, rule by rule, with the reason and the line. Exit code 1 where anything is.
    """
    day = None if today is None else date(today.year, today.month, today.day)
    found = read_contract(source, kind=kind, options=ReadOptions(dialect=dialect, today=day, table=table or "data"))
    tables = [name for name in found.names if any(rule.table == name for rule in found.rules)]
    if output is not None and table is None and len(tables) > 1:
        raise InputError(f"{source}: found rules of {len(tables)} tables; say --table, one of {', '.join(tables[:20])}")
    _write(_as_text(found, table, source), output)
    console = error_console()
    for each in found.left_out:
        if table is None or each.table in (table, ""):
            console.print(safe(str(each)), soft_wrap=True)
    for reference in found.references:
        if table is None or reference.table == table:
            there = f"{reference.to_table} ({', '.join(reference.to_columns)})"
            console.print(
                safe(f"reference: {reference.table} ({', '.join(reference.columns)}) -> {there}"), soft_wrap=True
            )
    console.print(
        f"{counted(len(found.rules), 'rule')} carried over, {counted(len(found.references), 'reference')} to other "
        f"tables, {len(found.left_out)} not carried over."
    )
    if found.left_out:
        raise typer.Exit(1)


def _as_text(found: Contract, table: str | None, source: Path) -> str:
    lines = [f"# from {source}"]
    last, known = None, set()
    for rule in found.rules:
        if table is not None and rule.table != table:
            continue
        if rule.table != last:
            lines.append(f"# table {' '.join(rule.table.split())}")
            last = rule.table
        texts = [print_statement(each) for each in rule.statements]
        note = f"  # {' '.join(rule.note.split())}" if rule.note else ""
        for text in texts:
            if (rule.table, text) not in known:
                known.add((rule.table, text))
                lines.append(text + note)
    return "\n".join(lines) + "\n"


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
        return
    refuse_overwriting(output)
    with atomic_file(output) as handle:
        handle.write(text.encode("utf-8"))


@rules.command(cls=PlainCommand)
def to(
    kind: Annotated[str, typer.Argument(help=f"What to write: {', '.join(EXPORTS)}.")],
    file: Annotated[Path, typer.Argument(help="The constraint file.")],
    output: OutputOption = None,
    table: Annotated[str, typer.Option("--table", help="The name of the table there.")] = "data",
) -> None:
    """Write constraints for others to check: SQL with CHECK and UNIQUE, tests of dbt, or a data contract.

    What the other side cannot say is listed. Exit code 1 where anything is.
    """
    if kind not in EXPORTS:
        raise InputError(f"found '{kind}', expected one of {', '.join(EXPORTS)}")
    found = Constraints.parse(read_text(file, what="constraint file"), source=str(file))
    text, left_out = exported(kind, found, table)
    _write(text, output)
    for line in left_out:
        error_console().print(safe(f"not written: {line}"), soft_wrap=True)
    if left_out:
        raise typer.Exit(1)


@rules.command(cls=PlainCommand)
def explain(file: Annotated[Path, typer.Argument(help="The constraint file.")]) -> None:
    """Say what each rule is, which say the same, which follow from others, and which clash. Needs no table.

    Exit code 1 where rules clash.
    """
    found = Constraints.parse(read_text(file, what="constraint file"), source=str(file))
    lines, clash = explained(found)
    for line in lines:
        output_console().print(safe(line), soft_wrap=True)
    if clash:
        raise typer.Exit(1)
