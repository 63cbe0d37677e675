"""The tuple model as a chain of small networks trained by DP-SGD: embeddings, attention, one sub-model per attribute.

Networks over levels need numpy alone. The paper's own need jax and optax to be fitted (`pip install
'kamino-synth[neural]'`), and numpy alone to be sampled.
"""

from __future__ import annotations

from kamino.model.neural.fit_neural import Progress, fit_neural
from kamino.model.neural.model import NeuralModel
from kamino.model.neural.neural_parameters import Parameters, Ranges, WideRanges
from kamino.model.neural.neural_schedule import NeuralPlan, describe_plan
from kamino.model.neural.neural_settings import Networks, NeuralSettings, Optimizer
from kamino.model.neural.search import search_parameters
from kamino.model.neural.units import UnitLimits

__all__ = [
    "Networks",
    "NeuralModel",
    "NeuralPlan",
    "NeuralSettings",
    "Optimizer",
    "Parameters",
    "Progress",
    "Ranges",
    "UnitLimits",
    "WideRanges",
    "describe_plan",
    "fit_neural",
    "search_parameters",
]
