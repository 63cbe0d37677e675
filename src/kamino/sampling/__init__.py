"""Drawing tables that break no hard constraint: the plan, its steps, the guarantee."""

from kamino.sampling.modes import Sampling
from kamino.sampling.options import DrawOptions, OnSweep
from kamino.sampling.ordering import random_order
from kamino.sampling.paper_order import paper_sequence
from kamino.sampling.plan import SamplingPlan, Step, StepKind
from kamino.sampling.planner import build_plan
from kamino.sampling.prices import Per, Weight
from kamino.sampling.sampler import draw_table

__all__ = [
    "DrawOptions",
    "OnSweep",
    "Per",
    "Sampling",
    "SamplingPlan",
    "Step",
    "StepKind",
    "Weight",
    "build_plan",
    "draw_table",
    "paper_sequence",
    "random_order",
]
