"""Values handed out to groups of rows: what a column keeps of its frequencies."""

from __future__ import annotations

import numpy as np
import pytest

from kamino.sampling.steps.handing_out import _take


@pytest.mark.parametrize("seed", range(6))
def test_lumps_leave_a_column_its_frequencies(seed: int) -> None:
    """250 groups, the largest of which has a sixth of the rows, and 700 values, most of them rare, in 16 bins."""
    rng = np.random.default_rng(seed)
    sizes = np.maximum((15_000 * (share := 1 / np.arange(1, 251)) / share.sum()).astype(int), 1)
    bins = np.sort(rng.integers(0, 16, 700))
    weight = rng.gamma(0.1, 1.0, 700) + 1e-6
    weight[rng.choice(700, 12, replace=False)] += 1 / np.arange(1, 13) * weight.sum() / 4
    wanted = weight / weight.sum() * sizes.sum()
    offered = rng.choice(700, (250, 16), p=wanted / wanted.sum())
    taken = _take(offered, sizes, wanted, bins)
    given = np.bincount(bins[taken], weights=sizes, minlength=16)
    best = np.bincount(bins[offered[:, 0]], weights=sizes, minlength=16)
    expected = np.bincount(bins, weights=wanted, minlength=16)
    off, chance = (np.abs(each - expected).sum() / 2 / sizes.sum() for each in (given, best))
    # The largest group alone is more than any bin may want.
    least = np.maximum(sizes[0] - expected.max(), 0) / sizes.sum()
    assert off < least + 0.04 < chance + 0.04
    assert off < least + 0.5 * max(chance - least, 0.08)


def test_groups_without_an_offer_stay_without_a_value() -> None:
    offered = np.array([[-1, -1], [0, -1]])
    assert _take(offered, np.array([3, 2]), np.array([5.0]), np.array([0])).tolist() == [-1, 0]
