from __future__ import annotations

import math
import time

import dp_accounting
import pytest
from dp_accounting import pld
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import PrivacyError
from kamino.privacy import Budget, DeltaEvent, GaussianEvent, Neighbours, PoissonGaussianEvent, epsilon
from kamino.privacy.accounting import accountant
from kamino.privacy.accounting.accountant import epsilon_of, tally
from kamino.privacy.accounting.meaning import of_tally

DELTA = 1e-6
RELATIONS = {
    Neighbours.ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    Neighbours.REPLACE: dp_accounting.NeighboringRelation.REPLACE_ONE,
}
gaussians = st.builds(GaussianEvent, noise_multiplier=st.floats(2.0, 30.0))
sampled = st.builds(
    PoissonGaussianEvent, noise_multiplier=st.floats(1.5, 4.0), sampling_rate=st.sampled_from([0.001, 0.01, 0.05])
)
counted = st.tuples(st.one_of(gaussians, sampled), st.integers(1, 9))


def library_price(events, relation, delta=DELTA):
    composed = pld.PLDAccountant(RELATIONS[relation])
    for event, count in events:
        inner = dp_accounting.GaussianDpEvent(event.noise_multiplier)
        if isinstance(event, PoissonGaussianEvent):
            inner = dp_accounting.PoissonSampledDpEvent(event.sampling_rate, inner)
        composed.compose(inner, count)
    return composed.get_epsilon(delta)


@examples(8)
@given(st.lists(counted, min_size=1, max_size=3), st.sampled_from(Neighbours))
def test_price_equals_dp_accounting(events, relation):
    # The library rounds each loss up to a multiple of 1e-4, so its own price grows a little with the list.
    ours = epsilon(events, delta=DELTA, neighbours=relation)
    assert ours == pytest.approx(library_price(events, relation), rel=2e-3, abs=3e-4)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(noise_multiplier=4.2247),
        PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=0.01),
        PoissonGaussianEvent(noise_multiplier=3.0, sampling_rate=1.0),
    ],
)
def test_price_of_each_event_equals_dp_accounting(event, relation):
    ours = epsilon([(event, 3)], delta=DELTA, neighbours=relation)
    assert ours == pytest.approx(library_price([(event, 3)], relation), rel=1e-3)


@given(st.floats(1.0, 50.0), st.floats(1e-9, 1e-2), st.integers(1, 100))
@examples(15)
def test_closed_form_agrees_with_pld(multiplier, delta, count):
    multiplier *= math.sqrt(count)
    ours = epsilon([(GaussianEvent(noise_multiplier=multiplier), count)], delta=delta)
    library = library_price([(GaussianEvent(noise_multiplier=multiplier), count)], Neighbours.ADD_REMOVE, delta)
    assert ours == pytest.approx(library, rel=1e-3, abs=2e-4)


def test_known_price_of_sampled_gaussian():
    events = [(PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=23 / 32561), 1600 * 14)]
    assert epsilon(events, delta=DELTA) == pytest.approx(0.493, abs=5e-4)
    assert epsilon(events, delta=DELTA, neighbours=Neighbours.REPLACE) == pytest.approx(0.849, abs=5e-4)


@examples(40)
@given(counted, st.integers(1, 30), st.sampled_from(Neighbours))
def test_n_at_once_costs_n_times(pair, n, relation):
    event, _ = pair
    at_once, one_by_one = tally([(event, n)], relation), tally([(event, 1)] * n, relation)
    assert at_once.sampled == one_by_one.sampled
    assert at_once.gaussian == pytest.approx(one_by_one.gaussian, rel=1e-12)


def test_delta_events_add_to_delta():
    gaussian = (GaussianEvent(noise_multiplier=5.0), 1)
    with_delta = epsilon([gaussian, (DeltaEvent(delta=2e-7), 2)], delta=1e-6)
    assert with_delta == pytest.approx(epsilon([gaussian], delta=6e-7), rel=1e-12)
    assert epsilon([gaussian, (DeltaEvent(delta=5e-7), 2)], delta=1e-6) == math.inf
    assert epsilon([(DeltaEvent(delta=5e-7), 2)], delta=1e-6) == 0.0
    assert epsilon([(DeltaEvent(delta=5e-7), 3)], delta=1e-6) == math.inf


def test_replace_price_uses_its_own_multiplier():
    histogram = GaussianEvent(noise_multiplier=6.0, replace_multiplier=6.0 / math.sqrt(2))
    as_replace = epsilon([(histogram, 1)], delta=DELTA, neighbours=Neighbours.REPLACE)
    assert as_replace == pytest.approx(epsilon([(GaussianEvent(noise_multiplier=6 / 2**0.5), 1)], delta=DELTA))
    # The same beside a sampled event, where the library's convention differs from ours.
    small = PoissonGaussianEvent(noise_multiplier=4.0, sampling_rate=1e-6)
    mixed = epsilon([(histogram, 1), (small, 1)], delta=DELTA, neighbours=Neighbours.REPLACE)
    assert mixed == pytest.approx(as_replace, rel=2e-3)


def test_very_small_price():
    prices = [epsilon([(GaussianEvent(noise_multiplier=z), 1)], delta=1e-12) * z for z in (2e4, 1e5, 1e6)]
    assert prices == pytest.approx([5.1805, 4.8820, 4.4249], abs=1e-3)  # falls slowly, as the closed form does


def test_no_noise_has_no_price():
    for event in (
        GaussianEvent(noise_multiplier=0.0),
        PoissonGaussianEvent(noise_multiplier=0.0, sampling_rate=0.1),
    ):
        assert epsilon([(event, 1)], delta=DELTA) == math.inf
    assert epsilon([], delta=DELTA) == 0.0


@pytest.mark.parametrize("event", ["gaussian", 4.2, None, Budget(epsilon=1.0, delta=1e-6)])
def test_unknown_event_is_refused(event):
    with pytest.raises(PrivacyError, match="cannot be priced"):
        epsilon([(event, 1)], delta=DELTA)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_senseless_count_is_refused(count):
    with pytest.raises(PrivacyError, match="times"):
        epsilon([(GaussianEvent(noise_multiplier=5.0), count)], delta=DELTA)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianEvent(noise_multiplier=-1.0),
        lambda: GaussianEvent(noise_multiplier=math.nan),
        lambda: GaussianEvent(noise_multiplier=math.inf),
        lambda: PoissonGaussianEvent(noise_multiplier=-1.0, sampling_rate=0.5),
        lambda: PoissonGaussianEvent(noise_multiplier=1.0, sampling_rate=0.0),
        lambda: PoissonGaussianEvent(noise_multiplier=1.0, sampling_rate=1.5),
        lambda: DeltaEvent(delta=-0.1),
        lambda: DeltaEvent(delta=1.0),
    ],
)
def test_senseless_event_is_refused(make):
    with pytest.raises(PrivacyError, match="expected"):
        make()


@pytest.mark.parametrize("relation", Neighbours)
def test_a_coarser_grid_never_costs_less(relation: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    total = tally(
        [
            (GaussianEvent(noise_multiplier=3.0), 1),
            (PoissonGaussianEvent(noise_multiplier=0.8, sampling_rate=0.02), 50),
        ],
        relation,
    )
    fine = float(accountant.compose(total, relation).get_epsilon(1e-6))
    for losses in (2**13, 2**11, 2**9):
        monkeypatch.setattr(accountant, "_MOST_LOSSES", losses)
        assert fine <= float(accountant.compose(total, relation).get_epsilon(1e-6)) <= 1.5 * fine


@pytest.mark.parametrize("event", [(1.0, 0.5, 10**6), (0.3, 0.5, 10**4), (50.0, 1.0, 10**6), (1e-200, 0.01, 1)])
def test_absurd_events_are_priced_within_seconds(event: tuple[float, float, int]) -> None:
    noise, rate, count = event
    total = tally(
        [
            (GaussianEvent(noise_multiplier=4.0), 1),
            (PoissonGaussianEvent(noise_multiplier=noise, sampling_rate=rate), count),
        ],
        Neighbours.REPLACE,
    )
    began = time.process_time()
    price = epsilon_of(total, delta=1e-6, neighbours=Neighbours.REPLACE)
    assert price > 100
    assert of_tally(total, Neighbours.REPLACE).guess == pytest.approx(1.0)
    assert time.process_time() - began < 20
