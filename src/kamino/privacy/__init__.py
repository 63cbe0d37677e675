"""Privacy: the budget, what was spent of it, and the gate through which private data becomes public.

Make a `Budget`, open a `Gate` on it, and ask the gate for releases; read what they cost in `gate.ledger`. To
test a path for leaks, run it under `kamino.testing.replay.assert_replay`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.privacy.accounting.accountant import epsilon
    from kamino.privacy.accounting.budget import Budget, Neighbours
    from kamino.privacy.accounting.calibration import calibrate, gaussian_mu, multiplier_for
    from kamino.privacy.accounting.events import DeltaEvent, Event, Events, GaussianEvent, PoissonGaussianEvent
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
    "Budget": "accounting.budget",
    "DeltaEvent": "accounting.events",
    "Entry": "ledger",
    "Event": "accounting.events",
    "Events": "accounting.events",
    "ExactNoise": "noise",
    "Gate": "gate",
    "GaussianEvent": "accounting.events",
    "Ledger": "ledger",
    "Neighbours": "accounting.budget",
    "Noise": "noise",
    "NoisyBounds": "mechanisms.bounds",
    "NoisyCategories": "mechanisms.categories",
    "PoissonGaussianEvent": "accounting.events",
    "PrivacyUnit": "unit",
    "SecureNoise": "noise",
    "SeededNoise": "noise",
    "Sensitivity": "sensitivity",
    "calibrate": "accounting.calibration",
    "epsilon": "accounting.accountant",
    "gaussian_mu": "accounting.calibration",
    "multiplier_for": "accounting.calibration",
}

__getattr__ = late_imports(__name__, _HOMES)
