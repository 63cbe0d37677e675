"""Drawing tables that break no hard constraint: the plan, its steps, the guarantee."""

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
