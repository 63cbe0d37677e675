"""Faults in which the true number of rows stands where a noisy one should."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from kamino.audit import subjects
from kamino.audit.auditing import STRANGERS
from kamino.audit.planted.fault import Fault, all_of, patched
from kamino.engine import MemoryMeasurer
from kamino.pipeline.fitted import Fitted


def _knowing(plant: Callable[[Callable[[], int]], AbstractContextManager[None]]) -> AbstractContextManager[None]:
    """Plant something that is given the true number of rows of the table that was fitted last."""
    clean, seen = MemoryMeasurer.marginal, [0]

    def marginal(self: Any, attributes: Any, *given: Any, **options: Any) -> Any:
        seen[0] = int(self._count(attributes, {}).sum())
        return clean(self, attributes, *given, **options)

    return all_of(patched(MemoryMeasurer, "marginal", marginal), plant(lambda: seen[0]))


def true_default() -> AbstractContextManager[None]:
    """As many rows are drawn by default as the table has."""
    return _knowing(lambda rows: patched(Fitted, "num_rows", property(lambda self: rows())))


ROW_COUNT_FAULTS = (
    Fault(
        name="the true number of rows as default",
        wrong="As many rows are drawn by default as the table has.",
        plant=true_default,
        check=STRANGERS,
        subject=subjects.declared,
    ),
)
