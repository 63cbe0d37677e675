"""A measurer over codes in memory, with numpy noise: for tests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kamino.engine.memory import interaction_sensitivity, interactions
from kamino.model.protocol import Candidate, View, read


class MemoryMeasurer:
    """Counts columns of codes and adds up what its releases cost."""

    def __init__(self, columns: Mapping[str, np.ndarray], seed: int = 0) -> None:
        self.columns = columns
        self.rng = np.random.default_rng(seed)
        self.cost = 0.0
        self.record: list[np.ndarray] = []

    def _count(self, attributes: Sequence[str], binning: Mapping[str, View]) -> np.ndarray:
        flat = np.zeros(len(next(iter(self.columns.values()))), dtype=np.int64)
        cells = 1
        for name in attributes:
            flat = flat * binning[name].bins + read(binning[name], name, self.columns)
            cells *= binning[name].bins
        return np.bincount(flat, minlength=cells)

    def _release(self, exact: np.ndarray, multiplier: float, sensitivity: float) -> np.ndarray:
        self.cost += 1 / multiplier**2 if multiplier > 0 else np.inf
        noise = self.rng.normal(0.0, multiplier * sensitivity, exact.shape) if multiplier > 0 else 0.0
        self.record.append(exact + noise)
        return self.record[-1]

    def expect(self, candidates: Sequence[Candidate]) -> None:
        pass

    def settle(self, what: str, choice: list) -> list:
        return choice

    def marginal(self, attributes, binning, *, noise_multiplier):
        return np.round(self._release(self._count(attributes, binning), noise_multiplier, 1.0))

    def interaction(self, attributes, binning, *, noise_multiplier):
        shape = tuple(binning[name].bins for name in attributes)
        exact = interactions(self._count(attributes, binning).reshape(shape)).ravel()
        return np.round(self._release(exact, noise_multiplier, interaction_sensitivity(shape).add_remove))

    def scores(self, candidates: Sequence[Candidate], model_answers, *, noise_multiplier, against="the model"):
        exact = [
            np.abs(self._count(c.attributes, c.binning) - np.ravel(answer)).sum()
            for c, answer in zip(candidates, model_answers, strict=True)
        ]
        return self._release(np.array(exact), noise_multiplier, np.sqrt(len(exact)))


class ReplayMeasurer(MemoryMeasurer):
    """Plays back what another measurer released, whatever its own columns are."""

    def __init__(self, columns: Mapping[str, np.ndarray], record: Sequence[np.ndarray]) -> None:
        super().__init__(columns)
        self.left = list(record)

    def _release(self, exact: np.ndarray, multiplier: float, sensitivity: float) -> np.ndarray:
        return self.left.pop(0)
