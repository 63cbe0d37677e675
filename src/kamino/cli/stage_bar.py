"""The stages of a run as a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from kamino.cli.console import error_console
from kamino.pipeline.stages import Progress as Report
from kamino.pipeline.stages import Stage, silent


@contextmanager
def show_stages(*stages: Stage) -> Iterator[Report]:
    """Show the stage a run is in on standard error; nothing where that is not a terminal.

    Guarantees:
        It shows no time, which depends on the table.  [test_synth_tells_no_time]
        A run that is stopped ends with what it has spent, not in silence.  [test_what_was_added_to_an_error_is_printed]
    """
    try:
        with _shown(stages) as report:
            yield report
    except KeyboardInterrupt as stop:
        # Typer ends on an interrupt without a word; on this it leaves the last word to us.
        raise typer.Abort from stop


@contextmanager
def _shown(stages: tuple[Stage, ...]) -> Iterator[Report]:
    console = error_console()
    if not console.is_terminal:
        yield silent
        return
    columns = (SpinnerColumn(), TextColumn("{task.description:<26}"), BarColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=len(stages))

        def report(stage: Stage, done: int = 0, total: int = 1) -> None:
            place = stages.index(stage) + done / total if stage in stages else None
            progress.update(task, description=stage.value, completed=place)

        yield report
