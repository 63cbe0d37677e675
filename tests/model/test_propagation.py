from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.model.tables import project, spread_shape

from kamino.model.marginal.graph import pair_marginals as walks
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


@pytest.mark.parametrize("numbers", [1, 20, walks.NUMBERS])
@pytest.mark.parametrize("seed", range(40))
def test_pair_marginals_match_brute_force(seed, numbers, monkeypatch):
    """However many attributes are carried at once."""
    monkeypatch.setattr(walks, "NUMBERS", numbers)
    tree, potentials, joint, _ = random_model(seed, holes=seed % 2 == 0)
    beliefs, _ = Propagator(tree)(potentials)
    found = pair_marginals(tree, beliefs)
    assert set(found) == set(combinations(range(joint.ndim), 2))
    for pair, table in found.items():
        np.testing.assert_allclose(table, project(joint, range(joint.ndim), pair), atol=1e-10)


@pytest.mark.parametrize("numbers", [1, walks.NUMBERS])
@pytest.mark.parametrize("seed", range(30))
def test_pair_marginals_of_branches_match_brute_force(seed, numbers, monkeypatch):
    """Trees with many branches, some of them not connected with the others."""
    monkeypatch.setattr(walks, "NUMBERS", numbers)
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 9).tolist()
    cliques = [(int(rng.integers(0, i)), i) for i in range(1, 9) if rng.random() < 0.85]
    cliques += [(int(rng.integers(0, 4)), 4, 8)] if seed % 2 else []
    tree = build_tree(sizes, cliques, list(range(9)))
    potentials = [rng.normal(0, 2, [sizes[a] for a in clique]) for clique in tree.cliques]
    joint = sum(p.reshape(spread_shape(range(9), c, sizes)) for p, c in zip(potentials, tree.cliques, strict=True))
    joint = np.exp(np.broadcast_to(joint, sizes))
    beliefs, _ = Propagator(tree)(potentials)
    found = pair_marginals(tree, beliefs)
    assert set(found) == set(combinations(range(9), 2))
    for pair, table in found.items():
        np.testing.assert_allclose(table, project(joint / joint.sum(), range(9), pair), atol=1e-10)


@pytest.mark.parametrize("sizes", [[], [3]])
def test_no_attribute_and_one_have_no_pairs(sizes):
    tree = build_tree(sizes, [])
    beliefs, _ = Propagator(tree)([np.zeros(3)] * len(tree.cliques))
    assert pair_marginals(tree, beliefs) == {}


def test_pair_marginals_of_a_long_chain():
    """Hundreds of cliques, one after the other."""
    size = 300
    tree = build_tree([2] * size, [(i, i + 1) for i in range(size - 1)], list(range(size)))
    turn = np.array([[0.9, 0.1], [0.2, 0.8]])
    beliefs, _ = Propagator(tree)([np.log(turn)] * len(tree.cliques))
    found = pair_marginals(tree, beliefs)
    assert len(found) == size * (size - 1) // 2
    far = found[10, 13]
    np.testing.assert_allclose(far / far.sum(axis=1, keepdims=True), np.linalg.matrix_power(turn, 3), atol=1e-6)


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
