"""The Poisson-sampled Gaussian release: sampling, clipping, noise, charges, replay."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy import Budget, Gate, Neighbours, PoissonGaussianEvent, PrivacyUnit, SeededNoise, epsilon
from kamino.privacy.mechanisms.gradients import DescentPlan, clipped_sum, run_descent
from kamino.privacy.mechanisms.poisson import Draws, sample_rows, sample_rows_by_value
from kamino.testing.noise_checks import noise_problems
from kamino.testing.replay import Recorder, record, replay

pytest.importorskip("jax", reason="the neural extra is not installed")


@dataclass(frozen=True)
class Line:
    """Least squares by plain gradient descent: the smallest model there is."""

    size: int = 3
    rate: float = 0.01

    def start(self) -> Any:
        import jax.numpy as jnp

        return jnp.zeros(self.size)

    def parameters(self, state: Any) -> Any:
        return state

    def loss(self, parameters: Any, row: Any) -> Any:
        return 0.5 * (row[0] @ parameters - row[1]) ** 2

    def advance(self, state: Any, gradient: Any) -> Any:
        return state - self.rate * gradient


PLAN = DescentPlan(
    what="a line",
    attributes=("x", "y"),
    noise_multiplier=2.0,
    sampling_rate=0.2,
    steps=12,
    clip_norm=1.5,
    batch_size=20,
    num_parameters=3,
)
BUDGET = Budget(epsilon=20.0, delta=1e-6)


def make_rows(count: int = 100) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return x, (x @ np.array([1.0, -2.0, 0.5]) * 5).astype(np.float32)


def without_last(rows: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(each[:-1] for each in rows)


def without_row(rows: tuple[np.ndarray, ...], place: int) -> tuple[np.ndarray, ...]:
    return tuple(np.delete(each, place, axis=0) for each in rows)


def with_other_row(rows: tuple[np.ndarray, ...], place: int) -> tuple[np.ndarray, ...]:
    changed = tuple(each.copy() for each in rows)
    for each in changed:
        each[place] = -7 * each[place] + 1
    return changed


def test_rows_are_sampled_at_the_rate() -> None:
    # 2,000 steps of 50 rows at rate 0.1: each row's count has deviation 13.4, and 6 deviations fail once in 10^7.
    draws = Draws(b"a" * 32)
    samples = sample_rows(draws, range(2_000), 50, 0.1, 5)
    counts = np.bincount(np.concatenate(samples), minlength=50)
    assert np.all(np.abs(counts - 200) < 6 * 13.5)
    sizes = np.array([len(each) for each in samples])
    assert abs(sizes.var() - 4.5) < 1.0
    both = np.mean([{3, 4} <= set(each.tolist()) for each in samples])
    assert abs(both - 0.01) < 6 * math.sqrt(0.01 / 2_000)
    assert all(len(np.unique(each)) == len(each) for each in samples)


def test_rows_are_sampled_by_value_at_the_rate() -> None:
    # As above. Half of the rows are equal, and still have coins of their own.
    values = (np.minimum(np.arange(50), 25)[:, None], np.zeros(50, np.float32))
    samples = sample_rows_by_value(Draws(b"a" * 32), 2_000, values, 0.1)
    counts = np.bincount(np.concatenate(samples), minlength=50)
    assert np.all(np.abs(counts - 200) < 6 * 13.5)
    assert abs(np.var([len(each) for each in samples]) - 4.5) < 1.0
    assert len(sample_rows_by_value(Draws(b""), 1, values, 1.0)[0]) == 50


def test_coins_by_value_do_not_depend_on_other_rows() -> None:
    values = (np.array([5, 3, 5, 8, 3, 5]),)
    fewer, other = (np.array([5, 5, 8, 3, 5]),), (np.array([5, 3, 9, 8, 3, 5]),)
    chosen = [
        [sorted(rows[0][each].tolist()) for each in sample_rows_by_value(Draws(b"s" * 32), 400, rows, 0.4)]
        for rows in (values, fewer, other)
    ]
    # Of equal rows, the one with the highest number is the one that is gone.
    for whole, short, changed in zip(*chosen, strict=True):
        assert [v for v in short if v != 3] == [v for v in whole if v != 3]
        assert 0 <= whole.count(3) - short.count(3) <= 1
        assert [v for v in changed if v in (3, 8)] == [v for v in whole if v in (3, 8)]
        assert 0 <= whole.count(5) - changed.count(5) <= 1


def test_every_row_is_sampled_at_rate_1() -> None:
    assert sample_rows(Draws(b""), range(1), 7, 1.0, 7)[0].tolist() == list(range(7))


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_coins_do_not_depend_on_later_rows(batch_size: float) -> None:
    draws = Draws(b"b" * 32)
    for long, short in zip(
        sample_rows(draws, range(50), 400, 0.1, 40), sample_rows(draws, range(50), 80, 0.1, batch_size), strict=True
    ):
        assert long[long < 80].tolist() == short.tolist()


def test_noise_is_standard_normal() -> None:
    from scipy.stats import kstest

    values = Draws(b"c" * 32).normal(0, 40_001)
    # The secret is fixed, so this cannot fail by chance.
    assert len(values) == 40_001
    assert kstest(values, "norm").pvalue > 0.001
    assert kstest((values[:20_000] + values[20_000:-1]) / math.sqrt(2), "norm").pvalue > 0.001


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e25])
def test_one_row_moves_the_sum_by_at_most_the_norm(scale: float) -> None:
    x, y = make_rows(40)
    rows = ((x * scale).astype(np.float32), y)
    whole = np.asarray(clipped_sum(Line(), PLAN, np.ones(3, np.float32), rows, np.ones(40, bool)), np.int64)
    for left_out in range(40):
        present = np.arange(40) != left_out
        part = np.asarray(clipped_sum(Line(), PLAN, np.ones(3, np.float32), rows, present), np.int64)
        moved = math.sqrt(float(((whole - part) ** 2).sum())) * PLAN.grid
        assert moved <= PLAN.clip_norm


def test_small_gradients_are_not_clipped() -> None:
    x, y = make_rows(10)
    point = np.array([5.0, -10.0, 2.5], np.float32) + np.float32(0.01)
    total = np.asarray(clipped_sum(Line(), PLAN, point, (x, y), np.ones(10, bool))) * PLAN.grid
    exact = ((x @ point - y)[:, None] * x).sum(axis=0)
    assert np.allclose(total, exact, atol=20 * PLAN.grid)


def test_all_steps_are_charged_before_any_draw() -> None:
    gate = Gate(BUDGET, noise=SeededNoise(1))
    gate.release_descent(make_rows(), Line(), PLAN)
    (entry,) = gate.ledger.entries
    assert entry.events == ((PoissonGaussianEvent(noise_multiplier=2.0, sampling_rate=0.2), 12),)
    assert gate.ledger.spent() == pytest.approx(epsilon(entry.events, delta=1e-6))
    assert entry.sigma == 3.0
    poor = Gate(Budget(epsilon=0.01, delta=1e-6), noise=_NoCoins())
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        poor.release_descent(make_rows(), Line(), PLAN)


class _NoCoins(SeededNoise):
    def __init__(self) -> None:
        super().__init__(0)

    def coins(self) -> bytes:
        raise AssertionError("something was drawn")


def test_compiled_loop_equals_single_steps() -> None:
    plan = replace(PLAN, steps=140)
    rows = make_rows()
    budget = Budget(epsilon=200.0, delta=1e-6)
    coins = SeededNoise(1).coins()
    samples = sample_rows_by_value(Draws(coins), 140, rows, plan.sampling_rate)
    compiled = run_descent(rows, Line(), plan, coins, noisy=True, samples=samples)
    single = Gate(budget, noise=SeededNoise(1), tape=Recorder()).release_descent(rows, Line(), plan)
    assert np.allclose(compiled, single, rtol=1e-4, atol=1e-4)
    assert not np.allclose(compiled, 0)


def test_without_privacy_there_is_no_noise() -> None:
    plan = replace(PLAN, sampling_rate=1.0, clip_norm=1e3, steps=1)
    x, y = make_rows()
    found = Gate(Budget(epsilon=math.inf, delta=1e-6)).release_descent((x, y), Line(), plan)
    exact = 0.01 * (y[:, None] * x).sum(axis=0)
    assert np.allclose(found, exact, rtol=1e-2)


def test_noise_has_the_declared_deviation() -> None:
    # All rows are absent, so a step's gradient is its noise: 30,000 numbers of deviation 3, known to 0.4%.
    wide = replace(PLAN, num_parameters=30_000, steps=1)
    found = Gate(BUDGET, noise=SeededNoise(5)).release_descent(
        (np.zeros((0, 30_000), np.float32), np.zeros(0, np.float32)), Line(size=30_000, rate=1.0), wide
    )
    assert np.std(np.asarray(found)) == pytest.approx(3.0, rel=0.02)


def run(rows: Any, gate: Gate) -> np.ndarray:
    return np.asarray(gate.release_descent(rows, Line(), PLAN))


def test_replay_passes_for_a_descent() -> None:
    rows = make_rows()
    for neighbour in (without_last(rows), without_row(rows, 0), without_row(rows, 50)):
        report = replay(run, rows, neighbour, budget=BUDGET)
        assert report.problems == ()
        assert report.num_releases == 13
    assert replay(run, without_row(rows, 50), rows, budget=BUDGET).problems == ()
    other = Budget(epsilon=20.0, delta=1e-6, neighbours=Neighbours.REPLACE)
    assert replay(run, rows, with_other_row(rows, 4), budget=other).problems == ()


def test_replay_of_a_descent_passes_for_rows_of_any_kind() -> None:
    """No rows, ten times as many, and rows of infinities, NaN and huge numbers: the releases alone decide."""
    rows = make_rows()
    recording = record(run, rows, budget=BUDGET)
    odd = np.array([np.inf, -np.inf, np.nan, 3e38, 1e-45, 0.0] * 20, np.float32)
    others = [without_last(tuple(each[:1] for each in rows)), tuple(np.concatenate([each] * 10) for each in rows)]
    others.append((np.column_stack([odd] * 3), odd))
    for other in others:
        assert recording.play(other, neighbour=False).problems == ()


def test_constant_coins_are_seen_in_the_noise_of_a_descent() -> None:
    def twice(rows: Any, gate: Gate) -> None:
        for _ in range(2):
            gate.release_descent(rows, Line(size=20), replace(PLAN, num_parameters=20, steps=3))

    class ConstantCoins(SeededNoise):
        def coins(self) -> bytes:
            return b"7" * 32

    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 20)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    assert noise_problems(record(twice, rows, budget=BUDGET).records) == ()
    planted = noise_problems(record(twice, rows, budget=BUDGET, noise=ConstantCoins(1)).records)
    assert planted[0] == "releases 1 and 5 have the same coins"
    assert "releases 2 and 6 have noise that goes together" in planted


@dataclass(frozen=True)
class Curve(Line):
    """A loss with a softmax over a hidden layer, whose sums a compiler may order as it likes."""

    def loss(self, parameters: Any, row: Any) -> Any:
        import jax
        import jax.numpy as jnp

        hidden = jnp.tanh(row[0] @ parameters[:60].reshape(6, 10))
        return -jax.nn.log_softmax(hidden @ parameters[60:].reshape(10, 40))[row[1]]


def test_no_row_moves_the_part_of_another() -> None:
    """The part of one row, alone and with others, in tables and samples of many sizes, is the same to the last bit."""
    import jax

    from kamino.privacy.mechanisms.gradients import _blocks, _on_device, _sum_of_blocks

    rng = np.random.default_rng(2)
    plan = replace(PLAN, num_parameters=460, clip_norm=8.0)
    descent = Curve(size=460)
    rows = (rng.normal(size=(150, 6)).astype(np.float32), rng.integers(0, 40, 150).astype(np.int32))
    total_of = jax.jit(partial(_sum_of_blocks, descent, plan))
    point = rng.normal(size=460).astype(np.float32)

    def total(sample: Any, length: int = 150) -> np.ndarray:
        blocks = tuple(each[0] for each in _blocks([np.asarray(sample)], plan))
        arrays, _ = _on_device(tuple(each[:length] for each in rows))
        return np.asarray(total_of(point, arrays, blocks), np.int64)

    alone = [total([place]) for place in range(90)]
    for size in (2, 9, 25, 39, 40, 41, 48, 56, 64, 79, 88):
        sample = np.sort(rng.choice(90, size, replace=False))
        whole = total(sample, length=150 if size % 2 else 149)
        assert np.array_equal(whole, np.sum([alone[place] for place in sample], axis=0))


def test_replay_sees_a_row_that_moves_too_far() -> None:
    rows = make_rows()
    changed = tuple(np.concatenate([each[:50], -each[50:]]) for each in (rows[0], -rows[1]))
    assert any("declared sensitivity" in each for each in replay(run, rows, changed, budget=BUDGET).problems)


def test_units_of_several_rows_are_refused() -> None:
    gate = Gate(BUDGET, unit=PrivacyUnit(column="who", max_rows=3))
    with pytest.raises(PrivacyError, match="single rows"):
        gate.release_descent(make_rows(), Line(), PLAN)


@pytest.mark.parametrize("change", [{"steps": 0}, {"clip_norm": 0.0}, {"batch_size": math.inf}])
def test_plans_that_mean_nothing_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError):
        replace(PLAN, **change)


def test_a_descent_without_noise_is_refused() -> None:
    with pytest.raises(PrivacyError, match="noise multiplier"):
        Gate(BUDGET).release_descent(make_rows(), Line(), replace(PLAN, noise_multiplier=0.0))
