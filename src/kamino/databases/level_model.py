"""A fitted model as the drawing of one level sees it: its own sequence, tilted by another row of the same owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.model.marginal.network import MarginalModel
from kamino.model.protocol import CodeMap, Conditional
from kamino.schema.coding.joint_codes import distinct_values


@dataclass(frozen=True, kw_only=True, eq=False)
class Tilt:
    """By what the chance of each bin of a column changes, in logs, for each bin of another column.

    That is a column of the same row that is drawn before, or one of another row of the same owner.
    """

    by: str
    of_other: bool
    reads: CodeMap
    own: CodeMap
    logs: FloatArray = field(repr=False)


class LevelModel:
    """The conditionals of a model. Its frequencies count families, not rows of a level, and are not told.

    `tilts` of a column are by the columns `other` of another row.
    """

    def __init__(
        self,
        model: MarginalModel,
        sequence: tuple[str, ...],
        tilts: Mapping[str, tuple[Tilt, ...]] = MappingProxyType({}),
        other: Mapping[str, IntArray] = MappingProxyType({}),
    ) -> None:
        self._model, self.sequence, self._tilts, self._other = model, sequence, tilts, other

    @property
    def num_rows(self) -> float:
        """The noisy number of samples it was fitted on."""
        return self._model.num_rows

    @property
    def reads_codes(self) -> frozenset[str]:
        """The attributes of which others' distributions read more than the bin."""
        return self._model.reads_codes

    def parents(self, attribute: str) -> tuple[str, ...]:
        """Return the earlier attributes that one depends on."""
        return self._model.parents(attribute)

    def conditional(self, attribute: str, context: Mapping[str, IntArray], num_rows: int) -> Conditional:
        """Return P(attribute | earlier attributes, the other row)."""
        found = self._model.conditional(attribute, context, num_rows)
        tilts = self._tilts.get(attribute, ())
        if not tilts or num_rows == 0:
            return found
        label, bins = np.zeros(num_rows, dtype=np.int64), {}
        for i, tilt in enumerate(tilts):
            bins[i] = tilt.reads((self._other if tilt.of_other else context)[tilt.by])
            label = distinct_values(label * tilt.reads.bins + bins[i])[1]
        labels = int(label.max()) + 1
        both, index = distinct_values(found.context * labels + label)
        # One row for each label, to read its bins off.
        row = np.zeros(labels, dtype=np.int64)
        row[label] = np.arange(num_rows)
        log = found.log_prob[both // labels].copy()
        for i, tilt in enumerate(tilts):
            fine = np.zeros(found.cells.map.bins, dtype=np.int64)
            fine[found.cells.map.labels] = tilt.own(found.cells.map.starts)
            log += tilt.logs[bins[i][row[both % labels]]][:, fine]
        log -= np.logaddexp.reduce(log, axis=1, keepdims=True)
        return replace(found, context=index, log_prob=log)

    def marginal(self, attributes: tuple[str, ...]) -> FloatArray:
        """Return joint probabilities."""
        return self._model.marginal(attributes)

    def sample(self, num_rows: int, rng: object) -> dict[str, IntArray]:
        """Draw rows of the whole model."""
        raise NotImplementedError("levels are drawn by their plan")
