"""Runs and releases as tests enter them."""

from __future__ import annotations

from typing import Any

from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import max_mu, multiplier_for
from kamino.privacy.accounting.events import DeltaEvent, GaussianEvent
from kamino.privacy.durable.ledger_lines import PlannedRun
from kamino.privacy.ledger import Entry

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def planned(run: str, **changes: Any) -> PlannedRun:
    """A run of Gaussian releases that may spend all of its budget, unless changed."""
    budget = changes.get("budget", BUDGET)
    facts: dict[str, Any] = {
        "run": run,
        "dataset": "d",
        "command": "test",
        "plan": "p",
        "started": "2026-01-01T00:00:00+00:00",
        "version": "0",
        "budget": budget,
        "unit": None,
        "max_rows": 1,
        "gaussian": max_mu(budget, reserved_delta=changes.get("finding_delta", 0.0)) ** 2,
        "finding_delta": 0.0,
        "sampled": False,
        "mark": "",
        **changes,
    }
    return PlannedRun(**facts)


def gaussian(share: float, *, what: str = "counts", relation: Neighbours = Neighbours.ADD_REMOVE) -> Entry:
    """A release that costs a share of mu² under a relation, and no more than that under add or remove."""
    noise = multiplier_for(share)
    event = GaussianEvent(
        noise_multiplier=noise, replace_multiplier=noise if relation is Neighbours.REPLACE else noise / 2
    )
    return Entry(kind="counts", what=what, attributes=("a",), events=((event, 1),), sigma=noise, sensitivity=1.0)


def delta_event(delta: float) -> Entry:
    """A release that costs a part of delta."""
    return Entry(kind="aside", what="categories", attributes=(), events=((DeltaEvent(delta=delta), 1),))
