"""Rows of one bin change places, so that a check which decides inside bins moves no row to another bin.

The model knows how often rows come into each pair of bins, checks included; of the codes inside a bin it only knows how
often each occurs. So codes of one bin may change hands among its rows: no distribution changes that the model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners.block import DEAD
from kamino.sampling.plan.sampling_plan import SamplingPlan, Step, StepKind
from kamino.sampling.steps.task import Task

_ROUNDS = 60

#: Tells which rows would break a check with these codes.
Breaks = Callable[[IntArray, IntArray], Mask]


@dataclass(kw_only=True)
class Movable:
    """The columns drawn so far whose codes may change hands, with their bins, and the checks on columns drawn so far.

    `fixed` are the attributes whose codes stay; None if all do.
    """

    fixed: Collection[str] | None
    bins: dict[str, IntArray] = field(default_factory=dict)
    settled: tuple[DenialConstraint, ...] = ()

    def before(self, step: Step) -> dict[str, IntArray] | None:
        """What may move when a step's column is drawn; None if it is not drawn freely."""
        is_free = step.kind in (StepKind.FREE, StepKind.MASK) and not step.soft
        return self.bins if self.fixed is not None and is_free else None

    def drawn(self, step: Step, choices: Choices, codes: IntArray) -> None:
        """Take note of a column."""
        self.settled += step.checks
        if self.before(step) is not None and step.attribute not in (self.fixed or ()) and not choices.is_exact:
            self.bins[step.attribute] = choices.bins_of(np.maximum(codes, 0))[0]

    def moved(self, names: Collection[str], source: IntArray) -> None:
        """Take note that rows have the values of others, in some columns."""
        self.bins.update({name: bins[source] for name, bins in self.bins.items() if name in names})


def read_by_code(plan: SamplingPlan) -> set[str]:
    """Return the attributes whose codes constraints read beyond their bins: those of pairs, soft ones, public maps.

    Guarantees:
        A soft check has its rate steered, so its columns stay.  [test_columns_with_constraints_keep_their_codes]
    """
    ties = [c for c in plan.hard if not c.is_unary] + list(plan.soft)
    mapped = [name for left, right in plan.references for name in (*left, right)]
    return {name for c in ties for name in c.attributes} | set(mapped)


def change_places(task: Task, codes: IntArray) -> None:
    """Let rows that break a residual check exchange codes within their bin: in this column, then in earlier ones.

    Two rows exchange codes only if neither breaks a check then; what is left is for the caller.

    Guarantees:
        A check inside bins changes no distribution of bins or codes, where it need not.  [test_checks_inside_bins]
        Columns that anything else reads code by code stay.  [test_columns_with_constraints_keep_their_codes]
    """
    bins, _ = task.choices.bins_of(np.maximum(codes, 0))
    live = np.flatnonzero(codes != DEAD)
    _exchange(task, live, bins, codes, partial(_breaks, task, codes, task.step.attribute))
    others = {name for check in task.choices.residual for name in check.attributes}
    movable = task.movable or {}
    for name in sorted(others & movable.keys()):
        _exchange(task, live, movable[name], task.columns[name], partial(_breaks, task, codes, name))


def _breaks(task: Task, codes: IntArray, changed: str, rows: IntArray, values: IntArray) -> Mask:
    """Tell which rows would break a check if column `changed` had these values."""
    broken = np.zeros(len(rows), dtype=np.bool_)
    own = task.step.attribute
    for check in (*task.choices.residual, *task.settled):
        if changed in check.attributes:
            columns = {n: (codes if n == own else task.columns[n])[rows] for n in check.attributes}
            columns[changed] = values
            broken |= task.judge.violates(check, columns, columns)
    return broken


def _exchange(task: Task, rows: IntArray, bins: IntArray, values: IntArray, breaks: Breaks) -> None:
    """Exchange values between rows of one bin, in place, while that mends some."""
    bad = rows[breaks(rows, values[rows])]
    if len(bad) == 0:
        return
    order = rows[np.argsort(bins[rows], kind="stable")]
    begin = np.searchsorted(bins[order], bins, side="left")
    count = np.searchsorted(bins[order], bins, side="right") - begin
    for _ in range(_ROUNDS):
        other = order[begin[bad] + (task.rng.random(len(bad)) * count[bad]).astype(np.int64)]
        # Each row takes part in one exchange of a round at most.
        there, pairs = np.unique(other, return_index=True)
        free = ~np.isin(there, bad)
        here, there = bad[pairs[free]], there[free]
        fits = ~(breaks(here, values[there]) | breaks(there, values[here]))
        here, there = here[fits], there[fits]
        values[here], values[there] = values[there], values[here]
        bad = bad[breaks(bad, values[bad])]
        if len(bad) == 0:
            return
