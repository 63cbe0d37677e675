"""The private side of a neural fit, as the backend knows it: what is asked of private rows, and answered with noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kamino.model.neural.networks.layout import Array
from kamino.model.neural.networks.levels import LevelDescent
from kamino.model.neural.networks.training import SubModelDescent
from kamino.model.neural.sub_model import SubModel
from kamino.model.neural.units import Unit
from kamino.model.protocol import FloatArray, IntArray
from kamino.privacy import Gate
from kamino.privacy.mechanisms.gradients import DescentPlan


@dataclass(frozen=True, kw_only=True, eq=False)
class Described:
    """One sub-model to be trained: public facts. labels: the levels of the unit's cells, of a network over levels.

    context: the sub-models of the units before it. Of these, a network over levels takes units and levels; another
    takes units.
    """

    unit: Unit
    context: tuple[SubModel, ...]
    num_cells: int
    descent: SubModelDescent | LevelDescent
    plan: DescentPlan
    labels: IntArray | None = None


class NeuralMeasurer(Protocol):
    """Noisy counts and noisy gradients of one private table, each paid for; rows never come out."""

    @property
    def gate(self) -> Gate:
        """The gate that everything goes through."""
        ...

    def count_rows(self, *, noise_multiplier: float) -> int:
        """Return the noisy number of rows."""
        ...

    def histogram(self, unit: Unit, *, num_cells: int, noise_multiplier: float) -> FloatArray:
        """Return the noisy distribution of a unit: of each cell of a numeric one, of each (joint) code otherwise."""
        ...

    def train(self, described: Described) -> dict[str, Array]:
        """Train the sub-model of a unit, given the units of its context, by DP-SGD."""
        ...

    def charge_training(self, described: Described) -> Callable[[], dict[str, Array]]:
        """Charge for what `train` would do now, and return what does it, for a worker: it holds private rows."""
        ...
