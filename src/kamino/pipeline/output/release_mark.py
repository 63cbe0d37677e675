"""Whether a table may be released: a seed, no noise, a budget that promises next to nothing, or real ids forbid it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kamino.pipeline.settings import Settings
from kamino.privacy.noise import NOT_FOR_RELEASE

FOR_RELEASE = "for release"
# Beyond this epsilon a guess about one row is nearly always right: the promise is one in name only.
MOST_EPSILON = 10.0


def weak_promises(epsilon: float | None, delta: float, about_rows: float | None) -> tuple[str, ...]:
    """A line for each part of a budget that promises next to nothing; `about_rows` as declared or noisy, if known.

    Guarantees:
        It names epsilon above 10 and delta above one over the rows.  [test_weak_budgets_are_not_for_release]
    """
    found = []
    if epsilon is not None and math.isfinite(epsilon) and epsilon > MOST_EPSILON:
        found.append(f"epsilon {epsilon:g} is above {MOST_EPSILON:g}, where little is left of the promise")
    if about_rows is not None and delta * about_rows > 1:
        found.append(
            f"delta {delta:g} is above one over the rows (about {round(about_rows):,}): publishing a few of them "
            "as they are would keep the promise"
        )
    return tuple(found)


def mark_of(
    ledger: Mapping[str, Any], settings: Settings, about_rows: float, *, written_ids: tuple[str, ...] = ()
) -> str:
    """The mark of a certificate; a weak promise, and real ids of persons, are for release only if the owner accepts.

    Guarantees:
        Neither is marked for release without that.  [test_real_ids_of_persons_are_refused]
    """
    if ledger["mark"]:
        return str(ledger["mark"])
    weak = weak_promises(ledger["epsilon"], ledger["delta"], about_rows)
    return NOT_FOR_RELEASE if (weak or written_ids) and not settings.accept else FOR_RELEASE


def weak_notes(ledger: Mapping[str, Any], settings: Settings, about_rows: float) -> tuple[str, ...]:
    """The weak promises of a run as notes, with what follows from them."""
    weak = () if ledger["mark"] else weak_promises(ledger["epsilon"], ledger["delta"], about_rows)
    end = "; accepted by the owner (--accept)" if settings.accept else "; not for release, unless accepted (--accept)"
    return tuple(f"{each}{end}" for each in weak)
