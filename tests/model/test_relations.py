"""Attributes read relative to another: tables, quantile bins, bases, and what the fitted model keeps of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.maps.relations import RelationLimits, choose_bases
from kamino.model.marginal.maps.relative import (
    NoisyTable,
    best_copula,
    estimate_joint,
    gaussian_copula,
    onto_simplex,
    quantile_bins,
)
from kamino.model.marginal.marginal_schedule import MarginalSettings
from kamino.model.marginal.network import MarginalModel
from kamino.model.protocol import CodeMap, ConditionalMap, ModelAttribute

SIZE = 400


def close_columns(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A skewed column, one that follows it closely, one that follows it backwards with nulls, and noise."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.gamma(2.0, 40.0, rows), 0, SIZE - 1).astype(np.int64)
    y = np.clip(x + rng.normal(0, 4, rows), 0, SIZE - 1).astype(np.int64)
    z = np.clip(SIZE - 1 - x + rng.normal(0, 6, rows), 0, SIZE - 1).astype(np.int64)
    z[rng.random(rows) < 0.1] = SIZE
    return {"x": x, "y": y, "z": z, "w": rng.integers(0, 3, rows)}


ATTRIBUTES = (
    ModelAttribute(name="x", size=SIZE, ordered=True),
    ModelAttribute(name="y", size=SIZE, ordered=True),
    ModelAttribute(name="z", size=SIZE + 1, ordered=True, null_code=SIZE),
    ModelAttribute(name="w", size=3),
)


def noisy_table(table: np.ndarray, sigma: float, seed: int = 0, group: int = 4) -> NoisyTable:
    rng = np.random.default_rng(seed)
    sides = [-(-length // group) for length in table.shape]
    padded = np.zeros([side * group for side in sides])
    padded[: table.shape[0], : table.shape[1]] = table
    coarse = padded.reshape(sides[0], group, sides[1], group).sum(axis=(1, 3))
    noise = max(sigma, 1e-3)
    return NoisyTable(
        fine=table + rng.normal(0, sigma, table.shape),
        fine_sigma=noise,
        coarse=coarse + rng.normal(0, sigma, coarse.shape),
        coarse_sigma=noise,
        group=group,
    )


def test_joint_without_noise_is_the_table() -> None:
    table = np.random.default_rng(1).integers(1, 90, (19, 23)).astype(float)
    joint = estimate_joint(noisy_table(table, 0.0), table.sum(axis=1), table.sum(axis=0))
    np.testing.assert_allclose(joint, table / table.sum(), atol=1e-6)


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 40), st.integers(2, 40), st.floats(0.1, 50), st.integers(0, 2**32))
def test_joint_has_its_margins(a: int, b: int, sigma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 200, (a, b)) + 0.5
    joint = estimate_joint(noisy_table(table, sigma, seed % 1000), table.sum(axis=1), table.sum(axis=0))
    assert np.all(joint >= 0)
    assert joint.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(joint.sum(axis=0), table.sum(axis=0) / table.sum(), atol=1e-9)
    np.testing.assert_allclose(joint.sum(axis=1), table.sum(axis=1) / table.sum(), atol=0.02)


def test_noise_is_taken_out_of_a_close_relation() -> None:
    """The estimate is far nearer to the truth than the noisy table cut off at zero."""
    even = np.full(64, 1 / 64)
    truth = gaussian_copula(even, even, 0.98) * 40_000
    noisy = noisy_table(truth, 20.0)
    joint = estimate_joint(noisy, truth.sum(axis=1), truth.sum(axis=0)) * 40_000
    raw = np.maximum(noisy.fine, 0)
    raw *= 40_000 / raw.sum()
    assert np.abs(joint - truth).sum() < 0.25 * np.abs(raw - truth).sum()


@pytest.mark.parametrize("seed", range(3))
def test_noise_makes_few_strays(seed: int) -> None:
    """A ridge that is no Gaussian copula, wide at one end: one row in 400 at most comes out far from it."""
    rng = np.random.default_rng(seed)
    x = rng.random(40_000)
    y = x + (0.01 + 0.05 * x) * (rng.exponential(1.0, len(x)) - 1)
    places = [np.argsort(np.argsort(each)) * 64 // len(x) for each in (x, y)]
    truth = np.bincount(places[0] * 64 + places[1], minlength=64 * 64).reshape(64, 64).astype(float)
    joint = estimate_joint(noisy_table(truth, 24.0, seed), truth.sum(axis=1), truth.sum(axis=0))
    far = np.abs(np.subtract.outer(np.arange(64), np.arange(64))) > 20
    assert truth[far].sum() < 10
    assert joint[far].sum() < 0.0025


def test_the_copula_that_made_a_table_is_found() -> None:
    even = np.full(40, 1 / 40)
    for correlation in (0.92, -0.97, 0.0):
        truth = gaussian_copula(even, even, correlation) if correlation else np.full((40, 40), 1 / 1600)
        found = best_copula(noisy_table(truth * 30_000, 10.0), even * 30_000, even * 30_000)
        assert np.abs(found - truth).sum() < 0.06


@given(st.lists(st.floats(-100, 100), min_size=4, max_size=4), st.floats(0, 500))
def test_projection_onto_the_simplex(values: list[float], total: float) -> None:
    found = onto_simplex(np.array([[values]]), np.array([[total]]))[0, 0]
    assert np.all(found >= 0)
    assert found.sum() == pytest.approx(total, abs=1e-6)
    assert np.all(np.diff(found[np.argsort(values)]) >= -1e-9)


def test_quantile_bins_are_even_and_null_is_alone() -> None:
    even = np.full(48, 1 / 48)
    joint = gaussian_copula(even, even, 0.9)
    labels, bins = quantile_bins(joint, 6, None)
    assert bins == 6
    share = np.array([joint[labels == q].sum() for q in range(bins)])
    np.testing.assert_allclose(share, 1 / 6, atol=0.05)
    assert np.all(np.diff(labels, axis=1) >= 0)
    with_null = np.insert(joint, 48, 0.001, axis=1)
    labels, bins = quantile_bins(with_null, 6, 48)
    assert bins == 7
    assert set(labels[:, 48]) == {6}
    assert 6 not in labels[:, :48]


def test_bases_come_first() -> None:
    strength = {(0, 1): 0.9, (0, 2): 0.6, (1, 2): 0.7, (2, 3): 0.55, (3, 4): 0.2}
    assert choose_bases(strength, None, 0.5) == {0: 2, 1: 2, 3: 2}
    found = choose_bases(strength, (0, 1, 2, 3, 4), 0.5)
    assert found == {1: 0, 2: 0}
    assert not set(found) & set(found.values())
    assert choose_bases(strength, None, 0.95) == {}


def test_a_conditional_map_reads_two_columns() -> None:
    fine = CodeMap(size=4, bins=2, starts=np.array([0, 2]), labels=np.array([0, 1]))
    view = ConditionalMap(base="x", over=fine, own=fine, labels=np.array([[0, 1], [1, 2]]), bins=3)
    assert view(np.array([0, 3, 3]), np.array([1, 1, 2])).tolist() == [0, 1, 2]
    assert view.merged(np.array([0, 0, 1])).bins == 2


@pytest.mark.parametrize(("sequence", "most"), [(None, 6), (("z", "w", "x", "y"), 11)])
def test_the_model_keeps_close_relations(sequence: tuple[str, ...] | None, most: float) -> None:
    """Ranks inside bins stay together, margins and nulls stay what they were.

    With z first, x and y are both read relative to it, whose own noise is larger.
    """
    rows = 30_000
    columns = close_columns(rows)
    drawn = fitted_rows(columns, RelationLimits(), seed=5, sequence=sequence)
    assert abs((drawn["z"] == SIZE).mean() - 0.1) < 0.02
    for column in ("x", "y"):
        edges = np.quantile(columns[column], np.linspace(0, 1, 17)[1:-1])
        true, made = (
            np.bincount(np.searchsorted(edges, c), minlength=16) / rows for c in (columns[column], drawn[column])
        )
        assert np.abs(true - made).sum() / 2 < 0.03
    assert np.abs(columns["x"] - columns["y"]).mean() < 4
    assert np.abs(drawn["x"] - drawn["y"]).mean() < most


def test_without_relations_ranks_do_not_stay_together() -> None:
    """On average over four draws of the noise: one alone says little."""
    columns, seeds = close_columns(30_000), (5, 6, 7, 8)
    apart = []
    for limits in (RelationLimits(), RelationLimits(most_share=0.0)):
        made = [fitted_rows(columns, limits, seed=seed) for seed in seeds]
        apart.append(np.mean([np.abs(drawn["x"] - drawn["y"]).mean() for drawn in made]))
    assert apart[1] > 1.35 * apart[0]


def fitted_rows(
    columns: dict[str, np.ndarray], limits: RelationLimits, *, seed: int, sequence: tuple[str, ...] | None = None
) -> dict[str, np.ndarray]:
    model = fit_marginal(
        MemoryMeasurer(columns, seed=seed),
        ATTRIBUTES,
        noise_multiplier=4.0,
        sequence=sequence,
        settings=MarginalSettings(relations=limits),
    )
    return model.sample(len(columns["x"]), np.random.default_rng(1))


def test_a_model_with_relations_depends_on_releases_only_and_is_saved() -> None:
    columns = close_columns(20_000)
    measurer = MemoryMeasurer(columns, seed=2)
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.0)
    assert any(node.relative is not None for node in model.nodes)
    other = {name: np.zeros(7, dtype=np.int64) for name in columns}
    again = fit_marginal(ReplayMeasurer(other, measurer.record), ATTRIBUTES, noise_multiplier=4.0)
    meta, arrays = model.to_arrays()
    loaded = MarginalModel.from_arrays(meta, arrays)
    for each in (again, loaded):
        first, second = (m.sample(500, np.random.default_rng(0)) for m in (model, each))
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert model.given({"w": np.array([1])}) is None
    assert model.marginal(("w",)).sum() == pytest.approx(1.0)
