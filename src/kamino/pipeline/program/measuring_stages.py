"""Stages that measure what lies beside the model: sizes of groups, unreadable dates, dates that lie close together."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from kamino.engine import encode, share_close
from kamino.engine.group_sizes import release_group_sizes
from kamino.engine.lost_cells import UNREADABLE, release_lost
from kamino.errors import InputError
from kamino.layout.offsets import ordered_dates
from kamino.layout.recoding import SplitRules, joined
from kamino.pipeline.plan.close_dates import choose_bases, open_pairs, planned_closeness
from kamino.pipeline.plan.group_ids import planned_groups
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.plan.unreadable_dates import planned_unreadable
from kamino.pipeline.program.release_stage import Learned, Means, Planned, PrivateRows
from kamino.pipeline.settings import Backend
from kamino.pipeline.stages import Stage
from kamino.privacy.schedule import Schedule


class GroupSizes:
    """Release how many groups there are of each size, for each id that repeats."""

    name: ClassVar[str] = "group sizes"

    def plan(self, plan: RunPlan) -> Planned:
        """A histogram of sizes for each id."""
        if not plan.known.data_names:
            raise InputError("every column is a key, which carries no data; expected at least one other column")
        return Planned(plan=plan, releases=planned_groups(plan.known, plan.settings, plan.noise_multiplier))

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release them."""
        means.progress(Stage.FIT)
        found = {}
        for planned in known.plan.of_stage(self.name):
            (name,), noise = planned.attributes, planned.noise_multiplier or 0.0
            found[name] = release_group_sizes(rows.table, name, means.gate, noise_multiplier=noise)
        return rows, replace(known, noisy_sizes=found)


class LostCells:
    """Release how many cells of declared dates cannot be read."""

    name: ClassVar[str] = "lost cells"

    def plan(self, plan: RunPlan) -> Planned:
        """One release for all dates with a format."""
        return Planned(plan=plan, releases=Schedule(releases=planned_unreadable(plan.known, plan.noise_multiplier)))

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release it."""
        for planned in known.plan.of_stage(self.name):
            if planned.noise_multiplier is not None:
                names, noise = planned.attributes, planned.noise_multiplier
                lost = release_lost(
                    rows.table, known.plan.known, names, means.gate, noise_multiplier=noise, what=UNREADABLE
                )
                known = replace(known, lost=lost)
        return rows, known


class ChooseOffsets:
    """Choose the dates that are told by their distance from another, and encode the table."""

    name: ClassVar[str] = "choose offsets"

    def plan(self, plan: RunPlan) -> Planned:
        """Dates that rules put in order; whether others lie close together is measured once for all pairs."""
        layout = plan.known_layout
        if plan.settings.backend is not Backend.MARGINAL:
            return Planned(plan=plan)
        codec = layout.codec
        differences = ordered_dates(plan.constraints, codec)
        layout = layout.with_differences(differences)
        after = layout.rules(plan.constraints)
        close = open_pairs(after.drawn, codec, differences)
        rules = SplitRules(drawn=after.drawn, kept=joined(plan.held, after.kept))
        return Planned(
            plan=replace(plan, bound=replace(plan.bound, rules=rules, layout=layout, close=close)),
            releases=Schedule(releases=planned_closeness(close, plan.noise_multiplier)),
        )

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release it, and encode the table by the layout that follows."""
        plan = known.plan
        layout = plan.known_layout
        for planned in plan.of_stage(self.name):
            if planned.noise_multiplier is not None:
                plain = layout.with_differences({}).codec
                codes = encode(rows.table, plain)
                near = share_close(codes, plain, plan.close, means.gate, noise_multiplier=planned.noise_multiplier)
                named = frozenset(name for constraint in plan.constraints for name in constraint.attributes)
                more = choose_bases(near, named | set(layout.differences))
                layout = layout.with_differences({**layout.differences, **more})
        plan = replace(plan, bound=replace(plan.bound, layout=layout))
        return replace(rows, codes=encode(rows.table, layout.codec)), replace(known, plan=plan)
