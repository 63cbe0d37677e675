"""What blocks of a long table agree on, and how one of them is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kamino.arrays import IntArray
from kamino.pipeline.fitted import Fitted
from kamino.sampling import DrawOptions, Sampling, SamplingPlan, draw_table
from kamino.sampling.closed_world import ClosedWorld, close_world
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.world_completion import complete_world


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockWorld:
    """What it takes to draw any block after the first."""

    plan: SamplingPlan
    world: ClosedWorld

    @staticmethod
    def of(fitted: Fitted, plan: SamplingPlan, first: Mapping[str, IntArray], root: int) -> BlockWorld:
        """Fix what blocks must agree on."""
        judge, rng = Judge(fitted.codec), np.random.default_rng([root, 0, 1])
        world = close_world(judge, plan, complete_world(judge, plan, fitted.model, first, rng), first)
        return BlockWorld(plan=replace(plan, references={**plan.references, **world.references}), world=world)

    def draw(self, fitted: Fitted, number: int, num_rows: int, root: int) -> dict[str, IntArray]:
        """Draw a block with its own random numbers."""
        options = DrawOptions(
            sampling=Sampling.CONSTRAINT_AWARE,
            weights=fitted.soft.weights,
            targets=fitted.soft.targets,
            sweeps=fitted.settings.sweeps,
            candidates=fitted.settings.candidates,
            world=self.world,
            check=False,
        )
        rng = np.random.default_rng([root, number])
        return draw_table(self.plan, fitted.model, fitted.codec, num_rows, rng, options)
