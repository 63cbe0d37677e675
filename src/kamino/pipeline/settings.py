"""What a run is asked to do. Public, and the same for every table."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kamino.errors import PrivacyError
from kamino.privacy import Budget, Neighbours, PrivacyUnit
from kamino.sampling import Sampling


class SequenceMode(enum.StrEnum):
    """How the order of attributes is chosen."""

    PLANNED = "planned"
    RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The choices of one run. Every field may be published.

    discovery_share: the part of the budget that finding domains may use, if some are missing.
    sampling, sequence: other ways to draw, to compare with; only the defaults promise anything.
    seed: for tests only; fixes noise and draws, and marks the run "not for release".
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    unit: str | None = None
    max_rows: int | None = None
    trust_domain: bool = False
    discovery_share: float = 0.1
    sampling: Sampling = Sampling.CONSTRAINT_AWARE
    sequence: SequenceMode = SequenceMode.PLANNED
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.discovery_share < 1:
            raise PrivacyError(f"discovery_share is {self.discovery_share}; expected a number between 0 and 1.")
        if (self.unit is None) != (self.max_rows is None):
            raise PrivacyError("unit and max_rows belong together: whose rows, and how many of them are kept.")
        _ = self.budget, self.privacy_unit

    @property
    def budget(self) -> Budget:
        """The privacy budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Whose privacy is promised."""
        return PrivacyUnit(column=self.unit, max_rows=self.max_rows or 1)
