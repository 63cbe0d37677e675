"""How often a category of one unit is published. Every singleton is one independent trial.

False alarm rate: 1e-9 for each test, by the binomial distribution.
"""

from __future__ import annotations

import pytest
from scipy.stats import binom

from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit, SecureNoise, SeededNoise
from kamino.privacy.mechanisms import categories

DELTA = 0.02
NUM_TRIALS = 20_000


def open_gate(max_rows, relation, noise):
    budget = Budget(epsilon=1.0, delta=0.1, neighbours=relation)
    gate = Gate(budget, unit=PrivacyUnit(column="who", max_rows=max_rows), noise=noise)
    gate._rows_selected = True  # the counts below are those of selected rows
    return gate


def alarms(counts, owned, *, max_rows=1, relation=Neighbours.ADD_REMOVE, noise=None):
    """Count the units of which at least one own category was published; `owned` categories a unit."""
    gate = open_gate(max_rows, relation, noise or SeededNoise(5))
    found = gate.release_categories({"x": counts}, noise_multiplier=4.0, delta=DELTA)["x"]
    return len({int(value) // owned for value in found.values})


def most(trials=NUM_TRIALS):
    return binom.isf(1e-9, trials, DELTA)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(0)], ids=["secure", "seeded"])
def test_rare_category_appears_at_most_delta(noise, relation):
    count = alarms(dict.fromkeys(range(NUM_TRIALS), 1), 1, relation=relation, noise=noise)
    assert count <= most()
    assert count > NUM_TRIALS * DELTA / 3  # the bound is nearly met, so a smaller threshold would break it


@pytest.mark.parametrize("own", [1, 2, 3])
def test_unit_of_three_rows_appears_at_most_delta(own):
    # Three rows in one category, or one with two and one with one, or three of one row each.
    sizes = {1: [3], 2: [2, 1], 3: [1, 1, 1]}[own]
    counts = {unit * own + place: size for unit in range(NUM_TRIALS) for place, size in enumerate(sizes)}
    assert alarms(counts, own, max_rows=3) <= most()


COLUMNS = 5


def joint_alarms(sizes, *, max_rows=1, relation=Neighbours.ADD_REMOVE, delta=DELTA, noise_multiplier=2.0):
    """Count the units of which a category was published in any of five columns; `sizes` are theirs in each column."""
    gate = open_gate(max_rows, relation, SeededNoise(7))
    counts = {unit * len(sizes) + place: size for unit in range(NUM_TRIALS) for place, size in enumerate(sizes)}
    columns = {f"c{number}": counts for number in range(COLUMNS)}
    found = gate.release_categories(columns, noise_multiplier=noise_multiplier, delta=delta)
    return len({int(value) // len(sizes) for each in found.values() for value in each.values})


@pytest.mark.parametrize("relation", Neighbours)
def test_rare_categories_of_all_columns_appear_at_most_delta(relation):
    """A row with a value of its own in each of five columns: that any of them shows has probability at most delta."""
    count = joint_alarms([1], relation=relation)
    assert count <= most()
    assert count > NUM_TRIALS * DELTA / 3  # nearly met, so a threshold for one column alone would break it


@pytest.mark.parametrize("sizes", [[3], [2, 1], [1, 1, 1]])
def test_units_of_three_rows_in_all_columns_appear_at_most_delta(sizes):
    assert joint_alarms(sizes, max_rows=3) <= most()


def test_a_threshold_for_one_column_alone_is_caught(monkeypatch):
    right = categories.least_count
    monkeypatch.setattr(categories, "least_count", lambda scale, delta, rows: right(scale, delta * COLUMNS, rows))
    assert joint_alarms([1]) > most()


@pytest.mark.parametrize(("columns", "max_rows"), [(1, 1), (7, 1), (7, 3), (20, 2)])
def test_the_exact_probability_is_at_most_delta(columns, max_rows):
    """By the distribution of the noise, computed here on its own, for every way to spread a unit's rows."""
    import itertools
    import math

    delta, sigma = 1e-6, 11.0 * math.sqrt(columns)
    support = range(-400 * columns, 400 * columns)
    total = math.fsum(math.exp(-(k**2) / (2 * sigma**2)) for k in support)
    threshold = categories.least_count(sigma, delta / columns, max_rows)

    def passes(size):
        tail = (math.exp(-(k**2) / (2 * sigma**2)) for k in support if k >= threshold - size)
        return math.fsum(tail) / total

    splits = [
        split
        for own in range(1, max_rows + 1)
        for split in itertools.product(range(1, max_rows + 1), repeat=own)
        if sum(split) <= max_rows
    ]
    worst = max(1 - math.prod(1 - passes(size) for size in split) for split in splits)
    assert 1 - (1 - worst) ** columns <= delta
    assert 1 - (1 - worst) ** columns > delta / 20


@pytest.mark.parametrize("lower_by", [2, 5])
def test_lower_threshold_is_caught(monkeypatch, lower_by):
    right = categories.least_count
    monkeypatch.setattr(categories, "least_count", lambda *arguments: right(*arguments) - lower_by)
    assert alarms(dict.fromkeys(range(NUM_TRIALS), 1), 1) > most()


def test_frequent_category_appears():
    gate = open_gate(1, Neighbours.ADD_REMOVE, SecureNoise())
    # Sigma is 4 and the threshold 10: a category with 60 rows is missed with probability below 1e-30.
    counts = {f"v{number}": 60 for number in range(2_000)}
    found = gate.release_categories({"x": counts}, noise_multiplier=4.0, delta=DELTA)["x"]
    assert len(found.values) == 2_000
