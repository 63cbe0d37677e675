"""Counts of a table in memory, released through the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kamino.model.protocol import Candidate, CodeMap, FloatArray
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, open_codes
from kamino.privacy.sensitivity import Sensitivity
from kamino.schema.joint_codes import flatten_codes


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

    def marginal(
        self, attributes: tuple[str, ...], binning: Mapping[str, CodeMap] | None, *, noise_multiplier: float
    ) -> NDArray[np.int64]:
        """Return noisy counts of the flattened contingency table. Adding a row moves one cell by 1."""
        return self._gate.release_counts(
            self._count(attributes, binning or {}),
            what=f"{len(attributes)}-way marginal",
            attributes=attributes,
            noise_multiplier=noise_multiplier,
        )

    def scores(
        self, candidates: Sequence[Candidate], model_answers: Sequence[FloatArray], *, noise_multiplier: float
    ) -> FloatArray:
        """Return noisy L1 distances between the true counts of candidates and the model's answers.

        One row more or less moves one cell by 1, and so each distance by at most 1: the vector of k distances moves
        by at most sqrt(k). Another row in its place moves two cells: 2 sqrt(k).
        """
        distances = [
            np.abs(self._count(candidate.attributes, candidate.binning) - answer.ravel()).sum()
            for candidate, answer in zip(candidates, model_answers, strict=True)
        ]
        root = math.sqrt(len(candidates))
        return self._gate.release_vector(
            np.asarray(distances, dtype=np.float64),
            what=f"distances of {len(candidates)} marginals to the model",
            attributes=tuple(dict.fromkeys(name for each in candidates for name in each.attributes)),
            noise_multiplier=noise_multiplier,
            sensitivity=Sensitivity(add_remove=root, replace=2 * root),
        )

    def _count(self, attributes: Sequence[str], binning: Mapping[str, CodeMap]) -> NDArray[np.int64]:
        coded = open_codes(self._codes)
        columns = [coded[name] for name in attributes]
        columns = [
            binning[name](codes) if name in binning else codes for name, codes in zip(attributes, columns, strict=True)
        ]
        sizes = [binning[name].bins if name in binning else self._sizes[name] for name in attributes]
        return np.bincount(flatten_codes(columns, sizes), minlength=math.prod(sizes)).astype(np.int64)
