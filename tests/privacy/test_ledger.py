from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy import (
    Budget,
    DeltaEvent,
    Entry,
    Gate,
    GaussianEvent,
    Ledger,
    Neighbours,
    PoissonGaussianEvent,
    PrivacyUnit,
    SeededNoise,
    epsilon,
    gaussian_mu,
    multiplier_for,
)
from kamino.privacy.replay import Recorder

ONE = Budget(epsilon=1.0, delta=1e-6)


def entry(*events):
    return Entry(kind="counts", what="1-way marginal", attributes=("age",), events=tuple(events), sigma=5.0)


class ForbiddenNoise(SeededNoise):
    def discrete_gaussian(self, sigma, shape):
        raise AssertionError("drawn")


class UntouchableArray(np.ndarray):
    """An array whose values cannot be read."""

    def __array_ufunc__(self, *args, **kwargs):
        raise AssertionError("touched")

    def astype(self, *args, **kwargs):
        raise AssertionError("touched")


def test_charge_over_budget_raises_and_draws_nothing():
    recorder = Recorder()
    gate = Gate(ONE, noise=ForbiddenNoise(0), tape=recorder)
    counts = np.arange(4).view(UntouchableArray)
    with pytest.raises(BudgetError, match=r"1-way marginal.*age.*epsilon=1, delta=1e-06"):
        gate.release_counts(counts, what="1-way marginal", attributes=("age",), noise_multiplier=4.22)
    assert recorder.records == []
    assert gate.ledger.entries == ()
    assert gate.ledger.spent() == 0
    with pytest.raises(AssertionError, match="touched"):  # the same within the budget: it would have been read
        gate.release_counts(counts, what="1-way marginal", attributes=("age",), noise_multiplier=4.23)


def test_charge_comes_before_the_draw():
    gate = Gate(ONE, noise=ForbiddenNoise(0))
    with pytest.raises(AssertionError, match="drawn"):
        gate.release_counts(np.arange(4), what="x", attributes=(), noise_multiplier=9.0)
    assert len(gate.ledger.entries) == 1


@settings(max_examples=30, deadline=None)
@given(st.floats(20, 90), st.integers(1, 20), st.sampled_from(Neighbours))
def test_charging_n_at_once_equals_n_charges(multiplier, n, neighbours):
    budget = Budget(epsilon=1.0, delta=1e-6, neighbours=neighbours)
    event = GaussianEvent(noise_multiplier=multiplier * 2)
    at_once, one_by_one = Ledger(budget), Ledger(budget)
    at_once.charge(entry((event, n)))
    for _ in range(n):
        one_by_one.charge(entry((event, 1)))
    for relation in Neighbours:
        assert at_once.spent(relation) == pytest.approx(one_by_one.spent(relation), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(GaussianEvent, noise_multiplier=st.floats(4, 30)),
            st.builds(DeltaEvent, delta=st.floats(1e-9, 6e-7)),
        ),
        max_size=30,
    ),
    st.sampled_from(Neighbours),
)
def test_ledger_never_goes_over(events, neighbours):
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6, neighbours=neighbours))
    for event in events:
        before = ledger.spent()
        try:
            ledger.charge(entry((event, 1)))
        except BudgetError:
            assert ledger.spent() == before
        assert ledger.spent() <= 1.0


def test_whole_budget_can_be_spent_in_shares():
    ledger = Ledger(ONE)
    share = gaussian_mu(ONE) ** 2 / 300
    for _ in range(300):
        ledger.charge(entry((GaussianEvent(noise_multiplier=multiplier_for(share)), 1)))
    assert 0.999 < ledger.spent() <= 1
    assert ledger.gaussian_left() < 1e-6
    with pytest.raises(BudgetError):
        ledger.charge(entry((GaussianEvent(noise_multiplier=multiplier_for(share)), 1)))


def test_left_counts_delta_events():
    ledger = Ledger(ONE)
    ledger.charge(entry((DeltaEvent(delta=4e-7), 1)))
    assert ledger.delta_left() == pytest.approx(6e-7)
    assert ledger.gaussian_left() == pytest.approx(gaussian_mu(ONE, reserved_delta=4e-7) ** 2)
    z = multiplier_for(ledger.gaussian_left())
    ledger.charge(entry((GaussianEvent(noise_multiplier=z), 1)))
    assert 0.999 < ledger.spent() <= 1


def test_a_charge_of_two_events_is_one():
    ledger = Ledger(ONE)
    with pytest.raises(BudgetError):
        ledger.charge(entry((GaussianEvent(noise_multiplier=100.0), 1), (DeltaEvent(delta=1e-5), 1)))
    assert ledger.spent() == 0
    assert ledger.delta_left() == ONE.delta


def test_sampled_events_are_priced_too():
    ledger = Ledger(ONE)
    step = PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=23 / 32561)
    ledger.charge(entry((step, 1600 * 14)))
    assert ledger.spent() == pytest.approx(0.493, abs=5e-4)
    with pytest.raises(BudgetError):
        ledger.charge(entry((step, 1600 * 14 * 6)))
    with pytest.raises(PrivacyError, match="calibrate"):
        ledger.gaussian_left()


def test_hundreds_of_charges_are_cheap():
    ledger = Ledger(ONE)
    ledger.spent()
    started = time.process_time()
    for _ in range(500):
        ledger.charge(entry((GaussianEvent(noise_multiplier=200.0), 1)))
    assert time.process_time() - started < 1.0


def test_ledger_without_privacy_takes_everything_and_says_so():
    ledger = Ledger(Budget(epsilon=math.inf, delta=1e-6))
    ledger.charge(entry((GaussianEvent(noise_multiplier=0.0), 1)))
    assert ledger.mark == "not private"
    assert ledger.spent() == math.inf
    assert ledger.gaussian_left() == math.inf
    assert json.loads(ledger.to_json())["spent_epsilon"] == {"add_remove": None, "replace": None}


def test_ledger_renders_what_was_released():
    unit = PrivacyUnit(column="customer", max_rows=3)
    ledger = Ledger(ONE, unit=unit, mark="not for release")
    event = GaussianEvent(noise_multiplier=6.0, replace_multiplier=6.0 / math.sqrt(2))
    ledger.charge(
        Entry(
            kind="counts",
            what="2-way marginal",
            attributes=("age", "sex"),
            events=((event, 1),),
            sigma=18.0,
            sensitivity=3.0,
            shape=(7, 2),
        )
    )
    text = json.loads(ledger.to_json())
    assert text["unit"] == {"column": "customer", "max_rows": 3, "text": unit.describe()}
    assert text["mark"] == "not for release"
    assert text["spent_epsilon"]["add_remove"] < text["spent_epsilon"]["replace"] <= 1
    (row,) = text["entries"]
    assert row["attributes"] == ["age", "sex"]
    assert (row["sigma"], row["sensitivity"], row["noise_multiplier"]) == (18.0, 3.0, 6.0)
    assert row["events"][0]["type"] == "GaussianEvent"
    assert row == json.loads(json.dumps(ledger.to_rows()[0]))


def test_sealed_parts_add_up():
    """Sampled events planned from earlier releases: the two parts are priced apart, at deltas that add up."""
    ledger = Ledger(ONE)
    count = GaussianEvent(noise_multiplier=200.0)
    ledger.charge(entry((count, 1), (DeltaEvent(delta=1e-8), 1)))
    ledger.seal(delta_part=0.1)
    first = epsilon([(count, 1)], delta=0.1 * (ONE.delta - 1e-8))
    left = ledger.open_budget
    assert left.delta == pytest.approx(0.9 * (ONE.delta - 1e-8))
    assert left.epsilon == pytest.approx(1 - first)
    step = PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=23 / 32561)
    ledger.charge(entry((step, 1600 * 14)))
    assert ledger.spent() == pytest.approx(first + epsilon([(step, 1600 * 14)], delta=left.delta))
    # Sealing is never free: one price of all events at the whole delta is smaller.
    together = [(count, 1), (step, 1600 * 14), (DeltaEvent(delta=1e-8), 1)]
    assert ledger.spent() > epsilon(together, delta=ONE.delta)
    (part,) = ledger.to_dict()["sealed"]
    assert part["entries"] == 1
    assert part["epsilon"]["add_remove"] == pytest.approx(first)
    assert len(ledger.open_entries) == 1


def test_a_sealed_ledger_still_refuses_what_goes_over():
    ledger = Ledger(ONE)
    ledger.charge(entry((GaussianEvent(noise_multiplier=multiplier_for(gaussian_mu(ONE) ** 2 / 2)), 1)))
    ledger.seal()
    left = ledger.gaussian_left()
    assert 0 < left < gaussian_mu(ONE) ** 2 / 2
    with pytest.raises(BudgetError):
        ledger.charge(entry((GaussianEvent(noise_multiplier=multiplier_for(left * 1.01)), 1)))
    ledger.charge(entry((GaussianEvent(noise_multiplier=multiplier_for(left)), 1)))
    assert ledger.spent() <= ONE.epsilon


def test_what_leaves_nothing_cannot_be_sealed():
    ledger = Ledger(ONE)
    ledger.charge(entry((GaussianEvent(noise_multiplier=multiplier_for(gaussian_mu(ONE) ** 2)), 1)))
    with pytest.raises(BudgetError, match="leaves nothing"):
        ledger.seal()
    assert ledger.spent() == pytest.approx(1.0, rel=1e-6)


def test_sealing_an_empty_or_exact_ledger_changes_nothing():
    ledger = Ledger(ONE)
    ledger.seal()
    assert ledger.open_budget == ONE
    exact = Ledger(Budget(epsilon=math.inf, delta=1e-6))
    exact.charge(entry((GaussianEvent(noise_multiplier=0.0), 1)))
    exact.seal()
    assert exact.gaussian_left() == math.inf
    assert exact.spent() == math.inf
