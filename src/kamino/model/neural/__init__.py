"""The tuple model as a chain of small networks trained by DP-SGD: embeddings, attention, one sub-model per attribute.

Fitting needs jax and optax (`pip install 'kamino-synth[neural]'`); a fitted model is sampled with numpy alone.
"""

from __future__ import annotations

from kamino.model.neural.fit_neural import Progress, fit_neural
from kamino.model.neural.model import NeuralModel
from kamino.model.neural.neural_schedule import NeuralPlan, describe_plan
from kamino.model.neural.neural_settings import NeuralSettings, Optimizer
from kamino.model.neural.search import Parameters, Ranges, search_parameters
from kamino.model.neural.units import UnitLimits

__all__ = [
    "NeuralModel",
    "NeuralPlan",
    "NeuralSettings",
    "Optimizer",
    "Parameters",
    "Progress",
    "Ranges",
    "UnitLimits",
    "describe_plan",
    "fit_neural",
    "search_parameters",
]
