"""Histograms and gradients of a table in memory, released through the gate for the neural backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.columns.denoise import shrink
from kamino.model.neural.label_histograms import cells_of, to_distribution
from kamino.model.neural.measuring import Described
from kamino.model.neural.networks.layout import Array, context_arrays
from kamino.model.neural.networks.levels import LevelDescent
from kamino.model.neural.networks.training import SubModelDescent, target_arrays
from kamino.model.neural.sub_model import lines_of
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import FloatArray, IntArray
from kamino.privacy import Gate
from kamino.privacy.mechanisms.gradients import DescentPlan, open_descent, run_descent, run_factored
from kamino.privacy.private import PrivateCodes, open_codes
from kamino.privacy.sensitivity import Sensitivity


class NeuralRows:
    """The private side of a neural fit: it holds the codes of the private table and releases what is asked of them.

    Guarantees:
        Whatever it returns went through the gate.  [test_replay_passes_for_the_neural_backend]
    """

    def __init__(self, codes: PrivateCodes, gate: Gate) -> None:
        self._codes = codes
        self._gate = gate

    def __repr__(self) -> str:
        return f"NeuralRows({', '.join(self._codes.names)})"

    @property
    def gate(self) -> Gate:
        """The gate that everything goes through."""
        return self._gate

    def count_rows(self, *, noise_multiplier: float) -> int:
        """Return the noisy number of rows."""
        return self._gate.release_row_count(open_codes(self._codes).num_rows, noise_multiplier=noise_multiplier)

    def histogram(self, unit: Unit, *, num_cells: int, noise_multiplier: float) -> FloatArray:
        """Return the noisy distribution of a unit: of each cell of a numeric one, of each (joint) code otherwise."""
        joint = unit.joint(open_codes(self._codes).columns)
        return release_histogram(self._gate, unit, joint, num_cells=num_cells, noise_multiplier=noise_multiplier)

    def train(self, described: Described) -> dict[str, Array]:
        """Train the sub-model of a unit, given the units of its context, by DP-SGD."""
        descent = described.descent
        state = self._gate.release_descent(self._rows(described), descent, described.plan)
        return descent.result(state)

    def charge_training(self, described: Described) -> Callable[[], dict[str, Array]]:
        """Charge for what `train` would do now, and return what does it, for a worker: it holds private rows."""
        coins = open_descent(self._gate, described.plan)
        return _Charged(
            _rows=self._rows(described),
            _descent=described.descent,
            _plan=described.plan,
            _coins=coins,
            _noisy=self._gate.budget.is_private,
        )

    def _rows(self, described: Described) -> tuple[NDArray[np.generic], ...]:
        """The private rows of one sub-model as the network takes them."""
        coded, unit = open_codes(self._codes), described.unit
        if described.labels is None:
            arrays = context_arrays([each.unit for each in described.context], coded.columns, coded.num_rows)
            return (*arrays, *target_arrays(unit, unit.joint(coded.columns)))
        cells = cells_of(unit, described.num_cells).map(unit.joint(coded.columns))
        lines = lines_of(described.context, coded.columns, described.num_cells)
        return lines.astype(np.int32), described.labels[cells].astype(np.int32)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Charged:
    """A sub-model that was charged for, to be trained once; it goes to a worker with its private rows and its coins."""

    _rows: tuple[NDArray[Any], ...]
    _descent: SubModelDescent | LevelDescent
    _plan: DescentPlan
    _coins: bytes
    _noisy: bool

    def __call__(self) -> dict[str, Array]:
        if isinstance(self._descent, LevelDescent):
            state = run_factored(self._rows, self._descent, self._plan, self._coins, noisy=self._noisy)
            return self._descent.result(state)
        return self._descent.result(run_descent(self._rows, self._descent, self._plan, self._coins, noisy=self._noisy))


def release_histogram(
    gate: Gate, unit: Unit, joint: IntArray, *, num_cells: int, noise_multiplier: float
) -> FloatArray:
    """Release the distribution of a unit's codes: of each cell of a numeric one, of each (joint) code otherwise.

    Guarantees:
        A wide unit whose counts drown in noise comes out about even.  [test_a_wide_histogram_is_not_made_of_noise]
    """
    cells = cells_of(unit, num_cells)
    counts = np.bincount(cells.map(joint), minlength=cells.map.bins).astype(np.int64)
    noisy = gate.release_counts(
        counts, what="histogram of a unit", attributes=unit.names, noise_multiplier=noise_multiplier
    )
    if unit.kind is not Kind.WIDE:
        return to_distribution(noisy.astype(np.float64))
    # Thousands of small counts: a projection would keep the few with the most noise, and nothing else.
    private = gate.budget.is_private
    sigma = noise_multiplier * Sensitivity.of_histogram().under(gate.budget.neighbours) if private else 0.0
    return to_distribution(shrink(noisy.astype(np.float64), sigma))
