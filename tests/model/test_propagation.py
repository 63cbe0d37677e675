from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.model.tables import project, spread_shape

from kamino.model.marginal.graph.junction import build_tree
from kamino.model.marginal.graph.pair_marginals import pair_marginals
from kamino.model.marginal.graph.propagation import Propagator


def random_model(seed: int, *, holes: bool):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    sizes = rng.integers(1, 5, d).tolist()
    cliques = [
        tuple(rng.choice(d, size=min(d, int(rng.integers(1, 4))), replace=False).tolist())
        for _ in range(int(rng.integers(1, 7)))
    ]
    tree = build_tree(sizes, cliques, rng.permutation(d).tolist())
    potentials = [rng.normal(0, 30, [sizes[a] for a in clique]) for clique in tree.cliques]
    if holes:
        for table in potentials:
            # One corner stays open, so that some row is always allowed.
            table[(rng.random(table.shape) < 0.2) & (np.arange(table.size).reshape(table.shape) > 0)] = -np.inf
    joint = sum(p.reshape(spread_shape(range(d), c, sizes)) for p, c in zip(potentials, tree.cliques, strict=True))
    joint = np.broadcast_to(joint, sizes)
    peak = joint.max()
    whole = np.exp(joint - peak)
    return tree, potentials, whole / whole.sum(), peak + np.log(whole.sum())


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_propagation_matches_brute_force(seed, holes):
    tree, potentials, joint, log_total = random_model(seed, holes=holes)
    beliefs, found = Propagator(tree)(potentials)
    assert found == pytest.approx(log_total, abs=1e-8)
    for belief, clique in zip(beliefs, tree.cliques, strict=True):
        np.testing.assert_allclose(belief, project(joint, range(joint.ndim), clique), atol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_pair_marginals_match_brute_force(seed):
    tree, potentials, joint, _ = random_model(seed, holes=seed % 2 == 0)
    beliefs, _ = Propagator(tree)(potentials)
    found = pair_marginals(tree, beliefs)
    assert set(found) == set(combinations(range(joint.ndim), 2))
    for pair, table in found.items():
        np.testing.assert_allclose(table, project(joint, range(joint.ndim), pair), atol=1e-10)


def test_a_separator_without_allowed_cells_gets_no_mass():
    tree = build_tree([2, 2], [(0, 1)], [0, 1])
    table = np.array([[0.0, 0.0], [-np.inf, -np.inf]])
    beliefs, _ = Propagator(tree)([table])
    np.testing.assert_array_equal(beliefs[0], [[0.5, 0.5], [0.0, 0.0]])


@pytest.mark.parametrize("spread", [0.1, 3.0, 900.0])
@pytest.mark.parametrize("seed", range(12))
def test_propagation_forgets_earlier_potentials(seed, spread):
    tree, potentials, joint, log_total = random_model(seed, holes=seed % 3 == 0)
    propagate, rng = Propagator(tree), np.random.default_rng(seed)
    for _ in range(2):
        propagate([table + rng.normal(0, spread, table.shape) for table in potentials])
    beliefs, found = propagate(potentials)
    assert found == pytest.approx(log_total, abs=1e-8)
    for belief, clique in zip(beliefs, tree.cliques, strict=True):
        np.testing.assert_allclose(belief, project(joint, range(joint.ndim), clique), atol=1e-10)
