"""A tuple model with explicit conditional tables, and small schemas for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kamino.model.phase import PhaseWeights
from kamino.model.protocol import Cells, CodeMap, Conditional
from kamino.schema import Codec, Integer, Schema


def integers(**sizes: int) -> Codec:
    """A codec of integers from 0; a negative size means that null is possible, too."""
    attributes = {name: Integer(min=0, max=abs(size) - 1, nullable=size < 0) for name, size in sizes.items()}
    return Codec(Schema(attributes=attributes))


class FakeModel:
    """Each attribute depends on chosen earlier ones through a random table; wide attributes get bins of equal width."""

    def __init__(
        self,
        codec: Codec,
        sequence: Sequence[str],
        *,
        seed: int = 0,
        parents: Mapping[str, tuple[str, ...]] | None = None,
        max_bins: int = 64,
        sharpness: float = 1.0,
        tables: Mapping[str, np.ndarray] | None = None,
        weights: Mapping[str, PhaseWeights] | None = None,
    ) -> None:
        self.sequence = tuple(sequence)
        self.num_rows = 1000.0
        self._codec = codec
        self._parents = dict(parents or {})
        self._seed = seed
        self._max_bins = max_bins
        self._sharpness = sharpness
        self._tables = dict(tables or {})
        self._weights = dict(weights or {})

    @property
    def reads_codes(self) -> frozenset[str]:
        """The attributes of which other attributes' distributions read more than the bin: here they read bins."""
        return frozenset()

    def parents(self, attribute: str) -> tuple[str, ...]:
        return self._parents.get(attribute, ())

    def map_of(self, attribute: str) -> CodeMap:
        size = self._codec[attribute].size
        if size <= self._max_bins:
            return CodeMap.identity(size)
        starts = np.unique(np.linspace(0, size, self._max_bins + 1).astype(np.int64)[:-1])
        return CodeMap(size=size, bins=len(starts), starts=starts, labels=np.arange(len(starts)))

    def table(self, attribute: str) -> np.ndarray:
        """Probabilities of bins, one axis for each parent and the last for the attribute."""
        if attribute not in self._tables:
            rng = np.random.default_rng([self._seed, *attribute.encode()])
            shape = [self.map_of(name).bins for name in (*self.parents(attribute), attribute)]
            weight = np.exp(self._sharpness * rng.normal(size=shape))
            self._tables[attribute] = weight / weight.sum(axis=-1, keepdims=True)
        return self._tables[attribute]

    def conditional(self, attribute: str, context: Mapping[str, np.ndarray], num_rows: int) -> Conditional:
        table = self.table(attribute)
        parents = self.parents(attribute)
        codes = map_ = self.map_of(attribute)
        place = np.zeros(num_rows, dtype=np.int64)
        for name in parents:
            bins = self.map_of(name)
            place = place * bins.bins + bins(context[name])
        used, inverse = np.unique(place, return_inverse=True)
        flat = table.reshape(-1, codes.bins)
        with np.errstate(divide="ignore"):
            log_prob = np.log(flat[used]) if num_rows else np.zeros((0, codes.bins))
        width = np.diff(np.append(map_.starts, map_.size))
        cells = Cells(map=map_, width=width, share=np.ones(len(width)), weights=self._weights.get(attribute))
        return Conditional(attribute=attribute, context=inverse.astype(np.int64), log_prob=log_prob, cells=cells)

    def marginal(self, attributes: tuple[str, ...]) -> np.ndarray:
        raise NotImplementedError

    def sample(self, num_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        raise NotImplementedError
