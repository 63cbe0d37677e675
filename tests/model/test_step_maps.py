"""Dependencies of ordered attributes as step functions."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.graph.masks import join_masks
from kamino.model.marginal.maps.step_maps import join_light, likeliest_steps
from kamino.model.marginal.marginal_schedule import Hints, MarginalSettings
from kamino.model.protocol import ModelAttribute


def worth(values: tuple[int, ...], table: np.ndarray, counts: np.ndarray, sigma: float) -> float:
    """The log likelihood of a step function, up to a constant, less what its steps cost."""
    price = math.log(max(table.shape[0], 2)) + math.log(max(table.shape[1], 2))
    gain = sum((table[i, v] - counts[i] / 2) * counts[i] / sigma**2 for i, v in enumerate(values))
    return gain - price * sum(a != b for a, b in pairwise(values))


@given(st.integers(1, 6), st.integers(1, 3), st.floats(0.5, 30), st.integers(0, 2**32))
def test_steps_match_brute_force(runs: int, size: int, sigma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 40, runs).astype(float)
    table = rng.normal(0, sigma, (runs, size))
    table[np.arange(runs), rng.integers(0, size, runs)] += counts
    found = likeliest_steps(table, counts, sigma)
    best = max(worth(values, table, counts, sigma) for values in product(range(size), repeat=runs))
    assert worth(tuple(found.tolist()), table, counts, sigma) >= best - 1e-6


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(1, 60))
def test_light_runs_are_joined(counts: list[float], least: float) -> None:
    labels = join_light(np.array(counts), least)
    assert labels[0] == 0
    assert set(np.diff(labels).tolist()) <= {0, 1}
    held = np.bincount(labels, weights=counts)
    for label in range(int(labels[-1])):
        following = counts[int(np.flatnonzero(labels == label + 1)[0])]
        assert held[label] >= least or following >= least
    assert all(np.sum(labels == labels[i]) == 1 for i, count in enumerate(counts[:-1]) if count >= least)


def test_a_clock_of_many_values_is_learned_as_boundaries() -> None:
    """A time of day has an hour, and a minute that is no step function of it: the hour is learned all the same.

    Value by value the noise hides both: few rows have a time.
    """
    rng = np.random.default_rng(0)
    hour, minute = rng.integers(5, 24, 40_000), rng.integers(0, 60, 40_000)
    table = {"time": hour * 60 + minute, "hour": hour, "minute": minute}
    attributes = (
        ModelAttribute(name="time", size=24 * 60, ordered=True),
        ModelAttribute(name="hour", size=24, ordered=True),
        ModelAttribute(name="minute", size=60, ordered=True),
    )
    hints = Hints(functional=(("time", "hour"), ("time", "minute")))
    model = fit_marginal(MemoryMeasurer(table, seed=4), attributes, noise_multiplier=4.22, hints=hints)
    drawn = model.sample(40_000, np.random.default_rng(0))
    assert np.mean(drawn["time"] // 60 == drawn["hour"]) > 0.85


@pytest.mark.parametrize("seed", range(6))
def test_what_repeats_is_no_step_function(seed: int) -> None:
    """Each day has every hour (of four): a map of times to hours that follows the noise would forbid most of it."""
    rng = np.random.default_rng(seed)
    day, hour = rng.integers(0, 365, 25_000), rng.integers(0, 4, 25_000)
    table = {"time": day * 4 + hour, "hour": hour}
    attributes = (
        ModelAttribute(name="time", size=365 * 4, ordered=True),
        ModelAttribute(name="hour", size=4, ordered=True),
    )
    hints, settings = Hints(functional=(("time", "hour"),)), MarginalSettings(step_maps=0.024)
    model = fit_marginal(
        MemoryMeasurer(table, seed=seed), attributes, noise_multiplier=4.22, hints=hints, settings=settings
    )
    drawn = model.sample(25_000, np.random.default_rng(0))
    true, made = (np.bincount(hours, minlength=4) / 25_000 for hours in (hour, drawn["hour"]))
    assert np.abs(true - made).sum() / 2 < 0.02
    assert len(np.unique(drawn["hour"][drawn["time"] < 80])) == 4


def ages(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(3.0, 9.0, rows), 0, 79).astype(np.int64)
    return {"age": age, "group": np.searchsorted([8, 28], age, side="right"), "other": rng.integers(0, 4, rows)}


ATTRIBUTES = (
    ModelAttribute(name="age", size=80, ordered=True),
    ModelAttribute(name="group", size=3),
    ModelAttribute(name="other", size=4),
)


def test_a_group_of_an_ordered_attribute_is_learned_as_boundaries() -> None:
    """With few rows, nearly every row has the true group of its age; value by value few ages would."""
    table = ages(5_000)
    hints = Hints(functional=(("age", "group"),), together=(("age", "group"),))
    right = {}
    for part in (0.06, 0.0):
        settings = MarginalSettings(step_maps=part)
        model = fit_marginal(
            MemoryMeasurer(table, seed=4), ATTRIBUTES, noise_multiplier=4.22, hints=hints, settings=settings
        )
        drawn = model.sample(5_000, np.random.default_rng(0))
        right[part] = float((np.searchsorted([8, 28], drawn["age"], side="right") == drawn["group"]).mean())
    assert right[0.06] > 0.97
    assert right[0.06] > right[0.0]


def test_step_maps_depend_on_releases_only() -> None:
    hints = Hints(functional=(("age", "group"),))
    measurer = MemoryMeasurer(ages(3_000), seed=1)
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.0, hints=hints)
    empty = {name: np.zeros(0, dtype=np.int64) for name in ("age", "group", "other")}
    again = fit_marginal(ReplayMeasurer(empty, measurer.record), ATTRIBUTES, noise_multiplier=4.0, hints=hints)
    first, second = (m.sample(300, np.random.default_rng(0)) for m in (model, again))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert measurer.cost <= 1 / 4.0**2


def test_masks_that_exclude_each_other_leave_the_first() -> None:
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert join_masks({(0, 1): one}, {(0, 1): other})[0, 1].tolist() == one.tolist()
    assert join_masks({}, {(0, 1): other})[0, 1].tolist() == other.tolist()
