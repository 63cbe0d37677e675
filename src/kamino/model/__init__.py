"""The distribution of one tuple, behind one protocol."""

from __future__ import annotations

from kamino.model.loading import load_model
from kamino.model.marginal.backend import Hints, MarginalSettings, fit_marginal
from kamino.model.marginal.budget import BudgetShares
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.order import order_attributes
from kamino.model.protocol import (
    Candidate,
    Cells,
    CodeMap,
    Conditional,
    Measurer,
    ModelAttribute,
    SavedModel,
    TupleModel,
)

__all__ = [
    "BudgetShares",
    "Candidate",
    "Cells",
    "CodeMap",
    "Conditional",
    "Hints",
    "MarginalModel",
    "MarginalSettings",
    "Measurer",
    "ModelAttribute",
    "SavedModel",
    "TupleModel",
    "fit_marginal",
    "load_model",
    "order_attributes",
]
