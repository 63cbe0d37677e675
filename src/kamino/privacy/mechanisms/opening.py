"""What releases from Poisson samples have in common before they draw: checks, the event, the coins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kamino.errors import PrivacyError
from kamino.privacy.accounting.events import PoissonGaussianEvent
from kamino.privacy.ledger import Entry
from kamino.privacy.tape import COINS

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate


def sampled_event(
    gate: Gate, release: str, *, instead: str, noise_multiplier: float, sampling_rate: float
) -> PoissonGaussianEvent:
    """Return what one sampled release costs; `release` names it in errors, and `instead` says what to do.

    Raises:
        PrivacyError: a unit has several rows, which single coins do not protect, or there is no noise.
    """
    if gate.unit.max_rows > 1:
        raise PrivacyError(
            f"the privacy unit is {gate.unit.describe()}, but {release} samples single rows; "
            f"{instead}, or set max_rows=1."
        )
    if gate.budget.is_private and not 0 < noise_multiplier < math.inf:
        raise PrivacyError(f"{release} has noise multiplier {noise_multiplier}; expected a positive number.")
    multiplier = noise_multiplier if gate.budget.is_private else 0.0
    return PoissonGaussianEvent(noise_multiplier=multiplier, sampling_rate=sampling_rate)


def draw_coins(gate: Gate, what: str, attributes: tuple[str, ...]) -> bytes:
    """Return the secret bytes that a release's samples and noise come from. They cost nothing and are never shown."""
    entry = Entry(kind=COINS, what=f"coins of {what}", attributes=attributes, events=())
    return gate.play(entry, truth=lambda: None, answer=lambda _: gate.noise.coins())
