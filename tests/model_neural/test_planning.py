from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from kamino.errors import ModelError
from kamino.model import ModelAttribute
from kamino.model.neural import NeuralSettings, describe_plan
from kamino.model.neural.neural_schedule import charge_rows, plan_fit
from kamino.privacy import Budget, Entry, GaussianEvent, Ledger, Neighbours, epsilon, multiplier_for

ATTRIBUTES = [
    ModelAttribute(name="sex", size=2),
    ModelAttribute(name="job", size=90),
    ModelAttribute(name="pay", size=5_000, ordered=True),
    ModelAttribute(name="zip", size=9_000),
]
BUDGET = Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE)


def test_plan_is_within_the_budget_and_says_both_relations() -> None:
    plan = describe_plan(ATTRIBUTES, BUDGET, sequence=["sex", "job", "pay", "zip"], num_rows=20_000)
    assert 0.95 < plan.epsilons[Neighbours.REPLACE] <= 1.0
    assert plan.epsilons[Neighbours.ADD_REMOVE] < plan.epsilons[Neighbours.REPLACE]
    text = plan.describe()
    assert "zip                                      wide                9,000 values  histogram" in text
    assert "network over 2 units" in text
    assert f"{plan.epsilons[Neighbours.REPLACE]:.4f} replace (this run)" in text
    assert json.loads(json.dumps(plan.to_json(), allow_nan=False))["units"][2]["context"] == [0, 1]


def test_price_of_histograms_under_the_other_relation() -> None:
    plan = describe_plan([ModelAttribute(name="zip", size=9_000)], BUDGET, num_rows=20_000)
    noise = plan.parameters.histogram_noise
    count = [(GaussianEvent(noise_multiplier=200.0, replace_multiplier=200.0), 1)]
    histogram = [(GaussianEvent(noise_multiplier=noise * math.sqrt(2), replace_multiplier=noise), 1)]
    for relation in Neighbours:
        # The fit is planned from the noisy count, so the two are priced apart, at deltas that add up.
        apart = epsilon(count, delta=1e-7, neighbours=relation) + epsilon(histogram, delta=9e-7, neighbours=relation)
        assert plan.epsilons[relation] == pytest.approx(apart)


def test_what_is_reserved_is_left_over() -> None:
    later = ((GaussianEvent(noise_multiplier=9.0, replace_multiplier=9.0), 1),)
    plan = describe_plan(ATTRIBUTES, BUDGET, num_rows=20_000, reserved=later, learn_weights=True)
    free = describe_plan(ATTRIBUTES, BUDGET, num_rows=20_000, settings=NeuralSettings(num_rows=20_000))
    assert plan.epsilons[Neighbours.REPLACE] <= 1.0
    assert plan.parameters.gradient_noise > free.parameters.gradient_noise
    assert plan.parameters.weight_rows >= 50
    assert free.parameters.weight_events() == ()


def test_without_privacy_the_plan_says_so() -> None:
    plan = describe_plan(ATTRIBUTES, Budget(epsilon=math.inf, delta=1e-6), num_rows=20_000)
    assert set(plan.epsilons.values()) == {math.inf}
    assert plan.to_json()["epsilon"] == {"add_remove": None, "replace": None}


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(ModelError, match="no name twice"):
        describe_plan([ATTRIBUTES[0], ATTRIBUTES[0]], BUDGET, num_rows=9)


def test_planning_needs_no_jax() -> None:
    code = """
import sys
sys.modules["jax"] = sys.modules["optax"] = sys.modules["joblib"] = None
from kamino.model import ModelAttribute
from kamino.model.neural import describe_plan
from kamino.privacy import Budget
attributes = [ModelAttribute(name=name, size=9) for name in "ab"]
print(describe_plan(attributes, Budget(epsilon=1.0, delta=1e-6), num_rows=5_000).describe())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "a+b" in found


@pytest.mark.parametrize("before", [0.0, 0.3])
@pytest.mark.parametrize("spent", [1.0, 500.0, 2_500.0])
def test_no_planned_release_of_a_neural_run_is_refused(spent: float, before: float) -> None:
    """Whatever was found before, with a part of mu squared: a ledger also keeps its promise under replace."""
    ledger = Ledger(Budget(epsilon=spent, delta=1e-6))
    if before:
        found = GaussianEvent(noise_multiplier=multiplier_for(before * ledger.gaussian_left()))
        ledger.charge(Entry(kind="bounds", what="ranges", attributes=(), events=((found, 1),)))
    charge_rows(ledger, NeuralSettings())
    attributes = [ModelAttribute(name=name, size=size) for name, size in {"a": 4, "b": 90, "c": 30}.items()]
    plan = plan_fit(
        attributes, ledger, num_rows=300, sequence=None, settings=NeuralSettings(), reserved=(), learn=False
    )
    events = plan.parameters.events(Neighbours.ADD_REMOVE)
    assert ledger.holds(events)
    for event, count in events:
        for part in (count // 2, count - count // 2):
            if part:
                ledger.charge(Entry(kind="planned", what="a release", attributes=(), events=((event, part),)))
    assert ledger.spent() <= spent
