"""Mean and deviation over runs, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

NOT_RUN = "not run"
PLOT_ONLY = "plot only"
NOT_GIVEN = "not given"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The mean and the standard deviation of so many runs."""

    mean: float
    deviation: float
    count: int

    @staticmethod
    def of(values: Iterable[float | None]) -> Spread | None:
        """Of the runs that were made; None if there are none.

        >>> Spread.of([1.0, 3.0, None])
        Spread(mean=2.0, deviation=1.0, count=2)
        """
        found = [value for value in values if value is not None]
        return Spread(mean=float(np.mean(found)), deviation=float(np.std(found)), count=len(found)) if found else None


def written(spread: Spread | None, digits: int = 3) -> str:
    """A cell of a table; one run has no deviation and says so.

    >>> written(Spread(mean=0.12345, deviation=0.001, count=3)), written(Spread(mean=7, deviation=0, count=1), 0)
    ('0.123 ± 0.001', '7 (one run)')
    >>> written(None)
    'not run'
    """
    if spread is None:
        return NOT_RUN
    mean = f"{spread.mean:,.{digits}f}"
    return f"{mean} (one run)" if spread.count == 1 else f"{mean} ± {spread.deviation:,.{digits}f}"


def percent(spread: Spread | None) -> str:
    """Percent of pairs: an exact zero is told from a small figure that rounds to it.

    >>> percent(Spread(mean=0.0, deviation=0.0, count=3)), percent(Spread(mean=0.00012, deviation=0.0001, count=3))
    ('0', '0.00012 ± 0.00010')
    """
    if spread is None:
        return NOT_RUN
    if spread.mean == 0:
        return "0"
    return written(spread, 3 if spread.mean >= 0.05 else 5)
