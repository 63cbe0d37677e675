"""What was found and what a person can do about it, in the words of whoever they talk to: the command line, or Python.

    advice = Advice.of("whose-privacy", "found patient_id; expected ", setting("unit", "row"))

says `expected --unit row` to who typed a command, and `expected unit='row'` to who wrote a program. Each code stands on
the page docs/reference/advice.md.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from kamino.errors import KaminoError


class Face(enum.StrEnum):
    """Through what a person uses Kamino."""

    PYTHON = "python"
    COMMAND_LINE = "command line"


class Level(enum.StrEnum):
    """What comes of it: nothing goes on, something should be settled first, or somebody should know."""

    REFUSED = "refused"
    WARNING = "warning"
    NOTE = "note"


_FACE: ContextVar[Face] = ContextVar("face", default=Face.PYTHON)
# A value that the person is to choose.
ANY = object()


@contextmanager
def speaking(face: Face) -> Iterator[None]:
    """Say what there is to do in the words of a face, as long as the block runs."""
    before = _FACE.set(face)
    try:
        yield
    finally:
        _FACE.reset(before)


@dataclass(frozen=True)
class Remedy:
    """Something to do, which each face says in its own words."""

    command_line: str
    python: str

    def told(self, face: Face | None = None) -> str:
        """In the words of a face; of the one that is spoken now, if none is named."""
        return self.command_line if (face or _FACE.get()) is Face.COMMAND_LINE else self.python

    def __str__(self) -> str:
        return self.told()


def setting(name: str, value: Any = True) -> Remedy:
    """To give a setting a value, or one that the person chooses.

    >>> print(setting("unit", "row"), setting("accept"), setting("max_rows", ANY))
    unit='row' accept=True max_rows=N
    """
    shown = "N" if value is ANY else str(value)
    python = shown if value is ANY else repr(getattr(value, "value", value))
    return Remedy(_flag(name) if value is True else f"{_flag(name)} {shown}", f"{name}={python}")


def named(name: str) -> Remedy:
    """An option by its name alone."""
    return Remedy(_flag(name), name)


def dropping(names: Iterable[str] = (), quoted: Callable[[str], str] = str) -> Remedy:
    """To leave columns out; those that the person chooses, if none are named."""
    listed = tuple(names)
    if not listed:
        return Remedy("--drop", "Reading(drop=...)")
    return Remedy(" ".join(f"--drop {quoted(name)}" for name in listed), f"Reading(drop={listed!r})")


def reading(name: str, *values: str) -> Remedy:
    """To say how a table is read."""
    given = f" {','.join(values)}" if values else ""
    many = {"columns", "drop"}
    python = repr(values if name in many else values[0]) if values else "..."
    return Remedy(f"{_flag(name)}{given}", f"Reading({name}={python})")


def drafting() -> Remedy:
    """To have a schema drafted."""
    return Remedy("kamino init", "kamino.schema.draft_schema")


def starting_anew() -> Remedy:
    """To leave an unfinished run and start another."""
    return Remedy("--no-resume", "LedgerUse(resume=False)")


def ledger_command(name: str) -> Remedy:
    """A command about durable ledgers: there is none in Python."""
    return Remedy(f"kamino ledger {name}", f"kamino ledger {name}")


def words(command_line: str, python: str) -> Remedy:
    """What has no general form."""
    return Remedy(command_line, python)


Problem = TypeVar("Problem", bound=KaminoError)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Something that was found, what is expected, and what to do.

    code: its name on the page of all advice. about: the columns, files or settings that it is about.
    parts: the text, with remedies where they stand in it.

    Guarantees:
        Each code is explained on the page, and no other.  [test_each_code_is_on_the_page]
        No text of the library names an option or a command.  [test_the_library_does_not_speak_the_command_line]
    """

    code: str
    level: Level
    about: tuple[str, ...]
    parts: tuple[str | Remedy, ...]

    @staticmethod
    def of(code: str, *parts: str | Remedy | Advice, level: Level = Level.REFUSED, about: Iterable[str] = ()) -> Advice:
        """Advice whose text is made of parts, also those of other advice."""
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, Advice) else (part,))]
        return Advice(code=code, level=level, about=tuple(about), parts=tuple(flat))

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What can be done, in the order of the text."""
        return tuple(part for part in self.parts if isinstance(part, Remedy))

    def told(self, face: Face | None = None) -> str:
        """The text in the words of a face; of the one that is spoken now, if none is named."""
        return "".join(part if isinstance(part, str) else part.told(face) for part in self.parts)

    def __str__(self) -> str:
        return self.told()

    def error(self, kind: type[Problem], **place: Any) -> Problem:
        """An error of a kind that says it; `error.advice` is this."""
        problem = kind(self.told(), **place)
        problem.advice = self
        return problem


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
