"""Runs and releases as tests enter them, and count them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import max_mu, multiplier_for
from kamino.privacy.accounting.events import DeltaEvent, GaussianEvent
from kamino.privacy.durable.hash_chain import Chain
from kamino.privacy.durable.journal import JOURNAL_LIMITS
from kamino.privacy.durable.ledger_lines import PlannedRun
from kamino.privacy.durable.store import charged_as
from kamino.privacy.ledger import Entry
from kamino.privacy.tape import CHOICE

BUDGET = Budget(epsilon=1.0, delta=1e-6)
# What a fit chooses by what it measured; each is stored between releases.
_CHOICES = ("bins", "differences", "parities", "strong pairs", *(f"round {number}" for number in range(1, 9)))


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


def releases_in(path: Path) -> int:
    """How many releases a file of stored ones holds, choices left out."""
    choices = {charged_as(Entry(kind=CHOICE, what=what, attributes=(), events=())) for what in _CHOICES}
    chain = Chain.open(path, JOURNAL_LIMITS, read_only=True)
    lines = [line.body for line in chain.read_on()]
    chain.close()
    return sum(body["entry"] not in choices for body in lines[1:])
