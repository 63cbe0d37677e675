"""A table as hospitals have it: visits, with wards and doctors, treatments and costs. Invented from a seed."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from kamino.errors import InputError

WARDS = ("cardiology", "emergency", "maternity", "neurology", "oncology", "orthopaedics", "paediatrics", "surgery")
CITIES = ("Alder", "Birchtown", "Cedarville", "Elmstead", "Fairbridge", "Greenhill")
_DOCTORS, _ZIPS = 40, 24
FIRST, LAST = dt.date(2024, 1, 1), dt.date(2025, 1, 31)

VISITS_CONSTRAINTS = """\
zip -> city
doctor -> ward
check (discharged >= admitted)
not (t1.ward = t2.ward and t1.treatments > t2.treatments and t1.cost < t2.cost)
"""

VISITS_SCHEMA = f"""\
attributes:
  zip: {{type: categorical, values: [{", ".join(f"'{10_101 + place}'" for place in range(_ZIPS))}]}}
  city: {{type: categorical, values: [{", ".join(CITIES)}]}}
  age: {{type: integer, min: 0, max: 99}}
  ward: {{type: categorical, values: [{", ".join(WARDS)}]}}
  doctor: {{type: categorical, values: [{", ".join(f"D{number:02}" for number in range(_DOCTORS))}]}}
  admitted: {{type: date, min: {FIRST}, max: {LAST}}}
  discharged: {{type: date, min: {FIRST}, max: {LAST}}}
  treatments: {{type: integer, min: 0, max: 60}}
  cost: {{type: integer, min: 0, max: 40000}}
"""


def visits(num_rows: int, *, seed: int = 0) -> pa.Table:
    """Make a table of visits; the same seed and size give the same table.

    >>> visits(100).column_names[:3]
    ['zip', 'city', 'age']

    Guarantees:
        It keeps each constraint of `VISITS_CONSTRAINTS`, and fits `VISITS_SCHEMA`.  [test_visits_keep_their_rules]
    """
    if num_rows < 0 or seed < 0:
        raise InputError("num_rows and seed must not be negative. Give whole numbers from 0 on.")
    rng = np.random.default_rng(seed)
    zips = np.minimum(rng.geometric(0.12, num_rows) - 1, _ZIPS - 1)
    doctors = np.minimum(rng.geometric(0.06, num_rows) - 1, _DOCTORS - 1)
    wards = doctors % len(WARDS)
    young, newborn = wards == WARDS.index("paediatrics"), wards == WARDS.index("maternity")
    age = np.clip(rng.normal(58, 18, num_rows), 18, 99)
    age = np.where(young, rng.integers(0, 18, num_rows), np.where(newborn, rng.integers(18, 45, num_rows), age))
    stays = np.minimum(rng.poisson(1 + wards) + rng.poisson(age / 40), 30)
    admitted = rng.integers(0, 366, num_rows)
    treatments = np.minimum(rng.poisson(0.5 + stays), 60)
    # So many treatments cost the same on one ward.
    cost = (1 + wards) * 150 + treatments * (200 + 50 * wards)
    return pa.table(
        {
            "zip": [f"{10_101 + place}" for place in zips.tolist()],
            "city": [CITIES[place // 4] for place in zips.tolist()],
            "age": age.astype(np.int64),
            "ward": [WARDS[place] for place in wards.tolist()],
            "doctor": [f"D{number:02}" for number in doctors.tolist()],
            "admitted": _days(admitted),
            "discharged": _days(admitted + stays),
            "treatments": treatments.astype(np.int64),
            "cost": cost.astype(np.int64),
        }
    )


def _days(since: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pa.array((since + FIRST.toordinal() - dt.date(1970, 1, 1).toordinal()).astype(np.int32)).cast(pa.date32())
