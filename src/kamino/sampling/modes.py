"""Ways to sample: the default, the paper's own, and two to compare with."""

from __future__ import annotations

import enum


class Sampling(enum.StrEnum):
    """How constraints are treated while sampling.

    `CONSTRAINT_AWARE` (the default) draws columns jointly where their constraints allow it. `ROW_BY_ROW` is the paper's
    Algorithm 3: rows one after the other, each weighed against those before it. Both promise that no hard constraint is
    violated. `INDEPENDENT` and `ACCEPT_REJECT` promise nothing.

    Guarantees:
        `ROW_BY_ROW` breaks no hard constraint either.  [test_row_by_row_breaks_no_hard_constraint]
    """

    INDEPENDENT = "independent"
    ACCEPT_REJECT = "accept-reject"
    CONSTRAINT_AWARE = "constraint-aware"
    ROW_BY_ROW = "row-by-row"

    @property
    def keeps_hard_constraints(self) -> bool:
        """Whether it promises that no hard constraint is violated."""
        return self in (Sampling.CONSTRAINT_AWARE, Sampling.ROW_BY_ROW)
