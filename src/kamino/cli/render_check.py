"""How a check looks on a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kamino.cli.console import counted, safe
from kamino.constraints import print_constraint
from kamino.constraints.group_rules import GroupRule
from kamino.constraints.language.printer import print_derivation, print_rule
from kamino.constraints.tree import Kind, Strength
from kamino.evaluate.cells import CellCheck
from kamino.evaluate.checking import ConstraintCheck, TableCheck
from kamino.evaluate.following import Following
from kamino.pipeline.plan.expected_other import MostlyOther

NOT_PRIVATE = "Computed from the table itself: for its owner, not for release."


def print_check(console: Console, result: TableCheck, *, table: pa.Table, explain: bool) -> None:
    """The table of counts, then examples, findings and the verdict."""
    console.print(f"{counted(result.rows, 'row')}, {counted(len(result.checks), 'constraint')}")
    console.print(_counts(result, explain=explain))
    for number, check in enumerate(result.checks, start=1):
        if check.examples:
            _print_examples(console, number, check, table)
    _print_groups(console, result)
    for check in result.checks:
        if check.following is not None:
            console.print(_followed(check, check.following))
    _print_findings(console, result, explain=explain)
    console.print(_verdict(result))
    console.print(safe(NOT_PRIVATE, style="dim"))


def _print_groups(console: Console, result: TableCheck) -> None:
    """The rules on groups and the derived columns, where there are any."""
    if not result.groups and not result.derivations:
        return
    grid = Table()
    grid.add_column("rule", overflow="fold")
    grid.add_column("strength")
    grid.add_column("violations", justify="right")
    grid.add_column("of", justify="right")
    for check in result.groups:
        of = counted(check.groups, "group") if isinstance(check.rule, GroupRule) else "sets of rows"
        shown = safe(f"{check.violations:,}", style="bold red" if check.is_broken else "")
        grid.add_row(safe(print_rule(check.rule)), _strength(check.rule.strength), shown, of)
    for each in result.derivations:
        shown = safe(f"{each.violations:,}", style="bold red" if each.violations else "")
        grid.add_row(safe(print_derivation(each.derivation)), "hard", shown, counted(result.rows, "row"))
    console.print(grid)


def format_percent(percent: float) -> str:
    """Three decimals, but never 0.000% for something that is not zero."""
    if percent == 0:
        return "0%"
    return f"{percent:.3f}%" if percent >= 0.0005 else f"{percent:.1e}%"


def _counts(result: TableCheck, *, explain: bool) -> Table:
    grid = Table()
    grid.add_column("#", justify="right")
    grid.add_column("constraint", overflow="fold")
    grid.add_column("class")
    grid.add_column("strength")
    grid.add_column("violations", justify="right")
    grid.add_column("of", justify="right")
    grid.add_column("share", justify="right")
    if explain:
        grid.add_column("counted by", overflow="fold")
    for number, check in enumerate(result.checks, start=1):
        unit = "row" if check.constraint.is_unary else "pair"
        cells: list[str | Text] = [
            str(number),
            safe(print_constraint(check.constraint)),
            check.shape.value,
            _strength(check.constraint.strength),
            safe(f"{check.violations:,}", style="bold red" if check.is_broken else ""),
            counted(check.pairs, unit),
            format_percent(check.percent),
        ]
        grid.add_row(*cells, *([f"{check.method} ({check.seconds:.3f} s)"] if explain else []))
    return grid


def _strength(strength: Strength) -> str:
    return f"weight {strength.weight:g}" if strength.kind is Kind.WEIGHTED else strength.kind.value


def _print_examples(console: Console, number: int, check: ConstraintCheck, table: pa.Table) -> None:
    console.print(f"Violations of {number}, rows counted from 1:")
    grid = Table()
    grid.add_column("row", justify="right")
    for name in check.constraint.attributes:
        grid.add_column(safe(name))
    for example in check.examples:
        for index in example:
            cells = (_cell(table.column(name)[index].as_py()) for name in check.constraint.attributes)
            grid.add_row(str(index + 1), *cells)
        grid.add_section()
    console.print(grid)


def _cell(value: Any) -> Text:
    return safe("null", style="dim") if value is None else safe(str(value))


def _print_findings(console: Console, result: TableCheck, *, explain: bool) -> None:
    if not result.findings:
        return
    if not explain:
        count = len(result.findings)
        console.print(f"{count} {'note' if count == 1 else 'notes'} on the constraints: see --explain.")
        return
    console.print("Notes on the constraints:")
    for finding in result.findings:
        by = "".join(f"\n      {print_constraint(other)}" for other in finding.by)
        colon = ":" if by else ""
        head = f"  {finding.kind.value}: {print_constraint(finding.constraint)}"
        text = f"{head}\n    {finding.reason}{colon}{by}"
        console.print(safe(text, keep="\n"))


def print_cells(console: Console, cells: Sequence[CellCheck], *, rows: int, rare: Sequence[MostlyOther] = ()) -> None:
    """The cells of each column that do not fit the schema, and the columns of which a run would lose most values."""
    grid = Table()
    grid.add_column("column", overflow="fold")
    for title in ("unreadable", "outside the domain", "null, and may not be", "share"):
        grid.add_column(title, justify="right")
    for each in cells:
        share = format_percent(100.0 * each.faults / rows if rows else 0.0)
        counts = (f"{count:,}" for count in (each.unreadable, each.outside, each.forbidden_nulls))
        grid.add_row(safe(each.name), *counts, share, style="red" if each.faults else "")
    console.print(f"{counted(rows, 'row')}, {counted(len(cells), 'column')}: cells that do not fit the schema")
    console.print(grid)
    for each in cells:
        for reason, count in each.why:
            console.print(safe(f"  {each.name}: {counted(count, 'cell')}, {reason}", style="red"), soft_wrap=True)
    for column in rare:
        text = f"  {column.name}: about {column.share:.0%} of its cells would become `other`: few rows share a value."
        console.print(safe(f"{text} {_mend(column)}", style="yellow"), soft_wrap=True)
    broken = sum(1 for each in cells if each.faults)
    fine = f"All cells of {counted(len(cells), 'column')} fit the schema."
    bad = f"{broken} of {counted(len(cells), 'column')} have cells that a run would change."
    lost = f" {counted(len(rare), 'column')} would lose most values, since nobody listed them." if rare else ""
    style = "bold red" if broken else "bold yellow" if rare else "bold green"
    console.print(safe((bad if broken else fine) + lost, style=style))
    console.print(safe(NOT_PRIVATE, style="dim"))


def _mend(column: MostlyOther) -> str:
    """What to write into the schema for a column of which a run would lose most values."""
    if column.written is None:
        return "List its values, make it `type: key`, or leave it out (--drop)."
    said = ["type: real", *(f"{field}: {json.dumps(value)}" for field, value in column.written.items())]
    return f"Its cells look like numbers: say `{', '.join(said)}`."


def _followed(check: ConstraintCheck, found: Following) -> Text:
    """How rows follow the reference table of a constraint."""
    text = (
        f"{check.constraint.reference}: {counted(found.contradicting, 'row')} contradict it, "
        f"{found.following:,} follow it, {found.rows - found.known:,} have a left side that it does not list."
    )
    return safe(text, style="bold red" if check.constraint.is_hard and found.contradicting else "")


def _verdict(result: TableCheck) -> Text:
    broken = sum(check.is_broken for check in result.checks) + sum(check.is_broken for check in result.groups)
    broken += sum(check.violations > 0 for check in result.derivations)
    hard = sum(check.constraint.is_hard for check in result.checks) + len(result.derivations)
    hard += sum(check.rule.is_hard for check in result.groups)
    if broken:
        return safe(f"{broken} of {hard} hard constraints violated.", style="bold red")
    return safe(f"No hard constraint violated ({hard} checked).", style="bold green")
