"""The one point that every release passes, so that a test can record and play back a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kamino.privacy.ledger import Entry

Truth: TypeAlias = NDArray[np.int64] | Mapping[str | int, int] | None
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
