"""Rows that become copies become copies of their like."""

from __future__ import annotations

import numpy as np
from tests.sampling.exactness import make_task
from tests.sampling.fakes import integers

from kamino.constraints import Constraints
from kamino.sampling.plan.sampling_plan import StepKind
from kamino.sampling.repair.donors import find_donors


def test_donors_are_near() -> None:
    codec = integers(a=19, x=3, y=3)
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 4, 2_000), rng.integers(0, 4, 2_000)
    constraints = list(Constraints.parse("a -> x\na -> y"))
    task = make_task(codec, "a", {"x": x, "y": y}, np.full((2_000, 20), 0.05), constraints, StepKind.OWNERSHIP, rng)
    alive, dead = np.flatnonzero(x == y), np.flatnonzero(x != y)
    donors = find_donors(task, dead, alive)
    assert set(donors) <= set(alive.tolist())
    assert ((x[donors] == x[dead]) | (y[donors] == y[dead])).all()
    lonely = find_donors(task, dead, alive[x[alive] == 0])
    assert set(x[lonely]) == {0}
