"""The `kamino` command: its subcommands, and how errors end."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import kamino
from kamino.cli.check import check
from kamino.cli.console import error_console
from kamino.cli.demo import demo
from kamino.errors import KaminoError

app = typer.Typer(
    name="kamino",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Differentially private synthetic tables that keep your constraints.",
    epilog="Exit codes: 0 fine; 1 the answer is no; 2 wrong use or bad input.",
)
app.command()(check)
app.command()(demo)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kamino {kamino.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line. Errors made on purpose end with exit code 2 and one line for each fault."""
    try:
        app()
    except KaminoError as problem:
        for line in str(problem).splitlines():
            error_console().print(f"kamino: {line}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
