"""Values put in order: the same values, in order, moved no more than needed."""

from __future__ import annotations

import numpy as np
import pytest

from kamino.sampling.steps.chain.rearranged import rearrange


@pytest.mark.parametrize("seed", range(60))
def test_rearranged_values_are_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 30))
    group, height, rank = rng.integers(0, 3, size), rng.integers(0, 6, size), rng.integers(0, 5, size)
    moved = rank[rearrange(rank, group, height)]
    for each in np.unique(group):
        assert sorted(moved[group == each]) == sorted(rank[group == each])
    same = group[:, None] == group[None, :]
    assert not np.any(same & (height[:, None] > height[None, :]) & (moved[:, None] < moved[None, :]))


@pytest.mark.parametrize("seed", range(20))
def test_rearranging_keeps_what_is_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40))
    group, height, rank = rng.integers(0, 3, size), rng.integers(0, 6, size), rng.integers(0, 5, size)
    moved = rank[rearrange(rank, group, height)]
    assert (moved[rearrange(moved, group, height)] == moved).all()
    # One row out of place among many of one height moves few others.
    many = np.concatenate([np.zeros(50, np.int64), [1]])
    values = np.concatenate([rng.integers(1, 9, 50), [0]])
    again = values[rearrange(values, np.zeros(51, np.int64), many)]
    assert (again != values).sum() <= 2 + (values == values.max()).sum()
