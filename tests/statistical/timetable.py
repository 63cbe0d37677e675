"""A made-up timetable: departures with an hour and a minute, routes with a distance, dates with their parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

TIMETABLE_CONSTRAINTS = """\
departs -> hour
departs -> minute
origin, dest -> distance
stamp -> month
stamp -> day
stamp -> hour
check (air_time <= distance)
"""


def timetable(rows: int, seed: int) -> pa.Table:
    """A table of flights that keeps the constraints above; one in forty was cancelled."""
    rng = np.random.default_rng(seed)
    places = np.array([f"P{i:02d}" for i in range(80)])
    origin = rng.choice(3, rows, p=[0.36, 0.34, 0.30])
    popular = rng.permutation(80)
    dest = popular[np.minimum(rng.geometric(0.05, rows) - 1, 79)]
    lengths = rng.integers(90, 2600, 80)[None, :] + rng.integers(0, 60, (3, 80))
    distance = lengths[origin, dest]
    air_time = np.clip(distance / 7.5 + 18 + rng.normal(0, 9, rows), 15, distance).astype(int)
    hour = rng.choice(np.arange(5, 24), rows, p=_hours())
    minute = np.where(rng.random(rows) < 0.7, 5 * rng.integers(0, 12, rows), rng.integers(0, 60, rows))
    date = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 365, rows), unit="D")
    late = np.maximum(rng.normal(0, 15, rows) + (hour - 12), -25) + rng.exponential(20, rows) * (rng.random(rows) < 0.3)
    flown = rng.random(rows) > 0.025
    return pa.table(
        {
            "month": date.month.to_numpy(),
            "day": date.day.to_numpy(),
            "departs": 100 * hour + minute,
            "delay": pa.array(late.astype(int), mask=~flown),
            "origin": np.array(["EAST", "MAIN", "WEST"])[origin],
            "dest": places[dest],
            "air_time": pa.array(air_time, mask=~flown),
            "distance": distance,
            "hour": hour,
            "minute": minute,
            "stamp": pa.array((date + pd.to_timedelta(hour, unit="h")).to_numpy(), type=pa.timestamp("s")),
        }
    )


def _hours() -> np.ndarray:
    weight = 1 + 3 * np.exp(-(((np.arange(5, 24) - 8) / 3) ** 2)) + 2 * np.exp(-(((np.arange(5, 24) - 17) / 3) ** 2))
    return weight / weight.sum()
