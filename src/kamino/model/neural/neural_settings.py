"""How the backend works: public choices, the same for every table."""

from __future__ import annotations

from dataclasses import dataclass, field

from kamino.model.neural.search import Parameters, Ranges
from kamino.model.neural.units import UnitLimits


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """Adam on the noisy gradients, with a rate that falls to 0 along half a cosine. Post-processing, so free.

    The result is the mean of the parameters over the last part of the steps, `averaged`: it holds less of the noise.
    """

    learning_rate: float = 0.01
    warm_up: float = 0.05
    averaged: float = 0.3


@dataclass(frozen=True, kw_only=True)
class NeuralSettings:
    """How the backend works.

    dim, hidden: the length of embeddings, and of the hidden layer that embeds a number. num_cells: the cells in which a
    numeric attribute is released (the paper's q) and sampled. num_rows: the number of rows if it is public; otherwise
    it is released with noise of `count_noise` rows. parameters: what Algorithm 2 is run with; searched by default.
    seed: of the first random parameters, which are public.
    """

    dim: int = 16
    hidden: int = 16
    num_cells: int = 64
    limits: UnitLimits = field(default_factory=UnitLimits)
    optimizer: Optimizer = field(default_factory=Optimizer)
    ranges: Ranges = field(default_factory=Ranges)
    parameters: Parameters | None = None
    num_rows: int | None = None
    count_noise: float = 200.0
    seed: int = 0
