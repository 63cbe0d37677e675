"""How a table is drawn, beyond its plan and its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.errors import SamplingError
from kamino.sampling.modes import Sampling
from kamino.sampling.plan.sampling_plan import Step
from kamino.sampling.soft.prices import Weights

if TYPE_CHECKING:
    from kamino.sampling.closed_world import ClosedWorld

# How often each row is drawn again where soft constraints have a weight.
SWEEPS = 4
# How many values of a wide domain are weighed for a row, where rows are drawn one by one; the paper names no number.
CANDIDATES = 10

# Told before each step: the step, its place and the number of steps.
Progress: TypeAlias = Callable[[Step, int, int], None]
# Told after each sweep: the attribute, the number of sweeps done, and the violation rates then.
OnSweep: TypeAlias = Callable[[str, int, Mapping[DenialConstraint, float]], None]
# Draws the ids of groups, as codes, for so many rows.
DrawIds: TypeAlias = Callable[[int, np.random.Generator], Mapping[str, IntArray]]


@dataclass(frozen=True, kw_only=True)
class DrawOptions:
    """The choices of one draw.

    sampling: other ways to treat constraints; see `Sampling` for what they promise.
    weights: of the soft constraints (see `Weight`); one without a weight is not heeded.
    targets: violation rates to steer the weights to while drawing, where they are known.
    sweeps: how often each row is drawn again where a soft constraint has a weight; row by row, where any constraint on
    pairs ends (the paper's m is `sweeps * num_rows`, and 0 in its experiments).
    candidates: how many values of a wide ordered domain are weighed for a row (the paper's d), row by row.
    given: checks of the plan that hold whatever `sampling` is: conditions that somebody asked for.
    prefix: columns that are there already, as public codes: the first attributes of the plan. They stay as they are.
    ids: draws the ids of groups, which are there before any attribute; rows that are replaced take those of others.
    world: what rows must agree on with those of other blocks.
    check: count violations at the end and repair the rows that break hard constraints. Without it nothing is promised:
    whoever draws counts, and calls `repair`.
    """

    sampling: Sampling = Sampling.CONSTRAINT_AWARE
    weights: Weights = field(default_factory=dict)
    targets: Mapping[DenialConstraint, float] = field(default_factory=dict)
    sweeps: int = SWEEPS
    candidates: int = CANDIDATES
    given: tuple[DenialConstraint, ...] = ()
    prefix: Mapping[str, IntArray] = field(default_factory=dict)
    progress: Progress | None = None
    on_sweep: OnSweep | None = None
    check: bool = True
    world: ClosedWorld | None = None
    ids: DrawIds | None = None

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise SamplingError(f"found {self.candidates} candidates for a row; expected one or more.")
        if self.sweeps < 0:
            raise SamplingError(f"found {self.sweeps} sweeps; expected zero or more.")
