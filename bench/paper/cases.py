"""What is synthesized: a table, a preset and what differs from it, by names that are also folders of the store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT = "default"
PAPER = "paper"
PRINTED = "printed"
# The constraints that come with a table; with NO_CONSTRAINTS the synthesizer is told of none.
OWN = "own"
NO_CONSTRAINTS = "none"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to make a synthetic table.

    constraints: OWN, NO_CONSTRAINTS, or the name of a set of approximate ones, all taken as soft.
    sequence, jobs, weights: of the fit, and sampling, sweeps: of the draw, where they differ from the preset's.
    copies: the true table is repeated so many times. cleaned: the table is repaired after it was drawn.
    """

    table: str
    preset: str = DEFAULT
    epsilon: float = 1.0
    constraints: str = OWN
    sequence: str | None = None
    jobs: int | None = None
    weights: str | None = None
    copies: int = 1
    sampling: str | None = None
    sweeps: int | None = None
    cleaned: bool = False

    @property
    def fit_settings(self) -> dict[str, Any]:
        """Keywords of the synthesizer."""
        given = {"sequence": self.sequence, "jobs": self.jobs, "weights": self.weights}
        return {"epsilon": self.epsilon, **{name: value for name, value in given.items() if value is not None}}

    @property
    def fit_name(self) -> str:
        """The folder of the fit: what differs from the defaults."""
        return _joined(
            self.preset,
            epsilon=None if self.epsilon == 1.0 else ("inf" if math.isinf(self.epsilon) else f"{self.epsilon:g}"),
            constraints=None if self.constraints == OWN else self.constraints,
            sequence=self.sequence,
            jobs=self.jobs,
            weights=self.weights,
            copies=None if self.copies == 1 else self.copies,
        )

    @property
    def draw_name(self) -> str:
        """The folder of the draw, within that of the fit."""
        return _joined("drawn", sampling=self.sampling, sweeps=self.sweeps, cleaned=self.cleaned or None)

    def fit_folder(self, store: Path, run: int) -> Path:
        """Where the model of one run is kept."""
        return store / self.table / self.fit_name / f"run-{run}"

    def draw_folder(self, store: Path, run: int) -> Path:
        """Where the table of one run is kept."""
        return self.fit_folder(store, run) / self.draw_name


def _joined(first: str, **given: object) -> str:
    return "_".join([first, *(f"{name}-{value}" for name, value in given.items() if value is not None)])
