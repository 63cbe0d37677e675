from __future__ import annotations

import contextlib
import json
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

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
from kamino.testing.replay import Recorder

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


@examples(30)
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


@examples(25)
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
    assert text["spent_epsilon"]["add_remove"] == ledger.spent() < 1
    assert text["spent_epsilon"]["replace"] == ledger.promised(Neighbours.REPLACE)
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
    assert len(ledger.entries) == 2


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


def test_delta_is_set_aside_once():
    ledger = Ledger(ONE)
    ledger.set_aside(1e-7, what="delta of categories")
    before = ledger.gaussian_left(), ledger.delta_left()
    taking = Entry(kind="categories", what="cities", attributes=("city",), events=(), from_aside=5e-8)
    ledger.charge(taking)
    ledger.charge(taking)
    assert (ledger.gaussian_left(), ledger.delta_left()) == before
    with pytest.raises(BudgetError, match=r"'cities'.*set aside, of which 0 is left. Nothing was drawn"):
        ledger.charge(taking)
    assert len(ledger.entries) == 3
    assert ledger.to_rows()[1]["from_aside"] == 5e-8
    with pytest.raises(BudgetError):
        Ledger(ONE).set_aside(2e-6, what="more than there is")


def test_the_stated_price_under_the_other_relation_follows_no_path():
    """Two ways to spend one budget cost differently if a row is replaced; both are told the same, and at least that."""
    stated = set()
    for ratio in (1.0, math.sqrt(2), 2.0):
        ledger = Ledger(ONE)
        z = multiplier_for(ledger.gaussian_left())
        ledger.charge(entry((GaussianEvent(noise_multiplier=z, replace_multiplier=z / ratio), 1)))
        told = ledger.to_dict()["spent_epsilon"]
        assert told["add_remove"] == ledger.spent()
        assert ledger.spent(Neighbours.REPLACE) <= told["replace"]
        stated.add(told["replace"])
    assert len(stated) == 1
    assert ledger.spent(Neighbours.REPLACE) > 0.99 * stated.pop()


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("budget", [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (10.0, 1e-9), (3.0, 1e-2)])
def test_no_path_costs_more_than_is_promised(budget, relation):
    """Random ways to spend a budget, in parts or not, with delta events: none is above, under either relation."""
    rng = np.random.default_rng(7)
    budget = Budget(epsilon=budget[0], delta=budget[1], neighbours=relation)
    for _ in range(40):
        ledger = Ledger(budget)
        promised = {each: ledger.promised(each) for each in Neighbours}
        with contextlib.suppress(BudgetError):
            spend_at_random(ledger, rng)
        for each in Neighbours:
            assert ledger.promised(each) == promised[each]
            assert ledger.spent(each) <= promised[each]


def spend_at_random(ledger, rng):
    for _ in range(rng.integers(1, 5)):
        if rng.random() < 0.5:
            ledger.charge(entry((DeltaEvent(delta=ledger.delta_left() * rng.random() ** 3), 1)))
        own, ratio = multiplier_for(ledger.gaussian_left() * rng.choice([0.1, 0.5, 0.999])), rng.choice([1.0, 1.4, 2.0])
        noise = (own, own / ratio) if ledger.budget.neighbours is Neighbours.ADD_REMOVE else (own * ratio, own)
        ledger.charge(entry((GaussianEvent(noise_multiplier=noise[0], replace_multiplier=noise[1]), 1)))
        if rng.random() < 0.3:
            ledger.seal(delta_part=rng.random())


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.2, 0.01, 300), (0.9, 1 / 400, 1), (3.0, 0.2, 20)])
@pytest.mark.parametrize("relation", Neighbours)
def test_sampled_releases_keep_what_is_promised(noise, rate, steps, relation):
    step = PoissonGaussianEvent(noise_multiplier=noise, sampling_rate=rate)
    price = epsilon([(step, steps)], delta=1e-6, neighbours=relation)
    ledger = Ledger(Budget(epsilon=1.01 * price, delta=1e-6, neighbours=relation))
    ledger.charge(entry((step, steps)))
    for each in Neighbours:
        assert ledger.spent(each) <= ledger.promised(each)


def test_sampled_releases_that_break_the_promise_are_refused(monkeypatch):
    monkeypatch.setattr(Ledger, "promised", lambda self, relation: 0.1)
    ledger = Ledger(ONE)
    step = PoissonGaussianEvent(noise_multiplier=2.0, sampling_rate=0.01)
    with pytest.raises(BudgetError, match=r"promises under replace\. Nothing was drawn"):
        ledger.charge(entry((step, 900)))
    assert ledger.entries == ()


def test_a_query_without_bound_under_add_or_remove_promises_nothing_there():
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE))
    ledger.charge(entry((GaussianEvent(noise_multiplier=0.0, replace_multiplier=9.0), 1)))
    assert ledger.promised(Neighbours.ADD_REMOVE) == math.inf
    with pytest.raises(PrivacyError, match="to replace is to remove and to add"):
        GaussianEvent(noise_multiplier=9.0, replace_multiplier=4.0)


@examples(60)
@given(st.lists(st.floats(0.5, 60.0), min_size=1, max_size=6), st.sampled_from(list(Neighbours)), st.booleans())
def test_what_a_ledger_holds_can_be_charged(multipliers, relation, sealed):
    """In any order, and one by one; what it does not hold cannot be charged at once."""
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6, neighbours=relation))
    if sealed:
        ledger.charge(entry((GaussianEvent(noise_multiplier=20.0, replace_multiplier=20.0), 1)))
        ledger.seal()
    events = [(GaussianEvent(noise_multiplier=each, replace_multiplier=each / 2**0.5), 1) for each in multipliers]
    before = ledger.to_dict()
    held = ledger.holds(events)
    assert ledger.to_dict() == before
    if held:
        for event in reversed(events):
            ledger.charge(entry(event))
    else:
        with pytest.raises(BudgetError):
            ledger.charge(entry(*events))
