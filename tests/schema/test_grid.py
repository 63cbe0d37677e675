from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino.schema import Grid
from kamino.schema.grid import (
    date_of_tick,
    datetime_of_tick,
    decimal_of_tick,
    tick_of_date,
    tick_of_datetime,
    tick_of_decimal,
    ticks_around,
)


def test_codes_stay_inside():
    grid = Grid(start=10, step=5, size=3)
    assert grid.last == 20
    assert grid.codes(np.array([-(2**63), 9, 12, 13, 20, 99])).tolist() == [0, 0, 0, 1, 2, 2]
    assert grid.ticks(np.array([0, 2])).tolist() == [10, 20]


@pytest.mark.parametrize(
    "fields",
    [
        {"start": 0, "step": 0, "size": 1},
        {"start": 0, "step": 1, "size": 0},
        {"start": 0, "step": 1, "size": 2**62 + 1},
        {"start": -(2**63), "step": 4, "size": 2**62 + 1},
        {"start": 0, "step": 5, "size": 2**62},
    ],
)
def test_grids_that_cannot_be(fields):
    with pytest.raises(ValueError, match="grid"):
        Grid(**fields)


@given(st.integers(-(2**62), 2**62), st.integers(-308, 18), st.dates(), st.datetimes())
def test_ticks_are_exact(tick, decimals, day, moment):
    assert tick_of_decimal(decimal_of_tick(tick, decimals), decimals) == tick
    assert date_of_tick(tick_of_date(day)) == day
    assert datetime_of_tick(tick_of_datetime(moment), aware=False) == moment
    assert datetime_of_tick(tick_of_datetime(moment), aware=True) == moment.replace(tzinfo=dt.UTC)


def test_ticks_around():
    assert ticks_around(Decimal("-0.15"), Decimal("0.11"), 1) == (-2, 2)
    assert ticks_around(Decimal("0.1"), Decimal("0.2"), 1) == (1, 2)
