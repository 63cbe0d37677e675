"""The one point that every release passes, so that a test can record and play back a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from kamino.privacy.ledger import Entry

COINS = "coins"
"""The kind of entry of random bytes, which cost nothing."""
ROW_COINS = "coins to choose rows of a unit"
"""What those are for that decide nothing but which rows are kept."""
CHOICE = "choice"
"""The kind of entry of a choice that follows from releases, which costs nothing."""
Choice: TypeAlias = list[Any]
"""Whole numbers and texts, in lists of lists."""
Truth: TypeAlias = NDArray[np.int64] | Mapping[Any, int] | None
"""A mechanism's private input: a vector, counts of the keys that occur, or nothing (random coins)."""
T = TypeVar("T")
S = TypeVar("S", bound=Truth)


class Tape(Protocol):
    """Hands a release out: as drawn, or as it was recorded."""

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Return `answer(truth())`, or what stands for it."""
        ...


class LiveTape:
    """No tape at all: every release is drawn. What real runs use."""

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Return `answer(truth())`."""
        return answer(truth())


class Keeper(Protocol):
    """Where releases are stored, by their numbers."""

    def find(self, number: int, entry: Entry) -> tuple[bool, Any]:
        """Whether a release was stored under a number, and what it was."""
        ...

    def keep(self, number: int, entry: Entry, released: object) -> None:
        """Store a release, so that it outlives the process."""
        ...


class StoredTape:
    """Hands out what an earlier process stored, and stores whatever is drawn before it hands it out.

    A run is a function of its releases and of public facts. So a run that ended early is repeated with the stored ones
    up to where it ended, asks for the next, and goes on as it would have.

    The one release that may be drawn twice is the last that was charged: the process ended after the charge, and before
    the draw was stored. To draw it anew under the same charge is sound. A draw leaves `play` only once it is stored;
    until then no code but the mechanism has seen it, nothing was printed or written, and no other release was asked
    for. It died with the process that drew it, and fresh noise is drawn: what the world sees has one draw under that
    charge. What is stored is sealed until the ledger has its key, so that a process that ends in between has shown
    nothing either (see `kamino.privacy.durable.journal`). Any other release that is missing was drawn, and is refused.

    Secret bytes that noise and samples are made from are never stored: with them noise could be taken off. They are
    drawn anew for a release that is drawn anew, and not used for one that is stored. The bytes that choose the rows
    kept of a privacy unit are stored: for whatever bytes, one unit changes nothing of the others, so that they hide
    nothing, and all releases of a run are then of the same rows.

    Guarantees:
        A run that goes on ends as one that was not disturbed.  [test_random_kills_then_resume]
        No secret bytes are stored.  [test_no_secret_bytes_are_stored]
        Where sums end in other digits, a run that goes on asks for what was stored.
        [test_a_run_goes_on_where_all_sums_come_out_otherwise]
    """

    def __init__(self, inner: Tape, keeper: Keeper, before: Callable[[int], None]) -> None:
        self.inner = inner
        self._keeper = keeper
        self._before = before
        self._number = 0

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Return the stored release, or draw and store it; `before` is told the number of what is drawn."""
        self._number += 1
        number = self._number
        secret = entry.kind == COINS and entry.what != ROW_COINS
        is_stored, released = (False, None) if secret else self._keeper.find(number, entry)
        if is_stored:
            return cast(T, released)
        self._before(number)
        drawn = self.inner.play(entry, truth, answer)
        if not secret:
            self._keeper.keep(number, entry, drawn)
        return drawn

    def settle(self, what: str, choice: Choice) -> Choice:
        """Return the stored choice, or store this one.

        What a run measures next follows from what it measured, by sums whose last digits depend on the processor. So a
        run that goes on elsewhere takes the choices as they were made, and asks for the releases that are stored. No
        tape that records or plays back hears of it: a choice is made again from what is played.
        """
        self._number += 1
        entry = Entry(kind=CHOICE, what=what, attributes=(), events=())
        is_stored, told = self._keeper.find(self._number, entry)
        if not is_stored:
            self._keeper.keep(self._number, entry, json.dumps(choice).encode("ascii"))
            return choice
        return cast(Choice, json.loads(told))


def is_live(tape: Tape) -> bool:
    """Whether releases are drawn, without a test that records or plays them back."""
    return isinstance(tape.inner if isinstance(tape, StoredTape) else tape, LiveTape)
