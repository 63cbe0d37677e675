"""What a certificate says of its own making, and what its reader may do and may not conclude, in words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from kamino.pipeline.output.release_mark import FOR_RELEASE
from kamino.privacy import Neighbours
from kamino.privacy.accounting.meaning import meaning_of_ledger

MAY = (
    "publish the table, share it, and compute from it as often as wanted: nothing done with it costs more privacy",
    "rely on each hard constraint: its violations were counted in the bytes whose sha256 is stated here",
    "treat counts and averages as estimates, with the errors that kamino plan tells for this budget",
)
MAY_NOT = (
    "take a row of the table for a person: rows are made up, and a likeness is chance",
    "conclude that a value or combination that is absent here is absent from the original, or the other way round",
    "trust small counts: those of about the size of the noise are noise",
    "add up tables for free: each further run on the same original spends its own budget on top",
)


def words_of(ledger: Mapping[str, Any], *, mark: str) -> dict[str, Any]:
    """What the spent budget means, and what may and may not be done and concluded."""
    own = Neighbours(ledger["neighbours"])
    meaning = meaning_of_ledger(ledger)
    return {
        "meaning": meaning[own].describe(ledger["unit"]["text"], own),
        "may": list(MAY) if mark == FOR_RELEASE else [],
        "may_not": list(MAY_NOT),
    }


def meanings_of(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """What the spent budget means under each relation, as numbers."""
    return {relation.value: each.to_json() for relation, each in meaning_of_ledger(ledger).items()}


def today() -> str:
    """The day on which a certificate is made, in UTC: by the clock of the machine, and not to the second."""
    return dt.datetime.now(dt.UTC).date().isoformat()
