"""The stages of a run as a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from kamino.cli.console import error_console
from kamino.pipeline.stages import Progress as Report
from kamino.pipeline.stages import Stage, stage_bar


@contextmanager
def show_stages(*stages: Stage) -> Iterator[Report]:
    """Show the stage a run is in on standard error; nothing where that is not a terminal.

    Guarantees:
        It shows no time that depends on the table.  [test_synth_tells_no_time]
        A run that is stopped ends with what it has spent, not in silence.  [test_what_was_added_to_an_error_is_printed]
    """
    try:
        with stage_bar(error_console(), stages) as report:
            yield report
    except KeyboardInterrupt as stop:
        # Typer ends on an interrupt without a word; on this it leaves the last word to us.
        raise typer.Abort from stop
