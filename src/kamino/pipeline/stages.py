"""Stages of a run, told to whoever wants to show them."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

QUIET = True
"""Whether warnings of numbers are kept from the user; the tests switch it off, to see them."""


class Stage(enum.Enum):
    """What the run is doing, in words fit for a progress bar."""

    READ = "reading the table"
    DOMAINS = "finding domains"
    FIT = "measuring and fitting"
    WEIGHTS = "weighing soft constraints"
    SAMPLE = "drawing rows"
    CHECK = "checking constraints"
    WRITE = "writing"


class Progress(Protocol):
    """Told when a stage begins, and within a stage how many of its parts are done."""

    def __call__(self, stage: Stage, done: int = 0, total: int = 1) -> None:
        """Take note."""
        ...


def silent(stage: Stage, done: int = 0, total: int = 1) -> None:
    """Show nothing."""
    del stage, done, total


@contextmanager
def quietly() -> Iterator[None]:
    """Keep warnings of numpy (an overflow, an empty mean) from the user, whom they tell nothing but parts of the table.

    Guarantees:
        No such warning leaves a run.  [test_no_warning_of_numpy_reaches_the_user]
    """
    with warnings.catch_warnings():
        if QUIET:
            warnings.simplefilter("ignore", RuntimeWarning)
        yield


@contextmanager
def shown(progress: Progress | bool | None, *stages: Stage) -> Iterator[Progress]:
    """What is told of stages: to a function, on a bar (True), nowhere (False), on a bar in a notebook only (None)."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _in_notebook()):
        yield silent
        return
    from rich.console import Console  # slow to import: only where something is shown

    with stage_bar(Console(stderr=True), stages) as report:
        yield report


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def stage_bar(console: Console, stages: tuple[Stage, ...]) -> Iterator[Progress]:
    """A bar of the stages of a run; nothing where the console is neither a terminal nor a notebook.

    Guarantees:
        It shows no time that depends on the table: only how long drawing rows will still take, which follows from the
        model.  [test_synth_tells_no_time] [test_drawing_tells_the_time_left]
    """
    if not (console.is_terminal or console.is_jupyter):
        yield silent
        return
    if console.is_jupyter and importlib.util.find_spec("ipywidgets") is None:
        with notebook_line() as report:
            yield report
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description:<30}"), BarColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=len(stages))
        left = TimeLeft()

        def report(stage: Stage, done: int = 0, total: int = 1) -> None:
            place = stages.index(stage) + done / total if stage in stages else None
            told = left(done, total) if stage is Stage.SAMPLE else ""
            bar.update(task, description=f"{stage.value}{told}", completed=place)

        yield report


@contextmanager
def notebook_line() -> Iterator[Progress]:
    """A line of a notebook that names the stage, and goes away; a bar needs ipywidgets there, and warns without.

    Guarantees:
        A notebook without widgets shows no warning.  [test_a_notebook_without_widgets_shows_a_line]
    """
    display = importlib.import_module("IPython.display")
    line = display.display({"text/plain": "starting"}, raw=True, display_id=True)
    left = TimeLeft()

    def report(stage: Stage, done: int = 0, total: int = 1) -> None:
        told = left(done, total) if stage is Stage.SAMPLE else ""
        line.update({"text/plain": f"{stage.value}{told} ..."}, raw=True)

    try:
        yield report
    finally:
        line.update({"text/plain": ""}, raw=True)


# Less than so many seconds are not worth a word.
_SHORT = 10.0


class TimeLeft:
    """How long the parts of a stage that are not done will take, if they take as long as those that are.

    The clock starts with the first part that is told, so that nothing that came before shows.

    >>> clock = iter([0.0, 30.0, 60.0])
    >>> left = TimeLeft(lambda: next(clock))
    >>> [left(done, 10) for done in range(3)]
    ['', ', 4 min 30 s left', ', 4 min left']
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: float | None = None

    def __call__(self, done: int, total: int) -> str:
        """Say it in a few words; nothing where too little is known, or little is left."""
        now = self._clock()
        if self._begun is None or done == 0:
            self._begun = now
            return ""
        seconds = (now - self._begun) * (total - done) / done
        if seconds < _SHORT:
            return ""
        rounded = round(seconds / _SHORT) * int(_SHORT)
        minutes, rest = divmod(rounded, 60)
        if minutes >= 10:
            return f", {minutes} min left"
        return ", " + " ".join([f"{minutes} min"] * bool(minutes) + [f"{rest} s"] * bool(rest)) + " left"
