"""Whether a mechanism releases a function of the truth plus noise, and of nothing else.

A replay hands out what was recorded, so that it sees nothing of what happens inside a mechanism. Here the noise of a
run is recorded too. On another table each release is made again by its mechanism, with the recorded noise less what the
truth moved: truth plus noise are the same numbers as before, so the release must be the same as well, to the last byte.
What the mechanism takes from the truth besides, such as an order of categories, makes a difference.

>>> import pyarrow as pa
>>> def run(table, gate):
...     return gate.release_categories({"city": table["city"]}, noise_multiplier=9.0, delta=1e-9)
>>> table = pa.table({"city": ["Oslo"] * 160 + ["Rome"] * 150})
>>> other = pa.table({"city": ["Oslo"] * 150 + ["Rome"] * 160})
>>> compensate(run, table, (other,))
()

Releases whose truth has another shape on the other table, or other keys, cannot be compensated and are handed out. So
are those that draw from coins of their own. For tests only: what is recorded holds private data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kamino.privacy.accounting.budget import Budget
from kamino.privacy.gate import Gate
from kamino.privacy.ledger import Entry
from kamino.privacy.mechanisms.categories import public_order
from kamino.privacy.noise import NOT_FOR_RELEASE, Noise, SeededNoise
from kamino.privacy.tape import S, T, Truth
from kamino.privacy.unit import PrivacyUnit
from kamino.testing.replay import Run
from kamino.testing.same import first_difference

_Draw = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Drawn:
    entry: Entry
    truth: Truth
    draws: tuple[_Draw, ...]
    released: object


class _LoggedNoise:
    """Draws from another source and keeps what it drew; or gives what it is told to give."""

    def __init__(self, source: Noise) -> None:
        self._source = source
        self.log: list[_Draw] = []
        self.given: list[_Draw] = []

    @property
    def mark(self) -> str:
        return NOT_FOR_RELEASE

    def discrete_gaussian(self, sigma: float, shape: tuple[int, ...]) -> _Draw:
        drawn = self.given.pop(0).reshape(shape) if self.given else self._source.discrete_gaussian(sigma, shape)
        self.log.append(drawn.copy())
        return drawn

    def coins(self) -> bytes:
        return self._source.coins()


class _FirstTape:
    """Draws as usual and keeps each release with its truth and its noise."""

    def __init__(self, noise: _LoggedNoise) -> None:
        self._noise = noise
        self.drawn: list[_Drawn] = []

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        private, before = truth(), len(self._noise.log)
        released = answer(private)
        draws = tuple(self._noise.log[before:])
        self.drawn.append(_Drawn(entry=entry, truth=private, draws=draws, released=released))
        return released


class _SecondTape:
    """Makes each release again with compensated noise, and hands out the first one whatever comes."""

    def __init__(self, drawn: list[_Drawn], noise: _LoggedNoise) -> None:
        self._drawn = iter(drawn)
        self._noise = noise
        self.problems: list[str] = []
        self.compensated = 0

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        first = next(self._drawn)
        if first.entry != entry:
            raise LookupError("the two runs do not ask for the same releases: replay them first")
        second = truth()
        needed = _moved(first, second)
        if needed is not None:
            self.compensated += 1
            self._noise.given = [needed]
            again = answer(second)
            difference = first_difference(first.released, again, "the release")
            if difference:
                about = ", ".join(entry.attributes) or "no attribute"
                self.problems.append(f"{entry.kind} on {about} shows more than truth plus noise: {difference}")
        return cast(T, first.released)


def compensate(
    run: Run,
    table: Any,
    others: Iterable[Any],
    *,
    budget: Budget | None = None,
    unit: PrivacyUnit | None = None,
    noise: Noise | None = None,
) -> tuple[str, ...]:
    """Record a run with its noise, make its releases again on other tables, and say what differs.

    Guarantees:
        Categories in the order of their true counts are seen.  [test_what_a_mechanism_shows_besides_noise_is_seen]
        Clean mechanisms show nothing.  [test_clean_mechanisms_show_truth_plus_noise]
    """
    budget = budget or Budget(epsilon=1.0, delta=1e-6)
    source = _LoggedNoise(noise or SeededNoise(0))
    first = _FirstTape(source)
    run(table, Gate(budget, unit=unit, noise=source, tape=first))
    problems: list[str] = []
    for other in others:
        tape = _SecondTape(first.drawn, source)
        try:
            run(other, Gate(budget, unit=unit, noise=source, tape=tape))
        except (LookupError, StopIteration, RuntimeError) as error:
            problems.append(f"the run took another course: {type(error).__name__}")
        problems += tape.problems
    return tuple(dict.fromkeys(problems))


def _moved(first: _Drawn, second: Truth) -> _Draw | None:
    """The noise that makes of the second truth what the first was made of; None if there is none."""
    if len(first.draws) != 1:
        return None
    noise, truth = first.draws[0], first.truth
    if isinstance(truth, np.ndarray) and isinstance(second, np.ndarray):
        same = truth.shape == second.shape == noise.shape
        return noise + truth - second if same else None
    if isinstance(truth, Mapping) and isinstance(second, Mapping) and set(truth) == set(second):
        # Noise is drawn for the keys in their public order: see `kamino.privacy.mechanisms.categories`.
        keys = sorted(truth, key=public_order)
        move = np.array([truth[key] - second[key] for key in keys], dtype=np.int64)
        return noise + move if noise.shape == move.shape else None
    return None
