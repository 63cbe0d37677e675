"""Phases: counts, sums and draws of codes by phase, against codes listed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kamino.errors import ModelError
from kamino.model.marginal.even_draws import draw_codes
from kamino.model.phase import Phase, PhaseWeights, codes_inside
from kamino.model.protocol import Cells, CodeMap, Conditional

# The chance that a right program fails one of the chi-squared tests here.
LEVEL = 1e-5


@st.composite
def phase_weights(draw: st.DrawFn) -> PhaseWeights:
    factors = tuple(draw(st.lists(st.integers(2, 7), min_size=1, max_size=3)))
    block = draw(st.integers(1, 6))
    offset = draw(st.integers(0, block * int(np.prod(factors)) - 1))
    number = st.floats(0.0, 10.0)
    parts = tuple(np.array(draw(st.lists(number, min_size=n, max_size=n))) + 1e-3 for n in factors)
    return PhaseWeights(phase=Phase(factors=factors, block=block, offset=offset), parts=parts)


@st.composite
def runs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Runs of codes from 0 on, one after the other: where they start and how wide they are."""
    width = np.array(draw(st.lists(st.integers(1, 300), min_size=1, max_size=6)))
    return np.cumsum(width) - width, width


@given(phase_weights(), runs())
def test_sums_match_codes_listed_one_by_one(weights: PhaseWeights, found: tuple[np.ndarray, np.ndarray]) -> None:
    starts, width = found
    for start, size, mass, counts in zip(
        starts, width, weights.mass(starts, width), weights.phase.count_codes(starts, width), strict=True
    ):
        codes = np.arange(start, start + size)
        assert np.isclose(mass, weights(codes).sum(), rtol=1e-9)
        assert np.array_equal(counts, np.bincount(weights.phase(codes), minlength=weights.phase.count))


@given(phase_weights())
def test_the_weight_of_a_phase_is_the_product_of_its_digits(weights: PhaseWeights) -> None:
    codes = np.arange(weights.phase.cycle)
    product = np.ones(len(codes))
    for factor, part in enumerate(weights.parts):
        product *= part[weights.phase.digit(factor)(codes)]
    np.testing.assert_allclose(weights(codes) / weights(codes).sum(), product / product.sum(), rtol=1e-3, atol=1e-5)
    assert np.isclose(weights.table.mean(), 1.0, rtol=1e-4)


@given(phase_weights(), runs(), st.integers(0, 2**32))
def test_codes_of_a_run_sum_to_one(weights: PhaseWeights, found: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    starts, width = found
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(starts), len(starts))
    labels = np.unique(labels, return_inverse=True)[1]
    share = rng.random(len(starts)) + 0.01
    share /= np.bincount(labels, weights=share)[labels]
    size, bins = int(width.sum()), int(labels.max()) + 1
    cells = Cells(
        map=CodeMap(size=size, bins=bins, starts=starts, labels=labels), width=width, share=share, weights=weights
    )
    codes = np.arange(size)
    chance = np.exp(cells.log_share(codes))
    np.testing.assert_allclose(np.bincount(cells.map(codes), weights=chance), np.ones(bins), rtol=1e-9)
    table = np.log(rng.dirichlet(np.ones(bins), size=2))
    conditional = Conditional(attribute="a", context=np.array([0, 1]), log_prob=table, cells=cells)
    np.testing.assert_allclose(np.exp(conditional.dense()).sum(axis=1), [1.0, 1.0], rtol=1e-9)
    np.testing.assert_allclose(conditional.of(codes[[0, -1]]), conditional.dense()[[0, 1], [0, -1]])


def _fits(counts: np.ndarray, chance: np.ndarray) -> bool:
    return bool(stats.chisquare(counts, chance / chance.sum() * counts.sum()).pvalue > LEVEL)


WEIGHTS = (
    PhaseWeights(phase=Phase(factors=(10,), offset=3), parts=(np.array([9.0, 1, 1, 1, 1, 5, 1, 1, 1, 1]),)),
    PhaseWeights(
        phase=Phase(factors=(4, 3), block=5, offset=17), parts=(np.array([1.0, 2, 3, 4]), np.array([5.0, 1, 2]))
    ),
)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["digits", "blocks"])
@pytest.mark.parametrize("width", [1, 7, 60, 133, 250])
def test_draws_follow_the_weights(weights: PhaseWeights, width: int) -> None:
    """Every code of a run: less than a cycle, whole cycles, and both."""
    rng = np.random.default_rng(width)
    num_rows = 200 * width
    drawn = weights.draw(np.full(num_rows, 41), np.full(num_rows, width), rng.random(num_rows), rng)
    counts = np.bincount(drawn - 41, minlength=width)
    assert len(counts) == width
    assert width == 1 or _fits(counts, weights(np.arange(41, 41 + width)))


@given(phase_weights(), st.integers(0, 500), st.integers(1, 400))
def test_evenly_spread_points_give_every_phase_its_share(weights: PhaseWeights, start: int, width: int) -> None:
    """Each stretch of points that leads to a phase, or to a code of a cut cycle, is as long as its weight."""
    rng = np.random.default_rng(0)
    points = (np.arange(5000) + 0.5) / 5000
    codes = np.arange(start, start + width)
    drawn = weights.draw(np.full(5000, start), np.full(5000, width), points, rng)
    assert start <= drawn.min() <= drawn.max() < start + width
    wanted = np.bincount(weights.phase(codes), weights=weights(codes), minlength=weights.phase.count)
    found = np.bincount(weights.phase(drawn), minlength=weights.phase.count)
    # A phase holds at most three stretches: in whole cycles, and at both ends of the rest.
    assert np.abs(found - wanted / wanted.sum() * 5000).max() <= 3.01


@pytest.mark.parametrize("weights", WEIGHTS, ids=["digits", "blocks"])
def test_draws_from_bins_follow_the_weights(weights: PhaseWeights) -> None:
    """Stratified draws are nearer to their expectation than the test asks for."""
    starts, labels = np.array([0, 30, 31, 90]), np.array([0, 1, 0, 1])
    share = np.array([0.5, 0.2, 0.5, 0.8])
    code_map = CodeMap(size=200, bins=2, starts=starts, labels=labels)
    cells = Cells(map=code_map, width=np.diff(starts, append=200), share=share, weights=weights)
    bins = np.repeat([0, 1], 40_000)
    drawn = draw_codes(bins, cells, np.random.default_rng(0))
    assert np.array_equal(cells.map(drawn), bins)
    assert _fits(np.bincount(drawn, minlength=200), np.exp(cells.log_share(np.arange(200))))


@pytest.mark.parametrize("weights", WEIGHTS, ids=["digits", "blocks"])
@pytest.mark.parametrize("width", [2**60, 2**60 + 1, 2**45 - 7])
def test_draws_of_huge_runs_follow_the_weights(weights: PhaseWeights, width: int) -> None:
    """Phases, and which of its codes a phase takes: neither rounds off."""
    rng = np.random.default_rng(1)
    num_rows, start = 50_000, 123_456_789
    drawn = weights.draw(np.full(num_rows, start), np.full(num_rows, width), rng.random(num_rows), rng)
    assert drawn.min() >= start
    assert drawn.max() < start + width
    assert _fits(np.bincount(weights.phase(drawn), minlength=weights.phase.count), weights.table)
    lap = (drawn + weights.phase.offset) // weights.phase.cycle
    assert _fits(np.bincount(lap % 128, minlength=128), np.ones(128))
    assert _fits(np.bincount((drawn - start) // (width // 32), minlength=33)[:32], np.ones(32))
    mass = weights.mass(np.array([start]), np.array([width]))
    assert np.isclose(mass[0], width, rtol=1e-6)


def test_even_draws_of_huge_runs_use_every_bit() -> None:
    rng = np.random.default_rng(2)
    width = np.full(20_000, 2**60)
    drawn = codes_inside(None, np.zeros(20_000, dtype=np.int64), width, rng.random(20_000), rng)
    assert _fits(np.bincount(drawn % 100, minlength=100), np.ones(100))
    assert drawn.max() < 2**60


def test_the_clock_at_microseconds() -> None:
    """A cycle of 6 * 10^11 codes: sums of hours stay exact, and a run within an hour is even."""
    phase = Phase(factors=(60, 60, 24, 7), block=1_000_000)
    hours = np.where(np.arange(24) < 6, 0.0, 1.0)
    parts = (np.eye(60)[0] + 1e-12, np.ones(60), hours, np.ones(7))
    weights = PhaseWeights(phase=phase, parts=parts)
    rng = np.random.default_rng(3)
    day = 86_400_000_000
    drawn = weights.draw(np.full(20_000, 5 * day), np.full(20_000, 200 * day), rng.random(20_000), rng)
    assert (drawn // 3_600_000_000 % 24 >= 6).mean() > 0.999
    assert (drawn // 1_000_000 % 60 == 0).mean() > 0.999
    inside = weights.draw(np.full(20_000, 30 * day), np.full(20_000, 40), rng.random(20_000), rng)
    assert _fits(np.bincount(inside - 30 * day, minlength=40), np.ones(40))


@pytest.mark.parametrize(
    "wrong",
    [
        {"factors": ()},
        {"factors": (1,)},
        {"factors": (2,) * 30},
        {"factors": (1 << 21,)},
        {"factors": (7,), "block": 0},
        {"factors": (7,), "offset": 7},
        {"factors": (7,), "offset": -1},
        {"factors": (7,), "block": 1 << 52},
    ],
)
def test_a_wrong_phase_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ModelError, match="a phase needs"):
        Phase(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", [[1.0], [1.0, -1.0], [1.0, np.nan], [0.0, 0.0]])
def test_wrong_weights_are_refused(part: list[float]) -> None:
    with pytest.raises(ModelError, match="phase weights"):
        PhaseWeights(phase=Phase(factors=(2,)), parts=(np.array(part),))
