"""`kamino verify`: is a table what its certificate says?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kamino.cli.console import counted, output_console, safe
from kamino.cli.outputs import certificates_of, refuse_overwriting, refuse_unwritable
from kamino.pipeline.output.release_mark import FOR_RELEASE
from kamino.pipeline.verifying.registry_entry import write_entry
from kamino.pipeline.verifying.verification import Verification
from kamino.pipeline.verifying.verification import verify as verify_table


def verify(
    table: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="The synthetic table: a file, or duckdb:///f.db#table, postgresql://…#table."
        ),
    ],
    certificate: Annotated[
        Path | None, typer.Argument(help="Its certificate; by default OUT.certificate.json.", show_default=False)
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option("-c", "--constraints", help="The constraints it must be about, with their reference tables."),
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The public key it must be signed by: a PEM file.")] = None,
    registry_entry: Annotated[
        Path | None,
        typer.Option("--registry-entry", help="If it holds, draft an entry for the OpenDP deployments registry here."),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="The name of the table, for a database without #table.")
    ] = None,
    all_findings: Annotated[bool, typer.Option("--all", help="Also show what is as claimed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Derive again what a certificate says, from the table, the rules and the events. Needs no private table.

    Exit code 1 if anything is not as claimed, 0 if all is; 2 if the certificate is malformed.
    """
    table = f"{table}#{query}" if query is not None else table
    beside = certificates_of(table)[0] if certificate is None else certificate
    if registry_entry is not None:
        refuse_overwriting(registry_entry, table, beside, constraints, key)
        refuse_unwritable(registry_entry)
    result = verify_table(table, beside, key=key, constraints=constraints)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2, ensure_ascii=False))
    else:
        print_verification(output_console(), result, every=all_findings)
    if not result.holds:
        raise typer.Exit(1)
    if registry_entry is not None:
        write_entry(beside, registry_entry)


def print_verification(console: Console, result: Verification, *, every: bool) -> None:
    """A line for each claim that does not hold, or for all, and the verdict."""
    rows = result.findings if every else result.failed
    if rows:
        grid = Table()
        for title in ("what", "claimed", "found"):
            grid.add_column(title, overflow="fold")
        for each in rows:
            style = "" if each.holds else "bold red"
            grid.add_row(safe(each.what), safe(each.claimed), safe(each.found, style=style))
        console.print(grid)
    if result.stated:
        console.print(safe(f"Stated, and not derived from anything: {', '.join(result.stated)}."))
    console.print(safe(_signed(result)))
    if result.mark != FOR_RELEASE:
        console.print(safe(f"The table is {result.mark}.", style="bold red"))
    count = counted(len(result.findings), "claim")
    if result.holds:
        console.print(safe(f"The certificate holds: {count} derived again.", style="bold green"))
    else:
        console.print(safe(f"The certificate does not hold: {len(result.failed)} of {count} differ.", style="bold red"))


def _signed(result: Verification) -> str:
    if result.signed_by is None:
        return "Not signed by a key that was checked: whoever changed both files could have made this."
    return f"Signed by the key {result.signed_by}; compare it with the one that whoever released the table gave you."
