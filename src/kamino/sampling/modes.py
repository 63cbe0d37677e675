"""Ways to sample, to compare with."""

from __future__ import annotations

import enum


class Sampling(enum.StrEnum):
    """How constraints are treated while sampling; only `CONSTRAINT_AWARE` promises anything."""

    INDEPENDENT = "independent"
    ACCEPT_REJECT = "accept-reject"
    CONSTRAINT_AWARE = "constraint-aware"
