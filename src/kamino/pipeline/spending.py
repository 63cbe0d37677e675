"""What a run that fails has spent: releases cannot be taken back, so its error says what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kamino.advice import drafting, ledger_command, words

if TYPE_CHECKING:
    from kamino.pipeline.settings import Settings


@contextmanager
def telling_what_is_spent(
    ledger: Callable[[], Mapping[str, Any]],
    settings: Settings,
    *,
    model: Path | None = None,
    resumable: bool = False,
) -> Iterator[None]:
    """Add to whatever ends the block what the releases so far cost. A ledger is public, so its cost may be told.

    `ledger` gives the ledger as plain data, `settings` are those of the run; `model` is where the fitted model was
    kept, if it was; `resumable` says that a durable ledger has the releases, so that the run can go on.

    Guarantees:
        An error after a release tells what is spent, and one before any does not.  [test_a_late_error_tells_the_cost]
        A run that is stopped before any says that nothing is.  [test_a_run_stopped_early_tells_that_nothing_is_spent]
    """
    try:
        yield
    except BaseException as problem:
        found = ledger()
        note = spent_note(found, settings, model=model, resumable=resumable)
        if note:
            problem.add_note(note)
        elif not isinstance(problem, Exception) and not found["entries"]:
            # Who stops a run asks what it cost; an error says so by itself where it matters.
            problem.add_note("No release was made: nothing is spent.")
        raise


def spent_note(
    ledger: Mapping[str, Any], settings: Settings, *, model: Path | None = None, resumable: bool = False
) -> str:
    """What the releases of a ledger cost, and what to do; nothing where none was made, or where none is private."""
    count, budget = len(ledger["entries"]), ledger["epsilon"]
    if not count or budget is None:
        return ""
    from kamino.pipeline.output.release_mark import spent_of  # slow to import, and only where a run fails

    spent = spent_of(ledger, settings)
    releases = "1 release was" if count == 1 else f"{count} releases were"
    marked = "" if spent.is_for_release else f" ({spent.told})"
    text = f"{releases} made before this: epsilon {spent.shown_epsilon} of {budget:g} is spent{marked}. "
    if model is not None and model.is_file():
        draw = words("kamino sample", "Synthesizer.load(...).sample")
        return f"{text}The model is in {model}: draw from it with {draw}, which costs nothing more."
    if resumable:
        same = words("command", "call")
        return (
            f"{text}The releases are stored: the same {same} goes on from there and pays nothing twice. What is not "
            f"gone on with stays set aside until it is closed ({ledger_command('close')})."
        )
    return (
        f"{text}Another run spends its budget on top of it: run again only if you accept that. Where a schema declares "
        f"types and domains ({drafting()}), more faults are found before anything is spent."
    )
