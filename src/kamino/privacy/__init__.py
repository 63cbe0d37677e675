"""Privacy: the budget, what was spent of it, and the gate through which private data becomes public.

Make a `Budget`, open a `Gate` on it, and ask the gate for releases; read what they cost in `gate.ledger`. To
test a path for leaks, run it under `kamino.testing.replay.assert_replay`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.privacy.accountant import epsilon
    from kamino.privacy.budget import Budget, Neighbours
    from kamino.privacy.calibration import calibrate, gaussian_mu, multiplier_for
    from kamino.privacy.events import DeltaEvent, Event, Events, GaussianEvent, PoissonGaussianEvent
    from kamino.privacy.gate import Gate
    from kamino.privacy.ledger import Entry, Ledger
    from kamino.privacy.mechanisms.bounds import NoisyBounds
    from kamino.privacy.mechanisms.categories import NoisyCategories
    from kamino.privacy.noise import ExactNoise, Noise, SecureNoise, SeededNoise
    from kamino.privacy.sensitivity import Sensitivity
    from kamino.privacy.unit import PrivacyUnit

__all__ = [
    "Budget",
    "DeltaEvent",
    "Entry",
    "Event",
    "Events",
    "ExactNoise",
    "Gate",
    "GaussianEvent",
    "Ledger",
    "Neighbours",
    "Noise",
    "NoisyBounds",
    "NoisyCategories",
    "PoissonGaussianEvent",
    "PrivacyUnit",
    "SecureNoise",
    "SeededNoise",
    "Sensitivity",
    "calibrate",
    "epsilon",
    "gaussian_mu",
    "multiplier_for",
]

_HOMES = {
    "Budget": "budget",
    "DeltaEvent": "events",
    "Entry": "ledger",
    "Event": "events",
    "Events": "events",
    "ExactNoise": "noise",
    "Gate": "gate",
    "GaussianEvent": "events",
    "Ledger": "ledger",
    "Neighbours": "budget",
    "Noise": "noise",
    "NoisyBounds": "mechanisms.bounds",
    "NoisyCategories": "mechanisms.categories",
    "PoissonGaussianEvent": "events",
    "PrivacyUnit": "unit",
    "SecureNoise": "noise",
    "SeededNoise": "noise",
    "Sensitivity": "sensitivity",
    "calibrate": "calibration",
    "epsilon": "accountant",
    "gaussian_mu": "calibration",
    "multiplier_for": "calibration",
}

__getattr__ = late_imports(__name__, _HOMES)
