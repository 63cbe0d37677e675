"""Drawing tables that break no hard constraint: the plan, its steps, the guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.sampling.draw_options import DrawOptions, OnSweep
    from kamino.sampling.modes import Sampling
    from kamino.sampling.plan.ordering import random_order
    from kamino.sampling.plan.paper_order import paper_sequence
    from kamino.sampling.plan.planner import OpenStep, Requirements, build_plan, plan_for_rows, require
    from kamino.sampling.plan.sampling_plan import SamplingPlan, Step, StepKind
    from kamino.sampling.sampler import draw_table
    from kamino.sampling.soft.prices import Per, Weight

__all__ = [
    "DrawOptions",
    "OnSweep",
    "OpenStep",
    "Per",
    "Requirements",
    "Sampling",
    "SamplingPlan",
    "Step",
    "StepKind",
    "Weight",
    "build_plan",
    "draw_table",
    "paper_sequence",
    "plan_for_rows",
    "random_order",
    "require",
]

_HOMES = {
    "DrawOptions": "draw_options",
    "OnSweep": "draw_options",
    "OpenStep": "plan.planner",
    "Per": "soft.prices",
    "Requirements": "plan.planner",
    "Sampling": "modes",
    "SamplingPlan": "plan.sampling_plan",
    "Step": "plan.sampling_plan",
    "StepKind": "plan.sampling_plan",
    "Weight": "soft.prices",
    "build_plan": "plan.planner",
    "draw_table": "sampler",
    "paper_sequence": "plan.paper_order",
    "plan_for_rows": "plan.planner",
    "random_order": "plan.ordering",
    "require": "plan.planner",
}

__getattr__ = late_imports(__name__, _HOMES)
