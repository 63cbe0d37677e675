from __future__ import annotations

import numpy as np
import pytest

from kamino.errors import ModelError
from kamino.model.marginal.graph.junction import build_tree
from kamino.model.marginal.pairs.selection import Limits, Scored, select
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
    assert weak in choose([scored((0, 1), 900.0), weak], forced=[weak])
    assert choose([weak], cells=30, forced=[weak]) == []


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
