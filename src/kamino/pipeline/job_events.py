"""What happens in a job, told to whoever watches it, from any thread."""

from __future__ import annotations

import enum
import threading
from dataclasses import asdict, dataclass
from typing import Any


class JobState(enum.StrEnum):
    """How far a job is."""

    OPEN = "open"
    """Nothing is read yet."""
    PLANNED = "planned"
    FITTING = "fitting"
    FITTED = "fitted"
    WRITING = "writing"
    WRITTEN = "written"
    CANCELLED = "cancelled"
    """Somebody stopped it before it was fitted."""
    FAILED = "failed"

    @property
    def is_busy(self) -> bool:
        """Whether somebody is at work on it."""
        return self in (JobState.FITTING, JobState.WRITING)


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """Something that happened in a job. Every field may be published: there is no time in it, which would follow from
    the table.

    kind: "state", "stage" or "release"; text: the state, the stage in words, or what was released. `done` of `total`
    parts of a stage are done.
    """

    number: int
    kind: str
    text: str
    done: int = 0
    total: int = 1
    attributes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The event as plain data."""
        return {**asdict(self), "attributes": list(self.attributes)}


class EventLog:
    """The events of a job, in their order, for readers in other threads.

    >>> log = EventLog()
    >>> log.add("state", "planned")
    >>> [event.text for event in log.since(0)], log.since(1)
    (['planned'], ())
    """

    def __init__(self) -> None:
        self._events: list[JobEvent] = []
        self._changed = threading.Condition()

    def add(self, kind: str, text: str, *, done: int = 0, total: int = 1, attributes: tuple[str, ...] = ()) -> None:
        """Tell of something that happened."""
        with self._changed:
            self._events.append(
                JobEvent(number=len(self._events), kind=kind, text=text, done=done, total=total, attributes=attributes)
            )
            self._changed.notify_all()

    def since(self, number: int, *, timeout: float = 0.0) -> tuple[JobEvent, ...]:
        """The events from a number on; where there is none yet, wait for one, for so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) > number, timeout)
            return tuple(self._events[number:])
