"""Counts of a table in memory, released through the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.engine.block_counts import count_candidates
from kamino.model.protocol import Candidate, CodeMap, FloatArray, View
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, open_codes
from kamino.privacy.sensitivity import Sensitivity


class MemoryMeasurer:
    """The private side of fitting a model: it holds the codes of the private table and releases noisy counts of them.

    Guarantees:
        Whatever it returns went through the gate.  [test_replay_passes_for_the_measurer]
    """

    def __init__(self, codes: PrivateCodes, sizes: Mapping[str, int], gate: Gate) -> None:
        self._codes = codes
        self._sizes = sizes
        self._gate = gate

    def __repr__(self) -> str:
        return f"MemoryMeasurer({', '.join(self._sizes)})"

    def expect(self, candidates: Sequence[Candidate]) -> None:
        """Nothing is to be prepared: the codes are there."""

    def marginal(
        self, attributes: tuple[str, ...], binning: Mapping[str, View] | None, *, noise_multiplier: float
    ) -> NDArray[np.int64]:
        """Return noisy counts of the flattened contingency table. Adding a row moves one cell by 1."""
        return self._gate.release_counts(
            self._count(attributes, binning or {}),
            what=f"{len(attributes)}-way marginal",
            attributes=attributes,
            noise_multiplier=noise_multiplier,
        )

    def interaction(
        self, attributes: tuple[str, ...], binning: Mapping[str, View], *, noise_multiplier: float
    ) -> NDArray[np.int64]:
        """Return the noisy interactions of a table: see `Measurer.interaction`."""
        shape = tuple(binning[name].bins for name in attributes)
        return self._gate.release_counts(
            interactions(self._count(attributes, binning).reshape(shape)).ravel(),
            what=f"{len(attributes)}-way interaction",
            attributes=attributes,
            noise_multiplier=noise_multiplier,
            sensitivity=interaction_sensitivity(shape),
        )

    def scores(
        self,
        candidates: Sequence[Candidate],
        model_answers: Sequence[FloatArray],
        *,
        noise_multiplier: float,
        against: str = "the model",
    ) -> FloatArray:
        """Return noisy L1 distances between the true counts of candidates and the model's answers.

        One row more or less moves one cell by 1, and so each distance by at most 1: the vector of k distances moves
        by at most sqrt(k). Another row in its place moves two cells: 2 sqrt(k).
        """
        counts = self._count_all(candidates)
        distances = [np.abs(count - answer.ravel()).sum() for count, answer in zip(counts, model_answers, strict=True)]
        root = math.sqrt(len(candidates))
        return self._gate.release_vector(
            np.asarray(distances, dtype=np.float64),
            what=f"distances of {len(candidates)} marginals to {against}",
            attributes=tuple(dict.fromkeys(name for each in candidates for name in each.attributes)),
            noise_multiplier=noise_multiplier,
            sensitivity=Sensitivity(add_remove=root, replace=2 * root),
        )

    def settle(self, what: str, choice: list[Any]) -> list[Any]:
        """Return a choice as it was made first, if releases are stored."""
        return self._gate.settle(what, choice)

    def _count(self, attributes: tuple[str, ...], binning: Mapping[str, View]) -> NDArray[np.int64]:
        return self._count_all([Candidate(attributes=attributes, binning=binning)])[0]

    def _count_all(self, candidates: Sequence[Candidate]) -> list[NDArray[np.int64]]:
        coded = open_codes(self._codes)
        seen = {name for each in candidates for name in each.attributes if name not in each.binning}
        whole: dict[str, View] = {name: CodeMap.identity(self._sizes[name]) for name in seen}
        views = [replace(each, binning={**whole, **each.binning}) if whole else each for each in candidates]
        return count_candidates(views, coded.columns, coded.num_rows)


def interactions(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a table minus the means along each of its axes, times its number of cells: whole numbers."""
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table


def interaction_sensitivity(shape: Sequence[int]) -> Sensitivity:
    """Return how far one row moves the interactions of a table of this shape, in the L2 norm.

    A row in a cell adds the product over the axes of (a at its own place, 0 elsewhere) - 1, of squared norm
    a * (a - 1) an axis. Two rows have an inner product of a * (a - 1) on an axis that they share and of -a on one
    that they do not; a replaced row moves most where that product is least.

    Guarantees:
        No row moves them further, at any shape.  [test_interactions_move_as_declared]
    """
    own = math.prod(a * (a - 1) for a in shape)
    apart = (set(axes) for count in range(1, len(shape) + 1) for axes in combinations(range(len(shape)), count))
    inner = (math.prod(-a if axis in axes else a * (a - 1) for axis, a in enumerate(shape)) for axes in apart)
    return Sensitivity(add_remove=math.sqrt(own), replace=math.sqrt(2 * (own - min(inner))))
