from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import PrivacyError
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit, SeededNoise, Sensitivity
from kamino.privacy import unit as unit_module
from kamino.privacy.unit import choose_rows, hash_rows

ONE = Budget(epsilon=1.0, delta=1e-6)
owners = st.lists(st.one_of(st.integers(0, 5), st.none(), st.just(math.nan)), max_size=60)
COINS = bytes(range(32))


def table_of(values):
    """A row for each owner, told apart by its number."""
    return pa.table({"who": pa.array(values, pa.float64(), from_pandas=False), "x": np.arange(len(values))})


def chosen(table, max_rows, coins=COINS, cuts=()):
    ends = [0, *sorted(cuts), table.num_rows]
    parts = [table.slice(start, end - start) for start, end in pairwise(ends)]
    return choose_rows((hash_rows(part, "who", coins) for part in parts), max_rows)


@given(owners, st.integers(1, 5))
def test_no_unit_keeps_more_than_its_rows(values, max_rows):
    kept = chosen(table_of(values), max_rows)
    had = Counter(repr(value) for value in values)
    has = Counter(repr(values[place]) for place in kept)
    assert has == {name: min(count, max_rows) for name, count in had.items()}
    assert kept.tolist() == sorted(kept.tolist())


@given(owners, owners, st.integers(1, 4), st.randoms())
def test_choice_ignores_other_units(own, others, max_rows, random):
    others = [100.0 + (value or 0) if value == value else 200.0 for value in others]
    mixed = [(value, place) for place, value in enumerate(own)]
    for value in others:
        mixed.insert(random.randint(0, len(mixed)), (value, -1))
    alone = chosen(table_of(own), max_rows).tolist()
    values, places = [value for value, _ in mixed], [place for _, place in mixed]
    together = chosen(table_of(values).set_column(1, "x", pa.array(places, pa.int64())), max_rows)
    assert [places[place] for place in together if places[place] >= 0] == alone


@given(owners, st.integers(1, 4), st.randoms())
def test_choice_does_not_depend_on_row_order(values, max_rows, random):
    table = table_of(values)
    places = list(range(len(values)))
    random.shuffle(places)
    moved = chosen(table.take(pa.array(places, pa.int64())), max_rows)
    assert sorted(places[place] for place in moved) == chosen(table, max_rows).tolist()


@given(owners, st.integers(1, 4), st.lists(st.integers(0, 60), max_size=4))
def test_choice_does_not_depend_on_parts(values, max_rows, cuts):
    cuts = [min(cut, len(values)) for cut in cuts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_module, "_WAITING", 5)
        assert chosen(table_of(values), max_rows, cuts=cuts).tolist() == chosen(table_of(values), max_rows).tolist()


@pytest.mark.parametrize(
    "who", [["a", "b", "a", None, "", None], [1, 2, 1, None, 0, None], [True, False, True, None, False, None]]
)
def test_units_of_every_type_are_told_apart(who):
    table = pa.table({"who": who, "x": range(6)})
    had = Counter(who)
    kept = Counter(who[place] for place in chosen(table, 1))
    assert kept == dict.fromkeys(had, 1)


def test_choice_is_random_over_coins():
    table = pa.table({"who": ["a"] * 4, "x": [1, 2, 3, 4]})
    first = Counter(int(chosen(table, 1, number.to_bytes(32))[0]) for number in range(1, 2001))
    # Each of the four has mean 500 and deviation 19.4: six deviations, false alarm below 1e-8.
    assert all(abs(first[place] - 500) < 117 for place in range(4))


def test_select_rows_of_a_table():
    table = pa.table({"who": ["a", "b", "a", "a", "c"], "x": [1, 2, 3, 4, 5]})
    gate = Gate(ONE, unit=PrivacyUnit(column="who", max_rows=2))
    kept = gate.select_rows(table)
    assert Counter(kept["who"].to_pylist()) == {"a": 2, "b": 1, "c": 1}
    assert kept["x"].to_pylist() == sorted(kept["x"].to_pylist())
    assert gate.ledger.entries == ()


def test_row_unit_keeps_the_table():
    table = pa.table({"x": [1, 1, 1]})
    assert Gate(ONE).select_rows(table) is table


def test_release_before_select_rows_is_refused():
    gate = Gate(ONE, unit=PrivacyUnit(column="who", max_rows=2), noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="select_rows was not called"):
        gate.release_counts(np.arange(3), what="x", attributes=(), noise_multiplier=9.0)
    assert gate.ledger.entries == ()


def test_unknown_unit_column_is_named():
    gate = Gate(ONE, unit=PrivacyUnit(column="who"))
    with pytest.raises(PrivacyError, match=r"'who' is not in the table; its columns: x, y"):
        gate.select_rows(pa.table({"x": [1], "y": [2]}))


@pytest.mark.parametrize(("column", "max_rows"), [("who", 0), ("who", -1), ("who", 1.5), ("who", True), (None, 3)])
def test_senseless_unit_is_refused(column, max_rows):
    with pytest.raises(PrivacyError, match="max_rows"):
        PrivacyUnit(column=column, max_rows=max_rows)


cells = st.lists(st.integers(0, 3), min_size=0, max_size=3)


@examples(300)
@given(cells, cells)
def test_unit_sensitivity_bounds_every_move(own, other):
    bound = Sensitivity.of_histogram().for_rows(3)
    first, second = np.bincount(own, minlength=4), np.bincount(other, minlength=4)
    assert np.linalg.norm(first) <= bound.under(Neighbours.ADD_REMOVE) + 1e-12
    assert np.linalg.norm(first - second) <= bound.under(Neighbours.REPLACE) + 1e-12


def test_sensitivity_of_stacked_histograms_and_defaults():
    stacked = Sensitivity.of_histogram(4)
    assert (stacked.add_remove, stacked.replace) == (2.0, pytest.approx(math.sqrt(8)))
    assert Sensitivity(add_remove=1.0, replace=9.0).replace == 2.0  # the triangle inequality
    assert Sensitivity.of(0.5, Neighbours.REPLACE).add_remove == math.inf
    for value in (0.0, -1.0):
        with pytest.raises(PrivacyError, match="sensitivity"):
            Sensitivity(add_remove=value)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "America/New_York"])
def test_a_unit_at_the_end_of_the_calendar(zone):
    """A zone's clock may show the year 0 or 10000, for which Python has no datetime."""
    ends = [-62_135_596_800, 253_402_300_799]
    for unit, factor in (("s", 1), ("us", 10**6)):
        who = pa.array([end * factor for end in ends for _ in range(3)]).view(pa.timestamp(unit, zone))
        kept = Gate(ONE, unit=PrivacyUnit(column="who", max_rows=2)).select_rows(pa.table({"who": who}))
        assert kept.num_rows == 4
    fine = pa.array([1, 1, 2]).view(pa.timestamp("ns", zone))
    kept = Gate(ONE, unit=PrivacyUnit(column="who", max_rows=1)).select_rows(pa.table({"who": fine}))
    assert kept.num_rows == 2


def test_two_zeros_are_one_unit():
    kept = Gate(ONE, unit=PrivacyUnit(column="who", max_rows=1)).select_rows(pa.table({"who": [0.0, -0.0, 1.0]}))
    assert kept.num_rows == 2
