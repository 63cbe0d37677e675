"""Releases of Poisson samples in the distinguishing game: the gradients of the neural backend.

The worst row is a canary: its gradient has the clip norm in every step, whatever the parameters. One table holds the
canary alone and the other nothing; if rows are replaced, the other holds the opposite canary. All else that a table
could hold would add noise of its own to what the player sees. A step's answer y then has the density of (1 - q) N(0,
s²) + q N(g, s²) with the canary of gradient g, and of N(0, s²) without it; the player adds up the logarithms of the
ratios, of one step after the other.

Each canary has a parameter of its own and is sampled by itself, so that one descent on many of them is as many games.
Rates, noise, clip norm and number of steps are those of the audited run. Samples and noise are drawn by the functions
that training calls, from coins of the gate, and the canary's part is cut by the function that clips gradients. The
compiled loop that puts these together takes a second to compile for each descent, so that it is not run in every game:
`loop_problems` runs it once on the same coins and compares each step.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.audit.playing import OpenGate, Scores, Worlds
from kamino.privacy import Neighbours, PoissonGaussianEvent
from kamino.privacy.ledger import Entry, Ledger
from kamino.privacy.mechanisms import gradients
from kamino.privacy.mechanisms.factored_gradients import BITS, Plain, block_total
from kamino.privacy.mechanisms.gradients import DescentPlan
from kamino.privacy.mechanisms.poisson import Draws, sample_rows

# So many rows are sampled to look at the rate, and so many canaries run through the compiled loop.
_ROWS = 1_000
_CANARIES = 8
_DEVIATIONS = 6.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Descent:
    """One descent of a run: its plan."""

    plan: DescentPlan
    relation: Neighbours

    def ask(self, open_gate: OpenGate, worlds: Worlds) -> Scores:
        """Charge, draw samples and noise as training does, and compare the likelihoods of all steps."""
        plan = replace(self.plan, num_parameters=len(worlds))
        seen = self.seen(gradients.open_descent(open_gate(), plan), worlds)
        scale, canary = plan.noise_multiplier * math.ldexp(1.0, plan.bits), _clipped(plan)
        with_canary = _log_mixture(seen, canary, plan.sampling_rate, scale)
        if self.relation is Neighbours.ADD_REMOVE:
            return with_canary
        return with_canary - _log_mixture(seen, -canary, plan.sampling_rate, scale)

    def signs(self, worlds: Worlds) -> NDArray[np.int64]:
        """What each game's table holds: the canary, the opposite one, or none."""
        other = 0 if self.relation is Neighbours.ADD_REMOVE else -1
        return np.where(worlds, 1, other)

    def seen(self, coins: bytes, worlds: Worlds) -> NDArray[np.int64]:
        """The released sums: a line for each step, a column for each game."""
        plan = replace(self.plan, num_parameters=len(worlds))
        signs = self.signs(worlds)
        there = np.flatnonzero(signs)
        draws, steps = Draws(coins), range(plan.steps)
        chosen = sample_rows(draws, steps, len(there), plan.sampling_rate, plan.batch_size)
        seen: NDArray[np.int64] = gradients._noise(draws, steps, plan, noisy=True).astype(np.int64)
        for step, rows in enumerate(chosen):
            seen[step, there[rows]] += signs[there[rows]] * _clipped(plan)
        return seen


class _Recorded:
    """A descent whose loss is linear in the parameters and whose state keeps all noisy sums."""

    def __init__(self, plan: DescentPlan) -> None:
        self._plan = plan

    def start(self) -> Any:
        import jax.numpy as jnp

        return jnp.zeros((self._plan.steps, self._plan.num_parameters), dtype=jnp.float32), jnp.int32(0)

    def parameters(self, state: Any) -> Any:
        import jax.numpy as jnp

        del state
        return jnp.zeros(self._plan.num_parameters, dtype=jnp.float32)

    def loss(self, parameters: Any, row: Any) -> Any:
        import jax.numpy as jnp

        return jnp.sum(parameters * row[0])

    def advance(self, state: Any, gradient: Any) -> Any:
        sums, place = state
        return sums.at[place].set(gradient), place + 1


class _RecordedInFactors:
    """The same for gradients that come in factors."""

    def __init__(self, plan: DescentPlan) -> None:
        self._plan = plan

    def start(self) -> tuple[NDArray[Any], ...]:
        return np.zeros((self._plan.steps, self._plan.num_parameters)), np.zeros((), dtype=np.int64)

    def gradients(self, state: Any, rows: tuple[NDArray[Any], ...]) -> tuple[Plain, ...]:
        del state
        return (Plain(start=0, values=np.asarray(rows[0], dtype=np.float64)),)

    def advance(self, state: Any, gradient: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
        sums, place = state
        sums = sums.copy()
        sums[int(place)] = gradient
        return sums, place + 1


def descents_of(ledger: Ledger) -> list[Descent]:
    """Return the descents of a ledger."""
    return [_descent(entry, ledger) for entry in ledger.entries if entry.kind == "gradients"]


def num_left_out(ledger: Ledger) -> int:
    """Return how many sampled releases of a ledger are not played: samples of rows for weights."""
    sampled = [entry for entry in ledger.entries if any(isinstance(e, PoissonGaussianEvent) for e, _ in entry.events)]
    return sum(entry.kind != "gradients" for entry in sampled)


def loop_problems(descents: Sequence[Descent]) -> tuple[str, ...]:
    """Compare the compiled loop with the parts it is made of, step by step.

    Guarantees:
        They agree in every step.  [test_the_loop_releases_what_its_parts_make]
    """
    problems = []
    for number, descent in enumerate(descents, start=1):
        worlds = np.arange(_CANARIES) % 2 == 0
        coins = bytes([number]) * 32
        plan = replace(descent.plan, num_parameters=_CANARIES)
        signs = descent.signs(worlds)
        rows = (np.diag(signs) * _far(plan)).astype(np.float32)[signs != 0]
        state: Any
        if plan.factored:
            state = gradients.run_factored((rows,), _RecordedInFactors(plan), plan, coins, noisy=True)
        else:
            state = gradients.run_descent((rows,), _Recorded(plan), plan, coins, noisy=True)
        sums = np.asarray(state[0], dtype=np.float64) / plan.grid
        # A sum is shown in single precision, which has 24 bits.
        if not np.allclose(sums, descent.seen(coins, worlds), rtol=2.0**-23, atol=0.5):
            problems.append(f"descent {number}: the compiled loop releases other sums than its parts make")
    return tuple(problems)


def draw_problems(descents: Sequence[Descent]) -> tuple[str, ...]:
    """Look at the samples and the noise of descents as they are drawn in a run: rate and size must be as charged.

    Guarantees:
        False alarms are rarer than once in 10^7 runs; a rate twice as high is seen.
        [test_every_planted_fault_is_caught]
    """
    problems = []
    for number, descent in enumerate(descents, start=1):
        plan = replace(descent.plan, num_parameters=_ROWS)
        draws, steps, rate = Draws(os.urandom(32)), range(plan.steps), plan.sampling_rate
        chosen = sample_rows(draws, steps, _ROWS, rate, plan.batch_size)
        trials = plan.steps * _ROWS
        if abs(sum(map(len, chosen)) - rate * trials) > _DEVIATIONS * math.sqrt(trials * rate * (1 - rate)) + 1:
            problems.append(f"descent {number} samples rows at another rate than it is charged for")
        noise = gradients._noise(draws, steps, plan, noisy=True) / math.ldexp(plan.noise_multiplier, plan.bits)
        if abs(float((noise**2).mean()) - 1) > _DEVIATIONS * math.sqrt(2 / noise.size):
            problems.append(f"descent {number} has noise of another size than it is charged for")
    return tuple(problems)


def _descent(entry: Entry, ledger: Ledger) -> Descent:
    given = dict(entry.parameters)
    ((event, steps),) = entry.events
    assert isinstance(event, PoissonGaussianEvent), "gradients are sampled"
    bits = round(math.log2(given["clip_norm"] / entry.grid))
    plan = DescentPlan(
        what=entry.what,
        attributes=entry.attributes,
        noise_multiplier=event.noise_multiplier,
        sampling_rate=event.sampling_rate,
        steps=steps,
        clip_norm=given["clip_norm"],
        # Any size of a batch that leads to the same grid.
        batch_size=math.ldexp(1.0, max(1, 28 - bits)) - 1,
        num_parameters=1,
        factored=bits == BITS,
    )
    return Descent(plan=plan, relation=ledger.budget.neighbours)


def _far(plan: DescentPlan) -> float:
    """A gradient longer than the clip norm."""
    return 16.0 * plan.clip_norm


@lru_cache(maxsize=256)
def _clipped(plan: DescentPlan) -> int:
    """The canary's gradient as training clips it, in steps of the grid."""
    size = plan.num_parameters
    if plan.factored:
        rows = (np.concatenate([np.full((1, 1), _far(plan)), np.zeros((1, size - 1))], axis=1),)
        found = block_total(_RecordedInFactors(plan), plan, (), rows, np.zeros(1, dtype=np.int64))
        return int(found[0])
    import jax.numpy as jnp

    row = (jnp.zeros((1, size), dtype=jnp.float32).at[0, 0].set(_far(plan)),)
    steps = gradients.clipped_sum(_Recorded(plan), plan, jnp.zeros(size, dtype=jnp.float32), row, jnp.array([True]))
    return int(np.asarray(steps)[0])


def _log_mixture(seen: NDArray[np.int64], canary: int, rate: float, scale: float) -> Scores:
    """The sum over steps of log((1 - q) + q exp(y g / s² - g² / 2 s²)): the density with a canary over that without."""
    exponent = (seen * float(canary) - canary**2 / 2) / scale**2
    if rate >= 1:
        return np.asarray(exponent.sum(axis=0))
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + exponent).sum(axis=0))
