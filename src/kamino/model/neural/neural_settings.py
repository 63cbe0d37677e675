"""How the backend works: public choices, the same for every table."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from kamino.model.neural.neural_parameters import Parameters, Ranges, WideRanges
from kamino.model.neural.units import UnitLimits


class Networks(enum.Enum):
    """What a sub-model predicts."""

    LEVELS = "levels"
    """Levels of a released histogram, tilted by the context: see `networks.levels`. Every unit has a histogram."""
    PRINTED = "printed"
    """A softmax over codes, a normal distribution of a number, as the paper has them: see `networks.layers`."""


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """Adam on the noisy gradients, with a rate that falls to 0 along half a cosine. Post-processing, so free.

    The result is the mean of the parameters over the last part of the steps, `averaged`: it holds less of the noise.
    """

    learning_rate: float = 0.03
    warm_up: float = 0.05
    averaged: float = 0.3


@dataclass(frozen=True, kw_only=True)
class NeuralSettings:
    """How the backend works.

    networks: what sub-models predict. levels: into about how many levels a network divides an ordered unit.
    dim, hidden: the length of embeddings, and of the hidden layer that embeds a number. num_cells: the cells in which a
    numeric attribute is released (the paper's q) and sampled. num_rows: the number of rows if it is public; otherwise
    it is released with noise of `count_noise` rows. parameters: what Algorithm 2 is run with; searched by default.
    seed: of the first random parameters, which are public.
    """

    networks: Networks = Networks.LEVELS
    levels: int = 16
    dim: int = 16
    hidden: int = 16
    num_cells: int = 64
    limits: UnitLimits = field(default_factory=UnitLimits)
    optimizer: Optimizer = field(default_factory=Optimizer)
    ranges: Ranges | WideRanges = field(default_factory=WideRanges)
    parameters: Parameters | None = None
    num_rows: int | None = None
    count_noise: float = 200.0
    seed: int = 0

    @staticmethod
    def printed() -> NeuralSettings:
        """The paper's networks, its ranges, and histograms where a network has more than 64 values."""
        return NeuralSettings(
            networks=Networks.PRINTED,
            limits=UnitLimits(counted=64),
            optimizer=Optimizer(learning_rate=0.01),
            ranges=Ranges(),
        )
