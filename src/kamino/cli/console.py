"""Where text goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sized
from typing import Any, TypeVar

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from kamino.errors import visible, visible_json

Item = TypeVar("Item")


class SafeConsole(Console):
    """A console on which names, values and rules cannot command the terminal.

    Guarantees:
        Nothing that a terminal obeys is printed but its own colours.  [test_nothing_a_terminal_obeys_is_printed]
        What it would obey is shown, none of it left out or cut off.  [test_names_are_shown_whole]
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """A text to be laid out, made safe before: rich leaves out some of what a terminal obeys."""
        return super().render_str(visible(text, keep="\n"), **options)

    def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
        """The pieces that are printed, each safe."""
        for segment in super().render(*arguments, **options):
            yield segment if segment.control else segment._replace(text=visible(segment.text, keep="\n"))


def safe(text: str, *, style: str = "", keep: str = "") -> Text:
    """A name, a value, a rule or a sentence, safe to print before it is laid out, so that none of it is cut off."""
    return Text(visible(text, keep=keep), style=style)


def json_text(document: object, *, allow_nan: bool = True) -> str:
    """JSON that is safe to print; what a terminal would obey is escaped as JSON has it."""
    return visible_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=allow_nan))


def output_console() -> Console:
    """Results; as wide as it takes when not a terminal, so that nothing is cut in a file."""
    console = SafeConsole(highlight=False)
    return console if console.is_terminal else SafeConsole(highlight=False, width=max(console.width, 160))


def error_console() -> Console:
    """Messages and progress."""
    return SafeConsole(stderr=True, highlight=False)


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
        # Slow to import: only where a bar is shown.
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        total = len(items) if isinstance(items, Sized) else None
        with Progress(*columns, console=console, transient=True) as progress:
            yield from progress.track(items, description=label, total=total)

    return tracked
