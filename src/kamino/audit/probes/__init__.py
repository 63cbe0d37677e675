"""Probes of single parts of the code, on made-up input: general ones, as the checks are, which know of no fault."""

from __future__ import annotations

from kamino.audit.probes.charged_first import CHARGING
from kamino.audit.probes.drawn_noise import FRESHNESS, LAW
from kamino.audit.probes.drawn_samples import SAMPLES
from kamino.audit.probes.farthest_moves import MOVES
from kamino.audit.probes.kept_rows import UNITS
from kamino.audit.probes.policy_totals import POLICY
from kamino.audit.probes.prices_again import PRICES
from kamino.audit.probes.probe import Probe
from kamino.audit.probes.read_rows import READING
from kamino.audit.probes.released_noise import RELEASED
from kamino.audit.probes.same_in_parts import PARTS
from kamino.audit.probes.written_tables import WRITTEN

PROBES: tuple[Probe, ...] = (
    LAW,
    FRESHNESS,
    RELEASED,
    SAMPLES,
    MOVES,
    UNITS,
    PRICES,
    CHARGING,
    POLICY,
    READING,
    PARTS,
    WRITTEN,
)

__all__ = ["PROBES", "Probe"]
