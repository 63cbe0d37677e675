"""Resolutions, shared sums, triples and scores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer
from tests.model.tables import project, spread_shape

from kamino.model.marginal.columns.resolution import group_bins, group_cells
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.graph.factor import SharedSums
from kamino.model.marginal.marginal_schedule import MarginalSettings
from kamino.model.marginal.pairs import scoring
from kamino.model.marginal.pairs.scoring import (
    STRONG,
    binary_quadruples,
    most_triple_scores,
    shrink_scores,
    small_triples,
)
from kamino.model.protocol import ModelAttribute


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.integers(1, 8), st.booleans())
def test_groups_are_runs_of_bins(mass: list[float], groups: int, with_null: bool) -> None:
    null = len(mass) - 1 if with_null else None
    found = group_bins(np.array(mass), null, groups)
    if found is None:
        assert len(mass) <= groups + 1 or groups == 1 or max(mass) > sum(mass) / groups
        return
    assert len(mass) > groups + 1
    assert np.all(np.diff(found) >= 0)
    assert found.max() + 1 <= groups + with_null
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    if with_null:
        assert np.sum(found == found[null]) == 1


def test_cells_are_grouped_axis_by_axis() -> None:
    group, shape = group_cells([np.array([0, 0, 1]), None], [3, 2])
    assert shape == (2, 2)
    assert group is not None
    assert group.tolist() == [0, 1, 0, 1, 2, 3]
    assert group_cells([None, None], [3, 2]) == (None, (3, 2))


@given(st.integers(0, 2**32))
def test_shared_sums_match_single_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 5).tolist()
    clique = tuple(sorted(rng.choice(5, rng.integers(1, 5), replace=False).tolist()))
    parts = [
        tuple(sorted(rng.choice(clique, rng.integers(1, len(clique) + 1), replace=False).tolist())) for _ in range(4)
    ]
    shared = SharedSums(clique, sizes)
    for number, part in enumerate(parts):
        shared.add(number, part)
    table = rng.random([sizes[a] for a in clique])
    for number, answer in shared.project(table).items():
        np.testing.assert_allclose(answer, project(table, clique, parts[number]))
    flat = [rng.random(int(np.prod([sizes[a] for a in part]))) for part in parts]
    single = sum(t.reshape(spread_shape(clique, part, sizes)) for t, part in zip(flat, parts, strict=True))
    np.testing.assert_allclose(table + shared.spread(flat), table + single)


def test_scores_are_shrunk_to_what_noise_lets_believe() -> None:
    rng = np.random.default_rng(0)
    true = np.where(np.arange(400) < 20, 5_000.0, 100.0)
    noisy = true + rng.normal(0, 800, 400)
    found = shrink_scores(noisy, 800.0)
    assert np.abs(found - true).mean() < 0.4 * np.abs(noisy - true).mean()
    assert np.all(found >= 0)


def test_strong_pairs_are_scored_in_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """b rises with a from group to group and falls inside; distances are too noisy to score all pairs in bins.

    In the mean of three seeds: 0.273 of the rows against 0.150, six standard deviations from the bound.
    """
    right: dict[float, list[float]] = {STRONG: [], 2.0: []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a = rng.integers(0, 30, 4_000)
        table = {"a": a, "b": a // 5 * 5 + 4 - a % 5} | {f"c{i}": rng.integers(0, 30, 4_000) for i in range(10)}
        attributes = [ModelAttribute(name=name, size=30, ordered=True) for name in table]
        for strong, shares in right.items():
            monkeypatch.setattr(scoring, "STRONG", strong)
            model = fit_marginal(MemoryMeasurer(table, seed=seed), attributes, noise_multiplier=4.0)
            drawn = model.sample(4_000, np.random.default_rng(seed))
            shares.append(np.mean(drawn["b"] == drawn["a"] // 5 * 5 + 4 - drawn["a"] % 5))
    assert np.mean(right[STRONG]) > 1.5 * np.mean(right[2.0])


@pytest.mark.parametrize(("columns", "bits"), [(3, 3), (6, 3), (4, 4), (12, 4)])
def test_parity_is_found(columns: int, bits: int) -> None:
    """No pair shows it, and of four columns no triple, so only a model that looks at so many can."""
    rows = 20_000
    rng = np.random.default_rng(columns)
    table = {f"c{i}": rng.integers(0, 2, rows) for i in range(columns)}
    table["c2"] = _others(table, bits)
    attributes = [ModelAttribute(name=name, size=2) for name in table]
    right = {}
    for triples in (True, False):
        settings = MarginalSettings(triples=triples, parities=0.0)
        model = fit_marginal(MemoryMeasurer(table, seed=1), attributes, noise_multiplier=4.22, settings=settings)
        drawn = model.sample(rows, np.random.default_rng(0))
        right[triples] = float((drawn["c2"] == _others(drawn, bits)).mean())
    assert right[True] > 0.9
    assert right[False] < 0.6


def _others(table: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """The parity of the first columns but c2."""
    return np.bitwise_xor.reduce([table[f"c{i}"] for i in range(bits) if i != 2])


def test_quadruples_are_all_or_none() -> None:
    assert len(binary_quadruples(dict.fromkeys(range(12), 2))) == 495
    assert binary_quadruples(dict.fromkeys(range(13), 2)) == []
    assert binary_quadruples({0: 2, 1: 2, 2: 2, 3: 3}) == []
    for columns in range(1, 20):
        scored = len(small_triples(dict.fromkeys(range(columns), 2))) + len(
            binary_quadruples(dict.fromkeys(range(columns), 2))
        )
        assert scored <= most_triple_scores(columns), "what is planned is enough"
