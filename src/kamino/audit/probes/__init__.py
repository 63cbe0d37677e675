"""Probes of single parts of the code, on made-up input: general ones, as the checks are, which know of no fault."""

from __future__ import annotations

from kamino.audit.probes.drawn_noise import FRESHNESS, LAW
from kamino.audit.probes.policy_totals import POLICY
from kamino.audit.probes.probe import Probe

PROBES: tuple[Probe, ...] = (LAW, FRESHNESS, POLICY)

__all__ = ["PROBES", "Probe"]
