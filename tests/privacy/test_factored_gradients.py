"""Sums of gradients that come in factors: exact, clipped, and released through the gate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from kamino.errors import PrivacyError
from kamino.privacy import Budget, Gate, Neighbours, SeededNoise
from kamino.privacy.mechanisms.factored_gradients import Lines, Outer, Part, Plain, block_total, factored_sum
from kamino.privacy.mechanisms.gradients import DescentPlan, run_factored
from kamino.privacy.mechanisms.poisson import Draws, sample_rows_by_value
from kamino.testing.replay import Recorder, record, replay

BUDGET = Budget(epsilon=20.0, delta=1e-6)
SIZE = 4 * 3 + 7 * 2 + 5
PLAN = DescentPlan(
    what="a factored descent",
    attributes=("x",),
    noise_multiplier=2.0,
    sampling_rate=0.3,
    steps=9,
    clip_norm=1.5,
    batch_size=20,
    num_parameters=SIZE,
    factored=True,
)


@dataclass(frozen=True)
class Descent:
    """Gradients that depend on the parameters and on the rows, and are no gradients of anything."""

    rate: float = 0.01

    def start(self) -> tuple[np.ndarray, ...]:
        return (np.linspace(-1, 1, SIZE),)

    def gradients(self, state: Any, rows: Any) -> tuple[Part, ...]:
        x, index = np.asarray(rows[0], dtype=np.float64), np.asarray(rows[1], dtype=np.int64)
        matrix = state[0][:12].reshape(4, 3)
        left, right = np.tanh(x @ matrix.T), x * 2
        vectors = np.stack([x[:, :2], (x @ matrix.T)[:, 1:3]], axis=1)
        return (
            Outer(start=0, left=left, right=right),
            Lines(start=12, index=index, values=vectors, sections=(0, 3, 7)),
            Plain(start=26, values=np.concatenate([left, x[:, :1]], axis=1)),
        )

    def advance(self, state: Any, gradient: np.ndarray) -> tuple[np.ndarray, ...]:
        return (state[0] - self.rate * gradient,)


def make_rows(number: int = 60, scale: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    index = np.stack([rng.integers(0, 3, number), rng.integers(3, 7, number)], axis=1).astype(np.int32)
    return (scale * rng.normal(size=(number, 3))).astype(np.float32), index


def written_down(parts: tuple[Part, ...], row: int) -> np.ndarray:
    """The whole gradient of one row, by the definition of its parts."""
    outer, lines, plain = parts
    assert isinstance(outer, Outer)
    assert isinstance(lines, Lines)
    assert isinstance(plain, Plain)
    table = np.zeros((7, 2))
    for line, vector in zip(lines.index[row], lines.values[row], strict=True):
        table[line] += vector
    return np.concatenate([np.outer(outer.left[row], outer.right[row]).ravel(), table.ravel(), plain.values[row]])


def total_of(rows: Any, places: Any, descent: Descent = Descent()) -> np.ndarray:
    return block_total(descent, PLAN, descent.start(), rows, np.asarray(places, dtype=np.int64))


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 1e3])
def test_a_factored_sum_is_the_sum_of_clipped_gradients(scale: float) -> None:
    rows = make_rows(200, scale)
    parts = Descent().gradients(Descent().start(), rows)
    exact = np.zeros(SIZE)
    for row in range(200):
        whole = written_down(parts, row)
        exact += whole / max(1.0, float(np.linalg.norm(whole)) / PLAN.clip_norm)
    found = total_of(rows, np.arange(200)) * PLAN.grid
    # A factor is cut by at most 2^-13 of the clip norm, or by 2^-12; there are 200 rows.
    assert np.allclose(found, exact, atol=200 * 2.0**-11)
    assert np.allclose(found, exact, rtol=0.02, atol=200 * 2.0**-13 * max(scale, 0.1))


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e3, 1e12, 1e30])
def test_one_row_moves_a_factored_sum_by_at_most_the_norm(scale: float) -> None:
    """Brute force over rows, at sizes where factors vanish or overflow; sums are whole numbers, so this is exact."""
    rows = make_rows(50, scale)
    for row in range(50):
        moved = total_of(rows, [row]).astype(object)
        assert sum(int(each) ** 2 for each in moved) <= (2**25) ** 2


def test_rows_of_any_kind_move_it_by_at_most_the_norm() -> None:
    """Infinities, NaN, huge numbers, and lines outside of their sections, where two of them would meet."""
    odd = np.array([np.inf, -np.inf, np.nan, 3e38, 1e-45, 0.0, 1.0], np.float32)
    x = np.array([[a, b, c] for a in odd for b in odd for c in odd[3:]], np.float32)
    index = np.tile(np.array([[5, 5], [-4, 900], [2, 2]], np.int32), (len(x), 1))[: len(x)]
    with np.errstate(all="ignore"):
        for row in range(len(x)):
            moved = total_of((x, index), [row]).astype(object)
            assert sum(int(each) ** 2 for each in moved) <= (2**25) ** 2


def test_no_row_moves_the_factored_part_of_another() -> None:
    rng, rows = np.random.default_rng(1), make_rows(300)
    alone = [total_of(rows, [place]) for place in range(300)]
    for size in (1, 2, 7, 39, 63, 64, 65, 100, 128, 250):
        sample = rng.permutation(300)[:size]
        assert np.array_equal(total_of(rows, sample), np.sum([alone[place] for place in sample], axis=0))
        more = tuple(np.concatenate([each, each[:5]]) for each in rows)
        assert np.array_equal(total_of(more, sample), total_of(rows, sample))


def test_parts_that_meet_are_refused() -> None:
    plain = Plain(start=0, values=np.ones((2, 3)))
    with pytest.raises(PrivacyError, match="the same place"):
        factored_sum((plain, Plain(start=2, values=np.ones((2, 3)))), 9, np.ones(2, dtype=np.bool_))
    with pytest.raises(PrivacyError, match="expected at most 2, as planned"):
        factored_sum((plain,), 2, np.ones(2, dtype=np.bool_))


def test_a_factored_descent_equals_single_steps() -> None:
    rows, coins = make_rows(), SeededNoise(1).coins()
    samples = sample_rows_by_value(Draws(coins), PLAN.steps, rows, PLAN.sampling_rate)
    whole = run_factored(rows, Descent(), PLAN, coins, noisy=True, samples=samples)
    single = Gate(BUDGET, noise=SeededNoise(1), tape=Recorder()).release_descent(rows, Descent(), PLAN)
    assert np.array_equal(whole[0], single[0])
    assert not np.array_equal(whole[0], Descent().start()[0])


def test_factored_noise_has_the_declared_deviation() -> None:
    """No row is there, so that the parameters move by noise alone: a chi-squared test of 279 numbers, fixed coins."""
    none = tuple(each[:0] for each in make_rows())
    (found,) = Gate(BUDGET, noise=SeededNoise(3)).release_descent(none, Descent(rate=1.0), PLAN)
    moved = (found - Descent().start()[0]) / (2.0 * 1.5 * math.sqrt(PLAN.steps))
    assert 0.001 < stats.chi2.cdf(float((moved**2).sum()), SIZE) < 0.999
    (still,) = Gate(replace(BUDGET, epsilon=math.inf)).release_descent(none, Descent(rate=1.0), PLAN)
    assert np.array_equal(still, Descent().start()[0])


def run(rows: Any, gate: Gate) -> np.ndarray:
    return np.asarray(gate.release_descent(rows, Descent(), PLAN)[0])


def test_replay_passes_for_a_factored_descent() -> None:
    rows = make_rows()
    for place in (0, 30, 59):
        fewer = tuple(np.delete(each, place, axis=0) for each in rows)
        assert replay(run, rows, fewer, budget=BUDGET).problems == ()
        assert replay(run, fewer, rows, budget=BUDGET).problems == ()
    other = tuple(each.copy() for each in rows)
    other[0][4], other[1][4] = 50.0, (0, 6)
    assert replay(run, rows, other, budget=replace(BUDGET, neighbours=Neighbours.REPLACE)).problems == ()
    recording = record(run, rows, budget=BUDGET)
    for stranger in (tuple(each[:0] for each in rows), tuple(np.concatenate([each] * 9) for each in rows)):
        assert recording.play(stranger, neighbour=False).problems == ()


def test_replay_sees_a_row_that_moves_a_factored_sum_too_far() -> None:
    rows = make_rows()
    changed = tuple(np.concatenate([each[:30], each[:30]]) for each in rows)
    assert any("declared sensitivity" in each for each in replay(run, rows, changed, budget=BUDGET).problems)
