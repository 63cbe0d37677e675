"""The distribution of one tuple, behind one protocol."""

from __future__ import annotations

from kamino.model.loading import load_model
from kamino.model.marginal.backend import fit_marginal, fit_planned
from kamino.model.marginal.budget import BudgetShares
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.order import order_attributes
from kamino.model.marginal.planning import Hints, MarginalPlan, MarginalSettings, plan_marginal
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
    "MarginalPlan",
    "MarginalSettings",
    "Measurer",
    "ModelAttribute",
    "SavedModel",
    "TupleModel",
    "fit_marginal",
    "fit_planned",
    "load_model",
    "order_attributes",
    "plan_marginal",
]
