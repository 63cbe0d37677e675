"""Interactions: what a row moves, and that they say what the lower marginals do not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino.engine.memory import interaction_sensitivity, interactions
from kamino.model.marginal.frame import interaction_noise
from kamino.model.marginal.graph.inference import Measurement, infer, interactions_of
from kamino.model.marginal.graph.junction import build_tree

SHAPES = [(2, 2), (2, 3), (3, 5), (2, 9), (2, 2, 2), (2, 3, 4), (7,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_interactions_move_as_declared(shape: tuple[int, ...]) -> None:
    """By brute force: every row that can be added, and every row that can replace another."""
    moved = {}
    for cell in product(*(range(size) for size in shape)):
        table = np.zeros(shape, dtype=np.int64)
        table[cell] = 1
        moved[cell] = interactions(table).ravel()
    declared = interaction_sensitivity(shape)
    added = max(np.linalg.norm(each) for each in moved.values())
    replaced = max((np.linalg.norm(moved[a] - moved[b]) for a in moved for b in moved if a != b), default=0.0)
    assert added == pytest.approx(declared.add_remove)
    assert replaced <= declared.replace * (1 + 1e-12)
    assert replaced == pytest.approx(declared.replace)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32))
def test_interactions_are_what_marginals_do_not_say(a: int, b: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 50, (a, b))
    whole = interactions(table)
    assert whole.dtype == np.int64
    np.testing.assert_allclose(whole / (a * b), interactions_of(table.astype(float)), atol=1e-9)
    assert np.all(whole.sum(axis=0) == 0)
    assert np.all(whole.sum(axis=1) == 0)
    # Anything that the two 1-way marginals explain by addition has none.
    flat = rng.integers(0, 9, (a, 1)) + rng.integers(0, 9, (1, b))
    assert np.all(interactions(flat) == 0)


def test_the_noise_of_interactions_is_known() -> None:
    """In that of counts, which a row more or less moves by 1 and another row by sqrt(2)."""
    for shape in SHAPES:
        cells, moved = float(np.prod(shape)), interaction_sensitivity(shape)
        assert moved.add_remove / cells == pytest.approx(interaction_noise(shape))
        assert moved.replace / cells / np.sqrt(2) == pytest.approx(interaction_noise(shape, replaced=True))
    assert interaction_noise((1,), replaced=True) == 1.0, "one value has no interactions, and its count has its noise"


def test_inference_uses_interactions_and_groups() -> None:
    """A pair known by its margins, its interactions and the sums of groups is the pair."""
    rng = np.random.default_rng(3)
    table = rng.integers(20, 400, (4, 3)).astype(float)
    n = table.sum()
    tiny = 0.5
    measured = [
        Measurement(attributes=(0,), counts=table.sum(axis=1), sigma=np.full(4, tiny)),
        Measurement(attributes=(1,), counts=table.sum(axis=0), sigma=np.full(3, tiny)),
        Measurement(attributes=(0, 1), counts=interactions_of(table), sigma=np.full((4, 3), tiny), is_interaction=True),
    ]
    fit = infer(build_tree((4, 3), [(0, 1)]), measured, num_rows=n, tau=1e-3, iterations=3000)
    np.testing.assert_allclose(fit.beliefs[0] * n, table, atol=3.0)
    group = (np.array([0, 0, 1, 1])[:, None] * 3 + np.arange(3)).ravel()
    sums = np.bincount(group, weights=table.ravel()).reshape(2, 3)
    coarse = Measurement(attributes=(0, 1), counts=sums, sigma=np.full((2, 3), tiny), group=group)
    fit = infer(build_tree((4, 3), [(0, 1)]), [*measured[:2], coarse], num_rows=n, tau=1e-3, iterations=3000)
    found = np.bincount(group, weights=fit.beliefs[0].ravel() * n)
    np.testing.assert_allclose(found, sums.ravel(), atol=3.0)
