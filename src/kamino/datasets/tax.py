"""A tax-like table: where people live, what they earn, and what they pay.

It is invented from a seed. It satisfies the six constraints of `TAX_CONSTRAINTS`: two functional dependencies
from a wide attribute, one from a narrower one, two from a pair, and one order within a state.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.datasets.places import Places, make_places
from kamino.datasets.states import STATES
from kamino.errors import InputError

TAX_CONSTRAINTS = """\
zip -> city
zip -> state
area_code -> state
state, has_child -> child_exemp
state, marital_status -> single_exemp
not (t1.state = t2.state and t1.salary > t2.salary and t1.rate < t2.rate)
"""

NULL_RATE_SHARE = 0.001
HOME_AREA_CODE_SHARE = 0.92
MAX_SALARY = 400_000

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def tax(num_rows: int, *, seed: int = 0) -> pa.Table:
    """Make a tax-like table of `num_rows` rows; the same seed and size give the same table.

    About one `rate` in a thousand is null.

    Example:
        >>> tax(1000).column_names[:4]
        ['state', 'area_code', 'zip', 'city']

    Guarantees:
        - The table satisfies each constraint of `TAX_CONSTRAINTS`.  [test_functional_dependencies_hold,
          test_rate_never_falls_with_salary]
        - The same arguments give the same table.  [test_same_seed_same_table]
    """
    if num_rows < 0 or seed < 0:
        raise InputError("num_rows and seed must not be negative. Give whole numbers from 0 on.")
    rng = np.random.default_rng(seed)
    return _rows(make_places(num_rows, rng), num_rows, rng)


def tax_blocks(num_rows: int, *, seed: int = 0, block_rows: int = 1_000_000) -> Iterator[pa.Table]:
    """Make a table like `tax` that is too long to be held: its places first, then so many rows at a time.

    Guarantees:
        All blocks together satisfy the constraints.  [test_blocks_satisfy_the_constraints_together]
    """
    if num_rows < 0 or seed < 0 or block_rows < 1:
        raise InputError("num_rows and seed must not be negative, and block_rows at least 1.")
    places = make_places(num_rows, np.random.default_rng(seed))
    for number, start in enumerate(range(0, num_rows, block_rows)):
        rng = np.random.default_rng([seed, number])
        yield _rows(places, min(block_rows, num_rows - start), rng)


def _rows(places: Places, num_rows: int, rng: np.random.Generator) -> pa.Table:
    """So many rows of people who live in these places."""
    zips = rng.choice(len(places.zip_weight), size=num_rows, p=places.zip_weight)
    state = places.zip_state[zips]
    area_code = _area_codes(zips, state, places, rng)
    married = rng.random(num_rows) < _state_effect(state, low=0.42, high=0.58)
    has_child = rng.random(num_rows) < np.where(married, 0.56, 0.22)
    salary = _salaries(state, places.zip_city[zips], married, has_child, rng)
    return pa.table(
        {
            "state": pa.array([each.name for each in STATES]).take(pa.array(state)),
            "area_code": places.area_code_names.take(pa.array(area_code)),
            "zip": places.zip_names.take(pa.array(zips)),
            "city": places.city_names.take(pa.array(places.zip_city[zips])),
            "marital_status": pa.array(["S", "M"]).take(pa.array(married.astype(np.int64))),
            "has_child": pa.array(has_child),
            "salary": pa.array(salary),
            "rate": pa.array(_rates(state, salary), mask=rng.random(num_rows) < NULL_RATE_SHARE),
            "single_exemp": pa.array(_by_state("single_exemp", "married_exemp", state, married)),
            "child_exemp": pa.array(np.where(has_child, _column("child_exemp")[state], 0)),
        }
    )


def _column(field: str) -> Codes:
    return np.array([getattr(state, field) for state in STATES], dtype=np.int64)


def _by_state(field_if_not: str, field_if: str, state: Codes, flag: Flags) -> Codes:
    return np.where(flag, _column(field_if)[state], _column(field_if_not)[state])


def _state_effect(state: Codes, *, low: float, high: float) -> npt.NDArray[np.float64]:
    """Return a number between `low` and `high` for each state, unrelated to its place in the list."""
    scattered = np.arange(len(STATES)) * 0.618034 % 1.0
    return np.asarray(low + (high - low) * scattered[state])


def _area_codes(zips: Codes, state: Codes, places: Places, rng: np.random.Generator) -> Codes:
    """Draw the area code of the zip for most people, and any of the state's for the others."""
    of_state = np.bincount(places.area_code_state, minlength=len(STATES))
    starts = np.cumsum(of_state) - of_state
    other = starts[state] + (rng.random(len(zips)) * of_state[state]).astype(np.int64)
    return np.where(rng.random(len(zips)) < HOME_AREA_CODE_SHARE, places.zip_area_code[zips], other)


def _salaries(state: Codes, city: Codes, married: Flags, has_child: Flags, rng: np.random.Generator) -> Codes:
    """Draw skewed salaries, larger in rich states and for the married, rounded as people state them."""
    median = 1000.0 * _column("income")[state]
    # A city is rich or poor as a whole: a fixed effect that depends on nothing but its number.
    city_effect = 0.85 + 0.3 * (city * 0.618034 % 1.0)
    family = np.where(married, 1.35, 1.0) * np.where(has_child & ~married, 0.85, 1.0)
    drawn = median * city_effect * family * rng.lognormal(sigma=0.55, size=len(state))
    step = np.where(drawn < 60_000, 500, np.where(drawn < 150_000, 1_000, 5_000))
    return np.asarray(np.clip(np.round(drawn / step).astype(np.int64) * step, 5_000, MAX_SALARY))


def _rates(state: Codes, salary: Codes) -> npt.NDArray[np.float64]:
    """Return the tax rate in percent, with two places: a function of state and salary that never falls.

    rate = low + (top - low) · s / (s + 90,000) for a salary s. Rounding keeps the order, so no pair of one
    state has the larger salary and the smaller rate.
    """
    low = np.array([each.low_rate for each in STATES])[state]
    top = np.array([each.top_rate for each in STATES])[state]
    return np.asarray(np.round(low + (top - low) * (salary / (salary + 90_000.0)), 2))
