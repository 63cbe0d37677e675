"""Tables for tests of the report: every kind of column, and names and values that are markup."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints

HOSTILE = '<script>alert("x")</script>&amp;'
RULES = Constraints.parse(
    "zip -> city\nsoft: check (age >= 18)\nnot (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)"
)


def table(rows: int, seed: int) -> pa.Table:
    """Numbers, dates, times, a wide column, booleans and nulls, drawn at random."""
    rng = np.random.default_rng(seed)
    zips = rng.integers(0, 300, rows)
    start = datetime(2024, 1, 1)
    return pa.table(
        {
            "zip": [f"zip{z:05}" for z in zips],
            "city": [f"city {z % 7} {HOSTILE if z % 7 == 3 else ''}" for z in zips],
            "age": rng.integers(15, 80, rows),
            "pay": np.where(rng.random(rows) < 0.7, 0.0, rng.normal(1e6, 1e5, rows)).round(2),
            HOSTILE: pa.array(rng.random(rows) < 0.3, mask=rng.random(rows) < 0.1),
            "day": [date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 400, rows)],
            "moment": pa.array(
                [start + timedelta(minutes=int(m)) for m in rng.integers(0, 9000, rows)], pa.timestamp("us")
            ),
            "a_name_that_is_far_too_long_to_fit_into_any_cell_of_a_phone_" * 2: rng.integers(0, 3, rows),
        }
    )
