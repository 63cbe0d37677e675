"""Dependence inside bins: what stays as it was, what follows the parents, and when nothing moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.sampling.codes.smoothing import Parents, rank_scores, smooth
from kamino.sampling.plan.planner import build_plan
from kamino.sampling.sampler import draw_table


def none(scores: np.ndarray) -> Parents:
    return Parents(scores=(scores,), codes=())


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 6), st.integers(1, 8))
def test_smoothing_keeps_bins_and_codes(seed: int, rows: int, contexts: int, num_bins: int) -> None:
    rng = np.random.default_rng(seed)
    context, bins = rng.integers(0, contexts, rows), rng.integers(-1, num_bins, rows)
    codes = np.where(bins < 0, 999, bins * 10 + rng.integers(0, 10, rows))
    probability = rng.dirichlet(np.ones(num_bins), contexts)
    parents = Parents(scores=(rank_scores(rng.integers(0, 50, rows)),), codes=(rng.integers(0, 3, rows),))
    smoothed = smooth(codes, bins, context, probability, parents, rng)
    if smoothed is None:
        return
    found, alike = smoothed
    if alike:
        assert np.array_equal(found // 10, codes // 10)
    assert np.array_equal(np.sort(found), np.sort(codes))
    assert np.array_equal(found[bins < 0], codes[bins < 0])
    for each in range(contexts):
        mine = context == each
        assert np.array_equal(np.sort(found[mine] // 10), np.sort(codes[mine] // 10))


@pytest.mark.parametrize("sign", [1, -1])
def test_dependence_goes_on_inside_bins(sign: int) -> None:
    """y follows x from bin to bin, rising or falling; inside a pair of bins it is drawn at random, and then is not."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 800, 20_000)
    context = x // 100
    bins = context if sign > 0 else 7 - context
    codes = bins * 100 + rng.integers(0, 100, len(x))
    probability = np.eye(8) if sign > 0 else np.eye(8)[::-1]
    smoothed = smooth(codes, bins, context, probability, none(rank_scores(x)), rng)
    assert smoothed is not None
    found, _ = smoothed
    inside = [np.corrcoef(x[context == c], each[context == c])[0, 1] for c in range(8) for each in (codes, found)]
    assert np.abs(inside[0::2]).max() < 0.1
    assert (sign * np.array(inside[1::2])).min() > 0.7


def test_what_does_not_depend_on_parents_stays() -> None:
    rng = np.random.default_rng(0)
    x, bins = rng.integers(0, 800, 5_000), rng.integers(0, 8, 5_000)
    codes = bins * 100 + rng.integers(0, 100, len(x))
    assert smooth(codes, bins, x // 100, np.full((8, 8), 1 / 8), none(rank_scores(x)), rng) is None
    assert smooth(codes, bins, x // 100, np.eye(8), Parents(scores=(), codes=(x,)), rng) is not None


def test_tables_are_smoothed() -> None:
    """A drawn table has the dependence of its model inside bins; nulls and checks are kept."""
    codec = integers(x=800, y=-800)
    table = np.full((8, 9), 0.02)
    table[np.arange(8), np.arange(8)] = 0.82
    table[:, 8] = 0.04
    starts = np.append(np.arange(0, 800, 100), 800)

    class Model(FakeModel):
        def map_of(self, attribute: str):  # type: ignore[no-untyped-def]
            found = super().map_of(attribute)
            if attribute == "x":
                return type(found)(size=800, bins=8, starts=starts[:8], labels=np.arange(8))
            return type(found)(size=801, bins=9, starts=starts, labels=np.arange(9))

    rules = Constraints.parse("check (not (x < 100 and y > 700))")
    plan = build_plan(codec, rules, sequence=("x", "y"))
    model = Model(codec, ("x", "y"), parents={"y": ("x",)}, tables={"y": table / table.sum(axis=1, keepdims=True)})
    drawn = draw_table(plan, model, codec, 20_000, np.random.default_rng(1))
    x, y = drawn["x"], drawn["y"]
    assert not np.any((x < 100) & (y > 700) & (y < 800))
    assert (y == 800).mean() == pytest.approx(0.04 / table[0].sum(), abs=0.005)
    same = (x // 100 == 3) & (y // 100 == 3)
    assert np.corrcoef(x[same], y[same])[0, 1] > 0.3
