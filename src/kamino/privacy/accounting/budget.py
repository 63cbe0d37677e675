"""What may be spent, and which two tables must look alike.

>>> from kamino.privacy import Budget, Neighbours
>>> Budget(epsilon=1.0, delta=1e-6)
Budget(epsilon=1.0, delta=1e-06, neighbours=<Neighbours.ADD_REMOVE: 'add_remove'>)
>>> Budget(epsilon=float("inf"), delta=1e-6).is_private
False
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from kamino.errors import PrivacyError


class Neighbours(Enum):
    """Which pairs of tables the promise is about: one relation for a whole run."""

    ADD_REMOVE = "add_remove"
    """One privacy unit (by default a row) is added or removed."""
    REPLACE = "replace"
    """One privacy unit (by default a row) is replaced by another one."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An (epsilon, delta) promise for one relation of neighbouring tables.

    `epsilon=inf` means no noise at all; everything made with it is marked "not private".

    Guarantees:
        A budget that means nothing cannot be made. [test_budget_refuses_nonsense]
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        if not isinstance(self.neighbours, Neighbours):
            raise PrivacyError(
                f"neighbours is {self.neighbours!r}; expected Neighbours.ADD_REMOVE or Neighbours.REPLACE."
            )
        if math.isnan(self.epsilon) or self.epsilon <= 0:
            raise PrivacyError(f"epsilon is {self.epsilon}; expected a positive number (inf for no privacy at all).")
        if not 0 < self.delta < 1:
            raise PrivacyError(
                f"delta is {self.delta}; expected a number between 0 and 1, much smaller than one over "
                "the number of rows, for example 1e-6. Gaussian noise cannot give delta = 0."
            )

    @property
    def is_private(self) -> bool:
        """Whether the budget promises anything."""
        return math.isfinite(self.epsilon)
