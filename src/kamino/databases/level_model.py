"""A fitted model as the drawing of one level sees it: its own sequence, no frequencies of families."""

from __future__ import annotations

from collections.abc import Mapping

from kamino.arrays import FloatArray, IntArray
from kamino.model.marginal.network import MarginalModel
from kamino.model.protocol import Conditional


class LevelModel:
    """The conditionals of a model. Its frequencies count families, not rows of a level, and are not told."""

    def __init__(self, model: MarginalModel, sequence: tuple[str, ...]) -> None:
        self._model, self.sequence = model, sequence

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
        """Return P(attribute | earlier attributes)."""
        return self._model.conditional(attribute, context, num_rows)

    def marginal(self, attributes: tuple[str, ...]) -> FloatArray:
        """Return joint probabilities."""
        return self._model.marginal(attributes)

    def sample(self, num_rows: int, rng: object) -> dict[str, IntArray]:
        """Draw rows of the whole model."""
        raise NotImplementedError("levels are drawn by their plan")
