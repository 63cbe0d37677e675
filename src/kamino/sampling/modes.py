"""Ways to sample: the default, the paper's own, and two to compare with."""

from __future__ import annotations

import enum


class Sampling(enum.StrEnum):
    """How constraints are treated while sampling.

    `CONSTRAINT_AWARE` (the default) draws columns jointly where their constraints allow it. `PRINTED` is the paper's
    Algorithm 3 to the letter: rows one after the other, each weighed against those before it, so that the first row of
    a group decides for all. `ROW_BY_ROW` is Algorithm 3 with that mended: where rows of a group share a value or an
    order by a hard constraint, the group is drawn at once by the product of its rows' distributions, as equation 6 of
    the paper has it; all else is drawn row by row. These three promise that no hard constraint is violated.
    `INDEPENDENT` and `ACCEPT_REJECT` promise nothing.

    Guarantees:
        `ROW_BY_ROW` and `PRINTED` break no hard constraint either.  [test_row_by_row_breaks_no_hard_constraint]
    """

    INDEPENDENT = "independent"
    ACCEPT_REJECT = "accept-reject"
    CONSTRAINT_AWARE = "constraint-aware"
    ROW_BY_ROW = "row-by-row"
    PRINTED = "printed"

    @property
    def keeps_hard_constraints(self) -> bool:
        """Whether it promises that no hard constraint is violated."""
        return self in (Sampling.CONSTRAINT_AWARE, Sampling.ROW_BY_ROW, Sampling.PRINTED)

    @property
    def is_usual(self) -> bool:
        """Whether it draws as well as can be done; the others are there to compare with, and follow the paper."""
        return self in (Sampling.CONSTRAINT_AWARE, Sampling.INDEPENDENT)
