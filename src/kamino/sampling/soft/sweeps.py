"""How violation rates settle while a column is drawn: whether the sweeps were enough can be seen from it.

>>> log = SweepLog()
>>> log("tax", 0, {})
>>> log.records[0].attribute, log.records[0].sweep
('tax', 0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kamino.constraints import DenialConstraint, print_constraint


@dataclass(frozen=True, kw_only=True)
class SweepRates:
    """The violation rates of an attribute's soft constraints after a number of sweeps; 0 is the first pass."""

    attribute: str
    sweep: int
    rates: Mapping[DenialConstraint, float]

    def __str__(self) -> str:
        rates = ", ".join(f"{print_constraint(c)} {rate:.4%}" for c, rate in self.rates.items())
        return f"{self.attribute}, sweep {self.sweep}: {rates}"


@dataclass
class SweepLog:
    """Keeps what `draw_table(on_sweep=...)` tells. Made from the synthetic table: it may be published.

    Guarantees:
        It has a record for the first pass and for each sweep.  [test_sweeps_are_logged]
    """

    records: list[SweepRates] = field(default_factory=list)

    def __call__(self, attribute: str, sweep: int, rates: Mapping[DenialConstraint, float]) -> None:
        """Keep the rates after one sweep."""
        self.records.append(SweepRates(attribute=attribute, sweep=sweep, rates=dict(rates)))

    def lines(self) -> list[str]:
        """One line for each attribute and constraint: its rate after the first pass and after each sweep."""
        courses: dict[tuple[str, DenialConstraint], list[float]] = {}
        for record in self.records:
            for constraint, rate in record.rates.items():
                courses.setdefault((record.attribute, constraint), []).append(rate)
        return [
            f"{attribute}: {print_constraint(constraint)}: " + " ".join(f"{rate:.4%}" for rate in course)
            for (attribute, constraint), course in courses.items()
        ]
