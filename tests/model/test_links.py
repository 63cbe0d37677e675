"""Tables of wide attributes: scaled to the margins that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.maps.links import balance
from kamino.model.marginal.marginal_schedule import Hints
from kamino.model.protocol import FloatArray, ModelAttribute


def plainly(log_weight: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Iterative proportional fitting to the end, or nearly."""
    weight = np.exp(np.clip(log_weight - log_weight.max(axis=0), -60.0, 0.0))
    left, right = np.ones(len(rows)), columns
    for _ in range(3_000):
        right = columns / np.maximum(weight.T @ left, math.ulp(0.0))
        left = rows / np.maximum(weight @ right, 1e-300)
    table: FloatArray = left[:, None] * weight * right
    return table


@pytest.mark.parametrize("seed", range(12))
def test_balanced_tables_are_those_of_plain_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(2, 60, 2)
    log_weight = rng.normal(size=(height, width)) * 10 ** rng.uniform(-1, 0.7)
    rows, columns = rng.dirichlet(np.full(height, 0.3)), rng.dirichlet(np.full(width, 0.3))
    if seed % 3 == 0:
        rows[0] = 0.0
        rows /= rows.sum()
    expected = plainly(log_weight, rows, columns)
    found = balance(log_weight.copy(), rows, columns)
    assert np.abs(found - expected).sum() < 1e-7
    assert np.abs(found.sum(axis=1) - rows).sum() < 1e-12
    assert np.abs(found.sum(axis=0) - columns).sum() < 1e-8


def test_what_cannot_be_balanced_is_a_table_of_numbers() -> None:
    rng = np.random.default_rng(0)
    for scale in (20.0, 100.0, 400.0):
        rows, columns = rng.dirichlet(np.full(30, 0.1)), rng.dirichlet(np.full(20, 0.1))
        found = balance(rng.normal(size=(30, 20)) * scale, rows, columns)
        assert np.all(np.isfinite(found))
        assert np.all(found >= 0)
        assert found.sum(axis=1) == pytest.approx(rows)


def test_rare_values_of_a_link_stay_rare() -> None:
    """Most of 300 values have hardly a row: together they keep the few rows they have."""
    rng = np.random.default_rng(0)
    share = np.append(np.full(20, 0.0475), np.full(280, 0.05 / 280))
    wide = rng.choice(300, 30_000, p=share)
    attributes = (ModelAttribute(name="wide", size=300), ModelAttribute(name="small", size=8))
    hints = Hints(functional=(("wide", "small"),), together=(("wide", "small"),))
    table = {"wide": wide, "small": wide % 8}
    model = fit_marginal(MemoryMeasurer(table), attributes, noise_multiplier=0.1, hints=hints)
    drawn = model.sample(30_000, rng)["wide"]
    assert np.mean(drawn >= 20) == pytest.approx(0.05, abs=0.006)


def test_ordered_left_sides_stay_in_the_model() -> None:
    """800 days with four kinds in no order, and an amount that grows from day to day: it still does."""
    rng = np.random.default_rng(0)
    day = rng.integers(0, 800, 16_000)
    table = {"day": day, "kind": rng.integers(0, 4, 800)[day], "amount": day // 100}
    attributes = (
        ModelAttribute(name="day", size=800, ordered=True),
        ModelAttribute(name="kind", size=4),
        ModelAttribute(name="amount", size=8, ordered=True),
    )
    hints = Hints(functional=(("day", "kind"),), together=(("day", "kind"),), tied=frozenset(("day", "kind")))
    chains = (("kind", "day"),)
    model = fit_marginal(MemoryMeasurer(table), attributes, noise_multiplier=0.1, chains=chains, hints=hints)
    drawn = model.sample(16_000, rng)
    assert np.corrcoef(drawn["day"], drawn["amount"])[0, 1] > 0.95
