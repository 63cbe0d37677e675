"""The distinguishing game: on which of two neighbours was a run made?

A run is recorded on a table, and its true answers are looked up on a neighbour, given the same releases. The pair for
which they move most, in deviations of the noise, is the worst that was found. Then the game is played many times: a
coin chooses one of the two tables, a new gate with the run's budget makes all releases of the run by the real
mechanisms, with noise of the operating system, and the player computes the log-likelihood ratio of all answers. Its
sign is the best guess that there is (Neyman, Pearson 1933), so a bound from it is as tight as the pair allows.

The questions are those of the recorded run and stay the same: other courses of the run have other questions, at the
same price. Only the coordinates in which the two tables differ are drawn: noise elsewhere says nothing. The answers of
many games are drawn in one vector, which takes a tenth of the time; what noise that is not fresh would tell is left to
the look at the noise.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.audit.loss_distribution import gaussian_epsilon
from kamino.audit.lower_bounds import family_bound, plain_bound
from kamino.audit.repricing import charged_releases, noise_multiplier
from kamino.privacy import Gate, GaussianEvent, Neighbours, SecureNoise
from kamino.privacy.discrete_gaussian import probabilities
from kamino.privacy.ledger import Entry, Ledger
from kamino.privacy.mechanisms.categories import Place, public_order
from kamino.privacy.sensitivity import Sensitivity
from kamino.testing.replay import Pair

Worlds: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = NDArray[np.float64]
OpenGate: TypeAlias = Callable[[], Gate]

CONFIDENCE = 0.95
# A bound above the claim is a fault only if chance makes it less often than once in a million games.
_SURE = 1 - 1e-6
# So many games are drawn at a time.
_BATCH = 100
# Where no number of games is asked for: about so many seconds, within these limits.
_SECONDS, _FEWEST, _MOST = 45.0, 1_000, 20_000
# More coordinates than these tell hardly more, and take long to draw: the ones that move most are kept.
_MOST_COORDINATES = 64


class Question(Protocol):
    """One release of the game."""

    def ask(self, open_gate: OpenGate, worlds: Worlds) -> Scores:
        """Make the release in many games, on the first table where `worlds` is true; return log-likelihood ratios."""
        ...


@dataclass(frozen=True, kw_only=True)
class GameResult:
    """What a game found. The bound is at 95% confidence, for the epsilon at the delta of the claim."""

    pair: str
    runs: int
    right: int
    claimed: float
    delta: float
    bound: float
    plain: float
    sure: float
    """The bound at a confidence of all but one in a million: above the claim only if something is wrong."""
    pair_epsilon: float = 0.0
    """What releases that are not sampled cost on this pair, by how far their truths move: no game can show more."""
    left_out: int = 0
    """Releases that were not played."""

    @property
    def ratio(self) -> float:
        """The bound as a part of the claim."""
        return self.bound / self.claimed if self.claimed else math.nan

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, if the game was won more often than the claim allows."""
        if self.sure <= self.claimed:
            return ()
        return (
            f"the game was won {self.right} times of {self.runs}, which needs epsilon {self.sure:.3g} or more; the "
            f"claim is {self.claimed:.3g}",
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyVector:
    """A release of counts or of a real vector, cut to the coordinates in which two tables differ."""

    entry: Entry
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    multiplier: float

    def ask(self, open_gate: OpenGate, worlds: Worlds) -> Scores:
        """Release one of the two by the mechanism, and compare likelihoods: of equal noise, squares of distances."""
        truth = np.where(worlds[:, None], self.first, self.second)
        moved = (self.first - self.second).astype(np.float64)
        middle = (self.first + self.second) / 2
        release = self._counts if self.entry.kind != "vector" else self._vector
        scale = self.entry.sigma / self.entry.grid
        scores: Scores = (release(open_gate(), truth) - middle) @ moved / scale**2
        return scores

    def _counts(self, gate: Gate, truth: NDArray[np.int64]) -> NDArray[np.int64]:
        return gate.release_counts(
            truth,
            what=self.entry.what,
            attributes=self.entry.attributes,
            noise_multiplier=self.multiplier,
            sensitivity=_of_a_row(self.entry.sensitivity, gate),
        )

    def _vector(self, gate: Gate, truth: NDArray[np.int64]) -> NDArray[np.float64]:
        grid = self.entry.grid
        exact = self.entry.sensitivity - grid * math.sqrt(truth.size)
        answer = gate.release_vector(
            truth.astype(np.float64) * grid,
            what=self.entry.what,
            attributes=self.entry.attributes,
            noise_multiplier=self.multiplier,
            sensitivity=_of_a_row(exact, gate),
            grid=grid,
        )
        return answer / grid


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisySet:
    """A release of categories, cut to those whose counts differ between two tables."""

    entry: Entry
    first: Mapping[Place, int]
    second: Mapping[Place, int]
    multiplier: float

    def ask(self, open_gate: OpenGate, worlds: Worlds) -> Scores:
        """Release one of the two by the mechanism, and compare likelihoods of what was published and what was not.

        Categories of different games are different keys.
        """
        # All attributes of the release, also those in which nothing differs: noise and threshold are made for them.
        columns: dict[str, dict[str, int]] = {name: {} for name in self.entry.attributes}
        for place, world in enumerate(worlds):
            for (name, value), count in (self.first if world else self.second).items():
                columns[name][f"{place}/{value}"] = count
        released = open_gate().release_categories(
            columns, noise_multiplier=self.multiplier, delta=float(dict(self.entry.parameters)["delta"])
        )
        shown = {name: dict(zip(each.values, each.counts, strict=True)) for name, each in released.items()}
        threshold = max(each.threshold for each in released.values())
        keys = sorted({*self.first, *self.second}, key=public_order)
        return np.array(
            [
                sum(self._compared(key, shown[key[0]].get(f"{place}/{key[1]}"), threshold) for key in keys)
                for place in range(len(worlds))
            ]
        )

    def _compared(self, key: Place, shown: int | None, threshold: int) -> float:
        one, other = (
            _chance(self.entry.sigma, counts.get(key), shown, threshold) for counts in (self.first, self.second)
        )
        if one and other:
            return math.log(one / other)
        return math.inf if one else -math.inf


@lru_cache(maxsize=4096)
def _chance(sigma: float, count: int | None, shown: int | None, threshold: int) -> float:
    """How likely a category of a count is shown with a noisy count, or not shown; one that does not occur is not."""
    if count is None:
        return 1.0 if shown is None else 0.0
    if shown is not None:
        return float(probabilities(sigma, np.array([shown - count]))[0])
    reach = math.ceil(12 * sigma) + 1
    below = np.arange(-reach, threshold - count)
    return float(probabilities(sigma, below).sum())


def _of_a_row(sensitivity: float, gate: Gate) -> Sensitivity:
    """The sensitivity to one row of which the gate makes this one to a unit."""
    own = sensitivity / gate.unit.max_rows
    return Sensitivity(add_remove=own, replace=own if gate.budget.neighbours is Neighbours.REPLACE else 2 * own)


def worst_pair(near: Mapping[str, tuple[Pair, ...]]) -> tuple[str, tuple[Pair, ...], float]:
    """Return the neighbour on which the truths move most, its truths, and by how many deviations they move together."""
    found: tuple[str, tuple[Pair, ...], float] = ("", (), 0.0)
    for name, pairs in near.items():
        mu = math.sqrt(sum(_squared(*pair) for pair in pairs))
        if mu > found[2]:
            found = name, pairs, mu
    return found


def _squared(entry: Entry, first: Any, second: Any) -> float:
    """The squared distance of two truths of a release that is not sampled, in deviations of its noise."""
    if "sampling_rate" in dict(entry.parameters) or not entry.sigma:
        return 0.0
    multiplier = noise_multiplier(entry) * entry.sensitivity
    if isinstance(first, np.ndarray):
        return float(((first - second).astype(np.float64) ** 2).sum()) * entry.grid**2 / multiplier**2
    if isinstance(first, Mapping):
        shared = [first[key] - second[key] for key in first if key in second]
        return float(sum(move**2 for move in shared)) / multiplier**2
    return 0.0


def questions_of(pairs: Sequence[Pair], relation: Neighbours) -> list[Question]:
    """Return the releases of a pair that are not sampled and tell anything."""
    found: list[Question] = []
    for entry, first, second in pairs:
        events = [event for event, _ in entry.events if isinstance(event, GaussianEvent)]
        if not events:
            continue
        multiplier = events[0].multiplier(relation)
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            one, other = first.ravel(), second.ravel()
            places = np.flatnonzero(one != other)
            places = places[np.argsort(-np.abs(one - other)[places], kind="stable")[:_MOST_COORDINATES]]
            if len(places):
                found.append(NoisyVector(entry=entry, first=one[places], second=other[places], multiplier=multiplier))
        elif isinstance(first, Mapping) and isinstance(second, Mapping):
            keys = [key for key in sorted({*first, *second}, key=public_order) if first.get(key) != second.get(key)]
            if keys:
                cut = [{key: int(side[key]) for key in keys if key in side} for side in (first, second)]
                found.append(NoisySet(entry=entry, first=cut[0], second=cut[1], multiplier=multiplier))
    return found


def play(
    questions: Sequence[Question],
    ledger: Ledger,
    *,
    pair: str,
    runs: int,
    mu: float = 0.0,
    left_out: int = 0,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> GameResult:
    """Play the game and bound epsilon from the number of right guesses.

    Guarantees:
        Too little noise wins more often than the claim allows.  [test_the_game_sees_half_of_the_noise]
        Clean releases do not, and the bound comes near the claim.  [test_the_game_comes_near_the_claim]
    """
    worlds, ties = _coins(runs), _coins(runs)
    scores = np.zeros(runs)
    for start in track(range(0, runs, _BATCH)):
        batch = slice(start, start + _BATCH)
        scores[batch] = _scores(questions, ledger, worlds[batch])
    guesses = np.where(scores == 0, ties, scores > 0)
    right = int((guesses == worlds).sum())
    charged = charged_releases(ledger)
    relation, delta = ledger.budget.neighbours, _delta_of_noise(ledger)
    bounds = {
        confidence: family_bound(right, runs, charged, relation, delta, confidence=confidence)
        for confidence in (CONFIDENCE, _SURE)
    }
    return GameResult(
        pair=pair,
        runs=runs,
        right=right,
        claimed=ledger.budget.epsilon,
        delta=ledger.budget.delta,
        bound=bounds[CONFIDENCE],
        plain=plain_bound(scores, worlds, ledger.budget.delta, confidence=CONFIDENCE),
        sure=bounds[_SURE],
        pair_epsilon=gaussian_epsilon(mu, delta),
        left_out=left_out,
    )


def affordable(questions: Sequence[Question], ledger: Ledger) -> int:
    """Return how many games take about so many seconds as a person may wait; found by playing one batch for nothing."""
    start = time.process_time()
    _scores(questions, ledger, _coins(_BATCH))
    spent = max(time.process_time() - start, 1e-6)
    return int(min(max(_SECONDS * _BATCH / spent, _FEWEST), _MOST))


def _scores(questions: Sequence[Question], ledger: Ledger, worlds: Worlds) -> Scores:
    """The log-likelihood ratios of one batch of games."""
    opened = partial(_open, ledger)
    return sum((question.ask(opened, worlds) for question in questions), np.zeros(len(worlds)))


def _coins(size: int) -> Worlds:
    return np.array([bool(secrets.randbits(1)) for _ in range(size)])


def _open(ledger: Ledger) -> Gate:
    """A gate like the run's, with noise of the operating system."""
    gate = Gate(ledger.budget, unit=ledger.unit, noise=SecureNoise())
    if ledger.unit.column is not None:
        gate.select_rows(pa.table({ledger.unit.column: [0]}))
    return gate


def _delta_of_noise(ledger: Ledger) -> float:
    """What delta events leave of delta."""
    spent = sum(event.delta * n for entry in ledger.entries for event, n in entry.events if hasattr(event, "delta"))
    return ledger.budget.delta - float(spent)
