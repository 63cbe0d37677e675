"""The `kamino` command: its subcommands, and how errors end."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

import kamino
from kamino.advice import Face, speaking
from kamino.cli.console import error_console
from kamino.cli.faults import fault_line, notes_of, usage_line
from kamino.cli.plain_help import PlainCommand, PlainFlags
from kamino.cli.signals import ToldToEndError, ending_in_order
from kamino.errors import KaminoError
from kamino.io.databases.credentials import mask_credentials

# The commands, each a function of its name in a module of its name, with the first line of its help.
COMMANDS = {
    "init": "Draft a schema file: names and types only, unless you say that the domains are public.",
    "check": "Count the violations of each constraint, exactly; with a schema, the cells that do not fit it.",
    "suggest": "Print constraints that the table seems to keep, one a line with the part of rows that break it, ready "
    "to paste.",
    "plan": "Show the order of attributes, how each is drawn and why, what is released, the noise and the errors to "
    "expect.",
    "synth": "Make a private synthetic table that keeps the constraints.",
    "sample": "Draw a table from a fitted model. Costs no privacy, however often.",
    "verify": "Derive again what a certificate says, from the table, the rules and the events. Needs no private table.",
    "sign": "Sign a certificate with your key, so that a recipient knows who released the table.",
    "audit": "Test the promise of a run: replay, prices, and games against the claim. For the owner, not for release.",
    "report": "Compare a synthetic table with the true one, on one page that needs no network.",
    "ledger": "Show, check and limit what was released about a dataset, over all runs.",
    "rules": "Read rules that are written elsewhere, write them for others, and explain them.",
    "demo": "Make a private synthetic copy of a built-in table of hospital visits, and compare the two.",
}

# Where a command is, if not in a module of its name.
_MODULES = {"ledger": "durable_ledger"}


class Commands(PlainFlags, typer.core.TyperGroup):
    """Imports a command when it is run: all of them together are slow to import.

    Guarantees:
        Each is listed with the first line of its own help.  [test_commands_are_listed_with_their_own_help]
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order in which they are listed."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command as it is listed."""
        del ctx
        return typer.core.TyperCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what it says there is to do is said in words of the command line."""
        with speaking(Face.COMMAND_LINE):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was asked for, as it is run."""
        wanted = args[0] if args else ""
        near = get_close_matches(wanted, COMMANDS, n=1)
        if near and wanted not in COMMANDS and not wanted.startswith("-"):
            ctx.fail(f"No such command '{wanted}'. Did you mean {near[0]}")
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else listed, rest


def load_command(name: str) -> Any:
    """Import one command, or a group of them."""
    function = getattr(importlib.import_module(f"kamino.cli.commands.{_MODULES.get(name, name)}"), name)
    if isinstance(function, typer.Typer):
        return typer.main.get_command(function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    alone.command(name, cls=PlainCommand)(function)
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=Commands,
    name="kamino",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Differentially private synthetic tables that keep your constraints.",
    epilog="Exit codes: 0 fine; 1 the answer is no; 2 wrong use or bad input; 3 a fault in Kamino; "
    "128 + N ended by signal N.",
)


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


# A fault that Kamino did not foresee.
FAULT = 3
# So many new objects make Python look for rings of them.
NEW_OBJECTS = 200_000
# What a shell says of a program that an interrupt ended.
STOPPED = 130
# Typer carries its own copy of click in newer versions and imports it in older ones; this is the class in both.
_UsageFault: type[Any] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main() -> None:
    """Run the command line. Wrong use and errors made on purpose end with exit code 2 and one line for each fault.

    Guarantees:
        An error that was not foreseen shows its class, never its text.  [test_an_unforeseen_error_shows_its_class_only]
    """
    # A library may warn of what the table holds, and quote it.
    warnings.simplefilter("ignore")
    sys.excepthook = _tell_class
    sys.unraisablehook = lambda found: _tell_class(found.exc_type)
    threading.excepthook = lambda found: _tell_class(found.exc_type)
    try:
        with ending_in_order(), collecting_seldom(), without_plugins():
            outcome = app(args=sys.argv[1:] or ["--help"], prog_name="kamino", standalone_mode=False)
        sys.exit(outcome if isinstance(outcome, int) else 0)
    except KaminoError as problem:
        _complain(str(problem), *notes_of(problem))
    except _UsageFault as problem:
        _complain(usage_line(problem))
    except (KeyboardInterrupt, typer.Abort) as problem:
        _complain("stopped", *notes_of(problem), code=STOPPED)
    except ToldToEndError as problem:
        _complain(f"stopped by {problem}", *notes_of(problem), code=problem.code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as problem:
        _complain(fault_line(type(problem)), *notes_of(problem), code=FAULT)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Look seldom for objects that hold each other: a run makes many objects and few rings of them.

    By Python's own settings, that takes a tenth of a short run. Arrays are freed as soon as nobody holds them.
    """
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        # What a run leaves would be looked through now, and once more when Python ends, longer than some commands take.
        # DuckDB counts what is left of its own then, and lists it to whoever watches: there it is looked through.
        if "duckdb" not in sys.modules:
            gc.freeze()
        gc.set_threshold(*before)


@contextmanager
def without_plugins() -> Iterator[None]:
    """Leave out what other packages plug into pydantic: it would see the values of the table, and is slow to look for.

    Guarantees:
        None is asked, unless the environment says which are left out.  [test_no_plugin_is_asked]
    """
    name = "PYDANTIC_DISABLE_PLUGINS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "__all__"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _tell_class(kind: type[BaseException], *_: object) -> None:
    """What Python says of an error that nobody caught, without its text and without lines of a traceback."""
    sys.stderr.write(f"kamino: {fault_line(kind)}\n")


def _complain(*texts: str, code: int = 2) -> NoReturn:
    for line in (line for text in texts for line in text.splitlines()):
        error_console().print(
            f"kamino: {mask_credentials(line)}", style="red", markup=False, highlight=False, soft_wrap=True
        )
    sys.exit(code)
