from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from kamino.errors import ModelError
from kamino.model.marginal.graph.junction import build_tree
from kamino.model.marginal.pairs.scoring import MOST_TRIPLES, TRIPLE_CELLS, small_triples
from kamino.model.marginal.pairs.selection import (
    EMPTY_CELL,
    GROWTH_FREE,
    GROWTH_POWER,
    LEFT,
    LOOK,
    MEAN_ABSOLUTE,
    Limits,
    Scored,
    select,
)
from kamino.model.marginal.purse import BudgetShares, Purse
from kamino.privacy.schedule import divide_by_cells

SIZES = (10, 10, 10, 10)


def scored(pair, error):
    return Scored(attributes=pair, error=error, answer=np.full(100, 10.0))


def choose(candidates, *, sigma=1.0, cells=10_000, marginals=10, forced=()):
    return select(
        candidates,
        sizes=SIZES,
        cliques=[],
        sequence=None,
        sigma=sigma,
        limits=Limits(marginals=marginals, cells=cells),
        forced=forced,
    )


def test_the_worst_marginal_comes_first():
    found = choose([scored((0, 1), 300.0), scored((1, 2), 900.0)], marginals=1)
    assert [s.attributes for s in found] == [(1, 2)]


def test_what_noise_would_hide_is_not_measured():
    assert choose([scored((0, 1), 300.0)], sigma=50.0) == []


def test_selection_respects_the_size():
    triangle = [scored((0, 1), 900.0), scored((1, 2), 800.0), scored((0, 2), 700.0)]
    found = choose(triangle, cells=500)
    assert len(found) == 2
    assert build_tree(SIZES, [s.attributes for s in found]).cells <= 500
    assert len(choose(triangle, cells=5000)) == 3


def test_forced_pairs_are_measured_if_they_fit():
    weak = scored((2, 3), 1.0)
    assert weak in choose([scored((0, 1), 900.0), weak], forced=[weak.attributes])
    assert choose([weak], cells=30, forced=[weak.attributes]) == []


def test_shares_follow_cells_to_two_thirds():
    np.testing.assert_allclose(divide_by_cells([1, 8, 27]), np.array([1, 4, 9]) / 14)


def test_purse_refuses_to_overspend():
    purse = Purse(noise_multiplier=2.0)
    assert purse.take("half", 0.5) == pytest.approx(2.0 / np.sqrt(0.5), rel=1e-5)
    with pytest.raises(ModelError, match="asks for"):
        purse.take("more", 0.6)
    assert purse.left == pytest.approx(0.5)


def test_shares_must_add_up():
    with pytest.raises(ModelError, match="add up"):
        BudgetShares(histograms=0.5)
    with pytest.raises(ModelError, match="every round"):
        BudgetShares(rounds=(0.8,))
    assert "histograms" in BudgetShares().describe()


def left_by_noise(candidate, sigma):
    noise = 1 / np.sqrt(1 / (sigma * candidate.noise_factor) ** 2 + 1 / candidate.known**2)
    if len(candidate.attributes) > 1:
        noise *= LEFT
    return candidate.times * np.minimum(MEAN_ABSOLUTE * noise, candidate.answer + EMPTY_CELL * noise).sum()


SINGLES = 3.5


def cells_of(candidate):
    return candidate.answer.size * (SINGLES if len(candidate.attributes) == 1 else 1.0)


def gain_together(chosen, sigma):
    shares = divide_by_cells([cells_of(s) for s in chosen])
    gains = [s.error - left_by_noise(s, sigma / np.sqrt(share)) for s, share in zip(chosen, shares, strict=True)]
    return sum(max(gain, 0.0) for gain in gains)


def greedy(candidates, sizes, sigma, limits):
    """Look at every candidate at every pick, and build every tree."""
    picked, value, left = [], 0.0, list(candidates)
    size = build_tree(sizes, []).cells
    while left and len(picked) < limits.marginals:
        taken = sum(cells_of(s) ** (2 / 3) for s in picked)
        gains = [s.error - left_by_noise(s, sigma * np.sqrt(1 + taken / cells_of(s) ** (2 / 3))) for s in left]
        ranks, too_large = {}, set()
        for i in sorted(range(len(left)), key=lambda i: -gains[i]):
            if gains[i] <= 0 or len(ranks) == LOOK:
                break
            rank_bound = gains[i] / GROWTH_FREE**GROWTH_POWER
            if ranks and rank_bound <= max(rank for rank, _ in ranks.values()):
                break
            cells = build_tree(sizes, [*(p.attributes for p in picked), left[i].attributes]).cells
            if cells > limits.cells:
                too_large.add(id(left[i]))
            else:
                ranks[i] = gains[i] / (max(cells - size, 0) + GROWTH_FREE) ** GROWTH_POWER, cells
        if not ranks:
            break
        best = max(ranks, key=lambda i: ranks[i][0])
        new, cells = left.pop(best), ranks[best][1]
        left = [s for s in left if id(s) not in too_large]
        if gain_together([*picked, new], sigma) > value:
            value = gain_together([*picked, new], sigma)
            picked.append(new)
            left = [s for s in left if s.attributes != new.attributes]
            size = cells
    return picked


@pytest.mark.parametrize("seed", range(12))
def test_lazy_selection_is_greedy_selection(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(2, 12, 8)]
    candidates = []
    for attributes in (*combinations(range(8), 2), *combinations(range(4), 3)):
        cells = int(np.prod([sizes[a] for a in attributes]))
        for size in {cells, max(2, cells // 3)}:
            answer = rng.dirichlet(np.full(size, 0.5)) * 3000
            factor = float(rng.choice([1.0, 0.7]))
            error = float(rng.exponential(300))
            candidates.append(Scored(attributes=attributes, error=error, answer=answer, noise_factor=factor))
    for a in range(8):
        answer, known, times = rng.dirichlet(np.ones(sizes[a])) * 3000, float(rng.exponential(20)), float(rng.random())
        single = Scored(attributes=(a,), error=0.0, answer=answer, known=known, times=times)
        candidates.append(replace(single, error=left_by_noise(single, np.inf)))
    sigma, cells = float(rng.choice([0.5, 3.0])), int(rng.choice([500, 5_000, 50_000]))
    limits = Limits(marginals=30, cells=cells, single_weight=SINGLES)
    found = select(candidates, sizes=sizes, cliques=[], sequence=None, sigma=sigma, limits=limits)
    wanted = greedy(candidates, sizes, sigma, limits)
    assert [id(s) for s in found] == [id(s) for s in wanted]
    assert len(found) > 2


def test_large_candidates_hide_none():
    """A hundred candidates that gain more, but do not fit, stand before two that do."""
    sizes = [100] * 20 + [2, 2, 2]
    large = [Scored(attributes=pair, error=2000.0, answer=np.full(10_000, 0.3)) for pair in combinations(range(15), 2)]
    small = [Scored(attributes=pair, error=500.0, answer=np.full(4, 700.0)) for pair in ((20, 21), (21, 22))]
    limits = Limits(marginals=30, cells=5_000)
    for forest in (False, True):
        found = select(
            [*large, *small],
            sizes=sizes,
            cliques=[],
            sequence=None,
            sigma=0.1,
            limits=replace(limits, forest=forest),
        )
        assert {id(s) for s in found} == {id(s) for s in small}


@pytest.mark.parametrize("seed", range(4))
def test_small_triples_are_the_smallest(seed):
    rng = np.random.default_rng(seed)
    sizes = {int(a): int(rng.integers(2, 12)) for a in rng.permutation(40)[:30]}
    cells = {t: int(np.prod([sizes[a] for a in t])) for t in combinations(sorted(sizes), 3)}
    wanted = sorted((t for t in cells if cells[t] <= TRIPLE_CELLS), key=lambda t: (cells[t], t))[:MOST_TRIPLES]
    assert small_triples(sizes) == wanted
    assert len(wanted) == MOST_TRIPLES


def test_small_triples_of_few_attributes():
    assert small_triples({}) == small_triples({0: 2, 1: 2}) == []
    assert small_triples({0: 2, 3: 3, 1: 2}) == [(0, 1, 3)]
    assert small_triples({0: 9, 3: 9, 1: 9}) == []
    assert len(small_triples(dict.fromkeys(range(600), 2))) == MOST_TRIPLES
