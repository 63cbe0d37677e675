from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy import Budget, Entry, ExactNoise, Gate, Neighbours, PrivacyUnit, SeededNoise, Sensitivity
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.mechanisms.bounds import number_cells

BUDGETS = {relation: Budget(epsilon=1.0, delta=1e-6, neighbours=relation) for relation in Neighbours}
ONE = BUDGETS[Neighbours.ADD_REMOVE]
EXACT = Budget(epsilon=math.inf, delta=1e-6)


class SpyNoise(SeededNoise):
    """Remembers the sigma it was asked for."""

    def discrete_gaussian(self, sigma, shape):
        self.sigma = sigma
        return super().discrete_gaussian(sigma, shape)


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("relation", Neighbours)
def test_noise_scales_with_relation_and_unit(relation, max_rows):
    noise = SpyNoise(0)
    unit = PrivacyUnit(column="who", max_rows=max_rows)
    gate = Gate(BUDGETS[relation], noise=noise, unit=unit)
    gate.select_rows(pa.table({"who": [1]}))
    gate.release_counts(np.arange(5), what="x", attributes=("a",), noise_multiplier=9.0)
    distance = max_rows * (1 if relation is Neighbours.ADD_REMOVE else math.sqrt(2))
    assert noise.sigma == pytest.approx(scale_for(9.0 * distance))
    assert gate.counts_sigma(9.0) == noise.sigma
    (entry,) = gate.ledger.entries
    ((event, _),) = entry.events
    assert event.multiplier(relation) == pytest.approx(9.0)
    assert event.noise_multiplier / event.replace_multiplier == pytest.approx(math.sqrt(2))
    assert entry.sensitivity == pytest.approx(distance)


def test_counts_keep_shape_and_type():
    gate = Gate(ONE, noise=SeededNoise(1))
    for dtype in (np.int64, np.int32, np.uint8):
        noisy = gate.release_counts(np.ones((2, 3, 4), dtype), what="x", attributes=(), noise_multiplier=20.0)
        assert noisy.shape == (2, 3, 4)
        assert noisy.dtype == np.int64


def test_input_is_not_changed():
    counts = np.arange(6)
    Gate(ONE, noise=SeededNoise(1)).release_counts(counts, what="x", attributes=(), noise_multiplier=20.0)
    assert counts.tolist() == list(range(6))


def test_without_privacy_there_is_no_noise():
    gate = Gate(EXACT, noise=SeededNoise(0))
    counts = np.array([5, 0, 7])
    assert gate.release_counts(counts, what="x", attributes=(), noise_multiplier=0.0).tolist() == [5, 0, 7]
    rates = np.array([0.25, 0.5])
    noisy = gate.release_vector(rates, what="r", attributes=(), noise_multiplier=3.0, sensitivity=1.0)
    assert noisy == pytest.approx(rates, abs=1e-3)
    found = gate.release_categories({"c": ["a", "b", "b"]}, noise_multiplier=1.0, delta=1e-7)["c"]
    assert (found.values, found.counts) == (("a", "b"), (1, 2))
    assert gate.ledger.mark == "not private"
    assert gate.ledger.spent() == math.inf


def test_marks():
    assert Gate(ONE).ledger.mark == ""
    assert Gate(ONE, noise=SeededNoise(0)).ledger.mark == "not for release"
    with pytest.raises(PrivacyError, match="without noise"):
        Gate(ONE, noise=ExactNoise())


def test_row_count():
    gate = Gate(ONE, noise=SeededNoise(0))
    assert gate.release_row_count(10_000, noise_multiplier=10.0) == pytest.approx(10_000, abs=60)
    assert gate.release_row_count(0, noise_multiplier=10.0) >= 0


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.inf, math.nan])
def test_senseless_multiplier_is_refused(multiplier):
    with pytest.raises(PrivacyError, match="positive finite"):
        Gate(ONE).release_counts(np.arange(3), what="x", attributes=(), noise_multiplier=multiplier)


def test_counts_must_be_whole_numbers():
    with pytest.raises(PrivacyError, match="float64"):
        Gate(ONE).release_counts(np.ones(3), what="x", attributes=(), noise_multiplier=9.0)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="list"):
        Gate(ONE).release_counts([1, 2], what="x", attributes=(), noise_multiplier=9.0)  # type: ignore[arg-type]


def vector(gate, values, **options):
    options = {"noise_multiplier": 9.0, "sensitivity": 0.01} | options
    return gate.release_vector(values, what="rates", attributes=("a",), **options)


@pytest.mark.parametrize("relation", Neighbours)
def test_vector_noise_has_its_scale(relation):
    gate = Gate(BUDGETS[relation], noise=SeededNoise(0))
    noisy = vector(gate, np.full(20_000, 0.5))
    (entry,) = gate.ledger.entries
    assert entry.sensitivity == pytest.approx(0.01, rel=2e-3)
    assert entry.sensitivity >= 0.01 + entry.grid * math.sqrt(20_000) - 1e-15
    assert np.std(noisy) == pytest.approx(9.0 * 0.01, rel=0.03)
    assert entry.sigma == pytest.approx(9.0 * entry.sensitivity, rel=1e-6)
    assert np.array_equal(noisy / entry.grid, np.rint(noisy / entry.grid))
    ((event, _),) = entry.events
    if relation is Neighbours.ADD_REMOVE:
        assert event.replace_multiplier == pytest.approx(4.5, rel=1e-2)
    else:
        assert event.noise_multiplier == 0  # nothing is known under the other relation
        assert gate.ledger.spent(Neighbours.ADD_REMOVE) == math.inf


def test_vector_survives_any_number():
    gate = Gate(ONE, noise=SeededNoise(0))
    wild = np.array([math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324])
    assert np.isfinite(vector(gate, wild)).all()
    bounded = vector(gate, wild, lower=0.0, upper=1.0)
    assert (np.abs(bounded) < 3).all()


def test_vector_clips_before_noise():
    gate = Gate(EXACT)
    clipped = vector(gate, np.array([-3.0, 0.25, 9.0]), lower=0.0, upper=1.0, grid=0.3)
    assert clipped.tolist() == [0.0, 0.25, 1.0]
    assert gate.ledger.entries[0].grid == 0.25


@pytest.mark.parametrize(
    "options", [{"sensitivity": 0.0}, {"sensitivity": math.inf}, {"grid": 0.0}, {"lower": 1.0, "upper": 1.0}]
)
def test_senseless_vector_is_refused(options):
    with pytest.raises(PrivacyError):
        vector(Gate(ONE), np.ones(3), **options)


def test_sensitivity_known_for_replace_only_cannot_be_scaled_to_units():
    gate = Gate(BUDGETS[Neighbours.REPLACE], unit=PrivacyUnit(column="who", max_rows=2))
    gate.select_rows(pa.table({"who": [1]}))
    with pytest.raises(PrivacyError, match="no bound"):
        vector(gate, np.ones(3), sensitivity=0.1)
    vector(gate, np.ones(3), sensitivity=Sensitivity(add_remove=0.1))


def test_categories_are_sorted_and_charged_twice():
    gate = Gate(ONE, noise=SeededNoise(0))
    values = ["pear"] * 900 + ["apple"] * 800 + [None, float("nan")] * 500 + ["fig"]
    found = gate.release_categories({"fruit": values}, noise_multiplier=9.0, delta=1e-7)["fruit"]
    assert found.values == ("apple", "pear")
    assert found.counts == pytest.approx((800, 900), abs=60)
    assert gate.ledger.delta_left() == pytest.approx(9e-7)
    assert [type(event).__name__ for event, _ in gate.ledger.entries[0].events] == ["GaussianEvent", "DeltaEvent"]


@pytest.mark.parametrize(
    "make", [list, np.array, lambda v: np.array(v, dtype=object), pa.array, lambda v: {"a": 500, "b": 400}]
)
def test_categories_from_every_container(make):
    gate = Gate(EXACT)
    values = make(["b"] * 400 + ["a"] * 500)
    found = gate.release_categories({"x": values}, noise_multiplier=9.0, delta=1e-7)["x"]
    assert (found.values, found.counts) == (("a", "b"), (500, 400))


def test_categories_do_not_follow_the_order_of_rows():
    rows = [f"v{i}" for i in range(40)] * 50
    released = {
        Gate(ONE, noise=SeededNoise(3)).release_categories({"x": values}, noise_multiplier=9.0, delta=1e-7)["x"]
        for values in (rows, rows[::-1], sorted(rows))
    }
    assert len(released) == 1


def test_categories_need_delta():
    with pytest.raises(PrivacyError, match="delta"):
        Gate(ONE).release_categories({"x": ["a"]}, noise_multiplier=9.0, delta=0.0)
    with pytest.raises(BudgetError):
        Gate(ONE).release_categories({"x": ["a"]}, noise_multiplier=9.0, delta=1e-5)


def bounds(values, *, budget=ONE, integer=False, seed=0):
    gate = Gate(budget, noise=SeededNoise(seed))
    cells = {"x": number_cells(integer=integer)}
    found = gate.release_bounds({"x": values}, cells, noise_multiplier=5.0, about_rows=len(values))
    return gate, found["x"]


@pytest.mark.parametrize(
    ("low", "high"),
    [(17, 90), (0, 1), (-1000, 1000), (0, 99_999), (-99_999, 0), (-5, -3), (18_000, 19_500), (1e9, 2e9)],
)
def test_bounds_hold_the_values(low, high):
    rng = np.random.default_rng(0)
    values = rng.integers(int(low), int(high) + 1, 20_000)
    gate, found = bounds(values, integer=True)
    assert found.found
    assert found.lower <= low
    assert high <= found.upper
    assert found.upper - found.lower <= 2.2 * (high - low) + 4
    assert found.lower == int(found.lower)
    assert gate.ledger.gaussian_left() == pytest.approx(Gate(ONE).gaussian_left() - 1 / 25)


def test_bounds_of_small_reals():
    values = np.random.default_rng(0).uniform(0.001, 0.002, 20_000)
    _, found = bounds(values)
    assert 0 <= found.lower <= 0.001
    assert 0.002 <= found.upper < 0.005


def test_one_outlier_does_not_move_bounds():
    values = np.random.default_rng(0).integers(17, 90, 20_000)
    _, without = bounds(values, integer=True)
    _, with_one = bounds(np.append(values, 10**12), integer=True)
    assert without == with_one


@pytest.mark.parametrize(
    "values",
    [
        np.array([]),
        np.array([math.nan] * 9),
        np.array([math.inf, -math.inf, 1e308, -1e308] * 500),
        np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max] * 500),
        np.array([2**64 - 1] * 500, dtype=np.uint64),
    ],
)
@pytest.mark.parametrize("integer", [False, True])
def test_bounds_survive_any_number(values, integer):
    _, found = bounds(values, integer=integer)
    assert math.isfinite(found.lower)
    assert math.isfinite(found.upper)
    assert found.lower <= found.upper


def test_bounds_of_nothing_are_not_found():
    _, found = bounds(np.array([]), budget=EXACT)
    assert not found.found


def test_bounds_need_numbers():
    with pytest.raises(PrivacyError, match="numpy array of numbers"):
        bounds(np.array(["a"]))


def test_import_is_light():
    code = "import sys, kamino.privacy; print([m for m in ('dp_accounting', 'opendp', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_watched_gate_charges_nothing_that_is_refused() -> None:
    gate = Gate(Budget(epsilon=1.0, delta=1e-6))
    seen: list[str] = []

    def refuse(entry: Entry) -> None:
        seen.append(f"before {entry.what}")
        if len(seen) > 1:
            raise PrivacyError("refused")

    stop = gate.ledger.watch(refuse, after=lambda entry: seen.append(f"after {entry.what}"))
    gate.release_row_count(3, noise_multiplier=50.0)
    with pytest.raises(PrivacyError, match="refused"):
        gate.release_row_count(3, noise_multiplier=50.0)
    assert seen == ["before number of rows", "after number of rows", "before number of rows"]
    assert len(gate.ledger.entries) == 1
    stop()
    gate.release_row_count(3, noise_multiplier=50.0)
    assert len(seen) == 3
