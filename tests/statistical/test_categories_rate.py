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
    found = gate.release_categories(counts, attribute="x", noise_multiplier=4.0, delta=DELTA)
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


@pytest.mark.parametrize("lower_by", [2, 5])
def test_lower_threshold_is_caught(monkeypatch, lower_by):
    right = categories._threshold
    monkeypatch.setattr(categories, "_threshold", lambda *arguments: right(*arguments) - lower_by)
    assert alarms(dict.fromkeys(range(NUM_TRIALS), 1), 1) > most()


def test_frequent_category_appears():
    gate = open_gate(1, Neighbours.ADD_REMOVE, SecureNoise())
    # Sigma is 4 and the threshold 10: a category with 60 rows is missed with probability below 1e-30.
    found = gate.release_categories(
        {f"v{number}": 60 for number in range(2_000)}, attribute="x", noise_multiplier=4.0, delta=DELTA
    )
    assert len(found.values) == 2_000
