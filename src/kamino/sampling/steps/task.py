"""What a step is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.draw_options import OnSweep
from kamino.sampling.partners.block import DEAD
from kamino.sampling.plan.reference_maps import ReferenceMap
from kamino.sampling.plan.sampling_plan import Step

if TYPE_CHECKING:
    from kamino.sampling.steps.ownership.lines import Lines


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """One column to draw: its step, its choices, the columns that are there, and the source of randomness.

    `penalties` are the prices of one violation of each of the step's soft constraints, `targets` the rates to steer
    them to, `sweeps` how often each row is drawn again where any is above zero; `on_sweep` is told how the rates move.
    `candidates` is how many values of a wide domain are weighed for a row, where rows are drawn one by one. `parents`
    are the earlier attributes that the model's distribution depends on; None stands for all of them. `movable` has the
    bins of earlier columns whose codes may change hands within a bin (None: no code may, nor those of this column),
    `settled` the checks on earlier columns alone. `grouped` has the earlier columns as
    `group_values` numbers them, if rows that are alike to the model are to change places (see `balance`). `lines` are
    those that an ownership step draws, if any were dealt. With `hands_out`, many groups have values handed out so that
    the column keeps its frequencies; otherwise each follows the law of its rows alone.
    """

    step: Step
    choices: Choices
    judge: Judge
    columns: Columns
    num_rows: int
    rng: np.random.Generator
    references: Mapping[tuple[tuple[str, ...], str], ReferenceMap]
    penalties: Mapping[DenialConstraint, float] = field(default_factory=dict)
    targets: Mapping[DenialConstraint, float] = field(default_factory=dict)
    sweeps: int = 0
    on_sweep: OnSweep | None = None
    candidates: int = 10
    parents: frozenset[str] | None = None
    movable: Mapping[str, IntArray] | None = None
    settled: tuple[DenialConstraint, ...] = ()
    grouped: Mapping[str, IntArray] | None = None
    lines: Lines | None = None
    hands_out: bool = True

    def present(self, names: frozenset[str]) -> Mask:
        """Tell which rows have a value in all these earlier columns."""
        found = np.ones(self.num_rows, dtype=np.bool_)
        for name in names:
            found &= ~self.judge.is_null(name, self.columns[name])
        return found

    def breaks(self, checks: Sequence[DenialConstraint], codes: IntArray, rows: IntArray) -> Mask:
        """Tell which rows break some of these checks with these codes, a line each; dead ones do not."""
        broken = np.zeros(np.shape(codes), dtype=np.bool_)
        shape = (slice(None),) + (None,) * (np.ndim(codes) - 1)
        for check in checks:
            columns = {n: self.columns[n][rows][shape] for n in check.attributes if n != self.step.attribute}
            columns[self.step.attribute] = np.maximum(codes, 0)
            broken |= self.judge.violates(check, columns, columns)
        alive: Mask = codes != DEAD
        return broken & alive

    def keys(self, names: frozenset[str]) -> IntArray:
        """Number the rows' combinations of values in these earlier columns."""
        if not names:
            return np.zeros(self.num_rows, dtype=np.int64)
        return join_keys([self.columns[name] for name in sorted(names)])

    def with_nulls(self, codes: IntArray, nulls: Mask) -> IntArray:
        """Return the column with null where it was drawn, and where no value was found but null is allowed."""
        null_code = self.judge.codec[self.step.attribute].null_code
        if null_code is None:
            return codes
        return np.where(nulls | ((codes == DEAD) & (self.choices.null_chance() > 0)), null_code, codes)


class DrawColumn(Protocol):
    """A step: the codes of the whole column, `DEAD` where no value was found.

    Guarantees:
        Rows that are not dead break none of the step's constraints among themselves.  [test_steps_break_nothing]
    """

    def __call__(self, task: Task) -> IntArray:
        """Draw the column."""
        ...
