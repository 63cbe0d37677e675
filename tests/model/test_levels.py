"""Groups of values as variables of their own, against brute force over the values."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.model.tables import project

from kamino.model.marginal.assemble import within_groups
from kamino.model.marginal.graph.factor import Projection, with_both, with_groups, without_groups
from kamino.model.marginal.graph.inference import Measurement, infer
from kamino.model.marginal.graph.junction import Graph, JunctionTree, build_tree
from kamino.model.marginal.graph.pair_marginals import pair_marginals
from kamino.model.marginal.graph.propagation import Propagator
from kamino.model.marginal.graph.two_levels import Levels


def random_levels(rng: np.random.Generator) -> Levels:
    """Up to five attributes of up to six values; about half of them have groups."""
    sizes = rng.integers(1, 7, int(rng.integers(2, 6))).tolist()
    groups = {a: np.cumsum(np.append(0, rng.random(n - 1) < 0.5)) for a, n in enumerate(sizes) if rng.random() < 0.6}
    return Levels(sizes=sizes, groups={a: g.astype(np.int64) for a, g in groups.items()})


def random_tree(rng: np.random.Generator, levels: Levels, sequence: bool) -> JunctionTree:
    d = len(levels.sizes)
    cliques = [
        levels.variables([(int(a), bool(rng.random() < 0.5)) for a in sorted(rng.choice(d, min(d, k), replace=False))])
        for k in rng.integers(1, 4, int(rng.integers(1, 7)))
    ]
    order = levels.sequence(rng.permutation(d).tolist()) if sequence else None
    every = [levels.bins((a,)) for a in range(d)]
    return build_tree(levels.all_sizes, [*every, *cliques], order, None, levels.all_groups)


def spread(levels: Levels, table: Any, clique: Any) -> Any:
    """A table over variables as one over the values of all attributes."""
    fine = levels.fine
    return np.broadcast_to(
        Projection(fine, clique, levels.all_sizes, levels.all_groups).spread(table), tuple(levels.sizes)
    )


def summed(levels: Levels, joint: Any, clique: Any) -> Any:
    return Projection(levels.fine, clique, levels.all_sizes, levels.all_groups).sum(joint)


@pytest.mark.parametrize("seed", range(60))
def test_propagation_over_groups_matches_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = random_levels(rng)
    tree = random_tree(rng, levels, seed % 2 == 0)
    potentials = [rng.normal(0, 5, [tree.sizes[v] for v in clique]) for clique in tree.cliques]
    whole = np.exp(sum(spread(levels, p, c) for p, c in zip(potentials, tree.cliques, strict=True)))
    joint = whole / whole.sum()
    beliefs, log_total = Propagator(tree)(potentials)
    assert log_total == pytest.approx(math.log(whole.sum()))
    for belief, clique in zip(beliefs, tree.cliques, strict=True):
        np.testing.assert_allclose(belief, summed(levels, joint, clique), atol=1e-12)
    found = pair_marginals(tree, beliefs)
    assert set(found) == set(combinations(levels.fine, 2))
    for pair, table in found.items():
        np.testing.assert_allclose(table, summed(levels, joint, pair), atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_trees_with_groups_are_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = random_levels(rng)
    tree = random_tree(rng, levels, seed % 2 == 0)
    held = [with_groups(clique, tree.groups) for clique in tree.cliques]
    for v in range(len(tree.sizes)):
        # The cliques that hold a variable are connected: all but one have it from their parent.
        tops = [i for i, each in enumerate(held) if v in each and (tree.parent[i] < 0 or v not in held[tree.parent[i]])]
        assert len(tops) == 1
        place = tree.sequence.index(v)
        assert all(tree.sequence.index(p) < place for p in tree.parents[v])
        assert tree.home((*tree.parents[v], v)) is not None
    for v in tree.groups:
        assert tree.sequence.index(v) + 1 == tree.sequence.index(v - 1)
    graph = Graph(levels.all_sizes, tree.cliques, tree.sequence, None, levels.all_groups)
    assert graph.cells_with() == build_tree(tree.sizes, tree.cliques, tree.sequence, None, tree.groups).cells


@pytest.mark.parametrize("seed", range(30))
def test_projection_and_its_transpose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = random_levels(rng)
    clique = without_groups(levels.fine, levels.all_groups)
    part = levels.variables([(a, bool(rng.random() < 0.5)) for a in range(len(levels.sizes)) if rng.random() < 0.6])
    projection = Projection(clique, part, levels.all_sizes, levels.all_groups)
    table, small = rng.random(levels.sizes), rng.random([levels.all_sizes[v] for v in part])
    spread_out = np.broadcast_to(projection.spread(small), table.shape)
    assert float((projection.sum(table) * small).sum()) == pytest.approx(float((table * spread_out).sum()))
    assert projection.sum(table).shape == small.shape


def test_values_beside_their_groups() -> None:
    table = np.arange(6.0).reshape(3, 2)
    both = with_both(table, (0, 2), (0, 1, 2), (3, 2, 2), {1: np.array([0, 0, 1])})
    assert both.shape == (3, 2, 2)
    np.testing.assert_array_equal(both[:, 0], [[0, 1], [2, 3], [0, 0]])
    np.testing.assert_array_equal(both[:, 1], [[0, 0], [0, 0], [4, 5]])


@pytest.mark.parametrize("seed", range(6))
def test_measured_groups_say_what_grouped_values_say(seed: int) -> None:
    # The same counts, once as groups of the cells of a pair and once as cells of two variables of groups.
    rng = np.random.default_rng(seed)
    sizes, groups = (6, 5, 3), {0: np.array([0, 0, 1, 1, 2, 2]), 1: np.array([0, 1, 1, 2, 2])}
    levels = Levels(sizes=sizes, groups=groups)
    joint = rng.dirichlet(np.full(90, 0.5)).reshape(sizes) * 400
    ones = [project(joint, range(3), (a,)) + rng.normal(0, 6, sizes[a]) for a in range(3)]
    pair = summed(levels, joint, levels.variables([(0, True), (1, True)])) + rng.normal(0, 6, (3, 3))
    other = project(joint, range(3), (1, 2)) + rng.normal(0, 6, (5, 3))

    def measured(attributes: Any, counts: Any, **more: Any) -> Measurement:
        return Measurement(attributes=attributes, counts=counts, sigma=np.full(counts.shape, 6.0), **more)

    index = (groups[0][:, None] * 3 + groups[1][None, :]).ravel()
    plain = [measured((a,), each) for a, each in enumerate(ones)]
    plain += [measured((0, 1), pair, group=index), measured((1, 2), other)]
    lifted = [measured(levels.bins((a,)), each) for a, each in enumerate(ones)]
    lifted += [measured(levels.variables([(0, True), (1, True)]), pair), measured(levels.bins((1, 2)), other)]
    settings: dict[str, Any] = {"num_rows": 400.0, "tau": 3.0, "iterations": 400, "enough": 1e-10}
    first = infer(build_tree(sizes, [m.attributes for m in plain]), plain, **settings)
    tree = build_tree(levels.all_sizes, [m.attributes for m in lifted], None, None, levels.all_groups)
    second = infer(tree, lifted, **settings)
    assert tree.cells < first.tree.cells
    assert second.iterations <= 1.5 * first.iterations
    ours, theirs = (pair_marginals(fit.tree, fit.beliefs) for fit in (second, first))
    for (a, b), table in theirs.items():
        np.testing.assert_allclose(ours[levels.bins((a, b))], table, atol=2e-5)


def test_probabilities_within_groups() -> None:
    table = within_groups(np.array([[0.1, 0.3, 0.2], [0.0, 0.0, 0.4]]), np.array([0, 0, 1]))
    np.testing.assert_allclose(table, [[0.25, 0.75, 1.0], [0.25, 0.75, 1.0]])
