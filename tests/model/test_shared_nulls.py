"""Attributes that are null in the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.marginal_schedule import Hints, MarginalSettings
from kamino.model.protocol import ModelAttribute

SIZE, ROWS = 40, 6_000
ATTRIBUTES = (
    ModelAttribute(name="start", size=SIZE + 1, ordered=True, null_code=SIZE),
    ModelAttribute(name="end", size=SIZE + 1, ordered=True, null_code=SIZE),
    ModelAttribute(name="kind", size=5, null_code=4),
    ModelAttribute(name="flag", size=2),
)


def stays(shared: float, seed: int = 0) -> dict[str, np.ndarray]:
    """A start, an end and a kind; of the 5% of rows in which one is null, this part has all three null."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, SIZE, ROWS)
    found = {"start": start, "end": np.minimum(start + rng.integers(0, 12, ROWS), SIZE - 1)}
    found |= {"kind": rng.integers(0, 4, ROWS), "flag": rng.integers(0, 2, ROWS)}
    missing = rng.random(ROWS) < 0.05
    for name, null in (("start", SIZE), ("end", SIZE), ("kind", 4)):
        own = rng.permutation(missing)
        found[name] = np.where(np.where(rng.random(ROWS) < shared, missing, own), null, found[name])
    return found


def apart(columns: dict[str, np.ndarray]) -> list[float]:
    """The rows in which one of two is null without the other, for each pair."""
    nulls = {name: columns[name] == null for name, null in (("start", SIZE), ("end", SIZE), ("kind", 4))}
    return [float((nulls[a] ^ nulls[b]).sum()) for a, b in (("start", "end"), ("start", "kind"), ("end", "kind"))]


def drawn(columns: dict[str, np.ndarray], seed: int, *, shared_nulls: bool = True) -> dict[str, np.ndarray]:
    settings = replace(MarginalSettings(), shared_nulls=shared_nulls)
    model = fit_marginal(MemoryMeasurer(columns, seed=seed), ATTRIBUTES, noise_multiplier=4.0, settings=settings)
    return model.sample(ROWS, np.random.default_rng(1))


def test_nulls_that_are_shared_stay_shared() -> None:
    """Over four draws of the noise, of which one may hide that a pair shares its nulls."""
    columns = stays(1.0)
    assert apart(columns) == [0, 0, 0]
    on, off = (
        [np.mean(apart(drawn(columns, seed, shared_nulls=shared))) for seed in range(4)] for shared in (True, False)
    )
    assert np.mean(on) < 0.5 * np.mean(off), (on, off)
    assert min(on) == 0


def test_other_nulls_are_not_shared() -> None:
    """Half of the nulls are each attribute's own."""
    columns = stays(0.5)
    assert min(apart(columns)) > 250
    for seed in range(3):
        assert min(apart(drawn(columns, seed))) > 100


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_shared_nulls_follow_from_releases(shared: float) -> None:
    measurer = MemoryMeasurer(stays(shared), seed=2)
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.0)
    other = {name: np.zeros(7, dtype=np.int64) for name in ("start", "end", "kind", "flag")}
    again = fit_marginal(ReplayMeasurer(other, measurer.record), ATTRIBUTES, noise_multiplier=4.0)
    first, second = (each.sample(500, np.random.default_rng(0)) for each in (model, again))
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("forbidden", ["both", "one", "flagged"])
def test_shared_nulls_and_checks_leave_rows(forbidden: str) -> None:
    """Checks that forbid two nulls, one null alone, or nulls of flagged rows; the nulls are shared all the same."""

    def allowed(codes: Mapping[str, np.ndarray]) -> np.ndarray:
        start = codes["start"] == SIZE
        if forbidden == "flagged":
            return ~(start & (codes["flag"] == 1))
        end = codes["end"] == SIZE
        return ~(start & end) if forbidden == "both" else start == end

    hints = Hints(allowed={("start", "flag") if forbidden == "flagged" else ("start", "end"): allowed})
    model = fit_marginal(MemoryMeasurer(stays(1.0), seed=2), ATTRIBUTES, noise_multiplier=4.0, hints=hints)
    rows = model.sample(ROWS, np.random.default_rng(1))
    assert all(len(column) == ROWS for column in rows.values())
    assert allowed(rows).all()
    assert np.isfinite(model.marginal(("start",))).all()
