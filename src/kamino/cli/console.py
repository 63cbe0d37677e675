"""Where text goes: results to standard output, everything else to standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Item = TypeVar("Item")


def output_console() -> Console:
    """Results; as wide as it takes when not a terminal, so that nothing is cut in a file."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))


def error_console() -> Console:
    """Messages and progress."""
    return Console(stderr=True, highlight=False)


def counted(count: int, what: str) -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def track(label: str) -> Callable[[Iterable[Item]], Iterable[Item]]:
    """A progress bar on standard error while a loop runs; nothing where standard error is not a terminal."""

    def tracked(items: Iterable[Item]) -> Iterable[Item]:
        console = error_console()
        if not console.is_terminal:
            yield from items
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        total = len(items) if isinstance(items, Sized) else None
        with Progress(*columns, console=console, transient=True) as progress:
            yield from progress.track(items, description=label, total=total)

    return tracked
