"""What happened to the private table, as data. An event knows nothing of its price.

An event carries what both neighbour relations need, so that one run can be priced under each. The order of a
selection is made from scores with Gaussian noise: choosing the best of noisy scores is then free, and a
selection is a `GaussianEvent` as well.

    >>> GaussianEvent(noise_multiplier=8.0).multiplier(Neighbours.REPLACE)
    4.0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from kamino.errors import PrivacyError
from kamino.privacy.accounting.budget import Neighbours


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """A vector was released with Gaussian noise of `sigma = noise_multiplier * L2 sensitivity`.

    `noise_multiplier` is for add or remove, `replace_multiplier` for replace. To replace is to remove and to
    add, so the second is at least half of the first: that is the default. A multiplier of 0 says that there
    was no noise, or that the sensitivity under that relation is unbounded: its price is infinite.
    """

    noise_multiplier: float
    replace_multiplier: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.replace_multiplier):
            object.__setattr__(self, "replace_multiplier", self.noise_multiplier / 2)
        for value in (self.noise_multiplier, self.replace_multiplier):
            if not 0 <= value < math.inf:
                raise PrivacyError(
                    f"a Gaussian event has noise multiplier {value}; expected a finite number, 0 or larger."
                )
        if self.replace_multiplier < self.noise_multiplier / 2 * (1 - 1e-9):
            raise PrivacyError(
                f"a Gaussian event has noise multiplier {self.noise_multiplier}, and {self.replace_multiplier} under "
                "replace; expected at least half of the first, for to replace is to remove and to add."
            )

    def multiplier(self, neighbours: Neighbours) -> float:
        """Return the noise multiplier under one relation."""
        return self.noise_multiplier if neighbours is Neighbours.ADD_REMOVE else self.replace_multiplier


@dataclass(frozen=True, kw_only=True)
class PoissonGaussianEvent:
    """A sum over a Poisson sample of the units was released with Gaussian noise, as DP-SGD does in each step.

    Every unit was in the sample with probability `sampling_rate`, independently. Every unit's part of the sum
    was clipped to L2 norm C, and the noise had `sigma = noise_multiplier * C`.
    """

    noise_multiplier: float
    sampling_rate: float

    def __post_init__(self) -> None:
        if not 0 <= self.noise_multiplier < math.inf:
            raise PrivacyError(
                f"a sampled Gaussian event has noise multiplier {self.noise_multiplier}; "
                "expected a finite number, 0 or larger."
            )
        if not 0 < self.sampling_rate <= 1:
            raise PrivacyError(
                f"a sampled Gaussian event has sampling rate {self.sampling_rate}; expected a number in (0, 1]."
            )


@dataclass(frozen=True, kw_only=True)
class DeltaEvent:
    """With probability at most `delta` something happened that no epsilon covers, under either relation.

    The private set of categories needs it: a category that only one unit has may pass the threshold.
    """

    delta: float

    def __post_init__(self) -> None:
        if not 0 <= self.delta < 1:
            raise PrivacyError(f"a delta event has delta {self.delta}; expected a number in [0, 1).")


Event: TypeAlias = GaussianEvent | PoissonGaussianEvent | DeltaEvent
"""Every kind of event the accountant can price."""
Events: TypeAlias = tuple[tuple[Event, int], ...]
"""Events, each with the number of times it happens."""
