"""How far one privacy unit can move a true value, in L2, under each relation.

>>> Sensitivity.of_histogram().under(Neighbours.REPLACE) == math.sqrt(2)
True
>>> Sensitivity(add_remove=0.5)
Sensitivity(add_remove=0.5, replace=1.0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kamino.errors import PrivacyError
from kamino.privacy.accounting.budget import Neighbours
from kamino.privacy.accounting.events import GaussianEvent


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """The L2 sensitivity of one query under both relations; inf where there is no bound.

    To replace is to remove and to add: by the triangle inequality `replace` is at most twice `add_remove`,
    which is the default. Nothing follows in the other direction: a query whose `replace` alone is known (a
    rate over a public number of rows, say) has no bound under add or remove.

    With `of_unit` it is known for a whole privacy unit, however many rows that has: a count of units, say.
    """

    add_remove: float = math.inf
    replace: float = math.nan
    of_unit: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if math.isnan(self.replace):
            object.__setattr__(self, "replace", 2 * self.add_remove)
        for value in (self.add_remove, self.replace):
            if not value > 0:
                raise PrivacyError(f"a sensitivity is {value}; expected more than 0 (inf for no bound).")
        object.__setattr__(self, "replace", min(self.replace, 2 * self.add_remove))

    @staticmethod
    def of_histogram(num_histograms: int = 1) -> Sensitivity:
        """Return that of counts with every row in at most one cell of each of m histograms: √m, and √(2m)."""
        return Sensitivity(add_remove=math.sqrt(num_histograms), replace=math.sqrt(2 * num_histograms))

    @staticmethod
    def of(value: float | Sensitivity, neighbours: Neighbours) -> Sensitivity:
        """Read a plain number as the sensitivity under the relation in use."""
        if isinstance(value, Sensitivity):
            return value
        if neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(add_remove=value)
        return Sensitivity(replace=value)

    def under(self, neighbours: Neighbours) -> float:
        """Return the sensitivity under one relation."""
        return self.add_remove if neighbours is Neighbours.ADD_REMOVE else self.replace

    def for_rows(self, max_rows: int) -> Sensitivity:
        """Return the sensitivity to a unit of at most `max_rows` rows.

        To add a unit is to add up to k rows, one by one: k times as far. To replace a unit by one of another
        number of rows is to replace some and to add or remove the others: at most k steps, each of the larger
        kind.

        Guarantees:
            No unit of k rows moves a histogram further. [test_unit_sensitivity_bounds_every_move]
        """
        if max_rows == 1 or self.of_unit:
            return self
        step = max(self.add_remove, self.replace)
        return Sensitivity(add_remove=max_rows * self.add_remove, replace=max_rows * step)

    def event(self, sigma: float) -> GaussianEvent:
        """Return the event of a release with Gaussian noise of standard deviation `sigma`."""
        return GaussianEvent(noise_multiplier=sigma / self.add_remove, replace_multiplier=sigma / self.replace)
