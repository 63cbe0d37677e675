"""Attributes read relative to another: tables, quantile bins, bases, and what the fitted model keeps of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.maps import partners
from kamino.model.marginal.maps.bases import choose_bases
from kamino.model.marginal.maps.functions import EXPLAINED, explained, function_distance
from kamino.model.marginal.maps.relations import RelationLimits
from kamino.model.marginal.maps.relative import (
    NoisyTable,
    best_copula,
    estimate_joint,
    gaussian_copula,
    onto_simplex,
    quantile_bins,
)
from kamino.model.marginal.marginal_schedule import RELATIONS, Hints, MarginalSettings, plan_marginal
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
        found, told = best_copula(noisy_table(truth * 30_000, 10.0), even * 30_000, even * 30_000)
        assert np.abs(found - truth).sum() < 0.06
        assert told == correlation


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
    strength = {(0, 1): 0.65, (0, 2): 0.6, (1, 2): 0.7, (2, 3): 0.55, (3, 4): 0.2}
    assert choose_bases(strength, None, 0.5) == {0: 2, 1: 2, 3: 2}
    found = choose_bases(strength, (0, 1, 2, 3, 4), 0.5)
    assert found == {1: 0, 2: 0}
    assert not set(found) & set(found.values())
    assert choose_bases(strength, None, 0.95) == {}


def test_the_closest_base_is_chosen() -> None:
    """Three attributes hang on 0, and 3 is nearly a function of 4, which hangs on 0 as well."""
    strength = {(0, 1): 0.6, (0, 2): 0.6, (0, 3): 0.6, (0, 4): 0.6, (3, 4): 0.93, (1, 2): 0.4}
    found = choose_bases(strength, None, 0.5)
    assert {found.get(3), found.get(4)} == {4, None} or {found.get(3), found.get(4)} == {3, None}
    assert (found[1], found[2]) == (0, 0)


@given(
    st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.floats(0.5, 0.99)), st.sets(st.integers(0, 6))
)
def test_what_is_tied_is_a_base_only(strength: dict[tuple[int, int], float], tied: set[int]) -> None:
    pairs = {(min(pair), max(pair)): value for pair, value in strength.items() if pair[0] != pair[1]}
    found = choose_bases(pairs, None, 0.5, frozenset(tied))
    assert not tied & found.keys()
    assert not found.keys() & set(found.values())
    assert all((min(pair), max(pair)) in pairs for pair in found.items())


@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 2**32))
def test_the_distance_of_a_function_is_that_of_sorted_rows(a: int, b: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.integers(0, a, 500)), np.sort(rng.integers(0, b, 500))
    table = np.histogram2d(x, y, bins=(np.arange(a + 1), np.arange(b + 1)))[0] / 500
    apart = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
    assert function_distance(table.sum(axis=1), table.sum(axis=0)) == pytest.approx(apart)


def function_columns(rows: int, spread: float) -> dict[str, np.ndarray]:
    """A skewed column x, one that falls with it, with this noise, and one with nulls that follows neither."""
    rng = np.random.default_rng(3)
    x = np.clip(rng.gamma(2.0, 40.0, rows), 0, SIZE - 1)
    y = np.clip(SIZE * np.exp(-x / 150) + rng.normal(0, spread, rows), 0, SIZE - 1).astype(np.int64)
    return {"x": x.astype(np.int64), "y": y, "z": rng.integers(0, SIZE + 1, rows), "w": rng.integers(0, 3, rows)}


def ranks_apart(drawn: dict[str, np.ndarray]) -> float:
    """One plus the rank correlation of x and y: 0 where y falls with x."""
    ranks = [np.argsort(np.argsort(drawn[name])) for name in ("x", "y")]
    return 1 + float(np.corrcoef(*ranks)[0, 1])


def test_functions_of_few_rows_are_kept() -> None:
    """Three thousand rows show no relation in fine bins.

    In the mean of six seeds ranks are 0.003 apart, and without this 0.05, five standard deviations from the bounds or
    more; shares are off by 0.015 at most, give or take 0.005.
    """
    columns = function_columns(3_000, 0.0)
    apart: dict[float, list[float]] = {0.02: [], 0.0: []}
    for seed in range(6):
        made = {share: fitted_rows(columns, RelationLimits(sketch=share), seed=seed) for share in apart}
        for share, drawn in made.items():
            apart[share].append(ranks_apart(drawn))
        for name in ("x", "y"):
            edges = np.quantile(columns[name], [0.25, 0.5, 0.75])
            shares = np.bincount(np.searchsorted(edges, made[0.02][name]), minlength=4) / 3_000
            np.testing.assert_allclose(shares, 0.25, atol=0.06)
    assert np.mean(apart[0.02]) < 0.02
    assert np.mean(apart[0.0]) > 2 * np.mean(apart[0.02])


def test_what_is_no_function_is_not_read_as_one() -> None:
    """Nor is a function of a column with nulls, of which few rows tell little else than what null goes with."""
    wide = function_columns(3_000, 60.0)
    model = fit_marginal(MemoryMeasurer(wide, seed=4), ATTRIBUTES, noise_multiplier=4.0)
    assert all(node.relative is None for node in model.nodes)
    narrow = function_columns(3_000, 0.0)
    model = fit_marginal(MemoryMeasurer(narrow, seed=4), ATTRIBUTES, noise_multiplier=4.0)
    assert sum(node.relative is not None for node in model.nodes) == 1
    nullable = {**narrow, "z": narrow["y"], "y": narrow["z"] % SIZE}
    model = fit_marginal(MemoryMeasurer(nullable, seed=4), ATTRIBUTES, noise_multiplier=4.0)
    assert all(node.relative is None for node in model.nodes)


def test_two_parts_of_a_table_are_no_line() -> None:
    """Zeros go with zeros, and what is above zero falls: the best line is a narrow one, and explains nothing."""
    rows = np.zeros(64)
    rows[:26], rows[26:] = 90.0, 60.0
    table = np.zeros((64, 64))
    table[:26, :26] = rows[:26, None] / 26
    table[np.arange(26, 64), 89 - np.arange(26, 64)] = rows[26:]
    for seed in range(5):
        noisy = noisy_table(table, 15.0, seed, group=8)
        noisy = replace(noisy, fine_sigma=math.inf)
        falling = gaussian_copula(rows / rows.sum(), table.sum(axis=0) / table.sum(), -0.99)
        assert explained(noisy, falling) < EXPLAINED / 2
        line = np.diag(rows)
        rising = gaussian_copula(rows / rows.sum(), rows / rows.sum(), 0.997)
        assert explained(replace(noisy_table(line, 15.0, seed, group=8), fine_sigma=math.inf), rising) > 0.8


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


def test_few_values_are_read_in_bins() -> None:
    """A column of a dozen values in a wide domain has them all in bins: others may be read by it, not it by another."""
    columns = close_columns(20_000)
    columns["y"] = np.minimum(columns["x"] // 30 * 30, 330)
    model = fit_marginal(MemoryMeasurer(columns, seed=2), ATTRIBUTES, noise_multiplier=4.0)
    bases = {node.attribute.name: node.relative.view.base for node in model.nodes if node.relative is not None}
    assert bases
    assert "y" not in bases


def loose_columns(rows: int, kind: str) -> dict[str, np.ndarray]:
    """A column z that follows x loosely; w says something of what that leaves, or as much of z as x does."""
    rng = np.random.default_rng(6)
    w = rng.integers(0, 3, rows)
    if kind == "residual":
        x = rng.gamma(2.0, 40.0, rows)
        z = x + 14 * (w - 1) + rng.normal(0, 12, rows)
    else:
        x = 80 * w + 80 + rng.normal(0, 25, rows)
        z = 80 * w + 80 + 0.3 * (x - 80 * w - 80) + rng.normal(0, 12, rows)
    both = (np.clip(each, 0, SIZE - 1).astype(np.int64) for each in (x, z))
    return {"x": next(both), "y": rng.integers(0, SIZE, rows), "z": next(both), "w": w}


@pytest.mark.parametrize("kind", ["residual", "partner"])
def test_what_has_other_partners_is_read_in_bins(kind: str) -> None:
    columns = loose_columns(30_000, kind)
    measurer = MemoryMeasurer(columns, seed=3)
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.0)
    read = {node.attribute.name: node.relative.view.base for node in model.nodes if node.relative is not None}
    assert (read.get("z") == "x") == (kind == "residual")


def test_distances_of_normal_attributes_are_those_of_copulas() -> None:
    """In fifty even bins, of which each hides a little."""
    even = np.full(50, 1 / 50)
    for correlation, distance in zip(partners._CORRELATIONS[:-2], partners._DISTANCES[:-2], strict=True):
        table = gaussian_copula(even, even, correlation)
        assert np.abs(table / table.sum() - 1 / 50**2).sum() / 2 == pytest.approx(distance, abs=0.012)


def test_closed_relations_are_not_read() -> None:
    strength = {(0, 1): 0.65, (0, 2): 0.6, (1, 2): 0.7}
    assert choose_bases(strength, None, 0.5) == {0: 1, 2: 1}
    assert choose_bases(strength, None, 0.5, closed=frozenset({(0, 1)})) in ({0: 2, 1: 2}, {1: 0, 2: 0})
    every = frozenset((own, base) for pair in strength for own, base in (pair, pair[::-1]))
    assert choose_bases(strength, None, 0.5, closed=every) == {}


@pytest.mark.parametrize(
    "columns",
    [
        close_columns(20_000),
        function_columns(3_000, 0.0),
        loose_columns(30_000, "residual"),
    ],
    ids=["relations", "function", "loose"],
)
def test_a_model_with_relations_depends_on_releases_only_and_is_saved(columns: dict[str, np.ndarray]) -> None:
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


def test_margins_after_relations_are_kept() -> None:
    """What depends on an attribute that is read relative to another keeps the frequencies that were measured.

    y is what v leaves of x, and v is 0 for half of the rows: whether it is hangs on quantile bins of y.
    """
    rows = 20_000
    rng = np.random.default_rng(0)
    x = np.clip(rng.gamma(3.0, 50.0, rows) + 20, 0, SIZE - 1).astype(np.int64)
    v = np.where(rng.random(rows) < 0.5, 0, np.minimum(rng.gamma(2.0, 8.0, rows) + 1, 49).astype(np.int64))
    columns = {"x": x, "y": np.maximum(x - v, 0), "z": x % 7, "w": rng.integers(0, 3, rows), "v": v, "u": np.sign(v)}
    attributes = (
        *ATTRIBUTES,
        ModelAttribute(name="v", size=50, ordered=True),
        ModelAttribute(name="u", size=2),
    )
    off = []
    for seed in range(3):
        model = fit_marginal(MemoryMeasurer(columns, seed=seed), attributes, noise_multiplier=4.0)
        assert any(node.relative is not None for node in model.nodes)
        off.append(model.sample(rows, np.random.default_rng(seed))["u"].mean() - columns["u"].mean())
    # The mean is -0.0026, give or take 0.0009.
    assert abs(np.mean(off)) < 0.01


def test_what_is_tied_is_planned_as_a_base() -> None:
    """Distances of tied attributes are measured, and so are planned; where all are tied there is nothing to read."""
    some, every = (
        plan_marginal(ATTRIBUTES, noise_multiplier=4.0, hints=Hints(tied=frozenset(tied))).schedule.part(RELATIONS)
        for tied in ("x", "xyz")
    )
    assert some[0].attributes == ("x", "y", "z")
    assert not every
