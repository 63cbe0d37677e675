"""The distribution of one tuple, behind one protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.model.loading import load_model
    from kamino.model.marginal.fit_marginal import fit_marginal, fit_planned
    from kamino.model.marginal.marginal_schedule import Hints, MarginalPlan, MarginalSettings, plan_marginal
    from kamino.model.marginal.network import MarginalModel
    from kamino.model.marginal.order import order_attributes
    from kamino.model.marginal.purse import BudgetShares
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

_HOMES = {
    "BudgetShares": "marginal.purse",
    "Candidate": "protocol",
    "Cells": "protocol",
    "CodeMap": "protocol",
    "Conditional": "protocol",
    "Hints": "marginal.marginal_schedule",
    "MarginalModel": "marginal.network",
    "MarginalPlan": "marginal.marginal_schedule",
    "MarginalSettings": "marginal.marginal_schedule",
    "Measurer": "protocol",
    "ModelAttribute": "protocol",
    "SavedModel": "protocol",
    "TupleModel": "protocol",
    "fit_marginal": "marginal.fit_marginal",
    "fit_planned": "marginal.fit_marginal",
    "load_model": "loading",
    "order_attributes": "marginal.order",
    "plan_marginal": "marginal.marginal_schedule",
}

__getattr__ = late_imports(__name__, _HOMES)
