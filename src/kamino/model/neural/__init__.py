"""The tuple model as a chain of small networks trained by DP-SGD: embeddings, attention, one sub-model per attribute.

Fitting needs jax and optax (`pip install 'kamino[neural]'`); a fitted model is sampled with numpy alone.
"""

from __future__ import annotations

from kamino.model.neural.backend import NeuralSettings, fit_neural, plan_parameters, plan_steps
from kamino.model.neural.model import NeuralModel
from kamino.model.neural.search import Parameters, Ranges, search_parameters
from kamino.model.neural.training import Optimizer
from kamino.model.neural.units import UnitLimits

__all__ = [
    "NeuralModel",
    "NeuralSettings",
    "Optimizer",
    "Parameters",
    "Ranges",
    "UnitLimits",
    "fit_neural",
    "plan_parameters",
    "plan_steps",
    "search_parameters",
]
